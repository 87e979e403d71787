//! What a method makes of a row, beside softmax and the evidential support.

use rayon::prelude::*;
use shafer::Element;

use super::Output;

/// What methods are measured by, for the rows of a chunk.
pub(super) struct Reference<'a> {
    pub(super) classes: usize,
    pub(super) softmax: &'a [f64],
    pub(super) logits: &'a [f64],
    /// The evidential support, if the row is not vacuous.
    pub(super) modes: &'a [Option<&'a [u32]>],
}

/// What a method makes of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowNumbers {
    pub(super) size: u32,
    pub(super) mass: f64,
    pub(super) agrees: bool,
    /// `None` for a vacuous row.
    pub(super) modes_kept: Option<f64>,
    pub(super) total_variation: f64,
    pub(super) jensen_shannon: f64,
}

impl Reference<'_> {
    /// The numbers of each row, in order: added up in order, they come to the same every time.
    pub(super) fn measure<E: Element>(
        &self,
        output: &Output<'_, E>,
        numbers: &mut Vec<Option<RowNumbers>>,
    ) {
        let row = |row: usize| {
            let (kept, probabilities) = output.row(row).ok()?;
            let place = row * self.classes..(row + 1) * self.classes;
            let (softmax, logits) = (&self.softmax[place.clone()], &self.logits[place]);
            Some(RowNumbers::new(softmax, logits, self.modes[row], kept, probabilities))
        };
        (0..self.modes.len()).into_par_iter().map(row).collect_into_vec(numbers);
    }
}

impl RowNumbers {
    /// Takes time by the number of kept classes: all dropped ones together are what is left.
    fn new<E: Element>(
        softmax: &[f64],
        logits: &[f64],
        modes: Option<&[u32]>,
        kept: &[u32],
        probabilities: &[E],
    ) -> Self {
        // As in `shafer::total_variation`: rounding to half precision is not distance.
        let sum: f64 = probabilities.iter().map(|p| p.to_f64()).sum();
        let (mut mass, mut difference, mut divergence) = (0.0, 0.0, 0.0);
        let mut largest = 0.0;
        for (&class, p) in kept.iter().zip(probabilities) {
            let (p, q) = (p.to_f64() / sum, softmax[class as usize]);
            mass += q;
            difference += (p - q).abs();
            divergence += divergence_term(p, q);
            largest = p.max(largest);
        }
        let dropped = (1.0 - mass).max(0.0);
        // A dropped class has the term q ln(q / (q / 2)).
        divergence += dropped * std::f64::consts::LN_2;
        let first = (0..logits.len()).fold(0, |a, b| if logits[b] > logits[a] { b } else { a });
        let agrees = kept
            .binary_search(&(first as u32))
            .is_ok_and(|place| probabilities[place].to_f64() / sum >= largest);
        Self {
            size: kept.len() as u32,
            mass: f64::min(mass, 1.0),
            agrees,
            modes_kept: modes.map(|modes| common(modes, kept) as f64 / modes.len() as f64),
            total_variation: (0.5 * (difference + dropped)).min(1.0),
            jensen_shannon: (0.5 * divergence).clamp(0.0, std::f64::consts::LN_2),
        }
    }
}

/// `p ln(p / m) + q ln(q / m)` with `m` halfway between `p` and `q`.
fn divergence_term(p: f64, q: f64) -> f64 {
    let sum = p + q;
    if sum <= 0.0 {
        return 0.0;
    }
    let d = (p - q) / sum;
    // With p = (1 + d) sum / 2, this is an even function of d. Where p and q are close, as for most
    // classes they are, its series is exact, and spares two logarithms whose difference is not.
    if d.abs() < 0.05 {
        let d2 = d * d;
        return sum * d2 * (0.5 + d2 * (1.0 / 12.0 + d2 * (1.0 / 30.0 + d2 / 56.0)));
    }
    let term = |share: f64| if share > 0.0 { 0.5 * share * share.ln() } else { 0.0 };
    sum * (term(1.0 + d) + term(1.0 - d))
}

/// How many numbers two ascending lists have in common.
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
