//! `support_sizes`, through `laws::support_sizes`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shafer_fuzz::laws::{Bits, support_sizes};
use shafer_fuzz::{Rows, with_type};

fn check<E: Bits>(rows: &Rows) {
    support_sizes::<E>(rows.parameters.choice(), &rows.batch());
}

fuzz_target!(|rows: Rows| with_type!(rows.of, check(&rows)));
