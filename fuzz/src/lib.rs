//! Derives arguments and files from fuzzer bytes. The invariants are in `laws` (shared with the property tests of the
//! core), in `files`, and in the targets.

use arbitrary::{Arbitrary, Result, Unstructured};
use laws::{Batch, Bits, Choice};
use shafer_data::Dtype;

#[path = "../../crates/shafer-data/tests/bytes/mod.rs"]
pub mod bytes;
#[path = "../../crates/shafer-data/tests/copies/mod.rs"]
pub mod copies;
pub mod files;
#[path = "../../crates/shafer/tests/laws/mod.rs"]
pub mod laws;
pub mod parquet;

/// A number of any type: mostly small, because rows of invalid numbers never pass the checks.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// In eighths: sums are exact and ties are likely.
    Small(i8),
    Special(f64),
    Bits(u64),
}

impl<'a> Arbitrary<'a> for Number {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        const SPECIAL: [f64; 14] = [
            f64::NEG_INFINITY,
            f64::INFINITY,
            f64::NAN,
            f64::MAX,
            f64::MIN,
            f32::MAX as f64,
            f32::MIN as f64,
            f64::MIN_POSITIVE,
            5e-324,
            1e-45,
            -0.0,
            1.0 - f64::EPSILON / 2.0,
            1.000_001,
            1e30,
        ];
        Ok(match u.arbitrary::<u8>()? {
            tag @ 0..32 => Self::Special(SPECIAL[usize::from(tag) % SPECIAL.len()]),
            32..64 => Self::Bits(u.arbitrary()?),
            _ => Self::Small(u.arbitrary()?),
        })
    }

    fn size_hint(_: usize) -> (usize, Option<usize>) {
        (1, Some(9))
    }
}

impl Number {
    pub fn get<E: Bits>(self) -> E {
        match self {
            Self::Small(eighths) => E::from_f64(f64::from(eighths) / 8.0),
            Self::Special(value) => E::from_f64(value),
            Self::Bits(bits) => E::from_low_bits(bits),
        }
    }
}

pub fn doubles(numbers: &[Number]) -> Vec<f64> {
    numbers.iter().map(|x| x.get()).collect()
}

/// The parameters of a transform, valid or not.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Parameters {
    Softmax,
    Evidential { rounds: Count },
    Sparsemax,
    SparsegenLin { lambda: Number },
    SparsegenHg { q: Number },
    Entmax { alpha: Number },
    TopK { k: Count },
    TopP { p: Number },
    MinP { p: Number },
    TopNSigma { n: Number },
    MinProbability { p: Number },
    MinEvidence { w: Number },
}

impl Parameters {
    pub fn choice(self) -> Choice {
        match self {
            Self::Softmax => Choice::Softmax,
            Self::Evidential { rounds } => Choice::Evidential { rounds: rounds.0 },
            Self::Sparsemax => Choice::Sparsemax,
            Self::SparsegenLin { lambda } => Choice::SparsegenLin { lambda: lambda.get() },
            Self::SparsegenHg { q } => Choice::SparsegenHg { q: q.get() },
            Self::Entmax { alpha } => Choice::Entmax { alpha: alpha.get() },
            Self::TopK { k } => Choice::TopK { k: k.0 },
            Self::TopP { p } => Choice::TopP { p: p.get() },
            Self::MinP { p } => Choice::MinP { p: p.get() },
            Self::TopNSigma { n } => Choice::TopNSigma { n: n.get() },
            Self::MinProbability { p } => Choice::MinProbability { p: p.get() },
            Self::MinEvidence { w } => Choice::MinEvidence { w: w.get() },
        }
    }
}

/// A count, mostly small.
#[derive(Clone, Copy, Debug)]
pub struct Count(pub usize);

impl<'a> Arbitrary<'a> for Count {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(Self(match u.arbitrary::<u8>()? {
            255 => u.arbitrary()?,
            253 | 254 => usize::from(u.arbitrary::<u16>()?),
            small => usize::from(small) % 12,
        }))
    }

    fn size_hint(_: usize) -> (usize, Option<usize>) {
        (1, Some(9))
    }
}

/// The type of the elements.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Type {
    F32,
    F64,
    F16,
    Bf16,
}

impl Type {
    pub fn dtype(self) -> Dtype {
        match self {
            Self::F32 => Dtype::F32,
            Self::F64 => Dtype::F64,
            Self::F16 => Dtype::F16,
            Self::Bf16 => Dtype::Bf16,
        }
    }
}

/// Calls a generic function with the element type that a [`Type`] names.
#[macro_export]
macro_rules! with_type {
    ($name:expr, $function:ident($($argument:expr),* $(,)?)) => {
        match $name {
            $crate::Type::F32 => $function::<f32>($($argument),*),
            $crate::Type::F64 => $function::<f64>($($argument),*),
            $crate::Type::F16 => $function::<half::f16>($($argument),*),
            $crate::Type::Bf16 => $function::<half::bf16>($($argument),*),
        }
    };
}

/// Contiguous rows. The numbers are repeated to fill the shape, because blocks and tiles need more logits than a fuzzer
/// input has.
#[derive(Arbitrary, Clone, Debug)]
pub struct Rows {
    pub parameters: Parameters,
    pub of: Type,
    numbers: Vec<Number>,
    /// Whether to replace invalid logits.
    clean: bool,
    classes: u16,
    rows: u8,
    mask: Option<(bool, Vec<bool>)>,
    temperature: Option<Number>,
    parallel: bool,
}

impl Rows {
    pub fn batch<E: Bits>(&self) -> Batch<E> {
        let size = usize::from(self.classes / 4);
        let classes = 1 + match self.classes % 4 {
            0 | 1 => size % 33,
            2 => size % 200,
            _ => size % 3000,
        };
        let len = classes * usize::from(self.rows % 64).min(20_000 / classes);
        let logits = repeated(&self.numbers, len, self.clean);
        let mask = self.mask.as_ref().filter(|(_, mask)| !mask.is_empty()).map(|(whole, mask)| {
            mask.iter().copied().cycle().take(if *whole { len } else { classes }).collect()
        });
        // A temperature out of range must be refused; the test continues with 1.
        let temperature = self.temperature.map_or(1.0, |t| t.get());
        let allowed = (1e-30..=1e30).contains(&temperature);
        let plain = shafer::Logits::row(&[0.0_f32]).unwrap();
        assert_eq!(plain.temperature(temperature).is_ok(), allowed, "{temperature}");
        let temperature = if allowed { temperature } else { 1.0 };
        Batch { logits, classes, mask, temperature, parallel: self.parallel }
    }
}

/// `len` values by repeating the numbers.
pub fn repeated<E: Bits>(numbers: &[Number], len: usize, clean: bool) -> Vec<E> {
    let one = [Number::Small(8)];
    let numbers = if numbers.is_empty() { &one } else { numbers };
    let value = |x: &Number| match x.get::<E>() {
        x if clean && (x.to_f64().is_nan() || x.to_f64().is_infinite()) => E::from_f64(-2.0),
        x => x,
    };
    numbers.iter().map(value).cycle().take(len).collect()
}

/// Normalises weights: most other rows would be refused as distributions.
pub fn distribution(weights: &[Number]) -> Vec<f64> {
    let weights: Vec<f64> = doubles(weights).iter().map(|x| x.abs()).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|x| x / sum).collect()
}
