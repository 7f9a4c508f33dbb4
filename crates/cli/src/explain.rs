//! `outstride explain`: what the engine would do with a layer, and how long that should take.

use std::io::Write;

use anyhow::Result;
use clap::Args;
use outstride::Plan;
use outstride_io::layers::Layer;
use serde::Serialize;

use crate::Verdict;
use crate::layers::{LayerArgs, Layout, PreparedLayer};
use crate::machine::{Roofline, Team};
use crate::output::write_json;
use crate::progress;

/// Explain how layers would be run
///
/// For each layer: its geometry, phases and taps, the path chosen and those rejected with the reasons, flops and bytes,
/// tasks and memory, and the time that the machine's measured ceilings allow.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    layers: LayerArgs,

    /// Print one JSON list instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  outstride explain --layer mb1_ic256oc128_ih64kh4sh2ph1
      One layer, channels first.
  outstride explain benches/layers.json --only fsrcnn_x4 --layout nxc --threads 1
      A layer of a file, channels last, on one thread.

Exit status: 0 all layers were explained; 1 a layer was refused; 2 wrong usage or an unreadable file.";

/// A plan, for machines.
#[derive(Serialize)]
struct Explained {
    id: String,
    dtype: String,
    layout: &'static str,
    threads: usize,
    geometry: String,
    phases: usize,
    taps: usize,
    lattices: Vec<usize>,
    groups_at_once: usize,
    path: &'static str,
    kernel: String,
    considered: Vec<Considered>,
    flops: f64,
    bytes: f64,
    tasks: usize,
    packed_bytes: usize,
    workspace_bytes: usize,
    expected: Expected,
}

#[derive(Serialize)]
struct Considered {
    path: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cycles: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rejected: Option<&'static str>,
}

/// The least time that the ceilings allow.
#[derive(Serialize)]
struct Expected {
    ms: f64,
    ceiling: &'static str,
    arithmetic_ms: f64,
    memory_ms: f64,
}

pub(crate) fn run(args: &ExplainArgs, out: &mut dyn Write) -> Result<Verdict> {
    let layers = args.layers.layers()?;
    let layout = args.layers.layout;
    let team = Team::new(args.layers.threads())?;
    let progress = progress::bar(layers.len());
    let mut plans = Vec::new();
    let mut verdict = Verdict::Yes;
    for layer in &layers {
        progress.set_message(layer.id.clone());
        match PreparedLayer::new(layer, layout, args.layers.dtype, &team) {
            Ok(prepared) => plans.push((layer, prepared.plan)),
            Err(error) => {
                progress.suspend(|| eprintln!("error: layer {}: {error:#}", layer.id));
                verdict = Verdict::No;
            }
        }
        progress.inc(1);
    }
    if plans.is_empty() {
        return Ok(verdict);
    }
    progress.set_message("measuring the machine");
    let roofline = Roofline::measure(&team, args.layers.dtype.dtype())?;
    progress.finish_and_clear();
    if args.json {
        let explained: Vec<Explained> =
            plans.iter().map(|(layer, plan)| Explained::new(layer, layout, plan, &roofline)).collect();
        write_json(out, &explained)?;
    } else {
        for (index, (layer, plan)) in plans.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            write_plan(out, layer, layout, plan, &roofline)?;
        }
    }
    Ok(verdict)
}

fn write_plan(
    out: &mut dyn Write,
    layer: &Layer,
    layout: Layout,
    plan: &Plan,
    roofline: &Roofline,
) -> Result<()> {
    let bound = roofline.bound(plan);
    writeln!(out, "layer      {}, {}", layer.id, layout.name())?;
    write!(out, "{}", plan.explain())?;
    writeln!(
        out,
        "expected   at least {:.4} ms by {}: arithmetic {:.4} ms, memory {:.4} ms",
        bound.seconds() * 1e3,
        bound.name(),
        bound.arithmetic * 1e3,
        bound.memory * 1e3,
    )?;
    Ok(())
}

impl Explained {
    fn new(layer: &Layer, layout: Layout, plan: &Plan, roofline: &Roofline) -> Self {
        let bound = roofline.bound(plan);
        let considered = plan.considered().iter().map(|&(path, outcome)| Considered {
            path: path.name(),
            cycles: outcome.ok(),
            rejected: outcome.err(),
        });
        Explained {
            id: layer.id.clone(),
            dtype: plan.dtype().to_string(),
            layout: layout.name(),
            threads: plan.threads(),
            geometry: plan.geometry().to_string(),
            phases: plan.phases(),
            taps: plan.taps(),
            lattices: plan.lattices().to_vec(),
            groups_at_once: plan.groups_at_once(),
            path: plan.path().name(),
            kernel: plan.kernel().to_owned(),
            considered: considered.collect(),
            flops: plan.flops() as f64,
            bytes: plan.bytes() as f64,
            tasks: plan.tasks(),
            packed_bytes: plan.packed_bytes(),
            workspace_bytes: plan.workspace_bytes(),
            expected: Expected {
                ms: bound.seconds() * 1e3,
                ceiling: bound.name(),
                arithmetic_ms: bound.arithmetic * 1e3,
                memory_ms: bound.memory * 1e3,
            },
        }
    }
}
