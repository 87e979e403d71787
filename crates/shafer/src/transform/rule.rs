//! What a transform does to a row, as data; and what the choice of its classes leaves behind.

use super::{evidential, min_p, project, top_k, top_p};
use crate::error::{Error, Result};
use crate::kernel::{Cut, Float, LONG, Loops, Rate, SLACK, TileRule};

/// One of the transforms, with its parameters, which have been checked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
    Softmax,
    Evidential { rounds: usize },
    MinP { p: f64 },
    TopK { k: usize },
    TopP { p: f64 },
    Project(project::Projection),
}

/// The classes that a row keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selection<F> {
    pub(crate) kept: Kept<F>,
    /// See [`super::Report::vacuous`].
    pub(crate) vacuous: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kept<F> {
    /// Those above a threshold, with the exponentials of their logits as weights.
    Above(Cut<F>),
    /// The first so many of the scratch memory's columns, with its values as probabilities.
    Listed(usize),
}

impl<F> Selection<F> {
    pub(crate) fn above(threshold: F, max: F) -> Self {
        Self { kept: Kept::Above(Cut { threshold, max }), vacuous: false }
    }

    pub(crate) fn listed(count: usize) -> Self {
        Self { kept: Kept::Listed(count), vacuous: false }
    }
}

/// Memory that a row needs for a while, allocated once for many, and only where it is needed: where one row is
/// all there is, to have it would take as long as the transform.
#[derive(Debug, Default)]
pub(crate) struct Scratch<F> {
    pub(crate) columns: Vec<u32>,
    pub(crate) values: Vec<F>,
    pub(crate) work: Vec<F>,
    pub(crate) doubles: Vec<f64>,
    pub(crate) pairs: Vec<(F, F)>,
    /// How many logits lie between a row and the next one of the same thread.
    pub(crate) skipped: usize,
}

impl<F: Float> Scratch<F> {
    /// Makes room in `columns` and `values` for what a row of so many classes may keep.
    pub(crate) fn make_room(&mut self, classes: usize) {
        if self.values.len() < classes + SLACK {
            self.columns.resize(classes + SLACK, 0);
            self.values.resize(classes + SLACK, F::default());
        }
    }

    /// Lists the values of `row` above `threshold`; their number.
    pub(crate) fn list(&mut self, row: &[F], threshold: F) -> usize {
        self.make_room(row.len());
        let ahead = row.len() + self.skipped;
        F::LOOPS.compact(row, threshold, &mut self.columns, &mut self.values, ahead)
    }

    /// Drops listed entries, in place and in order; the number of those left.
    pub(crate) fn retain(&mut self, count: usize, mut keep: impl FnMut(F) -> bool) -> usize {
        let mut left = 0;
        for i in 0..count {
            let value = self.values[i];
            self.columns[left] = self.columns[i];
            self.values[left] = value;
            left += usize::from(keep(value));
        }
        left
    }

    /// Turns the listed logits into probabilities.
    pub(crate) fn normalise(&mut self, count: usize, max: F, rate: Rate) -> Selection<F> {
        let sum = F::LOOPS.exp_all(&mut self.values, count, max, rate);
        F::LOOPS.scale(&mut self.values[..count], 1.0 / sum, None);
        Selection::listed(count)
    }
}

impl Rule {
    /// What can only be checked when the number of classes is known.
    pub(crate) fn check(&self, classes: usize) -> Result<()> {
        match *self {
            Rule::TopK { k } if k > classes => Err(Error::Parameter {
                name: "k",
                value: k as f64,
                rule: "must not be greater than the number of classes",
            }),
            _ => Ok(()),
        }
    }

    /// The same for many short rows at once, where there is such a way.
    pub(crate) fn tile(&self, rate: Rate) -> Option<TileRule> {
        match *self {
            Rule::Softmax => Some(TileRule::All),
            Rule::Evidential { rounds } => Some(TileRule::AboveMean { rounds }),
            Rule::MinP { p } => Some(TileRule::NearMax { distance: min_p::distance(p, rate) }),
            Rule::TopK { .. } | Rule::TopP { .. } | Rule::Project(_) => None,
        }
    }

    /// Whether what is kept of a row is best packed at once, and not block by block: in short rows, and where nothing
    /// is dropped, nothing is saved by that.
    pub(crate) fn packs_at_once(&self, classes: usize) -> bool {
        classes < LONG || matches!(self, Rule::Softmax)
    }

    /// Checks a row and chooses its classes. An error speaks of row 0.
    #[inline(always)]
    pub(crate) fn select<F: Float>(
        &self,
        row: &[F],
        rate: Rate,
        scratch: &mut Scratch<F>,
        loops: impl Loops<F>,
    ) -> Result<Selection<F>> {
        match *self {
            Rule::Softmax => Ok(Selection::above(F::NEG_INFINITY, checked_max(row, loops)?)),
            Rule::Evidential { rounds } => evidential::select(rounds, row, loops),
            Rule::MinP { p } => min_p::select(p, row, rate, loops),
            Rule::TopK { k } => top_k::select(k, row, rate, scratch),
            Rule::TopP { p } => top_p::select(p, row, rate, scratch),
            Rule::Project(projection) => projection.select(row, rate, scratch),
        }
    }

    /// The vector-Jacobian product of a row.
    pub(crate) fn vjp<F: Float>(
        &self,
        row: &[F],
        p: &[F],
        upstream: &[F],
        rate: Rate,
        out: &mut [F],
    ) {
        if let Rule::Project(projection) = *self {
            return projection.vjp(row, p, upstream, rate, out);
        }
        // The Jacobian of an exponential family with a fixed support, (diag(p) - p p^T) / T.
        let mean: f64 = p.iter().zip(upstream).map(|(p, g)| p.to_f64() * g.to_f64()).sum();
        for ((out, &p), &g) in out.iter_mut().zip(p).zip(upstream) {
            *out = F::from_f64(rate.exact() * p.to_f64() * (g.to_f64() - mean));
        }
    }
}

/// The maximum of a row in which every logit is finite or masked, and not all are masked.
#[inline(always)]
pub(crate) fn checked_max<F: Float>(row: &[F], loops: impl Loops<F>) -> Result<F> {
    let scan = loops.max(row);
    if scan.finite { Ok(scan.max) } else { check_infinities(row, scan.max, loops) }
}

/// `max`, the maximum of a row that holds infinities, or sums so large that they look like it.
#[inline(always)]
pub(crate) fn check_infinities<F: Float>(row: &[F], max: F, loops: impl Loops<F>) -> Result<F> {
    if !loops.below_infinity(row) {
        let rule = "must be finite, or -inf for a masked class";
        let bad = |&(_, value): &(usize, f64)| value.is_nan() || value == f64::INFINITY;
        let found = row.iter().map(|x| x.to_f64()).enumerate().find(bad);
        let (column, value) = found.unwrap_or((0, f64::NAN));
        return Err(Error::Value { what: "logit", row: 0, column, value, rule });
    }
    if max == F::NEG_INFINITY {
        return Err(Error::Row {
            row: 0,
            rule: "every class is masked, but at least one must be left",
        });
    }
    Ok(max)
}
