//! Writes ONNX: one tensor, or a model of one layer.

use outstride_spec::{AttributeValue, Attributes, DType};

use super::tensor::number;
use crate::tensor::AnyTensor;

/// The bytes of a TensorProto file.
///
/// ```
/// use outstride_io::{AnyTensor, Source, TensorFile, onnx};
///
/// let tensor = AnyTensor::new(vec![2], vec![1.0f32, 2.0]).unwrap();
/// let bytes = onnx::tensor_bytes("x", &tensor);
/// let source = Source::memory("x.pb".as_ref(), bytes);
/// assert_eq!(TensorFile::parse(source)?.tensor("x")?.load()?, tensor);
/// # Ok::<(), outstride_io::FileError>(())
/// ```
pub fn tensor_bytes(name: &str, tensor: &AnyTensor) -> Vec<u8> {
    let mut message = Message::default();
    for &size in tensor.shape() {
        message.int(1, size as u64);
    }
    message.int(2, number(tensor.values().dtype()));
    message.bytes(8, name.as_bytes());
    message.bytes(9, &tensor.values().to_le_bytes());
    message.0
}

/// What [`layer_model`] writes down.
#[derive(Clone, Copy, Debug)]
pub struct LayerModel<'a> {
    /// The node's name.
    pub name: &'a str,
    /// The domain of the operator; empty for ONNX's own.
    pub domain: &'a str,
    /// The version of the domain's operator set.
    pub version: i64,
    /// As the dialect spells them.
    pub attributes: &'a Attributes,
    /// The element type of X and Y.
    pub dtype: DType,
    /// The shape of X.
    pub input: &'a [usize],
    /// The shape of Y.
    pub output: &'a [usize],
    /// W, in the dialect's layout.
    pub filter: &'a AnyTensor,
    /// B, one value per output channel.
    pub bias: Option<&'a AnyTensor>,
}

/// The bytes of an ONNX model of one ConvTranspose, from `X` to `Y`.
pub fn layer_model(layer: &LayerModel<'_>) -> Vec<u8> {
    const IR_VERSION: u64 = 8;
    let mut node = Message::default();
    let inputs: &[&str] = if layer.bias.is_some() { &["X", "W", "B"] } else { &["X", "W"] };
    inputs.iter().for_each(|name| node.bytes(1, name.as_bytes()));
    node.bytes(2, b"Y");
    node.bytes(3, layer.name.as_bytes());
    node.bytes(4, b"ConvTranspose");
    for (name, value) in layer.attributes {
        node.message(5, attribute(name, value));
    }
    node.bytes(7, layer.domain.as_bytes());
    let mut graph = Message::default();
    graph.message(1, node);
    graph.bytes(2, layer.name.as_bytes());
    graph.bytes(5, &tensor_bytes("W", layer.filter));
    if let Some(bias) = layer.bias {
        graph.bytes(5, &tensor_bytes("B", bias));
    }
    graph.message(11, value_info("X", layer.dtype, layer.input));
    graph.message(12, value_info("Y", layer.dtype, layer.output));
    let mut opset = Message::default();
    opset.bytes(1, layer.domain.as_bytes());
    opset.int(2, layer.version as u64);
    let mut model = Message::default();
    model.int(1, IR_VERSION);
    model.bytes(2, b"outstride");
    model.message(7, graph);
    model.message(8, opset);
    model.0
}

fn attribute(name: &str, value: &AttributeValue) -> Message {
    let mut message = Message::default();
    message.bytes(1, name.as_bytes());
    let kind = match value {
        AttributeValue::Int(int) => {
            message.int(3, *int as u64);
            2
        }
        AttributeValue::Bool(flag) => {
            message.int(3, u64::from(*flag));
            2
        }
        AttributeValue::Float(float) => {
            message.float(2, *float as f32);
            1
        }
        AttributeValue::Text(text) => {
            message.bytes(4, text.as_bytes());
            3
        }
        AttributeValue::List(items) if items.iter().all(|item| matches!(item, AttributeValue::Int(_))) => {
            for item in items {
                if let AttributeValue::Int(int) = item {
                    message.int(8, *int as u64);
                }
            }
            7
        }
        AttributeValue::List(items) => {
            for item in items {
                if let AttributeValue::Float(float) = item {
                    message.float(7, *float as f32);
                }
            }
            6
        }
    };
    message.int(20, kind);
    message
}

fn value_info(name: &str, dtype: DType, shape: &[usize]) -> Message {
    let mut dims = Message::default();
    for &size in shape {
        let mut dim = Message::default();
        dim.int(1, size as u64);
        dims.message(1, dim);
    }
    let mut tensor = Message::default();
    tensor.int(1, number(dtype));
    tensor.message(2, dims);
    let mut kind = Message::default();
    kind.message(1, tensor);
    let mut info = Message::default();
    info.bytes(1, name.as_bytes());
    info.message(2, kind);
    info
}

/// A protobuf message in the making.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn int(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    fn float(&mut self, field: u64, value: f32) {
        self.varint(field << 3 | 5);
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u64, message: Message) {
        self.bytes(field, &message.0);
    }
}
