//! How far a long job is.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Shows itself only if a job takes long enough, and only to a person.
pub(crate) struct Progress {
    bar: ProgressBar,
    start: Instant,
    shown: bool,
    wanted: bool,
    rows: u64,
}

/// What takes less is over before anybody could read how long it takes.
const PATIENCE: Duration = Duration::from_secs(1);

impl Progress {
    pub(crate) fn new(rows: Option<usize>, quiet: bool) -> Self {
        let bar = ProgressBar::hidden();
        if let Some(rows) = rows {
            bar.set_length(rows as u64);
            bar.set_style(style(
                "{bar:30} {percent:>3}%  {human_pos} of {human_len} rows  {per_sec}  {eta} left",
            ));
        } else {
            bar.set_style(style("{spinner} {human_pos} rows  {per_sec}"));
        }
        let wanted = !quiet && std::io::stderr().is_terminal();
        Self { bar, start: Instant::now(), shown: false, wanted, rows: 0 }
    }

    pub(crate) fn add(&mut self, rows: usize) {
        self.rows += rows as u64;
        if self.wanted && !self.shown && self.start.elapsed() > PATIENCE {
            self.bar.set_draw_target(indicatif::ProgressDrawTarget::stderr());
            self.shown = true;
        }
        self.bar.set_position(self.rows);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The template is one of the two above.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
