//! Turning rows into columns: how channels-first memory meets kernels whose vectors run over channels.

use crate::simd::{MAX_LANES, Simd};
use crate::storage::{Convert, LINE};

/// From this many rows on it pays to begin with a few that lead to a line's begin.
const LONG_RUN: usize = 4 * MAX_LANES;

/// `target[column · stride + row] = source[distances[row] + column]`, for all rows and columns. With `STREAM`, whole lines go past
/// the caches.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set; every such element must be readable and writable.
#[inline(always)]
pub(crate) unsafe fn transpose<S: Convert<From> + Convert<To>, From, To, const STREAM: bool>(
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
            for rows in rest.chunks(S::LANES) {
                if rows.len() == S::LANES && width == S::LANES {
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

#[cfg(test)]
mod tests {
    use outstride_spec::IntegerOverflow;

    use crate::isa::Isa;
    use crate::storage::{Output, settle};
    use crate::table::{Real, kernels};

    fn turns<T: Real>() {
        for kernels in Isa::ALL.into_iter().filter_map(kernels::<T>) {
            for rows in [1usize, 3, 8, 16, 17, 40, 100] {
                for (columns, stream) in
                    [1usize, 4, 7, 16, 33].into_iter().flat_map(|c| [(c, false), (c, true)])
                {
                    let source: Vec<T> = (0..rows * 50).map(|value| T::from_f64(value as f64)).collect();
                    let distances: Vec<isize> = (0..rows as isize).rev().map(|row| row * 50).collect();
                    let untouched = T::from_f64(-1.0);
                    let mut target = vec![untouched; columns * 128 + 3];
                    // SAFETY: rows are 50 elements long, and this is the only thread.
                    unsafe {
                        let target = Output::new(&mut target, kernels, IntegerOverflow::default());
                        target.write_transposed(2, 128, source.as_ptr(), &distances, columns, stream);
                    }
                    settle();
                    for (index, &value) in target.iter().enumerate() {
                        let (column, row) = (index.wrapping_sub(2) / 128, index.wrapping_sub(2) % 128);
                        let inside = index >= 2 && row < rows && column < columns;
                        let expected =
                            if inside { source[distances[row] as usize + column] } else { untouched };
                        assert_eq!(value, expected, "{kernels:?} {rows}×{columns} at {index}");
                    }
                }
            }
        }
    }

    #[test]
    fn rows_become_columns() {
        turns::<f32>();
        turns::<f64>();
    }

    #[test]
    fn columns_of_bytes_are_those_of_single_stores() {
        for kernels in Isa::ALL.into_iter().filter_map(kernels::<f32>) {
            for (rows, columns, stream) in
                [(200, 40, false), (64, 16, true), (63, 17, false), (130, 15, true)]
            {
                let odd = [f32::NAN, 300.0, -300.0, f32::INFINITY, f32::NEG_INFINITY, -0.0];
                let value =
                    |index: usize| if index % 9 < odd.len() { odd[index % 9] } else { index as f32 % 256.0 };
                let source: Vec<f32> = (0..rows * 50).map(value).collect();
                let distances: Vec<isize> = (0..rows as isize).map(|row| row * 50).collect();
                let (mut signed, mut unsigned) =
                    (vec![-7i8; columns * 256 + 3], vec![7u8; columns * 256 + 3]);
                // SAFETY: rows are 50 elements long, and this is the only thread.
                unsafe {
                    let target = Output::new(&mut signed, kernels, IntegerOverflow::default());
                    target.write_transposed(2, 256, source.as_ptr(), &distances, columns, stream);
                    let target = Output::new(&mut unsigned, kernels, IntegerOverflow::default());
                    target.write_transposed(2, 256, source.as_ptr(), &distances, columns, stream);
                }
                settle();
                for (index, found) in signed.into_iter().zip(unsigned).enumerate() {
                    let (column, row) = (index.wrapping_sub(2) / 256, index.wrapping_sub(2) % 256);
                    let inside = index >= 2 && row < rows && column < columns;
                    let value = || source[row * 50 + column];
                    let expected = if inside { (value() as i8, value() as u8) } else { (-7, 7) };
                    assert_eq!(found, expected, "{kernels:?} {rows}×{columns} at {index}");
                }
            }
        }
    }
}
