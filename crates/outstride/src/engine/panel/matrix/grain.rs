//! What matrix tiles hold of a number.

use outstride_kernels::{BYTE_ROW, PART_ROW, dtype_of_parts, products_of_parts};
use outstride_spec::DType;

/// The pieces that tiles are made of, two bytes or one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grain {
    /// So many 16-bit parts of every number.
    Parts(usize),
    /// Bytes as they are, signed or not; weights are always signed.
    Bytes { signed: bool },
}

impl Grain {
    /// Copies of every row.
    pub(crate) fn parts(self) -> usize {
        match self {
            Grain::Parts(parts) => parts,
            Grain::Bytes { .. } => 1,
        }
    }

    /// Channels of a row.
    pub(crate) fn row_channels(self) -> usize {
        match self {
            Grain::Parts(_) => PART_ROW,
            Grain::Bytes { .. } => BYTE_ROW,
        }
    }

    /// Bytes of all channels of a position, of so many.
    pub(crate) fn position_bytes(self, channels: usize) -> usize {
        match self {
            Grain::Parts(parts) => channels * parts * size_of::<u16>(),
            Grain::Bytes { .. } => channels,
        }
    }

    /// Panels whose outputs of one position fill a line: sums of bytes most often become bytes, of others at least 16 bits.
    pub(crate) fn panels_of_line(self) -> usize {
        match self {
            Grain::Parts(_) => 1,
            Grain::Bytes { .. } => 2,
        }
    }

    /// Products of tiles per product of rows as long as those of parts.
    pub(crate) fn products(self) -> f64 {
        match self {
            Grain::Parts(parts) => products_of_parts(parts) as f64,
            Grain::Bytes { .. } => 0.5,
        }
    }

    /// The type whose values tiles compute with.
    pub(crate) fn dtype(self) -> DType {
        match self {
            Grain::Parts(parts) => dtype_of_parts(parts),
            Grain::Bytes { signed: true } => DType::I8,
            Grain::Bytes { signed: false } => DType::U8,
        }
    }
}
