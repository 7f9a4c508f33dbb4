//! What a measurement came to, as a row for people or a JSON object for machines.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::time::Duration;

use outstride::Plan;
use outstride_io::layers::Layer;
use serde::Serialize;

use super::timing::Timing;
use crate::layers::Layout;
use crate::machine::Roofline;

/// One measured layer.
#[derive(Debug, Serialize)]
pub(super) struct Measured {
    id: String,
    median_ms: f64,
    p10_ms: f64,
    p90_ms: f64,
    calls: usize,
    /// By the usual count, cropped outputs included: 2 · input elements · output channels of a group · kernel.
    gflops: f64,
    /// Input, weights and output once each.
    gbps: f64,
    /// The least time that the machine's ceilings allow.
    ceiling_ms: f64,
    /// `ceiling_ms` of `median_ms`.
    ceiling_share: f64,
    /// Which ceiling: `arithmetic` or `memory`.
    ceiling: &'static str,
    path: &'static str,
    kernel: String,
    dtype: String,
    layout: &'static str,
    threads: usize,
    /// Checking and packing the weights, once per operator.
    prepare_ms: f64,
    peak_gflops: f64,
    read_gbps: f64,
    write_gbps: f64,
}

impl Measured {
    pub(super) fn new(
        layer: &Layer,
        layout: Layout,
        threads: usize,
        plan: &Plan,
        timing: &Timing,
        prepare: Duration,
        roofline: &Roofline,
    ) -> Self {
        let bound = roofline.bound(plan);
        let (read, write) = roofline.memory();
        Measured {
            id: layer.id.clone(),
            median_ms: timing.median * 1e3,
            p10_ms: timing.p10 * 1e3,
            p90_ms: timing.p90 * 1e3,
            calls: timing.calls,
            gflops: usual_flops(layer) / timing.median / 1e9,
            gbps: plan.bytes() as f64 / timing.median / 1e9,
            ceiling_ms: bound.seconds() * 1e3,
            ceiling_share: bound.seconds() / timing.median,
            ceiling: bound.name(),
            path: plan.path().name(),
            kernel: plan.kernel().to_owned(),
            dtype: plan.dtype().to_string(),
            layout: layout.name(),
            threads,
            prepare_ms: prepare.as_secs_f64() * 1e3,
            peak_gflops: roofline.arithmetic / 1e9,
            read_gbps: read / 1e9,
            write_gbps: write / 1e9,
        }
    }

    pub(super) fn write_row(&self, out: &mut dyn Write, id_width: usize) -> io::Result<()> {
        let spread = format!("{}–{}", milliseconds(self.p10_ms), milliseconds(self.p90_ms));
        writeln!(
            out,
            "{:<id_width$}  {:>9}  {spread:>17}  {:>8.1}  {:>7.1}  {:>5.0} % {:<10}  {}",
            self.id,
            milliseconds(self.median_ms),
            self.gflops,
            self.gbps,
            self.ceiling_share * 100.0,
            self.ceiling,
            self.kernel,
        )
    }
}

/// An object of the JSON list.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Row<'a> {
    Layer(&'a Measured),
    Total(&'a Total),
}

/// All layers of a model together, in the fields of one.
#[derive(Debug, Serialize)]
pub(super) struct Total {
    id: &'static str,
    /// How many there are; no layer has this field.
    layers: usize,
    median_ms: f64,
    gflops: f64,
    gbps: f64,
    ceiling_ms: f64,
    ceiling_share: f64,
    /// All that were taken, each once.
    path: String,
    /// All that were used, each once.
    kernel: String,
    dtype: String,
    layout: &'static str,
    threads: usize,
    prepare_ms: f64,
}

impl Total {
    /// The sum of the layers, where there are any.
    pub(super) fn of(layers: &[Measured]) -> Option<Self> {
        let first = layers.first()?;
        let sum = |of: &dyn Fn(&Measured) -> f64| layers.iter().map(of).sum::<f64>();
        let each = |of: fn(&Measured) -> &str| {
            let all: BTreeSet<&str> = layers.iter().map(of).collect();
            all.into_iter().collect::<Vec<_>>().join(", ")
        };
        let (median_ms, ceiling_ms) = (sum(&|one| one.median_ms), sum(&|one| one.ceiling_ms));
        Some(Total {
            id: "total",
            layers: layers.len(),
            median_ms,
            gflops: sum(&|one| one.gflops * one.median_ms) / median_ms,
            gbps: sum(&|one| one.gbps * one.median_ms) / median_ms,
            ceiling_ms,
            ceiling_share: ceiling_ms / median_ms,
            path: each(|one| one.path),
            kernel: each(|one| &one.kernel),
            dtype: first.dtype.clone(),
            layout: first.layout,
            threads: first.threads,
            prepare_ms: sum(&|one| one.prepare_ms),
        })
    }

    pub(super) fn write_row(&self, out: &mut dyn Write, id_width: usize) -> io::Result<()> {
        writeln!(
            out,
            "{:<id_width$}  {:>9}  {:>17}  {:>8.1}  {:>7.1}  {:>5.0} %",
            self.id,
            milliseconds(self.median_ms),
            "",
            self.gflops,
            self.gbps,
            self.ceiling_share * 100.0,
        )
    }
}

/// The line above the rows.
pub(super) fn write_header(out: &mut dyn Write, id_width: usize) -> io::Result<()> {
    writeln!(
        out,
        "{:<id_width$}  {:>9}  {:>17}  {:>8}  {:>7}  {:<18}  kernel",
        "layer", "median ms", "p10–p90", "GFLOP/s", "GB/s", "ceiling reached"
    )
}

/// How peers count: every product of an input with a weight, those that land outside the output included.
fn usual_flops(layer: &Layer) -> f64 {
    let product = |sizes: &[usize]| sizes.iter().map(|&size| size as f64).product::<f64>();
    let out_channels = (layer.out_channels / layer.groups.max(1)) as f64;
    2.0 * product(&layer.input_shape()) * out_channels * product(&layer.kernel)
}

/// Three or four digits that count.
fn milliseconds(value: f64) -> String {
    match value {
        value if value < 1.0 => format!("{value:.4}"),
        value if value < 100.0 => format!("{value:.3}"),
        value => format!("{value:.1}"),
    }
}
