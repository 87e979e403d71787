//! What is kept of a long row, packed block by block, with the exponentials of it.
//!
//! A block of logits is packed into a little memory that never leaves the nearest cache, and what is kept goes from
//! there to its place. So exponentials are taken of what is kept and of nothing else; columns are packed as bytes, as
//! many at a time as a vector holds; and what goes to memory is written in order and once, where packing itself writes
//! whole vectors that the next ones overlap.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::_mm512_cvtepu8_epi32;

#[cfg(target_arch = "x86_64")]
use fearless_simd::{Avx512, u32x16};
use fearless_simd::{mask8x16, prelude::*, u8x16};

use super::gibbs::Term;
use super::single::{SUMMANDS, add};
use super::{Cut, MAX_LANES, Rate, prefetch};

/// Logits of a block: as many as a byte can number.
const BLOCK: usize = 256;

/// From so many classes on, the memory that will be written is worth asking for: in shorter rows, only if other threads
/// write, too.
const FAR: usize = 4096;

/// After a block of which fewer are kept, it is worth looking which vectors of the next one keep anything.
const FEW: usize = BLOCK / 16;

/// The numbers of the logits of a block, and of those of a vector before it and after it.
const PLACES: [u8; MAX_LANES + BLOCK + MAX_LANES] = {
    let mut places = [0; _];
    let mut i = 0;
    while i < places.len() {
        places[i] = (i as u8).wrapping_sub(MAX_LANES as u8);
        i += 1;
    }
    places
};

/// For eight lanes and which of them are kept, as bits: the numbers of those, as bytes.
const PACKED: [u64; 256] = {
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

/// Where blocks are packed, one after the other.
///
/// A processor that finds a load and a store before it to agree in the last 12 bits of their addresses lets the load
/// wait, whatever the other bits are. So what is packed begins where the block begins, in the last 10 bits: the
/// stores, which come more slowly, then stay behind the loads. It does not lie across two pages, nor a vector across two
/// cache lines when it is read back. And a desk is kept on the stack, where the function that works on it keeps what
/// it has no registers for in the upper half of another page: places in the same half made some runs slow.
#[derive(Debug)]
#[repr(C, align(4096))]
pub(crate) struct Desk {
    places: Places,
    values: [f32; 2 * BLOCK],
    /// From how many classes on the memory that will be written is asked for.
    asks_from: usize,
}

/// What is kept of a block, and a vector more; of bytes, a cache line.
type Values = [f32; BLOCK + MAX_LANES];
type Places = [u8; BLOCK + 4 * MAX_LANES];

impl Desk {
    pub(crate) fn new() -> Self {
        Self { values: [0.0; _], places: [0; _], asks_from: FAR }
    }

    /// For one of several threads.
    #[cfg(feature = "parallel")]
    pub(crate) fn asking() -> Self {
        Self { asks_from: 0, ..Self::new() }
    }

    /// The part of it for this block.
    #[inline(always)]
    fn part(&mut self, block: &[f32]) -> Part<'_> {
        let distance = block.as_ptr().addr().wrapping_sub(self.values.as_ptr().addr());
        let begin = distance / size_of::<f32>() % BLOCK / MAX_LANES * MAX_LANES;
        let (values, _) = self.values[begin..].split_first_chunk_mut().expect("there is room");
        Part { values, places: &mut self.places }
    }
}

struct Part<'a> {
    values: &'a mut Values,
    places: &'a mut Places,
}

/// The exponentials of a row, and their sum.
#[derive(Clone, Copy)]
struct Exps<S: Simd, T> {
    simd: S,
    term: T,
    /// What is not above this underflows.
    lowest: S::f32s,
    sum: [S::f64s; 2],
}

/// See [`super::Loops::compact_long`]; for rows that `T` serves.
#[inline(always)]
pub(super) fn pack_exp<S: Simd, T: Term<S>>(
    simd: S,
    row: &[f32],
    Cut { threshold, max }: Cut<f32>,
    rate: Rate,
    desk: &mut Desk,
    columns: &mut [u32],
    values: &mut [f32],
) -> (usize, f64) {
    let splat = |value: f32| S::f32s::simd_from(simd, value);
    let exps = Exps {
        simd,
        term: T::new(simd, splat(max), rate),
        lowest: splat(rate.underflow(max)),
        sum: [S::f64s::simd_from(simd, 0.0); 2],
    };
    let (start, n, exps) =
        blocks::<S, T, false>(row, 0, splat(threshold), exps, desk, columns, values);
    if start < row.len() {
        let (columns, values) = (&mut columns[n..], &mut values[n..]);
        let (count, sum) = last_blocks(row, start, threshold, exps, desk, columns, values);
        return (n + count, sum);
    }
    (n, (exps.sum[0] + exps.sum[1]).reduce_sum())
}

/// The blocks for which there is no more room than they need. A function of its own: to call one from the loop over
/// the others would keep the sum out of the registers.
#[cold]
#[inline(never)]
fn last_blocks<S: Simd, T: Term<S>>(
    row: &[f32],
    start: usize,
    threshold: f32,
    exps: Exps<S, T>,
    desk: &mut Desk,
    columns: &mut [u32],
    values: &mut [f32],
) -> (usize, f64) {
    let simd = exps.simd;
    simd.vectorize(
        #[inline(always)]
        || {
            let bound = S::f32s::simd_from(simd, threshold);
            let (_, n, exps) = blocks::<S, T, true>(row, start, bound, exps, desk, columns, values);
            (n, (exps.sum[0] + exps.sum[1]).reduce_sum())
        },
    )
}

/// The blocks of a row from `start` on. Unless `EXACT`, up to the first for which there is not room for whole vectors.
#[inline(always)]
fn blocks<S: Simd, T: Term<S>, const EXACT: bool>(
    row: &[f32],
    mut start: usize,
    bound: S::f32s,
    mut exps: Exps<S, T>,
    desk: &mut Desk,
    columns: &mut [u32],
    values: &mut [f32],
) -> (usize, usize, Exps<S, T>) {
    let lanes = S::f32s::LEN;
    let room = values.len().min(columns.len());
    let (columns, values) = (&mut columns[..room], &mut values[..room]);
    let asks_from = desk.asks_from;
    let mut n = 0;
    let mut before = 0;
    while start < row.len() {
        let end = row.len().min(start + BLOCK);
        let mut part = desk.part(&row[start..]);
        let few = start > 0 && n - before < FEW;
        // No farther than there is room: what comes after it may be written by another thread just now.
        let far = row.len() >= asks_from && room - n > 2 * BLOCK;
        let count = if few {
            part.fill::<S, true>(exps.simd, row, start, end, bound)
        } else {
            part.fill::<S, false>(exps.simd, row, start, end, bound)
        };
        if !EXACT && room - n < count.next_multiple_of(lanes) {
            break;
        }
        let (columns, values) = (&mut columns[n..], &mut values[n..]);
        if far {
            part.take::<S, T, EXACT, true>(count, start as u32, &mut exps, columns, values);
        } else {
            part.take::<S, T, EXACT, false>(count, start as u32, &mut exps, columns, values);
        }
        before = n;
        n += count;
        start = end;
    }
    (start, n, exps)
}

impl Part<'_> {
    /// Packs what lies above the bound from `start` to `end`, and `-inf` after it; the number of it.
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
            let places = &PLACES[MAX_LANES + at..MAX_LANES + at + 4 * lanes];
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
            // One check that there is room for all.
            let values = &mut self.values[n..n + 4 * lanes];
            let mut kept = 0;
            // One after the other: to compare all four first takes longer.
            for i in 0..4 {
                let x = S::f32s::from_slice(simd, &four[i * lanes..][..lanes]);
                let keep = x.simd_gt(bound);
                x.compress(keep).store_slice(&mut values[kept..kept + lanes]);
                let bits = keep.to_bitmask();
                if lanes < MAX_LANES {
                    let first = u64::from_ne_bytes([places[i * lanes]; 8]);
                    let places = PACKED[bits as usize % PACKED.len()] + first;
                    self.places[n + kept..n + kept + 8].copy_from_slice(&places.to_le_bytes());
                }
                all |= bits << (i * lanes);
                kept += bits.count_ones() as usize;
            }
            // There is an instruction for it where vectors are as wide as that.
            if lanes == MAX_LANES {
                let places = S::u8s::from_slice(simd, places);
                let places = places.compress(S::mask8s::from_bitmask(simd, all));
                places.store_slice(&mut self.places[n..n + 4 * lanes]);
            }
            n += kept;
        }
        for from in (start + at..end).step_by(lanes) {
            // The last vector with logits that were there before, which are not kept twice.
            let first = from.min(row.len() - lanes);
            let x = S::f32s::from_slice(simd, &row[first..first + lanes]);
            let bits = x.simd_gt(bound).to_bitmask() & u64::MAX << (from - first);
            let place = MAX_LANES + first - start;
            let places = u8x16::from_slice(simd, &PLACES[place..place + MAX_LANES]);
            let places = places.compress(mask8x16::from_bitmask(simd, bits));
            places.store_slice(&mut self.places[n..n + MAX_LANES]);
            let kept = x.compress(S::mask32s::from_bitmask(simd, bits));
            kept.store_slice(&mut self.values[n..n + lanes]);
            n += bits.count_ones() as usize;
        }
        S::f32s::simd_from(simd, f32::NEG_INFINITY).store_slice(&mut self.values[n..n + lanes]);
        n
    }

    /// Writes the columns of the first `n`, in a block that begins with column `start`, and the exponentials of their
    /// values. Unless `EXACT`, whole vectors: what comes after them is not written yet.
    #[inline(always)]
    fn take<S: Simd, T: Term<S>, const EXACT: bool, const ASK: bool>(
        &self,
        n: usize,
        start: u32,
        exps: &mut Exps<S, T>,
        columns: &mut [u32],
        values: &mut [f32],
    ) {
        let Exps { simd, term, lowest, .. } = *exps;
        let lanes = S::f32s::LEN;
        let zero = S::f32s::simd_from(simd, 0.0);
        let mut sum = zero;
        let whole = if EXACT { n - n % lanes } else { n.next_multiple_of(lanes) };
        let (columns, last_columns) = columns.split_at_mut(whole);
        let (values, last_values) = values.split_at_mut(whole);
        let (places, logits) = (&self.places[..whole], &self.values[..whole]);
        // Iterators would not all become part of a function as large as the one that this is a part of.
        let mut at = 0;
        while at + lanes <= whole {
            let (columns, values) = (&mut columns[at..at + lanes], &mut values[at..at + lanes]);
            if ASK {
                prefetch::write(values, BLOCK);
                prefetch::write(columns, BLOCK);
            }
            put_columns(simd, &places[at..at + lanes], start, columns);
            let x = S::f32s::from_slice(simd, &logits[at..at + lanes]);
            let e = term.of_kept(simd, x, x.simd_gt(lowest));
            sum += e;
            e.store_slice(values);
            // With as many lanes as there can be, that is once a block.
            at += lanes;
            if lanes < MAX_LANES && at % (SUMMANDS * lanes) == 0 {
                add::<S>(&mut exps.sum, sum);
                sum = zero;
            }
        }
        if EXACT && whole < n {
            let x = S::f32s::from_slice(simd, &self.values[whole..whole + lanes]);
            let e = term.of_kept(simd, x, x.simd_gt(lowest));
            sum += e;
            last_values[..n - whole].copy_from_slice(&e.as_slice()[..n - whole]);
            for (column, &place) in last_columns.iter_mut().zip(&self.places[whole..n]) {
                *column = start + u32::from(place);
            }
        }
        add::<S>(&mut exps.sum, sum);
    }
}

/// Writes the columns of a vector of places.
#[inline(always)]
fn put_columns<S: Simd>(simd: S, places: &[u8], start: u32, columns: &mut [u32]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx512) = simd.level().as_avx512() {
        let places = widen(avx512, u8x16::from_slice(avx512, places));
        return (places + start).store_slice(columns);
    }
    let places = S::u32s::from_fn(simd, |lane| u32::from(places[lane]));
    (places + start).store_slice(columns);
}

#[cfg(target_arch = "x86_64")]
fearless_simd::kernel!(
    /// In one instruction.
    #[inline(always)]
    fn widen(avx512: Avx512, places: u8x16<Avx512>) -> u32x16<Avx512> {
        _mm512_cvtepu8_epi32(places.into()).simd_into(avx512)
    }
);
