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
        let exact = greatest_sum(call, filter, bias) < EXACT;
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

/// The greatest magnitude that any partial sum can reach, by weights and bias of a type and inputs of as many bits. An output
/// sums the taps of one phase.
pub(crate) fn greatest_sum<Q: Stored<f64> + Element>(
    call: &FilterCall,
    filter: &TensorView<'_, Q>,
    bias: Option<&[Q]>,
) -> f64 {
    let magnitude = |value: Q| Stored::<f64>::widen(value).abs();
    let shape = filter.shape();
    let (outputs, strides) = (shape[2], filter.strides());
    // Of nothing, there can be any number of taps.
    let taps = if shape.contains(&0) { Vec::new() } else { taps_by_phase(call, &strides[3..]) };
    let phases = taps.iter().map(|&(phase, _)| phase + 1).max().unwrap_or(0);
    let mut greatest = 0f64;
    let mut sums = vec![0.0; phases];
    for channel in 0..shape[0] * outputs {
        let (group, output) = (channel / outputs, channel % outputs);
        let begin = filter.offset() as isize + group as isize * strides[0] + output as isize * strides[2];
        sums.fill(0.0);
        for input in 0..shape[1] {
            for &(phase, offset) in &taps {
                let at = begin + input as isize * strides[1] + offset;
                sums[phase] += magnitude(filter.data()[at as usize]);
            }
        }
        greatest = sums.iter().copied().fold(greatest, f64::max);
    }
    let bias = bias.unwrap_or_default().iter().map(|&value| magnitude(value)).fold(0.0, f64::max);
    greatest * 2f64.powi(8 * size_of::<Q>() as i32) + bias
}

/// Of every tap of a filter, the number of its phase and where it lies.
fn taps_by_phase(call: &FilterCall, strides: &[isize]) -> Vec<(usize, isize)> {
    let mut taps = vec![(0, 0)];
    for (phases, &stride) in call.phases().iter().zip(strides) {
        let of_axis: Vec<(usize, isize)> = phases
            .iter()
            .enumerate()
            .flat_map(|(number, phase)| {
                phase.taps.iter().map(move |tap| (number, tap.kernel as isize * stride))
            })
            .collect();
        let count = phases.len();
        let with = |&(phase, offset): &(usize, isize)| {
            of_axis.iter().map(move |&(number, along)| (phase * count + number, offset + along))
        };
        taps = taps.iter().flat_map(with).collect();
    }
    taps
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

#[cfg(test)]
mod tests {
    use outstride_spec::FilterLayout;

    use super::*;

    #[test]
    fn an_output_sums_the_taps_of_one_phase() {
        // Seven taps, stride 3: phases of three, two and two.
        let call = FilterCall {
            groups: 1,
            in_channels: 2,
            out_channels: 1,
            kernel: vec![7],
            strides: vec![3],
            dilations: vec![1],
            layout: FilterLayout::iox(1),
            channels_last: false,
        };
        let weights: Vec<i8> = vec![1, 1, 1, 1, -1, 1, 1, 1, 1, -100, 1, 1, 1, 1];
        let filter = TensorView::from_slice(&[1, 2, 1, 7], &weights).unwrap();
        assert_eq!(greatest_sum(&call, &filter, None), (100.0 + 3.0) * 256.0);
        assert_eq!(greatest_sum(&call, &filter, Some(&[-9])), (100.0 + 3.0) * 256.0 + 9.0);
        let nothing = TensorView::<i8>::from_slice(&[1, 0, 1, 7], &[]).unwrap();
        assert_eq!(greatest_sum(&call, &nothing, None), 0.0);
    }
}
