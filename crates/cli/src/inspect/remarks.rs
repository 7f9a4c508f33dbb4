//! What a reviewer would say about a layer.

use outstride::{
    AttributeValue, Axis, Call, DType, DialectName, Operands, PadRule, Policy, Request, TensorType,
};
use outstride_spec::{Phase, neutral};

use crate::model::as_written;
use crate::output::sizes;

/// Above this many taps an axis is no layer that a reviewer would look at.
const LARGEST_KERNEL: usize = 1 << 16;

/// The remarks on a layer, the most important first.
pub(super) fn remarks(dialect: DialectName, request: &Request, call: &Call, policy: Policy) -> Vec<String> {
    let mut remarks = Vec::new();
    let axes = call.geometry.axes();
    for (index, axis) in axes.iter().enumerate() {
        // Square kernels are the rule; saying everything twice helps nobody.
        if axes[..index].contains(axis) {
            continue;
        }
        let alike: Vec<String> = (index..axes.len())
            .filter(|&other| axes[other] == *axis)
            .map(|other| other.to_string())
            .collect();
        let place = match alike.as_slice() {
            [one] => format!("axis {one}"),
            many => format!("axes {}", many.join(" and ")),
        };
        remarks.extend(
            coverage(axis)
                .into_iter()
                .chain(surplus(axis))
                .chain(lost_inputs(axis))
                .map(|what| format!("{place}: {what}")),
        );
    }
    remarks.extend(ignored_pads(request, call.pad_rule));
    remarks.extend(other_readings(dialect, request, call, policy));
    remarks
}

/// Whether outputs get unequal numbers of taps.
fn coverage(axis: &Axis) -> Option<String> {
    if axis.stride == 1 || axis.kernel > LARGEST_KERNEL || axis.stride > LARGEST_KERNEL {
        return None;
    }
    let phases = Phase::of_axis(axis.kernel, axis.stride, axis.dilation);
    let counts = phases.iter().map(|phase| phase.taps.len());
    let (fewest, most) = (counts.clone().min()?, counts.max()?);
    if phases.len() < axis.stride {
        let empty = axis.stride - phases.len();
        return Some(format!(
            "{empty} of {} outputs in turn get no tap and hold the bias alone (kernel {}, stride {}, dilation {})",
            axis.stride, axis.kernel, axis.stride, axis.dilation
        ));
    }
    (fewest != most).then(|| {
        let even = axis.kernel.next_multiple_of(axis.stride);
        format!(
            "checkerboard: kernel {} is no multiple of stride {}, so outputs get {fewest} and {most} taps in turn; \
             kernel {even} would treat all alike",
            axis.kernel, axis.stride
        )
    })
}

/// Outputs beyond the last tap.
fn surplus(axis: &Axis) -> Option<String> {
    let surplus = -axis.pad_end();
    let of_output = surplus.min(axis.output as i64);
    (of_output > 0).then(|| {
        let positions = if of_output == 1 {
            "the last output holds".into()
        } else {
            format!("the last {of_output} outputs hold")
        };
        format!("{positions} the bias alone: output_padding or output_shape goes beyond the last tap")
    })
}

/// Inputs whose every tap is cropped.
fn lost_inputs(axis: &Axis) -> Option<String> {
    let lost = |crop: i64| {
        // Input i reaches as far as i·s + kernel extent; it is lost where that is cropped.
        let beyond = crop - axis.effective_kernel();
        if beyond < 0 { 0 } else { (beyond / axis.stride as i64 + 1).min(axis.input as i64) }
    };
    let (first, last) = (lost(axis.pad_begin), lost(axis.pad_end()));
    let what = match (first, last) {
        (0, 0) => return None,
        (first, 0) => format!("the first {first}"),
        (0, last) => format!("the last {last}"),
        (first, last) => format!("the first {first} and last {last}"),
    };
    Some(format!("dead pads: {what} of {} inputs reach no output; crop the input instead", axis.input))
}

/// Pads that are written down but have no effect.
fn ignored_pads(request: &Request, rule: PadRule) -> Option<String> {
    let written = |name: &str| match request.attributes.get(name) {
        Some(AttributeValue::List(pads)) => pads.iter().any(|pad| *pad != AttributeValue::Int(0)),
        _ => false,
    };
    if !["pads", "pads_begin", "pads_end"].into_iter().any(written) {
        return None;
    }
    let beside = match rule {
        PadRule::FitOutputShape(_) => "an output size",
        PadRule::FitStride(_) | PadRule::Unpadded => "auto_pad",
        PadRule::Written | PadRule::CutToOutputShape | PadRule::PaddedInput => return None,
    };
    Some(format!("dead pads: they are written down but ignored beside {beside}"))
}

/// The dialects that make something else of the same words.
fn other_readings(dialect: DialectName, request: &Request, call: &Call, policy: Policy) -> Option<String> {
    let problem = as_written(dialect, request, &call.geometry)?;
    let mut readings: Vec<(String, Vec<&str>)> = Vec::new();
    for other in DialectName::ALL {
        let Some(axes) = read_elsewhere(&problem, other, policy) else { continue };
        if axes != call.geometry.axes() {
            let outputs: Vec<usize> = axes.iter().map(|axis| axis.output).collect();
            let begins: Vec<String> = axes.iter().map(|axis| axis.pad_begin.to_string()).collect();
            let reading = format!("{} from {}", sizes(&outputs), begins.join(","));
            match readings.iter_mut().find(|(known, _)| *known == reading) {
                Some((_, names)) => names.push(other.as_str()),
                None => readings.push((reading, vec![other.as_str()])),
            }
        }
    }
    if readings.is_empty() {
        return None;
    }
    let outputs: Vec<usize> = call.geometry.axes().iter().map(|axis| axis.output).collect();
    let begins: Vec<String> = call.geometry.axes().iter().map(|axis| axis.pad_begin.to_string()).collect();
    let others = readings.iter().map(|(reading, names)| format!("{} as {reading}", names.join(", ")));
    Some(format!(
        "the same words mean {} from {} here, but are read by {}",
        sizes(&outputs),
        begins.join(","),
        others.collect::<Vec<_>>().join("; by ")
    ))
}

fn read_elsewhere(problem: &neutral::Problem, dialect: DialectName, policy: Policy) -> Option<Vec<Axis>> {
    let spelling = problem.spell(dialect).ok()?;
    let tensor = |shape| TensorType::new(DType::F32, shape);
    let operands = Operands::new(tensor(&spelling.input), tensor(&spelling.filter));
    let call = spelling.request.read(dialect).ok()?.resolve(&operands, policy).ok()?;
    Some(call.geometry.axes().to_vec())
}
