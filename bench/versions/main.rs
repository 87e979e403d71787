//! Two versions of the core in one process, in turns: `run` beside this file builds it.
//!
//! On one thread the time is processor time, which other programs disturb least. Otherwise it is elapsed
//! time. Of each, the median over the rounds is printed, in nanoseconds per logit. Dense results are
//! compared, too.

mod new;
mod old;

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rustix::thread::CpuSet;
use rustix::time::{ClockId, clock_gettime};

const SHAPES: [(usize, usize); 4] = [(100_000, 10), (10_000, 512), (500, 32_000), (128, 128_000)];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str, default: usize| {
        let value = arguments.iter().find_map(|a| a.strip_prefix(name)?.strip_prefix('='));
        value.map_or(default, |value| value.parse().expect("a whole number"))
    };
    let rounds = option("--rounds", 41);
    let busy = arguments.iter().any(|a| a.starts_with("--busy")).then(|| option("--busy", 1));
    let wanted = |name: &str| {
        let mut names = arguments.iter().filter(|a| !a.starts_with('-')).peekable();
        names.peek().is_none() || names.any(|a| a == name)
    };
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        if let Some(processor) = busy {
            let stop = &stop;
            scope.spawn(move || {
                let mut one = CpuSet::new();
                one.set(processor);
                rustix::thread::sched_setaffinity(None, &one).expect("the processor exists");
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        measure(rounds, busy.is_some(), wanted);
        stop.store(true, Ordering::Relaxed);
    });
}

fn measure(rounds: usize, busy: bool, wanted: impl Fn(&str) -> bool) {
    println!(
        "{:<12} {:<5} {:>7} {:>8} {:>8} {:>8}",
        "method", "form", "classes", "old", "new", "new/old"
    );
    for (rows, classes) in SHAPES {
        let logits = logits(rows * classes);
        let mut out = vec![0.0_f32; logits.len()];
        let (mut old_rows, mut new_rows) = (old::Rows::new(), new::Rows::new());
        for name in
            ["softmax", "evidential", "sparsemax", "entmax"].into_iter().filter(|name| wanted(name))
        {
            for (form, threads) in [("dense", 1), ("csr", 1), ("dense", 2), ("csr", 2)] {
                let dense = form == "dense";
                if dense && threads == 1 {
                    let mut other = out.clone();
                    old::dense(name, &logits, classes, threads, &mut other);
                    new::dense(name, &logits, classes, threads, &mut out);
                    let differ = out.iter().zip(&other).filter(|(a, b)| a.to_bits() != b.to_bits());
                    println!("{name}: {} of {} values differ", differ.count(), out.len());
                }
                // Beside a busy processor, elapsed time on one thread is what two are compared with.
                let time = if threads == 1 && !busy { processor_time } else { elapsed_time };
                let mut times = [const { Vec::new() }; 2];
                for _ in 0..rounds {
                    times[0].push(time(&mut || match dense {
                        true => old::dense(name, &logits, classes, threads, &mut out),
                        false => old::csr(name, &logits, classes, threads, &mut old_rows),
                    }));
                    times[1].push(time(&mut || match dense {
                        true => new::dense(name, &logits, classes, threads, &mut out),
                        false => new::csr(name, &logits, classes, threads, &mut new_rows),
                    }));
                }
                let [old, new] = times.map(|times| median(times) / logits.len() as f64);
                let form = format!("{form} {threads}");
                let ratio = new / old;
                println!("{name:<12} {form:<5} {classes:>7} {old:>8.3} {new:>8.3} {ratio:>8.2}");
            }
        }
    }
}

fn processor_time(work: &mut dyn FnMut()) -> f64 {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
    };
    let start = now();
    black_box(work());
    now() - start
}

fn elapsed_time(work: &mut dyn FnMut()) -> f64 {
    let start = Instant::now();
    black_box(work());
    start.elapsed().as_secs_f64() * 1e9
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Sums of twelve uniform numbers, nearly 3 N(0, 1), of a linear congruential generator.
fn logits(n: usize) -> Vec<f32> {
    let mut state = 1_u64;
    let mut uniform = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 24) as f32
    };
    (0..n).map(|_| 3.0 * ((0..12).map(|_| uniform()).sum::<f32>() - 6.0)).collect()
}
