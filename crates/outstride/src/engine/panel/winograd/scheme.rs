//! Which axes are transformed, and how.

use outstride_kernels::{Filtering, MAX_WINOGRAD_AXES, Real};

use super::super::super::lattice::greatest_common_divisor;
use super::super::super::pack::PackedFilter;
use super::super::super::panels::Panel;
use super::Tiling;

/// Up to this size, by the number of axes, more weights for fewer products are worth it. Volumes have short axes: tiles of more outputs
/// reach beyond their ends.
const BYTES_OF_MANY_POINTS: [usize; MAX_WINOGRAD_AXES] = [1 << 24, 1 << 24, 1 << 23];

/// Sums of the points of four outputs are made in chains of at most so many channels: in longer ones, they would lose in rounding what
/// else they have for transforms to lose.
const CHANNELS_OF_CHAIN: usize = 64;

/// With fewer channels, transforms to four outputs might lose more than twice of what plain sums do.
const FEWEST_CHANNELS_OF_FOUR: usize = 64;

/// How much longer products take that are made in chains, and that more additions go before and after.
const WORK_OF_CHAINS: f64 = 1.1;

/// What may lie between the first and the last input of a tile, which is copied with them.
const MOST_BYTES_OF_A_TILE: usize = 1 << 19;

/// Which axes are transformed, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scheme {
    pub(crate) filtering: Filtering,
    /// Per axis, the batch included, which positions are transformed together; of those that are not, there is one tap.
    tilings: Vec<Tiling>,
}

impl Scheme {
    /// The transformed axes, the batch counted.
    pub(crate) fn axes(&self) -> impl DoubleEndedIterator<Item = usize> + Clone + '_ {
        (0..self.tilings.len()).filter(|&axis| self.tilings[axis].outputs > 1)
    }

    /// Points of a tile.
    pub(crate) fn points(&self) -> usize {
        self.filtering.points().pow(self.axes().count() as u32)
    }

    /// Per axis, the tiles of its positions.
    pub(crate) fn tilings(&self) -> &[Tiling] {
        &self.tilings
    }

    /// Per axis, the largest delta of the taps of a tile.
    pub(crate) fn reach(&self) -> Vec<usize> {
        let taps = self.filtering.taps();
        let of_axis =
            |tiling: &Tiling| if tiling.outputs > 1 { (taps - 1).saturating_mul(tiling.step) } else { 0 };
        self.tilings.iter().map(of_axis).collect()
    }

    /// For panels of nowhere more taps than filterings can have.
    pub(super) fn new<T: Real>(filter: &PackedFilter<T>, panels: &[Panel]) -> Result<Self, &'static str> {
        let taps: Vec<TapsOfAxis> =
            (0..filter.kernel.len()).map(|axis| TapsOfAxis::of(panels, axis)).collect();
        let most = taps.iter().map(|taps| taps.count).max().unwrap_or(1);
        // Those of the fewest weights first.
        let filterings: &[Filtering] = match most {
            2 => &[Filtering::TwoOfTwo, Filtering::ThreeOfTwo, Filtering::FourOfTwo],
            3 => &[Filtering::TwoOfThree, Filtering::FourOfThree],
            _ => {
                return Err("no output has two or three taps at even distances along an axis, and none more");
            }
        };
        let [smallest, larger @ ..] = filterings else {
            unreachable!("there is one for every number of taps")
        };
        let smallest = Scheme::of(*smallest, &taps);
        if smallest.axes().count() > smallest.filtering.most_axes() {
            return Err("too many axes have more than one tap");
        }
        let of_position = filter.in_channels.saturating_mul(size_of::<T>());
        let are_near =
            |scheme: &Scheme| scheme.positions_of_tile().saturating_mul(of_position) <= MOST_BYTES_OF_A_TILE;
        if !are_near(&smallest) {
            return Err("taps are too far from each other");
        }
        let is_worthwhile = |scheme: &Scheme| {
            let axes = scheme.axes().count();
            (1..=scheme.filtering.most_axes()).contains(&axes)
                && !(scheme.has_chains() && filter.in_channels < FEWEST_CHANNELS_OF_FOUR)
                && are_near(scheme)
                && scheme.bytes(filter, panels) <= BYTES_OF_MANY_POINTS[axes - 1]
        };
        let larger = larger.iter().map(|&filtering| Scheme::of(filtering, &taps)).filter(is_worthwhile);
        let by_work = |one: &Scheme, other: &Scheme| one.work(panels).total_cmp(&other.work(panels));
        Ok(larger.chain([smallest]).min_by(by_work).expect("there is the smallest"))
    }

    fn of(filtering: Filtering, taps: &[TapsOfAxis]) -> Self {
        let of_axis = |taps: &TapsOfAxis| match taps.count {
            1 => Tiling::NONE,
            _ => Tiling { outputs: filtering.outputs(), step: taps.step },
        };
        Scheme { filtering, tilings: std::iter::once(Tiling::NONE).chain(taps.iter().map(of_axis)).collect() }
    }

    /// Positions from the first input of a tile to the last.
    fn positions_of_tile(&self) -> usize {
        let of_axes = self.tilings.iter().zip(self.reach());
        of_axes.map(|(tiling, reach)| tiling.granule().saturating_add(reach)).fold(1, usize::saturating_mul)
    }

    /// Whether sums over channels are made in several chains.
    fn has_chains(&self) -> bool {
        matches!(self.filtering, Filtering::FourOfTwo | Filtering::FourOfThree)
    }

    /// Of so many channels, those that are added up before they join others. Loops take eight at a time.
    pub(super) fn channels_of_chain(&self, channels: usize) -> usize {
        if !self.has_chains() {
            return channels.max(1);
        }
        let chains = channels.div_ceil(CHANNELS_OF_CHAIN).max(2);
        channels.div_ceil(chains).next_multiple_of(8)
    }

    /// Products per position, what else it takes to join chains included.
    fn work(&self, panels: &[Panel]) -> f64 {
        let products: usize = panels.iter().map(|panel| self.points_of(panel).len() * panel.vectors).sum();
        let outputs = self.filtering.outputs().pow(self.axes().count() as u32);
        products as f64 / outputs as f64 * if self.has_chains() { WORK_OF_CHAINS } else { 1.0 }
    }

    /// How a point's weights are made of those of a tap with these deltas.
    pub(super) fn coefficient(&self, mut point: usize, deltas: &[usize]) -> f64 {
        let mut coefficient = 1.0;
        for axis in self.axes().rev() {
            let of_axis = self.filtering.weights_of_point(point % self.filtering.points());
            // Taps begin with that of the tile's first input, which has the largest delta.
            coefficient *= of_axis[self.filtering.taps() - 1 - deltas[axis - 1] / self.tilings[axis].step];
            point /= self.filtering.points();
        }
        coefficient
    }

    /// The points at which a panel has weights.
    pub(super) fn points_of(&self, panel: &Panel) -> Vec<usize> {
        let taps: Vec<Vec<usize>> = (0..panel.taps()).map(|tap| panel.deltas_of(tap)).collect();
        let has_weights = |&point: &usize| taps.iter().any(|deltas| self.coefficient(point, deltas) != 0.0);
        (0..self.points()).filter(has_weights).collect()
    }

    /// Bytes of all weights.
    pub(super) fn bytes<T: Real>(&self, filter: &PackedFilter<T>, panels: &[Panel]) -> usize {
        let of_panel = |panel: &Panel| {
            let rows = self.points_of(panel).len().saturating_mul(filter.in_channels);
            rows.saturating_mul(panel.vectors * filter.kernels.lanes())
        };
        let of_group = panels.iter().map(of_panel).fold(0, usize::saturating_add);
        of_group.saturating_mul(filter.groups).saturating_mul(size_of::<T>())
    }
}

/// The taps that panels have along an axis.
struct TapsOfAxis {
    /// From the first to the last, in steps, so that it does not matter whether some of them are missing.
    count: usize,
    step: usize,
}

impl TapsOfAxis {
    fn of(panels: &[Panel], axis: usize) -> Self {
        let deltas = || panels.iter().flat_map(move |panel| &panel.deltas[axis]).copied();
        let step = deltas().fold(0, greatest_common_divisor).max(1);
        TapsOfAxis { count: deltas().max().unwrap_or(0) / step + 1, step }
    }
}
