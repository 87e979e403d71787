//! Checks for enough memory before a job starts: most libraries abort the program when an allocation fails.

use anyhow::{Result, bail};

/// Memory besides the data: thread stacks, file buffers, compression, the arenas of the allocator.
const BASE: usize = 96 << 20;

/// Fails if this many bytes cannot be allocated.
pub(crate) fn check(bytes: usize, what: &str) -> Result<()> {
    let bytes = bytes.saturating_add(BASE);
    let mut room: Vec<u8> = Vec::new();
    let found = room.try_reserve_exact(bytes);
    // Keeps the compiler from removing the unused allocation.
    std::hint::black_box(&room);
    if found.is_err() {
        bail!("out of memory: {what} need about {} MB", bytes.div_ceil(1_000_000));
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::check;

    #[test]
    fn more_than_there_can_be() {
        check(1, "tests").unwrap();
        let error = check(usize::MAX / 4, "rows").unwrap_err().to_string();
        assert!(error.starts_with("out of memory: rows need about "), "{error}");
    }
}
