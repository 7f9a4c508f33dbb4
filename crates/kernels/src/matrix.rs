//! Products of matrices in tiles of 16 × 16 sums, for numbers cut into 16-bit *parts*: one of a bf16, two of an f16, three
//! of an f32.
//!
//! Of each number `x = x₁ + x₂ + x₃`, 8 bits of significand a part, the products `x₁y₁, x₁y₂, x₂y₁, x₂y₂, x₁y₃, x₃y₁` are
//! summed as far as there are such parts; what is left out is below the rounding of a single 32-bit product. A tile
//! instruction rounds its running sum once per 32 channels and product, so that the error is below that of plain
//! summation. It takes numbers near zero for zero, hence the two bounds below.

use outstride_spec::DType;

use crate::storage::Source;

/// Channels of a row of a tile.
pub const PART_ROW: usize = 32;

/// Channels of a row of a tile of bytes.
pub const BYTE_ROW: usize = 2 * PART_ROW;

/// Rows of a tile.
pub const TILE_ROWS: usize = 16;

/// Parts of a 32-bit number: the most there are.
pub const PARTS: usize = 3;

/// How many products of parts make up the product of two numbers.
pub fn products_of_parts(parts: usize) -> usize {
    match parts {
        1 => 1,
        2 => 4,
        _ => 6,
    }
}

/// How many parts hold all of a value of a type.
pub fn parts_of_dtype(dtype: DType) -> usize {
    match dtype {
        DType::Bf16 | DType::I8 | DType::U8 => 1,
        DType::F16 => 2,
        _ => PARTS,
    }
}

/// The type whose values so many parts hold.
pub fn dtype_of_parts(parts: usize) -> DType {
    match parts {
        1 => DType::Bf16,
        2 => DType::F16,
        _ => DType::F32,
    }
}

/// Numbers below this, other than zero, have parts or products of parts that tiles may take for zero.
pub const TINY: f32 = 1.0 / (1u64 << 40) as f32;

/// Sums above this do not feel what tiles took for zero.
pub const VANISHING: f32 = TINY / (1 << 24) as f32;

/// A product of tiles: 32 channels of some positions by the weights of these channels.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MatrixStep {
    /// From a block's rows to the inputs, in bytes.
    pub input: isize,
    /// `[part][tile of columns][pair of channels][column][channel of the pair]`
    pub weights: *const u16,
}

/// Elements that a step brings near.
pub const FETCHED_BY_STEP: usize = 256;

/// Sums to compute: two tiles of rows by two of columns, or four by one.
#[derive(Clone, Copy, Debug)]
pub struct MatrixBlock<'a> {
    /// The first row of every tile of rows, to which the steps' distances are added. The 16 rows of a tile follow each
    /// other, [`PART_ROW`] channels each.
    pub rows: [*const u16; 4],
    /// From a part of the inputs to the next.
    pub part_stride: usize,
    /// Summed in this order.
    pub steps: &'a [MatrixStep],
    /// What will be read soon: [`FETCHED_BY_STEP`] elements a step from here on are brought near, wherever they lie.
    pub fetch: *const u16,
    /// `[tile of rows][row][column]`
    pub out: *mut f32,
    /// Whether `out` holds sums to add to.
    pub resume: bool,
}

/// The functions that work on tiles.
#[derive(Clone, Copy)]
pub(crate) struct MatrixKernels {
    pub(crate) configure: unsafe fn(),
    pub(crate) release: unsafe fn(),
    /// By parts and by tiles of columns, each less one.
    pub(crate) blocks: [[unsafe fn(&MatrixBlock<'_>); 2]; PARTS],
    /// Of bytes: by whether inputs are signed, and by tiles of columns, less one.
    pub(crate) byte_blocks: [[unsafe fn(&MatrixBlock<'_>); 2]; 2],
    /// By parts, less one.
    pub(crate) split: [SplitKernel; PARTS],
    pub(crate) copy_rows: CopyKernel,
    pub(crate) turn_rows: unsafe fn(*const u16, &[isize], usize, *mut u16, usize) -> bool,
    pub(crate) copy_byte_rows: unsafe fn(*const u8, isize, usize, usize, *mut u16, usize),
    pub(crate) turn_byte_rows: unsafe fn(*const u8, &[isize], usize, *mut u16, usize),
    pub(crate) integers_to_reals: unsafe fn(&mut [f32], &[i32]),
    pub(crate) are_sound: unsafe fn(&[f32], bool) -> bool,
    pub(crate) add_bias: unsafe fn(&mut [f32], &[f32]) -> bool,
}

/// See [`MatrixSession::copy_rows`].
pub(crate) type CopyKernel = unsafe fn(*const u16, isize, usize, usize, *mut u16, usize) -> bool;

/// See [`MatrixSession::split`].
pub(crate) type SplitKernel = unsafe fn(*const f32, usize, *mut u16, usize) -> bool;

/// Cuts a number into parts, rounding each to the nearest 16-bit float.
pub fn parts(value: f32) -> [u16; PARTS] {
    let mut rest = value;
    std::array::from_fn(|_| {
        let bits = rest.to_bits();
        let rounded = if rest.is_finite() {
            bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16
        } else {
            // Neither infinity nor NaN may become anything else.
            bits >> 16 | u32::from(rest.is_nan()) << 6
        };
        rest -= f32::from_bits(rounded << 16);
        rounded as u16
    })
}

/// Memory for rows of [`PART_ROW`] channels.
#[derive(Debug)]
pub struct PartRows<'a> {
    /// From the first row on.
    pub memory: &'a mut [u16],
    /// From a row to the next.
    pub pitch: usize,
}

impl PartRows<'_> {
    /// Whether there is room for so many rows.
    fn hold(&self, rows: usize) -> bool {
        rows == 0 || self.memory.len() >= (rows - 1) * self.pitch + PART_ROW
    }
}

/// This thread's tiles, ready for use. Gives them back when dropped.
pub struct MatrixSession {
    kernels: MatrixKernels,
    /// Tiles belong to a thread.
    not_send: std::marker::PhantomData<*const ()>,
}

impl MatrixSession {
    /// # Safety
    ///
    /// The CPU must have what the kernels need.
    pub(crate) unsafe fn new(kernels: MatrixKernels) -> Self {
        // SAFETY: the caller vouches for it.
        unsafe { (kernels.configure)() };
        MatrixSession { kernels, not_send: std::marker::PhantomData }
    }

    /// Cuts rows of [`PART_ROW`] numbers into so many parts, `[part][row][channel]` with `stride` elements from part to
    /// part. Returns whether a number other than zero was [tiny](TINY).
    ///
    /// # Panics
    ///
    /// If the target is too short, or there are not that many parts.
    pub fn split(&self, parts: usize, source: &[f32], target: &mut [u16], stride: usize) -> bool {
        let rows = source.len() / PART_ROW;
        assert!(rows == 0 || target.len() >= (parts - 1) * stride + rows * PART_ROW);
        // SAFETY: the session has the instructions; the target was just checked.
        unsafe { (self.kernels.split[parts - 1])(source.as_ptr(), rows, target.as_mut_ptr(), stride) }
    }

    /// Copies bf16 inputs, which are parts as they are, to rows of [`PART_ROW`] channels: at each of `count` positions,
    /// `stride` elements apart from index `first` on, `channels` channels side by side, and zeros behind them. Returns
    /// whether a number other than zero was [tiny](TINY).
    ///
    /// # Panics
    ///
    /// If the source is not bf16, an element would lie outside it, or the target is too short.
    pub fn copy_rows(
        &self,
        source: &Source<'_, f32>,
        first: isize,
        stride: isize,
        count: usize,
        channels: usize,
        target: PartRows<'_>,
    ) -> bool {
        assert!(channels <= PART_ROW && target.hold(count));
        let last = first + (count.max(1) as isize - 1) * stride;
        let from = source.bf16_run(first.min(last), first.max(last), if count == 0 { 0 } else { channels });
        let from = from.wrapping_offset(first - first.min(last));
        // SAFETY: the session has the instructions; the positions between the first and the last lie between them, and
        // the target was just checked.
        unsafe {
            (self.kernels.copy_rows)(from, stride, count, channels, target.memory.as_mut_ptr(), target.pitch)
        }
    }

    /// As [`copy_rows`](Self::copy_rows), where positions are side by side, and channels at some distances from the
    /// first.
    ///
    /// # Panics
    ///
    /// As [`copy_rows`](Self::copy_rows).
    pub fn turn_rows(
        &self,
        source: &Source<'_, f32>,
        first: isize,
        distances: &[isize],
        count: usize,
        target: PartRows<'_>,
    ) -> bool {
        assert!(distances.len() <= PART_ROW && target.hold(count));
        let least = distances.iter().copied().min().unwrap_or(0);
        let most = distances.iter().copied().max().unwrap_or(0);
        let from = source.bf16_run(first + least, first + most, if distances.is_empty() { 0 } else { count });
        let from = from.wrapping_offset(-least);
        // SAFETY: the session has the instructions; all channels lie between the first and the last, and the target was
        // just checked.
        unsafe { (self.kernels.turn_rows)(from, distances, count, target.memory.as_mut_ptr(), target.pitch) }
    }

    /// As [`copy_rows`](Self::copy_rows), for bytes in rows of [`BYTE_ROW`].
    ///
    /// # Panics
    ///
    /// As [`copy_rows`](Self::copy_rows).
    pub fn copy_byte_rows(
        &self,
        source: &Source<'_, f32>,
        first: isize,
        stride: isize,
        count: usize,
        channels: usize,
        target: PartRows<'_>,
    ) {
        assert!(channels <= BYTE_ROW && target.hold(count));
        let last = first + (count.max(1) as isize - 1) * stride;
        let from = source.byte_run(first.min(last), first.max(last), if count == 0 { 0 } else { channels });
        let from = from.wrapping_offset(first - first.min(last));
        let memory = target.memory.as_mut_ptr();
        // SAFETY: as for `copy_rows`.
        unsafe { (self.kernels.copy_byte_rows)(from, stride, count, channels, memory, target.pitch) }
    }

    /// As [`turn_rows`](Self::turn_rows), for bytes in rows of [`BYTE_ROW`].
    ///
    /// # Panics
    ///
    /// As [`turn_rows`](Self::turn_rows).
    pub fn turn_byte_rows(
        &self,
        source: &Source<'_, f32>,
        first: isize,
        distances: &[isize],
        count: usize,
        target: PartRows<'_>,
    ) {
        assert!(distances.len() <= BYTE_ROW && target.hold(count));
        let least = distances.iter().copied().min().unwrap_or(0);
        let most = distances.iter().copied().max().unwrap_or(0);
        let from = source.byte_run(first + least, first + most, if distances.is_empty() { 0 } else { count });
        let from = from.wrapping_offset(-least);
        // SAFETY: as for `turn_rows`.
        unsafe {
            (self.kernels.turn_byte_rows)(from, distances, count, target.memory.as_mut_ptr(), target.pitch)
        }
    }

    /// As [`multiply`](Self::multiply), for bytes: the sums are integers of 32 bits.
    ///
    /// # Safety
    ///
    /// As [`multiply`](Self::multiply).
    pub unsafe fn multiply_bytes(&self, signed: bool, column_tiles: usize, block: &MatrixBlock<'_>) {
        // SAFETY: as for `multiply`.
        unsafe { (self.kernels.byte_blocks[usize::from(signed)][column_tiles - 1])(block) }
    }

    /// Makes floats of the integers that [`multiply_bytes`](Self::multiply_bytes) left, less a value per column.
    pub fn integers_to_reals(&self, sums: &mut [f32], less: &[i32]) {
        // SAFETY: the session has the instructions.
        unsafe { (self.kernels.integers_to_reals)(sums, less) }
    }

    /// Computes a block of numbers in so many parts, with so many tiles of columns (1 or 2).
    ///
    /// # Safety
    ///
    /// Every step's inputs and weights must be readable at all tiles and parts, and `out` writable for four tiles. No
    /// other session of this thread may have ended since this one began: it gave the thread's tiles back.
    pub unsafe fn multiply(&self, parts: usize, column_tiles: usize, block: &MatrixBlock<'_>) {
        // SAFETY: the session has the instructions, and configured the tiles; the caller vouches for the rest.
        unsafe { (self.kernels.blocks[parts - 1][column_tiles - 1])(block) }
    }

    /// Does nothing but products of tiles in the first-level cache, `rounds` times eight steps, and returns how many
    /// operations on whole numbers of a type that was.
    pub(crate) fn probe(&self, dtype: DType, rounds: usize) -> u128 {
        const STEPS: usize = 8;
        let part_stride = 2 * TILE_ROWS * PART_ROW;
        let inputs = vec![0u16; PARTS * part_stride];
        let weights = vec![0u16; PARTS * part_stride];
        let mut out = vec![0.0f32; 4 * TILE_ROWS * TILE_ROWS];
        let steps = [MatrixStep { input: 0, weights: weights.as_ptr() }; STEPS];
        let second = inputs[TILE_ROWS * PART_ROW..].as_ptr();
        let block = MatrixBlock {
            rows: [inputs.as_ptr(), second, second, second],
            part_stride,
            steps: &steps,
            fetch: weights.as_ptr(),
            out: out.as_mut_ptr(),
            resume: true,
        };
        for _ in 0..rounds {
            // SAFETY: inputs and weights have all parts of two tiles, and there is room for four tiles of sums.
            unsafe {
                match dtype {
                    DType::I8 | DType::U8 => self.multiply_bytes(dtype == DType::I8, 2, &block),
                    _ => self.multiply(parts_of_dtype(dtype), 2, &block),
                }
            }
        }
        let sums = (4 * TILE_ROWS * TILE_ROWS) as u128;
        let channels = if matches!(dtype, DType::I8 | DType::U8) { BYTE_ROW } else { PART_ROW };
        2 * sums * (channels * STEPS * rounds) as u128
    }

    /// Whether all sums are finite and, if there were tiny inputs, none [vanishes](VANISHING).
    pub fn are_sound(&self, sums: &[f32], tiny_inputs: bool) -> bool {
        // SAFETY: the session has the instructions.
        unsafe { (self.kernels.are_sound)(sums, tiny_inputs) }
    }

    /// Adds the bias to rows as long as it. Returns whether all results are finite.
    pub fn add_bias(&self, sums: &mut [f32], bias: &[f32]) -> bool {
        // SAFETY: the session has the instructions.
        unsafe { (self.kernels.add_bias)(sums, bias) }
    }
}

impl Drop for MatrixSession {
    fn drop(&mut self) {
        // SAFETY: whoever made the session vouched for the instructions.
        unsafe { (self.kernels.release)() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up() {
        for value in [0.0, 1.0, -1.0 / 3.0, std::f32::consts::PI, 1e-12, 3.0e38, 16_777_215.0, -0.1] {
            let sum: f64 =
                parts(value).map(|part| f64::from(f32::from_bits(u32::from(part) << 16))).iter().sum();
            assert_eq!(sum, f64::from(value));
        }
        assert!(f32::from_bits(u32::from(parts(f32::NAN)[0]) << 16).is_nan());
        assert_eq!(f32::from_bits(u32::from(parts(f32::NEG_INFINITY)[0]) << 16), f32::NEG_INFINITY);
    }
}
