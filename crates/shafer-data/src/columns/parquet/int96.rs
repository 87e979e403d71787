//! Times of 96 bits: nanoseconds of a day, and the day. Spark writes them, Arrow has only 64 bits.

/// The Julian day of 1 January 1970.
const EPOCH: i64 = 2_440_588;

const DAY: i64 = 86_400_000_000_000;

/// Whether one of these times is outside of what 64 bits of nanoseconds can hold, where the crate `parquet` wraps
/// around.
pub(super) fn overflows(bytes: &[u8]) -> bool {
    bytes.as_chunks::<12>().0.iter().any(|[nanos @ .., a, b, c, d]| {
        let day = i64::from(i32::from_le_bytes([*a, *b, *c, *d])) - EPOCH;
        let nanos = i64::from_le_bytes(*nanos);
        day.checked_mul(DAY).and_then(|start| start.checked_add(nanos)).is_none()
    })
}
