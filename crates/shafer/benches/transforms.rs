//! Every method against a memcpy of the same buffer, in the same run.
//!
//! `cargo bench -p shafer` prints nanoseconds per element and the ratio to memcpy, and writes them to
//! `target/bench/shafer.json`. Machines are noisy, so a measurement is the median of rounds in which
//! both layouts, on one thread and on all, and each time a memcpy take turns; compare the ratios, not
//! the times. Each of them writes to its own memory, so that none finds more of it in the caches.
//!
//! `traffic` has the memory traffic of compressed rows that keep half of the classes, without
//! arithmetic. Where a second thread does not make it faster, memory bandwidth is the limit.
//!
//! Arguments that begin with a digit are shapes: a number of classes (`512`), or rows and classes
//! (`2500x512`). Other arguments select methods by a part of their name.
//!
//! `calibrated` compares calibrations with the methods that they belong to, one thread each, in turns.
//!
//! Threads are bound to a processor each and are awake before the clock starts: waking one takes a
//! twentieth of a millisecond, and some systems put two on one processor.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use std::hint::{black_box, spin_loop};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde::Serialize;
use shafer::calibrate::{Calibration, Score};
use shafer::{CsrRows, Logits, Method, Threads};

const SHAPES: [(usize, usize); 4] = [(100_000, 10), (10_000, 512), (1_000, 32_000), (256, 128_000)];

/// The approximate number of logits of other shapes.
const LOGITS: usize = 5_000_000;

/// The time for the rounds of one method, and the least and the largest number of rounds.
const BUDGET: Duration = Duration::from_millis(2400);
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
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let processors = processors();
    rayon::ThreadPoolBuilder::new()
        .num_threads(all)
        .start_handler(move |thread| bind(&processors, thread))
        .build()
        .unwrap()
        .install(|| measure(&if all > 1 { vec![1, all] } else { vec![1] }));
}

/// Runs on a thread of the pool.
fn measure(threads: &[usize]) {
    let arguments = std::env::args().skip(1).filter(|a| !a.starts_with('-'));
    let (shapes, wanted): (Vec<_>, Vec<_>) =
        arguments.partition(|a| a.starts_with(|first: char| first.is_ascii_digit()));
    let mut shapes: Vec<_> = shapes.iter().map(|argument| shape(argument)).collect();
    if shapes.is_empty() {
        shapes.extend(SHAPES);
    }
    let mut measurements = Vec::new();
    println!(
        "{:<16} {:<6} {:>7} {:>7} {:>8} {:>11} {:>10}",
        "transform", "layout", "rows", "K", "threads", "ns/element", "x memcpy"
    );
    for (rows, k) in shapes {
        let logits = normal_logits(rows * k);
        let outputs = [(); 3].map(|()| vec![0.0_f32; rows * k]);
        let mut bench = Bench { threads, logits: &logits, outputs, rows, k };
        let mut add = |found: Vec<Measurement>| {
            found.iter().for_each(print);
            measurements.extend(found);
        };
        if selected(&wanted, "memcpy") {
            add(bench.memcpy());
        }
        if selected(&wanted, "traffic") {
            add(bench.traffic());
        }
        for (name, method) in methods(k) {
            if selected(&wanted, name) {
                add(bench.method(name, method));
            }
        }
        if selected(&wanted, "calibrated") {
            bench.calibrated();
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/bench/shafer.json");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, serde_json::to_string_pretty(&measurements).unwrap()).unwrap();
    println!("\nwritten to target/bench/shafer.json");
}

/// Parses a number of classes, or rows and classes.
fn shape(argument: &str) -> (usize, usize) {
    let number = |digits: &str| digits.parse::<usize>().expect("a number").max(1);
    if let Some((rows, k)) = argument.split_once('x') {
        return (number(rows), number(k));
    }
    let k = number(argument);
    let usual = SHAPES.into_iter().find(|shape| shape.1 == k);
    usual.unwrap_or(((LOGITS / k).max(1), k))
}

#[cfg(target_os = "linux")]
type Processors = rustix::thread::CpuSet;

/// The processors that this program may use.
#[cfg(target_os = "linux")]
fn processors() -> Processors {
    rustix::thread::sched_getaffinity(None).unwrap()
}

/// Binds this thread to one of the processors.
#[cfg(target_os = "linux")]
fn bind(processors: &Processors, thread: usize) {
    let mut usable = (0..Processors::MAX_CPU).filter(|&number| processors.is_set(number));
    let mut one = Processors::new();
    one.set(usable.nth(thread).unwrap());
    rustix::thread::sched_setaffinity(None, &one).unwrap();
}

/// Elsewhere threads are not bound.
#[cfg(not(target_os = "linux"))]
fn processors() {}

#[cfg(not(target_os = "linux"))]
fn bind((): &(), _: usize) {}

fn selected(wanted: &[String], name: &str) -> bool {
    wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str()))
}

/// Names as the peers' benchmark has them.
fn methods(k: usize) -> [(&'static str, Method); 14] {
    [
        ("softmax", Method::SOFTMAX),
        ("evidential", Method::EVIDENTIAL),
        ("evidential_x3", Method::evidential(3).unwrap()),
        ("sparsemax", Method::SPARSEMAX),
        ("sparsegen_lin", Method::sparsegen_lin(-1.0).unwrap()),
        ("sparsegen_hg", Method::sparsegen_hg(1.0).unwrap()),
        ("entmax15", Method::entmax(1.5).unwrap()),
        ("entmax13", Method::entmax(1.3).unwrap()),
        ("top_k", Method::top_k((k / 2).clamp(1, 50)).unwrap()),
        ("top_p", Method::top_p(0.9).unwrap()),
        ("min_p", Method::min_p(0.05).unwrap()),
        ("top_n_sigma", Method::top_n_sigma(1.0).unwrap()),
        ("min_probability", Method::min_probability(1.0 / k as f64).unwrap()),
        ("min_evidence", Method::min_evidence(0.0).unwrap()),
    ]
}

struct Bench<'a> {
    /// One, and all.
    threads: &'a [usize],
    logits: &'a [f32],
    /// For the dense layout, and for the memcpys after it and after the compressed one.
    outputs: [Vec<f32>; 3],
    rows: usize,
    k: usize,
}

impl Bench<'_> {
    fn memcpy(&mut self) -> Vec<Measurement> {
        let Self { threads, logits, outputs: [out, ..], .. } = self;
        let found = rounds(|| threads.iter().map(|&n| time(n, || copy(logits, out, n))).collect());
        (threads.iter().zip(found))
            .map(|(&threads, ns)| self.measurement("memcpy", "dense", threads, ns, ns))
            .collect()
    }

    fn traffic(&mut self) -> Vec<Measurement> {
        let Self { threads, logits, outputs: [out, copied, _], .. } = self;
        let (values, columns) = out.split_at_mut(logits.len() / 2);
        let found = rounds(|| {
            let both = |&n: &usize| {
                let traffic = time(n, || deal(logits, values, columns, n));
                [traffic, time(n, || copy(logits, copied, n))]
            };
            threads.iter().flat_map(both).collect()
        });
        (threads.iter().zip(found.chunks_exact(2)))
            .map(|(&threads, ns)| self.measurement("traffic", "csr", threads, ns[0], ns[1]))
            .collect()
    }

    /// Each layout on each number of threads, followed by a memcpy on as many.
    fn method(&mut self, name: &str, method: Method) -> Vec<Measurement> {
        let Self { threads, logits, outputs: [out, copy_1, copy_2], k, .. } = self;
        let rows = Logits::rows(logits, *k).unwrap();
        let mut kept = CsrRows::new();
        let found = rounds(|| {
            let mut times = Vec::new();
            for &threads in *threads {
                let use_threads = if threads > 1 { Threads::All } else { Threads::One };
                times.push(time(threads, || method.dense_into(&rows, use_threads, out).unwrap()));
                times.push(time(threads, || copy(logits, copy_1, threads)));
                times.push(time(threads, || {
                    method.csr_into(&rows, use_threads, &mut kept).unwrap()
                }));
                times.push(time(threads, || copy(logits, copy_2, threads)));
            }
            times
        });
        (threads.iter().zip(found.chunks_exact(4)))
            .flat_map(|(&threads, times)| {
                [
                    self.measurement(name, "dense", threads, times[0], times[1]),
                    self.measurement(name, "csr", threads, times[2], times[3]),
                ]
            })
            .collect()
    }

    /// Calibrations against the methods that they belong to, which keep as much: prints the ratio of
    /// the times, the median over rounds in which both take turns.
    fn calibrated(&mut self) {
        let Self { logits, outputs: [out, other, _], rows: count, k, .. } = self;
        let rows = Logits::rows(logits, *k).unwrap();
        let calibrated =
            |score, threshold| Calibration::of_threshold(score, *k, 0.1, threshold).unwrap();
        let (mut kept, mut others) = (CsrRows::new(), CsrRows::new());
        for (method, calibration) in [
            (Method::EVIDENTIAL, calibrated(Score::Evidential, 0.0)),
            (Method::SPARSEMAX, calibrated(Score::Sparsemax, 1.0)),
            (Method::entmax(1.5).unwrap(), calibrated(Score::Entmax { alpha: 1.5 }, 1.0)),
            (Method::min_p(0.05).unwrap(), calibrated(Score::MinP, -0.05_f64.ln())),
        ] {
            let found = rounds(|| {
                vec![
                    time(1, || method.dense_into(&rows, Threads::One, out).unwrap()),
                    time(1, || calibration.dense_into(&rows, None, Threads::One, other).unwrap()),
                    time(1, || method.csr_into(&rows, Threads::One, &mut kept).unwrap()),
                    time(1, || {
                        calibration.csr_into(&rows, None, Threads::One, &mut others).unwrap()
                    }),
                ]
            });
            let (dense, csr) = (found[1] / found[0], found[3] / found[2]);
            let score = calibration.score().to_string();
            println!(
                "calibrated {score:<18} {count:>7} {k:>7}   dense x{dense:.3}   csr x{csr:.3}"
            );
        }
    }

    fn measurement(
        &self,
        name: &str,
        layout: &'static str,
        threads: usize,
        ns: f64,
        memcpy: f64,
    ) -> Measurement {
        Measurement {
            transform: name.to_owned(),
            layout,
            rows: self.rows,
            k: self.k,
            threads,
            ns_per_element: ns / (self.rows * self.k) as f64,
            memcpy_ratio: ns / memcpy,
        }
    }
}

fn copy(from: &[f32], to: &mut [f32], threads: usize) {
    let part = from.len().div_ceil(threads);
    share(to.chunks_mut(part).zip(from.chunks(part)), |(to, from)| to.copy_from_slice(from));
}

/// Copies a vector to the values and a vector to the columns in turns, as compressed rows are written.
fn deal(from: &[f32], values: &mut [f32], columns: &mut [f32], threads: usize) {
    const VECTOR: usize = 16;
    let part = (from.len() / 2).div_ceil(threads).max(1).next_multiple_of(VECTOR);
    let places = values.chunks_mut(part).zip(columns.chunks_mut(part));
    share(places.zip(from.chunks(2 * part)), |((values, columns), from)| {
        let places = values.chunks_exact_mut(VECTOR).zip(columns.chunks_exact_mut(VECTOR));
        for ((values, columns), from) in places.zip(from.chunks_exact(2 * VECTOR)) {
            values.copy_from_slice(&from[..VECTOR]);
            columns.copy_from_slice(&from[VECTOR..]);
        }
    });
}

/// Gives each thread a part, this one included.
fn share<T: Send>(mut parts: impl Iterator<Item = T>, work: impl Fn(T) + Sync) {
    let Some(first) = parts.next() else { return };
    rayon::in_place_scope(|scope| {
        for part in parts {
            scope.spawn(|_| work(part));
        }
        work(first);
    });
}

/// Nanoseconds on so many threads.
fn time<T>(threads: usize, work: impl FnOnce() -> T) -> f64 {
    wake(threads);
    let start = Instant::now();
    black_box(work());
    start.elapsed().as_secs_f64() * 1e9
}

/// Returns when so many threads are running.
fn wake(threads: usize) {
    let there = AtomicUsize::new(0);
    let meet = || {
        there.fetch_add(1, Ordering::Relaxed);
        while there.load(Ordering::Relaxed) < threads {
            spin_loop();
        }
    };
    rayon::in_place_scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|_| meet());
        }
        meet();
    });
}

/// The median of each time over rounds within the budget, after a warm-up round.
fn rounds(mut round: impl FnMut() -> Vec<f64>) -> Vec<f64> {
    round();
    let start = Instant::now();
    let mut rounds = Vec::new();
    while rounds.len() < *ROUNDS.start()
        || (start.elapsed() < BUDGET && rounds.len() < *ROUNDS.end())
    {
        rounds.push(round());
    }
    (0..rounds[0].len()).map(|i| median(rounds.iter().map(|times| times[i]).collect())).collect()
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
