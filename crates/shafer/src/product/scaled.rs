//! Products of many probabilities.

use std::cmp::Ordering;

/// A positive number `mantissa * 2^exponent` with `1 <= mantissa < 2`: a double that cannot
/// underflow. Hundreds of variables would otherwise all tie at zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scaled {
    exponent: i64,
    mantissa: f64,
}

impl Scaled {
    const ONE: Self = Self { exponent: 0, mantissa: 1.0 };

    /// The product of positive numbers, rounded after each factor as doubles are.
    pub(super) fn product(factors: impl Iterator<Item = f64>) -> Self {
        factors.fold(Self::ONE, |product, factor| {
            let factor = Self::new(factor);
            let rounded = Self::new(product.mantissa * factor.mantissa);
            Self { exponent: product.exponent + factor.exponent + rounded.exponent, ..rounded }
        })
    }

    pub(super) fn new(value: f64) -> Self {
        const FRACTION: u64 = (1 << 52) - 1;
        // Subnormals first become normal, exactly.
        let (value, shift) =
            if value < f64::MIN_POSITIVE { (value * 2.0_f64.powi(64), 64) } else { (value, 0) };
        let bits = value.to_bits();
        Self {
            exponent: (bits >> 52) as i64 - 1023 - shift,
            mantissa: f64::from_bits((bits & FRACTION) | 1.0_f64.to_bits()),
        }
    }

    /// The nearest double.
    pub(super) fn to_f64(self) -> f64 {
        // In two steps, since a power of two below 2^-1074 is no double. The first is exact, the
        // second rounds once. Everything below 2^-1100 is zero; products of probabilities are
        // never far above 1.
        let exponent = self.exponent.clamp(-1100, 1000) as i32;
        self.mantissa * 2.0_f64.powi(exponent / 2) * 2.0_f64.powi(exponent - exponent / 2)
    }
}

impl Eq for Scaled {}

impl Ord for Scaled {
    fn cmp(&self, other: &Self) -> Ordering {
        let exponents = self.exponent.cmp(&other.exponent);
        exponents.then_with(|| self.mantissa.total_cmp(&other.mantissa))
    }
}

impl PartialOrd for Scaled {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
