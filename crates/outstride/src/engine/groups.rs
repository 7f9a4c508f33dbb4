//! How many groups are computed at once, with zeros between their weights.

use outstride_spec::FilterCall;

use super::cost::{CYCLES_OF_A_SHORT_RUN, FEWEST_TURNED, TURNING_OF_VECTORS};
use super::panel::Grain;
use super::panels::{Form, Multiplier, Panel, Segment, is_depthwise};

/// What a position takes, in cycles per vector of weights: two are multiplied at a time, a single one that a panel has less often.
const CYCLES_OF_A_VECTOR: f64 = 0.54;
const CYCLES_OF_A_NARROW_VECTOR: f64 = 0.7;

/// What it takes to begin with a tap of a panel, shared by the positions of a tile.
const CYCLES_OF_A_TAP: f64 = 5.0;

/// What it takes to store the outputs of a phase channels last, of a vector or more.
const CYCLES_OF_A_LONG_RUN: f64 = 5.0;

/// How many groups there are for tiles, and their panels: as many joined as fill a row of inputs, if that takes no more products.
pub(super) fn for_tiles(call: &FilterCall, lanes: usize, grain: Grain) -> (usize, Form) {
    let channels = call.in_channels / call.groups;
    let most = grain.row_channels().checked_div(channels).unwrap_or(1).clamp(1, call.groups);
    joined(call, lanes, Multiplier::Tiles(grain), most)
        .min_by_key(|(groups, form)| (form.panel_vectors().saturating_mul(*groups), *groups))
        .expect("groups can be left alone")
}

/// The same for vectors, unless groups are best left alone: few output channels fill a part of a vector, and are stored as short runs.
pub(super) fn for_vectors(call: &FilterCall, lanes: usize) -> Option<(usize, Form)> {
    let channels = call.out_channels / call.groups;
    if is_depthwise(call) || channels == 0 || call.groups == 1 || channels >= lanes {
        return None;
    }
    let cycles = |(groups, form): &(usize, Form)| cycles_of_a_position(call, lanes, *groups, form);
    let most = (2 * lanes / channels).min(call.groups);
    let best = joined(call, lanes, Multiplier::Vectors, most).min_by(|a, b| cycles(a).total_cmp(&cycles(b)));
    best.filter(|(groups, _)| *groups < call.groups)
}

/// The numbers of groups that there are with up to so many joined, and their panels.
fn joined(
    call: &FilterCall,
    lanes: usize,
    multiplier: Multiplier,
    most: usize,
) -> impl Iterator<Item = (usize, Form)> {
    (1..=most).filter(|at_once| call.groups.is_multiple_of(*at_once)).map(move |at_once| {
        let groups = call.groups / at_once;
        (groups, Form::new(&FilterCall { groups, ..call.clone() }, lanes, multiplier))
    })
}

/// What a position takes with all phases of all channels.
fn cycles_of_a_position(call: &FilterCall, lanes: usize, groups: usize, form: &Form) -> f64 {
    let Form::Panels(panels) = form else { return 0.0 };
    let (in_channels, out_channels) = (call.in_channels / groups, call.out_channels / groups);
    let stored = |segment: &Segment| match (call.channels_last, groups > 1 && out_channels < lanes) {
        (true, true) => CYCLES_OF_A_SHORT_RUN,
        (true, false) => CYCLES_OF_A_LONG_RUN,
        (false, _) => TURNING_OF_VECTORS * FEWEST_TURNED.max(segment.channels as f64),
    };
    let of_panel = |panel: &Panel| {
        let of_vector = if panel.vectors > 1 { CYCLES_OF_A_VECTOR } else { CYCLES_OF_A_NARROW_VECTOR };
        let of_channel = panel.vectors as f64 * of_vector;
        let of_tap = in_channels as f64 * of_channel + CYCLES_OF_A_TAP;
        panel.taps() as f64 * of_tap + panels.segments(panel).iter().map(stored).sum::<f64>()
    };
    panels.panels.iter().map(of_panel).sum::<f64>() * groups as f64
}

#[cfg(test)]
mod tests {
    use outstride_kernels::Pieces;
    use outstride_spec::FilterLayout;

    use super::*;

    const LANES: usize = 16;

    fn call(groups: usize, channels: (usize, usize), stride: usize, channels_last: bool) -> FilterCall {
        FilterCall {
            groups,
            in_channels: groups * channels.0,
            out_channels: groups * channels.1,
            kernel: vec![2 * stride; 2],
            strides: vec![stride; 2],
            dilations: vec![1; 2],
            layout: FilterLayout::iox(2),
            channels_last,
        }
    }

    fn at_once(groups: usize, channels: (usize, usize), stride: usize, grain: Grain) -> usize {
        groups / for_tiles(&call(groups, channels, stride, true), LANES, grain).0
    }

    fn at_once_by_vectors(groups: usize, channels: (usize, usize), channels_last: bool) -> usize {
        let joined = for_vectors(&call(groups, channels, 1, channels_last), LANES);
        groups / joined.map_or(groups, |(groups, _)| groups)
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

    #[test]
    fn few_output_channels_fill_vectors_together() {
        assert_eq!(at_once_by_vectors(16, (2, 1), true), 16);
        assert_eq!(at_once_by_vectors(64, (8, 4), true), 4);
        assert_eq!(at_once_by_vectors(64, (8, 4), false), 4);
        // As many as there are.
        assert_eq!(at_once_by_vectors(3, (4, 2), true), 3);
    }

    #[test]
    fn groups_that_fill_vectors_are_left_alone() {
        for channels_last in [true, false] {
            assert_eq!(at_once_by_vectors(8, (4, 16), channels_last), 1);
            assert_eq!(at_once_by_vectors(8, (64, 40), channels_last), 1);
            // Vectors of a depthwise layer are filled in any case.
            assert_eq!(at_once_by_vectors(64, (1, 1), channels_last), 1);
            assert_eq!(at_once_by_vectors(1, (4, 2), channels_last), 1);
            assert_eq!(at_once_by_vectors(4, (4, 0), channels_last), 1);
        }
        // Turning outputs around takes as long for each of them.
        assert_eq!(at_once_by_vectors(2, (8, 15), false), 1);
    }
}
