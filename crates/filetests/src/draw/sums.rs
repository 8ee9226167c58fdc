//! Variables in core form: `reduce` and `scan`.

use super::Source;
use super::known;
use super::system::{Sketch, Variable, is_float, type_trait};

impl Sketch {
    /// A variable in core form: a `reduce` or a `scan`.
    pub(super) fn core_form(&mut self, ty: &'static str, source: &mut Source) {
        self.traits.insert(type_trait(ty));
        let op = match ty {
            "bool" => source.pick(&["&&", "||", "^"]),
            "f32" | "f64" => source.pick(&["+", "+", "min", "max"]),
            _ => source.pick(&["+", "+", "min", "max", "^", "&", "|", "*"]),
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
        let mut n_bound = source.pick(&[1, 1, 2]).min(room);
        let mut first = n + self.bound.len();
        let mut ranges = Vec::new();
        if !known::SAME_ITERATOR && !self.ranges.is_empty() && source.chance(40) {
            self.traits.insert("sums over one iterator");
            first = n;
            n_bound = 0;
            ranges.clone_from(&self.ranges);
        }
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
        if self.ranges.is_empty() {
            self.ranges.clone_from(&ranges);
        }
        let total = n + self.bound.len();
        let reach: Vec<usize> = (0..n).chain(first..total).collect();
        let whole = n + n_bound == total && ty != "bool";
        if whole && !(is_float(ty) && self.rounds) && source.chance(20) {
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
    pub(super) fn best(
        &mut self,
        name: &str,
        ty: &'static str,
        ranges: &[String],
        first: usize,
        source: &mut Source,
    ) {
        self.traits.insert("tuple");
        self.traits.insert("reduce with a function");
        self.decides |= is_float(ty);
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

    pub(super) fn argmin(&mut self, ty: &str, law: &str) -> String {
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
}
