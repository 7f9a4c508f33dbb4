//! Copying runs of elements between the type they are computed with in and that of memory.

use crate::storage::{Convert, LINE};

/// Loads neighbouring elements.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set; `len` elements must be readable and writable.
#[inline(always)]
pub(crate) unsafe fn load_run<S: Convert<From>, From>(
    source: *const From,
    len: usize,
    target: *mut S::Scalar,
) {
    let whole = len / S::LANES * S::LANES;
    // SAFETY: the caller vouches for the instruction set and all elements; the mask leaves out what is not there.
    unsafe {
        for column in (0..whole).step_by(S::LANES) {
            S::store(target.add(column), S::load_as(source.add(column)));
        }
        if whole < len {
            let rest = S::mask(0, len - whole);
            S::store_masked(target.add(whole), S::load_masked_as(source.add(whole), rest), rest);
        }
    }
}

/// Stores `len` elements from every `pitch` elements of the source to each of the targets, given by their distances. With
/// `STREAM`, whole lines go past the caches where targets begin a line.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set; every such element must be readable and writable.
#[inline(always)]
pub(crate) unsafe fn store_rows<S: Convert<To>, To, const STREAM: bool>(
    source: *const S::Scalar,
    pitch: usize,
    len: usize,
    target: *mut To,
    distances: &[isize],
) {
    let line = LINE / size_of::<To>();
    let lines = len / line * line;
    let pairs = lines + (len - lines) / (2 * S::LANES) * (2 * S::LANES);
    let whole = lines + (len - lines) / S::LANES * S::LANES;
    // SAFETY: the caller vouches for the instruction set and all elements; the mask leaves out what is not there.
    unsafe {
        let rest = S::mask(0, len - whole);
        for (row, &distance) in distances.iter().enumerate() {
            let source = source.add(row * pitch);
            let target = target.offset(distance);
            let stream = STREAM && target.addr().is_multiple_of(LINE);
            for column in (0..lines).step_by(line) {
                let (to, from) = (target.add(column), source.add(column));
                if stream { S::store_line::<true>(to, from) } else { S::store_line::<false>(to, from) }
            }
            for column in (lines..pairs).step_by(2 * S::LANES) {
                let from = source.add(column);
                S::store_two_as(target.add(column), [S::load(from), S::load(from.add(S::LANES))]);
            }
            for column in (pairs..whole).step_by(S::LANES) {
                S::store_as(target.add(column), S::load(source.add(column)));
            }
            if whole < len {
                let value = S::load_masked(source.add(whole), rest);
                S::store_masked_as(target.add(whole), value, rest);
            }
        }
    }
}
