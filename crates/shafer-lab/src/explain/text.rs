//! Renders explanations as tables with bars.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table, presets};

use super::{Explanation, GroupedExplanation, JointExplanation};
use crate::joint::count_text;
use crate::many_classes;
use crate::method::EVIDENTIAL;
use crate::terminal::bar;
use crate::words::counted;

/// The widest bar, in characters.
const BAR: usize = 24;

/// Without room for this many characters, bars are left out.
const SHORTEST_BAR: usize = 4;

impl Explanation {
    /// Renders lines of at most `width` characters.
    pub(crate) fn text(&self, width: usize) -> String {
        format!("row {}: {}", self.row, self.body(width))
    }

    fn body(&self, width: usize) -> String {
        let rows = self.classes.iter().map(|class| {
            let name = class.label.clone().unwrap_or_else(|| class.class.to_string());
            let logit = class.logit.map_or_else(|| "masked".to_owned(), |x| format!("{x:.3}"));
            let cells = vec![
                name,
                logit,
                class.weight.map_or_else(String::new, |w| format!("{w:+.3}")),
                probability(class.belief),
                probability(class.plausibility),
                probability(class.softmax),
                if class.kept { probability(class.probability) } else { "dropped".to_owned() },
            ];
            (cells, class.probability)
        });
        let header =
            ["class", "logit", "weight", "belief", "plausibility", "softmax", "probability"];
        let classes = self.classes.len() + self.left_out;
        let mut text = format!(
            "{} keeps {} of {}\n{}",
            self.method,
            self.kept,
            counted(classes, "class"),
            table(&header, &rows.collect::<Vec<_>>(), width)
        );
        if self.left_out > 0 {
            let others = counted(self.left_out, "less probable class");
            let are = if self.left_out == 1 { "is" } else { "are" };
            let _ = writeln!(text, "{others} {are} not shown; --all shows every class");
        }
        let _ = writeln!(
            text,
            "softmax mass kept {}, dropped {}; kept classes above 1%: {}\n\
             effective number of classes (exp of the entropy): {:.2}, of softmax {:.2}\n\
             evidence: ignorance {:.4} (mass on no class in particular), conflict between the \
             evidence for different classes {:.4}",
            probability(self.softmax_mass_kept),
            probability(self.softmax_mass_dropped),
            self.kept_above_one_percent,
            self.effective_classes,
            self.softmax_effective_classes,
            self.ignorance,
            self.internal_conflict
        );
        if self.method == EVIDENTIAL
            && let Some(hint) =
                many_classes::hint(classes, self.kept as f64, self.effective_classes)
        {
            let _ = writeln!(text, "hint: {hint}");
        }
        if self.vacuous {
            text += "all logits are equal: the evidence favours no class, and all are kept\n";
        }
        text
    }
}

impl GroupedExplanation {
    /// Renders lines of at most `width` characters.
    pub(crate) fn text(&self, width: usize) -> String {
        let mut text = String::new();
        for (number, group) in self.groups.iter().enumerate() {
            let _ = writeln!(text, "row {}, group {number}: {}", self.row, group.body(width));
        }
        text + &self.joint.text(width)
    }
}

impl JointExplanation {
    fn text(&self, width: usize) -> String {
        let (kept, classes) = (count_text(self.kept), count_text(self.classes));
        let mut text = format!("together: {kept} of {classes} joint classes are kept\n");
        if self.best.is_empty() {
            return text;
        }
        let rows = self.best.iter().map(|joint| {
            let numbers = joint.classes.iter().map(usize::to_string).collect();
            let names = if joint.labels.is_empty() { numbers } else { joint.labels.clone() };
            (vec![names.join(", "), format!("{:.4}", joint.probability)], joint.probability)
        });
        text += &table(&["joint class", "probability"], &rows.collect::<Vec<_>>(), width);
        if self.kept > self.best.len() as f64 {
            text += "the others are less probable; --best lists more\n";
        }
        text
    }
}

/// Four decimals, or scientific notation for values that would round to zero.
fn probability(p: f64) -> String {
    if p > 0.0 && p < 5e-5 { format!("{p:.1e}") } else { format!("{p:.4}") }
}

/// A table with a column of names, columns of numbers, and a bar per row if there is room.
fn table(header: &[&str], rows: &[(Vec<String>, f64)], width: usize) -> String {
    let largest = rows.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let with_bars = |longest: usize| {
        let mut table = Table::new();
        table.load_style(presets::UTF8_BORDERS_ONLY);
        table.set_header(header.iter().copied().chain([""]));
        for (cells, value) in rows {
            table.add_row(cells.iter().cloned().chain([bar(*value, largest, longest)]));
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 1));
        }
        for column in table.column_iter_mut().skip(1).take(header.len() - 1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        format!("{table}\n")
    };
    let narrow = with_bars(0);
    let taken = narrow.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    match width.saturating_sub(taken) {
        room if room < SHORTEST_BAR => narrow,
        room => with_bars(room.min(BAR)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::super::Explainer;
    use super::*;
    use shafer::Method;

    #[test]
    fn tables_fit_their_lines() {
        let method = Method::EVIDENTIAL;
        let logits = [0.0, 2.0, f64::NEG_INFINITY, -2.0];
        let explainer =
            Explainer { row: 3, logits: &logits, method, temperature: 1.0, labels: &[], most: 3 };
        let explanation = explainer.whole().unwrap();
        for width in [76, 80, 100, 200] {
            let text = explanation.text(width);
            assert!(text.starts_with("row 3: evidential keeps 1 of 4 classes\n┌"));
            assert!(text.contains("1 less probable class is not shown"));
            let table = text.lines().filter(|line| line.starts_with(['│', '┌']));
            assert!(table.clone().all(|line| line.chars().count() <= width), "{text}");
            let bar = text.matches('█').count();
            assert!(bar <= BAR && (width < 80 || bar >= SHORTEST_BAR), "{text}");
        }
        let text = explanation.text(80);
        assert!(
            text.contains("mass kept 0.8668, dropped 0.1332; kept classes above 1%: 1\n"),
            "{text}"
        );
        assert!(
            text.contains("conflict between the evidence for different classes 0.0000\n"),
            "{text}"
        );
        assert!(!text.contains("modes") && !text.contains("hint"), "{text}");
        let mut many = vec![0.0; 2000];
        many[..1000].fill(1.0);
        many[0] = 40.0;
        let text = Explainer { logits: &many, ..explainer }.whole().unwrap().text(80);
        assert!(text.contains("hint: evidential keeps 1000 classes, but the effective"), "{text}");
        let text = explainer.groups(&[0..2, 2..4], 10).unwrap().text(80);
        assert!(text.starts_with("row 3, group 0: evidential keeps 1 of 2 classes\n"), "{text}");
        assert!(text.contains("together: 1 of 4 joint classes are kept\n"), "{text}");
        assert!(text.contains("│1, 1"), "{text}");
    }
}
