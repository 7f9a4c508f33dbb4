//! The fast engine: packed weights, a plan per shape, and the paths of execution.
//!
//! ```text
//! Lattices      (once per operator)     how dilated axes are cut, so that taps are neighbours
//! Filters       (once per operator)     weights by phase and tap, in the order the kernels read them
//! Strategy      (per input shape)       which path, how it is cut into tasks, and why: a Plan is what users see of it
//! panel, pixel, lane                    what the lanes of a vector run over, and the paths of each
//! ```
//!
//! Nothing here depends on the number of threads but the cutting into tasks; every output is computed by one kernel
//! call in one order, so results are the same bits for every executor.

mod axis;
mod boxes;
mod channels;
mod cost;
mod fill;
mod filters;
mod finish;
mod groups;
mod lane;
mod lattice;
mod pack;
mod panel;
mod panels;
mod pixel;
mod plan;
mod problem;
mod scratch;
mod strategy;
mod weights;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use outstride_kernels::{Isa, Output, Pieces, Real, Source, Stored, best_kernels};
use outstride_spec::{Call, DType, FilterCall, Geometry};

pub use plan::{Path, Plan};

use crate::element::Element;
use crate::error::Error;
use crate::op::{Options, Precision};
use crate::parallel::Executor;
use crate::prepared::PreparedFilter;
use crate::tensor::{TensorView, TensorViewMut};
use axis::EngineAxis;
use fill::Fill;
use filters::Filters;
pub(crate) use finish::{Finish, Scaling};
use lattice::{Lattices, Part};
use panel::Grain;
use problem::Problem;
use scratch::ScratchPool;
use strategy::Strategy;

/// A filter prepared for the fast engine, which computes in `T` whatever type tensors are stored in.
#[derive(Debug)]
pub(crate) struct Engine<T: Real> {
    lattices: Lattices,
    /// The filter within the lattices.
    filters: Filters<T>,
    path: Option<Path>,
    /// The strategies of the shapes seen last, one for each part.
    strategies: Mutex<VecDeque<(Shape, Arc<[Strategy]>)>>,
    scratch: ScratchPool<T>,
    /// How many calls there were.
    calls: AtomicU64,
}

/// Outputs from this size on do not stay in the caches until somebody reads them.
const STREAMED_BYTES: usize = 1 << 24;

/// The same of outputs of 16 bits and more, which have the least to do for each line, and of what each thread writes of them.
const STREAMED_WIDE_BYTES: usize = 1 << 23;
const STREAMED_BYTES_OF_THREAD: usize = 1 << 21;

/// How many shapes an operator remembers.
const SHAPES_REMEMBERED: usize = 16;

/// All that a strategy depends on beside the filter.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shape {
    geometry: Geometry,
    x_strides: Vec<isize>,
    y_strides: Vec<isize>,
    y: DType,
    threads: usize,
}

impl<T: Real> Engine<T> {
    /// Packs a filter given in canonical order.
    pub(crate) fn new<Q: Stored<T>>(
        call: &FilterCall,
        filter: &TensorView<'_, Q>,
        bias: Option<&[T]>,
        options: &Options,
    ) -> Result<Self, Error> {
        let isa = options.isa.map_or_else(Isa::best, Isa::best_up_to);
        let kernels = best_kernels(isa);
        let lattices = Lattices::new(call, size_of::<T>());
        let (call, filter) = (lattices.filter_call(call), lattices.filter(filter));
        let mut filters = Filters::new(&call, &filter, bias, kernels, &options.limits)?;
        let folds = options.path == Some(Path::Fold);
        filters.own.prepare_fold(&call, &filter, folds, &options.limits);
        match options.precision {
            Precision::Full => {
                let grain = Grain::Pieces(kernels.pieces(Q::DTYPE));
                filters.prepare_matrix_tiles(&call, &filter, grain, &options.limits);
                if Q::DTYPE == <T as Real>::DTYPE {
                    filters.own.prepare_winograd(options.path == Some(Path::Winograd), &options.limits);
                } else {
                    // Of sums that cancel, their rounding would be visible in types that hold numbers near zero exactly.
                    filters.own.winograd = Err("sums of narrower types must be those of their products");
                }
            }
            Precision::Bf16Compute => {
                let grain = Grain::Pieces(Pieces::Bf16(1));
                filters.prepare_matrix_tiles(&call, &filter, grain, &options.limits);
            }
            Precision::Strict => {}
        }
        Ok(Engine {
            lattices,
            filters,
            path: options.path,
            strategies: Mutex::default(),
            scratch: ScratchPool::default(),
            calls: AtomicU64::new(0),
        })
    }

    /// Lets matrix tiles of bytes form the sums, of inputs that are signed or not, if there are such tiles, given the filter once
    /// more. With `always`, nothing else will. Returns whether there are.
    pub(crate) fn use_byte_tiles<Q: Stored<T>>(
        &mut self,
        call: &FilterCall,
        filter: &TensorView<'_, Q>,
        signed: bool,
        always: bool,
        options: &Options,
    ) -> bool {
        if options.precision == Precision::Strict && !always {
            return false;
        }
        let (call, filter) = (self.lattices.filter_call(call), self.lattices.filter(filter));
        self.filters.prepare_matrix_tiles(&call, &filter, Grain::Bytes { signed }, &options.limits);
        if always {
            self.path = Some(Path::Tile);
        }
        self.filters.of(Path::Tile).matrix.is_ok()
    }

    /// How integer sums become real numbers, given scale and bias per output channel.
    pub(crate) fn scaling(&self, scales: Vec<f32>, bias: Vec<f32>) -> Scaling {
        Scaling::new(scales, bias, self.filters.all())
    }

    /// The strategies for the parts of a shape, made or remembered.
    fn strategies(&self, shape: Shape, parts: &[Part<'_>], strides: &Strides) -> Arc<[Strategy]> {
        let remembered = || self.strategies.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, strategies)) = remembered().iter().find(|(known, _)| *known == shape) {
            return strategies.clone();
        }
        let strategies: Arc<[Strategy]> = self.choose(parts, strides, shape.threads).into();
        let mut known = remembered();
        known.truncate(SHAPES_REMEMBERED - 1);
        known.push_front((shape, strategies.clone()));
        strategies
    }

    /// The strategies for some parts.
    fn choose(&self, parts: &[Part<'_>], strides: &Strides, threads: usize) -> Vec<Strategy> {
        let of_part =
            |part: &Part<'_>| Strategy::choose(&part.axes, &self.filters, strides, self.path, threads);
        parts.iter().map(of_part).collect()
    }
}

/// Whether an output of so many bytes goes past the caches.
fn is_streamed<Y>(bytes: usize, threads: usize) -> bool {
    let are_wide = size_of::<Y>() >= size_of::<u16>();
    let wide = are_wide && bytes >= STREAMED_WIDE_BYTES && bytes / threads.max(1) >= STREAMED_BYTES_OF_THREAD;
    wide || bytes >= STREAMED_BYTES
}

/// What elements of the input stand for, and what becomes of sums.
pub(crate) struct Treatment<'a, T> {
    /// The element that stands for zero.
    pub(crate) zero_point: T,
    pub(crate) finish: Finish<'a>,
}

impl<T: Default> Treatment<'_, T> {
    /// Elements stand for themselves.
    pub(crate) fn plain(call: &Call) -> Self {
        Treatment { zero_point: T::default(), finish: Finish::activation(call.activation) }
    }
}

/// How tensors lie in memory, as far as a strategy depends on it.
pub(crate) struct Strides {
    pub(crate) x_channel: isize,
    pub(crate) y_channel: isize,
    /// Whether the input is stored in the type that is computed with, so that it can be read where it lies.
    pub(crate) x_readable: bool,
    /// Bytes of an element of the output.
    pub(crate) y_size: usize,
}

impl Strides {
    fn new<T: Real, X: Stored<T>, Y: Stored<T>>(x_strides: &[isize], y_strides: &[isize]) -> Self {
        Strides {
            x_channel: x_strides[1],
            y_channel: y_strides[1],
            x_readable: X::DTYPE == <T as Real>::DTYPE,
            y_size: size_of::<Y>(),
        }
    }
}

impl<T: Real + Element, Q: Stored<T> + Element<Widened = T>> PreparedFilter<Q> for Engine<T> {
    fn run(
        &self,
        call: &Call,
        x: TensorView<'_, Q>,
        y: TensorViewMut<'_, Q>,
        executor: &dyn Executor,
    ) -> Result<(), Error> {
        self.execute(call, x, y, &Treatment::plain(call), executor);
        Ok(())
    }

    fn run_wide(
        &self,
        call: &Call,
        x: TensorView<'_, Q>,
        y: TensorViewMut<'_, T>,
        executor: &dyn Executor,
    ) -> Result<(), Error> {
        self.execute(call, x, y, &Treatment::plain(call), executor);
        Ok(())
    }

    fn plan(&self, call: &Call, x_strides: &[isize], y_strides: &[isize], threads: usize) -> Plan {
        self.plan_for::<Q>(call, x_strides, y_strides, threads)
    }
}

impl<T: Real> Engine<T> {
    /// What would be done for canonical views of these strides.
    pub(crate) fn plan_for<Q: Stored<T>>(
        &self,
        call: &Call,
        x_strides: &[isize],
        y_strides: &[isize],
        threads: usize,
    ) -> Plan {
        let own = &self.filters.own;
        let batch_phases = axis::batch_phases();
        let phases = self.lattices.phases(&own.phases);
        let axes = EngineAxis::all(&call.geometry, &batch_phases, phases, x_strides, y_strides);
        let mut parts = self.lattices.parts(&axes, &own.phases);
        parts.retain(Part::has_input);
        let strategies = self.choose(&parts, &Strides::new::<T, Q, Q>(x_strides, y_strides), threads);
        strategy::describe(&strategies, &parts, &self.lattices, &call.geometry, &self.filters, Q::DTYPE)
    }

    /// Runs on canonical views of any types that `T` can be stored in.
    pub(crate) fn execute<X: Stored<T>, Y: Stored<T>>(
        &self,
        call: &Call,
        x: TensorView<'_, X>,
        mut y: TensorViewMut<'_, Y>,
        treatment: &Treatment<'_, T>,
        executor: &dyn Executor,
    ) {
        let finish = &treatment.finish;
        if y.shape().contains(&0) {
            return;
        }
        let own = &self.filters.own;
        let batch_phases = axis::batch_phases();
        let phases = self.lattices.phases(&own.phases);
        let mut axes = EngineAxis::all(&call.geometry, &batch_phases, phases, x.strides(), y.strides());
        let strides = Strides::new::<T, X, Y>(x.strides(), y.strides());
        let mut tapless = own.bias.clone();
        let scales = finish.scaling.map(|scaling| scaling.channels(0..tapless.len()));
        finish.apply(own.kernels, &mut tapless, scales);
        let shape = Shape {
            geometry: call.geometry.clone(),
            x_strides: x.strides().to_vec(),
            y_strides: y.strides().to_vec(),
            y: Y::DTYPE,
            threads: executor.threads(),
        };
        let y_offset = y.offset();
        let y_memory = y.data_mut();
        let stream = is_streamed::<Y>(size_of_val(y_memory), executor.threads());
        let output = Output::new(y_memory, own.kernels, call.overflow);
        let fill = Fill::new(&output, strides.y_channel, &tapless);
        if x.shape().contains(&0) {
            // SAFETY: nobody else writes.
            unsafe { fill.everything(&axes, y_offset, executor) };
            return;
        }
        let parts = self.lattices.parts(&axes, &own.phases);
        let (parts, untouched): (Vec<_>, Vec<_>) = parts.into_iter().partition(Part::has_input);
        for part in untouched {
            let y_offset = y_offset.wrapping_add_signed(part.y_offset);
            // SAFETY: as before.
            unsafe { fill.everything(&part.axes, y_offset, executor) };
        }
        let strategies = self.strategies(shape, &parts, &strides);
        // Along these, paths store what no tap reaches with everything else.
        let stored = strategies.iter().map(Strategy::row_axes).min().unwrap_or(0);
        let stored = stored.min(self.lattices.whole_inner_axes());
        let first_stored = axes.len() - stored;
        axes[first_stored..].iter_mut().for_each(|axis| *axis = axis.covered(&batch_phases));
        // SAFETY: no task runs yet, so nobody else writes.
        unsafe { fill.uncovered(&axes, y_offset, executor) };
        for (part, strategy) in parts.into_iter().zip(&*strategies) {
            let y_offset = y_offset.wrapping_add_signed(part.y_offset);
            let filter = self.filters.of(strategy.path());
            let problem = Problem {
                call: self.calls.fetch_add(1, Ordering::Relaxed),
                filter,
                axes: part.axes,
                x: Source::new(x.data(), own.kernels).above(treatment.zero_point),
                x_offset: x.offset().wrapping_add_signed(part.x_offset),
                x_channel_stride: strides.x_channel,
                y: &output,
                y_offset,
                y_channel_stride: strides.y_channel,
                stream,
                finish: *finish,
                scratch: &self.scratch,
            };
            let task = |task: usize| strategy.run(&problem, task);
            match strategy.tasks(filter) {
                tasks if strategy.threads <= 1 => (0..tasks).for_each(task),
                tasks => executor.run(tasks, &task),
            }
        }
    }
}
