//! The products of a box of inputs with the whole kernel.

use std::ops::Range;

use outstride_kernels::{LinesAhead, MOST_LINES_AHEAD, PixelTap, PixelTiles, Real, Runs};

use super::super::super::axis::{EngineAxis, Span, follows};
use super::super::super::problem::Problem;
use super::super::chunk::vectors_for;
use crate::aligned::LINE;

/// Where the products of a box of inputs lie in a column: in runs of those that are equally far from each other in memory.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// The inputs of the box, all of which exist.
    pub(super) inside: Vec<Span>,
    /// Per axis, from the product of an input to that of the next.
    strides: Vec<usize>,
    /// Along the first spatial axis products follow each other in a ring: the input whose product comes first in it, and how many there
    /// are.
    pub(super) ring: (i64, usize),
    /// The axes along which runs follow each other; those behind are inside of runs.
    outer: usize,
    /// Inputs of a run.
    run: usize,
}

impl Places {
    pub(super) fn new(
        axes: &[EngineAxis<'_>],
        inside: Vec<Span>,
        ring: (i64, usize),
        x_channel_stride: isize,
        lanes: usize,
    ) -> Self {
        let counts: Vec<usize> = inside.iter().map(|span| span.count).collect();
        let (outer, run) = joined(axes, &counts, x_channel_stride, |_| true);
        let mut strides = vec![1; axes.len()];
        for axis in (outer..axes.len() - 1).rev() {
            strides[axis] = strides[axis + 1] * counts[axis + 1];
        }
        // Kernels write whole vectors.
        let mut stride = run.next_multiple_of(lanes);
        for axis in (0..outer).rev() {
            strides[axis] = stride;
            stride *= inside[axis].count;
        }
        Places { inside, strides, ring, outer, run }
    }

    /// The most elements of a column, of boxes with so many inputs along each axis, with all there are along some: an odd number of
    /// cache lines of most types, so that columns do not all fall into the same set of a cache.
    pub(super) fn most_pitch(
        axes: &[EngineAxis<'_>],
        inside: &[usize],
        are_whole: &[bool],
        x_channel_stride: isize,
        lanes: usize,
    ) -> usize {
        const ELEMENTS: usize = 16;
        let (outer, run) = joined(axes, inside, x_channel_stride, |axis| are_whole[axis]);
        let runs = inside[..outer].iter().fold(1usize, |product, &count| product.saturating_mul(count));
        let elements = runs.saturating_mul(run.saturating_add(lanes - 1)).saturating_add(lanes);
        (elements.div_ceil(ELEMENTS) | 1).saturating_mul(ELEMENTS)
    }

    /// How far the product of an input is behind that of the box's first one along an axis.
    pub(super) fn place(&self, axis: usize, index: i64) -> usize {
        let (first, count) = if axis == 1 { self.ring } else { (self.inside[axis].first, usize::MAX) };
        (index - first) as usize % count * self.strides[axis]
    }

    /// Where the runs lie: from the input of index 0 to the first one, and where its product is.
    fn runs(&self, axes: &[EngineAxis<'_>]) -> impl Iterator<Item = (isize, usize)> {
        let count: usize = self.inside[..self.outer].iter().map(|span| span.count).product();
        let offset = |axis: usize, index: i64| index as isize * axes[axis].x_stride;
        let first: isize = self.inside.iter().enumerate().map(|(axis, span)| offset(axis, span.first)).sum();
        (0..count).map(move |mut number| {
            let (mut from, mut place) = (first, 0);
            for axis in (0..self.outer).rev() {
                let index = number % self.inside[axis].count;
                number /= self.inside[axis].count;
                from += offset(axis, index as i64);
                place += index * self.strides[axis];
            }
            (from, place)
        })
    }

    /// Computes the products of some output channels of a group, `[column][input]` with columns so far apart, by way of a copy of few
    /// inputs at a time. They go so far behind the beginning of each column.
    pub(super) fn compute<T: Real>(
        &self,
        problem: &Problem<'_, T>,
        (group, out_channels): (usize, Range<usize>),
        tile: &mut [T],
        (products, pitch, behind): (&mut [T], usize, usize),
    ) {
        let filter = problem.filter;
        let weights = filter.folded();
        let (kernels, channels) = (filter.kernels, filter.in_channels);
        let lanes = kernels.lanes();
        let step = problem.axes[problem.axes.len() - 1].x_stride;
        let bias = vec![T::default(); weights.width()];
        let mut distances = Vec::new();
        let blocks = weights.blocks(group, out_channels.clone()).count();
        let channel_bytes = problem.x_channel_stride * problem.x.element_bytes() as isize;
        for (from, place) in self.runs(&problem.axes) {
            let from = problem.x_group(group) as isize + from;
            let mut first = 0;
            while first < self.run {
                let vectors = vectors_for(kernels, weights.width(), (self.run - first).div_ceil(lanes));
                let width = vectors * lanes;
                let len = width.min(self.run - first);
                let tile = &mut tile[..channels * width];
                let from = from + first as isize * step;
                // Whole vectors that lie side by side are copied while the first block multiplies them.
                let in_place = problem.x.as_computed().filter(|_| step == 1 && len == width);
                if in_place.is_none() {
                    copy_inputs(problem, from, len, tile, &mut distances);
                }
                // While these inputs are multiplied, the next ones come near.
                let next = from + width as isize;
                let are_side_by_side = step == 1 && first + width < self.run;
                let lines = if are_side_by_side { width * problem.x.element_bytes() / LINE + 1 } else { 0 };
                for (number, (column, columns, weights_of_block)) in
                    weights.blocks(group, out_channels.clone()).enumerate()
                {
                    let share = |block: usize| lines * block.min(blocks) / blocks;
                    let ahead = LinesAhead {
                        first: problem.x.pointer(next as usize).wrapping_add(share(number) * LINE),
                        step: channel_bytes,
                        lines: (share(number + 1) - share(number)).min(MOST_LINES_AHEAD),
                    };
                    let feeds = (1 << columns) - 1;
                    let in_place = in_place.filter(|_| number == 0);
                    let copies = in_place.is_some() && blocks > 1;
                    let tiles = PixelTiles {
                        taps: &[PixelTap { input: 0, weights: 0, feeds, leads: false }],
                        input: in_place.map_or(tile.as_ptr(), |x| x[from as usize..].as_ptr()),
                        weights: weights_of_block.as_ptr(),
                        channels,
                        // Of channels that lie the other way round as well.
                        channel_stride: in_place.map_or(width, |_| problem.x_channel_stride as usize),
                        weight_stride: weights.width(),
                        bias: &bias,
                        count: 1,
                        pitch,
                        ahead,
                        copy: if copies { tile.as_mut_ptr() } else { std::ptr::null_mut() },
                    };
                    let out = &mut products[column * pitch + behind + place + first..];
                    // SAFETY: the tile has as many inputs as the kernel computes products of at every channel, as has the input there, and
                    // the block as many weights. Nobody else uses the tile.
                    unsafe { kernels.pixel(columns, vectors, &tiles, out) };
                }
                first += width;
            }
        }
    }
}

/// How many axes runs of products follow each other along, given the inputs of each, and how many inputs a run has: those of the axes
/// behind, which are equally far from each other. Axes are joined to the one behind only where that `is_whole`.
fn joined(
    axes: &[EngineAxis<'_>],
    counts: &[usize],
    x_channel_stride: isize,
    is_whole: impl Fn(usize) -> bool,
) -> (usize, usize) {
    let step = axes[axes.len() - 1].x_stride;
    // What is copied channel by channel must lie side by side.
    let may_join = step == 1 || x_channel_stride == 1;
    let (mut outer, mut run) = (axes.len() - 1, counts[axes.len() - 1]);
    while outer > 0 && may_join && is_whole(outer) && follows(axes[outer - 1].x_stride, step, run) {
        outer -= 1;
        run = run.saturating_mul(counts[outer]);
    }
    (outer, run)
}

/// Copies so many inputs of every channel, which are equally far from each other, and zeros behind them.
fn copy_inputs<T: Real>(
    problem: &Problem<'_, T>,
    from: isize,
    len: usize,
    tile: &mut [T],
    distances: &mut Vec<isize>,
) {
    let channels = problem.filter.in_channels;
    let step = problem.axes[problem.axes.len() - 1].x_stride;
    let width = tile.len() / channels.max(1);
    if step == 1 || len == 1 {
        let (zeros, ahead) = ([0, width - len], None);
        let runs = Runs { count: channels, len, step: problem.x_channel_stride, zeros, ahead };
        problem.x.read_runs(from, &runs, tile);
        return;
    }
    distances.clear();
    distances.extend((0..len as isize).map(|input| input * step));
    if len < width {
        tile.fill(T::default());
    }
    problem.x.read_transposed(from, distances, channels, tile, width);
}
