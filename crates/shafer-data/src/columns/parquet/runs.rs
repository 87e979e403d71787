//! Decoder of the RLE / bit-packed hybrid encoding of levels and dictionary indices.

/// A position in a sequence of runs: a repeated value, or groups of eight bit-packed values. Every call takes
/// the bytes of the page, which the caller owns.
#[derive(Debug)]
pub(super) struct Runs {
    /// The offset of the next run, and the end of the last one.
    at: usize,
    end: usize,
    /// The bit width, at most 32.
    width: usize,
    run: Run,
}

#[derive(Clone, Copy, Debug)]
enum Run {
    Same {
        value: u32,
        left: usize,
    },
    Packed {
        /// The offset in bits.
        at: usize,
        left: usize,
    },
}

impl Runs {
    /// `None` if the bit width or the range is invalid for a page of this length.
    pub(super) fn new(at: usize, end: usize, width: usize, page: usize) -> Option<Self> {
        let run = Run::Same { value: 0, left: 0 };
        (at <= end && end <= page && width <= 32).then_some(Self { at, end, width, run })
    }

    /// The next value and its number of repetitions in the current run, from 1 to `most`. `None` at the end.
    pub(super) fn next(&mut self, bytes: &[u8], most: usize) -> Option<(u32, usize)> {
        self.begin(bytes)?;
        match &mut self.run {
            Run::Same { value, left } => {
                let n = most.min(*left);
                *left -= n;
                Some((*value, n))
            }
            Run::Packed { at, left } => {
                let value = unpack(bytes, *at, self.width);
                *at += self.width;
                *left -= 1;
                Some((value, 1))
            }
        }
    }

    /// Fills a slice with the next values, or `None` if there are too few.
    pub(super) fn fill(&mut self, bytes: &[u8], mut out: &mut [u32]) -> Option<()> {
        while !out.is_empty() {
            self.begin(bytes)?;
            let (Run::Same { left, .. } | Run::Packed { left, .. }) = &mut self.run;
            let (now, later) = out.split_at_mut(out.len().min(*left));
            *left -= now.len();
            match &mut self.run {
                Run::Same { value, .. } => now.fill(*value),
                Run::Packed { at, .. } => {
                    for value in now {
                        *value = unpack(bytes, *at, self.width);
                        *at += self.width;
                    }
                }
            }
            out = later;
        }
        Some(())
    }

    /// Advances to the next run if the current one is exhausted.
    fn begin(&mut self, bytes: &[u8]) -> Option<()> {
        while let Run::Same { left: 0, .. } | Run::Packed { left: 0, .. } = self.run {
            let mut header = super::thrift::Thrift { bytes: bytes.get(self.at..self.end)? };
            let length = usize::try_from(header.unsigned().ok()?).ok()?;
            self.at = self.end - header.bytes.len();
            let there = self.end - self.at;
            if length & 1 == 1 {
                // Eight values of one bit are a byte. The last group may be cut off where the values
                // that count end.
                let groups = length >> 1;
                let packed = groups.saturating_mul(self.width).min(there);
                let left = match self.width {
                    0 => groups.checked_mul(8)?,
                    width => packed * 8 / width,
                };
                self.run = Run::Packed { at: self.at.checked_mul(8)?, left };
                self.at += packed;
            } else {
                let size = self.width.div_ceil(8);
                let mut value = [0; 4];
                value[..size].copy_from_slice(bytes.get(self.at..self.end)?.get(..size)?);
                self.at += size;
                self.run = Run::Same { value: u32::from_le_bytes(value), left: length >> 1 };
            }
        }
        Some(())
    }
}

/// The value of `width` bits at a bit offset. Bits after the end are 0.
fn unpack(bytes: &[u8], at: usize, width: usize) -> u32 {
    let start = &bytes[(at / 8).min(bytes.len())..];
    let word = match start.first_chunk::<8>() {
        Some(chunk) => u64::from_le_bytes(*chunk),
        None => start.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    };
    ((word >> (at % 8)) & ((1 << width) - 1)) as u32
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn all(bytes: &[u8], width: usize, n: usize) -> Option<Vec<u32>> {
        let mut values = vec![9; n];
        Runs::new(0, bytes.len(), width, bytes.len())?.fill(bytes, &mut values)?;
        // One after the other they are the same.
        let mut runs = Runs::new(0, bytes.len(), width, bytes.len())?;
        let mut again = Vec::new();
        while again.len() < n {
            let (value, count) = runs.next(bytes, n - again.len())?;
            again.resize(again.len() + count, value);
        }
        assert_eq!(again, values);
        Some(values)
    }

    #[test]
    fn the_example_of_the_format() {
        // The example of the specification: 0 to 7 with three bits each.
        let packed = [0b11, 0b1000_1000, 0b1100_0110, 0b1111_1010];
        assert_eq!(all(&packed, 3, 8).unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
        // Then a run of five times 6.
        let both = [&packed[..], &[5 << 1, 6]].concat();
        assert_eq!(all(&both, 3, 13).unwrap()[7..], [7, 6, 6, 6, 6, 6]);
        assert_eq!(all(&both, 3, 14), None);
    }

    #[test]
    fn wide_values_and_runs_that_are_cut_off() {
        let wide = [2 << 1, 0xef, 0xbe, 0xad, 0xde];
        assert_eq!(all(&wide, 32, 2).unwrap(), [0xdead_beef; 2]);
        assert_eq!(all(&wide[..4], 32, 1), None);
        // A group with its first two values only.
        let cut = [0b11, 1, 2];
        assert_eq!(all(&cut, 8, 2).unwrap(), [1, 2]);
        assert_eq!(all(&cut, 8, 3), None);
        assert_eq!(all(&[200, 1], 0, 100).unwrap(), [0; 100]);
        // Empty runs, a length that overflows, and no runs.
        assert_eq!(all(&[0, 7, 0, 7, 2, 7], 8, 1).unwrap(), [7]);
        assert_eq!(all(&[0xff; 12], 1, 1), None);
        assert_eq!(all(&[], 1, 1), None);
        assert!(Runs::new(3, 2, 1, 9).is_none() && Runs::new(0, 9, 1, 8).is_none());
        assert!(Runs::new(0, 9, 33, 9).is_none());
    }
}
