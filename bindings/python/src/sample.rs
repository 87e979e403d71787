//! Drawing classes, with random numbers of the caller.

use std::convert::Infallible;
use std::slice;

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rand_core::TryRng;
use shafer::{CsrRows, Sampler, Threads, sample_csr, sample_dense};

use crate::error::OrRaise;
use crate::threads::compute;

/// Random numbers that were drawn before. The core takes one for each draw.
struct Words<'a>(slice::Iter<'a, u64>);

impl TryRng for Words<'_> {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.try_next_u64().map(|word| (word >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        // The number of draws is known and has been checked, so none is missing.
        Ok(self.0.next().copied().unwrap_or_default())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(8) {
            let word = self.try_next_u64()?.to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        Ok(())
    }
}

/// Draws from each of `rows` rows: one with the numbers of `sample_dense`, several from a table.
fn draw(
    rows: usize,
    words: &[u64],
    one: impl Fn(usize, &mut Words<'_>) -> shafer::Result<usize>,
    table: impl Fn(usize) -> shafer::Result<Sampler>,
) -> PyResult<Vec<i64>> {
    let draws = words.len().checked_div(rows).unwrap_or_default();
    let mut classes = Vec::with_capacity(words.len());
    for row in 0..rows {
        let at =
            |error: shafer::Error| PyValueError::new_err(format!("distribution {row}: {error}"));
        let words = &words[row * draws..][..draws];
        let mut words = Words(words.iter());
        if draws == 1 {
            classes.push(one(row, &mut words).map_err(at)? as i64);
        } else {
            let table = table(row).map_err(at)?;
            classes.extend((0..draws).map(|_| table.sample(&mut words) as i64));
        }
    }
    Ok(classes)
}

/// For `shafer.sample`: draws from dense rows of `classes` weights.
#[pyfunction]
pub(crate) fn draw_dense<'py>(
    py: Python<'py>,
    weights: PyReadonlyArray1<'py, f64>,
    classes: usize,
    words: PyReadonlyArray1<'py, u64>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let (weights, words) = (weights.as_slice()?, words.as_slice()?);
    if classes == 0 {
        return Err(shafer::Error::Empty { what: "a row of probabilities" }).or_raise();
    }
    let row = |row: usize| &weights[row * classes..][..classes];
    let drawn = compute(py, weights.len() + words.len(), Threads::One, || {
        let one = |number, words: &mut Words<'_>| sample_dense(row(number), words);
        draw(weights.len() / classes, words, one, |number| Sampler::dense(row(number)))
    })?;
    Ok(PyArray1::from_vec(py, drawn))
}

/// For `shafer.sample`: draws from compressed rows.
#[pyfunction]
pub(crate) fn draw_csr<'py>(
    py: Python<'py>,
    classes: usize,
    pointers: PyReadonlyArray1<'py, i64>,
    indices: PyReadonlyArray1<'py, u32>,
    values: PyReadonlyArray1<'py, f64>,
    words: PyReadonlyArray1<'py, u64>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let (pointers, indices) = (pointers.as_slice()?.to_vec(), indices.as_slice()?.to_vec());
    let (values, words) = (values.as_slice()?.to_vec(), words.as_slice()?);
    let drawn = compute(py, values.len() + words.len(), Threads::One, || {
        let rows = CsrRows::from_parts(classes, pointers, indices, values).or_raise()?;
        let row = |row: usize| rows.row(row).unwrap_or_default();
        let one = |number, words: &mut Words<'_>| {
            let (classes, weights) = row(number);
            sample_csr(classes, weights, words)
        };
        let table = |number| {
            let (classes, weights) = row(number);
            Sampler::csr(classes, weights)
        };
        draw(rows.rows(), words, one, table)
    })?;
    Ok(PyArray1::from_vec(py, drawn))
}
