//! Results for a terminal.

use std::fmt::Write as _;

use super::paper;
use super::results::{KeptSummary, REAL, RECONSTRUCTED, VqVaeResults};
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

pub(super) fn summary(results: &VqVaeResults) -> String {
    let [rows_of_codes, columns] = results.grid;
    let mut text = format!(
        "{}: {} samples for each of {} classes, {} held-out images of {rows_of_codes} x {columns} codes\n\n",
        results.data_set,
        results.samples,
        results.classes.len(),
        results.held_out
    );
    let _ = writeln!(
        text,
        "{:<22}{:>14}{:>14}{:>9}{:>6}{:>11}{:>11}{:>7}{:>8}{:>11}{:>9}",
        "",
        "accuracy, %",
        "top 5, %",
        "kept",
        "max",
        "dropped, %",
        "of used, %",
        "mass",
        "missed",
        "diversity",
        "Fréchet"
    );
    for (key, title) in rows(results) {
        let share = |table: &std::collections::BTreeMap<String, f64>,
                     errors: &std::collections::BTreeMap<String, f64>| {
            let both = table.get(key).zip(errors.get(key));
            both.map_or_else(String::new, |(&share, &se)| {
                format!("{} ± {}", percent(share), percent(se))
            })
        };
        let accuracy = share(&results.accuracy, &results.accuracy_se);
        let top5 = share(&results.top5, &results.top5_se);
        let _ = write!(text, "{title:<22}{accuracy:>14}{top5:>14}");
        match results.kept.get(key) {
            Some(KeptSummary { mean, max, reduction_mean, of_used_mean, mass, missed, .. }) => {
                let [dropped, of_used] = [*reduction_mean, *of_used_mean].map(percent);
                let _ = write!(text, "{mean:>9.1}{max:>6}{dropped:>11}{of_used:>11}");
                let _ = write!(text, "{mass:>7.3}{missed:>8.4}");
            }
            None => text += &" ".repeat(52),
        }
        let number =
            |value: Option<&f64>| value.map_or_else(String::new, |value| format!("{value:.3}"));
        let (diversity, frechet) = (results.diversity.get(key), results.frechet.get(key));
        let _ = writeln!(text, "{:>11}{:>9}", number(diversity), number(frechet));
        if let Some(theirs) = paper::numbers(&results.data_set, key) {
            let dropped =
                theirs.reduction.map_or_else(String::new, |percent| format!("{percent:.0}"));
            let _ = writeln!(
                text,
                "{:<22}{:>14.1}{:>14.1}{:>26}",
                "  the paper", theirs.accuracy, theirs.top5, dropped
            );
        }
    }
    text.push('\n');
    for note in notes(results) {
        let _ = writeln!(text, "{note}");
    }
    text
}
