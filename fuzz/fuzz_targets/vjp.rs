//! `vjp`, through `laws::vjp`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shafer_fuzz::laws::{Bits, vjp};
use shafer_fuzz::{Number, Rows, repeated, with_type};

fn check<E: Bits>(rows: &Rows, upstream: &[Number], anything: &[Number], clean: bool) {
    let batch = rows.batch::<E>();
    let upstream = repeated(upstream, batch.logits.len(), clean);
    let anything = repeated(anything, batch.logits.len(), false);
    vjp(rows.parameters.choice(), &batch, &upstream, &anything);
}

fuzz_target!(|input: (Rows, Vec<Number>, Vec<Number>, bool)| {
    let (rows, upstream, anything, clean) = &input;
    with_type!(rows.of, check(rows, upstream, anything, *clean));
});
