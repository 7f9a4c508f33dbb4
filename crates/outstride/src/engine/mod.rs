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

mod axis;
mod boxes;
mod fill;
mod gather;
mod lane;
mod pack;
mod panel;
mod pixel;
mod plan;
mod problem;

use outstride_kernels::{Isa, Output, Real, kernels};
use outstride_spec::{Call, FilterCall};

pub use plan::{Path, Plan};

use crate::element::Element;
use crate::error::Error;
use crate::op::Options;
use crate::parallel::Executor;
use crate::prepared::PreparedFilter;
use crate::tensor::{TensorView, TensorViewMut};
use axis::EngineAxis;
use pack::PackedFilter;
use plan::Strategy;
use problem::Problem;

/// A filter prepared for the fast engine.
#[derive(Debug)]
pub(crate) struct Engine<T: Real> {
    filter: PackedFilter<T>,
    path: Option<Path>,
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
        let kernels = kernels(isa).or_else(|| kernels(Isa::Portable));
        let kernels = kernels.expect("every build has the portable kernels");
        Ok(Engine {
            filter: PackedFilter::new(call, filter, bias, kernels, &options.limits)?,
            path: options.path,
        })
    }

    fn strategy(&self, axes: &[EngineAxis<'_>], layout: &Strides, threads: usize) -> Strategy {
        Strategy::choose(axes, &self.filter, layout, self.path, threads)
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
        let strategy = self.strategy(&axes, &strides, executor.threads());
        let y_offset = y.offset();
        let mut tapless = self.filter.bias.clone();
        self.filter.kernels.activate(&mut tapless, &call.activation);
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
        self.strategy(&axes, &strides, threads).describe(&call.geometry, &axes, &self.filter)
    }
}
