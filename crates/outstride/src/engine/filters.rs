//! The weights of an operator as its paths read them.

use std::cmp::Reverse;

use outstride_kernels::{Real, Stored};
use outstride_spec::FilterCall;

use super::pack::{PackedFilter, panel_vectors};
use super::panel::Grain;
use super::plan::Path;
use crate::limits::Limits;
use crate::tensor::TensorView;

/// The packed weights of an operator.
#[derive(Debug)]
pub(crate) struct Filters<T: Real> {
    /// Group by group.
    pub(crate) own: PackedFilter<T>,
    /// For matrix tiles, several groups as one where each would fill only a part of a tile. The zeros between them take no time: what
    /// a tile is not filled with is multiplied as well.
    joined: Option<PackedFilter<T>>,
}

impl<T: Real> Filters<T> {
    pub(crate) fn new(own: PackedFilter<T>) -> Self {
        Filters { own, joined: None }
    }

    /// Lays the weights out in the order of matrix tiles, too, where those can compute with them, given once more the filter that
    /// they come from.
    pub(crate) fn prepare_matrix_tiles<Q: Stored<T>>(
        &mut self,
        call: &FilterCall,
        filter: &TensorView<'_, Q>,
        grain: Grain,
        limits: &Limits,
    ) {
        let own = &mut self.own;
        let at_once = if own.kernels.has_matrix_tiles(grain.dtype()) && own.is_dense() {
            groups_at_once(call, own.kernels.lanes(), grain)
        } else {
            1
        };
        if at_once > 1 {
            let call = FilterCall { groups: call.groups / at_once, ..call.clone() };
            let joined = PackedFilter::new(&call, filter, Some(&own.bias), own.kernels, limits);
            self.joined = joined.ok().map(|mut joined| {
                joined.prepare_matrix_tiles(grain, limits);
                joined
            });
        }
        if self.joined.is_none() {
            own.prepare_matrix_tiles(grain, limits);
        }
    }

    /// The weights that a path reads.
    pub(crate) fn of(&self, path: Path) -> &PackedFilter<T> {
        match path {
            Path::Tile => self.joined.as_ref().unwrap_or(&self.own),
            _ => &self.own,
        }
    }

    /// Those that paths may read, all of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &PackedFilter<T>> {
        std::iter::once(&self.own).chain(&self.joined)
    }

    /// Bytes of all packed weights, in all orders.
    pub(crate) fn bytes(&self) -> usize {
        self.all().map(|filter| filter.bytes() + filter.further_bytes()).sum()
    }
}

/// How many groups are joined for tiles: what takes the fewest products, with as few rows that are not filled as there can be.
fn groups_at_once(call: &FilterCall, lanes: usize, grain: Grain) -> usize {
    let channels = call.in_channels / call.groups.max(1);
    let most = grain.row_channels().checked_div(channels).unwrap_or(1);
    let products = |at_once: usize| {
        let groups = call.groups / at_once;
        panel_vectors(&FilterCall { groups, ..call.clone() }, lanes).saturating_mul(groups)
    };
    (1..=most.min(call.groups))
        .filter(|at_once| call.groups.is_multiple_of(*at_once))
        .min_by_key(|&at_once| (products(at_once), Reverse(at_once)))
        .unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use outstride_kernels::Pieces;
    use outstride_spec::FilterLayout;

    use super::*;

    const LANES: usize = 16;

    fn at_once(groups: usize, channels: (usize, usize), stride: usize, grain: Grain) -> usize {
        let call = FilterCall {
            groups,
            in_channels: groups * channels.0,
            out_channels: groups * channels.1,
            kernel: vec![2 * stride; 2],
            strides: vec![stride; 2],
            dilations: vec![1; 2],
            layout: FilterLayout::iox(2),
            channels_last: true,
        };
        groups_at_once(&call, LANES, grain)
    }

    const NUMBERS: Grain = Grain::Pieces(Pieces::Bf16(1));
    const BYTES: Grain = Grain::Bytes { signed: true };

    #[test]
    fn groups_are_joined_until_a_row_is_filled() {
        assert_eq!(at_once(32, (8, 8), 2, NUMBERS), 4);
        assert_eq!(at_once(32, (8, 8), 2, BYTES), 8);
        assert_eq!(at_once(64, (4, 4), 1, NUMBERS), 8);
        assert_eq!(at_once(6, (16, 16), 1, BYTES), 3);
    }

    #[test]
    fn groups_that_fill_a_row_are_left_alone() {
        assert_eq!(at_once(8, (32, 32), 2, NUMBERS), 1);
        assert_eq!(at_once(2, (40, 40), 2, BYTES), 1);
        assert_eq!(at_once(1, (3, 3), 2, BYTES), 1);
        assert_eq!(at_once(0, (3, 3), 2, BYTES), 1);
        assert_eq!(at_once(3, (0, 3), 2, BYTES), 1);
    }
}
