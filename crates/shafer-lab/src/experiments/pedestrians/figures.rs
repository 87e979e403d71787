//! The figures of the experiment: paths, the number of kept joint classes, and how near they are to the truth.

use super::exemplar::Exemplar;
use super::folds::PAPER_SCENE;
use super::paper;
use super::results::{PedestrianResults, SceneResults};
use crate::drawing::colour::{FAINT, GRID, INK, SOFT, of_method};
use crate::drawing::{
    Anchor, Chart, Drawing, Figure, Key, LineStyle, Marks, Measured, Panel, Point, Series, Sign,
    Stroke, TextStyle, largest, text_width, ticks,
};
use crate::experiments::methods::{MethodName, groups};
use crate::method::{EVIDENTIAL, SPARSEMAX};

/// All figures.
pub(super) fn all(results: &PedestrianResults) -> Vec<Figure> {
    let mut figures = Vec::new();
    if let Some((name, scene)) = results.first_scene() {
        let note = format!(
            "Scene {name}. Of the pedestrians with the longest futures, sorted by how far the ends of \
             all mean paths are spread: those in the middle of six parts of equal size."
        );
        figures.extend(paths(&scene.exemplars, &note));
    }
    figures.push(kept(results));
    figures.push(reach(results));
    figures
}

const HISTORY: LineStyle = LineStyle { colour: INK, dash: &[], width: 2.2 };
const TRUTH: LineStyle = LineStyle { colour: INK, dash: &[2.0, 3.0], width: 2.2 };
const ALL: LineStyle = LineStyle { colour: FAINT, dash: &[], width: 1.0 };

/// Sparsemax keeps a few of the classes that evidential keeps: a thin line on a thick one shows both.
fn kept_lines() -> [(&'static str, LineStyle); 2] {
    let line = |name, width| (name, LineStyle { colour: of_method(name), dash: &[], width });
    [line(EVIDENTIAL, 3.2), line(SPARSEMAX, 1.4)]
}

/// A panel for each pedestrian; `None` without any.
pub(crate) fn paths(exemplars: &[Exemplar], note: &str) -> Option<Figure> {
    let classes = exemplars.first()?.paths.len();
    let line = |words: String, line| Key { words, sign: Sign::Line(line) };
    let mut legend = vec![line("history".to_owned(), HISTORY), line("truth".to_owned(), TRUTH)];
    let kept = kept_lines().map(|(name, style)| line(format!("kept by {name}"), style));
    legend.extend(kept);
    legend.push(line(format!("all {classes} joint classes"), ALL));
    let panel = |exemplar: &Exemplar| {
        let title = format!("pedestrian {}, frame {}", exemplar.agent, exemplar.frame);
        let drawing = walk(&title, exemplar);
        Panel { title: format!("{title}: where it may go"), drawing }
    };
    Some(Figure {
        name: "paths",
        title: "Where pedestrians may go, and which modes are kept".to_owned(),
        note: format!(
            "Mean path of each joint class of latent variables, in metres from where the pedestrian is \
             (black square), and as much of the history as fits. {note}"
        ),
        legend,
        columns: 3,
        panels: exemplars.iter().map(panel).collect(),
    })
}

const SIDE: f64 = 250.0;
/// The number of recent states that must fit into the map.
const RECENT: usize = 3;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 40.0;
const WORDS: f64 = 11.0;

/// A map: both axes have the same scale.
fn walk(title: &str, exemplar: &Exemplar) -> Drawing {
    // The scale is that of the future; older history is shown as far as it fits.
    let recent = &exemplar.history[exemplar.history.len().saturating_sub(RECENT)..];
    let paths = exemplar.paths.iter().flatten().chain(recent).chain(&exemplar.truth);
    let (mut low, mut high) = ([0.0_f64; 2], [0.0_f64; 2]);
    for point in paths {
        for axis in 0..2 {
            low[axis] = low[axis].min(point[axis]);
            high[axis] = high[axis].max(point[axis]);
        }
    }
    let range = 1.12 * (high[0] - low[0]).max(high[1] - low[1]).max(1.0);
    let start = [0, 1].map(|axis| f64::midpoint(low[axis], high[axis]) - range / 2.0);
    let [x_ticks, y_ticks] = start.map(|start| ticks(start, start + range, 4));
    let widest = y_ticks.iter().map(|(_, l)| text_width(l, WORDS, false)).fold(0.0, f64::max);
    let left = 24.0 + widest + 6.0;
    let mut drawing = Drawing::new(left + SIDE + 8.0, TOP + SIDE + BOTTOM);
    let place = |[x, y]: Point| {
        [left + (x - start[0]) / range * SIDE, TOP + SIDE - (y - start[1]) / range * SIDE]
    };
    let middle = left + SIDE / 2.0;
    let centred = |size, colour| TextStyle::new(size, colour).anchor(Anchor::Middle);
    drawing.text([middle, 15.0], centred(12.5, INK).bold(), title);
    let count = |name| exemplar.kept.get(name).map_or(0, Vec::len);
    let words = format!(
        "{EVIDENTIAL} keeps {}, {SPARSEMAX} {} of {}",
        count(EVIDENTIAL),
        count(SPARSEMAX),
        exemplar.paths.len()
    );
    drawing.text([middle, 31.0], centred(WORDS, SOFT), words);
    for (value, label) in x_ticks {
        let [x, _] = place([value, 0.0]);
        drawing.line(&[[x, TOP], [x, TOP + SIDE]], Stroke::new(GRID, 1.0));
        drawing.text([x, TOP + SIDE + 15.0], centred(WORDS, INK), label);
    }
    for (value, label) in y_ticks {
        let [_, y] = place([0.0, value]);
        drawing.line(&[[left, y], [left + SIDE, y]], Stroke::new(GRID, 1.0));
        let style = TextStyle::new(WORDS, INK).anchor(Anchor::End);
        drawing.text([left - 6.0, y + 4.0], style, label);
    }
    drawing.text([middle, TOP + SIDE + 33.0], centred(WORDS, SOFT), "x, metres");
    let side = centred(WORDS, SOFT).upright();
    drawing.text([14.0, TOP + SIDE / 2.0], side, "y, metres");
    drawing.frame([left, TOP], SIDE, SIDE, Stroke::new(SOFT, 1.0));

    let from_here = |path: &[Point]| -> Vec<Point> {
        std::iter::once([0.0; 2]).chain(path.iter().copied()).map(place).collect()
    };
    for path in &exemplar.paths {
        drawing.line(&from_here(path), ALL.stroke());
    }
    for (name, style) in kept_lines() {
        for &class in exemplar.kept.get(name).into_iter().flatten() {
            let path = from_here(&exemplar.paths[class]);
            drawing.line(&path, style.stroke());
            if let Some([x, y]) = path.last() {
                let half = 1.8 + style.width / 2.0;
                let at = [x - half, y - half];
                drawing.rectangle(at, 2.0 * half, 2.0 * half, style.colour);
            }
        }
    }
    let within =
        |[x, y]: &Point| (left..=left + SIDE).contains(x) && (TOP..=TOP + SIDE).contains(y);
    let history = exemplar.history.iter().rev().copied().map(place);
    let history: Vec<Point> = history.take_while(within).collect();
    if history.len() > 1 {
        drawing.line(&history, HISTORY.stroke());
    }
    if !exemplar.truth.is_empty() {
        drawing.line(&from_here(&exemplar.truth), TRUTH.stroke());
    }
    let [x, y] = place([0.0; 2]);
    drawing.rectangle([x - 4.0, y - 4.0], 8.0, 8.0, INK);
    drawing
}

/// The histogram of joint classes kept by evidential, beside the paper's.
fn kept(results: &PedestrianResults) -> Figure {
    let ours = LineStyle::of_method(EVIDENTIAL);
    let (most_often, share) = paper::KEPT_MOST_OFTEN;
    let [fewest, most] = paper::KEPT;
    let bars = |scene: &SceneResults| {
        let all: u64 = scene.kept.iter().sum();
        let point = |(x, &count): (usize, &u64)| Measured {
            x: x as f64,
            mean: (count > 0).then(|| count as f64 / all as f64),
            ..Measured::default()
        };
        Series { line: ours, points: scene.kept.iter().enumerate().map(point).collect() }
    };
    let paper = || Series {
        line: LineStyle { colour: INK, dash: &[], width: 2.0 },
        points: vec![Measured { x: most_often as f64, mean: Some(share), ..Measured::default() }],
    };
    let all: Vec<(&String, Series)> =
        results.ordered_scenes().map(|(name, scene)| (name, bars(scene))).collect();
    let y_most = largest(all.iter().map(|(_, series)| series)).max(share);
    let panel = |(name, series): (&String, Series)| {
        // The paper has no numbers for the other scenes.
        let paper = (name == PAPER_SCENE).then(paper);
        let chart = Chart {
            title: name.clone(),
            x_label: "joint classes kept",
            y_label: "share of pedestrians".to_owned(),
            x_ticks: None,
            x_range: (0.0, results.classes as f64 + 0.5),
            y_most,
            marks: Marks::Columns,
            series: std::iter::once(series).chain(paper).collect(),
        };
        let title = format!("{name}: how many joint classes {EVIDENTIAL} keeps");
        Panel { title, drawing: chart.draw() }
    };
    Figure {
        name: "kept",
        title: format!("Joint classes that {EVIDENTIAL} keeps of {}", results.classes),
        note: format!(
            "Over all pedestrians and seeds. The paper, on its slice of ETH ({PAPER_SCENE}): {fewest} to {most}, and \
             {:.1}% of the pedestrians with {most_often}.",
            100.0 * share
        ),
        legend: vec![
            Key::method(EVIDENTIAL, false),
            Key {
                words: "the paper's most frequent number, on its slice".to_owned(),
                sign: Sign::Mark,
            },
        ],
        columns: 3,
        panels: all.into_iter().map(panel).collect(),
    }
}

/// The share of pedestrians who end near a kept mode.
fn reach(results: &PedestrianResults) -> Figure {
    let [methods, ..] = groups(&results.methods);
    let panel = |(name, scene): (&String, &SceneResults)| {
        let distances = &scene.reach.distances;
        let series = |method: &&MethodName| {
            let line = LineStyle::of_method(&method.title);
            Some(scene.reach.shares.get(&method.name)?.series(line, distances.iter().copied()))
        };
        let ends = distances.first().zip(distances.last());
        let chart = Chart {
            title: name.clone(),
            x_label: "distance, metres",
            y_label: "share of pedestrians".to_owned(),
            x_ticks: None,
            x_range: ends.map_or((0.0, 1.0), |(first, last)| (*first, *last)),
            y_most: 1.0,
            marks: Marks::Band,
            series: methods.iter().filter_map(series).collect(),
        };
        let title = format!("{name}: share of pedestrians near a kept mode, over the distance");
        Panel { title, drawing: chart.draw() }
    };
    Figure {
        name: "reach",
        title: "Pedestrians who end near a kept mode".to_owned(),
        note: "The share of pedestrians whose last position is within this distance of the end of a kept \
               mean path. The gap to softmax, which keeps all, is due to dropped modes. Higher is better; \
               bands: standard error over pedestrians."
            .to_owned(),
        legend: methods.iter().map(|method| Key::method(&method.title, true)).collect(),
        columns: 3,
        panels: results.ordered_scenes().map(panel).collect(),
    }
}
