//! Outputs that are folded and stored together.

use std::ops::Range;

use outstride_kernels::Real;

use super::super::super::pack::PackedFilter;
use super::super::outputs::{Column, Outputs, phases_together, residues};

/// Output channels of a block, unless a unit has fewer.
const CHANNELS_AT_ONCE: usize = 16;

/// Outputs that are stored together.
#[derive(Debug)]
pub(crate) struct Block {
    pub(super) outputs: Outputs,
    /// The output channels, at every one of these phases: `[phase][channel]`. Phases are the same along all axes but the last.
    pub(super) channels: Range<usize>,
    pub(super) phases: Range<usize>,
}

/// The blocks of a filter.
pub(crate) fn of_filter<T: Real>(filter: &PackedFilter<T>) -> Vec<Block> {
    let unit = filter.folded().unit;
    let of_unit = |first: usize| {
        let end = filter.out_channels.min(first + unit);
        (first..end).step_by(CHANNELS_AT_ONCE).map(move |first| first..end.min(first + CHANNELS_AT_ONCE))
    };
    let of_phases = |phases: Range<usize>| {
        let shares = (0..filter.out_channels).step_by(unit).flat_map(of_unit);
        shares.map(move |channels| Block::new(filter, channels, phases.clone()))
    };
    phases_together(filter).flat_map(of_phases).collect()
}

impl Block {
    fn new<T: Real>(filter: &PackedFilter<T>, channels: Range<usize>, phases: Range<usize>) -> Self {
        let of_phase = |phase: usize| {
            let residues = residues(&filter.phase(phase));
            channels.clone().map(move |channel| Column { channel, residues: residues.clone() })
        };
        let columns: Vec<Column> = phases.clone().flat_map(of_phase).collect();
        Block { outputs: Outputs::of(columns.iter()), channels, phases }
    }
}
