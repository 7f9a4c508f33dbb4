//! Input with the positions of a row side by side, as pixel kernels read it: where it lies, or copied box by box.

use outstride_kernels::{Real, Source};

use super::axis::{EngineAxis, Span};
use super::boxes::Boxes;
use super::channels::position_strides;

/// Input of one box where the weights do not stay in the second-level cache, and every box means another pass over
/// them.
pub(crate) const INPUT_BYTES_PER_PASS: usize = 5 << 18;

/// How many input positions a box of `chunk` positions reads at most.
pub(crate) fn input_positions(axes: &[EngineAxis<'_>], chunk: &[usize], reach: &[usize]) -> usize {
    let of_axis =
        |((axis, &count), &reach): ((&EngineAxis<'_>, &usize), &usize)| (count + reach).min(axis.input);
    axes.iter().zip(chunk).zip(reach).map(of_axis).product()
}

/// How many input positions the first, and so the largest, of the boxes reads at most.
pub(crate) fn positions_of_first(axes: &[EngineAxis<'_>], boxes: &Boxes, reach: &[usize]) -> usize {
    let chunk: Vec<usize> = boxes.get(0).iter().map(|span| span.count).collect();
    input_positions(axes, &chunk, reach)
}

/// Where index 0 of every axis of a copied box would lie; only the copied positions are ever read.
fn origin<T>(scratch: &[T], needed: &[Span], strides: &[isize]) -> *const T {
    let before: isize = needed.iter().zip(strides).map(|(span, &stride)| span.first as isize * stride).sum();
    scratch.as_ptr().wrapping_offset(-before)
}

/// Calls `visit` with the number, the place in the input and the length of every row of a box.
fn for_each_row(
    axes: &[EngineAxis<'_>],
    offset: usize,
    needed: &[Span],
    mut visit: impl FnMut(usize, isize, usize),
) {
    if needed.iter().any(|span| span.count == 0) {
        return;
    }
    let last = axes.len() - 1;
    let rows: usize = needed[..last].iter().map(|span| span.count).product();
    for row in 0..rows {
        let mut rest = row;
        let mut from = offset as isize + needed[last].first as isize * axes[last].x_stride;
        for axis in (0..last).rev() {
            let index = rest % needed[axis].count;
            rest /= needed[axis].count;
            from += (needed[axis].first as isize + index as isize) * axes[axis].x_stride;
        }
        visit(row, from, needed[last].count);
    }
}

/// Input positions of a row side by side.
pub(crate) struct Planes<'a, T> {
    /// Channel 0 of the input position with all indices 0 (which a copied box need not contain).
    origin: *const T,
    /// Per axis, the positions that are there.
    spans: Vec<Span>,
    /// Per axis, the distance between positions; 1 for the last.
    strides: Vec<isize>,
    channel_stride: isize,
    memory: std::marker::PhantomData<&'a [T]>,
}

impl<'a, T> Planes<'a, T> {
    /// Reads the input where it lies: its rows are already runs of positions.
    pub(crate) fn in_place(
        x: &'a [T],
        offset: usize,
        axes: &[EngineAxis<'_>],
        channel_stride: isize,
    ) -> Self {
        Planes {
            origin: x.as_ptr().wrapping_add(offset),
            spans: axes.iter().map(|axis| Span { first: 0, count: axis.input }).collect(),
            strides: axes.iter().map(|axis| axis.x_stride).collect(),
            channel_stride,
            memory: std::marker::PhantomData,
        }
    }

    pub(crate) fn origin(&self) -> *const T {
        self.origin
    }

    pub(crate) fn span(&self, axis: usize) -> Span {
        self.spans[axis]
    }

    pub(crate) fn stride(&self, axis: usize) -> isize {
        self.strides[axis]
    }

    pub(crate) fn channel_stride(&self) -> isize {
        self.channel_stride
    }
}

/// Elements of a copied box: each channel an odd number of cache lines from the next, so that the channels of one
/// position do not all fall into the same set of a cache.
pub(crate) fn planes_len(needed: &[Span], channels: usize) -> usize {
    plane_stride(needed) * channels
}

fn plane_stride(needed: &[Span]) -> usize {
    const LINE: usize = 16;
    let positions: usize = needed.iter().map(|span| span.count).product();
    (positions.div_ceil(LINE) | 1) * LINE
}

/// Copies a box of the input, channels outermost, into `scratch`.
pub(crate) fn copied_planes<'a, T: Real>(
    x: &Source<'_, T>,
    offset: usize,
    axes: &[EngineAxis<'_>],
    needed: &[Span],
    channels: usize,
    channel_stride: isize,
    scratch: &'a mut Vec<T>,
) -> Planes<'a, T> {
    let plane = plane_stride(needed);
    scratch.resize(plane * channels, T::default());
    let (strides, _) = position_strides(needed, &Vec::from_iter(0..needed.len()));
    let strides: Vec<isize> = strides.into_iter().map(|stride| stride as isize).collect();
    let last = &axes[axes.len() - 1];
    for_each_row(axes, offset, needed, |row, from, len| {
        for channel in 0..channels {
            let from = from + channel as isize * channel_stride;
            let target = &mut scratch[channel * plane + row * len..][..len];
            copy_row(x, from, last.x_stride, target);
        }
    });
    Planes {
        origin: origin(scratch, needed, &strides),
        spans: needed.to_vec(),
        strides,
        channel_stride: plane as isize,
        memory: std::marker::PhantomData,
    }
}

fn copy_row<T: Real>(x: &Source<'_, T>, from: isize, stride: isize, target: &mut [T]) {
    if stride == 1 {
        x.read_run(from, target);
    } else {
        for (position, value) in target.iter_mut().enumerate() {
            *value = x.get((from + position as isize * stride) as usize);
        }
    }
}
