//! Development tasks. `cargo xtask check` is the gate: what it accepts, CI accepts.

fn main() {}
