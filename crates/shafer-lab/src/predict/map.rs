//! Maps of past and predicted paths, one for each method.

use std::fmt::Write as _;

use super::{AgentPrediction, Mode, Prediction};
use crate::drawing::colour::{Colour, FAINT, GRID, INK, SERIES, SOFT};
use crate::drawing::{
    Anchor, Drawing, Figure, Fill, Key, LineStyle, Panel, Point, Sign, Stroke, TextStyle,
    text_width, ticks,
};

const PAST: LineStyle = LineStyle { colour: SOFT, dash: &[], width: 1.6 };
const STRAIGHT: LineStyle = LineStyle { colour: INK, dash: &[4.0, 3.0], width: 1.2 };
/// Less likely modes are not drawn.
const LEAST: f64 = 0.01;
/// The width of the plot, and its minimal height.
const SIDE: f64 = 570.0;
const LOW: f64 = 260.0;
const TOP: f64 = 28.0;
const BOTTOM: f64 = 44.0;
const RIGHT: f64 = 12.0;
const WORDS: f64 = 11.0;
/// The pedestrians' numbers.
const NUMBERS: f64 = 10.0;
/// Corners of the polygon of an ellipse.
const CORNERS: u32 = 20;

/// The width of the line of a mode.
fn width(probability: f64) -> f64 {
    1.0 + 5.0 * probability
}

/// The steps after which the spread of a mode is shown: half of them, and all.
fn spread_steps(mode: &Mode) -> [usize; 2] {
    [mode.mean.len() / 2, mode.mean.len()]
}

fn drawn(modes: &[Mode]) -> impl DoubleEndedIterator<Item = &Mode> {
    modes.iter().filter(|mode| mode.probability >= LEAST)
}

/// A figure for each prediction, with a panel for each method; all maps show the same part of the world.
pub(super) fn figures(predictions: &[Prediction]) -> Vec<Figure> {
    let map = Map::of(predictions);
    predictions.iter().map(|prediction| figure(prediction, &map)).collect()
}

fn figure(prediction: &Prediction, map: &Map) -> Figure {
    let methods = prediction.agents.first().map_or(&[][..], |agent| &agent.methods);
    let panels: Vec<Panel> = methods
        .iter()
        .enumerate()
        .map(|(place, method)| Panel {
            title: format!(
                "{}, frame {}: where pedestrians may go, by {}",
                prediction.scene, prediction.frame, method.method
            ),
            drawing: draw(prediction, place, &method.method, map),
        })
        .collect();
    let steps = prediction.agents.first().map_or(0, |agent| agent.constant_velocity.len());
    let seconds = |steps: usize| steps as f64 * prediction.seconds_per_step;
    let line = |words: &str, line| Key { words: words.to_owned(), sign: Sign::Line(line) };
    let [first, ..] = SERIES;
    let mode = |probability| LineStyle { colour: first, dash: &[], width: width(probability) };
    Figure {
        name: "paths",
        title: format!("{}, frame {}", prediction.scene, prediction.frame),
        note: format!(
            "Metres. Each pedestrian has a colour; the square is the present. A line is the mean path of a \
             mode over {:.1} s, an ellipse one standard deviation after {:.1} and {:.1} s. Modes below \
             {LEAST} are not drawn.",
            seconds(steps),
            seconds(steps / 2),
            seconds(steps)
        ),
        legend: vec![
            line("past", PAST),
            line("mode of probability 0.9", mode(0.9)),
            line("0.5", mode(0.5)),
            line("0.1", mode(0.1)),
            Key { words: "spread".to_owned(), sign: Sign::Block(FAINT) },
            line("constant velocity", STRAIGHT),
        ],
        columns: panels.len().min(2),
        panels,
    }
}

/// The area that is shown, with one scale for both axes.
struct Map {
    /// The corner at the lower left, in metres.
    low: Point,
    width: f64,
    height: f64,
    /// Pixels in a metre.
    scale: f64,
}

impl Map {
    /// Covers everything that is drawn.
    fn of(predictions: &[Prediction]) -> Self {
        let (mut low, mut high) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
        let mut include = |point: Point| {
            for axis in 0..2 {
                low[axis] = low[axis].min(point[axis]);
                high[axis] = high[axis].max(point[axis]);
            }
        };
        for agent in predictions.iter().flat_map(|prediction| &prediction.agents) {
            agent.past.iter().chain(&agent.constant_velocity).copied().for_each(&mut include);
            for mode in agent.methods.iter().flat_map(|method| drawn(&method.modes)) {
                mode.mean.iter().copied().for_each(&mut include);
                for step in spread_steps(mode) {
                    ellipse(mode, step).into_iter().for_each(&mut include);
                }
            }
        }
        if low[0] > high[0] {
            (low, high) = ([0.0; 2], [0.0; 2]);
        }
        // At least two metres, for a pedestrian who stands alone.
        let range = [0, 1].map(|axis| 1.06 * (high[axis] - low[axis]).max(2.0));
        let scale = SIDE / range[0].max(range[1]);
        let (width, height) = (SIDE, (range[1] * scale).max(LOW));
        let extent = [width / scale, height / scale];
        let low = [0, 1].map(|axis| f64::midpoint(low[axis], high[axis]) - extent[axis] / 2.0);
        Self { low, width, height, scale }
    }
}

/// One standard deviation around the mean after this number of steps, as a polygon.
fn ellipse(mode: &Mode, steps: usize) -> Vec<Point> {
    let place = steps.checked_sub(1);
    let found = place.and_then(|place| mode.mean.get(place).zip(mode.covariance.get(place)));
    let Some(([x, y], [xx, xy, yy])) = found else { return Vec::new() };
    // The Cholesky factor of the covariances turns the unit circle into it.
    let across = xx.max(0.0).sqrt();
    let slope = if across > 0.0 { xy / across } else { 0.0 };
    let along = (yy - slope * slope).max(0.0).sqrt();
    let corner = |corner: u32| {
        let (sin, cos) = (std::f64::consts::TAU * f64::from(corner) / f64::from(CORNERS)).sin_cos();
        [x + across * cos, y + slope * cos + along * sin]
    };
    (0..CORNERS).map(corner).collect()
}

fn draw(prediction: &Prediction, method: usize, title: &str, map: &Map) -> Drawing {
    let Map { low, width, height, scale } = *map;
    let high = [low[0] + width / scale, low[1] + height / scale];
    let y_ticks = ticks(low[1], high[1], if height < 400.0 { 3 } else { 5 });
    // Text is larger on narrow screens.
    let widest = y_ticks.iter().map(|(_, l)| text_width(l, 1.6 * WORDS, false)).fold(0.0, f64::max);
    let left = 26.0 + widest + 6.0;
    let mut drawing = Drawing::new(left + width + RIGHT, TOP + height + BOTTOM);
    let place = |[x, y]: Point| [left + (x - low[0]) * scale, TOP + height - (y - low[1]) * scale];
    let centred = |size, colour| TextStyle::new(size, colour).anchor(Anchor::Middle);
    let middle = left + width / 2.0;
    drawing.text([middle, 17.0], centred(12.5, INK).bold(), title);
    for (value, label) in ticks(low[0], high[0], 5) {
        let [x, _] = place([value, low[1]]);
        drawing.line(&[[x, TOP], [x, TOP + height]], Stroke::new(GRID, 1.0));
        drawing.text([x, TOP + height + 17.0], centred(WORDS, INK), label);
    }
    for (value, label) in y_ticks {
        let [_, y] = place([low[0], value]);
        drawing.line(&[[left, y], [left + width, y]], Stroke::new(GRID, 1.0));
        let style = TextStyle::new(WORDS, INK).anchor(Anchor::End);
        drawing.text([left - 6.0, y + 4.0], style, label);
    }
    drawing.text([middle, TOP + height + 37.0], centred(WORDS, SOFT), "x, metres");
    let side = centred(WORDS, SOFT).upright();
    drawing.text([16.0, TOP + height / 2.0], side, "y, metres");
    drawing.frame([left, TOP], width, height, Stroke::new(SOFT, 1.0));

    let colours = || SERIES.into_iter().cycle();
    let people = || prediction.agents.iter().zip(colours());
    for (agent, colour) in people() {
        let modes = agent.methods.get(method).map_or(&[][..], |method| &method.modes);
        // The likeliest lie on top.
        for mode in drawn(modes).rev() {
            drawing.titled(&about_mode(prediction, agent, mode), |drawing| {
                for step in spread_steps(mode) {
                    let corners = ellipse(mode, step).into_iter().map(place).collect();
                    drawing.area(corners, Fill { colour, opacity: opacity(mode.probability) });
                }
                let path = std::iter::once(agent.position).chain(mode.mean.iter().copied());
                let path: Vec<Point> = path.map(place).collect();
                drawing.line(&path, Stroke::new(colour, self::width(mode.probability)));
            });
        }
    }
    let mut labels = Labels { taken: Vec::new(), right: left + width, top: TOP };
    for (agent, colour) in people() {
        let path = |points: &[Point]| points.iter().copied().map(place).collect::<Vec<_>>();
        let past = path(&agent.past);
        if past.len() > 1 {
            drawing.line(&past, PAST.stroke());
        }
        let mut straight = vec![place(agent.position)];
        straight.extend(path(&agent.constant_velocity));
        drawing.titled(&format!("pedestrian {}: constant velocity", agent.agent), |drawing| {
            drawing.line(&straight, STRAIGHT.stroke());
        });
        drawing.titled(&about(agent), |drawing| square(drawing, place(agent.position), colour));
    }
    for (agent, _) in people() {
        labels.add(&mut drawing, place(agent.position), &agent.agent.to_string());
    }
    drawing
}

fn opacity(probability: f64) -> f64 {
    0.06 + 0.2 * probability
}

/// The present.
fn square(drawing: &mut Drawing, [x, y]: Point, colour: Colour) {
    drawing.rectangle([x - 4.0, y - 4.0], 8.0, 8.0, colour);
    drawing.frame([x - 4.0, y - 4.0], 8.0, 8.0, Stroke::new(INK, 1.0));
}

fn about(agent: &AgentPrediction) -> String {
    let [x, y] = agent.position;
    let seen = if agent.seen == 1 { ", has just appeared: taken to stand" } else { "" };
    format!("pedestrian {} at ({x:.2}, {y:.2}){seen}", agent.agent)
}

fn about_mode(prediction: &Prediction, agent: &AgentPrediction, mode: &Mode) -> String {
    let mut text = format!("pedestrian {}: probability {:.3}", agent.agent, mode.probability);
    if let Some(([x, y], [xx, _, yy])) = mode.mean.last().zip(mode.covariance.last()) {
        let seconds = mode.mean.len() as f64 * prediction.seconds_per_step;
        let spread = (xx + yy).sqrt();
        let _ = write!(text, ", at ({x:.2}, {y:.2}) ± {spread:.2} m after {seconds:.1} s");
    }
    text
}

/// Numbers beside the pedestrians, where they fit.
struct Labels {
    /// Left, top, right and bottom of each number so far.
    taken: Vec<[f64; 4]>,
    right: f64,
    top: f64,
}

impl Labels {
    fn add(&mut self, drawing: &mut Drawing, [x, y]: Point, words: &str) {
        let style = TextStyle::new(NUMBERS, INK);
        let wide = text_width(words, NUMBERS, false);
        let (left, base) = (x + 6.0, y - 5.0);
        let extent = [left, base - NUMBERS, left + wide, base + 2.0];
        let apart = |other: &[f64; 4]| {
            extent[0] >= other[2]
                || extent[2] <= other[0]
                || extent[1] >= other[3]
                || extent[3] <= other[1]
        };
        if extent[2] <= self.right && extent[1] >= self.top && self.taken.iter().all(apart) {
            drawing.text([left, base], style, words);
            self.taken.push(extent);
        }
    }
}
