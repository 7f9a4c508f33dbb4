//! Tensors from a dialect's layout into canonical order and back.

use outstride::{DataLayout, FilterLayout};

/// Where the elements of a canonical order lie in a row-major tensor of some layout.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// The canonical sizes: `(N, C, X…)` for data, `(G, C/G, M/G, k…)` for filters.
    pub(crate) shape: Vec<usize>,
    pub(crate) strides: Vec<isize>,
    pub(crate) offset: usize,
}

impl Order {
    /// The order of data of this shape. The layout must be of a call that was resolved for the shape.
    pub(crate) fn of_data(layout: &DataLayout, shape: &[usize]) -> Self {
        let strides = row_major(shape);
        let (shape, strides) =
            layout.axes().map(|axis| axis.map_or((1, 0), |axis| (shape[axis], strides[axis]))).unzip();
        Order { shape, strides, offset: 0 }
    }

    /// The order of a filter of this shape. The layout must be of a call that was resolved for the shape.
    pub(crate) fn of_filter(layout: &FilterLayout, shape: &[usize], groups: usize) -> Self {
        let memory = row_major(shape);
        let (input, input_stride) = (shape[layout.input], memory[layout.input]);
        let (group, input) = match layout.group {
            Some(axis) => ((shape[axis], memory[axis]), input),
            // The input-channel axis holds all groups, one after the other.
            None => {
                let channels = input / groups.max(1);
                ((groups, input_stride * channels as isize), channels)
            }
        };
        let mut order = Order {
            shape: vec![group.0, input, shape[layout.output]],
            strides: vec![group.1, input_stride, memory[layout.output]],
            offset: 0,
        };
        for &axis in &layout.spatial {
            order.shape.push(shape[axis]);
            order.strides.push(if layout.flipped { -memory[axis] } else { memory[axis] });
            if layout.flipped {
                order.offset += shape[axis].saturating_sub(1) * memory[axis].unsigned_abs();
            }
        }
        order
    }

    /// The values in canonical order.
    pub(crate) fn gather<T: Copy>(&self, values: &[T]) -> Vec<T> {
        self.positions().map(|position| values[position]).collect()
    }

    /// Values in canonical order, in the layout's.
    pub(crate) fn scatter<T: Copy + Default>(&self, canonical: &[T]) -> Vec<T> {
        let mut values = vec![T::default(); canonical.len()];
        for (&value, position) in canonical.iter().zip(self.positions()) {
            values[position] = value;
        }
        values
    }

    /// Where the element of a canonical index lies.
    pub(crate) fn position(&self, index: &[usize]) -> usize {
        let reach: isize = index.iter().zip(&self.strides).map(|(&i, &stride)| i as isize * stride).sum();
        self.offset.wrapping_add_signed(reach)
    }

    /// Where each element lies, in canonical order.
    fn positions(&self) -> impl Iterator<Item = usize> + '_ {
        let count = if self.shape.contains(&0) { 0 } else { self.shape.iter().product() };
        let mut index = vec![0usize; self.shape.len()];
        (0..count).map(move |_| {
            let position = self.position(&index);
            for axis in (0..index.len()).rev() {
                index[axis] += 1;
                if index[axis] < self.shape[axis] {
                    break;
                }
                index[axis] = 0;
            }
            position
        })
    }
}

fn row_major(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![1isize; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(shape[axis].max(1) as isize);
    }
    strides
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_last_data_becomes_channels_first_and_back() {
        let order = Order::of_data(&DataLayout::nxc(1), &[1, 2, 3]);
        let canonical = order.gather(&[0, 1, 2, 10, 11, 12]);
        assert_eq!(canonical, [0, 10, 1, 11, 2, 12]);
        assert_eq!(order.scatter(&canonical), [0, 1, 2, 10, 11, 12]);
    }

    #[test]
    fn filters_of_every_layout_become_the_same() {
        // Two groups of one input and two outputs each, kernel 2.
        let iox = Order::of_filter(&FilterLayout::iox(1), &[2, 2, 2], 2);
        let canonical = iox.gather(&[0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(iox.shape, [2, 1, 2, 2]);
        assert_eq!(canonical, [0, 1, 2, 3, 4, 5, 6, 7]);
        for (layout, shape) in [
            (FilterLayout::giox(1), [2, 1, 2, 2].as_slice()),
            (FilterLayout::xio(1), &[2, 2, 2]),
            (FilterLayout { flipped: true, ..FilterLayout::xoi(1) }, &[2, 2, 2]),
        ] {
            let order = Order::of_filter(&layout, shape, 2);
            assert_eq!(order.shape, [2, 1, 2, 2], "{layout}");
            assert_eq!(order.gather(&order.scatter(&canonical)), canonical, "{layout}");
        }
        let flipped = FilterLayout { flipped: true, ..FilterLayout::iox(1) };
        assert_eq!(Order::of_filter(&flipped, &[1, 1, 3], 1).gather(&[1, 2, 3]), [3, 2, 1]);
    }
}
