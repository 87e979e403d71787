//! The methods once more, as plain loops in double precision that follow the definitions: sort,
//! add up, bisect. Slow, and shares nothing with the crate.
#![allow(dead_code, unreachable_pub, reason = "each test uses its part")]

use shafer::Method;

/// A method and its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Oracle {
    Softmax,
    Evidential { rounds: usize },
    Sparsemax,
    SparsegenLin { lambda: f64 },
    SparsegenHg { q: f64 },
    Entmax { alpha: f64 },
    TopK { k: usize },
    TopP { p: f64 },
    MinP { p: f64 },
    TopNSigma { n: f64 },
    MinProbability { p: f64 },
    MinEvidence { w: f64 },
}

pub const ALL: [Oracle; 20] = [
    Oracle::Softmax,
    Oracle::Evidential { rounds: 1 },
    Oracle::Evidential { rounds: 2 },
    Oracle::Evidential { rounds: 5 },
    Oracle::Sparsemax,
    Oracle::SparsegenLin { lambda: 0.4 },
    Oracle::SparsegenLin { lambda: -3.0 },
    Oracle::SparsegenHg { q: 0.5 },
    Oracle::Entmax { alpha: 1.2 },
    Oracle::Entmax { alpha: 1.5 },
    Oracle::Entmax { alpha: 3.0 },
    Oracle::TopK { k: 1 },
    Oracle::TopK { k: 3 },
    Oracle::TopP { p: 0.8 },
    Oracle::MinP { p: 0.07 },
    Oracle::TopNSigma { n: 1.0 },
    Oracle::TopNSigma { n: 0.3 },
    Oracle::MinProbability { p: 0.03 },
    Oracle::MinEvidence { w: -0.7 },
    Oracle::MinEvidence { w: 0.9 },
];

impl Oracle {
    /// The crate's method of the same name.
    pub fn method(self) -> Method {
        match self {
            Oracle::Softmax => Ok(Method::SOFTMAX),
            Oracle::Evidential { rounds } => Method::evidential(rounds),
            Oracle::Sparsemax => Ok(Method::SPARSEMAX),
            Oracle::SparsegenLin { lambda } => Method::sparsegen_lin(lambda),
            Oracle::SparsegenHg { q } => Method::sparsegen_hg(q),
            Oracle::Entmax { alpha } => Method::entmax(alpha),
            Oracle::TopK { k } => Method::top_k(k),
            Oracle::TopP { p } => Method::top_p(p),
            Oracle::MinP { p } => Method::min_p(p),
            Oracle::TopNSigma { n } => Method::top_n_sigma(n),
            Oracle::MinProbability { p } => Method::min_probability(p),
            Oracle::MinEvidence { w } => Method::min_evidence(w),
        }
        .unwrap()
    }

    /// The distribution of a row, `-inf` for masked classes.
    pub fn row(self, logits: &[f64], temperature: f64) -> Vec<f64> {
        let classes: Vec<usize> =
            (0..logits.len()).filter(|&k| logits[k] > f64::NEG_INFINITY).collect();
        let z: Vec<f64> = classes.iter().map(|&k| logits[k] / temperature).collect();
        let p = match self {
            Oracle::Softmax => gibbs(&z, &vec![true; z.len()]),
            Oracle::Evidential { rounds } => {
                // Dividing by the temperature first would round, and could turn a tie around.
                let raw: Vec<f64> = classes.iter().map(|&k| logits[k]).collect();
                gibbs(&z, &above_mean(&raw, rounds))
            }
            Oracle::Sparsemax => sparsemax(&z),
            Oracle::SparsegenLin { lambda } => {
                sparsemax(&z.iter().map(|z| z / (1.0 - lambda)).collect::<Vec<_>>())
            }
            Oracle::SparsegenHg { q } => {
                let kq = z.len() as f64 * q;
                let gain = (1.0 + kq) / (z.iter().sum::<f64>().abs() + kq);
                sparsemax(&z.iter().map(|z| z * gain).collect::<Vec<_>>())
            }
            Oracle::Entmax { alpha } => entmax(&z, alpha),
            Oracle::TopK { k } => gibbs(&z, &first(&z, k)),
            Oracle::TopP { p } => {
                let order = descending(&z);
                let all = gibbs(&z, &vec![true; z.len()]);
                let mut sum = 0.0;
                let mut count = 0;
                while count < order.len() && (sum < p || count == 0) {
                    sum += all[order[count]];
                    count += 1;
                }
                gibbs(&z, &first(&z, count))
            }
            Oracle::TopNSigma { n } => {
                let max = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                // Relative to the maximum and the range, so that no square overflows.
                let range = z.iter().fold(0.0_f64, |range, z| range.max(max - z));
                let below = |z: &f64| if range > 0.0 { (max - z) / range } else { 0.0 };
                let mean = z.iter().map(below).sum::<f64>() / z.len() as f64;
                let squares = z.iter().map(|z| (below(z) - mean).powi(2)).sum::<f64>();
                let deviation = (squares / z.len() as f64).sqrt();
                gibbs(&z, &z.iter().map(|z| below(z) <= n * deviation).collect::<Vec<_>>())
            }
            Oracle::MinProbability { p } => {
                let all = gibbs(&z, &vec![true; z.len()]);
                let best = all.iter().copied().fold(0.0, f64::max);
                gibbs(&z, &all.iter().map(|&q| q >= p || q == best).collect::<Vec<_>>())
            }
            Oracle::MinEvidence { w } => {
                let mean = z.iter().sum::<f64>() / z.len() as f64;
                let max = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                gibbs(&z, &z.iter().map(|&z| z - mean >= w || z == max).collect::<Vec<_>>())
            }
            Oracle::MinP { p } => {
                let max = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                gibbs(&z, &z.iter().map(|z| (z - max).exp() >= p).collect::<Vec<_>>())
            }
        };
        let mut out = vec![0.0; logits.len()];
        for (&k, p) in classes.iter().zip(p) {
            out[k] = p;
        }
        out
    }
}

fn descending(z: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..z.len()).collect();
    // Zeros of either sign are equal.
    order.sort_by(|&a, &b| z[b].partial_cmp(&z[a]).unwrap().then(a.cmp(&b)));
    order
}

fn first(z: &[f64], count: usize) -> Vec<bool> {
    let mut keep = vec![false; z.len()];
    for &k in descending(z).iter().take(count) {
        keep[k] = true;
    }
    keep
}

fn above_mean(z: &[f64], rounds: usize) -> Vec<bool> {
    let mut keep = vec![true; z.len()];
    for _ in 0..rounds {
        let left: Vec<f64> =
            z.iter().zip(&keep).filter(|(_, keep)| **keep).map(|(z, _)| *z).collect();
        if left.iter().all(|&z| z == left[0]) {
            break;
        }
        let mean = left.iter().sum::<f64>() / left.len() as f64;
        let scale = left.iter().fold(0.0_f64, |scale, z| scale.max(z.abs()));
        for (keep, &z) in keep.iter_mut().zip(z) {
            *keep &= if (z - mean).abs() > 1e-9 * scale {
                z > mean
            } else {
                // z_k > mean(z) as sum_i (z_k - z_i) > 0, exactly.
                exact_sum(left.iter().flat_map(|&other| [z, -other])) > 0.0
            };
        }
    }
    keep
}

/// The sum, rounded once: partial sums that do not overlap, as Shewchuk keeps them.
fn exact_sum(values: impl Iterator<Item = f64>) -> f64 {
    let mut partials: Vec<f64> = Vec::new();
    for mut x in values {
        let mut kept = 0;
        for i in 0..partials.len() {
            let mut y = partials[i];
            if x.abs() < y.abs() {
                (x, y) = (y, x);
            }
            let high = x + y;
            let low = y - (high - x);
            if low != 0.0 {
                partials[kept] = low;
                kept += 1;
            }
            x = high;
        }
        partials.truncate(kept);
        partials.push(x);
    }
    partials.iter().rev().sum()
}

fn gibbs(z: &[f64], keep: &[bool]) -> Vec<f64> {
    let max = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let e: Vec<f64> =
        z.iter().zip(keep).map(|(z, &keep)| if keep { (z - max).exp() } else { 0.0 }).collect();
    let sum: f64 = e.iter().sum();
    e.iter().map(|e| e / sum).collect()
}

/// By sorting, as Martins and Astudillo give it.
fn sparsemax(z: &[f64]) -> Vec<f64> {
    let max = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let z: Vec<f64> = z.iter().map(|z| z - max).collect();
    let mut sorted = z.clone();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let (mut sum, mut tau) = (0.0, 0.0);
    for (i, &value) in sorted.iter().enumerate() {
        sum += value;
        if 1.0 + (i + 1) as f64 * value > sum {
            tau = (sum - 1.0) / (i + 1) as f64;
        }
    }
    z.iter().map(|z| (z - tau).max(0.0)).collect()
}

/// By bisection alone.
fn entmax(z: &[f64], alpha: f64) -> Vec<f64> {
    let max = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let y: Vec<f64> = z.iter().map(|z| (alpha - 1.0) * (z - max)).collect();
    let p = |tau: f64| -> Vec<f64> {
        y.iter().map(|y| (y - tau).max(0.0).powf(1.0 / (alpha - 1.0))).collect()
    };
    let (mut low, mut high) = (-1.0, 0.0);
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if p(middle).iter().sum::<f64>() >= 1.0 { low = middle } else { high = middle }
    }
    let p = p(low);
    let sum: f64 = p.iter().sum();
    p.iter().map(|p| p / sum).collect()
}

/// Steele, Lea and Flood's generator: the tests pin their inputs to it and to nothing else.
pub struct SplitMix(pub u64);

impl SplitMix {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Near enough to the standard normal distribution.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// Rows of logits that `E` can represent, some of them with masked classes, ties or a wide range.
pub fn rows<E: shafer::Element>(rng: &mut SplitMix, count: usize, classes: usize) -> Vec<E> {
    let mut out = Vec::new();
    for _ in 0..count {
        let scale = [0.01, 0.3, 1.0, 3.0, 20.0, 200.0][rng.below(6)];
        let centre = [0.0, 0.0, 5.0, -700.0][rng.below(4)];
        let masked = rng.below(3) == 0;
        let ties = rng.below(3) == 0;
        let start = out.len();
        for _ in 0..classes {
            let mut x = centre + scale * rng.normal();
            if ties {
                x = (x * 2.0 / scale).round() * scale / 2.0;
            }
            if masked && rng.below(4) == 0 {
                x = f64::NEG_INFINITY;
            }
            out.push(E::from_f64(x));
        }
        if out[start..].iter().all(|x| x.to_f64() == f64::NEG_INFINITY) {
            out[start] = E::from_f64(1.0);
        }
    }
    out
}
