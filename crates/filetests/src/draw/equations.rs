//! Equations: guarded references, inputs, and their combinations.

use super::Source;
use super::lin::{Lin, Rule, invariant};
use super::system::{Array, Sketch, Variable, draw_type, is_float, is_int, type_trait};

impl Sketch {
    /// Backwards in the hidden order.
    pub(super) fn draw_distance(&mut self, source: &mut Source) -> Vec<Lin> {
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

    /// The conditions for "z - e has a value of the variable" that do not follow from those known
    /// at z.
    pub(super) fn inside(&self, e: &[Lin], on: &[Rule], known: &[Rule]) -> Vec<Rule> {
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

    pub(super) fn reference(&self, name: &str, e: &[Lin]) -> String {
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

    pub(super) fn literal(&self, ty: &str, source: &mut Source) -> String {
        match ty {
            "bool" => source.pick(&["true", "false"]).into(),
            "f32" | "f64" => source.pick(&["0.5", "1.25", "-0.75", "0", "3"]).into(),
            _ => source.int(0, 8).to_string(),
        }
    }

    /// The iterators of the index space.
    pub(super) fn plain(&self) -> Vec<usize> {
        (0..self.dims.len()).collect()
    }

    /// `reach`: which iterators may occur, those of `reduce` after the others.
    pub(super) fn leaf(
        &mut self,
        ty: &'static str,
        reach: &[usize],
        source: &mut Source,
    ) -> String {
        match source.below(18) {
            14 => self.cast(ty, reach, source),
            15 => {
                let value = self.read(ty, reach, source);
                self.unary(ty, &value, source)
            }
            16 if is_int(ty) => {
                let (a, b) = (self.read(ty, reach, source), self.read(ty, reach, source));
                self.combine(ty, &a, &b, source)
            }
            17 if is_float(ty) => self.rounded(ty, reach, source),
            0 => self.literal(ty, source),
            2 => self.constant_value(ty, source),
            3 if ty != "bool" => self.lookup(ty, reach, source),
            1 => {
                let all: Vec<String> = self.dims.iter().chain(&self.bound).cloned().collect();
                let d = &all[source.pick(reach)];
                match ty {
                    "bool" => format!("({d} > {})", source.int(-1, 3)),
                    "i64" => source.pick(&[d.clone(), format!("({d})/2"), format!("({d} % 4)")]),
                    _ => format!("{ty}({d})"),
                }
            }
            _ => self.read(ty, reach, source),
        }
    }

    pub(super) fn constant_value(&mut self, ty: &'static str, source: &mut Source) -> String {
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

    pub(super) fn read(
        &mut self,
        ty: &'static str,
        reach: &[usize],
        source: &mut Source,
    ) -> String {
        let same: Vec<usize> = (0..self.arrays.len())
            .filter(|n| {
                let array = &self.arrays[*n];
                let fits = |dims: &Vec<(usize, i64)>| dims.iter().all(|(d, _)| reach.contains(d));
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
            let index: Vec<String> = dims
                .iter()
                .map(|(d, m)| {
                    let form = self.show(&self.dim(*d));
                    if *m == 1 { form } else { format!("{form}/{m}") }
                })
                .collect();
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
            if source.chance(18) {
                affine = false;
                self.traits.insert("division in a read");
                index.push(Self::divided(&text, source));
            } else {
                index.push(text);
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

    pub(super) fn declare(
        &mut self,
        ty: &'static str,
        reach: &[usize],
        source: &mut Source,
    ) -> usize {
        let name = format!("x{}", self.arrays.len());
        let exact = self.is_box && source.chance(40);
        let rank = source.pick(&[1, 1, 2]).min(reach.len());
        let mut dims: Vec<usize> = reach.to_vec();
        source.shuffle(&mut dims);
        dims.truncate(rank);
        let dims: Vec<(usize, i64)> = dims
            .into_iter()
            .map(|d| {
                let divided = exact && source.chance(20);
                (d, if divided { Self::divisor(source) } else { 1 })
            })
            .collect();
        let affine = dims.iter().all(|(_, m)| *m == 1);
        if !affine {
            self.traits.insert("division in a read");
        }
        let axes: Vec<String> = dims
            .iter()
            .map(|(d, m)| {
                let (lo, hi) = self.bounds[*d].clone();
                if *m > 1 {
                    let (lo, hi) = self.quotients(*d);
                    format!("{}..{}", self.show(&lo), self.show(&hi))
                } else if exact {
                    format!("{}..{}", self.show(&lo), self.show(&hi))
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
                    .map(|(d, _)| Lin::dim(*d, total, self.params.len()))
                    .collect(),
            ]
        });
        self.arrays.push(Array {
            name,
            ty,
            axes: format!("{axes}]: {ty}{tail}"),
            reads: affine.then(|| reads.unwrap_or_default()),
            exact: exact.then_some(dims),
        });
        self.arrays.len() - 1
    }

    /// A value of the type made of a reference.
    pub(super) fn convert(
        &mut self,
        value: String,
        var: &Variable,
        ty: &str,
        source: &mut Source,
    ) -> String {
        let value = if var.tuple {
            format!("{value}.0")
        } else {
            value
        };
        if is_float(var.ty) && var.ty != ty && !is_float(ty) {
            // A float that was rounded decides nothing.
            if self.rounds {
                return typed(ty, &self.literal(ty, source));
            }
            self.decides = true;
        }
        match (var.ty, ty) {
            (from, to) if from == to => value,
            ("bool", to) => {
                let (a, b) = (self.literal(to, source), self.literal(to, source));
                format!("select({value}, {to}({a}), {to}({b}))")
            }
            (_, "bool") => format!("({value} > 0)"),
            // Floats must stay exact in any order of their sums.
            (from, to) if is_int(from) && is_float(to) => format!("{to}({value} & 63)"),
            (_, to) => format!("{to}({value})"),
        }
    }

    /// A reference to the variable `source`, guarded; `this` is being defined.
    pub(super) fn term(
        &mut self,
        ty: &'static str,
        this: &Variable,
        source: &mut Source,
    ) -> String {
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
        if source.chance(8) {
            self.traits.insert("guard with a division");
            rules.push(self.floor_rule(source));
        }
        let value = self.reference(&read.name, &e);
        let value = self.convert(value, &read, ty, source);
        if rules.is_empty() {
            return value;
        }
        let otherwise = self.leaf(ty, &self.plain(), source);
        format!("select({}, {value}, {otherwise})", self.show_rules(&rules))
    }

    pub(super) fn variables(&mut self, source: &mut Source) {
        let ty = draw_type(source);
        if self.dims.len() <= 3 && source.chance(32) {
            if source.chance(35) {
                self.variable(ty, source);
            }
            self.core_form(ty, source);
            if source.chance(35) {
                self.traits.insert("several sums");
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

    /// A comparison of a quotient.
    fn floor_rule(&self, source: &mut Source) -> Rule {
        let mut lin = self.constant(source.int(0, 3));
        for _ in 0..source.pick(&[1, 1, 2]) {
            let d = source.below(self.dims.len());
            lin.dims[d] = source.pick(&[1, 1, 2, -1]);
        }
        Rule::Floor(lin, Self::divisor(source), source.int(-1, 3))
    }

    pub(super) fn variable(&mut self, ty: &'static str, source: &mut Source) {
        let name = ["U", "V", "W", "Y"][self.vars.len()].to_string();
        self.traits.insert(type_trait(ty));
        let mut this = Variable {
            name,
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
            this.on.push(match source.below(4) {
                0 => Rule::Mod(lin, source.pick(&[2, 3, 4]), 0),
                1 => self.floor_rule(source),
                _ => Rule::Ge(lin.add(&self.bounds[d].0.clone(), -1).plus(-1)),
            });
        }
        let mut law = "";
        let body = match source.below(12) {
            0..=2 => self.propagation(&this, source),
            3..=5 => {
                let (body, promised) = self.accumulation(&this, source);
                law = promised;
                body
            }
            6 if ty != "bool" && !(is_float(ty) && self.rounds) => {
                this.tuple = true;
                self.pair(&this, source)
            }
            7 if !self.vars.is_empty() => self.carry(&this, source),
            8 if self.dims.len() > 1 && self.is_box && this.on.is_empty() => {
                self.window(&this, source)
            }
            _ => self.anything(&this, source),
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
        this.text = format!("var {}: {written}{law}{on} = {body};", this.name);
        self.vars.push(this);
    }

    /// An input forwarded along a direction in which its element is constant.
    fn propagation(&mut self, this: &Variable, source: &mut Source) -> String {
        self.traits.insert("propagation");
        let e = self.draw_distance(source);
        let inside = self.inside(&e, &this.on, &this.on);
        let index = invariant(&e, self.dims.len(), self.params.len());
        let read = self.read_along(this.ty, &index, source);
        format!(
            "select({}, {}, {read})",
            self.show_rules(&inside),
            self.reference(&this.name, &e)
        )
    }

    /// A sum along a direction, and what is promised of it.
    fn accumulation(&mut self, this: &Variable, source: &mut Source) -> (String, &'static str) {
        self.traits.insert("accumulation");
        let ty = this.ty;
        let e = self.draw_distance(source);
        let inside = self.inside(&e, &this.on, &this.on);
        let start = self.literal(ty, source);
        let term = if self.vars.is_empty() || source.chance(50) {
            self.leaf(ty, &self.plain(), source)
        } else {
            let other = source.pick(&self.vars);
            let zero = vec![self.constant(0); self.dims.len()];
            let rules = self.inside(&zero, &other.on, &this.on);
            let value = self.convert(other.name.clone(), &other, ty, source);
            if rules.is_empty() {
                value
            } else {
                let otherwise = self.leaf(ty, &self.plain(), source);
                format!("select({}, {value}, {otherwise})", self.show_rules(&rules))
            }
        };
        let law = source.pick(&["", "", " associative", " reorderable"]);
        if is_float(ty) && !law.is_empty() {
            self.regroups_floats = true;
        }
        let op = match ty {
            "bool" => source.pick(&["&&", "||", "^"]),
            _ => source.pick(&["+", "+", "+", "min", "max"]),
        };
        let so_far = format!(
            "select({}, {}, {})",
            self.show_rules(&inside),
            self.reference(&this.name, &e),
            typed(ty, &start)
        );
        (apply(op, &so_far, &term), law)
    }

    /// A pair that is carried as one value: the best so far, or two sums.
    fn pair(&mut self, this: &Variable, source: &mut Source) -> String {
        self.traits.insert("tuple");
        let ty = this.ty;
        self.decides |= is_float(ty);
        let e = self.draw_distance(source);
        let inside = self.inside(&e, &this.on, &this.on);
        let inside = self.show_rules(&inside);
        let earlier = self.reference(&this.name, &e);
        let read = self.leaf(ty, &self.plain(), source);
        let d = self.dims[source.below(self.dims.len())].clone();
        let pair = format!("({ty}({read}), {d})");
        let start = self.literal(ty, source);
        if source.chance(50) {
            let law = source.pick(&["", "associative", "reorderable"]);
            let f = self.argmin(ty, law);
            format!("select({inside}, {f}({earlier}, {pair}), {pair})")
        } else {
            let sum = apply("+", &format!("{earlier}.0"), &format!("{ty}({start})"));
            format!("select({inside}, ({sum}, {earlier}.1 + {d}), {pair})")
        }
    }

    /// A computed value forwarded.
    fn carry(&mut self, this: &Variable, source: &mut Source) -> String {
        self.traits.insert("carry");
        let ty = this.ty;
        let e = self.draw_distance(source);
        let inside = self.inside(&e, &this.on, &this.on);
        let other = source.pick(&self.vars);
        let zero = vec![self.constant(0); self.dims.len()];
        let rules = self.inside(&zero, &other.on, &this.on);
        let mut value = self.convert(other.name.clone(), &other, ty, source);
        if !rules.is_empty() {
            let otherwise = typed(ty, &self.literal(ty, source));
            value = format!("select({}, {value}, {otherwise})", self.show_rules(&rules));
        }
        format!(
            "select({}, {}, {value})",
            self.show_rules(&inside),
            self.reference(&this.name, &e)
        )
    }

    /// A stencil: a `reduce` over neighbours of the sweep before.
    fn window(&mut self, this: &Variable, source: &mut Source) -> String {
        self.traits.insert("window");
        let n = self.dims.len();
        let (lead, sign) = self.order[0];
        let others: Vec<usize> = (0..n).filter(|d| *d != lead).collect();
        let d = source.pick(&others);
        let (least, most) = (source.int(-2, 1), source.int(0, 3));
        let at = |shift: i64| {
            let mut e = vec![self.constant(0); n];
            e[lead].c = sign;
            e[d].c = -shift;
            e
        };
        // A box contains all neighbours if it contains the outermost ones.
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
        let op = match this.ty {
            "bool" => source.pick(&["&&", "||"]),
            _ => source.pick(&["+", "max"]),
        };
        let distances: Vec<Vec<Lin>> = (least..=most).map(at).collect();
        self.distances.extend(distances);
        let otherwise = self.leaf(this.ty, &self.plain(), source);
        format!(
            "select({}, reduce({op}, w in {least}..{}, {}({})), {otherwise})",
            self.show_rules(&rules),
            most + 1,
            this.name,
            index.join(", ")
        )
    }

    /// References and inputs, combined by any operators.
    fn anything(&mut self, this: &Variable, source: &mut Source) -> String {
        let ty = this.ty;
        let mut body = self.term(ty, this, source);
        for _ in 0..source.pick(&[0, 1, 1, 2]) {
            let term = if source.chance(60) {
                self.term(ty, this, source)
            } else {
                self.leaf(ty, &self.plain(), source)
            };
            body = self.combine(ty, &body, &term, source);
        }
        if source.chance(10) {
            self.traits.insert("let");
            let value = typed(ty, &self.leaf(ty, &self.plain(), source));
            let h = format!("h{}", self.vars.len());
            let sum = self.combine(ty, &body, &h, source);
            body = format!("(let {h} = {value}; {sum})");
        }
        if source.chance(10) {
            self.traits.insert("choice by value");
            let a = self.leaf(ty, &self.plain(), source);
            let b = self.leaf(ty, &self.plain(), source);
            if is_float(ty) {
                if self.rounds {
                    return body;
                }
                self.decides = true;
            }
            body = if ty == "bool" {
                format!("select({a} || {b}, {body}, {b})")
            } else {
                format!("select({ty}({a}) < {ty}({b}), {body}, {ty}({b}))")
            };
        }
        body
    }

    /// An input at forms that do not change along a direction.
    pub(super) fn read_along(
        &mut self,
        ty: &'static str,
        index: &[Lin],
        source: &mut Source,
    ) -> String {
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
}

pub(super) fn apply(op: &str, a: &str, b: &str) -> String {
    match op {
        "min" | "max" => format!("{op}({a}, {b})"),
        _ => format!("({a} {op} {b})"),
    }
}

/// A value that says its type; a `bool` cannot be anything else.
fn typed(ty: &str, value: &str) -> String {
    if ty == "bool" {
        format!("({value})")
    } else {
        format!("{ty}({value})")
    }
}
