//! What becomes of the zeros around the input.

use outstride_kernels::Real;

use super::super::axis::EngineAxis;
use super::super::pack::PackedFilter;

/// From this share of zeros on, rows are arranged so that whole taps fall on them.
const WORTHWHILE_SHARE: f64 = 0.1;

/// For so many zeros per input, which samples of the same position leave out together, it is worth having these side by side.
const WORTHWHILE_ZEROS: f64 = 1.6;

/// Up to so many channels, a tile's products with zeros take less time than to find out where they are.
const FEW_CHANNELS: usize = 64;

/// Up to so many zeros per input and vector likewise: the fewer channels there are, the more of them may be.
const FEW_ZEROS: f64 = 10.0;

/// How rows of tiles are arranged for the zeros around the input, and whether these are multiplied.
#[derive(Clone, Debug)]
pub(super) struct Borders {
    /// The share of multiplications by zeros, if every tap of every position is computed.
    pub(super) share: f64,
    /// The same of the zeros beside all axes but the last.
    pub(super) outer_share: f64,
    /// The axes, slowest first, in which positions become rows of tiles. With the batch fastest, the rows of small maps have their
    /// borders in common, and whole taps can be left out.
    pub(super) order: Vec<usize>,
    /// Whether vectors multiply zeros, as far as they are copied with the input, rather than leave them out.
    pub(super) multiplies_zeros: bool,
}

impl Borders {
    /// For vectors that read so many channels at a time.
    pub(super) fn new<T: Real>(axes: &[EngineAxis<'_>], filter: &PackedFilter<T>, channels: usize) -> Self {
        let share = share_of_zeros(axes);
        let mut order: Vec<usize> = (0..axes.len()).collect();
        // So many of the rows of a tile are samples of the same position.
        let of_a_position = (axes[0].output as f64 / filter.kernels.panel_rows() as f64).min(1.0);
        let left_out = zeros_per_input(share, filter.in_channels) * of_a_position;
        let by_samples = axes[0].output > 1 && share >= WORTHWHILE_SHARE && left_out >= WORTHWHILE_ZEROS;
        // Most tiles have rows at both ends of the last axis, and could leave out no tap whole because of it.
        let outer_share = share_of_zeros(&axes[..axes.len() - 1]);
        let are_few = zeros_per_input(outer_share, channels * filter.widest_panel()) <= FEW_ZEROS;
        if by_samples {
            order.rotate_left(1);
        }
        let multiplies_zeros = !by_samples && are_few && share > 0.0 && channels <= FEW_CHANNELS;
        Borders { share, outer_share, order, multiplies_zeros }
    }
}

/// How many products with zeros there are, channel by channel, for every position that a tap meets an input at.
fn zeros_per_input(share_of_zeros: f64, channels: usize) -> f64 {
    channels as f64 * share_of_zeros / (1.0 - share_of_zeros).max(f64::MIN_POSITIVE)
}

/// The share of multiplications by zeros around the input, if every tap of every position is computed.
fn share_of_zeros(axes: &[EngineAxis<'_>]) -> f64 {
    1.0 - axes.iter().map(|axis| axis.share_met_together(1)).product::<f64>()
}
