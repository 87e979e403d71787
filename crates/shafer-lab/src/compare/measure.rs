//! Measures the output of a method on a row against softmax and the evidential support.

use rayon::prelude::*;
use shafer::{CsrRows, Element};

use super::Output;
use super::truth::Truth;

/// The reference values for the rows of a chunk.
pub(super) struct Reference<'a> {
    classes: usize,
    softmax: &'a [f64],
    facts: Vec<RowFacts<'a>>,
    /// The true classes.
    labels: Option<&'a [u32]>,
}

/// The properties of a row that do not depend on the method.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowFacts<'a> {
    /// The arg-max, the first of ties.
    best: u32,
    /// The evidential support, if the row is not vacuous.
    pub(super) support: Option<&'a [u32]>,
    /// The exp of the entropy of softmax.
    pub(super) effective_classes: f64,
    /// `-ln(1 - kappa)`, where `kappa` is the conflict between the evidence for different classes
    /// (`Belief::internal_conflict`). With many classes, `kappa` rounds to 1 for every row.
    pub(super) conflict: f64,
}

/// The measurements of a method on a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowNumbers {
    pub(super) size: u32,
    /// The number of kept classes with a probability above 1%.
    pub(super) above_one_percent: u32,
    /// The exp of the entropy.
    pub(super) effective_classes: f64,
    /// Softmax probability of the kept classes.
    pub(super) mass: f64,
    /// Softmax probability of the dropped classes.
    pub(super) dropped: f64,
    pub(super) agrees: bool,
    /// The share of the evidential support that is kept; `None` for a vacuous row.
    pub(super) support_kept: Option<f64>,
    pub(super) total_variation: f64,
    pub(super) jensen_shannon: f64,
    pub(super) truth: Option<Truth>,
}

impl<'a> Reference<'a> {
    /// Computes the properties of contiguous rows from their softmax and their evidential rows.
    pub(super) fn new<E: Element>(
        classes: usize,
        logits: &[f64],
        temperature: f64,
        softmax: &'a [f64],
        supported: &'a CsrRows<E>,
        labels: Option<&'a [u32]>,
    ) -> Self {
        let rows = logits.par_chunks_exact(classes).zip(softmax.par_chunks_exact(classes));
        let facts = rows.enumerate().map(|(row, (logits, softmax))| {
            let support = supported.row(row).unwrap_or_default().0;
            RowFacts::new(logits, temperature, softmax, support)
        });
        Self { classes, softmax, facts: facts.collect(), labels }
    }

    pub(super) fn facts(&self) -> &[RowFacts<'a>] {
        &self.facts
    }

    pub(super) fn softmax(&self, row: usize) -> &'a [f64] {
        &self.softmax[row * self.classes..(row + 1) * self.classes]
    }

    pub(super) fn label(&self, row: usize) -> Option<u32> {
        self.labels.map(|labels| labels[row])
    }

    /// Measures all rows, in order, so that sums are deterministic. `keepers` counts the methods that keep each
    /// class of each row.
    pub(super) fn measure<E: Element>(
        &self,
        output: &Output<'_, E>,
        keepers: &mut [u16],
        numbers: &mut Vec<Option<RowNumbers>>,
    ) {
        let row = |(row, keepers): (usize, &mut [u16])| {
            let (kept, probabilities) = output.row(row).ok()?;
            for &class in kept {
                keepers[class as usize] += 1;
            }
            let (facts, softmax) = (&self.facts[row], self.softmax(row));
            Some(RowNumbers::new(softmax, facts, self.label(row), kept, probabilities))
        };
        let rows = keepers.par_chunks_exact_mut(self.classes).enumerate();
        rows.map(row).collect_into_vec(numbers);
    }

    /// For each row, the probability that, of two random methods, exactly one keeps a class drawn from softmax.
    /// `answers` counts the methods that have a distribution for a row.
    pub(super) fn disagreement(&self, keepers: &[u16], answers: &[u16]) -> Vec<f64> {
        let row = |(row, keepers): (usize, &[u16])| {
            let methods = f64::from(answers[row]);
            let differing = |&keepers: &u16| f64::from(keepers) * (methods - f64::from(keepers));
            let sum: f64 =
                self.softmax(row).iter().zip(keepers).map(|(q, c)| q * differing(c)).sum();
            // A single method cannot disagree.
            if methods > 1.0 { 2.0 * sum / (methods * (methods - 1.0)) } else { 0.0 }
        };
        keepers.par_chunks_exact(self.classes).enumerate().map(row).collect()
    }
}

impl<'a> RowFacts<'a> {
    fn new(logits: &[f64], temperature: f64, softmax: &[f64], support: &'a [u32]) -> Self {
        let best = (0..logits.len()).fold(0, |a, b| if logits[b] > logits[a] { b } else { a });
        let unmasked = || logits.iter().copied().filter(|&logit| logit > f64::NEG_INFINITY);
        let count = unmasked().count();
        let scaled = |difference: f64| difference / temperature;
        // -ln p of a class is that of the best plus the difference of the logits.
        let best_surprise = -softmax[best].ln();
        let entropy: f64 = logits
            .iter()
            .zip(softmax)
            .filter(|(_, q)| **q > 0.0)
            .map(|(logit, q)| q * (best_surprise + scaled(logits[best] - logit)))
            .sum();
        // Never all classes lie above the mean; a full support means a vacuous row.
        let support = (support.len() < count).then_some(support);
        let conflict = support.map_or(0.0, |support| {
            let mean = unmasked().sum::<f64>() / count as f64;
            let weight = |&class: &u32| scaled(logits[class as usize] - mean);
            let weights: f64 = support.iter().map(weight).sum();
            // ln of the sum of e^w over the support, computed from its softmax mass.
            let mass: f64 = support.iter().map(|&class| softmax[class as usize]).sum();
            let sum = scaled(logits[best] - mean) + mass.ln() + best_surprise;
            let others = (support.len() - 1) as f64;
            // Above e^60, subtracting the count changes nothing in double precision.
            let sum = if sum > 60.0 { sum } else { (sum.exp() - others).ln() };
            (weights - sum).max(0.0)
        });
        Self { best: best as u32, support, effective_classes: entropy.exp(), conflict }
    }
}

impl RowNumbers {
    /// Linear in the number of kept classes: the dropped ones contribute `1 - mass` in total.
    fn new<E: Element>(
        softmax: &[f64],
        facts: &RowFacts<'_>,
        label: Option<u32>,
        kept: &[u32],
        probabilities: &[E],
    ) -> Self {
        // Normalises like `shafer::total_variation`, so that rounding to half precision adds no distance.
        let sum: f64 = probabilities.iter().map(|p| p.to_f64()).sum();
        let (mut mass, mut difference, mut divergence) = (0.0, 0.0, 0.0);
        let (mut entropy, mut above_one_percent) = (0.0, 0);
        let (mut largest, mut first) = (0.0, None);
        for (&class, p) in kept.iter().zip(probabilities) {
            let (p, q) = (p.to_f64() / sum, softmax[class as usize]);
            mass += q;
            difference += (p - q).abs();
            divergence += divergence_term(p, q);
            if p > 0.0 {
                entropy -= p * p.ln();
            }
            above_one_percent += u32::from(p > 0.01);
            if p > largest {
                (largest, first) = (p, Some(class));
            }
        }
        let dropped = rest(mass);
        // A dropped class has the term q ln(q / (q / 2)).
        divergence += dropped * std::f64::consts::LN_2;
        let probability = |class: u32| {
            kept.binary_search(&class).map_or(0.0, |place| probabilities[place].to_f64() / sum)
        };
        Self {
            size: kept.len() as u32,
            above_one_percent,
            effective_classes: entropy.exp(),
            mass: f64::min(mass, 1.0),
            dropped,
            agrees: largest > 0.0 && probability(facts.best) >= largest,
            support_kept: facts
                .support
                .map(|support| common(support, kept) as f64 / support.len() as f64),
            total_variation: (0.5 * (difference + dropped)).min(1.0),
            jensen_shannon: (0.5 * divergence).clamp(0.0, std::f64::consts::LN_2),
            truth: label.map(|label| Truth {
                is_best: first == Some(label),
                probability: probability(label),
            }),
        }
    }
}

/// `1 - mass`, or 0 if that is only rounding error.
pub(super) fn rest(mass: f64) -> f64 {
    const ROUNDING: f64 = 1e-13;
    let rest = 1.0 - mass;
    if rest > ROUNDING { rest } else { 0.0 }
}

/// `p ln(p / m) + q ln(q / m)` with `m` halfway between `p` and `q`.
fn divergence_term(p: f64, q: f64) -> f64 {
    let sum = p + q;
    if sum <= 0.0 {
        return 0.0;
    }
    let d = (p - q) / sum;
    // With p = (1 + d) sum / 2, this is an even function of d. For small d, the series avoids the cancellation
    // of two logarithms.
    if d.abs() < 0.05 {
        let d2 = d * d;
        return sum * d2 * (0.5 + d2 * (1.0 / 12.0 + d2 * (1.0 / 30.0 + d2 / 56.0)));
    }
    let term = |share: f64| if share > 0.0 { 0.5 * share * share.ln() } else { 0.0 };
    sum * (term(1.0 + d) + term(1.0 - d))
}

/// The size of the intersection of two ascending lists.
fn common(a: &[u32], b: &[u32]) -> usize {
    let mut rest = b;
    let mut count = 0;
    for wanted in a {
        rest = &rest[rest.iter().take_while(|found| *found < wanted).count()..];
        count += usize::from(rest.first() == Some(wanted));
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_and_the_logarithms_agree() {
        let plain = |p: f64, q: f64| {
            let m = 0.5 * (p + q);
            p * (p / m).ln() + q * (q / m).ln()
        };
        for step in 1..100 {
            let (p, q) = (0.3, 0.3 * f64::from(step) / 50.0);
            assert!((divergence_term(p, q) - plain(p, q)).abs() < 1e-15, "{p} and {q}");
        }
        assert_eq!(divergence_term(0.0, 0.0), 0.0);
        assert!((divergence_term(0.25, 0.0) - 0.25 * std::f64::consts::LN_2).abs() < 1e-16);
    }
}
