//! `exp(x / T)` over a vector of logits, scaled by a power of two so that nothing overflows.
//!
//! The usual form, `exp(x - max)`, rounds the difference: at `x - max = -60` the relative error of the
//! result is 2e-6. Here the maximum is taken
//! out in the exponent instead. With `n = round(x / (T ln 2))` and `r = x / T - n ln 2`, both of
//! which can be computed almost exactly, `exp(x / T) = 2^n e^r`, and every term of a row is scaled by
//! the same `2^-n(max)`. The relative error stays near one unit in the last place whatever the
//! size of the logits.

use fearless_simd::prelude::*;

/// `1.5 * 2^23`: adding it to a small `f32` rounds that to an integer, which then also stands in
/// the low bits of the sum.
const ROUND: f32 = 12_582_912.0;

const LN2: f32 = std::f32::consts::LN_2;

/// ln 2 in two parts: the product of the first, which has 9 significant bits, with any `n` below
/// 2^15 is exact.
const LN2_HIGH: f32 = 0.693_359_4;
const LN2_LOW: f32 = -2.121_944_4e-4;

/// `e^r` on `|r| <= ln(2) / 2` as `1 + r + C2 r^2 + ...`: minimax, relative error 3.1e-9.
const C2: f32 = 0.499_999_93;
const C3: f32 = 0.166_665_2;
const C4: f32 = 0.041_668_393;
const C5: f32 = 0.008_368_78;
const C6: f32 = 0.001_381_446_7;

/// Beyond this, `x / T` is measured from the maximum: `x - max` is then exact (Sterbenz) for every
/// term that does not underflow, and `n` stays far below 2^15.
pub(super) const FAR: f32 = 208.0;

/// One over the temperature: in `f64`, and as the sum of two `f32`, exact to 48 bits.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    exact: f64,
    high: f32,
    low: f32,
    log2: f32,
    reach: f32,
}

impl Rate {
    /// `temperature` lies within the bounds that `Logits` checks, so nothing here overflows.
    pub(crate) fn new(temperature: f64) -> Self {
        let rate = 1.0 / temperature;
        let high = rate as f32;
        Self {
            exact: rate,
            high,
            low: (rate - f64::from(high)) as f32,
            log2: (rate * std::f64::consts::LOG2_E) as f32,
            reach: (86.2 / rate) as f32,
        }
    }

    pub(crate) fn exact(self) -> f64 {
        self.exact
    }

    /// Logits this far below the maximum, or farther, have an exponential of 0: it would be 4e-38
    /// of the largest or less, close to where normal numbers end.
    pub(crate) fn reach(self) -> f32 {
        self.reach
    }

    /// The largest logit with an exponential of 0, for a given maximum.
    pub(crate) fn underflow(self, max: f32) -> f32 {
        (max - self.reach()).min(max.next_down())
    }

    /// Whether [`Plain`] serves for rows with this maximum.
    pub(crate) fn is_plain(self, max: f32) -> bool {
        self.exact == 1.0 && max.abs() < FAR
    }
}

/// The term of a logit in its row's sum: in one row, or in as many rows as there are lanes.
pub(crate) trait Term<S: Simd>: Copy {
    /// `max` is the largest logit that it will be used for, in each lane.
    fn new(simd: S, max: S::f32s, rate: Rate) -> Self;

    /// The term of `x` where that is greater than [`Rate::underflow`] says and not greater than the maximum; anything
    /// elsewhere.
    fn of(self, simd: S, x: S::f32s) -> S::f32s;

    /// As [`Self::of`], and 0 where it is not kept.
    #[inline(always)]
    fn of_kept(self, simd: S, x: S::f32s, keep: S::mask32s) -> S::f32s {
        keep.select(self.of(simd, x), S::f32s::simd_from(simd, 0.0))
    }
}

/// `exp(x / T) 2^-n(max)`, for any temperature and any logits.
#[derive(Clone, Copy)]
pub(crate) struct General<S: Simd> {
    high: S::f32s,
    low: S::f32s,
    log2: S::f32s,
    shift: S::f32s,
    round: S::f32s,
}

impl<S: Simd> Term<S> for General<S> {
    #[inline(always)]
    fn new(simd: S, max: S::f32s, rate: Rate) -> Self {
        let splat = |value| S::f32s::simd_from(simd, value);
        let (high, log2) = (splat(rate.high), splat(rate.log2));
        let magnitude = (max * high).max(max * -high);
        let shift = magnitude.simd_lt(FAR).select(splat(0.0), max);
        Self { high, low: splat(rate.low), log2, shift, round: round(simd, (max - shift) * log2) }
    }

    #[inline(always)]
    fn of(self, simd: S, x: S::f32s) -> S::f32s {
        let x = x - self.shift;
        let rounded = x.mul_add(self.log2, self.round);
        let n = rounded - self.round;
        let r = if fused::<S>() {
            x.mul_sub(self.high, n * LN2_HIGH)
        } else {
            // The product in parts of 12 bits, none of which is rounded.
            let (x_high, x_low) = split(simd, x);
            let (high_high, high_low) = split(simd, self.high);
            let r = x_high * high_high - n * LN2_HIGH;
            ((r + x_high * high_low) + x_low * high_high) + x_low * high_low
        };
        let r = x.mul_add(self.low, r);
        let r = n.mul_add(-LN2_LOW, r);
        scaled::<S>(r, rounded)
    }
}

/// The same for a temperature of 1 and a maximum that is not far from 0, which is the usual case.
#[derive(Clone, Copy)]
pub(crate) struct Plain<S: Simd> {
    round: S::f32s,
}

impl<S: Simd> Term<S> for Plain<S> {
    #[inline(always)]
    fn new(simd: S, max: S::f32s, _: Rate) -> Self {
        Self { round: round(simd, max * std::f32::consts::LOG2_E) }
    }

    #[inline(always)]
    fn of(self, _: S, x: S::f32s) -> S::f32s {
        let rounded = x.mul_add(std::f32::consts::LOG2_E, self.round);
        let n = rounded - self.round;
        // ln 2 in one part is wrong by 2e-9, which does not matter: of `n` times that, the part
        // that is common to the row goes away, and 125 times that is left at the most.
        let r = if fused::<S>() {
            n.mul_add(-LN2, x)
        } else {
            n.mul_add(-LN2_LOW, n.mul_add(-LN2_HIGH, x))
        };
        scaled::<S>(r, rounded)
    }
}

/// Whether fused multiply-add is available: it is in every instruction set with more than four lanes.
#[inline(always)]
fn fused<S: Simd>() -> bool {
    S::f32s::LEN > 4
}

/// Splits a number into the sum of two with 12 significant bits each.
#[inline(always)]
fn split<S: Simd>(simd: S, x: S::f32s) -> (S::f32s, S::f32s) {
    let bits: S::u32s = x.bitcast();
    let high: S::f32s = (bits & S::u32s::simd_from(simd, 0xffff_f000)).bitcast();
    (high, x - high)
}

/// The addend that rounds to an integer and subtracts that of the largest logit, so that the low bits
/// of the sum are `n - n(max)`.
#[inline(always)]
fn round<S: Simd>(simd: S, max: S::f32s) -> S::f32s {
    let magic = S::f32s::simd_from(simd, ROUND);
    magic - ((max + ROUND) - ROUND)
}

/// `e^r 2^n`, with `n` in the low bits of `rounded`.
#[inline(always)]
fn scaled<S: Simd>(r: S::f32s, rounded: S::f32s) -> S::f32s {
    let q = r.mul_add(C6, C5);
    let q = q.mul_add(r, C4);
    let q = q.mul_add(r, C3);
    let q = q.mul_add(r, C2);
    let q = q.mul_add(r, 1.0);
    let p = q.mul_add(r, 1.0);
    // The bits of ROUND itself are all shifted out.
    S::f32s::from_bits(p.to_bits() + (rounded.to_bits() << 23))
}
