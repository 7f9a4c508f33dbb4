//! The weights of points.

use outstride_kernels::Real;

use super::super::super::pack::PackedFilter;
use super::super::super::panels::{Form, Panel};
use super::scheme::Scheme;
use crate::aligned::Aligned;
use crate::limits::Limits;

/// With fewer products of channels for each channel that is transformed, going in or coming out, transforms cost more than the
/// products they save.
const WORTHWHILE_PRODUCTS: usize = 20;

/// Larger weights are not worth their memory.
const MOST_BYTES: usize = 1 << 27;

/// Larger ones take longer than matrix tiles, which read less.
const MOST_BYTES_BESIDE_TILES: usize = 1 << 25;

/// Larger weights do not stay in any cache.
const LAST_LEVEL_BYTES: usize = 1 << 24;

/// The weights of all panels, per group: `[point that has any][channel][column]`.
#[derive(Debug)]
pub(crate) struct WinogradWeights<T> {
    weights: Aligned<T>,
    /// Per panel, where its weights begin within a group; at last, the length of a group.
    begins: Vec<usize>,
    /// Per panel, the points at which weights are not all zero, rising.
    points: Vec<Vec<usize>>,
    scheme: Scheme,
    /// Channels that are added up before they join others.
    pub(super) chain: usize,
}

impl<T: Real> WinogradWeights<T> {
    /// Or why there are none. With `wanted`, even if they are hardly worth it.
    pub(crate) fn new(filter: &PackedFilter<T>, wanted: bool, limits: &Limits) -> Result<Self, &'static str> {
        let Form::Panels(panels) = &filter.form else {
            return Err("a depthwise filter has no panels");
        };
        let panels = &panels.panels;
        let (channels_in, channels_out) = (filter.in_channels, filter.out_channels);
        let products = channels_in.saturating_mul(channels_out) / (channels_in + channels_out).max(1);
        if products < WORTHWHILE_PRODUCTS && !wanted {
            return Err("too few channels to be worth transforms");
        }
        let scheme = Scheme::new(filter, panels)?;
        let bytes = scheme.bytes(filter, panels);
        if bytes > if filter.matrix.is_ok() { MOST_BYTES_BESIDE_TILES } else { MOST_BYTES } {
            return Err("the weights of all points would be too large");
        }
        let no_memory = "no memory for the weights of all points";
        let len = bytes / size_of::<T>();
        limits.check_bytes("the weights of points", len, size_of::<T>()).map_err(|_| no_memory)?;
        let mut weights = Aligned::zeros(len).map_err(|_| no_memory)?;
        let points: Vec<Vec<usize>> = panels.iter().map(|panel| scheme.points_of(panel)).collect();
        let mut begins = vec![0];
        let mut rest = weights.as_mut_slice();
        for group in 0..filter.groups {
            for (panel, points) in panels.iter().zip(&points) {
                let source = &filter.panel_weights(group, panel).computed();
                let len = points.len() * (source.len() / panel.taps().max(1));
                let (target, behind) = rest.split_at_mut(len);
                rest = behind;
                if group == 0 {
                    begins.push(begins[begins.len() - 1] + len);
                }
                transform(&scheme, panel, points, source, target);
                if !target.iter().all(|weight| weight.is_finite()) {
                    // They would reach positions that only read zeros around the input.
                    return Err("some weights are not finite");
                }
            }
        }
        let chain = scheme.channels_of_chain(channels_in);
        Ok(WinogradWeights { weights, begins, points, scheme, chain })
    }

    pub(crate) fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// The points at which a panel has weights.
    pub(crate) fn points(&self, index: usize) -> &[usize] {
        &self.points[index]
    }

    /// The weights of a panel at the point of this number among those it has weights at.
    pub(super) fn at(&self, group: usize, index: usize, number: usize) -> &[T] {
        let begin = group * self.begins[self.begins.len() - 1] + self.begins[index];
        let len = (self.begins[index + 1] - self.begins[index]) / self.points[index].len();
        &self.weights.as_slice()[begin + number * len..][..len]
    }

    pub(crate) fn bytes(&self) -> usize {
        self.weights.len() * size_of::<T>()
    }

    /// Whether those of a group come from memory in every pass over them.
    pub(crate) fn are_far(&self) -> bool {
        self.begins[self.begins.len() - 1] * size_of::<T>() > LAST_LEVEL_BYTES
    }
}

/// Makes the weights of points, `[point][channel][column]`, of those of taps.
fn transform<T: Real>(scheme: &Scheme, panel: &Panel, points: &[usize], source: &[T], target: &mut [T]) {
    let taps = panel.taps();
    let len = source.len() / taps.max(1);
    let mut sums = vec![0.0f64; len];
    for (&point, target) in points.iter().zip(target.chunks_exact_mut(len.max(1))) {
        sums.fill(0.0);
        for (tap, source) in source.chunks_exact(len.max(1)).enumerate() {
            let coefficient = scheme.coefficient(point, &panel.deltas_of(tap));
            if coefficient != 0.0 {
                sums.iter_mut().zip(source).for_each(|(sum, weight)| *sum += coefficient * weight.to_f64());
            }
        }
        target.iter_mut().zip(&sums).for_each(|(weight, &sum)| *weight = T::from_f64(sum));
    }
}
