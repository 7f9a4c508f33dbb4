//! Products of bytes by vectors, in the shape of matrix tiles: for CPUs that multiply bytes four to a sum, but have no tiles.
//!
//! The instruction takes unsigned inputs. Signed ones are copied with their highest bit turned over, which adds
//! [`SIGNED_OFFSET`]; the engine subtracts it as it does a zero point.

use std::arch::x86_64::*;

use super::finish::Requantized;
use super::{byte_rows, finish};
use crate::fetch::fetch;
use crate::matrix::{
    BYTE_ROW, Begin, ByteBlockKernels, ByteKernels, FETCHED_BY_STEP, FinishedRows, MatrixBlock,
    MatrixKernels, MatrixStep, RequantizeKernels, TILE_ROWS,
};
use crate::quantize::Requantization;

/// What is added to signed inputs.
const SIGNED_OFFSET: u8 = 0x80;

/// Bytes of a vector: four channels of 16 columns.
const VECTOR: usize = 64;

/// Channels that an instruction multiplies.
const CHANNELS: usize = 4;

/// Bytes of the weights of a tile of columns.
const TILE_BYTES: usize = BYTE_ROW / CHANNELS * VECTOR;

/// Products of four channels in a row.
const UNROLL: usize = 2;

/// Steps whose weights stay in the first-level cache while all rows of a block pass by.
const NEAR_STEPS: usize = 8;

/// Computes the rows of a block of `ROW_TILES` by `COLUMN_TILES` tiles that are used, so many at once.
///
/// # Safety
///
/// The CPU must have AVX-512 with VNNI, and all that the block names must be readable or writable.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn multiply<
    const ROW_TILES: usize,
    const COLUMN_TILES: usize,
    const ROWS: usize,
    const FEW_ROWS: usize,
>(
    block: &MatrixBlock<'_>,
    _held: *mut f32,
) {
    if !block.fetch.is_null() {
        for line in 0..block.steps.len() * FETCHED_BY_STEP * size_of::<u16>() / VECTOR {
            fetch(block.fetch.cast::<u8>().wrapping_add(line * VECTOR));
        }
    }
    // Not by `chunks`: without steps, sums are still what they begin with.
    let (mut steps, mut rest) = block.steps.split_at(block.steps.len().min(NEAR_STEPS));
    let mut begin = block.begin;
    loop {
        for tile in 0..ROW_TILES {
            let used = usize::from(block.used[tile]);
            for row in (0..used).step_by(ROWS) {
                // SAFETY: the caller vouches for the instruction set and for all that the block names.
                unsafe {
                    if used - row <= FEW_ROWS {
                        multiply_rows::<COLUMN_TILES, FEW_ROWS>(block, (tile, row), begin, steps);
                    } else {
                        multiply_rows::<COLUMN_TILES, ROWS>(block, (tile, row), begin, steps);
                    }
                }
            }
        }
        if rest.is_empty() {
            return;
        }
        (steps, rest) = rest.split_at(rest.len().min(NEAR_STEPS));
        begin = Begin::Sums;
    }
}

/// Some steps of the rows of a tile from one on.
///
/// # Safety
///
/// As [`multiply`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn multiply_rows<const COLUMN_TILES: usize, const ROWS: usize>(
    block: &MatrixBlock<'_>,
    (tile, row): (usize, usize),
    begin: Begin<'_>,
    steps: &[MatrixStep],
) {
    let inputs = block.rows[tile].cast::<u8>().wrapping_add(row * BYTE_ROW);
    let out = block.out.wrapping_add((tile * TILE_ROWS + row) * COLUMN_TILES * TILE_ROWS).cast::<__m512i>();
    let mut sums = [[_mm512_setzero_si512(); COLUMN_TILES]; ROWS];
    // SAFETY: the caller vouches for the steps' inputs and weights, and for the output.
    unsafe {
        let (begins, pitch) = match begin {
            Begin::Zeros => (out.cast_const(), 0),
            Begin::Columns(values) => (values.as_ptr().cast(), 0),
            Begin::Sums => (out.cast_const(), COLUMN_TILES),
        };
        if !matches!(begin, Begin::Zeros) {
            for (row, sums) in sums.iter_mut().enumerate() {
                for (column, sum) in sums.iter_mut().enumerate() {
                    *sum = begins.add(row * pitch + column).read_unaligned();
                }
            }
        }
        for step in steps {
            let inputs = inputs.wrapping_offset(step.input);
            let weights = step.weights.cast::<u8>();
            for first in (0..BYTE_ROW / CHANNELS).step_by(UNROLL) {
                // As many without a look at how many are left.
                for quad in first..first + UNROLL {
                    let mut columns = [_mm512_setzero_si512(); COLUMN_TILES];
                    for (column, weights_of_column) in columns.iter_mut().enumerate() {
                        let from = weights.add(column * TILE_BYTES + quad * VECTOR);
                        *weights_of_column = _mm512_loadu_si512(from.cast());
                    }
                    for (row, sums) in sums.iter_mut().enumerate() {
                        let input = inputs.add(row * BYTE_ROW + quad * CHANNELS).cast::<i32>();
                        let input = _mm512_set1_epi32(input.read_unaligned());
                        for (sum, &weights) in sums.iter_mut().zip(&columns) {
                            *sum = _mm512_dpbusd_epi32(*sum, input, weights);
                        }
                    }
                }
            }
        }
        for (row, sums) in sums.iter().enumerate() {
            for (column, &sum) in sums.iter().enumerate() {
                out.add(row * COLUMN_TILES + column).write_unaligned(sum);
            }
        }
    }
}

/// One after the other: both are vectors' work.
///
/// # Safety
///
/// As [`multiply`] and [`Requantized::requantize`].
unsafe fn multiply_and_requantize<
    const ROW_TILES: usize,
    const COLUMN_TILES: usize,
    const ROWS: usize,
    const FEW_ROWS: usize,
    Q: Requantized,
>(
    blocks: &[MatrixBlock<'_>],
    held: *mut f32,
    from: &FinishedRows<'_>,
    to: &Requantization<'_>,
    target: *mut u8,
    stream: bool,
) -> bool {
    // SAFETY: handed on from the caller.
    unsafe {
        for block in blocks {
            multiply::<ROW_TILES, COLUMN_TILES, ROWS, FEW_ROWS>(block, held);
        }
        finish::requantize_now::<Q>(from, to, target, stream)
    }
}

/// The kernels of a shape.
const fn of_shape<
    const ROW_TILES: usize,
    const COLUMN_TILES: usize,
    const ROWS: usize,
    const FEW_ROWS: usize,
>() -> ByteBlockKernels {
    ByteBlockKernels {
        multiply: multiply::<ROW_TILES, COLUMN_TILES, ROWS, FEW_ROWS>,
        and_requantize: RequantizeKernels {
            i8: multiply_and_requantize::<ROW_TILES, COLUMN_TILES, ROWS, FEW_ROWS, i8>,
            u8: multiply_and_requantize::<ROW_TILES, COLUMN_TILES, ROWS, FEW_ROWS, u8>,
            f32: multiply_and_requantize::<ROW_TILES, COLUMN_TILES, ROWS, FEW_ROWS, f32>,
        },
    }
}

/// There is nothing to prepare or to give back.
unsafe fn nothing() {}

/// All of it as a table.
pub(crate) const KERNELS: MatrixKernels = MatrixKernels {
    configure: nothing,
    release: nothing,
    store_held: None,
    parts: None,
    bytes: ByteKernels {
        blocks: [[of_shape::<4, 1, 16, 8>(), of_shape::<2, 2, 8, 4>()]; 2],
        copy_rows: [byte_rows::copy_rows::<0>, byte_rows::copy_rows::<SIGNED_OFFSET>],
        turn_rows: [byte_rows::turn_rows::<0>, byte_rows::turn_rows::<SIGNED_OFFSET>],
        signed_offset: SIGNED_OFFSET,
        requantize: byte_rows::requantize,
        requantize_to: finish::REQUANTIZE,
        turn_to: finish::TURN,
    },
    range_of: finish::range_of,
};
