//! A layer's words in neutral terms, so that they can be said in other dialects.

use outstride::{AttributeValue, DialectName, Geometry, Request};
use outstride_spec::neutral::{AutoPad, Problem};

/// The problem with the words of the layer's own dialect, or `None` where a dialect's words are not neutral ones. The
/// geometry supplies sizes and channels.
pub(crate) fn as_written(dialect: DialectName, request: &Request, geometry: &Geometry) -> Option<Problem> {
    let ints = |name: &str| match request.attributes.get(name) {
        Some(AttributeValue::List(items)) if !items.is_empty() => {
            items.iter().map(int).collect::<Option<Vec<_>>>()
        }
        _ => None,
    };
    let word = match request.attributes.get("auto_pad") {
        Some(AttributeValue::Text(word)) => word.to_ascii_lowercase(),
        _ => String::new(),
    };
    let pads: Option<Vec<(i64, i64)>> = match dialect {
        DialectName::Onnx | DialectName::OrtNhwc => ints("pads").map(|pads| {
            let (begin, end) = pads.split_at(pads.len() / 2);
            begin.iter().copied().zip(end.iter().copied()).collect()
        }),
        DialectName::OnednnGraph | DialectName::Openvino | DialectName::OpenvinoGroup => {
            Some(ints("pads_begin")?.into_iter().zip(ints("pads_end")?).collect())
        }
        DialectName::Torch | DialectName::Tensorflow | DialectName::Jax => return None,
    };
    let auto_pad = match word.as_str() {
        "same_upper" => AutoPad::SameUpper,
        "same_lower" => AutoPad::SameLower,
        "valid" => AutoPad::Valid,
        _ => AutoPad::None,
    };
    // Where pads are chosen, those that are written down mean nothing and would only confuse others.
    let pads = pads.filter(|_| auto_pad == AutoPad::None);
    let spatial = geometry.axes().len();
    Some(Problem {
        input: geometry.input_shape(),
        filter: [geometry.in_channels(), geometry.out_channels_per_group()]
            .into_iter()
            .chain(geometry.axes().iter().map(|axis| axis.kernel))
            .collect(),
        bias: false,
        groups: geometry.groups() as i64,
        strides: ints("strides").unwrap_or_else(|| vec![1; spatial]),
        dilations: ints("dilations").unwrap_or_else(|| vec![1; spatial]),
        pads,
        output_padding: ints("output_padding").filter(|list| list.iter().any(|&extra| extra != 0)),
        auto_pad,
        output_size: ints("output_shape").or_else(|| request.output_shape.clone()),
    })
}

fn int(value: &AttributeValue) -> Option<i64> {
    if let AttributeValue::Int(value) = value { Some(*value) } else { None }
}
