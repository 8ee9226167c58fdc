//! A drawing as SVG text: simple shapes, reproducible bytes.

use std::fmt::Write;

/// Number of colours for streams; see the style sheet below.
pub const N_COLOURS: usize = 8;

/// Colours that are distinguishable on a light and on a dark page, also by most colour-blind
/// readers (Okabe and Ito, 2008; darkened for text on white, lightened for text on black).
const LIGHT: [&str; N_COLOURS] = [
    "#0067a8", "#c04a00", "#00805c", "#a8458a", "#8a6d00", "#4a7fb0", "#5c5c5c", "#7a3fb0",
];
const DARK: [&str; N_COLOURS] = [
    "#56b4e9", "#f0894a", "#2cc79a", "#dd8fc2", "#e6c84a", "#9cc7ea", "#b4b4b4", "#bb92ea",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// Shapes in drawing order, and their bounding box.
#[derive(Clone, Debug, Default)]
pub struct Svg {
    body: String,
    width: f64,
    height: f64,
}

impl Svg {
    pub fn new() -> Self {
        Self::default()
    }

    fn cover(&mut self, x: f64, y: f64) {
        self.width = self.width.max(x);
        self.height = self.height.max(y);
    }

    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.cover(from.0.max(to.0), from.1.max(to.1));
        let _ = writeln!(
            self.body,
            r#"<line class="{class}" x1="{}" y1="{}" x2="{}" y2="{}"/>"#,
            num(from.0),
            num(from.1),
            num(to.0),
            num(to.1)
        );
    }

    /// A line with a head at its end, in the colour of a stream.
    pub fn arrow(&mut self, colour: usize, class: &str, from: (f64, f64), to: (f64, f64)) {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length = dx.hypot(dy).max(1e-6);
        let (ux, uy) = (dx / length, dy / length);
        let head = 6.5_f64.min(length);
        let base = (to.0 - ux * head, to.1 - uy * head);
        self.line(&format!("{class} s{}", colour % N_COLOURS), from, base);
        self.head(colour, class, base, to);
    }

    fn head(&mut self, colour: usize, class: &str, base: (f64, f64), tip: (f64, f64)) {
        let (dx, dy) = (tip.0 - base.0, tip.1 - base.1);
        let length = dx.hypot(dy).max(1e-6);
        let (nx, ny) = (-dy / length * 3.2, dx / length * 3.2);
        let _ = writeln!(
            self.body,
            r#"<polygon class="{class} f{}" points="{},{} {},{} {},{}"/>"#,
            colour % N_COLOURS,
            num(tip.0),
            num(tip.1),
            num(base.0 + nx),
            num(base.1 + ny),
            num(base.0 - nx),
            num(base.1 - ny)
        );
    }

    /// A cubic curve with a head, for links that jump or return.
    pub fn curve(
        &mut self,
        colour: usize,
        class: &str,
        from: (f64, f64),
        by: ((f64, f64), (f64, f64)),
        to: (f64, f64),
    ) {
        let (dx, dy) = (to.0 - by.1.0, to.1 - by.1.1);
        let length = dx.hypot(dy).max(1e-6);
        let base = (to.0 - dx / length * 6.5, to.1 - dy / length * 6.5);
        self.cover(from.0.max(to.0), from.1.max(to.1));
        let _ = writeln!(
            self.body,
            r#"<path class="{class} s{}" d="M {} {} C {} {}, {} {}, {} {}"/>"#,
            colour % N_COLOURS,
            num(from.0),
            num(from.1),
            num(by.0.0),
            num(by.0.1),
            num(by.1.0),
            num(by.1.1),
            num(base.0),
            num(base.1)
        );
        self.head(colour, class, base, to);
    }

    pub fn rect(&mut self, class: &str, x: f64, y: f64, width: f64, height: f64) {
        self.cover(x + width, y + height);
        let _ = writeln!(
            self.body,
            r#"<rect class="{class}" x="{}" y="{}" width="{}" height="{}" rx="3"/>"#,
            num(x),
            num(y),
            num(width),
            num(height)
        );
    }

    pub fn circle(&mut self, class: &str, centre: (f64, f64), radius: f64) {
        self.cover(centre.0 + radius, centre.1 + radius);
        let _ = writeln!(
            self.body,
            r#"<circle class="{class}" cx="{}" cy="{}" r="{}"/>"#,
            num(centre.0),
            num(centre.1),
            num(radius)
        );
    }

    /// A square that stands on a corner.
    pub fn diamond(&mut self, class: &str, centre: (f64, f64), radius: f64) {
        let ((x, y), r) = (centre, radius);
        self.cover(x + r, y + r);
        let corners = [(x - r, y), (x, y - r), (x + r, y), (x, y + r)];
        let corners = corners.map(|(x, y)| format!("{},{}", num(x), num(y)));
        let corners = corners.join(" ");
        let _ = writeln!(
            self.body,
            r#"<polygon class="{class}" points="{corners}"/>"#
        );
    }

    pub fn text(&mut self, class: &str, anchor: Anchor, at: (f64, f64), text: &str) {
        // A generous guess at the width of a letter in a sans-serif face of 12 pixels.
        let width = text.chars().count() as f64 * 6.6;
        let (right, anchor) = match anchor {
            Anchor::Start => (at.0 + width, "start"),
            Anchor::Middle => (at.0 + width / 2.0, "middle"),
            Anchor::End => (at.0, "end"),
        };
        self.cover(right, at.1 + 4.0);
        let _ = writeln!(
            self.body,
            r#"<text class="{class}" text-anchor="{anchor}" x="{}" y="{}">{}</text>"#,
            num(at.0),
            num(at.1),
            escape(text)
        );
    }

    /// The whole file.
    pub fn finish(self, title: &str) -> String {
        let (width, height) = ((self.width + 24.0).ceil(), (self.height + 20.0).ceil());
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\">\n<title>{}</title>\n<style>\n{}</style>\n\
             <rect class=\"page\" x=\"0\" y=\"0\" width=\"{width}\" height=\"{height}\"/>\n{}</svg>\n",
            escape(title),
            style_sheet(),
            self.body
        )
    }
}

fn style_sheet() -> String {
    let mut css = String::from(
        "text { font-family: sans-serif; font-size: 12px; fill: #1c1c1c; }\n\
         .small { font-size: 10.5px; }\n\
         .title { font-size: 17px; font-weight: bold; }\n\
         .head { font-size: 13.5px; font-weight: bold; }\n\
         .faint { fill: #666666; }\n\
         .page { fill: #ffffff; }\n\
         .point { fill: #ffffff; stroke: #333333; stroke-width: 1.3; }\n\
         .copy { stroke-dasharray: 3 2; }\n\
         .band { stroke: #e9e4d4; stroke-width: 26; stroke-linecap: round; }\n\
         .wave { stroke: #7d7d7d; stroke-width: 1; stroke-dasharray: 4 3; }\n\
         .axis { stroke: #9a9a9a; stroke-width: 1; }\n\
         .pe { fill: #f6f3ea; stroke: #333333; stroke-width: 1.3; }\n\
         .busy { fill: #f6f3ea; stroke: #9a9381; stroke-width: 1; }\n\
         .idle { fill: none; stroke: #d8d8d8; stroke-width: 1; stroke-dasharray: 2 3; }\n\
         .reg { fill: #ffffff; stroke-width: 1.2; }\n\
         .dep, .flow, .bus { stroke-width: 1.6; fill: none; }\n\
         .flow { opacity: 0.75; }\n\
         .hot { stroke-width: 2.6; }\n",
    );
    let colours = |css: &mut String, palette: &[&str; N_COLOURS]| {
        for (n, colour) in palette.iter().enumerate() {
            let _ = writeln!(css, ".s{n} {{ stroke: {colour}; }}");
            let _ = writeln!(css, ".f{n}, text.t{n} {{ fill: {colour}; }}");
        }
    };
    colours(&mut css, &LIGHT);
    css.push_str(
        "@media (prefers-color-scheme: dark) {\n\
         text { fill: #e8e8e8; }\n\
         .faint { fill: #a0a0a0; }\n\
         .page { fill: #16181c; }\n\
         .point { fill: #16181c; stroke: #d0d0d0; }\n\
         .band { stroke: #33352f; }\n\
         .wave { stroke: #9a9a9a; }\n\
         .pe { fill: #24262b; stroke: #d0d0d0; }\n\
         .busy { fill: #24262b; stroke: #6d7078; }\n\
         .idle { stroke: #3c3f46; }\n\
         .reg { fill: #16181c; }\n",
    );
    colours(&mut css, &DARK);
    css.push_str("}\n");
    css
}

/// At most two decimals: the same text on every machine.
fn num(x: f64) -> String {
    let text = format!("{x:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_numbers_are_short() {
        let mut svg = Svg::new();
        svg.text("head", Anchor::Start, (1.0, 2.125), "a < b & c");
        let file = svg.finish("t");
        assert!(file.contains("a &lt; b &amp; c"));
        assert!(file.contains(r#"x="1" y="2.13""#) || file.contains(r#"x="1" y="2.12""#));
    }
}
