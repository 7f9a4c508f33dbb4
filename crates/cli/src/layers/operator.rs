//! From a layer to an operator with weights and an input, ready to run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use outstride::{
    Affine, Byte, ConvTranspose, DType, Dialect, Element, IntegerOverflow, Limits, Options, Plan,
    Quantization, QuantizedConvTranspose, Tensor, TensorView, bf16, f16, onednn_graph, onnx, ort_nhwc,
};
use outstride_io::layers::Layer;

use super::{LayerType, Layout};
use crate::machine::Team;

/// A layer with weights, bias and an input of no meaning, ready to be called on the team's threads.
pub(crate) struct PreparedLayer {
    pub(crate) plan: Plan,
    /// How long checking and packing the weights took.
    pub(crate) prepare: Duration,
    /// Computes the output once more.
    pub(crate) call: Box<dyn FnMut() -> Result<()>>,
}

impl PreparedLayer {
    pub(crate) fn new(layer: &Layer, layout: Layout, dtype: LayerType, team: &Team) -> Result<Self> {
        match dtype {
            LayerType::Bf16 => of_floats::<bf16>(layer, layout, team),
            LayerType::F16 => of_floats::<f16>(layer, layout, team),
            LayerType::F32 => of_floats::<f32>(layer, layout, team),
            LayerType::F64 => of_floats::<f64>(layer, layout, team),
            LayerType::I8 => of_bytes::<i8>(layer, layout, team, |value| (value * 127.0) as i8),
            LayerType::U8 => of_bytes::<u8>(layer, layout, team, |value| (value * 127.0 + 128.0) as u8),
        }
    }
}

fn of_floats<T: Element<Wide = f64>>(layer: &Layer, layout: Layout, team: &Team) -> Result<PreparedLayer> {
    let nearest = |value: f64| T::narrow(value, IntegerOverflow::default());
    let (filter_shape, input_shape) = (layer.filter_shape(), input_shape(layer, layout));
    let weights = noise("weights", &filter_shape, nearest)?;
    let bias = noise("bias", &[layer.out_channels], nearest)?;
    let weights = TensorView::from_slice(&filter_shape, &weights)?;
    let begin = Instant::now();
    let dialect = dialect(layer, layout, T::DTYPE);
    let op = ConvTranspose::from_dialect(dialect, weights, Some(&bias), Limits::default())?;
    let prepare = begin.elapsed();
    let op = op.with_executor(team.executor());
    let x = Tensor::from_vec(&input_shape, noise("input", &input_shape, nearest)?)?;
    let plan = op.plan(&input_shape)?;
    let mut y: Option<Tensor<T>> = None;
    let call = move || {
        match &mut y {
            Some(y) => op.run_into(x.view(), y.view_mut())?,
            None => y = Some(op.run(x.view())?),
        }
        Ok(())
    };
    Ok(PreparedLayer { plan, prepare, call: Box::new(call) })
}

/// Bytes in and out, with scales per output channel.
fn of_bytes<X: Byte>(
    layer: &Layer,
    layout: Layout,
    team: &Team,
    byte: fn(f64) -> X,
) -> Result<PreparedLayer> {
    let (filter_shape, input_shape) = (layer.filter_shape(), input_shape(layer, layout));
    let weights = noise("weights", &filter_shape, |value| (value * 127.0) as i8)?;
    let bias = noise("bias", &[layer.out_channels], |value| value as f32)?;
    let weights = TensorView::from_slice(&filter_shape, &weights)?;
    let zero_point = byte(0.0).into();
    let quantization = Quantization {
        input: Affine { scale: 1.0 / 127.0, zero_point },
        weight_scales: vec![1.0 / 127.0; layer.out_channels],
    };
    let output = Affine { scale: 0.25, zero_point };
    let begin = Instant::now();
    let dialect = dialect(layer, layout, DType::F32);
    let op = QuantizedConvTranspose::new(dialect, weights, Some(&bias), &quantization, &Options::default())?;
    let prepare = begin.elapsed();
    let op = op.with_executor(team.executor());
    let x = Tensor::from_vec(&input_shape, noise("input", &input_shape, byte)?)?;
    let plan = op.plan(&input_shape)?;
    let y_shape = op.resolve(&input_shape)?.output_shape();
    let mut y: Tensor<X> = Tensor::from_vec(&y_shape, noise("output", &y_shape, byte)?)?;
    let call = move || Ok(op.run_quantized_into(x.view(), y.view_mut(), output)?);
    Ok(PreparedLayer { plan, prepare, call: Box::new(call) })
}

/// The shape of the layer's input in a layout.
fn input_shape(layer: &Layer, layout: Layout) -> Vec<usize> {
    match layout {
        Layout::Ncx => layer.input_shape(),
        Layout::Nxc => layer.channels_last_input_shape(),
    }
}

/// The dialect whose tensors have this layout and type.
fn dialect(layer: &Layer, layout: Layout, dtype: DType) -> Arc<dyn Dialect> {
    let conv = onnx::ConvTranspose {
        strides: layer.strides.clone(),
        dilations: layer.dilations.clone(),
        pads: [&*layer.pads_begin, &*layer.pads_end].concat(),
        output_padding: layer.output_padding.clone(),
        group: layer.groups as i64,
        ..Default::default()
    };
    match layout {
        Layout::Ncx => Arc::new(conv),
        Layout::Nxc if dtype == DType::Bf16 => Arc::new(onednn_graph::ConvTranspose {
            strides: conv.strides,
            dilations: conv.dilations,
            pads_begin: layer.pads_begin.clone(),
            pads_end: layer.pads_end.clone(),
            output_padding: conv.output_padding,
            groups: conv.group,
            filter_format: onednn_graph::FilterFormat::Iox,
            ..Default::default()
        }),
        Layout::Nxc => Arc::new(ort_nhwc::ConvTranspose { conv, ..Default::default() }),
    }
}

/// Values in −1..1, the same on every run: no zeros that a cache or a compiler could make something of.
fn noise<T>(what: &str, shape: &[usize], make: impl Fn(f64) -> T) -> Result<Vec<T>> {
    let limit = Limits::default().max_bytes;
    let bytes = shape.iter().try_fold(size_of::<T>() as u64, |bytes, &size| bytes.checked_mul(size as u64));
    let Some(bytes) = bytes.filter(|&bytes| bytes <= limit) else {
        bail!("the {what} of shape {shape:?} need more than {limit} bytes");
    };
    let count = bytes as usize / size_of::<T>();
    let mut values = Vec::new();
    values.try_reserve_exact(count).with_context(|| format!("no memory for the {what}"))?;
    let mut state = 1u32;
    values.extend((0..count).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        make(f64::from(state >> 9) / f64::from(1 << 22) - 1.0)
    }));
    Ok(values)
}
