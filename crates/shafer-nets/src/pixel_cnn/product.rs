//! Matrix products in which each row has the same bits, whatever the other rows are.
//!
//! Every element is one chain of fused multiply-adds over the inputs, in their order, that starts from
//! the bias. How rows are blocked, on how many threads they run and how many of them there are therefore
//! changes nothing: a network that computes a whole grid at once and a sampler that computes one position
//! after the other agree to the bit. Products of libraries choose their blocks, and with them the order of
//! the additions, by the size of the matrices.

use fearless_simd::{Level, dispatch, prelude::*};

/// The columns of a panel: two vectors of 16.
const PANEL: usize = 32;

/// The rows that a tile has at most: their sums are as many vectors as 32 registers hold.
const TILE: usize = 14;

/// The rows of a tile where there are 16 registers.
const SMALL_TILE: usize = 6;

/// The tiles that a panel is multiplied with while it is in the cache.
const TILES: usize = 4;

/// One row of a panel, aligned to cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line([f32; PANEL]);

/// The weights of a linear layer, inputs x outputs, in panels of columns.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    inputs: usize,
    outputs: usize,
    /// Panel after panel; a row of each input.
    lines: Vec<Line>,
    /// One line a panel.
    bias: Vec<Line>,
}

impl Packed {
    /// From a row-major matrix; there may be no bias.
    pub(crate) fn new(weight: &[f32], inputs: usize, outputs: usize, bias: &[f32]) -> Self {
        let panels = outputs.div_ceil(PANEL);
        let mut lines = vec![Line([0.0; PANEL]); panels * inputs];
        for (row, weight) in weight.chunks_exact(outputs).enumerate() {
            for (panel, part) in weight.chunks(PANEL).enumerate() {
                lines[panel * inputs + row].0[..part.len()].copy_from_slice(part);
            }
        }
        let mut padded = vec![Line([0.0; PANEL]); panels];
        for (line, part) in padded.iter_mut().zip(bias.chunks(PANEL)) {
            line.0[..part.len()].copy_from_slice(part);
        }
        Self { inputs, outputs, lines, bias: padded }
    }

    /// The number of outputs.
    pub(crate) fn outputs(&self) -> usize {
        self.outputs
    }

    /// The rows of `out` from as many rows of inputs, which `gather` writes: it is given the number of a
    /// row and zeros.
    pub(crate) fn product(
        &self,
        scratch: &mut Vec<f32>,
        gather: impl Fn(usize, &mut [f32]),
        out: &mut [f32],
    ) {
        scratch.clear();
        scratch.resize(TILES * TILE * self.inputs, 0.0);
        dispatch!(Level::new(), simd => rows(simd, self, scratch, &gather, out));
    }
}

#[inline(always)]
fn rows<S: Simd>(
    simd: S,
    weights: &Packed,
    scratch: &mut [f32],
    gather: &impl Fn(usize, &mut [f32]),
    out: &mut [f32],
) {
    let tile_rows = if S::f32s::LEN == 16 { TILE } else { SMALL_TILE };
    let (inputs, outputs) = (weights.inputs, weights.outputs);
    let block_rows = TILES * tile_rows;
    for (block, out) in out.chunks_mut(block_rows * outputs).enumerate() {
        let scratch = &mut scratch[..out.len() / outputs * inputs];
        scratch.fill(0.0);
        for (row, inputs) in scratch.chunks_exact_mut(inputs).enumerate() {
            gather(block * block_rows + row, inputs);
        }
        let panels = weights.lines.chunks_exact(inputs).zip(&weights.bias).enumerate();
        for (panel, (lines, bias)) in panels {
            let start = panel * PANEL;
            let tiles = scratch.chunks(tile_rows * inputs).zip(out.chunks_mut(tile_rows * outputs));
            for (x, out) in tiles {
                macro_rules! of_height {
                    ($($rows:literal)*) => {
                        match out.len() / outputs {
                            $($rows => tile::<S, $rows>(simd, x, lines, bias, out, start),)*
                            _ => unreachable!("a tile has at most {TILE} rows"),
                        }
                    };
                }
                of_height!(1 2 3 4 5 6 7 8 9 10 11 12 13 14);
            }
        }
    }
}

/// `ROWS` rows times one panel.
#[inline(always)]
fn tile<S: Simd, const ROWS: usize>(
    simd: S,
    inputs: &[f32],
    lines: &[Line],
    bias: &Line,
    out: &mut [f32],
    start: usize,
) {
    let depth = lines.len();
    let width = S::f32s::LEN;
    let stride = out.len() / ROWS;
    let columns = PANEL.min(stride - start);
    // Of one length, so that no index is checked in the loop.
    let inputs: [&[f32]; ROWS] = std::array::from_fn(|row| &inputs[row * depth..][..depth]);
    let mut results = [Line([0.0; PANEL]); ROWS];
    for first in (0..PANEL).step_by(2 * width) {
        let second = first + width;
        let load = |line: &Line, at: usize| S::f32s::from_slice(simd, &line.0[at..at + width]);
        let mut sums = [[load(bias, first), load(bias, second)]; ROWS];
        for (i, line) in lines.iter().enumerate() {
            let (left, right) = (load(line, first), load(line, second));
            for row in 0..ROWS {
                let x = S::f32s::splat(simd, inputs[row][i]);
                sums[row][0] = x.mul_add(left, sums[row][0]);
                sums[row][1] = x.mul_add(right, sums[row][1]);
            }
        }
        for (result, [left, right]) in results.iter_mut().zip(sums) {
            left.store_slice(&mut result.0[first..second]);
            right.store_slice(&mut result.0[second..second + width]);
        }
    }
    for (result, out) in results.iter().zip(out.chunks_exact_mut(stride)) {
        out[start..start + columns].copy_from_slice(&result.0[..columns]);
    }
}

/// The positions of a block of [`sum_of_products`]: their inputs and gradients fit the second-level cache.
const BLOCK: usize = 256;

/// The sum, over rows, of the outer product of the row's inputs, which `gather` writes into zeros, and its
/// part of `gradient`: inputs x outputs. That is the gradient of [`Packed::product`] with respect to the
/// weights.
pub(crate) fn sum_of_products(
    inputs: usize,
    outputs: usize,
    gather: impl Fn(usize, &mut [f32]),
    gradient: &[f32],
) -> Vec<f32> {
    let panels = outputs.div_ceil(PANEL);
    let mut sums = vec![Line([0.0; PANEL]); panels * inputs];
    let mut seen = vec![0.0; BLOCK * inputs];
    let mut columns = vec![0.0; BLOCK * TILE];
    let mut lines = vec![Line([0.0; PANEL]); panels * BLOCK];
    for (block, gradient) in gradient.chunks(BLOCK * outputs).enumerate() {
        let count = gradient.len() / outputs;
        let seen = &mut seen[..count * inputs];
        seen.fill(0.0);
        for (row, seen) in seen.chunks_exact_mut(inputs).enumerate() {
            gather(block * BLOCK + row, seen);
        }
        for (row, gradient) in gradient.chunks_exact(outputs).enumerate() {
            for (panel, part) in gradient.chunks(PANEL).enumerate() {
                lines[panel * count + row].0[..part.len()].copy_from_slice(part);
            }
        }
        let lines = &lines[..panels * count];
        dispatch!(Level::new(), simd => add_block(simd, seen, lines, &mut columns, &mut sums, count));
    }
    let mut result = vec![0.0; inputs * outputs];
    for (row, result) in result.chunks_exact_mut(outputs).enumerate() {
        for (panel, part) in result.chunks_mut(PANEL).enumerate() {
            part.copy_from_slice(&sums[panel * inputs + row].0[..part.len()]);
        }
    }
    result
}

#[inline(always)]
fn add_block<S: Simd>(
    simd: S,
    seen: &[f32],
    lines: &[Line],
    columns: &mut [f32],
    sums: &mut [Line],
    count: usize,
) {
    let tile_rows = if S::f32s::LEN == 16 { TILE } else { SMALL_TILE };
    let inputs = seen.len() / count;
    for first in (0..inputs).step_by(tile_rows) {
        let rows = tile_rows.min(inputs - first);
        let columns = &mut columns[..count * rows];
        for (column, seen) in columns.chunks_exact_mut(rows).zip(seen.chunks_exact(inputs)) {
            column.copy_from_slice(&seen[first..first + rows]);
        }
        for (lines, sums) in lines.chunks_exact(count).zip(sums.chunks_exact_mut(inputs)) {
            let sums = &mut sums[first..first + rows];
            macro_rules! of_height {
                ($($rows:literal)*) => {
                    match rows {
                        $($rows => add_tile::<S, $rows>(simd, columns, lines, sums),)*
                        _ => unreachable!("a tile has at most {TILE} rows"),
                    }
                };
            }
            of_height!(1 2 3 4 5 6 7 8 9 10 11 12 13 14);
        }
    }
}

/// Adds the products of `ROWS` inputs of each position with its line.
#[inline(always)]
fn add_tile<S: Simd, const ROWS: usize>(
    simd: S,
    columns: &[f32],
    lines: &[Line],
    sums: &mut [Line],
) {
    let width = S::f32s::LEN;
    let load = |line: &Line, at: usize| S::f32s::from_slice(simd, &line.0[at..at + width]);
    let Ok(sums) = <&mut [Line; ROWS]>::try_from(sums) else { return };
    for first in (0..PANEL).step_by(2 * width) {
        let second = first + width;
        let mut totals: [_; ROWS] =
            std::array::from_fn(|row| [load(&sums[row], first), load(&sums[row], second)]);
        for (column, line) in columns.as_chunks::<ROWS>().0.iter().zip(lines) {
            let (left, right) = (load(line, first), load(line, second));
            for row in 0..ROWS {
                let x = S::f32s::splat(simd, column[row]);
                totals[row][0] = x.mul_add(left, totals[row][0]);
                totals[row][1] = x.mul_add(right, totals[row][1]);
            }
        }
        for (sum, [left, right]) in sums.iter_mut().zip(totals) {
            left.store_slice(&mut sum.0[first..second]);
            right.store_slice(&mut sum.0[second..second + width]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Random};

    fn numbers(seed: u64, count: usize) -> Vec<f32> {
        let mut random = Random::new(seed, Purpose::Noise, 0);
        (0..count).map(|_| 2.0 * random.uniform() - 1.0).collect()
    }

    fn product(packed: &Packed, x: &[f32]) -> Vec<f32> {
        let inputs = packed.inputs;
        let mut out = vec![f32::NAN; x.len() / inputs * packed.outputs];
        let gather = |row: usize, to: &mut [f32]| to.copy_from_slice(&x[row * inputs..][..inputs]);
        packed.product(&mut Vec::new(), gather, &mut out);
        out
    }

    /// On sizes around those of tiles and panels.
    #[test]
    fn products_against_double_precision() {
        for (rows, inputs, outputs) in
            [(1, 1, 1), (5, 3, 31), (14, 64, 32), (15, 7, 33), (29, 40, 70), (3, 200, 128)]
        {
            let (x, w, b) =
                (numbers(1, rows * inputs), numbers(2, inputs * outputs), numbers(3, outputs));
            let found = product(&Packed::new(&w, inputs, outputs, &b), &x);
            for row in 0..rows {
                for column in 0..outputs {
                    let sum: f64 = (0..inputs)
                        .map(|i| {
                            f64::from(x[row * inputs + i]) * f64::from(w[i * outputs + column])
                        })
                        .sum();
                    let (found, expected) =
                        (f64::from(found[row * outputs + column]), sum + f64::from(b[column]));
                    assert!((found - expected).abs() < 1e-5, "{rows} {inputs} {outputs}");
                }
            }
        }
    }

    #[test]
    fn rows_have_the_same_bits_in_any_company() {
        let (inputs, outputs) = (50, 40);
        let packed = Packed::new(&numbers(1, inputs * outputs), inputs, outputs, &numbers(2, 40));
        let x = numbers(3, 33 * inputs);
        let together = product(&packed, &x);
        for rows in [1, 2, 3, 6, 7, 13, 14, 15, 20] {
            for first in 0..=33 - rows {
                let alone = product(&packed, &x[first * inputs..][..rows * inputs]);
                assert_eq!(alone, together[first * outputs..][..rows * outputs]);
            }
        }
    }

    /// On sizes around those of tiles, panels and blocks.
    #[test]
    fn sums_of_products_against_double_precision() {
        for (rows, inputs, outputs) in [(1, 1, 1), (40, 15, 33), (256, 14, 32), (600, 29, 40)] {
            let (x, gradient) = (numbers(1, rows * inputs), numbers(2, rows * outputs));
            let gather =
                |row: usize, to: &mut [f32]| to.copy_from_slice(&x[row * inputs..][..inputs]);
            let found = sum_of_products(inputs, outputs, gather, &gradient);
            for i in 0..inputs {
                for j in 0..outputs {
                    let expected: f64 = (0..rows)
                        .map(|row| {
                            f64::from(x[row * inputs + i]) * f64::from(gradient[row * outputs + j])
                        })
                        .sum();
                    let found = f64::from(found[i * outputs + j]);
                    assert!((found - expected).abs() < 1e-4, "{rows} {inputs} {outputs}");
                }
            }
        }
    }
}
