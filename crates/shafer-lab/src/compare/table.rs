//! The numbers in columns: the same in the terminal and on the page.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table, presets};

use super::{Comparison, MethodReport};
use crate::words::counted;

/// One number of each method.
pub(super) struct Column {
    pub(super) title: &'static str,
    /// What the number is, for who has not read the manual.
    pub(super) help: &'static str,
    pub(super) value: fn(&MethodReport) -> Option<f64>,
    pub(super) decimals: usize,
    /// Where there is no room for all of them, those with the highest rank go first.
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

pub(super) const COLUMNS: [Column; 14] = [
    column(1, "kept, mean", "Support size: classes kept in a row, mean over rows", 2, |m| {
        m.kept.as_ref().map(|kept| kept.mean)
    }),
    column(9, "kept, median", "Half of the rows keep at most so many classes", 0, |m| {
        m.kept.as_ref().map(|kept| kept.median as f64)
    }),
    column(12, "kept, 90%", "90% of the rows keep at most so many classes", 0, |m| {
        m.kept.as_ref().map(|kept| kept.p90 as f64)
    }),
    column(7, "kept, 99%", "99% of the rows keep at most so many classes", 0, |m| {
        m.kept.as_ref().map(|kept| kept.p99 as f64)
    }),
    column(11, "kept, largest", "The most classes that any row keeps", 0, |m| {
        m.kept.as_ref().map(|kept| kept.largest as f64)
    }),
    column(2, "reduction %", "Share of the classes that is dropped, mean over rows", 2, |m| {
        m.kept.as_ref().map(|kept| kept.reduction_percent)
    }),
    column(3, "mass kept %", "Softmax probability of the kept classes, mean over rows", 2, |m| {
        percent(m.softmax_mass_kept)
    }),
    column(5, "top-1 agrees %", "Rows whose most probable class is that of softmax", 1, |m| {
        percent(m.argmax_agreement)
    }),
    column(
        4,
        "modes kept %",
        "Share of the evidentially supported classes, those with direct evidence in their favour, \
         that the method keeps; mean over rows that are not vacuous. For evidential it is 100 by \
         definition",
        2,
        |m| percent(m.evidential_support_kept),
    ),
    column(13, "all modes %", "Rows in which every evidentially supported class is kept", 1, |m| {
        percent(m.evidential_support_kept_whole)
    }),
    column(6, "total variation", "Distance to softmax, from 0 to 1, mean over rows", 4, |m| {
        m.total_variation
    }),
    column(
        10,
        "Jensen-Shannon",
        "Divergence from softmax in nats, from 0 to 0.6931, mean over rows",
        4,
        |m| m.jensen_shannon,
    ),
    column(
        8,
        "µs/row",
        "Time to compute the sparse rows with all threads, divided by their number",
        3,
        |m| m.microseconds_per_row,
    ),
    column(14, "failed rows", "Rows that the method gives no distribution for", 0, |m| {
        Some(m.failed as f64)
    }),
];

impl Column {
    /// The number as people read it.
    pub(super) fn text(&self, method: &MethodReport) -> String {
        (self.value)(method).map_or_else(|| "–".to_owned(), |x| format!("{x:.*}", self.decimals))
    }
}

impl Comparison {
    /// What a reader of the numbers has to know besides.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.rows == 0 {
            notes.push("there are no rows".to_owned());
        }
        if self.vacuous > 0 {
            notes.push(format!(
                "{} of the rows are vacuous: all their logits are equal, no class has evidence in its \
                 favour, and evidential keeps all",
                self.vacuous
            ));
        }
        for method in &self.methods {
            if let Some(failure) = &method.first_failure {
                notes.push(format!(
                    "{} gives no distribution for {} of the rows, first for row {}: {}",
                    method.name, method.failed, failure.row, failure.reason
                ));
            }
        }
        notes
    }

    /// As text for lines of so many characters: of the columns, the most important that fit.
    pub(crate) fn text(&self, width: usize) -> String {
        let mut columns: Vec<&Column> = COLUMNS.iter().collect();
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
        text += "modes kept: the share of the classes with direct evidence; for evidential, all by\n\
                 definition\n";
        let left_out = COLUMNS.len() - columns.len();
        if left_out > 0 {
            let _ = writeln!(
                text,
                "{left_out} more columns: in a wider terminal, with --json, and with --html"
            );
        }
        let _ = writeln!(text, "time {:.3} s, threads {}", self.seconds, self.threads);
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
