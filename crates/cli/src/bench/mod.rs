//! `outstride bench`: times layers and holds them against what the machine can do.

mod report;
mod timing;

use std::io::Write;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use outstride_io::layers::Layer;

use crate::Verdict;
use crate::layers::{LayerArgs, PreparedLayer};
use crate::machine::{Roofline, Team};
use crate::output::write_json;
use crate::progress;
use report::{Measured, Row, Total};

/// Time layers on this machine
///
/// Each layer is prepared once and then called again and again, with a bias, plain tensors and a reused output. The
/// median of the calls is reported with the range that holds eight of ten, GFLOP/s (counted as peers do, cropped
/// outputs included), GB/s (input, weights and output once each), the kernel, and how much of the machine's ceiling
/// was reached. The ceilings are measured at the start, with the same instructions and threads: multiply-adds in
/// registers, reading and writing at footprints from the caches to memory.
///
/// The layers of a model are followed by their total: the sum of the medians, and what it comes to.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    layers: LayerArgs,

    /// How long to time each layer
    #[arg(long, value_name = "S", default_value_t = 0.5, allow_negative_numbers = true)]
    seconds: f64,

    /// Print one JSON list instead of a table: an object per layer; of a model also a last one, the only one with
    /// the field `layers` (how many), whose id is total
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  outstride bench --layer mb1_ic256oc128_ih64kh4sh2ph1
      One layer: 256 to 128 channels, 64×64 to 128×128.
  outstride bench benches/layers.json --layout nxc --threads 2 --only unet_up4,dcgan_g3
      Some layers of a file, channels last, on two threads.
  outstride bench generator.onnx
      The layers of a model, and their sum.
  outstride bench benches/layers.json --json | jq '.[] | [.id, .median_ms, .ceiling_share]'
      All of them, for machines.
  OUTSTRIDE_ISA=avx2 outstride bench benches/layers.json
      As a CPU without AVX-512 would.

Exit status: 0 all layers were timed; 1 a layer was refused; 2 wrong usage or an unreadable file.";

pub(crate) fn run(args: &BenchArgs, out: &mut dyn Write) -> Result<Verdict> {
    if !(args.seconds >= 0.0 && args.seconds <= 3600.0) {
        bail!("--seconds must be between 0 and 3600, got {}", args.seconds);
    }
    let layers = args.layers.layers()?;
    let team = Team::new(args.layers.threads())?;
    let progress = progress::bar(layers.len());
    progress.set_message("measuring the machine");
    let roofline = Roofline::measure(&team, args.layers.dtype.dtype())?;
    let id_width = layers.iter().map(|layer| layer.id.chars().count()).max().unwrap_or(0).max("layer".len());
    if !args.json {
        progress.suspend(|| write_machine(out, &roofline, team.threads(), id_width))?;
    }
    let budget = Duration::from_secs_f64(args.seconds);
    let mut measured = Vec::new();
    let mut verdict = Verdict::Yes;
    for layer in &layers {
        progress.set_message(layer.id.clone());
        match measure(layer, &args.layers, &team, budget, &roofline) {
            Ok(one) => {
                if !args.json {
                    progress.suspend(|| one.write_row(out, id_width).and_then(|()| out.flush()))?;
                }
                measured.push(one);
            }
            Err(error) => {
                progress.suspend(|| eprintln!("error: layer {}: {error:#}", layer.id));
                verdict = Verdict::No;
            }
        }
        progress.inc(1);
    }
    progress.finish_and_clear();
    let total = if args.layers.is_model() { Total::of(&measured) } else { None };
    if args.json {
        let layers = measured.iter().map(Row::Layer);
        write_json(out, &layers.chain(total.as_ref().map(Row::Total)).collect::<Vec<_>>())?;
    } else if let Some(total) = total {
        total.write_row(out, id_width)?;
    }
    Ok(verdict)
}

fn measure(
    layer: &Layer,
    args: &LayerArgs,
    team: &Team,
    budget: Duration,
    roofline: &Roofline,
) -> Result<Measured> {
    let mut prepared = PreparedLayer::new(layer, args.layout, args.dtype, team)?;
    // The first call makes the output.
    (prepared.call)()?;
    let timing = timing::time(budget, &mut prepared.call)?;
    let PreparedLayer { plan, prepare, .. } = prepared;
    Ok(Measured::new(layer, args.layout, team.threads(), &plan, &timing, prepare, roofline))
}

fn write_machine(
    out: &mut dyn Write,
    roofline: &Roofline,
    threads: usize,
    id_width: usize,
) -> std::io::Result<()> {
    let (read, write) = roofline.memory();
    let tiles = roofline.tiles.map_or_else(String::new, |tiles| format!(" ({:.0} by tiles)", tiles / 1e9));
    writeln!(
        out,
        "machine  {}, {threads} {}: {:.0} GFLOP/s{tiles}; memory: read {:.1} GB/s, write {:.1} GB/s\n",
        roofline.isa,
        if threads == 1 { "thread" } else { "threads" },
        roofline.arithmetic / 1e9,
        read / 1e9,
        write / 1e9,
    )?;
    report::write_header(out, id_width)?;
    out.flush()
}
