//! Tiles of 12 rows by 2 vectors of 64 bytes, or by a single one.
//!
//! A core's two hardware threads take turns at decoding, so that beside a busy neighbour about three instructions a cycle are left,
//! of which multiply-adds need two. The loop keeps every row's address in a register of its own and moves them only after eight
//! channels; a third of the rows are broadcast inside the multiply-adds, which saves instructions but loads twice, the others by
//! one load for both vectors: with more of the first kind, two load ports have no room left for lines that come from the
//! second-level cache. Compilers keep addresses of so many rows in memory, and load them again for every channel. Of a single vector,
//! every row is broadcast inside its multiply-add.
//!
//! | registers | |
//! |---|---|
//! | zmm0 … zmm23 | the sums, row by row; of a single vector up to zmm11 |
//! | zmm24, zmm25 | a channel's weights |
//! | zmm26 | a row's input in all lanes |
//! | r8 … r15, rax, rcx, rdx, rdi | the rows' inputs |
//! | rsi, rbx | the weights, and what is fetched |
//! | rbp | the channels that are left |

use std::arch::asm;
use std::arch::x86_64::{__m512, __m512d};

use crate::panel::RowPointers;

/// Rows of a tile.
pub(crate) const ROWS: usize = 12;

/// One row of a channel, broadcast inside the multiply-adds.
#[rustfmt::skip]
macro_rules! in_place {
    ($multiply:literal, $all:literal, $input:expr, $low:literal, $high:literal) => {
        concat!(
            $multiply, " ", $low, ", zmm24, ", $input, "{{", $all, "}}\n",
            $multiply, " ", $high, ", zmm25, ", $input, "{{", $all, "}}\n",
        )
    };
}

/// One row of a channel, broadcast in advance.
#[rustfmt::skip]
macro_rules! loaded {
    ($load:literal, $multiply:literal, $input:expr, $low:literal, $high:literal) => {
        concat!(
            $load, " zmm26, ", $input, "\n",
            $multiply, " ", $low, ", zmm24, zmm26\n",
            $multiply, " ", $high, ", zmm25, zmm26\n",
        )
    };
}

/// One of eight channels.
#[rustfmt::skip]
macro_rules! channel {
    (($load:literal, $multiply:literal, $element:literal, $size:literal, $all:literal, 128), $number:literal) => {
        concat!(
            "vmovups zmm24, zmmword ptr [rsi + ", $number, "*128]\n",
            "vmovups zmm25, zmmword ptr [rsi + ", $number, "*128 + 64]\n",
            loaded!($load, $multiply, concat!($element, " ptr [r8 + ", $number, "*", $size, "]"), "zmm0", "zmm1"),
            in_place!($multiply, $all, concat!($element, " ptr [r9 + ", $number, "*", $size, "]"), "zmm2", "zmm3"),
            loaded!($load, $multiply, concat!($element, " ptr [r10 + ", $number, "*", $size, "]"), "zmm4", "zmm5"),
            loaded!($load, $multiply, concat!($element, " ptr [r11 + ", $number, "*", $size, "]"), "zmm6", "zmm7"),
            in_place!($multiply, $all, concat!($element, " ptr [r12 + ", $number, "*", $size, "]"), "zmm8", "zmm9"),
            loaded!($load, $multiply, concat!($element, " ptr [r13 + ", $number, "*", $size, "]"), "zmm10", "zmm11"),
            loaded!($load, $multiply, concat!($element, " ptr [r14 + ", $number, "*", $size, "]"), "zmm12", "zmm13"),
            in_place!($multiply, $all, concat!($element, " ptr [r15 + ", $number, "*", $size, "]"), "zmm14", "zmm15"),
            loaded!($load, $multiply, concat!($element, " ptr [rax + ", $number, "*", $size, "]"), "zmm16", "zmm17"),
            loaded!($load, $multiply, concat!($element, " ptr [rcx + ", $number, "*", $size, "]"), "zmm18", "zmm19"),
            in_place!($multiply, $all, concat!($element, " ptr [rdx + ", $number, "*", $size, "]"), "zmm20", "zmm21"),
            loaded!($load, $multiply, concat!($element, " ptr [rdi + ", $number, "*", $size, "]"), "zmm22", "zmm23"),
        )
    };
}

/// The same of a single vector.
#[rustfmt::skip]
macro_rules! narrow_channel {
    (($load:literal, $multiply:literal, $element:literal, $size:literal, $all:literal, 64), $number:literal) => {
        concat!(
            "vmovups zmm24, zmmword ptr [rsi + ", $number, "*64]\n",
            narrow_row!($multiply, $all, concat!($element, " ptr [r8 + ", $number, "*", $size, "]"), "zmm0"),
            narrow_row!($multiply, $all, concat!($element, " ptr [r9 + ", $number, "*", $size, "]"), "zmm1"),
            narrow_row!($multiply, $all, concat!($element, " ptr [r10 + ", $number, "*", $size, "]"), "zmm2"),
            narrow_row!($multiply, $all, concat!($element, " ptr [r11 + ", $number, "*", $size, "]"), "zmm3"),
            narrow_row!($multiply, $all, concat!($element, " ptr [r12 + ", $number, "*", $size, "]"), "zmm4"),
            narrow_row!($multiply, $all, concat!($element, " ptr [r13 + ", $number, "*", $size, "]"), "zmm5"),
            narrow_row!($multiply, $all, concat!($element, " ptr [r14 + ", $number, "*", $size, "]"), "zmm6"),
            narrow_row!($multiply, $all, concat!($element, " ptr [r15 + ", $number, "*", $size, "]"), "zmm7"),
            narrow_row!($multiply, $all, concat!($element, " ptr [rax + ", $number, "*", $size, "]"), "zmm8"),
            narrow_row!($multiply, $all, concat!($element, " ptr [rcx + ", $number, "*", $size, "]"), "zmm9"),
            narrow_row!($multiply, $all, concat!($element, " ptr [rdx + ", $number, "*", $size, "]"), "zmm10"),
            narrow_row!($multiply, $all, concat!($element, " ptr [rdi + ", $number, "*", $size, "]"), "zmm11"),
        )
    };
}

/// One row of a channel of a single vector.
#[rustfmt::skip]
macro_rules! narrow_row {
    ($multiply:literal, $all:literal, $input:expr, $sum:literal) => {
        concat!($multiply, " ", $sum, ", zmm24, ", $input, "{{", $all, "}}\n")
    };
}

/// Moves on by so many channels.
#[rustfmt::skip]
macro_rules! advance {
    (($load:literal, $multiply:literal, $element:literal, $size:literal, $all:literal, $weights:literal), $channels:literal) => {
        concat!(
            "add r8, ", $channels, "*", $size, "\n", "add r9, ", $channels, "*", $size, "\n",
            "add r10, ", $channels, "*", $size, "\n", "add r11, ", $channels, "*", $size, "\n",
            "add r12, ", $channels, "*", $size, "\n", "add r13, ", $channels, "*", $size, "\n",
            "add r14, ", $channels, "*", $size, "\n", "add r15, ", $channels, "*", $size, "\n",
            "add rax, ", $channels, "*", $size, "\n", "add rcx, ", $channels, "*", $size, "\n",
            "add rdx, ", $channels, "*", $size, "\n", "add rdi, ", $channels, "*", $size, "\n",
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
        /// The CPU must have AVX-512. The weights must be readable at every channel, as must the first rows from `distance`
        /// elements on.
        #[inline]
        #[target_feature(enable = "avx512f")]
        pub(crate) unsafe fn $name(
            sums: &mut [[$vector; $vectors]; ROWS],
            rows: &RowPointers<$scalar>,
            distance: isize,
            weights: *const $scalar,
            fetch: *const $scalar,
            channels: usize,
        ) {
            let bytes = distance.wrapping_mul(size_of::<$scalar>() as isize);
            // SAFETY: the caller vouches for what is read; the stack is left as it was found, and so are the two registers that
            // may not be named.
            unsafe {
                asm!(
                    "push rbx",
                    "push rbp",
                    "mov rbx, rax",
                    "mov rbp, rcx",
                    point_at_six_rows!(),
                    point_at_row!("r14", 48),
                    point_at_row!("r15", 56),
                    point_at_row!("rax", 64),
                    point_at_row!("rcx", 72),
                    "push qword ptr [rdi + 88]",
                    "add qword ptr [rsp], rdx",
                    "add rdx, qword ptr [rdi + 80]",
                    "pop rdi",
                    all_channels!($channel, nothing, advance, $words, "rbp", "rbx"),
                    "pop rbp",
                    "pop rbx",
                    inout("rsi") weights => _,
                    inout("rdi") rows.as_ptr() => _,
                    inout("rax") fetch => _,
                    inout("rcx") channels => _,
                    inout("rdx") bytes => _,
                    out("r8") _, out("r9") _, out("r10") _, out("r11") _,
                    out("r12") _, out("r13") _, out("r14") _, out("r15") _,
                    $(inout($register) sums[$row][$of_row],)*
                    out("zmm24") _, out("zmm25") _, out("zmm26") _,
                );
            }
        }
    };
}

/// The loops of both widths.
macro_rules! loops {
    ($wide:ident, $narrow:ident, $scalar:ty, $vector:ty, ($($words:literal),*)) => {
        accumulate!(
            $wide, channel, $scalar, $vector, ($($words),*, 128), 2:
            "zmm0" = 0 0, "zmm1" = 0 1, "zmm2" = 1 0, "zmm3" = 1 1, "zmm4" = 2 0, "zmm5" = 2 1, "zmm6" = 3 0, "zmm7" = 3 1,
            "zmm8" = 4 0, "zmm9" = 4 1, "zmm10" = 5 0, "zmm11" = 5 1, "zmm12" = 6 0, "zmm13" = 6 1, "zmm14" = 7 0, "zmm15" = 7 1,
            "zmm16" = 8 0, "zmm17" = 8 1, "zmm18" = 9 0, "zmm19" = 9 1, "zmm20" = 10 0, "zmm21" = 10 1, "zmm22" = 11 0, "zmm23" = 11 1
        );
        accumulate!(
            $narrow, narrow_channel, $scalar, $vector, ($($words),*, 64), 1:
            "zmm0" = 0 0, "zmm1" = 1 0, "zmm2" = 2 0, "zmm3" = 3 0, "zmm4" = 4 0, "zmm5" = 5 0,
            "zmm6" = 6 0, "zmm7" = 7 0, "zmm8" = 8 0, "zmm9" = 9 0, "zmm10" = 10 0, "zmm11" = 11 0
        );
    };
}

loops!(
    accumulate_f32,
    accumulate_narrow_f32,
    f32,
    __m512,
    ("vbroadcastss", "vfmadd231ps", "dword", 4, "1to16")
);
loops!(
    accumulate_f64,
    accumulate_narrow_f64,
    f64,
    __m512d,
    ("vbroadcastsd", "vfmadd231pd", "qword", 8, "1to8")
);
