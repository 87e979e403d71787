//! Trade-off curves: classes kept against probability dropped, over a range of parameters.

use rayon::prelude::*;
use serde::Serialize;
use shafer::{Element, Logits, Method};

use super::Output;
use super::measure::rest;

/// The curve of one method.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Curve {
    pub(crate) method: &'static str,
    pub(crate) parameter: &'static str,
    pub(crate) points: Vec<CurvePoint>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct CurvePoint {
    /// The value of the parameter.
    pub(crate) value: f64,
    /// Classes kept, mean over rows.
    pub(crate) kept: f64,
    /// Softmax probability of the dropped classes, mean over rows.
    pub(crate) softmax_mass_dropped: f64,
}

/// The sums of all points.
pub(super) struct Curves(Vec<CurveTotals>);

struct CurveTotals {
    parameter: &'static str,
    points: Vec<PointTotals>,
}

struct PointTotals {
    value: f64,
    method: Method,
    rows: u64,
    kept: u64,
    dropped: f64,
}

impl Curves {
    pub(super) fn new() -> shafer::Result<Self> {
        const ROUNDS: usize = 8;
        const SHARES: [f64; 10] = [1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5];
        const ALPHAS: [f64; 6] = [1.1, 1.2, 1.35, 1.5, 1.75, 2.0];
        let rounds = (1..=ROUNDS).map(|n| Ok(point(n as f64, Method::evidential(n)?)));
        let shares = SHARES.into_iter().map(|p| Ok(point(p, Method::min_p(p)?)));
        let alphas = ALPHAS.into_iter().map(|alpha| Ok(point(alpha, Method::entmax(alpha)?)));
        let curve = |parameter, points| CurveTotals { parameter, points };
        Ok(Self(vec![
            curve("rounds", rounds.collect::<shafer::Result<_>>()?),
            curve("p", shares.collect::<shafer::Result<_>>()?),
            curve("alpha", alphas.collect::<shafer::Result<_>>()?),
        ]))
    }

    /// Adds the rows of a chunk. `output` transforms them.
    pub(super) fn add<E: Element>(
        &mut self,
        input: &Logits<'_, E>,
        softmax: &[f64],
        mut output: impl FnMut(Method, &mut dyn FnMut(&Output<'_, E>)) -> shafer::Result<()>,
    ) -> shafer::Result<()> {
        let classes = input.classes();
        let mut rows: Vec<Option<(usize, f64)>> = Vec::new();
        for point in self.0.iter_mut().flat_map(|curve| &mut curve.points) {
            output(point.method, &mut |output| {
                let row = |(row, softmax): (usize, &[f64])| {
                    let (kept, _) = output.row(row).ok()?;
                    let mass: f64 = kept.iter().map(|&class| softmax[class as usize]).sum();
                    Some((kept.len(), rest(mass)))
                };
                softmax.par_chunks_exact(classes).enumerate().map(row).collect_into_vec(&mut rows);
            })?;
            for (kept, dropped) in rows.iter().flatten() {
                point.rows += 1;
                point.kept += *kept as u64;
                point.dropped += dropped;
            }
        }
        Ok(())
    }

    /// Points without rows are left out.
    pub(super) fn report(self) -> Vec<Curve> {
        let point = |totals: &PointTotals| {
            let rows = totals.rows as f64;
            (totals.rows > 0).then(|| CurvePoint {
                value: totals.value,
                kept: totals.kept as f64 / rows,
                softmax_mass_dropped: totals.dropped / rows,
            })
        };
        let curve = |totals: &CurveTotals| Curve {
            method: totals.points.first().map_or("", |point| point.method.name()),
            parameter: totals.parameter,
            points: totals.points.iter().filter_map(point).collect(),
        };
        self.0.iter().map(curve).collect()
    }
}

fn point(value: f64, method: Method) -> PointTotals {
    PointTotals { value, method, rows: 0, kept: 0, dropped: 0.0 }
}
