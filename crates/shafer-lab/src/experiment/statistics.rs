//! Means over seeds, and how sure they are.

use std::f64::consts::{FRAC_2_PI, FRAC_PI_2};

use serde::{Deserialize, Serialize};

/// How sure intervals are.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// A number measured in several trainings.
///
/// Distributions without a common class have an infinite Bhattacharyya distance. A mean with one of
/// them would be infinite and say nothing about the others, so the mean is over the finite values, and
/// the others are counted: `n + infinite` is the number of trainings. Whoever shows the mean shows the
/// count as well, since the mean alone flatters a method that sometimes fails altogether.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Summary {
    /// Of the finite values; missing if there are none.
    pub(crate) mean: Option<f64>,
    /// The standard error of the mean; missing for fewer than two values.
    pub(crate) se: Option<f64>,
    /// The number of finite values.
    pub(crate) n: usize,
    /// The number of infinite values.
    pub(crate) infinite: usize,
}

impl Summary {
    /// Sums up values, of which none is NaN.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let (finite, infinite): (Vec<f64>, Vec<f64>) =
            values.into_iter().partition(|value| value.is_finite());
        Self {
            mean: mean(&finite),
            se: standard_error(&finite),
            n: finite.len(),
            infinite: infinite.len(),
        }
    }
}

/// A number and where it lies with a confidence of 95%.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Interval {
    pub(crate) value: f64,
    /// The ends are missing for fewer than two values.
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
}

impl Interval {
    fn new(value: f64, se: Option<f64>, n: usize) -> Self {
        let half = se.map(|se| se * student_t(CONFIDENCE, n - 1));
        Self { value, low: half.map(|half| value - half), high: half.map(|half| value + half) }
    }

    fn map(self, change: impl Fn(f64) -> f64) -> Self {
        Self { value: change(self.value), low: self.low.map(&change), high: self.high.map(&change) }
    }
}

/// By how much a method is closer to the target than another, over the same seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Gain {
    /// `100 (1 - mean method / mean baseline)`: how much of the baseline's mean distance is gone.
    /// Missing if the baseline's is 0.
    pub(crate) percent: Option<Interval>,
    /// The mean of `baseline - method`. Missing without pairs.
    pub(crate) difference: Option<Interval>,
    /// The number of pairs.
    pub(crate) n: usize,
    /// Comparisons in which one of the two or both are infinite, and which do not count.
    pub(crate) infinite: usize,
}

impl Gain {
    /// Of pairs (baseline, method), one for each seed, and the number of those left out before.
    ///
    /// The difference has the interval of the paired t-test. The percentage is a ratio of two means
    /// that vary together; its interval is that of the ratio estimator: the error of `r = M / B` is
    /// that of the mean of `(m_i - r b_i) / B`, to first order.
    pub(crate) fn of(pairs: &[(f64, f64)], infinite: usize) -> Self {
        let n = pairs.len();
        let column = |f: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(f).collect::<Vec<f64>>();
        let differences = column(&|(baseline, method)| baseline - method);
        let difference =
            mean(&differences).map(|mean| Interval::new(mean, standard_error(&differences), n));
        let (baseline, method) = (mean(&column(&|p| p.0)), mean(&column(&|p| p.1)));
        let percent = match (baseline, method) {
            (Some(baseline), Some(method)) if baseline > 0.0 => {
                let ratio = method / baseline;
                let residuals = column(&|(b, m)| (m - ratio * b) / baseline);
                let interval = Interval::new(1.0 - ratio, standard_error(&residuals), n);
                Some(interval.map(|share| 100.0 * share))
            }
            _ => None,
        };
        Self { percent, difference, n, infinite }
    }
}

/// The arithmetic mean.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The standard error of the mean, `s / sqrt(n)` with `n - 1` degrees of freedom.
pub(crate) fn standard_error(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = mean(values)?;
    let n = values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (n - 1.0) / n).sqrt())
}

/// The `t` for which `|T| <= t` has a probability, for Student's distribution with at least one degree
/// of freedom.
fn student_t(probability: f64, freedom: usize) -> f64 {
    // The probability grows with the angle whose tangent is t / sqrt(freedom).
    let (mut low, mut high) = (0.0, FRAC_PI_2);
    while low < high {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if within(middle, freedom) < probability { low = middle } else { high = middle }
    }
    (freedom as f64).sqrt() * high.tan()
}

/// The probability that `|T|` is at most `sqrt(freedom) tan(angle)`: a finite sum for whole degrees of
/// freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4).
fn within(angle: f64, freedom: usize) -> f64 {
    let (sine, cosine) = angle.sin_cos();
    let odd = !freedom.is_multiple_of(2);
    // Odd: cos + 2/3 cos^3 + ...; even: 1 + 1/2 cos^2 + ...
    let (first, mut power) = if odd { (1, cosine) } else { (0, 1.0) };
    let mut sum = 0.0;
    let mut k = first;
    while k + 2 <= freedom {
        sum += power;
        power *= cosine * cosine * (k + 1) as f64 / (k + 2) as f64;
        k += 2;
    }
    if odd { FRAC_2_PI * (angle + sine * sum) } else { sine * sum }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Fixture {
        student_t: Vec<(usize, f64, f64)>,
        gains: Vec<GainCase>,
    }

    #[derive(Deserialize)]
    struct GainCase {
        baseline: Vec<f64>,
        method: Vec<f64>,
        difference: [f64; 3],
        percent: [f64; 3],
    }

    fn fixture() -> Fixture {
        serde_json::from_str(include_str!("../../tests/fixtures/experiment.json")).unwrap()
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-10 * (1.0 + expected.abs()), "{found}, {expected}");
    }

    #[test]
    fn quantiles_are_those_of_scipy() {
        for (freedom, probability, expected) in fixture().student_t {
            close(student_t(probability, freedom), expected);
        }
    }

    #[test]
    fn gains_are_those_of_scipy() {
        for case in fixture().gains {
            let pairs: Vec<_> = case.baseline.into_iter().zip(case.method).collect();
            let gain = Gain::of(&pairs, 3);
            assert_eq!((gain.n, gain.infinite), (pairs.len(), 3));
            for (found, expected) in
                [(gain.difference, case.difference), (gain.percent, case.percent)]
            {
                let Interval { value, low, high } = found.unwrap();
                close(value, expected[0]);
                close(low.unwrap(), expected[1]);
                close(high.unwrap(), expected[2]);
            }
        }
    }

    #[test]
    fn what_cannot_be_said_is_missing() {
        let none = Summary { mean: None, se: None, n: 0, infinite: 0 };
        assert_eq!(Summary::of([]), none);
        assert_eq!(Summary::of([f64::INFINITY; 2]), Summary { infinite: 2, ..none });
        let one = Summary { mean: Some(4.0), se: None, n: 1, infinite: 1 };
        assert_eq!(Summary::of([f64::INFINITY, 4.0]), one);
        assert_eq!(Gain::of(&[], 0).percent, None);
        assert_eq!(Gain::of(&[(0.0, 0.0), (0.0, 1.0)], 0).percent, None);
        let single = Gain::of(&[(2.0, 1.0)], 0).percent.unwrap();
        assert_eq!(single, Interval { value: 50.0, low: None, high: None });
    }
}
