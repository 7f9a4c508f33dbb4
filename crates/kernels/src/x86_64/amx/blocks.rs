//! Sums of products of tiles, each kernel one block of assembly.

use std::arch::asm;

use crate::matrix::{FETCHED_BY_STEP, MatrixBlock, MatrixStep, PART_ROW};

// What the assembly relies on.
const _: () = assert!(size_of::<MatrixStep>() == 16 && PART_ROW == 32 && FETCHED_BY_STEP == 256);

/// Begins four tiles of sums.
macro_rules! zero_sums {
    () => {
        "tilezero tmm0
         tilezero tmm1
         tilezero tmm2
         tilezero tmm3"
    };
}

/// Brings [`FETCHED_BY_STEP`](crate::matrix::FETCHED_BY_STEP) elements near.
macro_rules! fetch {
    () => {
        "prefetcht1 [{fetch}]
         prefetcht1 [{fetch} + 64]
         prefetcht1 [{fetch} + 128]
         prefetcht1 [{fetch} + 192]
         prefetcht1 [{fetch} + 256]
         prefetcht1 [{fetch} + 320]
         prefetcht1 [{fetch} + 384]
         prefetcht1 [{fetch} + 448]
         add {fetch}, 512"
    };
}

/// Four products of the current inputs and weights.
macro_rules! square {
    () => {
        square!("tdpbf16ps")
    };
    ($product:literal) => {
        concat!(
            $product,
            " tmm0, tmm4, tmm6\n",
            $product,
            " tmm1, tmm4, tmm7\n",
            $product,
            " tmm2, tmm5, tmm6\n",
            $product,
            " tmm3, tmm5, tmm7"
        )
    };
}

/// Two tiles of rows by two of columns, given how a step's products are made.
macro_rules! two_by_two {
    ($name:ident, $parts:literal: $($products:expr),* $(,)?) => {
        /// # Safety
        ///
        /// Tiles must be configured, and all that the block names readable or writable.
        pub(super) unsafe fn $name(block: &MatrixBlock<'_>) {
            // One part has no next one.
            let part_bytes = if $parts > 1 { block.part_stride * size_of::<u16>() } else { 0 };
            let (begin, begin_row, begin_tile) = block.begin(128, 2048);
            // SAFETY: the caller vouches for all of it. Inputs and weights are read 16 rows of 64 bytes at a time.
            unsafe {
                asm!(
                    "test {offset}, {offset}",
                    "jnz 2f",
                    zero_sums!(),
                    "jmp 3f",
                    "2:",
                    "tileloadd tmm0, [{offset} + {first}]",
                    "tileloadd tmm1, [{offset} + {first} + 64]",
                    "add {offset}, {second}",
                    "tileloadd tmm2, [{offset} + {first}]",
                    "tileloadd tmm3, [{offset} + {first} + 64]",
                    "3:",
                    "test {count}, {count}",
                    "jz 5f",
                    "4:",
                    "mov {offset}, [{step}]",
                    "mov {weights}, [{step} + 8]",
                    "lea {first}, [{rows0} + {offset}]",
                    "lea {second}, [{rows1} + {offset}]",
                    $($products,)*
                    "add {step}, 16",
                    "dec {count}",
                    "jnz 4b",
                    "5:",
                    "lea {first}, [{out} + 2048]",
                    "tilestored [{out} + {pitch}], tmm0",
                    "tilestored [{out} + {pitch} + 64], tmm1",
                    "tilestored [{first} + {pitch}], tmm2",
                    "tilestored [{first} + {pitch} + 64], tmm3",
                    out = in(reg) block.out,
                    pitch = in(reg) 128usize,
                    row = in(reg) 64usize,
                    rows0 = in(reg) block.rows[0],
                    rows1 = in(reg) block.rows[1],
                    part = in(reg) part_bytes,
                    step = inout(reg) block.steps.as_ptr() => _,
                    count = inout(reg) block.steps.len() => _,
                    fetch = inout(reg) block.fetch => _,
                    offset = inout(reg) begin => _,
                    weights = out(reg) _,
                    first = inout(reg) begin_row => _,
                    second = inout(reg) begin_tile => _,
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack),
                );
            }
        }
    };
}

two_by_two! {
    two_by_two_halves, 2:
    "tileloadd tmm6, [{weights} + {row} + 2048]",
    "tileloadd tmm7, [{weights} + {row} + 3072]",
    "tileloadd tmm4, [{first} + {row}]",
    "tileloadd tmm5, [{second} + {row}]",
    square!(),
    "add {first}, {part}",
    "add {second}, {part}",
    "tileloadd tmm4, [{first} + {row}]",
    "tileloadd tmm5, [{second} + {row}]",
    square!(),
    "tileloadd tmm6, [{weights} + {row} + 0]",
    "tileloadd tmm7, [{weights} + {row} + 1024]",
    fetch!(),
    square!(),
    "lea {first}, [{rows0} + {offset}]",
    "lea {second}, [{rows1} + {offset}]",
    "tileloadd tmm4, [{first} + {row}]",
    "tileloadd tmm5, [{second} + {row}]",
    square!(),
}

two_by_two! {
    two_by_two_thirds, 3:
    "tileloadd tmm6, [{weights} + {row} + 4096]",
    "tileloadd tmm4, [{first} + {row}]",
    "tileloadd tmm7, [{weights} + {row} + 5120]",
    "tileloadd tmm5, [{second} + {row}]",
    square!(),
    "tileloadd tmm6, [{weights} + {row} + 2048]",
    "tileloadd tmm7, [{weights} + {row} + 3072]",
    square!(),
    "add {first}, {part}",
    "add {second}, {part}",
    "tileloadd tmm4, [{first} + {row}]",
    "tileloadd tmm5, [{second} + {row}]",
    square!(),
    "tileloadd tmm6, [{weights} + {row}]",
    "tileloadd tmm7, [{weights} + {row} + 1024]",
    square!(),
    "add {first}, {part}",
    "add {second}, {part}",
    "tileloadd tmm4, [{first} + {row}]",
    "tileloadd tmm5, [{second} + {row}]",
    fetch!(),
    square!(),
    "lea {first}, [{rows0} + {offset}]",
    "lea {second}, [{rows1} + {offset}]",
    "tileloadd tmm4, [{first} + {row}]",
    "tileloadd tmm5, [{second} + {row}]",
    square!(),
}

/// The current part of four tiles of rows by the current weights.
macro_rules! column {
    () => {
        column!("tdpbf16ps")
    };
    ($product:literal) => {
        concat!(
            "lea {first}, [{rows0} + {offset}]
             tileloadd tmm4, [{first} + {row}]\n",
            $product,
            " tmm0, tmm4, tmm6
             lea {first}, [{rows1} + {offset}]
             tileloadd tmm5, [{first} + {row}]\n",
            $product,
            " tmm1, tmm5, tmm6
             lea {first}, [{rows2} + {offset}]
             tileloadd tmm4, [{first} + {row}]\n",
            $product,
            " tmm2, tmm4, tmm6
             lea {first}, [{rows3} + {offset}]
             tileloadd tmm5, [{first} + {row}]\n",
            $product,
            " tmm3, tmm5, tmm6"
        )
    };
}

/// Four tiles of rows by one of columns, given how a step's products are made.
macro_rules! four_by_one {
    ($name:ident, $parts:literal: $($products:expr),* $(,)?) => {
        /// # Safety
        ///
        /// Tiles must be configured, and all that the block names readable or writable.
        pub(super) unsafe fn $name(block: &MatrixBlock<'_>) {
            // One part has no next one.
            let part_bytes = if $parts > 1 { block.part_stride * size_of::<u16>() } else { 0 };
            let (begin, begin_row, begin_tile) = block.begin(64, 1024);
            // SAFETY: the caller vouches for all of it. Inputs and weights are read 16 rows of 64 bytes at a time.
            unsafe {
                asm!(
                    "test {offset}, {offset}",
                    "jnz 2f",
                    zero_sums!(),
                    "jmp 3f",
                    "2:",
                    "tileloadd tmm0, [{offset} + {first}]",
                    "add {offset}, {weights}",
                    "tileloadd tmm1, [{offset} + {first}]",
                    "add {offset}, {weights}",
                    "tileloadd tmm2, [{offset} + {first}]",
                    "add {offset}, {weights}",
                    "tileloadd tmm3, [{offset} + {first}]",
                    "3:",
                    "test {count}, {count}",
                    "jz 5f",
                    "4:",
                    "mov {offset}, [{step}]",
                    "mov {weights}, [{step} + 8]",
                    $($products,)*
                    "add {step}, 16",
                    "dec {count}",
                    "jnz 4b",
                    "5:",
                    "tilestored [{out} + {row}], tmm0",
                    "tilestored [{out} + {row} + 1024], tmm1",
                    "tilestored [{out} + {row} + 2048], tmm2",
                    "tilestored [{out} + {row} + 3072], tmm3",
                    out = in(reg) block.out,
                    row = in(reg) 64usize,
                    rows0 = in(reg) block.rows[0],
                    rows1 = in(reg) block.rows[1],
                    rows2 = in(reg) block.rows[2],
                    rows3 = in(reg) block.rows[3],
                    part = in(reg) part_bytes,
                    step = inout(reg) block.steps.as_ptr() => _,
                    count = inout(reg) block.steps.len() => _,
                    fetch = inout(reg) block.fetch => _,
                    offset = inout(reg) begin => _,
                    weights = inout(reg) begin_tile => _,
                    first = inout(reg) begin_row => _,
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack),
                );
            }
        }
    };
}

four_by_one! {
    four_by_one_halves, 2:
    "tileloadd tmm6, [{weights} + {row} + 1024]",
    column!(),
    "add {offset}, {part}",
    column!(),
    "tileloadd tmm6, [{weights} + {row} + 0]",
    column!(),
    "mov {offset}, [{step}]",
    fetch!(),
    column!(),
}

four_by_one! {
    four_by_one_thirds, 3:
    "tileloadd tmm6, [{weights} + {row} + 2048]",
    column!(),
    "tileloadd tmm6, [{weights} + {row} + 1024]",
    column!(),
    "add {offset}, {part}",
    column!(),
    "tileloadd tmm6, [{weights} + {row}]",
    column!(),
    "add {offset}, {part}",
    column!(),
    "mov {offset}, [{step}]",
    fetch!(),
    column!(),
}

/// Both shapes for numbers of one part, given the instruction that multiplies tiles of them.
macro_rules! of_one_part {
    ($two_by_two:ident, $four_by_one:ident, $product:literal) => {
        two_by_two! {
            $two_by_two, 1:
            // There is no next part, but the register is an operand all the same.
            "/* {part} */",
            "tileloadd tmm6, [{weights} + {row} + 0]",
            "tileloadd tmm7, [{weights} + {row} + 1024]",
            "tileloadd tmm4, [{first} + {row}]",
            "tileloadd tmm5, [{second} + {row}]",
            fetch!(),
            square!($product),
        }

        four_by_one! {
            $four_by_one, 1:
            "/* {part} */",
            "tileloadd tmm6, [{weights} + {row} + 0]",
            fetch!(),
            column!($product),
        }
    };
}

of_one_part!(two_by_two_whole, four_by_one_whole, "tdpbf16ps");
of_one_part!(two_by_two_unsigned, four_by_one_unsigned, "tdpbusd");
of_one_part!(two_by_two_signed, four_by_one_signed, "tdpbssd");
