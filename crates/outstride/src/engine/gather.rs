//! Input where kernels can read it, in place or copied box by box: channels side by side for panels, positions of a row
//! side by side for pixels.

use outstride_kernels::Scalar;

use super::axis::{EngineAxis, Span};
use super::boxes::Boxes;

/// Input of one box where the weights do not stay in the second-level cache, and every box means another pass over
/// them.
pub(crate) const INPUT_BYTES_PER_PASS: usize = 5 << 18;

/// Input positions with their channels side by side.
pub(crate) struct Rows<'a, T> {
    /// Channel 0 of the input position with all indices 0 (which a copied box need not contain).
    origin: *const T,
    /// Per axis, the distance between positions.
    strides: Vec<isize>,
    memory: std::marker::PhantomData<&'a [T]>,
}

impl<T> Rows<'_, T> {
    pub(crate) fn origin(&self) -> *const T {
        self.origin
    }

    pub(crate) fn stride(&self, axis: usize) -> isize {
        self.strides[axis]
    }
}

/// The input positions that a box of positions `q` reads, per axis, clipped to the input.
pub(crate) fn needed(axes: &[EngineAxis<'_>], spans: &[Span], reach: &[usize]) -> Vec<Span> {
    let of_axis = |((axis, span), &reach): ((&EngineAxis<'_>, &Span), &usize)| {
        let wanted = Span { first: span.first - reach as i64, count: span.count + reach };
        wanted.intersect(&Span { first: 0, count: axis.input })
    };
    axes.iter().zip(spans).zip(reach).map(of_axis).collect()
}

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

/// Reads the input where it lies: its channels are already side by side.
pub(crate) fn in_place<'a, T>(x: &'a [T], offset: usize, axes: &[EngineAxis<'_>]) -> Rows<'a, T> {
    Rows {
        origin: x.as_ptr().wrapping_add(offset),
        strides: axes.iter().map(|axis| axis.x_stride).collect(),
        memory: std::marker::PhantomData,
    }
}

/// Copies a box of the input, channels innermost, into `scratch`.
pub(crate) fn copied<'a, T: Scalar>(
    x: &[T],
    offset: usize,
    axes: &[EngineAxis<'_>],
    needed: &[Span],
    channels: usize,
    channel_stride: isize,
    scratch: &'a mut Vec<T>,
) -> Rows<'a, T> {
    let positions: usize = needed.iter().map(|span| span.count).product();
    scratch.resize(positions * channels, T::default());
    let strides = packed_strides(needed, channels);
    let last = &axes[axes.len() - 1];
    if channels > 0 {
        for_each_row(axes, offset, needed, |row, from, len| {
            let target = &mut scratch[row * len * channels..][..len * channels];
            transpose(x, from, last.x_stride, channel_stride, channels, target);
        });
    }
    Rows { origin: origin(scratch, needed, &strides), strides, memory: std::marker::PhantomData }
}

/// The strides of a copied box, `innermost` elements per position of the last axis.
fn packed_strides(needed: &[Span], innermost: usize) -> Vec<isize> {
    let mut strides = vec![0isize; needed.len()];
    let mut stride = innermost as isize;
    for (axis, span) in needed.iter().enumerate().rev() {
        strides[axis] = stride;
        stride *= span.count.max(1) as isize;
    }
    strides
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

/// Copies one row: `target[position][channel]` from positions and channels at the given strides, in blocks that keep
/// both sides in cache.
fn transpose<T: Scalar>(
    x: &[T],
    from: isize,
    position_stride: isize,
    channel_stride: isize,
    channels: usize,
    target: &mut [T],
) {
    const BLOCK: usize = 16;
    for (block, positions) in target.chunks_mut(BLOCK * channels).enumerate() {
        let from = from + (block * BLOCK) as isize * position_stride;
        let count = positions.len() / channels;
        for first in (0..channels).step_by(BLOCK) {
            for channel in first..channels.min(first + BLOCK) {
                let at = from + channel as isize * channel_stride;
                for position in 0..count {
                    positions[position * channels + channel] =
                        x[(at + position as isize * position_stride) as usize];
                }
            }
        }
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
pub(crate) fn copied_planes<'a, T: Scalar>(
    x: &[T],
    offset: usize,
    axes: &[EngineAxis<'_>],
    needed: &[Span],
    channels: usize,
    channel_stride: isize,
    scratch: &'a mut Vec<T>,
) -> Planes<'a, T> {
    let plane = plane_stride(needed);
    scratch.resize(plane * channels, T::default());
    let strides = packed_strides(needed, 1);
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

fn copy_row<T: Scalar>(x: &[T], from: isize, stride: isize, target: &mut [T]) {
    if stride == 1 {
        target.copy_from_slice(&x[from as usize..][..target.len()]);
    } else {
        for (position, value) in target.iter_mut().enumerate() {
            *value = x[(from + position as isize * stride) as usize];
        }
    }
}
