//! Local functions: graphs that nodes call by name. Their bodies take the place of the calls, under names of their own,
//! so that whoever reads the model further knows one kind of graph only.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Attribute, Graph, Node};
use crate::error::FileError;

/// How deep functions may call functions. A function that calls itself never ends.
const MAX_DEPTH: usize = 32;

/// How many bytes the bodies of all calls may come to: functions that call others twice grow as powers of two.
const MAX_BYTES: usize = 1 << 28;

/// A graph to be put in the place of calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) domain: String,
    pub(crate) inputs: Vec<String>,
    pub(crate) outputs: Vec<String>,
    /// Attributes that a call may leave out.
    pub(crate) defaults: BTreeMap<String, Attribute>,
    pub(crate) graph: Graph,
}

/// Puts the functions' bodies in the place of their calls, everywhere in the graph.
pub(crate) fn inline(graph: Graph, functions: &[Function], file: &Path) -> Result<Graph, FileError> {
    if functions.is_empty() {
        return Ok(graph);
    }
    let by_name = functions.iter().map(|function| ((&*function.domain, &*function.name), function)).collect();
    let mut inliner = Inliner { functions: by_name, file, bytes: 0 };
    inliner.graph(graph, 0)
}

struct Inliner<'a> {
    functions: BTreeMap<(&'a str, &'a str), &'a Function>,
    file: &'a Path,
    bytes: usize,
}

impl Inliner<'_> {
    fn graph(&mut self, graph: Graph, depth: usize) -> Result<Graph, FileError> {
        let mut result = Graph { nodes: Vec::new(), ..graph };
        for node in graph.nodes {
            self.node(node, depth, &mut result)?;
        }
        Ok(result)
    }

    fn node(&mut self, mut node: Node, depth: usize, result: &mut Graph) -> Result<(), FileError> {
        for attribute in node.attributes.values_mut() {
            if let Attribute::Graphs(graphs) = attribute {
                for graph in graphs {
                    *graph = self.graph(std::mem::take(graph), depth)?;
                }
            }
        }
        let Some(&function) = self.functions.get(&(&*node.domain, &*node.op)) else {
            result.nodes.push(node);
            return Ok(());
        };
        if depth == MAX_DEPTH {
            let place = format!("function `{}`", node.op);
            let expected = format!("called at most {MAX_DEPTH} deep");
            return Err(FileError::malformed(self.file, place, expected, "a call that goes deeper"));
        }
        let call = Call::new(function, &node);
        self.charge(function, &call)?;
        result.types.extend(call.types());
        for inner in &function.graph.nodes {
            self.node(call.rename_node(inner), depth + 1, result)?;
        }
        Ok(())
    }

    /// Counts what a call adds, before it is added.
    fn charge(&mut self, function: &Function, call: &Call<'_>) -> Result<(), FileError> {
        const BYTES_PER_NAME: usize = 64;
        let names = Names::of(&function.graph);
        let added =
            names.count.saturating_mul(call.prefix.len() + BYTES_PER_NAME).saturating_add(names.length);
        self.bytes = self.bytes.saturating_add(added);
        if self.bytes > MAX_BYTES {
            let place = format!("function `{}`", function.name);
            let expected = format!("called so that at most {MAX_BYTES} bytes come of all calls");
            return Err(FileError::malformed(self.file, place, expected, "more"));
        }
        Ok(())
    }
}

/// How many names a graph has, in subgraphs as well, and how long they are together.
#[derive(Default)]
struct Names {
    count: usize,
    length: usize,
}

impl Names {
    fn of(graph: &Graph) -> Self {
        let mut names = Names::default();
        names.add_graph(graph);
        names
    }

    fn add_graph(&mut self, graph: &Graph) {
        self.add(
            graph.inputs.iter().chain(&graph.outputs).chain(graph.types.keys()).chain(graph.constants.keys()),
        );
        for node in &graph.nodes {
            self.add([&node.name].into_iter().chain(&node.inputs).chain(&node.outputs));
            self.add(node.attributes.keys());
            node.subgraphs().for_each(|(_, subgraph)| self.add_graph(subgraph));
        }
    }

    fn add<'a>(&mut self, names: impl Iterator<Item = &'a String>) {
        names.for_each(|name| {
            self.count += 1;
            self.length += name.len();
        });
    }
}

/// One call: what the function's own names mean at this place.
struct Call<'a> {
    function: &'a Function,
    prefix: String,
    values: BTreeMap<&'a str, String>,
    attributes: BTreeMap<&'a str, &'a Attribute>,
}

impl<'a> Call<'a> {
    fn new(function: &'a Function, node: &'a Node) -> Self {
        // What the call leaves out is left out inside as well.
        let actual = |names: &[String], index: usize| names.get(index).cloned().unwrap_or_default();
        let inputs = function.inputs.iter().enumerate();
        let outputs = function.outputs.iter().enumerate();
        let mut values: BTreeMap<&str, String> =
            inputs.map(|(index, name)| (name.as_str(), actual(&node.inputs, index))).collect();
        for (index, name) in outputs {
            let name_outside = actual(&node.outputs, index);
            if !name_outside.is_empty() {
                values.insert(name, name_outside);
            }
        }
        let mut attributes: BTreeMap<&str, &Attribute> =
            function.defaults.iter().map(|(name, value)| (name.as_str(), value)).collect();
        attributes.extend(node.attributes.iter().map(|(name, value)| (name.as_str(), value)));
        Call { function, prefix: format!("{}/", node.name), values, attributes }
    }

    fn rename(&self, name: &str) -> String {
        match self.values.get(name) {
            Some(outside) => outside.clone(),
            None if name.is_empty() => String::new(),
            None => format!("{}{name}", self.prefix),
        }
    }

    fn types(&self) -> impl Iterator<Item = (String, super::ValueType)> + '_ {
        let own = self.function.graph.types.iter();
        own.filter(|(name, _)| !self.values.contains_key(name.as_str()))
            .map(|(name, value_type)| (self.rename(name), value_type.clone()))
    }

    fn rename_node(&self, node: &Node) -> Node {
        let rename_all = |names: &[String]| names.iter().map(|name| self.rename(name)).collect();
        Node {
            name: format!("{}{}", self.prefix, node.name),
            op: node.op.clone(),
            domain: node.domain.clone(),
            inputs: rename_all(&node.inputs),
            outputs: rename_all(&node.outputs),
            attributes: node
                .attributes
                .iter()
                .filter_map(|(name, value)| self.attribute(name, value))
                .collect(),
        }
    }

    /// An attribute inside the function; one that refers to an attribute that the call leaves out is left out too.
    fn attribute(&self, name: &str, value: &Attribute) -> Option<(String, Attribute)> {
        let value = match value {
            Attribute::Reference(outer) => (*self.attributes.get(outer.as_str())?).clone(),
            Attribute::Graphs(graphs) => {
                Attribute::Graphs(graphs.iter().map(|graph| self.rename_graph(graph)).collect())
            }
            other => other.clone(),
        };
        Some((name.to_owned(), value))
    }

    fn rename_graph(&self, graph: &Graph) -> Graph {
        let rename_all = |names: &[String]| names.iter().map(|name| self.rename(name)).collect();
        Graph {
            name: graph.name.clone(),
            inputs: rename_all(&graph.inputs),
            outputs: rename_all(&graph.outputs),
            types: graph.types.iter().map(|(name, value)| (self.rename(name), value.clone())).collect(),
            constants: graph
                .constants
                .iter()
                .map(|(name, value)| (self.rename(name), value.clone()))
                .collect(),
            nodes: graph.nodes.iter().map(|node| self.rename_node(node)).collect(),
        }
    }
}
