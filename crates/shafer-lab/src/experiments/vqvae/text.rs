//! Results for a terminal.

use std::fmt::Write as _;

use super::paper;
use super::results::{ByMethod, KeptSummary, REAL, RECONSTRUCTED, VqVaeResults};
use crate::experiments::text_table::row;
use crate::method::EVIDENTIAL;

/// A row of the table: its key in the results and its title.
pub(super) fn rows(results: &VqVaeResults) -> Vec<(&str, &str)> {
    let methods = results.methods.iter().map(|method| (&*method.name, &*method.title));
    let images = [(REAL, "held-out images"), (RECONSTRUCTED, "their reconstructions")];
    methods.chain(images).collect()
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

/// What the run found besides the table.
pub(super) fn notes(results: &VqVaeResults) -> Vec<String> {
    let codebook = &results.codebook;
    let mut notes = vec![format!(
        "{} of {} codes occur in the training set; their perplexity is {:.1}.",
        codebook.used, codebook.codes, codebook.perplexity
    )];
    if 2 * codebook.used < codebook.codes {
        notes.push(
            "More than half of the codebook is not in use. Methods also drop unused codes: compare with the method \
             \"codes in use\", and with kept codes as a share of those in use."
                .to_owned(),
        );
    }
    if let Some(kept) = results.kept.get(EVIDENTIAL) {
        let used = codebook.used as f64;
        let of_used = kept.of_used_mean * used;
        let dropped = codebook.codes as f64 - kept.mean;
        let unused = dropped - (used - of_used);
        if dropped > 0.0 {
            notes.push(format!(
                "Of the {dropped:.1} codes that {EVIDENTIAL} drops on average, {unused:.1} ({}%) are not in use. Of the \
                 {used} in use it keeps {of_used:.1} ({}%).",
                percent(unused / dropped),
                percent(kept.of_used_mean)
            ));
        }
    }
    if let [.., before, last] = &results.trainings.prior.epochs[..] {
        let gain = before.held_out - last.held_out;
        if gain > 0.01 * before.held_out {
            notes.push(format!(
                "The prior is undertrained: its last epoch still reduced the held-out loss from {:.3} to {:.3} nats \
                 a code.",
                before.held_out, last.held_out
            ));
        } else if gain < -0.01 * before.held_out {
            notes.push(format!(
                "The prior overfits: its last epoch raised the held-out loss from {:.3} to {:.3} nats a code.",
                before.held_out, last.held_out
            ));
        }
    }
    notes
}

const WIDTHS: [usize; 11] = [22, 14, 14, 9, 6, 11, 11, 7, 8, 11, 9];

pub(super) fn for_terminal(results: &VqVaeResults) -> String {
    let [rows_of_codes, columns] = results.grid;
    let mut text = format!(
        "{}: {} samples for each of {} classes, {} held-out images of {rows_of_codes} x {columns} codes\n\n",
        results.data_set,
        results.samples,
        results.classes.len(),
        results.held_out
    );
    let head = ["", "accuracy, %", "top 5, %", "kept", "max", "dropped, %", "of used, %", "mass"];
    let head = head.into_iter().chain(["missed", "diversity", "Fréchet"]);
    row(&mut text, &WIDTHS, head.map(str::to_owned));
    for (key, title) in rows(results) {
        let share = |table: &ByMethod<f64>, errors: &ByMethod<f64>| {
            let both = table.get(key).zip(errors.get(key));
            both.map(|(&share, &se)| format!("{} ± {}", percent(share), percent(se)))
        };
        let kept = results.kept.get(key);
        let of_kept = |cell: fn(&KeptSummary) -> String| kept.map(cell);
        let number = |table: &ByMethod<f64>| table.get(key).map(|value| format!("{value:.3}"));
        let cells = [
            Some(title.to_owned()),
            share(&results.accuracy, &results.accuracy_se),
            share(&results.top5, &results.top5_se),
            of_kept(|kept| format!("{:.1}", kept.mean)),
            of_kept(|kept| kept.max.to_string()),
            of_kept(|kept| percent(kept.reduction_mean)),
            of_kept(|kept| percent(kept.of_used_mean)),
            of_kept(|kept| format!("{:.3}", kept.mass)),
            of_kept(|kept| format!("{:.4}", kept.missed)),
            number(&results.diversity),
            number(&results.frechet),
        ];
        row(&mut text, &WIDTHS, cells.map(Option::unwrap_or_default));
        if let Some(theirs) = paper::numbers(&results.data_set, key) {
            let [accuracy, top5] = [theirs.accuracy, theirs.top5].map(|x| format!("{x:.1}"));
            let dropped = theirs.reduction.map(|percent| format!("{percent:.0}"));
            let (label, none) = ("  the paper".to_owned(), String::new);
            let cells = [label, accuracy, top5, none(), none(), dropped.unwrap_or_default()];
            row(&mut text, &WIDTHS, cells);
        }
    }
    text.push('\n');
    for note in notes(results) {
        let _ = writeln!(text, "{note}");
    }
    text
}
