//! Plots of numbers with errors: curves with bands, points with error bars, columns.

use super::axis::ticks;
use super::canvas::{Anchor, Drawing, Fill, Point, Stroke, TextStyle};
use super::colour::{Colour, GRID, INK, SOFT};
use super::{colour, font};
use crate::method;

/// One plot of a figure.
pub(crate) struct Chart<'a> {
    pub(crate) title: String,
    pub(crate) x_label: &'a str,
    pub(crate) y_label: String,
    /// Positions with labels; `None` for round numbers.
    pub(crate) x_ticks: Option<Vec<(f64, String)>>,
    pub(crate) x_range: (f64, f64),
    /// The upper end; the lower one is 0.
    pub(crate) y_most: f64,
    pub(crate) marks: Marks,
    pub(crate) series: Vec<Series>,
}

/// How errors are drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Marks {
    /// As a band around a curve.
    Band,
    /// As error bars at points.
    Bars,
    /// Not at all: the first series is columns, and the others are marks across them.
    Columns,
}

/// Points of one colour.
pub(crate) struct Series {
    pub(crate) line: LineStyle,
    pub(crate) points: Vec<Measured>,
}

/// The style of a line in a plot and in its legend.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineStyle {
    pub(crate) colour: Colour,
    pub(crate) dash: &'static [f64],
    pub(crate) width: f64,
}

impl LineStyle {
    /// How a method is drawn. Dashes and widths differ too: colours alone are not enough for everybody.
    pub(crate) fn of_method(title: &str) -> Self {
        let dash: &[f64] = match title.split(' ').next().unwrap_or_default() {
            method::SOFTMAX | "sparsegen-hg" | "top-p" => &[7.0, 3.0],
            "entmax" | "min-p" | "min-probability" | "min-evidence" => &[2.0, 2.5],
            "sparsegen-lin" | "top-k" | "top-n-sigma" => &[9.0, 3.0, 2.0, 3.0],
            _ => &[],
        };
        let width = if title == method::EVIDENTIAL { 2.2 } else { 1.6 };
        Self { colour: colour::of_method(title), dash, width }
    }

    pub(crate) fn stroke(self) -> Stroke {
        Stroke { colour: self.colour, width: self.width, dash: self.dash }
    }
}

/// A number with its error.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    pub(crate) x: f64,
    pub(crate) mean: Option<f64>,
    pub(crate) se: Option<f64>,
    /// Whether some of the values are infinite, and not in the mean.
    pub(crate) infinite: bool,
}

impl Measured {
    fn ends(&self) -> Option<(f64, f64)> {
        let mean = self.mean?;
        let se = self.se.unwrap_or(0.0);
        Some((mean - se, mean + se))
    }
}

/// The largest upper end of an error.
pub(crate) fn largest<'a>(series: impl Iterator<Item = &'a Series>) -> f64 {
    let points = series.flat_map(|series| &series.points);
    points.filter_map(Measured::ends).map(|(_, high)| high).fold(0.0, f64::max)
}

/// The size of a plot. It fits on the screen of a telephone without being scaled down.
pub(crate) const WIDTH: f64 = 320.0;
const HEIGHT: f64 = 240.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 44.0;
const RIGHT: f64 = 14.0;
const WORDS: f64 = 11.0;
/// Above the plot, one lane for each series with infinite values.
const LANE: f64 = 4.0;

impl Chart<'_> {
    pub(crate) fn draw(&self) -> Drawing {
        let mut drawing = Drawing::new(WIDTH, HEIGHT);
        let y_most = if self.y_most > 0.0 { 1.06 * self.y_most } else { 1.0 };
        let y_ticks = ticks(0.0, y_most, 5);
        let label = TextStyle::new(WORDS, INK);
        let widest =
            y_ticks.iter().map(|(_, label)| font::width(label, WORDS, false)).fold(0.0, f64::max);
        let left = 24.0 + widest + 6.0;
        let area = Area {
            left,
            right: WIDTH - RIGHT,
            top: TOP,
            bottom: HEIGHT - BOTTOM,
            x: self.x_range,
            y_most,
        };
        let middle = f64::midpoint(area.left, area.right);
        let title = TextStyle::new(12.5, INK).bold().anchor(Anchor::Middle);
        drawing.text([middle, 17.0], title, self.title.as_str());
        let soft = TextStyle::new(WORDS, SOFT).anchor(Anchor::Middle);
        drawing.text([middle, HEIGHT - 8.0], soft, self.x_label);
        let side = [14.0, f64::midpoint(area.top, area.bottom)];
        drawing.text(side, soft.upright(), self.y_label.as_str());

        for (value, words) in &y_ticks {
            let y = area.y(*value);
            drawing.line(&[[area.left, y], [area.right, y]], Stroke::new(GRID, 1.0));
            drawing.text([area.left - 6.0, y + 4.0], label.anchor(Anchor::End), words.as_str());
        }
        let (low, high) = self.x_range;
        for (value, words) in self.x_ticks.clone().unwrap_or_else(|| ticks(low, high, 4)) {
            let x = area.x(value);
            drawing.line(&[[x, area.bottom], [x, area.bottom + 4.0]], Stroke::new(INK, 1.0));
            drawing.text([x, area.bottom + 17.0], label.anchor(Anchor::Middle), words);
        }
        let corner = [area.left, area.bottom];
        let axes = [[area.left, area.top], corner, [area.right, area.bottom]];
        drawing.line(&axes, Stroke::new(INK, 1.0));

        match self.marks {
            // All bands lie under all curves.
            Marks::Band => {
                for series in &self.series {
                    area.bands(&mut drawing, series);
                }
                for series in &self.series {
                    area.curves(&mut drawing, series);
                }
            }
            Marks::Bars => {
                let count = self.series.len() as f64;
                for (place, series) in self.series.iter().enumerate() {
                    // Side by side, so that none hides another.
                    let aside = 3.0 * (place as f64 - (count - 1.0) / 2.0);
                    area.points(&mut drawing, series, aside);
                }
            }
            Marks::Columns => {
                for (place, series) in self.series.iter().enumerate() {
                    area.columns(&mut drawing, series, place == 0);
                }
            }
        }
        let infinite = self.series.iter().filter(|s| s.points.iter().any(|point| point.infinite));
        for (lane, series) in infinite.enumerate() {
            let y = area.top - LANE * (lane as f64 + 1.0);
            for point in series.points.iter().filter(|point| point.infinite) {
                let at = [area.x(point.x) - 0.75, y];
                drawing.rectangle(at, 1.5, LANE - 1.0, series.line.colour);
            }
        }
        drawing
    }
}

/// The rectangle of the plot, with its scales.
struct Area {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    x: (f64, f64),
    y_most: f64,
}

impl Area {
    fn x(&self, value: f64) -> f64 {
        let (low, high) = self.x;
        let share = if high > low { (value - low) / (high - low) } else { 0.5 };
        self.left + share * (self.right - self.left)
    }

    /// Clamped to the plot: a band may reach below 0.
    fn y(&self, value: f64) -> f64 {
        self.bottom - (value / self.y_most).clamp(0.0, 1.0) * (self.bottom - self.top)
    }

    /// Runs of points that have a mean.
    fn runs(series: &Series) -> impl Iterator<Item = &[Measured]> {
        series.points.split(|point| point.mean.is_none()).filter(|run| !run.is_empty())
    }

    fn bands(&self, drawing: &mut Drawing, series: &Series) {
        for run in Self::runs(series) {
            let edge = |upper: bool| {
                let end = move |(low, high)| if upper { high } else { low };
                run.iter().filter_map(move |p| Some([self.x(p.x), self.y(end(p.ends()?))]))
            };
            let mut points: Vec<Point> = edge(true).collect();
            points.extend(edge(false).collect::<Vec<_>>().into_iter().rev());
            drawing.area(points, Fill { colour: series.line.colour, opacity: 0.22 });
        }
    }

    fn curves(&self, drawing: &mut Drawing, series: &Series) {
        for run in Self::runs(series) {
            let points: Vec<Point> =
                run.iter().filter_map(|p| Some([self.x(p.x), self.y(p.mean?)])).collect();
            // A line of a single point is invisible.
            match points[..] {
                [[x, y]] => drawing.rectangle([x - 2.5, y - 2.5], 5.0, 5.0, series.line.colour),
                _ => drawing.line(&points, series.line.stroke()),
            }
        }
    }

    /// A column for each integer.
    fn columns(&self, drawing: &mut Drawing, series: &Series, filled: bool) {
        let width = self.x(1.0) - self.x(0.0);
        for point in &series.points {
            let Some(mean) = point.mean else { continue };
            let (x, y) = (self.x(point.x), self.y(mean));
            if filled {
                let at = [x - 0.4 * width, y];
                drawing.rectangle(at, 0.8 * width, self.bottom - y, series.line.colour);
            } else {
                let ends = [[x - 0.7 * width, y], [x + 0.7 * width, y]];
                drawing.line(&ends, series.line.stroke());
            }
        }
    }

    fn points(&self, drawing: &mut Drawing, series: &Series, aside: f64) {
        let colour = series.line.colour;
        for run in Self::runs(series) {
            let mut line = Vec::new();
            for point in run {
                let Some((mean, (low, high))) = point.mean.zip(point.ends()) else { continue };
                let (x, y) = (self.x(point.x) + aside, self.y(mean));
                line.push([x, y]);
                let (low, high) = (self.y(low), self.y(high));
                let stroke = Stroke::new(colour, 1.4);
                drawing.line(&[[x, low], [x, high]], stroke);
                for end in [low, high] {
                    drawing.line(&[[x - 3.0, end], [x + 3.0, end]], stroke);
                }
                drawing.rectangle([x - 2.5, y - 2.5], 5.0, 5.0, colour);
            }
            if line.len() > 1 {
                drawing.line(&line, series.line.stroke());
            }
        }
    }
}
