//! `dense`, through `laws::dense`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shafer_fuzz::laws::{Bits, dense};
use shafer_fuzz::{Rows, with_type};

fn check<E: Bits>(rows: &Rows) {
    dense::<E>(rows.parameters.choice(), &rows.batch());
}

fuzz_target!(|rows: Rows| with_type!(rows.of, check(&rows)));
