//! The ratios as a picture: one bar per layer, on a logarithmic scale around the fastest peer.

use std::fmt::Write as _;

use super::results::Results;

const ROW: f64 = 17.0;
const LABELS: f64 = 150.0;
const BARS: f64 = 330.0;
const TOP: f64 = 58.0;
const BOTTOM: f64 = 34.0;

/// `docs/performance.svg`: layouts and types side by side.
pub(super) fn svg(all: &[Results]) -> String {
    let rows = all.iter().map(|results| results.layers.len()).max().unwrap_or(0);
    let (width, height) =
        ((LABELS + BARS + 30.0) * all.len() as f64 + 20.0, TOP + ROW * rows as f64 + BOTTOM);
    let mut text = String::new();
    let _ = writeln!(
        text,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\" \
         font-size=\"11\">"
    );
    let _ = writeln!(text, "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>");
    for (index, results) in all.iter().enumerate() {
        panel(&mut text, results, 10.0 + index as f64 * (LABELS + BARS + 30.0));
    }
    text.push_str("</svg>\n");
    text
}

fn panel(text: &mut String, results: &Results, left: f64) {
    let ratios = results.layers.iter().filter_map(|layer| layer.ratio());
    let (low, high) = ratios.fold((0.5f64, 2.0f64), |(low, high), ratio| (low.min(ratio), high.max(ratio)));
    // Whole powers of two at both ends.
    let (low, high) = (low.log2().floor(), high.log2().ceil());
    let axis = left + LABELS;
    let at = |ratio: f64| axis + (ratio.log2() - low) / (high - low) * BARS;
    let title = results.title();
    let mean = results.mean_ratio().map_or(String::new(), |mean| format!(", geometric mean {mean:.2}×"));
    let _ = writeln!(
        text,
        "<text x=\"{axis:.1}\" y=\"20\" font-size=\"14\" font-weight=\"bold\">{title}{mean}</text>"
    );
    let _ = writeln!(
        text,
        "<text x=\"{axis:.1}\" y=\"36\" fill=\"#555\">times faster than the fastest peer</text>"
    );
    let bottom = TOP + ROW * results.layers.len() as f64;
    for power in low as i32..=high as i32 {
        let (x, ratio) = (at(2f64.powi(power)), 2f64.powi(power));
        let (stroke, wide) = if power == 0 { ("#222", 1.5) } else { ("#ddd", 1.0) };
        let _ = writeln!(
            text,
            "<line x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" stroke=\"{stroke}\" stroke-width=\"{wide}\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#555\">{ratio}×</text>",
            TOP - 4.0,
            bottom + 16.0
        );
    }
    for (index, layer) in results.layers.iter().enumerate() {
        let y = TOP + ROW * index as f64;
        let _ = writeln!(
            text,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            axis - 6.0,
            y + 12.0,
            escaped(&layer.id)
        );
        let (Some(ratio), Some((peer, _))) = (layer.ratio(), layer.fastest()) else { continue };
        let (from, to) = (at(1.0).min(at(ratio)), at(1.0).max(at(ratio)));
        let color = if ratio >= 1.0 { "#2a7f62" } else { "#c0492b" };
        let _ = writeln!(
            text,
            "<rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{color}\">\
             <title>{}: {ratio:.2}× {}</title></rect>",
            y + 2.0,
            to - from,
            ROW - 4.0,
            escaped(&layer.id),
            escaped(peer)
        );
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::example;
    use super::*;

    #[test]
    fn every_layer_has_a_bar_on_its_side_of_one() {
        let picture = svg(&[example()]);
        assert_eq!(picture.matches("<rect x=").count(), 2);
        assert_eq!(picture.matches("#2a7f62").count(), 1);
        assert_eq!(picture.matches("#c0492b").count(), 1);
        assert!(picture.contains("won: 4.00× ort"));
        assert_eq!(escaped("<a&b>"), "&lt;a&amp;b&gt;");
    }
}
