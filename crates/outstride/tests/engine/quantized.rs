//! Quantized tensors: exact sums, real numbers of 32 bits, and integers again.

use std::sync::Arc;

use outstride::{
    Activation, Affine, Byte, Error, Isa, Options, Path, Quantization, QuantizedConvTranspose, Tensor,
    TensorView, TensorViewMut, conv_transpose_quantized,
};

use crate::layers::{Layer, Numbers, PATHS, Scoped, isas};

/// Scales of outputs. With the smallest, most outputs saturate, and some quotients are no 32-bit integers; with the largest, all
/// are zero.
const SCALES: [f32; 4] = [0.37, 1e-3, 1e-9, 1e25];

/// A layer with bytes, and what they stand for.
struct Case<X> {
    layer: Layer,
    x: Vec<X>,
    w: Vec<i8>,
    bias: Option<Vec<f32>>,
    quantization: Quantization,
}

impl<X: Byte> Case<X> {
    fn draw(numbers: &mut Numbers, layer: Layer, make: fn(u8) -> X) -> Self {
        let geometry = layer.geometry();
        let mut byte = || numbers.below(256) as u8;
        let x = (0..geometry.input_shape().iter().product()).map(|_| make(byte())).collect();
        let w = (0..geometry.filter_shape().iter().product()).map(|_| byte() as i8).collect();
        let zero_point = if byte() < 64 { 0 } else { make(byte()).into() };
        let scale = |byte: u8| f32::from(byte) / 4096.0 + 1e-3;
        let channels = if byte() < 128 { 1 } else { layer.out_channels };
        let weight_scales = (0..channels).map(|_| scale(byte())).collect();
        let bias =
            (byte() < 200).then(|| (0..layer.out_channels).map(|_| f32::from(byte()) - 99.5).collect());
        let input = Affine { scale: scale(byte()), zero_point };
        Case { layer, x, w, bias, quantization: Quantization { input, weight_scales } }
    }

    fn operator(&self, isa: Isa, path: Option<Path>) -> QuantizedConvTranspose<X> {
        let shape: Vec<usize> = [self.layer.in_channels, self.layer.out_channels / self.layer.groups]
            .into_iter()
            .chain(self.layer.axes.iter().map(|axis| axis.kernel))
            .collect();
        QuantizedConvTranspose::new(
            self.layer.dialect(outstride::DType::F32),
            TensorView::from_slice(&shape, &self.w).unwrap(),
            self.bias.as_deref(),
            &self.quantization,
            &Options { isa: Some(isa), path, ..Default::default() },
        )
        .unwrap()
    }

    /// The real outputs by the definition, in the layer's layout.
    fn expected(&self, activation: Activation) -> Vec<f32> {
        let geometry = self.layer.geometry();
        let canonical = self.layer.canonical(&self.x, &geometry.input_shape());
        let real = conv_transpose_quantized(
            &geometry,
            &self.quantization,
            &activation,
            &Tensor::from_vec(&geometry.input_shape(), canonical).unwrap(),
            TensorView::from_slice(&geometry.filter_shape(), &self.w).unwrap(),
            self.bias.as_deref(),
        );
        self.layer.laid_out(&real.unwrap(), &geometry.output_shape())
    }

    fn check(&self, numbers: &mut Numbers, scale: f32) {
        let geometry = self.layer.geometry();
        let activation = numbers.pick(&[
            Activation::Identity,
            Activation::Relu,
            Activation::Clip { min: -1.5, max: 40.0 },
            Activation::Clip { min: f32::NAN, max: 40.0 },
            Activation::Clip { min: -1.5, max: f32::NAN },
        ]);
        let real = self.expected(activation);
        let (x_shape, _) = self.layer.stored(&geometry.input_shape());
        let (y_shape, _) = self.layer.stored(&geometry.output_shape());
        let output = Affine { scale, zero_point: numbers.below(100) as i32 };
        for isa in isas() {
            for path in PATHS {
                let op = self.operator(isa, path).with_activation(activation);
                let op = op.with_executor(Arc::new(Scoped(3)));
                let x = || TensorView::from_slice(&x_shape, &self.x).unwrap();
                let mut y = vec![-77.0f32; real.len()];
                op.run_into(x(), TensorViewMut::from_slice(&y_shape, &mut y).unwrap()).unwrap();
                assert!(y == real, "{isa} {path:?} {:?}", self.layer);
                let mut y = vec![77i8; real.len()];
                op.run_quantized_into(x(), TensorViewMut::from_slice(&y_shape, &mut y).unwrap(), output)
                    .unwrap();
                let expected: Vec<i8> = real.iter().map(|&real| output.quantize(real)).collect();
                assert!(y == expected, "{isa} {path:?} {:?}", self.layer);
                let mut y = vec![77u8; real.len()];
                op.run_quantized_into(x(), TensorViewMut::from_slice(&y_shape, &mut y).unwrap(), output)
                    .unwrap();
                let expected: Vec<u8> = real.iter().map(|&real| output.quantize(real)).collect();
                assert!(y == expected, "{isa} {path:?} {:?}", self.layer);
            }
        }
    }
}

#[test]
fn results_are_those_of_the_definition_bit_for_bit() {
    let mut numbers = Numbers(0x8b17);
    for round in 0..60 {
        let layer = Layer::draw(&mut numbers, round % 2);
        let scale = numbers.pick(&SCALES);
        Case::<u8>::draw(&mut numbers, layer.clone(), |byte| byte).check(&mut numbers, scale);
        Case::<i8>::draw(&mut numbers, layer, |byte| byte as i8).check(&mut numbers, scale);
    }
}

#[test]
fn many_channels_of_either_layout_are_exact_with_every_scale() {
    let mut numbers = Numbers(0x64);
    for scale in SCALES {
        // The bytes of 32 channels fill a line with those of the phase beside, those of more channels with the next of their own.
        for (channels_first, out_channels) in [(false, 84), (false, 32), (true, 84)] {
            let mut layer = Layer::draw(&mut numbers, 0);
            layer.channels_first = channels_first;
            layer.become_wide(70, out_channels);
            Case::<u8>::draw(&mut numbers, layer.clone(), |byte| byte).check(&mut numbers, scale);
            Case::<i8>::draw(&mut numbers, layer, |byte| byte as i8).check(&mut numbers, scale);
        }
    }
}

#[test]
fn short_rows_with_gaps_are_exact() {
    let mut numbers = Numbers(0x6b9);
    for (input, out_channels) in [([9, 2], 3), ([9, 2], 40), ([30, 1], 20), ([5, 70], 40)] {
        let mut layer = Layer::draw(&mut numbers, 0);
        layer.channels_first = true;
        layer.become_gaps(input, out_channels);
        Case::<u8>::draw(&mut numbers, layer.clone(), |byte| byte).check(&mut numbers, SCALES[0]);
        Case::<i8>::draw(&mut numbers, layer, |byte| byte as i8).check(&mut numbers, SCALES[0]);
    }
}

/// Those are written past the caches, line by line where that can be.
#[test]
fn large_outputs_are_exact_from_any_begin() {
    let mut numbers = Numbers(0x57);
    let mut layer = Layer::draw(&mut numbers, 0);
    layer.become_large(370, 1, 8, 32);
    let case = Case::<u8>::draw(&mut numbers, layer, |byte| byte);
    let output = Affine { scale: 0.37, zero_point: 5 };
    let real = case.expected(Activation::Identity);
    let expected: Vec<i8> = real.iter().map(|&real| output.quantize(real)).collect();
    assert!(expected.len() >= 1 << 24, "it is not large");
    let (x_shape, _) = case.layer.stored(&case.layer.geometry().input_shape());
    let (y_shape, _) = case.layer.stored(&case.layer.geometry().output_shape());
    let mut memory = vec![77i8; expected.len() + 128];
    let aligned = memory.as_ptr().align_offset(64);
    for begin in [aligned, aligned + 3] {
        for isa in isas() {
            let op = case.operator(isa, None).with_executor(Arc::new(Scoped(2)));
            memory.fill(77);
            let y = TensorViewMut::from_slice(&y_shape, &mut memory[begin..begin + expected.len()]).unwrap();
            op.run_quantized_into(TensorView::from_slice(&x_shape, &case.x).unwrap(), y, output).unwrap();
            let differs = memory[begin..].iter().zip(&expected).position(|(a, b)| a != b);
            assert_eq!(differs, None, "{isa} from {begin} on");
        }
    }
}

#[test]
fn sums_that_32_bits_do_not_hold_are_exact_as_well() {
    let mut numbers = Numbers(0x8b);
    for channels in [600, 1000] {
        let mut layer = Layer::draw(&mut numbers, 0);
        layer.become_wide(channels, 20);
        let mut case = Case::<u8>::draw(&mut numbers, layer, |byte| byte);
        case.w.iter_mut().for_each(|weight| *weight = weight.saturating_add(100));
        case.check(&mut numbers, 0.37);
    }
}

#[test]
fn scales_and_zero_points_that_stand_for_nothing_are_refused() {
    let layer = {
        let mut layer = Layer::draw(&mut Numbers(1), 0);
        layer.become_identity(4);
        layer
    };
    let good = Quantization { input: Affine { scale: 0.5, zero_point: 3 }, weight_scales: vec![0.25] };
    let new = |quantization: &Quantization| {
        let weight = TensorView::from_slice(&[1, 1, 1], &[1i8]).unwrap();
        let dialect = layer.dialect(outstride::DType::F32);
        QuantizedConvTranspose::<u8>::new(dialect, weight, None, quantization, &Options::default())
    };
    let op = new(&good).unwrap();
    for scale in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        let input = Affine { scale, ..good.input };
        assert!(matches!(new(&Quantization { input, ..good.clone() }), Err(Error::Scale { .. })));
        let weight_scales = vec![scale];
        assert!(matches!(new(&Quantization { weight_scales, ..good.clone() }), Err(Error::Scale { .. })));
    }
    let input = Affine { zero_point: -1, ..good.input };
    assert!(matches!(new(&Quantization { input, ..good.clone() }), Err(Error::ZeroPoint { .. })));
    let geometry = layer.geometry();
    let define = |quantization: &Quantization, bias: Option<&[f32]>| {
        let x = Tensor::from_vec(&[1, 1, 4], vec![1u8; 4]).unwrap();
        let w = TensorView::from_slice(&[1, 1, 1, 1], &[1i8]).unwrap();
        conv_transpose_quantized(&geometry, quantization, &Activation::Identity, &x, w, bias)
    };
    assert!(define(&good, Some(&[0.5])).is_ok());
    let input = Affine { zero_point: i32::from(i16::MIN), ..good.input };
    assert!(matches!(define(&Quantization { input, ..good.clone() }, None), Err(Error::ZeroPoint { .. })));
    assert!(matches!(define(&good, Some(&[])), Err(Error::BiasLength { expected: 1, found: 0 })));
    let weight_scales = vec![0.5; 3];
    let refused = new(&Quantization { weight_scales, ..good.clone() });
    assert!(matches!(refused, Err(Error::ScaleCount { expected: 1, found: 3 })));
    let (x, mut y) = ([1u8; 4], [0i8; 4]);
    let output = Affine { scale: 1.0, zero_point: 128 };
    let x = TensorView::from_slice(&[1, 1, 4], &x).unwrap();
    let y = TensorViewMut::from_slice(&[1, 1, 4], &mut y).unwrap();
    let refused = op.run_quantized_into(x, y, output).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the output has the zero point 128, which is no i8; expected a value of that type"
    );
}
