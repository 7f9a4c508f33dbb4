//! Having memory brought near before it is read. These are hints: nothing is read yet, so any address will do.

/// Elements from an address on, into the first-level cache.
#[inline(always)]
pub(crate) fn fetch_near<T>(from: *const T, count: usize) {
    for byte in (0..count * size_of::<T>()).step_by(crate::storage::LINE) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every x86-64 CPU has the instruction.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(from.cast::<i8>().wrapping_add(byte));
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (from, byte);
    }
}

/// A line, into the second-level cache.
#[inline(always)]
pub(crate) fn fetch<T>(from: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 CPU has the instruction.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(from.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = from;
}

/// A line, into the first-level cache, where it is about to be written.
#[inline(always)]
pub(crate) fn fetch_to_write<T>(to: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: CPUs that do not know the instruction take it for none.
    unsafe {
        std::arch::asm!("prefetchw byte ptr [{}]", in(reg) to, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = to;
}
