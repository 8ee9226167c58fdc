//! Panel 4: the places in memory, time across; a bar is the life of a value in its place.

use std::collections::BTreeSet;

use super::{Position, Scene, WIDTH, heading, tinted, varying};
use crate::svg::{Anchor, N_COLOURS, Svg, text_width};

/// The values that an array keeps in memory.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Names of the time coordinates.
    pub clock: Vec<String>,
    pub storages: Vec<Stored>,
    /// In the order in which they are written.
    pub lives: Vec<Life>,
}

/// An array in memory.
#[derive(Clone, Debug)]
pub struct Stored {
    pub name: String,
    /// `lu, where the output is: 30 values in 16 places`.
    pub title: String,
    /// The number of elements that hold a value at some time.
    pub n_places: usize,
}

/// A value in its place.
#[derive(Clone, Debug)]
pub struct Life {
    pub stream: usize,
    /// The point that makes it.
    pub point: Vec<i128>,
    pub storage: usize,
    pub element: Vec<i128>,
    /// The step in which it is written.
    pub written: Vec<i128>,
    /// In order.
    pub reads: Vec<Read>,
    /// An element of an output: it is there at the end.
    pub is_result: bool,
}

/// A point reads a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Read {
    pub time: Vec<i128>,
    /// The value that it makes of it, if that is kept too.
    pub makes: Option<usize>,
}

/// The maximum numbers of steps, and of places of one storage, in a readable picture.
const MAX_STEPS: usize = 40;
const MAX_PLACES: usize = 24;

/// The heights of a place, of its bars, and of a line of the clock.
const ROW: f64 = 20.0;
const BAR: f64 = 14.0;
const LINE: f64 = 14.0;

/// The widths of a step.
const NARROWEST: f64 = 22.0;
const WIDEST: f64 = 84.0;

/// The width of what is after the last step.
const AFTER: f64 = 58.0;

/// In a step reads come before writes.
const READ: f64 = 0.36;
const BETWEEN: f64 = 0.5;
const WRITE: f64 = 0.64;

/// Draws the memory; the second result lists the omitted parts.
pub(super) fn panel(scene: &Scene, memory: &Memory) -> (Svg, Vec<String>) {
    let mut svg = Svg::new();
    let mut reading = "a row is a place in memory, and a bar a value in it, from the step that \
                       writes it to the last step that reads it; dots are reads. A place is taken \
                       again after the last read, so no bars of a row overlap"
        .to_string();
    if memory.lives.iter().any(|life| life.is_result) {
        reading += "; dashed: the value stays as the output";
    }
    let mut omitted = Vec::new();
    let mut rows = Rows::new(scene, memory, &mut omitted);
    let followed = rows.followed();
    if let Some(n) = followed {
        let life = &memory.lives[n];
        let [name, _] = life.labels(&scene.streams[life.stream].name);
        reading += &format!("; arrows: what is made of {name}");
    }
    let title = "Memory: the lives of values in their places";
    let top = heading(&mut svg, title, &reading);
    rows.move_down(top);
    rows.clock(&mut svg);
    rows.places(&mut svg);
    for n in 0..memory.lives.len() {
        rows.life(&mut svg, n, followed == Some(n));
    }
    let stems = match followed {
        Some(n) => rows.arrows(&mut svg, &memory.lives[n]),
        None => Vec::new(),
    };
    for life in &memory.lives {
        rows.label(&mut svg, life, &stems);
    }
    (svg, omitted)
}

/// A row for each place, a column for each step.
struct Rows<'a> {
    scene: &'a Scene,
    memory: &'a Memory,
    steps: Vec<&'a [i128]>,
    /// The time coordinates that change.
    clock: Vec<usize>,
    /// Where the columns begin, and how wide they are.
    left: f64,
    width: f64,
    /// The upper end of the clock, and of each storage.
    top: f64,
    tops: Vec<f64>,
    /// The places of each storage that are drawn.
    places: Vec<Vec<&'a [i128]>>,
    /// Are there steps behind the last one that is drawn?
    goes_on: bool,
}

impl<'a> Rows<'a> {
    /// The rows below a clock at the origin.
    fn new(scene: &'a Scene, memory: &'a Memory, omitted: &mut Vec<String>) -> Self {
        let written = memory.lives.iter().map(|life| life.written.as_slice());
        let reads = memory.lives.iter().flat_map(|life| &life.reads);
        let read = reads.map(|read| read.time.as_slice());
        let all: BTreeSet<&[i128]> = written.chain(read).collect();
        let n_steps = all.len();
        let steps: Vec<&[i128]> = all.into_iter().take(MAX_STEPS).collect();
        if n_steps > steps.len() {
            let rest = n_steps - steps.len();
            omitted.push(format!("{rest} of {n_steps} steps in memory"));
        }
        let times: Vec<Vec<i128>> = steps.iter().map(|t| t.to_vec()).collect();
        let mut clock = varying(&times);
        if clock.is_empty() {
            clock.extend(memory.clock.len().checked_sub(1));
        }
        let small = |text: &str| text_width(text, 10.5, false);
        let names = clock.iter().map(|c| small(&memory.clock[*c]));
        let used: BTreeSet<(usize, &[i128])> = memory
            .lives
            .iter()
            .filter(|life| steps.binary_search(&life.written.as_slice()).is_ok())
            .map(|life| (life.storage, life.element.as_slice()))
            .collect();
        let storages = memory.storages.iter().enumerate();
        let places = storages.map(|(n, _)| {
            let own = used.iter().filter(|(storage, _)| *storage == n);
            own.map(|(_, place)| *place).take(MAX_PLACES).collect()
        });
        let places: Vec<Vec<&[i128]>> = places.collect();
        let of_places = memory.storages.iter().zip(&places);
        let of_places = of_places.flat_map(|(s, own)| own.iter().map(|p| small(&place_name(s, p))));
        let left = names.chain(of_places).fold(20.0, f64::max) + 10.0;
        let numbers = times.iter().flatten().map(|n| small(&n.to_string()) + 6.0);
        let narrowest = numbers.fold(NARROWEST, f64::max);
        let lines = clock.len() as f64;
        let mut y = 8.0 + LINE * lines;
        let mut tops = Vec::new();
        for (storage, drawn) in memory.storages.iter().zip(&places) {
            tops.push(y + 22.0);
            if storage.n_places > drawn.len() {
                let rest = storage.n_places - drawn.len();
                let (n, name) = (storage.n_places, &storage.name);
                omitted.push(format!("{rest} of {n} places of {name}"));
            }
            y += 30.0 + ROW * drawn.len() as f64;
        }
        let width = (WIDTH - left) / steps.len().max(1) as f64;
        Rows {
            scene,
            memory,
            clock,
            left,
            width: width.clamp(narrowest, WIDEST.max(narrowest)),
            top: 0.0,
            tops,
            places,
            goes_on: n_steps > steps.len(),
            steps,
        }
    }

    fn move_down(&mut self, by: f64) {
        self.top += by;
        self.tops.iter_mut().for_each(|top| *top += by);
    }

    /// The value whose reads are drawn as arrows: of those with the most arrows, the middle one.
    fn followed(&self) -> Option<usize> {
        let lives = self.memory.lives.iter();
        let arrows: Vec<usize> = lives.map(|life| self.drawn_reads(life).count()).collect();
        let most = arrows.iter().copied().max().filter(|most| *most > 0)?;
        let longest: Vec<usize> = (0..arrows.len()).filter(|n| arrows[*n] == most).collect();
        longest.get((longest.len() - 1) / 2).copied()
    }

    /// The steps at which a value is read, and the rows of what is made of it.
    fn drawn_reads(&self, life: &'a Life) -> impl Iterator<Item = (usize, f64)> {
        let source = self.y(life.storage, &life.element);
        let reads = life.reads.iter().filter(move |_| source.is_some());
        reads.filter_map(|read| {
            let made = &self.memory.lives[read.makes?];
            let row = self.y(made.storage, &made.element)?;
            Some((self.column(&read.time)?, row))
        })
    }

    fn column(&self, time: &[i128]) -> Option<usize> {
        self.steps.binary_search(&time).ok()
    }

    /// A position within a step: 0 is its beginning, 1 its end.
    fn x(&self, column: usize, within: f64) -> f64 {
        self.left + self.width * (column as f64 + within)
    }

    /// Where rows end. What stays as the output is there after the last step.
    fn right(&self) -> f64 {
        let after = match self.memory.lives.iter().any(|life| life.is_result) {
            true => AFTER,
            false => 0.0,
        };
        self.x(self.steps.len(), 0.0) + after
    }

    /// The middle of the row of a place, if it is drawn.
    fn y(&self, storage: usize, element: &[i128]) -> Option<f64> {
        let row = self.places[storage].binary_search(&element).ok()?;
        Some(self.tops[storage] + ROW * (row as f64 + 0.5))
    }

    /// An upright line through the clock and all rows, but not through titles.
    fn cut(&self, svg: &mut Svg, x: f64) {
        let clock = self.top + 4.0 + LINE * self.clock.len() as f64;
        svg.line("cut", (x, self.top), (x, clock));
        for (places, top) in self.places.iter().zip(&self.tops) {
            let bottom = top + ROW * places.len() as f64;
            svg.line("cut", (x, *top), (x, bottom));
        }
    }

    /// The steps: a line for each coordinate that changes, the outermost first.
    fn clock(&self, svg: &mut Svg) {
        for (line, c) in self.clock.iter().enumerate() {
            let y = self.top + 10.0 + LINE * line as f64;
            let at = (self.left - 10.0, y);
            svg.text("small faint", Anchor::End, at, &self.memory.clock[*c]);
            let mut first = 0;
            for n in 1..=self.steps.len() {
                let same = |step: &[i128]| step[..=*c] == self.steps[first][..=*c];
                if self.steps.get(n).is_some_and(|step| same(step)) {
                    continue;
                }
                let middle = (self.x(first, 0.0) + self.x(n, 0.0)) / 2.0;
                let text = self.steps[first][*c].to_string();
                svg.text("small", Anchor::Middle, (middle, y), &text);
                // The outermost coordinate cuts the picture into parts.
                if line == 0 && self.clock.len() > 1 && n < self.steps.len() {
                    self.cut(svg, self.x(n, 0.0));
                }
                first = n;
            }
        }
        if self.goes_on {
            let at = (self.right() + 4.0, self.top + 10.0);
            svg.text("small", Anchor::Start, at, "…");
        }
    }

    fn places(&self, svg: &mut Svg) {
        for (n, storage) in self.memory.storages.iter().enumerate() {
            let at = (0.0, self.tops[n] - 6.0);
            svg.text("", Anchor::Start, at, &storage.title);
            for place in &self.places[n] {
                let Some(y) = self.y(n, place) else { continue };
                let (left, right) = ((self.left, y), (self.right(), y));
                svg.line("idle", left, right);
                let name = place_name(storage, place);
                svg.text("small", Anchor::End, (self.left - 8.0, y + 3.5), &name);
            }
        }
    }

    /// The bar of a value, if it is drawn.
    fn bar(&self, life: &Life) -> Option<Bar> {
        let written = self.column(&life.written)?;
        let last = life.reads.last().map(|read| self.column(&read.time));
        // A value that nobody reads is there while it is written.
        let to = match last {
            Some(Some(column)) => self.x(column, READ),
            Some(None) => self.right(),
            None => self.x(written, 1.0),
        };
        Some(Bar {
            y: self.y(life.storage, &life.element)?,
            from: self.x(written, WRITE),
            to,
            end: if life.is_result { self.right() } else { to },
        })
    }

    fn life(&self, svg: &mut Svg, n: usize, is_followed: bool) {
        let life = &self.memory.lives[n];
        let Some(Bar { y, from, to, end }) = self.bar(life) else {
            return;
        };
        let colour = life.stream % N_COLOURS;
        let top = y - BAR / 2.0;
        svg.rect("page", from, top, end - from, BAR);
        if to < end {
            let class = format!("life rest f{colour} s{colour}");
            svg.rect(&class, from, top, end - from, BAR);
        }
        let hot = if is_followed { " hot" } else { "" };
        let class = format!("life{hot} f{colour} s{colour}");
        svg.rect(&class, from, top, to - from, BAR);
        let columns = life.reads.iter().map(|read| self.column(&read.time));
        let columns: BTreeSet<usize> = columns.flatten().collect();
        for column in columns {
            let at = (self.x(column, READ), y + BAR / 2.0);
            svg.circle(&format!("mark f{colour}"), at, 2.4);
        }
    }

    /// Names a value in its bar, beside the arrows that cross it.
    fn label(&self, svg: &mut Svg, life: &Life, stems: &[Stem]) {
        let Some(Bar { y, from, to, end }) = self.bar(life) else {
            return;
        };
        let stream = &self.scene.streams[life.stream].name;
        for label in life.labels(stream) {
            let width = text_width(&label, 10.5, false);
            let is_free = |x: f64, end: f64| {
                let mut crossing = stems.iter().filter(|stem| stem.crosses(y));
                x + width + 1.0 <= end
                    && !crossing.any(|stem| x - 2.0 < stem.x && stem.x < x + width + 2.0)
            };
            for (from, to) in [(from, to), (to, end)] {
                let behind = stems.iter().map(|stem| stem.x + 5.0);
                let mut positions = std::iter::once(from + 3.5).chain(behind);
                if let Some(x) = positions.find(|x| *x > from && is_free(*x, to)) {
                    svg.text(&tinted(life.stream), Anchor::Start, (x, y + 3.5), &label);
                    return;
                }
            }
        }
    }

    /// From a value to all that is made of it: along its row to the reads, and from there to the
    /// places that are written. The lines that cross rows.
    fn arrows(&self, svg: &mut Svg, life: &Life) -> Vec<Stem> {
        let mut stems = Vec::new();
        let Some(y) = self.y(life.storage, &life.element) else {
            return stems;
        };
        let y = y + BAR / 2.0;
        let line = format!("flow s{}", life.stream % N_COLOURS);
        for (column, to) in self.drawn_reads(life) {
            let stem = self.x(column, BETWEEN);
            let (begin, end): (Position, Position) = ((stem, y), (stem, to));
            svg.line(&line, (self.x(column, READ), y), begin);
            svg.line(&line, begin, end);
            svg.arrow(life.stream, "flow", end, (self.x(column, WRITE), to));
            stems.push(Stem {
                x: stem,
                top: y.min(to),
                bottom: y.max(to),
            });
        }
        stems
    }
}

/// The life of a value in its row: until `to` it is read, until `end` it is there.
struct Bar {
    y: f64,
    from: f64,
    to: f64,
    end: f64,
}

/// An upright line.
struct Stem {
    x: f64,
    top: f64,
    bottom: f64,
}

impl Stem {
    fn crosses(&self, y: f64) -> bool {
        self.top < y + BAR / 2.0 && y - BAR / 2.0 < self.bottom
    }
}

/// `lu[0,2]`
fn place_name(storage: &Stored, place: &[i128]) -> String {
    let index: Vec<String> = place.iter().map(i128::to_string).collect();
    match index.is_empty() {
        true => storage.name.clone(),
        false => format!("{}[{}]", storage.name, index.join(",")),
    }
}
