//! The core up to 3a2efbf, with a type for each method.

use crate_name::{CompressedRows, Entmax, Evidential, Logits, Softmax, Sparsemax, TransformExt};

pub type Rows = CompressedRows<f32>;

pub fn dense(name: &str, logits: &[f32], classes: usize, threads: usize, out: &mut [f32]) {
    let rows = Logits::rows(logits, classes).expect("rows").parallel(threads > 1);
    match name {
        "softmax" => Softmax.dense(&rows, out),
        "evidential" => Evidential::default().dense(&rows, out),
        "sparsemax" => Sparsemax.dense(&rows, out),
        _ => Entmax::new(1.5).expect("a number").dense(&rows, out),
    }
    .expect("valid rows");
}

pub fn csr(name: &str, logits: &[f32], classes: usize, threads: usize, out: &mut Rows) {
    let rows = Logits::rows(logits, classes).expect("rows").parallel(threads > 1);
    match name {
        "softmax" => Softmax.compressed_into(&rows, out),
        "evidential" => Evidential::default().compressed_into(&rows, out),
        "sparsemax" => Sparsemax.compressed_into(&rows, out),
        _ => Entmax::new(1.5).expect("a number").compressed_into(&rows, out),
    }
    .expect("valid rows");
}
