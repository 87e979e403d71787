//! Pedestrians to show, chosen by a rule.

use std::collections::BTreeMap;

use anyhow::Result;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use shafer_data::dataset::Window;
use shafer_nets::behaviour::{Encoded, Point};

use super::measure::Evaluator;
use crate::interrupt;

/// The number of pedestrians shown of a scene.
const SHOWN: usize = 6;

/// A pedestrian with the paths that the network predicts, in metres relative to the present position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exemplar {
    /// The pedestrian's number in the scene.
    pub(crate) agent: u32,
    pub(crate) frame: u32,
    /// Up to the present.
    pub(crate) history: Vec<Point>,
    pub(crate) truth: Vec<Point>,
    /// The mean path of every joint class.
    pub(crate) paths: Vec<Vec<Point>>,
    /// The joint classes that each method keeps, by decreasing probability.
    pub(crate) kept: BTreeMap<String, Vec<usize>>,
    /// The root mean square distance of the ends of all mean paths from their mean.
    pub(crate) spread: f64,
}

impl Exemplar {
    /// Of all pedestrians.
    pub(super) fn all(evaluator: &Evaluator<'_>, windows: &[Window]) -> Result<Vec<Self>> {
        let encoded = evaluator.encode(windows)?;
        let exemplar = |(place, window)| Self::new(evaluator, &encoded, place, window);
        windows.iter().enumerate().map(exemplar).collect()
    }

    fn new(
        evaluator: &Evaluator<'_>,
        encoded: &Encoded,
        place: usize,
        window: &Window,
    ) -> Result<Self> {
        let paths = evaluator.all_means(encoded, place)?;
        let distributions = evaluator.distributions(encoded, place)?;
        let names = evaluator.methods.iter().map(|(_, method)| method.name().to_owned());
        let history = window.history.iter().map(|&[x, y, ..]| [x, y]).collect();
        Ok(Self {
            agent: window.agent,
            frame: window.frame,
            history: millimetres(history),
            truth: millimetres(window.truth()),
            spread: spread(&paths),
            paths: paths.into_iter().map(millimetres).collect(),
            kept: names.zip(distributions.into_iter().map(|d| d.ranked)).collect(),
        })
    }

    /// The pedestrians with the longest futures are sorted by spread and cut into six parts of equal size; the middle
    /// one of each part is shown.
    pub(super) fn chosen(
        evaluator: &Evaluator<'_>,
        encoded: &Encoded,
        windows: &[Window],
    ) -> Result<Vec<Self>> {
        let most = windows.iter().map(|window| window.future.len()).max().unwrap_or(0);
        // There may be tens of thousands of pedestrians, so only their spreads are kept.
        let mut spreads = windows
            .par_iter()
            .enumerate()
            .filter(|(_, window)| window.future.len() == most)
            .map(|(place, _)| {
                interrupt::check()?;
                Ok((spread(&evaluator.all_means(encoded, place)?), place))
            })
            .collect::<Result<Vec<_>>>()?;
        spreads.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (count, shown) = (spreads.len(), SHOWN.min(spreads.len()));
        let place = |part: usize| spreads[(2 * part + 1) * count / (2 * shown)].1;
        let exemplar = |place: usize| Self::new(evaluator, encoded, place, &windows[place]);
        (0..shown).map(place).map(exemplar).collect()
    }
}

fn spread(paths: &[Vec<Point>]) -> f64 {
    let ends: Vec<Point> = paths.iter().filter_map(|path| path.last().copied()).collect();
    let n = ends.len().max(1) as f64;
    let centre = [0, 1].map(|axis| ends.iter().map(|end| end[axis]).sum::<f64>() / n);
    let square = |end: &Point| (end[0] - centre[0]).powi(2) + (end[1] - centre[1]).powi(2);
    (ends.iter().map(square).sum::<f64>() / n).sqrt()
}

/// More precise than a drawing, and short in a file.
fn millimetres(path: Vec<Point>) -> Vec<Point> {
    path.into_iter().map(|point| point.map(|x| (1e3 * x).round() / 1e3)).collect()
}
