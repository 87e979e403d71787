//! The methods that are compared.

use anyhow::Result;
use shafer::{CsrRows, Logits, Threads};
use shafer_nets::pixel_cnn::Sampling;

use crate::experiments::methods::{Method, MethodName};
use crate::method::{Choice, EVIDENTIAL};

/// Softmax over the codes that occur in the training set.
pub(super) const SEEN: &str = "seen";

/// Evidential over the codes that occur in the training set.
const EVIDENTIAL_OF_SEEN: &str = "evidential-seen";

/// A method of this experiment.
pub(super) struct Candidate {
    pub(super) name: MethodName,
    method: Method,
    /// Whether codes that never occur in the training set are left out first.
    seen_only: bool,
}

impl Candidate {
    /// The mask of codes that this method applies before its rule.
    fn mask<'a>(&self, seen: &'a [bool]) -> Option<&'a [bool]> {
        self.seen_only.then_some(seen)
    }

    /// How the sampler draws codes by this method.
    pub(super) fn sampling<'a>(
        &'a self,
        seed: u64,
        first_image: u32,
        seen: &'a [bool],
    ) -> Sampling<'a> {
        Sampling { method: self.method.1, seed, first_image, mask: self.mask(seen) }
    }

    /// The kept codes of rows of logits, with their probabilities.
    pub(super) fn csr_into(
        &self,
        logits: &[f32],
        seen: &[bool],
        rows: &mut CsrRows<f32>,
    ) -> Result<()> {
        let masked: Vec<f32>;
        let logits = match self.mask(seen) {
            None => logits,
            Some(seen) => {
                let values = logits.iter().zip(seen.iter().cycle());
                masked =
                    values.map(|(&l, &seen)| if seen { l } else { f32::NEG_INFINITY }).collect();
                &masked
            }
        };
        self.method.1.csr_into(&Logits::rows(logits, seen.len())?, Threads::One, rows)?;
        Ok(())
    }
}

/// All methods; evidential with more rounds; softmax over the codes of the training set, which shows what a method
/// gains by dropping codes that are not in use at all; and evidential over the same codes, whose mean they alone set.
pub(super) fn all(codes: usize) -> Result<Vec<Candidate>> {
    let mut candidates = Vec::new();
    for choice in Choice::all() {
        let method = choice.method(codes)?;
        candidates.push(Candidate { name: MethodName::of(&method), method, seen_only: false });
    }
    for rounds in [2, 3] {
        let name = MethodName {
            name: format!("{EVIDENTIAL}-{rounds}"),
            title: format!("{EVIDENTIAL}, {rounds} rounds"),
        };
        let method = (name.title.clone(), shafer::Method::evidential(rounds)?);
        candidates.push(Candidate { name, method, seen_only: false });
    }
    for (name, title, method) in [
        (SEEN, "codes in use", shafer::Method::SOFTMAX),
        (EVIDENTIAL_OF_SEEN, "evidential, in use", shafer::Method::EVIDENTIAL),
    ] {
        let name = MethodName { name: name.to_owned(), title: title.to_owned() };
        candidates.push(Candidate { method: (name.title.clone(), method), name, seen_only: true });
    }
    Ok(candidates)
}

/// The candidates of these names.
pub(super) fn named<'a>(candidates: &'a [Candidate], names: &[&str]) -> Vec<&'a Candidate> {
    let named = |candidate: &&Candidate| names.contains(&candidate.name.name.as_str());
    candidates.iter().filter(named).collect()
}
