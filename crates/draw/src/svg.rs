//! A drawing as SVG text: simple shapes, reproducible bytes.
//!
//! A drawing is a list of shapes until it is written, so that panels are drawn at the origin,
//! measured, and moved to their place.

use std::fmt::Write;

mod text_width;

pub use text_width::text_width;

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

/// The white space around a drawing.
const MARGIN: f64 = 24.0;

pub type Position = (f64, f64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A box around shapes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

impl Area {
    /// The box between two corners.
    pub fn of(from: Position, to: Position) -> Area {
        Area::around(&[from, to], 0.0)
    }

    /// The box that is larger on all sides.
    pub fn grown(self, by: f64) -> Area {
        Area {
            left: self.left - by,
            top: self.top - by,
            right: self.right + by,
            bottom: self.bottom + by,
        }
    }

    pub fn contains(&self, other: &Area) -> bool {
        self.with(*other) == *self
    }

    fn around(points: &[Position], by: f64) -> Area {
        let fold = |f: fn(f64, f64) -> f64, start: f64, of: fn(&Position) -> f64| {
            points.iter().map(of).fold(start, f)
        };
        Area {
            left: fold(f64::min, f64::INFINITY, |p| p.0) - by,
            top: fold(f64::min, f64::INFINITY, |p| p.1) - by,
            right: fold(f64::max, f64::NEG_INFINITY, |p| p.0) + by,
            bottom: fold(f64::max, f64::NEG_INFINITY, |p| p.1) + by,
        }
    }

    fn with(self, other: Area) -> Area {
        Area {
            left: self.left.min(other.left),
            top: self.top.min(other.top),
            right: self.right.max(other.right),
            bottom: self.bottom.max(other.bottom),
        }
    }

    pub fn overlaps(&self, other: &Area) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }
}

/// The size of the letters of a class, and whether they are bold; see the style sheet.
fn face(class: &str) -> (f64, bool) {
    let has = |name: &str| class.split(' ').any(|c| c == name);
    match () {
        () if has("title") => (17.0, true),
        () if has("head") => (13.5, true),
        () if has("small") => (10.5, false),
        () => (12.0, false),
    }
}

/// Where a text of a class lies.
pub fn text_area(class: &str, anchor: Anchor, at: Position, text: &str) -> Area {
    let (size, bold) = face(class);
    let width = text_width(text, size, bold);
    let left = match anchor {
        Anchor::Start => at.0,
        Anchor::Middle => at.0 - width / 2.0,
        Anchor::End => at.0 - width,
    };
    Area {
        left,
        top: at.1 - 0.8 * size,
        right: left + width,
        bottom: at.1 + 0.25 * size,
    }
}

#[derive(Clone, Debug)]
enum Shape {
    Line(Position, Position),
    /// The ends, and the points by which a cubic curve leaves and arrives.
    Curve([Position; 4]),
    Polygon(Vec<Position>),
    Rect(Position, f64, f64),
    Circle(Position, f64),
    Text(Anchor, Position, String),
}

#[derive(Clone, Debug)]
struct Item {
    class: String,
    shape: Shape,
}

impl Item {
    fn area(&self) -> Area {
        match &self.shape {
            Shape::Line(from, to) => Area::around(&[*from, *to], 1.0),
            // A cubic curve lies within the hull of its points.
            Shape::Curve(points) => Area::around(points, 1.5),
            Shape::Polygon(points) => Area::around(points, 1.0),
            Shape::Rect((x, y), width, height) => {
                Area::around(&[(*x, *y), (x + width, y + height)], 1.0)
            }
            Shape::Circle(centre, radius) => Area::around(&[*centre], radius + 1.5),
            Shape::Text(anchor, at, text) => text_area(&self.class, *anchor, *at, text),
        }
    }

    fn moved(mut self, dx: f64, dy: f64) -> Item {
        let by = |p: &mut Position| *p = (p.0 + dx, p.1 + dy);
        match &mut self.shape {
            Shape::Line(from, to) => {
                by(from);
                by(to);
            }
            Shape::Curve(points) => points.iter_mut().for_each(by),
            Shape::Polygon(points) => points.iter_mut().for_each(by),
            Shape::Rect(at, ..) | Shape::Circle(at, _) | Shape::Text(_, at, _) => by(at),
        }
        self
    }

    fn write(&self, out: &mut String) {
        let class = &self.class;
        let pair = |p: &Position| format!("{},{}", num(p.0), num(p.1));
        let line = match &self.shape {
            Shape::Line(from, to) => format!(
                r#"<line class="{class}" x1="{}" y1="{}" x2="{}" y2="{}"/>"#,
                num(from.0),
                num(from.1),
                num(to.0),
                num(to.1)
            ),
            Shape::Curve([from, leave, arrive, to]) => format!(
                r#"<path class="{class}" d="M {} {} C {} {}, {} {}, {} {}"/>"#,
                num(from.0),
                num(from.1),
                num(leave.0),
                num(leave.1),
                num(arrive.0),
                num(arrive.1),
                num(to.0),
                num(to.1)
            ),
            Shape::Polygon(points) => {
                let points: Vec<String> = points.iter().map(pair).collect();
                format!(
                    r#"<polygon class="{class}" points="{}"/>"#,
                    points.join(" ")
                )
            }
            Shape::Rect((x, y), width, height) => format!(
                r#"<rect class="{class}" x="{}" y="{}" width="{}" height="{}" rx="3"/>"#,
                num(*x),
                num(*y),
                num(*width),
                num(*height)
            ),
            Shape::Circle((x, y), radius) => format!(
                r#"<circle class="{class}" cx="{}" cy="{}" r="{}"/>"#,
                num(*x),
                num(*y),
                num(*radius)
            ),
            Shape::Text(anchor, (x, y), text) => {
                let anchor = match anchor {
                    Anchor::Start => "start",
                    Anchor::Middle => "middle",
                    Anchor::End => "end",
                };
                format!(
                    r#"<text class="{class}" text-anchor="{anchor}" x="{}" y="{}">{}</text>"#,
                    num(*x),
                    num(*y),
                    escape(text)
                )
            }
        };
        let _ = writeln!(out, "{line}");
    }
}

/// Shapes in drawing order.
#[derive(Clone, Debug, Default)]
pub struct Svg {
    items: Vec<Item>,
}

impl Svg {
    pub fn new() -> Self {
        Self::default()
    }

    fn push(&mut self, class: &str, shape: Shape) {
        let class = class.to_string();
        self.items.push(Item { class, shape });
    }

    /// The box around everything, if there is something.
    pub fn area(&self) -> Option<Area> {
        self.items.iter().map(Item::area).reduce(Area::with)
    }

    /// The boxes around the texts.
    pub fn text_areas(&self) -> impl Iterator<Item = Area> + '_ {
        let is_text = |item: &&Item| matches!(item.shape, Shape::Text(..));
        self.items.iter().filter(is_text).map(Item::area)
    }

    /// Adds a drawing so that the upper left corner of its box lies at a position; its box there.
    pub fn place(&mut self, panel: Svg, at: Position) -> Area {
        let Some(area) = panel.area() else {
            return Area::around(&[at], 0.0);
        };
        let (dx, dy) = (at.0 - area.left, at.1 - area.top);
        let items = panel.items.into_iter();
        self.items.extend(items.map(|item| item.moved(dx, dy)));
        Area {
            left: at.0,
            top: at.1,
            right: area.right + dx,
            bottom: area.bottom + dy,
        }
    }

    pub fn line(&mut self, class: &str, from: Position, to: Position) {
        self.push(class, Shape::Line(from, to));
    }

    /// A line with a head at its end, in the colour of a stream.
    pub fn arrow(&mut self, colour: usize, class: &str, from: Position, to: Position) {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length = dx.hypot(dy).max(1e-6);
        let (ux, uy) = (dx / length, dy / length);
        let head = 6.5_f64.min(length);
        let base = (to.0 - ux * head, to.1 - uy * head);
        self.line(&format!("{class} s{}", colour % N_COLOURS), from, base);
        self.head(colour, class, base, to);
    }

    fn head(&mut self, colour: usize, class: &str, base: Position, tip: Position) {
        let (dx, dy) = (tip.0 - base.0, tip.1 - base.1);
        let length = dx.hypot(dy).max(1e-6);
        let (nx, ny) = (-dy / length * 3.2, dx / length * 3.2);
        let corners = [tip, (base.0 + nx, base.1 + ny), (base.0 - nx, base.1 - ny)];
        let class = format!("{class} f{}", colour % N_COLOURS);
        self.push(&class, Shape::Polygon(corners.to_vec()));
    }

    /// A cubic curve with a head, for links that jump or return.
    pub fn curve(
        &mut self,
        colour: usize,
        class: &str,
        from: Position,
        by: (Position, Position),
        to: Position,
    ) {
        let (dx, dy) = (to.0 - by.1.0, to.1 - by.1.1);
        let length = dx.hypot(dy).max(1e-6);
        let base = (to.0 - dx / length * 6.5, to.1 - dy / length * 6.5);
        let line = format!("{class} s{}", colour % N_COLOURS);
        self.push(&line, Shape::Curve([from, by.0, by.1, base]));
        self.head(colour, class, base, to);
    }

    pub fn rect(&mut self, class: &str, x: f64, y: f64, width: f64, height: f64) {
        self.push(class, Shape::Rect((x, y), width, height));
    }

    pub fn circle(&mut self, class: &str, centre: Position, radius: f64) {
        self.push(class, Shape::Circle(centre, radius));
    }

    /// A square that stands on a corner.
    pub fn diamond(&mut self, class: &str, centre: Position, radius: f64) {
        let ((x, y), r) = (centre, radius);
        let corners = [(x - r, y), (x, y - r), (x + r, y), (x, y + r)];
        self.push(class, Shape::Polygon(corners.to_vec()));
    }

    pub fn text(&mut self, class: &str, anchor: Anchor, at: Position, text: &str) {
        self.push(class, Shape::Text(anchor, at, text.to_string()));
    }

    /// A text on a patch of the page's colour, at the first position where it covers no other text;
    /// whether there is one.
    pub fn text_where_free(
        &mut self,
        class: &str,
        anchor: Anchor,
        positions: impl IntoIterator<Item = Position>,
        text: &str,
    ) -> bool {
        let taken: Vec<Area> = self.text_areas().collect();
        for at in positions {
            let area = text_area(class, anchor, at, text);
            if taken.iter().any(|other| other.overlaps(&area)) {
                continue;
            }
            let (width, height) = (area.right - area.left, area.bottom - area.top);
            self.rect("page", area.left, area.top, width, height);
            self.text(class, anchor, at, text);
            return true;
        }
        false
    }

    /// A text in as many lines as it takes; the baseline of the last line.
    pub fn paragraph(&mut self, class: &str, at: Position, width: f64, text: &str) -> f64 {
        let (size, bold) = face(class);
        let mut y = at.1;
        let mut line = String::new();
        for word in text.split(' ') {
            let longer = if line.is_empty() {
                word.to_string()
            } else {
                format!("{line} {word}")
            };
            if line.is_empty() || text_width(&longer, size, bold) <= width {
                line = longer;
            } else {
                self.text(class, Anchor::Start, (at.0, y), &line);
                y += 1.35 * size;
                line = word.to_string();
            }
        }
        self.text(class, Anchor::Start, (at.0, y), &line);
        y
    }

    /// The whole file: its view box holds every shape and text.
    pub fn finish(self, title: &str) -> String {
        let area = self.area().unwrap_or(Area::around(&[(0.0, 0.0)], 0.0));
        let (left, top) = ((area.left - MARGIN).floor(), (area.top - MARGIN).floor());
        let width = (area.right + MARGIN).ceil() - left;
        let height = (area.bottom + MARGIN).ceil() - top;
        let mut body = String::new();
        for item in &self.items {
            item.write(&mut body);
        }
        let [left, top, width, height] = [left, top, width, height].map(num);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"{left} {top} {width} {height}\" role=\"img\">\n<title>{}</title>\n<style>\n{}</style>\n\
             <rect class=\"page\" x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\"/>\n{body}</svg>\n",
            escape(title),
            style_sheet(),
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
         .mark { fill-opacity: 0.85; }\n\
         .ring { fill: none; stroke: #333333; stroke-width: 1.3; }\n\
         .life { fill-opacity: 0.2; stroke-width: 1; }\n\
         .hot { stroke-width: 2.6; }\n\
         .rest { fill-opacity: 0.05; stroke-dasharray: 3 2; }\n\
         .cut { stroke: #c9c9c9; stroke-width: 1; }\n",
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
         .ring { stroke: #d0d0d0; }\n\
         .band { stroke: #33352f; }\n\
         .wave { stroke: #9a9a9a; }\n\
         .pe { fill: #24262b; stroke: #d0d0d0; }\n\
         .busy { fill: #24262b; stroke: #6d7078; }\n\
         .idle { stroke: #3c3f46; }\n\
         .reg { fill: #16181c; }\n\
         .cut { stroke: #4a4d55; }\n",
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
