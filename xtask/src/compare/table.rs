//! The results as a document for people.

use std::fmt::Write as _;

use super::results::{LayerResult, Results};

/// `docs/performance.md`
pub(super) fn document(all: &[Results]) -> String {
    let mut text = String::from(INTRODUCTION);
    for results in all {
        section(&mut text, results);
    }
    text
}

const INTRODUCTION: &str = "\
# Performance

Written by `cargo xtask compare --with-torch` (with `--dtype` for other types), which anybody can run: it installs the peers
from the package registries at pinned versions, gives everybody the same layers, and lets them take turns.
[Our own types](#types-beside-each-other) beside each other and [whole models](#whole-models) are at the end.

![How many times faster than the fastest peer, per layer](performance.svg)

How to read it:

- In each round everybody has a turn on the layer, and the median of the turn's calls counts; of the rounds, everybody's best
  one: whatever else happens on the machine only ever makes a turn slower. The mean of the ratios of medians over the rounds
  stands beside that of the best ones. Compare figures of one row, never of different runs.
- All have the same number of threads, constant weights (packed in advance where a peer does that), a bias, and plain
  tensors in and out, filled with numbers from −1 to 1 (zeros are multiplied up to 1.2 times as fast by matrix tiles, which
  need less power for them). candle's operator has no bias; OpenVINO's tensors are f32 throughout, whatever it computes in.
  i8 is quantized: bytes in and out, scales per output channel.
- The *ratio* is the time of the fastest peer over ours.
- The *ceiling* is the least time that this machine allows, measured by `outstride bench` itself: arithmetic (multiply-adds
  in registers) or memory (input, weights and output once each, at the bandwidth of such a footprint).
- `onednn_plain` is oneDNN in the layouts it prefers, with the reorders that a caller of plain tensors pays; `onednn_native`
  and `onednn_nxc` use the caller's layout inside; `onednn_any` is execution alone in its preferred layouts, whatever it costs to
  get there.
";

fn section(text: &mut String, results: &Results) {
    let _ = writeln!(text, "\n## {}\n", results.title());
    let own = results.layers.iter().flat_map(|layer| &layer.own);
    let most = |field: fn(&super::outstride::Own) -> f64| own.clone().map(field).fold(0.0, f64::max);
    let _ = writeln!(
        text,
        "{}, {} threads, {} rounds; measured ceilings: {:.0} GFLOP/s, read {:.1} GB/s, write {:.1} GB/s.",
        results.cpu,
        results.threads,
        results.rounds,
        most(|own| own.peak_gflops),
        most(|own| own.read_gbps),
        most(|own| own.write_gbps),
    );
    let _ = writeln!(text, "Peers: {}.\n", results.versions.join(", "));
    let _ = writeln!(text, "{}\n", summary(results));
    let _ = writeln!(
        text,
        "| layer | GFLOP | outstride ms | GFLOP/s | of the ceiling | kernel | fastest peer | ms | ratio |"
    );
    let _ = writeln!(text, "|---|--:|--:|--:|--:|---|---|--:|--:|");
    for layer in &results.layers {
        row(text, layer);
    }
    let names = results.peer_names();
    let _ = writeln!(text, "\nEverybody's times in ms:\n");
    let _ = writeln!(text, "| layer | outstride | {} |", names.join(" | "));
    let _ = writeln!(text, "|---|--:|{}", "--:|".repeat(names.len()));
    for layer in &results.layers {
        let times = names.iter().map(|name| layer.peer_ms(name).map_or("–".to_owned(), milliseconds));
        let times = times.collect::<Vec<_>>().join(" | ");
        let _ = writeln!(text, "| {} | {} | {times} |", layer.id, milliseconds(layer.own_ms()));
    }
}

fn row(text: &mut String, layer: &LayerResult) {
    let own = layer.own_ms();
    let (ceiling, kernel) = layer.own.first().map_or(("", ""), |own| (&own.ceiling, &own.kernel));
    let (peer, peer_ms) =
        layer.fastest().map_or(("–", "–".into()), |(name, ms)| (name, milliseconds(ms)));
    let ratio = layer.ratio().map_or("–".to_owned(), |ratio| format!("{ratio:.2}"));
    let _ = writeln!(
        text,
        "| {} | {:.3} | {} | {:.0} | {:.0} % {ceiling} | `{kernel}` | {peer} | {peer_ms} | {ratio} |",
        layer.id,
        layer.gflop,
        milliseconds(own),
        layer.gflop / own * 1e3,
        layer.ceiling_share() * 100.0,
    );
}

/// The comparison in one sentence.
pub(super) fn summary(results: &Results) -> String {
    let ratios: Vec<f64> = results.layers.iter().filter_map(LayerResult::ratio).collect();
    let slower = ratios.iter().filter(|&&ratio| ratio < 1.0).count();
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    match results.mean_ratio().zip(results.mean_ratio_of_medians()) {
        Some((mean, of_medians)) => format!(
            "{}: {mean:.2}× the speed of the fastest peer of each layer in the geometric mean of {} layers ({of_medians:.2}× by \
             medians of the rounds), {least:.2}× at least; slower on {slower}.",
            results.title(),
            ratios.len()
        ),
        None => format!("{}: no peer ran any of the layers.", results.title()),
    }
}

pub(super) fn milliseconds(value: f64) -> String {
    match value {
        value if value < 1.0 => format!("{value:.3}"),
        value if value < 100.0 => format!("{value:.2}"),
        value => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::example;
    use super::*;

    #[test]
    fn the_document_holds_every_layer_and_the_summary() {
        let text = document(&[example()]);
        let won =
            "| won | 0.500 | 2.00 | 250 | 80 % arithmetic | `f32_panel_14x2_avx512` | ort | 8.00 | 4.00 |";
        assert!(text.contains(won), "{text}");
        assert!(text.contains("| lost | 2.00 | 1.00 | 100 |"), "{text}");
        let summary = "Channels first, f32: 1.41× the speed of the fastest peer of each layer in the geometric mean of 2 layers (1.89× \
                       by medians of the rounds), 0.50× at least; slower on 1.";
        assert!(text.contains(summary), "{text}");
    }
}
