//! Vectors on their way between memory and registers.

use crate::simd::Simd;

/// Loads and stores vectors of another type than they are computed with in.
///
/// # Safety
///
/// As for [`Simd`].
pub(crate) trait Convert<Q>: Simd {
    /// Whether there is nothing to convert.
    const IS_ITSELF: bool = false;

    /// Whether there is a way past the caches.
    const STREAMS: bool = false;

    unsafe fn load_as(from: *const Q) -> Self::Vector;
    unsafe fn load_masked_as(from: *const Q, mask: Self::Mask) -> Self::Vector;
    unsafe fn store_as(to: *mut Q, value: Self::Vector);
    unsafe fn store_masked_as(to: *mut Q, value: Self::Vector, mask: Self::Mask);
    fn scalar_from(value: Q) -> Self::Scalar;
    fn scalar_to(value: Self::Scalar) -> Q;

    /// Stores past the caches, if [there is a way](Self::STREAMS), to memory aligned to what is stored.
    #[inline(always)]
    unsafe fn stream_as(to: *mut Q, value: Self::Vector) {
        // SAFETY: handed on from the caller.
        unsafe { Self::store_as(to, value) }
    }

    /// Stores two vectors, one behind the other.
    #[inline(always)]
    unsafe fn store_two_as(to: *mut Q, values: [Self::Vector; 2]) {
        // SAFETY: the caller vouches for the instruction set and as many elements.
        unsafe {
            Self::store_as(to, values[0]);
            Self::store_as(to.add(Self::LANES), values[1]);
        }
    }

    /// How many rows [`store_turned`](Self::store_turned) takes; none without it.
    const TURNED_ROWS: usize = 0;

    /// Stores so many rows, given by their distances and as long as a vector, as columns `stride` apart.
    #[inline(always)]
    unsafe fn store_turned<From>(_source: *const From, _distances: &[isize], _to: *mut Q, _stride: isize)
    where
        Self: Convert<From>,
    {
        unreachable!("takes no rows")
    }

    /// Stores as many elements as a line has; with `STREAM` past the caches, if [there is a way](Self::STREAMS), to the begin of a line.
    #[inline(always)]
    unsafe fn store_line<const STREAM: bool>(to: *mut Q, from: *const Self::Scalar) {
        for lane in (0..LINE / size_of::<Q>()).step_by(Self::LANES) {
            // SAFETY: the caller vouches for the instruction set and a line's elements.
            unsafe { Self::store_as(to.add(lane), Self::load(from.add(lane))) };
        }
    }
}

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// No conversion at all.
macro_rules! convert_itself {
    ($({$($generics:tt)*} $scalar:ty, $simd:ty;)*) => {$(
        impl<$($generics)*> crate::storage::Convert<$scalar> for $simd {
            const IS_ITSELF: bool = true;
            const STREAMS: bool = <Self as crate::simd::Simd>::STREAMS;

            #[inline(always)]
            unsafe fn load_as(from: *const $scalar) -> Self::Vector {
                // SAFETY: handed on from the caller.
                unsafe { <Self as crate::simd::Simd>::load(from) }
            }

            #[inline(always)]
            unsafe fn load_masked_as(from: *const $scalar, mask: Self::Mask) -> Self::Vector {
                // SAFETY: handed on from the caller.
                unsafe { <Self as crate::simd::Simd>::load_masked(from, mask) }
            }

            #[inline(always)]
            unsafe fn store_as(to: *mut $scalar, value: Self::Vector) {
                // SAFETY: handed on from the caller.
                unsafe { <Self as crate::simd::Simd>::store(to, value) }
            }

            #[inline(always)]
            unsafe fn stream_as(to: *mut $scalar, value: Self::Vector) {
                // SAFETY: handed on from the caller.
                unsafe { <Self as crate::simd::Simd>::stream(to, value) }
            }

            #[inline(always)]
            unsafe fn store_masked_as(to: *mut $scalar, value: Self::Vector, mask: Self::Mask) {
                // SAFETY: handed on from the caller.
                unsafe { <Self as crate::simd::Simd>::store_masked(to, value, mask) }
            }

            #[inline(always)]
            fn scalar_from(value: $scalar) -> $scalar {
                value
            }

            #[inline(always)]
            fn scalar_to(value: $scalar) -> $scalar {
                value
            }

            #[inline(always)]
            unsafe fn store_line<const STREAM: bool>(to: *mut $scalar, from: *const $scalar) {
                for lane in (0..crate::storage::LINE / size_of::<$scalar>()).step_by(<Self as crate::simd::Simd>::LANES) {
                    // SAFETY: the caller vouches for the instruction set and a line's elements, and that they begin a
                    // line to stream to.
                    unsafe {
                        let (to, values) = (to.add(lane), <Self as crate::simd::Simd>::load(from.add(lane)));
                        if STREAM {
                            <Self as crate::simd::Simd>::stream(to, values)
                        } else {
                            <Self as crate::simd::Simd>::store(to, values)
                        }
                    }
                }
            }
        }
    )*};
}
pub(crate) use convert_itself;
