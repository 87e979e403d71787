//! Linear layers and both constructions of evidence from them.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use shafer::{Construction, Evidence, Head};
use shafer_fuzz::{Number, doubles, repeated};

#[derive(Arbitrary, Debug)]
struct Input {
    features: u8,
    classes: u8,
    numbers: Vec<Number>,
    clean: bool,
    /// Added to the lengths of the arrays, to produce invalid ones.
    wrong: [bool; 4],
    size: Option<usize>,
    phi: Vec<Number>,
    mean: Vec<Number>,
}

fuzz_target!(|input: Input| {
    let (j, k) = (usize::from(input.features % 6), usize::from(input.classes % 12));
    let len = |at: usize, len: usize| len + usize::from(input.wrong[at]);
    let weights: Vec<f64> = repeated(&input.numbers, len(0, j * k), input.clean);
    let bias: Vec<f64> = repeated(&input.numbers, len(1, k), input.clean);
    if let Some(size) = input.size {
        // Sizes whose product overflows.
        let _ = Head::new(size, k, weights.clone(), bias.clone());
        let _ = Head::from_output_major(size, size, &weights, bias.clone());
    }
    let head = Head::new(j, k, weights.clone(), bias.clone());
    let finite = weights.iter().chain(&bias).all(|x| x.is_finite());
    let fits = j > 0 && k > 0 && !input.wrong[0] && !input.wrong[1];
    assert_eq!(head.is_ok(), finite && fits, "{head:?}");
    let transposed: Vec<f64> = (0..k)
        .flat_map(|k_| (0..j).map(move |j_| (j_, k_)))
        .filter_map(|(j_, k_)| weights.get(j_ * k + k_).copied())
        .collect();
    if fits {
        assert_eq!(Head::from_output_major(j, k, &transposed, bias).is_ok(), head.is_ok());
    }
    let Ok(head) = head else { return };
    assert_eq!((head.features(), head.classes()), (j, k));

    let phi: Vec<f64> = repeated(&input.phi, len(2, j), input.clean);
    let mean: Vec<f64> = repeated(&input.mean, len(3, j), input.clean);
    let allowed = |wrong: bool, values: &[f64]| !wrong && values.iter().all(|x| x.is_finite());
    let logits = head.logits(&phi);
    if let Ok(logits) = &logits {
        assert!(allowed(input.wrong[2], &phi) && logits.len() == k);
        assert!(logits.iter().all(|x| x.is_finite()), "{logits:?}");
    }
    // Values that cannot overflow.
    let small = |values: &[f64]| values.iter().all(|x| x.abs() <= 1e100);
    let tame = small(&doubles(&input.numbers)) && small(&phi) && small(&mean);
    assert!(logits.is_ok() || !allowed(input.wrong[2], &phi) || !tame, "{logits:?}");
    for construction in [Construction::Direct, Construction::LeastCommitment { mean: &mean }] {
        let evidence = head.evidence(&phi, construction);
        let parameters = head.parameters(&phi, construction);
        let direct = construction == Construction::Direct;
        let allowed = allowed(input.wrong[2], &phi) && (direct || allowed(input.wrong[3], &mean));
        assert!(allowed || (evidence.is_err() && parameters.is_err()));
        assert!(!allowed || !tame || (evidence.is_ok() && parameters.is_ok()), "{evidence:?}");
        if let Ok(parameters) = parameters {
            assert_eq!((parameters.alpha.len(), parameters.beta.len()), (j * k, j * k));
            assert!(parameters.alpha.iter().chain(&parameters.beta).all(|x| x.is_finite()));
        }
        let Ok(evidence) = evidence else { continue };
        assert_eq!((evidence.classes(), evidence.unmasked()), (k, k), "a class got masked");
        if direct {
            assert_eq!(evidence, Evidence::from_logits(&logits.clone().unwrap()).unwrap());
            assert!(!evidence.support().is_empty());
        }
        // In both constructions the weights sum to the logits, up to a constant.
        if let Ok(logits) = &logits {
            let net: Vec<f64> =
                evidence.positive().iter().zip(evidence.negative()).map(|(p, n)| p - n).collect();
            let size = evidence.positive().iter().chain(evidence.negative()).chain(logits);
            let magnitudes = weights.iter().chain(&mean).chain(&phi).map(|x| x.abs());
            let largest = magnitudes.fold(1.0, f64::max);
            let size = size.map(|x| x.abs()).fold(largest * largest, f64::max);
            for class in 1..k {
                let error = (net[class] - net[0]) - (logits[class] - logits[0]);
                assert!(error.abs() <= 1e-12 * size || !size.is_finite(), "{error:e} of {size:e}");
            }
        }
    }
});
