//! Known ways of getting the operator wrong.

use std::rc::Rc;

use outstride::{
    Activation, AttributeValue, Axis, DType, DialectName, Operands, Policy, Request, TensorType,
};
use outstride_io::model::ModelLayer;

use super::canonical::Canonical;
use crate::model::as_written;
use crate::relayout::Order;

/// A way of getting the operator wrong, and what comes of it.
#[derive(Clone, Debug)]
pub(super) struct Deviation {
    /// What was done, as a clause.
    pub(super) what: String,
    pub(super) result: Canonical,
}

/// Everything worth trying on a layer.
pub(super) fn deviations(layer: &ModelLayer<'_>, request: &Request, right: &Canonical) -> Vec<Deviation> {
    let mut found = Vec::new();
    found.extend(kernel(right));
    found.extend(pads(request, right));
    found.extend(groups(right));
    found.extend(layouts(right));
    found.extend(epilogue(right));
    found.extend(dialects(layer, request, right));
    found.retain(|deviation| !deviation.result.same(right));
    found
}

/// What comes of two mistakes at once: every deviation, and another on top of it.
pub(super) fn pairs<'a>(
    layer: &'a ModelLayer<'_>,
    request: &'a Request,
    right: &'a Canonical,
) -> impl Iterator<Item = Deviation> + 'a {
    deviations(layer, request, right).into_iter().flat_map(move |first| {
        let second = deviations(layer, request, &first.result).into_iter();
        let both = |second: &str| format!("{}, and {second}", first.what);
        second
            .map(|second| deviation(both(&second.what), second.result))
            .filter(|pair| !pair.result.same(right))
            .collect::<Vec<_>>()
    })
}

fn deviation(what: impl Into<String>, result: Canonical) -> Deviation {
    Deviation { what: what.into(), result }
}

fn with_axes(right: &Canonical, what: impl Into<String>, change: impl Fn(usize, &mut Axis)) -> Deviation {
    let mut result = right.clone();
    result.axes.iter_mut().enumerate().for_each(|(index, axis)| change(index, axis));
    deviation(what, result)
}

/// The spatial sizes of the kernel.
fn taps(right: &Canonical) -> usize {
    right.axes.iter().map(|axis| axis.kernel).product()
}

fn kernel(right: &Canonical) -> Vec<Deviation> {
    let mut flipped = right.clone();
    Rc::make_mut(&mut flipped.w).chunks_exact_mut(taps(right).max(1)).for_each(<[f64]>::reverse);
    let mut found = vec![deviation("the kernel is flipped along every spatial axis", flipped)];
    found.push(with_axes(right, "the dilation is one too large (counted from 0 instead of 1)", |_, axis| {
        axis.dilation += 1;
    }));
    if right.axes.iter().all(|axis| axis.dilation > 1) {
        found.push(with_axes(
            right,
            "the dilation is one too small (counted from 1 instead of 0)",
            |_, axis| {
                axis.dilation -= 1;
            },
        ));
    }
    if let [rows, columns] = right.axes.as_slice()
        && rows.kernel == columns.kernel
    {
        let size = rows.kernel;
        let mut transposed = right.clone();
        for plane in Rc::make_mut(&mut transposed.w).chunks_exact_mut(size * size) {
            let copy = plane.to_vec();
            (0..size * size).for_each(|index| plane[index] = copy[index % size * size + index / size]);
        }
        found.push(deviation("the spatial axes of the kernel are exchanged", transposed));
    }
    found
}

fn pads(request: &Request, right: &Canonical) -> Vec<Deviation> {
    let mut found = vec![
        with_axes(
            right,
            "begin and end pads are exchanged (SAME_UPPER and SAME_LOWER swapped)",
            |_, axis| {
                axis.pad_begin = axis.pad_end();
            },
        ),
        with_axes(right, "nothing is cropped at the beginning (pads ignored)", |_, axis| axis.pad_begin = 0),
    ];
    let total = |axis: &Axis| axis.full() - axis.output as i64;
    let negative = |split: fn(i64) -> i64| {
        move |_: usize, axis: &mut Axis| {
            if total(axis) < 0 {
                axis.pad_begin = split(total(axis));
            }
        }
    };
    found.push(with_axes(
        right,
        "a negative padding total is halved with floor instead of being taken as 0",
        negative(|total| total.div_euclid(2)),
    ));
    found.push(with_axes(
        right,
        "a negative padding total is halved toward zero instead of being taken as 0",
        negative(|total| total / 2),
    ));
    if let Some(AttributeValue::List(extra)) = request.attributes.get("output_padding") {
        let extra: Vec<i64> = extra
            .iter()
            .map(|value| if let AttributeValue::Int(value) = value { *value } else { 0 })
            .collect();
        found.push(with_axes(
            right,
            "output_padding is added at the beginning instead of the end",
            |index, axis| {
                axis.pad_begin -= extra.get(index).copied().unwrap_or(0);
            },
        ));
        found.push(with_axes(right, "output_padding is ignored", |index, axis| {
            let extra = usize::try_from(extra.get(index).copied().unwrap_or(0)).unwrap_or(0);
            axis.output = axis.output.saturating_sub(extra);
        }));
    }
    found
}

fn groups(right: &Canonical) -> Vec<Deviation> {
    if right.groups == 1 {
        return Vec::new();
    }
    let outputs = Canonical {
        w: Rc::new(interleaved_outputs(right)),
        bias: right.bias.as_ref().map(|bias| interleave(bias, right.groups, 1)),
        ..right.clone()
    };
    let volume: usize = right.axes.iter().map(|axis| axis.input).product();
    let mut inputs = right.clone();
    let image = (right.in_channels * volume).max(1);
    let images = right.x.chunks_exact(image);
    inputs.x = Rc::new(images.flat_map(|image| interleave(image, right.groups, volume)).collect());
    vec![
        deviation("the output channels of the groups are interleaved", outputs),
        deviation("the input channels of the groups are interleaved", inputs),
    ]
}

/// Blocks `g·n + j` moved to where `j·G + g` was, as if the groups had been interleaved.
fn interleave(values: &[f64], groups: usize, block: usize) -> Vec<f64> {
    let per_group = values.len() / block.max(1) / groups;
    let source = |position: usize| position % per_group * groups + position / per_group;
    (0..groups * per_group)
        .flat_map(|position| &values[source(position) * block..][..block])
        .copied()
        .collect()
}

/// The weights of group g's m-th output where those of output `m·G + g` belong. Inputs stay in their groups, so this is
/// a change of the filter's output axis alone.
fn interleaved_outputs(right: &Canonical) -> Vec<f64> {
    let (channels, outputs) = (right.in_channels / right.groups, right.out_channels / right.groups);
    let taps = taps(right);
    let at = |group: usize, channel: usize, output: usize| {
        ((group * channels + channel) * outputs + output) * taps
    };
    let mut w = Vec::with_capacity(right.w.len());
    for group in 0..right.groups {
        for channel in 0..channels {
            for output in 0..outputs {
                let flat = group * outputs + output;
                let (from_output, from_group) = (flat / right.groups, flat % right.groups);
                w.extend_from_slice(&right.w[at(from_group, channel, from_output)..][..taps]);
            }
        }
    }
    w
}

fn layouts(right: &Canonical) -> Vec<Deviation> {
    let spatial = right.axes.len();
    let mut found = Vec::new();
    let canonical: Vec<usize> = [right.batch, right.in_channels]
        .into_iter()
        .chain(right.axes.iter().map(|axis| axis.input))
        .collect();
    use outstride::DataLayout;
    for (layout, name) in
        [(DataLayout::nxc(spatial), "channels last"), (DataLayout::ncx(spatial), "channels first")]
    {
        if layout == right.layout {
            continue;
        }
        // The memory as it was given, read as if it were in the other layout.
        let given = Order::of_data(&right.layout, &right.layout.arrange(&canonical)).scatter(&right.x);
        let misread = Order::of_data(&layout, &layout.arrange(&canonical)).gather(&given);
        found.push(deviation(
            format!("the input's memory is read as {name}"),
            Canonical { x: Rc::new(misread), ..right.clone() },
        ));
        found.push(deviation(format!("the output is {name}"), Canonical { layout, ..right.clone() }));
    }
    let (rows, columns) = (right.in_channels / right.groups, right.out_channels / right.groups);
    let taps = taps(right);
    let mut swapped = right.clone();
    for group in Rc::make_mut(&mut swapped.w).chunks_exact_mut((rows * columns * taps).max(1)) {
        let copy = group.to_vec();
        for index in 0..rows * columns {
            let (row, column) = (index / columns, index % columns);
            group[index * taps..][..taps].copy_from_slice(&copy[(column * rows + row) * taps..][..taps]);
        }
    }
    found.push(deviation("the filter's memory is read with output channels before input channels", swapped));
    found
}

fn epilogue(right: &Canonical) -> Vec<Deviation> {
    let mut found = Vec::new();
    if let Some(bias) = &right.bias {
        found.push(deviation("the bias is left out", Canonical { bias: None, ..right.clone() }));
        let twice = bias.iter().map(|value| 2.0 * value).collect();
        found.push(deviation("the bias is added twice", Canonical { bias: Some(twice), ..right.clone() }));
    }
    let activations = [
        (Activation::Identity, "the activation is left out"),
        (Activation::Relu, "a Relu follows"),
        (Activation::Tanh, "a Tanh follows"),
        (Activation::Sigmoid, "a Sigmoid follows"),
    ];
    for (activation, what) in activations {
        found.push(deviation(what, Canonical { activation, ..right.clone() }));
    }
    found
}

fn dialects(layer: &ModelLayer<'_>, request: &Request, right: &Canonical) -> Vec<Deviation> {
    let geometry = outstride::Geometry::new(
        right.batch,
        right.groups,
        right.in_channels,
        right.out_channels,
        right.axes.clone(),
    );
    let problem = geometry.ok().and_then(|geometry| as_written(layer.dialect, request, &geometry));
    let Some(problem) = problem else { return Vec::new() };
    let read = |dialect: DialectName, policy: Policy| {
        let spelling = problem.spell(dialect).ok()?;
        let tensor = |shape| TensorType::new(DType::F32, shape);
        let operands = Operands::new(tensor(&spelling.input), tensor(&spelling.filter));
        let call = spelling.request.read(dialect).ok()?.resolve(&operands, policy).ok()?;
        Some(call.geometry.axes().to_vec())
    };
    // Most agree, and a reading that several share is one reading.
    let mut readings: Vec<(Vec<Axis>, Vec<String>)> = Vec::new();
    let mut add = |axes: Option<Vec<Axis>>, reader: String| {
        let Some(axes) = axes else { return };
        match readings.iter_mut().find(|(known, _)| *known == axes) {
            Some((_, readers)) => readers.push(reader),
            None => readings.push((axes, vec![reader])),
        }
    };
    for dialect in DialectName::ALL {
        let [spec, runtime] = [Policy::Spec, Policy::Runtime].map(|policy| read(dialect, policy));
        if spec == runtime {
            add(spec, dialect.to_string());
        } else {
            add(spec, format!("{dialect} by its text"));
            add(runtime, format!("{dialect} by its runtime"));
        }
    }
    let reading = |(axes, readers): (Vec<Axis>, Vec<String>)| {
        let what = format!("the attributes are read as in {}", readers.join(", "));
        deviation(what, Canonical { axes, ..right.clone() })
    };
    readings.into_iter().map(reading).collect()
}
