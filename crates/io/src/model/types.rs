//! Graphs, nodes and what is known of values.

use std::collections::BTreeMap;
use std::fmt;

use outstride_spec::{AttributeValue, Attributes, DType};

use super::TensorSource;

/// Nodes that compute named values from named values.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// The graph's name.
    pub name: String,
    /// What must be given, constants left out.
    pub inputs: Vec<String>,
    /// What is asked for.
    pub outputs: Vec<String>,
    /// What the file says about values.
    pub types: BTreeMap<String, ValueType>,
    /// Values that are in the file.
    pub constants: BTreeMap<String, TensorSource>,
    /// In the order of the file.
    pub nodes: Vec<Node>,
}

/// One operator of a graph.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// The node's name; its first output's where it has none of its own.
    pub name: String,
    /// The operator.
    pub op: String,
    /// The operator's domain; empty for ONNX's own.
    pub domain: String,
    /// The names of its inputs; empty where one is left out.
    pub inputs: Vec<String>,
    /// The names of its outputs; empty where one is not wanted.
    pub outputs: Vec<String>,
    /// As written.
    pub attributes: BTreeMap<String, Attribute>,
}

/// The value of a node's attribute.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Attribute {
    Int(i64),
    Float(f32),
    Text(String),
    Ints(Vec<i64>),
    Floats(Vec<f32>),
    Texts(Vec<String>),
    Tensor(TensorSource),
    /// Graphs to be run by the node, such as the branches of an `If`.
    Graphs(Vec<Graph>),
    /// The attribute of that name of the function the node is in.
    Reference(String),
    /// A kind that no operator here uses.
    Other(&'static str),
}

/// What a file says about a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueType {
    /// The element type, where it is said and known here.
    pub dtype: Option<DType>,
    /// The size of each axis; `None` where even their number is unknown.
    pub shape: Option<Vec<Dim>>,
}

/// The size of one axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dim {
    /// A number.
    Known(usize),
    /// A name that stands for a number, such as `batch`.
    Symbol(String),
    /// Nothing is said.
    Unknown,
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Known(size) => write!(f, "{size}"),
            Dim::Symbol(name) => f.pad(name),
            Dim::Unknown => f.pad("?"),
        }
    }
}

impl ValueType {
    /// The type of a tensor of known sizes.
    pub fn known(dtype: DType, shape: &[usize]) -> Self {
        ValueType { dtype: Some(dtype), shape: Some(shape.iter().map(|&size| Dim::Known(size)).collect()) }
    }

    /// The sizes, where all are known.
    pub fn sizes(&self) -> Option<Vec<usize>> {
        let size = |dim: &Dim| if let Dim::Known(size) = dim { Some(*size) } else { None };
        self.shape.as_ref()?.iter().map(size).collect()
    }
}

impl Node {
    /// The attributes as a dialect reads them. Kinds that no dialect has become texts, which are refused by name.
    pub fn spec_attributes(&self) -> Attributes {
        self.attributes.iter().map(|(name, value)| (name.clone(), value.spec_value())).collect()
    }

    /// An input's name; `None` where it is left out.
    pub fn input(&self, index: usize) -> Option<&str> {
        self.inputs.get(index).map(String::as_str).filter(|name| !name.is_empty())
    }

    /// The graphs among the attributes, by attribute name.
    pub fn subgraphs(&self) -> impl Iterator<Item = (&str, &Graph)> {
        self.attributes.iter().flat_map(|(name, attribute)| {
            let graphs = if let Attribute::Graphs(graphs) = attribute { graphs.as_slice() } else { &[] };
            graphs.iter().map(move |graph| (name.as_str(), graph))
        })
    }
}

impl Attribute {
    fn spec_value(&self) -> AttributeValue {
        let list = |items: Vec<AttributeValue>| AttributeValue::List(items);
        match self {
            Attribute::Int(value) => AttributeValue::Int(*value),
            Attribute::Float(value) => AttributeValue::Float(f64::from(*value)),
            Attribute::Text(value) => AttributeValue::Text(value.clone()),
            Attribute::Ints(values) => list(values.iter().map(|&value| AttributeValue::Int(value)).collect()),
            Attribute::Floats(values) => {
                list(values.iter().map(|&value| AttributeValue::Float(f64::from(value))).collect())
            }
            Attribute::Texts(values) => {
                list(values.iter().map(|value| AttributeValue::Text(value.clone())).collect())
            }
            Attribute::Tensor(_) => AttributeValue::Text("a tensor".into()),
            Attribute::Graphs(_) => AttributeValue::Text("a graph".into()),
            Attribute::Reference(name) => AttributeValue::Text(format!("a reference to {name}")),
            Attribute::Other(kind) => AttributeValue::Text((*kind).into()),
        }
    }
}
