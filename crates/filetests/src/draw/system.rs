//! Systems: domains, declarations, and how they are written down.

use std::collections::{BTreeMap, BTreeSet};
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
    /// The iterators that it is read at everywhere, each with a divisor, if it has no value
    /// outside.
    pub(super) exact: Option<Vec<(usize, i64)>>,
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
    /// Operations on floats round.
    pub(super) rounds: bool,
    /// Floats decide between values, so they must be exact.
    pub(super) decides: bool,
    /// The ranges of the first sum.
    pub(super) ranges: Vec<String>,
    /// `batch`, as it is written.
    pub(super) batch: Option<String>,
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

pub(super) fn is_int(ty: &str) -> bool {
    INTS.contains(&ty)
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
            rounds: false,
            decides: false,
            ranges: Vec::new(),
            batch: None,
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
                extra.push(Rule::Mod(lin, source.pick(&[2, 2, 3, 4]), 0));
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

    /// Bounds of an iterator divided by any number.
    pub(super) fn quotients(&self, d: usize) -> (Lin, Lin) {
        let (lo, hi) = &self.bounds[d];
        (self.constant(lo.c.min(0)), hi.plus(2))
    }

    pub(super) fn text(&mut self, source: &mut Source) -> String {
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
        if let Some(batch) = &self.batch {
            let _ = writeln!(text, "  {batch}");
        }
        let _ = writeln!(text, "  index {};", self.index);
        for var in &self.vars {
            let _ = writeln!(text, "  {}", var.text);
        }
        for var in self.vars.clone() {
            let fields: &[(&str, &str)] = if var.tuple {
                &[(".0", "a"), (".1", "b")]
            } else {
                &[("", "")]
            };
            for (field, suffix) in fields {
                let ty = if *field == ".1" { "i64" } else { var.ty };
                let line = self.output(&var, field, suffix, ty, source);
                let _ = writeln!(text, "  {line}");
            }
        }
        text.push_str("}\n");
        text
    }

    /// The values of a variable as an array: element by element, or folded along one iterator.
    fn output(
        &mut self,
        var: &Variable,
        field: &str,
        suffix: &str,
        ty: &str,
        source: &mut Source,
    ) -> String {
        let mut index = self.dims.clone();
        let mut axes: Vec<String> = self.bounds[..self.dims.len()]
            .iter()
            .map(|(lo, hi)| format!("{}..{}", self.show(lo), self.show(hi)))
            .collect();
        let mut conditions: Vec<String> = Vec::new();
        if !var.on.is_empty() {
            conditions.push(self.show_rules(&var.on));
        }
        let mut whole = self.is_box && var.on.is_empty();
        let mut more = String::new();
        let value = format!("{}{field}", var.name);
        match source.below(12) {
            9 => {
                self.traits.insert("division in a write");
                whole = false;
                let (d, m) = (source.below(self.dims.len()), Self::divisor(source));
                let (lo, hi) = self.quotients(d);
                axes[d] = format!("{}..{}", self.show(&lo), self.show(&hi));
                index[d] = format!("{}/{m}", self.dims[d]);
                conditions.push(format!("{} % {m} == {}", self.dims[d], source.int(0, m)));
            }
            10 => {
                self.traits.insert("division in a write");
                whole = false;
                let (d, m) = (source.below(self.dims.len()), Self::divisor(source));
                let (lo, hi) = self.quotients(d);
                axes[d] = format!("{}..{}", self.show(&lo), self.show(&hi));
                index[d] = format!("{}/{m}", self.dims[d]);
                axes.push(m.to_string());
                index.push(format!("{} % {m}", self.dims[d]));
            }
            11 => {
                self.traits.insert("two writes");
                let d = &self.dims[source.below(self.dims.len())];
                let other = match ty {
                    "bool" => format!("!{value}"),
                    _ => format!("-{value}"),
                };
                let mut rest = conditions.clone();
                conditions.push(format!("{d} % 2 == 0"));
                rest.push(format!("{d} % 2 == 1"));
                more = format!(
                    ", {other} at [{}] when {}",
                    index.join(", "),
                    rest.join(" && ")
                );
            }
            _ => {}
        }
        let when = if conditions.is_empty() {
            String::new()
        } else {
            format!(" when {}", conditions.join(" && "))
        };
        let fill = match (whole, ty) {
            (true, _) => "",
            (false, "bool") => " else false",
            (false, _) => " else 0",
        };
        format!(
            "output o{}{suffix}[{}]: {ty} = {value} at [{}]{when}{more}{fill};",
            var.name,
            axes.join(", "),
            index.join(", ")
        )
    }

    /// A batch of the system, some inputs shared.
    pub(super) fn draw_batch(&mut self, source: &mut Source) {
        self.traits.insert("batch");
        let range = match self.params.first() {
            Some((name, _)) if source.chance(40) => format!("0..{name}"),
            _ => format!("0..{}", source.int(1, 6)),
        };
        let shared: Vec<&str> = self
            .arrays
            .iter()
            .filter(|_| source.chance(30))
            .map(|a| a.name.as_str())
            .collect();
        let shared = if shared.is_empty() {
            String::new()
        } else {
            format!(" shared({})", shared.join(", "))
        };
        self.batch = Some(format!("batch n in {range}{shared};"));
    }

    /// Small sizes, including the smallest, and one that fills vectors, as far as the number of
    /// points allows.
    pub(super) fn sizes(&self, source: &mut Source) -> Vec<BTreeMap<String, i128>> {
        let steps: &[[i64; 2]] = match self.params.len() {
            0 => &[[0, 0]],
            1 => &[[0, 0], [1, 0], [3, 0]],
            _ => &[[0, 0], [1, 3], [3, 1]],
        };
        let mut list: Vec<Vec<i64>> = steps
            .iter()
            .map(|step| {
                let least = self.params.iter().map(|p| p.1);
                least.zip(step).map(|(p, more)| p + more).collect()
            })
            .collect();
        if !self.params.is_empty() {
            let p = source.below(self.params.len());
            let mut values = list[1].clone();
            for size in [67, 41, 33, 19, 16, 13, 9, 7] {
                values[p] = size;
                if self.points(&values) <= 3000 {
                    list.push(values);
                    break;
                }
            }
        }
        let named = |values: Vec<i64>| {
            let names = self.params.iter().map(|p| p.0.clone());
            names.zip(values.into_iter().map(i128::from)).collect()
        };
        list.into_iter().map(named).collect()
    }

    /// Is the number of points, including those of sums, within the limit?
    fn points(&self, values: &[i64]) -> i64 {
        let extents = self.bounds.iter().map(|(lo, hi)| {
            let extent = hi.at(values) - lo.at(values);
            extent.max(1)
        });
        let batch = if self.batch.is_some() { 6 } else { 1 };
        extents.product::<i64>() * batch
    }
}
