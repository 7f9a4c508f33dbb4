//! Storing rows of a tile whose columns are side by side in the output, too.

use crate::simd::Simd;

/// Copies `len` elements from every `pitch` elements of the source to each of the targets, given by their distances.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set; every such element must be readable and writable.
#[inline(always)]
pub(crate) unsafe fn copy_rows<S: Simd>(
    source: *const S::Scalar,
    pitch: usize,
    len: usize,
    target: *mut S::Scalar,
    distances: &[isize],
) {
    let whole = len / S::LANES * S::LANES;
    // SAFETY: the caller vouches for the instruction set and all elements; the mask leaves out what is not there.
    unsafe {
        let rest = S::mask(0, len - whole);
        for (row, &distance) in distances.iter().enumerate() {
            let source = source.add(row * pitch);
            let target = target.offset(distance);
            for column in (0..whole).step_by(S::LANES) {
                S::store(target.add(column), S::load(source.add(column)));
            }
            if whole < len {
                let value = S::load_masked(source.add(whole), rest);
                S::store_masked(target.add(whole), value, rest);
            }
        }
    }
}

/// See [`copy_rows`].
pub(crate) type CopyKernel<T> = unsafe fn(*const T, usize, usize, *mut T, &[isize]);
