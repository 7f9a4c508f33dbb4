//! Storing the outputs of phases in turns.

use crate::simd::{MAX_LANES, Simd};
use crate::storage::{Convert, LINE};
use crate::transpose::{shuffled, transpose};

/// Writes `runs[0][0], runs[1][0], …, runs[0][1], runs[1][1], …` to `target`, of so many values per run; runs are given by their
/// distances from `source`. With `STREAM`, whole lines go past the caches.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set; `len` values of every run must be readable, and `target` writable for all of
/// them.
#[inline(always)]
pub(crate) unsafe fn interleave<S: Simd<Scalar = T> + Convert<T> + Convert<To>, T, To, const STREAM: bool>(
    source: *const T,
    runs: &[isize],
    len: usize,
    target: *mut To,
) {
    // SAFETY: handed on from the caller.
    unsafe {
        match runs.len() {
            1 => in_turns::<S, To, 1, STREAM>(source, runs, len, target),
            2 => in_turns::<S, To, 2, STREAM>(source, runs, len, target),
            4 => in_turns::<S, To, 4, STREAM>(source, runs, len, target),
            8 => in_turns::<S, To, 8, STREAM>(source, runs, len, target),
            several => transpose::<S, T, To, STREAM, false>(source, runs, len, target, several as isize),
        }
    }
}

/// Of a power of two of runs.
///
/// # Safety
///
/// As [`interleave`].
#[inline(always)]
unsafe fn in_turns<S: Convert<To>, To, const RUNS: usize, const STREAM: bool>(
    source: *const S::Scalar,
    runs: &[isize],
    len: usize,
    target: *mut To,
) {
    const { assert!(RUNS * S::LANES <= MOST_TURNED && LINE / size_of::<To>() <= MOST_TURNED) };
    // A few that lead to a line's begin, if turns end there.
    let to_line = target.align_offset(LINE);
    let lines = to_line.is_multiple_of(RUNS) && to_line / RUNS <= len;
    let head = if lines { to_line / RUNS } else { 0 };
    // SAFETY: the caller vouches for the instruction set, the runs and the target.
    unsafe {
        for first in (0..head).step_by(S::LANES) {
            some_turns::<S, To, RUNS>(source, runs, first, S::LANES.min(head - first), target);
        }
        let mut first = head;
        // Turns that fill whole lines.
        let line = LINE / size_of::<To>();
        let turns = S::LANES.max(line / RUNS);
        while first + turns <= len {
            let mut memory = [S::Scalar::default(); MOST_TURNED];
            let values = memory.as_mut_ptr();
            for turn in (0..turns).step_by(S::LANES) {
                let vectors = next_turns::<S, RUNS>(source, runs, first + turn);
                for (index, vector) in vectors.into_iter().enumerate() {
                    S::store(values.add(RUNS * turn + index * S::LANES), vector);
                }
            }
            for value in (0..RUNS * turns).step_by(line) {
                let (to, from) = (target.add(RUNS * first + value), values.add(value));
                if STREAM && lines {
                    S::store_line::<true>(to, from)
                } else {
                    S::store_line::<false>(to, from)
                }
            }
            first += turns;
        }
        while first + S::LANES <= len {
            let vectors = next_turns::<S, RUNS>(source, runs, first);
            for (index, vector) in vectors.into_iter().enumerate() {
                S::store_as(target.add(RUNS * first + index * S::LANES), vector);
            }
            first += S::LANES;
        }
        if first < len {
            some_turns::<S, To, RUNS>(source, runs, first, len - first, target);
        }
    }
}

/// The most values that fill whole lines together: turns of a whole vector each, or a line of bytes.
const MOST_TURNED: usize = 8 * MAX_LANES;

/// As many turns as a vector has lanes, from one on.
///
/// # Safety
///
/// As [`interleave`], of which it is a part.
#[inline(always)]
unsafe fn next_turns<S: Simd, const RUNS: usize>(
    source: *const S::Scalar,
    runs: &[isize],
    first: usize,
) -> [S::Vector; RUNS] {
    // SAFETY: the caller vouches for the instruction set and the runs.
    unsafe {
        let mut vectors = [S::splat(S::Scalar::default()); RUNS];
        for (vector, &run) in vectors.iter_mut().zip(runs) {
            *vector = S::load(source.offset(run).add(first));
        }
        shuffled::<S, RUNS>(vectors, RUNS)
    }
}

/// So many turns from one on, no more than a vector has lanes.
///
/// # Safety
///
/// As [`interleave`].
#[inline(always)]
unsafe fn some_turns<S: Convert<To>, To, const RUNS: usize>(
    source: *const S::Scalar,
    runs: &[isize],
    first: usize,
    count: usize,
    target: *mut To,
) {
    // SAFETY: the caller vouches for the instruction set, the runs and the target; masks leave out what is not there.
    unsafe {
        let mut vectors = [S::splat(S::Scalar::default()); RUNS];
        let read = S::mask(0, count);
        for (vector, &run) in vectors.iter_mut().zip(runs) {
            *vector = S::load_masked(source.offset(run).add(first), read);
        }
        for (index, vector) in shuffled::<S, RUNS>(vectors, RUNS).into_iter().enumerate() {
            let written = S::mask(0, (RUNS * count).saturating_sub(index * S::LANES));
            S::store_masked_as(target.wrapping_add(RUNS * first + index * S::LANES), vector, written);
        }
    }
}
