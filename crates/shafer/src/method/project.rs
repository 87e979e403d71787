//! The projections onto the simplex: sparsemax, sparsegen and entmax.
//!
//! All are `p_k = max(0, y_k - tau)^e` with `y_k = (alpha - 1) g l_k / T`, `e = 1 / (alpha - 1)`,
//! a gain `g`, and `tau` such that the sum is 1. Only classes with `y_k > max(y) - 1` can have a
//! probability, since the largest is at most 1. So one read finds the maximum, a second one lists
//! the candidates, and `tau` is solved for on the list, in double precision.

use super::Rule;
use super::rule::{Scratch, Selection, checked_max};
use crate::error::{Error, Result};
use crate::kernel::{Above, Float, Loops, Rate, TileProjection, TileRule};
use crate::numerics::Sum;

/// A projection of this family.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Projection {
    alpha: f64,
    gain: Gain,
}

#[derive(Clone, Copy, Debug)]
enum Gain {
    Fixed(f64),
    /// `(1 + K q) / (|sum(z)| + K q)`.
    Hourglass {
        q: f64,
    },
}

impl Projection {
    /// The projection of a method, if it is one.
    pub(super) fn of(rule: Rule) -> Option<Self> {
        let fixed = |alpha, gain| Self { alpha, gain: Gain::Fixed(gain) };
        match rule {
            Rule::Sparsemax => Some(fixed(2.0, 1.0)),
            Rule::SparsegenLin { lambda } => Some(fixed(2.0, 1.0 / (1.0 - lambda))),
            Rule::SparsegenHg { q } => Some(Self { alpha: 2.0, gain: Gain::Hourglass { q } }),
            // With an alpha of 1 it is softmax.
            Rule::Entmax { alpha } => (alpha != 1.0).then(|| fixed(alpha, 1.0)),
            _ => None,
        }
    }

    /// The same for tiles: where the gain does not depend on the row, and the power is the first or
    /// the second.
    pub(super) fn tile(self, rate: Rate) -> Option<TileRule> {
        let Gain::Fixed(gain) = self.gain else { return None };
        let squared = match self.exponent() {
            1.0 => false,
            2.0 => true,
            _ => return None,
        };
        Some(TileRule::Project(TileProjection { slope: self.slope(gain, rate), squared }))
    }

    fn exponent(&self) -> f64 {
        1.0 / (self.alpha - 1.0)
    }

    /// The factor of a logit.
    fn slope(&self, gain: f64, rate: Rate) -> f64 {
        // An infinite slope would make NaN of the maximum, which lies 0 below itself.
        ((self.alpha - 1.0) * gain * rate.exact()).min(f64::MAX)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn select<F: Float>(
        self,
        row: &[F],
        rate: Rate,
        scratch: &mut Scratch<F>,
        loops: impl Loops<F>,
    ) -> Result<Selection<F>> {
        let max = checked_max(row, loops)?;
        let gain = match self.gain {
            Gain::Fixed(gain) => gain,
            Gain::Hourglass { q } => {
                Hourglass::new(q, loops.above(row, F::NEG_INFINITY), rate)?.gain()
            }
        };
        let slope = self.slope(gain, rate);
        let bound = F::floor_from(max.to_f64() - 1.0 / slope).next_down();
        let count = scratch.list(row, bound, loops);
        // From the maximum, so that no digits are lost to a large common part.
        let y = |x: F| {
            let (x, max) = (x.to_f64(), max.to_f64());
            let below = x - max;
            // In halves where the difference overflows: a slope of 0 would make NaN of it.
            if below.is_finite() { below * slope } else { (x / 2.0 - max / 2.0) * slope * 2.0 }
        };
        scratch.doubles.clear();
        scratch.doubles.extend(scratch.values[..count].iter().map(|&x| y(x)));
        let exponent = self.exponent();
        let tau = solve(&mut scratch.doubles, exponent);
        let count = scratch.retain(count, |x| y(x) > tau);
        let kept = &mut scratch.values[..count];
        let sum: f64 = kept.iter().map(|&x| power(y(x) - tau, exponent)).sum();
        for x in kept {
            *x = F::from_f64(power(y(*x) - tau, exponent) / sum);
        }
        Ok(Selection::listed(count))
    }

    /// The Jacobian with respect to `g z` is `diag(s) - s s^T / sum(s)` with `s = p^(2 - alpha)` on
    /// the support (Peters, Niculae and Martins, 2019).
    pub(super) fn vjp<F: Float>(
        self,
        row: &[F],
        p: &[F],
        upstream: &[F],
        rate: Rate,
        out: &mut [F],
    ) {
        let weight = |p: F| match p.to_f64() {
            0.0 => 0.0,
            p => power(p, 2.0 - self.alpha),
        };
        let total: f64 = p.iter().map(|&p| weight(p)).sum();
        let mean: f64 =
            p.iter().zip(upstream).map(|(&p, &g)| weight(p) * g.to_f64()).sum::<f64>() / total;
        let (gain, drift) = match self.gain {
            Gain::Fixed(gain) => (gain, 0.0),
            Gain::Hourglass { q } => match Hourglass::new(q, unmasked(row), rate) {
                Ok(hourglass) => {
                    // d(a z)/dz = a + z (da/dz)^T, and da/dz is the same for every class.
                    let kept = |(&p, &g): (&F, &F)| weight(p) * (g.to_f64() - mean);
                    let along: f64 = (p.iter().zip(upstream).map(kept))
                        .zip(row)
                        .filter(|&(h, _)| h != 0.0)
                        .map(|(h, &x)| h * x.to_f64() * rate.exact())
                        .sum();
                    (hourglass.gain(), along * hourglass.gain_gradient())
                }
                // Only possible for a row that has no distribution in the first place.
                Err(_) => (f64::NAN, f64::NAN),
            },
        };
        for (((out, &p), &g), &x) in out.iter_mut().zip(p).zip(upstream).zip(row) {
            let through = gain * weight(p) * (g.to_f64() - mean);
            let masked = x == F::NEG_INFINITY;
            *out = F::from_f64(if masked { 0.0 } else { (through + drift) * rate.exact() });
        }
    }
}

/// Sum and number of the logits that are not masked.
fn unmasked<F: Float>(row: &[F]) -> Above {
    let unmasked = || row.iter().filter(|&&x| x > F::NEG_INFINITY);
    Above { sum: unmasked().map(|x| x.to_f64()).collect::<Sum>(), count: unmasked().count() }
}

/// The gain of sparsehourglass for one row.
struct Hourglass {
    /// `K q`.
    offset: f64,
    sum: f64,
}

impl Hourglass {
    fn new(q: f64, unmasked: Above, rate: Rate) -> Result<Self> {
        let hourglass =
            Self { offset: unmasked.count as f64 * q, sum: unmasked.sum.value() * rate.exact() };
        let gain = hourglass.gain();
        if gain.is_finite() && gain > 0.0 {
            Ok(hourglass)
        } else {
            let rule = "the sum of the logits is 0 or too large, so that sparsegen-hg has no scale; \
                        choose a larger q";
            Err(Error::Row { row: 0, rule })
        }
    }

    fn gain(&self) -> f64 {
        (1.0 + self.offset) / (self.sum.abs() + self.offset)
    }

    /// The derivative of the gain with respect to each `z_k`.
    fn gain_gradient(&self) -> f64 {
        -self.gain() / (self.sum.abs() + self.offset) * self.sum.signum()
    }
}

/// `u^e` for `u >= 0`, without the general power where it is not needed.
#[inline]
fn power(u: f64, exponent: f64) -> f64 {
    match exponent {
        0.0 => 1.0,
        0.5 => u.sqrt(),
        1.0 => u,
        2.0 => u * u,
        _ => u.powf(exponent),
    }
}

/// `tau` with `sum max(0, y - tau)^e = 1`, where the largest `y` is 0. Clobbers `y`.
fn solve(y: &mut Vec<f64>, exponent: f64) -> f64 {
    if exponent == 1.0 { solve_linear(y) } else { solve_power(y, exponent) }
}

/// Newton's method, which for a piecewise linear function ends with the exact piece (Michelot,
/// 1986). From one step to the next the product of the function's value and its slope falls to a
/// quarter or less (as for Dinkelbach's method), so their number does not depend on the row's
/// length and the whole is linear in it.
fn solve_linear(y: &mut Vec<f64>) -> f64 {
    loop {
        let tau = (y.iter().sum::<f64>() - 1.0) / y.len() as f64;
        let before = y.len();
        // Rounding must not drop the maximum.
        y.retain(|&y| y > tau || y == 0.0);
        if y.len() == before {
            return tau;
        }
    }
}

/// Newton's method inside a bracket, with bisection where it would not converge: the function is
/// convex for exponents above 1 only.
fn solve_power(y: &mut Vec<f64>, exponent: f64) -> f64 {
    let mut low = -1.0;
    // The largest probability is at least 1 / n.
    let mut high = match exponent {
        2.0 => -(1.0 / (y.len() as f64).sqrt()),
        _ => -(y.len() as f64).powf(-1.0 / exponent),
    };
    let mut tau = low;
    let mut step = high - low;
    for _ in 0..MAX_STEPS {
        y.retain(|&y| y > low);
        let (mut value, mut slope) = (-1.0, 0.0);
        for u in y.iter().map(|&y| y - tau).filter(|&u| u > 0.0) {
            // u^e and its derivative.
            let (raised, rise) = if exponent == 2.0 {
                (u * u, 2.0 * u)
            } else {
                let raised = power(u, exponent);
                (raised, exponent * raised / u)
            };
            value += raised;
            slope += rise;
        }
        if value > 0.0 {
            low = tau;
        } else if value < 0.0 {
            high = tau;
        } else {
            break;
        }
        let newton = value / slope;
        let there = tau + newton;
        let inside = there > low && there < high && (2.0 * newton).abs() <= step.abs();
        let next = if inside { there } else { low + (high - low) / 2.0 };
        step = next - tau;
        // Below an exponent of 1 the slope can be infinite, so that a step of 0 is no convergence.
        let converged = there == tau && exponent >= 1.0;
        if converged || next <= low || next >= high {
            break;
        }
        tau = next;
    }
    tau
}

/// Bisection alone needs about 60 steps to the last digit; Newton's method fewer than 15.
pub(crate) const MAX_STEPS: usize = 200;
