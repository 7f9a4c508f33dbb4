//! The inner loops of pixel tiles that have a single tap, instruction by instruction.
//!
//! As in the [loops of panels](super::panel_loop), whatever a channel costs has to fit beside its multiply-adds. Compilers broadcast
//! every weight by an instruction of its own and keep in memory what they count by: half as many instructions again. Here a third of the
//! weights are broadcast inside the multiply-adds, where loads leave room for it, and two channels are counted as one.
//!
//! | registers | |
//! |---|---|
//! | zmm0 … zmm27 | the sums, column by column |
//! | zmm28 … zmm30 | a channel's inputs |
//! | zmm31 | a weight in all lanes |

use std::arch::asm;
use std::arch::x86_64::{__m512, __m512d};

use crate::pixel::ChannelWalk;

/// The shapes of tiles that there are loops for: so many vectors, by at least so many columns.
pub(crate) const SHAPES: &[(usize, usize)] = &[(2, 7), (3, 5)];

/// One column of a channel: its number, how its weight comes to the multiply-adds, and the registers of the inputs and the sums.
#[rustfmt::skip]
macro_rules! of_column {
    (($load:literal, $multiply:literal, $element:literal, $size:literal, $all:literal), $number:literal loaded $($input:literal $sum:tt $of:literal)*) => {
        concat!(
            $load, " zmm31, ", $element, " ptr [{weights} + ", $number, "*", $size, "]\n",
            $($multiply, " ", $sum, ", ", $input, ", zmm31\n",)*
        )
    };
    (($load:literal, $multiply:literal, $element:literal, $size:literal, $all:literal), $number:literal in_place $($input:literal $sum:tt $of:literal)*) => {
        concat!(
            $($multiply, " ", $sum, ", ", $input, ", ", $element, " ptr [{weights} + ", $number, "*", $size, "]{{", $all, "}}\n",)*
        )
    };
}

/// Copies a vector of inputs, where channels are copied.
#[rustfmt::skip]
macro_rules! copied {
    (stays, $vector:literal, $before:literal) => { "" };
    (copied, $vector:literal, $before:literal) => { concat!("vmovups zmmword ptr [{copy} + ", $before, "], ", $vector, "\n") };
}

/// Moves on to where the next channel is copied to.
#[rustfmt::skip]
macro_rules! copy_moves {
    (stays) => { "" };
    (copied) => { "add {copy}, {copy_step}\n" };
}

/// One channel, whose inputs begin at some address. Two lines are brought near with it.
#[rustfmt::skip]
macro_rules! channel {
    ($words:tt, $at:literal, $copy:ident, [$($vector:literal $before:literal)*], [$(($($column:tt)*))*]) => {
        concat!(
            $("vmovups ", $vector, ", zmmword ptr [", $at, " + ", $before, "]\n",)*
            $(copied!($copy, $vector, $before),)*
            copy_moves!($copy),
            "prefetcht1 byte ptr [{ahead}]\n",
            "prefetcht1 byte ptr [{ahead} + {second}]\n",
            $(of_column!($words, $($column)*),)*
            "add {weights}, {weight_step}\n",
            "add {ahead}, {ahead_step}\n",
        )
    };
}

/// Adds the products of all channels.
macro_rules! multiply {
    (
        $sums:ident, $walk:ident, $words:tt, $copy:ident, $inputs:tt, ($($copy_operands:tt)*), ($($options:ident),*),
        [$(($number:literal $how:ident $($input:literal $register:tt $of:literal)*))*]
    ) => {
        asm!(
            "sub {left}, 2",
            "jb 3f",
            ".p2align 5",
            "2:",
            channel!($words, "{input}", $copy, $inputs, [$(($number $how $($input $register $of)*))*]),
            channel!($words, "{input} + {input_step}", $copy, $inputs, [$(($number $how $($input $register $of)*))*]),
            "lea {input}, [{input} + 2*{input_step}]",
            "sub {left}, 2",
            "jae 2b",
            "3:",
            "add {left}, 2",
            "jz 4f",
            channel!($words, "{input}", $copy, $inputs, [$(($number $how $($input $register $of)*))*]),
            "4:",
            input = inout(reg) $walk.input => _,
            input_step = in(reg) $walk.input_step,
            weights = inout(reg) $walk.weights => _,
            weight_step = in(reg) $walk.weight_step,
            ahead = inout(reg) $walk.ahead => _,
            second = in(reg) $walk.second,
            ahead_step = in(reg) $walk.ahead_step,
            left = inout(reg) $walk.channels => _,
            $($copy_operands)*
            $($(inout($register) $sums[$number][$of],)*)*
            out("zmm28") _, out("zmm29") _, out("zmm30") _, out("zmm31") _,
            options($($options),*),
        )
    };
}

/// Adds the products of all channels, if tiles have just these columns.
macro_rules! multiply_these {
    ($sums:ident, $walk:ident, $words:tt, $inputs:tt, [$(($number:literal $($column:tt)*))*]) => {
        if COLUMNS == [$($number),*].len() {
            if $walk.copy.is_null() {
                multiply!(
                    $sums, $walk, $words, stays, $inputs, (), (nostack, readonly),
                    [$(($number $($column)*))*]
                );
            } else {
                multiply!(
                    $sums, $walk, $words, copied, $inputs,
                    (copy = inout(reg) $walk.copy => _, copy_step = in(reg) size_of_val(&$sums[0]),), (nostack),
                    [$(($number $($column)*))*]
                );
            }
            return true;
        }
    };
}

/// The same for the columns in brackets, and for all of these and the next one, and so on.
macro_rules! multiply_any {
    ($sums:ident, $walk:ident, $words:tt, $inputs:tt, [$($columns:tt)*]) => {};
    ($sums:ident, $walk:ident, $words:tt, $inputs:tt, [$($columns:tt)*] $next:tt $($others:tt)*) => {
        multiply_these!($sums, $walk, $words, $inputs, [$($columns)* $next]);
        multiply_any!($sums, $walk, $words, $inputs, [$($columns)* $next] $($others)*);
    };
}

macro_rules! accumulate {
    ($name:ident, $scalar:ty, $vector:ty, $words:tt) => {
        /// Adds the products of all channels, if there is a loop for tiles of that shape. Returns whether there is.
        ///
        /// # Safety
        ///
        /// The CPU must have AVX-512. At every channel, inputs must be readable for all vectors and weights for all columns,
        /// and a copy must have room for the inputs.
        #[inline]
        #[target_feature(enable = "avx512f")]
        pub(crate) unsafe fn $name<const COLUMNS: usize, const VECTORS: usize>(
            sums: &mut [[$vector; VECTORS]; COLUMNS],
            walk: &ChannelWalk<$scalar>,
        ) -> bool {
            // SAFETY: the caller vouches for what is read and for the copy; the stack and other memory are left alone.
            unsafe {
                if VECTORS == 2 {
                    multiply_any!(
                        sums, walk, $words, ["zmm28" 0 "zmm29" 64],
                        [
                            (0 loaded "zmm28" "zmm0" 0 "zmm29" "zmm1" 1)
                            (1 in_place "zmm28" "zmm2" 0 "zmm29" "zmm3" 1)
                            (2 loaded "zmm28" "zmm4" 0 "zmm29" "zmm5" 1)
                            (3 loaded "zmm28" "zmm6" 0 "zmm29" "zmm7" 1)
                            (4 in_place "zmm28" "zmm8" 0 "zmm29" "zmm9" 1)
                            (5 loaded "zmm28" "zmm10" 0 "zmm29" "zmm11" 1)
                        ]
                        (6 loaded "zmm28" "zmm12" 0 "zmm29" "zmm13" 1)
                        (7 in_place "zmm28" "zmm14" 0 "zmm29" "zmm15" 1)
                        (8 loaded "zmm28" "zmm16" 0 "zmm29" "zmm17" 1)
                        (9 loaded "zmm28" "zmm18" 0 "zmm29" "zmm19" 1)
                        (10 in_place "zmm28" "zmm20" 0 "zmm29" "zmm21" 1)
                        (11 loaded "zmm28" "zmm22" 0 "zmm29" "zmm23" 1)
                        (12 loaded "zmm28" "zmm24" 0 "zmm29" "zmm25" 1)
                        (13 in_place "zmm28" "zmm26" 0 "zmm29" "zmm27" 1)
                    );
                }
                if VECTORS == 3 {
                    multiply_any!(
                        sums, walk, $words, ["zmm28" 0 "zmm29" 64 "zmm30" 128],
                        [
                            (0 loaded "zmm28" "zmm0" 0 "zmm29" "zmm1" 1 "zmm30" "zmm2" 2)
                            (1 in_place "zmm28" "zmm3" 0 "zmm29" "zmm4" 1 "zmm30" "zmm5" 2)
                            (2 loaded "zmm28" "zmm6" 0 "zmm29" "zmm7" 1 "zmm30" "zmm8" 2)
                            (3 loaded "zmm28" "zmm9" 0 "zmm29" "zmm10" 1 "zmm30" "zmm11" 2)
                        ]
                        (4 in_place "zmm28" "zmm12" 0 "zmm29" "zmm13" 1 "zmm30" "zmm14" 2)
                        (5 loaded "zmm28" "zmm15" 0 "zmm29" "zmm16" 1 "zmm30" "zmm17" 2)
                        (6 loaded "zmm28" "zmm18" 0 "zmm29" "zmm19" 1 "zmm30" "zmm20" 2)
                        (7 in_place "zmm28" "zmm21" 0 "zmm29" "zmm22" 1 "zmm30" "zmm23" 2)
                        (8 loaded "zmm28" "zmm24" 0 "zmm29" "zmm25" 1 "zmm30" "zmm26" 2)
                    );
                }
                false
            }
        }
    };
}

accumulate!(accumulate_f32, f32, __m512, ("vbroadcastss", "vfmadd231ps", "dword", 4, "1to16"));
accumulate!(accumulate_f64, f64, __m512d, ("vbroadcastsd", "vfmadd231pd", "qword", 8, "1to8"));

/// What [`Simd`](crate::simd::Simd) says of these loops, for one type.
macro_rules! accumulate_channels {
    ($accumulate:ident, $scalar:ty, $vector:ty) => {
        const CHANNEL_LOOPS: &[(usize, usize)] = super::pixel_loop::SHAPES;

        #[inline(always)]
        unsafe fn accumulate_channels<const COLUMNS: usize, const VECTORS: usize>(
            sums: &mut [[$vector; VECTORS]; COLUMNS],
            walk: &crate::pixel::ChannelWalk<$scalar>,
        ) -> bool {
            // SAFETY: handed on from the caller.
            unsafe { super::pixel_loop::$accumulate(sums, walk) }
        }
    };
}
pub(super) use accumulate_channels;
