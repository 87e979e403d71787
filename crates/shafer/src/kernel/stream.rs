//! Writing past the caches.
//!
//! A store reads the cache line that it changes first. Where more is written than the caches hold,
//! nobody finds it there afterwards, and that reading is a third of all traffic. A long copy by the
//! standard library does without it; here it is worth a tenth of the time. There is no safe way to
//! ask for it.

use std::mem::size_of;

/// A cache line, in bytes, and the most values that it has.
const LINE: usize = 64;
const MOST: usize = 16;

/// Values of four or eight bytes.
///
/// # Safety
///
/// All bytes of a value are initialised, and any bits are one.
#[allow(unsafe_code, reason = "a promise that `write_line` relies on")]
pub(crate) unsafe trait Word: Copy + Default {}

// SAFETY: floats have no padding, and any bits are a value, be it not a number.
#[allow(unsafe_code, reason = "see above")]
unsafe impl Word for f32 {}
// SAFETY: as above.
#[allow(unsafe_code, reason = "see above")]
unsafe impl Word for f64 {}

/// Writes values one after the other, in whole lines wherever they begin. Everything is in its place
/// when it is dropped, with a fence, before which nobody else can have the memory.
#[derive(Debug)]
pub(crate) struct Stream<'a, T: Word> {
    /// What has not been written yet; it begins with a line once `head` is 0.
    out: &'a mut [T],
    /// How many values there are before the first line.
    head: usize,
    /// The values of a line that is not complete.
    pending: [T; MOST],
    count: usize,
}

impl<'a, T: Word> Stream<'a, T> {
    /// How many values a line has.
    const VALUES: usize = LINE / size_of::<T>();

    pub(crate) fn new(out: &'a mut [T]) -> Self {
        let head = out.as_ptr().align_offset(LINE).min(out.len());
        Self { out, head, pending: [T::default(); MOST], count: 0 }
    }

    fn next(&mut self, count: usize) -> &'a mut [T] {
        let (next, rest) = std::mem::take(&mut self.out).split_at_mut(count);
        self.out = rest;
        next
    }

    /// Writes `map` of these values, for which there must be room. For every line, `beside` is given the place
    /// of one of its values.
    #[inline(always)]
    pub(crate) fn push(&mut self, values: &[T], map: impl Fn(T) -> T, beside: impl Fn(usize)) {
        let all = values.len();
        let mut values = values;
        if self.head > 0 {
            let (first, rest) = values.split_at(self.head.min(values.len()));
            self.head -= first.len();
            for (to, &value) in self.next(first.len()).iter_mut().zip(first) {
                *to = map(value);
            }
            values = rest;
        }
        if self.count > 0 {
            let (first, rest) = values.split_at((Self::VALUES - self.count).min(values.len()));
            for (to, &value) in self.pending[self.count..].iter_mut().zip(first) {
                *to = map(value);
            }
            self.count += first.len();
            values = rest;
            if self.count == Self::VALUES {
                let line = self.next(Self::VALUES);
                // SAFETY: what is left begins with a line, since the head has been written, and then
                // whole lines only.
                #[allow(unsafe_code, reason = "see above")]
                unsafe {
                    write_line(&self.pending[..Self::VALUES], line);
                }
                self.count = 0;
            }
        }
        // While a line is pending, there are no values left.
        let lines = values.len() / Self::VALUES * Self::VALUES;
        let (whole, rest) = values.split_at(lines);
        let out = self.next(lines);
        let places = (all - values.len()..).step_by(Self::VALUES);
        let vectors = out.chunks_exact_mut(Self::VALUES).zip(whole.chunks_exact(Self::VALUES));
        for ((to, from), place) in vectors.zip(places) {
            beside(place);
            let mut line = [T::default(); MOST];
            for (line, &value) in line.iter_mut().zip(from) {
                *line = map(value);
            }
            // SAFETY: as above, and these are whole lines from there on.
            #[allow(unsafe_code, reason = "see above")]
            unsafe {
                write_line(&line[..Self::VALUES], to);
            }
        }
        for (to, &value) in self.pending[self.count..].iter_mut().zip(rest) {
            *to = map(value);
        }
        self.count += rest.len();
    }
}

impl<T: Word> Drop for Stream<'_, T> {
    fn drop(&mut self) {
        let Self { out, pending, count, .. } = self;
        debug_assert!(*count <= out.len(), "there must be room");
        for (to, &value) in out.iter_mut().zip(&pending[..*count]) {
            *to = value;
        }
        // Before anybody else can have the memory.
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the instruction has no operands, and is part of SSE, which every x86_64 has.
        #[allow(unsafe_code, reason = "see above")]
        unsafe {
            std::arch::x86_64::_mm_sfence();
        }
    }
}

/// Writes a line to where one begins.
///
/// # Safety
///
/// `to` begins at a multiple of 16 bytes, and no other thread has it before this one has passed a fence.
#[inline(always)]
#[allow(unsafe_code, reason = "worth a tenth of the time, see above")]
unsafe fn write_line<T: Word>(from: &[T], to: &mut [T]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
        assert!(size_of_val(from) == LINE && size_of_val(to) == LINE);
        debug_assert!(to.as_ptr().cast::<__m128i>().is_aligned());
        for quarter in 0..LINE / size_of::<__m128i>() {
            // SAFETY: both slices have 64 bytes, of which these are 16, so all accesses are within
            // them; all bytes of the one are initialised, and any are a value of the other, as
            // `Word` promises. `to` is borrowed exclusively and aligned as the instruction wants it,
            // and nobody sees it before the fence, as the caller promises; this thread sees its own
            // writes in order. The instructions are part of SSE2, which every x86_64 has.
            unsafe {
                let value = _mm_loadu_si128(from.as_ptr().cast::<__m128i>().add(quarter));
                _mm_stream_si128(to.as_mut_ptr().cast::<__m128i>().add(quarter), value);
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    to.copy_from_slice(from);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In pieces of all sizes, wherever they begin.
    fn check<T: Word + PartialEq + std::fmt::Debug>(value: impl Fn(u8) -> T) {
        let from: Vec<T> = (0..100).map(&value).collect();
        for offset in 0..20 {
            for len in 0..80 {
                for piece in [1, 3, 8, 15, 16, 17, 40, 80] {
                    let mut to = [value(101); 100];
                    let mut stream = Stream::new(&mut to[offset..offset + len]);
                    for piece in from[..len].chunks(piece) {
                        stream.push(piece, |x| x, |_| ());
                    }
                    drop(stream);
                    assert!(to[..offset].iter().all(|x| *x == value(101)));
                    assert_eq!(to[offset..offset + len], from[..len], "{offset} {len} {piece}");
                    assert!(to[offset + len..].iter().all(|x| *x == value(101)));
                }
            }
        }
    }

    #[test]
    fn every_length_at_every_offset() {
        check(f32::from);
        check(f64::from);
    }

    #[test]
    fn values_are_mapped_once() {
        let mut to = vec![0.0_f32; 50];
        let mut stream = Stream::new(&mut to);
        stream.push(&[1.0; 21], |x| 2.0 * x, |_| ());
        stream.push(&[1.0; 29], |x| 3.0 * x, |_| ());
        drop(stream);
        assert_eq!(to, [vec![2.0; 21], vec![3.0; 29]].concat());
    }
}
