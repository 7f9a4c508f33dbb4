//! What a call allocates is what its plan says. A program of its own, for nothing else may allocate meanwhile.

use std::sync::Arc;

use outstride::{
    Affine, ConvTranspose, DType, Dialect, Element, IntegerOverflow, Isa, Options, Path, Plan, Quantization,
    QuantizedConvTranspose, Sequential, TensorView, TensorViewMut, bf16, f16, onednn_graph, onnx, ort_nhwc,
};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Lists that do not grow with anything: of axes, spans and runs.
const UNCOUNTED: usize = 1 << 15;

/// What an operator finds out about the shape of its first call, and remembers in part, has at most so many bytes for each phase.
const OF_PHASE: usize = 1 << 11;

/// A layer with the same kernel size, stride and dilation along every axis.
#[derive(Clone, Copy, Debug)]
struct Layer {
    input: &'static [usize],
    batch: usize,
    groups: usize,
    in_channels: usize,
    out_channels: usize,
    kernel: usize,
    stride: usize,
    dilation: usize,
    channels_first: bool,
}

/// Input, batch, groups, input and output channels, kernel, stride, dilation.
type Sizes = (&'static [usize], usize, usize, usize, usize, usize, usize, usize);

#[rustfmt::skip]
const LAYERS: &[Sizes] = &[
    (&[700], 1, 1, 64, 48, 16, 8, 1),
    (&[3001], 1, 1, 40, 33, 4, 2, 1),
    (&[5000], 2, 1, 1, 1, 4, 2, 1),
    (&[100], 1, 1, 8, 1, 1024, 256, 1),
    (&[3000], 1, 32, 32, 32, 8, 4, 1),
    (&[300], 1, 500, 500, 500, 8, 4, 1),
    (&[70], 1, 1, 16, 2048, 2, 2, 1),
    (&[200], 1, 1, 32, 32, 64, 1, 1),
    (&[40, 40], 1, 1, 8, 8, 15, 1, 1),
    (&[4, 4], 1, 1, 21, 21, 64, 32, 1),
    (&[24, 24], 1, 1, 96, 80, 4, 2, 1),
    (&[9, 9], 1, 1, 512, 64, 3, 1, 1),
    (&[33, 33], 3, 1, 32, 70, 2, 2, 1),
    (&[60, 60], 1, 1, 48, 3, 4, 2, 1),
    (&[4000, 2], 1, 1, 5, 3, 4, 2, 1),
    (&[2, 2000], 1, 1, 9, 40, 3, 2, 1),
    (&[3, 3], 40, 1, 64, 64, 4, 2, 1),
    (&[40, 40], 1, 4, 64, 64, 3, 2, 1),
    (&[50, 50], 1, 24, 24, 24, 4, 2, 1),
    (&[14, 14, 14], 1, 1, 32, 32, 2, 2, 1),
    (&[10, 10, 10], 2, 1, 16, 24, 4, 2, 1),
    (&[100], 1, 1, 8, 3, 1024, 256, 1),
    (&[30, 30], 1, 1, 8, 2, 16, 8, 1),
    (&[700], 1, 1, 100, 40, 3, 1, 130),
    (&[5000], 1, 1, 16, 8, 3, 2, 1001),
    (&[9000], 1, 1, 1, 3, 3, 1, 60_000),
    (&[40, 40], 1, 1, 200, 30, 3, 1, 12),
    (&[30, 30], 2, 64, 64, 64, 3, 1, 18),
];

impl Layer {
    fn each() -> impl Iterator<Item = Layer> {
        LAYERS.iter().flat_map(
            |&(input, batch, groups, in_channels, out_channels, kernel, stride, dilation)| {
                [false, true].map(|channels_first| Layer {
                    input,
                    batch,
                    groups,
                    in_channels,
                    out_channels,
                    kernel,
                    stride,
                    dilation,
                    channels_first,
                })
            },
        )
    }

    fn rank(&self) -> usize {
        self.input.len()
    }

    fn filter_shape(&self) -> Vec<usize> {
        let kernel = vec![self.kernel; self.rank()];
        [vec![self.in_channels, self.out_channels / self.groups], kernel].concat()
    }

    fn input_shape(&self) -> Vec<usize> {
        let (space, channels) = (self.input.to_vec(), vec![self.in_channels]);
        let inner = if self.channels_first { [channels, space] } else { [space, channels] };
        [vec![self.batch], inner.concat()].concat()
    }

    fn dialect(&self, dtype: DType) -> Arc<dyn Dialect> {
        let strides = vec![self.stride as i64; self.rank()];
        let dilations = vec![self.dilation as i64; self.rank()];
        let conv =
            onnx::ConvTranspose { strides, dilations, group: self.groups as i64, ..Default::default() };
        match (self.channels_first, dtype) {
            (true, _) => Arc::new(conv),
            (false, DType::Bf16) => Arc::new(onednn_graph::ConvTranspose {
                strides: conv.strides,
                pads_begin: vec![0; self.rank()],
                pads_end: vec![0; self.rank()],
                dilations: conv.dilations,
                groups: conv.group,
                filter_format: onednn_graph::FilterFormat::Iox,
                ..Default::default()
            }),
            (false, _) => Arc::new(ort_nhwc::ConvTranspose { conv, ..Default::default() }),
        }
    }
}

/// Numbers from -1 to 1.
fn values<T>(count: usize, make: impl Fn(f64) -> T) -> Vec<T> {
    (0..count).map(|index| make((index * 37 % 101) as f64 / 50.0 - 1.0)).collect()
}

/// The bytes that a call takes more than there were before.
fn allocated(call: impl FnOnce()) -> usize {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    call();
    MEMORY.peak_usage().saturating_sub(before)
}

fn check(layer: &Layer, dtype: DType, options: &Options, plan: &Plan, mut call: impl FnMut()) {
    if options.path != Some(plan.path()) {
        return;
    }
    let what = || format!("{layer:?} of {dtype} by {}", plan.kernel());
    let (first, again) = (allocated(&mut call), allocated(&mut call));
    let counted = plan.workspace_bytes();
    let shape = plan.phases() * OF_PHASE;
    assert!(first <= counted + shape + UNCOUNTED, "{first} bytes, not {counted}: {}", what());
    assert!(again <= first, "{again} bytes at the second call: {}", what());
}

fn check_floats<T: Element<Wide = f64>>(layer: &Layer, options: &Options) {
    let nearest = |value: f64| T::narrow(value, IntegerOverflow::default());
    let (filter_shape, input_shape) = (layer.filter_shape(), layer.input_shape());
    let w = values(filter_shape.iter().product(), nearest);
    let x = values(input_shape.iter().product(), nearest);
    let bias = values(layer.out_channels, nearest);
    let w = TensorView::from_slice(&filter_shape, &w).unwrap();
    let op = ConvTranspose::with_options(layer.dialect(T::DTYPE), w, Some(&bias), options).unwrap();
    let op = op.with_executor(Arc::new(Sequential));
    let plan = op.plan(&input_shape).unwrap();
    let x = TensorView::from_slice(&input_shape, &x).unwrap();
    let y_shape = op.resolve(&input_shape).unwrap().output_shape();
    let mut y = vec![nearest(0.0); y_shape.iter().product()];
    check(layer, T::DTYPE, options, &plan, || {
        op.run_into(x.clone(), TensorViewMut::from_slice(&y_shape, &mut y).unwrap()).unwrap();
    });
}

fn check_bytes(layer: &Layer, options: &Options) {
    let byte = |value: f64| (value * 127.0) as i8;
    let (filter_shape, input_shape) = (layer.filter_shape(), layer.input_shape());
    let w = values(filter_shape.iter().product(), byte);
    let x = values(input_shape.iter().product(), byte);
    let w = TensorView::from_slice(&filter_shape, &w).unwrap();
    let input = Affine { scale: 1.0 / 127.0, zero_point: 3 };
    let quantization = Quantization { input, weight_scales: vec![1.0 / 127.0; layer.out_channels] };
    let op = QuantizedConvTranspose::new(layer.dialect(DType::F32), w, None, &quantization, options).unwrap();
    let op = op.with_executor(Arc::new(Sequential));
    let plan = op.plan(&input_shape).unwrap();
    let x = TensorView::from_slice(&input_shape, &x).unwrap();
    let y_shape = op.resolve(&input_shape).unwrap().output_shape();
    let mut y = vec![0i8; y_shape.iter().product()];
    let output = Affine { scale: 0.25, zero_point: -4 };
    check(layer, DType::I8, options, &plan, || {
        let y = TensorViewMut::from_slice(&y_shape, &mut y).unwrap();
        op.run_quantized_into(x.clone(), y, output).unwrap();
    });
}

#[test]
fn calls_allocate_what_their_plans_say() {
    for isa in [Isa::Portable, Isa::Avx2, Isa::best()].into_iter().filter(|isa| isa.is_available()) {
        for path in [Path::Panel, Path::Tile, Path::Winograd, Path::Pixel, Path::Fold, Path::Lane] {
            let options = Options { isa: Some(isa), path: Some(path), ..Default::default() };
            for layer in Layer::each() {
                check_floats::<f32>(&layer, &options);
                check_floats::<f64>(&layer, &options);
                check_floats::<f16>(&layer, &options);
                check_floats::<bf16>(&layer, &options);
                check_bytes(&layer, &options);
            }
        }
    }
}
