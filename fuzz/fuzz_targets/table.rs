//! Arbitrary bytes as a table with all its columns: a copy of what is read has the same rows.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shafer_fuzz::copies;
use shafer_fuzz::files::{file, folder, line};

fuzz_target!(|bytes: &[u8]| {
    let (file, folder) = (file(".table", bytes), folder());
    if let Err(error) = copies::check(file.path(), &folder.path().join("copy")) {
        line(&error);
    }
});
