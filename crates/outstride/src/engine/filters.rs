//! The weights of an operator as its paths read them.

use outstride_kernels::{Kernels, Real, Stored};
use outstride_spec::FilterCall;

use super::pack::PackedFilter;
use super::panel::Grain;
use super::panels::{Form, Multiplier};
use super::plan::Path;
use crate::error::Error;
use crate::limits::Limits;
use crate::tensor::TensorView;

/// The packed weights of an operator.
#[derive(Debug)]
pub(crate) struct Filters<T: Real> {
    /// For vectors, and for tiles as well if there are no others.
    pub(crate) own: PackedFilter<T>,
    /// For matrix tiles, with other panels. There may be several groups in one, where each would fill only a part of a tile: the zeros
    /// between them take no time, as what a tile is not filled with is multiplied as well.
    for_tiles: Option<PackedFilter<T>>,
}

impl<T: Real> Filters<T> {
    /// For vectors.
    pub(crate) fn new<Q: Stored<T>>(
        call: &FilterCall,
        filter: &TensorView<'_, Q>,
        bias: Option<&[T]>,
        kernels: &'static Kernels<T>,
        limits: &Limits,
    ) -> Result<Self, Error> {
        let form = Form::new(call, kernels.lanes(), Multiplier::Vectors);
        let own = PackedFilter::new(call, (Multiplier::Vectors, form), filter, bias, kernels, limits)?;
        Ok(Filters { own, for_tiles: None })
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
        self.for_tiles = self.best_for_tiles(call, filter, grain, limits);
        self.for_tiles.as_mut().unwrap_or(&mut self.own).prepare_matrix_tiles(grain, limits);
    }

    /// The filter with the panels that suit tiles, if they are others than its own.
    fn best_for_tiles<Q: Stored<T>>(
        &self,
        call: &FilterCall,
        filter: &TensorView<'_, Q>,
        grain: Grain,
        limits: &Limits,
    ) -> Option<PackedFilter<T>> {
        let own = &self.own;
        if !own.kernels.has_matrix_tiles(grain.dtype()) || !own.is_dense() {
            return None;
        }
        let (groups, form) = groups_for_tiles(call, own.kernels.lanes(), grain);
        if groups == call.groups && form == own.form {
            return None;
        }
        let call = FilterCall { groups, ..call.clone() };
        let chosen = (Multiplier::Tiles(grain), form);
        PackedFilter::new(&call, chosen, filter, Some(&own.bias), own.kernels, limits).ok()
    }

    /// The weights that a path reads.
    pub(crate) fn of(&self, path: Path) -> &PackedFilter<T> {
        match path {
            Path::Tile => self.for_tiles.as_ref().unwrap_or(&self.own),
            _ => &self.own,
        }
    }

    /// Those that paths may read, all of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &PackedFilter<T>> {
        std::iter::once(&self.own).chain(&self.for_tiles)
    }

    /// Bytes of all packed weights, in all orders.
    pub(crate) fn bytes(&self) -> usize {
        self.all().map(|filter| filter.bytes() + filter.further_bytes()).sum()
    }
}

/// How many groups there are for tiles, and their panels: as many joined as fill a row of inputs, if that takes no more products.
fn groups_for_tiles(call: &FilterCall, lanes: usize, grain: Grain) -> (usize, Form) {
    let channels = call.in_channels / call.groups;
    let most = grain.row_channels().checked_div(channels).unwrap_or(1).clamp(1, call.groups);
    let with = |at_once: usize| {
        let groups = call.groups / at_once;
        let joined = FilterCall { groups, ..call.clone() };
        (groups, Form::new(&joined, lanes, Multiplier::Tiles(grain)))
    };
    (1..=most)
        .filter(|at_once| call.groups.is_multiple_of(*at_once))
        .map(with)
        .min_by_key(|(groups, form)| (form.panel_vectors().saturating_mul(*groups), *groups))
        .expect("groups can be left alone")
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
        groups / groups_for_tiles(&call, LANES, grain).0
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
        assert_eq!(at_once(3, (0, 3), 2, BYTES), 1);
    }
}
