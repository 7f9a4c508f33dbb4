//! How memory is divided into pages.

/// Below this, memory has few pages anyway.
const WORTHWHILE_BYTES: usize = 1 << 21;

/// Asks the system for huge pages, before memory is written for the first time: kernels that stream through many megabytes of
/// weights spend a fifth of their time on finding small ones. The system may refuse.
pub fn prefer_huge_pages<T>(memory: &mut [T]) {
    if size_of_val(memory) >= WORTHWHILE_BYTES {
        ask(memory);
    }
}

#[cfg(target_os = "linux")]
fn ask<T>(memory: &mut [T]) {
    const LEAST_PAGE: usize = 4096;
    let begin = memory.as_mut_ptr().cast::<u8>();
    // The system takes whole pages only. Where its pages are larger than the least, it may refuse.
    let skipped = begin.align_offset(LEAST_PAGE);
    let len = size_of_val(memory).saturating_sub(skipped) / LEAST_PAGE * LEAST_PAGE;
    // SAFETY: the advice concerns memory that is borrowed, and changes nothing in it.
    unsafe { libc::madvise(begin.wrapping_add(skipped).cast(), len, libc::MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn ask<T>(_: &mut [T]) {}
