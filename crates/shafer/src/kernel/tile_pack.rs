//! Packs what a tile keeps without transposing it back: AVX-512 can permute the lanes of two vectors and
//! compress 64 bytes at a time.

use std::arch::x86_64::{
    _mm_movepi8_mask, _mm_slli_epi16, _mm512_add_epi32, _mm512_alignr_epi32,
    _mm512_castsi512_si256, _mm512_cvtepi32_epi16, _mm512_cvtepu8_epi32, _mm512_cvtepu32_epi64,
    _mm512_extracti64x4_epi64, _mm512_mask_blend_ps, _mm512_permutex2var_ps, _mm512_permutexvar_ps,
    _mm512_popcnt_epi32, _mm512_setzero_si512, _mm512_srli_epi32,
};

use fearless_simd::{Avx512, f32x16, mask8x64, prelude::*, u8x16, u8x64, u16x16, u32x16, u64x8};

use super::Entries;
use super::prefetch::{self, DISTANCE};
use super::tile::{Lanes, ShortRows, Values, tiles};
use crate::csr::Rows;

/// Rows of a tile.
const ROWS: usize = 16;

/// The most classes that a row may have here.
pub(super) const MOST_CLASSES: usize = 16;

/// For each four rows, the positions of their classes in a tile.
const PLACES: [[u8; 64]; 4] = {
    let mut places = [[0; 64]; 4];
    let mut i = 0;
    while i < 256 {
        let (row, class) = (i / MOST_CLASSES, i % MOST_CLASSES);
        places[i / 64][i % 64] = (class * ROWS + row) as u8;
        i += 1;
    }
    places
};

/// The positions of what is kept, and room for a vector more.
type Places = [u8; ROWS * MOST_CLASSES + 64];

/// Compressed rows of at most [`MOST_CLASSES`].
#[inline(always)]
pub(super) fn csr(
    avx512: Avx512,
    rows: ShortRows<'_, f32>,
    output: &mut Rows<'_, f32>,
) -> Option<usize> {
    let classes = rows.classes;
    let Rows { ends, base, entries: Entries { columns, values } } = output;
    let (columns, values, base) = (&mut **columns, &mut **values, *base);
    let mut places = [0; _];
    let mut end = 0;
    tiles(
        avx512,
        rows,
        #[inline(always)]
        |tile, Lanes { scale, mut kept }, rows| {
            if rows < ROWS {
                let lane = u32x16::from_fn(avx512, |lane| lane as u32);
                kept = lane.simd_lt(rows as u32).select(kept, u32x16::splat(avx512, 0));
            }
            let row_ends = row_ends(avx512, kept, base + end as i64).map(|end| end as i64);
            if rows == ROWS {
                // With a constant length, it is two stores.
                ends.extend_from_slice(&row_ends);
            } else {
                ends.extend_from_slice(&row_ends[..rows]);
            }
            let (values, columns) = (&mut values[end..], &mut columns[end..]);
            end += pick(avx512, tile, classes, Lanes { scale, kept }, &mut places, values, columns);
        },
    )
}

fearless_simd::kernel!(
    /// Writes `tile[class * 16 + row] * scale[row]` where bit `class` of `kept[row]` is set, and these classes, row by
    /// row; returns their number. A row has `most` classes. The slices need room for all and a vector more.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn pick(
        avx512: Avx512,
        tile: &Values,
        most: usize,
        lanes: Lanes<Avx512>,
        places: &mut Places,
        values: &mut [f32],
        columns: &mut [u32],
    ) -> usize {
        let Lanes { scale, kept } = lanes;
        let mut count = 0;
        let halves: u16x16<_> = _mm512_cvtepi32_epi16(kept.into()).simd_into(avx512);
        let mut masks = [0; 32];
        halves.to_bytes().store_slice(&mut masks);
        for (four, mask) in PLACES.iter().zip(masks.as_chunks().0) {
            let four = u8x64::from_slice(avx512, four);
            let mask = u64::from_le_bytes(*mask);
            let packed = four.compress(mask8x64::from_bitmask(avx512, mask));
            packed.store_slice(&mut places[count..count + 64]);
            count += mask.count_ones() as usize;
        }
        // All sixteen; those past the last class are not used.
        let mut classes = [f32x16::splat(avx512, 0.0); MOST_CLASSES];
        for (class, vector) in classes.iter_mut().enumerate() {
            *vector = f32x16::from_slice(avx512, &tile[class * ROWS..(class + 1) * ROWS]);
        }
        for start in (0..count).step_by(16) {
            let place = u8x16::from_slice(avx512, &places[start..start + 16]).into();
            // The low 5 bits of a place are a lane of two vectors, the high 3 say which two.
            let bit_5 = _mm_movepi8_mask(_mm_slli_epi16::<2>(place));
            let bit_6 = _mm_movepi8_mask(_mm_slli_epi16::<1>(place));
            let bit_7 = _mm_movepi8_mask(place);
            let place = _mm512_cvtepu8_epi32(place);
            let class: u32x16<_> = _mm512_srli_epi32::<4>(place).simd_into(avx512);
            let two = |i: usize| {
                _mm512_permutex2var_ps(classes[2 * i].into(), place, classes[2 * i + 1].into())
            };
            let four = |i: usize| _mm512_mask_blend_ps(bit_5, two(2 * i), two(2 * i + 1));
            let mut value = _mm512_mask_blend_ps(bit_6, four(0), four(1));
            if most > 8 {
                let mut rest = if most > 10 { four(2) } else { two(4) };
                if most > 12 {
                    rest = _mm512_mask_blend_ps(bit_6, rest, four(3));
                }
                value = _mm512_mask_blend_ps(bit_7, value, rest);
            }
            // The low 4 bits are the row.
            let scale: f32x16<_> = _mm512_permutexvar_ps(place, scale.into()).simd_into(avx512);
            let value: f32x16<_> = value.simd_into(avx512);
            (value * scale).store_slice(&mut values[start..start + 16]);
            class.store_slice(&mut columns[start..start + 16]);
            prefetch::write(values, start + DISTANCE);
            prefetch::write(columns, start + DISTANCE);
        }
        count
    }
);

fearless_simd::kernel!(
    /// The row pointers after rows with these kept bits, given the one before them.
    #[inline(always)]
    fn row_ends(avx512: Avx512, kept: u32x16<Avx512>, before: i64) -> [u64; ROWS] {
        let zero = _mm512_setzero_si512();
        // Prefix sums over 2, 4, 8 and 16 rows.
        let sum = _mm512_popcnt_epi32(kept.into());
        let sum = _mm512_add_epi32(sum, _mm512_alignr_epi32::<15>(sum, zero));
        let sum = _mm512_add_epi32(sum, _mm512_alignr_epi32::<14>(sum, zero));
        let sum = _mm512_add_epi32(sum, _mm512_alignr_epi32::<12>(sum, zero));
        let sum = _mm512_add_epi32(sum, _mm512_alignr_epi32::<8>(sum, zero));
        let before = u64x8::splat(avx512, before as u64);
        let low: u64x8<_> = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(sum)).simd_into(avx512);
        let high: u64x8<_> =
            _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64::<1>(sum)).simd_into(avx512);
        let mut ends = [0; ROWS];
        (low + before).store_slice(&mut ends[..8]);
        (high + before).store_slice(&mut ends[8..]);
        ends
    }
);
