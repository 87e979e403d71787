//! Reads arrays in Fortran order as C order, in bounded memory.

use std::io::{self, Read, Seek, SeekFrom};

/// The size of the buffer in bytes. A larger one makes longer runs of each column, a smaller one stays in
/// cache.
pub(crate) const BUDGET: usize = 8 << 20;

/// The columns to transpose at a time: a cache line of f32. One column at a time, each write would touch
/// another line.
pub(crate) const GROUP: usize = 16;

/// Above this stride in bytes, elements are read one by one.
const LONGEST_GAP: usize = 64 << 10;

/// Reads an array stored with its first axis fastest as bytes with its last axis fastest.
///
/// A block has fixed indices of the axes before one axis, the *cut*, a range of indices of the cut, and all
/// indices of the axes after it. The range is as large as the buffer allows. The cut of a matrix is its
/// first axis, and a block is a number of rows.
pub(crate) struct Transposed<R> {
    source: R,
    /// The offset of the array in the file.
    start: u64,
    size: usize,
    shape: Vec<usize>,
    cut: usize,
    /// The indices of the cut axis in a full block.
    rows: usize,
    /// The product of the axes before the cut, which is its stride.
    stride: usize,
    /// The product of the axes after the cut.
    rest: usize,
    /// The next block: an index into the axes before the cut, in C order, and into the cut axis.
    prefix: usize,
    row: usize,
    buffer: Vec<u8>,
    used: usize,
    columns: Vec<u8>,
    gather: Vec<u8>,
}

/// Whether an array of this shape has the same layout in both orders.
pub(crate) fn order_is_irrelevant(shape: &[usize]) -> bool {
    shape.contains(&0) || shape.iter().filter(|&&n| n > 1).count() <= 1
}

impl<R: Read + Seek> Transposed<R> {
    /// `shape` must have at least two axes longer than 1, none of length 0, and a product without overflow.
    pub(crate) fn new(source: R, start: u64, size: usize, shape: &[usize]) -> Self {
        Self::with_budget(source, start, size, shape, BUDGET)
    }

    fn with_budget(source: R, start: u64, size: usize, shape: &[usize], budget: usize) -> Self {
        let shape: Vec<usize> = shape.iter().copied().filter(|&n| n != 1).collect();
        let rest = |axis: usize| shape[axis + 1..].iter().product::<usize>();
        let cut = (0..shape.len() - 1).find(|&axis| rest(axis) <= budget / size);
        let cut = cut.unwrap_or(shape.len() - 1);
        let rest = rest(cut);
        Self {
            source,
            start,
            size,
            cut,
            rows: (budget / size / rest).clamp(1, shape[cut]),
            stride: shape[..cut].iter().product(),
            rest,
            prefix: 0,
            row: 0,
            buffer: Vec::new(),
            used: 0,
            columns: Vec::new(),
            gather: Vec::new(),
            shape,
        }
    }

    fn next_block(&mut self) -> io::Result<()> {
        self.buffer.clear();
        self.used = 0;
        if self.prefix == self.stride {
            return Ok(());
        }
        let n = self.rows.min(self.shape[self.cut] - self.row);
        self.buffer.resize(n * self.rest * self.size, 0);
        let offset = self.prefix_offset();
        let after = &self.shape[self.cut + 1..];
        let mut steps = vec![1; after.len()];
        for axis in (1..after.len()).rev() {
            steps[axis - 1] = steps[axis] * after[axis];
        }
        // Columns in the order of the file. `place` is the target of each.
        let mut index = vec![0; after.len()];
        let mut place = 0;
        let mut places = [0; GROUP];
        let pitch = pitch(n * self.size);
        self.columns.resize(GROUP.min(self.rest) * pitch, 0);
        for first in (0..self.rest).step_by(GROUP) {
            let count = GROUP.min(self.rest - first);
            for (k, saved) in places[..count].iter_mut().enumerate() {
                *saved = place;
                let column = self.row + self.shape[self.cut] * (first + k);
                read_strided(
                    &mut self.source,
                    self.start + ((offset + self.stride * column) * self.size) as u64,
                    self.size,
                    self.stride,
                    &mut self.columns[k * pitch..][..n * self.size],
                    &mut self.gather,
                )?;
                for axis in 0..index.len() {
                    index[axis] += 1;
                    place += steps[axis];
                    if index[axis] < self.shape[self.cut + 1 + axis] {
                        break;
                    }
                    place -= steps[axis] * index[axis];
                    index[axis] = 0;
                }
            }
            let (buffer, places) = (&mut self.buffer, &places[..count]);
            scatter(&self.columns, pitch, places, self.size, buffer, self.rest);
        }
        self.row += n;
        if self.row == self.shape[self.cut] {
            self.row = 0;
            self.prefix += 1;
        }
        Ok(())
    }

    /// The offset of the current indices of the axes before the cut, in elements.
    fn prefix_offset(&self) -> usize {
        let before = &self.shape[..self.cut];
        let mut remaining = self.prefix;
        let mut stride = self.stride;
        let mut offset = 0;
        for &n in before.iter().rev() {
            stride /= n;
            offset += remaining % n * stride;
            remaining /= n;
        }
        offset
    }
}

/// Fills `out` with elements that lie `stride` elements apart.
fn read_strided(
    source: &mut (impl Read + Seek),
    position: u64,
    size: usize,
    stride: usize,
    out: &mut [u8],
    gather: &mut Vec<u8>,
) -> io::Result<()> {
    source.seek(SeekFrom::Start(position))?;
    if stride == 1 {
        return source.read_exact(out);
    }
    let step = stride * size;
    if step > LONGEST_GAP {
        for (i, element) in out.chunks_exact_mut(size).enumerate() {
            source.seek(SeekFrom::Start(position + (i * step) as u64))?;
            source.read_exact(element)?;
        }
        return Ok(());
    }
    for (i, elements) in out.chunks_mut(LONGEST_GAP / step * size).enumerate() {
        let count = elements.len() / size;
        gather.resize((count - 1) * step + size, 0);
        source.seek(SeekFrom::Start(position + (i * (LONGEST_GAP / step) * step) as u64))?;
        source.read_exact(gather)?;
        for (element, found) in elements.chunks_exact_mut(size).zip(gather.chunks(step)) {
            element.copy_from_slice(&found[..size]);
        }
    }
    Ok(())
}

/// The pitch of columns of this many bytes. A pitch of a power of two would map all columns to the same
/// cache sets.
pub(crate) fn pitch(bytes: usize) -> usize {
    bytes + 64
}

/// Transposes columns of elements of `size` bytes, `pitch` bytes apart, into rows of `length` elements.
pub(crate) fn scatter(
    columns: &[u8],
    pitch: usize,
    places: &[usize],
    size: usize,
    block: &mut [u8],
    length: usize,
) {
    fn sized<const N: usize>(
        columns: &[u8],
        pitch: usize,
        places: &[usize],
        block: &mut [u8],
        length: usize,
    ) {
        let rows = block.as_chunks_mut::<N>().0.chunks_exact_mut(length);
        for (i, row) in rows.enumerate() {
            for (column, &place) in columns.chunks_exact(pitch).zip(places) {
                row[place].copy_from_slice(&column[i * N..][..N]);
            }
        }
    }
    match size {
        1 => sized::<1>(columns, pitch, places, block, length),
        2 => sized::<2>(columns, pitch, places, block, length),
        4 => sized::<4>(columns, pitch, places, block, length),
        _ => sized::<8>(columns, pitch, places, block, length),
    }
}

impl<R: Read + Seek> Read for Transposed<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.used == self.buffer.len() {
            self.next_block()?;
        }
        let n = out.len().min(self.buffer.len() - self.used);
        out[..n].copy_from_slice(&self.buffer[self.used..self.used + n]);
        self.used += n;
        Ok(n)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// The C index of every element, in Fortran order.
    fn fortran(shape: &[usize]) -> Vec<u8> {
        let total: usize = shape.iter().product();
        let mut bytes = vec![0; total * 4];
        for c in 0..total {
            let (mut remaining, mut f, mut stride) = (c, 0, total);
            for &n in shape.iter().rev() {
                stride /= n;
                f += remaining % n * stride;
                remaining /= n;
            }
            bytes[f * 4..f * 4 + 4].copy_from_slice(&(c as u32).to_le_bytes());
        }
        bytes
    }

    #[test]
    fn every_cut_gives_c_order() {
        let shapes: [&[usize]; 6] =
            [&[5, 7], &[2, 1, 3, 4], &[3, 2, 5], &[2, 3, 2, 2, 3], &[40, 3], &[3, 40]];
        for shape in shapes {
            let bytes = fortran(shape);
            let total = bytes.len() / 4;
            for budget in [4, 8, 24, 52, 1000, 100_000] {
                let mut padded = vec![9; 3];
                padded.extend(&bytes);
                let mut reader =
                    Transposed::with_budget(io::Cursor::new(padded), 3, 4, shape, budget);
                let mut read = Vec::new();
                reader.read_to_end(&mut read).unwrap();
                let expected: Vec<u8> = (0..total as u32).flat_map(u32::to_le_bytes).collect();
                assert_eq!(read, expected, "{shape:?} with {budget} bytes");
                assert!(reader.buffer.capacity() <= budget.max(4) * 2);
                let columns = GROUP.min(shape.iter().product());
                assert!(reader.columns.capacity() <= budget.max(4) * 2 + columns * 64);
            }
        }
    }

    #[test]
    fn distant_elements() {
        // A stride of 20,000 f32 reads elements one by one, and one of 300 gathers runs.
        for shape in [[20_000, 3], [300, 200]] {
            let bytes = fortran(&shape);
            let mut reader = Transposed::with_budget(io::Cursor::new(bytes), 0, 4, &shape, 400);
            reader.cut = 1;
            reader.stride = shape[0];
            reader.rest = 1;
            reader.rows = shape[1];
            let mut read = Vec::new();
            reader.read_to_end(&mut read).unwrap();
            assert!(read.chunks(4).enumerate().all(|(i, b)| b == (i as u32).to_le_bytes()));
        }
    }
}
