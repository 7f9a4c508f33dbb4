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

/// Has r8 to r13 point at the first six rows.
macro_rules! point_at_six_rows {
    () => {
        concat!(
            point_at_row!("r8", 0),
            "\n",
            point_at_row!("r9", 8),
            "\n",
            point_at_row!("r10", 16),
            "\n",
            point_at_row!("r11", 24),
            "\n",
            point_at_row!("r12", 32),
            "\n",
            point_at_row!("r13", 40),
        )
    };
}

/// Multiplies all channels of a tap, eight at a time and the last few one by one. `$channel` multiplies one of eight by its number, which
/// counts from where registers point, `$advance` moves these on by so many channels, and `$beside` is what else is done before the
/// odd ones of eight, and behind all of them. How many channels are left is in `$left`, and what is fetched every two of them begins at
/// `$fetched`.
#[rustfmt::skip]
macro_rules! all_channels {
    ($channel:ident, $beside:ident, $advance:ident, $words:tt, $left:literal, $fetched:literal) => {
        concat!(
            "sub ", $left, ", 8\n",
            "jb 3f\n",
            ".p2align 5\n",
            "2:\n",
            "prefetcht1 byte ptr [", $fetched, " + 0]\n",
            $channel!($words, 0), $beside!($words, 1), $channel!($words, 1),
            "prefetcht1 byte ptr [", $fetched, " + 64]\n",
            $channel!($words, 2), $beside!($words, 3), $channel!($words, 3),
            "prefetcht1 byte ptr [", $fetched, " + 128]\n",
            $channel!($words, 4), $beside!($words, 5), $channel!($words, 5),
            "prefetcht1 byte ptr [", $fetched, " + 192]\n",
            $channel!($words, 6), $beside!($words, 7), $channel!($words, 7),
            $beside!($words, 8),
            $advance!($words, 8),
            "add ", $fetched, ", 256\n",
            "sub ", $left, ", 8\n",
            "jae 2b\n",
            "3:\n",
            "add ", $left, ", 8\n",
            "jz 5f\n",
            "4:\n",
            $channel!($words, 0),
            $advance!($words, 1),
            "sub ", $left, ", 1\n",
            "jnz 4b\n",
            "5:\n",
        )
    };
}

// Of eight channels, four have a line fetched.
const _: () = assert!(crate::panel::FETCH_EVERY == 2);

/// Nothing else is done beside channels.
macro_rules! nothing {
    ($words:tt, $number:literal) => {
        ""
    };
}

pub(super) mod avx2;
pub(super) mod avx512;
pub(super) mod avx512_pair;

/// The method of [`Simd`](crate::simd::Simd) that leaves tiles of an instruction set's shape to its loop.
macro_rules! accumulate_panel {
    ($set:ident::[$narrow:ident, $wide:ident], $scalar:ty, $vector:ty) => {
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
            let sums = std::ptr::from_mut(sums);
            // SAFETY: the sums have just that shape; the caller vouches for the instruction set, the rows and the weights.
            unsafe {
                match (ROWS, VECTORS) {
                    ($set::ROWS, 1) => {
                        $set::$narrow(&mut *sums.cast(), rows, distance, weights, fetch, channels);
                    }
                    ($set::ROWS, 2) => {
                        $set::$wide(&mut *sums.cast(), rows, distance, weights, fetch, channels);
                    }
                    _ => return false,
                }
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
