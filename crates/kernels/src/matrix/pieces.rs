//! What matrix tiles hold of a floating-point number.

use half::f16;
use outstride_spec::DType;

/// Parts of a 32-bit number: the most there are.
pub(crate) const PARTS: usize = 3;

/// The 16-bit floats that stand for a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pieces {
    /// So many *parts* of 8 bits of significand each, whose sum it is.
    Bf16(usize),
    /// The number as it is.
    F16,
}

impl Pieces {
    /// How many there are.
    pub fn count(self) -> usize {
        match self {
            Pieces::Bf16(parts) => parts,
            Pieces::F16 => 1,
        }
    }

    /// How many of their products make up the product of two numbers.
    pub fn products(self) -> usize {
        match self.count() {
            1 => 1,
            2 => 4,
            _ => 6,
        }
    }

    /// The type whose values they hold.
    pub fn dtype(self) -> DType {
        match self {
            Pieces::Bf16(1) => DType::Bf16,
            Pieces::Bf16(2) | Pieces::F16 => DType::F16,
            Pieces::Bf16(_) => DType::F32,
        }
    }

    /// Those of a number of that type; as many as there are, and zeros.
    pub fn of(self, value: f32) -> [u16; PARTS] {
        match self {
            Pieces::Bf16(_) => parts(value),
            Pieces::F16 => [f16::from_f32(value).to_bits(), 0, 0],
        }
    }
}

/// Cuts a number into parts, rounding each to the nearest 16-bit float.
fn parts(value: f32) -> [u16; PARTS] {
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
