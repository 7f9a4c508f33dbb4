//! Tiles of 12 rows by 2 vectors of 64 bytes.
//!
//! A core's two hardware threads take turns at decoding, so that beside a busy neighbour about three instructions a cycle are left,
//! of which multiply-adds need two. The loop keeps every row's address in a register of its own and moves them only after eight
//! channels; a third of the rows are broadcast inside the multiply-adds, which saves instructions but loads twice, the others by
//! one load for both vectors: with more of the first kind, two load ports have no room left for lines that come from the
//! second-level cache. Compilers keep addresses of so many rows in memory, and load them again for every channel.
//!
//! | registers | |
//! |---|---|
//! | zmm0 … zmm23 | the sums, row by row |
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
    (($load:literal, $multiply:literal, $element:literal, $size:literal, $all:literal), $number:literal) => {
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

/// Moves on by so many channels.
#[rustfmt::skip]
macro_rules! advance {
    (($load:literal, $multiply:literal, $element:literal, $size:literal, $all:literal), $channels:literal) => {
        concat!(
            "add r8, ", $channels, "*", $size, "\n", "add r9, ", $channels, "*", $size, "\n",
            "add r10, ", $channels, "*", $size, "\n", "add r11, ", $channels, "*", $size, "\n",
            "add r12, ", $channels, "*", $size, "\n", "add r13, ", $channels, "*", $size, "\n",
            "add r14, ", $channels, "*", $size, "\n", "add r15, ", $channels, "*", $size, "\n",
            "add rax, ", $channels, "*", $size, "\n", "add rcx, ", $channels, "*", $size, "\n",
            "add rdx, ", $channels, "*", $size, "\n", "add rdi, ", $channels, "*", $size, "\n",
            "add rsi, ", $channels, "*128\n",
        )
    };
}

macro_rules! accumulate {
    ($name:ident, $scalar:ty, $vector:ty, $words:tt) => {
        /// Adds the products of all channels of a tap.
        ///
        /// # Safety
        ///
        /// The CPU must have AVX-512. The weights must be readable at every channel, as must the first rows from `distance`
        /// elements on.
        #[inline]
        #[target_feature(enable = "avx512f")]
        pub(crate) unsafe fn $name(
            sums: &mut [[$vector; 2]; ROWS],
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
                    all_channels!(channel, nothing, advance, $words, "rbp", "rbx"),
                    "pop rbp",
                    "pop rbx",
                    inout("rsi") weights => _,
                    inout("rdi") rows.as_ptr() => _,
                    inout("rax") fetch => _,
                    inout("rcx") channels => _,
                    inout("rdx") bytes => _,
                    out("r8") _, out("r9") _, out("r10") _, out("r11") _,
                    out("r12") _, out("r13") _, out("r14") _, out("r15") _,
                    inout("zmm0") sums[0][0], inout("zmm1") sums[0][1],
                    inout("zmm2") sums[1][0], inout("zmm3") sums[1][1],
                    inout("zmm4") sums[2][0], inout("zmm5") sums[2][1],
                    inout("zmm6") sums[3][0], inout("zmm7") sums[3][1],
                    inout("zmm8") sums[4][0], inout("zmm9") sums[4][1],
                    inout("zmm10") sums[5][0], inout("zmm11") sums[5][1],
                    inout("zmm12") sums[6][0], inout("zmm13") sums[6][1],
                    inout("zmm14") sums[7][0], inout("zmm15") sums[7][1],
                    inout("zmm16") sums[8][0], inout("zmm17") sums[8][1],
                    inout("zmm18") sums[9][0], inout("zmm19") sums[9][1],
                    inout("zmm20") sums[10][0], inout("zmm21") sums[10][1],
                    inout("zmm22") sums[11][0], inout("zmm23") sums[11][1],
                    out("zmm24") _, out("zmm25") _, out("zmm26") _,
                );
            }
        }
    };
}

accumulate!(accumulate_f32, f32, __m512, ("vbroadcastss", "vfmadd231ps", "dword", 4, "1to16"));
accumulate!(accumulate_f64, f64, __m512d, ("vbroadcastsd", "vfmadd231pd", "qword", 8, "1to8"));
