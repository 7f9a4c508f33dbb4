//! The report for people.

use std::io::{self, Write};

use super::report::{LayerReport, Meaning, Report, TensorReport};
use crate::output::{sizes, write_columns};

pub(super) fn write(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    let mut facts = vec![report.format.to_owned()];
    facts.extend(report.producer.clone());
    facts.extend(report.opsets.iter().map(|(domain, version)| match domain.as_str() {
        "" => format!("opset {version}"),
        domain => format!("{domain} {version}"),
    }));
    facts.push(plural(report.nodes, "node"));
    writeln!(out, "model   {}: {}", report.model, facts.join(", "))?;
    writeln!(
        out,
        "layers  {}, {} weights, {}",
        plural(report.layers.len(), "transposed convolution"),
        report.weights,
        flops(report.flops)
    )?;
    for layer in &report.layers {
        writeln!(out)?;
        write_layer(out, layer)?;
    }
    Ok(())
}

fn write_layer(out: &mut dyn Write, layer: &LayerReport) -> io::Result<()> {
    let version = layer.version.map_or(String::new(), |version| format!(" {version}"));
    writeln!(out, "{}  {} ({}{version})", layer.name, layer.op, layer.dialect)?;
    for (role, tensor) in [("input", &layer.input), ("filter", &layer.filter), ("bias", &layer.bias)] {
        if let Some(tensor) = tensor {
            writeln!(out, "  {role:<11} {}", describe(tensor))?;
        }
    }
    let attributes = layer.attributes.iter().map(|(name, value)| format!("{name}={}", plain(value)));
    writeln!(out, "  attributes  {}", or_none(attributes.collect::<Vec<_>>().join(" ")))?;
    if let Some(meaning) = &layer.meaning {
        write_meaning(out, layer, meaning)?;
    }
    if let Some(error) = &layer.error {
        writeln!(out, "  error       {error}")?;
    }
    for remark in &layer.remarks {
        writeln!(out, "  remark      {remark}")?;
    }
    Ok(())
}

fn write_meaning(out: &mut dyn Write, layer: &LayerReport, meaning: &Meaning) -> io::Result<()> {
    let batch =
        meaning.assumed_batch.as_ref().map_or(String::new(), |open| format!(", batch `{open}` taken as 1"));
    writeln!(out, "  output      {} {}{batch}", sizes(&meaning.output), meaning.layout)?;
    let weights = layer.weights.unwrap_or_default();
    let groups = if meaning.groups == 1 { String::new() } else { format!(" in {} groups", meaning.groups) };
    writeln!(out, "  cost        {}, {weights} weights{groups}", flops(meaning.flops))?;
    writeln!(out, "  pads        {}", meaning.pads)?;
    if meaning.activation != "Identity" {
        writeln!(out, "  activation  {}", meaning.activation)?;
    }
    let header = ["  axis", "input", "kernel", "stride", "dilation", "full", "begin", "end", "output"]
        .map(str::to_owned);
    let rows = meaning.axes.iter().enumerate().map(|(index, axis)| {
        let numbers = [
            axis.input as i64,
            axis.kernel as i64,
            axis.stride as i64,
            axis.dilation as i64,
            axis.full,
            axis.pad_begin,
            axis.pad_end,
            axis.output as i64,
        ];
        [format!("  {index}")].into_iter().chain(numbers.map(|number| number.to_string())).collect()
    });
    write_columns(out, &header, rows)
}

fn describe(tensor: &TensorReport) -> String {
    let shape = match &tensor.shape {
        Some(dims) => dims.iter().map(plain).collect::<Vec<_>>().join("×"),
        None => "of unknown shape".to_owned(),
    };
    let mut words = vec![tensor.name.clone(), shape];
    words.extend(tensor.dtype.clone());
    words.extend(tensor.layout.clone());
    if let Some(stored) = tensor.stored.as_ref().filter(|stored| *stored != "model") {
        words.push(format!("in {stored}"));
    }
    words.join(" ")
}

fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn or_none(text: String) -> String {
    if text.is_empty() { "none".to_owned() } else { text }
}

fn plural(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Floating-point operations with a unit that leaves few digits.
fn flops(count: f64) -> String {
    for (unit, size) in [("GFLOP", 1e9), ("MFLOP", 1e6), ("kFLOP", 1e3)] {
        if count >= size {
            return format!("{:.2} {unit}", count / size);
        }
    }
    format!("{count} FLOP")
}
