//! Computing products, adding them up and storing the outputs, box by box.

use std::ops::Range;

use outstride_kernels::{FoldTap, FoldedRows, Real};
use outstride_spec::{Phase, Tap};

use super::super::super::axis::Span;
use super::super::super::channels;
use super::super::super::problem::Problem;
use super::super::store::Targets;
use super::blocks::Block;
use super::exact::Site;
use super::met::Met;
use super::products::Places;
use super::{FoldPlan, chunk_of, row_pitch};
use crate::aligned::Aligned;

/// Computes the products of boxes one after the other, adds them up and stores the outputs.
pub(super) struct Folder<'a, T: Real> {
    problem: &'a Problem<'a, T>,
    plan: &'a FoldPlan,
    group: usize,
    /// Output channels, which are whole units.
    channels: Range<usize>,
    /// A copy of the inputs that are multiplied.
    tile: &'a mut [T],
    /// `[column][input]`, columns so far apart.
    products: &'a mut [T],
    /// The rows of products that meet in a row of outputs.
    rows: Vec<usize>,
    /// Per phase of a block, its taps along the last axis.
    taps: Vec<Vec<FoldTap>>,
    targets: Targets,
    sums: &'a mut Aligned<T>,
}

impl<'a, T: Real> Folder<'a, T> {
    /// For some output channels of a group, given room for a tile and for products.
    pub(super) fn new(
        problem: &'a Problem<'a, T>,
        plan: &'a FoldPlan,
        (group, channels): (usize, Range<usize>),
        tile: &'a mut [T],
        products: &'a mut [T],
        sums: &'a mut Aligned<T>,
    ) -> Self {
        let (rows, taps, targets) = (Vec::new(), Vec::new(), Targets::default());
        Folder { problem, plan, group, channels, tile, products, rows, taps, targets, sums }
    }

    /// Computes and stores the outputs at the positions `spans`. Returns where the products lie, of which there may be some already.
    pub(super) fn fold(&mut self, spans: &[Span], held: Option<Places>) -> Places {
        let Problem { filter, axes, .. } = self.problem;
        let reached = channels::needed(axes, spans, &self.plan.reach, false);
        let mut inside: Vec<Span> =
            reached.iter().zip(axes).map(|(span, axis)| span.intersect(&axis.whole_input())).collect();
        let along = inside[1];
        let ring = held.as_ref().map_or((along.first, self.plan.ring), |held| held.ring);
        let places = |inside: Vec<Span>| {
            Places::new(axes, inside, ring, self.problem.x_channel_stride, filter.kernels.lanes())
        };
        let all = places(inside.clone());
        let mut next = held.map_or(along.first, |held| held.inside[1].end().max(along.first));
        while next < along.end() && inside.iter().all(|span| span.count > 0) {
            let place = all.place(1, next);
            let left = self.plan.ring - (next - ring.0) as usize % self.plan.ring;
            inside[1] = Span { first: next, count: left }.intersect(&along);
            next = inside[1].end();
            let products = (&mut *self.products, self.plan.pitch, place);
            places(inside.clone()).compute(
                self.problem,
                (self.group, self.channels.clone()),
                self.tile,
                products,
            );
        }
        let channels = self.channels.clone();
        for block in filter.fold_blocks().iter().filter(|block| channels.contains(&block.channels.start)) {
            self.block(block, &all, spans);
        }
        all
    }

    /// Folds and stores a block at the positions `spans`.
    fn block(&mut self, block: &Block, places: &Places, spans: &[Span]) {
        let filter = self.problem.filter;
        let positions = block.outputs.positions(&self.problem.axes);
        let spans: Vec<Span> = positions.iter().zip(spans).map(|(a, b)| a.intersect(b)).collect();
        let last = spans.len() - 1;
        let (inside, pitch) = (places.inside[last], self.plan.pitch);
        let taps = |phase: usize| taps_along(filter.phase(phase)[last - 1], inside, spans[last], pitch);
        self.taps.clear();
        self.taps.extend(block.phases.clone().map(taps));
        let chunk = chunk_of::<T>(block, spans[last].count, filter.kernels.lanes());
        chunk.each(&spans, |at| self.chunk(block, places, at));
    }

    /// Folds and stores a block at the positions of a chunk, which has whole rows.
    fn chunk(&mut self, block: &Block, places: &Places, at: &[Span]) {
        let filter = self.problem.filter;
        let last = at.len() - 1;
        let row_pitch = row_pitch(at[last].count, filter.kernels.lanes());
        let pitch = at[last - 1].count * row_pitch;
        let channel_stride = filter.folded().elements * self.plan.pitch;
        let before = self.group * filter.out_channels;
        let channels = before + block.channels.start..before + block.channels.end;
        let of_channels = channels.len() * pitch;
        let sums = self.sums.at_least(block.outputs.columns * pitch);
        let phases = filter.phase(block.phases.start);
        let (kernel, pitch_of_products) = (&filter.kernel[..], self.plan.pitch);
        let place = |axis: usize, index: i64| places.place(axis, index) as isize;
        let mut q: Vec<i64> = at.iter().map(|span| span.first).collect();
        for row in 0..at[last - 1].count {
            q[last - 1] = at[last - 1].first + row as i64;
            let met = Met { phases: &phases[..last - 1], kernel, q: &q, inside: &places.inside, place };
            self.rows.clear();
            // Of an element of the other axes, the products with the first element along the last one.
            let mut collect = |element, place| {
                self.rows.push(element * kernel[last - 1] * pitch_of_products + place as usize)
            };
            met.each(&mut collect);
            let of_phases = block.phases.clone().zip(&self.taps).zip(sums.chunks_exact_mut(of_channels));
            for ((phase, taps), sums) in of_phases {
                let rows = FoldedRows {
                    products: &self.products[(block.channels.start - self.channels.start) * channel_stride..],
                    channel_stride,
                    rows: &self.rows,
                    taps,
                    len: places.inside[last].count,
                    bias: &filter.bias[channels.clone()],
                    outputs: at[last].count,
                    pitch,
                };
                let sums = &mut sums[row * row_pitch..];
                if !filter.kernels.fold(&rows, sums) {
                    for (channel, row) in block.channels.clone().zip(sums.chunks_mut(pitch)) {
                        let site = Site { problem: self.problem, group: self.group, channel };
                        site.sum_again(&filter.phase(phase), &q, &mut row[..at[last].count]);
                    }
                }
            }
        }
        for sums in sums.chunks_exact_mut(of_channels) {
            for (channel, sums) in channels.clone().zip(sums.chunks_exact_mut(pitch)) {
                self.problem.finish_channel(channel, sums);
            }
        }
        self.targets.find(self.problem, &block.outputs, at);
        self.targets.store(self.problem, &block.outputs, self.group, sums, (pitch, row_pitch));
    }
}

/// The taps of a phase of the last axis, for outputs at some of its positions, where there are products of some of its inputs.
fn taps_along(phase: &Phase, inside: Span, at: Span, pitch: usize) -> Vec<FoldTap> {
    let tap = |tap: &Tap| FoldTap {
        products: tap.kernel * pitch,
        first: (inside.first + tap.delta as i64 - at.first) as isize,
    };
    phase.taps.iter().map(tap).collect()
}
