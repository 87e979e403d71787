//! Temporary storage of column indices, which follow all values in the output file.
//!
//! The indices are written twice: to a temporary file and to the output. A bitmap takes one bit per class
//! instead of 32 per kept class, so a block is stored as bitmaps where they are shorter, and as indices
//! otherwise.

use std::io::{self, Write};

use crate::AtomicFile;
use crate::Result;
use crate::atomic::Spill;
use crate::raw::fill;

/// Column indices in the order of their rows.
#[derive(Debug)]
pub(super) struct Columns {
    spill: Spill,
    classes: usize,
    blocks: Vec<Block>,
    words: Vec<u64>,
    /// A byte per bit of a row's bitmap: all 0 between rows.
    marks: Vec<u8>,
}

/// The encoding of a block of rows.
#[derive(Clone, Copy, Debug)]
enum Block {
    /// Bitmaps of this many rows.
    Bits(usize),
    /// This many indices.
    Listed(usize),
}

/// The approximate number of indices to decode at a time.
const AT_ONCE: usize = 1 << 17;

impl Columns {
    pub(super) fn new(file: &AtomicFile, classes: usize) -> Result<Self> {
        let (blocks, words) = (Vec::new(), Vec::new());
        let marks = vec![0; classes.next_multiple_of(64)];
        Ok(Self { spill: file.spill()?, classes, blocks, words, marks })
    }

    /// The words of a bitmap.
    fn words_a_row(&self) -> usize {
        self.classes.div_ceil(64)
    }

    /// Appends the indices of rows. All must be less than the number of classes.
    pub(super) fn put(&mut self, indptr: &[usize], indices: &[u32]) -> io::Result<()> {
        let rows = indptr.len() - 1;
        let shorter = rows * self.words_a_row() * 2 < indices.len();
        if shorter && self.set_bits(indptr, indices) {
            self.blocks.push(Block::Bits(rows));
            self.spill.write_all(bytemuck::cast_slice(&self.words))
        } else {
            self.blocks.push(Block::Listed(indices.len()));
            self.spill.write_all(bytemuck::cast_slice(indices))
        }
    }

    /// Computes the bitmaps of rows. Returns false if the indices of a row are not strictly increasing.
    fn set_bits(&mut self, indptr: &[usize], indices: &[u32]) -> bool {
        let words_a_row = self.words_a_row();
        self.words.clear();
        self.words.resize((indptr.len() - 1) * words_a_row, 0);
        for (ends, words) in indptr.windows(2).zip(self.words.chunks_exact_mut(words_a_row)) {
            let row = &indices[ends[0]..ends[1]];
            // No early exit, so that the loop vectorises.
            let next = row.get(1..).unwrap_or_default();
            if row.iter().zip(next).filter(|(a, b)| a >= b).count() > 0 {
                return false;
            }
            // Sets bytes first, and packs them later: setting bits would depend on the previous store.
            for &column in row {
                self.marks[column as usize] = 1;
            }
            for (word, marks) in words.iter_mut().zip(self.marks.as_chunks::<64>().0) {
                let bytes = marks.as_chunks::<8>().0.iter().map(|marks| packed(*marks));
                *word = bytes.rev().fold(0, |word, byte| word << 8 | u64::from(byte));
            }
            self.marks.fill(0);
        }
        true
    }

    /// Decodes all indices, in blocks.
    pub(super) fn take(&mut self, mut put: impl FnMut(&[u32]) -> io::Result<()>) -> io::Result<()> {
        let words_a_row = self.words_a_row();
        let rows_at_once = (AT_ONCE / self.classes).max(1);
        let Self { spill, blocks, words, .. } = self;
        let file = spill.rewind()?;
        let mut columns = Vec::new();
        for block in blocks {
            match *block {
                Block::Bits(mut rows) => {
                    while rows > 0 {
                        let some = rows.min(rows_at_once);
                        rows -= some;
                        words.resize(some * words_a_row, 0);
                        complete(
                            fill(file, bytemuck::cast_slice_mut(words))?,
                            some * words_a_row * 8,
                        )?;
                        let most = words.len() * 64;
                        columns.resize(most.max(columns.len()), 0);
                        let mut count = 0;
                        for row in words.chunks_exact(words_a_row) {
                            count += list_bits(row, &mut columns[count..]);
                        }
                        put(&columns[..count])?;
                    }
                }
                Block::Listed(mut count) => {
                    while count > 0 {
                        let some = count.min(AT_ONCE);
                        count -= some;
                        columns.resize(some.max(columns.len()), 0);
                        let columns = &mut columns[..some];
                        complete(fill(file, bytemuck::cast_slice_mut(columns))?, some * 4)?;
                        put(columns)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Packs eight bytes, each 0 or 1, into one: the multiplication moves byte `i` to bit `56 + i`.
fn packed(marks: [u8; 8]) -> u8 {
    (u64::from_le_bytes(marks).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
}

/// For each byte, the positions of its set bits. The rest of the entry is unused.
const PLACES: [[u32; 8]; 256] = {
    let mut places = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut count) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                places[byte][count] = bit;
                count += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    places
};

/// Writes the positions of the set bits, and returns their number. `out` must have room for all bits.
fn list_bits(words: &[u64], columns: &mut [u32]) -> usize {
    let mut count = 0;
    for (number, word) in words.iter().enumerate() {
        for (byte, &bits) in word.to_le_bytes().iter().enumerate() {
            // Always writes eight. The next byte overwrites the unused ones.
            let base = (number * 64 + byte * 8) as u32;
            for (column, place) in
                columns[count..count + 8].iter_mut().zip(PLACES[usize::from(bits)])
            {
                *column = base + place;
            }
            count += bits.count_ones() as usize;
        }
    }
    count
}

fn complete(found: usize, expected: usize) -> io::Result<()> {
    if found == expected { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// The decoded indices, and the bytes of the temporary file.
    fn there_and_back(classes: usize, blocks: &[(&[usize], &[u32])]) -> (Vec<u32>, u64) {
        let folder = tempfile::tempdir().unwrap();
        let file = AtomicFile::create(&folder.path().join("x")).unwrap();
        let mut columns = Columns::new(&file, classes).unwrap();
        for (indptr, indices) in blocks {
            columns.put(indptr, indices).unwrap();
        }
        let bytes = columns.spill.rewind().unwrap().metadata().unwrap().len();
        let mut back = Vec::new();
        let taken = columns.take(|some| {
            back.extend_from_slice(some);
            Ok(())
        });
        taken.unwrap();
        (back, bytes)
    }

    #[test]
    fn dense_rows_wait_as_bits_and_sparse_ones_as_they_are() {
        let dense: Vec<u32> = (0..200_000).filter(|i| i % 3 != 1).collect();
        let sparse = [7, 131_071];
        let blocks: [(&[usize], &[u32]); 4] = [
            (&[0, dense.len()], &dense),
            (&[0, 1, 1, 2], &sparse),
            (&[0], &[]),
            (&[0, dense.len()], &dense),
        ];
        let (back, bytes) = there_and_back(200_000, &blocks);
        assert_eq!(back, [&dense[..], &sparse, &dense].concat());
        assert_eq!(bytes, 2 * 200_000 / 8 + 2 * 4);
    }

    #[test]
    fn many_rows_of_bits_come_back_in_order() {
        let rows = 3_000;
        let indices: Vec<u32> = (0..rows).flat_map(|row| (row % 5..70).step_by(2)).collect();
        let mut indptr = vec![0];
        for row in 0..rows {
            indptr.push(indptr[row as usize] + (row % 5..70).step_by(2).count());
        }
        let (back, bytes) = there_and_back(70, &[(&indptr, &indices)]);
        assert_eq!(back, indices);
        assert_eq!(bytes, u64::from(rows) * 16);
    }

    #[test]
    fn what_bits_cannot_tell_is_kept() {
        let unsorted: Vec<u32> = (0..64).rev().collect();
        let twice = [3_u32; 64];
        let (back, _) = there_and_back(64, &[(&[0, 64], &unsorted), (&[0, 64], &twice)]);
        assert_eq!(back, [&unsorted[..], &twice].concat());
    }
}
