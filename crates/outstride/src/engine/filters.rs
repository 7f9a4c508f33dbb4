//! The weights of an operator as its paths read them.

use outstride_kernels::{Kernels, Real, Stored};
use outstride_spec::FilterCall;

use super::groups;
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
    /// For all paths that have no others.
    pub(crate) own: PackedFilter<T>,
    /// For panels of vectors, with several groups in one, where each would fill only a part of a vector.
    for_panels: Option<PackedFilter<T>>,
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
        let for_panels = groups::for_vectors(call, kernels.lanes()).and_then(|(groups, form)| {
            let call = FilterCall { groups, ..call.clone() };
            // Without memory for them, groups are left apart.
            PackedFilter::new(&call, (Multiplier::Vectors, form), filter, bias, kernels, limits).ok()
        });
        Ok(Filters { own, for_panels, for_tiles: None })
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
        let (groups, form) = groups::for_tiles(call, own.kernels.lanes(), grain);
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
            Path::Panel => self.for_panels.as_ref().unwrap_or(&self.own),
            _ => &self.own,
        }
    }

    /// Those that paths may read, all of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &PackedFilter<T>> {
        std::iter::once(&self.own).chain(&self.for_panels).chain(&self.for_tiles)
    }

    /// Bytes of all packed weights, in all orders.
    pub(crate) fn bytes(&self) -> usize {
        self.all().map(|filter| filter.bytes() + filter.further_bytes()).sum()
    }
}
