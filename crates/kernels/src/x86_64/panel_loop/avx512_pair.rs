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

use crate::panel::{FETCH_EVERY, OutputsAhead, PAIR_ROWS, PairSums};

// Of eight channels, four have a line fetched.
const _: () = assert!(FETCH_EVERY == 2);

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

/// One channel: how far its inputs and both vectors of its weights lie from where the registers point, and those four channels
/// ahead.
#[rustfmt::skip]
macro_rules! channel {
    (
        ($load:literal, $multiply:literal, $element:literal),
        $x:literal, $weights:literal, $more_weights:literal, $ahead:literal, $more_ahead:literal
    ) => {
        concat!(
            "vmovups zmm24, zmmword ptr [rsi + ", $weights, "]\n",
            "vmovups zmm25, zmmword ptr [rsi + ", $more_weights, "]\n",
            "vmovups zmm26, zmmword ptr [r14 + ", $weights, "]\n",
            "vmovups zmm27, zmmword ptr [r14 + ", $more_weights, "]\n",
            row!($load, $multiply, concat!($element, " ptr [r8 + ", $x, "]"), "zmm0", "zmm1", "zmm12", "zmm13"),
            "prefetcht0 byte ptr [rsi + ", $ahead, "]\n",
            row!($load, $multiply, concat!($element, " ptr [r9 + ", $x, "]"), "zmm2", "zmm3", "zmm14", "zmm15"),
            "prefetcht0 byte ptr [rsi + ", $more_ahead, "]\n",
            row!($load, $multiply, concat!($element, " ptr [r10 + ", $x, "]"), "zmm4", "zmm5", "zmm16", "zmm17"),
            "prefetcht0 byte ptr [r14 + ", $ahead, "]\n",
            row!($load, $multiply, concat!($element, " ptr [r11 + ", $x, "]"), "zmm6", "zmm7", "zmm18", "zmm19"),
            "prefetcht0 byte ptr [r14 + ", $more_ahead, "]\n",
            row!($load, $multiply, concat!($element, " ptr [r12 + ", $x, "]"), "zmm8", "zmm9", "zmm20", "zmm21"),
            row!($load, $multiply, concat!($element, " ptr [r13 + ", $x, "]"), "zmm10", "zmm11", "zmm22", "zmm23"),
        )
    };
}

/// Moves on to the next row of outputs, if there is one.
#[rustfmt::skip]
macro_rules! next_outputs {
    ($size:literal) => {
        concat!(
            "lea rbx, [rdi + 8]\n",
            "cmp rbx, rdx\n",
            "cmovbe rdi, rbx\n",
            "mov rbx, qword ptr [rdi]\n",
            "lea rbx, [rax + ", $size, "*rbx]\n",
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
            "add rsi, ", $weights, "\n", "add r14, ", $weights, "\n", "add r15, ", $fetched, "\n",
        )
    };
}

macro_rules! accumulate {
    ($name:ident, $scalar:ty, $vector:ty, $words:tt, [$($x:literal)*], $eight:literal, $one:literal) => {
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
            accumulate!(@ $words, $eight, $one, $($x)*, one, other, rows, bytes, weights, fetch, outputs, channels)
        }
    };
    (
        @ $words:tt, $eight:literal, $one:literal,
        $x1:literal $x2:literal $x3:literal $x4:literal $x5:literal $x6:literal $x7:literal,
        $of_one:ident, $of_other:ident, $rows:ident, $bytes:ident, $weights:ident, $fetch:ident,
        $outputs:ident, $channels:ident
    ) => {
        // SAFETY: the caller vouches for what is read; the stack is left as it was found, and so is the register that may not be named.
        unsafe {
            asm!(
                "push rbx",
                point_at_row!("r8", 0),
                point_at_row!("r9", 8),
                point_at_row!("r10", 16),
                point_at_row!("r11", 24),
                point_at_row!("r12", 32),
                point_at_row!("r13", 40),
                "mov rdi, qword ptr [rax + 8]",
                "mov rdx, qword ptr [rax + 16]",
                "mov rax, qword ptr [rax]",
                "mov rbx, qword ptr [rdi]",
                concat!("lea rbx, [rax + ", $one, "*rbx]"),
                "sub rcx, 8",
                "jb 3f",
                "2:",
                "prefetcht1 byte ptr [r15 + 0]",
                channel!($words, 0, 0, 64, 512, 576),
                "prefetchw byte ptr [rbx]",
                channel!($words, $x1, 128, 192, 640, 704),
                "prefetcht1 byte ptr [r15 + 64]",
                channel!($words, $x2, 256, 320, 768, 832),
                "prefetchw byte ptr [rbx + 64]",
                channel!($words, $x3, 384, 448, 896, 960),
                "prefetcht1 byte ptr [r15 + 128]",
                channel!($words, $x4, 512, 576, 1024, 1088),
                "prefetchw byte ptr [rbx + 128]",
                channel!($words, $x5, 640, 704, 1152, 1216),
                "prefetcht1 byte ptr [r15 + 192]",
                channel!($words, $x6, 768, 832, 1280, 1344),
                "prefetchw byte ptr [rbx + 192]",
                channel!($words, $x7, 896, 960, 1408, 1472),
                next_outputs!($one),
                advance!($eight, 1024, 256),
                "sub rcx, 8",
                "jae 2b",
                "3:",
                "add rcx, 8",
                "jz 5f",
                "4:",
                channel!($words, 0, 0, 64, 512, 576),
                advance!($one, 128, 0),
                "sub rcx, 1",
                "jnz 4b",
                "5:",
                "pop rbx",
                inout("rsi") $weights[0] => _,
                inout("r14") $weights[1] => _,
                inout("r15") $fetch => _,
                inout("rcx") $channels => _,
                inout("rax") std::ptr::from_ref($outputs) => _,
                inout("rdi") $rows.as_ptr() => _,
                inout("rdx") $bytes => _,
                out("r8") _, out("r9") _, out("r10") _, out("r11") _, out("r12") _, out("r13") _,
                inout("zmm0") $of_one[0][0], inout("zmm1") $of_one[0][1],
                inout("zmm2") $of_one[1][0], inout("zmm3") $of_one[1][1],
                inout("zmm4") $of_one[2][0], inout("zmm5") $of_one[2][1],
                inout("zmm6") $of_one[3][0], inout("zmm7") $of_one[3][1],
                inout("zmm8") $of_one[4][0], inout("zmm9") $of_one[4][1],
                inout("zmm10") $of_one[5][0], inout("zmm11") $of_one[5][1],
                inout("zmm12") $of_other[0][0], inout("zmm13") $of_other[0][1],
                inout("zmm14") $of_other[1][0], inout("zmm15") $of_other[1][1],
                inout("zmm16") $of_other[2][0], inout("zmm17") $of_other[2][1],
                inout("zmm18") $of_other[3][0], inout("zmm19") $of_other[3][1],
                inout("zmm20") $of_other[4][0], inout("zmm21") $of_other[4][1],
                inout("zmm22") $of_other[5][0], inout("zmm23") $of_other[5][1],
                out("zmm24") _, out("zmm25") _, out("zmm26") _, out("zmm27") _, out("zmm28") _,
            );
        }
    };
}

accumulate!(
    accumulate_f32, f32, __m512, ("vbroadcastss", "vfmadd231ps", "dword"), [4 8 12 16 20 24 28], 32, 4
);
accumulate!(
    accumulate_f64, f64, __m512d, ("vbroadcastsd", "vfmadd231pd", "qword"), [8 16 24 32 40 48 56], 64, 8
);
