//! Joint classes from the most to the least probable, without enumerating them.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::iter::FusedIterator;

use super::scaled::Scaled;
use super::{Joint, Product, Variable};

/// The joint classes of a [`Product`] in descending order of probability: see
/// [`Product::iter_best`].
///
/// ```
/// let product = shafer::Product::dense(&[[0.75, 0.25]; 2])?;
/// let mut best: shafer::BestJoints<'_> = product.iter_best();
/// assert_eq!(best.next().map(|joint| joint.probability), Some(0.5625));
/// assert_eq!(best.count(), 3);
/// # Ok::<(), shafer::Error>(())
/// ```
//
// A joint class of positive probability is a vector of ranks, one a variable. Its parent has its
// last nonzero rank one lower, so that from the vector of zeros each is reached exactly once. A
// parent is at least as probable (rounding is monotone), and if equal by an equal factor then
// lexicographically smaller: whenever it is the turn of a joint class, its parent has been
// returned and so it is in the frontier.
#[derive(Clone, Debug)]
pub struct BestJoints<'a> {
    product: &'a Product,
    /// Joint classes not yet returned whose parents have been.
    frontier: BTreeSet<Candidate>,
    /// The most items still to be taken: the frontier needs to hold no more.
    limit: usize,
    zeros: Zeros,
}

/// Where the enumeration of joint classes of probability zero is. They come last, and as one large
/// tie: walking them by rank would not give lexicographic order, walking positions does.
#[derive(Clone, Debug)]
enum Zeros {
    Ahead,
    /// The positions in the supports of the one returned last.
    At(Vec<usize>),
    Done,
}

impl Iterator for BestJoints<'_> {
    type Item = Joint;

    fn next(&mut self) -> Option<Joint> {
        if self.limit == 0 {
            return None;
        }
        let Some(best) = self.frontier.pop_first() else { return self.next_zero() };
        self.limit = self.limit.saturating_sub(1);
        let last = best.ranks.iter().rposition(|&rank| rank > 0).unwrap_or(0);
        for at in last..best.ranks.len() {
            let rank = best.ranks[at] + 1;
            if rank < self.product.variables[at].ranked.len() {
                let mut ranks = best.ranks.clone();
                ranks[at] = rank;
                self.frontier.insert(Candidate::new(self.product, ranks));
                if self.frontier.len() > self.limit {
                    self.frontier.pop_last();
                }
            }
        }
        Some(Joint { classes: best.classes, probability: best.probability.to_f64() })
    }
}

impl FusedIterator for BestJoints<'_> {}

impl<'a> BestJoints<'a> {
    pub(super) fn new(product: &'a Product) -> Self {
        let root = Candidate::new(product, vec![0; product.variables.len()]);
        let frontier = BTreeSet::from([root]);
        Self { product, frontier, limit: usize::MAX, zeros: Zeros::Ahead }
    }

    /// Promises that at most `limit` more items will be taken.
    pub(super) fn limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    fn next_zero(&mut self) -> Option<Joint> {
        let variables = &self.product.variables;
        let next = match &self.zeros {
            Zeros::Ahead => first_zero(variables, Vec::new()),
            Zeros::At(positions) => after_zero(variables, positions),
            Zeros::Done => None,
        };
        let Some(positions) = next else {
            self.zeros = Zeros::Done;
            return None;
        };
        let classes = variables.iter().zip(&positions).map(|(v, &at)| v.classes[at]).collect();
        self.zeros = Zeros::At(positions);
        Some(Joint { classes, probability: 0.0 })
    }
}

/// The lexicographically first joint class of probability zero that starts with `prefix`.
fn first_zero(variables: &[Variable], prefix: Vec<usize>) -> Option<Vec<usize>> {
    let fixed = prefix.len();
    let mut positions = prefix;
    positions.resize(variables.len(), 0);
    if zeros(variables, &positions).next().is_none() {
        // The latest variable that has a zero takes its first one.
        let has_zero = |at: &usize| variables[*at].first_zero.is_some();
        let at = (fixed..variables.len()).rev().find(has_zero)?;
        positions[at] = variables[at].first_zero?;
    }
    Some(positions)
}

/// The joint class of probability zero that follows `positions` in lexicographic order.
fn after_zero(variables: &[Variable], positions: &[usize]) -> Option<Vec<usize>> {
    let earliest = zeros(variables, positions).next()?;
    // Whether a variable after the current one has a zero to offer.
    let mut later = false;
    for (at, variable) in variables.iter().enumerate().rev() {
        let mut next = positions[at] + 1..variable.values.len();
        let position = if later || earliest < at {
            next.next()
        } else {
            next.find(|&position| variable.values[position] == 0.0)
        };
        if let Some(position) = position {
            let mut prefix = positions[..at].to_vec();
            prefix.push(position);
            return first_zero(variables, prefix);
        }
        later |= variable.first_zero.is_some();
    }
    None
}

/// The variables whose class has probability zero.
fn zeros(variables: &[Variable], positions: &[usize]) -> impl Iterator<Item = usize> {
    (0..variables.len()).filter(|&at| variables[at].values[positions[at]] == 0.0)
}

/// A joint class of positive probability on the frontier.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Candidate {
    probability: Scaled,
    classes: Vec<usize>,
    ranks: Vec<usize>,
}

impl Candidate {
    /// The joint class that takes the class of each given rank.
    fn new(product: &Product, ranks: Vec<usize>) -> Self {
        let at = || product.variables.iter().zip(&ranks).map(|(v, &rank)| (v, v.ranked[rank]));
        let probability = Scaled::product(at().map(|(variable, at)| variable.values[at]));
        let classes = at().map(|(variable, at)| variable.classes[at]).collect();
        Self { probability, classes, ranks }
    }
}

impl Ord for Candidate {
    /// The most probable first, equals by their classes (which determine the ranks).
    fn cmp(&self, other: &Self) -> Ordering {
        let descending = other.probability.cmp(&self.probability);
        descending.then_with(|| self.classes.cmp(&other.classes))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
