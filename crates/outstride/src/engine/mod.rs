//! The fast engine: packed weights, a plan per shape, and three paths of execution.
//!
//! ```text
//! PackedFilter  (once per operator)     weights by phase and tap, in the order the kernels read them
//! Plan          (per input shape)       which path, how it is cut into tasks, and why
//! panel, pixel, lane                    the paths: what the lanes of a vector run over
//! ```
//!
//! Nothing here depends on the number of threads but the cutting into tasks; every output is computed by one kernel
//! call in one order, so results are the same bits for every executor.

mod aligned;
mod axis;
mod boxes;
mod channels;
mod fill;
mod gather;
mod lane;
mod pack;
mod panel;
mod pixel;
mod plan;
mod problem;
mod scratch;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use outstride_kernels::{Isa, Output, Real, best_kernels};
use outstride_spec::{Call, FilterCall, Geometry};

pub use plan::{Path, Plan};

use crate::element::Element;
use crate::error::Error;
use crate::op::{Options, Precision};
use crate::parallel::Executor;
use crate::prepared::PreparedFilter;
use crate::tensor::{TensorView, TensorViewMut};
use axis::EngineAxis;
use pack::PackedFilter;
use plan::Strategy;
use problem::Problem;
use scratch::ScratchPool;

/// A filter prepared for the fast engine.
#[derive(Debug)]
pub(crate) struct Engine<T: Real> {
    filter: PackedFilter<T>,
    path: Option<Path>,
    /// The strategies of the shapes seen last.
    strategies: Mutex<VecDeque<(Shape, Arc<Strategy>)>>,
    scratch: ScratchPool<T>,
}

/// How many shapes an operator remembers.
const SHAPES_REMEMBERED: usize = 16;

/// All that a strategy depends on beside the filter.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shape {
    geometry: Geometry,
    x_strides: Vec<isize>,
    y_strides: Vec<isize>,
    threads: usize,
}

impl<T: Real> Engine<T> {
    /// Packs a filter given in canonical order.
    pub(crate) fn new(
        call: &FilterCall,
        filter: &TensorView<'_, T>,
        bias: Option<&[T]>,
        options: &Options,
    ) -> Result<Self, Error> {
        let isa = options.isa.map_or_else(Isa::best, Isa::best_up_to);
        let kernels = best_kernels(isa);
        let mut filter = PackedFilter::new(call, filter, bias, kernels, &options.limits)?;
        if options.precision != Precision::Strict {
            filter.prepare_matrix_tiles(&options.limits);
        }
        Ok(Engine {
            filter,
            path: options.path,
            strategies: Mutex::default(),
            scratch: ScratchPool::default(),
        })
    }

    /// The strategy for a shape, made or remembered.
    fn strategy(&self, shape: Shape, axes: &[EngineAxis<'_>], strides: &Strides) -> Arc<Strategy> {
        let remembered = || self.strategies.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, strategy)) = remembered().iter().find(|(known, _)| *known == shape) {
            return strategy.clone();
        }
        let strategy = Arc::new(Strategy::choose(axes, &self.filter, strides, self.path, shape.threads));
        let mut strategies = remembered();
        strategies.truncate(SHAPES_REMEMBERED - 1);
        strategies.push_front((shape, strategy.clone()));
        strategy
    }
}

/// The strides that a strategy depends on.
pub(crate) struct Strides {
    pub(crate) x_channel: isize,
    pub(crate) y_channel: isize,
}

impl<T: Real + Element> PreparedFilter<T> for Engine<T> {
    fn run(
        &self,
        call: &Call,
        x: TensorView<'_, T>,
        mut y: TensorViewMut<'_, T>,
        executor: &dyn Executor,
    ) -> Result<(), Error> {
        if y.shape().contains(&0) {
            return Ok(());
        }
        let batch_phases = axis::batch_phases();
        let axes =
            EngineAxis::all(&call.geometry, &batch_phases, &self.filter.phases, x.strides(), y.strides());
        let strides = Strides { x_channel: x.strides()[1], y_channel: y.strides()[1] };
        let y_offset = y.offset();
        let mut tapless = self.filter.bias.clone();
        self.filter.kernels.activate(&mut tapless, &call.activation);
        if x.shape().contains(&0) {
            let output = Output::new(y.data_mut());
            // SAFETY: this thread is the only one that writes.
            unsafe { fill::fill_everything(&axes, &output, y_offset, strides.y_channel, &tapless) };
            return Ok(());
        }
        let shape = Shape {
            geometry: call.geometry.clone(),
            x_strides: x.strides().to_vec(),
            y_strides: y.strides().to_vec(),
            threads: executor.threads(),
        };
        let strategy = self.strategy(shape, &axes, &strides);
        let problem = Problem {
            filter: &self.filter,
            axes,
            x: x.data(),
            x_offset: x.offset(),
            x_channel_stride: strides.x_channel,
            y: Output::new(y.data_mut()),
            y_offset,
            y_channel_stride: strides.y_channel,
            activation: call.activation,
            scratch: &self.scratch,
        };
        // SAFETY: no task runs yet, so this thread is the only one that writes.
        unsafe { fill::fill_uncovered(&problem.axes, &problem.y, y_offset, strides.y_channel, &tapless) };
        let task = |task: usize| strategy.run(&problem, task);
        match strategy.tasks(&self.filter) {
            tasks if strategy.threads <= 1 => (0..tasks).for_each(task),
            tasks => executor.run(tasks, &task),
        }
        Ok(())
    }

    fn plan(&self, call: &Call, x_strides: &[isize], y_strides: &[isize], threads: usize) -> Plan {
        let batch_phases = axis::batch_phases();
        let axes = EngineAxis::all(&call.geometry, &batch_phases, &self.filter.phases, x_strides, y_strides);
        let strides = Strides { x_channel: x_strides[1], y_channel: y_strides[1] };
        Strategy::choose(&axes, &self.filter, &strides, self.path, threads).describe(
            &call.geometry,
            &axes,
            &self.filter,
        )
    }
}
