//! Writes an IR of one layer.

use std::fmt::Write as _;

use outstride_spec::{AttributeValue, Attributes, DType};

use super::types::{element_type, precision};
use crate::tensor::AnyTensor;

/// What [`layer_ir`] writes down.
#[derive(Clone, Copy, Debug)]
pub struct LayerIr<'a> {
    /// The layer's name.
    pub name: &'a str,
    /// `ConvolutionBackpropData` or `GroupConvolutionBackpropData`.
    pub op: &'a str,
    /// As OpenVINO spells them.
    pub attributes: &'a Attributes,
    /// The element type of data and output.
    pub dtype: DType,
    /// The shape of the data.
    pub input: &'a [usize],
    /// The shape of the output.
    pub output: &'a [usize],
    /// The filter, in the operator's layout.
    pub filter: &'a AnyTensor,
    /// The values of the third input.
    pub output_shape: Option<&'a [i64]>,
    /// To be added to the output, one value per channel.
    pub bias: Option<&'a AnyTensor>,
}

/// The text of the `.xml` file and the bytes of the `.bin` file.
pub fn layer_ir(layer: &LayerIr<'_>) -> (String, Vec<u8>) {
    let mut ir = Ir::default();
    let data = ir.parameter("data", layer.dtype, layer.input);
    let mut inputs = vec![(data, layer.dtype, layer.input.to_vec())];
    inputs.push(ir.constant("filter", layer.filter, layer.filter.shape()));
    let sizes = layer.output_shape.and_then(|sizes| AnyTensor::new(vec![sizes.len()], sizes.to_vec()));
    if let Some(sizes) = &sizes {
        inputs.push(ir.constant("output_shape", sizes, sizes.shape()));
    }
    let output = (layer.dtype, layer.output);
    let mut last = ir.layer(layer.name, layer.op, &attributes(layer.attributes), &inputs, Some(output));
    if let Some(bias) = layer.bias {
        // One value per channel, with an axis of one element for every other.
        let shape: Vec<usize> =
            (0..layer.output.len()).map(|axis| if axis == 1 { bias.values().len() } else { 1 }).collect();
        let bias = ir.constant("bias", bias, &shape);
        let sum = [(last, layer.dtype, layer.output.to_vec()), bias];
        last = ir.layer("biased", "Add", " auto_broadcast=\"numpy\"", &sum, Some(output));
    }
    ir.layer("result", "Result", "", &[(last, layer.dtype, layer.output.to_vec())], None);
    let Ir { layers, edges, bytes, .. } = ir;
    let name = escape(layer.name);
    let xml = format!(
        "<?xml version=\"1.0\"?>\n<net name=\"{name}\" version=\"11\">\n<layers>\n{layers}</layers>\n\
         <edges>\n{edges}</edges>\n</net>\n"
    );
    (xml, bytes)
}

/// A value to be fed to a layer: the layer it comes from, its type and shape.
type Feed = (Origin, DType, Vec<usize>);

#[derive(Clone, Copy)]
struct Origin {
    layer: usize,
    port: usize,
}

#[derive(Default)]
struct Ir {
    layers: String,
    edges: String,
    bytes: Vec<u8>,
    count: usize,
}

impl Ir {
    fn parameter(&mut self, name: &str, dtype: DType, shape: &[usize]) -> Origin {
        let data = format!(" element_type=\"{}\" shape=\"{}\"", element_type(dtype), joined(shape));
        self.layer(name, "Parameter", &data, &[], Some((dtype, shape)))
    }

    fn constant(&mut self, name: &str, tensor: &AnyTensor, shape: &[usize]) -> Feed {
        let dtype = tensor.values().dtype();
        let bytes = tensor.values().to_le_bytes();
        let data = format!(
            " element_type=\"{}\" shape=\"{}\" offset=\"{}\" size=\"{}\"",
            element_type(dtype),
            joined(shape),
            self.bytes.len(),
            bytes.len()
        );
        self.bytes.extend(bytes);
        (self.layer(name, "Const", &data, &[], Some((dtype, shape))), dtype, shape.to_vec())
    }

    fn layer(
        &mut self,
        name: &str,
        kind: &str,
        data: &str,
        inputs: &[Feed],
        output: Option<(DType, &[usize])>,
    ) -> Origin {
        let id = self.count;
        self.count += 1;
        let mut text =
            format!("<layer id=\"{id}\" name=\"{}\" type=\"{kind}\" version=\"opset1\">\n", escape(name));
        if !data.is_empty() {
            text += &format!("  <data{data}/>\n");
        }
        if !inputs.is_empty() {
            text += "  <input>\n";
            for (port, (origin, dtype, shape)) in inputs.iter().enumerate() {
                text += &port_text(port, *dtype, shape);
                self.edges += &format!(
                    "<edge from-layer=\"{}\" from-port=\"{}\" to-layer=\"{id}\" to-port=\"{port}\"/>\n",
                    origin.layer, origin.port
                );
            }
            text += "  </input>\n";
        }
        if let Some((dtype, shape)) = output {
            text += &format!("  <output>\n{}  </output>\n", port_text(inputs.len(), dtype, shape));
        }
        self.layers += &format!("{text}</layer>\n");
        Origin { layer: id, port: inputs.len() }
    }
}

fn port_text(id: usize, dtype: DType, shape: &[usize]) -> String {
    let dims: String = shape.iter().map(|size| format!("<dim>{size}</dim>")).collect();
    format!("    <port id=\"{id}\" precision=\"{}\">{dims}</port>\n", precision(dtype))
}

fn attributes(attributes: &Attributes) -> String {
    let mut text = String::new();
    for (name, value) in attributes {
        let value = match value {
            AttributeValue::List(items) => {
                items.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
            }
            AttributeValue::Text(word) => word.clone(),
            other => other.to_string(),
        };
        // Writing to a string cannot fail.
        let _ = write!(text, " {name}=\"{}\"", escape(&value));
    }
    text
}

fn joined(shape: &[usize]) -> String {
    shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}
