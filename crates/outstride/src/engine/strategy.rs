//! Which path runs a problem, cut into which tasks.

use std::borrow::Cow;

use outstride_kernels::{KernelName, Real, settle};
use outstride_spec::{DType, Geometry};

use super::Strides;
use super::axis::EngineAxis;
use super::boxes::Workers;
use super::cost::{
    estimate, fold_cycles, lane_cycles, panel_cycles, pixel_cycles, tile_cycles, winograd_cycles,
};
use super::filters::Filters;
use super::lane::LanePlan;
use super::lattice::{Lattices, Part};
use super::pack::PackedFilter;
use super::panel::PanelPlan;
use super::pixel::{self, FoldPlan, PixelPlan};
use super::plan::{Path, Plan};
use super::problem::Problem;

/// Below this many estimated cycles, waking a second thread costs more than it saves.
const CYCLES_WORTH_TWO_THREADS: f64 = 50_000.0;

/// What every further thread should have to do.
const CYCLES_WORTH_A_THREAD: f64 = 100_000.0;

/// Below this many estimated cycles, a task costs more than its thread gains by being free for another: every task copies inputs
/// that its neighbours copy as well, and has first and last rows that nothing is computed beside.
const CYCLES_WORTH_A_TASK: f64 = 1_000_000.0;

/// The tasks of the chosen path.
#[derive(Debug)]
enum Tasks {
    Panel(PanelPlan),
    Tile(PanelPlan),
    Winograd(PanelPlan),
    Pixel(PixelPlan),
    Fold(FoldPlan),
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
        let filter = &filters.own;
        let (for_panels, for_tiles) = (filters.of(Path::Panel), filters.of(Path::Tile));
        let dense = filter.is_dense();
        let by_vectors = if dense {
            Ok(PanelPlan::new(axes, for_panels, strides))
        } else {
            Err("a depthwise filter has no panels")
        };
        // Of a filter with other panels there is another plan.
        let plan_of = |plan, of: &PackedFilter<T>| match std::ptr::eq(for_panels, of) {
            true => Cow::Borrowed(plan),
            false => Cow::Owned(PanelPlan::new(axes, of, strides)),
        };
        let by_tiles = match (&by_vectors, &for_tiles.matrix) {
            (Ok(plan), Ok(_)) => Ok(plan_of(plan, for_tiles).by_tiles(axes, for_tiles)),
            (_, Err(reason)) | (Err(reason), _) => Err(*reason),
        };
        let by_winograd = match (&by_vectors, &filter.winograd) {
            (Ok(plan), Ok(weights)) => Ok(plan_of(plan, filter).by_winograd(axes, filter, weights)),
            (_, Err(reason)) | (Err(reason), _) => Err(*reason),
        };
        let panel = estimate(&by_vectors, |plan| panel_cycles(axes, for_panels, strides, plan));
        let tile = estimate(&by_tiles, |plan| tile_cycles(axes, for_tiles, strides, plan));
        let winograd = estimate(&by_winograd, |plan| winograd_cycles(axes, filter, strides, plan));
        let by_positions = if last.x_stride == 1 || last.input <= 1 || strides.x_channel == 1 {
            Ok(())
        } else {
            Err("neither positions nor channels are next to each other in the input")
        };
        let pixel = by_positions.map(|()| pixel_cycles(axes, filter, strides));
        let by_folding = by_positions
            .and_then(|()| filter.fold.as_ref().map_err(|reason| *reason))
            .and_then(|_| FoldPlan::new(axes, filter, strides));
        let fold = by_folding
            .as_ref()
            .map_err(|reason| *reason)
            .map(|plan| fold_cycles(axes, filter, strides, plan));
        let lane =
            if dense { Err("the filter is not depthwise") } else { Ok(lane_cycles(axes, filter, strides)) };
        let mut considered = vec![
            (Path::Panel, panel),
            (Path::Tile, tile),
            (Path::Winograd, winograd),
            (Path::Pixel, pixel),
            (Path::Fold, fold),
            (Path::Lane, lane),
        ];
        let mut best = best_of(&considered, forced);
        if best.0 == Path::Pixel && filter.widen().is_err() {
            for (_, cycles) in considered.iter_mut().filter(|(path, _)| *path == Path::Pixel) {
                *cycles = Err("no memory for the weights in the type that is computed with");
            }
            best = best_of(&considered, forced);
        }
        let (path, cycles) = best;
        let threads = threads.min(worthwhile_threads(cycles));
        let turns = (cycles / threads as f64 / CYCLES_WORTH_A_TASK) as usize;
        let workers = Workers { threads, turns: turns.clamp(1, Workers::MOST_TURNS) };
        let for_workers = |plan: PanelPlan| plan.for_workers(axes, filters.of(path), workers);
        let tasks = match (path, by_vectors, by_tiles, by_winograd, by_folding) {
            (Path::Panel, Ok(plan), ..) => {
                Tasks::Panel(for_workers(plan).with_weights_widened(axes, for_panels))
            }
            (Path::Tile, _, Ok(plan), ..) => Tasks::Tile(for_workers(plan)),
            (Path::Winograd, _, _, Ok(plan), _) => Tasks::Winograd(for_workers(plan)),
            (Path::Fold, .., Ok(plan)) => Tasks::Fold(plan.for_workers(axes, filter, strides, workers)),
            (Path::Lane, ..) => Tasks::Lane(LanePlan::new(axes, filter, strides, workers)),
            _ => Tasks::Pixel(PixelPlan::new(axes, filter, workers)),
        };
        Strategy { tasks, threads, considered }
    }

    pub(crate) fn tasks<T: Real>(&self, filter: &PackedFilter<T>) -> usize {
        match &self.tasks {
            Tasks::Panel(plan) | Tasks::Tile(plan) | Tasks::Winograd(plan) => plan.tasks(filter),
            Tasks::Pixel(plan) => plan.tasks(filter),
            Tasks::Fold(plan) => plan.tasks(filter),
            Tasks::Lane(plan) => plan.tasks(),
        }
    }

    pub(crate) fn run<T: Real>(&self, problem: &Problem<'_, T>, task: usize) {
        match &self.tasks {
            Tasks::Panel(plan) | Tasks::Tile(plan) | Tasks::Winograd(plan) => plan.run(problem, task),
            Tasks::Pixel(plan) => plan.run(problem, task),
            Tasks::Fold(plan) => plan.run(problem, task),
            Tasks::Lane(plan) => plan.run(problem, task),
        }
        if problem.stream {
            settle();
        }
    }

    /// The innermost axes along which outputs that no tap reaches are stored with the others.
    pub(crate) fn row_axes(&self) -> usize {
        match &self.tasks {
            Tasks::Panel(plan) | Tasks::Tile(plan) | Tasks::Winograd(plan) => plan.row_axes(),
            Tasks::Pixel(_) | Tasks::Fold(_) | Tasks::Lane(_) => 0,
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
            Tasks::Fold(_) => Path::Fold,
            Tasks::Lane(_) => Path::Lane,
        }
    }

    fn kernel<T: Real>(&self, filter: &PackedFilter<T>) -> KernelName {
        let kernels = filter.kernels;
        let columns = filter.widest_panel();
        let path = self.path();
        let (dtype, tile) = match &self.tasks {
            Tasks::Panel(plan) => (plan.weight_type(filter), (plan.tile_rows(filter), columns)),
            Tasks::Winograd(plan) => (T::DTYPE, (plan.tile_rows(filter), columns)),
            Tasks::Tile(_) => (filter.grain().dtype(), (4 / columns, columns)),
            Tasks::Pixel(_) => (T::DTYPE, pixel::tile(filter)),
            Tasks::Fold(_) => (T::DTYPE, pixel::fold_tile(filter)),
            Tasks::Lane(_) => (T::DTYPE, (1, 4)),
        };
        let isa = if path == Path::Tile { kernels.matrix_isa(dtype) } else { kernels.vector_isa() };
        KernelName { dtype, family: path.name(), tile, isa }
    }

    fn workspace<T: Real>(&self, axes: &[EngineAxis<'_>], filter: &PackedFilter<T>) -> usize {
        match &self.tasks {
            Tasks::Panel(plan) | Tasks::Tile(plan) | Tasks::Winograd(plan) => plan.workspace(axes, filter),
            Tasks::Pixel(plan) => plan.workspace(axes, filter),
            Tasks::Fold(plan) => plan.workspace(axes, filter),
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

/// The path with the least cycles of those that can run, or the one that is `forced` if that can.
fn best_of(considered: &[(Path, Result<f64, &'static str>)], forced: Option<Path>) -> (Path, f64) {
    let possible = considered.iter().filter_map(|&(path, cycles)| Some((path, cycles.ok()?)));
    let wanted = possible.clone().find(|&(path, _)| Some(path) == forced);
    let best = wanted.or_else(|| possible.min_by(|a, b| a.1.total_cmp(&b.1)));
    best.expect("a dense filter has panels, and the weights of a depthwise one are not narrow")
}

/// How many threads are worth waking for some work.
fn worthwhile_threads(cycles: f64) -> usize {
    let least = if cycles < CYCLES_WORTH_TWO_THREADS { 1 } else { 2 };
    ((cycles / CYCLES_WORTH_A_THREAD).ceil() as usize).max(least)
}
