//! SHA-256 checksums.

use std::fmt::Write as _;
use std::io::{self, Read};

use sha2::{Digest as _, Sha256};

/// A checksum that is computed incrementally.
#[derive(Default)]
pub(crate) struct Checksum(Sha256);

impl Checksum {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum as 64 hexadecimal digits.
    pub(crate) fn finish(self) -> String {
        self.0.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

/// The number of bytes in `source`, and their checksum. Reads at most `most + 1` bytes: enough to see that
/// the source is too long.
pub(crate) fn of(source: impl Read, most: u64) -> io::Result<(u64, String)> {
    let mut source = source.take(most.saturating_add(1));
    let mut checksum = Checksum::default();
    let mut buffer = vec![0; 1 << 16];
    let mut total = 0;
    loop {
        match source.read(&mut buffer) {
            Ok(0) => return Ok((total, checksum.finish())),
            Ok(n) => {
                checksum.add(&buffer[..n]);
                total += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// Examples of FIPS 180-4.
    #[test]
    fn known_answers() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(of(&b""[..], 0).unwrap(), (0, empty.to_owned()));
        assert_eq!(of(&b"abc"[..], 3).unwrap(), (3, abc.to_owned()));
        assert_eq!(of(io::repeat(0), 1000).unwrap().0, 1001);
    }
}
