//! The paper's claims about a data set, beside our results.

use super::paper::DataSet;
use super::results::{BOTH, Gains, ImageResults, Training};
use super::tables::percent;
use crate::experiments::statistics::Gain;
use crate::method::{EVIDENTIAL, SOFTMAX, SPARSEMAX};

/// A claim of the paper with our result.
pub(super) struct Answer {
    pub(super) claim: String,
    /// Where the paper makes it.
    pub(super) place: &'static str,
    /// The paper's number, if it gives one.
    pub(super) number: String,
    /// Our result.
    pub(super) found: String,
    pub(super) verdict: Option<Verdict>,
}

/// Whether a claim holds here, by 95% confidence intervals over seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Holds,
    /// Better, but the paper's number is in none of our intervals.
    OtherNumber,
    /// An interval includes 0.
    Open,
    Fails,
}

/// The paper's claims about the data set; none if the paper does not use it.
pub(super) fn answers(results: &ImageResults) -> Vec<Answer> {
    let Some(data_set) = DataSet::named(&results.data_set) else { return Vec::new() };
    let [first, second] = &results.queries[..] else { return Vec::new() };
    let mut answers = vec![Answer {
        claim: "Number of seeds".to_owned(),
        place: "figures",
        number: data_set.seeds().to_string(),
        found: results.seeds.to_string(),
        verdict: None,
    }];
    match data_set {
        DataSet::Mnist => {
            for (baseline, number) in [(SOFTMAX, 22.0), (SPARSEMAX, 10.0)] {
                answers.extend(improvement(results, baseline, number));
            }
            answers.push(closer(results, second, SOFTMAX, SPARSEMAX));
            answers.extend(wrong_samples(results, first));
        }
        DataSet::FashionMnist => {
            answers.extend(everywhere(results, SOFTMAX, "no farther from", "appendix F"));
            answers.extend(everywhere(results, SPARSEMAX, "closer to", "appendix F"));
        }
        DataSet::NotMnist => {
            answers.extend(everywhere(results, SOFTMAX, "closer to", "appendix G"));
            answers.extend(everywhere(results, SPARSEMAX, "closer to", "appendix G"));
        }
    }
    answers
}

/// The paper gives a mean improvement without saying over what; we give it at the end and over the whole training.
fn improvement(results: &ImageResults, baseline: &str, percent_there: f64) -> Option<Answer> {
    let of = |gains: &Gains| gains.bhattacharyya.get(BOTH)?.get(baseline).copied();
    let end = of(&results.improvement.final_values)?;
    let training = of(&results.improvement.training)?;
    let agrees = [end, training].iter().filter_map(|gain| gain.percent).any(|interval| {
        interval
            .low
            .zip(interval.high)
            .is_some_and(|(low, high)| (low..=high).contains(&percent_there))
    });
    Some(Answer {
        claim: format!("Improvement of {EVIDENTIAL} over {baseline}, Bhattacharyya, both queries"),
        place: "section 3.1.1",
        number: format!("{percent_there}%"),
        found: format!(
            "{} at the end, {} over the whole training",
            percent(&end),
            percent(&training)
        ),
        verdict: match verdict(&[end, training]) {
            Some(Verdict::Holds) if !agrees => Some(Verdict::OtherNumber),
            other => other,
        },
    })
}

/// Evidential against a baseline at the end, on both metrics and queries.
fn everywhere(
    results: &ImageResults,
    baseline: &str,
    relation: &str,
    place: &'static str,
) -> Option<Answer> {
    let gains = &results.improvement.final_values;
    let mut all = Vec::new();
    let mut found = Vec::new();
    for (metric, table) in
        [("Bhattacharyya", &gains.bhattacharyya), ("Wasserstein", &gains.wasserstein)]
    {
        for query in &results.queries {
            let gain = table.get(query)?.get(baseline)?;
            found.push(format!("{metric}, {query}: {}", percent(gain)));
            all.push(*gain);
        }
    }
    let claim = format!("{EVIDENTIAL} is {relation} the target than {baseline} after training");
    Some(Answer {
        claim,
        place,
        number: String::new(),
        found: found.join("; "),
        verdict: verdict(&all),
    })
}

/// One method against another, paired by seed.
fn closer(results: &ImageResults, query: &str, near: &str, far: &str) -> Answer {
    let value = |training: &Training, method: &str| {
        training.bhattacharyya.as_ref()?.get(query)?.get(method).copied()
    };
    let (mut pairs, mut infinite) = (Vec::new(), 0);
    for training in results.trainings.iter().filter(|training| training.fraction == 1.0) {
        match value(training, far).zip(value(training, near)) {
            Some((Some(far), Some(near))) => pairs.push((far, near)),
            Some(_) => infinite += 1,
            None => {}
        }
    }
    let gain = Gain::of(&pairs, infinite);
    Answer {
        claim: format!(
            "{far} is farther from the target than {near} for the query {query}, Bhattacharyya"
        ),
        place: "section 3.1.1",
        number: String::new(),
        found: format!("{near} is closer by {} at the end", percent(&gain)),
        verdict: verdict(&[gain]),
    }
}

fn wrong_samples(results: &ImageResults, query: &str) -> Option<Answer> {
    let exemplar = results.exemplar.as_ref()?;
    let bars = &exemplar.queries.get(query)?.methods;
    let (softmax, ours) = (bars.get(SOFTMAX)?, bars.get(EVIDENTIAL)?);
    let expected = |method: &str| {
        let share = results.final_values.wrong.as_ref()?.get(query)?.get(method)?;
        Some(format!("{:.1}%", 100.0 * share.mean?))
    };
    Some(Answer {
        claim: format!("Wrong samples of 25 for the query {query}: {SOFTMAX}, {EVIDENTIAL}"),
        place: "appendix D",
        number: "8, 3".to_owned(),
        found: format!(
            "{}, {} of {} (seed {}); expected over all seeds: {}, {}",
            softmax.wrong_samples?,
            ours.wrong_samples?,
            ours.samples.len(),
            exemplar.seed,
            expected(SOFTMAX)?,
            expected(EVIDENTIAL)?
        ),
        verdict: None,
    })
}

/// Holds if every interval lies above 0, fails if one lies below.
fn verdict(gains: &[Gain]) -> Option<Verdict> {
    let mut verdict = Verdict::Holds;
    for gain in gains {
        let interval = gain.percent?;
        if interval.high? < 0.0 {
            return Some(Verdict::Fails);
        }
        if interval.low? <= 0.0 {
            verdict = Verdict::Open;
        }
    }
    Some(verdict)
}
