//! The number of modes that each method keeps, over many frames.

use std::fmt::Write as _;
use std::path::Path;

use super::Prediction;
use crate::words::counted;

/// A summary of predictions that holds only counts.
#[derive(Default)]
pub(crate) struct KeptCounts {
    frames: usize,
    predictions: usize,
    classes: usize,
    methods: Vec<(String, Kept)>,
}

struct Kept {
    fewest: usize,
    most: usize,
    sum: usize,
}

impl KeptCounts {
    pub(crate) fn add(&mut self, prediction: &Prediction) {
        self.frames += 1;
        self.classes = prediction.classes;
        for agent in &prediction.agents {
            self.predictions += 1;
            for (place, method) in agent.methods.iter().enumerate() {
                if self.methods.len() == place {
                    let none = Kept { fewest: usize::MAX, most: 0, sum: 0 };
                    self.methods.push((method.method.clone(), none));
                }
                let count = method.modes.len();
                let kept = &mut self.methods[place].1;
                kept.fewest = kept.fewest.min(count);
                kept.most = kept.most.max(count);
                kept.sum += count;
            }
        }
    }

    /// For the terminal.
    pub(crate) fn text(&self, scene: &Path, pedestrians: usize) -> String {
        let mut text = format!(
            "{}: {}, {}, {}\n",
            scene.display(),
            counted(self.frames, "frame"),
            counted(pedestrians, "pedestrian"),
            counted(self.predictions, "prediction")
        );
        for (method, Kept { fewest, most, sum }) in &self.methods {
            let mean = *sum as f64 / self.predictions.max(1) as f64;
            let _ = writeln!(
                text,
                "  {method} keeps {fewest} to {most} of {}, {mean:.1} on average",
                self.classes
            );
        }
        text
    }
}
