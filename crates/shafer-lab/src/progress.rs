//! Progress bars.

use std::fmt;
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use indicatif::{HumanCount, ProgressBar, ProgressState, ProgressStyle};

/// A progress bar that appears only on a terminal, and only for jobs longer than a second.
pub(crate) struct Progress {
    bar: ProgressBar,
    start: Instant,
    shown: bool,
    wanted: bool,
    position: u64,
}

/// The delay before the bar appears.
const DELAY: Duration = Duration::from_secs(1);

impl Progress {
    pub(crate) fn new(rows: Option<usize>, quiet: bool) -> Self {
        let bar = ProgressBar::hidden();
        if let Some(rows) = rows {
            bar.set_length(rows as u64);
            bar.set_style(style(
                "{bar:30} {percent:>3}%  {human_pos} of {human_len} rows  {rate}  {eta} left",
            ));
        } else {
            bar.set_style(style("{spinner} {human_pos} rows  {rate}"));
        }
        Self::hidden(bar, quiet)
    }

    /// For a download, whose length is known once the first bytes arrive.
    pub(crate) fn file(name: &str, quiet: bool) -> Self {
        let bar = ProgressBar::hidden().with_message(name.to_owned());
        bar.set_style(style("{spinner} {msg}  {binary_bytes}  {elapsed}"));
        Self::hidden(bar, quiet)
    }

    /// For a job of a known number of steps.
    pub(crate) fn counted(what: &str, unit: &str, total: u64, quiet: bool) -> Self {
        let bar = ProgressBar::hidden().with_message(what.to_owned()).with_prefix(unit.to_owned());
        bar.set_length(total);
        bar.set_style(style(
            "{msg}  {bar:30} {percent:>3}%  {human_pos} of {human_len} {prefix}  {rate}  {eta} left",
        ));
        Self::hidden(bar, quiet)
    }

    fn hidden(bar: ProgressBar, quiet: bool) -> Self {
        let wanted = !quiet && std::io::stderr().is_terminal();
        Self { bar, start: Instant::now(), shown: false, wanted, position: 0 }
    }

    /// Sets the length of a download.
    pub(crate) fn set_length(&mut self, bytes: u64) {
        self.bar.set_length(bytes);
        self.bar.set_style(style(
            "{msg}  {wide_bar} {percent:>3}% of {binary_total_bytes}  {eta} left",
        ));
    }

    /// Estimates the total number of rows from the share of the file read so far.
    pub(crate) fn expect(&mut self, share: Option<f64>) {
        let Some(share) = share.filter(|&share| share > 0.0) else { return };
        if self.bar.length().is_none() {
            self.bar.set_style(style(
                "{bar:30} {percent:>3}%  {human_pos} of about {human_len} rows  {rate}  {eta} left",
            ));
        }
        self.bar.set_length((self.position as f64 / share).round() as u64);
    }

    pub(crate) fn add(&mut self, rows: usize) {
        self.reach(self.position + rows as u64);
    }

    pub(crate) fn reach(&mut self, position: u64) {
        self.position = position;
        if self.wanted && !self.shown && self.start.elapsed() > DELAY {
            self.bar.set_draw_target(indicatif::ProgressDrawTarget::stderr());
            self.shown = true;
        }
        self.bar.set_position(position);
        self.bar.tick();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The template is one of those above.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .with_key("rate", |state: &ProgressState, out: &mut dyn fmt::Write| {
            // Writing to a string cannot fail.
            let _ = out.write_str(&rate(state.per_sec()));
        })
}

/// A rate per second for display.
fn rate(per_second: f64) -> String {
    if per_second < 100.0 {
        format!("{per_second:.1}/s")
    } else {
        format!("{}/s", HumanCount(per_second.round() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_text_are_estimated() {
        let mut progress = Progress::new(None, false);
        progress.add(10);
        progress.expect(None);
        assert_eq!(progress.bar.length(), None);
        progress.expect(Some(0.25));
        assert_eq!(progress.bar.length(), Some(40));
        progress.add(26);
        progress.expect(Some(1.0));
        assert_eq!(progress.bar.length(), Some(36));
    }

    #[test]
    fn rates() {
        assert_eq!(rate(0.25), "0.2/s");
        assert_eq!(rate(38_747.361_4), "38,747/s");
    }
}
