//! The core with one type `Method`.

use crate_name::{CsrRows, Logits, Method, Threads};

pub type Rows = CsrRows<f32>;

fn method(name: &str) -> Method {
    name.parse().expect("a method")
}

fn threads(count: usize) -> Threads {
    if count == 1 { Threads::One } else { Threads::AtMost(count) }
}

pub fn dense(name: &str, logits: &[f32], classes: usize, count: usize, out: &mut [f32]) {
    let rows = Logits::rows(logits, classes).expect("rows");
    method(name).dense_into(&rows, threads(count), out).expect("valid rows");
}

pub fn csr(name: &str, logits: &[f32], classes: usize, count: usize, out: &mut Rows) {
    let rows = Logits::rows(logits, classes).expect("rows");
    method(name).csr_into(&rows, threads(count), out).expect("valid rows");
}
