//! Estimates of the cycles that paths take.

use outstride_kernels::{Isa, Real};

use super::Strides;
use super::axis::EngineAxis;
use super::boxes::Workers;
use super::pack::PackedFilter;
use super::panel::{PanelPlan, Transformed, WinogradWeights};
use super::pixel::{FoldPlan, PixelPlan};

/// What there is to find out, before tiles multiply, of the sums of a panel at the positions of a box.
const CYCLES_OF_A_TILE_JOB: f64 = 1000.0;

/// What there is to find out before the pixels of a group are multiplied.
const CYCLES_OF_A_PIXEL_GROUP: f64 = 1500.0;

/// What a row of a panel that phases share takes to store, beyond what its elements do: of sums by vectors for every lane, and by tiles
/// for every part that numbers are cut into.
const CYCLES_OF_A_SHARED_LANE: f64 = 2.5;
const CYCLES_OF_A_SHARED_PART: f64 = 15.0;

/// What a run of the channels of a group takes to be stored: by vectors of less than a vector, or of so many, and by tiles, which lay
/// sums out while others are multiplied.
pub(super) const CYCLES_OF_A_SHORT_RUN: f64 = 25.0;
const CYCLES_OF_A_RUN: f64 = 8.0;
const CYCLES_OF_A_VECTOR_OF_A_RUN: f64 = 4.0;

/// What the channels of a position, of a part, take to be put beside those of the one before.
pub(super) const CYCLES_OF_A_NEIGHBOUR: f64 = 6.0;

/// What a sum of such a panel takes to be turned around for a channels-first output, likewise.
pub(super) const TURNING_OF_VECTORS: f64 = 2.0;
const TURNING_OF_A_PART: f64 = 2.0 / 3.0;

/// Fewer channels than that take as long to be turned around.
pub(super) const FEWEST_TURNED: f64 = 6.0;

/// What weights of 16 bits take to fetch and to widen, in terms of what wide ones take.
const NARROW_SIZE: f64 = 0.6;

/// What a core loads from its second-level cache.
const LOADED_BYTES_PER_CYCLE: f64 = 32.0;

/// Memory as far apart, or a multiple of it, is in the same set of a first-level cache, which holds fewer lines than a tile has rows or
/// channels.
pub(super) const SHARING_BYTES: usize = 1 << 12;

/// What the caches near a core hold of weights or outputs until they are needed again.
pub(super) const CACHED_BYTES: usize = 1 << 20;

/// What is passed over again and again comes from the last cache, if it has room beside all that others need.
const MOST_BYTES_OF_LAST_CACHE: usize = 3 << 23;

/// Elements of a tensor with these sizes.
fn elements(sizes: impl Iterator<Item = usize>, channels: usize) -> f64 {
    sizes.map(|size| size as f64).product::<f64>() * channels as f64
}

/// How a path's outputs reach memory.
enum Stores {
    /// As runs of neighbouring elements.
    Runs,
    /// As runs of the channels of a group, with those of other groups between them, at so many cycles each.
    RunsOfGroups(f64),
    /// As runs of so many phases of a channel each.
    RunsOfPhases(usize),
    /// As runs, turned around from tiles that hold them apart.
    Turned,
    /// The same at so many cycles each, with the phases of the last axis side by side in them.
    TurnedTogether(f64),
    /// As runs in which phases take turns.
    Interleaved,
    /// As short runs, gathered from vectors of positions.
    Gathered,
    /// Element by element, each to another line.
    Scattered,
}

/// Whether a group has less than a vector of the channels that lie side by side.
fn are_short_runs<T: Real>(filter: &PackedFilter<T>) -> bool {
    filter.groups > 1 && filter.out_channels < filter.kernels.lanes()
}

/// Cycles to store the outputs.
fn store_cycles<T: Real>(axes: &[EngineAxis<'_>], filter: &PackedFilter<T>, stores: Stores) -> f64 {
    let outputs = elements(axes.iter().map(|axis| axis.output), filter.out_channels * filter.groups);
    outputs
        * match stores {
            Stores::Runs => 4.0 / filter.kernels.lanes() as f64,
            Stores::RunsOfGroups(cycles) => cycles / filter.out_channels as f64,
            Stores::RunsOfPhases(phases) => 8.0 / phases.clamp(2, filter.kernels.lanes()) as f64,
            Stores::Turned => 0.5,
            Stores::TurnedTogether(cycles) => cycles,
            Stores::Interleaved => 1.0,
            Stores::Gathered => 3.5,
            Stores::Scattered => 20.0,
        }
}

/// Cycles that bytes take to be made of the sums of panels of vectors, beside what storing them takes.
fn requantize_cycles<T: Real>(axes: &[EngineAxis<'_>], filter: &PackedFilter<T>, strides: &Strides) -> f64 {
    const CYCLES_OF_A_BYTE: f64 = 1.2;
    let outputs = elements(axes.iter().map(|axis| axis.output), filter.out_channels * filter.groups);
    if strides.y_size == 1 { CYCLES_OF_A_BYTE * outputs } else { 0.0 }
}

/// Cycles to fetch weights that no cache near the core holds, as far as they meet inputs, once per pass over them.
fn weight_cycles<T: Real>(axes: &[EngineAxis<'_>], filter: &PackedFilter<T>, passes: usize) -> f64 {
    let whole = whole_weight_cycles(filter, passes);
    if whole > 0.0 { whole * axes.iter().map(EngineAxis::met_share).product::<f64>() } else { 0.0 }
}

/// The same whether they meet inputs or not.
fn whole_weight_cycles<T: Real>(filter: &PackedFilter<T>, passes: usize) -> f64 {
    if filter.stays_near() { 0.0 } else { fetch_cycles(filter.computed_bytes(), passes) }
}

/// Cycles to fetch so many bytes from far away, once per pass over them.
fn fetch_cycles(bytes: usize, passes: usize) -> f64 {
    const BYTES_PER_CYCLE: f64 = 3.0;
    bytes as f64 * passes as f64 / BYTES_PER_CYCLE
}

/// The estimate for a plan, or why there is none.
pub(super) fn estimate(
    plan: &Result<PanelPlan, &'static str>,
    cycles: impl Fn(&PanelPlan) -> f64,
) -> Result<f64, &'static str> {
    match plan {
        Ok(plan) => Ok(cycles(plan)),
        Err(reason) => Err(*reason),
    }
}

pub(super) fn panel_cycles<T: Real>(
    axes: &[EngineAxis<'_>],
    filter: &PackedFilter<T>,
    strides: &Strides,
    plan: &PanelPlan,
) -> f64 {
    // Two multiply-adds of a vector a cycle, less what the loads between them cost: with one vector a row, there are as
    // many. Six rows of one are too few, too, to fill the time that a multiply-add takes.
    let share = match (filter.widest_panel(), filter.kernels.vector_isa()) {
        (1, Isa::Portable) => 0.5,
        (1, Isa::Avx2) => 0.57,
        (1, _) => 0.72,
        _ => 0.93,
    };
    let compute = plan.executed(axes, filter) / (2 * filter.kernels.lanes()) as f64 / share;
    let copy = if plan.is_in_place() { 0.0 } else { 0.5 };
    // But for the first pass, a part of the weights' way is gone while others are multiplied.
    let weight_size = 0.6 + 0.4 / plan.passes().max(1) as f64;
    let weight_size = if plan.is_for_narrow(axes, filter) { NARROW_SIZE * weight_size } else { weight_size };
    compute
        + plan.overhead(filter)
        + CYCLES_OF_A_SHARED_LANE * filter.kernels.lanes() as f64 * plan.shared_rows(filter)
        + requantize_cycles(axes, filter, strides)
        + around_panels(axes, filter, strides, plan, &Around { copy, weight_size, ..Around::vectors(filter) })
}

pub(super) fn tile_cycles<T: Real>(
    axes: &[EngineAxis<'_>],
    filter: &PackedFilter<T>,
    strides: &Strides,
    plan: &PanelPlan,
) -> f64 {
    let (grain, parts) = (filter.grain(), filter.grain().parts());
    // A single tile of columns needs as many loads as products.
    let narrow = filter.widest_panel() == 1;
    // At their best tiles do 450, narrow ones 250. Beside a busy neighbour on the core's other hardware thread they take more than
    // twice as long, vectors one and a half times. What vectors would have to convert takes tiles in any case; for f32, which is
    // three parts, it is between how tiles and vectors compare in quiet minutes (340) and over minutes of both kinds (225 to 280). Narrow
    // ones of parts were measured beside wide panels of vectors, which f32 has instead (180 to 285 in quiet minutes).
    let per_cycle = match (parts, narrow) {
        // Vectors stand in for tiles.
        _ if filter.kernels.isa() == Isa::Vnni => 50.0,
        (1, true) => 220.0,
        (_, true) => 210.0,
        (1 | 2, false) => 360.0,
        (_, false) => 310.0,
    };
    let compute = plan.executed(axes, filter) * grain.products() / per_cycle;
    // Two bytes a part instead of four, and a third of their way weights are fetched while others are multiplied, but in the first
    // pass, which knows least of what comes.
    let weight_size = 0.35 + 0.2 / plan.passes().max(1) as f64;
    let copy = 0.4 + 0.3 * parts as f64;
    // Neighbours that are put abreast are moved once more.
    let moved = (plan.positions_abreast() - 1) * parts * filter.groups;
    let beside = CYCLES_OF_A_NEIGHBOUR * elements(axes.iter().map(|axis| axis.input), moved);
    compute
        + beside
        + CYCLES_OF_A_TILE_JOB * plan.jobs(filter) as f64
        + CYCLES_OF_A_SHARED_PART * parts as f64 * plan.shared_rows(filter)
        + around_panels(
            axes,
            filter,
            strides,
            plan,
            &Around {
                copy,
                weight_size: weight_size * parts as f64,
                turning: TURNING_OF_A_PART * parts as f64,
                run: CYCLES_OF_A_RUN,
            },
        )
}

pub(super) fn winograd_cycles<T: Real>(
    axes: &[EngineAxis<'_>],
    filter: &PackedFilter<T>,
    strides: &Strides,
    plan: &PanelPlan,
) -> f64 {
    let lanes = filter.kernels.lanes() as f64;
    // Every step reads inputs of its own, so that multiply-adds wait for them more often than those of panels.
    let multiply = plan.executed(axes, filter) / (2.0 * lanes) / 0.9;
    let weights = filter.winograd.as_ref();
    let bytes = weights.map_or(0, WinogradWeights::bytes);
    // With few tiles, every weight is multiplied a few times only, and takes longer to load than that.
    let compute = multiply.max(bytes as f64 * plan.sweeps(filter) as f64 / LOADED_BYTES_PER_CYCLE);
    let Transformed { points, products } = plan.transformed(filter);
    // Their additions are few: what counts is the way of the bytes through the caches, whatever the vectors.
    let transformed = (points + products) * size_of::<T>() as f64;
    let stay_near = transformed / (plan.members() * filter.groups) as f64 <= (CACHED_BYTES / 2) as f64;
    let transforms = transformed * if stay_near { 0.28 } else { 0.375 };
    // Where the filter itself is far, and where its points are too many for the whole of a second-level cache.
    let are_far = bytes.max(2 * filter.computed_bytes()) / filter.groups > 2 * CACHED_BYTES;
    let fetched = if are_far { fetch_cycles(bytes, plan.passes()) } else { 0.0 };
    // Three quarters of their way from the last cache, but not from memory, weights are fetched while others are multiplied, if
    // there is so much to multiply.
    let from_memory = bytes / filter.groups > MOST_BYTES_OF_LAST_CACHE;
    let beside = if from_memory { 0.0 } else { (0.75 * fetched).min(compute) };
    let around = Around { copy: 0.5, weight_size: 0.0, ..Around::vectors(filter) };
    compute + transforms + around_panels(axes, filter, strides, plan, &around) + fetched - beside
}

/// What the ways to and from the products of panels take.
struct Around {
    /// To copy an element of the input.
    copy: f64,
    /// How large weights are that are fetched, in terms of what wide ones take.
    weight_size: f64,
    /// To turn an output around with those of other phases.
    turning: f64,
    /// To store the channels of a group with those of other groups between them.
    run: f64,
}

impl Around {
    /// Where vectors multiply wide weights.
    fn vectors<T: Real>(filter: &PackedFilter<T>) -> Self {
        let vectors = filter.out_channels.div_ceil(filter.kernels.lanes());
        let run = match are_short_runs(filter) {
            true => CYCLES_OF_A_SHORT_RUN,
            false => CYCLES_OF_A_RUN + CYCLES_OF_A_VECTOR_OF_A_RUN * vectors as f64,
        };
        Around { copy: 0.5, weight_size: 1.0, turning: TURNING_OF_VECTORS, run }
    }
}

/// Cycles to copy the input, to fetch the weights and to store the outputs.
fn around_panels<T: Real>(
    axes: &[EngineAxis<'_>],
    filter: &PackedFilter<T>,
    strides: &Strides,
    plan: &PanelPlan,
    around: &Around,
) -> f64 {
    let stores = match (strides.y_channel, plan.stores_planes()) {
        (1, _) if filter.groups > 1 => Stores::RunsOfGroups(around.run),
        (1, _) => Stores::Runs,
        (_, true) if plan.turns_phases_together(filter) => {
            Stores::TurnedTogether(around.turning * (FEWEST_TURNED / filter.out_channels as f64).max(1.0))
        }
        (_, true) => Stores::Turned,
        _ if plan.stores_runs(filter) => Stores::RunsOfPhases(axes[axes.len() - 1].phases.len()),
        _ => Stores::Scattered,
    };
    let inputs = elements(axes.iter().map(|axis| axis.input), filter.in_channels * filter.groups);
    around.copy * inputs
        + around.weight_size * weight_cycles(axes, filter, plan.passes())
        + store_cycles(axes, filter, stores)
        + returning_cycles(axes, filter, strides, plan)
}

/// Cycles to return to lines of the output that hold the channels of several phases, where a box has so many phases that lines
/// leave the caches before the next one is stored.
fn returning_cycles<T: Real>(
    axes: &[EngineAxis<'_>],
    filter: &PackedFilter<T>,
    strides: &Strides,
    plan: &PanelPlan,
) -> f64 {
    const SHORT_RUN_BYTES: usize = 256;
    const LINE_BYTES: usize = 64;
    let run = filter.out_channels * strides.y_size;
    // Phases of the last axis are stored one after the other, those of others in between.
    let phases = filter.phases.last().map_or(1, Vec::len);
    let leave = plan.positions_of_box().saturating_mul(phases).saturating_mul(run) > CACHED_BYTES / 2;
    let shares_lines = run < SHORT_RUN_BYTES && !run.is_multiple_of(LINE_BYTES);
    // Panels that phases share are stored one after the other, tile by tile.
    if strides.y_channel != 1 || !shares_lines || !leave || plan.shared_rows(filter) > 0.0 {
        return 0.0;
    }
    120.0 * elements(axes.iter().map(|axis| axis.output), filter.groups)
}

pub(super) fn pixel_cycles<T: Real>(
    axes: &[EngineAxis<'_>],
    filter: &PackedFilter<T>,
    strides: &Strides,
) -> f64 {
    let last = &axes[axes.len() - 1];
    let inputs = elements(axes.iter().map(|axis| axis.input), filter.in_channels * filter.groups);
    // Rows of a few channels at a time, which no prefetcher follows if they come from far away.
    let are_far = inputs * size_of::<T>() as f64 > 2.0 * CACHED_BYTES as f64;
    let copy = match last.x_stride {
        1 if are_far => 0.8,
        1 => 0.2,
        _ => 0.6,
    };
    let plan = PixelPlan::new(axes, filter, Workers::ALONE);
    // Each pass reads a panel's lines once per block of its columns.
    plan.cycles(axes, filter)
        + CYCLES_OF_A_PIXEL_GROUP * filter.groups as f64
        + copy * inputs
        + 3.0 * weight_cycles(axes, filter, plan.passes())
        + row_cycles(axes, filter, strides)
}

pub(super) fn fold_cycles<T: Real>(
    axes: &[EngineAxis<'_>],
    filter: &PackedFilter<T>,
    strides: &Strides,
    plan: &FoldPlan,
) -> f64 {
    plan.cycles(axes, filter) + whole_weight_cycles(filter, 1) + row_cycles(axes, filter, strides)
}

/// Cycles to store rows of neighbouring positions.
fn row_cycles<T: Real>(axes: &[EngineAxis<'_>], filter: &PackedFilter<T>, strides: &Strides) -> f64 {
    let last = &axes[axes.len() - 1];
    let stores = match (last.y_stride, last.stride) {
        (1, 1 | 2 | 4 | 8) => Stores::Interleaved,
        (1, _) => Stores::Gathered,
        _ if strides.y_channel == 1 && are_short_runs(filter) => Stores::RunsOfGroups(CYCLES_OF_A_SHORT_RUN),
        _ if strides.y_channel == 1 => Stores::Gathered,
        _ => Stores::Scattered,
    };
    let rows_of_axis = |axis: &EngineAxis<'_>| axis.output as f64 * axis.covered_share();
    let channels = (filter.out_channels * filter.groups) as f64;
    let rows = axes[..axes.len() - 1].iter().map(rows_of_axis).product::<f64>() * channels;
    store_cycles(axes, filter, stores) + rows * cycles_of_pixel_row(last)
}

/// What a row of a channel takes to be stored by the pixel path beside its elements, given its axis.
fn cycles_of_pixel_row(axis: &EngineAxis<'_>) -> f64 {
    match axis.stride {
        _ if axis.y_stride != 1 => 60.0,
        // What no tap reaches is written by itself, between the others.
        _ if !axis.is_covered() => 500.0,
        1 => 70.0,
        2 | 4 | 8 => 90.0,
        _ => 280.0,
    }
}

pub(super) fn lane_cycles<T: Real>(
    axes: &[EngineAxis<'_>],
    filter: &PackedFilter<T>,
    strides: &Strides,
) -> f64 {
    let outputs = elements(axes.iter().map(|axis| axis.output), 1);
    let taps: f64 = axes
        .iter()
        .map(|axis| axis.phases.iter().map(|phase| phase.taps.len()).max().unwrap_or(0) as f64)
        .product();
    let vectors = filter.groups.div_ceil(filter.kernels.lanes()) as f64;
    let copy = if strides.x_channel == 1 {
        0.0
    } else {
        1.2 * elements(axes.iter().map(|axis| axis.input), filter.groups)
    };
    let stores = if strides.y_channel == 1 { Stores::Runs } else { Stores::Scattered };
    outputs * (20.0 + taps * (2.0 + vectors)) + copy + store_cycles(axes, filter, stores)
}
