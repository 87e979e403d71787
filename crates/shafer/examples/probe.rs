#![allow(clippy::all, clippy::pedantic, clippy::print_stdout, clippy::unwrap_used, missing_docs)]
use shafer::*;
use std::time::Instant;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let (rows, k): (usize, usize) = (a[1].parse().unwrap(), a[2].parse().unwrap());
    let reps: usize = a[3].parse().unwrap();
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
    let mut c = CompressedRows::new();
    let l = Logits::rows(&x, k).unwrap();
    let t: Vec<(&str, Box<dyn Transform>)> = vec![
        ("softmax", Box::new(Softmax)),
        ("evid", Box::new(Evidential::default())),
        ("sparsemax", Box::new(Sparsemax)),
        ("min_p", Box::new(MinP::new(0.05).unwrap())),
        ("entmax15", Box::new(Entmax::new(1.5).unwrap())),
        ("top_k", Box::new(TopK::new(50.min(k / 2)).unwrap())),
        ("top_p", Box::new(TopP::new(0.9).unwrap())),
    ];
    let n = (rows * k) as f64;
    let best = |f: &mut dyn FnMut()| {
        let mut b = f64::MAX;
        for _ in 0..reps {
            let s = Instant::now();
            f();
            b = b.min(s.elapsed().as_secs_f64());
        }
        b * 1e9 / n
    };
    let mem = best(&mut || {
        out.copy_from_slice(&x);
        std::hint::black_box(&mut out);
    });
    println!("memcpy {mem:.3}");
    for (name, t) in &t {
        let d = best(&mut || {
            t.dense(&l, &mut out).unwrap();
        });
        let cs = best(&mut || {
            t.compressed_into(&l, &mut c).unwrap();
        });
        println!("{name:10} dense {d:.3} ({:.2}x)  csr {cs:.3} ({:.2}x)", d / mem, cs / mem);
    }
}
