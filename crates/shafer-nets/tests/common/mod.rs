//! What the tests of trainings share.
#![allow(dead_code, reason = "no test uses all of it")]

use std::collections::BTreeMap;

use serde::Deserialize;

/// A parameter in a fixture.
#[derive(Deserialize)]
pub(crate) struct Parameter {
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<f32>,
}

/// The tensors of a single-precision file, by name.
pub(crate) fn parameters(bytes: &[u8]) -> BTreeMap<String, (Vec<usize>, Vec<f32>)> {
    let file = safetensors::SafeTensors::deserialize(bytes).unwrap();
    file.iter()
        .map(|(name, view)| {
            let values = view.data().as_chunks().0.iter().map(|&x| f32::from_le_bytes(x)).collect();
            (name.to_owned(), (view.shape().to_vec(), values))
        })
        .collect()
}

/// Asserts that a file has the parameters of a fixture, to within 1e-4 of each tensor's largest value.
#[track_caller]
pub(crate) fn assert_parameters(bytes: &[u8], expected: &BTreeMap<String, Parameter>, case: &str) {
    let found = parameters(bytes);
    assert!(found.keys().eq(expected.keys()), "{:?}", found.keys());
    for (name, expected) in expected {
        let (shape, values) = &found[name];
        assert_eq!(shape, &expected.shape, "{name}");
        let size = expected.values.iter().fold(0.0_f32, |size, x| size.max(x.abs()));
        for (found, expected) in values.iter().zip(&expected.values) {
            let error = (found - expected).abs();
            assert!(error < 1e-4 * size, "{case}: {name} has {found}, not {expected}");
        }
    }
}
