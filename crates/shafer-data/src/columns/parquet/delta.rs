//! The numbers of values that delta-encoded texts claim to have.
//!
//! The crate `parquet` allocates the lengths of all texts of a page by a number in front of them, which is no number
//! of the page's header. It is compared with that one here.

use super::thrift::{Parsed, Thrift};

/// Whether the lengths of `values` texts are there: one sequence of deltas, or two, for prefixes and suffixes. What
/// cannot be followed is the library's to report.
pub(super) fn claims_more(bytes: &[u8], sequences: usize, values: usize) -> bool {
    let mut rest = Thrift { bytes };
    for _ in 0..sequences {
        match skip(&mut rest, values) {
            Ok(true) => {}
            Ok(false) => return true,
            Err(_) => return false,
        }
    }
    false
}

/// Skips a sequence: block size, miniblocks per block, values, the first one, and blocks of the others. `false` if
/// there are more than `most` values.
fn skip(rest: &mut Thrift<'_>, most: usize) -> Parsed<bool> {
    const UNUSUAL: &str = "has unusual blocks";
    let mut number = || rest.unsigned().and_then(|n| usize::try_from(n).map_err(|_| UNUSUAL));
    let (block, miniblocks, values) = (number()?, number()?, number()?);
    if values > most {
        return Ok(false);
    }
    let a_miniblock = block.checked_div(miniblocks).filter(|&n| n > 0).ok_or(UNUSUAL)?;
    rest.integer()?;
    let mut left = values.saturating_sub(1);
    while left > 0 {
        rest.integer()?;
        let widths = rest.bytes.get(..miniblocks).ok_or(UNUSUAL)?;
        rest.bytes = &rest.bytes[miniblocks..];
        for &width in widths.iter().take(left.div_ceil(a_miniblock)) {
            let length = usize::from(width).checked_mul(a_miniblock).ok_or(UNUSUAL)? / 8;
            rest.bytes = rest.bytes.get(length..).ok_or(UNUSUAL)?;
        }
        left = left.saturating_sub(block);
    }
    Ok(true)
}
