//! The rows with the highest scores.

use serde::Serialize;

/// The number of rows in the list.
const MOST: usize = 5;

/// A row and its score.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Scored {
    pub(crate) row: usize,
    pub(crate) score: f64,
}

/// The rows with the highest scores, in descending order.
#[derive(Clone, Debug, Default)]
pub(super) struct Top(Vec<Scored>);

impl Top {
    /// Adds a row unless its score is 0. The first of equal scores comes first.
    pub(super) fn add(&mut self, row: usize, score: f64) {
        // Also false for NaN.
        if score > 0.0 {
            let place = self.0.partition_point(|other| other.score >= score);
            if place < MOST {
                self.0.truncate(MOST - 1);
                self.0.insert(place, Scored { row, score });
            }
        }
    }

    pub(super) fn has(&self, row: usize) -> bool {
        self.0.iter().any(|scored| scored.row == row)
    }

    pub(super) fn into_rows(self) -> Vec<Scored> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_scores_of_all() {
        let scores: Vec<f64> = (0..1000).map(|row| f64::from(row * 7919 % 500)).collect();
        let mut top = Top::default();
        top.add(2000, f64::NAN);
        top.add(2001, 0.0);
        for (row, &score) in scores.iter().enumerate() {
            top.add(row, score);
        }
        let mut sorted: Vec<usize> = (0..1000).collect();
        // Stable: of equal scores the first row comes first.
        sorted.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        assert!(top.has(sorted[0]) && !top.has(sorted[MOST]));
        let found = top.into_rows();
        assert!(found.iter().map(|scored| scored.row).eq(sorted[..MOST].iter().copied()));
        assert!(found.iter().all(|scored| scored.score == scores[scored.row]));
    }

    #[test]
    fn few_rows_are_all_listed() {
        let mut top = Top::default();
        top.add(3, 1.0);
        top.add(4, 2.0);
        let rows = [Scored { row: 4, score: 2.0 }, Scored { row: 3, score: 1.0 }];
        assert_eq!(top.into_rows(), rows);
    }
}
