//! The input of a task: where it lies, or copied with zeros around it and channels side by side.
//!
//! Channels come in blocks: a step of the sums reads one block of all positions, which stays in the cache meanwhile.

use outstride_kernels::Real;

use super::super::aligned::Aligned;
use super::super::axis::{EngineAxis, Span};
use super::super::problem::Problem;

/// The most channels of a block.
const BLOCK_CHANNELS: usize = 256;

/// How the channels of a group are cut into blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChannelBlocks {
    channels: usize,
    /// Channels of every block but the last.
    pub(super) size: usize,
}

impl ChannelBlocks {
    pub(super) fn new(channels: usize) -> Self {
        let count = channels.div_ceil(BLOCK_CHANNELS).max(1);
        ChannelBlocks { channels, size: channels.div_ceil(count).next_multiple_of(8).min(channels.max(1)) }
    }

    /// How many channels a block has.
    pub(super) fn channels(self, block: usize) -> usize {
        self.size.min(self.channels - block * self.size)
    }

    /// The first channel and the number of channels of each block.
    pub(super) fn iter(self) -> impl ExactSizeIterator<Item = (usize, usize)> {
        // Without channels there is still one step, which adds the bias.
        let count = self.channels.div_ceil(self.size).max(1);
        (0..count).map(move |block| (block * self.size, self.channels(block)))
    }
}

/// Input positions with the channels of a block side by side.
pub(super) struct Input<'a, T> {
    /// Channel 0 of the position with all indices 0 (which a copied box need not contain).
    origin: *const T,
    /// Per axis, the distance between positions.
    pub(super) strides: Vec<isize>,
    /// From a block of channels to the next.
    block_stride: isize,
    /// Per axis, the indices that can be read.
    pub(super) readable: Vec<Span>,
    memory: std::marker::PhantomData<&'a [T]>,
}

impl<'a, T: Real> Input<'a, T> {
    /// Reads the input where it lies: its channels are already side by side.
    pub(super) fn in_place(problem: &'a Problem<'_, T>, group: usize, blocks: ChannelBlocks) -> Self {
        Input {
            origin: problem.x.as_ptr().wrapping_add(problem.x_group(group)),
            strides: problem.axes.iter().map(|axis| axis.x_stride).collect(),
            block_stride: blocks.size as isize,
            readable: problem.axes.iter().map(|axis| Span { first: 0, count: axis.input }).collect(),
            memory: std::marker::PhantomData,
        }
    }

    /// Copies the indices `needed` of every axis; those outside the input become zeros.
    pub(super) fn copied(
        problem: &Problem<'_, T>,
        group: usize,
        blocks: ChannelBlocks,
        needed: Vec<Span>,
        scratch: &'a mut Aligned<T>,
    ) -> Self {
        let mut strides = vec![0isize; needed.len()];
        let mut stride = blocks.size;
        for (axis, span) in needed.iter().enumerate().rev() {
            strides[axis] = stride as isize;
            stride *= span.count;
        }
        let block_len = stride;
        let memory = scratch.at_least(block_len * blocks.iter().len());
        for (index, (first, channels)) in blocks.iter().enumerate() {
            let target = &mut memory[index * block_len..(index + 1) * block_len];
            copy_block(problem, problem.x_group(group), first, channels, &needed, blocks.size, target);
        }
        let before: isize =
            needed.iter().zip(&strides).map(|(span, &stride)| span.first as isize * stride).sum();
        Input {
            origin: memory.as_ptr().wrapping_offset(-before),
            strides,
            block_stride: block_len as isize,
            readable: needed,
            memory: std::marker::PhantomData,
        }
    }

    /// Channel 0 of a block at the position with all indices 0.
    pub(super) fn origin(&self, block: usize) -> *const T {
        self.origin.wrapping_offset(block as isize * self.block_stride)
    }
}

/// The indices that positions `spans` (counted from the input's own first) read along every axis, as far as a copy
/// must hold them: a tap that meets the input at one of the positions may miss it at others by their number.
pub(super) fn needed(axes: &[EngineAxis<'_>], spans: &[Span], reach: &[usize]) -> Vec<Span> {
    let of_axis = |((axis, span), &reach): ((&EngineAxis<'_>, &Span), &usize)| {
        let wanted = Span { first: span.first - reach as i64, count: span.count + reach };
        let margin = span.count as i64 - 1;
        wanted.intersect(&Span { first: -margin, count: axis.input + 2 * margin as usize })
    };
    axes.iter().zip(spans).zip(reach).map(of_axis).collect()
}

/// Copies one block of channels, `[position][channel]` with `pitch` elements per position.
fn copy_block<T: Real>(
    problem: &Problem<'_, T>,
    offset: usize,
    first_channel: usize,
    channels: usize,
    needed: &[Span],
    pitch: usize,
    target: &mut [T],
) {
    let last = needed.len() - 1;
    let row_len = needed[last].count * pitch;
    if row_len == 0 {
        return;
    }
    let inside = |axis: usize| needed[axis].intersect(&Span { first: 0, count: problem.axes[axis].input });
    let along = inside(last);
    let before = (along.first - needed[last].first).clamp(0, needed[last].count as i64) as usize;
    let distances: Vec<isize> =
        (0..channels).map(|channel| channel as isize * problem.x_channel_stride).collect();
    for (row, target) in target.chunks_exact_mut(row_len).enumerate() {
        let mut rest = row;
        let mut from = offset as isize + first_channel as isize * problem.x_channel_stride;
        let mut there = along.count > 0;
        for axis in (0..last).rev() {
            let index = needed[axis].first + (rest % needed[axis].count) as i64;
            rest /= needed[axis].count;
            there &= 0 <= index && index < problem.axes[axis].input as i64;
            from += index as isize * problem.axes[axis].x_stride;
        }
        if !there {
            target.fill(T::default());
            continue;
        }
        from += along.first as isize * problem.axes[last].x_stride;
        let (left, rest) = target.split_at_mut(before * pitch);
        let (middle, right) = rest.split_at_mut(along.count * pitch);
        left.fill(T::default());
        right.fill(T::default());
        copy_row(problem, from, &distances, along.count, middle, pitch);
    }
}

fn copy_row<T: Real>(
    problem: &Problem<'_, T>,
    from: isize,
    distances: &[isize],
    count: usize,
    target: &mut [T],
    pitch: usize,
) {
    let stride = problem.axes[problem.axes.len() - 1].x_stride;
    if stride == 1 && !distances.is_empty() {
        let source = problem.x.as_ptr().wrapping_offset(from);
        // A few channels at a time, so that each is read as a stream.
        let lanes = problem.filter.kernels.lanes();
        for (index, distances) in distances.chunks(lanes).enumerate() {
            let target = &mut target[index * lanes..];
            // SAFETY: row, channels and positions are all inside the view of the input.
            unsafe { problem.filter.kernels.transpose(source, distances, count, target, pitch) };
        }
        return;
    }
    for (position, target) in target.chunks_exact_mut(pitch).enumerate() {
        let from = from + position as isize * stride;
        for (value, &distance) in target.iter_mut().zip(distances) {
            *value = problem.x[(from + distance) as usize];
        }
    }
}
