//! The few shapes that the pictures are made of.

use std::fmt::Write as _;

/// A picture in the making.
#[derive(Default)]
pub(super) struct Svg {
    body: String,
}

/// How a box is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// White.
    Plain,
    /// Grey, the darker the more.
    Shade(u8),
    /// Hatched: holds nothing but the bias.
    Hatched,
    /// Dashed: cropped away.
    Dashed,
}

impl Svg {
    pub(super) fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, style: Style) {
        let fill = match style {
            Style::Plain | Style::Dashed => "#fff".to_owned(),
            Style::Shade(grey) => format!("#{grey:02x}{grey:02x}{grey:02x}"),
            Style::Hatched => "url(#hatch)".to_owned(),
        };
        let dashes = if style == Style::Dashed { " stroke-dasharray=\"3 3\"" } else { "" };
        self.add(&format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{fill}\" stroke=\"#000\"{dashes}/>"
        ));
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        self.add(&format!(
            "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{class}\"/>",
            from.0, from.1, to.0, to.1
        ));
    }

    /// Text around a point.
    pub(super) fn centred(&mut self, x: f64, y: f64, text: &str) {
        self.add(&format!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{}</text>", escape(text)));
    }

    /// Text from a point on.
    pub(super) fn text(&mut self, x: f64, y: f64, text: &str) {
        self.add(&format!("<text x=\"{x}\" y=\"{y}\">{}</text>", escape(text)));
    }

    fn add(&mut self, element: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.body, "{element}");
    }

    /// The whole file, at least as wide as its title and a line of legend.
    pub(super) fn finish(self, width: f64, height: f64, title: &str) -> String {
        const LEGEND: usize = 90;
        const LETTER: f64 = 6.5;
        let width = width.max(16.0 + LETTER * title.chars().count().max(LEGEND) as f64);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
             <title>{}</title>\n<style>.tap{{stroke:#000;stroke-width:1}}.lost{{stroke:#000;stroke-width:1;\
             stroke-dasharray:2 3}}</style>\n<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" \
             patternUnits=\"userSpaceOnUse\"><rect width=\"6\" height=\"6\" fill=\"#fff\"/><path d=\"M0 6L6 0\" \
             stroke=\"#000\"/></pattern></defs>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{}</svg>\n",
            escape(title),
            self.body
        )
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
