//! Writes oneDNN's forms of a layer.

use outstride_spec::{AttributeValue, Attributes, DType, Geometry};
use serde_json::{Map, Value, json};

use crate::attributes::to_json;

/// What [`layer_graph`] writes down.
#[derive(Clone, Copy, Debug)]
pub struct LayerGraph<'a> {
    /// The operator's name.
    pub name: &'a str,
    /// As oneDNN spells them.
    pub attributes: &'a Attributes,
    /// The element type of all tensors.
    pub dtype: DType,
    /// The shape of the data.
    pub input: &'a [usize],
    /// The shape of the filter, in the operator's layout.
    pub filter: &'a [usize],
    /// The shape of the bias.
    pub bias: Option<&'a [usize]>,
    /// The shape of the output.
    pub output: &'a [usize],
}

/// The graph as oneDNN's benchmark reads it.
pub fn layer_graph(layer: &LayerGraph<'_>) -> Value {
    let attributes: Map<String, Value> = layer
        .attributes
        .iter()
        .map(|(name, value)| (name.clone(), json!({"type": kind(value), "value": to_json(value)})))
        .collect();
    let shapes = [Some(layer.input), Some(layer.filter), layer.bias];
    let inputs: Vec<Value> =
        shapes.into_iter().flatten().enumerate().map(|(id, shape)| tensor(id, layer.dtype, shape)).collect();
    let output = inputs.len();
    json!({
        "version": "3.0.0",
        "engine_kind": "cpu",
        "fpmath_mode": "strict",
        "input_ports": (0..output).collect::<Vec<_>>(),
        "output_ports": [output],
        "graph": [{
            "id": 0,
            "name": layer.name,
            "kind": "ConvTranspose",
            "attrs": attributes,
            "inputs": inputs,
            "outputs": [tensor(output, layer.dtype, layer.output)],
        }],
    })
}

fn kind(value: &AttributeValue) -> &'static str {
    match value {
        AttributeValue::Bool(_) => "bool",
        AttributeValue::Int(_) => "s64",
        AttributeValue::Float(_) => "f32",
        AttributeValue::Text(_) => "string",
        AttributeValue::List(_) => "s64[]",
    }
}

fn tensor(id: usize, dtype: DType, shape: &[usize]) -> Value {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis].max(1);
    }
    let dtype = dtype.name().replace('i', "s");
    json!({
        "id": id,
        "dtype": dtype,
        "shape": shape,
        "stride": strides,
        "layout_type": "strided",
        "property_type": if id == 0 { "variable" } else { "undef" },
    })
}

/// The layer as a problem string, or `None` where it has more axes than the strings have letters for, or crops less
/// than nothing at the beginning.
///
/// ```
/// use outstride_io::layers::Layer;
/// use outstride_io::onednn::problem_string;
/// use outstride_spec::{Axis, Geometry};
///
/// let axis = Axis { input: 8, kernel: 4, stride: 2, dilation: 1, output: 16, pad_begin: 1 };
/// let text = problem_string(&Geometry::new(1, 1, 16, 8, vec![axis, axis])?).unwrap();
/// assert_eq!(text, "mb1_ic16oc8_ih8oh16kh4sh2dh0ph1_iw8ow16kw4sw2dw0pw1");
/// assert!(text.parse::<Layer>().is_ok());
/// # Ok::<(), outstride_spec::SpecError>(())
/// ```
pub fn problem_string(geometry: &Geometry) -> Option<String> {
    let letters = match geometry.axes().len() {
        1 => "w",
        2 => "hw",
        3 => "dhw",
        _ => return None,
    };
    let groups = if geometry.groups() == 1 { String::new() } else { format!("g{}", geometry.groups()) };
    let channels =
        format!("mb{}_ic{}oc{}", geometry.batch(), geometry.in_channels(), geometry.out_channels());
    let axes = geometry.axes().iter().zip(letters.chars()).map(|(axis, letter)| {
        (axis.pad_begin >= 0).then(|| {
            format!(
                "_i{letter}{}o{letter}{}k{letter}{}s{letter}{}d{letter}{}p{letter}{}",
                axis.input,
                axis.output,
                axis.kernel,
                axis.stride,
                axis.dilation - 1,
                axis.pad_begin
            )
        })
    });
    Some(format!("{groups}{channels}{}", axes.collect::<Option<String>>()?))
}
