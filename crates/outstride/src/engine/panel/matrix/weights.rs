//! The weights in the order of matrix tiles.

use std::ops::Range;

use outstride_kernels::{Isa, LEAST_BIAS, Pieces, Real, TINY};

use super::super::super::cost::CYCLES_OF_A_NEIGHBOUR;
use super::super::super::pack::PackedFilter;
use super::super::super::panels::{Form, Panel, Panels};
use super::grain::Grain;
use crate::aligned::Aligned;
use crate::limits::Limits;

/// Parts of a panel's weights that are multiplied before the next ones, whose tiles stay in the second-level cache while the
/// positions of a box pass by. Tiles need no more than it gives, and every further block of parts reads and writes all sums again.
const PARTS_PER_BLOCK: usize = 128;

/// Fewer channels leave most of a tile's row unused.
const WORTHWHILE_CHANNELS: usize = 8;

/// Weights of a tile of columns, of one part and step.
const TILE_LEN: usize = 512;

/// The weights of all panels, per group: `[block of channels][taps abreast][32 channels][part][tile of columns][pair of
/// channels][column][channel of the pair]`; of bytes, 64 channels at a time and four instead of two together.
#[derive(Debug)]
pub(crate) struct MatrixWeights {
    weights: Aligned<u16>,
    /// Per panel, where its weights begin within a group; at last, the length of a group.
    begins: Vec<usize>,
    pub(crate) grain: Grain,
    /// Neighbouring taps of the last axis that are multiplied as one, for their channels have room in a row of a tile together.
    pub(crate) abreast: usize,
    /// Of bytes, per group and panel, the sums over the channels of taps abreast and every column: what a zero point adds.
    tap_sums: Vec<Vec<i32>>,
    /// Whether some are [tiny](TINY).
    pub(super) tiny: bool,
    /// Whether some bias is so near zero, without being it, that a sum with it may be subnormal.
    pub(super) tiny_bias: bool,
}

/// How the channels of a panel are cut into blocks of steps, 32 channels each.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepBlocks {
    steps: usize,
    per_block: usize,
}

impl StepBlocks {
    pub(super) fn new(channels: usize, taps: usize, grain: Grain) -> Self {
        let per_block = (PARTS_PER_BLOCK / grain.parts() / taps.max(1)).max(1);
        StepBlocks { steps: channels.div_ceil(grain.row_channels()), per_block }
    }

    /// Of all blocks.
    pub(super) fn steps(self) -> usize {
        self.steps
    }

    pub(super) fn len(self) -> usize {
        self.steps.div_ceil(self.per_block)
    }

    /// The first step of a block, and how many it has.
    pub(super) fn block(self, index: usize) -> (usize, usize) {
        let first = index * self.per_block;
        (first, self.per_block.min(self.steps - first))
    }
}

impl MatrixWeights {
    /// Or why there are none.
    pub(crate) fn new<T: Real>(
        filter: &PackedFilter<T>,
        grain: Grain,
        limits: &Limits,
    ) -> Result<Self, &'static str> {
        let Form::Panels(Panels { panels, .. }) = &filter.form else {
            return Err("a depthwise filter has no panels");
        };
        if !filter.kernels.has_matrix_tiles(grain.dtype()) {
            return Err("there are no matrix tiles for the type on this CPU");
        }
        if filter.in_channels < WORTHWHILE_CHANNELS {
            return Err("too few input channels to fill a tile");
        }
        // Where vectors stand in for tiles, a row takes each of sixteen, two a cycle.
        let cycles_of_row = if filter.kernels.isa() == Isa::Vnni { 8.0 } else { 1.0 };
        let abreast = abreast(filter.in_channels, panels, grain, cycles_of_row);
        let mut begins = vec![0usize];
        for panel in panels {
            let steps =
                taps_abreast(panel, abreast).count() * filter.in_channels.div_ceil(grain.row_channels());
            begins
                .push(begins[begins.len() - 1].saturating_add(steps.saturating_mul(step_len(panel, grain))));
        }
        let len = begins[panels.len()].saturating_mul(filter.groups);
        let no_memory = "no memory for the weights in parts";
        limits.check_bytes("the weights in parts", len, size_of::<u16>()).map_err(|_| no_memory)?;
        let weights = Aligned::zeros(len).map_err(|_| no_memory)?;
        let bias = T::as_f32(&filter.bias).unwrap_or_default();
        let tiny_bias = bias.iter().any(|bias| *bias != 0.0 && bias.abs() < LEAST_BIAS);
        let mut packed =
            MatrixWeights { weights, begins, grain, abreast, tap_sums: Vec::new(), tiny: false, tiny_bias };
        for group in 0..filter.groups {
            for (index, panel) in panels.iter().enumerate() {
                let source = filter.panel_weights(group, panel).computed();
                let source = T::as_f32(&source).unwrap_or_default();
                if !source.iter().all(|weight| weight.is_finite()) {
                    // They would reach positions that only read zeros around the input.
                    return Err("some weights are not finite");
                }
                packed.tiny |= source.iter().any(|weight| *weight != 0.0 && weight.abs() < TINY);
                let range = packed.range(group, index);
                let target = &mut packed.weights.as_mut_slice()[range];
                match grain {
                    Grain::Pieces(pieces) => {
                        let put = |weight: f32, at: (usize, usize), tiles: usize, step: &mut [u16]| {
                            put_pieces(pieces, weight, at, tiles, step);
                        };
                        pack(source, panel, (filter.in_channels, abreast), grain, put, target);
                    }
                    Grain::Bytes { .. } => {
                        pack(source, panel, (filter.in_channels, abreast), grain, put_byte, target);
                        packed.tap_sums.push(tap_sums(source, panel, abreast));
                    }
                }
            }
        }
        Ok(packed)
    }

    fn range(&self, group: usize, index: usize) -> Range<usize> {
        let group = group * self.begins[self.begins.len() - 1];
        group + self.begins[index]..group + self.begins[index + 1]
    }

    /// Elements of a step of a panel.
    pub(super) fn step_len(&self, panel: &Panel) -> usize {
        step_len(panel, self.grain)
    }

    /// How the channels of a filter are cut into blocks for so many taps.
    pub(super) fn blocks(&self, channels: usize, taps: usize) -> StepBlocks {
        StepBlocks::new(channels, taps, self.grain)
    }

    /// How many steps the taps of these deltas take, for every row of channels.
    pub(crate) fn steps_of_taps(&self, deltas: &[Vec<usize>]) -> usize {
        let Some((last, outer)) = deltas.split_last() else { return 1 };
        outer.iter().map(Vec::len).product::<usize>() * last.len().div_ceil(self.abreast)
    }

    /// Of bytes, the sums over the channels of taps abreast and every column of a panel.
    pub(super) fn tap_sums(&self, group: usize, index: usize) -> &[i32] {
        let panels = self.begins.len() - 1;
        self.tap_sums.get(group * panels + index).map_or(&[], Vec::as_slice)
    }

    /// The weights of a panel.
    pub(super) fn panel(&self, group: usize, index: usize) -> &[u16] {
        &self.weights.as_slice()[self.range(group, index)]
    }

    pub(crate) fn bytes(&self) -> usize {
        self.weights.len() * size_of::<u16>()
    }
}

fn step_len(panel: &Panel, grain: Grain) -> usize {
    grain.parts() * panel.vectors * TILE_LEN
}

/// How many neighbouring taps of the last axis are best multiplied as one, of those that have room in a row: the more, the fewer products
/// there are, at so many cycles a row and tile of columns, but the more often inputs are moved.
fn abreast(channels: usize, panels: &[Panel], grain: Grain, cycles_of_row: f64) -> usize {
    let are_neighbours = |deltas: &Vec<usize>| deltas.windows(2).all(|pair| pair[0] == pair[1] + 1);
    if !panels.iter().filter_map(|panel| panel.deltas.last()).all(are_neighbours) {
        return 1;
    }
    let products = grain.products().max(1.0) * cycles_of_row;
    let cost = |abreast: usize| {
        let tiles = |panel: &Panel| taps_abreast(panel, abreast).count() * panel.vectors;
        let moved = (abreast - 1) * grain.parts();
        panels.iter().map(tiles).sum::<usize>() as f64 * products + moved as f64 * CYCLES_OF_A_NEIGHBOUR
    };
    let most = (grain.row_channels() / channels.max(1)).max(1);
    (1..=most).min_by(|&one, &other| cost(one).total_cmp(&cost(other))).unwrap_or(1)
}

/// The numbers of taps that are multiplied as one. Those of the last axis follow each other.
fn taps_abreast(panel: &Panel, abreast: usize) -> impl Iterator<Item = Range<usize>> {
    let last = panel.deltas.last().map_or(1, Vec::len).max(1);
    let of_last = move |outer: usize| {
        (0..last).step_by(abreast).map(move |tap| outer + tap..outer + last.min(tap + abreast))
    };
    (0..panel.taps()).step_by(last).flat_map(of_last)
}

/// Lays out `[tap][channel][column]`, given how many channels there are and how many taps are multiplied as one. `put` puts a weight of a
/// channel of a row and a column into a step of so many tiles of columns.
fn pack(
    source: &[f32],
    panel: &Panel,
    (channels, abreast): (usize, usize),
    grain: Grain,
    put: impl Fn(f32, (usize, usize), usize, &mut [u16]),
    target: &mut [u16],
) {
    let taps = panel.taps();
    let width = source.len() / (taps * channels).max(1);
    let blocks = StepBlocks::new(channels, taps, grain);
    let mut steps = target.chunks_exact_mut(step_len(panel, grain));
    for block in 0..blocks.len() {
        let (first, steps_of_block) = blocks.block(block);
        for taps in taps_abreast(panel, abreast) {
            for (step, target) in (first..first + steps_of_block).zip(&mut steps) {
                let first = step * grain.row_channels();
                for (number, tap) in taps.clone().enumerate() {
                    for channel in first..channels.min(first + grain.row_channels()) {
                        let row = &source[(tap * channels + channel) * width..][..width];
                        let of_row = number * channels + channel - first;
                        for (column, &weight) in row.iter().enumerate() {
                            put(weight, (of_row, column), panel.vectors, target);
                        }
                    }
                }
            }
        }
    }
}

fn put_pieces(
    pieces: Pieces,
    weight: f32,
    (channel, column): (usize, usize),
    tiles: usize,
    step: &mut [u16],
) {
    let within = channel / 2 * 32 + column % 16 * 2 + channel % 2;
    let pieces = pieces.of(weight).into_iter().zip(step.chunks_exact_mut(tiles * TILE_LEN));
    for (value, of_piece) in pieces {
        of_piece[column / 16 * TILE_LEN + within] = value;
    }
}

fn put_byte(weight: f32, (channel, column): (usize, usize), _tiles: usize, step: &mut [u16]) {
    let within = channel / 4 * 64 + column % 16 * 4 + channel % 4;
    let pair = &mut step[column / 16 * TILE_LEN + within / 2];
    let mut bytes = pair.to_ne_bytes();
    bytes[within % 2] = weight as i8 as u8;
    *pair = u16::from_ne_bytes(bytes);
}

/// Per taps that are multiplied as one, and per column, the sum over the channels of `[tap][channel][column]`.
fn tap_sums(source: &[f32], panel: &Panel, abreast: usize) -> Vec<i32> {
    let tap_len = source.len() / panel.taps().max(1);
    let of_taps = |taps: Range<usize>| {
        let width = panel.vectors * 16;
        let mut sums = vec![0; width];
        for row in source[taps.start * tap_len..taps.end * tap_len].chunks_exact(width) {
            sums.iter_mut().zip(row).for_each(|(sum, &weight)| *sum += weight as i32);
        }
        sums
    };
    taps_abreast(panel, abreast).flat_map(of_taps).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(deltas: &[&[usize]]) -> Panel {
        Panel::of_deltas(deltas.iter().map(|deltas| deltas.to_vec()).collect())
    }

    const BYTES: Grain = Grain::Bytes { signed: true };
    const NUMBERS: Grain = Grain::Pieces(Pieces::Bf16(1));

    #[test]
    fn neighbouring_taps_fill_a_row() {
        let many: &[usize] = &[6, 5, 4, 3, 2, 1, 0];
        let panels = [panel(&[many, many]), panel(&[many, &[1, 0]])];
        assert_eq!(abreast(32, &panels, BYTES, 1.0), 2);
        assert_eq!(abreast(32, &panels, NUMBERS, 1.0), 1, "there is no room");
        assert_eq!(abreast(8, &[panel(&[many, &[2, 1, 0]])], NUMBERS, 1.0), 3, "no more than there are");
        assert_eq!(abreast(8, &[panel(&[many, &[2, 0]])], NUMBERS, 1.0), 1, "these are no neighbours");
        assert_eq!(abreast(8, &[panel(&[&[1, 0]])], NUMBERS, 1.0), 1, "too little to be worth it");
        assert_eq!(abreast(8, &[panel(&[&[1, 0]])], BYTES, 8.0), 2);
    }

    #[test]
    fn taps_abreast_are_those_of_the_last_axis() {
        let taps = |abreast| taps_abreast(&panel(&[&[0, 1], &[2, 1, 0]]), abreast).collect::<Vec<_>>();
        assert_eq!(taps(1), (0..6).map(|tap| tap..tap + 1).collect::<Vec<_>>());
        assert_eq!(taps(2), [0..2, 2..3, 3..5, 5..6]);
        assert_eq!(taps(3), [0..3, 3..6]);
    }
}
