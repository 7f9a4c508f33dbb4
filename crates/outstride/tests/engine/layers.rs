//! Generated layers, and running them by the engine and by the reference.

use std::sync::Arc;

use outstride::{
    Activation, Axis, ConvTranspose, DType, Dialect, Element, Epilogue, Executor, Geometry, IntegerOverflow,
    Isa, Options, Path, TensorView, TensorViewMut, onednn_graph, onnx, ort_nhwc, reference,
};

/// The nearest value of a type of floats.
pub(crate) fn nearest<T: Element<Wide = f64>>(value: f64) -> T {
    T::narrow(value, IntegerOverflow::default())
}

/// A small generator of repeatable numbers.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % bound
    }

    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    pub(crate) fn one_of<'a, T>(&mut self, values: &'a mut [T]) -> &'a mut T {
        let index = self.below(values.len());
        &mut values[index]
    }

    /// Random values of the size that layers see, not exact in any sum.
    pub(crate) fn reals<T: Element<Wide = f64>>(&mut self, count: usize) -> Vec<T> {
        (0..count).map(|_| nearest(self.below(1 << 20) as f64 / f64::from(1 << 19) - 1.0)).collect()
    }

    /// Small integers, whose sums are exact in any order.
    pub(crate) fn values<T: Element<Wide = f64>>(&mut self, count: usize) -> Vec<T> {
        (0..count).map(|_| nearest(self.below(7) as f64 - 3.0)).collect()
    }
}

/// Samples that fill blocks of rows, or nearly so.
const LARGE_BATCHES: [usize; 3] = [32, 64, 95];

/// A layer in either data layout.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    pub(crate) batch: usize,
    pub(crate) groups: usize,
    pub(crate) in_channels: usize,
    pub(crate) out_channels: usize,
    pub(crate) axes: Vec<Axis>,
    pub(crate) output_padding: Vec<i64>,
    pub(crate) pads_end: Vec<i64>,
    pub(crate) channels_first: bool,
}

impl Layer {
    /// Draws a layer that the reference computes in little time. `scale` 0 is tiny; larger ones exceed tiles and
    /// vectors.
    pub(crate) fn draw(numbers: &mut Numbers, scale: usize) -> Self {
        loop {
            let layer = Layer::draw_any(numbers, scale);
            let geometry = layer.geometry();
            let outputs: usize = geometry.output_shape().iter().product();
            if geometry.multiply_adds() < 400_000 * layer.batch.div_ceil(16) as u128 && outputs < 80_000 {
                return layer;
            }
        }
    }

    fn draw_any(numbers: &mut Numbers, scale: usize) -> Self {
        let rank = numbers.pick(&[1, 1, 2, 2, 2, 3, 4]);
        let groups = numbers.pick(&[1, 1, 1, 2, 3, 16]);
        let depthwise = groups > 1 && numbers.below(3) == 0;
        // Vectors of a depthwise layer run over groups.
        let groups = if depthwise && scale > 0 { groups * numbers.pick(&[1, 5, 40]) } else { groups };
        let channels = |numbers: &mut Numbers| match (depthwise, scale) {
            (true, _) => 1,
            (_, 0) => 1 + numbers.below(5),
            _ => numbers.pick(&[1, 2, 3, 7, 13, 16, 21, 33, 40, 70, 100]),
        };
        let (in_channels, out_channels) = (channels(numbers) * groups, channels(numbers) * groups);
        let mut layer = Layer {
            // Large batches of small maps are computed in an order of their own.
            batch: if scale > 0 && numbers.below(6) == 0 {
                numbers.pick(&LARGE_BATCHES)
            } else {
                1 + numbers.below(3)
            },
            groups,
            in_channels,
            out_channels,
            axes: Vec::new(),
            output_padding: Vec::new(),
            pads_end: Vec::new(),
            channels_first: numbers.below(2) == 0,
        };
        let longest = [6, if rank == 1 { 150 } else { 40 }][scale.min(1)];
        while layer.axes.len() < rank {
            let size = match layer.batch {
                batch if LARGE_BATCHES.contains(&batch) => 3,
                _ if layer.axes.len() + 1 == rank => longest,
                _ => 5,
            };
            // With many phases, fewer channels are computed together, and outputs are stored in other ways.
            let has_many_phases = layer.axes.len() + 1 == rank && numbers.below(6) == 0;
            let most = if has_many_phases { numbers.pick(&[10, 20, 40]) } else { 4 };
            let stride = 1 + numbers.below(most);
            let most = if has_many_phases { 2 * stride } else { 5 };
            let (input, kernel) = (1 + numbers.below(size), 1 + numbers.below(most));
            // Taps that are far from each other are computed with as if they were near.
            let is_far = scale > 0 && numbers.below(5) == 0;
            let dilation = if is_far {
                let most = numbers.pick(&[100, 4000]);
                40 + numbers.below(most)
            } else {
                numbers.pick(&[1, 1, 1, 2, 3])
            };
            let output_padding = numbers.below(stride);
            let full = (input - 1) * stride + (kernel - 1) * dilation + 1 + output_padding;
            let (pad_begin, pad_end) = if is_far {
                let cropped = (kernel - 1) * dilation + numbers.below(4);
                let begin = numbers.below(cropped + 1);
                (begin, cropped - begin)
            } else {
                (numbers.below(stride.max(4)), numbers.below(stride.max(4)))
            };
            if full > pad_begin + pad_end {
                let output = full - pad_begin - pad_end;
                layer.axes.push(Axis {
                    input,
                    kernel,
                    stride,
                    dilation,
                    output,
                    pad_begin: pad_begin as i64,
                });
                layer.output_padding.push(output_padding as i64);
                layer.pads_end.push(pad_end as i64);
            }
        }
        layer
    }

    /// Turns the layer into one that copies a row of `length` values.
    pub(crate) fn become_identity(&mut self, length: usize) {
        let axis = Axis { input: length, kernel: 1, stride: 1, dilation: 1, output: length, pad_begin: 0 };
        *self = Layer {
            batch: 1,
            groups: 1,
            in_channels: 1,
            out_channels: 1,
            axes: vec![axis],
            output_padding: vec![0],
            pads_end: vec![0],
            channels_first: true,
        };
    }

    /// Turns the layer into one of many channels on a small map.
    pub(crate) fn become_wide(&mut self, in_channels: usize, out_channels: usize) {
        let axis = Axis { input: 7, kernel: 4, stride: 2, dilation: 1, output: 14, pad_begin: 1 };
        *self = Layer {
            batch: 2,
            groups: 1,
            in_channels,
            out_channels,
            axes: vec![axis; 2],
            output_padding: vec![0; 2],
            pads_end: vec![1; 2],
            channels_first: self.channels_first,
        };
    }

    /// Gives every axis another kernel and stride.
    pub(crate) fn become_of_kernel(&mut self, kernel: usize, stride: usize) {
        for axis in &mut self.axes {
            let output = axis.output + (axis.input - 1) * stride + kernel * axis.dilation
                - (axis.input - 1) * axis.stride
                - axis.kernel * axis.dilation;
            *axis = Axis { kernel, stride, output, ..*axis };
        }
    }

    /// Draws a layer with more weights than caches near a core hold, for few positions.
    pub(crate) fn draw_heavy(numbers: &mut Numbers) -> Self {
        const WEIGHTS: usize = 270_000;
        const MOST_INPUTS: usize = 40;
        loop {
            let mut layer = Layer::draw(numbers, 0);
            let positions: usize = layer.axes.iter().map(|axis| axis.input).product();
            let kernel: usize = layer.axes.iter().map(|axis| axis.kernel).product();
            let groups = numbers.pick(&[1, 1, 2]);
            let in_channels = numbers.pick(&[100, 256, 300]);
            let out_channels = (WEIGHTS / (in_channels * kernel)).max(9) + numbers.below(40);
            layer.batch = 1 + numbers.below(9);
            (layer.groups, layer.in_channels, layer.out_channels) =
                (groups, in_channels * groups, out_channels * groups);
            if positions * layer.batch <= MOST_INPUTS {
                return layer;
            }
        }
    }

    /// Turns the layer into one of many small maps.
    pub(crate) fn become_batch(&mut self, batch: usize, in_channels: usize, out_channels: usize) {
        let axis = Axis { input: 3, kernel: 3, stride: 2, dilation: 1, output: 6, pad_begin: 1 };
        *self = Layer {
            batch,
            groups: 1,
            in_channels,
            out_channels,
            axes: vec![axis; 2],
            output_padding: vec![1; 2],
            pads_end: vec![1; 2],
            channels_first: self.channels_first,
        };
    }

    /// Turns the layer into one that doubles a large map, channels last.
    pub(crate) fn become_large(
        &mut self,
        size: usize,
        groups: usize,
        in_channels: usize,
        out_channels: usize,
    ) {
        let axis = Axis { input: size, kernel: 2, stride: 2, dilation: 1, output: 2 * size, pad_begin: 0 };
        *self = Layer {
            batch: 1,
            groups,
            in_channels,
            out_channels,
            axes: vec![axis; 2],
            output_padding: vec![0; 2],
            pads_end: vec![0; 2],
            channels_first: false,
        };
    }

    /// One of ten rows of so many positions, channels first, whose taps are in as many rows as the kernel has.
    pub(crate) fn of_long_rows(
        length: usize,
        kernel: usize,
        in_channels: usize,
        out_channels: usize,
    ) -> Self {
        let along = Axis { input: length, kernel: 1, stride: 1, dilation: 1, output: length, pad_begin: 0 };
        Layer {
            batch: 1,
            groups: 1,
            in_channels,
            out_channels,
            axes: vec![Axis { input: 10, kernel, output: 9 + kernel, ..along }, along],
            output_padding: vec![0; 2],
            pads_end: vec![0; 2],
            channels_first: true,
        }
    }

    /// Turns the layer into one most of whose outputs no tap reaches: the kernel is shorter than the stride, or dilation shares a
    /// factor with it. There are so many that threads share them out.
    pub(crate) fn become_sparse(&mut self) {
        let short = Axis { input: 30, kernel: 2, stride: 7, dilation: 1, output: 203, pad_begin: 2 };
        let dilated = Axis { input: 50, kernel: 3, stride: 4, dilation: 2, output: 200, pad_begin: 0 };
        *self = Layer {
            batch: 1,
            groups: 3,
            in_channels: 6,
            out_channels: 9,
            axes: vec![short, dilated],
            output_padding: vec![0; 2],
            pads_end: vec![0, 1],
            channels_first: self.channels_first,
        };
    }

    /// Turns the layer into one of short rows between whose outputs are some that no tap reaches, at both ends as well.
    pub(crate) fn become_gaps(&mut self, input: [usize; 2], out_channels: usize) {
        let axis = |input: usize, kernel: usize, stride: usize| {
            // The first output that a tap reaches is cropped, and with output padding the last ones are not reached either.
            let output = (input - 1) * stride + kernel + stride - 2;
            Axis { input, kernel, stride, dilation: 1, output, pad_begin: 1 }
        };
        *self = Layer {
            batch: 2,
            groups: 1,
            in_channels: 40,
            out_channels,
            axes: vec![axis(input[0], 2, 3), axis(input[1], 1, 4)],
            output_padding: vec![2, 3],
            pads_end: vec![0; 2],
            channels_first: self.channels_first,
        };
    }

    /// Turns the layer into one of few channels whose rows are short beside their number, and needed again by many rows of outputs.
    pub(crate) fn become_tall(&mut self, input: [usize; 2]) {
        let axis =
            |input: usize| Axis { input, kernel: 7, stride: 2, dilation: 1, output: 2 * input, pad_begin: 3 };
        *self = Layer {
            batch: 2,
            groups: 1,
            in_channels: 9,
            out_channels: 5,
            axes: input.map(axis).to_vec(),
            output_padding: vec![1; 2],
            pads_end: vec![3; 2],
            channels_first: self.channels_first,
        };
    }

    /// Turns the layer into one whose taps reach twice as far as its stride, as those of segmentation networks do: most of its
    /// positions are at a border, where it crops some of the outputs.
    pub(crate) fn become_many_phases(&mut self, stride: usize, input: usize, channels: usize) {
        let (pad_begin, pad_end) = (stride / 2 - 1, stride / 2 + 2);
        let output = (input + 1) * stride - pad_begin - pad_end;
        let axis =
            Axis { input, kernel: 2 * stride, stride, dilation: 1, output, pad_begin: pad_begin as i64 };
        *self = Layer {
            batch: 1,
            groups: 1,
            in_channels: channels,
            out_channels: channels,
            axes: vec![axis; 2],
            output_padding: vec![0; 2],
            pads_end: vec![pad_end as i64; 2],
            channels_first: self.channels_first,
        };
    }

    pub(crate) fn geometry(&self) -> Geometry {
        Geometry::new(self.batch, self.groups, self.in_channels, self.out_channels, self.axes.clone())
            .unwrap()
    }

    /// The layer as ONNX writes it for channels first, and ONNX Runtime's nhwc domain, or oneDNN where that does not know
    /// the type, for channels last.
    pub(crate) fn dialect(&self, dtype: DType) -> Arc<dyn Dialect> {
        let list = |field: fn(&Axis) -> i64| self.axes.iter().map(field).collect::<Vec<_>>();
        let conv = onnx::ConvTranspose {
            strides: list(|axis| axis.stride as i64),
            dilations: list(|axis| axis.dilation as i64),
            pads: [list(|axis| axis.pad_begin), self.pads_end.clone()].concat(),
            output_padding: self.output_padding.clone(),
            group: self.groups as i64,
            ..Default::default()
        };
        if self.channels_first {
            Arc::new(conv)
        } else if dtype == DType::Bf16 {
            Arc::new(onednn_graph::ConvTranspose {
                strides: conv.strides,
                dilations: conv.dilations,
                pads_begin: list(|axis| axis.pad_begin),
                pads_end: self.pads_end.clone(),
                output_padding: conv.output_padding,
                groups: conv.group,
                filter_format: onednn_graph::FilterFormat::Iox,
                ..Default::default()
            })
        } else {
            Arc::new(ort_nhwc::ConvTranspose { conv, ..Default::default() })
        }
    }

    /// Values of a canonical tensor that are stored in this layer's layout.
    pub(crate) fn canonical<T: Copy>(&self, values: &[T], shape: &[usize]) -> Vec<T> {
        self.offsets(shape).into_iter().map(|offset| values[offset]).collect()
    }

    /// Values of a canonical tensor, in this layer's layout.
    pub(crate) fn laid_out<T: Copy + Default>(&self, canonical: &[T], shape: &[usize]) -> Vec<T> {
        let mut values = vec![T::default(); canonical.len()];
        for (offset, &value) in self.offsets(shape).into_iter().zip(canonical) {
            values[offset] = value;
        }
        values
    }

    /// Where each value of a canonical tensor is stored in this layer's layout.
    fn offsets(&self, shape: &[usize]) -> Vec<usize> {
        let (_, strides) = self.stored(shape);
        let offset = |mut index: usize| {
            let axes = shape.iter().zip(&strides).rev();
            axes.map(|(&size, &stride)| {
                let at = index % size;
                index /= size;
                at * stride as usize
            })
            .sum()
        };
        (0..shape.iter().product()).map(offset).collect()
    }

    /// Per axis, what is cropped at the beginning and at the end, and the output padding.
    pub(crate) fn pads(&self) -> (Vec<i64>, Vec<i64>, Vec<i64>) {
        let begin = self.axes.iter().map(|axis| axis.pad_begin).collect();
        (begin, self.pads_end.clone(), self.output_padding.clone())
    }

    /// The shape and strides of a canonical `(N, C, X…)` tensor stored in this layer's layout.
    pub(crate) fn stored(&self, canonical: &[usize]) -> (Vec<usize>, Vec<isize>) {
        let order: Vec<usize> = if self.channels_first {
            (0..canonical.len()).collect()
        } else {
            [0].into_iter().chain(2..canonical.len()).chain([1]).collect()
        };
        let stored: Vec<usize> = order.iter().map(|&axis| canonical[axis]).collect();
        let mut strides = vec![0; canonical.len()];
        let mut stride = 1;
        for &axis in order.iter().rev() {
            strides[axis] = stride;
            stride *= canonical[axis] as isize;
        }
        (stored, strides)
    }
}

/// Runs tasks in an order of its own on threads made for the occasion.
pub(crate) struct Scoped(pub(crate) usize);

impl Executor for Scoped {
    fn threads(&self) -> usize {
        self.0
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|scope| {
            for thread in 0..self.0 {
                scope.spawn(move || (0..tasks).rev().skip(thread).step_by(self.0).for_each(task));
            }
        });
    }
}

/// The layer's result by the reference, in the layer's layout.
pub(crate) fn expected<T: Element>(
    layer: &Layer,
    x: &[T],
    w: &[T],
    bias: Option<&[T]>,
    activation: Activation,
) -> Vec<T> {
    let geometry = layer.geometry();
    let (_, x_strides) = layer.stored(&geometry.input_shape());
    let (y_shape, y_strides) = layer.stored(&geometry.output_shape());
    let mut y = vec![T::default(); y_shape.iter().product()];
    reference::conv_transpose(
        &geometry,
        &Epilogue { activation, ..Default::default() },
        TensorView::from_parts(x, 0, &geometry.input_shape(), &x_strides).unwrap(),
        TensorView::from_slice(&geometry.filter_shape(), w).unwrap(),
        bias,
        TensorViewMut::from_parts(&mut y, 0, &geometry.output_shape(), &y_strides).unwrap(),
    )
    .unwrap();
    y
}

pub(crate) fn isas() -> impl Iterator<Item = Isa> {
    Isa::ALL.into_iter().filter(|isa| isa.is_available())
}

pub(crate) const PATHS: [Option<Path>; 7] = [
    None,
    Some(Path::Panel),
    Some(Path::Tile),
    Some(Path::Winograd),
    Some(Path::Pixel),
    Some(Path::Fold),
    Some(Path::Lane),
];

pub(crate) fn prepare<T: Element>(
    layer: &Layer,
    w: &[T],
    bias: Option<&[T]>,
    isa: Isa,
    path: Option<Path>,
) -> ConvTranspose<T> {
    prepare_with(layer, w, bias, &Options { isa: Some(isa), path, ..Default::default() })
}

pub(crate) fn prepare_with<T: Element>(
    layer: &Layer,
    w: &[T],
    bias: Option<&[T]>,
    options: &Options,
) -> ConvTranspose<T> {
    let bias = bias.map(|bias| bias.iter().map(|&value| value.widened()).collect::<Vec<_>>());
    prepare_wide(layer, w, bias.as_deref(), options)
}

pub(crate) fn prepare_wide<T: Element>(
    layer: &Layer,
    w: &[T],
    bias: Option<&[T::Widened]>,
    options: &Options,
) -> ConvTranspose<T> {
    let shape: Vec<usize> = [layer.in_channels, layer.out_channels / layer.groups]
        .into_iter()
        .chain(layer.axes.iter().map(|axis| axis.kernel))
        .collect();
    let filter = TensorView::from_slice(&shape, w).unwrap();
    ConvTranspose::with_wide_bias(layer.dialect(T::DTYPE), filter, bias, options).unwrap()
}
