//! Sums, means and logarithms that keep their digits where the textbook forms lose them.

/// `ln(1 - e^-x)` for `x >= 0`; `-inf` at 0 and `-0` at infinity.
///
/// Either form alone cancels at one end of the range; they meet at ln 2.
pub(crate) fn ln_1m_exp(x: f64) -> f64 {
    if x <= std::f64::consts::LN_2 { (-(-x).exp_m1()).ln() } else { (-(-x).exp()).ln_1p() }
}

/// `ln(e^x - 1)` for `x >= 0`; `-inf` at 0, and finite where `e^x` overflows.
pub(crate) fn ln_exp_m1(x: f64) -> f64 {
    if x <= 1.0 { x.exp_m1().ln() } else { x + ln_1m_exp(x) }
}

/// A running sum with Neumaier's correction: the error does not grow with the number of terms.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    high: f64,
    low: f64,
}

impl Sum {
    #[inline]
    pub(crate) fn add(&mut self, term: f64) {
        let high = self.high + term;
        self.low += if self.high.abs() >= term.abs() {
            (self.high - high) + term
        } else {
            (term - high) + self.high
        };
        self.high = high;
    }

    pub(crate) fn value(self) -> f64 {
        // After overflow the correction is NaN while the sum itself is still meaningful.
        if self.high.is_finite() { self.high + self.low } else { self.high }
    }

    /// The sum without the correction, which is 0 where terms were not added one by one.
    pub(crate) fn rounded(self) -> f64 {
        self.high
    }

    /// The largest double that is not greater than the sum divided by `count`: rounding to the
    /// nearest could put the mean on the wrong side of one of the terms.
    pub(crate) fn mean_floor(self, count: usize) -> f64 {
        let count = count as f64;
        let mean = self.value() / count;
        let rest = (-mean).mul_add(count, self.high) + self.low;
        if rest < 0.0 { mean.next_down() } else { mean }
    }

    /// The sum without one of its terms, as accurate as if the term had never been added.
    pub(crate) fn without(self, term: f64) -> f64 {
        (self.high - term) + self.low
    }
}

impl From<f64> for Sum {
    fn from(high: f64) -> Self {
        Self { high, low: 0.0 }
    }
}

impl FromIterator<f64> for Sum {
    fn from_iter<I: IntoIterator<Item = f64>>(terms: I) -> Self {
        let mut sum = Self::default();
        for term in terms {
            sum.add(term);
        }
        sum
    }
}

/// The mean of finite numbers in twice the working precision, to measure deviations from.
///
/// The sign of a deviation decides whether a class is kept, so the mean must not be rounded to
/// one of the numbers that it lies between.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Centre {
    /// A power of two that keeps the sum of numbers near `f64::MAX` finite.
    scale: f64,
    high: f64,
    low: f64,
    /// Equal numbers deviate by exactly nothing, whatever their mean rounds to.
    constant: bool,
}

impl Centre {
    /// Above this magnitude the numbers are scaled down before they are added.
    const LARGE: f64 = 1e270;
    /// 2^-128: room for any number of terms.
    const SMALL_SCALE: f64 = 1.0 / 340_282_366_920_938_463_463_374_607_431_768_211_456.0;

    /// `None` if there are no numbers.
    pub(crate) fn new(values: impl Iterator<Item = f64> + Clone) -> Option<Self> {
        let (mut count, mut min, mut max) = (0_usize, f64::INFINITY, f64::NEG_INFINITY);
        for value in values.clone() {
            count += 1;
            min = min.min(value);
            max = max.max(value);
        }
        if count == 0 {
            return None;
        }
        let scale = if max.max(-min) > Self::LARGE { Self::SMALL_SCALE } else { 1.0 };
        let n = count as f64;
        let sum: Sum = values.map(|value| value * scale).collect();
        let high = sum.value() / n;
        let remainder = (-high).mul_add(n, sum.high) + sum.low;
        Some(Self { scale, high, low: remainder / n, constant: min == max })
    }

    /// `value` minus the mean, saturating at the largest finite magnitude.
    pub(crate) fn deviation(&self, value: f64) -> f64 {
        if self.constant {
            return 0.0;
        }
        let deviation = ((value * self.scale - self.high) - self.low) / self.scale;
        deviation.clamp(f64::MIN, f64::MAX)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn logarithms_agree_with_series_at_both_ends() {
        assert_eq!(ln_1m_exp(0.0), f64::NEG_INFINITY);
        assert_eq!(ln_exp_m1(0.0), f64::NEG_INFINITY);
        // 1 - e^-x = x (1 - x/2 + ...), far below the spacing of numbers near 1.
        assert!((ln_1m_exp(1e-30) - 1e-30_f64.ln()).abs() < 1e-14);
        assert!((ln_exp_m1(1e-30) - 1e-30_f64.ln()).abs() < 1e-14);
        // ln(1 - e^-x) = -e^-x where the sum 1 - e^-x is 1.
        assert!((ln_1m_exp(100.0) / -(-100.0_f64).exp() - 1.0).abs() < 1e-14);
        assert_eq!(ln_exp_m1(1e4), 1e4);
        assert!((ln_exp_m1(2.0) - (2.0_f64.exp() - 1.0).ln()).abs() < 1e-15);
    }

    #[test]
    fn sum_recovers_what_cancellation_hides() {
        let sum: Sum = [1.0, 1e100, 1.0, -1e100].into_iter().collect();
        assert_eq!(sum.value(), 2.0);
        let sum: Sum = [700.0, 1e-20].into_iter().collect();
        assert_eq!(sum.without(700.0), 1e-20);
    }

    #[test]
    fn deviations_survive_one_unit_in_the_last_place() {
        let above = 1.0 + f64::EPSILON;
        let centre = Centre::new([1.0, above, above].into_iter()).unwrap();
        assert!((centre.deviation(1.0) + f64::EPSILON * 2.0 / 3.0).abs() < 1e-30);
        assert!((centre.deviation(above) - f64::EPSILON / 3.0).abs() < 1e-30);
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let centre = Centre::new([f64::MAX, f64::MAX, f64::MIN].into_iter()).unwrap();
        assert!((centre.deviation(f64::MAX) / f64::MAX - 2.0 / 3.0).abs() < 1e-15);
        assert_eq!(centre.deviation(f64::MIN), f64::MIN);
    }
}
