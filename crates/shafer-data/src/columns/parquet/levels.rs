//! The repetition and definition levels of a page.
//!
//! The crate `parquet` decodes them without looking at them: a level above the column's maximum is taken for another
//! one, and a value would be in another row. Here they are compared with the maximum before that.

use parquet::basic::Encoding;
use parquet::column::page::Page;

use super::thrift::{Parsed, Thrift};

const CUT: &str = "has a page with fewer levels than values";
const TOO_MANY: &str = "has a page with more levels than can be";
const TOO_LARGE: &str = "has a level above the largest of its column";

/// The largest levels of a column. There are none of a kind if it is 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Most {
    pub(super) repetition: u16,
    pub(super) definition: u16,
}

impl Most {
    /// Checks the levels of a page of data, and returns the offset of its values.
    pub(super) fn check(self, page: &Page) -> Parsed<usize> {
        let (bytes, count) = (&page.buffer()[..], page.num_values() as usize);
        match page {
            Page::DictionaryPage { .. } => Ok(0),
            Page::DataPage { rep_level_encoding, def_level_encoding, .. } => {
                let mut at = 0;
                for (most, encoding) in
                    [(self.repetition, rep_level_encoding), (self.definition, def_level_encoding)]
                {
                    at += levels(bytes.get(at..).ok_or(CUT)?, *encoding, most, count)?;
                }
                Ok(at)
            }
            Page::DataPageV2 { def_levels_byte_len, rep_levels_byte_len, .. } => {
                let middle = *rep_levels_byte_len as usize;
                let end = middle.checked_add(*def_levels_byte_len as usize).ok_or(CUT)?;
                hybrid(bytes.get(..middle).ok_or(CUT)?, self.repetition, count)?;
                hybrid(bytes.get(middle..end).ok_or(CUT)?, self.definition, count)?;
                Ok(end)
            }
        }
    }
}

/// Checks the levels of one kind in a page of version 1, and returns their length.
fn levels(bytes: &[u8], encoding: Encoding, most: u16, count: usize) -> Parsed<usize> {
    #[allow(deprecated, reason = "old files have it")]
    match encoding {
        _ if most == 0 => Ok(0),
        Encoding::RLE => {
            let (length, rest) = bytes.split_first_chunk().ok_or(CUT)?;
            let length = u32::from_le_bytes(*length) as usize;
            hybrid(rest.get(..length).ok_or(CUT)?, most, count)?;
            Ok(4 + length)
        }
        Encoding::BIT_PACKED => {
            let length = count.checked_mul(width(most)).ok_or(CUT)?.div_ceil(8);
            packed(bytes.get(..length).ok_or(CUT)?, most, count)?;
            Ok(length)
        }
        _ => Err("has levels of an unknown encoding"),
    }
}

/// The bits of a level.
fn width(most: u16) -> usize {
    (u16::BITS - most.leading_zeros()) as usize
}

/// Checks `count` levels in runs: of one level, or of bit-packed ones.
fn hybrid(bytes: &[u8], most: u16, count: usize) -> Parsed<()> {
    if most == 0 {
        return Ok(());
    }
    let (width, mut rest, mut left) = (width(most), Thrift { bytes }, count);
    while left > 0 {
        let header = rest.unsigned().map_err(|_| CUT)?;
        // The library has 32 bits for what it counts.
        let run = u32::try_from(header >> 1).ok().filter(|&run| run <= u32::MAX / 8);
        let run = run.ok_or(TOO_MANY)? as usize;
        let (values, length) = if header & 1 == 1 {
            // In groups of eight. Some writers leave out what is not needed of the last one.
            let values = run.saturating_mul(8).min(left);
            let there = run.saturating_mul(width).min(rest.bytes.len());
            packed(&rest.bytes[..there], most, values)?;
            (values, there)
        } else {
            let length = width.div_ceil(8);
            let value = rest.bytes.get(..length).ok_or(CUT)?;
            if value.iter().rev().fold(0, |n, &byte| n << 8 | u32::from(byte)) > u32::from(most) {
                return Err(TOO_LARGE);
            }
            // An empty run is the padding of some writers.
            if run == 0 {
                return Err(CUT);
            }
            (run.min(left), length)
        };
        left -= values;
        rest.bytes = &rest.bytes[length..];
    }
    Ok(())
}

/// Checks `count` bit-packed levels.
fn packed(bytes: &[u8], most: u16, count: usize) -> Parsed<()> {
    let width = width(most);
    if count.saturating_mul(width) > bytes.len() * 8 {
        return Err(CUT);
    }
    // The widest numbers are no more than the maximum.
    if usize::from(most) + 1 == 1 << width {
        return Ok(());
    }
    let mask = (1 << width) - 1;
    // Groups of eight.
    for (group, bytes) in bytes.chunks(width).take(count.div_ceil(8)).enumerate() {
        let group_bits =
            bytes.iter().rev().fold(0_u128, |bits, &byte| bits << 8 | u128::from(byte));
        let in_group = (count - 8 * group).min(8);
        if (0..in_group).any(|i| group_bits >> (i * width) & mask > u128::from(most)) {
            return Err(TOO_LARGE);
        }
    }
    Ok(())
}
