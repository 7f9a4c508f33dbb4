//! The transposed convolutions of a model, wherever they are.

use std::collections::{BTreeMap, BTreeSet};

use outstride_spec::{DialectName, Request};

use super::{Graph, Model, NHWC_DOMAIN, Node, ONEDNN_DOMAIN, OPENVINO_DOMAIN, TensorSource, ValueType};

/// A transposed convolution of a model.
#[derive(Clone, Debug)]
pub struct ModelLayer<'a> {
    /// A name that no other layer of the model has.
    pub name: String,
    /// How the node is spelt.
    pub dialect: DialectName,
    /// The version of the operator set, for ONNX's domains.
    pub version: Option<i64>,
    /// The node itself.
    pub node: &'a Node,
    /// The graphs whose values the node sees, the innermost last.
    pub scope: Scope<'a>,
}

/// Graphs whose values are visible at some place, the innermost last.
#[derive(Clone, Debug, Default)]
pub struct Scope<'a>(Vec<&'a Graph>);

impl<'a> Scope<'a> {
    /// The scope of a model's main graph.
    pub fn of(graph: &'a Graph) -> Self {
        Scope(vec![graph])
    }

    fn inside(&self, graph: &'a Graph) -> Self {
        Scope(self.0.iter().copied().chain([graph]).collect())
    }

    /// The graphs, the innermost first.
    pub fn graphs(&self) -> impl Iterator<Item = &'a Graph> + '_ {
        self.0.iter().rev().copied()
    }

    /// The constant of that name.
    pub fn constant(&self, name: &str) -> Option<&'a TensorSource> {
        self.graphs().find_map(|graph| graph.constants.get(name))
    }

    /// What is said about the value of that name.
    pub fn value_type(&self, name: &str) -> Option<&'a ValueType> {
        self.graphs().find_map(|graph| graph.types.get(name))
    }
}

impl ModelLayer<'_> {
    /// The call as its dialect reads it. The values of OpenVINO's third input, where there are any, are the caller's
    /// to add.
    pub fn request(&self) -> Request {
        Request {
            op: Some(self.node.op.clone()),
            version: self.version,
            attributes: self.node.spec_attributes(),
            output_shape: None,
        }
    }
}

pub(super) fn layers(model: &Model) -> Vec<ModelLayer<'_>> {
    let mut found = Vec::new();
    walk(model, &Scope::of(&model.graph), &model.graph, "", &mut found);
    name_apart(&mut found);
    found
}

/// Numbers the layers whose name another one has already.
fn name_apart(layers: &mut [ModelLayer<'_>]) {
    let mut taken = BTreeSet::new();
    let mut last: BTreeMap<String, usize> = BTreeMap::new();
    for layer in layers {
        let own = layer.name.clone();
        while !taken.insert(layer.name.clone()) {
            let times = last.entry(own.clone()).or_insert(1);
            *times += 1;
            layer.name = format!("{own}#{times}");
        }
    }
}

fn walk<'a>(
    model: &Model,
    scope: &Scope<'a>,
    graph: &'a Graph,
    prefix: &str,
    found: &mut Vec<ModelLayer<'a>>,
) {
    for node in &graph.nodes {
        let name = format!("{prefix}{}", node.name);
        if let Some(dialect) = dialect(node) {
            let version = model.opsets.get(domain_key(&node.domain)).copied();
            let version = version.filter(|_| matches!(dialect, DialectName::Onnx | DialectName::OrtNhwc));
            found.push(ModelLayer { name: name.clone(), dialect, version, node, scope: scope.clone() });
        }
        for (attribute, subgraph) in node.subgraphs() {
            walk(model, &scope.inside(subgraph), subgraph, &format!("{name}/{attribute}/"), found);
        }
    }
}

/// Files name ONNX's own domain in two ways.
pub(crate) fn domain_key(domain: &str) -> &str {
    if domain == "ai.onnx" { "" } else { domain }
}

fn dialect(node: &Node) -> Option<DialectName> {
    Some(match (domain_key(&node.domain), node.op.as_str()) {
        ("", "ConvTranspose") => DialectName::Onnx,
        (NHWC_DOMAIN, "ConvTranspose") => DialectName::OrtNhwc,
        (ONEDNN_DOMAIN, "ConvTranspose") => DialectName::OnednnGraph,
        (OPENVINO_DOMAIN, "ConvolutionBackpropData") => DialectName::Openvino,
        (OPENVINO_DOMAIN, "GroupConvolutionBackpropData") => DialectName::OpenvinoGroup,
        _ => return None,
    })
}
