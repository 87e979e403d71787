//! Every transform and its vector-Jacobian product against `fixtures/transforms.json`, which an
//! independent program computed to 50 digits; `fixtures/make_transforms.py` made it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::Oracle;
use serde::Deserialize;
use shafer::{Element, Logits, Threads};

#[derive(Deserialize)]
struct Fixtures {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    transform: String,
    parameters: serde_json::Map<String, serde_json::Value>,
    temperature: f64,
    /// `None` is a masked class.
    logits: Vec<Option<f64>>,
    f32: bool,
    probabilities: Vec<f64>,
    upstream: Vec<f64>,
    gradient: Vec<f64>,
}

impl Case {
    fn oracle(&self) -> Oracle {
        let number = |name: &str| self.parameters[name].as_f64().unwrap();
        let count = |name: &str| self.parameters[name].as_u64().unwrap() as usize;
        match self.transform.as_str() {
            "softmax" => Oracle::Softmax,
            "evidential" => Oracle::Evidential { rounds: count("rounds") },
            "sparsemax" => Oracle::Sparsemax,
            "sparsegen_lin" => Oracle::SparsegenLin { lambda: number("lambda") },
            "sparsegen_hg" => Oracle::SparsegenHg { q: number("q") },
            "entmax" => Oracle::Entmax { alpha: number("alpha") },
            "top_k" => Oracle::TopK { k: count("k") },
            "top_p" => Oracle::TopP { p: number("p") },
            "min_p" => Oracle::MinP { p: number("p") },
            "top_n_sigma" => Oracle::TopNSigma { n: number("n") },
            other => panic!("the fixtures know a transform {other} that this test does not"),
        }
    }

    fn logits<E: Element>(&self) -> Vec<E> {
        self.logits.iter().map(|l| E::from_f64(l.unwrap_or(f64::NEG_INFINITY))).collect()
    }

    /// Probabilities and gradient by the crate.
    fn run<E: Element>(&self) -> (Vec<f64>, Vec<f64>) {
        let method = self.oracle().method();
        let logits: Vec<E> = self.logits();
        let row = Logits::row(&logits).unwrap().temperature(self.temperature).unwrap();
        let mut p = vec![E::default(); logits.len()];
        method.dense_into(&row, Threads::One, &mut p).unwrap();
        let upstream: Vec<E> = self.upstream.iter().map(|&g| E::from_f64(g)).collect();
        let mut gradient = vec![E::default(); logits.len()];
        method.vjp(&row, Threads::One, &p, &upstream, &mut gradient).unwrap();
        let wide = |values: &[E]| values.iter().map(|&x| x.to_f64()).collect();
        (wide(&p), wide(&gradient))
    }
}

fn cases() -> Vec<Case> {
    let text = include_str!("fixtures/transforms.json");
    let mut fixtures: Fixtures = serde_json::from_str(text).unwrap();
    // Where k is greater than the number of classes, the crate gives an error instead.
    fixtures.cases.retain(|case| match case.oracle() {
        Oracle::TopK { k } => k <= case.logits.len(),
        _ => true,
    });
    assert!(fixtures.cases.len() > 300);
    fixtures.cases
}

/// Relative to the value itself, down to `floor`.
fn assert_close(
    what: &str,
    case: &Case,
    found: &[f64],
    expected: &[f64],
    relative: f64,
    floor: f64,
) {
    for (k, (&a, &b)) in found.iter().zip(expected).enumerate() {
        assert!(
            (a - b).abs() <= relative * b.abs() + floor,
            "{what} {k} of {} {:?} T {} on {:?}: {a:e}, but {b:e} is expected",
            case.transform,
            case.parameters,
            case.temperature,
            case.logits,
        );
    }
}

fn same_support(case: &Case, found: &[f64], smallest: f64) {
    for (k, (&a, &b)) in found.iter().zip(&case.probabilities).enumerate() {
        if b == 0.0 || b > smallest {
            assert_eq!(a > 0.0, b > 0.0, "class {k} of {:?} on {:?}", case.oracle(), case.logits);
        }
    }
}

#[test]
fn double_precision() {
    for case in cases() {
        let (p, gradient) = case.run::<f64>();
        same_support(&case, &p, 1e-300);
        assert_close("probability", &case, &p, &case.probabilities, 1e-11, 1e-300);
        let scale = case.gradient.iter().fold(0.0_f64, |m, g| m.max(g.abs()));
        assert_close("gradient", &case, &gradient, &case.gradient, 1e-9, 1e-11 * scale.max(1e-3));
    }
}

#[test]
fn single_precision() {
    for case in cases().iter().filter(|case| case.f32) {
        let (p, gradient) = case.run::<f32>();
        same_support(case, &p, 1e-37);
        assert_close("probability", case, &p, &case.probabilities, 1e-6, 1e-37);
        // It is a difference from the mean of the upstream gradient, of which p is rounded.
        let scale = case.upstream.iter().fold(0.0_f64, |m, g| m.max(g.abs()));
        let floor = 1e-6 * scale / case.temperature;
        assert_close("gradient", case, &gradient, &case.gradient, 1e-5, floor);
    }
}

/// The plain loops that other tests use as their oracle are right as well.
#[test]
fn plain_loops() {
    for case in cases() {
        let p = case.oracle().row(&case.logits::<f64>(), case.temperature);
        assert_close("probability", &case, &p, &case.probabilities, 1e-10, 1e-14);
    }
}
