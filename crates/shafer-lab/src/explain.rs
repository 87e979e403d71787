//! One row as a person wants it.

use std::fmt::Write as _;

use anyhow::Result;
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;
use shafer::{Belief, Evidence, Logits, Softmax, Transform, TransformExt};

use crate::terminal::bar;

/// What the evidence says about a row, and what a transform makes of it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Explanation {
    pub(crate) row: usize,
    pub(crate) method: &'static str,
    pub(crate) kept: usize,
    /// The mass that is committed to no class in particular, m(Z).
    pub(crate) ignorance: f64,
    /// The conflict between the pieces of evidence for different classes.
    pub(crate) internal_conflict: f64,
    /// Whether nothing favours any class.
    pub(crate) vacuous: bool,
    /// The most probable first.
    pub(crate) classes: Vec<ClassExplanation>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct ClassExplanation {
    pub(crate) class: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<String>,
    /// `None` for a masked class.
    pub(crate) logit: Option<f64>,
    /// The weight of evidence: positive for the class, negative against it.
    pub(crate) weight: Option<f64>,
    pub(crate) belief: f64,
    pub(crate) plausibility: f64,
    pub(crate) softmax: f64,
    pub(crate) probability: f64,
    pub(crate) kept: bool,
}

/// Explains one row of logits.
pub(crate) fn explain(
    row: usize,
    logits: &[f64],
    transform: &dyn Transform,
    temperature: f64,
    labels: &[String],
) -> Result<Explanation> {
    let input = Logits::row(logits)?.temperature(temperature)?;
    let mut softmax = vec![0.0; logits.len()];
    Softmax.dense(&input, &mut softmax)?;
    let compressed = transform.compressed(&input)?;
    let (kept, values) = compressed.row(0).unwrap_or_default();

    // Dividing logits by the temperature divides the weights of evidence.
    let scaled: Vec<f64> = logits.iter().map(|l| l / temperature).collect();
    let evidence = Evidence::from_logits(&scaled)?;
    let belief = Belief::new(&evidence);
    let (singletons, contour) = (belief.singletons(), belief.contour());
    let mut classes: Vec<ClassExplanation> = (0..logits.len())
        .map(|class| {
            let place = kept.binary_search(&(class as u32)).ok();
            let finite = logits[class].is_finite();
            ClassExplanation {
                class,
                label: labels.get(class).cloned(),
                logit: finite.then_some(logits[class]),
                weight: finite.then(|| evidence.positive()[class] - evidence.negative()[class]),
                belief: singletons[class],
                plausibility: contour[class],
                softmax: softmax[class],
                probability: place.map_or(0.0, |place| values[place]),
                kept: place.is_some(),
            }
        })
        .collect();
    classes.sort_by(|a, b| b.softmax.total_cmp(&a.softmax).then(a.class.cmp(&b.class)));
    Ok(Explanation {
        row,
        method: transform.name(),
        kept: kept.len(),
        ignorance: belief.ignorance(),
        internal_conflict: belief.internal_conflict(),
        vacuous: evidence.is_vacuous(),
        classes,
    })
}

/// The widest bar, in characters.
const BAR: usize = 24;

/// As a table with bars, at most `most` classes of it.
pub(crate) fn render(explanation: &Explanation, most: usize) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY).set_header([
        "class",
        "logit",
        "weight",
        "belief",
        "plausibility",
        "softmax",
        "probability",
        "",
    ]);
    let largest = explanation.classes.iter().map(|c| c.probability).fold(0.0, f64::max);
    for class in explanation.classes.iter().take(most) {
        let name = class.label.clone().unwrap_or_else(|| class.class.to_string());
        let number = |x: Option<f64>| x.map_or_else(|| "masked".to_owned(), |x| format!("{x:.3}"));
        table.add_row([
            name,
            number(class.logit),
            class.weight.map_or_else(String::new, |w| format!("{w:+.3}")),
            format!("{:.4}", class.belief),
            format!("{:.4}", class.plausibility),
            format!("{:.4}", class.softmax),
            if class.kept { format!("{:.4}", class.probability) } else { "dropped".to_owned() },
            bar(class.probability, largest, BAR),
        ]);
    }
    for column in table.column_iter_mut().skip(1).take(6) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut text = format!(
        "row {}: {} keeps {} of {} classes\n{table}\n",
        explanation.row,
        explanation.method,
        explanation.kept,
        explanation.classes.len(),
    );
    if explanation.classes.len() > most {
        let _ = writeln!(
            text,
            "{} less probable classes are not shown; --all shows them",
            explanation.classes.len() - most
        );
    }
    let _ = writeln!(
        text,
        "ignorance {:.4} (mass on no class in particular), internal conflict {:.4} (near 1: several \
         modes)",
        explanation.ignorance, explanation.internal_conflict
    );
    if explanation.vacuous {
        text.push_str("all logits are equal: the evidence favours no class, and all are kept\n");
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use shafer::Evidential;

    #[test]
    fn a_row_is_explained_in_the_order_of_its_probabilities() {
        let transform = Evidential::default();
        let e = explain(3, &[0.0, 2.0, f64::NEG_INFINITY, -2.0], &transform, 1.0, &[]).unwrap();
        let order: Vec<usize> = e.classes.iter().map(|c| c.class).collect();
        assert_eq!(order, [1, 0, 3, 2]);
        assert_eq!(e.kept, 1);
        assert!(e.classes[0].kept && (e.classes[0].weight.unwrap() - 2.0).abs() < 1e-15);
        assert_eq!((e.classes[3].logit, e.classes[3].plausibility), (None, 0.0));
        let text = render(&e, 3);
        assert!(text.contains("row 3: evidential keeps 1 of 4 classes"));
        assert!(text.contains("1 less probable classes are not shown"));
    }
}
