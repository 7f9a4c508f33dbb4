//! Where the rows of a tile go.

use super::PanelRows;
use crate::fetch::fetch_to_write;
use crate::simd::Simd;
use crate::storage::{LINE, OutputRows};

/// Has the lines brought near that rows will be written to. Without them, stores would wait, and whatever is stored behind them.
#[inline(always)]
pub(super) fn fetch_rows<S: Simd, const VECTORS: usize>(to: &OutputRows<'_, S::Scalar>, distances: &[isize]) {
    let columns = to.columns.min(VECTORS * S::LANES);
    for &distance in distances {
        let row = to.first.wrapping_offset(distance).cast_const();
        for before in (0..columns).step_by(LINE / size_of::<S::Scalar>()) {
            fetch_to_write(row.wrapping_add(before));
        }
    }
}

/// Brings sums within their bounds, and writes them. With `stream`, whole lines go past the caches.
///
/// # Safety
///
/// As [`panel`](super::panel).
#[inline(always)]
pub(super) unsafe fn write<S: Simd, const ROWS: usize, const VECTORS: usize>(
    sums: &mut [[S::Vector; VECTORS]; ROWS],
    rows: &PanelRows<'_, S::Scalar>,
    stream: bool,
) {
    // SAFETY: the caller vouches for the instruction set and the rows.
    unsafe {
        if let Some([least, greatest]) = rows.to.bounds {
            let (least, greatest) = (S::splat(least), S::splat(greatest));
            for sums in &mut *sums {
                for sum in sums {
                    *sum = S::at_most(S::at_least(*sum, least), greatest);
                }
            }
        }
        if rows.to.columns < VECTORS * S::LANES {
            write_rows::<S, SomeColumns, ROWS, VECTORS>(sums, rows);
        } else if stream
            && rows
                .distances
                .iter()
                .all(|&row| rows.to.first.wrapping_offset(row).addr().is_multiple_of(LINE))
        {
            write_rows::<S, PastCaches, ROWS, VECTORS>(sums, rows);
        } else {
            write_rows::<S, AllColumns, ROWS, VECTORS>(sums, rows);
        }
    }
}

/// How a row is written. Not a closure, which would be compiled by itself, without the instruction set.
trait Write<S: Simd> {
    /// # Safety
    ///
    /// The CPU must have `S`'s instruction set, and as many lanes as there are columns must be writable.
    unsafe fn write(to: *mut S::Scalar, value: S::Vector, columns: usize);
}

struct AllColumns;
struct SomeColumns;
struct PastCaches;

impl<S: Simd> Write<S> for AllColumns {
    #[inline(always)]
    unsafe fn write(to: *mut S::Scalar, value: S::Vector, _: usize) {
        // SAFETY: handed on from the caller.
        unsafe { S::store(to, value) }
    }
}

impl<S: Simd> Write<S> for SomeColumns {
    #[inline(always)]
    unsafe fn write(to: *mut S::Scalar, value: S::Vector, columns: usize) {
        // SAFETY: handed on from the caller; the mask leaves out other lanes.
        unsafe { S::store_masked(to, value, S::mask(0, columns)) }
    }
}

impl<S: Simd> Write<S> for PastCaches {
    #[inline(always)]
    unsafe fn write(to: *mut S::Scalar, value: S::Vector, _: usize) {
        // SAFETY: handed on from the caller.
        unsafe { S::stream(to, value) }
    }
}

/// # Safety
///
/// As [`panel`](super::panel); rows must begin where `W` can write.
#[inline(always)]
unsafe fn write_rows<S: Simd, W: Write<S>, const ROWS: usize, const VECTORS: usize>(
    sums: &[[S::Vector; VECTORS]; ROWS],
    rows: &PanelRows<'_, S::Scalar>,
) {
    let OutputRows { first, columns, .. } = *rows.to;
    // Sums stay in registers only if no row is left out of the loop, whether or not it goes anywhere.
    for row in 0..ROWS {
        if row < rows.distances.len() {
            let to = first.wrapping_offset(rows.distances[row]);
            for vector in 0..VECTORS {
                let before = vector * S::LANES;
                // SAFETY: the caller vouches for the instruction set and the rows.
                unsafe {
                    W::write(to.wrapping_add(before), sums[row][vector], columns.saturating_sub(before));
                }
            }
        }
    }
}
