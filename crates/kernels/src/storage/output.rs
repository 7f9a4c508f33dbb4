//! Memory that several threads fill at once, each its own elements.

use std::marker::PhantomData;

use outstride_spec::{DType, IntegerOverflow};

use super::{Storage, Stored, range_of};
use crate::table::{Kernels, Real};

/// Exclusive memory, lent to tasks that write different elements of it.
pub struct Output<'a, T: 'static> {
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

    /// Writes the first of every run, then the second of every run, and so on, from index `first` on. The runs of `len`
    /// values lie at these distances from `source`. With `stream`, whole lines go past the caches.
    ///
    /// # Panics
    ///
    /// If an element would lie outside the memory.
    ///
    /// # Safety
    ///
    /// Every value must be readable, and no other thread may write any of these elements at the same time. With `stream`, this
    /// thread must [`settle`] before another one may read them.
    pub unsafe fn write_interleaved(
        &self,
        first: isize,
        source: *const T,
        runs: &[isize],
        len: usize,
        stream: bool,
    ) {
        self.check(first, 1, runs.len() * len);
        let store = if stream { self.storage.stream_interleaved } else { self.storage.store_interleaved };
        // SAFETY: the targets are inside the memory, and the caller vouches for the rest; the CPU has the instructions, or
        // there would be no kernels.
        unsafe { store(source, runs, len, self.at(first)) }
    }

    /// Writes `source[distances[row] + column]` to index `first + column · stride + row`, for every row and column. With
    /// `stream`, whole lines go past the caches.
    ///
    /// # Panics
    ///
    /// If an element would lie outside the memory.
    ///
    /// # Safety
    ///
    /// Every source element must be readable, and no other thread may write any of the output's elements at the same
    /// time. With `stream`, this thread must [`settle`] before another one may read them.
    pub unsafe fn write_transposed(
        &self,
        first: isize,
        stride: isize,
        source: *const T,
        distances: &[isize],
        columns: usize,
        stream: bool,
    ) {
        if columns == 0 {
            return;
        }
        self.check_columns(first, stride, columns, distances.len());
        let store = if stream { self.storage.stream_transposed } else { self.storage.store_transposed };
        // SAFETY: all targets are inside the memory, and the caller vouches for the rest; the CPU has the instructions,
        // or there would be no kernels.
        unsafe { store(source, distances, columns, self.at(first), stride) }
    }

    /// Writes the first `len` of every `pitch` elements of the source to index `first + distance`, in the order of the
    /// distances. With `stream`, whole lines go past the caches.
    ///
    /// # Panics
    ///
    /// If an element would lie outside the source or the memory.
    ///
    /// # Safety
    ///
    /// No other thread may write any of the output's elements at the same time. With `stream`, this thread must
    /// [`settle`] before another one may read them.
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
        self.check_rows(first, range_of(distances), len);
        let store = if stream { self.storage.stream_rows } else { self.storage.store_rows };
        // SAFETY: the nearest and the farthest row are inside the memory, so all are; the caller vouches for the rest;
        // the CPU has the instructions, or there would be no kernels.
        unsafe { store(source.as_ptr(), pitch, len, self.at(first), distances) }
    }

    /// Where rows of `columns` elements begin, from which they are distances between the `least` and the `most` away, so that kernels
    /// can write them as they compute them. None if the memory is of another type than they compute in.
    ///
    /// # Panics
    ///
    /// If an element would lie outside the memory.
    pub fn rows(
        &self,
        first: isize,
        (least, most): (isize, isize),
        columns: usize,
    ) -> Option<OutputRows<'_, T>> {
        if self.dtype() != T::DTYPE {
            return None;
        }
        self.check_rows(first, (least, most), columns);
        let first = self.at(first).cast();
        Some(OutputRows { first, columns, bounds: None, stream: false, memory: PhantomData })
    }

    /// The type of the memory.
    pub fn dtype(&self) -> DType {
        self.storage.dtype
    }

    /// Where an element lies, if it is inside.
    pub(crate) fn at(&self, index: isize) -> *mut u8 {
        self.start.wrapping_offset(index * self.storage.size as isize)
    }

    /// # Panics
    ///
    /// If an element of runs of `len` would lie outside the memory, which begin at distances from the least to the greatest.
    pub(crate) fn check_rows(&self, first: isize, (least, most): (isize, isize), len: usize) {
        // The nearest and the farthest are inside, so all are.
        self.check(first + least, 1, len);
        self.check(first + most, 1, len);
    }

    /// # Panics
    ///
    /// If an element of columns of `len`, of which there must be one, `stride` apart would lie outside the memory.
    pub(crate) fn check_columns(&self, first: isize, stride: isize, columns: usize, len: usize) {
        self.check(first, 1, len);
        // Those between the first and the last column lie between them in memory.
        self.check(first + (columns as isize - 1) * stride, 1, len);
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

/// Rows of an [output](Output::rows) at known distances.
#[derive(Clone, Copy, Debug)]
pub struct OutputRows<'a, T> {
    pub(crate) first: *mut T,
    pub(crate) columns: usize,
    pub(crate) bounds: Option<[T; 2]>,
    pub(crate) stream: bool,
    memory: PhantomData<&'a mut [T]>,
}

impl<T> OutputRows<'_, T> {
    /// The same, with values brought within bounds.
    pub fn within(self, bounds: [T; 2]) -> Self {
        OutputRows { bounds: Some(bounds), ..self }
    }

    /// The same, with whole vectors going past the caches if `stream`: then, who writes must [`settle`] before another thread may
    /// read.
    pub fn streamed(self, stream: bool) -> Self {
        OutputRows { stream, ..self }
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
