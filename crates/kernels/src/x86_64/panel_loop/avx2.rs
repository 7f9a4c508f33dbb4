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

use crate::panel::{FETCH_EVERY, RowPointers};

// Of eight channels, four have a line fetched.
const _: () = assert!(FETCH_EVERY == 2);

/// Rows of a tile.
pub(crate) const ROWS: usize = 6;

/// One row of a channel: its input, and the registers of that input and of the sums.
#[rustfmt::skip]
macro_rules! row {
    (($load:literal, $multiply:literal), $input:expr, $all:literal, $low:literal, $high:literal) => {
        concat!(
            $load, " ", $all, ", ", $input, "\n",
            $multiply, " ", $low, ", ymm12, ", $all, "\n",
            $multiply, " ", $high, ", ymm13, ", $all, "\n",
        )
    };
}

/// One channel: how far its inputs and both vectors of its weights lie from where the registers point.
#[rustfmt::skip]
macro_rules! channel {
    ($words:tt, $x:literal, $weights:literal, $more_weights:literal) => {
        concat!(
            "vmovups ymm12, ymmword ptr [rsi + ", $weights, "]\n",
            "vmovups ymm13, ymmword ptr [rsi + ", $more_weights, "]\n",
            row!($words, concat!("[r8 + ", $x, "]"), "ymm14", "ymm0", "ymm1"),
            row!($words, concat!("[r9 + ", $x, "]"), "ymm15", "ymm2", "ymm3"),
            row!($words, concat!("[r10 + ", $x, "]"), "ymm14", "ymm4", "ymm5"),
            row!($words, concat!("[r11 + ", $x, "]"), "ymm15", "ymm6", "ymm7"),
            row!($words, concat!("[r12 + ", $x, "]"), "ymm14", "ymm8", "ymm9"),
            row!($words, concat!("[r13 + ", $x, "]"), "ymm15", "ymm10", "ymm11"),
        )
    };
}

/// Moves on by so many bytes of inputs, weights, and what is fetched.
#[rustfmt::skip]
macro_rules! advance {
    ($x:literal, $weights:literal, $fetched:literal) => {
        concat!(
            "add r8, ", $x, "\n", "add r9, ", $x, "\n", "add r10, ", $x, "\n",
            "add r11, ", $x, "\n", "add r12, ", $x, "\n", "add r13, ", $x, "\n",
            "add rsi, ", $weights, "\n", "add rax, ", $fetched, "\n",
        )
    };
}

macro_rules! accumulate {
    ($name:ident, $scalar:ty, $vector:ty, $words:tt, [$($x:literal)*], $eight:literal, $one:literal) => {
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
            accumulate!(@ $words, $eight, $one, $($x)*, sums, rows, bytes, weights, fetch, channels)
        }
    };
    (
        @ $words:tt, $eight:literal, $one:literal,
        $x1:literal $x2:literal $x3:literal $x4:literal $x5:literal $x6:literal $x7:literal,
        $sums:ident, $rows:ident, $bytes:ident, $from:ident, $fetch:ident, $channels:ident
    ) => {
        // SAFETY: the caller vouches for what is read; nothing is written to memory.
        unsafe {
            asm!(
                point_at_row!("r8", 0),
                point_at_row!("r9", 8),
                point_at_row!("r10", 16),
                point_at_row!("r11", 24),
                point_at_row!("r12", 32),
                point_at_row!("r13", 40),
                "sub rcx, 8",
                "jb 3f",
                ".p2align 5",
                "2:",
                "prefetcht1 byte ptr [rax + 0]",
                channel!($words, 0, 0, 32),
                channel!($words, $x1, 64, 96),
                "prefetcht1 byte ptr [rax + 64]",
                channel!($words, $x2, 128, 160),
                channel!($words, $x3, 192, 224),
                "prefetcht1 byte ptr [rax + 128]",
                channel!($words, $x4, 256, 288),
                channel!($words, $x5, 320, 352),
                "prefetcht1 byte ptr [rax + 192]",
                channel!($words, $x6, 384, 416),
                channel!($words, $x7, 448, 480),
                advance!($eight, 512, 256),
                "sub rcx, 8",
                "jae 2b",
                "3:",
                "add rcx, 8",
                "jz 5f",
                "4:",
                channel!($words, 0, 0, 32),
                advance!($one, 64, 0),
                "sub rcx, 1",
                "jnz 4b",
                "5:",
                inout("rsi") $from => _,
                inout("rdi") $rows.as_ptr() => _,
                inout("rax") $fetch => _,
                inout("rcx") $channels => _,
                inout("rdx") $bytes => _,
                out("r8") _, out("r9") _, out("r10") _, out("r11") _, out("r12") _, out("r13") _,
                inout("ymm0") $sums[0][0], inout("ymm1") $sums[0][1],
                inout("ymm2") $sums[1][0], inout("ymm3") $sums[1][1],
                inout("ymm4") $sums[2][0], inout("ymm5") $sums[2][1],
                inout("ymm6") $sums[3][0], inout("ymm7") $sums[3][1],
                inout("ymm8") $sums[4][0], inout("ymm9") $sums[4][1],
                inout("ymm10") $sums[5][0], inout("ymm11") $sums[5][1],
                out("ymm12") _, out("ymm13") _, out("ymm14") _, out("ymm15") _,
                options(nostack, readonly),
            );
        }
    };
}

accumulate!(
    accumulate_f32, f32, __m256, ("vbroadcastss", "vfmadd231ps"), [4 8 12 16 20 24 28], 32, 4
);
accumulate!(
    accumulate_f64, f64, __m256d, ("vbroadcastsd", "vfmadd231pd"), [8 16 24 32 40 48 56], 64, 8
);
