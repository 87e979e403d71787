//! Prefetch hints.
//!
//! A row is read from memory once and then worked on in the cache. Without prefetching, memory is
//! idle during that work; asking for the next logits meanwhile saves up to a third of the time.
//! There is no safe way to ask, so this is the one file with `unsafe`.

/// The prefetch distance in elements: one page of `f32`, where hardware prefetchers stop.
pub(super) const DISTANCE: usize = 1024;

/// Prefetches element `offset` of `slice`, which may lie beyond its end, for a read.
#[inline(always)]
pub(super) fn read<T>(slice: &[T], offset: usize) {
    #[cfg(target_arch = "x86_64")]
    hint::<{ std::arch::x86_64::_MM_HINT_T0 }, T>(slice, offset);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, offset);
}

/// Prefetches element `offset` of `slice`, which may lie beyond its end, for a write.
#[inline(always)]
pub(super) fn write<T>(slice: &[T], offset: usize) {
    #[cfg(target_arch = "x86_64")]
    hint::<{ std::arch::x86_64::_MM_HINT_ET0 }, T>(slice, offset);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, offset);
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn hint<const HINT: i32, T>(slice: &[T], offset: usize) {
    let address = slice.as_ptr().wrapping_add(offset).cast();
    // SAFETY: the instruction takes any address, mapped or not: it reads nothing that the program
    // could see, writes nothing and never faults. `wrapping_add` may leave the slice. The
    // instruction is part of SSE, which every x86_64 has; where the target does not promise the
    // variant for writes, the compiler emits the one for reads.
    #[allow(unsafe_code, reason = "there is no safe way to prefetch")]
    unsafe {
        std::arch::x86_64::_mm_prefetch::<HINT>(address);
    }
}
