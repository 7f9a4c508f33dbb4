//! Turning rows into columns: how channels-first memory meets kernels whose vectors run over channels.

use crate::fetch::fetch_to_write;
use crate::simd::{MAX_LANES, Simd};
use crate::storage::{Convert, LINE};

/// From this many rows on it pays to begin with a few that lead to a line's begin.
const LONG_RUN: usize = 4 * MAX_LANES;

/// Blocks between one that is written and one whose lines are brought near.
const AHEAD: usize = 2;

/// `target[column · stride + row] = source[distances[row] + column]`, for all rows and columns. With `STREAM`, whole lines go past
/// the caches; otherwise, with `FAR`, those that a vector fills are brought near before they are written.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set; every such element must be readable and writable.
#[inline(always)]
pub(crate) unsafe fn transpose<
    S: Convert<From> + Convert<To>,
    From,
    To,
    const STREAM: bool,
    const FAR: bool,
>(
    source: *const From,
    distances: &[isize],
    columns: usize,
    target: *mut To,
    stride: isize,
) {
    const { assert!(S::LANES <= MAX_LANES && S::LANES.is_power_of_two()) };
    // Two vectors at once, if a line takes both.
    let two = 2 * S::LANES * size_of::<To>() <= LINE;
    let run = if two { 2 * S::LANES } else { S::LANES };
    let line = run.max(<S as Convert<To>>::TURNED_ROWS);
    let lines = distances.len() >= LONG_RUN && stride % line as isize == 0;
    let head = if lines { target.align_offset(line * size_of::<To>()).min(distances.len()) } else { 0 };
    let (head, rest) = distances.split_at(head);
    for column in (0..columns).step_by(S::LANES) {
        let width = S::LANES.min(columns - column);
        let source = source.wrapping_add(column);
        let mut target = target.wrapping_offset(column as isize * stride);
        // SAFETY: the caller vouches for the instruction set and all elements; a block has no others.
        unsafe {
            for rows in head.chunks(S::LANES) {
                block::<S, From, To>(source, rows, width, target, stride);
                target = target.wrapping_add(rows.len());
            }
            let mut rest = rest;
            let turned = <S as Convert<To>>::TURNED_ROWS;
            while turned > 0 && width == S::LANES && rest.len() >= turned {
                <S as Convert<To>>::store_turned(source, &rest[..turned], target, stride);
                target = target.wrapping_add(turned);
                rest = &rest[turned..];
            }
            while two && width == S::LANES && rest.len() >= run {
                if STREAM && lines {
                    two_blocks::<S, From, To, true>(source, &rest[..run], target, stride);
                } else {
                    two_blocks::<S, From, To, false>(source, &rest[..run], target, stride);
                }
                target = target.wrapping_add(run);
                rest = &rest[run..];
            }
            let mut left = rest.len();
            for rows in rest.chunks(S::LANES) {
                left -= rows.len();
                if rows.len() == S::LANES && width == S::LANES {
                    // What lies behind the run may be another thread's.
                    if FAR && !STREAM && run == S::LANES && left >= AHEAD * S::LANES {
                        fetch_lines::<S, To>(target.wrapping_add(AHEAD * S::LANES), stride);
                    }
                    if STREAM && lines && run == S::LANES {
                        whole_block::<S, From, To, true>(source, rows, target, stride);
                    } else {
                        whole_block::<S, From, To, false>(source, rows, target, stride);
                    }
                } else {
                    block::<S, From, To>(source, rows, width, target, stride);
                }
                target = target.wrapping_add(rows.len());
            }
        }
    }
}

/// Has a line of every column of a block brought near.
#[inline(always)]
fn fetch_lines<S: Simd, To>(target: *const To, stride: isize) {
    for column in 0..S::LANES {
        fetch_to_write(target.wrapping_offset(column as isize * stride));
    }
}

/// Twice as many rows as a vector has lanes, and as many columns.
///
/// # Safety
///
/// As [`transpose`], of which it is a part.
#[inline(always)]
unsafe fn two_blocks<S: Convert<From> + Convert<To>, From, To, const STREAM: bool>(
    source: *const From,
    distances: &[isize],
    target: *mut To,
    stride: isize,
) {
    // SAFETY: the caller vouches for all of it.
    unsafe {
        let mut halves = [[S::splat(S::Scalar::default()); MAX_LANES]; 2];
        for (vectors, distances) in halves.iter_mut().zip(distances.chunks_exact(S::LANES)) {
            for row in 0..S::LANES {
                vectors[row] = S::load_as(source.offset(distances[row]));
            }
            *vectors = turned::<S>(*vectors);
        }
        for column in 0..S::LANES {
            let to = target.offset(column as isize * stride);
            if STREAM {
                S::stream_as(to, halves[0][column]);
                S::stream_as(to.add(S::LANES), halves[1][column]);
            } else {
                S::store_two_as(to, [halves[0][column], halves[1][column]]);
            }
        }
    }
}

/// As many rows and columns as a vector has lanes.
///
/// # Safety
///
/// As [`transpose`], of which it is a part.
#[inline(always)]
unsafe fn whole_block<S: Convert<From> + Convert<To>, From, To, const STREAM: bool>(
    source: *const From,
    distances: &[isize],
    target: *mut To,
    stride: isize,
) {
    // SAFETY: the caller vouches for all of it.
    unsafe {
        let mut vectors = [S::splat(S::Scalar::default()); MAX_LANES];
        for row in 0..S::LANES {
            vectors[row] = S::load_as(source.offset(distances[row]));
        }
        let vectors = turned::<S>(vectors);
        for column in 0..S::LANES {
            let to = target.offset(column as isize * stride);
            if STREAM {
                S::stream_as(to, vectors[column]);
            } else {
                S::store_as(to, vectors[column]);
            }
        }
    }
}

/// Fewer rows or columns than a vector has lanes.
///
/// # Safety
///
/// As [`transpose`], of which it is a part.
#[inline(always)]
unsafe fn block<S: Convert<From> + Convert<To>, From, To>(
    source: *const From,
    distances: &[isize],
    columns: usize,
    target: *mut To,
    stride: isize,
) {
    // SAFETY: the caller vouches for all of it; masks leave out what is not there.
    unsafe {
        let mut vectors = [S::splat(S::Scalar::default()); MAX_LANES];
        let read = S::mask(0, columns);
        for (vector, &distance) in vectors.iter_mut().zip(distances) {
            *vector = S::load_masked_as(source.offset(distance), read);
        }
        let vectors = turned::<S>(vectors);
        let written = S::mask(0, distances.len());
        for (column, &vector) in vectors.iter().enumerate().take(columns) {
            S::store_masked_as(target.offset(column as isize * stride), vector, written);
        }
    }
}

/// The transpose of a square of vectors.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set.
#[inline(always)]
pub(crate) unsafe fn turned<S: Simd>(vectors: [S::Vector; MAX_LANES]) -> [S::Vector; MAX_LANES] {
    // SAFETY: handed on from the caller.
    unsafe { shuffled::<S, MAX_LANES>(vectors, S::LANES) }
}

/// The lanes of the first so many vectors, a power of two, in turns: shuffling the first half of the rows into the second, as
/// often as their number can be halved, turns the bits of (row, lane) around into (lane, row), one behind the other.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set.
#[inline(always)]
pub(crate) unsafe fn shuffled<S: Simd, const N: usize>(
    mut vectors: [S::Vector; N],
    rows: usize,
) -> [S::Vector; N] {
    let half = rows / 2;
    for _ in 0..rows.trailing_zeros() {
        let mut shuffled = vectors;
        for row in 0..half {
            // SAFETY: the caller vouches for the instruction set.
            let [low, high] = unsafe { S::zip(vectors[row], vectors[row + half]) };
            shuffled[2 * row] = low;
            shuffled[2 * row + 1] = high;
        }
        vectors = shuffled;
    }
    vectors
}
