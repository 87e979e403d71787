//! Means over trainings, and their errors.

use std::f64::consts::{FRAC_2_PI, FRAC_PI_2};
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::drawing::{LineStyle, Measured, Series};

/// The confidence of intervals.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// The mean of a number measured in several trainings.
///
/// Distributions without a common class have an infinite Bhattacharyya distance. The mean is over the finite values,
/// and the infinite ones are counted: `n + infinite` is the number of trainings. Show the count with the mean, as the
/// mean alone flatters a method that sometimes misses the target altogether.
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
    /// Of values that are not NaN.
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

    /// For the terminal: the mean with its standard error, and the number of infinite values.
    pub(crate) fn text(&self, decimals: usize) -> String {
        let mut text = self.mean.map_or_else(String::new, |mean| format!("{mean:.decimals$}"));
        if let Some(se) = self.se {
            let _ = write!(text, " ± {se:.decimals$}");
        }
        if self.infinite > 0 {
            let _ = write!(text, " {} inf", self.infinite);
        }
        text
    }
}

/// A mean over trainings along an axis. Single precision is enough for a curve, and half as long.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Curve {
    /// Of the finite values; missing where there are none.
    pub(crate) mean: Vec<Option<f32>>,
    /// The standard error; missing where there are fewer than two values.
    pub(crate) se: Vec<Option<f32>>,
    /// The number of infinite values; left out if there are none anywhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) infinite: Vec<usize>,
}

impl Curve {
    pub(crate) fn of(points: impl IntoIterator<Item = Summary>) -> Self {
        let mut curve = Self::default();
        for Summary { mean, se, infinite, .. } in points {
            curve.mean.push(mean.map(|mean| mean as f32));
            curve.se.push(se.map(|se| se as f32));
            curve.infinite.push(infinite);
        }
        if curve.infinite.iter().all(|&infinite| infinite == 0) {
            curve.infinite.clear();
        }
        curve
    }

    /// Whether it has this number of points.
    pub(crate) fn has(&self, points: usize) -> bool {
        self.mean.len() == points
            && self.se.len() == points
            && (self.infinite.is_empty() || self.infinite.len() == points)
    }

    /// Its points at these places, to be drawn.
    pub(crate) fn series(&self, line: LineStyle, x: impl Iterator<Item = f64>) -> Series {
        let point = |(place, x): (usize, f64)| Measured {
            x,
            mean: self.mean[place].map(f64::from),
            se: self.se[place].map(f64::from),
            infinite: self.infinite.get(place).is_some_and(|count| *count > 0),
        };
        Series { line, points: x.enumerate().map(point).collect() }
    }
}

/// A number with its 95% confidence interval.
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

/// How much closer to the target a method is than a baseline, paired by seed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Gain {
    /// `100 (1 - mean method / mean baseline)`, the reduction of the mean distance; missing if the baseline's is 0.
    pub(crate) percent: Option<Interval>,
    /// The mean of `baseline - method`; missing without pairs.
    pub(crate) difference: Option<Interval>,
    /// The number of pairs.
    pub(crate) n: usize,
    /// The number of comparisons with an infinite distance, which are left out.
    pub(crate) infinite: usize,
}

impl Gain {
    /// Of pairs (baseline, method), one for each seed.
    ///
    /// The difference has the interval of the paired t-test. The percentage is a ratio of two correlated means and has
    /// the interval of the ratio estimator: to first order, the error of `r = M / B` is that of the mean of
    /// `(m_i - r b_i) / B`.
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

/// The `t` for which `|T| <= t` has this probability, for Student's distribution with at least one degree of freedom.
fn student_t(probability: f64, freedom: usize) -> f64 {
    // Bisection over the angle whose tangent is t / sqrt(freedom): the probability increases with it.
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

/// The probability of `|T| <= sqrt(freedom) tan(angle)`: a finite sum for integer degrees of freedom (Abramowitz and
/// Stegun, 26.7.3 and 26.7.4).
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
