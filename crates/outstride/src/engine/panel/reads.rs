//! What a box of positions reads of the input.

use super::super::axis::{EngineAxis, Span};
use super::super::channels;
use super::{Arithmetic, PanelPlan};

/// What some positions need of the input, given how far they reach and whether they are computed apart from each other.
type Needed = fn(&[EngineAxis<'_>], &[Span], &[usize], bool) -> Vec<Span>;

impl PanelPlan {
    /// The positions of all phases that a box has.
    fn positions_of_phases(&self, spans: &[Span]) -> Vec<Span> {
        let of_axis = |axis: usize| {
            let (least, greatest) = self.starts[axis];
            let whole = spans[axis].count.next_multiple_of(self.tilings[axis].granule());
            Span { first: spans[axis].first + least, count: whole + (greatest - least) as usize }
        };
        (0..spans.len()).map(of_axis).collect()
    }

    /// The indices of the input that a box reads.
    pub(super) fn needed(&self, axes: &[EngineAxis<'_>], spans: &[Span]) -> Vec<Span> {
        let mut needed = self.needed_of(axes, spans, channels::needed);
        if let Some(along) = needed.last_mut().filter(|along| self.abreast > 1 && along.count > 0) {
            let beside = self.abreast - 1;
            let wider = Span { first: along.first - beside as i64, count: along.count + 2 * beside };
            *along = wider.intersect(&self.reached_along_last(spans));
        }
        needed
    }

    /// As many indices as a box of that size reads at most, wherever it lies.
    pub(super) fn most_needed(&self, axes: &[EngineAxis<'_>], spans: &[Span]) -> Vec<Span> {
        let mut needed = self.needed_of(axes, spans, channels::most_needed);
        if let Some(along) = needed.last_mut() {
            let beside = self.abreast - 1;
            along.count = (along.count + 2 * beside).min(self.reached_along_last(spans).count);
        }
        needed
    }

    /// The indices of the last axis that a box reaches: those taps read there that are abreast of others that meet the input.
    fn reached_along_last(&self, spans: &[Span]) -> Span {
        let reached = channels::reached(&self.positions_of_phases(spans), &self.reach);
        reached.last().copied().unwrap_or(Span::EMPTY)
    }

    fn needed_of(&self, axes: &[EngineAxis<'_>], spans: &[Span], of_positions: Needed) -> Vec<Span> {
        let positions = self.positions_of_phases(spans);
        if self.arithmetic == Arithmetic::Winograd {
            // Points are made of all of them, whether or not they exist.
            return channels::reached(&positions, &self.reach);
        }
        of_positions(axes, &positions, &self.reach, self.are_apart(spans[0].count))
    }

    /// Whether positions that differ by more than their batch, of which there are so many in a box, are computed together.
    pub(super) fn are_apart(&self, batch: usize) -> bool {
        match self.arithmetic {
            // Rows of a tile that miss the input read zeros elsewhere.
            Arithmetic::Vectors | Arithmetic::Winograd => !self.batch_is_fastest(),
            Arithmetic::Tiles => !(self.batch_is_fastest() && batch.is_multiple_of(self.rows_at_once)),
        }
    }

    /// How many positions of the input a box reads.
    pub(super) fn input_positions(&self, axes: &[EngineAxis<'_>], spans: &[Span]) -> usize {
        positions_in(&self.needed(axes, spans))
    }
}

/// How many positions there are.
pub(super) fn positions_in(spans: &[Span]) -> usize {
    spans.iter().fold(1usize, |product, span| product.saturating_mul(span.count))
}
