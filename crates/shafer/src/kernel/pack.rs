//! Packs what a row keeps: columns and values, or columns and exponentials.
//!
//! A row is packed in blocks of 256 through a staging buffer in the first-level cache. So
//! exponentials are computed for the kept values only, columns are packed as bytes (a whole block
//! fits a byte), and memory is written in order and once, where packing itself stores whole vectors
//! that the next ones overlap.

use fearless_simd::{mask8x16, prelude::*, u8x16};

use super::exp::Term;
use super::f32::{SUMMANDS, add};
use super::prefetch::{self, DISTANCE};
use super::{Cut, Entries, MAX_LANES, Rate};

/// Logits of a block: as many as a byte can number.
const BLOCK: usize = 256;

/// After a block of which fewer are kept, four vectors at a time are tested before they are packed.
const FEW: usize = BLOCK / 16;

/// The position of each logit in a block, and of those of a vector before and after it.
const POSITIONS: [u8; MAX_LANES + BLOCK + MAX_LANES] = {
    let mut positions = [0; _];
    let mut i = 0;
    while i < positions.len() {
        positions[i] = (i as u8).wrapping_sub(MAX_LANES as u8);
        i += 1;
    }
    positions
};

/// For each mask of eight lanes, the numbers of the set lanes as bytes.
const SET_LANES: [u64; 256] = {
    let mut packed = [0; _];
    let mut bits = 0;
    while bits < packed.len() {
        let (mut lane, mut kept) = (0, 0);
        while lane < 8 {
            if bits >> lane & 1 == 1 {
                packed[bits] |= lane << (8 * kept);
                kept += 1;
            }
            lane += 1;
        }
        bits += 1;
    }
    packed
};

/// The staging buffer of a block.
///
/// A load waits for an earlier store if the last 12 bits of their addresses agree (4K aliasing). The
/// packed values therefore begin at the same offset as the block, modulo a kilobyte: the stores,
/// which advance more slowly, then stay behind the loads. For the same reason the buffer has a page
/// to itself, which also keeps vectors within cache lines when they are read back.
#[derive(Debug)]
#[repr(C, align(4096))]
pub struct Staging {
    positions: Positions,
    values: [f32; 2 * BLOCK],
}

/// What is kept of a block, and a vector more; of bytes, a cache line more.
type Values = [f32; BLOCK + MAX_LANES];
type Positions = [u8; BLOCK + 4 * MAX_LANES];

impl Default for Staging {
    fn default() -> Self {
        Self { values: [0.0; _], positions: [0; _] }
    }
}

impl Staging {
    /// The part of the buffer for a block.
    #[inline(always)]
    fn stage(&mut self, block: &[f32]) -> Stage<'_> {
        let distance = block.as_ptr().addr().wrapping_sub(self.values.as_ptr().addr());
        let begin = distance / size_of::<f32>() % BLOCK / MAX_LANES * MAX_LANES;
        let (values, _) = self.values[begin..].split_first_chunk_mut().expect("there is room");
        Stage { values, positions: &mut self.positions }
    }
}

struct Stage<'a> {
    values: &'a mut Values,
    positions: &'a mut Positions,
}

/// [`super::Loops::pack_exp`] if `EXP`, for rows that `T` serves; otherwise [`super::Loops::pack`], which
/// uses neither the maximum nor the rate, and whose sum is 0.
#[inline(always)]
pub(super) fn pack<S: Simd, T: Term<S>, const EXP: bool>(
    simd: S,
    row: &[f32],
    Cut { threshold, max }: Cut<f32>,
    rate: Rate,
    staging: &mut Staging,
    Entries { columns, values }: Entries<'_, f32>,
) -> (usize, f64) {
    let lanes = S::f32s::LEN;
    let splat = |value: f32| S::f32s::simd_from(simd, value);
    let (bound, lowest) = (splat(threshold), splat(rate.underflow(max)));
    let term = T::new(simd, splat(max), rate);
    let mut total = [S::f64s::simd_from(simd, 0.0); 2];
    let (mut start, mut n, mut count) = (0, 0, BLOCK);
    while start < row.len() {
        let end = row.len().min(start + BLOCK);
        let mut stage = staging.stage(&row[start..]);
        count = if count < FEW {
            stage.fill::<S, true>(simd, row, start, end, bound)
        } else {
            stage.fill::<S, false>(simd, row, start, end, bound)
        };
        // Whole vectors: what follows is not written yet.
        let whole = count.next_multiple_of(lanes);
        let (columns, values) = (&mut columns[n..n + whole], &mut values[n..n + whole]);
        let (positions, logits) = (&stage.positions[..whole], &stage.values[..whole]);
        // Index loops: iterators are not all inlined into a function as large as this one.
        let mut at = 0;
        while at < whole {
            let mut sum = splat(0.0);
            let last = whole.min(at + SUMMANDS * lanes);
            while at < last {
                let (columns, values) = (&mut columns[at..at + lanes], &mut values[at..at + lanes]);
                prefetch::write(values, DISTANCE);
                prefetch::write(columns, DISTANCE);
                put_columns(simd, &positions[at..at + lanes], start as u32, columns);
                let x = S::f32s::from_slice(simd, &logits[at..at + lanes]);
                if EXP {
                    let e = term.of_kept(simd, x, x.simd_gt(lowest));
                    sum += e;
                    e.store_slice(values);
                } else {
                    x.store_slice(values);
                }
                at += lanes;
            }
            add::<S>(&mut total, sum);
        }
        n += count;
        start = end;
    }
    (n, (total[0] + total[1]).reduce_sum())
}

impl Stage<'_> {
    /// Packs the logits above the bound from `start` to `end`, followed by a vector of `-inf`; returns
    /// their number.
    #[inline(always)]
    fn fill<S: Simd, const FEW: bool>(
        &mut self,
        simd: S,
        row: &[f32],
        start: usize,
        end: usize,
        bound: S::f32s,
    ) -> usize {
        let lanes = S::f32s::LEN;
        let mut n = 0;
        let block = &row[start..end];
        let mut at = 0;
        while at + 4 * lanes <= block.len() {
            let four = &block[at..at + 4 * lanes];
            let positions = &POSITIONS[MAX_LANES + at..MAX_LANES + at + 4 * lanes];
            at += 4 * lanes;
            if FEW {
                let mut max = bound;
                for i in 0..4 {
                    max = max.max(S::f32s::from_slice(simd, &four[i * lanes..][..lanes]));
                }
                if !max.simd_gt(bound).any_true() {
                    continue;
                }
            }
            let mut all = 0;
            // One bounds check for the four vectors.
            let values = &mut self.values[n..n + 4 * lanes];
            let mut kept = 0;
            // One after the other: to compare all four first takes longer.
            for i in 0..4 {
                let x = S::f32s::from_slice(simd, &four[i * lanes..][..lanes]);
                let keep = x.simd_gt(bound);
                x.compress(keep).store_slice(&mut values[kept..kept + lanes]);
                let bits = keep.to_bitmask();
                if lanes < MAX_LANES {
                    let first = u64::from_ne_bytes([positions[i * lanes]; 8]);
                    let packed = SET_LANES[bits as usize % SET_LANES.len()] + first;
                    self.positions[n + kept..n + kept + 8].copy_from_slice(&packed.to_le_bytes());
                }
                all |= bits << (i * lanes);
                kept += bits.count_ones() as usize;
            }
            // The widest vectors have an instruction for it.
            if lanes == MAX_LANES {
                let positions = S::u8s::from_slice(simd, positions);
                let positions = positions.compress(S::mask8s::from_bitmask(simd, all));
                positions.store_slice(&mut self.positions[n..n + 4 * lanes]);
            }
            n += kept;
        }
        for from in (start + at..end).step_by(lanes) {
            // The last vector overlaps the one before, whose values are not kept twice.
            let first = from.min(row.len().saturating_sub(lanes));
            let x = if row.len() < lanes {
                S::f32s::from_fn(simd, |i| row.get(i).copied().unwrap_or(f32::NEG_INFINITY))
            } else {
                S::f32s::from_slice(simd, &row[first..first + lanes])
            };
            let bits = x.simd_gt(bound).to_bitmask() & u64::MAX << (from - first);
            let position = MAX_LANES + first - start;
            let positions = u8x16::from_slice(simd, &POSITIONS[position..position + MAX_LANES]);
            let positions = positions.compress(mask8x16::from_bitmask(simd, bits));
            positions.store_slice(&mut self.positions[n..n + MAX_LANES]);
            let kept = x.compress(S::mask32s::from_bitmask(simd, bits));
            kept.store_slice(&mut self.values[n..n + lanes]);
            n += bits.count_ones() as usize;
        }
        S::f32s::simd_from(simd, f32::NEG_INFINITY).store_slice(&mut self.values[n..n + lanes]);
        n
    }
}

/// Writes the columns of a vector of positions in the block that begins at column `start`.
#[inline(always)]
fn put_columns<S: Simd>(simd: S, positions: &[u8], start: u32, columns: &mut [u32]) {
    let positions = S::u32s::from_fn(simd, |lane| u32::from(positions[lane]));
    (positions + start).store_slice(columns);
}
