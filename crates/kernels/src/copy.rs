//! Copying runs of elements, from the type they are in to that they shall be in.

use crate::storage::Convert;

/// Copies `len` elements from every `pitch` elements of the source to each of the targets, given by their distances.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set; every such element must be readable and writable.
#[inline(always)]
pub(crate) unsafe fn copy_rows<S: Convert<From> + Convert<To>, From, To>(
    source: *const From,
    pitch: usize,
    len: usize,
    target: *mut To,
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
                S::store_as(target.add(column), S::load_as(source.add(column)));
            }
            if whole < len {
                let value = S::load_masked_as(source.add(whole), rest);
                S::store_masked_as(target.add(whole), value, rest);
            }
        }
    }
}
