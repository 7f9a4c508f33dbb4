//! Storing outputs of two phases in turns.

use crate::storage::Convert;

/// Writes `even[0], odd[0], even[1], odd[1], …` to `target`.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set; `odd` must be as long as `even`, and `target` writable for twice that.
#[inline(always)]
pub(crate) unsafe fn interleave<S: Convert<To>, To>(even: &[S::Scalar], odd: &[S::Scalar], target: *mut To) {
    let whole = even.len() / S::LANES * S::LANES;
    for first in (0..whole).step_by(S::LANES) {
        // SAFETY: the caller vouches for the instruction set, the lengths and the target.
        unsafe {
            let [low, high] = S::zip(S::load(even.as_ptr().add(first)), S::load(odd.as_ptr().add(first)));
            S::store_as(target.add(2 * first), low);
            S::store_as(target.add(2 * first + S::LANES), high);
        }
    }
    for index in whole..even.len() {
        // SAFETY: as above.
        unsafe {
            target.add(2 * index).write(S::scalar_to(even[index]));
            target.add(2 * index + 1).write(S::scalar_to(odd[index]));
        }
    }
}
