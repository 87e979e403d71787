//! `compressed`, through `laws::compressed`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shafer_fuzz::laws::{Bits, compressed};
use shafer_fuzz::{Rows, with_type};

fn check<E: Bits>(rows: &Rows) {
    compressed::<E>(rows.parameters.choice(), &rows.batch());
}

fuzz_target!(|rows: Rows| with_type!(rows.of, check(&rows)));
