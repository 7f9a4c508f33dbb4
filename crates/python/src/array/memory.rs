//! Strided memory that somebody else owns.

use outstride::{DType, Element, Error, Limits, TensorView, TensorViewMut};
use pyo3::PyResult;

use crate::error::invalid;

/// Where the elements of a tensor lie. That the memory is there is the promise of whoever made one.
pub(crate) struct Memory {
    dtype: DType,
    shape: Vec<usize>,
    /// In elements.
    strides: Vec<isize>,
    /// The lowest element, aligned for its type; dangling where there are no elements.
    lowest: *mut u8,
    /// Elements from the lowest one to the first one.
    offset: usize,
    /// Elements from the lowest one to behind the highest one.
    extent: usize,
}

// SAFETY: the pointer is only followed in `unsafe` methods, whose callers vouch for the memory on any thread.
unsafe impl Send for Memory {}
// SAFETY: as above; nothing changes behind a shared reference.
unsafe impl Sync for Memory {}

impl Memory {
    /// Memory whose first element is at `first`, with strides in elements.
    pub(crate) fn new(
        name: &str,
        dtype: DType,
        shape: Vec<usize>,
        strides: Vec<isize>,
        first: *mut u8,
    ) -> PyResult<Self> {
        if shape.contains(&0) {
            let lowest = std::ptr::without_provenance_mut(dtype.size());
            return Ok(Memory { dtype, shape, strides, lowest, offset: 0, extent: 0 });
        }
        if first.is_null() {
            return Err(invalid(format!("`{name}` has elements but its memory is at address 0")));
        }
        if !first.addr().is_multiple_of(dtype.size()) {
            return Err(invalid(format!(
                "`{name}` lies at an address that is no multiple of its {} byte elements; copy it",
                dtype.size()
            )));
        }
        let (below, above) = reach(&shape, &strides)
            .filter(|&(below, above)| fits(first.addr(), below, above, dtype.size()))
            .ok_or_else(|| {
                invalid(format!("`{name}` has a shape and strides that leave the address space"))
            })?;
        let lowest = first.wrapping_byte_sub(below * dtype.size());
        Ok(Memory { dtype, shape, strides, lowest, offset: below, extent: below + above + 1 })
    }

    pub(crate) fn dtype(&self) -> DType {
        self.dtype
    }

    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The address of the lowest element.
    pub(crate) fn lowest(&self) -> *mut u8 {
        self.lowest
    }

    /// The same memory as elements of another type of the same size.
    pub(crate) fn reinterpreted(self, dtype: DType) -> Self {
        debug_assert_eq!(dtype.size(), self.dtype.size());
        Memory { dtype, ..self }
    }

    /// Whether some byte may belong to both. Strides are not looked at, as views are of whole stretches of memory.
    pub(crate) fn overlaps(&self, other: &Memory) -> bool {
        let range = |memory: &Memory| {
            let start = memory.lowest.addr();
            start..start + memory.extent * memory.dtype.size()
        };
        let (one, two) = (range(self), range(other));
        !one.is_empty() && !two.is_empty() && one.start < two.end && two.start < one.end
    }

    /// A view for reading.
    ///
    /// # Safety
    ///
    /// The memory must be there, hold values of type `T`, and not be written to while the view exists.
    pub(crate) unsafe fn view<T: Element>(&self) -> Result<TensorView<'_, T>, Error> {
        self.check::<T>("the input")?;
        // SAFETY: `new` checked address and alignment, and that the extent is that of the elements.
        let data = unsafe { std::slice::from_raw_parts(self.lowest.cast::<T>(), self.extent) };
        TensorView::from_parts(data, self.offset, &self.shape, &self.strides)
    }

    /// A view for writing.
    ///
    /// # Safety
    ///
    /// The memory must be there, hold values of type `T`, and not be touched by others while the view exists.
    pub(crate) unsafe fn view_mut<T: Element>(&mut self) -> Result<TensorViewMut<'_, T>, Error> {
        self.check::<T>("the output")?;
        // SAFETY: `new` checked address and alignment, and that the extent is that of the elements.
        let data = unsafe { std::slice::from_raw_parts_mut(self.lowest.cast::<T>(), self.extent) };
        TensorViewMut::from_parts(data, self.offset, &self.shape, &self.strides)
    }

    fn check<T: Element>(&self, tensor: &'static str) -> Result<(), Error> {
        let found = self.dtype;
        if found == T::DTYPE { Ok(()) } else { Err(Error::DType { tensor, expected: T::DTYPE, found }) }
    }

    /// The bytes of a row-major copy.
    ///
    /// # Safety
    ///
    /// The memory must be there and not be written to meanwhile.
    pub(crate) unsafe fn row_major_bytes(&self, what: &'static str) -> Result<Vec<u8>, Error> {
        let size = self.dtype.size();
        let needed = self.shape.iter().fold(size as u128, |bytes, &axis| bytes.saturating_mul(axis as u128));
        let limit = Limits::default().max_bytes;
        if needed > u128::from(limit) {
            return Err(Error::TooManyBytes { what, needed, limit });
        }
        let mut bytes = Vec::new();
        let out_of_memory = |_| Error::OutOfMemory { what, bytes: needed as usize };
        bytes.try_reserve_exact(needed as usize).map_err(out_of_memory)?;
        // SAFETY: `new` checked that the extent lies in the address space; the caller, that it is there.
        let memory = unsafe { std::slice::from_raw_parts(self.lowest, self.extent * size) };
        if needed as usize == memory.len() && self.is_row_major() {
            bytes.extend_from_slice(memory);
            return Ok(bytes);
        }
        for position in 0..needed as usize / size {
            let start = self.element(position) * size;
            bytes.extend_from_slice(&memory[start..start + size]);
        }
        Ok(bytes)
    }

    fn is_row_major(&self) -> bool {
        let mut next = 1;
        self.shape.iter().zip(&self.strides).rev().all(|(&size, &stride)| {
            let follows = size == 1 || stride == next;
            next *= size as isize;
            follows
        })
    }

    /// Where the element at a row-major position lies, in elements above the lowest.
    fn element(&self, position: usize) -> usize {
        let mut rest = position;
        let mut element = self.offset;
        for (&size, &stride) in self.shape.iter().zip(&self.strides).rev() {
            element = element.wrapping_add_signed((rest % size) as isize * stride);
            rest /= size;
        }
        element
    }
}

/// How many elements lie below and above the first one at most; `None` beyond what memory could hold.
fn reach(shape: &[usize], strides: &[isize]) -> Option<(usize, usize)> {
    let (mut below, mut above) = (0usize, 0usize);
    for (&size, &stride) in shape.iter().zip(strides) {
        let reach = (size - 1).checked_mul(stride.unsigned_abs())?;
        let side = if stride < 0 { &mut below } else { &mut above };
        *side = side.checked_add(reach)?;
    }
    Some((below, above))
}

/// Whether so many elements below and above an address are all addresses.
fn fits(first: usize, below: usize, above: usize, size: usize) -> bool {
    let bytes = |elements: usize| elements.checked_mul(size);
    let low = bytes(below).and_then(|bytes| first.checked_sub(bytes));
    let high = above.checked_add(1).and_then(bytes).and_then(|bytes| first.checked_add(bytes));
    matches!((low, high), (Some(low), Some(high)) if low > 0 && isize::try_from(high - low).is_ok())
}
