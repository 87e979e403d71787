//! Arbitrary bytes as `.npz` files.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shafer_fuzz::files::{arrays, file};

fuzz_target!(|bytes: &[u8]| {
    let file = file(".npz", bytes);
    arrays(file.path());
});
