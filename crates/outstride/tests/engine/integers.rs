//! Integers: exact sums, saturated or wrapped.

use std::sync::Arc;

use outstride::{
    Activation, Call, ConvTranspose, Dialect, DialectName, Element, Epilogue, FilterCall, IntegerOverflow,
    Operands, Options, Path, Policy, SpecError, TensorType, TensorView, TensorViewMut, openvino, reference,
};

use crate::layers::{Layer, Numbers, PATHS, Scoped, isas};

/// OpenVINO's operator, but for a bias and for what happens to sums that are too large.
#[derive(Clone, Debug)]
struct Overflowing(openvino::GroupConvolutionBackpropData, IntegerOverflow);

impl Dialect for Overflowing {
    fn name(&self) -> DialectName {
        self.0.name()
    }

    fn filter(&self, filter: &TensorType<'_>) -> Result<FilterCall, SpecError> {
        self.0.filter(filter)
    }

    fn resolve(&self, operands: &Operands<'_>, policy: Policy) -> Result<Call, SpecError> {
        // OpenVINO's has no bias.
        let operands = Operands::new(operands.input, operands.filter);
        Ok(Call { overflow: self.1, ..self.0.resolve(&operands, policy)? })
    }
}

/// A layer that OpenVINO knows: channels first, one to three axes.
fn draw(numbers: &mut Numbers) -> Layer {
    loop {
        let layer = Layer::draw(numbers, 1);
        if layer.axes.len() <= 3 && layer.stored(&[1, 2, 3]).0 == [1, 2, 3] {
            return layer;
        }
    }
}

fn dialect(layer: &Layer, overflow: IntegerOverflow) -> Overflowing {
    let (pads_begin, pads_end, output_padding) = layer.pads();
    let conv = openvino::ConvolutionBackpropData {
        strides: layer.axes.iter().map(|axis| axis.stride as i64).collect(),
        dilations: layer.axes.iter().map(|axis| axis.dilation as i64).collect(),
        pads_begin,
        pads_end,
        output_padding,
        ..Default::default()
    };
    Overflowing(openvino::GroupConvolutionBackpropData(conv), overflow)
}

/// Checks full-range values against the definition. Weights are below 2^`weight_bits`.
fn check<T: Element<Widened = T>>(seed: u64, weight_bits: u32, make: fn(u64) -> T, on_engine: bool) {
    let mut numbers = Numbers(seed);
    for _ in 0..12 {
        let layer = draw(&mut numbers);
        let geometry = layer.geometry();
        let mut bits = || (numbers.below(1 << 30) as u64) << 34 | (numbers.below(1 << 30) as u64) << 4;
        let x: Vec<T> = (0..geometry.input_shape().iter().product()).map(|_| make(bits())).collect();
        let w: Vec<T> = (0..geometry.filter_shape().iter().product())
            .map(|_| make(bits() % (1 << weight_bits)))
            .collect();
        let bias: Vec<T> = (0..layer.out_channels).map(|_| make(bits())).collect();
        let per_group = [layer.groups, layer.in_channels / layer.groups, layer.out_channels / layer.groups];
        let filter_shape: Vec<usize> =
            per_group.into_iter().chain(layer.axes.iter().map(|axis| axis.kernel)).collect();
        for overflow in [IntegerOverflow::Saturate, IntegerOverflow::Wrap] {
            for activation in [Activation::Identity, Activation::Relu, Activation::HardSwish] {
                let mut expected = vec![T::default(); geometry.output_shape().iter().product()];
                reference::conv_transpose(
                    &geometry,
                    &Epilogue { activation, overflow },
                    TensorView::from_slice(&geometry.input_shape(), &x).unwrap(),
                    TensorView::from_slice(&geometry.filter_shape(), &w).unwrap(),
                    Some(&bias),
                    TensorViewMut::from_slice(&geometry.output_shape(), &mut expected).unwrap(),
                )
                .unwrap();
                for isa in isas() {
                    for path in PATHS {
                        let op = ConvTranspose::with_options(
                            Arc::new(dialect(&layer, overflow)),
                            TensorView::from_slice(&filter_shape, &w).unwrap(),
                            Some(&bias),
                            &Options { isa: Some(isa), path, ..Default::default() },
                        );
                        let op = op.unwrap().with_activation(activation).with_executor(Arc::new(Scoped(2)));
                        let y = op.run(TensorView::from_slice(&geometry.input_shape(), &x).unwrap()).unwrap();
                        assert!(y.data() == expected, "{} {isa} {path:?} {layer:?}", T::DTYPE);
                        let plan = op.plan(&geometry.input_shape()).unwrap();
                        let exact = activation != Activation::HardSwish;
                        assert_eq!(plan.path() != Path::Reference, on_engine && exact, "{}", plan.explain());
                    }
                }
            }
        }
    }
}

#[test]
fn sums_are_exact_and_saturate_or_wrap() {
    check::<i8>(1, 8, |bits| bits as i8, true);
    check::<u8>(2, 8, |bits| bits as u8, true);
    check::<i16>(3, 16, |bits| bits as i16, true);
    check::<u16>(4, 16, |bits| bits as u16, true);
    check::<i32>(5, 10, |bits| bits as i32, true);
    check::<u32>(6, 10, |bits| bits as u32, true);
}

#[test]
fn sums_beyond_what_floats_hold_are_left_to_the_reference() {
    check::<i32>(7, 32, |bits| bits as i32, false);
    check::<i64>(8, 62, |bits| bits as i64, false);
    check::<u64>(9, 62, |bits| bits, false);
}
