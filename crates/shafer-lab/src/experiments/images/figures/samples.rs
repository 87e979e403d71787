//! Images drawn from the distributions of one training.

use crate::drawing::colour::{INK, SOFT, WRONG};
use crate::drawing::{Drawing, Figure, Key, Panel, Sign, Stroke, TextStyle};
use crate::experiments::images::paper;
use crate::experiments::images::results::{Bars, Exemplar, ImageResults};
use crate::experiments::methods::{MethodName, groups};

const PICTURE: f64 = 28.0;
const PITCH: f64 = 34.0;

/// A panel for each query and each of the paper's methods; `None` without samples.
pub(super) fn samples(results: &ImageResults) -> Option<Figure> {
    let exemplar = results.exemplar.as_ref()?;
    let [methods, ..] = groups(&results.methods);
    let mut panels = Vec::new();
    for (number, query) in results.queries.iter().enumerate() {
        for MethodName { name, title } in methods.iter().copied() {
            let bars = exemplar.queries.get(query).and_then(|bars| bars.methods.get(name));
            let Some(bars) = bars.filter(|bars| !bars.samples.is_empty()) else { continue };
            let drawing = draw(&format!("{query}: {title}"), exemplar, bars, number);
            panels.push(Panel { title: format!("{query}: samples of {title}"), drawing });
        }
    }
    if panels.is_empty() {
        return None;
    }
    let judged = exemplar.latents.iter().any(|latent| latent.judged.is_some());
    let frame = Key { words: "predicted to be of the other query".to_owned(), sign: Sign::Frame };
    Some(Figure {
        name: "samples",
        title: format!("Samples for each query: {}", paper::title(&results.data_set)),
        note: format!("Seed {}; the same random numbers for each method.", exemplar.seed),
        legend: if judged { vec![frame] } else { Vec::new() },
        columns: methods.len(),
        panels,
    })
}

fn draw(title: &str, exemplar: &Exemplar, bars: &Bars, query: usize) -> Drawing {
    let columns = (bars.samples.len() as f64).sqrt().ceil().max(1.0) as usize;
    let rows = bars.samples.len().div_ceil(columns);
    let width = (columns as f64 * PITCH).max(170.0) + 8.0;
    let mut drawing = Drawing::new(width, 46.0 + rows as f64 * PITCH);
    drawing.text([4.0, 17.0], TextStyle::new(12.5, INK).bold(), title);
    let count = bars.samples.len();
    let words = match bars.wrong_samples {
        Some(wrong) => format!("{wrong} of {count} wrong"),
        None => format!("{count} samples"),
    };
    drawing.text([4.0, 34.0], TextStyle::new(11.5, SOFT), words);
    for (place, class) in bars.samples.iter().enumerate() {
        let (row, column) = (place / columns, place % columns);
        let at = [7.0 + column as f64 * PITCH, 44.0 + row as f64 * PITCH];
        let latent = &exemplar.latents[*class];
        drawing.picture(at, PICTURE, PICTURE, &latent.image);
        if latent.judged.as_ref().is_some_and(|judged| judged.query != query) {
            let [x, y] = at;
            let stroke = Stroke::new(WRONG, 2.0);
            drawing.frame([x - 1.5, y - 1.5], PICTURE + 3.0, PICTURE + 3.0, stroke);
        }
    }
    drawing
}
