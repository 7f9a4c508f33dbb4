//! Two axes: how many products meet in each output.

use outstride::Axis;

use super::svg::{Style, Svg};
use super::taps;
use crate::output::sizes;

const CELL: f64 = 26.0;
const LEFT: f64 = 30.0;
const TOP: f64 = 50.0;

/// The picture of a plane: each output with the number of products that meet there, the darker the fewer.
pub(super) fn draw(name: &str, rows: &Axis, columns: &Axis) -> String {
    let counts = |axis: &Axis| (0..axis.output).map(|output| taps(axis, output)).collect::<Vec<_>>();
    let (down, across) = (counts(rows), counts(columns));
    let most = |counts: &[usize]| counts.iter().copied().max().unwrap_or(0);
    let most = (most(&down) * most(&across)).max(1);
    let title = format!(
        "{name}: input {}, kernel {}, stride {}, output {}",
        sizes(&[rows.input, columns.input]),
        sizes(&[rows.kernel, columns.kernel]),
        sizes(&[rows.stride, columns.stride]),
        sizes(&[rows.output, columns.output])
    );
    let mut svg = Svg::default();
    svg.text(8.0, 20.0, &title);
    for (column, _) in across.iter().enumerate() {
        svg.centred(LEFT + (column as f64 + 0.5) * CELL, TOP - 6.0, &column.to_string());
    }
    for (row, &vertical) in down.iter().enumerate() {
        let y = TOP + row as f64 * CELL;
        svg.centred(LEFT / 2.0, y + 17.0, &row.to_string());
        for (column, &horizontal) in across.iter().enumerate() {
            let count = vertical * horizontal;
            // From white, where most products meet, to a grey on which black numbers are still readable.
            let style = match count {
                0 => Style::Hatched,
                count => Style::Shade(0x80 + (0x7f * count / most) as u8),
            };
            let x = LEFT + column as f64 * CELL;
            svg.rect(x, y, CELL, CELL, style);
            svg.centred(x + CELL / 2.0, y + 17.0, &count.to_string());
        }
    }
    let bottom = TOP + down.len() as f64 * CELL;
    svg.text(
        8.0,
        bottom + 20.0,
        "numbers: products that meet in an output, per input channel; hatched: the bias alone",
    );
    svg.finish(LEFT + across.len() as f64 * CELL + 20.0, bottom + 32.0, &title)
}
