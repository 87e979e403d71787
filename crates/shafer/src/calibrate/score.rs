//! Scores: how far a threshold must be loosened until a class is kept.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use super::labelled::{Labelled, checked_row};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::logits::Logits;
use crate::method::Method;
use crate::numerics::{Centre, Sum};

/// The score of a class: the tightest threshold at which its row keeps it. A row keeps the classes
/// whose score is at most the threshold.
///
/// With the logits over the temperature `z`, their softmax `p`, and classes ordered by logit (of
/// equal ones the first comes first):
///
/// | score | text | value for class `k` | the threshold as a method |
/// |---|---|---|---|
/// | `Evidential` | `evidential` | `-w_k = mean(z) - z_k` | [`Method::min_evidence`] |
/// | `Lac` | `lac` | `-ln p_k` | [`Method::min_probability`] |
/// | `MinP` | `min-p` | `-ln(p_k / max p) = max(z) - z_k` | [`Method::min_p`] |
/// | `TopNSigma` | `top-n-sigma` | `(max(z) - z_k) / sigma` | [`Method::top_n_sigma`] |
/// | `TopP` | `top-p` | the probability of the classes before `k` | [`Method::top_p`] |
/// | `TopK` | `top-k` | the rank of `k`, from 1 | [`Method::top_k`] |
/// | `Sparsemax` | `sparsemax` | `sum_j max(0, z_j - z_k)` | [`Method::SPARSEMAX`] at that temperature |
/// | `Entmax` | `entmax:alpha=1.5` | `(alpha - 1)` times the norm of `max(0, z - z_k)` of order `1 / (alpha - 1)` | [`Method::entmax`] at that temperature |
/// | `Aps` | `aps` | the probability of the classes before `k`, and of `k` | none |
/// | `Raps` | `raps:penalty=0.01,rank=5` | that, and the penalty for each rank beyond `rank` | none |
///
/// The scores of LAC and min-p are on a logarithmic scale, on which the tails keep their digits. Those
/// of sparsemax and entmax are the temperatures of "Sparse Activations as Conformal Predictors" (Campos
/// et al., 2025). The last two give sets of classes only. With [randomised](Score::of_row) ties they are
/// those of Romano, Sesia and Candès (2020) and Angelopoulos et al. (2021).
///
/// ```
/// use shafer::calibrate::Score;
///
/// let scores = Score::Evidential.of_row(&[2.0, 1.0, -3.0], 1.0)?;
/// assert_eq!(scores, [-2.0, -1.0, 3.0]);
/// assert_eq!("entmax:alpha=1.5".parse(), Ok(Score::Entmax { alpha: 1.5 }));
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the table says what they are")]
pub enum Score {
    Evidential,
    Lac,
    MinP,
    TopNSigma,
    TopP,
    TopK,
    Sparsemax,
    Entmax { alpha: f64 },
    Aps,
    Raps { penalty: f64, rank: u32 },
}

impl Score {
    /// The scores that a [`Method`] belongs to.
    pub const METHODS: [Self; 8] = [
        Self::Evidential,
        Self::Lac,
        Self::MinP,
        Self::TopNSigma,
        Self::TopP,
        Self::TopK,
        Self::Sparsemax,
        Self::Entmax { alpha: 1.5 },
    ];

    /// The score of the true class of each row.
    ///
    /// ```
    /// use shafer::Logits;
    /// use shafer::calibrate::{Labelled, Score};
    ///
    /// let logits = [2.0, 1.0, 0.0, 3.0];
    /// let rows = Labelled::new(Logits::rows(&logits, 2)?, &[1, 1])?;
    /// assert_eq!(Score::MinP.of_labels(&rows)?, [1.0, 0.0]);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn of_labels<E: Element>(self, rows: &Labelled<'_, E>) -> Result<Vec<f64>> {
        self.of_labels_randomised(rows, || 1.0)
    }

    /// As [`of_labels`](Self::of_labels), with a number in `[0, 1)` for each row that says which part
    /// of the probability of the class itself counts for APS and RAPS. Uniform numbers make their
    /// coverage exact; without them it is higher.
    pub fn of_labels_randomised<E: Element>(
        self,
        rows: &Labelled<'_, E>,
        mut uniform: impl FnMut() -> f64,
    ) -> Result<Vec<f64>> {
        let mut scores = Vec::with_capacity(rows.len());
        rows.visit(|_, z, label| scores.push(self.of_class(z, label, uniform())))?;
        Ok(scores)
    }

    /// The scores of all classes of a row; infinite for masked ones. `uniform` is 1, or a number in
    /// `[0, 1)` for randomised APS and RAPS.
    pub fn of_row<E: Element>(self, logits: &[E], uniform: f64) -> Result<Vec<f64>> {
        let mut buffers = (Vec::new(), Vec::new());
        Ok(self.of_all(checked_row(&Logits::row(logits)?, 0, &mut buffers)?, uniform))
    }

    /// The method that keeps the classes of a score of at most `threshold`, and the temperature to
    /// use it at; `None` for scores that only give sets. It keeps the best class too, whatever the
    /// threshold, and classes whose score is greater by no more than rounding. An infinite threshold
    /// keeps all classes.
    ///
    /// ```
    /// use shafer::Method;
    /// use shafer::calibrate::Score;
    ///
    /// assert_eq!(Score::Evidential.method(0.5)?, Some((Method::min_evidence(-0.5)?, 1.0)));
    /// assert_eq!(Score::TopK.method(f64::INFINITY)?, Some((Method::SOFTMAX, 1.0)));
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn method(self, threshold: f64) -> Result<Option<(Method, f64)>> {
        if threshold.is_nan() {
            let rule = "must be a number";
            return Err(Error::Parameter { name: "threshold", value: threshold, rule });
        }
        // What cannot be written as a parameter keeps all.
        let share = |p: f64| if p > 1e-300 { Some(p.min(1.0)) } else { None };
        let near = threshold.max(0.0) * (1.0 + 1e-9);
        let temperature = (threshold * (1.0 + 1e-6)).max(1e-9);
        let finite = threshold < f64::INFINITY;
        let keep_all = Ok(Some((Method::SOFTMAX, 1.0)));
        let at_one = |method| Ok(Some((method, 1.0)));
        match self {
            Self::Aps | Self::Raps { .. } => Ok(None),
            _ if !finite => keep_all,
            Self::Evidential => at_one(Method::min_evidence(-threshold.max(f64::MIN))?),
            Self::Lac => match share((-threshold).exp() * (1.0 - 2e-6)) {
                Some(p) => at_one(Method::min_probability(p)?),
                None => keep_all,
            },
            Self::MinP => match share((-near).exp() * (1.0 - 1e-9)) {
                Some(p) => at_one(Method::min_p(p)?),
                None => keep_all,
            },
            Self::TopNSigma => at_one(Method::top_n_sigma(near.clamp(1e-9, f64::MAX))?),
            Self::TopP => match threshold.max(0.0) + 2e-6 {
                p if p < 1.0 => at_one(Method::top_p(p)?),
                _ => keep_all,
            },
            Self::TopK => at_one(Method::top_k((threshold as usize).max(1))?),
            Self::Sparsemax if temperature < 1e30 => Ok(Some((Method::SPARSEMAX, temperature))),
            Self::Entmax { alpha } if temperature < 1e30 => {
                Ok(Some((Method::entmax(alpha)?, temperature)))
            }
            Self::Sparsemax | Self::Entmax { .. } => keep_all,
        }
    }

    /// The score of one class of a checked row, which is not masked.
    pub(super) fn of_class(self, z: &[f64], class: usize, uniform: f64) -> f64 {
        self.scorer(z, uniform)(class)
    }

    /// The scores of all classes of a checked row, to the bit those of [`of_class`](Self::of_class):
    /// ties with calibration rows stay ties.
    pub(super) fn of_all(self, z: &[f64], uniform: f64) -> Vec<f64> {
        let score = self.scorer(z, uniform);
        let masked = |k: usize| z[k] == f64::NEG_INFINITY;
        (0..z.len()).map(|k| if masked(k) { f64::INFINITY } else { score(k) }).collect()
    }

    /// The score of any class that is not masked, with what the classes have in common computed once.
    fn scorer<'z>(self, z: &'z [f64], uniform: f64) -> Box<dyn Fn(usize) -> f64 + 'z> {
        let max = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        match self {
            Self::Evidential => {
                let centre = Centre::new(unmasked(z));
                Box::new(move |k| centre.map_or(0.0, |centre| -centre.deviation(z[k])))
            }
            Self::Lac => {
                let ln_sum = unmasked(z).map(|x| (x - max).exp()).collect::<Sum>().value().ln();
                Box::new(move |k| ln_sum + (max - z[k]))
            }
            Self::MinP => Box::new(move |k| max - z[k]),
            Self::TopNSigma => {
                let (range, sigma) = deviation(z, max);
                Box::new(move |k| if sigma > 0.0 { (max - z[k]) / range / sigma } else { 0.0 })
            }
            Self::Entmax { alpha } => Box::new(move |k| norm(z, z[k], alpha)),
            Self::TopP | Self::TopK | Self::Sparsemax | Self::Aps | Self::Raps { .. } => {
                let scores = self.ordered(z, max, uniform);
                Box::new(move |k| scores[k])
            }
        }
    }

    /// The scores that add up over the classes before each, in order.
    fn ordered(self, z: &[f64], max: f64, uniform: f64) -> Vec<f64> {
        let mut order: Vec<usize> = (0..z.len()).filter(|&k| z[k] > f64::NEG_INFINITY).collect();
        // Zeros of either sign are equal.
        let descending =
            |&a: &usize, &b: &usize| z[b].partial_cmp(&z[a]).map(|o| o.then(a.cmp(&b)));
        order.sort_by(|a, b| descending(a, b).unwrap_or(Ordering::Equal));
        let exp = |k: usize| (z[k] - max).exp();
        let total = order.iter().map(|&k| exp(k)).collect::<Sum>().value();
        let (mut mass, mut depth, mut out) = (Sum::default(), Sum::default(), vec![0.0; z.len()]);
        for (before, &k) in order.iter().enumerate() {
            let cumulated = || (mass.value() + uniform * exp(k)) / total;
            out[k] = match self {
                Self::TopK => (before + 1) as f64,
                // Equal logits have equal scores.
                Self::Sparsemax => (before as f64 * (max - z[k]) - depth.value()).max(0.0),
                Self::Aps => cumulated(),
                Self::Raps { penalty, rank } => {
                    cumulated() + penalty * (before + 1).saturating_sub(rank as usize) as f64
                }
                _ => mass.value() / total,
            };
            mass.add(exp(k));
            depth.add(max - z[k]);
        }
        out
    }
}

fn unmasked(z: &[f64]) -> impl Iterator<Item = f64> + Clone {
    z.iter().copied().filter(|&x| x > f64::NEG_INFINITY)
}

/// How much higher the higher logits are.
fn above(z: &[f64], value: f64) -> impl Iterator<Item = f64> {
    z.iter().filter(move |&&x| x > value).map(move |&x| x - value)
}

/// How far the logits reach, and their standard deviation as a share of that, which cannot overflow.
fn deviation(z: &[f64], max: f64) -> (f64, f64) {
    let range = unmasked(z).fold(0.0_f64, |range, x| range.max(max - x)).min(f64::MAX);
    let Some(centre) = Centre::new(unmasked(z)).filter(|_| range > 0.0) else { return (1.0, 0.0) };
    let squares: Sum = unmasked(z).map(|x| (centre.deviation(x) / range).powi(2)).collect();
    (range, (squares.value() / unmasked(z).count() as f64).sqrt())
}

/// `(alpha - 1)` times the norm of order `1 / (alpha - 1)` of [`above`].
fn norm(z: &[f64], value: f64, alpha: f64) -> f64 {
    let order = 1.0 / (alpha - 1.0);
    let largest = above(z, value).fold(0.0, f64::max);
    if largest == 0.0 || !order.is_finite() {
        return if largest == 0.0 { 0.0 } else { f64::INFINITY };
    }
    // Relative to the largest, so that no power overflows.
    let sum: Sum = above(z, value).map(|x| (x / largest).powf(order)).collect();
    (alpha - 1.0) * largest * sum.value().powf(1.0 / order)
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Evidential => f.write_str("evidential"),
            Self::Lac => f.write_str("lac"),
            Self::MinP => f.write_str("min-p"),
            Self::TopNSigma => f.write_str("top-n-sigma"),
            Self::TopP => f.write_str("top-p"),
            Self::TopK => f.write_str("top-k"),
            Self::Sparsemax => f.write_str("sparsemax"),
            Self::Entmax { alpha } => write!(f, "entmax:alpha={alpha}"),
            Self::Aps => f.write_str("aps"),
            Self::Raps { penalty, rank } => write!(f, "raps:penalty={penalty},rank={rank}"),
        }
    }
}

impl FromStr for Score {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        let refuse = |problem: String| Error::Method { text: text.to_owned(), problem };
        let mut given = Vec::new();
        for part in parameters.split(',').filter(|part| !part.is_empty()) {
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| refuse(format!("`{part}` is not NAME=VALUE")))?;
            let number = value.parse::<f64>();
            let number = number.map_err(|_| refuse(format!("{key} must be a number")))?;
            given.push((key, number));
        }
        let mut take = |key: &str, default: f64| {
            let found = given.iter().position(|(name, _)| *name == key);
            found.map_or(default, |i| given.swap_remove(i).1)
        };
        let score = match name {
            "evidential" => Self::Evidential,
            "lac" => Self::Lac,
            "min-p" => Self::MinP,
            "top-n-sigma" => Self::TopNSigma,
            "top-p" => Self::TopP,
            "top-k" => Self::TopK,
            "sparsemax" => Self::Sparsemax,
            "entmax" => {
                let alpha = take("alpha", 1.5);
                Method::entmax(alpha)?;
                if alpha == 1.0 {
                    let why = "entmax with an alpha of 1 is softmax, which keeps all: use lac";
                    return Err(refuse(why.to_owned()));
                }
                Self::Entmax { alpha }
            }
            "aps" => Self::Aps,
            "raps" => {
                let (penalty, rank) = (take("penalty", 0.01), take("rank", 5.0));
                if !(penalty.is_finite() && penalty >= 0.0) {
                    return Err(refuse("penalty must be finite and not negative".to_owned()));
                }
                if rank.fract() != 0.0 || !(0.0..=f64::from(u32::MAX)).contains(&rank) {
                    return Err(refuse("rank must be a whole number".to_owned()));
                }
                Self::Raps { penalty, rank: rank as u32 }
            }
            _ => {
                let known = "evidential, lac, min-p, top-n-sigma, top-p, top-k, sparsemax, entmax, \
                             aps, raps";
                return Err(refuse(format!("there is no such score; use {known}")));
            }
        };
        match given.first() {
            Some((key, _)) => Err(refuse(format!("{name} has no parameter {key}"))),
            None => Ok(score),
        }
    }
}
