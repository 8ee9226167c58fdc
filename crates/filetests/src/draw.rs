//! Small systems and mappings, drawn from a seed.
//!
//! A system is valid by construction: references point backwards in a hidden order of the points, and
//! each is guarded by "z - e is in the domain of what is read". Mappings are drawn by several
//! strategies, some of which aim at legal ones and some at nothing; which of them are legal is for
//! others to say. Everything drawn is marked with its traits, so that a test can count what it saw.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::tensor::Rng;

/// A system with mappings, as text.
pub struct Drawn {
    pub system: String,
    pub mappings: Vec<DrawnMapping>,
    /// Name and least value of every parameter.
    pub params: Vec<(String, i64)>,
    pub traits: BTreeSet<&'static str>,
    /// Sums of floats whose order is left open.
    pub regroups_floats: bool,
}

pub struct DrawnMapping {
    pub text: String,
    pub traits: BTreeSet<&'static str>,
}

impl Drawn {
    /// The whole file.
    pub fn text(&self) -> String {
        let mappings = self.mappings.iter().map(|m| m.text.as_str());
        std::iter::once(self.system.as_str())
            .chain(mappings)
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// The system with one mapping.
    pub fn text_with(&self, mapping: usize) -> String {
        format!("{}\n{}", self.system, self.mappings[mapping].text)
    }
}

/// Draws a system and so many mappings of it.
pub fn draw(seed: u64, n_mappings: usize) -> Drawn {
    let mut source = Source(Rng::new(seed));
    let mut sketch = Sketch::new(&mut source);
    sketch.variables(&mut source);
    let mappings = (0..n_mappings)
        .map(|n| draw_mapping(&sketch, n, &mut source))
        .collect();
    Drawn {
        system: sketch.text(),
        mappings,
        params: sketch.params.clone(),
        regroups_floats: sketch.regroups_floats,
        traits: sketch.traits,
    }
}

struct Source(Rng);

impl Source {
    fn int(&mut self, lo: i64, hi: i64) -> i64 {
        self.0.int(lo, hi)
    }

    fn below(&mut self, n: usize) -> usize {
        self.0.int(0, n as i64) as usize
    }

    /// True in so many of a hundred cases.
    fn chance(&mut self, percent: i64) -> bool {
        self.0.int(0, 100) < percent
    }

    fn pick<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())].clone()
    }

    fn shuffle<T>(&mut self, list: &mut [T]) {
        for n in (1..list.len()).rev() {
            list.swap(n, self.below(n + 1));
        }
    }
}

/// An affine form: coefficients of the iterators and of the parameters, and a constant.
#[derive(Clone, Debug, PartialEq)]
struct Lin {
    dims: Vec<i64>,
    params: Vec<i64>,
    c: i64,
}

impl Lin {
    fn constant(c: i64, n_dims: usize, n_params: usize) -> Lin {
        Lin {
            dims: vec![0; n_dims],
            params: vec![0; n_params],
            c,
        }
    }

    fn dim(d: usize, n_dims: usize, n_params: usize) -> Lin {
        let mut lin = Lin::constant(0, n_dims, n_params);
        lin.dims[d] = 1;
        lin
    }

    fn add(&self, other: &Lin, factor: i64) -> Lin {
        let sum = |a: &[i64], b: &[i64]| -> Vec<i64> {
            let len = a.len().max(b.len());
            let at = |list: &[i64], n: usize| list.get(n).copied().unwrap_or(0);
            (0..len).map(|n| at(a, n) + factor * at(b, n)).collect()
        };
        Lin {
            dims: sum(&self.dims, &other.dims),
            params: sum(&self.params, &other.params),
            c: self.c + factor * other.c,
        }
    }

    fn plus(&self, c: i64) -> Lin {
        let mut lin = self.clone();
        lin.c += c;
        lin
    }

    /// The form at z - e.
    fn shifted(&self, e: &[Lin]) -> Lin {
        let mut lin = self.clone();
        for (a, e) in self.dims.iter().zip(e) {
            lin = lin.add(e, -a);
        }
        lin
    }

    fn is_zero(&self) -> bool {
        self.c == 0 && self.params.iter().chain(&self.dims).all(|a| *a == 0)
    }

    fn at(&self, params: &[i64]) -> i64 {
        self.c
            + self
                .params
                .iter()
                .zip(params)
                .map(|(a, p)| a * p)
                .sum::<i64>()
    }

    fn text(&self, dims: &[String], params: &[(String, i64)]) -> String {
        let sizes = self.params.iter().zip(params.iter().map(|p| &p.0));
        let terms = self.dims.iter().zip(dims).chain(sizes);
        let mut text = String::new();
        let mut push = |a: i64, name: Option<&str>| {
            if a == 0 {
                return;
            }
            let sign = match (text.is_empty(), a < 0) {
                (true, false) => "",
                (true, true) => "-",
                (false, false) => " + ",
                (false, true) => " - ",
            };
            text.push_str(sign);
            let _ = match name {
                Some(name) if a.abs() == 1 => write!(text, "{name}"),
                Some(name) => write!(text, "{}*{name}", a.abs()),
                None => write!(text, "{}", a.abs()),
            };
        };
        for (a, name) in terms {
            push(*a, Some(name));
        }
        push(self.c, None);
        if text.is_empty() { "0".into() } else { text }
    }
}

/// What the points of a domain satisfy.
#[derive(Clone, Debug, PartialEq)]
enum Rule {
    /// The form is not negative.
    Ge(Lin),
    /// form mod m == r.
    Mod(Lin, i64, i64),
}

impl Rule {
    fn shifted(&self, e: &[Lin]) -> Rule {
        match self {
            Rule::Ge(lin) => Rule::Ge(lin.shifted(e)),
            Rule::Mod(lin, m, r) => Rule::Mod(lin.shifted(e), *m, *r),
        }
    }

    fn text(&self, dims: &[String], params: &[(String, i64)]) -> String {
        match self {
            Rule::Ge(lin) => format!("{} >= 0", lin.text(dims, params)),
            Rule::Mod(lin, m, r) => format!("({}) % {m} == {r}", lin.text(dims, params)),
        }
    }
}

#[derive(Clone)]
struct Variable {
    name: String,
    /// A scalar type; a pair of it and an i64 where `tuple`.
    ty: &'static str,
    tuple: bool,
    on: Vec<Rule>,
    text: String,
}

struct Array {
    name: String,
    ty: &'static str,
    axes: String,
    /// Index forms of all reads; `None` where one has a floor or remainder.
    reads: Option<Vec<Vec<Lin>>>,
    /// How it is read everywhere, if it has no value outside.
    exact: Option<Vec<usize>>,
}

/// A system while it is drawn.
struct Sketch {
    params: Vec<(String, i64)>,
    dims: Vec<String>,
    /// The iterators of `reduce`.
    bound: Vec<String>,
    /// Least value and one more than the greatest, of all points, in the parameters.
    bounds: Vec<(Lin, Lin)>,
    is_box: bool,
    index: String,
    domain: Vec<Rule>,
    /// References point backwards in the lexicographic order of these signed iterators.
    order: Vec<(usize, i64)>,
    arrays: Vec<Array>,
    functions: Vec<String>,
    /// Constants and tables.
    declarations: Vec<String>,
    vars: Vec<Variable>,
    /// Distances of references, over the index space.
    distances: Vec<Vec<Lin>>,
    /// Variables with a `reduce`, and its iterators.
    sums: Vec<(String, Vec<usize>)>,
    traits: BTreeSet<&'static str>,
    regroups_floats: bool,
}

const DIMS: [&str; 4] = ["i", "j", "k", "l"];
const INTS: [&str; 8] = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"];

fn type_trait(ty: &str) -> &'static str {
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

fn is_float(ty: &str) -> bool {
    ty.starts_with('f')
}

fn draw_type(source: &mut Source) -> &'static str {
    match source.below(10) {
        0..=4 => source.pick(&INTS),
        5..=6 => "f32",
        7..=8 => "f64",
        _ => "bool",
    }
}

impl Sketch {
    fn new(source: &mut Source) -> Sketch {
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

    fn constant(&self, c: i64) -> Lin {
        Lin::constant(c, self.dims.len(), self.params.len())
    }

    fn dim(&self, d: usize) -> Lin {
        Lin::dim(d, self.dims.len() + self.bound.len(), self.params.len())
    }

    fn show(&self, lin: &Lin) -> String {
        let dims: Vec<String> = self.dims.iter().chain(&self.bound).cloned().collect();
        lin.text(&dims, &self.params)
    }

    fn show_rules(&self, rules: &[Rule]) -> String {
        let dims = &self.dims;
        let list: Vec<String> = rules.iter().map(|r| r.text(dims, &self.params)).collect();
        list.join(" && ")
    }

    /// A bound of an axis: a few more than `lo`, or a parameter.
    fn draw_upper(&self, lo: i64, source: &mut Source) -> Lin {
        let n = self.dims.len() as i64;
        if self.params.is_empty() || source.chance(20) {
            return self.constant(lo + source.int(1, if n > 2 { 4 } else { 6 }));
        }
        let p = source.below(self.params.len());
        let mut hi = self.constant(source.pick(&[0, 0, 0, 1, 2]) + lo.max(0));
        hi.params[p] = 1;
        hi
    }

    fn draw_domain(&mut self, source: &mut Source) {
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

    /// Backwards in the hidden order.
    fn draw_distance(&mut self, source: &mut Source) -> Vec<Lin> {
        let n = self.dims.len();
        let mut e = vec![self.constant(0); n];
        let leading = if source.chance(60) {
            0
        } else {
            source.below(n)
        };
        let (d, sign) = self.order[leading];
        e[d].c = sign * source.pick(&[1, 1, 1, 1, 2]);
        for (d, _) in self.order.clone().into_iter().skip(leading + 1) {
            if source.chance(45) {
                e[d].c = source.pick(&[-1, 1, 1, -1, 2]);
            } else if source.chance(10) && !self.params.is_empty() {
                // To the other end of the axis.
                self.traits.insert("parametric distance");
                let (lo, hi) = self.bounds[d].clone();
                let extent = hi.add(&lo, -1).plus(-1);
                let sign = source.pick(&[-1, 1]);
                e[d] = self.constant(0).add(&extent, sign);
            }
        }
        if e.iter().all(|e| e.params.iter().all(|a| *a == 0)) {
            self.traits.insert("constant distance");
        }
        if !self.distances.contains(&e) {
            self.distances.push(e.clone());
        }
        e
    }

    /// "z - e has a value of the variable", given what holds at z.
    fn inside(&self, e: &[Lin], on: &[Rule], known: &[Rule]) -> Vec<Rule> {
        let moved = self.domain.iter().filter_map(|rule| {
            let there = rule.shifted(e);
            (there != *rule).then_some(there)
        });
        let restricted = on.iter().filter_map(|rule| {
            let there = rule.shifted(e);
            (!known.contains(&there)).then_some(there)
        });
        moved.chain(restricted).collect()
    }

    fn reference(&self, name: &str, e: &[Lin]) -> String {
        if e.iter().all(Lin::is_zero) {
            return name.into();
        }
        let index: Vec<String> = e
            .iter()
            .enumerate()
            .map(|(d, e)| self.show(&self.dim(d).add(e, -1)))
            .collect();
        format!("{name}({})", index.join(", "))
    }

    fn literal(&self, ty: &str, source: &mut Source) -> String {
        match ty {
            "bool" => source.pick(&["true", "false"]).into(),
            "f32" | "f64" => source.pick(&["0.5", "1.25", "-0.75", "0", "3"]).into(),
            _ => source.int(0, 8).to_string(),
        }
    }

    /// The iterators of the index space.
    fn plain(&self) -> Vec<usize> {
        (0..self.dims.len()).collect()
    }

    /// `reach`: which iterators may occur, those of `reduce` after the others.
    fn leaf(&mut self, ty: &'static str, reach: &[usize], source: &mut Source) -> String {
        match source.below(14) {
            0 => self.literal(ty, source),
            2 => self.constant_value(ty, source),
            3 if ty != "bool" => self.lookup(ty, reach, source),
            1 => {
                let all: Vec<String> = self.dims.iter().chain(&self.bound).cloned().collect();
                let d = &all[source.pick(reach)];
                match ty {
                    "bool" => format!("({d} > {})", source.int(-1, 3)),
                    "i64" => d.clone(),
                    _ => format!("{ty}({d})"),
                }
            }
            _ => self.read(ty, reach, source),
        }
    }

    fn constant_value(&mut self, ty: &'static str, source: &mut Source) -> String {
        let name = format!("c_{ty}");
        let declared = self.declarations.iter().any(|d| d.contains(&name));
        if !declared {
            self.traits.insert("constant");
            let value = self.literal(ty, source);
            self.declarations
                .push(format!("const {name}: {ty} = {value};"));
        }
        name
    }

    /// An element of a table at a computed index.
    fn lookup(&mut self, ty: &'static str, reach: &[usize], source: &mut Source) -> String {
        self.traits.insert("table");
        let name = format!("t{}", self.declarations.len());
        let values: Vec<String> = (0..4).map(|_| source.int(0, 9).to_string()).collect();
        let list = values.join(", ");
        self.declarations
            .push(format!("table {name}[4]: {ty} = [{list}];"));
        let all: Vec<String> = self.dims.iter().chain(&self.bound).cloned().collect();
        let (a, b) = (&all[source.pick(reach)], &all[source.pick(reach)]);
        format!("{name}[({a} + 2*{b}) & 3]")
    }

    fn read(&mut self, ty: &'static str, reach: &[usize], source: &mut Source) -> String {
        let same: Vec<usize> = (0..self.arrays.len())
            .filter(|n| {
                let array = &self.arrays[*n];
                let fits = |dims: &Vec<usize>| dims.iter().all(|d| reach.contains(d));
                array.ty == ty && array.exact.as_ref().is_none_or(fits)
            })
            .collect();
        let n = if same.is_empty() || (self.arrays.len() < 4 && source.chance(40)) {
            self.declare(ty, reach, source)
        } else {
            source.pick(&same)
        };
        let total = self.dims.len() + self.bound.len();
        if let Some(dims) = &self.arrays[n].exact {
            let index: Vec<String> = dims.iter().map(|d| self.show(&self.dim(*d))).collect();
            return format!("{}[{}]", self.arrays[n].name, index.join(", "));
        }
        let rank = self.arrays[n].axes.matches(", ").count() + 1;
        let mut index = Vec::new();
        let mut forms = Vec::new();
        let mut affine = true;
        for _ in 0..rank {
            let mut lin = Lin::constant(source.pick(&[0, 0, 0, 1, -1]), total, self.params.len());
            for _ in 0..source.pick(&[1, 1, 2]) {
                lin.dims[source.pick(reach)] = source.pick(&[1, 1, 1, -1, 2]);
            }
            let text = self.show(&lin);
            match source.below(12) {
                0 => {
                    affine = false;
                    index.push(format!("({text})/2"));
                }
                1 => {
                    affine = false;
                    index.push(format!("({text}) % 3"));
                }
                _ => index.push(text),
            }
            forms.push(lin);
        }
        let array = &mut self.arrays[n];
        if let Some(reads) = array.reads.as_mut().filter(|_| affine) {
            reads.push(forms);
        } else {
            array.reads = None;
        }
        format!("{}[{}]", array.name, index.join(", "))
    }

    fn declare(&mut self, ty: &'static str, reach: &[usize], source: &mut Source) -> usize {
        let name = format!("x{}", self.arrays.len());
        let exact = self.is_box && source.chance(40);
        let rank = source.pick(&[1, 1, 2]).min(reach.len());
        let mut dims: Vec<usize> = reach.to_vec();
        source.shuffle(&mut dims);
        dims.truncate(rank);
        let axes: Vec<String> = dims
            .iter()
            .map(|d| {
                let (lo, hi) = &self.bounds[*d];
                if exact {
                    format!("{}..{}", self.show(lo), self.show(hi))
                } else if source.chance(50) {
                    format!("{}..{}", self.show(&lo.plus(-1)), self.show(&hi.plus(2)))
                } else {
                    format!("{}", source.int(2, 6))
                }
            })
            .collect();
        let axes = axes.join(", ");
        let outside = self.literal(ty, source);
        let tail = if exact {
            String::new()
        } else {
            format!(" else {}", outside.trim_start_matches('-'))
        };
        let total = self.dims.len() + self.bound.len();
        let reads = exact.then(|| {
            vec![
                dims.iter()
                    .map(|d| Lin::dim(*d, total, self.params.len()))
                    .collect(),
            ]
        });
        self.arrays.push(Array {
            name,
            ty,
            axes: format!("{axes}]: {ty}{tail}"),
            reads: Some(reads.unwrap_or_default()),
            exact: exact.then_some(dims),
        });
        self.arrays.len() - 1
    }

    fn combine(&self, ty: &str, a: &str, b: &str, source: &mut Source) -> String {
        let op = match ty {
            "bool" => source.pick(&["&&", "||", "^"]),
            "f32" | "f64" => source.pick(&["+", "+", "-", "min", "max"]),
            _ => source.pick(&["+", "+", "-", "*", "min", "max", "^", "&", "|"]),
        };
        apply(op, a, b)
    }

    /// A value of the type made of a reference.
    fn convert(&self, value: String, var: &Variable, ty: &str, source: &mut Source) -> String {
        let value = if var.tuple {
            format!("{value}.0")
        } else {
            value
        };
        match (var.ty, ty) {
            (from, to) if from == to => value,
            ("bool", to) => {
                let (a, b) = (self.literal(to, source), self.literal(to, source));
                format!("select({value}, {to}({a}), {to}({b}))")
            }
            (_, "bool") => format!("({value} > 0)"),
            (_, to) => format!("{to}({value})"),
        }
    }

    /// A reference to the variable `source`, guarded; `this` is being defined.
    fn term(&mut self, ty: &'static str, this: &Variable, source: &mut Source) -> String {
        let n = source.below(self.vars.len() + 1);
        let read = self.vars.get(n).cloned().unwrap_or_else(|| this.clone());
        let same_point = n < self.vars.len() && source.chance(40);
        let e = if same_point {
            self.traits.insert("same point");
            vec![self.constant(0); self.dims.len()]
        } else {
            self.draw_distance(source)
        };
        let mut rules = self.inside(&e, &read.on, &this.on);
        if source.chance(12) {
            self.traits.insert("guard with mod");
            let mut lin = self.constant(source.int(0, 2));
            let d = source.below(self.dims.len());
            lin.dims[d] = 1;
            rules.push(Rule::Mod(lin, source.pick(&[2, 3]), 0));
        }
        let value = self.reference(&read.name, &e);
        let value = self.convert(value, &read, ty, source);
        if rules.is_empty() {
            return value;
        }
        let otherwise = self.leaf(ty, &self.plain(), source);
        format!("select({}, {value}, {otherwise})", self.show_rules(&rules))
    }

    fn variables(&mut self, source: &mut Source) {
        let ty = draw_type(source);
        if self.dims.len() <= 3 && source.chance(32) {
            if source.chance(35) {
                self.variable(ty, source);
            }
            self.core_form(ty, source);
            if source.chance(25) {
                self.core_form(ty, source);
            }
        }
        let n = source.pick(&[1, 1, 2, 2, 3]);
        for _ in 0..n {
            if self.vars.len() >= 3 {
                break;
            }
            if !self.sums.is_empty() && source.chance(60) {
                break;
            }
            let ty = if source.chance(70) {
                ty
            } else {
                draw_type(source)
            };
            self.variable(ty, source);
        }
        if self.vars.len() > 1 {
            self.traits.insert("several variables");
        }
    }

    fn variable(&mut self, ty: &'static str, source: &mut Source) {
        let name = ["U", "V", "W", "Y"][self.vars.len()].to_string();
        self.traits.insert(type_trait(ty));
        let mut this = Variable {
            name: name.clone(),
            ty,
            tuple: false,
            on: Vec::new(),
            text: String::new(),
        };
        if source.chance(12) {
            self.traits.insert("restricted variable");
            let d = source.below(self.dims.len());
            let mut lin = self.constant(source.int(0, 2));
            lin.dims[d] = 1;
            this.on.push(match source.below(2) {
                0 => Rule::Mod(lin, 2, 0),
                _ => Rule::Ge(lin.add(&self.bounds[d].0.clone(), -1).plus(-1)),
            });
        }
        let reach = self.dims.len();
        let all: Vec<usize> = (0..reach).collect();
        let mut law = "";
        let body = match source.below(12) {
            0..=2 => {
                self.traits.insert("propagation");
                let e = self.draw_distance(source);
                let inside = self.inside(&e, &this.on, &this.on);
                let index = invariant(&e, reach, self.params.len());
                let read = self.read_along(ty, &index, source);
                format!(
                    "select({}, {}, {read})",
                    self.show_rules(&inside),
                    self.reference(&name, &e)
                )
            }
            3..=5 => {
                self.traits.insert("accumulation");
                let e = self.draw_distance(source);
                let inside = self.inside(&e, &this.on, &this.on);
                let start = self.literal(ty, source);
                let term = if self.vars.is_empty() || source.chance(50) {
                    self.leaf(ty, &all, source)
                } else {
                    let other = source.pick(&self.vars);
                    let zero = vec![self.constant(0); reach];
                    let rules = self.inside(&zero, &other.on, &this.on);
                    let value = self.convert(other.name.clone(), &other, ty, source);
                    if rules.is_empty() {
                        value
                    } else {
                        let otherwise = self.leaf(ty, &all, source);
                        format!("select({}, {value}, {otherwise})", self.show_rules(&rules))
                    }
                };
                law = source.pick(&["", "", " associative", " reorderable"]);
                if is_float(ty) && !law.is_empty() {
                    self.regroups_floats = true;
                }
                let op = match ty {
                    "bool" => source.pick(&["&&", "||", "^"]),
                    _ => source.pick(&["+", "+", "+", "min", "max"]),
                };
                let so_far = format!(
                    "select({}, {}, {ty}({start}))",
                    self.show_rules(&inside),
                    self.reference(&name, &e)
                )
                .replace("bool(", "(");
                apply(op, &so_far, &term)
            }
            6 if ty != "bool" => {
                self.traits.insert("tuple");
                this.tuple = true;
                let e = self.draw_distance(source);
                let inside = self.inside(&e, &this.on, &this.on);
                let earlier = self.reference(&name, &e);
                let read = self.leaf(ty, &all, source);
                let d = self.dims[source.below(reach)].clone();
                let pair = format!("({ty}({read}), {d})");
                let start = self.literal(ty, source);
                if source.chance(50) {
                    let law = source.pick(&["", "associative", "reorderable"]);
                    let f = self.argmin(ty, law);
                    format!(
                        "select({}, {f}({earlier}, {pair}), {pair})",
                        self.show_rules(&inside)
                    )
                } else {
                    let sum = apply("+", &format!("{earlier}.0"), &format!("{ty}({start})"));
                    format!(
                        "select({}, ({sum}, {earlier}.1 + {d}), {pair})",
                        self.show_rules(&inside)
                    )
                }
            }
            7 if !self.vars.is_empty() => {
                self.traits.insert("carry");
                let e = self.draw_distance(source);
                let inside = self.inside(&e, &this.on, &this.on);
                let other = source.pick(&self.vars);
                let zero = vec![self.constant(0); reach];
                let mut rules = self.inside(&zero, &other.on, &this.on);
                rules.retain(|r| !this.on.contains(r));
                let value = self.convert(other.name.clone(), &other, ty, source);
                let value = if rules.is_empty() {
                    value
                } else {
                    let otherwise = self.literal(ty, source);
                    format!(
                        "select({}, {value}, {ty}({otherwise}))",
                        self.show_rules(&rules)
                    )
                    .replace("bool(", "(")
                };
                format!(
                    "select({}, {}, {value})",
                    self.show_rules(&inside),
                    self.reference(&name, &e)
                )
            }
            8 if self.dims.len() > 1 && self.is_box && this.on.is_empty() => {
                self.traits.insert("window");
                let (lead, sign) = self.order[0];
                let others: Vec<usize> = (0..reach).filter(|d| *d != lead).collect();
                let d = source.pick(&others);
                let (least, most) = (source.int(-2, 1), source.int(0, 3));
                let at = |shift: i64| {
                    let mut e = vec![self.constant(0); reach];
                    e[lead].c = sign;
                    e[d].c = -shift;
                    e
                };
                let mut rules = self.inside(&at(least), &[], &[]);
                rules.extend(self.inside(&at(most), &[], &[]));
                let index: Vec<String> = at(0)
                    .iter()
                    .enumerate()
                    .map(|(k, e)| {
                        let text = self.show(&self.dim(k).add(e, -1));
                        if k == d { format!("{text} + w") } else { text }
                    })
                    .collect();
                let op = match ty {
                    "bool" => source.pick(&["&&", "||"]),
                    _ => source.pick(&["+", "max"]),
                };
                let distances: Vec<Vec<Lin>> = (least..=most).map(at).collect();
                self.distances.extend(distances);
                let otherwise = self.leaf(ty, &all, source);
                format!(
                    "select({}, reduce({op}, w in {least}..{}, {name}({})), {otherwise})",
                    self.show_rules(&rules),
                    most + 1,
                    index.join(", ")
                )
            }
            _ => {
                let mut body = self.term(ty, &this, source);
                for _ in 0..source.pick(&[0, 1, 1, 2]) {
                    let term = if source.chance(60) {
                        self.term(ty, &this, source)
                    } else {
                        self.leaf(ty, &all, source)
                    };
                    body = self.combine(ty, &body, &term, source);
                }
                if source.chance(10) {
                    self.traits.insert("let");
                    let value = self.leaf(ty, &all, source);
                    let h = format!("h{}", self.vars.len());
                    let sum = self.combine(ty, &body, &h, source);
                    let value = if ty == "bool" {
                        value
                    } else {
                        format!("{ty}({value})")
                    };
                    body = format!("(let {h} = {value}; {sum})");
                }
                if source.chance(10) {
                    self.traits.insert("choice by value");
                    let (a, b) = (self.leaf(ty, &all, source), self.leaf(ty, &all, source));
                    body = if ty == "bool" {
                        format!("select({a} || {b}, {body}, {b})")
                    } else {
                        format!("select({ty}({a}) < {ty}({b}), {body}, {ty}({b}))")
                    };
                }
                body
            }
        };
        let on = match this.on.as_slice() {
            [] => String::new(),
            rules => format!(" on {}", self.show_rules(rules)),
        };
        let written = if this.tuple {
            format!("({ty}, i64)")
        } else {
            ty.to_string()
        };
        this.text = format!("var {name}: {written}{law}{on} = {body};");
        self.vars.push(this);
    }

    /// An input at forms that do not change along a direction.
    fn read_along(&mut self, ty: &'static str, index: &[Lin], source: &mut Source) -> String {
        let mut forms: Vec<Lin> = index.to_vec();
        source.shuffle(&mut forms);
        forms.truncate(source.pick(&[1, 2]));
        if forms.is_empty() {
            forms.push(self.constant(0));
        }
        let name = format!("x{}", self.arrays.len());
        let axes: Vec<String> = forms.iter().map(|_| source.int(3, 8).to_string()).collect();
        let outside = self.literal(ty, source);
        let text: Vec<String> = forms.iter().map(|f| self.show(f)).collect();
        self.arrays.push(Array {
            name: name.clone(),
            ty,
            axes: format!(
                "{}]: {ty} else {}",
                axes.join(", "),
                outside.trim_start_matches('-')
            ),
            reads: Some(vec![forms]),
            exact: None,
        });
        format!("{name}[{}]", text.join(", "))
    }

    /// A variable in core form: a `reduce` or a `scan`.
    fn core_form(&mut self, ty: &'static str, source: &mut Source) {
        self.traits.insert(type_trait(ty));
        let op = match ty {
            "bool" => source.pick(&["&&", "||"]),
            "f32" | "f64" => source.pick(&["+", "+", "min", "max"]),
            _ => source.pick(&["+", "+", "min", "max", "^"]),
        };
        let n = self.dims.len();
        let inexact = is_float(ty) && op == "+";
        self.regroups_floats |= inexact;
        let law = if inexact { " reorderable" } else { "" };
        let name = ["U", "V", "W", "Y"][self.vars.len()].to_string();
        if source.chance(30) {
            self.traits.insert("scan");
            let d = source.below(n);
            let body = self.leaf(ty, &self.plain(), source);
            let text = if source.chance(60) {
                format!(
                    "var {name}: {ty}{law} = scan({op}, {}, {body});",
                    self.dims[d]
                )
            } else {
                let other = self.leaf(ty, &self.plain(), source);
                let sum = format!("scan({op}, {}, {body})", self.dims[d]);
                format!(
                    "var {name}: {ty}{law} = {};",
                    self.combine(ty, &sum, &other, source)
                )
            };
            let mut e = vec![self.constant(0); n];
            e[d].c = 1;
            // A scan runs upwards, whatever the hidden order says.
            if let Some(at) = self.order.iter().position(|(k, _)| *k == d) {
                self.order[at].1 = 1;
            }
            self.distances.push(e);
            self.vars.push(Variable {
                name,
                ty,
                tuple: false,
                on: Vec::new(),
                text,
            });
            return;
        }
        self.traits.insert("reduce");
        let room = 4usize.saturating_sub(n + self.bound.len());
        if room == 0 {
            return;
        }
        let n_bound = source.pick(&[1, 1, 2]).min(room);
        let first = n + self.bound.len();
        let mut ranges = Vec::new();
        for k in 0..n_bound {
            let lo = source.pick(&[0, 0, 1, -1]);
            let mut hi = self.constant(lo + source.int(1, 4));
            if !self.params.is_empty() && source.chance(50) {
                hi = self.constant(lo.max(0));
                hi.params[source.below(self.params.len())] = 1;
            } else if k == 0 && self.is_box && source.chance(60) {
                // As many terms as the first iterator says, at least one.
                self.traits.insert("triangular sum");
                hi = self.dim(0).add(&self.bounds[0].0.clone(), -1).plus(lo + 1);
            }
            let bounding = if hi.dims.iter().any(|a| *a != 0) {
                let (least, greatest) = self.bounds[0].clone();
                greatest.add(&least, -1).plus(lo + 1)
            } else {
                hi.clone()
            };
            let name = ["q", "p", "r"][self.bound.len()];
            ranges.push(format!("{name} in {lo}..{}", self.show(&hi)));
            self.bounds.push((self.constant(lo), bounding));
            self.bound.push(name.into());
        }
        let total = n + self.bound.len();
        let reach: Vec<usize> = (0..n).chain(first..total).collect();
        if n + n_bound == total && ty != "bool" && source.chance(20) {
            return self.best(&name, ty, &ranges, first, source);
        }
        let mut body = self.read(ty, &reach, source);
        if source.chance(60) {
            let other = self.leaf(ty, &reach, source);
            body = self.combine(ty, &body, &other, source);
        }
        let whole = self.vars.last().filter(|v| v.on.is_empty());
        let with_var = whole.filter(|_| source.chance(50)).cloned();
        if let Some(var) = with_var {
            self.traits.insert("variable inside a sum");
            let value = self.convert(var.name.clone(), &var, ty, source);
            body = self.combine(ty, &body, &value, source);
        }
        let sum = format!("reduce({op}, {}, {body})", ranges.join(", "));
        let text = if source.chance(70) {
            format!("var {name}: {ty}{law} = {sum};")
        } else {
            self.traits.insert("sum inside an expression");
            let other = self.leaf(ty, &self.plain(), source);
            format!(
                "var {name}: {ty}{law} = {};",
                self.combine(ty, &sum, &other, source)
            )
        };
        self.sums.push((name.clone(), (first..total).collect()));
        self.vars.push(Variable {
            name,
            ty,
            tuple: false,
            on: Vec::new(),
            text,
        });
    }

    /// The least element of a sum and where it is.
    fn best(
        &mut self,
        name: &str,
        ty: &'static str,
        ranges: &[String],
        first: usize,
        source: &mut Source,
    ) {
        self.traits.insert("tuple");
        self.traits.insert("reduce with a function");
        let total = self.dims.len() + self.bound.len();
        let f = self.argmin(ty, "reorderable");
        let reach: Vec<usize> = (0..total).collect();
        let value = self.leaf(ty, &reach, source);
        let at = &self.bound[first - self.dims.len()];
        let text = format!(
            "var {name}: ({ty}, i64) = reduce({f}, {}, ({ty}({value}), {at}));",
            ranges.join(", ")
        );
        self.sums.push((name.to_string(), (first..total).collect()));
        self.vars.push(Variable {
            name: name.to_string(),
            ty,
            tuple: true,
            on: Vec::new(),
            text,
        });
    }

    fn argmin(&mut self, ty: &str, law: &str) -> String {
        let f = format!("f{}", self.functions.len());
        let law = if law.is_empty() {
            String::new()
        } else {
            format!(" {law}")
        };
        self.functions.push(format!(
            "fn {f}(a: ({ty}, i64), b: ({ty}, i64)) -> ({ty}, i64){law} = \
             select(b.0 < a.0 || (b.0 == a.0 && b.1 < a.1), b, a);"
        ));
        self.traits.insert("function");
        f
    }

    fn text(&self) -> String {
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

fn apply(op: &str, a: &str, b: &str) -> String {
    match op {
        "min" | "max" => format!("{op}({a}, {b})"),
        _ => format!("({a} {op} {b})"),
    }
}

/// Forms that do not change along a direction.
fn invariant(e: &[Lin], n_dims: usize, n_params: usize) -> Vec<Lin> {
    let moving: Vec<usize> = (0..e.len()).filter(|d| !e[*d].is_zero()).collect();
    let mut forms: Vec<Lin> = (0..n_dims)
        .filter(|d| !moving.contains(d))
        .map(|d| Lin::dim(d, n_dims, n_params))
        .collect();
    let constant = |d: usize| e[d].params.iter().all(|a| *a == 0);
    if let [a, b, ..] = moving.as_slice()
        && constant(*a)
        && constant(*b)
    {
        let mut form = Lin::constant(0, n_dims, n_params);
        form.dims[*a] = e[*b].c;
        form.dims[*b] = -e[*a].c;
        forms.push(form);
    }
    forms
}

/// A mapping while it is drawn.
#[derive(Default)]
struct Plan {
    head: Vec<String>,
    place: Vec<(&'static str, String)>,
    time: Vec<(&'static str, String)>,
    whens: Vec<String>,
    tail: Vec<String>,
    traits: BTreeSet<&'static str>,
}

/// What a mapping has to deal with, with numbers for the parameters.
struct Task<'a> {
    sketch: &'a Sketch,
    /// All iterators, those of sums last.
    dims: Vec<String>,
    distances: Vec<Vec<Lin>>,
    order: Vec<(usize, i64)>,
}

fn draw_mapping(sketch: &Sketch, n: usize, source: &mut Source) -> DrawnMapping {
    let dims: Vec<String> = sketch.dims.iter().chain(&sketch.bound).cloned().collect();
    let mut plan = Plan::default();
    let mut task = Task {
        sketch,
        distances: sketch.distances.clone(),
        order: sketch.order.clone(),
        dims,
    };
    task.choose_sums(&mut plan, source);
    task.choose_forwarding(&mut plan, source);
    for e in &mut task.distances {
        e.resize(task.dims.len(), Lin::constant(0, 0, sketch.params.len()));
    }
    match source.below(100) {
        0..=29 => task.linear(&mut plan, source),
        30..=44 => task.lexicographic(&mut plan, source),
        45..=59 => task.tiled(&mut plan, source),
        60..=77 => task.overlapped(&mut plan, source),
        78..=83 => task.digits(&mut plan, source),
        84..=88 => task.table1(&mut plan, source),
        _ => task.anything(&mut plan, source),
    }
    task.vary(&mut plan, source);
    plan.finish(n, source)
}

fn unit(d: usize, c: i64, n_dims: usize, n_params: usize) -> Vec<Lin> {
    let mut e = vec![Lin::constant(0, 0, n_params); n_dims];
    e[d].c = c;
    e
}

impl Task<'_> {
    /// `sum Z along …`, and the dependences that come of it.
    fn choose_sums(&mut self, plan: &mut Plan, source: &mut Source) {
        let (n, n_params) = (self.dims.len(), self.sketch.params.len());
        for (var, dims) in &self.sketch.sums {
            let mut order = dims.clone();
            order.reverse();
            let mut signs = vec![1; order.len()];
            match source.below(6) {
                0 => {}
                1 => {
                    plan.tail.push(format!("sum {var} tree"));
                    plan.traits.insert("sum tree");
                }
                _ => {
                    source.shuffle(&mut order);
                    for sign in &mut signs {
                        *sign = source.pick(&[1, 1, -1]);
                    }
                    let list: Vec<String> = order
                        .iter()
                        .zip(&signs)
                        .map(|(d, s)| {
                            let sign = if *s < 0 { "-" } else { "" };
                            format!("{sign}{}", self.dims[*d])
                        })
                        .collect();
                    let list = if list.len() == 1 {
                        list[0].clone()
                    } else {
                        format!("({})", list.join(", "))
                    };
                    plan.tail.push(format!("sum {var} along {list}"));
                    plan.traits.insert("sum along");
                    if signs.contains(&-1) {
                        plan.traits.insert("descending sum");
                    }
                }
            }
            // Outermost of the sum first, behind the index space.
            for (d, sign) in order.iter().zip(&signs).rev() {
                self.order.push((*d, *sign));
                self.distances.push(unit(*d, *sign, n, n_params));
            }
        }
        for d in self.sketch.dims.len()..n {
            if !self.order.iter().any(|(k, _)| *k == d) {
                self.order.push((d, 1));
            }
        }
    }

    /// `forward x along e` with a direction in which the element stays the same.
    fn choose_forwarding(&mut self, plan: &mut Plan, source: &mut Source) {
        let (n, n_params) = (self.dims.len(), self.sketch.params.len());
        for array in &self.sketch.arrays {
            let Some(reads) = array.reads.as_ref().filter(|r| !r.is_empty()) else {
                continue;
            };
            if !source.chance(35) {
                continue;
            }
            let candidates: Vec<Vec<i64>> = vectors(n)
                .into_iter()
                .filter(|e| {
                    e.iter().any(|c| *c != 0)
                        && reads.iter().flatten().all(|form| {
                            form.dims.iter().zip(e).map(|(a, e)| a * e).sum::<i64>() == 0
                        })
                })
                .collect();
            if candidates.is_empty() {
                continue;
            }
            let e = source.pick(&candidates);
            let list: Vec<String> = e.iter().map(i64::to_string).collect();
            let list = if n == 1 {
                list[0].clone()
            } else {
                list.join(", ")
            };
            plan.tail
                .push(format!("forward {} along ({list})", array.name));
            plan.traits.insert("forward");
            self.distances
                .push(e.iter().map(|c| Lin::constant(*c, 0, n_params)).collect());
        }
    }

    fn form(&self, row: &[i64]) -> String {
        let lin = Lin {
            dims: row.to_vec(),
            params: Vec::new(),
            c: 0,
        };
        lin.text(&self.dims, &[])
    }

    /// The distances at two sizes.
    fn numbers(&self) -> Vec<Vec<i64>> {
        let mut list = Vec::new();
        for extra in [1, 4] {
            let params: Vec<i64> = self.sketch.params.iter().map(|p| p.1 + extra).collect();
            for e in &self.distances {
                list.push(e.iter().map(|lin| lin.at(&params)).collect());
            }
        }
        list
    }

    /// A linear schedule along which all dependences take time, if a few tries find one.
    fn schedule(&self, source: &mut Source) -> Option<Vec<i64>> {
        let numbers = self.numbers();
        for attempt in 0..60 {
            let wide = if attempt < 30 { 2 } else { 4 };
            let h: Vec<i64> = self
                .dims
                .iter()
                .map(|_| source.int(-wide + 1, wide + 1))
                .collect();
            if numbers.iter().all(|e| dot(&h, e) >= 1) && h.iter().any(|c| *c != 0) {
                return Some(h);
            }
        }
        None
    }

    fn row(&self, source: &mut Source) -> Vec<i64> {
        let mut row = vec![0; self.dims.len()];
        for _ in 0..source.pick(&[1, 1, 1, 2]) {
            let d = source.below(row.len());
            row[d] = source.pick(&[1, 1, 1, -1, 2]);
        }
        row
    }

    /// Rows independent of what is there, up to full rank.
    fn complete(&self, rows: &[Vec<i64>], upto: usize, source: &mut Source) -> Vec<Vec<i64>> {
        let mut all = rows.to_vec();
        for _ in 0..60 {
            if all.len() >= upto {
                break;
            }
            let row = self.row(source);
            all.push(row);
            if rank(&all) < all.len() {
                all.pop();
            }
        }
        all.split_off(rows.len())
    }

    /// PE = P z, time = s·z, and the rest of the coordinates behind s.
    fn linear(&self, plan: &mut Plan, source: &mut Source) {
        let Some(h) = self.schedule(source) else {
            return self.lexicographic(plan, source);
        };
        let n = self.dims.len();
        let places = self.complete(std::slice::from_ref(&h), n, source);
        let n_places = match source.below(10) {
            0..=6 => places.len(),
            _ => source.below(places.len() + 1),
        };
        if n_places + 1 < n {
            plan.traits.insert("several projections");
        }
        plan.time.push(("time", self.form(&h)));
        for (k, row) in places.iter().enumerate() {
            if k < n_places {
                plan.place.push(("lane", self.form(row)));
            } else if source.chance(90) {
                plan.time.push(("time", self.form(row)));
            }
        }
        let mut rows = places[..n_places].to_vec();
        rows.push(h);
        if rows.len() == n {
            match determinant(&rows).abs() {
                0 => {}
                1 => self.reverse(plan, &rows, source),
                _ => {
                    plan.traits.insert("not unimodular");
                }
            }
        }
    }

    /// The inverse of a unimodular mapping, sometimes spoilt.
    fn reverse(&self, plan: &mut Plan, rows: &[Vec<i64>], source: &mut Source) {
        if !source.chance(20) {
            return;
        }
        let n = rows.len();
        let mut inverse = inverse(rows);
        plan.traits.insert("reverse given");
        if source.chance(30) {
            plan.traits.insert("wrong reverse given");
            let (d, k) = (source.below(n), source.below(n));
            inverse[d][k] += 1;
        }
        let mut names: Vec<String> = (0..n - 1)
            .map(|k| {
                if k == 0 {
                    "lane".into()
                } else {
                    format!("lane{k}")
                }
            })
            .collect();
        names.push("time".into());
        let bindings: Vec<String> = inverse
            .iter()
            .zip(&self.dims)
            .map(|(row, dim)| {
                let lin = Lin {
                    dims: row.clone(),
                    params: Vec::new(),
                    c: 0,
                };
                format!("{dim} = {}", lin.text(&names, &[]))
            })
            .collect();
        plan.tail.push(format!("reverse ({})", bindings.join(", ")));
    }

    fn signed(&self, d: usize, sign: i64, name: &str) -> String {
        let _ = d;
        if sign < 0 {
            format!("-{name}")
        } else {
            name.to_string()
        }
    }

    /// The hidden order as time, some of it as place.
    fn lexicographic(&self, plan: &mut Plan, source: &mut Source) {
        let n = self.order.len();
        let placed = match source.below(4) {
            0 => 0,
            _ => source.below(n),
        };
        if placed == 0 {
            plan.traits.insert("no place");
        }
        let mut chosen: Vec<usize> = (0..n).collect();
        source.shuffle(&mut chosen);
        chosen.truncate(placed);
        let mut skew = Vec::new();
        for (at, (d, sign)) in self.order.iter().enumerate() {
            let form = self.signed(*d, *sign, &self.dims[*d]);
            if chosen.contains(&at) {
                plan.place.push(("lane", self.dims[*d].clone()));
                skew.push(form);
            } else {
                plan.time.push(("time", form));
            }
        }
        if plan.time.is_empty() {
            plan.time.push(("time", "0".into()));
        }
        if source.chance(70) {
            let at = source.below(plan.time.len());
            for form in skew {
                plan.time[at].1 = format!("{} + ({form})", plan.time[at].1);
            }
        }
        if placed + 1 < n {
            plan.traits.insert("several projections");
        }
    }

    /// The hidden order with an iterator cut in two; outer parts become launches, blocks or steps.
    fn tiled(&self, plan: &mut Plan, source: &mut Source) {
        plan.traits.insert("tile");
        let mut steps: Vec<String> = Vec::new();
        let cut = source.below(self.order.len());
        for (at, (d, sign)) in self.order.iter().enumerate() {
            let name = &self.dims[*d];
            if at == cut {
                let mut size = source.int(2, 5).to_string();
                if source.chance(6)
                    && let Some((param, _)) = self.sketch.params.first()
                {
                    plan.traits.insert("tile of a parameter");
                    size.clone_from(param);
                }
                plan.head
                    .push(format!("tile {name} by {size} as (b{name}, {name}{name})"));
                steps.push(self.signed(*d, *sign, &format!("b{name}")));
                let inner = format!("{name}{name}");
                if source.chance(25) {
                    plan.traits.insert("tile of a tile");
                    plan.head
                        .push(format!("tile {inner} by 2 as (c{name}, d{name})"));
                    steps.push(self.signed(*d, *sign, &format!("c{name}")));
                    steps.push(self.signed(*d, *sign, &format!("d{name}")));
                } else {
                    steps.push(self.signed(*d, *sign, &inner));
                }
            } else {
                steps.push(self.signed(*d, *sign, name));
            }
        }
        if source.chance(30) {
            let (a, b) = (source.below(steps.len()), source.below(steps.len()));
            steps.swap(a, b);
        }
        let n_launches = if source.chance(40) {
            source.pick(&[1, 1, 2])
        } else {
            0
        };
        for (at, form) in steps.iter().enumerate() {
            let last = at + 1 == steps.len() && plan.time.is_empty();
            if at < n_launches && !last {
                plan.traits.insert("launch");
                plan.time.push(("launch", form.clone()));
            } else if source.chance(25) && !last {
                let level = source.pick(&["block", "warp", "lane", "lane", "node"]);
                plan.place
                    .push((level, form.trim_start_matches('-').to_string()));
                if source.chance(50)
                    && let Some(step) = plan.time.iter_mut().rev().find(|t| t.0 == "time")
                {
                    step.1 = format!("{} + ({form})", step.1);
                }
            } else if source.chance(10) && plan.time.iter().all(|t| t.0 != "time") {
                plan.traits.insert("block step");
                plan.time.push(("block_step", form.clone()));
            } else {
                plan.time.push(("time", form.clone()));
            }
        }
        if plan.time.is_empty() {
            plan.time.push(("time", "0".into()));
        }
        if source.chance(20) {
            plan.tail.push("flags".into());
            plan.traits.insert("flags");
        }
    }

    /// Sweeps in overlapped tiles: the first of the hidden order runs, another iterator is tiled.
    fn overlapped(&self, plan: &mut Plan, source: &mut Source) {
        let candidates: Vec<usize> = (0..self.sketch.dims.len())
            .filter(|d| *d != self.order[0].0)
            .collect();
        if candidates.is_empty() || !self.sketch.is_box {
            return self.tiled(plan, source);
        }
        let (t, sign) = self.order[0];
        let x = source.pick(&candidates);
        let sweeps = source.int(1, 4);
        let reach = |sign: i64| {
            let most = self.numbers().iter().map(|e| sign * e[x]).max();
            most.unwrap_or(0).clamp(0, 3) * sweeps
        };
        let spoil = |halo: i64, source: &mut Source| (halo + source.pick(&[0, 0, 0, 1, -1])).max(0);
        let (lo, hi) = (spoil(reach(1), source), spoil(reach(-1), source));
        let (x_name, t_name) = (&self.dims[x], &self.dims[t]);
        let size = source.int(2, 6);
        plan.head.push(format!(
            "tile {x_name} by {size} as (bx, xx) overlap ({lo}, {hi})"
        ));
        if source.chance(6) {
            plan.traits.insert("tiles in launches");
            plan.time
                .push(("launch", source.pick(&["bx", "-bx"]).into()));
        }
        plan.traits.insert(if lo + hi > 0 {
            "overlap"
        } else {
            "overlap of 0"
        });
        let run = if sign < 0 {
            format!("-{t_name}")
        } else {
            t_name.clone()
        };
        match source.below(6) {
            0 => plan.time.push(("time", run)),
            1 => {
                plan.time.push(("launch", run));
                plan.traits.insert("launch");
            }
            _ => {
                plan.head
                    .push(format!("tile {t_name} by {sweeps} as (tl, u)"));
                plan.time.push(("launch", self.signed(t, sign, "tl")));
                plan.time.push(("time", self.signed(t, sign, "u")));
                plan.traits.insert("launch");
                plan.traits.insert("tile");
            }
        }
        plan.place.push((
            source.pick(&["block", "block", "block", "warp", "lane"]),
            "bx".into(),
        ));
        match source.below(4) {
            0 => plan.time.push(("time", "xx".into())),
            _ => plan.place.push(("lane", format!("xx + {lo}"))),
        }
        let mut second = source.chance(25);
        for (d, sign) in self.order.iter().skip(1) {
            if *d == x {
                continue;
            }
            if second && *d < self.sketch.dims.len() {
                second = false;
                plan.traits.insert("two overlapped tiles");
                let reach = |sign: i64| {
                    let most = self.numbers().iter().map(|e| sign * e[*d]).max();
                    most.unwrap_or(0).clamp(0, 2) * sweeps
                };
                let (lo, hi) = (spoil(reach(1), source), spoil(reach(-1), source));
                let size = source.int(2, 5);
                plan.head.push(format!(
                    "tile {} by {size} as (by, yy) overlap ({lo}, {hi})",
                    self.dims[*d]
                ));
                plan.place.push(("block", "by".into()));
                if source.chance(50) {
                    plan.place.push(("lane", format!("yy + {lo}")));
                } else {
                    plan.time.push(("time", self.signed(*d, *sign, "yy")));
                }
                continue;
            }
            let form = self.signed(*d, *sign, &self.dims[*d]);
            if source.chance(20) {
                plan.place.push(("lane", self.dims[*d].clone()));
            } else {
                plan.time.push(("time", form));
            }
        }
        if plan.time.iter().all(|(level, _)| *level == "launch") && source.chance(70) {
            plan.time.push(("time", "0".into()));
        }
    }

    /// A linear time with parameters in it.
    fn digits(&self, plan: &mut Plan, source: &mut Source) {
        if self.sketch.params.is_empty() {
            return self.linear(plan, source);
        }
        plan.traits.insert("schedule with a parameter");
        let param = self.sketch.params[source.below(self.sketch.params.len())]
            .0
            .clone();
        let n = self.order.len();
        let mut forms: Vec<String> = Vec::new();
        let split = source.below(n);
        for (at, (d, sign)) in self.order.iter().enumerate() {
            let name = &self.dims[*d];
            let sign = if *sign < 0 { "-" } else { "" };
            let factor = match (at < split, source.below(4)) {
                (false, 0..=2) => String::new(),
                (false, _) => "2*".into(),
                (true, 0) => format!("({param} + 1)*"),
                (true, _) => format!("{param}*"),
            };
            forms.push(format!("{sign}{factor}{name}"));
        }
        plan.time
            .push(("time", forms.join(" + ").replace("+ -", "- ")));
        for row in self.complete(&[], source.below(n), source) {
            plan.place.push(("lane", self.form(&row)));
        }
    }

    /// The same as `linear`, in the words of the paper.
    fn table1(&self, plan: &mut Plan, source: &mut Source) {
        let n = self.dims.len();
        let Some(h) = self
            .schedule(source)
            .filter(|_| n == self.sketch.dims.len())
        else {
            return self.linear(plan, source);
        };
        let mut rows = self.complete(std::slice::from_ref(&h), n, source);
        rows.push(h);
        let mut columns: Vec<usize> = (0..n).collect();
        source.shuffle(&mut columns);
        let src: Vec<&str> = columns.iter().map(|d| self.dims[*d].as_str()).collect();
        let dst: Vec<String> = (0..rows.len() - 1)
            .map(|k| format!("s{k}"))
            .chain(["t".to_string()])
            .collect();
        let matrix: Vec<String> = rows
            .iter()
            .map(|row| {
                let row: Vec<String> = columns.iter().map(|d| row[*d].to_string()).collect();
                format!("({})", row.join(", "))
            })
            .collect();
        plan.traits.insert("table 1");
        let tuple = |list: &[String]| format!("({})", list.join(", "));
        let src: Vec<String> = src.iter().map(|s| (*s).to_string()).collect();
        plan.tail.push(format!(
            "{}.space_time_transform({}, {}, {})",
            self.sketch.vars[0].name,
            tuple(&src),
            tuple(&dst),
            tuple(&matrix)
        ));
    }

    /// Forms without any plan.
    fn anything(&self, plan: &mut Plan, source: &mut Source) {
        let n = self.dims.len();
        for _ in 0..source.below(n + 1) {
            let level = source.pick(&["lane", "lane", "lane", "warp", "block", "node", "reg"]);
            let mut form = self.form(&self.row(source));
            if source.chance(20) {
                form = format!("({form}) {} {}", source.pick(&["/", "%"]), source.int(2, 4));
            }
            plan.place.push((level, form));
        }
        for k in 0..source.pick(&[1, 1, 2, 3]) {
            let row: Vec<i64> = (0..n).map(|_| source.int(-1, 3)).collect();
            let level = match (k, source.below(8)) {
                (0, 0) => "launch",
                (0, 1) => "block_step",
                _ => "time",
            };
            match level {
                "launch" => {
                    plan.traits.insert("launch");
                }
                "block_step" => {
                    plan.traits.insert("block step");
                }
                _ => {}
            }
            plan.time.push((level, self.form(&row)));
        }
    }

    /// Variations on any plan.
    fn vary(&self, plan: &mut Plan, source: &mut Source) {
        if plan.traits.contains("table 1") {
            return;
        }
        let lanes: Vec<usize> = (0..plan.place.len())
            .filter(|k| plan.place[*k].0 == "lane")
            .collect();
        let reversed = plan.traits.contains("reverse given");
        if !lanes.is_empty() && !reversed && source.chance(22) {
            let at = source.pick(&lanes);
            let (v, form) = (source.int(2, 5), plan.place[at].1.clone());
            plan.traits.insert("V > 1");
            plan.place[at].1 = format!("({form})/{v}");
            plan.place.push(("reg", format!("({form}) % {v}")));
        } else if lanes.len() > 1 && !reversed && source.chance(25) {
            let at = source.pick(&lanes);
            plan.place[at].0 = source.pick(&["warp", "block", "reg", "node"]);
            if source.chance(40) {
                plan.tail.push("flags".into());
                plan.traits.insert("flags");
            }
        }
        if source.chance(8) && !reversed && !plan.place.is_empty() {
            let at = source.below(plan.place.len());
            let param = self.sketch.params.first().map_or("7", |p| p.0.as_str());
            plan.traits.insert("place with an offset");
            plan.place[at].1 = match source.below(3) {
                0 => format!("{} - 3", plan.place[at].1),
                1 => format!("{param} - 1 - ({})", plan.place[at].1),
                _ => format!("{} + {param}", plan.place[at].1),
            };
        }
        if source.chance(12) && !reversed {
            self.pieces(plan, source);
            if source.chance(25) {
                plan.traits.insert("several pieces");
                self.pieces(plan, source);
            }
        }
        if source.chance(18) {
            let var = source.pick(&self.sketch.vars).name;
            plan.tail.push(format!("broadcast {var}"));
            plan.traits.insert("broadcast");
        }
        if source.chance(10) {
            plan.tail.push(source.pick(&["check", "auto"]).into());
        }
        // Something to go wrong.
        if source.chance(16) && !reversed {
            // Pieces have the same coordinates.
            let kind = if plan.whens.is_empty() {
                source.below(4)
            } else {
                2
            };
            match kind {
                0 if plan.place.len() > 1 => {
                    let at = source.below(plan.place.len());
                    plan.place.remove(at);
                }
                1 if plan.time.len() > 1 => {
                    let at = source.below(plan.time.len());
                    plan.time.remove(at);
                }
                _ => {
                    let at = source.below(plan.time.len());
                    plan.time[at].1 = format!("-({})", plan.time[at].1);
                }
            }
        }
    }

    /// A half-space with places and times that differ by constants.
    fn pieces(&self, plan: &mut Plan, source: &mut Source) {
        let d = source.below(self.sketch.dims.len());
        let name = &self.dims[d];
        let cond = match source.below(3) {
            0 => format!("{name} < {}", source.int(0, 4)),
            1 => format!("{name} >= {}", source.int(0, 4)),
            _ => format!("{name} % 2 == {}", source.int(0, 2)),
        };
        let moved = |list: &[(&'static str, String)], by: i64| {
            let list: Vec<(&'static str, String)> = list
                .iter()
                .enumerate()
                .map(|(k, (level, form))| {
                    let by = if k == 0 { by } else { 0 };
                    (*level, format!("{form} + {by}"))
                })
                .collect();
            levels(&list)
        };
        let (p, t) = (source.pick(&[0, 0, 10, 1, 20]), source.pick(&[0, 0, 1, 7]));
        let mut lines = moved(&plan.place, p);
        lines.extend(moved(&plan.time, t));
        plan.whens
            .push(format!("when {cond} {{ {} }}", lines.join(" ")));
        plan.traits.insert("pieces");
    }
}

impl Plan {
    fn finish(mut self, n: usize, source: &mut Source) -> DrawnMapping {
        let mut text = format!("mapping m{n} of drawn {{\n");
        for line in &self.head {
            let _ = writeln!(text, "  {line};");
        }
        for line in levels(&self.place).iter().chain(&levels(&self.time)) {
            let _ = writeln!(text, "  {line}");
        }
        for line in &self.whens {
            let _ = writeln!(text, "  {line}");
        }
        source.shuffle(&mut self.tail);
        for line in &self.tail {
            let _ = writeln!(text, "  {line};");
        }
        text.push_str("}\n");
        if self.place.len() > 1 {
            self.traits.insert("several place coordinates");
        }
        if self.time.len() > 1 {
            self.traits.insert("several time coordinates");
        }
        DrawnMapping {
            text,
            traits: self.traits,
        }
    }
}

/// `lane = (a, b);`, one line for each level.
fn levels(list: &[(&'static str, String)]) -> Vec<String> {
    let mut names: Vec<&str> = Vec::new();
    for (level, _) in list {
        if !names.contains(level) {
            names.push(level);
        }
    }
    names
        .into_iter()
        .map(|name| {
            let forms: Vec<&str> = list
                .iter()
                .filter(|(level, _)| *level == name)
                .map(|(_, form)| form.as_str())
                .collect();
            match forms.as_slice() {
                [one] => format!("{name} = {one};"),
                many => format!("{name} = ({});", many.join(", ")),
            }
        })
        .collect()
}

fn dot(a: &[i64], b: &[i64]) -> i64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// All vectors over -1, 0, 1.
fn vectors(n: usize) -> Vec<Vec<i64>> {
    let mut list = vec![Vec::new()];
    for _ in 0..n {
        list = list
            .into_iter()
            .flat_map(|v| {
                [-1, 0, 1].map(|c| {
                    let mut v = v.clone();
                    v.push(c);
                    v
                })
            })
            .collect();
    }
    list
}

fn determinant(rows: &[Vec<i64>]) -> i64 {
    let [first, rest @ ..] = rows else { return 1 };
    (0..first.len())
        .map(|k| {
            let minor: Vec<Vec<i64>> = rest
                .iter()
                .map(|row| {
                    let mut row = row.clone();
                    row.remove(k);
                    row
                })
                .collect();
            let sign = if k % 2 == 0 { 1 } else { -1 };
            sign * first[k] * determinant(&minor)
        })
        .sum()
}

/// By minors, of at most four rows.
fn rank(rows: &[Vec<i64>]) -> usize {
    let n = rows.first().map_or(0, Vec::len);
    let size = rows.len().min(n);
    let subsets = |n: usize, k: usize| -> Vec<Vec<usize>> {
        (0..1usize << n)
            .map(|mask| (0..n).filter(|b| mask >> b & 1 == 1).collect::<Vec<_>>())
            .filter(|s| s.len() == k)
            .collect()
    };
    for k in (1..=size).rev() {
        for r in subsets(rows.len(), k) {
            for c in subsets(n, k) {
                let minor: Vec<Vec<i64>> = r
                    .iter()
                    .map(|row| c.iter().map(|col| rows[*row][*col]).collect())
                    .collect();
                if determinant(&minor) != 0 {
                    return k;
                }
            }
        }
    }
    0
}

/// Of a matrix with determinant 1 or -1.
fn inverse(rows: &[Vec<i64>]) -> Vec<Vec<i64>> {
    let n = rows.len();
    let det = determinant(rows);
    (0..n)
        .map(|r| {
            (0..n)
                .map(|c| {
                    let minor: Vec<Vec<i64>> = (0..n)
                        .filter(|k| *k != c)
                        .map(|k| {
                            let mut row = rows[k].clone();
                            row.remove(r);
                            row
                        })
                        .collect();
                    let sign = if (r + c) % 2 == 0 { 1 } else { -1 };
                    sign * det * determinant(&minor)
                })
                .collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_program() {
        for seed in 0..50 {
            assert_eq!(draw(seed, 3).text(), draw(seed, 3).text());
        }
    }

    #[test]
    fn an_inverse_inverts() {
        let rows = vec![vec![1, 1, 0], vec![0, 1, 0], vec![1, 1, 1]];
        let inverse = inverse(&rows);
        for (k, row) in inverse.iter().enumerate() {
            for j in 0..3 {
                let column: Vec<i64> = rows.iter().map(|r| r[j]).collect();
                assert_eq!(dot(row, &column), i64::from(k == j));
            }
        }
        assert_eq!(rank(&[vec![1, 2], vec![2, 4]]), 1);
    }
}
