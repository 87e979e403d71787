#![allow(clippy::all, clippy::pedantic, clippy::print_stdout, clippy::unwrap_used, missing_docs)]
use shafer::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let (rows, k, reps): (usize, usize, usize) =
        (a[2].parse().unwrap(), a[3].parse().unwrap(), a[4].parse().unwrap());
    let mut s = 1u64;
    let x: Vec<f32> = (0..rows * k)
        .map(|_| {
            let mut t = 0.0;
            for _ in 0..12 {
                s = s.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                t += (s >> 40) as f32 / (1u64 << 24) as f32;
            }
            3.0 * (t - 6.0)
        })
        .collect();
    let mut out = vec![0.0f32; rows * k];
    let l = Logits::rows(&x, k).unwrap();
    let mut c = CompressedRows::new();
    let t: Box<dyn Transform> = match a[1].as_str() {
        "softmax" => Box::new(Softmax),
        "evid" => Box::new(Evidential::default()),
        "sparsemax" => Box::new(Sparsemax),
        "top_k" => Box::new(TopK::new(50).unwrap()),
        "entmax15" => Box::new(Entmax::new(1.5).unwrap()),
        _ => Box::new(TopP::new(0.9).unwrap()),
    };
    for _ in 0..reps {
        if a.len() > 5 {
            t.compressed_into(&l, &mut c).unwrap();
        } else {
            t.dense(&l, &mut out).unwrap();
        }
    }
}
