//! The vector operations the kernels are written in. Each instruction set implements them once per element type;
//! every kernel is one generic function over them, inlined into a function that enables the instruction set.

use bytemuck::Zeroable;

use crate::panel::{OutputsAhead, PAIR_ROWS, PairSums, RowPointers};
use crate::pixel::ChannelWalk;

/// A scalar the kernels compute in.
pub trait Scalar:
    Copy + Default + PartialEq + PartialOrd + std::fmt::Debug + Zeroable + Send + Sync + 'static
{
    /// The nearest value of this type.
    fn from_f64(value: f64) -> Self;

    /// The same value.
    fn to_f64(self) -> f64;

    /// `self + a·b`, rounded as the type's own arithmetic does.
    fn plus_product(self, a: Self, b: Self) -> Self;

    /// `self + a·b`, rounded once.
    fn plus_fused_product(self, a: Self, b: Self) -> Self;

    /// `self + other`
    fn plus(self, other: Self) -> Self;

    /// `self − other`
    fn minus(self, other: Self) -> Self;

    /// The value without its sign.
    fn magnitude(self) -> Self;

    /// Whether the value is neither infinite nor NaN.
    fn is_finite(self) -> bool;
}

macro_rules! scalar {
    ($type:ty) => {
        impl Scalar for $type {
            fn from_f64(value: f64) -> Self {
                value as $type
            }

            fn to_f64(self) -> f64 {
                self.into()
            }

            fn plus_product(self, a: Self, b: Self) -> Self {
                self + a * b
            }

            fn plus_fused_product(self, a: Self, b: Self) -> Self {
                a.mul_add(b, self)
            }

            fn plus(self, other: Self) -> Self {
                self + other
            }

            fn minus(self, other: Self) -> Self {
                self - other
            }

            fn magnitude(self) -> Self {
                self.abs()
            }

            fn is_finite(self) -> bool {
                <$type>::is_finite(self)
            }
        }
    };
}

scalar!(f32);
scalar!(f64);

/// The most lanes of any vector.
pub(crate) const MAX_LANES: usize = 16;

/// The vector operations of one instruction set on one element type.
///
/// # Safety
///
/// Every function may only be called where the CPU has the instruction set; those that take pointers read or write
/// `LANES` elements there (the masked one only the lanes of its mask).
pub(crate) trait Simd: Copy + 'static {
    type Scalar: Scalar;
    type Vector: Copy;
    type Mask: Copy;

    /// Elements per vector.
    const LANES: usize;

    /// Whether [`multiply_add`](Self::multiply_add) rounds once.
    const FUSED: bool;

    /// Whether [`stream`](Self::stream) has a way past the caches.
    const STREAMS: bool;

    unsafe fn splat(value: Self::Scalar) -> Self::Vector;
    unsafe fn load(from: *const Self::Scalar) -> Self::Vector;
    unsafe fn store(to: *mut Self::Scalar, value: Self::Vector);

    /// Stores past the caches, if [there is a way](Self::STREAMS), to memory aligned to the vector.
    #[inline(always)]
    unsafe fn stream(to: *mut Self::Scalar, value: Self::Vector) {
        // SAFETY: handed on from the caller.
        unsafe { Self::store(to, value) }
    }

    /// The lanes `from..to` (clamped to the vector).
    unsafe fn mask(from: usize, to: usize) -> Self::Mask;

    /// The lanes of the mask from memory, zero elsewhere. Other lanes are not touched and may lie anywhere.
    unsafe fn load_masked(from: *const Self::Scalar, mask: Self::Mask) -> Self::Vector;

    /// Stores the lanes of the mask. Other lanes' memory is not touched and may lie anywhere.
    unsafe fn store_masked(to: *mut Self::Scalar, value: Self::Vector, mask: Self::Mask);

    /// `a·b + c`
    unsafe fn multiply_add(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    unsafe fn add(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    unsafe fn subtract(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    unsafe fn multiply(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    unsafe fn divide(a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// `max(v, bound)`; NaN in `v` stays.
    unsafe fn at_least(v: Self::Vector, bound: Self::Vector) -> Self::Vector;

    /// `min(v, bound)`; NaN in `v` stays.
    unsafe fn at_most(v: Self::Vector, bound: Self::Vector) -> Self::Vector;

    /// The nearest values of 32 bits, whatever the lanes could hold.
    unsafe fn single(v: Self::Vector) -> Self::Vector;

    /// To the nearest integer, ties to even.
    unsafe fn round(v: Self::Vector) -> Self::Vector;

    /// `v·2^n` for integral `n` within the exponent range, one beyond it included (which overflows to infinity).
    unsafe fn scale(v: Self::Vector, n: Self::Vector) -> Self::Vector;

    /// Per lane, `a < b ? yes : no`.
    unsafe fn select_less(
        a: Self::Vector,
        b: Self::Vector,
        yes: Self::Vector,
        no: Self::Vector,
    ) -> Self::Vector;

    /// The lanes of both in turns, `a[0], b[0], a[1], b[1], …`, as two vectors.
    unsafe fn zip(a: Self::Vector, b: Self::Vector) -> [Self::Vector; 2];

    /// Whether any lane is NaN.
    unsafe fn any_nan(v: Self::Vector) -> bool;

    /// Adds the products of all channels of a tap to the sums of a panel tile, having a line fetched
    /// [every few](crate::panel::FETCH_EVERY) channels, if the instruction set has a loop of its own for tiles of that shape. Returns
    /// whether it has.
    #[inline(always)]
    unsafe fn accumulate_panel<const ROWS: usize, const VECTORS: usize>(
        _sums: &mut [[Self::Vector; VECTORS]; ROWS],
        _rows: &RowPointers<Self::Scalar>,
        _distance: isize,
        _weights: *const Self::Scalar,
        _fetch: *const Self::Scalar,
        _channels: usize,
    ) -> bool {
        false
    }

    /// Whether it has a loop for two panels together, and so is done with a tile sooner than its outputs can leave.
    const PAIRS: bool = false;

    /// Adds the products of all channels of a tap to the sums of half a tile of two panels, as
    /// [`accumulate_panel`](Self::accumulate_panel) does.
    #[inline(always)]
    unsafe fn accumulate_pair(
        _sums: &mut PairSums<Self::Vector>,
        _rows: &[*const Self::Scalar; PAIR_ROWS],
        _distance: isize,
        _weights: [*const Self::Scalar; 2],
        _fetch: *const Self::Scalar,
        _outputs: &OutputsAhead<Self::Scalar>,
        _channels: usize,
    ) {
        unreachable!("there is no such loop")
    }

    /// The shapes of pixel tiles that it has a loop of its own for: so many vectors, by at least so many columns.
    const CHANNEL_LOOPS: &[(usize, usize)] = &[];

    /// Adds the products of all channels to the sums of a pixel tile, if the instruction set has a loop of its own for tiles of that
    /// shape. Returns whether it has.
    #[inline(always)]
    unsafe fn accumulate_channels<const COLUMNS: usize, const VECTORS: usize>(
        _sums: &mut [[Self::Vector; VECTORS]; COLUMNS],
        _walk: &ChannelWalk<Self::Scalar>,
    ) -> bool {
        false
    }
}
