//! From the records of all stages to the tables of the results.

use shafer_data::Column;

use super::judge::Judged;
use super::kept::Kept;
use super::results::{ByMethod, Codebook, KeptSummary};
use super::samples::Sampled;
use crate::experiments::Columns;
use crate::experiments::methods::MethodName;
use crate::method::{EVIDENTIAL, SOFTMAX, SPARSEMAX};

/// What was measured; the slices by method have the order of `methods`.
pub(super) struct Measured<'a> {
    pub(super) methods: &'a [MethodName],
    pub(super) kept: &'a [Kept],
    pub(super) sampled: &'a [Sampled],
    /// Sampled and real images, each with its name.
    pub(super) judged: &'a [(String, Judged)],
}

impl Measured<'_> {
    /// A number of the images of each method, and of the real ones.
    pub(super) fn of_images(&self, of: impl Fn(&Judged) -> Option<f64>) -> ByMethod<f64> {
        let named = |(name, judged): &(String, Judged)| Some((name.clone(), of(judged)?));
        self.judged.iter().filter_map(named).collect()
    }

    pub(super) fn kept(&self, codebook: &Codebook) -> ByMethod<KeptSummary> {
        let measured = self.methods.iter().zip(self.kept.iter().zip(self.sampled));
        let named = |(method, (kept, sampled)): (&MethodName, (&Kept, &Sampled))| {
            (method.name.clone(), summary(kept, sampled, codebook))
        };
        measured.map(named).collect()
    }

    /// The maps of the paper's methods.
    pub(super) fn maps(&self) -> ByMethod<Vec<f32>> {
        let measured = self.methods.iter().zip(self.kept);
        measured
            .filter(|(method, _)| [SOFTMAX, SPARSEMAX, EVIDENTIAL].contains(&method.name.as_str()))
            .map(|(method, kept)| (method.name.clone(), kept.map()))
            .collect()
    }

    /// A row for each class of each method and of the real images.
    pub(super) fn table(&self, classes: &[String]) -> Columns {
        let [mut method, mut class_name] = [const { Vec::new() }; 2];
        let [mut images, mut top1, mut top5] = [const { Vec::new() }; 3];
        let mut diversity = Vec::new();
        for (name, judged) in self.judged {
            for (class, judged) in classes.iter().zip(&judged.classes) {
                method.push(name.clone());
                class_name.push(class.clone());
                images.push(judged.images as i64);
                top1.push(judged.top1 as i64);
                top5.push(judged.top5 as i64);
                diversity.push(judged.diversity.unwrap_or(f64::NAN));
            }
        }
        vec![
            ("method", Column::Words(method)),
            ("class", Column::Words(class_name)),
            ("images", Column::Integers(images)),
            ("top1", Column::Integers(top1)),
            ("top5", Column::Integers(top5)),
            ("diversity", Column::Numbers(diversity)),
        ]
    }
}

fn summary(kept: &Kept, sampled: &Sampled, codebook: &Codebook) -> KeptSummary {
    let (mean, max) = (kept.mean(), kept.quantile(1.0));
    let reduction = |kept: f64| 1.0 - kept / codebook.codes as f64;
    KeptSummary {
        mean,
        median: kept.quantile(0.5),
        p90: kept.quantile(0.9),
        p99: kept.quantile(0.99),
        max,
        reduction_mean: reduction(mean),
        reduction_max: reduction(max as f64),
        of_used_mean: kept.mean_in_use() / codebook.used as f64,
        of_used_max: kept.most_in_use() as f64 / codebook.used as f64,
        mass: kept.mass(),
        missed: kept.missed(),
        sampled_mean: sampled.kept_mean(),
        sampled_max: sampled.kept_max(),
    }
}
