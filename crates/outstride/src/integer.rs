//! Integers by the fast engine: in 64-bit floats, wherever these hold every sum exactly.

use outstride_kernels::Stored;
use outstride_spec::{Activation, Call, FilterCall};

use crate::element::Element;
use crate::engine::{Engine, Plan, Treatment};
use crate::error::Error;
use crate::op::Options;
use crate::parallel::Executor;
use crate::prepared::{PreparedFilter, ReferenceFilter};
use crate::tensor::{TensorView, TensorViewMut};

/// Integers from zero to this are floats, too.
const EXACT: f64 = (1u64 << 53) as f64;

/// A filter of integers.
#[derive(Debug)]
pub(crate) struct IntegerFilter<Q: Element> {
    /// Where no sum can leave the integers that floats hold, whatever the input.
    engine: Option<Engine<f64>>,
    reference: ReferenceFilter<Q>,
}

impl<Q: Stored<f64> + Element<Widened = Q>> IntegerFilter<Q> {
    pub(crate) fn new(
        call: &FilterCall,
        filter: &TensorView<'_, Q>,
        bias: Option<&[Q]>,
        options: &Options,
    ) -> Result<Self, Error> {
        let reference = ReferenceFilter::new(call, filter, bias, options)?;
        let exact = greatest_sum(filter, bias) < EXACT;
        let bias: Option<Vec<f64>> =
            bias.map(|bias| bias.iter().map(|&value| Stored::widen(value)).collect());
        let engine = exact.then(|| Engine::new(call, filter, bias.as_deref(), options)).transpose()?;
        Ok(IntegerFilter { engine, reference })
    }

    /// The engine, if it gives what the definition does. Other activations round the reference's results.
    fn engine_for(&self, call: &Call) -> Option<&Engine<f64>> {
        let exact = matches!(call.activation, Activation::Identity | Activation::Relu);
        self.engine.as_ref().filter(|_| exact)
    }
}

/// The greatest magnitude that any partial sum can reach, by weights and bias of a type and inputs of as many bits.
pub(crate) fn greatest_sum<Q: Stored<f64> + Element>(filter: &TensorView<'_, Q>, bias: Option<&[Q]>) -> f64 {
    let magnitude = |value: Q| Stored::<f64>::widen(value).abs();
    let shape = filter.shape();
    let (outputs, strides) = (shape[2], filter.strides());
    let mut sums = vec![0.0; shape[0] * outputs];
    let others: usize = shape[3..].iter().product();
    for (channel, sum) in sums.iter_mut().enumerate() {
        let (group, output) = (channel / outputs, channel % outputs);
        let begin = filter.offset() as isize + group as isize * strides[0] + output as isize * strides[2];
        for input in 0..shape[1] {
            for element in 0..others {
                let mut rest = element;
                let mut at = begin + input as isize * strides[1];
                for axis in (3..shape.len()).rev() {
                    at += (rest % shape[axis]) as isize * strides[axis];
                    rest /= shape[axis];
                }
                *sum += magnitude(filter.data()[at as usize]);
            }
        }
    }
    let weights = sums.into_iter().fold(0.0, f64::max);
    let bias = bias.unwrap_or_default().iter().map(|&value| magnitude(value)).fold(0.0, f64::max);
    weights * 2f64.powi(8 * size_of::<Q>() as i32) + bias
}

impl<Q: Stored<f64> + Element<Widened = Q>> PreparedFilter<Q> for IntegerFilter<Q> {
    fn run(
        &self,
        call: &Call,
        x: TensorView<'_, Q>,
        y: TensorViewMut<'_, Q>,
        executor: &dyn Executor,
    ) -> Result<(), Error> {
        match self.engine_for(call) {
            Some(engine) => {
                engine.execute(call, x, y, &Treatment::plain(call), executor);
                Ok(())
            }
            None => self.reference.run(call, x, y, executor),
        }
    }

    fn run_wide(
        &self,
        call: &Call,
        x: TensorView<'_, Q>,
        y: TensorViewMut<'_, Q>,
        executor: &dyn Executor,
    ) -> Result<(), Error> {
        self.run(call, x, y, executor)
    }

    fn plan(&self, call: &Call, x_strides: &[isize], y_strides: &[isize], threads: usize) -> Plan {
        match self.engine_for(call) {
            Some(engine) => engine.plan_for::<Q>(call, x_strides, y_strides, threads),
            None => self.reference.plan(call, x_strides, y_strides, threads),
        }
    }
}
