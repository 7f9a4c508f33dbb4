//! What an operator keeps of its weights, per engine.

use std::fmt;

use outstride_spec::{Call, FilterCall};

use crate::element::Element;
use crate::engine::{Path, Plan};
use crate::epilogue::Epilogue;
use crate::error::Error;
use crate::limits::Limits;
use crate::op::Options;
use crate::parallel::Executor;
use crate::reference;
use crate::tensor::{Tensor, TensorView, TensorViewMut};

/// A filter and bias, laid out for some engine.
pub trait PreparedFilter<T: Element>: fmt::Debug + Send + Sync {
    /// Runs on canonical views.
    fn run(
        &self,
        call: &Call,
        x: TensorView<'_, T>,
        y: TensorViewMut<'_, T>,
        executor: &dyn Executor,
    ) -> Result<(), Error>;

    /// Runs on canonical views, without rounding sums to the type of the input.
    fn run_wide(
        &self,
        call: &Call,
        x: TensorView<'_, T>,
        y: TensorViewMut<'_, T::Widened>,
        executor: &dyn Executor,
    ) -> Result<(), Error>;

    /// What would be done for canonical views of these strides.
    fn plan(&self, call: &Call, x_strides: &[isize], y_strides: &[isize], threads: usize) -> Plan;
}

/// A filter for the reference engine: a row-major copy of `(G, C/G, M/G, k…)`.
#[derive(Debug)]
pub(crate) struct ReferenceFilter<T> {
    filter: Tensor<T>,
    bias: Option<Vec<T>>,
}

impl<T: Element> ReferenceFilter<T> {
    pub(crate) fn new(
        _call: &FilterCall,
        filter: &TensorView<'_, T>,
        bias: Option<&[T]>,
        options: &Options,
    ) -> Result<Self, Error> {
        Ok(ReferenceFilter {
            filter: row_major_copy(filter, &options.limits)?,
            bias: bias.map(<[T]>::to_vec),
        })
    }
}

impl<T: Element<Widened = T>> PreparedFilter<T> for ReferenceFilter<T> {
    fn run(
        &self,
        call: &Call,
        x: TensorView<'_, T>,
        y: TensorViewMut<'_, T>,
        _executor: &dyn Executor,
    ) -> Result<(), Error> {
        let epilogue = Epilogue { activation: call.activation, overflow: call.overflow };
        reference::conv_transpose(&call.geometry, &epilogue, x, self.filter.view(), self.bias.as_deref(), y)
    }

    fn run_wide(
        &self,
        call: &Call,
        x: TensorView<'_, T>,
        y: TensorViewMut<'_, T>,
        executor: &dyn Executor,
    ) -> Result<(), Error> {
        self.run(call, x, y, executor)
    }

    fn plan(&self, call: &Call, _x_strides: &[isize], _y_strides: &[isize], _threads: usize) -> Plan {
        Plan {
            geometry: call.geometry.clone(),
            dtype: T::DTYPE,
            path: Path::Reference,
            kernel: format!("{}_reference", T::DTYPE),
            lattices: vec![1; call.geometry.axes().len()],
            groups_at_once: 1,
            tasks: 1,
            threads: 1,
            workspace: 0,
            packed: size_of_val(self.filter.data()),
            phases: call.geometry.axes().iter().map(|axis| axis.kernel.min(axis.stride)).product(),
            taps: call.geometry.axes().iter().map(|axis| axis.kernel).product(),
            considered: vec![(Path::Reference, Ok(call.geometry.multiply_adds() as f64 * 4.0))],
        }
    }
}

/// A row-major copy of a view.
fn row_major_copy<T: Element>(view: &TensorView<'_, T>, limits: &Limits) -> Result<Tensor<T>, Error> {
    limits.check_bytes("the weights", view.shape().iter().product(), size_of::<T>())?;
    let mut copy = Tensor::zeros("the weights", view.shape())?;
    let shape = view.shape().to_vec();
    for (position, element) in copy.data_mut().iter_mut().enumerate() {
        let mut rest = position;
        let mut source = view.offset();
        for (axis, &size) in shape.iter().enumerate().rev() {
            source = source.wrapping_add_signed((rest % size) as isize * view.strides()[axis]);
            rest /= size;
        }
        *element = view.data()[source];
    }
    Ok(copy)
}
