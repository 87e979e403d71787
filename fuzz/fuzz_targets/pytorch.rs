//! Arbitrary bytes as `.pt` files.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shafer_fuzz::files::{file, model};

fuzz_target!(|bytes: &[u8]| {
    let file = file(".pt", bytes);
    model(file.path(), bytes.len(), false);
});
