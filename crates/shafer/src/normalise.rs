//! Checks and normalisation of rows of probabilities.

use crate::error::check_length;
use crate::{Element, Error, Result};

/// How far from 1 the sum of a row of probabilities may be.
///
/// Rounding to bf16 moves each entry by at most 2^-9 of itself, and so the sum by at most 0.002;
/// f16 loses a little more to its subnormals. Logits or counts passed by mistake are far outside.
const TOLERANCE: f64 = 1e-2;

/// The row in double precision, divided by its sum.
///
/// A positive entry stays positive: the divisor is too near 1 to underflow even the smallest one.
pub(crate) fn normalised<E: Element>(
    probabilities: &[E],
    what: &'static str,
    row: usize,
) -> Result<Vec<f64>> {
    if probabilities.is_empty() {
        return Err(Error::Empty { what });
    }
    let values = probabilities.iter().enumerate();
    let values = values.map(|(column, &value)| checked(value, row, column));
    let mut values = values.collect::<Result<Vec<f64>>>()?;
    let sum: f64 = values.iter().sum();
    if (sum - 1.0).abs() > TOLERANCE {
        return Err(Error::Row { row, rule: "the probabilities must sum to 1 within 0.01" });
    }
    for value in &mut values {
        *value /= sum;
    }
    Ok(values)
}

/// A weight in double precision: finite and not negative.
#[inline]
pub(crate) fn checked<E: Element>(weight: E, row: usize, column: usize) -> Result<f64> {
    let value = weight.to_f64();
    if value.is_finite() && value >= 0.0 {
        // -0.0 becomes 0.0, so that no sign reaches a result.
        Ok(value + 0.0)
    } else {
        let rule = "must be finite and not negative";
        Err(Error::Value { what: "probability", row, column, value, rule })
    }
}

/// Checks the columns of a compressed row: as many as there are values, and strictly increasing.
pub(crate) fn check_indices(indices: &[u32], values: usize, row: usize) -> Result<()> {
    check_length("indices", values, indices.len())?;
    if let Some(before) = indices.windows(2).position(|pair| pair[0] >= pair[1]) {
        let (column, value) = (before + 1, f64::from(indices[before + 1]));
        let rule = "must be greater than the index before it";
        return Err(Error::Value { what: "index", row, column, value, rule });
    }
    Ok(())
}
