//! `shafer explain`: the evidence and the distribution of one row.

mod text;

use std::ops::Range;

use anyhow::Result;
use serde::Serialize;
use shafer::{Belief, CsrRows, Evidence, Logits, Method, Product, Threads};

use crate::groups::in_file;
use crate::stream::Rows;
use crate::words::counted;
use crate::{joint, memory};

/// The evidence of a row and the output of a transform.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Explanation {
    pub(crate) row: usize,
    pub(crate) method: &'static str,
    pub(crate) kept: usize,
    /// The number of kept classes with a probability above 1%.
    pub(crate) kept_above_one_percent: usize,
    /// The effective number of classes: exp of the entropy of the method's distribution.
    pub(crate) effective_classes: f64,
    /// The effective number of classes of softmax.
    pub(crate) softmax_effective_classes: f64,
    /// The total softmax probability of the kept classes.
    pub(crate) softmax_mass_kept: f64,
    /// The total softmax probability of the dropped classes.
    pub(crate) softmax_mass_dropped: f64,
    /// The mass of the whole frame, m(Z), which is committed to no class in particular.
    pub(crate) ignorance: f64,
    /// The conflict between the evidence for different classes. Near 1 as soon as two classes lie far above the
    /// mean, however small their probabilities.
    pub(crate) internal_conflict: f64,
    /// Whether the evidence favours no class.
    pub(crate) vacuous: bool,
    /// The listed classes, the most probable first.
    pub(crate) classes: Vec<ClassExplanation>,
    /// The number of less probable classes that are not listed.
    pub(crate) left_out: usize,
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

/// The explanation of a row of several groups.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct GroupedExplanation {
    pub(crate) row: usize,
    pub(crate) method: &'static str,
    /// Classes count from 0 in each group.
    pub(crate) groups: Vec<Explanation>,
    pub(crate) joint: JointExplanation,
}

/// The joint space of the groups.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct JointExplanation {
    #[serde(serialize_with = "joint::count")]
    pub(crate) classes: f64,
    #[serde(serialize_with = "joint::count")]
    pub(crate) kept: f64,
    /// The most probable kept joint classes, in descending order.
    pub(crate) best: Vec<JointClass>,
}

/// A joint class: one class of each group.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct JointClass {
    pub(crate) classes: Vec<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) labels: Vec<String>,
    pub(crate) probability: f64,
}

/// A row to explain and the options.
#[derive(Clone, Copy)]
pub(crate) struct Explainer<'a> {
    pub(crate) row: usize,
    pub(crate) logits: &'a [f64],
    pub(crate) method: Method,
    pub(crate) temperature: f64,
    /// One name per logit, or none.
    pub(crate) labels: &'a [String],
    /// The largest number of classes to list.
    pub(crate) most: usize,
}

impl Explainer<'_> {
    /// Fails if there is not enough memory to explain one of these rows with up to `most` classes listed.
    pub(crate) fn check_memory(rows: &Rows, most: usize) -> Result<()> {
        /// Bytes per listed class, as numbers and as text.
        const LISTED: usize = 1 << 10;
        let classes = rows.shape().classes;
        // The blocks of the reader; the row, the kept classes, and the weights for and against each class.
        let read = rows.held().saturating_mul(rows.dtype().size() + 1);
        let bytes = read
            .saturating_add(classes.saturating_mul(6 * size_of::<f64>()))
            .saturating_add(most.min(classes).saturating_mul(LISTED));
        memory::check(bytes, &format!("rows of {}", counted(classes, "class")))
    }

    /// Explains the row as one variable.
    pub(crate) fn whole(self) -> Result<Explanation> {
        let whole = 0..self.logits.len();
        let explained = self.one().map_err(|error| in_file(error, self.row, 0, &[whole]));
        Ok(explained?.0)
    }

    /// Explains the row as several variables, with the `best` most probable joint classes.
    pub(crate) fn groups(self, groups: &[Range<usize>], best: usize) -> Result<GroupedExplanation> {
        let (mut explanations, mut kept) = (Vec::new(), Vec::new());
        for (number, group) in groups.iter().enumerate() {
            let labels = self.labels.get(group.clone()).unwrap_or_default();
            let part = Self { logits: &self.logits[group.clone()], labels, ..self };
            let part = part.one().map_err(|error| in_file(error, self.row, number, groups))?;
            explanations.push(part.0);
            kept.push(part.1);
        }
        Ok(GroupedExplanation {
            row: self.row,
            method: self.method.name(),
            joint: self.joint(&kept, groups, best)?,
            groups: explanations,
        })
    }

    fn joint(
        self,
        kept: &[CsrRows<f64>],
        groups: &[Range<usize>],
        best: usize,
    ) -> Result<JointExplanation> {
        let rows: Vec<(usize, &[u32], &[f64])> = kept
            .iter()
            .zip(groups)
            .map(|(kept, group)| (group.len(), kept.indices(), kept.values()))
            .collect();
        let label =
            |(class, group): (&usize, &Range<usize>)| self.labels.get(group.start + class).cloned();
        let best = Product::csr(&rows)?.best(best).into_iter().map(|joint| JointClass {
            labels: joint.classes.iter().zip(groups).filter_map(label).collect(),
            classes: joint.classes,
            probability: joint.probability,
        });
        Ok(JointExplanation {
            classes: groups.iter().map(|group| group.len() as f64).product(),
            kept: kept.iter().map(|kept| kept.indices().len() as f64).product(),
            best: best.collect(),
        })
    }

    /// The explanation and the kept classes. Frees softmax before computing the weights of evidence, to need at
    /// most two more arrays of the length of the row.
    fn one(self) -> shafer::Result<(Explanation, CsrRows<f64>)> {
        let Self { row, logits, method, temperature, labels, most } = self;
        let input = Logits::row(logits)?.temperature(temperature)?;
        let listed = largest(logits, most);
        let compressed = method.csr(&input, Threads::One)?;
        let (kept, values) = compressed.row(0).unwrap_or_default();

        let mut softmax = Method::SOFTMAX.dense(&input, Threads::One)?;
        let probabilities: Vec<f64> = listed.iter().map(|&class| softmax[class]).collect();
        let softmax_effective_classes = effective_classes(&softmax);
        let softmax_mass_kept = kept.iter().map(|&class| softmax[class as usize]).sum();
        // Summed rather than subtracted from 1, to avoid cancellation near 0.
        for &class in kept {
            softmax[class as usize] = 0.0;
        }
        let softmax_mass_dropped = softmax.iter().sum();
        drop(softmax);

        // The weights of evidence scale with the inverse temperature.
        let evidence = if temperature == 1.0 {
            Evidence::from_logits(logits)?
        } else {
            Evidence::from_logits(&logits.iter().map(|l| l / temperature).collect::<Vec<_>>())?
        };
        let belief = Belief::from(evidence);
        let evidence = belief.evidence();
        let mut classes = Vec::with_capacity(listed.len());
        for (&class, softmax) in listed.iter().zip(probabilities) {
            let finite = logits[class].is_finite();
            let place = kept.binary_search(&(class as u32)).ok();
            classes.push(ClassExplanation {
                class,
                label: labels.get(class).cloned(),
                logit: finite.then_some(logits[class]),
                weight: finite.then(|| evidence.positive()[class] - evidence.negative()[class]),
                belief: belief.singleton(class)?,
                plausibility: belief.class_plausibility(class)?,
                softmax,
                probability: place.map_or(0.0, |place| values[place]),
                kept: place.is_some(),
            });
        }
        let explanation = Explanation {
            row,
            method: method.name(),
            kept: kept.len(),
            kept_above_one_percent: values.iter().filter(|&&p| p > 0.01).count(),
            effective_classes: effective_classes(values),
            softmax_effective_classes,
            softmax_mass_kept,
            softmax_mass_dropped,
            ignorance: belief.ignorance(),
            internal_conflict: belief.internal_conflict(),
            vacuous: evidence.is_vacuous(),
            left_out: logits.len() - classes.len(),
            classes,
        };
        Ok((explanation, compressed))
    }
}

/// The exp of the entropy.
fn effective_classes(distribution: &[f64]) -> f64 {
    let terms = distribution.iter().filter(|&&p| p > 0.0).map(|p| -p * p.ln());
    terms.sum::<f64>().exp()
}

/// The indices of the `most` largest numbers in descending order, ties by index.
fn largest(numbers: &[f64], most: usize) -> Vec<usize> {
    let order = |a: &usize, b: &usize| numbers[*b].total_cmp(&numbers[*a]).then(a.cmp(b));
    let most = most.min(numbers.len());
    let mut places = Vec::with_capacity(2 * most);
    for place in 0..numbers.len() {
        if places.len() == 2 * most && most > 0 {
            places.select_nth_unstable_by(most - 1, order);
            places.truncate(most);
        }
        places.push(place);
    }
    places.sort_unstable_by(order);
    places.truncate(most);
    places
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn explainer<'a>(logits: &'a [f64], labels: &'a [String]) -> Explainer<'a> {
        Explainer { row: 3, logits, method: Method::SOFTMAX, temperature: 1.0, labels, most: 100 }
    }

    #[test]
    fn a_row_is_explained_in_the_order_of_its_probabilities() {
        let logits = [0.0, 2.0, f64::NEG_INFINITY, -2.0];
        let method = Method::EVIDENTIAL;
        let e = Explainer { method, ..explainer(&logits, &[]) }.whole().unwrap();
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
        let method = Method::evidential(2).unwrap();
        let e = Explainer { method, ..explainer(&logits, &[]) }.whole().unwrap();
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
        let softmax = |group: Range<usize>| Method::SOFTMAX.row(&logits[group]).unwrap();
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

    /// The order and the statistics do not depend on the length of the list; against a plain sort.
    #[test]
    fn the_most_probable_are_listed() {
        let logits: Vec<f64> = (0..500).map(|i| f64::from(i * 7919 % 97)).collect();
        let method = Method::EVIDENTIAL;
        let explained = |most| {
            let explainer = Explainer { method, most, ..explainer(&logits, &[]) };
            explainer.whole().unwrap()
        };
        let all = explained(usize::MAX);
        let mut order: Vec<usize> = (0..500).collect();
        order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]).then(a.cmp(&b)));
        assert_eq!(all.classes.iter().map(|c| c.class).collect::<Vec<_>>(), order);
        assert_eq!((all.left_out, all.kept), (0, all.classes.iter().filter(|c| c.kept).count()));
        for most in [0, 1, 7, 249, 250, 499, 500] {
            let some = explained(most);
            assert_eq!((some.classes.len(), some.left_out), (most, 500 - most));
            let lines = |e: &Explanation| format!("{:?}", &e.classes[..most]);
            assert_eq!(lines(&some), lines(&all));
            assert_eq!(some.kept, all.kept);
        }
    }
}
