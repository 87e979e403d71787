//! A few rows of a file, to look at one by one.

use std::ops::Range;

use serde::Serialize;
use shafer::Element;

/// How many rows from the beginning.
const FIRST: usize = 50;

/// At most how many of the others.
const SPACED: usize = 50;

/// At most how many classes of each, the most probable ones.
const CLASSES: usize = 40;

/// The first rows, and others at equal distances. The number of rows need not be known: whenever
/// there are too many, every other one goes.
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
    /// In the order of the methods; `None` for one that failed.
    pub(super) methods: Vec<Option<ShownMethod>>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct ShownMethod {
    /// How many classes are kept in all, shown or not.
    pub(super) kept: usize,
    /// In the order of the classes; `None` for a dropped one.
    pub(super) probabilities: Vec<Option<f32>>,
}

/// What a method makes of a row.
pub(super) struct SampleMethod<'a, E> {
    kept: &'a [u32],
    probabilities: &'a [E],
}

impl<'a, E: Element> SampleMethod<'a, E> {
    pub(super) fn new(kept: &'a [u32], probabilities: &'a [E]) -> Self {
        Self { kept, probabilities }
    }
}

impl Sample {
    pub(super) fn rows(&self) -> &[SampleRow] {
        &self.rows
    }

    /// Takes those of these rows that belong to the sample; each with its number and its place in
    /// the sample. The softmax is that of all of these rows.
    pub(super) fn begin(
        &mut self,
        rows: Range<usize>,
        classes: usize,
        softmax: &[f64],
    ) -> Vec<(usize, usize)> {
        let mut taken = Vec::new();
        for (row, softmax) in rows.zip(softmax.chunks_exact(classes)) {
            if !self.wants(row) {
                continue;
            }
            self.rows.push(SampleRow::new(row, softmax));
            taken.push(row);
            self.thin();
        }
        // Some of those that were taken may have gone since.
        let first = taken.first().copied().unwrap_or(usize::MAX);
        let places = self.rows.iter().enumerate().map(|(place, row)| (row.row, place));
        places.filter(|&(row, _)| row >= first).collect()
    }

    /// Adds what the next method makes of a row in the sample.
    pub(super) fn push<E: Element>(&mut self, place: usize, method: Option<SampleMethod<'_, E>>) {
        let row = &mut self.rows[place];
        let shown = method.map(|SampleMethod { kept, probabilities }| ShownMethod {
            kept: kept.len(),
            probabilities: row
                .classes
                .iter()
                .map(|class| {
                    let place = kept.binary_search(class).ok()?;
                    Some(probabilities[place].to_f64() as f32)
                })
                .collect(),
        });
        row.methods.push(shown);
    }

    fn wants(&self, row: usize) -> bool {
        row < FIRST || row.is_multiple_of(self.distance)
    }

    fn thin(&mut self) {
        while self.rows.len() > FIRST + SPACED {
            self.distance *= 2;
            let distance = self.distance;
            self.rows.retain(|row| row.row < FIRST || row.row.is_multiple_of(distance));
        }
    }
}

impl SampleRow {
    fn new(row: usize, softmax: &[f64]) -> Self {
        let mut classes: Vec<u32> = (0..softmax.len() as u32).collect();
        let order =
            |a: &u32, b: &u32| softmax[*b as usize].total_cmp(&softmax[*a as usize]).then(a.cmp(b));
        if classes.len() > CLASSES {
            classes.select_nth_unstable_by(CLASSES - 1, order);
            classes.truncate(CLASSES);
        }
        classes.sort_unstable_by(order);
        let softmax = classes.iter().map(|&class| softmax[class as usize] as f32).collect();
        Self { row, classes, softmax, methods: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rows_and_others_at_equal_distances() {
        let mut sample = Sample::default();
        for chunk in 0..10 {
            let rows = chunk * 1000..(chunk + 1) * 1000;
            let taken = sample.begin(rows.clone(), 1, &[1.0; 1000]);
            assert!(
                taken
                    .iter()
                    .all(|&(row, place)| { rows.contains(&row) && sample.rows[place].row == row })
            );
        }
        let rows: Vec<usize> = sample.rows.iter().map(|row| row.row).collect();
        assert!(rows[..FIRST].iter().copied().eq(0..FIRST));
        let spaced = &rows[FIRST..];
        assert!((SPACED / 2..=SPACED).contains(&spaced.len()), "{spaced:?}");
        assert!(spaced.windows(2).all(|pair| pair[1] - pair[0] == sample.distance));
        assert!(spaced.last().is_some_and(|&row| row + sample.distance >= 10_000));
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
