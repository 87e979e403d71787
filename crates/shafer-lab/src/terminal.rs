//! Terminal width, colours and bar charts.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};

use terminal_size::{Width, terminal_size_of};

use crate::drawing::colour::{Colour, of_method};

/// The width of the terminal; without a terminal, the value of `COLUMNS` or 80.
pub(crate) fn width() -> usize {
    let terminal = terminal_size_of(io::stdout()).map(|(Width(width), _)| width.into());
    let variable = || std::env::var("COLUMNS").ok()?.parse().ok();
    terminal.or_else(variable).unwrap_or(80)
}

/// A bar with a resolution of an eighth of a character; `largest` has the given length.
pub(crate) fn bar(value: f64, largest: f64, length: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if largest <= 0.0 {
        return String::new();
    }
    let eighths = (value / largest * (length * 8) as f64).round() as usize;
    "█".repeat(eighths / 8) + PARTS[eighths % 8]
}

/// Whether to print ANSI colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colours {
    On,
    Off,
}

impl Colours {
    /// On for a terminal, unless `NO_COLOR` is set.
    pub(crate) fn of_standard_output() -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if io::stdout().is_terminal() && !refused && !dumb { Self::On } else { Self::Off }
    }

    fn paint(self, Colour([red, green, blue]): Colour, words: &str) -> String {
        match self {
            Self::On => format!("\x1b[38;2;{red};{green};{blue}m{words}\x1b[0m"),
            Self::Off => words.to_owned(),
        }
    }
}

/// The width of the output.
const COLUMNS: usize = 80;
/// Labels are cut to this length.
const LABEL: usize = 10;
/// The width of a probability with the space before it.
const NUMBER: usize = 6;
const GAP: usize = 2;

/// The distributions of several methods for one query, side by side: one line per class, one column per
/// method, and a dot for a dropped class. Fits 80 columns.
///
/// Each row must have one probability per label.
pub(crate) fn distributions(
    query: &str,
    labels: &[String],
    rows: &[(&str, &[f64])],
    colours: Colours,
) -> String {
    let cut = |label: &String| label.chars().take(LABEL).collect::<String>();
    let labels: Vec<String> = labels.iter().map(cut).collect();
    let label_width = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let room = COLUMNS.saturating_sub(label_width) / rows.len().max(1);
    let bar_width = room.saturating_sub(GAP + NUMBER).max(1);
    let largest = rows.iter().flat_map(|(_, row)| *row).fold(0.0_f64, |most, p| most.max(*p));

    let mut text = format!("{query}\n{:label_width$}", "");
    for (title, row) in rows {
        let kept = row.iter().filter(|p| **p > 0.0).count();
        let words = format!("{title} keeps {kept}");
        let words: String = words.chars().take(bar_width + NUMBER).collect();
        let room = bar_width + NUMBER - words.chars().count();
        let words = colours.paint(of_method(title), &words);
        let _ = write!(text, "{:GAP$}{words}{:room$}", "", "");
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    for (class, label) in labels.iter().enumerate() {
        let mut line = format!("{label:>label_width$}");
        for (title, row) in rows {
            let p = row[class];
            let (bar, number) = if p > 0.0 {
                (bar(p, largest, bar_width), format!("{p:.3}"))
            } else {
                ("·".to_owned(), String::new())
            };
            let room = bar_width - bar.chars().count();
            let bar = colours.paint(of_method(title), &bar);
            let _ = write!(line, "{:GAP$}{bar}{:room$}{number:>NUMBER$}", "", "");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_eighths() {
        assert_eq!(bar(1.0, 1.0, 24), "█".repeat(24));
        assert_eq!(bar(0.0, 1.0, 24), "");
        assert_eq!(bar(1.0, 24.0 * 8.0, 24), "▏");
        assert_eq!(bar(1.0, 0.0, 24), "");
    }

    #[test]
    fn a_terminal_shows_three_methods_side_by_side() {
        let labels: Vec<String> = (0..10).map(|class| class.to_string()).collect();
        let softmax: Vec<f64> = (1..=10).map(|k| f64::from(k) / 55.0).collect();
        let mut sparse = softmax.clone();
        sparse[..5].fill(0.0);
        let rows = [("softmax", &softmax[..]), ("sparsemax", &sparse), ("evidential", &sparse)];
        let plain = distributions("even", &labels, &rows, Colours::Off);
        let lines: Vec<&str> = plain.lines().collect();
        assert_eq!(lines.len(), 12);
        assert!(lines.iter().all(|line| line.chars().count() <= COLUMNS), "{plain}");
        assert!(lines[1].contains("softmax keeps 10") && lines[1].contains("evidential keeps 5"));
        assert_eq!(lines[2].matches('·').count(), 2);
        assert!(lines[11].contains("0.182") && !lines[11].contains('·'));
        assert!(!plain.contains('\x1b'));
        // Colours add nothing but colours.
        let coloured = distributions("even", &labels, &rows, Colours::On);
        let stripped: String = coloured
            .split('\x1b')
            .enumerate()
            .map(|(n, part)| if n == 0 { part } else { part.split_once('m').map_or("", |p| p.1) })
            .collect();
        assert_eq!(stripped, plain);
        assert!(coloured.contains("\x1b[38;2;0;158;115mevidential"));
    }

    #[test]
    fn long_labels_and_many_methods_still_fit() {
        let labels = vec!["a label that is far too long".to_owned(), "b".to_owned()];
        let row = [0.5, 0.5];
        let rows = vec![("sparsegen-lin 0.5", &row[..]); 5];
        let text = distributions("tops", &labels, &rows, Colours::Off);
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
    }
}
