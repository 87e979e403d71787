//! Nothing panics, whatever the bits, and what comes out is what the documentation says: the laws
//! of `laws/mod.rs` over inputs from proptest. `fuzz/` looks for more, for longer.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod laws;

use half::{bf16, f16};
use laws::{Array, Batch, Bits, Choice};
use proptest::prelude::*;
use shafer::Logits;

/// Mostly eighths, whose sums are exact and which tie; and everything else there is.
fn number<E: Bits>() -> impl Strategy<Value = E> {
    prop_oneof![
        12 => (-128_i8..127).prop_map(|eighths| E::from_f64(f64::from(eighths) / 8.0)),
        1 => any::<u64>().prop_map(E::from_low_bits),
        1 => prop::sample::select(vec![
            f64::NEG_INFINITY,
            f64::INFINITY,
            f64::NAN,
            f64::MAX,
            f64::MIN,
            f64::from(f32::MAX),
            f64::from(f32::MIN),
            65504.0,
            f64::MIN_POSITIVE,
            1e-45,
            5e-324,
            -0.0,
        ])
        .prop_map(E::from_f64),
    ]
}

fn parameter() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => 0.0..3.0,
        1 => -20.0..0.0,
        1 => prop::num::f64::ANY,
        1 => prop::sample::select(vec![
            0.0,
            1.0,
            1.0 - f64::EPSILON / 2.0,
            1.000_001,
            1e-300,
            5e-324,
            f64::MAX,
            f64::MIN,
        ]),
    ]
}

fn count() -> impl Strategy<Value = usize> {
    prop_oneof![8 => 0_usize..9, 1 => any::<usize>()]
}

fn choice() -> impl Strategy<Value = Choice> {
    prop_oneof![
        Just(Choice::Softmax),
        count().prop_map(|rounds| Choice::Evidential { rounds }),
        Just(Choice::Sparsemax),
        parameter().prop_map(|lambda| Choice::SparsegenLin { lambda }),
        parameter().prop_map(|q| Choice::SparsegenHg { q }),
        parameter().prop_map(|alpha| Choice::Entmax { alpha }),
        count().prop_map(|k| Choice::TopK { k }),
        parameter().prop_map(|p| Choice::TopP { p }),
        parameter().prop_map(|p| Choice::MinP { p }),
        parameter().prop_map(|n| Choice::TopNSigma { n }),
        parameter().prop_map(|p| Choice::MinProbability { p }),
        parameter().prop_map(|w| Choice::MinEvidence { w }),
    ]
}

fn temperature() -> impl Strategy<Value = f64> {
    prop_oneof![2 => Just(1.0), 2 => 0.1..10.0, 1 => prop::sample::select(vec![1e-30, 1e30])]
}

/// So many values, from a few again and again: the widths that kernels treat differently need more
/// than proptest likes to shrink. Half of the time without what gets a row refused.
fn values<E: Bits>(len: usize) -> impl Strategy<Value = Vec<E>> {
    (prop::collection::vec(number::<E>(), 1..40), any::<bool>()).prop_map(move |(few, clean)| {
        let cleaned = |x: E| if clean && !x.to_f64().is_finite() { E::from_f64(-2.0) } else { x };
        few.into_iter().map(cleaned).cycle().take(len).collect()
    })
}

fn batch<E: Bits>() -> impl Strategy<Value = Batch<E>> {
    let classes = prop_oneof![6 => 1_usize..36, 2 => 36_usize..300, 1 => 300_usize..3000];
    (classes, 0_usize..40).prop_flat_map(|(classes, rows)| {
        let len = classes * rows.min(1 + 6000 / classes);
        let mask = (any::<bool>(), prop::collection::vec(prop::bool::weighted(0.8), 1..20));
        let mask = prop::option::weighted(0.3, mask).prop_map(move |mask| {
            let (whole, few) = mask?;
            Some(few.into_iter().cycle().take(if whole { len } else { classes }).collect())
        });
        (values(len), mask, temperature(), any::<bool>()).prop_map(
            move |(logits, mask, temperature, parallel)| Batch {
                logits,
                classes,
                mask,
                temperature,
                parallel,
            },
        )
    })
}

/// Rows, with numbers for the gradient from above and for probabilities of any kind.
fn with_gradient<E: Bits>() -> impl Strategy<Value = (Batch<E>, Vec<E>, Vec<E>)> {
    batch().prop_flat_map(|batch| {
        let len = batch.logits.len();
        (Just(batch), values(len), values(len))
    })
}

fn array() -> impl Strategy<Value = Array> {
    let size = prop_oneof![20 => 0_usize..6, 1 => any::<usize>()];
    let stride = prop_oneof![20 => -7_isize..8, 1 => any::<isize>()];
    let dimensions = prop::collection::vec((size, stride), 0..5);
    (dimensions, prop_oneof![20 => 0_usize..60, 1 => any::<usize>()], 0_usize..5, 0..20).prop_map(
        |(dimensions, offset, axis, odd)| {
            let (shape, mut strides): (Vec<usize>, Vec<isize>) = dimensions.into_iter().unzip();
            if odd == 0 {
                strides.push(1);
            }
            Array { shape, strides, offset, axis }
        },
    )
}

/// The laws for one element type.
macro_rules! laws {
    ($($name:ident: $element:ty),*) => {$(
        mod $name {
            use super::*;

            proptest! {
                #![proptest_config(ProptestConfig { cases: 300, max_shrink_iters: 300, ..ProptestConfig::default() })]

                #[test]
                fn dense(choice in choice(), batch in batch::<$element>()) {
                    laws::dense(choice, &batch);
                }

                #[test]
                fn compressed(choice in choice(), batch in batch::<$element>()) {
                    laws::compressed(choice, &batch);
                }

                #[test]
                fn support_sizes(choice in choice(), batch in batch::<$element>()) {
                    laws::support_sizes(choice, &batch);
                }

                #[test]
                fn vjp(choice in choice(), (batch, upstream, any) in with_gradient::<$element>()) {
                    laws::vjp(choice, &batch, &upstream, &any);
                }

                #[test]
                fn strided(
                    choice in choice(),
                    array in array(),
                    data in (0_usize..120).prop_flat_map(values::<$element>),
                    mask in prop::collection::vec(prop::bool::weighted(0.8), 0..20),
                    by_class: bool,
                ) {
                    laws::strided(choice, &data, &array, &mask, by_class);
                }
            }
        }
    )*};
}

laws!(single: f32, double: f64, half_precision: f16, brain: bf16);

proptest! {
    #[test]
    fn packed_rows_are_refused_exactly_when_documented(
        len in 0_usize..40,
        classes in count(),
        mask in 0_usize..40,
        temperature in parameter(),
    ) {
        let logits = vec![0.0_f32; len];
        let rows = Logits::rows(&logits, classes);
        let fits = classes > 0 && u32::try_from(classes).is_ok() && len % classes == 0;
        prop_assert_eq!(rows.is_ok(), fits);
        prop_assert_eq!(Logits::row(&logits).is_ok(), len > 0);
        let Ok(rows) = rows else { return Ok(()) };
        let masked = rows.mask(&[true; 40][..mask]);
        prop_assert_eq!(masked.is_ok(), mask == classes || mask == len);
        let cooled = rows.temperature(temperature);
        prop_assert_eq!(cooled.is_ok(), (1e-30..=1e30).contains(&temperature));
    }
}
