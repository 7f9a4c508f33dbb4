//! What matrix tiles hold of a number.

use outstride_kernels::{BYTE_ROW, PART_ROW, Pieces};
use outstride_spec::DType;

/// The pieces that tiles are made of, two bytes or one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grain {
    /// 16-bit pieces of every number.
    Pieces(Pieces),
    /// Bytes as they are, signed or not; weights are always signed.
    Bytes { signed: bool },
}

impl Grain {
    /// Copies of every row.
    pub(crate) fn parts(self) -> usize {
        match self {
            Grain::Pieces(pieces) => pieces.count(),
            Grain::Bytes { .. } => 1,
        }
    }

    /// Channels of a row.
    pub(crate) fn row_channels(self) -> usize {
        match self {
            Grain::Pieces(_) => PART_ROW,
            Grain::Bytes { .. } => BYTE_ROW,
        }
    }

    /// Bytes of all channels of a position, of so many.
    pub(crate) fn position_bytes(self, channels: usize) -> usize {
        match self {
            Grain::Pieces(pieces) => channels * pieces.count() * size_of::<u16>(),
            Grain::Bytes { .. } => channels,
        }
    }

    /// Panels whose outputs of one position fill a line: sums of bytes most often become bytes, of others at least 16 bits.
    pub(crate) fn panels_of_line(self) -> usize {
        match self {
            Grain::Pieces(_) => 1,
            Grain::Bytes { .. } => 2,
        }
    }

    /// Panels whose outputs of one position fill two lines, which caches fetch together.
    pub(crate) fn panels_of_two_lines(self) -> usize {
        match self {
            // Numbers in three parts are those of 32 bits.
            Grain::Pieces(pieces) if pieces.count() > 2 => 1,
            Grain::Pieces(_) => 2,
            Grain::Bytes { .. } => 4,
        }
    }

    /// Products of tiles per product of rows as long as those of parts.
    pub(crate) fn products(self) -> f64 {
        match self {
            Grain::Pieces(pieces) => pieces.products() as f64,
            Grain::Bytes { .. } => 0.5,
        }
    }

    /// The type whose values tiles compute with.
    pub(crate) fn dtype(self) -> DType {
        match self {
            Grain::Pieces(pieces) => pieces.dtype(),
            Grain::Bytes { signed: true } => DType::I8,
            Grain::Bytes { signed: false } => DType::U8,
        }
    }

    /// Whether tiles hold inputs of a type as they are.
    pub(crate) fn holds(self, dtype: DType) -> bool {
        match self {
            Grain::Pieces(pieces) => pieces.count() == 1 && pieces.dtype() == dtype,
            Grain::Bytes { .. } => true,
        }
    }
}
