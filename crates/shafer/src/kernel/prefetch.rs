//! Hints to the memory system: what will be read or written soon.
//!
//! A row is read twice, and only the first time from memory. While the arithmetic of the second
//! time runs, the memory would have nothing to do; asking for the next rows then is worth up to a
//! third of the time. There is no safe way to ask.

/// What will be read next: memory so many elements after the start of a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next<'a, T> {
    pub(crate) after: &'a [T],
    pub(crate) distance: usize,
}

impl<T> Next<'_, T> {
    /// Asks for the cache line of the `i`-th element.
    #[inline(always)]
    pub(crate) fn read(self, i: usize) {
        read(self.after, self.distance + i);
    }
}

/// Asks for the cache line `ahead` elements after the start of `slice`, to be read.
#[inline(always)]
pub(crate) fn read<T>(slice: &[T], ahead: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let address = slice.as_ptr().wrapping_add(ahead).cast();
        // SAFETY: the instruction takes any address, mapped or not: it reads nothing that the
        // program could see, writes nothing and never faults. `wrapping_add` may leave the slice.
        // It is part of SSE, which every x86_64 has.
        #[allow(unsafe_code, reason = "worth a third of the time, see above")]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(address);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, ahead);
}

/// The same into the second-level cache only: for what comes from memory in order, and is used a page later. Some
/// processors bring that nearer themselves, and have their hands full if it is asked for as well.
#[inline(always)]
pub(crate) fn read_later<T>(slice: &[T], ahead: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        let address = slice.as_ptr().wrapping_add(ahead).cast();
        // SAFETY: as in `read`.
        #[allow(unsafe_code, reason = "worth a third of the time, see above")]
        unsafe {
            _mm_prefetch::<_MM_HINT_T1>(address);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, ahead);
}

/// Asks for the cache line `ahead` elements after the start of `slice`, to be written.
#[inline(always)]
pub(crate) fn write<T>(slice: &[T], ahead: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        let address = slice.as_ptr().wrapping_add(ahead).cast();
        // SAFETY: as in `read`; where the target does not promise this variant, the compiler emits
        // that of `read`.
        #[allow(unsafe_code, reason = "worth a third of the time, see above")]
        unsafe {
            _mm_prefetch::<_MM_HINT_ET0>(address);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, ahead);
}
