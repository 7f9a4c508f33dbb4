//! Tiles of 6 rows by 2 vectors of 32 bytes, or by a single one.
//!
//! Every row's address has a register of its own; all move on only after eight channels. Two registers take turns at holding a
//! row's broadcast input.
//!
//! | registers | |
//! |---|---|
//! | ymm0 … ymm11 | the sums, row by row; of a single vector up to ymm5 |
//! | ymm12, ymm13 | a channel's weights |
//! | ymm14, ymm15 | a row's input in all lanes |
//! | r8 … r13 | the rows' inputs, found by rdi and rdx |
//! | rsi, rax | the weights, and what is fetched |
//! | rcx | the channels that are left |

use std::arch::asm;
use std::arch::x86_64::{__m256, __m256d};

use crate::panel::RowPointers;

/// Rows of a tile.
pub(crate) const ROWS: usize = 6;

/// One row of a channel: its input, and the registers of that input and of the sums.
#[rustfmt::skip]
macro_rules! row {
    ($load:literal, $multiply:literal, $input:expr, $all:literal, $low:literal, $high:literal) => {
        concat!(
            $load, " ", $all, ", ", $input, "\n",
            $multiply, " ", $low, ", ymm12, ", $all, "\n",
            $multiply, " ", $high, ", ymm13, ", $all, "\n",
        )
    };
}

/// One of eight channels.
#[rustfmt::skip]
macro_rules! channel {
    (($load:literal, $multiply:literal, $size:literal, 64), $number:literal) => {
        concat!(
            "vmovups ymm12, ymmword ptr [rsi + ", $number, "*64]\n",
            "vmovups ymm13, ymmword ptr [rsi + ", $number, "*64 + 32]\n",
            row!($load, $multiply, concat!("[r8 + ", $number, "*", $size, "]"), "ymm14", "ymm0", "ymm1"),
            row!($load, $multiply, concat!("[r9 + ", $number, "*", $size, "]"), "ymm15", "ymm2", "ymm3"),
            row!($load, $multiply, concat!("[r10 + ", $number, "*", $size, "]"), "ymm14", "ymm4", "ymm5"),
            row!($load, $multiply, concat!("[r11 + ", $number, "*", $size, "]"), "ymm15", "ymm6", "ymm7"),
            row!($load, $multiply, concat!("[r12 + ", $number, "*", $size, "]"), "ymm14", "ymm8", "ymm9"),
            row!($load, $multiply, concat!("[r13 + ", $number, "*", $size, "]"), "ymm15", "ymm10", "ymm11"),
        )
    };
}

/// The same of a single vector.
#[rustfmt::skip]
macro_rules! narrow_channel {
    (($load:literal, $multiply:literal, $size:literal, 32), $number:literal) => {
        concat!(
            "vmovups ymm12, ymmword ptr [rsi + ", $number, "*32]\n",
            narrow_row!($load, $multiply, concat!("[r8 + ", $number, "*", $size, "]"), "ymm14", "ymm0"),
            narrow_row!($load, $multiply, concat!("[r9 + ", $number, "*", $size, "]"), "ymm15", "ymm1"),
            narrow_row!($load, $multiply, concat!("[r10 + ", $number, "*", $size, "]"), "ymm14", "ymm2"),
            narrow_row!($load, $multiply, concat!("[r11 + ", $number, "*", $size, "]"), "ymm15", "ymm3"),
            narrow_row!($load, $multiply, concat!("[r12 + ", $number, "*", $size, "]"), "ymm14", "ymm4"),
            narrow_row!($load, $multiply, concat!("[r13 + ", $number, "*", $size, "]"), "ymm15", "ymm5"),
        )
    };
}

/// One row of a channel of a single vector.
#[rustfmt::skip]
macro_rules! narrow_row {
    ($load:literal, $multiply:literal, $input:expr, $all:literal, $sum:literal) => {
        concat!($load, " ", $all, ", ", $input, "\n", $multiply, " ", $sum, ", ymm12, ", $all, "\n")
    };
}

/// Moves on by so many channels.
#[rustfmt::skip]
macro_rules! advance {
    (($load:literal, $multiply:literal, $size:literal, $weights:literal), $channels:literal) => {
        concat!(
            "add r8, ", $channels, "*", $size, "\n", "add r9, ", $channels, "*", $size, "\n",
            "add r10, ", $channels, "*", $size, "\n", "add r11, ", $channels, "*", $size, "\n",
            "add r12, ", $channels, "*", $size, "\n", "add r13, ", $channels, "*", $size, "\n",
            "add rsi, ", $channels, "*", $weights, "\n",
        )
    };
}

macro_rules! accumulate {
    (
        $name:ident, $channel:ident, $scalar:ty, $vector:ty, $words:tt,
        $vectors:literal: $($register:tt = $row:literal $of_row:literal),*
    ) => {
        /// Adds the products of all channels of a tap.
        ///
        /// # Safety
        ///
        /// The CPU must have AVX2 and FMA. The weights must be readable at every channel, as must the first rows from `distance`
        /// elements on.
        #[inline]
        #[target_feature(enable = "avx2,fma")]
        pub(crate) unsafe fn $name(
            sums: &mut [[$vector; $vectors]; ROWS],
            rows: &RowPointers<$scalar>,
            distance: isize,
            weights: *const $scalar,
            fetch: *const $scalar,
            channels: usize,
        ) {
            let bytes = distance.wrapping_mul(size_of::<$scalar>() as isize);
            // SAFETY: the caller vouches for what is read; nothing is written to memory.
            unsafe {
                asm!(
                    point_at_six_rows!(),
                    all_channels!($channel, nothing, advance, $words, "rcx", "rax"),
                    inout("rsi") weights => _,
                    inout("rdi") rows.as_ptr() => _,
                    inout("rax") fetch => _,
                    inout("rcx") channels => _,
                    inout("rdx") bytes => _,
                    out("r8") _, out("r9") _, out("r10") _, out("r11") _, out("r12") _, out("r13") _,
                    $(inout($register) sums[$row][$of_row],)*
                    out("ymm12") _, out("ymm13") _, out("ymm14") _, out("ymm15") _,
                    options(nostack, readonly),
                );
            }
        }
    };
}

/// The loops of both widths.
macro_rules! loops {
    ($wide:ident, $narrow:ident, $scalar:ty, $vector:ty, ($($words:literal),*)) => {
        accumulate!(
            $wide, channel, $scalar, $vector, ($($words),*, 64), 2:
            "ymm0" = 0 0, "ymm1" = 0 1, "ymm2" = 1 0, "ymm3" = 1 1, "ymm4" = 2 0, "ymm5" = 2 1,
            "ymm6" = 3 0, "ymm7" = 3 1, "ymm8" = 4 0, "ymm9" = 4 1, "ymm10" = 5 0, "ymm11" = 5 1
        );
        accumulate!(
            $narrow, narrow_channel, $scalar, $vector, ($($words),*, 32), 1:
            "ymm0" = 0 0, "ymm1" = 1 0, "ymm2" = 2 0, "ymm3" = 3 0, "ymm4" = 4 0, "ymm5" = 5 0
        );
    };
}

loops!(accumulate_f32, accumulate_narrow_f32, f32, __m256, ("vbroadcastss", "vfmadd231ps", 4));
loops!(accumulate_f64, accumulate_narrow_f64, f64, __m256d, ("vbroadcastsd", "vfmadd231pd", 8));
