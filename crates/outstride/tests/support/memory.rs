//! Tensors in awkward memory: axes in any order, gaps, reversed axes, repeated axes, and guards all around.

use outstride::{TensorView, TensorViewMut};
use proptest::prelude::*;

use super::number::Number;
use super::scatter::unravel;

/// How to lay out a tensor of some rank.
#[derive(Clone, Debug)]
pub(crate) struct Arrangement {
    /// Sorting the axes by these gives their order in memory.
    rank_of_axis: Vec<u8>,
    /// How many elements lie between neighbours of an axis, beyond what the inner axes need.
    gaps: Vec<usize>,
    reversed: Vec<bool>,
    /// Axes along which the tensor repeats itself: stride 0.
    repeated: Vec<bool>,
}

/// Arrangements of tensors of up to nine axes, without repeated axes.
pub(crate) fn disjoint_arrangements() -> impl Strategy<Value = Arrangement> {
    let each = |gaps| (any::<u8>(), gaps, any::<bool>());
    prop::collection::vec(each(prop_oneof![3 => 0usize..=0, 1 => 1usize..=3]), 9).prop_map(|axes| {
        Arrangement {
            rank_of_axis: axes.iter().map(|axis| axis.0).collect(),
            gaps: axes.iter().map(|axis| axis.1).collect(),
            reversed: axes.iter().map(|axis| axis.2).collect(),
            repeated: vec![false; axes.len()],
        }
    })
}

/// Arrangements that may also repeat themselves.
pub(crate) fn arrangements() -> impl Strategy<Value = Arrangement> {
    let repeated = prop::collection::vec(prop::bool::weighted(0.15), 9);
    (disjoint_arrangements(), repeated)
        .prop_map(|(arrangement, repeated)| Arrangement { repeated, ..arrangement })
}

/// A tensor somewhere inside a larger piece of memory.
#[derive(Clone, Debug)]
pub(crate) struct Placed<T> {
    pub(crate) memory: Vec<T>,
    offset: usize,
    shape: Vec<usize>,
    strides: Vec<isize>,
}

const GUARD: usize = 3;

impl<T: Number> Placed<T> {
    /// Poisoned memory for a tensor of that shape.
    pub(crate) fn poisoned(shape: &[usize], arrangement: &Arrangement) -> Self {
        let mut inner_to_outer: Vec<usize> = (0..shape.len()).collect();
        inner_to_outer.sort_by_key(|&axis| arrangement.rank_of_axis[axis]);
        let (mut strides, mut extent, mut offset) = (vec![0; shape.len()], 1usize, GUARD);
        for axis in inner_to_outer {
            if arrangement.repeated[axis] {
                continue;
            }
            let stride = extent + arrangement.gaps[axis];
            let reach = stride * shape[axis].saturating_sub(1);
            strides[axis] = if arrangement.reversed[axis] { -(stride as isize) } else { stride as isize };
            offset += if arrangement.reversed[axis] { reach } else { 0 };
            extent += reach;
        }
        let memory = vec![T::poison(); extent + 2 * GUARD];
        Placed { memory, offset, shape: shape.to_vec(), strides }
    }

    /// The values of a row-major tensor laid out so. Along repeated axes only the first of them remain: see
    /// [`Placed::values`].
    pub(crate) fn new(values: &[T], shape: &[usize], arrangement: &Arrangement) -> Self {
        let mut placed = Self::poisoned(shape, arrangement);
        for position in (0..values.len()).rev() {
            let address = placed.address(position);
            placed.memory[address] = values[position];
        }
        placed
    }

    fn address(&self, position: usize) -> usize {
        let index = unravel(position, &self.shape);
        let reach: isize = index.iter().zip(&self.strides).map(|(&i, &stride)| i as isize * stride).sum();
        self.offset.wrapping_add_signed(reach)
    }

    fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// What the view shows, in row-major order.
    pub(crate) fn values(&self) -> Vec<T> {
        (0..self.len()).map(|position| self.memory[self.address(position)]).collect()
    }

    /// Whether all memory that the view does not show is still poisoned.
    pub(crate) fn guards_are_intact(&self) -> bool {
        let mut shown = vec![false; self.memory.len()];
        for position in 0..self.len() {
            shown[self.address(position)] = true;
        }
        self.memory.iter().zip(shown).all(|(element, shown)| shown || *element == T::poison())
    }

    pub(crate) fn view(&self) -> TensorView<'_, T> {
        TensorView::from_parts(&self.memory, self.offset, &self.shape, &self.strides).unwrap()
    }

    pub(crate) fn view_mut(&mut self) -> TensorViewMut<'_, T> {
        TensorViewMut::from_parts(&mut self.memory, self.offset, &self.shape, &self.strides).unwrap()
    }
}
