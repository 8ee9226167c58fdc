//! Systems: domains, declarations, and how they are written down.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::Source;
use super::lin::{Lin, Rule};

#[derive(Clone)]
pub(super) struct Variable {
    pub(super) name: String,
    /// A scalar type; a pair of it and an i64 where `tuple`.
    pub(super) ty: &'static str,
    pub(super) tuple: bool,
    pub(super) on: Vec<Rule>,
    pub(super) text: String,
}

pub(super) struct Array {
    pub(super) name: String,
    pub(super) ty: &'static str,
    pub(super) axes: String,
    /// Index forms of all reads; `None` where one has a floor or remainder.
    pub(super) reads: Option<Vec<Vec<Lin>>>,
    /// How it is read everywhere, if it has no value outside.
    pub(super) exact: Option<Vec<usize>>,
}

/// A system while it is drawn.
pub(super) struct Sketch {
    pub(super) params: Vec<(String, i64)>,
    pub(super) dims: Vec<String>,
    /// The iterators of `reduce`.
    pub(super) bound: Vec<String>,
    /// Least value and one more than the greatest, of all points, in the parameters.
    pub(super) bounds: Vec<(Lin, Lin)>,
    pub(super) is_box: bool,
    pub(super) index: String,
    pub(super) domain: Vec<Rule>,
    /// References point backwards in the lexicographic order of these signed iterators.
    pub(super) order: Vec<(usize, i64)>,
    pub(super) arrays: Vec<Array>,
    pub(super) functions: Vec<String>,
    /// Constants and tables.
    pub(super) declarations: Vec<String>,
    pub(super) vars: Vec<Variable>,
    /// Distances of references, over the index space.
    pub(super) distances: Vec<Vec<Lin>>,
    /// Variables with a `reduce`, and its iterators.
    pub(super) sums: Vec<(String, Vec<usize>)>,
    pub(super) traits: BTreeSet<&'static str>,
    pub(super) regroups_floats: bool,
}

pub(super) const DIMS: [&str; 4] = ["i", "j", "k", "l"];
pub(super) const INTS: [&str; 8] = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"];

pub(super) fn type_trait(ty: &str) -> &'static str {
    match ty {
        "i8" => "i8",
        "i16" => "i16",
        "i32" => "i32",
        "i64" => "i64",
        "u8" => "u8",
        "u16" => "u16",
        "u32" => "u32",
        "u64" => "u64",
        "f32" => "f32",
        "f64" => "f64",
        _ => "bool",
    }
}

pub(super) fn is_float(ty: &str) -> bool {
    ty.starts_with('f')
}

pub(super) fn draw_type(source: &mut Source) -> &'static str {
    match source.below(10) {
        0..=4 => source.pick(&INTS),
        5..=6 => "f32",
        7..=8 => "f64",
        _ => "bool",
    }
}

impl Sketch {
    pub(super) fn new(source: &mut Source) -> Sketch {
        let n_params = source.pick(&[0, 1, 1, 1, 2, 2]);
        let params: Vec<(String, i64)> = ["N", "M"][..n_params]
            .iter()
            .map(|name| ((*name).to_string(), source.int(1, 4)))
            .collect();
        let n_dims = source.pick(&[1, 2, 2, 2, 2, 3, 3, 3, 4]);
        let dims: Vec<String> = DIMS[..n_dims].iter().map(|d| (*d).to_string()).collect();
        let mut order: Vec<(usize, i64)> = (0..n_dims)
            .map(|d| (d, if source.chance(25) { -1 } else { 1 }))
            .collect();
        if source.chance(40) {
            source.shuffle(&mut order);
        }
        let mut sketch = Sketch {
            params,
            dims,
            bound: Vec::new(),
            bounds: Vec::new(),
            is_box: true,
            index: String::new(),
            domain: Vec::new(),
            order,
            arrays: Vec::new(),
            functions: Vec::new(),
            declarations: Vec::new(),
            vars: Vec::new(),
            distances: Vec::new(),
            sums: Vec::new(),
            traits: BTreeSet::new(),
            regroups_floats: false,
        };
        sketch
            .traits
            .insert(["1 dim", "2 dims", "3 dims", "4 dims"][n_dims - 1]);
        sketch
            .traits
            .insert(["no parameter", "1 parameter", "2 parameters"][n_params]);
        sketch.draw_domain(source);
        sketch
    }

    pub(super) fn constant(&self, c: i64) -> Lin {
        Lin::constant(c, self.dims.len(), self.params.len())
    }

    pub(super) fn dim(&self, d: usize) -> Lin {
        Lin::dim(d, self.dims.len() + self.bound.len(), self.params.len())
    }

    pub(super) fn show(&self, lin: &Lin) -> String {
        let dims: Vec<String> = self.dims.iter().chain(&self.bound).cloned().collect();
        lin.text(&dims, &self.params)
    }

    pub(super) fn show_rules(&self, rules: &[Rule]) -> String {
        let dims = &self.dims;
        let list: Vec<String> = rules.iter().map(|r| r.text(dims, &self.params)).collect();
        list.join(" && ")
    }

    /// A bound of an axis: a few more than `lo`, or a parameter.
    pub(super) fn draw_upper(&self, lo: i64, source: &mut Source) -> Lin {
        let n = self.dims.len() as i64;
        if self.params.is_empty() || source.chance(20) {
            return self.constant(lo + source.int(1, if n > 2 { 4 } else { 6 }));
        }
        let p = source.below(self.params.len());
        let mut hi = self.constant(source.pick(&[0, 0, 0, 1, 2]) + lo.max(0));
        hi.params[p] = 1;
        hi
    }

    pub(super) fn draw_domain(&mut self, source: &mut Source) {
        let n = self.dims.len();
        let kind = if n == 1 { 0 } else { source.below(10) };
        let mut ranges: Vec<(Lin, Lin)> = Vec::new();
        for _ in 0..n {
            let lo = source.pick(&[0, 0, 0, 0, 1, 2, -1, -3]);
            if lo < 0 {
                self.traits.insert("negative bound");
            } else if lo > 0 {
                self.traits.insert("bound other than 0");
            }
            ranges.push((self.constant(lo), self.draw_upper(lo, source)));
        }
        self.bounds = ranges.clone();
        let mut extra: Vec<Rule> = Vec::new();
        match kind {
            0..=4 => {
                self.traits.insert("box");
            }
            5..=6 => {
                // One iterator is bounded by an earlier one.
                self.traits.insert("triangle");
                self.is_box = false;
                let d = source.below(n - 1) + 1;
                let other = source.below(d);
                let x = self.dim(other);
                let (lo, hi) = self.bounds[other].clone();
                if source.chance(50) {
                    ranges[d] = (self.bounds[d].0.clone(), x.plus(source.int(1, 3)));
                    self.bounds[d].1 = hi.plus(2);
                } else {
                    ranges[d] = (x.plus(-1), hi.plus(source.int(0, 2)));
                    self.bounds[d] = (lo.plus(-1), hi.plus(1));
                }
                self.bounds[d].1 = self.bounds[d].1.plus(1);
            }
            7..=8 => {
                self.traits.insert("band");
                self.is_box = false;
                let d = source.below(n - 1) + 1;
                let other = source.below(d);
                let (below, above) = (source.int(0, 3), source.int(1, 3));
                let x = self.dim(other);
                ranges[d] = (x.plus(-below), x.plus(above));
                let (lo, hi) = self.bounds[other].clone();
                self.bounds[d] = (lo.plus(-below), hi.plus(above));
            }
            _ => {
                self.traits.insert("domain with mod");
                self.is_box = false;
                let mut lin = self.constant(0);
                for a in &mut lin.dims {
                    *a = source.int(0, 2);
                }
                lin.dims[0] = 1;
                extra.push(Rule::Mod(lin, 2, 0));
            }
        }
        for (d, (lo, hi)) in ranges.iter().enumerate() {
            let x = self.dim(d);
            self.domain.push(Rule::Ge(x.add(lo, -1)));
            self.domain.push(Rule::Ge(hi.add(&x, -1).plus(-1)));
        }
        let as_conditions = source.chance(20);
        if as_conditions {
            self.traits.insert("domain by conditions");
            self.domain.extend(extra);
            let conds: Vec<String> = self
                .domain
                .iter()
                .map(|r| r.text(&self.dims, &self.params))
                .collect();
            self.index = format!("{} where {}", self.dims.join(", "), conds.join(", "));
        } else {
            let list: Vec<String> = ranges
                .iter()
                .zip(&self.dims)
                .map(|((lo, hi), d)| format!("{d} in {}..{}", self.show(lo), self.show(hi)))
                .collect();
            self.index = list.join(", ");
            let conds: Vec<String> = extra
                .iter()
                .map(|r| r.text(&self.dims, &self.params))
                .collect();
            if !conds.is_empty() {
                self.index = format!("{} where {}", self.index, conds.join(", "));
            }
            self.domain.extend(extra);
        }
    }

    pub(super) fn text(&self) -> String {
        let names: Vec<&str> = self.params.iter().map(|p| p.0.as_str()).collect();
        let context: Vec<String> = self
            .params
            .iter()
            .map(|(n, v)| format!("{n} >= {v}"))
            .collect();
        let mut text = format!("system drawn({})", names.join(", "));
        if !context.is_empty() {
            let _ = write!(text, " where {}", context.join(", "));
        }
        text.push_str(" {\n");
        for array in &self.arrays {
            let _ = writeln!(text, "  input {}[{};", array.name, array.axes);
        }
        for line in self.declarations.iter().chain(&self.functions) {
            let _ = writeln!(text, "  {line}");
        }
        let _ = writeln!(text, "  index {};", self.index);
        for var in &self.vars {
            let _ = writeln!(text, "  {}", var.text);
        }
        let axes: Vec<String> = self.bounds[..self.dims.len()]
            .iter()
            .map(|(lo, hi)| format!("{}..{}", self.show(lo), self.show(hi)))
            .collect();
        for var in &self.vars {
            let when = match var.on.as_slice() {
                [] => String::new(),
                rules => format!(" when {}", self.show_rules(rules)),
            };
            let fields: &[(&str, &str)] = if var.tuple {
                &[(".0", "a"), (".1", "b")]
            } else {
                &[("", "")]
            };
            for (field, suffix) in fields {
                let ty = if *field == ".1" { "i64" } else { var.ty };
                let fill = match (self.is_box && var.on.is_empty(), ty) {
                    (true, _) => "",
                    (false, "bool") => " else false",
                    (false, _) => " else 0",
                };
                let _ = writeln!(
                    text,
                    "  output o{}{suffix}[{}]: {ty} = {}{field} at [{}]{when}{fill};",
                    var.name,
                    axes.join(", "),
                    var.name,
                    self.dims.join(", ")
                );
            }
        }
        text.push_str("}\n");
        text
    }
}
