//! The summary for the terminal: the paper's table 2, theirs and ours.

use std::fmt::Write as _;

use super::folds::PAPER_SCENE;
use super::paper;
use super::results::{Metric, PedestrianResults, SceneResults};
use crate::experiments::text_table;
use crate::method::EVIDENTIAL;
use crate::words::counted;

const WIDTHS: [usize; 4] = [26, 18, 18, 18];

/// All scenes, the paper's first.
pub(super) fn text(results: &PedestrianResults) -> String {
    let mut text = String::new();
    for (name, scene) in results.ordered_scenes() {
        text += &scene_text(name, scene, results);
    }
    text
}

fn scene_text(name: &str, scene: &SceneResults, results: &PedestrianResults) -> String {
    let mut text = scene.title(name);
    let diverged = results.seeds.saturating_sub(scene.seeds.len());
    if diverged > 0 {
        let _ = write!(text, " ({diverged} more diverged)");
    }
    text.push_str("\n\n");
    let mut row = |label: &str, cells: [String; 3]| {
        text_table::row(&mut text, &WIDTHS, std::iter::once(label.to_owned()).chain(cells));
    };
    let methods = paper::METHODS;
    let tables = [
        ("drawn from each", &scene.direct, &paper::DIRECT),
        ("best of the 5 likeliest", &scene.top5, &paper::TOP),
    ];
    for (title, table, theirs) in tables {
        row(title, methods.map(str::to_owned));
        for (place, theirs) in theirs.iter().enumerate() {
            let metrics = methods.map(|method| Some(table.get(method)?.all()[place]));
            let label = metrics.iter().flatten().next().map_or("", |(label, _)| label);
            row(&format!("  {label}"), metrics.map(|metric| cell(metric.map(|(_, m)| m))));
            if name == PAPER_SCENE {
                let theirs = theirs.map(|(mean, error)| format!("{mean:.3} ± {error:.3}"));
                row("    the paper", theirs);
            }
        }
    }
    row("best of 20 drawn", Default::default());
    for (place, label) in ["  ADE", "  FDE"].into_iter().enumerate() {
        row(label, methods.map(|method| cell(scene.best20.get(method).map(|b| b.all()[place]))));
    }
    let decimal = |x: Option<f64>| x.map_or_else(String::new, |x| format!("{x:.1}"));
    let kept = |method| decimal(scene.kept_by_method.get(method).map(|kept| kept.mean));
    row("kept, mean", methods.map(kept));
    for (place, distance) in results.distances.iter().enumerate() {
        let share = |method| Some(100.0 * scene.within.get(method)?[place].mean?);
        let label = format!("ends within {distance} m, %");
        row(&label, methods.map(|method| decimal(share(method))));
    }
    if let Some(kept) = scene.kept_by_method.get(EVIDENTIAL) {
        let _ = writeln!(
            text,
            "{EVIDENTIAL} keeps {} to {} of {}, and decodes {:.1} times as fast",
            kept.smallest, kept.largest, results.classes, scene.decoding.speedup
        );
    }
    text.push('\n');
    text
}

/// The mean and its standard error.
fn cell(metric: Option<&Metric>) -> String {
    metric.map_or_else(String::new, |metric| metric.summary().text(3))
}

impl SceneResults {
    /// The caption of its tables.
    pub(super) fn title(&self, name: &str) -> String {
        format!("{name}: {} pedestrians, {}", self.agents, counted(self.seeds.len(), "seed"))
    }
}
