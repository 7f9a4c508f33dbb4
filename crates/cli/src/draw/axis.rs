//! One axis: which inputs reach which outputs through which taps.

use outstride::Axis;

use super::svg::{Style, Svg};
use super::taps;

const CELL: f64 = 30.0;
const LEFT: f64 = 70.0;
const INPUTS: f64 = 48.0;
const OUTPUTS: f64 = 150.0;

/// The picture of an axis: inputs above, taps as lines, the full extent below with what is cropped of it, and under each
/// output its index, its phase and the number of taps that meet there.
pub(super) fn draw(name: &str, axis: &Axis) -> String {
    let begin = axis.pad_begin;
    let (first, last) = (begin.min(0), axis.full().max(begin + axis.output as i64));
    let x = |position: i64| LEFT + (position - first) as f64 * CELL;
    let inside = |position: i64| position >= begin && position < begin + axis.output as i64;
    let mut svg = Svg::default();
    svg.text(8.0, 20.0, &title(name, axis));
    svg.text(8.0, INPUTS + 19.0, "input");
    svg.text(8.0, OUTPUTS + 19.0, "output");
    svg.text(8.0, OUTPUTS + 46.0, "index");
    svg.text(8.0, OUTPUTS + 62.0, "phase");
    svg.text(8.0, OUTPUTS + 78.0, "taps");
    let (stride, dilation) = (axis.stride as i64, axis.dilation as i64);
    for input in 0..axis.input as i64 {
        for tap in 0..axis.kernel as i64 {
            let position = input * stride + tap * dilation;
            let class = if inside(position) { "tap" } else { "lost" };
            let from = (x(input * stride) + CELL / 2.0, INPUTS + CELL);
            svg.line(from, (x(position) + CELL / 2.0, OUTPUTS), class);
        }
    }
    for input in 0..axis.input as i64 {
        svg.rect(x(input * stride) + 2.0, INPUTS, CELL - 4.0, CELL, Style::Plain);
        svg.centred(x(input * stride) + CELL / 2.0, INPUTS + 19.0, &format!("x{input}"));
    }
    let most = (0..axis.output).map(|output| taps(axis, output)).max().unwrap_or(0).max(1);
    for position in first..last {
        let centre = x(position) + CELL / 2.0;
        if !inside(position) {
            svg.rect(x(position), OUTPUTS, CELL, CELL, Style::Dashed);
            svg.centred(centre, OUTPUTS + 19.0, "–");
            continue;
        }
        let output = (position - begin) as usize;
        let count = taps(axis, output);
        svg.rect(x(position), OUTPUTS, CELL, CELL, if count == 0 { Style::Hatched } else { Style::Plain });
        svg.centred(centre, OUTPUTS + 46.0, &output.to_string());
        svg.centred(centre, OUTPUTS + 62.0, &position.rem_euclid(stride).to_string());
        svg.centred(centre, OUTPUTS + 78.0, &count.to_string());
        let height = 40.0 * count as f64 / most as f64;
        svg.rect(x(position) + 6.0, OUTPUTS + 86.0 + 40.0 - height, CELL - 12.0, height, Style::Shade(0x99));
    }
    let legend = "dashed: cropped by the pads; hatched: no tap, the bias alone; bars: how many taps meet";
    svg.text(8.0, OUTPUTS + 148.0, legend);
    svg.finish(x(last) + 20.0, OUTPUTS + 160.0, &title(name, axis))
}

fn title(name: &str, axis: &Axis) -> String {
    format!(
        "{name}: input {}, kernel {}, stride {}, dilation {}, pads {} and {}, output {}",
        axis.input,
        axis.kernel,
        axis.stride,
        axis.dilation,
        axis.pad_begin,
        axis.pad_end(),
        axis.output
    )
}
