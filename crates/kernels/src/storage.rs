//! Numbers in memory: stored in one type, computed with in another.
//!
//! Loading widens and storing rounds once, to the nearest value and ties to even, on the way between memory and
//! registers.

use std::marker::PhantomData;

use half::{bf16, f16};
use outstride_spec::{DType, IntegerOverflow};

use crate::simd::Simd;
use crate::table::{Kernels, Real};

/// A type that numbers computed with as `T` can be stored in.
pub trait Stored<T>: Copy + Default + Send + Sync + 'static {
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

/// Loads and stores vectors of another type than they are computed with in.
///
/// # Safety
///
/// As for [`Simd`].
pub(crate) trait Convert<Q>: Simd {
    unsafe fn load_as(from: *const Q) -> Self::Vector;
    unsafe fn load_masked_as(from: *const Q, mask: Self::Mask) -> Self::Vector;
    unsafe fn store_as(to: *mut Q, value: Self::Vector);
    unsafe fn store_masked_as(to: *mut Q, value: Self::Vector, mask: Self::Mask);
    fn scalar_from(value: Q) -> Self::Scalar;
    fn scalar_to(value: Self::Scalar) -> Q;

    /// Stores two vectors, one behind the other.
    #[inline(always)]
    unsafe fn store_two_as(to: *mut Q, values: [Self::Vector; 2]) {
        // SAFETY: the caller vouches for the instruction set and as many elements.
        unsafe {
            Self::store_as(to, values[0]);
            Self::store_as(to.add(Self::LANES), values[1]);
        }
    }

    /// Stores as many elements as a line has; with `STREAM` past the caches, if there is a way, to the begin of a line.
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
    ($({$($generics:tt)*} $scalar:ty, $simd:ty $(, $stream:ident)?;)*) => {$(
        impl<$($generics)*> crate::storage::Convert<$scalar> for $simd {
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

            $(
                #[inline(always)]
                unsafe fn store_line<const STREAM: bool>(to: *mut $scalar, from: *const $scalar) {
                    // SAFETY: the caller vouches for the instruction set and a line's elements, and that they begin a
                    // line to stream to.
                    unsafe {
                        let line = <Self as crate::simd::Simd>::load(from);
                        if STREAM { $stream(to, line) } else { <Self as crate::simd::Simd>::store(to, line) }
                    }
                }
            )?
        }
    )*};
}
pub(crate) use convert_itself;

/// The kernels between memory of one type and registers of another. The memory's type is erased: pointers are to its
/// elements, and distances count them.
#[derive(Clone, Copy)]
pub struct Storage<T> {
    pub(crate) dtype: DType,
    pub(crate) size: usize,
    pub(crate) load: unsafe fn(*const u8) -> T,
    pub(crate) load_run: unsafe fn(*const u8, usize, *mut T),
    pub(crate) load_transposed: unsafe fn(*const u8, &[isize], usize, *mut T, isize),
    pub(crate) store: unsafe fn(&[T], *mut u8, isize),
    pub(crate) fill: unsafe fn(T, usize, *mut u8, isize),
    pub(crate) store_rows: unsafe fn(*const T, usize, usize, *mut u8, &[isize]),
    pub(crate) stream_rows: unsafe fn(*const T, usize, usize, *mut u8, &[isize]),
    pub(crate) store_transposed: unsafe fn(*const T, &[isize], usize, *mut u8, isize),
    pub(crate) store_interleaved: unsafe fn(&[T], &[T], *mut u8),
}

/// The kernels of an instruction set for one type in memory.
macro_rules! storage_of {
    ($simd:ty, $stored:ty, $dtype:expr, [$($feature:literal),*]) => {{
        type Q = $stored;
        type T = <$simd as crate::simd::Simd>::Scalar;
        use crate::storage::{Convert, Storage};

        unsafe fn load(from: *const u8) -> T {
            // SAFETY: the caller vouches for the element.
            <$simd as Convert<Q>>::scalar_from(unsafe { from.cast::<Q>().read() })
        }

        $(#[target_feature(enable = $feature)])*
        unsafe fn load_run(from: *const u8, len: usize, target: *mut T) {
            // SAFETY: the features are those of the instruction set; the caller vouches for the rest.
            unsafe { crate::copy::load_run::<$simd, Q>(from.cast(), len, target) }
        }

        $(#[target_feature(enable = $feature)])*
        unsafe fn load_transposed(
            source: *const u8,
            distances: &[isize],
            columns: usize,
            target: *mut T,
            stride: isize,
        ) {
            // SAFETY: the features are those of the instruction set; the caller vouches for the rest.
            unsafe { crate::transpose::transpose::<$simd, Q, T>(source.cast(), distances, columns, target, stride) }
        }

        $(#[target_feature(enable = $feature)])*
        unsafe fn store(values: &[T], target: *mut u8, stride: isize) {
            let target = target.cast::<Q>();
            // SAFETY: the features are those of the instruction set; the caller vouches for the rest.
            unsafe {
                if stride == 1 {
                    crate::copy::store_rows::<$simd, Q, false>(values.as_ptr(), 0, values.len(), target, &[0]);
                    return;
                }
                for (index, &value) in values.iter().enumerate() {
                    target.offset(index as isize * stride).write(<$simd as Convert<Q>>::scalar_to(value));
                }
            }
        }

        unsafe fn fill(value: T, count: usize, target: *mut u8, stride: isize) {
            let value = <$simd as Convert<Q>>::scalar_to(value);
            for index in 0..count {
                // SAFETY: the caller vouches for the elements.
                unsafe { target.cast::<Q>().offset(index as isize * stride).write(value) };
            }
        }

        $(#[target_feature(enable = $feature)])*
        unsafe fn store_rows(source: *const T, pitch: usize, len: usize, target: *mut u8, distances: &[isize]) {
            // SAFETY: the features are those of the instruction set; the caller vouches for the rest.
            unsafe { crate::copy::store_rows::<$simd, Q, false>(source, pitch, len, target.cast(), distances) }
        }

        $(#[target_feature(enable = $feature)])*
        unsafe fn stream_rows(source: *const T, pitch: usize, len: usize, target: *mut u8, distances: &[isize]) {
            // SAFETY: the features are those of the instruction set; the caller vouches for the rest.
            unsafe { crate::copy::store_rows::<$simd, Q, true>(source, pitch, len, target.cast(), distances) }
        }

        $(#[target_feature(enable = $feature)])*
        unsafe fn store_transposed(
            source: *const T,
            distances: &[isize],
            columns: usize,
            target: *mut u8,
            stride: isize,
        ) {
            // SAFETY: the features are those of the instruction set; the caller vouches for the rest.
            unsafe { crate::transpose::transpose::<$simd, T, Q>(source, distances, columns, target.cast(), stride) }
        }

        $(#[target_feature(enable = $feature)])*
        unsafe fn store_interleaved(even: &[T], odd: &[T], target: *mut u8) {
            // SAFETY: the features are those of the instruction set; the caller vouches for the rest.
            unsafe { crate::interleave::interleave::<$simd, Q>(even, odd, target.cast()) }
        }

        Storage {
            dtype: $dtype,
            size: size_of::<Q>(),
            load,
            load_run,
            load_transposed,
            store,
            fill,
            store_rows,
            stream_rows,
            store_transposed,
            store_interleaved,
        }
    }};
}
pub(crate) use storage_of;

/// Memory to read from.
#[derive(Clone, Copy)]
pub struct Source<'a, T> {
    start: *const u8,
    len: usize,
    storage: &'a Storage<T>,
    /// What is subtracted from every element.
    zero_point: T,
    memory: PhantomData<&'a [T]>,
}

// SAFETY: it is a shared borrow of elements that are all `Sync`.
unsafe impl<T: Sync> Sync for Source<'_, T> {}

impl<'a, T: Real> Source<'a, T> {
    /// Reads values stored in any of the types that `T` can be stored in.
    pub fn new<Q: Stored<T>>(memory: &'a [Q], kernels: &'a Kernels<T>) -> Self {
        Source {
            start: memory.as_ptr().cast(),
            len: memory.len(),
            // Nothing overflows on the way in.
            storage: Q::storage(kernels, IntegerOverflow::default()),
            zero_point: T::default(),
            memory: PhantomData,
        }
    }

    /// The same, with some value subtracted from every element.
    pub fn above(self, zero_point: T) -> Self {
        Source { zero_point, ..self }
    }

    fn shift(&self, values: &mut [T]) {
        if self.zero_point != T::default() {
            for value in values {
                *value = value.minus(self.zero_point);
            }
        }
    }

    /// The type of the elements in memory.
    pub fn dtype(&self) -> DType {
        self.storage.dtype
    }

    /// The elements as they are, if they are stored in the type they are computed with in.
    pub fn as_computed(&self) -> Option<&'a [T]> {
        // SAFETY: the memory is a slice of `T`, as its type says.
        let slice = || unsafe { std::slice::from_raw_parts(self.start.cast(), self.len) };
        (self.storage.dtype == T::DTYPE && self.zero_point == T::default()).then(slice)
    }

    /// An element's value.
    ///
    /// # Panics
    ///
    /// If there is no such element.
    pub fn get(&self, index: usize) -> T {
        self.check(index as isize, 1);
        // SAFETY: the element is inside the memory.
        unsafe { (self.storage.load)(self.at(index as isize)) }.minus(self.zero_point)
    }

    /// Copies neighbouring elements from index `first` on.
    ///
    /// # Panics
    ///
    /// If an element would lie outside the memory.
    pub fn read_run(&self, first: isize, target: &mut [T]) {
        self.check(first, target.len());
        // SAFETY: the run is inside the memory; the CPU has the instructions, or there would be no kernels.
        unsafe { (self.storage.load_run)(self.at(first), target.len(), target.as_mut_ptr()) }
        self.shift(target);
    }

    /// Copies the element at index `first + distances[row] + column` to `target[column · stride + row]`, for every row
    /// and column.
    ///
    /// # Panics
    ///
    /// If an element would lie outside the source or the target.
    pub fn read_transposed(
        &self,
        first: isize,
        distances: &[isize],
        columns: usize,
        target: &mut [T],
        stride: usize,
    ) {
        if columns == 0 || distances.is_empty() {
            return;
        }
        assert!(target.len() >= (columns - 1) * stride + distances.len());
        let (least, most) = range_of(distances);
        self.check(first + least, columns);
        self.check(first + most, columns);
        let (source, memory) = (self.at(first), target.as_mut_ptr());
        // SAFETY: the nearest and the farthest row are inside the source, so all are; the target was just checked; the
        // CPU has the instructions, or there would be no kernels.
        unsafe { (self.storage.load_transposed)(source, distances, columns, memory, stride as isize) }
        if self.zero_point != T::default() {
            for column in 0..columns {
                self.shift(&mut target[column * stride..][..distances.len()]);
            }
        }
    }

    /// Where the runs of `count` bf16 elements at two indices, and all between them, begin.
    ///
    /// # Panics
    ///
    /// If an element would lie outside the memory, or the elements are no bf16.
    pub(crate) fn bf16_run(&self, first: isize, last: isize, count: usize) -> *const u16 {
        assert!(self.storage.dtype == DType::Bf16, "{} elements are no bf16", self.storage.dtype);
        self.check(first, count);
        self.check(last, count);
        self.at(first).cast()
    }

    /// As [`bf16_run`](Self::bf16_run), of bytes.
    pub(crate) fn byte_run(&self, first: isize, last: isize, count: usize) -> *const u8 {
        assert!(self.storage.size == 1, "{} elements are no bytes", self.storage.dtype);
        self.check(first, count);
        self.check(last, count);
        self.at(first)
    }

    /// What is subtracted from every element.
    pub fn zero_point(&self) -> T {
        self.zero_point
    }

    fn at(&self, index: isize) -> *const u8 {
        self.start.wrapping_offset(index * self.storage.size as isize)
    }

    fn check(&self, first: isize, count: usize) {
        let inside = first >= 0 && first as usize + count <= self.len;
        assert!(inside || count == 0, "input elements from {first} on, {count} of {}", self.len);
    }
}

/// Exclusive memory, lent to tasks that write different elements of it.
pub struct Output<'a, T> {
    start: *mut u8,
    len: usize,
    storage: &'a Storage<T>,
    memory: PhantomData<&'a mut [T]>,
}

// SAFETY: writes go through `unsafe` functions whose callers promise that no two threads write one element, and
// nothing is ever read.
unsafe impl<T: Send> Sync for Output<'_, T> {}

impl<'a, T: Real> Output<'a, T> {
    /// Writes values to any of the types that `T` can be stored in. What is too large for an integer type becomes as
    /// `overflow` says.
    pub fn new<Q: Stored<T>>(
        memory: &'a mut [Q],
        kernels: &'a Kernels<T>,
        overflow: IntegerOverflow,
    ) -> Self {
        Output {
            start: memory.as_mut_ptr().cast(),
            len: memory.len(),
            storage: Q::storage(kernels, overflow),
            memory: PhantomData,
        }
    }

    /// Bytes of an element in memory.
    pub fn element_size(&self) -> usize {
        self.storage.size
    }

    /// Writes `values` from index `first` on, `stride` elements apart.
    ///
    /// # Panics
    ///
    /// If an element would lie outside the memory.
    ///
    /// # Safety
    ///
    /// No other thread may write any of these elements at the same time.
    #[inline]
    pub unsafe fn write(&self, first: isize, stride: isize, values: &[T]) {
        self.check(first, stride, values.len());
        // SAFETY: the first and last element are inside, so all between are; the caller vouches for exclusiveness; the
        // CPU has the instructions, or there would be no kernels.
        unsafe { (self.storage.store)(values, self.at(first), stride) }
    }

    /// Writes one value `count` times from index `first` on, `stride` elements apart.
    ///
    /// # Panics
    ///
    /// If an element would lie outside the memory.
    ///
    /// # Safety
    ///
    /// No other thread may write any of these elements at the same time.
    #[inline]
    pub unsafe fn fill(&self, first: isize, stride: isize, count: usize, value: T) {
        self.check(first, stride, count);
        // SAFETY: as in `write`.
        unsafe { (self.storage.fill)(value, count, self.at(first), stride) }
    }

    /// Writes `even[0], odd[0], even[1], odd[1], …` from index `first` on.
    ///
    /// # Panics
    ///
    /// If an element would lie outside the memory, or the runs have different lengths.
    ///
    /// # Safety
    ///
    /// No other thread may write any of these elements at the same time.
    pub unsafe fn write_interleaved(&self, first: isize, even: &[T], odd: &[T]) {
        assert_eq!(even.len(), odd.len());
        self.check(first, 1, 2 * even.len());
        // SAFETY: as in `write`.
        unsafe { (self.storage.store_interleaved)(even, odd, self.at(first)) }
    }

    /// Writes `source[distances[row] + column]` to index `first + column · stride + row`, for every row and column.
    ///
    /// # Panics
    ///
    /// If an element would lie outside the memory.
    ///
    /// # Safety
    ///
    /// Every source element must be readable, and no other thread may write any of the output's elements at the same
    /// time.
    pub unsafe fn write_transposed(
        &self,
        first: isize,
        stride: isize,
        source: *const T,
        distances: &[isize],
        columns: usize,
    ) {
        if columns == 0 {
            return;
        }
        self.check(first, 1, distances.len());
        // Those between the first and the last column lie between them in memory.
        self.check(first + (columns as isize - 1) * stride, 1, distances.len());
        // SAFETY: all targets are inside the memory, and the caller vouches for the rest; the CPU has the instructions,
        // or there would be no kernels.
        unsafe { (self.storage.store_transposed)(source, distances, columns, self.at(first), stride) }
    }

    /// Writes the first `len` of every `pitch` elements of the source to index `first + distance`, in the order of the
    /// distances. With `stream`, whole lines go past the caches; [`settle`] must follow before another thread reads them.
    ///
    /// # Panics
    ///
    /// If an element would lie outside the source or the memory.
    ///
    /// # Safety
    ///
    /// No other thread may write any of the output's elements at the same time.
    pub unsafe fn write_rows(
        &self,
        first: isize,
        distances: &[isize],
        source: &[T],
        (pitch, len): (usize, usize),
        stream: bool,
    ) {
        if distances.is_empty() {
            return;
        }
        assert!(source.len() >= (distances.len() - 1) * pitch + len);
        let (least, most) = range_of(distances);
        self.check(first + least, 1, len);
        self.check(first + most, 1, len);
        let store = if stream { self.storage.stream_rows } else { self.storage.store_rows };
        // SAFETY: the nearest and the farthest row are inside the memory, so all are; the caller vouches for the rest;
        // the CPU has the instructions, or there would be no kernels.
        unsafe { store(source.as_ptr(), pitch, len, self.at(first), distances) }
    }

    fn at(&self, index: isize) -> *mut u8 {
        self.start.wrapping_offset(index * self.storage.size as isize)
    }

    #[inline]
    fn check(&self, first: isize, stride: isize, count: usize) {
        if count == 0 {
            return;
        }
        let last = first + (count as isize - 1) * stride;
        let inside = |index: isize| index >= 0 && (index as usize) < self.len;
        assert!(inside(first) && inside(last), "output elements {first} to {last} of {}", self.len);
    }
}

/// Waits until what this thread [streamed](Output::write_rows) can be seen by others.
pub fn settle() {
    // SAFETY: every x86-64 CPU has the instruction.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::x86_64::_mm_sfence()
    };
}

/// The least and the greatest of some distances, of which there must be one.
fn range_of(distances: &[isize]) -> (isize, isize) {
    distances
        .iter()
        .fold((isize::MAX, isize::MIN), |(least, most), &distance| (least.min(distance), most.max(distance)))
}
