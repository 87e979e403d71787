//! A sample of rows for the page.

use std::ops::Range;

use serde::Serialize;
use shafer::{CsrRows, Element};

use super::measure::rest;

/// The number of rows from the beginning.
const FIRST: usize = 50;

/// The largest number of evenly spaced rows after them.
const SPACED: usize = 50;

/// The largest number of classes per row, the most probable ones.
const CLASSES: usize = 40;

/// The first rows, evenly spaced others, and interesting ones. The total number of rows need not be known: when
/// there are too many, the spacing doubles.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    rows: Vec<SampleRow>,
    distance: usize,
}

impl Default for Sample {
    fn default() -> Self {
        Self { rows: Vec::new(), distance: 1 }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct SampleRow {
    pub(super) row: usize,
    /// The most probable first.
    pub(super) classes: Vec<u32>,
    pub(super) softmax: Vec<f32>,
    /// `-ln(1 - kappa)`, where `kappa` is the conflict between the evidence for different classes.
    pub(super) conflict: f64,
    /// The exponential of the entropy of softmax.
    pub(super) effective_classes: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) true_class: Option<u32>,
    /// In the order of the methods; `None` for a failed one.
    pub(super) methods: Vec<Option<ShownMethod>>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct ShownMethod {
    /// The number of kept classes, shown or not.
    pub(super) kept: usize,
    /// Softmax probability of the dropped classes.
    pub(super) dropped: f64,
    /// In the order of the classes; `None` for a dropped one.
    pub(super) probabilities: Vec<Option<f32>>,
}

impl Sample {
    pub(super) fn rows(&self) -> &[SampleRow] {
        &self.rows
    }

    /// A description of the sample.
    pub(super) fn words(&self, rows: usize) -> String {
        if self.rows.len() == rows {
            return "all rows of the file".to_owned();
        }
        format!(
            "{} of {rows} rows: the first {FIRST}, one in {} of the others, and those under Find",
            self.rows.len(),
            self.distance
        )
    }

    /// Adds those of the next rows that belong to the sample, as rendered by `show`, and removes rows that no
    /// longer do.
    pub(super) fn add(
        &mut self,
        rows: Range<usize>,
        interesting: impl Fn(usize) -> bool,
        show: impl FnMut(usize) -> SampleRow,
    ) {
        let spaced =
            |distance: usize| (rows.end.max(FIRST) - 1) / distance - (FIRST - 1) / distance;
        while spaced(self.distance) > SPACED {
            self.distance *= 2;
        }
        let distance = self.distance;
        let wanted = |row: usize| row < FIRST || row.is_multiple_of(distance) || interesting(row);
        self.rows.retain(|row| wanted(row.row));
        self.rows.extend(rows.filter(|&row| wanted(row)).map(show));
    }
}

impl SampleRow {
    /// A row with its most probable classes under softmax, without methods.
    pub(super) fn new(row: usize, softmax: &[f64]) -> Self {
        let mut classes: Vec<u32> = (0..softmax.len() as u32).collect();
        let order =
            |a: &u32, b: &u32| softmax[*b as usize].total_cmp(&softmax[*a as usize]).then(a.cmp(b));
        if classes.len() > CLASSES {
            classes.select_nth_unstable_by(CLASSES - 1, order);
            classes.truncate(CLASSES);
        }
        classes.sort_unstable_by(order);
        Self {
            row,
            softmax: classes.iter().map(|&class| softmax[class as usize] as f32).collect(),
            classes,
            conflict: 0.0,
            effective_classes: 0.0,
            true_class: None,
            methods: Vec::new(),
        }
    }

    /// Adds the output of the next method, one compressed row.
    pub(super) fn push<E: Element>(&mut self, softmax: &[f64], output: shafer::Result<CsrRows<E>>) {
        let shown = output.ok().map(|rows| {
            let (kept, probabilities) = rows.row(0).unwrap_or_default();
            let mass: f64 = kept.iter().map(|&class| softmax[class as usize]).sum();
            let probability = |class| {
                let place = kept.binary_search(class).ok()?;
                Some(probabilities[place].to_f64() as f32)
            };
            ShownMethod {
                kept: kept.len(),
                dropped: rest(mass),
                probabilities: self.classes.iter().map(probability).collect(),
            }
        });
        self.methods.push(shown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rows_others_at_equal_distances_and_those_of_interest() {
        let mut sample = Sample::default();
        // Row 777 is of interest until row 5000 has been seen.
        for chunk in 0..10 {
            let rows = chunk * 1000..(chunk + 1) * 1000;
            let interesting = |row| row == if chunk < 5 { 777 } else { 5003 };
            sample.add(rows.clone(), interesting, |row| SampleRow::new(row, &[1.0]));
            let has = |row| sample.rows.iter().any(|shown| shown.row == row);
            assert_eq!((has(777), has(5003)), (chunk < 5, chunk >= 5));
        }
        let rows: Vec<usize> = sample.rows.iter().map(|row| row.row).collect();
        assert!(rows[..FIRST].iter().copied().eq(0..FIRST));
        let spaced: Vec<usize> = rows[FIRST..].iter().copied().filter(|&row| row != 5003).collect();
        assert!((SPACED / 2..=SPACED).contains(&spaced.len()), "{spaced:?}");
        assert!(spaced.windows(2).all(|pair| pair[1] - pair[0] == sample.distance));
        assert!(spaced.last().is_some_and(|&row| row + sample.distance >= 10_000));
        let words = sample.words(10_000);
        assert!(
            words.starts_with(&format!("{} of 10000 rows: the first 50, ", rows.len())),
            "{words}"
        );
    }

    #[test]
    fn few_rows_are_all_there() {
        let mut sample = Sample::default();
        sample.add(0..3, |_| false, |row| SampleRow::new(row, &[1.0]));
        sample.add(3..60, |_| false, |row| SampleRow::new(row, &[1.0]));
        assert!(sample.rows.iter().map(|row| row.row).eq(0..60));
        assert_eq!(sample.words(60), "all rows of the file");
    }

    #[test]
    fn the_most_probable_classes_in_their_order() {
        let softmax: Vec<f64> = (0..100).map(|class| f64::from(class * 37 % 100)).collect();
        let row = SampleRow::new(0, &softmax);
        assert_eq!(row.classes.len(), CLASSES);
        let expected = (0..CLASSES).map(|place| 99.0 - place as f32);
        assert!(row.softmax.iter().copied().eq(expected));
    }
}
