//! Products of matrices in tiles of 16 × 16 sums, for numbers cut into 16-bit *parts*: one of a bf16, two of an f16, three
//! of an f32. Some CPUs have tiles for f16 as they are.
//!
//! Of each number `x = x₁ + x₂ + x₃`, 8 bits of significand a part, the products `x₁y₁, x₁y₂, x₂y₁, x₂y₂, x₁y₃, x₃y₁` are
//! summed as far as there are such parts; what is left out is below the rounding of a single 32-bit product. A tile
//! instruction rounds its running sum once per 32 channels and product, so that the error is below that of plain
//! summation. It takes numbers near zero for zero, hence the two bounds below.

mod pieces;
mod session;

use outstride_spec::DType;

pub(crate) use pieces::PARTS;
pub use pieces::Pieces;
pub use session::{MatrixSession, RowsTarget};

use crate::quantize::Requantization;

/// Channels of a row of a tile.
pub const PART_ROW: usize = 32;

/// Channels of a row of a tile of bytes.
pub const BYTE_ROW: usize = 2 * PART_ROW;

/// Rows of a tile.
pub const TILE_ROWS: usize = 16;

fn are_bytes(dtype: DType) -> bool {
    matches!(dtype, DType::I8 | DType::U8)
}

/// Numbers below this, other than zero, have parts or products of parts that tiles may take for zero.
pub const TINY: f32 = 1.0 / (1u64 << 40) as f32;

/// Sums above this do not feel what tiles took for zero.
pub const VANISHING: f32 = TINY / (1 << 24) as f32;

/// Sums of products of numbers that are not [tiny](TINY), with a bias of zero or from this on, are zero or at least the smallest normal
/// number: numbers from `TINY` on are multiples of 2⁻⁶³, their products of 2⁻¹²⁶, and so is such a bias.
pub const LEAST_BIAS: f32 = TINY * TINY;

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
    /// How many rows of every tile of rows are wanted, from the first one on, [`TILE_ROWS`] at most. Others may be computed as
    /// well, or not.
    pub used: [u8; 4],
    /// From a part of the inputs to the next.
    pub part_stride: usize,
    /// Summed in this order.
    pub steps: &'a [MatrixStep],
    /// What will be read soon: [`FETCHED_BY_STEP`] elements a step from here on are brought near, wherever they lie; nothing if
    /// null.
    pub fetch: *const u16,
    /// Whether other weights come next, so that these are not to take room in the first-level cache.
    pub stream: bool,
    /// `[tile of rows][row][column]`: there when the next block was computed, or when [held ones are
    /// stored](MatrixSession::store_held).
    pub out: *mut f32,
    /// What is there before.
    pub begin: Begin<'a>,
}

/// What is added to.
#[derive(Clone, Copy, Debug)]
pub enum Begin<'a> {
    /// Nothing.
    Zeros,
    /// An integer per column.
    Columns(&'a [i32]),
    /// The sums that are there already.
    Sums,
}

impl MatrixBlock<'_> {
    /// Where to load the sums from that are added to, how far apart the rows of a tile are there, and how far those of the next
    /// tile of rows, in bytes, given both for the sums of this block. Nowhere if there are none.
    pub(crate) fn begin(&self, row: usize, tile: usize) -> (*const u8, usize, usize) {
        match self.begin {
            Begin::Zeros => (std::ptr::null(), 0, 0),
            Begin::Columns(values) => (values.as_ptr().cast(), 0, 0),
            Begin::Sums => (self.out.cast_const().cast(), row, tile),
        }
    }
}

/// The functions that work on tiles.
#[derive(Clone, Copy)]
pub(crate) struct MatrixKernels {
    pub(crate) configure: unsafe fn(),
    pub(crate) release: unsafe fn(),
    /// Stores the sums that tiles hold, by tiles of columns, less one. None if no kernel leaves any there.
    pub(crate) store_held: Option<[unsafe fn(*mut f32); 2]>,
    pub(crate) parts: Option<PartKernels>,
    pub(crate) bytes: ByteKernels,
    /// The least and the greatest of some numbers.
    pub(crate) range_of: unsafe fn(&[isize]) -> (isize, isize),
}

/// Those for numbers cut into parts.
#[derive(Clone, Copy)]
pub(crate) struct PartKernels {
    /// By parts and by tiles of columns, each less one.
    pub(crate) blocks: [[PartBlockKernels; 2]; PARTS],
    /// For f16 as they are, by tiles of columns, less one.
    pub(crate) f16_blocks: Option<[PartBlockKernels; 2]>,
    /// By parts, less one.
    pub(crate) split: [SplitKernel; PARTS],
    pub(crate) copy_rows: CopyKernel<u16, bool>,
    pub(crate) turn_rows: TurnKernel<u16, bool>,
    pub(crate) are_sound: unsafe fn(&[f32], bool) -> bool,
    pub(crate) add_bias: unsafe fn(&mut [f32], &[f32]) -> bool,
    pub(crate) finish: FinishKernels<FinishKernel>,
    /// Where rows become columns.
    pub(crate) finish_turned: FinishKernels<FinishTurnedKernel>,
}

/// Those for a block of numbers.
#[derive(Clone, Copy)]
pub(crate) struct PartBlockKernels {
    pub(crate) multiply: BlockKernel,
    pub(crate) and_finish: FinishKernels<MultiplyAndFinishKernel>,
}

/// Those that finish sums on their way to memory, by its type.
#[derive(Clone, Copy)]
pub(crate) struct FinishKernels<K> {
    pub(crate) f32: K,
    pub(crate) bf16: K,
    pub(crate) f16: K,
}

impl<K: Copy> FinishKernels<K> {
    /// The one for a type, if there is one.
    fn to(&self, dtype: DType) -> Option<K> {
        match dtype {
            DType::F32 => Some(self.f32),
            DType::Bf16 => Some(self.bf16),
            DType::F16 => Some(self.f16),
            _ => None,
        }
    }
}

/// Those for bytes, each by whether inputs are signed.
#[derive(Clone, Copy)]
pub(crate) struct ByteKernels {
    /// By tiles of columns, less one.
    pub(crate) blocks: [[ByteBlockKernels; 2]; 2],
    pub(crate) copy_rows: [CopyKernel<u8, ()>; 2],
    pub(crate) turn_rows: [TurnKernel<u8, ()>; 2],
    /// What copying adds to signed inputs.
    pub(crate) signed_offset: u8,
    pub(crate) requantize: unsafe fn(&mut [f32], &Requantization<'_>),
    pub(crate) requantize_to: RequantizeKernels<RequantizeKernel>,
    /// Where rows become columns.
    pub(crate) turn_to: RequantizeKernels<RequantizeTurnedKernel>,
}

/// Those for a block of bytes.
#[derive(Clone, Copy)]
pub(crate) struct ByteBlockKernels {
    pub(crate) multiply: BlockKernel,
    pub(crate) and_requantize: RequantizeKernels<MultiplyAndRequantizeKernel>,
}

/// Those that requantize sums on their way to memory, by its type.
#[derive(Clone, Copy)]
pub(crate) struct RequantizeKernels<K> {
    pub(crate) i8: K,
    pub(crate) u8: K,
    pub(crate) f32: K,
}

impl<K: Copy> RequantizeKernels<K> {
    /// The one for a type, if there is one.
    fn to(&self, dtype: DType) -> Option<K> {
        match dtype {
            DType::I8 => Some(self.i8),
            DType::U8 => Some(self.u8),
            DType::F32 => Some(self.f32),
            _ => None,
        }
    }
}

impl MatrixKernels {
    /// Whether there are any for numbers of a type.
    pub(crate) fn multiply(&self, dtype: DType) -> bool {
        are_bytes(dtype) || self.parts.is_some()
    }

    /// The fewest pieces that hold all of a value of a type.
    pub(crate) fn pieces(&self, dtype: DType) -> Pieces {
        match dtype {
            DType::Bf16 | DType::I8 | DType::U8 => Pieces::Bf16(1),
            DType::F16 if self.parts.is_some_and(|kernels| kernels.f16_blocks.is_some()) => Pieces::F16,
            DType::F16 => Pieces::Bf16(2),
            _ => Pieces::Bf16(PARTS),
        }
    }
}

/// See [`MatrixSession::multiply`]. Stores the sums that tiles hold, if that is anywhere, and may leave those of the block there.
pub(crate) type BlockKernel = unsafe fn(&MatrixBlock<'_>, *mut f32);

/// See [`MatrixSession::finish`].
pub(crate) type FinishKernel = unsafe fn(&FinishedRows<'_>, &[f32], (f32, f32), *mut u8, bool) -> bool;

/// See [`MatrixSession::multiply_and_finish`].
pub(crate) type MultiplyAndFinishKernel =
    unsafe fn(&[MatrixBlock<'_>], *mut f32, &FinishedRows<'_>, &[f32], (f32, f32), *mut u8, bool) -> bool;

/// See [`MatrixSession::multiply_and_finish_bytes`].
pub(crate) type MultiplyAndRequantizeKernel =
    unsafe fn(&[MatrixBlock<'_>], *mut f32, &FinishedRows<'_>, &Requantization<'_>, *mut u8, bool) -> bool;

/// See [`MatrixSession::finish_turned`].
pub(crate) type FinishTurnedKernel =
    unsafe fn((*const f32, &[isize]), &[f32], (f32, f32), (*mut u8, isize), bool) -> bool;

/// See [`MatrixSession::finish_bytes`].
pub(crate) type RequantizeKernel = unsafe fn(&FinishedRows<'_>, &Requantization<'_>, *mut u8, bool) -> bool;

/// See [`MatrixSession::finish_bytes_turned`].
pub(crate) type RequantizeTurnedKernel =
    unsafe fn((*const f32, &[isize]), &Requantization<'_>, (*mut u8, isize), bool) -> bool;

/// See [`MatrixSession::copy_rows`].
pub(crate) type CopyKernel<Q, R> = unsafe fn(*const Q, isize, usize, usize, *mut u16, (usize, usize)) -> R;

/// See [`MatrixSession::turn_rows`].
pub(crate) type TurnKernel<Q, R> = unsafe fn(*const Q, &[isize], usize, *mut u16, usize) -> R;

/// As [`CopyKernel`], given from a part to the next as well.
pub(crate) type SplitKernel =
    unsafe fn(*const f32, isize, usize, usize, *mut u16, (usize, usize), usize) -> bool;

/// The most columns of [rows that are finished](FinishedRows).
pub const FINISHED_COLUMNS: usize = 32;

/// The most columns of such rows that take one vector.
pub const NARROW_COLUMNS: usize = FINISHED_COLUMNS / 2;

/// Rows of sums to finish and store.
#[derive(Clone, Copy, Debug)]
pub struct FinishedRows<'a> {
    /// From the first column of the first row on. Not a slice: what tiles hold may still be on its way there.
    pub sums: *const f32,
    /// The same of as many columns that are stored behind these, if they fill one or two vectors.
    pub beside: Option<*const f32>,
    /// Where the rows to store begin.
    pub rows: &'a [u16],
    /// Where each of them goes.
    pub distances: &'a [isize],
    /// Between which of them all of these are.
    pub range: (isize, isize),
    /// How many of their columns are stored.
    pub columns: usize,
}

impl FinishedRows<'_> {
    /// Columns that are stored, with those beside.
    pub(crate) fn all_columns(&self) -> usize {
        self.columns * (1 + usize::from(self.beside.is_some()))
    }
}

/// Memory for rows of [`PART_ROW`] channels.
#[derive(Debug)]
pub struct PartRows<'a> {
    /// From the first row on.
    pub memory: &'a mut [u16],
    /// From a row to the next.
    pub pitch: usize,
    /// From a row's channels to those behind them.
    pub step: usize,
    /// Into how many parts numbers are cut; 1 for those that tiles hold as they are.
    pub parts: usize,
    /// From a part of a row to the next.
    pub part_stride: usize,
}

impl PartRows<'_> {
    /// Whether there is room for so many rows of so many steps each.
    fn hold(&self, rows: usize, steps: usize) -> bool {
        let last_part = self.parts.saturating_sub(1) * self.part_stride;
        rows == 0
            || steps == 0
            || self.memory.len() >= (rows - 1) * self.pitch + (steps - 1) * self.step + last_part + PART_ROW
    }
}
