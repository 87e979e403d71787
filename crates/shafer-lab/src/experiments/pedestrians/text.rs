//! The summary for the terminal: the paper's table 2, theirs and ours.

use std::fmt::Write as _;

use super::folds::PAPER_SCENE;
use super::paper;
use super::results::{ByMethod, ErrorMetrics, Metric, PedestrianResults, SceneResults};
use crate::method::EVIDENTIAL;

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
    let beside = name == PAPER_SCENE;
    let tables: [(&str, &ByMethod<ErrorMetrics>, _); 2] = [
        ("drawn from each", &scene.direct, &paper::DIRECT),
        ("best of the 5 likeliest", &scene.top5, &paper::TOP),
    ];
    for (title, table, theirs) in tables {
        let _ = write!(text, "{title:<26}");
        for method in paper::METHODS {
            let _ = write!(text, "{method:>18}");
        }
        text.push('\n');
        for (row, theirs) in theirs.iter().enumerate() {
            let mut label = "";
            let mut cells = String::new();
            for method in paper::METHODS {
                let metric = table.get(method).map(|errors| errors.all()[row]);
                label = metric.map_or(label, |(name, _)| name);
                let cell = metric.map_or_else(String::new, |(_, metric)| metric.text());
                let _ = write!(cells, "{cell:>18}");
            }
            let _ = writeln!(text, "  {label:<24}{cells}");
            if beside {
                let _ = write!(text, "  {:<24}", "  the paper");
                for (mean, error) in theirs {
                    let _ = write!(text, "{:>18}", format!("{mean:.3} ± {error:.3}"));
                }
                text.push('\n');
            }
        }
    }
    text += "best of 20 drawn\n";
    for (row, label) in ["ADE", "FDE"].into_iter().enumerate() {
        let _ = write!(text, "  {label:<24}");
        for method in paper::METHODS {
            let best = scene.best20.get(method).map(|best| best.all()[row].text());
            let _ = write!(text, "{:>18}", best.unwrap_or_default());
        }
        text.push('\n');
    }
    let _ = write!(text, "{:<26}", "kept, mean");
    for method in paper::METHODS {
        let kept = scene.kept_by_method.get(method);
        let _ = write!(text, "{:>18}", kept.map_or_else(String::new, |k| format!("{:.1}", k.mean)));
    }
    text.push('\n');
    for (place, distance) in results.distances.iter().enumerate() {
        let _ = write!(text, "{:<26}", format!("ends within {distance} m, %"));
        for method in paper::METHODS {
            let share = scene.within.get(method).and_then(|within| within[place].mean);
            let cell = share.map_or_else(String::new, |share| format!("{:.1}", 100.0 * share));
            let _ = write!(text, "{cell:>18}");
        }
        text.push('\n');
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

/// A number of trainings.
pub(super) fn seeds(count: usize) -> String {
    format!("{count} {}", if count == 1 { "seed" } else { "seeds" })
}

impl SceneResults {
    /// The caption of its tables.
    pub(super) fn title(&self, name: &str) -> String {
        format!("{name}: {} pedestrians, {}", self.agents, seeds(self.seeds.len()))
    }
}

impl Metric {
    /// The mean and its standard error.
    pub(super) fn text(&self) -> String {
        match (self.mean, self.se) {
            (Some(mean), Some(se)) => format!("{mean:.3} ± {se:.3}"),
            (Some(mean), None) => format!("{mean:.3}"),
            (None, _) => String::new(),
        }
    }
}
