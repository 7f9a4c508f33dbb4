//! The inner loops of the largest panel tiles, instruction by instruction.
//!
//! Multiply-adds alone take two instructions a cycle, so that whatever else a channel costs has to fit beside them: compilers add
//! a tenth to the time of these loops, by addresses that they compute or reload and by the registers they choose.

/// Has a register point at a row: so many bytes behind `rdi` is its address, and `rdx` is how far from there it reads.
macro_rules! point_at_row {
    ($register:literal, $place:literal) => {
        concat!("mov ", $register, ", rdx\nadd ", $register, ", qword ptr [rdi + ", $place, "]")
    };
}

pub(super) mod avx2;
pub(super) mod avx512;
pub(super) mod avx512_pair;

/// The method of [`Simd`](crate::simd::Simd) that leaves tiles of an instruction set's shape to its loop.
macro_rules! accumulate_panel {
    ($set:ident::$accumulate:ident, $scalar:ty, $vector:ty) => {
        #[inline(always)]
        unsafe fn accumulate_panel<const ROWS: usize, const VECTORS: usize>(
            sums: &mut [[$vector; VECTORS]; ROWS],
            rows: &crate::panel::RowPointers<$scalar>,
            distance: isize,
            weights: *const $scalar,
            fetch: *const $scalar,
            channels: usize,
        ) -> bool {
            use super::panel_loop::$set;
            if (ROWS, VECTORS) != ($set::ROWS, 2) {
                return false;
            }
            // SAFETY: the sums have just that shape; the caller vouches for the instruction set, the rows and the weights.
            unsafe {
                $set::$accumulate(
                    &mut *std::ptr::from_mut(sums).cast(),
                    rows,
                    distance,
                    weights,
                    fetch,
                    channels,
                );
            }
            true
        }
    };
}
pub(super) use accumulate_panel;

/// What [`Simd`](crate::simd::Simd) says of an instruction set's loop for two panels together.
macro_rules! accumulate_pair {
    ($set:ident::$accumulate:ident, $scalar:ty, $vector:ty) => {
        const PAIRS: bool = true;

        #[inline(always)]
        unsafe fn accumulate_pair(
            sums: &mut crate::panel::PairSums<$vector>,
            rows: &[*const $scalar; crate::panel::PAIR_ROWS],
            distance: isize,
            weights: [*const $scalar; 2],
            fetch: *const $scalar,
            outputs: &crate::panel::OutputsAhead<$scalar>,
            channels: usize,
        ) {
            // SAFETY: the caller vouches for the instruction set, the rows and the weights.
            unsafe {
                super::panel_loop::$set::$accumulate(sums, rows, distance, weights, fetch, outputs, channels)
            }
        }
    };
}
pub(super) use accumulate_pair;
