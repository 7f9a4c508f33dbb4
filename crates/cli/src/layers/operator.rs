//! From a layer to an operator with weights and an input.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use outstride::{
    ConvTranspose, DType, Dialect, Element, IntegerOverflow, Limits, TensorView, onednn_graph, onnx, ort_nhwc,
};
use outstride_io::layers::Layer;

use super::Layout;
use crate::machine::Team;

/// The layer with a bias and weights of no meaning, prepared to run on the team's threads, and how long preparing took.
pub(crate) fn operator<T: Element<Wide = f64>>(
    layer: &Layer,
    layout: Layout,
    team: &Team,
) -> Result<(ConvTranspose<T>, Duration)> {
    let shape = layer.filter_shape();
    let weights = noise::<T>("weights", &shape)?;
    let bias = noise::<T>("bias", &[layer.out_channels])?;
    let weights = TensorView::from_slice(&shape, &weights)?;
    let begin = Instant::now();
    let op = ConvTranspose::from_dialect(
        dialect(layer, layout, T::DTYPE),
        weights,
        Some(&bias),
        Limits::default(),
    )?;
    Ok((op.with_executor(team.executor()), begin.elapsed()))
}

/// The shape of the layer's input in a layout.
pub(crate) fn input_shape(layer: &Layer, layout: Layout) -> Vec<usize> {
    match layout {
        Layout::Ncx => layer.input_shape(),
        Layout::Nxc => layer.channels_last_input_shape(),
    }
}

/// An input of a shape.
pub(crate) fn input<T: Element<Wide = f64>>(shape: &[usize]) -> Result<Vec<T>> {
    noise("input", shape)
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
fn noise<T: Element<Wide = f64>>(what: &str, shape: &[usize]) -> Result<Vec<T>> {
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
        T::narrow(f64::from(state >> 9) / f64::from(1 << 22) - 1.0, IntegerOverflow::default())
    }));
    Ok(values)
}
