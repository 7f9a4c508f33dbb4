//! Memory to read from.

use std::marker::PhantomData;
use std::ops::Range;

use outstride_spec::{DType, IntegerOverflow};

use super::{Storage, Stored, range_of};
use crate::copy::Runs;
use crate::fetch::fetch_near;
use crate::panel::PanelKernels;
use crate::table::{Kernels, Real};

/// Memory to read from.
#[derive(Clone, Copy)]
pub struct Source<'a, T: 'static> {
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
        self.read_runs(first, &Runs::single(target.len()), target);
    }

    /// Copies runs of neighbouring elements, the first from index `first` on, with zeros around each.
    ///
    /// # Panics
    ///
    /// If an element would lie outside the source or the target.
    pub fn read_runs(&self, first: isize, runs: &Runs, target: &mut [T]) {
        let target = &mut target[..runs.target_len()];
        let source = self.strided_runs(first, runs.step, runs.count, runs.len);
        // SAFETY: the runs are inside the memory, and the target has room for them; the CPU has the instructions, or there would be
        // no kernels.
        unsafe { (self.storage.load_runs)(source, runs, target.as_mut_ptr()) }
        if self.zero_point != T::default() {
            let [before, behind] = runs.zeros;
            for target in target.chunks_exact_mut((before + runs.len + behind).max(1)) {
                self.shift(&mut target[before..before + runs.len]);
            }
        }
    }

    /// The panel kernels for weights that lie here.
    pub fn panels(&self) -> PanelKernels<T> {
        self.storage.panel
    }

    /// Where an element lies, which need not be there.
    pub fn pointer(&self, index: usize) -> *const u8 {
        self.at(index as isize)
    }

    /// How many elements there are.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Bytes of an element.
    pub fn element_bytes(&self) -> usize {
        self.storage.size
    }

    /// Bytes of all elements.
    pub fn bytes(&self) -> usize {
        self.len * self.storage.size
    }

    /// Where a run of elements lies, which need not be there.
    pub fn addresses(&self, first: isize, len: usize) -> Range<usize> {
        let start = self.at(first).addr();
        start..start.saturating_add(len * self.storage.size)
    }

    /// Has a run of elements brought near that is read soon. Nothing is read yet, so there need not be any.
    pub fn fetch_run(&self, first: isize, len: usize) {
        fetch_near(self.at(first), len * self.storage.size);
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
        let (source, memory) = (self.spread_runs(first, distances, columns), target.as_mut_ptr());
        // SAFETY: all rows are inside the source; the target was just checked; the CPU has the instructions, or there
        // would be no kernels.
        unsafe { (self.storage.load_transposed)(source, distances, columns, memory, stride as isize) }
        if self.zero_point != T::default() {
            for column in 0..columns {
                self.shift(&mut target[column * stride..][..distances.len()]);
            }
        }
    }

    /// Index `first`, from which on `count` runs of `len` elements lie `stride` apart.
    ///
    /// # Panics
    ///
    /// If an element would lie outside the memory.
    pub(crate) fn strided_runs(&self, first: isize, stride: isize, count: usize, len: usize) -> *const u8 {
        if count > 0 {
            // Those between the first and the last lie between them in memory.
            self.check(first, len);
            self.check(first + (count as isize - 1) * stride, len);
        }
        self.at(first)
    }

    /// Index `first`, at some distances from which runs of `len` elements lie.
    ///
    /// # Panics
    ///
    /// If an element would lie outside the memory.
    pub(crate) fn spread_runs(&self, first: isize, distances: &[isize], len: usize) -> *const u8 {
        if !distances.is_empty() {
            // The others lie between the nearest and the farthest.
            let (least, most) = range_of(distances);
            self.check(first + least, len);
            self.check(first + most, len);
        }
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
