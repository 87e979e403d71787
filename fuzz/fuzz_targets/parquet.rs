//! Arbitrary bytes as `.parquet` files: as the whole file, and split into pages and footer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shafer_fuzz::files::{arrays, file};
use shafer_fuzz::parquet::parquet;

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    let Some((pages, rest)) = bytes.split_first_chunk::<2>() else { return };
    let pages = usize::from(u16::from_le_bytes(*pages)).min(rest.len());
    let (pages, footer) = rest.split_at(pages);
    check(&parquet(pages, footer));
});

fn check(bytes: &[u8]) {
    let file = file(".parquet", bytes);
    arrays(file.path());
}
