//! Where the elements of a tensor lie in memory.

use outstride_spec::{DataLayout, FilterLayout};

/// A shape, strides and memory that do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages say what each field is.
pub enum ViewError {
    #[error("shape {shape:?} has {expected} elements, but the data has {found}")]
    Length { shape: Vec<usize>, expected: usize, found: usize },

    #[error("shape {shape:?} has {} axes, but there are {found} strides", shape.len())]
    StrideCount { shape: Vec<usize>, found: usize },

    #[error(
        "shape {shape:?} with strides {strides:?} from offset {offset} leaves the {length} elements of memory"
    )]
    OutOfBounds { shape: Vec<usize>, strides: Vec<isize>, offset: usize, length: usize },

    #[error(
        "shape {shape:?} with strides {strides:?} may put two elements at one address; \
         an output needs elements that are apart"
    )]
    Overlap { shape: Vec<usize>, strides: Vec<isize> },

    #[error("shape {shape:?} has more elements than memory can hold")]
    TooLarge { shape: Vec<usize> },
}

/// Offset, shape and strides that stay inside some memory: an element's position is the offset plus each index times
/// its stride.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arrangement {
    offset: usize,
    shape: Vec<usize>,
    strides: Vec<isize>,
}

impl Arrangement {
    /// Checks that every element lies within `length`.
    pub(crate) fn new(
        offset: usize,
        shape: &[usize],
        strides: &[isize],
        length: usize,
    ) -> Result<Self, ViewError> {
        if shape.len() != strides.len() {
            return Err(ViewError::StrideCount { shape: shape.to_vec(), found: strides.len() });
        }
        let arrangement = Arrangement { offset, shape: shape.to_vec(), strides: strides.to_vec() };
        if arrangement.shape.contains(&0) {
            // No element exists; strides of zero keep later arithmetic on them harmless.
            return Ok(Arrangement { offset: 0, strides: vec![0; shape.len()], ..arrangement });
        }
        let (mut lowest, mut highest) = (offset as i128, offset as i128);
        for (&size, &stride) in shape.iter().zip(strides) {
            let reach = (size as i128 - 1) * stride as i128;
            let bound = if reach < 0 { &mut lowest } else { &mut highest };
            *bound = bound.saturating_add(reach);
        }
        if lowest < 0 || highest >= length as i128 {
            let Arrangement { shape, strides, .. } = arrangement;
            return Err(ViewError::OutOfBounds { shape, strides, offset, length });
        }
        Ok(arrangement)
    }

    /// Row-major, without gaps. The shape must be of existing memory or have been checked by [`Self::row_major`].
    pub(crate) fn packed(shape: &[usize]) -> Self {
        let mut strides = vec![0isize; shape.len()];
        let mut stride = 1isize;
        for (axis, &size) in shape.iter().enumerate().rev() {
            strides[axis] = stride;
            stride = stride.saturating_mul(size.max(1) as isize);
        }
        Arrangement { offset: 0, shape: shape.to_vec(), strides }
    }

    /// Row-major, without gaps, where the number of elements is one that memory could hold.
    pub(crate) fn row_major(shape: &[usize]) -> Result<Self, ViewError> {
        let count = shape.iter().try_fold(1usize, |count, &size| count.checked_mul(size.max(1)));
        match count {
            Some(count) if isize::try_from(count).is_ok() => Ok(Self::packed(shape)),
            _ => Err(ViewError::TooLarge { shape: shape.to_vec() }),
        }
    }

    /// How many elements there are.
    pub(crate) fn len(&self) -> usize {
        self.shape.iter().product()
    }

    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub(crate) fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// Where an element lies, or `None` outside the shape.
    pub(crate) fn position(&self, index: &[usize]) -> Option<usize> {
        if index.len() != self.shape.len() || index.iter().zip(&self.shape).any(|(i, size)| i >= size) {
            return None;
        }
        let reach: isize = index.iter().zip(&self.strides).map(|(&i, &stride)| i as isize * stride).sum();
        Some(self.offset.wrapping_add_signed(reach))
    }

    /// Checks that no two elements share memory, by a sufficient rule: sorted by stride, each axis must step over
    /// everything the smaller ones reach.
    pub(crate) fn check_disjoint(&self) -> Result<(), ViewError> {
        if self.shape.contains(&0) {
            return Ok(());
        }
        let mut axes: Vec<(usize, usize)> = self
            .strides
            .iter()
            .map(|stride| stride.unsigned_abs())
            .zip(self.shape.iter().copied())
            .filter(|&(_, size)| size > 1)
            .collect();
        axes.sort_unstable();
        let mut reach = 0usize;
        for (stride, size) in axes {
            if stride <= reach {
                let Arrangement { shape, strides, .. } = self.clone();
                return Err(ViewError::Overlap { shape, strides });
            }
            reach += stride * (size - 1);
        }
        Ok(())
    }

    pub(crate) fn canonical_data(&self, layout: &DataLayout) -> Self {
        let (shape, strides) = layout
            .axes()
            .map(|axis| axis.map_or((1, 0), |axis| (self.shape[axis], self.strides[axis])))
            .unzip();
        Arrangement { offset: self.offset, shape, strides }
    }

    pub(crate) fn canonical_filter(&self, layout: &FilterLayout, groups: usize) -> Self {
        let input = (self.shape[layout.input], self.strides[layout.input]);
        let (group, input) = match layout.group {
            Some(axis) => ((self.shape[axis], self.strides[axis]), input),
            // The input-channel axis holds all groups, one after the other.
            None => {
                let channels = input.0 / groups;
                ((groups, input.1 * channels as isize), (channels, input.1))
            }
        };
        let mut offset = self.offset;
        let (mut shape, mut strides) = (vec![group.0, input.0], vec![group.1, input.1]);
        shape.push(self.shape[layout.output]);
        strides.push(self.strides[layout.output]);
        let empty = self.shape.contains(&0);
        for &axis in &layout.spatial {
            let (size, stride) = (self.shape[axis], self.strides[axis]);
            shape.push(size);
            if layout.flipped && !empty {
                offset = offset.wrapping_add_signed((size as isize - 1) * stride);
            }
            // Wrapping, because an axis of one element may have any stride at all.
            strides.push(if layout.flipped { stride.wrapping_neg() } else { stride });
        }
        Arrangement { offset, shape, strides }
    }

    /// The same elements with one more axis, of size one, before an axis of that number.
    pub(crate) fn with_unit_axis(&self, axis: usize) -> Self {
        let mut with_axis = self.clone();
        with_axis.shape.insert(axis, 1);
        with_axis.strides.insert(axis, 0);
        with_axis
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_may_not_leave_the_memory() {
        assert!(Arrangement::new(0, &[2, 3], &[3, 1], 6).is_ok());
        assert!(Arrangement::new(1, &[2, 3], &[3, 1], 6).is_err());
        assert!(Arrangement::new(5, &[2, 3], &[-3, -1], 6).is_ok());
        assert!(Arrangement::new(4, &[2, 3], &[-3, -1], 6).is_err());
        assert!(Arrangement::new(0, &[usize::MAX], &[0], 1).is_ok());
        assert!(Arrangement::new(0, &[usize::MAX, 2], &[isize::MAX, 1], 6).is_err());
        assert!(Arrangement::new(0, &[usize::MAX; 3], &[isize::MAX; 3], 6).is_err());
        assert!(Arrangement::new(0, &[usize::MAX; 3], &[isize::MIN; 3], 6).is_err());
        assert!(Arrangement::new(9, &[0, 3], &[3, 1], 0).is_ok());
        assert!(Arrangement::new(0, &[2], &[1, 1], 6).is_err());
    }

    #[test]
    fn outputs_must_keep_their_elements_apart() {
        let disjoint = |shape: &[usize], strides: &[isize]| {
            Arrangement::new(0, shape, strides, 100).unwrap().check_disjoint().is_ok()
        };
        assert!(disjoint(&[2, 3], &[3, 1]));
        assert!(disjoint(&[2, 3], &[1, 2]));
        assert!(disjoint(&[2, 3], &[30, 2]));
        assert!(disjoint(&[1, 3], &[0, 1]));
        assert!(!disjoint(&[2, 3], &[0, 1]));
        assert!(!disjoint(&[2, 3], &[2, 1]));
        assert!(disjoint(&[0, 3], &[3, 1]));
    }

    #[test]
    fn a_flipped_filter_starts_at_its_last_element() {
        let filter = Arrangement::packed(&[3, 2, 1]);
        let layout = FilterLayout { flipped: true, ..FilterLayout::xio(1) };
        let canonical = filter.canonical_filter(&layout, 1);
        assert_eq!(canonical.shape(), [1, 2, 1, 3]);
        assert_eq!(canonical.position(&[0, 1, 0, 0]), Some(5));
        assert_eq!(canonical.position(&[0, 1, 0, 2]), Some(1));
    }

    #[test]
    fn a_flipped_axis_of_one_element_may_have_any_stride() {
        let filter = Arrangement::new(0, &[1, 1, 1], &[isize::MIN, 1, 1], 1).unwrap();
        let layout = FilterLayout { flipped: true, ..FilterLayout::xio(1) };
        assert_eq!(filter.canonical_filter(&layout, 1).position(&[0, 0, 0, 0]), Some(0));
    }
}
