//! Which path runs a problem, and why.

use std::fmt;

use outstride_kernels::{Isa, KernelName, Real, settle};
use outstride_spec::{DType, Geometry};

use super::Strides;
use super::axis::EngineAxis;
use super::boxes::Workers;
use super::filters::Filters;
use super::lane::LanePlan;
use super::lattice::{Lattices, Part};
use super::pack::PackedFilter;
use super::panel::{PanelPlan, Transformed, WinogradWeights};
use super::pixel::{self, PixelPlan};
use super::problem::Problem;

/// Below this many estimated cycles, waking a second thread costs more than it saves.
const CYCLES_WORTH_TWO_THREADS: f64 = 50_000.0;

/// What every further thread should have to do.
const CYCLES_WORTH_A_THREAD: f64 = 100_000.0;

/// Below this many estimated cycles, a task costs more than its thread gains by being free for another: every task copies inputs
/// that its neighbours copy as well, and has first and last rows that nothing is computed beside.
const CYCLES_WORTH_A_TASK: f64 = 1_000_000.0;

/// What there is to find out, before tiles multiply, of the sums of a panel at the positions of a box.
const CYCLES_OF_A_TILE_JOB: f64 = 1000.0;

/// What a core loads from its second-level cache.
const LOADED_BYTES_PER_CYCLE: f64 = 32.0;

/// What the caches near a core hold of weights or outputs until they are needed again.
const CACHED_BYTES: usize = 1 << 20;

/// A way to execute the operator: what the lanes of a vector run over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Path {
    /// Output channels, and phases where channels are few.
    Panel,
    /// As `Panel`, summed by matrix tiles of numbers cut into 16-bit parts.
    Tile,
    /// As `Panel`, with fewer products by Winograd's filtering.
    Winograd,
    /// Neighbouring positions of a row.
    Pixel,
    /// Channels of a depthwise filter.
    Lane,
    /// The definition itself, element by element.
    Reference,
}

impl Path {
    /// The word used in commands and messages.
    pub fn name(self) -> &'static str {
        match self {
            Path::Panel => "panel",
            Path::Tile => "tile",
            Path::Winograd => "winograd",
            Path::Pixel => "pixel",
            Path::Lane => "lane",
            Path::Reference => "reference",
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What was decided for an input shape. Made in microseconds; it holds no tensors.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) geometry: Geometry,
    pub(crate) dtype: DType,
    pub(crate) path: Path,
    pub(crate) kernel: String,
    pub(crate) lattices: Vec<usize>,
    pub(crate) groups_at_once: usize,
    pub(crate) tasks: usize,
    pub(crate) threads: usize,
    pub(crate) workspace: usize,
    pub(crate) packed: usize,
    pub(crate) phases: usize,
    pub(crate) taps: usize,
    /// Per path that was considered, its estimated cycles or why it cannot be used.
    pub(crate) considered: Vec<(Path, Result<f64, &'static str>)>,
}

impl Plan {
    /// The chosen path.
    pub fn path(&self) -> Path {
        self.path
    }

    /// The kernel family, tile and instruction set, such as `f32_panel_12x2_avx512`.
    pub fn kernel(&self) -> &str {
        &self.kernel
    }

    /// The geometry planned for.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// How many phases have taps, over all axes.
    pub fn phases(&self) -> usize {
        self.phases
    }

    /// The taps of all phases together: the elements of the kernel.
    pub fn taps(&self) -> usize {
        self.taps
    }

    /// Every path with its estimated cycles, or why it cannot run this call.
    pub fn considered(&self) -> &[(Path, Result<f64, &'static str>)] {
        &self.considered
    }

    /// Per spatial axis, which inputs are computed with as if they were neighbours: every one, or only every so manyth, where
    /// dilation has the taps far from each other.
    pub fn lattices(&self) -> &[usize] {
        &self.lattices
    }

    /// How many groups are computed as if they were one, where each has too few channels to fill matrix tiles.
    pub fn groups_at_once(&self) -> usize {
        self.groups_at_once
    }

    /// How many independent tasks the call is cut into.
    pub fn tasks(&self) -> usize {
        self.tasks
    }

    /// How many threads are worth using.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The most scratch bytes of a thread: its copy of the input, sums that wait, and lists of positions, taps and panels. An
    /// operator keeps them from call to call. They do not grow with the tensors.
    pub fn workspace_bytes(&self) -> usize {
        self.workspace
    }

    /// Bytes that the packed weights occupy.
    pub fn packed_bytes(&self) -> usize {
        self.packed
    }

    /// Floating-point operations of the definition: two per multiply-add.
    pub fn flops(&self) -> u128 {
        2 * self.geometry.multiply_adds()
    }

    /// Bytes that must move: input, weights and output once each.
    pub fn bytes(&self) -> u128 {
        let elements = |shape: Vec<usize>| shape.iter().map(|&size| size as u128).product::<u128>();
        let geometry = &self.geometry;
        let count = elements(geometry.input_shape())
            + elements(geometry.filter_shape())
            + elements(geometry.output_shape());
        count * self.dtype.size() as u128
    }

    /// The plan in words: what was chosen, what was rejected, and why.
    pub fn explain(&self) -> String {
        use fmt::Write;
        let mut text = String::new();
        let _ = writeln!(text, "{} {}", self.dtype, self.geometry);
        let _ = writeln!(text, "phases     {} with {} taps in all", self.phases, self.taps);
        if self.lattices.iter().any(|&apart| apart > 1) {
            let apart: Vec<String> = self.lattices.iter().map(usize::to_string).collect();
            let _ = writeln!(text, "dilation   inputs {} apart are taken for neighbours", apart.join("×"));
        }
        if self.groups_at_once > 1 {
            let _ = writeln!(text, "groups     {} are computed as one", self.groups_at_once);
        }
        let _ = writeln!(text, "path       {} ({})", self.path, self.kernel);
        for (path, outcome) in &self.considered {
            let _ = match outcome {
                Ok(cycles) if *path == self.path => {
                    writeln!(text, "           {path}: about {cycles:.0} cycles, chosen")
                }
                Ok(cycles) => {
                    writeln!(text, "           {path}: about {cycles:.0} cycles, rejected as slower")
                }
                Err(reason) => writeln!(text, "           {path}: rejected, {reason}"),
            };
        }
        let _ = writeln!(text, "work       {} flops, {} bytes", self.flops(), self.bytes());
        let _ = writeln!(text, "tasks      {} on up to {} threads", self.tasks, self.threads);
        let _ = writeln!(
            text,
            "memory     {} bytes of packed weights, {} bytes of scratch per thread",
            self.packed, self.workspace
        );
        text
    }
}

/// The tasks of the chosen path.
#[derive(Debug)]
enum Tasks {
    Panel(PanelPlan),
    Tile(PanelPlan),
    Winograd(PanelPlan),
    Pixel(PixelPlan),
    Lane(LanePlan),
}

/// A chosen path, cut into tasks, and what else was considered.
#[derive(Debug)]
pub(crate) struct Strategy {
    tasks: Tasks,
    pub(crate) threads: usize,
    considered: Vec<(Path, Result<f64, &'static str>)>,
}

impl Strategy {
    /// Chooses the path with the least estimated cycles, or `forced` where that can run.
    pub(crate) fn choose<T: Real>(
        axes: &[EngineAxis<'_>],
        filters: &Filters<T>,
        strides: &Strides,
        forced: Option<Path>,
        threads: usize,
    ) -> Self {
        let last = &axes[axes.len() - 1];
        let (filter, for_tiles) = (&filters.own, filters.of(Path::Tile));
        let dense = filter.is_dense();
        let by_vectors = if dense {
            Ok(PanelPlan::new(axes, filter, strides))
        } else {
            Err("a depthwise filter has no panels")
        };
        let by_tiles = match (&by_vectors, &for_tiles.matrix) {
            (Ok(plan), Ok(_)) if std::ptr::eq(filter, for_tiles) => Ok(plan.by_tiles(axes, filter)),
            (Ok(_), Ok(_)) => Ok(PanelPlan::new(axes, for_tiles, strides).by_tiles(axes, for_tiles)),
            (_, Err(reason)) | (Err(reason), _) => Err(*reason),
        };
        let by_winograd = match (&by_vectors, &filter.winograd) {
            (Ok(plan), Ok(weights)) => Ok(plan.by_winograd(axes, filter, weights)),
            (_, Err(reason)) | (Err(reason), _) => Err(*reason),
        };
        let panel = estimate(&by_vectors, |plan| panel_cycles(axes, filter, strides, plan));
        let tile = estimate(&by_tiles, |plan| tile_cycles(axes, for_tiles, strides, plan));
        let winograd = estimate(&by_winograd, |plan| winograd_cycles(axes, filter, strides, plan));
        let pixel = if last.x_stride == 1 || last.input <= 1 || strides.x_channel == 1 {
            Ok(pixel_cycles(axes, filter, strides))
        } else {
            Err("neither positions nor channels are next to each other in the input")
        };
        let lane =
            if dense { Err("the filter is not depthwise") } else { Ok(lane_cycles(axes, filter, strides)) };
        let considered = vec![
            (Path::Panel, panel),
            (Path::Tile, tile),
            (Path::Winograd, winograd),
            (Path::Pixel, pixel),
            (Path::Lane, lane),
        ];
        let possible = considered.iter().filter_map(|&(path, cycles)| Some((path, cycles.ok()?)));
        let chosen = possible
            .clone()
            .find(|&(path, _)| Some(path) == forced)
            .or_else(|| possible.min_by(|a, b| a.1.total_cmp(&b.1)));
        let (path, cycles) = chosen.expect("a filter is dense or depthwise");
        let threads = threads.min(worthwhile_threads(cycles));
        let turns = (cycles / threads as f64 / CYCLES_WORTH_A_TASK) as usize;
        let workers = Workers { threads, turns: turns.clamp(1, Workers::MOST_TURNS) };
        let for_workers = |plan: PanelPlan| plan.for_workers(axes, filters.of(path), workers);
        let tasks = match (path, by_vectors, by_tiles, by_winograd) {
            (Path::Panel, Ok(plan), ..) => Tasks::Panel(for_workers(plan)),
            (Path::Tile, _, Ok(plan), _) => Tasks::Tile(for_workers(plan)),
            (Path::Winograd, _, _, Ok(plan)) => Tasks::Winograd(for_workers(plan)),
            (Path::Lane, ..) => Tasks::Lane(LanePlan::new(axes, filter, strides, workers)),
            _ => Tasks::Pixel(PixelPlan::new(axes, filter, workers)),
        };
        Strategy { tasks, threads, considered }
    }

    pub(crate) fn tasks<T: Real>(&self, filter: &PackedFilter<T>) -> usize {
        match &self.tasks {
            Tasks::Panel(plan) | Tasks::Tile(plan) | Tasks::Winograd(plan) => plan.tasks(filter),
            Tasks::Pixel(plan) => plan.tasks(filter),
            Tasks::Lane(plan) => plan.tasks(),
        }
    }

    pub(crate) fn run<T: Real>(&self, problem: &Problem<'_, T>, task: usize) {
        match &self.tasks {
            Tasks::Panel(plan) | Tasks::Tile(plan) | Tasks::Winograd(plan) => plan.run(problem, task),
            Tasks::Pixel(plan) => plan.run(problem, task),
            Tasks::Lane(plan) => plan.run(problem, task),
        }
        if problem.stream {
            settle();
        }
    }

    /// Estimated cycles of the chosen path.
    fn cycles(&self) -> f64 {
        let chosen = self.considered.iter().find(|(path, _)| *path == self.path());
        chosen.and_then(|&(_, cycles)| cycles.ok()).unwrap_or(0.0)
    }

    pub(crate) fn path(&self) -> Path {
        match &self.tasks {
            Tasks::Panel(_) => Path::Panel,
            Tasks::Tile(_) => Path::Tile,
            Tasks::Winograd(_) => Path::Winograd,
            Tasks::Pixel(_) => Path::Pixel,
            Tasks::Lane(_) => Path::Lane,
        }
    }

    fn kernel<T: Real>(&self, filter: &PackedFilter<T>) -> KernelName {
        let kernels = filter.kernels;
        let columns = filter.widest_panel();
        let path = self.path();
        let tile = match path {
            Path::Panel | Path::Winograd => (kernels.panel_rows(), columns),
            Path::Tile => (4 / columns, columns),
            Path::Pixel => pixel::tile(filter),
            Path::Lane | Path::Reference => (1, 4),
        };
        let dtype = if path == Path::Tile { filter.grain().dtype() } else { T::DTYPE };
        let isa = if path == Path::Tile { kernels.matrix_isa(dtype) } else { kernels.vector_isa() };
        KernelName { dtype, family: path.name(), tile, isa }
    }

    fn workspace<T: Real>(&self, axes: &[EngineAxis<'_>], filter: &PackedFilter<T>) -> usize {
        match &self.tasks {
            Tasks::Panel(plan) | Tasks::Tile(plan) | Tasks::Winograd(plan) => plan.workspace(axes, filter),
            Tasks::Pixel(plan) => plan.workspace(axes, filter),
            Tasks::Lane(plan) => plan.workspace(axes, filter),
        }
    }
}

/// The plan a user sees: of several parts, the path of the one that takes longest.
pub(crate) fn describe<T: Real>(
    strategies: &[Strategy],
    parts: &[Part<'_>],
    lattices: &Lattices,
    geometry: &Geometry,
    filters: &Filters<T>,
    dtype: DType,
) -> Plan {
    let filter_of = |strategy: &Strategy| filters.of(strategy.path());
    let longest = strategies.iter().max_by(|a, b| a.cycles().total_cmp(&b.cycles()));
    let workspaces = strategies
        .iter()
        .zip(parts)
        .map(|(strategy, part)| strategy.workspace(&part.axes, filter_of(strategy)));
    Plan {
        geometry: geometry.clone(),
        dtype,
        path: longest.map_or(Path::Pixel, Strategy::path),
        kernel: longest.map_or_else(String::new, |strategy| strategy.kernel(filter_of(strategy)).to_string()),
        lattices: lattices.apart(),
        groups_at_once: longest.map_or(1, |strategy| filter_of(strategy).joined),
        tasks: strategies.iter().map(|strategy| strategy.tasks(filter_of(strategy))).sum(),
        threads: strategies.iter().map(|strategy| strategy.threads).max().unwrap_or(1),
        workspace: workspaces.max().unwrap_or(0),
        packed: filters.bytes(),
        phases: filters.own.phases.iter().map(Vec::len).product(),
        taps: filters.own.kernel.iter().product(),
        considered: considered_together(strategies),
    }
}

/// Of every path, the cycles of all parts, or why one cannot take it.
fn considered_together(strategies: &[Strategy]) -> Vec<(Path, Result<f64, &'static str>)> {
    let mut strategies = strategies.iter().map(|strategy| &strategy.considered);
    let Some(first) = strategies.next() else { return Vec::new() };
    strategies.fold(first.clone(), |mut together, considered| {
        for ((_, sum), (_, cycles)) in together.iter_mut().zip(considered) {
            *sum = sum.and_then(|sum| Ok(sum + (*cycles)?));
        }
        together
    })
}

/// How many threads are worth waking for some work.
fn worthwhile_threads(cycles: f64) -> usize {
    let least = if cycles < CYCLES_WORTH_TWO_THREADS { 1 } else { 2 };
    ((cycles / CYCLES_WORTH_A_THREAD).ceil() as usize).max(least)
}

/// Elements of a tensor with these sizes.
fn elements(sizes: impl Iterator<Item = usize>, channels: usize) -> f64 {
    sizes.map(|size| size as f64).product::<f64>() * channels as f64
}

/// How a path's outputs reach memory.
enum Stores {
    /// As runs of neighbouring elements.
    Runs,
    /// As runs, turned around from tiles that hold them apart.
    Turned,
    /// As short runs, gathered from vectors of positions.
    Gathered,
    /// Element by element, each to another line.
    Scattered,
}

/// Cycles to store the outputs.
fn store_cycles<T: Real>(axes: &[EngineAxis<'_>], filter: &PackedFilter<T>, stores: Stores) -> f64 {
    let outputs = elements(axes.iter().map(|axis| axis.output), filter.out_channels * filter.groups);
    outputs
        * match stores {
            Stores::Runs => 4.0 / filter.kernels.lanes() as f64,
            Stores::Turned => 0.5,
            Stores::Gathered => 3.5,
            Stores::Scattered => 20.0,
        }
}

/// Cycles to fetch weights that no cache near the core holds, once per pass over them.
fn weight_cycles<T: Real>(filter: &PackedFilter<T>, passes: usize) -> f64 {
    let bytes = filter.bytes();
    if bytes / filter.groups <= CACHED_BYTES { 0.0 } else { fetch_cycles(bytes, passes) }
}

/// Cycles to fetch so many bytes from far away, once per pass over them.
fn fetch_cycles(bytes: usize, passes: usize) -> f64 {
    const BYTES_PER_CYCLE: f64 = 3.0;
    bytes as f64 * passes as f64 / BYTES_PER_CYCLE
}

/// The estimate for a plan, or why there is none.
fn estimate(
    plan: &Result<PanelPlan, &'static str>,
    cycles: impl Fn(&PanelPlan) -> f64,
) -> Result<f64, &'static str> {
    match plan {
        Ok(plan) => Ok(cycles(plan)),
        Err(reason) => Err(*reason),
    }
}

fn panel_cycles<T: Real>(
    axes: &[EngineAxis<'_>],
    filter: &PackedFilter<T>,
    strides: &Strides,
    plan: &PanelPlan,
) -> f64 {
    // Two multiply-adds of a vector a cycle, less what the loads between them cost: with one vector a row, there are as
    // many.
    let share = if filter.widest_panel() == 1 { 0.5 } else { 0.93 };
    let compute = plan.executed(axes, filter) / (2 * filter.kernels.lanes()) as f64 / share;
    let copy = if plan.is_in_place() { 0.0 } else { 0.5 };
    // But for the first pass, a part of the weights' way is gone while others are multiplied.
    let weight_size = 0.6 + 0.4 / plan.passes().max(1) as f64;
    compute + plan.overhead(filter) + around_panels(axes, filter, strides, plan, copy, weight_size)
}

fn tile_cycles<T: Real>(
    axes: &[EngineAxis<'_>],
    filter: &PackedFilter<T>,
    strides: &Strides,
    plan: &PanelPlan,
) -> f64 {
    let (grain, parts) = (filter.grain(), filter.grain().parts());
    // A single tile of columns needs as many loads as products.
    let narrow = filter.widest_panel() == 1;
    let per_cycle = match (filter.kernels.isa(), narrow) {
        // Vectors stand in for tiles.
        (Isa::Vnni, _) => 50.0,
        (_, true) if parts == 1 => 220.0,
        (_, true) => 140.0,
        // At their best 450, beside a neighbour on the core's other hardware thread that uses tiles too 140. Vectors lose up to
        // half beside any busy neighbour: in minutes of both kinds, tiles took two thirds of the time of vectors that were
        // estimated alike with 280.
        (_, false) => 360.0,
    };
    let compute = plan.executed(axes, filter) * grain.products() / per_cycle;
    // Two bytes a part instead of four, and a third of their way weights are fetched while others are multiplied, but in the first
    // pass, which knows least of what comes.
    let weight_size = 0.35 + 0.2 / plan.passes().max(1) as f64;
    let copy = 0.4 + 0.3 * parts as f64;
    compute
        + CYCLES_OF_A_TILE_JOB * plan.jobs(filter) as f64
        + around_panels(axes, filter, strides, plan, copy, weight_size * parts as f64)
}

fn winograd_cycles<T: Real>(
    axes: &[EngineAxis<'_>],
    filter: &PackedFilter<T>,
    strides: &Strides,
    plan: &PanelPlan,
) -> f64 {
    let lanes = filter.kernels.lanes() as f64;
    // Every step reads inputs of its own, so that multiply-adds wait for them more often than those of panels.
    let multiply = plan.executed(axes, filter) / (2.0 * lanes) / 0.9;
    let bytes = filter.winograd.as_ref().map_or(0, WinogradWeights::bytes);
    // With few tiles, every weight is multiplied a few times only, and takes longer to load than that.
    let compute = multiply.max(bytes as f64 * plan.sweeps(filter) as f64 / LOADED_BYTES_PER_CYCLE);
    let Transformed { points, products } = plan.transformed(filter);
    // Their additions are few: what counts is the way of the bytes through the caches, whatever the vectors.
    let transformed = (points + products) * size_of::<T>() as f64;
    let stay_near = transformed / (plan.members() * filter.groups) as f64 <= CACHED_BYTES as f64;
    let transforms = transformed * if stay_near { 0.2 } else { 0.375 };
    let are_far = bytes.max(2 * filter.bytes()) / filter.groups > 2 * CACHED_BYTES;
    let fetched = if are_far { fetch_cycles(bytes, plan.passes()) } else { 0.0 };
    // Three quarters of their way, weights are fetched while others are multiplied, if there is so much to multiply.
    let beside = (0.75 * fetched).min(compute);
    compute + transforms + around_panels(axes, filter, strides, plan, 0.5, 0.0) + fetched - beside
}

/// Cycles to copy the input, at so many per element, to fetch the weights, of such a size, and to store the outputs.
fn around_panels<T: Real>(
    axes: &[EngineAxis<'_>],
    filter: &PackedFilter<T>,
    strides: &Strides,
    plan: &PanelPlan,
    copy: f64,
    weight_size: f64,
) -> f64 {
    let stores = match (strides.y_channel, plan.stores_planes()) {
        (1, _) => Stores::Runs,
        (_, true) => Stores::Turned,
        // The phases of a single channel are short runs.
        _ if filter.out_channels == 1 => Stores::Gathered,
        _ => Stores::Scattered,
    };
    let inputs = elements(axes.iter().map(|axis| axis.input), filter.in_channels * filter.groups);
    copy * inputs
        + weight_size * weight_cycles(filter, plan.passes())
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
    let phases: usize = filter.phases.iter().map(Vec::len).product();
    let leave = plan.positions_of_box().saturating_mul(phases).saturating_mul(run) > CACHED_BYTES;
    let shares_lines = run < SHORT_RUN_BYTES && !run.is_multiple_of(LINE_BYTES);
    if strides.y_channel != 1 || !shares_lines || !leave {
        return 0.0;
    }
    120.0 * elements(axes.iter().map(|axis| axis.output), filter.groups)
}

fn pixel_cycles<T: Real>(axes: &[EngineAxis<'_>], filter: &PackedFilter<T>, strides: &Strides) -> f64 {
    let last = &axes[axes.len() - 1];
    let stores = match (last.y_stride, last.stride) {
        (1, 1 | 2 | 4 | 8) => Stores::Runs,
        (1, _) => Stores::Gathered,
        _ if strides.y_channel == 1 => Stores::Gathered,
        _ => Stores::Scattered,
    };
    let inputs = elements(axes.iter().map(|axis| axis.input), filter.in_channels * filter.groups);
    let copy = inputs * if last.x_stride == 1 { 0.2 } else { 0.6 };
    let plan = PixelPlan::new(axes, filter, Workers::ALONE);
    // Each pass reads a panel's lines once per block of its columns.
    plan.cycles(axes, filter)
        + copy
        + 3.0 * weight_cycles(filter, plan.passes())
        + store_cycles(axes, filter, stores)
}

fn lane_cycles<T: Real>(axes: &[EngineAxis<'_>], filter: &PackedFilter<T>, strides: &Strides) -> f64 {
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
