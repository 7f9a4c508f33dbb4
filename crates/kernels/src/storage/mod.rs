//! Numbers in memory: stored in one type, computed with in another.
//!
//! Loading widens and storing rounds once, to the nearest value and ties to even, on the way between memory and
//! registers.

mod convert;
mod kernels;
mod output;
mod source;

use bytemuck::Zeroable;
use half::{bf16, f16};
use outstride_spec::{DType, IntegerOverflow};

pub(crate) use convert::{Convert, LINE, convert_itself};
pub use kernels::Storage;
pub(crate) use kernels::storage_of;
pub use output::{Output, OutputRows, settle};
pub use source::Source;

use crate::table::{Kernels, Real};

/// A type that numbers computed with as `T` can be stored in.
pub trait Stored<T>: Copy + Default + Zeroable + Send + Sync + std::fmt::Debug + 'static {
    /// The type's name.
    const DTYPE: DType;

    /// The same value to compute with.
    fn widen(self) -> T;

    #[doc(hidden)]
    fn storage(kernels: &Kernels<T>, overflow: IntegerOverflow) -> &Storage<T>
    where
        T: Real;
}

impl<T: Real> Stored<T> for T {
    const DTYPE: DType = <T as Real>::DTYPE;

    fn widen(self) -> T {
        self
    }

    fn storage(kernels: &Kernels<T>, _overflow: IntegerOverflow) -> &Storage<T> {
        kernels.storage_own()
    }
}

impl Stored<f32> for bf16 {
    const DTYPE: DType = DType::Bf16;

    fn widen(self) -> f32 {
        self.to_f32()
    }

    fn storage(kernels: &Kernels<f32>, _overflow: IntegerOverflow) -> &Storage<f32> {
        &kernels.narrow().bf16
    }
}

impl Stored<f32> for f16 {
    const DTYPE: DType = DType::F16;

    fn widen(self) -> f32 {
        self.to_f32()
    }

    fn storage(kernels: &Kernels<f32>, _overflow: IntegerOverflow) -> &Storage<f32> {
        &kernels.narrow().f16
    }
}

/// The least and the greatest of some distances, of which there must be one.
#[inline(always)]
pub(crate) fn range_of(distances: &[isize]) -> (isize, isize) {
    distances
        .iter()
        .fold((isize::MAX, isize::MIN), |(least, most), &distance| (least.min(distance), most.max(distance)))
}
