//! Every transform against a memcpy of the same buffer, in the same run.
//!
//! `cargo bench -p shafer` prints nanoseconds per element and the ratio to memcpy, and writes them
//! to `target/bench/shafer.json`. Machines are noisy, so a measurement is the median of rounds in
//! which the transform and the memcpy take turns, and the ratio, not the time, is what to compare.
//! Of the arguments that do not begin with a dash, numbers select shapes by their classes, and
//! others transforms by a part of their name.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde::Serialize;
use shafer::{
    CompressedRows, Entmax, Evidential, Logits, MinP, Softmax, SparsegenHg, SparsegenLin,
    Sparsemax, TopK, TopP, Transform, TransformExt,
};

const SHAPES: [(usize, usize); 4] = [(100_000, 10), (10_000, 512), (1_000, 32_000), (256, 128_000)];

/// How long one measurement may take, and how often it is repeated at least and at most.
const BUDGET: Duration = Duration::from_millis(600);
const ROUNDS: std::ops::RangeInclusive<usize> = 3..=401;

#[derive(Serialize)]
struct Measurement {
    transform: String,
    layout: &'static str,
    rows: usize,
    k: usize,
    threads: usize,
    ns_per_element: f64,
    memcpy_ratio: f64,
}

fn main() {
    let arguments = std::env::args().skip(1).filter(|a| !a.starts_with('-'));
    let (classes, wanted): (Vec<_>, Vec<_>) = arguments.partition(|a| a.parse::<usize>().is_ok());
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let mut threads = vec![1];
    if all > 1 {
        threads.push(all);
    }
    let mut measurements = Vec::new();
    println!(
        "{:<16} {:<6} {:>7} {:>7} {:>8} {:>11} {:>10}",
        "transform", "layout", "rows", "K", "threads", "ns/element", "x memcpy"
    );
    for (rows, k) in SHAPES {
        if !classes.is_empty() && !classes.contains(&k.to_string()) {
            continue;
        }
        let logits = normal_logits(rows * k);
        let mut out = vec![0.0_f32; rows * k];
        for &threads in &threads {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mut bench = Bench { logits: &logits, out: &mut out, rows, k, threads };
                let mut add = |measurement: Measurement| {
                    print(&measurement);
                    measurements.push(measurement);
                };
                if selected(&wanted, "memcpy") {
                    add(bench.memcpy());
                }
                for (name, transform) in transforms(k) {
                    if selected(&wanted, &name) {
                        add(bench.dense(&name, &*transform));
                        add(bench.compressed(&name, &*transform));
                    }
                }
            });
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/bench/shafer.json");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, serde_json::to_string_pretty(&measurements).unwrap()).unwrap();
    println!("\nwritten to target/bench/shafer.json");
}

fn selected(wanted: &[String], name: &str) -> bool {
    wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str()))
}

/// Names as the peers' benchmark knows them.
fn transforms(k: usize) -> Vec<(String, Box<dyn Transform>)> {
    let named = |name: &str, transform: Box<dyn Transform>| (name.to_owned(), transform);
    vec![
        named("softmax", Box::new(Softmax)),
        named("evidential", Box::<Evidential>::default()),
        named("evidential_x3", Box::new(Evidential::with_rounds(3).unwrap())),
        named("sparsemax", Box::new(Sparsemax)),
        named("sparsegen_lin", Box::new(SparsegenLin::new(-1.0).unwrap())),
        named("sparsegen_hg", Box::new(SparsegenHg::new(1.0).unwrap())),
        named("entmax15", Box::new(Entmax::new(1.5).unwrap())),
        named("entmax13", Box::new(Entmax::new(1.3).unwrap())),
        named("top_k", Box::new(TopK::new(50.min(k / 2)).unwrap())),
        named("top_p", Box::new(TopP::new(0.9).unwrap())),
        named("min_p", Box::new(MinP::new(0.05).unwrap())),
    ]
}

struct Bench<'a> {
    logits: &'a [f32],
    out: &'a mut [f32],
    rows: usize,
    k: usize,
    threads: usize,
}

impl Bench<'_> {
    fn memcpy(&mut self) -> Measurement {
        let (logits, threads) = (self.logits, self.threads);
        let out = &mut *self.out;
        let ns = median(rounds(|| time(|| copy(logits, out, threads))));
        self.measurement("memcpy", "dense", ns, ns)
    }

    fn dense(&mut self, name: &str, transform: &dyn Transform) -> Measurement {
        let rows = Logits::rows(self.logits, self.k).unwrap().parallel(self.threads > 1);
        let (logits, threads) = (self.logits, self.threads);
        let out = &mut *self.out;
        let (ns, memcpy) = pair(|| {
            let ns = time(|| transform.dense(&rows, out).unwrap());
            (ns, time(|| copy(logits, out, threads)))
        });
        self.measurement(name, "dense", ns, memcpy)
    }

    fn compressed(&mut self, name: &str, transform: &dyn Transform) -> Measurement {
        let rows = Logits::rows(self.logits, self.k).unwrap().parallel(self.threads > 1);
        let (logits, threads) = (self.logits, self.threads);
        let out = &mut *self.out;
        let mut kept = CompressedRows::new();
        let (ns, memcpy) = pair(|| {
            let ns = time(|| transform.compressed_into(&rows, &mut kept).unwrap());
            (ns, time(|| copy(logits, out, threads)))
        });
        self.measurement(name, "csr", ns, memcpy)
    }

    fn measurement(&self, name: &str, layout: &'static str, ns: f64, memcpy: f64) -> Measurement {
        Measurement {
            transform: name.to_owned(),
            layout,
            rows: self.rows,
            k: self.k,
            threads: self.threads,
            ns_per_element: ns / (self.rows * self.k) as f64,
            memcpy_ratio: ns / memcpy,
        }
    }
}

fn copy(from: &[f32], to: &mut [f32], threads: usize) {
    use rayon::prelude::*;
    let part = from.len().div_ceil(threads);
    if threads == 1 {
        to.copy_from_slice(from);
    } else {
        to.par_chunks_mut(part).zip(from.par_chunks(part)).for_each(|(to, from)| {
            to.copy_from_slice(from);
        });
    }
}

/// Nanoseconds.
fn time<T>(work: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    black_box(work());
    start.elapsed().as_secs_f64() * 1e9
}

/// Repeats within the budget, after one run that only warms up.
fn rounds<T>(mut round: impl FnMut() -> T) -> Vec<T> {
    round();
    let start = Instant::now();
    let mut results = Vec::new();
    while results.len() < *ROUNDS.start()
        || (start.elapsed() < BUDGET && results.len() < *ROUNDS.end())
    {
        results.push(round());
    }
    results
}

fn pair(round: impl FnMut() -> (f64, f64)) -> (f64, f64) {
    let (first, second) = rounds(round).into_iter().unzip();
    (median(first), median(second))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn print(m: &Measurement) {
    println!(
        "{:<16} {:<6} {:>7} {:>7} {:>8} {:>11.3} {:>10.2}",
        m.transform, m.layout, m.rows, m.k, m.threads, m.ns_per_element, m.memcpy_ratio
    );
}

/// 3 N(0, 1), by Box and Muller.
fn normal_logits(n: usize) -> Vec<f32> {
    let mut rng = StdRng::seed_from_u64(1);
    (0..n)
        .map(|_| {
            let (u, v): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
            (3.0 * (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()) as f32
        })
        .collect()
}
