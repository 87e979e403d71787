//! Whether memory has room for a job, asked before it begins: most libraries abort the program when there is
//! none.

use anyhow::{Result, bail};

/// What a job takes besides its rows: threads, buffers of files, and the allocator's own tables.
const BASE: usize = 48 << 20;

/// Fails if there is no room for so many bytes.
pub(crate) fn check(bytes: usize, what: &str) -> Result<()> {
    let bytes = bytes.saturating_add(BASE);
    let mut room: Vec<u8> = Vec::new();
    let found = room.try_reserve_exact(bytes);
    // Otherwise the compiler sees that nobody uses the room, and does not ask for it.
    std::hint::black_box(&room);
    if found.is_err() {
        bail!("out of memory: {what} take about {} MB", bytes.div_ceil(1_000_000));
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
        assert!(error.starts_with("out of memory: rows take about "), "{error}");
    }
}
