//! Stencils: every boundary condition, on every element type.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use systola_driver::load;

use super::mapping::levels;
use super::system::{INTS, is_float, type_trait};
use super::{Drawn, DrawnMapping, Source};

const BOUNDARIES: [&str; 8] = [
    "clamp",
    "wrap",
    "mirror",
    "reflect",
    "fixed",
    "interior",
    "constant 3",
    "constant 0",
];

pub(super) fn draw(source: &mut Source, n_mappings: usize) -> Drawn {
    let mut sketch = Stencil::new(source);
    let system = sketch.text(source);
    let sizes = sketch.sizes(source);
    let names = Names::of(&system);
    let mut begins = Vec::new();
    let mappings = (0..n_mappings)
        .map(|n| {
            begins.push(source.taken.len());
            names.mapping(n, source)
        })
        .collect();
    let names = sketch.params.iter();
    Drawn {
        system,
        mappings,
        params: names.map(|name| ((*name).to_string(), 1)).collect(),
        sizes,
        traits: sketch.traits,
        regroups_floats: is_float(sketch.ty),
        rounds: false,
        choices: source.taken.clone(),
        begins,
    }
}

struct Stencil {
    ty: &'static str,
    axes: usize,
    params: Vec<&'static str>,
    steps: Option<&'static str>,
    boundary: &'static str,
    traits: BTreeSet<&'static str>,
}

impl Stencil {
    fn new(source: &mut Source) -> Stencil {
        let ty = match source.below(10) {
            0 => "u8",
            1 => "i8",
            2 => "i16",
            3..=7 => source.pick(&INTS),
            8 => "f32",
            _ => "f64",
        };
        let axes = source.pick(&[1, 2, 2]);
        let mut params = ["N", "M"][..axes].to_vec();
        let steps = source.pick(&[None, None, Some("2"), Some("T"), Some("T")]);
        if steps == Some("T") {
            params.push("T");
        }
        Stencil {
            ty,
            axes,
            params,
            steps,
            boundary: source.pick(&BOUNDARIES),
            traits: BTreeSet::from(["stencil", type_trait(ty)]),
        }
    }

    fn offset(&self, name: &str, source: &mut Source) -> String {
        let list: Vec<String> = (0..self.axes)
            .map(|_| source.pick(&[0, 1, -1, 0, 1, -1, 2, -2]).to_string())
            .collect();
        format!("{name}[{}]", list.join(", "))
    }

    fn shape(&self, source: &mut Source) -> String {
        let kind = source.pick(&["box", "star", "box"]);
        let radius = if self.axes == 2 && source.chance(30) {
            source.pick(&["(1, 0)", "(0, 1)", "(1, 2)"])
        } else {
            source.pick(&["1", "1", "2"])
        };
        format!("{kind} {radius}")
    }

    /// The next value of a cell.
    fn update(&self, name: &str, source: &mut Source) -> String {
        let ty = self.ty;
        let mut body = match source.below(5) {
            0 => {
                let op = source.pick(&["sum", "min", "max"]);
                format!("{op}({name} over {})", self.shape(source))
            }
            1 => {
                let (a, b) = (self.offset(name, source), self.offset(name, source));
                if is_float(ty) {
                    format!("({a} + {b})")
                } else {
                    format!("select({a} < {b}, {name}, {a} ^ {b})")
                }
            }
            _ => {
                let mut sum = self.offset(name, source);
                for _ in 0..source.pick(&[1, 2, 3]) {
                    let weight = if is_float(ty) {
                        source.pick(&["0.5", "0.25", "-0.5", "1"])
                    } else {
                        source.pick(&["1", "2", "3", "7"])
                    };
                    let next = self.offset(name, source);
                    let op = source.pick(&["+", "+", "-"]);
                    sum = format!("{sum} {op} {weight}*{next}");
                }
                format!("({sum})")
            }
        };
        if !is_float(ty) {
            body = match source.below(6) {
                0 => format!("{body} / 4"),
                1 => format!("{body} >> 1"),
                2 => format!("{body} % 5"),
                3 => format!("min({body}, {name})"),
                _ => body,
            };
        }
        body
    }

    fn text(&mut self, source: &mut Source) -> String {
        let ty = self.ty;
        let axes = self.params[..self.axes].join(", ");
        let kind = source.below(10);
        if kind == 9 && self.boundary == "fixed" {
            // An intermediate value has no old value for fixed cells.
            self.boundary = "clamp";
        }
        let mut text = format!("stencil drawn({}) {{\n", self.params.join(", "));
        let _ = writeln!(text, "  field u[{axes}]: {ty} {};", self.boundary);
        if let Some(steps) = self.steps {
            self.traits.insert("stencil of many sweeps");
            let _ = writeln!(text, "  steps {steps};");
        }
        let (mut field, mut between) = (String::new(), String::new());
        let mut body = self.update("u", source);
        if kind == 8 {
            self.traits.insert("stencil of several fields");
            field = format!("  field c[{axes}]: {ty};\n");
            body = if is_float(ty) {
                format!("{body} + c")
            } else {
                format!("{body} {} c", source.pick(&["+", "^", "-"]))
            };
        } else if kind == 9 {
            self.traits.insert("chain of stencils");
            let inner = self.update("u", source);
            between = format!("  var v: {ty} {} = {inner};\n", self.boundary);
            body = self.update("v", source);
        }
        let _ = write!(text, "{field}{between}  u = {body};\n}}\n");
        text
    }

    fn sizes(&self, source: &mut Source) -> Vec<BTreeMap<String, i128>> {
        let large = source.pick(&[35, 19, 67, 16, 33]);
        let rows = [
            [1, 1, 1],
            [2, 3, 2],
            [5, 4, 3],
            if self.axes == 1 {
                [large, 1, 2]
            } else {
                [6, large, 2]
            },
        ];
        let at = |row: &[i128; 3]| {
            self.params
                .iter()
                .map(|name| {
                    let value = match *name {
                        "N" => row[0],
                        "M" => row[1],
                        _ => row[2],
                    };
                    ((*name).to_string(), value)
                })
                .collect()
        };
        rows.iter().map(at).collect()
    }
}

/// The iterators that a stencil has as a system.
struct Names {
    sweep: Option<String>,
    axes: Vec<String>,
    bound: Vec<String>,
}

impl Names {
    fn of(text: &str) -> Names {
        let system = load(text).ok().and_then(|mut m| m.systems.pop());
        let (mut dims, mut bound) = (Vec::new(), Vec::new());
        if let Some(system) = system {
            dims = system.dims.iter().map(|d| d.name.clone()).collect();
            bound = system.bound.iter().map(|d| d.name.clone()).collect();
            bound.dedup();
        }
        let sweep = dims.first().filter(|name| *name == "t").cloned();
        let axes = dims.split_off(usize::from(sweep.is_some()).min(dims.len()));
        Names { sweep, axes, bound }
    }

    fn mapping(&self, n: usize, source: &mut Source) -> DrawnMapping {
        let mut head = String::new();
        let mut list: Vec<(&'static str, String)> = Vec::new();
        let x = self.axes.last().cloned().unwrap_or_default();
        let others = &self.axes[..self.axes.len().saturating_sub(1)];
        let kind = source.below(7);
        let outer = if kind < 2 { "time" } else { "launch" };
        match &self.sweep {
            Some(t) if kind == 3 => {
                let sweeps = source.pick(&[1, 2, 3]);
                let halo = source.pick(&[1, 2, 4]) * sweeps;
                let size = source.pick(&[4, 5, 8, 16]);
                let _ = write!(
                    head,
                    "  tile {t} by {sweeps} as (tl, s);\n  tile {x} by {size} as (bx, xx) overlap ({halo}, {halo});\n"
                );
                list.push(("launch", "tl".into()));
                list.push(("block", "bx".into()));
                list.push(("lane", format!("xx + {halo}")));
                list.push(("time", "s".into()));
            }
            Some(t) => list.push((outer, t.clone())),
            None => {}
        }
        let mut rest: Vec<String> = others.to_vec();
        match kind {
            0 => rest.push(x),
            1 | 2 => list.push(("lane", x)),
            3 if self.sweep.is_some() => {}
            3 | 4 => {
                let size = source.pick(&["4", "L", "2*L", "3"]);
                let _ = writeln!(head, "  tile {x} by {size} as (bx, xx);");
                list.push(("block", "bx".into()));
                list.push(("lane", "xx".into()));
            }
            5 => {
                let v = source.pick(&[2, 4, 3, 8]);
                list.push(("lane", format!("{x} / {v}")));
                list.push(("reg", format!("{x} % {v}")));
            }
            _ => {
                let m = source.pick(&["L", "4", "16"]);
                list.push(("block", format!("{x} / {m}")));
                list.push(("lane", format!("{x} % {m}")));
            }
        }
        if kind > 3
            && source.chance(40)
            && let Some(y) = rest.first().cloned()
        {
            rest.remove(0);
            list.push(("block", y));
        }
        list.extend(rest.into_iter().map(|name| ("time", name)));
        list.extend(self.bound.iter().map(|name| ("time", name.clone())));
        if list.iter().all(|(level, _)| *level != "time") {
            list.push(("time", "0".into()));
        }
        let lines: Vec<String> = levels(&list).iter().map(|l| format!("  {l}\n")).collect();
        DrawnMapping {
            text: format!("mapping m{n} of drawn {{\n{head}{}}}\n", lines.concat()),
            traits: BTreeSet::new(),
        }
    }
}
