//! Copying runs of elements between the type they are computed with in and that of memory.

use crate::fetch::fetch_near;
use crate::simd::Simd;
use crate::storage::{Convert, LINE};

/// Runs of neighbouring elements to load, one behind the other with zeros around each.
#[derive(Clone, Copy, Debug)]
pub struct Runs {
    /// How many there are,
    pub count: usize,
    /// of so many elements each,
    pub len: usize,
    /// so far from each other.
    pub step: isize,
    /// Zeros before each run and behind it.
    pub zeros: [usize; 2],
    /// How far from an element lies the one that is brought near with it; none if nothing is.
    pub ahead: Option<isize>,
}

impl Runs {
    /// A single one.
    pub(crate) fn single(len: usize) -> Self {
        Runs { count: 1, len, step: 0, zeros: [0; 2], ahead: None }
    }

    /// Elements that they take with the zeros; more than there can be where that overflows.
    pub(crate) fn target_len(&self) -> usize {
        let [before, behind] = self.zeros;
        self.count.saturating_mul(self.len.saturating_add(before).saturating_add(behind))
    }
}

/// Loads runs.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set; all elements must be readable, and the target writable for them and their zeros.
#[inline(always)]
pub(crate) unsafe fn load_runs<S: Convert<From>, From>(
    source: *const From,
    runs: &Runs,
    target: *mut S::Scalar,
) {
    let Runs { count, len, step, zeros: [before, behind], ahead } = *runs;
    let whole = len / S::LANES * S::LANES;
    // SAFETY: the caller vouches for the instruction set and all elements; masks leave out what is not there.
    unsafe {
        let rest = S::mask(0, len - whole);
        let (mut source, mut target) = (source, target);
        for _ in 0..count {
            if let Some(ahead) = ahead {
                fetch_near(source.wrapping_offset(ahead), len);
            }
            target = zeros::<S>(target, before);
            for column in (0..whole).step_by(S::LANES) {
                S::store(target.add(column), S::load_as(source.add(column)));
            }
            if whole < len {
                S::store_masked(target.add(whole), S::load_masked_as(source.add(whole), rest), rest);
            }
            target = zeros::<S>(target.add(len), behind);
            source = source.wrapping_offset(step);
        }
    }
}

/// Stores zeros. Returns where they end.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set; so many elements must be writable.
#[inline(always)]
unsafe fn zeros<S: Simd>(target: *mut S::Scalar, count: usize) -> *mut S::Scalar {
    // SAFETY: the caller vouches for the instruction set and the elements; the mask leaves out others.
    unsafe {
        let zero = S::splat(S::Scalar::default());
        for first in (0..count).step_by(S::LANES) {
            S::store_masked(target.add(first), zero, S::mask(0, count - first));
        }
        target.add(count)
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
