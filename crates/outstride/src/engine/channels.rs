//! Input with its channels side by side: where it lies, or copied with zeros around it.
//!
//! Channels come in blocks: a step of the sums reads one block of all positions, which stays in the cache meanwhile.

use outstride_kernels::{Real, Runs};

use super::axis::{EngineAxis, Span, follows};
use super::problem::Problem;
use super::scratch::{BoxOfCall, Kept};

/// The most channels of a block.
const BLOCK_CHANNELS: usize = 256;

/// Positions of a channel that are fetched at once, while others are turned.
const FETCHED_POSITIONS: usize = 64;

/// Positions of short rows that are copied together.
const SHORT_ROWS: usize = 64;

/// How the channels of a group are cut into blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChannelBlocks {
    channels: usize,
    /// Channels of every block but the last.
    pub(crate) size: usize,
}

impl ChannelBlocks {
    pub(crate) fn new(channels: usize) -> Self {
        let count = channels.div_ceil(BLOCK_CHANNELS).max(1);
        ChannelBlocks { channels, size: channels.div_ceil(count).next_multiple_of(8).min(channels.max(1)) }
    }

    /// All of them in one block.
    pub(crate) fn whole(channels: usize) -> Self {
        ChannelBlocks { channels, size: channels.max(1) }
    }

    /// How many channels a block has.
    pub(crate) fn channels(self, block: usize) -> usize {
        self.size.min(self.channels - block * self.size)
    }

    /// The first channel and the number of channels of each block.
    pub(crate) fn iter(self) -> impl ExactSizeIterator<Item = (usize, usize)> + Clone {
        // Without channels there is still one step, which adds the bias.
        let count = self.channels.div_ceil(self.size).max(1);
        (0..count).map(move |block| (block * self.size, self.channels(block)))
    }
}

/// Input positions with the channels of a block side by side.
pub(crate) struct Input<'a, T> {
    /// Channel 0 of the position with all indices 0 (which a copied box need not contain).
    origin: *const T,
    /// Per axis, the distance between positions.
    pub(crate) strides: Vec<isize>,
    /// From a block of channels to the next.
    block_stride: isize,
    /// Per axis, the indices that can be read.
    pub(crate) readable: Vec<Span>,
    memory: std::marker::PhantomData<&'a [T]>,
}

impl<'a, T: Real> Input<'a, T> {
    /// Reads the input where it lies: its channels are already side by side, of the type that is computed with.
    pub(crate) fn in_place(problem: &'a Problem<'_, T>, group: usize, blocks: ChannelBlocks) -> Self {
        let x = problem.x.as_computed().expect("planned to read the input where it lies");
        Input {
            origin: x.as_ptr().wrapping_add(problem.x_group(group)),
            strides: problem.axes.iter().map(|axis| axis.x_stride).collect(),
            block_stride: blocks.size as isize,
            readable: problem.axes.iter().map(|axis| axis.whole_input()).collect(),
            memory: std::marker::PhantomData,
        }
    }

    /// Copies the indices `needed` of every axis; those outside the input become zeros.
    pub(crate) fn copied(
        problem: &Problem<'_, T>,
        group: usize,
        blocks: ChannelBlocks,
        needed: Vec<Span>,
        (scratch, whose): (&'a mut Kept<T>, BoxOfCall),
    ) -> Self {
        let order: Vec<usize> = (0..needed.len()).collect();
        let (strides, positions) = position_strides(&needed, &order);
        let strides: Vec<isize> = strides.into_iter().map(|stride| (stride * blocks.size) as isize).collect();
        let block_len = positions * blocks.size;
        let memory = scratch.of(whose, block_len * blocks.iter().len(), |memory| {
            for (index, (first, channels)) in blocks.iter().enumerate() {
                let target = &mut memory[index * block_len..(index + 1) * block_len];
                let x = problem.x_group(group).wrapping_add_signed(first as isize * problem.x_channel_stride);
                let row = |from: isize, distances: &[isize], count: usize, target: &mut [T], pitch: usize| {
                    copy_row(problem, from, distances, count, target, pitch)
                };
                let fill = |target: &mut [T]| target[..channels].fill(T::default());
                let target = BoxTarget { memory: target, parts: 1, part_stride: 0, fill };
                copy_block(problem, x, channels, &needed, &strides, target, row);
            }
        });
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
    pub(crate) fn origin(&self, block: usize) -> *const T {
        self.origin.wrapping_offset(block as isize * self.block_stride)
    }
}

/// The indices that positions `spans` read along every axis, as far as a copy must hold them. Positions that are computed
/// together share their taps: with `apart`, one that meets the input at some of them may miss it at others, by their number
/// at most; otherwise all of them are the same but for the batch, and a tap meets the input at all or none.
pub(crate) fn needed(axes: &[EngineAxis<'_>], spans: &[Span], reach: &[usize], apart: bool) -> Vec<Span> {
    let of_axis = |(wanted, near): (Span, Span)| wanted.intersect(&near);
    reached(spans, reach).into_iter().zip(near(axes, spans, apart)).map(of_axis).collect()
}

/// As many indices as positions `spans`, moved anywhere, [need](needed) at most.
pub(crate) fn most_needed(
    axes: &[EngineAxis<'_>],
    spans: &[Span],
    reach: &[usize],
    apart: bool,
) -> Vec<Span> {
    let of_axis = |(wanted, near): (Span, Span)| Span { count: wanted.count.min(near.count), ..near };
    reached(spans, reach).into_iter().zip(near(axes, spans, apart)).map(of_axis).collect()
}

/// Per axis, the indices that exist, and beside them those that positions `apart` may read.
fn near(axes: &[EngineAxis<'_>], spans: &[Span], apart: bool) -> impl Iterator<Item = Span> {
    axes.iter().zip(spans).map(move |(axis, span)| {
        let margin = if apart { span.count.max(1) as i64 - 1 } else { 0 };
        Span { first: -margin, count: axis.input + 2 * margin as usize }
    })
}

/// The indices that positions `spans` read along every axis, whether or not they exist.
pub(crate) fn reached(spans: &[Span], reach: &[usize]) -> Vec<Span> {
    let of_axis = |(span, &reach): (&Span, &usize)| Span {
        first: span.first - reach as i64,
        count: span.count + reach,
    };
    spans.iter().zip(reach).map(of_axis).collect()
}

/// Per axis, the distance between positions of a box, and how many there are. The last axis of `order` is fastest.
pub(crate) fn position_strides(needed: &[Span], order: &[usize]) -> (Vec<usize>, usize) {
    let mut strides = vec![0; needed.len()];
    let mut stride = 1;
    for &axis in order.iter().rev() {
        strides[axis] = stride;
        stride *= needed[axis].count;
    }
    (strides, stride)
}

/// Where a box is copied to.
pub(crate) struct BoxTarget<'m, E, F> {
    pub(crate) memory: &'m mut [E],
    /// Parts that elements are cut into, so far from each other.
    pub(crate) parts: usize,
    pub(crate) part_stride: usize,
    /// Fills a position around the input, given the memory from there on.
    pub(crate) fill: F,
}

/// Where a row of a box begins, given all axes but its own and how far positions are apart along each of them.
pub(crate) fn place_of_row(outer: &[Span], stride: impl Fn(usize) -> usize, mut row: usize) -> usize {
    let mut place = 0;
    for (axis, span) in outer.iter().enumerate().rev() {
        place += row % span.count * stride(axis);
        row /= span.count;
    }
    place
}

/// Copies some channels of a box. `x` is where channel and indices 0 lie. `copy_row` copies a row of positions: from an index of the
/// input on, channels at their distances, so many positions of the last axis, to a target with so many elements from position to
/// position.
pub(crate) fn copy_block<T: Real, E: Copy>(
    problem: &Problem<'_, T>,
    x: usize,
    channels: usize,
    needed: &[Span],
    strides: &[isize],
    target: BoxTarget<'_, E, impl Fn(&mut [E])>,
    mut copy_row: impl FnMut(isize, &[isize], usize, &mut [E], usize),
) {
    if needed.iter().any(|span| span.count == 0) {
        return;
    }
    let BoxTarget { memory, parts, part_stride, fill } = target;
    let distances: Vec<isize> =
        (0..channels).map(|channel| channel as isize * problem.x_channel_stride).collect();
    let joined = joined_axes(&problem.axes, needed, strides);
    let Joined { along, positions } = joined;
    let (outer, row) = (&needed[..along], needed[along]);
    let inside = row.intersect(&problem.axes[along].whole_input());
    let before = (inside.first - row.first).clamp(0, row.count as i64) as usize * positions;
    let (row_len, len) = (row.count * positions, inside.count * positions);
    let stride = strides[needed.len() - 1] as usize;
    let at_once = rows_at_once(problem, needed, strides, &joined);
    let rows: usize = outer.iter().map(|span| span.count).product();
    let mut number = 0;
    while number < rows {
        let target = &mut memory[place_of_row(outer, |axis| strides[axis] as usize, number)..];
        let Some(from) = row_of_input(&problem.axes, &needed[..=along], number) else {
            (0..row_len).for_each(|position| fill(&mut target[position * stride..]));
            number += 1;
            continue;
        };
        let count = at_once.min(rows_left(&problem.axes, outer, number));
        // Several rows are copied behind each other to the end of their place, and moved from there to their own.
        let begin = if count > 1 { count * (row_len - len) } else { before };
        copy_row(x as isize + from, &distances, count * len, &mut target[begin * stride..], stride);
        for row in 0..count {
            let (from, to) = (begin + row * len, row * row_len + before);
            for part in (0..parts).map(|part| part * part_stride).filter(|_| from != to) {
                target.copy_within(part + from * stride..part + (from + len) * stride, part + to * stride);
            }
            for position in (0..before).chain(before + len..row_len) {
                fill(&mut target[(row * row_len + position) * stride..]);
            }
        }
        number += count;
    }
}

/// How many rows of a box are copied together: those of up to so many positions that follow each other in the input, where
/// channels do not.
fn rows_at_once<T: Real>(
    problem: &Problem<'_, T>,
    needed: &[Span],
    strides: &[isize],
    joined: &Joined,
) -> usize {
    let (axes, last) = (&problem.axes, needed.len() - 1);
    let &Joined { along, positions } = joined;
    if along == 0 || problem.x_channel_stride == 1 || axes[last].x_stride != 1 {
        return 1;
    }
    // Samples that take turns lie between positions of the same.
    let take_turns = strides[0] < strides[last];
    let whole = axes[along].whole_input();
    let is_whole = needed[along].contains(&whole);
    let follow = follows(axes[along - 1].x_stride, axes[along].x_stride, whole.count)
        && follows(strides[along - 1], strides[along], needed[along].count);
    if is_whole && follow && !take_turns { (SHORT_ROWS / (whole.count * positions).max(1)).max(1) } else { 1 }
}

/// How many rows there are from one of the input on, until the axes before are left or the last one of the input is reached.
fn rows_left(axes: &[EngineAxis<'_>], outer: &[Span], row: usize) -> usize {
    let Some(axis) = outer.len().checked_sub(1) else { return 1 };
    let inside = outer[axis].intersect(&axes[axis].whole_input());
    let index = outer[axis].first + (row % outer[axis].count) as i64;
    (inside.end() - index).max(1) as usize
}

/// Axes of a box that are read as if they were one.
struct Joined {
    /// The slowest of them.
    along: usize,
    /// Positions of all others.
    positions: usize,
}

/// The innermost axes whose positions follow each other in the input and in the copy, given the distances between those there.
fn joined_axes(axes: &[EngineAxis<'_>], needed: &[Span], strides: &[isize]) -> Joined {
    let last = needed.len() - 1;
    let follow = |axis: usize| {
        needed[axis] == axes[axis].whole_input()
            && follows(axes[axis - 1].x_stride, axes[axis].x_stride, axes[axis].input)
            && follows(strides[axis - 1], strides[axis], axes[axis].input)
    };
    let along = (1..=last).rev().take_while(|&axis| follow(axis)).last().map_or(last, |axis| axis - 1);
    Joined { along, positions: needed[along + 1..].iter().map(|span| span.count).product() }
}

/// How far from index 0 of all axes the first input lies that a row of a box has, along the last axis that it is given for; none if the
/// row is all around the input.
pub(crate) fn row_of_input(axes: &[EngineAxis<'_>], needed: &[Span], row: usize) -> Option<isize> {
    let last = needed.len() - 1;
    let along = needed[last].intersect(&axes[last].whole_input());
    // What lies around the input may be farther away than can be told.
    let mut from = (along.count > 0).then(|| along.first as isize * axes[last].x_stride)?;
    let mut rest = row;
    for (axis, span) in axes.iter().zip(needed).take(last).rev() {
        let index = span.first + (rest % span.count) as i64;
        rest /= span.count;
        if index < 0 || index >= axis.input as i64 {
            return None;
        }
        from += index as isize * axis.x_stride;
    }
    Some(from)
}

/// Copies a row of positions, whose channels become neighbours `pitch` elements from those of the next.
pub(crate) fn copy_row<T: Real>(
    problem: &Problem<'_, T>,
    from: isize,
    distances: &[isize],
    count: usize,
    target: &mut [T],
    pitch: usize,
) {
    let stride = problem.axes[problem.axes.len() - 1].x_stride;
    if problem.x_channel_stride == 1 {
        // Positions that follow each other here and there are a single run.
        if stride == pitch as isize && pitch == distances.len() {
            problem.x.read_run(from, &mut target[..count * pitch]);
            return;
        }
        if pitch == distances.len() {
            let runs = Runs { count, len: pitch, step: stride, zeros: [0; 2], ahead: None };
            problem.x.read_runs(from, &runs, target);
            return;
        }
        for position in 0..count {
            let channels = &mut target[position * pitch..][..distances.len()];
            problem.x.read_run(from + position as isize * stride, channels);
        }
        return;
    }
    if stride == 1 {
        // A few channels at a time, so that each is read as a stream. These are too short for the hardware to look ahead.
        let lanes = problem.filter.kernels.lanes();
        let mut coming = distances.chunks(lanes).skip(1);
        for (index, distances) in distances.chunks(lanes).enumerate() {
            let coming = coming.next().unwrap_or_default();
            for first in (0..count).step_by(FETCHED_POSITIONS) {
                let (from, count) = (from + first as isize, FETCHED_POSITIONS.min(count - first));
                for &distance in coming {
                    problem.x.fetch_run(from + distance, count);
                }
                let target = &mut target[first * pitch + index * lanes..];
                problem.x.read_transposed(from, distances, count, target, pitch);
            }
        }
        return;
    }
    for position in 0..count {
        let from = from + position as isize * stride;
        for (value, &distance) in target[position * pitch..].iter_mut().zip(distances) {
            *value = problem.x.get((from + distance) as usize);
        }
    }
}
