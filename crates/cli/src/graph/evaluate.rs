//! Evaluates the values asked for, and of the graph only what they need.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail};
use indicatif::ProgressBar;
use outstride::Policy;
use outstride_io::model::{ModelLayer, Node, Scope};
use outstride_io::{AnyTensor, Model};

use super::node;

/// Values by their names, and how to get more of them.
pub(crate) struct Evaluator<'a> {
    scope: Scope<'a>,
    producers: BTreeMap<&'a str, &'a Node>,
    layers: BTreeMap<*const Node, ModelLayer<'a>>,
    opset: i64,
    policy: Policy,
    values: BTreeMap<String, AnyTensor>,
}

/// Values that nobody has given and nothing computes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MissingInputs(pub(crate) Vec<String>);

impl<'a> Evaluator<'a> {
    pub(crate) fn new(model: &'a Model, scope: Scope<'a>, policy: Policy) -> Self {
        let nodes = scope.graphs().flat_map(|graph| &graph.nodes);
        let outputs = nodes.flat_map(|node| node.outputs.iter().map(move |name| (name.as_str(), node)));
        let producers = outputs.filter(|(name, _)| !name.is_empty()).collect();
        let layers =
            model.layers().into_iter().map(|layer| (std::ptr::from_ref(layer.node), layer)).collect();
        // Models of other formats have no opsets; their operators have one version.
        let opset = model.opsets.get("").copied().unwrap_or(22);
        Evaluator { scope, producers, layers, opset, policy, values: BTreeMap::new() }
    }

    /// Gives a value, whatever the graph would make of it.
    pub(crate) fn feed(&mut self, name: &str, value: AnyTensor) {
        self.values.insert(name.to_owned(), value);
    }

    pub(crate) fn get(&self, name: &str) -> Option<&AnyTensor> {
        self.values.get(name)
    }

    /// Whether the value is given, or follows from what is.
    pub(crate) fn can_compute(&self, name: &str) -> bool {
        let plan = self.plan(&[name.to_owned()]);
        plan.is_ok_and(|plan| plan.missing.0.is_empty() && plan.unsupported.is_empty())
    }

    /// What must be given for these values to be computed.
    pub(crate) fn missing(&self, targets: &[String]) -> Result<MissingInputs> {
        Ok(self.plan(targets)?.missing)
    }

    /// Computes these values; afterwards [`get`](Self::get) has them. The nodes are steps of the progress.
    pub(crate) fn evaluate(&mut self, targets: &[String], progress: &ProgressBar) -> Result<()> {
        let plan = self.plan(targets)?;
        if !plan.unsupported.is_empty() {
            let listed = plan.unsupported.iter().map(|(op, count)| format!("{op} ({count})"));
            bail!(
                "these operators are not run here: {}; --node NAME runs one transposed convolution of any model, and \
                 `outstride inspect` lists them",
                listed.collect::<Vec<_>>().join(", ")
            );
        }
        if !plan.missing.0.is_empty() {
            let names = plan.missing.0.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            bail!("no values for {names}; give each with --input NAME=FILE, or all with --random SEED");
        }
        progress.set_length(plan.nodes.len() as u64);
        progress.set_message("reading weights");
        for name in plan.constants {
            let constant = self.scope.constant(name).context("a constant has vanished")?;
            self.values.insert(name.to_owned(), constant.load()?);
        }
        for node in plan.nodes {
            progress.set_message(node.name.clone());
            let outputs = self.run(node).with_context(|| format!("node `{}` ({})", node.name, node.op))?;
            for (name, value) in node.outputs.iter().zip(outputs) {
                self.values.insert(name.clone(), value);
            }
            progress.inc(1);
        }
        Ok(())
    }

    fn run(&self, node: &Node) -> Result<Vec<AnyTensor>> {
        let inputs: Vec<Option<&AnyTensor>> = (0..node.inputs.len())
            .map(|index| node.input(index).and_then(|name| self.values.get(name)))
            .collect();
        match self.layers.get(&std::ptr::from_ref(node)) {
            Some(layer) => Ok(vec![node::convolution(layer, &inputs, self.policy)?]),
            None => Ok(vec![node::element_wise(node, &inputs, self.opset)?]),
        }
    }

    /// What has to be done, in an order in which it can be.
    fn plan(&self, targets: &[String]) -> Result<Plan<'a>> {
        let mut plan = Plan::default();
        let mut done: BTreeSet<&str> = BTreeSet::new();
        let mut entered: BTreeSet<&str> = BTreeSet::new();
        let mut missing = BTreeSet::new();
        let mut constants = BTreeSet::new();
        // Depth first, on a list rather than by recursion: chains may be longer than a stack is deep.
        let mut open: Vec<String> = targets.iter().rev().cloned().collect();
        while let Some(name) = open.last().cloned() {
            if self.values.contains_key(&name) || done.contains(name.as_str()) {
                open.pop();
                continue;
            }
            let Some((&name, &node)) = self.producers.get_key_value(name.as_str()) else {
                match self.scope.constant(&name) {
                    Some(_) => constants.insert(name),
                    None => missing.insert(name),
                };
                open.pop();
                continue;
            };
            let needed = node.inputs.iter().filter(|input| !input.is_empty());
            let unknown = needed.filter(|input| {
                !self.values.contains_key(*input)
                    && !done.contains(input.as_str())
                    && !missing.contains(*input)
                    && !constants.contains(*input)
            });
            let unknown: Vec<String> = unknown.cloned().collect();
            if unknown.is_empty() {
                self.add(&mut plan, node);
                done.extend(node.outputs.iter().map(String::as_str));
                open.pop();
            } else if !entered.insert(name) {
                bail!("the graph runs in a circle: `{name}` needs itself");
            } else {
                open.extend(unknown);
            }
        }
        plan.missing = MissingInputs(missing.into_iter().collect());
        // The constants' names live as long as the graph.
        let graphs = self.scope.graphs().flat_map(|graph| graph.constants.keys());
        plan.constants = graphs.map(String::as_str).filter(|name| constants.contains(*name)).collect();
        Ok(plan)
    }

    fn add(&self, plan: &mut Plan<'a>, node: &'a Node) {
        let known = self.layers.contains_key(&std::ptr::from_ref(node)) || node::is_supported(node);
        if !known {
            *plan.unsupported.entry(operator(node)).or_default() += 1;
        }
        plan.nodes.push(node);
    }
}

#[derive(Default)]
struct Plan<'a> {
    nodes: Vec<&'a Node>,
    constants: Vec<&'a str>,
    missing: MissingInputs,
    unsupported: BTreeMap<String, usize>,
}

/// The operator's name, with its domain where that is not ONNX's own.
fn operator(node: &Node) -> String {
    match node.domain.as_str() {
        "" | "ai.onnx" | outstride_io::model::OPENVINO_DOMAIN | outstride_io::model::ONEDNN_DOMAIN => {
            node.op.clone()
        }
        domain => format!("{domain}.{}", node.op),
    }
}
