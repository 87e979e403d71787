//! The figures of the experiment: samples, reconstructions, kept codes over positions, trainings.

use super::results::{REAL, VqVaeResults};
use crate::drawing::colour::{INK, SERIES, SOFT};
use crate::drawing::{
    Anchor, Chart, Drawing, Figure, Image, Key, LineStyle, Marks, Measured, Panel, Series, Sign,
    TextStyle, largest, text_width,
};
use crate::experiments::methods::MethodName;
use crate::method::{EVIDENTIAL, SPARSEMAX};

/// All figures that the results have numbers for.
pub(super) fn all(results: &VqVaeResults) -> Vec<Figure> {
    let mut figures = Vec::new();
    figures.extend(samples(results));
    figures.extend(maps(results));
    figures.extend(trainings(results));
    figures.extend(reconstructions(results));
    figures
}

/// The side of a picture, for images of any size.
const PICTURE: f64 = 44.0;
const PITCH: f64 = 48.0;
const WORDS: f64 = 11.0;

/// The methods of a table, in the order of all methods.
fn ordered<'a, T>(
    results: &'a VqVaeResults,
    table: &'a std::collections::BTreeMap<String, T>,
) -> impl Iterator<Item = (&'a MethodName, &'a T)> {
    results.methods.iter().filter_map(|method| Some((method, table.get(&method.name)?)))
}

/// A panel for each method: a row of samples for each class. `None` without samples.
fn samples(results: &VqVaeResults) -> Option<Figure> {
    let pictures = &results.pictures;
    let names: Vec<&str> = pictures
        .classes
        .iter()
        .filter_map(|&class| Some(results.classes.get(class)?.as_str()))
        .collect();
    let panel = |(method, rows): (&MethodName, &Vec<Vec<Image>>)| Panel {
        title: format!("samples of {}", method.title),
        drawing: sample_rows(&method.title, &names, rows),
    };
    let panels: Vec<Panel> = ordered(results, &pictures.samples).map(panel).collect();
    (!panels.is_empty()).then(|| Figure {
        name: "samples",
        title: format!("Images sampled for a class: {}", results.data_set),
        note: "Each row is a class. The random numbers are the same for each method.".to_owned(),
        legend: Vec::new(),
        columns: panels.len(),
        panels,
    })
}

fn sample_rows(title: &str, names: &[&str], rows: &[Vec<Image>]) -> Drawing {
    let name_width =
        names.iter().map(|name| text_width(name, WORDS, false)).fold(0.0, f64::max) + 8.0;
    let most = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = (name_width + most as f64 * PITCH).max(170.0);
    let mut drawing = Drawing::new(width, 28.0 + rows.len() as f64 * PITCH);
    drawing.text([0.0, 17.0], TextStyle::new(12.5, INK).bold(), title);
    for (row, (name, images)) in names.iter().zip(rows).enumerate() {
        let top = 26.0 + row as f64 * PITCH;
        let at = [name_width - 8.0, top + PICTURE / 2.0 + 4.0];
        drawing.text(at, TextStyle::new(WORDS, SOFT).anchor(Anchor::End), *name);
        for (column, image) in images.iter().enumerate() {
            let at = [name_width + column as f64 * PITCH, top];
            drawing.picture(at, PICTURE, PICTURE, image);
        }
    }
    drawing
}

/// Held-out images above their reconstructions.
fn reconstructions(results: &VqVaeResults) -> Option<Figure> {
    let pairs = &results.pictures.reconstructions;
    if pairs.is_empty() {
        return None;
    }
    let words = [REAL, "through the codes"];
    let left = words.iter().map(|words| text_width(words, WORDS, false)).fold(0.0, f64::max) + 8.0;
    let width = left + pairs.len() as f64 * PITCH;
    let mut drawing = Drawing::new(width, 2.0 * PITCH);
    for (row, words) in words.into_iter().enumerate() {
        let top = row as f64 * PITCH;
        let at = [left - 8.0, top + PICTURE / 2.0 + 4.0];
        drawing.text(at, TextStyle::new(WORDS, SOFT).anchor(Anchor::End), words);
        for (column, pair) in pairs.iter().enumerate() {
            let at = [left + column as f64 * PITCH, top];
            drawing.picture(at, PICTURE, PICTURE, &pair[row]);
        }
    }
    let title = "Held-out images and their reconstructions".to_owned();
    let [rows, columns] = results.grid;
    Some(Figure {
        name: "reconstructions",
        title: title.clone(),
        note: format!(
            "{} x {} pixels through {rows} x {columns} codes.",
            results.image, results.image
        ),
        legend: Vec::new(),
        columns: 1,
        panels: vec![Panel { title, drawing }],
    })
}

const MAP: f64 = 200.0;

/// The mean number of kept codes at each position. `None` without maps.
fn maps(results: &VqVaeResults) -> Option<Figure> {
    let panels: Vec<Panel> = ordered(results, &results.maps)
        .map(|(method, map)| Panel {
            title: format!("codes kept by {} at each position", method.title),
            drawing: map_of(&method.title, map, results),
        })
        .collect();
    (!panels.is_empty()).then(|| Figure {
        name: "map",
        title: "Codes kept at each position of the grid".to_owned(),
        note: format!(
            "Mean over {} held-out images, whose codes before a position are given. Each method has its own scale, \
             from its smallest number (light) to its largest (dark).",
            results.held_out
        ),
        legend: Vec::new(),
        columns: panels.len(),
        panels,
    })
}

/// From light to dark, readable without colour.
fn shade(share: f64) -> [u8; 3] {
    const LIGHT: [f64; 3] = [240.0, 244.0, 200.0];
    const DARK: [f64; 3] = [8.0, 48.0, 107.0];
    [0, 1, 2]
        .map(|channel| (LIGHT[channel] + share * (DARK[channel] - LIGHT[channel])).round() as u8)
}

fn map_of(title: &str, map: &[f32], results: &VqVaeResults) -> Drawing {
    let [rows, columns] = results.grid;
    let low = map.iter().copied().fold(f32::INFINITY, f32::min);
    let high = map.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let range = f64::from(high - low).max(f64::MIN_POSITIVE);
    let pixels = map.iter().flat_map(|&kept| shade(f64::from(kept - low) / range)).collect();
    let height = MAP * rows as f64 / columns as f64;
    let mut drawing = Drawing::new(MAP, 44.0 + height);
    drawing.text([0.0, 15.0], TextStyle::new(12.5, INK).bold(), title);
    let words = format!("{low:.1} to {high:.1} of {} codes", results.codebook.codes);
    drawing.text([0.0, 32.0], TextStyle::new(WORDS, SOFT), words);
    if let Ok(image) = Image::rgb(columns, pixels) {
        drawing.picture([0.0, 40.0], MAP, height, &image);
    }
    drawing
}

/// A number after each epoch.
struct Curve {
    words: &'static str,
    values: Vec<f64>,
}

/// Losses and conditions over the epochs. `None` without epochs.
fn trainings(results: &VqVaeResults) -> Option<Figure> {
    let trainings = &results.trainings;
    let vqvae = |words, value: fn(&super::train::VqVaeEpoch) -> f64| Curve {
        words,
        values: trainings.vqvae.epochs.iter().map(value).collect(),
    };
    let prior = |words, value: &dyn Fn(&super::train::PriorEpoch) -> f64| Curve {
        words,
        values: trainings.prior.epochs.iter().map(value).collect(),
    };
    let kept = |method: &'static str| {
        prior(method, &|epoch| epoch.kept.get(method).copied().unwrap_or(f64::NAN))
    };
    let classifier = trainings.classifier.epochs.iter();
    let accuracy = Curve {
        words: "held-out images",
        values: classifier.map(|e| 100.0 * e.accuracy).collect(),
    };
    let charts = [
        (
            "VQ-VAE",
            "mean squared error",
            vec![
                vqvae("reconstruction", |epoch| epoch.reconstruction),
                vqvae("quantisation", |epoch| epoch.quantisation),
            ],
        ),
        (
            "Codebook",
            "codes",
            vec![
                vqvae("codes in use", |epoch| epoch.used as f64),
                vqvae("perplexity", |epoch| epoch.perplexity),
            ],
        ),
        (
            "Prior",
            "nats a code",
            vec![
                prior("training", &|epoch| epoch.loss),
                prior("held out", &|epoch| epoch.held_out),
            ],
        ),
        ("Kept", "kept codes, mean", vec![kept(EVIDENTIAL), kept(SPARSEMAX)]),
        ("Classifier", "accuracy, %", vec![accuracy]),
    ];
    let panels: Vec<Panel> = charts
        .into_iter()
        .filter(|(_, _, curves)| curves.iter().any(|curve| !curve.values.is_empty()))
        .map(|(title, label, curves)| curve_panel(title, label, &curves))
        .collect();
    (!panels.is_empty()).then(|| Figure {
        name: "trainings",
        title: "The three trainings".to_owned(),
        note: "After each epoch. The curves of a panel are named in its title, in the order of the legend."
            .to_owned(),
        legend: ["first curve", "second curve"]
            .into_iter()
            .zip(lines())
            .map(|(words, line)| Key { words: words.to_owned(), sign: Sign::Line(line) })
            .collect(),
        columns: 3,
        panels,
    })
}

fn lines() -> [LineStyle; 2] {
    let line = |place: usize, dash| LineStyle { colour: SERIES[place], dash, width: 1.8 };
    [line(0, &[]), line(1, &[7.0, 3.0])]
}

fn curve_panel(title: &str, label: &str, curves: &[Curve]) -> Panel {
    let point = |(epoch, &value): (usize, &f64)| Measured {
        x: (epoch + 1) as f64,
        mean: value.is_finite().then_some(value),
        ..Measured::default()
    };
    let series: Vec<Series> = curves
        .iter()
        .zip(lines())
        .map(|(curve, line)| Series {
            line,
            points: curve.values.iter().enumerate().map(point).collect(),
        })
        .collect();
    let epochs = curves.iter().map(|curve| curve.values.len()).max().unwrap_or(1);
    let names: Vec<&str> = curves.iter().map(|curve| curve.words).collect();
    let title = format!("{title}: {}", names.join(", "));
    let chart = Chart {
        title: title.clone(),
        x_label: "epoch",
        y_label: label.to_owned(),
        x_ticks: None,
        x_range: (1.0, epochs.max(2) as f64),
        y_most: largest(series.iter()),
        marks: Marks::Band,
        series,
    };
    Panel { title, drawing: chart.draw() }
}
