//! Data for stdout: columns for people, JSON for machines.

use std::io::{self, Write};

use anyhow::Result;
use serde::Serialize;

/// Writes rows in columns as wide as they need to be; the last one is left ragged.
pub(crate) fn write_columns(
    out: &mut dyn Write,
    header: &[String],
    rows: impl Iterator<Item = Vec<String>>,
) -> io::Result<()> {
    let rows: Vec<Vec<String>> = [header.to_vec()].into_iter().chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

/// Writes one JSON document on one line.
pub(crate) fn write_json(out: &mut dyn Write, value: &impl Serialize) -> Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    Ok(writeln!(out)?)
}

/// Sizes as people write them, such as 1×16×28×28.
pub(crate) fn sizes(shape: &[usize]) -> String {
    match shape {
        [] => "scalar".to_owned(),
        _ => shape.iter().map(ToString::to_string).collect::<Vec<_>>().join("×"),
    }
}
