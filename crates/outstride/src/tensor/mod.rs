//! Tensors: owned ones, and strided views of anybody's memory.

mod arrangement;

use outstride_spec::{DataLayout, FilterLayout};

pub(crate) use arrangement::Arrangement;
pub use arrangement::ViewError;

use crate::aligned::Aligned;
use crate::element::Element;
use crate::error::Error;

/// A tensor that owns its values, in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor<T> {
    shape: Vec<usize>,
    data: Aligned<T>,
}

impl<T> Tensor<T> {
    /// A tensor of these values, in row-major order.
    pub fn from_vec(shape: &[usize], data: Vec<T>) -> Result<Self, Error> {
        let arrangement = Arrangement::row_major(shape)?;
        if arrangement.len() != data.len() {
            let (expected, found) = (arrangement.len(), data.len());
            return Err(ViewError::Length { shape: shape.to_vec(), expected, found }.into());
        }
        Ok(Tensor { shape: shape.to_vec(), data: Aligned::from_vec(data) })
    }

    /// The size of each axis.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The values, in row-major order.
    pub fn data(&self) -> &[T] {
        self.data.as_slice()
    }

    /// The values, for writing.
    pub fn data_mut(&mut self) -> &mut [T] {
        self.data.as_mut_slice()
    }

    /// The values alone.
    pub fn into_vec(self) -> Vec<T> {
        self.data.into_vec()
    }

    /// A view of the whole tensor.
    pub fn view(&self) -> TensorView<'_, T> {
        TensorView { data: self.data.as_slice(), arrangement: Arrangement::packed(&self.shape) }
    }

    /// A view of the whole tensor, for writing.
    pub fn view_mut(&mut self) -> TensorViewMut<'_, T> {
        TensorViewMut { arrangement: Arrangement::packed(&self.shape), data: self.data.as_mut_slice() }
    }
}

impl<T: Element> Tensor<T> {
    /// A tensor of zeros that begins a cache line, or an error where the system has no memory for it.
    pub(crate) fn zeros(what: &'static str, shape: &[usize]) -> Result<Self, Error> {
        let length = Arrangement::row_major(shape)?.len();
        let bytes = length.saturating_mul(size_of::<T>());
        let data = Aligned::zeros(length).map_err(|_| Error::OutOfMemory { what, bytes })?;
        Ok(Tensor { shape: shape.to_vec(), data })
    }
}

/// A read-only view of a tensor with any strides: transposed, sliced, broadcast or reversed memory is read in place.
#[derive(Clone, Debug)]
pub struct TensorView<'a, T> {
    data: &'a [T],
    arrangement: Arrangement,
}

impl<'a, T> TensorView<'a, T> {
    /// A view of row-major memory.
    pub fn from_slice(shape: &[usize], data: &'a [T]) -> Result<Self, Error> {
        let arrangement = Arrangement::row_major(shape)?;
        if arrangement.len() != data.len() {
            let (expected, found) = (arrangement.len(), data.len());
            return Err(ViewError::Length { shape: shape.to_vec(), expected, found }.into());
        }
        Ok(TensorView { data, arrangement })
    }

    /// A view whose element `[i, j, …]` is `data[offset + i·strides[0] + j·strides[1] + …]`.
    ///
    /// ```
    /// use outstride::TensorView;
    ///
    /// // The transpose of a 2×3 matrix, in place.
    /// let matrix = [1, 2, 3, 4, 5, 6];
    /// let transposed = TensorView::from_parts(&matrix, 0, &[3, 2], &[1, 3])?;
    /// assert_eq!(transposed.get(&[2, 0]), Some(&3));
    /// # Ok::<(), outstride::Error>(())
    /// ```
    pub fn from_parts(
        data: &'a [T],
        offset: usize,
        shape: &[usize],
        strides: &[isize],
    ) -> Result<Self, Error> {
        Ok(TensorView { data, arrangement: Arrangement::new(offset, shape, strides, data.len())? })
    }

    /// The size of each axis.
    pub fn shape(&self) -> &[usize] {
        self.arrangement.shape()
    }

    /// The distance in memory between neighbours along each axis.
    pub fn strides(&self) -> &[isize] {
        self.arrangement.strides()
    }

    /// The element at an index, or `None` outside the shape.
    pub fn get(&self, index: &[usize]) -> Option<&'a T> {
        self.data.get(self.arrangement.position(index)?)
    }

    /// The memory behind the view.
    pub(crate) fn data(&self) -> &'a [T] {
        self.data
    }

    /// Where in the memory element 0 lies.
    pub(crate) fn offset(&self) -> usize {
        self.arrangement.offset()
    }

    /// The same data in the order `(N, C, X…)`. The layout must have the view's rank.
    pub(crate) fn canonical_data(&self, layout: &DataLayout) -> Self {
        TensorView { data: self.data, arrangement: self.arrangement.canonical_data(layout) }
    }

    /// The same filter in the order `(G, C/G, M/G, X…)`, unflipped. The layout must have the view's rank.
    pub(crate) fn canonical_filter(&self, layout: &FilterLayout, groups: usize) -> Self {
        TensorView { data: self.data, arrangement: self.arrangement.canonical_filter(layout, groups) }
    }

    /// The same elements with one more axis, of size one, before an axis of that number.
    pub(crate) fn with_unit_axis(&self, axis: usize) -> Self {
        TensorView { data: self.data, arrangement: self.arrangement.with_unit_axis(axis) }
    }
}

/// A writable view of a tensor with any strides that keep its elements apart.
#[derive(Debug)]
pub struct TensorViewMut<'a, T> {
    data: &'a mut [T],
    arrangement: Arrangement,
}

impl<'a, T> TensorViewMut<'a, T> {
    /// A view of row-major memory.
    pub fn from_slice(shape: &[usize], data: &'a mut [T]) -> Result<Self, Error> {
        let arrangement = TensorView::from_slice(shape, data)?.arrangement;
        Ok(TensorViewMut { data, arrangement })
    }

    /// A view whose element `[i, j, …]` is `data[offset + i·strides[0] + j·strides[1] + …]`. Strides that might make
    /// two elements share memory are refused.
    pub fn from_parts(
        data: &'a mut [T],
        offset: usize,
        shape: &[usize],
        strides: &[isize],
    ) -> Result<Self, Error> {
        let arrangement = Arrangement::new(offset, shape, strides, data.len())?;
        arrangement.check_disjoint()?;
        Ok(TensorViewMut { data, arrangement })
    }

    /// The size of each axis.
    pub fn shape(&self) -> &[usize] {
        self.arrangement.shape()
    }

    /// The distance in memory between neighbours along each axis.
    pub fn strides(&self) -> &[isize] {
        self.arrangement.strides()
    }

    /// The memory behind the view.
    pub(crate) fn data_mut(&mut self) -> &mut [T] {
        self.data
    }

    /// Where in the memory element 0 lies.
    pub(crate) fn offset(&self) -> usize {
        self.arrangement.offset()
    }

    /// The same data in the order `(N, C, X…)`. The layout must have the view's rank.
    pub(crate) fn canonical_data(self, layout: &DataLayout) -> Self {
        TensorViewMut { arrangement: self.arrangement.canonical_data(layout), data: self.data }
    }
}
