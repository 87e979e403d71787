//! The distributions of one training, with the decoded image of every class.

use crate::drawing::colour::{GRID, INK, SOFT, of_method};
use crate::drawing::{
    Anchor, Drawing, Figure, Key, Panel, Sign, Stroke, TextStyle, text_width, ticks,
};
use crate::experiments::images::paper;
use crate::experiments::images::results::{Exemplar, ImageResults, QueryBars};
use crate::experiments::methods::{MethodName, groups};

const PITCH: f64 = 35.0;
const PICTURE: f64 = 30.0;
const BAR: f64 = 9.0;
const TOP: f64 = 32.0;
const PLOT: f64 = 150.0;
const WORDS: f64 = 11.0;

/// A panel for each query; `None` without an exemplar.
pub(super) fn bars(results: &ImageResults) -> Option<Figure> {
    let exemplar = results.exemplar.as_ref()?;
    let [methods, ..] = groups(&results.methods);
    let largest = exemplar
        .queries
        .values()
        .flat_map(|bars| {
            let rows = methods.iter().filter_map(|method| bars.methods.get(&method.name));
            rows.flat_map(|bars| &bars.probabilities).chain(&bars.target)
        })
        .fold(0.0_f64, |most, p| most.max(*p));
    let panel = |query: &String| {
        let bars = exemplar.queries.get(query)?;
        let title = format!("{query}: probability of each latent class, with its decoded image");
        Some(Panel { title, drawing: draw(query, exemplar, bars, &methods, largest) })
    };
    let mut legend: Vec<Key> =
        methods.iter().map(|method| Key::method(&method.title, false)).collect();
    legend.push(Key { words: "target".to_owned(), sign: Sign::Mark });
    let judged = exemplar.latents.iter().any(|latent| latent.judged.is_some());
    let judged = if judged { " and its predicted label" } else { "" };
    Some(Figure {
        name: "bars",
        title: format!("The prior of one training: {}", paper::title(&results.data_set)),
        note: format!(
            "Seed {}. Below each latent class, its decoded image{judged}.",
            exemplar.seed
        ),
        legend,
        columns: 2,
        panels: results.queries.iter().filter_map(panel).collect(),
    })
}

fn draw(
    query: &str,
    exemplar: &Exemplar,
    bars: &QueryBars,
    methods: &[&MethodName],
    largest: f64,
) -> Drawing {
    let y_ticks = ticks(0.0, 1.06 * largest.max(1e-3), 5);
    let widest = y_ticks.iter().map(|(_, l)| text_width(l, WORDS, false)).fold(0.0, f64::max);
    let left = 24.0 + widest + 6.0;
    let width = left + PITCH * exemplar.latents.len() as f64 + 6.0;
    let foot = TOP + PLOT;
    let labels = exemplar.latents.iter().filter_map(|latent| latent.judged.as_ref());
    let longest = labels.map(|judged| text_width(&judged.label, WORDS, false)).fold(0.0, f64::max);
    // Labels that are too long to fit side by side are turned.
    let turned = longest > PITCH - 2.0;
    let label_room = if turned { longest + 14.0 } else { 28.0 };
    let mut drawing = Drawing::new(width, foot + PICTURE + label_room);
    let y = |p: f64| foot - p / (1.06 * largest.max(1e-3)) * PLOT;
    let middle = f64::midpoint(left, width);
    let title = TextStyle::new(12.5, INK).bold().anchor(Anchor::Middle);
    drawing.text([middle, 17.0], title, query);
    let side = TextStyle::new(WORDS, SOFT).anchor(Anchor::Middle).upright();
    drawing.text([14.0, f64::midpoint(TOP, foot)], side, "probability");
    for (value, label) in y_ticks {
        let y = y(value);
        drawing.line(&[[left, y], [width, y]], Stroke::new(GRID, 1.0));
        drawing.text([left - 6.0, y + 4.0], TextStyle::new(WORDS, INK).anchor(Anchor::End), label);
    }
    for (class, latent) in exemplar.latents.iter().enumerate() {
        let centre = left + (class as f64 + 0.5) * PITCH;
        let start = centre - BAR * methods.len() as f64 / 2.0;
        for (place, method) in methods.iter().enumerate() {
            let p = bars.methods.get(&method.name).map_or(0.0, |bars| bars.probabilities[class]);
            if p > 0.0 {
                let at = [start + BAR * place as f64, y(p)];
                drawing.rectangle(at, BAR - 0.5, foot - y(p), of_method(&method.title));
            }
        }
        let target = bars.target[class];
        if target > 0.0 {
            let (from, to) = (centre - PITCH / 2.0 + 2.0, centre + PITCH / 2.0 - 2.0);
            drawing.line(&[[from, y(target)], [to, y(target)]], Stroke::new(INK, 1.6));
        }
        let high = PICTURE * latent.image.height() as f64 / latent.image.width() as f64;
        let at = [centre - PICTURE / 2.0, foot + 5.0];
        drawing.picture(at, PICTURE, high.min(PICTURE), &latent.image);
        if let Some(judged) = &latent.judged {
            let style = TextStyle::new(WORDS, INK);
            let (at, style) = if turned {
                ([centre + 4.0, foot + PICTURE + 10.0], style.anchor(Anchor::End).upright())
            } else {
                ([centre, foot + PICTURE + 18.0], style.anchor(Anchor::Middle))
            };
            drawing.text(at, style, judged.label.as_str());
        }
    }
    drawing.line(&[[left, TOP], [left, foot], [width, foot]], Stroke::new(INK, 1.0));
    drawing
}
