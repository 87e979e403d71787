//! The table of results, with the same columns in the terminal and on the page.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table, presets};

use super::{Comparison, MethodReport};
use crate::many_classes;
use crate::method::EVIDENTIAL;
use crate::words::counted;

/// A column: one number per method.
pub(super) struct Column {
    pub(super) title: &'static str,
    /// The definition of the number.
    pub(super) help: &'static str,
    pub(super) value: fn(&MethodReport) -> Option<f64>,
    pub(super) decimals: usize,
    /// If not all columns fit, those with the highest rank are left out first.
    rank: u8,
}

const fn column(
    rank: u8,
    title: &'static str,
    help: &'static str,
    decimals: usize,
    value: fn(&MethodReport) -> Option<f64>,
) -> Column {
    Column { title, help, value, decimals, rank }
}

fn percent(share: Option<f64>) -> Option<f64> {
    share.map(|share| 100.0 * share)
}

const COLUMNS: [Column; 17] = [
    column(1, "kept, mean", "Support size: classes kept per row, mean over rows", 2, |m| {
        m.kept.as_ref().map(|kept| kept.mean)
    }),
    column(11, "kept, median", "Half of the rows keep at most this many classes", 0, |m| {
        m.kept.as_ref().map(|kept| kept.median as f64)
    }),
    column(15, "kept, 90%", "90% of the rows keep at most this many classes", 0, |m| {
        m.kept.as_ref().map(|kept| kept.p90 as f64)
    }),
    column(8, "kept, 99%", "99% of the rows keep at most this many classes", 0, |m| {
        m.kept.as_ref().map(|kept| kept.p99 as f64)
    }),
    column(14, "kept, largest", "Largest number of classes kept in any row", 0, |m| {
        m.kept.as_ref().map(|kept| kept.largest as f64)
    }),
    column(2, "reduction %", "Share of the classes that are dropped, mean over rows", 2, |m| {
        m.kept.as_ref().map(|kept| kept.reduction_percent)
    }),
    column(
        5,
        "kept above 1%",
        "Kept classes with a probability above 1% under the method, mean over rows",
        2,
        |m| m.kept_above_one_percent,
    ),
    column(
        4,
        "effective classes",
        "Effective number of classes: exp of the entropy of the method's distribution, mean over rows",
        2,
        |m| m.effective_classes,
    ),
    column(3, "mass kept %", "Softmax probability of the kept classes, mean over rows", 2, |m| {
        percent(m.softmax_mass_kept)
    }),
    column(
        12,
        "mass dropped %",
        "Softmax probability of the dropped classes, mean over rows",
        4,
        |m| percent(m.softmax_mass_dropped),
    ),
    column(7, "top-1 agrees %", "Rows with the same most probable class as softmax", 1, |m| {
        percent(m.argmax_agreement)
    }),
    column(
        6,
        "evidential support kept %",
        "Share of the classes with direct evidence in their favour that the method keeps, mean over \
         rows that are not vacuous. 100 for evidential by definition. Such classes need not be probable",
        2,
        |m| percent(m.evidential_support_kept),
    ),
    column(
        16,
        "whole support %",
        "Rows in which every class with direct evidence in its favour is kept",
        1,
        |m| percent(m.evidential_support_kept_whole),
    ),
    column(9, "total variation", "Distance to softmax, from 0 to 1, mean over rows", 4, |m| {
        m.total_variation
    }),
    column(
        13,
        "Jensen-Shannon",
        "Divergence from softmax in nats, from 0 to 0.6931, mean over rows",
        4,
        |m| m.jensen_shannon,
    ),
    column(10, "µs/row", "Time per row to compute the sparse rows on all threads", 3, |m| {
        m.microseconds_per_row
    }),
    column(17, "failed rows", "Rows for which the method has no distribution", 0, |m| {
        Some(m.failed as f64)
    }),
];

/// Columns that need the true classes.
const TRUTH: [Column; 5] = [
    column(2, "accuracy %", "Rows whose most probable class is the true one", 2, |m| {
        percent(m.truth.as_ref().map(|truth| truth.accuracy))
    }),
    column(
        2,
        "truth dropped %",
        "Rows whose true class has probability 0: their log-loss is infinite",
        3,
        |m| percent(m.truth.as_ref().map(|truth| truth.dropped_share)),
    ),
    column(
        7,
        "truth dropped, low %",
        "Lower end of the exact (Clopper-Pearson) 95% interval of that share",
        3,
        |m| percent(m.truth.as_ref().map(|truth| truth.dropped_interval[0])),
    ),
    column(
        7,
        "truth dropped, high %",
        "Upper end of the exact (Clopper-Pearson) 95% interval of that share",
        3,
        |m| percent(m.truth.as_ref().map(|truth| truth.dropped_interval[1])),
    ),
    column(
        3,
        "log-loss of kept",
        "-ln p of the true class in nats, mean over the rows in which it is kept; compare it together \
         with the share of rows in which it is dropped",
        4,
        |m| m.truth.as_ref().and_then(|truth| truth.log_loss_of_kept),
    ),
];

impl Column {
    /// The number for display.
    pub(super) fn text(&self, method: &MethodReport) -> String {
        (self.value)(method).map_or_else(|| "–".to_owned(), |x| format!("{x:.*}", self.decimals))
    }
}

impl Comparison {
    /// The columns with numbers. Those of the true classes follow the first one, to be visible without scrolling.
    pub(super) fn columns(&self) -> Vec<&'static Column> {
        let truth = self.methods.iter().any(|method| method.truth.is_some());
        let (first, others) = COLUMNS.split_at(1);
        first.iter().chain(if truth { &TRUTH[..] } else { &[] }).chain(others).collect()
    }

    /// Remarks on the results.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.rows == 0 {
            notes.push("there are no rows".to_owned());
        }
        if self.vacuous > 0 {
            notes.push(format!(
                "vacuous rows: {} (all logits are equal, no class has evidence in its favour, and \
                 evidential keeps all)",
                self.vacuous
            ));
        }
        for method in &self.methods {
            if method.name.split(' ').next() == Some(EVIDENTIAL)
                && let (Some(kept), Some(effective)) = (&method.kept, method.effective_classes)
                && let Some(hint) = many_classes::hint(self.classes, kept.mean, effective)
            {
                notes.push(hint);
            }
            if let Some(failure) = &method.first_failure {
                notes.push(format!(
                    "{} has no distribution for {}, the first of them row {}: {}",
                    method.name,
                    counted(method.failed as usize, "row"),
                    failure.row,
                    failure.reason
                ));
            }
        }
        notes
    }

    /// Renders the table as text with the most important columns that fit into `width` characters.
    pub(crate) fn text(&self, width: usize) -> String {
        let mut columns = self.columns();
        let all = columns.len();
        let mut table = self.table(&columns);
        while table.lines().any(|line| line.chars().count() > width) && columns.len() > 1 {
            let last = (0..columns.len()).max_by_key(|&place| columns[place].rank).unwrap_or(0);
            columns.remove(last);
            table = self.table(&columns);
        }
        let mut text = format!(
            "{} of {}, {}\n",
            counted(self.rows, "row"),
            counted(self.classes, "class"),
            self.dtype
        );
        text += &table;
        for note in self.notes() {
            text += &note;
            text.push('\n');
        }
        if let Some(effective) = self.softmax_effective_classes {
            let _ = writeln!(
                text,
                "effective number of classes (exp of the entropy) of softmax: {effective:.2}"
            );
        }
        let left_out = all - columns.len();
        if left_out > 0 {
            let _ = writeln!(
                text,
                "{left_out} more columns in a wider terminal, with --json or with --html"
            );
        }
        let _ = writeln!(text, "time {:.3} s, threads {}", self.seconds, self.threads);
        if let Some(equal) = &self.equal_guarantee {
            text += &equal.text();
        }
        text
    }

    fn table(&self, columns: &[&Column]) -> String {
        let titles = columns.iter().map(|c| c.title.replace(' ', "\n").replace("-S", "-\nS"));
        let mut table = Table::new();
        table
            .load_style(presets::UTF8_BORDERS_ONLY)
            .set_header(std::iter::once("method".to_owned()).chain(titles));
        for method in &self.methods {
            let numbers = columns.iter().map(|column| column.text(method));
            table.add_row(std::iter::once(method.name.clone()).chain(numbers));
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 0));
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        format!("{table}\n")
    }
}
