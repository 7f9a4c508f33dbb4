//! Tiles of 6 rows by 2 vectors of 32 bytes.
//!
//! Every row's address has a register of its own; all move on only after eight channels. Two registers take turns at holding a
//! row's broadcast input.
//!
//! | registers | |
//! |---|---|
//! | ymm0 … ymm11 | the sums, row by row |
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
    (($load:literal, $multiply:literal, $size:literal), $number:literal) => {
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

/// Moves on by so many channels.
#[rustfmt::skip]
macro_rules! advance {
    (($load:literal, $multiply:literal, $size:literal), $channels:literal) => {
        concat!(
            "add r8, ", $channels, "*", $size, "\n", "add r9, ", $channels, "*", $size, "\n",
            "add r10, ", $channels, "*", $size, "\n", "add r11, ", $channels, "*", $size, "\n",
            "add r12, ", $channels, "*", $size, "\n", "add r13, ", $channels, "*", $size, "\n",
            "add rsi, ", $channels, "*64\n",
        )
    };
}

macro_rules! accumulate {
    ($name:ident, $scalar:ty, $vector:ty, $words:tt) => {
        /// Adds the products of all channels of a tap.
        ///
        /// # Safety
        ///
        /// The CPU must have AVX2 and FMA. The weights must be readable at every channel, as must the first rows from `distance`
        /// elements on.
        #[inline]
        #[target_feature(enable = "avx2,fma")]
        pub(crate) unsafe fn $name(
            sums: &mut [[$vector; 2]; ROWS],
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
                    all_channels!(channel, nothing, advance, $words, "rcx", "rax"),
                    inout("rsi") weights => _,
                    inout("rdi") rows.as_ptr() => _,
                    inout("rax") fetch => _,
                    inout("rcx") channels => _,
                    inout("rdx") bytes => _,
                    out("r8") _, out("r9") _, out("r10") _, out("r11") _, out("r12") _, out("r13") _,
                    inout("ymm0") sums[0][0], inout("ymm1") sums[0][1],
                    inout("ymm2") sums[1][0], inout("ymm3") sums[1][1],
                    inout("ymm4") sums[2][0], inout("ymm5") sums[2][1],
                    inout("ymm6") sums[3][0], inout("ymm7") sums[3][1],
                    inout("ymm8") sums[4][0], inout("ymm9") sums[4][1],
                    inout("ymm10") sums[5][0], inout("ymm11") sums[5][1],
                    out("ymm12") _, out("ymm13") _, out("ymm14") _, out("ymm15") _,
                    options(nostack, readonly),
                );
            }
        }
    };
}

accumulate!(accumulate_f32, f32, __m256, ("vbroadcastss", "vfmadd231ps", 4));
accumulate!(accumulate_f64, f64, __m256d, ("vbroadcastsd", "vfmadd231pd", 8));
