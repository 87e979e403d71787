//! Reads a single row of a file.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use anyhow::{Context as _, Error, Result, anyhow, bail};
use shafer_data::Values;

use crate::stream::{Block, Rows, Shape};
use crate::words::counted;

/// The largest buffer of logits for a row that is counted from the end of a stream.
const MOST_HELD: usize = 1 << 23;

/// The number of a row and its logits in double precision. A negative number counts from the end.
pub(crate) fn one_row(rows: Rows, wanted: isize) -> Result<(usize, Vec<f64>)> {
    let absent = |count| absent(wanted, count);
    let number = match (usize::try_from(wanted), rows.count()) {
        (Ok(number), Some(count)) => {
            Some(number).filter(|&n| n < count).ok_or_else(|| absent(count))?
        }
        (Ok(number), None) => number,
        (Err(_), Some(count)) => count.checked_add_signed(wanted).ok_or_else(|| absent(count))?,
        (Err(_), None) => return from_end(rows, wanted),
    };
    let shape = rows.shape();
    let (mut row, mut seen) = (None, 0);
    rows.for_each(|block| {
        seen = block.first + block.logits.len() / shape.classes;
        if number >= seen {
            return Ok(ControlFlow::Continue(()));
        }
        let mut values = Vec::new();
        values.try_reserve_exact(shape.classes).context("out of memory for the row")?;
        values.extend(logits(&block, shape, number - block.first));
        row = Some(values);
        Ok(ControlFlow::Break(()))
    })?;
    Ok((number, row.ok_or_else(|| absent(seen))?))
}

/// Reads a row that is counted from the end of a stream, with the last rows in a buffer.
fn from_end(rows: Rows, wanted: isize) -> Result<(usize, Vec<f64>)> {
    let (shape, last) = (rows.shape(), wanted.unsigned_abs());
    let room = last.saturating_mul(shape.classes);
    if room > MOST_HELD {
        let held = counted(last, "row");
        bail!(
            "row {wanted} of a stream would keep the last {held} of {} in memory; count from the \
             beginning",
            counted(shape.classes, "class")
        );
    }
    let (mut held, mut seen) = (VecDeque::new(), 0);
    rows.for_each(|block| {
        let rows = block.logits.len() / shape.classes;
        seen = block.first + rows;
        for row in rows.saturating_sub(last)..rows {
            if held.len() == room {
                held.drain(..shape.classes);
            }
            held.extend(logits(&block, shape, row));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let number = seen.checked_sub(last).ok_or_else(|| absent(wanted, seen))?;
    Ok((number, held.into_iter().take(shape.classes).collect()))
}

fn absent(wanted: isize, count: usize) -> Error {
    anyhow!("there is no row {wanted}: the file has {count}, counted from 0")
}

/// The logits of a row of a block; masked ones are -inf.
fn logits(block: &Block<'_>, shape: Shape, row: usize) -> impl Iterator<Item = f64> {
    let Shape { classes, inner } = shape;
    let (outer, rest) = (row / inner, row % inner);
    let logit = move |place: usize| match block.logits {
        _ if !shape.takes_part(block.mask, place) => f64::NEG_INFINITY,
        Values::F16(v) => v[place].to_f64(),
        Values::Bf16(v) => v[place].to_f64(),
        Values::F32(v) => f64::from(v[place]),
        Values::F64(v) => v[place],
    };
    (0..classes).map(move |class| logit((outer * classes + class) * inner + rest))
}
