//! How a method chooses the classes of a row.

use std::num::NonZeroUsize;

use super::project::Projection;
use super::{evidential, min_evidence, min_p, min_probability, top_k, top_n_sigma, top_p};
use crate::element::Element;
use crate::error::{Error, Result, check_parameter};
use crate::kernel::{Above, Cut, Entries, Float, Loops, Rate, SLACK, Staging, TileRule};

/// The methods, with their parameters, which have been checked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    Evidential { rounds: NonZeroUsize },
    Softmax,
    Sparsemax,
    SparsegenLin { lambda: f64 },
    SparsegenHg { q: f64 },
    Entmax { alpha: f64 },
    TopK { k: NonZeroUsize },
    TopP { p: f64 },
    MinP { p: f64 },
    MinProbability { p: f64 },
    MinEvidence { w: f64 },
    TopNSigma { n: f64 },
}

/// The choice for one row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selection<F> {
    pub(crate) kept: Kept<F>,
    /// See [`super::RowCounts::vacuous`].
    pub(crate) vacuous: bool,
}

/// The classes that a row keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kept<F> {
    /// Those above a threshold, with the exponentials of their logits as weights.
    Above(Cut<F>),
    /// The first entries of the scratch memory: columns, and values as probabilities.
    Listed(usize),
}

impl<F: Float> Selection<F> {
    pub(crate) fn above(threshold: F, max: F) -> Self {
        Self { kept: Kept::Above(Cut::keeping_best(threshold, max)), vacuous: false }
    }

    pub(crate) fn listed(count: usize) -> Self {
        Self { kept: Kept::Listed(count), vacuous: false }
    }
}

/// Buffers for the work on one row, reused from row to row and allocated on first use: for a single
/// row, an allocation takes as long as the method.
#[derive(Debug, Default)]
pub(crate) struct Scratch<F> {
    pub(crate) columns: Vec<u32>,
    pub(crate) values: Vec<F>,
    pub(crate) work: Vec<F>,
    pub(crate) doubles: Vec<f64>,
    pub(crate) pairs: Vec<(F, F)>,
    pub(crate) staging: Staging,
}

impl<F: Float> Scratch<F> {
    /// Lists the values of `row` above `threshold`; returns their number.
    #[inline(always)]
    pub(crate) fn list(&mut self, row: &[F], threshold: F, loops: impl Loops<F>) -> usize {
        if self.values.len() < row.len() + SLACK {
            self.columns.resize(row.len() + SLACK, 0);
            self.values.resize(row.len() + SLACK, F::default());
        }
        let entries = Entries { columns: &mut self.columns, values: &mut self.values };
        loops.pack(row, threshold, &mut self.staging, entries)
    }

    /// Drops listed entries, in place and in order; returns the number of those left.
    #[inline(always)]
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

    /// Writes the exponentials of the whole row to `work`; returns their sum.
    #[inline(always)]
    pub(crate) fn weigh(&mut self, row: &[F], max: F, rate: Rate, loops: impl Loops<F>) -> f64 {
        self.work.clear();
        self.work.resize(row.len(), F::default());
        loops.exp_above(row, &mut self.work, Cut { threshold: F::NEG_INFINITY, max }, rate)
    }

    /// Turns the listed logits into probabilities.
    #[inline(always)]
    pub(crate) fn normalise(
        &mut self,
        count: usize,
        max: F,
        rate: Rate,
        loops: impl Loops<F>,
    ) -> Selection<F> {
        self.work.clear();
        self.work.extend_from_slice(&self.values[..count]);
        let values = &mut self.values[..count];
        let sum =
            loops.exp_above(&self.work, values, Cut { threshold: F::NEG_INFINITY, max }, rate);
        loops.scale(values, 1.0 / sum, &[]);
        Selection::listed(count)
    }
}

impl Rule {
    /// What can only be checked when the number of classes is known.
    pub(crate) fn check(self, classes: usize) -> Result<()> {
        let Rule::TopK { k } = self else { return Ok(()) };
        let rule = "must not be greater than the number of classes";
        check_parameter("k", k.get() as f64, k.get() <= classes, rule).map(drop)
    }

    /// The rule for tiles of short rows, if tiles are faster for this number of rows.
    ///
    /// A row must have the same bits with a tile as without. So only methods that list what they keep,
    /// whose dense and compressed rows come from the same list, may do without one: sums over the
    /// whole row and over what is packed are taken in different orders.
    pub(crate) fn tile(self, rate: Rate, rows: usize) -> Option<TileRule> {
        /// A tile takes as long for one row as for all its lanes.
        const FEW: usize = 4;
        if let Some(projection) = Projection::of(self) {
            return if rows < FEW { None } else { projection.tile(rate) };
        }
        match self {
            Rule::Evidential { rounds } => Some(TileRule::AboveMean { rounds: rounds.get() }),
            Rule::MinP { p } => Some(TileRule::NearMax { distance: min_p::distance(p, rate) }),
            Rule::MinEvidence { w } => {
                Some(TileRule::FromMean { distance: min_evidence::distance(w, rate) })
            }
            Rule::TopNSigma { n } => Some(TileRule::NearMaxDeviations { n }),
            Rule::TopK { .. } | Rule::TopP { .. } | Rule::MinProbability { .. } => None,
            // Entmax with an alpha of 1 is softmax.
            _ => Some(TileRule::All),
        }
    }

    /// Checks a row and chooses its classes. An error names row 0.
    #[inline(always)]
    pub(crate) fn select<F: Float>(
        self,
        row: &[F],
        rate: Rate,
        scratch: &mut Scratch<F>,
        loops: impl Loops<F>,
    ) -> Result<Selection<F>> {
        if let Some(projection) = Projection::of(self) {
            return projection.select(row, rate, scratch, loops);
        }
        match self {
            Rule::Evidential { rounds } => evidential::select(rounds.get(), row, loops),
            Rule::MinP { p } => min_p::select(p, row, rate, loops),
            Rule::MinProbability { p } => min_probability::select(p, row, rate, scratch, loops),
            Rule::MinEvidence { w } => min_evidence::select(w, row, rate, loops),
            Rule::TopNSigma { n } => top_n_sigma::select(n, row, loops),
            Rule::TopK { k } => top_k::select(k.get(), row, rate, scratch, loops),
            Rule::TopP { p } => top_p::select(p, row, rate, scratch, loops),
            // Softmax, and entmax with an alpha of 1.
            _ => Ok(Selection::above(F::NEG_INFINITY, checked_max(row, loops)?)),
        }
    }

    /// The vector-Jacobian product of a row.
    pub(crate) fn vjp<F: Float>(
        self,
        row: &[F],
        p: &[F],
        upstream: &[F],
        rate: Rate,
        out: &mut [F],
    ) {
        if let Some(projection) = Projection::of(self) {
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
    let scan = loops.scan::<false>(row);
    if !scan.finite {
        check_row(row, 0)?;
    }
    Ok(scan.max)
}

/// As [`checked_max`], with sum and number of the logits that are not masked.
#[inline(always)]
pub(crate) fn checked_sum<F: Float>(row: &[F], loops: impl Loops<F>) -> Result<(F, Above)> {
    let scan = loops.scan::<true>(row);
    if scan.finite {
        return Ok((scan.max, Above { sum: scan.sum, count: row.len() }));
    }
    check_row(row, 0)?;
    Ok((scan.max, loops.above(row, F::NEG_INFINITY)))
}

/// Checks that every logit of a row is finite or masked, and that not all are masked.
#[inline(always)]
pub(crate) fn check_row<E: Element>(logits: &[E], row: usize) -> Result<()> {
    // No early exit, so that the compiler vectorises it.
    if !logits.iter().fold(true, |all, x| all & (x.to_f64() < f64::INFINITY)) {
        let bad = |&(_, value): &(usize, f64)| value.is_nan() || value == f64::INFINITY;
        let found = logits.iter().map(|x| x.to_f64()).enumerate().find(bad);
        let Some((column, value)) = found else { unreachable!("some value is not below infinity") };
        let rule = "must be finite, or -inf for a masked class";
        return Err(Error::Value { what: "logit", row, column, value, rule });
    }
    if logits.iter().all(|x| x.to_f64() == f64::NEG_INFINITY) {
        let rule = "every class is masked, but at least one must be left";
        return Err(Error::Row { row, rule });
    }
    Ok(())
}
