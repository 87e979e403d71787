//! `shafer explain`: one row as a person wants it.

mod text;

use std::ops::Range;

use anyhow::Result;
use serde::Serialize;
use shafer::{Belief, Evidence, Logits, Product, Softmax, Transform, TransformExt};

use crate::groups::in_file;
use crate::joint;

/// What the evidence says about a row, and what a transform makes of it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Explanation {
    pub(crate) row: usize,
    pub(crate) method: &'static str,
    pub(crate) kept: usize,
    /// Of the kept classes, those that the method gives a probability above 1%.
    pub(crate) kept_above_one_percent: usize,
    /// The effective number of classes: the exponential of the entropy of the method's distribution.
    pub(crate) effective_classes: f64,
    /// The same of softmax.
    pub(crate) softmax_effective_classes: f64,
    /// The softmax probability of the kept classes, all together.
    pub(crate) softmax_mass_kept: f64,
    /// The softmax probability of the dropped classes, all together.
    pub(crate) softmax_mass_dropped: f64,
    /// The mass that is committed to no class in particular, m(Z).
    pub(crate) ignorance: f64,
    /// The conflict between the pieces of evidence for different classes. It is near 1 as soon as two
    /// classes lie far above the mean, however small their probabilities are.
    pub(crate) internal_conflict: f64,
    /// Whether nothing favours any class.
    pub(crate) vacuous: bool,
    /// The most probable first.
    pub(crate) classes: Vec<ClassExplanation>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct ClassExplanation {
    pub(crate) class: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<String>,
    /// `None` for a masked class.
    pub(crate) logit: Option<f64>,
    /// The weight of evidence: positive for the class, negative against it.
    pub(crate) weight: Option<f64>,
    pub(crate) belief: f64,
    pub(crate) plausibility: f64,
    pub(crate) softmax: f64,
    pub(crate) probability: f64,
    pub(crate) kept: bool,
}

/// A row of several groups.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct GroupedExplanation {
    pub(crate) row: usize,
    pub(crate) method: &'static str,
    /// Their classes are numbered by group.
    pub(crate) groups: Vec<Explanation>,
    pub(crate) joint: JointExplanation,
}

/// What groups come to together.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct JointExplanation {
    #[serde(serialize_with = "joint::count")]
    pub(crate) classes: f64,
    #[serde(serialize_with = "joint::count")]
    pub(crate) kept: f64,
    /// The most probable of the kept ones, in order.
    pub(crate) best: Vec<JointClass>,
}

/// One class of every group.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct JointClass {
    pub(crate) classes: Vec<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) labels: Vec<String>,
    pub(crate) probability: f64,
}

/// A row to be explained.
#[derive(Clone, Copy)]
pub(crate) struct Explainer<'a> {
    pub(crate) row: usize,
    pub(crate) logits: &'a [f64],
    pub(crate) transform: &'a dyn Transform,
    pub(crate) temperature: f64,
    /// As many as logits, or none.
    pub(crate) labels: &'a [String],
}

impl Explainer<'_> {
    /// The row as one variable.
    pub(crate) fn whole(self) -> Result<Explanation> {
        let whole = 0..self.logits.len();
        self.one().map_err(|error| in_file(error, self.row, 0, &[whole]))
    }

    /// The row as several variables, and so many of the best joint classes.
    pub(crate) fn groups(self, groups: &[Range<usize>], best: usize) -> Result<GroupedExplanation> {
        let mut explanations = Vec::with_capacity(groups.len());
        for (number, group) in groups.iter().enumerate() {
            let labels = self.labels.get(group.clone()).unwrap_or_default();
            let part = Self { logits: &self.logits[group.clone()], labels, ..self };
            let part = part.one().map_err(|error| in_file(error, self.row, number, groups))?;
            explanations.push(part);
        }
        Ok(GroupedExplanation {
            row: self.row,
            method: self.transform.name(),
            joint: self.joint(&explanations, groups, best)?,
            groups: explanations,
        })
    }

    fn joint(
        self,
        explanations: &[Explanation],
        groups: &[Range<usize>],
        best: usize,
    ) -> Result<JointExplanation> {
        let kept = |explanation: &Explanation| {
            let kept = explanation.classes.iter().filter(|class| class.kept);
            let mut kept: Vec<_> =
                kept.map(|class| (class.class as u32, class.probability)).collect();
            kept.sort_by_key(|&(class, _)| class);
            kept.into_iter().unzip()
        };
        let rows: Vec<(Vec<u32>, Vec<f64>)> = explanations.iter().map(kept).collect();
        let rows: Vec<(usize, &[u32], &[f64])> = rows
            .iter()
            .zip(groups)
            .map(|((classes, values), group)| (group.len(), &classes[..], &values[..]))
            .collect();
        let label =
            |(class, group): (&usize, &Range<usize>)| self.labels.get(group.start + class).cloned();
        let best = Product::compressed(&rows)?.best(best).into_iter().map(|joint| JointClass {
            labels: joint.classes.iter().zip(groups).filter_map(label).collect(),
            classes: joint.classes,
            probability: joint.probability,
        });
        Ok(JointExplanation {
            classes: groups.iter().map(|group| group.len() as f64).product(),
            kept: explanations.iter().map(|explanation| explanation.kept as f64).product(),
            best: best.collect(),
        })
    }

    fn one(self) -> shafer::Result<Explanation> {
        let Self { row, logits, transform, temperature, labels } = self;
        let input = Logits::row(logits)?.temperature(temperature)?;
        let mut softmax = vec![0.0; logits.len()];
        Softmax.dense(&input, &mut softmax)?;
        let compressed = transform.compressed(&input)?;
        let (kept, values) = compressed.row(0).unwrap_or_default();

        // Dividing logits by the temperature divides the weights of evidence.
        let scaled: Vec<f64> = logits.iter().map(|l| l / temperature).collect();
        let evidence = Evidence::from_logits(&scaled)?;
        let belief = Belief::new(&evidence);
        let (singletons, contour) = (belief.singletons(), belief.contour());
        let mut classes: Vec<ClassExplanation> = (0..logits.len())
            .map(|class| {
                let place = kept.binary_search(&(class as u32)).ok();
                let finite = logits[class].is_finite();
                ClassExplanation {
                    class,
                    label: labels.get(class).cloned(),
                    logit: finite.then_some(logits[class]),
                    weight: finite.then(|| evidence.positive()[class] - evidence.negative()[class]),
                    belief: singletons[class],
                    plausibility: contour[class],
                    softmax: softmax[class],
                    probability: place.map_or(0.0, |place| values[place]),
                    kept: place.is_some(),
                }
            })
            .collect();
        let softmax_mass = |kept| {
            classes.iter().filter(|class| class.kept == kept).map(|class| class.softmax).sum()
        };
        let (softmax_mass_kept, softmax_mass_dropped) = (softmax_mass(true), softmax_mass(false));
        classes.sort_by(|a, b| b.softmax.total_cmp(&a.softmax).then(a.class.cmp(&b.class)));
        Ok(Explanation {
            row,
            method: transform.name(),
            kept: kept.len(),
            kept_above_one_percent: values.iter().filter(|&&p| p > 0.01).count(),
            effective_classes: effective_classes(values),
            softmax_effective_classes: effective_classes(&softmax),
            softmax_mass_kept,
            softmax_mass_dropped,
            ignorance: belief.ignorance(),
            internal_conflict: belief.internal_conflict(),
            vacuous: evidence.is_vacuous(),
            classes,
        })
    }
}

/// The exponential of the entropy.
fn effective_classes(distribution: &[f64]) -> f64 {
    let terms = distribution.iter().filter(|&&p| p > 0.0).map(|p| -p * p.ln());
    terms.sum::<f64>().exp()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use shafer::Evidential;

    fn explainer<'a>(logits: &'a [f64], labels: &'a [String]) -> Explainer<'a> {
        const TRANSFORM: &dyn Transform = &Softmax;
        Explainer { row: 3, logits, transform: TRANSFORM, temperature: 1.0, labels }
    }

    #[test]
    fn a_row_is_explained_in_the_order_of_its_probabilities() {
        let logits = [0.0, 2.0, f64::NEG_INFINITY, -2.0];
        let transform = Evidential::default();
        let e = Explainer { transform: &transform, ..explainer(&logits, &[]) }.whole().unwrap();
        let order: Vec<usize> = e.classes.iter().map(|c| c.class).collect();
        assert_eq!(order, [1, 0, 3, 2]);
        assert_eq!(e.kept, 1);
        assert!(e.classes[0].kept && (e.classes[0].weight.unwrap() - 2.0).abs() < 1e-15);
        assert_eq!((e.classes[3].logit, e.classes[3].plausibility), (None, 0.0));
    }

    /// Against numbers worked out by hand: the probabilities of softmax are 1/2, 1/4, 1/8, 15/128 and
    /// 1/128, and the first two lie above the mean of the logits.
    #[test]
    fn what_is_kept_and_dropped_in_numbers() {
        let logits = [0.5_f64, 0.25, 0.125, 15.0 / 128.0, 1.0 / 128.0].map(f64::ln);
        let transform = Evidential::with_rounds(2).unwrap();
        let e = Explainer { transform: &transform, ..explainer(&logits, &[]) }.whole().unwrap();
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-14, "{a} and {b}");
        assert_eq!((e.kept, e.kept_above_one_percent), (2, 2));
        close(e.softmax_mass_kept, 0.75);
        close(e.softmax_mass_dropped, 0.25);
        // Of 2/3 and 1/3.
        close(e.effective_classes, 1.5_f64.powf(2.0 / 3.0) * 3.0_f64.powf(1.0 / 3.0));
        let factors = [(2.0, 0.5), (4.0, 0.25), (8.0, 0.125), (128.0 / 15.0, 15.0 / 128.0)];
        let product: f64 = factors.iter().map(|(x, p): &(f64, f64)| x.powf(*p)).product();
        close(e.softmax_effective_classes, product * 128.0_f64.powf(1.0 / 128.0));
        // Softmax keeps the last, too, but not above 1%.
        let e = explainer(&logits, &[]).whole().unwrap();
        assert_eq!((e.kept, e.kept_above_one_percent), (5, 4));
        assert_eq!(e.softmax_mass_dropped, 0.0);
    }

    /// Against the enumeration of all joint classes.
    #[test]
    fn the_best_joint_classes() {
        let logits = [0.3, -1.0, 2.0, 0.1, -0.2, 1.2, 0.9];
        let groups = [0..3, 3..7];
        let labels: Vec<String> = ["a", "b", "c", "p", "q", "r", "s"].map(str::to_owned).into();
        let e = explainer(&logits, &labels).groups(&groups, 5).unwrap();
        let softmax = |group: Range<usize>| Softmax.row(&logits[group]).unwrap();
        let (first, second) = (softmax(0..3), softmax(3..7));
        let pairs = (0..3).flat_map(|i| (0..4).map(move |j| (i, j)));
        let mut all: Vec<_> = pairs.map(|(i, j)| (first[i] * second[j], vec![i, j])).collect();
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        assert_eq!((e.joint.classes, e.joint.kept, e.joint.best.len()), (12.0, 12.0, 5));
        for (found, (probability, classes)) in e.joint.best.iter().zip(&all) {
            assert_eq!(&found.classes, classes);
            assert!((found.probability - probability).abs() < 1e-15);
        }
        assert_eq!(e.joint.best[0].labels, ["c", "r"]);
        assert_eq!((e.groups[1].classes[0].class, e.groups[1].classes.len()), (2, 4));
        assert_eq!(e.groups[1].classes[0].label.as_deref(), Some("r"));

        let masked = [0.0, 1.0, f64::NEG_INFINITY, f64::NEG_INFINITY];
        let error = explainer(&masked, &[]).groups(&[0..2, 2..4], 5).unwrap_err();
        let error = format!("{error:#}");
        assert!(error.starts_with("group 1 (classes 2 to 3): row 3: "), "{error}");
    }
}
