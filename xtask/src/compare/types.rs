//! `cargo xtask compare --types`: outstride's own types beside each other.

use std::fmt::Write as _;

use anyhow::Result;
use outstride_io::layers::Layer;

use super::options::{Layout, Options};
use super::outstride::Outstride;
use super::results::{best, cpu, geometric_mean};
use super::section::TYPES;
use super::selected;
use super::table::milliseconds;
use crate::step::root;

/// As `outstride bench` names them. At first f32 again, without matrix tiles.
const NAMES: [&str; 5] = [BY_VECTORS, "f32", "f16", "bf16", "i8"];
const BY_VECTORS: &str = "f32 by vectors";

/// Layers with as many channels on both sides are bound by arithmetic.
const MANY_CHANNELS: usize = 64;

/// One layer: the milliseconds of every type.
struct Row {
    id: String,
    has_many_channels: bool,
    ms: [f64; NAMES.len()],
}

impl Row {
    fn times_faster(&self, of: &str, than: &str) -> f64 {
        let ms =
            |name: &str| NAMES.iter().position(|known| *known == name).map_or(f64::NAN, |at| self.ms[at]);
        ms(than) / ms(of)
    }
}

/// Measures, and puts what came out in the place of what is there.
pub(super) fn run(options: &Options) -> Result<()> {
    let layers = selected(options)?;
    let outstride = Outstride::build()?;
    let by_vectors = outstride.capped("avx512");
    let mut body =
        format!("{INTRODUCTION}{}, {} threads, {} rounds.\n", cpu(), options.threads, options.rounds);
    for &layout in &options.layouts {
        let rows = layers.iter().map(|layer| measure(options, layout, layer, [&outstride, &by_vectors]));
        table(&mut body, layout, &rows.collect::<Result<Vec<_>>>()?);
    }
    if !options.is_complete() {
        println!("{body}");
        return Ok(());
    }
    let file = root().join("docs/performance.md");
    TYPES.write(&file, &body)?;
    println!("{body}\n{}", file.display());
    Ok(())
}

fn measure(
    options: &Options,
    layout: Layout,
    layer: &Layer,
    [outstride, by_vectors]: [&Outstride; 2],
) -> Result<Row> {
    let mut times = NAMES.map(|_| Vec::new());
    for _ in 0..options.rounds {
        for (name, times) in NAMES.iter().zip(&mut times) {
            let (contestant, dtype) =
                if *name == BY_VECTORS { (by_vectors, "f32") } else { (outstride, *name) };
            times.push(contestant.measure(options, layout.name(), dtype, layer)?.median_ms);
        }
    }
    let row = Row {
        id: layer.id.clone(),
        has_many_channels: layer.in_channels.min(layer.out_channels) >= MANY_CHANNELS && layer.groups == 1,
        ms: times.map(|times| best(&times)),
    };
    eprintln!("{} {:<20} {:?}", layout.name(), row.id, row.ms);
    Ok(row)
}

fn table(text: &mut String, layout: Layout, rows: &[Row]) {
    let heading = layout.title();
    let of_many = |of: &'static str, than: &'static str| {
        let many = rows.iter().filter(|row| row.has_many_channels);
        geometric_mean(many.map(|row| row.times_faster(of, than)))
            .map_or("–".to_owned(), |mean| format!("{mean:.2}×"))
    };
    let _ = writeln!(
        text,
        "\n{heading}: of the layers with {MANY_CHANNELS} channels and more on both sides, bf16 is {} as fast as f32 in the \
         geometric mean, f16 {}, and i8 {} as fast as bf16. Against f32 by vectors, f32 is {} as fast, f16 {}, and bf16 {}.\n",
        of_many("bf16", "f32"),
        of_many("f16", "f32"),
        of_many("i8", "bf16"),
        of_many("f32", BY_VECTORS),
        of_many("f16", BY_VECTORS),
        of_many("bf16", BY_VECTORS),
    );
    let _ = writeln!(text, "| layer | {} ms | bf16 : f32 | f16 : f32 | i8 : bf16 |", NAMES.join(" ms | "));
    let _ = writeln!(text, "|---|{}", "--:|".repeat(NAMES.len() + 3));
    for row in rows {
        let _ = writeln!(
            text,
            "| {} | {} | {:.2} | {:.2} | {:.2} |",
            row.id,
            row.ms.map(milliseconds).join(" | "),
            row.times_faster("bf16", "f32"),
            row.times_faster("f16", "f32"),
            row.times_faster("i8", "bf16"),
        );
    }
}

const INTRODUCTION: &str = "
Written by `cargo xtask compare --types`: outstride's own types take turns on every layer. Times are those of the best round;
ratios say how many times faster the first is. `i8` is the quantized operator: bytes in, bytes out. `f32 by vectors` is f32 with
`OUTSTRIDE_ISA=avx512`: what it would be without matrix tiles, which multiply f32 as well.

";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_layer_and_the_mean_of_those_with_many_channels() {
        let row = |id: &str, has_many_channels, ms| Row { id: id.into(), has_many_channels, ms };
        let mut text = String::new();
        table(
            &mut text,
            Layout::Ncx,
            &[row("many", true, [16.0, 8.0, 4.0, 2.0, 1.0]), row("few", false, [1.0; 5])],
        );
        assert!(
            text.contains("bf16 is 4.00× as fast as f32 in the geometric mean, f16 2.00×, and i8 2.00×"),
            "{text}"
        );
        assert!(text.contains("| many | 16.00 | 8.00 | 4.00 | 2.00 | 1.00 | 4.00 | 2.00 | 2.00 |"), "{text}");
        assert!(text.contains("f32 is 2.00× as fast, f16 4.00×, and bf16 8.00×"), "{text}");
        assert!(text.contains("| few |"), "{text}");
    }
}
