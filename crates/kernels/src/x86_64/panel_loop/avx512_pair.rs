//! Tiles of 6 rows by two panels of 2 vectors of 64 bytes.
//!
//! They need fewer loads than [12 rows of one panel](super::avx512), ten a channel instead of eighteen, which leaves room for lines
//! that come from the second-level cache and for stores that leave. Their weights are read twice as often, and so are fetched into
//! the first-level cache some channels ahead.
//!
//! | registers | |
//! |---|---|
//! | zmm0 … zmm11, zmm12 … zmm23 | the sums of either panel, row by row |
//! | zmm24, zmm25, zmm26, zmm27 | a channel's weights |
//! | zmm28 | a row's input in all lanes |
//! | r8 … r13 | the rows' inputs |
//! | rsi, r14, r15 | the weights of both, and what is fetched |
//! | rax, rdi, rdx, rbx | where outputs begin, the distances of the next row's and of the last one's, and the next row's |
//! | rcx | the channels that are left |

use std::arch::asm;
use std::arch::x86_64::{__m512, __m512d};

use crate::panel::{OutputsAhead, PAIR_ROWS, PairSums};

// As many rows as there are registers for.
const _: () = assert!(PAIR_ROWS == 6);

/// One row of a channel.
#[rustfmt::skip]
macro_rules! row {
    ($load:literal, $multiply:literal, $input:expr, $a:literal, $b:literal, $c:literal, $d:literal) => {
        concat!(
            $load, " zmm28, ", $input, "\n",
            $multiply, " ", $a, ", zmm24, zmm28\n",
            $multiply, " ", $b, ", zmm25, zmm28\n",
            $multiply, " ", $c, ", zmm26, zmm28\n",
            $multiply, " ", $d, ", zmm27, zmm28\n",
        )
    };
}

/// One of eight channels. Weights are fetched four channels ahead.
#[rustfmt::skip]
macro_rules! channel {
    (($load:literal, $multiply:literal, $element:literal, $size:literal), $number:literal) => {
        concat!(
            "vmovups zmm24, zmmword ptr [rsi + ", $number, "*128]\n",
            "vmovups zmm25, zmmword ptr [rsi + ", $number, "*128 + 64]\n",
            "vmovups zmm26, zmmword ptr [r14 + ", $number, "*128]\n",
            "vmovups zmm27, zmmword ptr [r14 + ", $number, "*128 + 64]\n",
            row!($load, $multiply, concat!($element, " ptr [r8 + ", $number, "*", $size, "]"), "zmm0", "zmm1", "zmm12", "zmm13"),
            "prefetcht0 byte ptr [rsi + ", $number, "*128 + 512]\n",
            row!($load, $multiply, concat!($element, " ptr [r9 + ", $number, "*", $size, "]"), "zmm2", "zmm3", "zmm14", "zmm15"),
            "prefetcht0 byte ptr [rsi + ", $number, "*128 + 576]\n",
            row!($load, $multiply, concat!($element, " ptr [r10 + ", $number, "*", $size, "]"), "zmm4", "zmm5", "zmm16", "zmm17"),
            "prefetcht0 byte ptr [r14 + ", $number, "*128 + 512]\n",
            row!($load, $multiply, concat!($element, " ptr [r11 + ", $number, "*", $size, "]"), "zmm6", "zmm7", "zmm18", "zmm19"),
            "prefetcht0 byte ptr [r14 + ", $number, "*128 + 576]\n",
            row!($load, $multiply, concat!($element, " ptr [r12 + ", $number, "*", $size, "]"), "zmm8", "zmm9", "zmm20", "zmm21"),
            row!($load, $multiply, concat!($element, " ptr [r13 + ", $number, "*", $size, "]"), "zmm10", "zmm11", "zmm22", "zmm23"),
        )
    };
}

/// Beside every second of eight channels, has a line of the next row of outputs fetched; then moves on to another row, if there is one.
#[rustfmt::skip]
macro_rules! outputs {
    ($words:tt, 1) => { "prefetchw byte ptr [rbx]\n" };
    ($words:tt, 3) => { "prefetchw byte ptr [rbx + 64]\n" };
    ($words:tt, 5) => { "prefetchw byte ptr [rbx + 128]\n" };
    ($words:tt, 7) => { "prefetchw byte ptr [rbx + 192]\n" };
    (($load:literal, $multiply:literal, $element:literal, $size:literal), 8) => {
        concat!(
            "lea rbx, [rdi + 8]\n",
            "cmp rbx, rdx\n",
            "cmovbe rdi, rbx\n",
            point_at_outputs!($size),
        )
    };
}

/// Points at the row of outputs whose distance is next.
#[rustfmt::skip]
macro_rules! point_at_outputs {
    ($size:expr) => {
        concat!("mov rbx, qword ptr [rdi]\n", "lea rbx, [rax + ", $size, "*rbx]\n")
    };
}

/// Moves on by so many channels.
#[rustfmt::skip]
macro_rules! advance {
    (($load:literal, $multiply:literal, $element:literal, $size:literal), $channels:literal) => {
        concat!(
            "add r8, ", $channels, "*", $size, "\n", "add r9, ", $channels, "*", $size, "\n",
            "add r10, ", $channels, "*", $size, "\n", "add r11, ", $channels, "*", $size, "\n",
            "add r12, ", $channels, "*", $size, "\n", "add r13, ", $channels, "*", $size, "\n",
            "add rsi, ", $channels, "*128\n", "add r14, ", $channels, "*128\n",
        )
    };
}

macro_rules! accumulate {
    ($name:ident, $scalar:ty, $vector:ty, ($load:literal, $multiply:literal, $element:literal, $size:literal)) => {
        /// Adds the products of all channels of a tap.
        ///
        /// # Safety
        ///
        /// The CPU must have AVX-512. The weights must be readable at every channel, as must the rows from `distance` elements on,
        /// and the distances of outputs from the first to the last. Outputs themselves may lie anywhere: they are only fetched.
        #[inline]
        #[target_feature(enable = "avx512f")]
        pub(crate) unsafe fn $name(
            [one, other]: &mut PairSums<$vector>,
            rows: &[*const $scalar; PAIR_ROWS],
            distance: isize,
            weights: [*const $scalar; 2],
            fetch: *const $scalar,
            outputs: &OutputsAhead<$scalar>,
            channels: usize,
        ) {
            let bytes = distance.wrapping_mul(size_of::<$scalar>() as isize);
            // SAFETY: the caller vouches for what is read; the stack is left as it was found, and so is the register that may not be
            // named.
            unsafe {
                asm!(
                    "push rbx",
                    point_at_six_rows!(),
                    "mov rdi, qword ptr [rax + 8]",
                    "mov rdx, qword ptr [rax + 16]",
                    "mov rax, qword ptr [rax]",
                    point_at_outputs!($size),
                    all_channels!(channel, outputs, advance, ($load, $multiply, $element, $size), "rcx", "r15"),
                    "pop rbx",
                    inout("rsi") weights[0] => _,
                    inout("r14") weights[1] => _,
                    inout("r15") fetch => _,
                    inout("rcx") channels => _,
                    inout("rax") std::ptr::from_ref(outputs) => _,
                    inout("rdi") rows.as_ptr() => _,
                    inout("rdx") bytes => _,
                    out("r8") _, out("r9") _, out("r10") _, out("r11") _, out("r12") _, out("r13") _,
                    inout("zmm0") one[0][0], inout("zmm1") one[0][1],
                    inout("zmm2") one[1][0], inout("zmm3") one[1][1],
                    inout("zmm4") one[2][0], inout("zmm5") one[2][1],
                    inout("zmm6") one[3][0], inout("zmm7") one[3][1],
                    inout("zmm8") one[4][0], inout("zmm9") one[4][1],
                    inout("zmm10") one[5][0], inout("zmm11") one[5][1],
                    inout("zmm12") other[0][0], inout("zmm13") other[0][1],
                    inout("zmm14") other[1][0], inout("zmm15") other[1][1],
                    inout("zmm16") other[2][0], inout("zmm17") other[2][1],
                    inout("zmm18") other[3][0], inout("zmm19") other[3][1],
                    inout("zmm20") other[4][0], inout("zmm21") other[4][1],
                    inout("zmm22") other[5][0], inout("zmm23") other[5][1],
                    out("zmm24") _, out("zmm25") _, out("zmm26") _, out("zmm27") _, out("zmm28") _,
                );
            }
        }
    };
}

accumulate!(accumulate_f32, f32, __m512, ("vbroadcastss", "vfmadd231ps", "dword", 4));
accumulate!(accumulate_f64, f64, __m512d, ("vbroadcastsd", "vfmadd231pd", "qword", 8));
