//! What is known at a place in a kernel: the ranges of its variables and the conditions around it.
//!
//! A guard is proved by bounding its form: every variable is replaced, innermost first, by the end
//! of its range that makes the form smallest; what remains must hold for all parameters in the
//! context. If that is not enough, the integer sets decide exactly. Most conditions that are asked
//! about are not always true, and a sample shows it. A few assignments of parameters and variables
//! that satisfy all facts are kept; a form that is negative at one of them needs no proof attempt.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use systola_ir::DimId;
use systola_ir::form::{Atom, Cond, Form, Overflow, Poly, Rel};
use systola_ir::target::Machine;

use crate::decide::Decide;

/// max(lo) ≤ v < min(hi).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Range {
    pub lo: Vec<Form>,
    pub hi: Vec<Form>,
}

impl Range {
    pub fn new(lo: impl Into<Form>, hi: impl Into<Form>) -> Range {
        Range {
            lo: vec![lo.into()],
            hi: vec![hi.into()],
        }
    }

    /// Both ends, if each is a single form.
    pub fn single(&self) -> Option<(&Form, &Form)> {
        match (self.lo.as_slice(), self.hi.as_slice()) {
            ([lo], [hi]) => Some((lo, hi)),
            _ => None,
        }
    }

    /// Constant bounds, valid for all sizes; the range may be smaller.
    pub fn constant(&self) -> Option<(i128, i128)> {
        let lo = self.lo.iter().filter_map(Form::as_constant).max()?;
        let hi = self.hi.iter().filter_map(Form::as_constant).min()?;
        Some((lo, hi))
    }

    pub fn map(&self, f: &impl Fn(&Form) -> Result<Form, Overflow>) -> Result<Range, Overflow> {
        Ok(Range {
            lo: self.lo.iter().map(f).collect::<Result<_, _>>()?,
            hi: self.hi.iter().map(f).collect::<Result<_, _>>()?,
        })
    }

    /// The range without bounds that others imply.
    #[must_use]
    pub fn without_implied(self, facts: &Facts<'_>) -> Range {
        Range {
            lo: furthest(facts, self.lo, &|a, b| a.sub(b)),
            hi: furthest(facts, self.hi, &|a, b| b.sub(a)),
        }
    }

    /// The intersection of both ranges: bounds of the other range that this one does not imply are
    /// added.
    #[must_use]
    pub fn within(mut self, outer: &Range, facts: &Facts<'_>) -> Range {
        for lo in &outer.lo {
            if !self.lo.iter().any(|l| facts.is_nonnegative(&l.sub(lo))) {
                self.lo.push(lo.clone());
            }
        }
        for hi in &outer.hi {
            if !self.hi.iter().any(|h| facts.is_nonnegative(&hi.sub(h))) {
                self.hi.push(hi.clone());
            }
        }
        self
    }

    /// lo ≤ v < hi, for all bounds.
    pub fn holds(&self, v: &Form) -> Cond {
        let lo = self
            .lo
            .iter()
            .map(|lo| Cond::cmp(Rel::Ge, v.clone(), lo.clone()));
        let hi = self
            .hi
            .iter()
            .map(|hi| Cond::cmp(Rel::Lt, v.clone(), hi.clone()));
        lo.chain(hi).fold(Cond::TRUE, Cond::and)
    }
}

/// The tightest forms: those that no other form implies.
fn furthest(
    facts: &Facts<'_>,
    forms: Vec<Form>,
    beyond: &dyn Fn(&Form, &Form) -> Form,
) -> Vec<Form> {
    let implies = |a: &Form, b: &Form| facts.is_nonnegative(&beyond(a, b));
    let mut kept: Vec<Form> = Vec::new();
    for form in forms {
        if !kept.iter().any(|k| implies(k, &form)) {
            kept.retain(|k| !implies(&form, k));
            kept.push(form);
        }
    }
    kept
}

/// What is known.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    decide: &'a Decide,
    /// By variable; a later variable may be bounded by earlier ones.
    ranges: Rc<Vec<Range>>,
    known: Vec<Rc<Cond>>,
    samples: Vec<Rc<Sample>>,
    /// Are the sampled sizes large enough to show what is frequent in large problems?
    large: bool,
    /// Which forms are at least zero here.
    answers: Answers,
    /// The answers of enclosing places, where less was known: what was true there is true here.
    outer: Vec<Answers>,
    /// Answers of the exact sets. Facts are part of each question, so an answer holds everywhere.
    decided: Rc<RefCell<HashMap<Cond, bool>>>,
}

type Answers = Rc<RefCell<HashMap<Form, bool>>>;

/// An assignment of parameters and variables that satisfies all facts.
#[derive(Clone, Debug)]
struct Sample {
    params: Vec<i128>,
    vars: Vec<i128>,
    /// The number of equally likely assignments it stands for: ends of ranges are sampled more
    /// often than they would be in uniform sampling.
    weight: f64,
}

impl Sample {
    fn holds(&self, cond: &Cond) -> bool {
        cond.eval(&self.params, &self.vars) == Ok(true)
    }
}

/// Assignments to try.
const SAMPLES: u64 = 96;

/// Facts that split a question into more cases than this are omitted from it.
const MOST_CASES: usize = 64;

/// At most this many combinations of bounds are tried.
const MOST_BOUNDS: usize = 16;

impl<'a> Facts<'a> {
    pub fn new(decide: &'a Decide, machine: &Machine) -> Facts<'a> {
        Facts {
            decide,
            ranges: Rc::default(),
            known: Vec::new(),
            samples: samples(decide, machine).into_iter().map(Rc::new).collect(),
            large: machine.threads.is_some(),
            answers: Rc::default(),
            outer: Vec::new(),
            decided: Rc::default(),
        }
    }

    pub fn set_range(&mut self, v: DimId, range: Range) {
        let ranges = Rc::make_mut(&mut self.ranges);
        if ranges.len() <= v.index() {
            ranges.resize(v.index() + 1, Range::default());
        }
        let mut pick = Pick(v.index() as u64);
        self.samples.retain_mut(|sample| {
            let ends = |forms: &[Form], vars: &[i128]| -> Option<Vec<i128>> {
                let values = forms.iter().map(|f| f.eval(&sample.params, vars));
                values.collect::<Result<_, _>>().ok()
            };
            let lo = ends(&range.lo, &sample.vars).and_then(|e| e.into_iter().max());
            let hi = ends(&range.hi, &sample.vars).and_then(|e| e.into_iter().min());
            let (Some(lo), Some(hi)) = (lo, hi) else {
                return false;
            };
            if lo >= hi {
                return false;
            }
            let value = match pick.below(4) {
                0 => lo,
                1 => hi - 1,
                _ => lo + pick.below(hi - lo),
            };
            // A quarter of the samples take one end, a quarter the other, and the rest any value.
            let ends = [lo, hi - 1].iter().filter(|end| **end == value).count();
            let values = (hi - lo) as f64;
            let sample = Rc::make_mut(sample);
            sample.weight *= 1.0 / (0.25 * ends as f64 * values + 0.5);
            sample.vars.resize(v.index() + 1, 0);
            sample.vars[v.index()] = value;
            true
        });
        ranges[v.index()] = range;
        self.answers = Rc::default();
        self.outer.clear();
    }

    pub fn range(&self, v: DimId) -> Option<&Range> {
        self.ranges.get(v.index())
    }

    #[must_use]
    pub fn with(&self, cond: Cond) -> Facts<'a> {
        self.with_all([cond])
    }

    fn with_all(&self, conds: impl IntoIterator<Item = Cond>) -> Facts<'a> {
        let mut more = self.clone();
        more.outer.push(std::mem::take(&mut more.answers));
        for cond in conds {
            more.samples.retain(|s| s.holds(&cond));
            more.known.push(Rc::new(cond));
        }
        more
    }

    /// Simplifies a condition with everything that is known.
    pub fn simplify(&self, cond: &Cond) -> Cond {
        match cond {
            Cond::Const(b) => Cond::Const(*b),
            Cond::Cmp(rel, left, right) => self.compare(*rel, &left.sub(right)),
            Cond::And(parts) => {
                let mut kept: Vec<Cond> = Vec::new();
                for part in parts {
                    if kept.contains(part) {
                        continue;
                    }
                    match self.beside(&kept, true, part) {
                        Cond::Const(true) => {}
                        Cond::Const(false) => return Cond::Const(false),
                        Cond::And(inner) => kept.extend(inner),
                        other => kept.push(other),
                    }
                }
                kept.dedup();
                match kept.len() {
                    0 => Cond::TRUE,
                    1 => kept.remove(0),
                    _ => Cond::And(kept),
                }
            }
            Cond::Or(parts) => {
                let mut kept: Vec<Cond> = Vec::new();
                for part in parts {
                    match self.beside(&kept, false, part) {
                        Cond::Const(false) => {}
                        Cond::Const(true) => return Cond::TRUE,
                        Cond::Or(inner) => kept.extend(inner),
                        other => kept.push(other),
                    }
                }
                kept.dedup();
                match kept.len() {
                    0 => Cond::Const(false),
                    1 => kept.remove(0),
                    _ => Cond::Or(kept),
                }
            }
            Cond::Not(inner) => match self.simplify(inner) {
                Cond::Cmp(rel, left, right) => Cond::Cmp(rel.opposite(), left, right),
                other => other.negate(),
            },
        }
    }

    /// Simplifies a part of a conjunction (or disjunction), given that the parts before it hold (or
    /// do not). Plain comparisons stay as they are: a shorter one is not worth the question.
    fn beside(&self, before: &[Cond], hold: bool, part: &Cond) -> Cond {
        let plain = |c: &Cond| matches!(c, Cond::Cmp(..) | Cond::Const(_));
        if before.is_empty() || (before.iter().all(plain) && plain(part)) {
            return self.simplify(part);
        }
        let facts = before.iter().map(|cond| match hold {
            true => cond.clone(),
            false => cond.clone().negate(),
        });
        self.with_all(facts).simplify(part)
    }

    /// The form without quotients and remainders whose quotient is known here.
    pub fn without_digits(&self, form: &Form) -> Form {
        let mut result = Form::from(form.constant_part().clone());
        for (atom, c) in form.terms() {
            match self.plain(atom).scale(c) {
                Ok(term) => result = result.add(&term),
                Err(_) => return form.clone(),
            }
        }
        result
    }

    /// The value of an atom, digits inside of digits first.
    fn plain(&self, atom: &Atom) -> Form {
        let (Atom::Floor(whole, k) | Atom::Mod(whole, k)) = atom else {
            return Form::atom(atom.clone());
        };
        let is_dim = |(atom, _): (&Atom, _)| matches!(atom, Atom::Dim(_));
        let inner = match whole.terms().all(is_dim) {
            true => (**whole).clone(),
            false => self.without_digits(whole),
        };
        let quotient = self.quotient(&inner, *k);
        let digit = match (atom, quotient) {
            (Atom::Floor(..), Some(q)) => return Form::from(q),
            (_, Some(q)) => return inner.plus(-q * k),
            (Atom::Floor(..), None) => inner.floor_div(*k),
            (_, None) => inner.modulo(*k),
        };
        // Multiples of the divisor may have left the digit.
        match digit == Form::atom(atom.clone()) {
            true => digit,
            false => self.without_digits(&digit),
        }
    }

    /// ⌊form / k⌋, if it is one number wherever the facts hold; a sample then shows which.
    fn quotient(&self, form: &Form, k: i128) -> Option<i128> {
        let sample = self.samples.first()?;
        let q = form.eval(&sample.params, &sample.vars).ok()?.div_euclid(k);
        let least = form.plus(-q * k);
        (self.is_nonnegative(&least) && self.is_nonnegative(&least.neg().plus(k - 1))).then_some(q)
    }

    /// `form rel 0`, decided or normalised.
    fn compare(&self, rel: Rel, form: &Form) -> Cond {
        let form = &self.without_digits(form);
        let positive = |f: Form| -> Cond {
            if self.is_nonnegative(&f) {
                Cond::TRUE
            } else if self.is_nonnegative(&f.neg().plus(-1)) {
                Cond::Const(false)
            } else {
                Cond::cmp(Rel::Ge, f, 0)
            }
        };
        match rel {
            Rel::Ge => positive(form.clone()),
            Rel::Gt => positive(form.plus(-1)),
            Rel::Le => positive(form.neg()),
            Rel::Lt => positive(form.neg().plus(-1)),
            Rel::Eq | Rel::Ne => {
                let below = self.is_nonnegative(&form.neg());
                let above = self.is_nonnegative(form);
                let equal = if below && above {
                    Some(true)
                } else if self.is_nonnegative(&form.plus(-1))
                    || self.is_nonnegative(&form.neg().plus(-1))
                    || self.never_zero(form)
                {
                    Some(false)
                } else {
                    None
                };
                match (equal, rel) {
                    (Some(equal), Rel::Eq) => Cond::Const(equal),
                    (Some(equal), _) => Cond::Const(!equal),
                    // The form has one sign: an order comparison is cheaper to hoist and to
                    // combine.
                    (None, Rel::Eq) if above => Cond::cmp(Rel::Ge, form.neg(), 0),
                    (None, Rel::Eq) if below => Cond::cmp(Rel::Ge, form.clone(), 0),
                    (None, _) if above => Cond::cmp(Rel::Ge, form.plus(-1), 0),
                    (None, _) if below => Cond::cmp(Rel::Ge, form.neg().plus(-1), 0),
                    (None, rel) => Cond::cmp(rel, form.clone(), 0),
                }
            }
        }
    }

    /// Is the form at least zero wherever the facts hold?
    pub fn is_nonnegative(&self, form: &Form) -> bool {
        if let Some(value) = form.as_constant() {
            return value >= 0;
        }
        if let Some(answer) = self.answers.borrow().get(form) {
            return *answer;
        }
        let is_true = |outer: &Answers| outer.borrow().get(form) == Some(&true);
        if self.outer.iter().any(is_true) {
            return true;
        }
        let refuted = |s: &Rc<Sample>| form.eval(&s.params, &s.vars).is_ok_and(|v| v < 0);
        let answer = !self.samples.iter().any(refuted)
            && (self.least(form).iter().any(|poly| self.param_holds(poly))
                || self.impossible(&Cond::cmp(Rel::Lt, form.clone(), 0)));
        self.answers.borrow_mut().insert(form.clone(), answer);
        answer
    }

    fn never_zero(&self, form: &Form) -> bool {
        // Only remainders, and coefficients other than ±1, can skip zero between both signs.
        let is_one = |c: &Poly| c.as_constant().is_some_and(|c| c.abs() == 1);
        let steps = |(atom, c): (&Atom, &Poly)| !matches!(atom, Atom::Dim(_)) || is_one(c);
        let remainders = form.terms().any(|(atom, _)| !matches!(atom, Atom::Dim(_)));
        (remainders || !form.terms().any(steps))
            && self.impossible(&Cond::cmp(Rel::Eq, form.clone(), 0))
    }

    /// Lower bounds of the form, as polynomials of the parameters.
    pub fn least(&self, form: &Form) -> Vec<Poly> {
        let mut open = vec![form.clone()];
        let mut done = Vec::new();
        while let Some(form) = open.pop() {
            if let Some(poly) = form.as_poly() {
                done.push(poly.clone());
                continue;
            }
            // The innermost variable first: its range may use the others.
            let Some((atom, coefficient)) = form
                .terms()
                .max_by_key(|(atom, _)| match atom {
                    Atom::Dim(d) => (1, d.index()),
                    Atom::Floor(..) | Atom::Mod(..) => (2, 0),
                })
                .map(|(a, c)| (a.clone(), c.clone()))
            else {
                continue;
            };
            let Some(sign) = coefficient.as_constant() else {
                continue;
            };
            let rest = match Form::atom(atom.clone()).scale(&coefficient) {
                Ok(term) => form.sub(&term),
                Err(_) => continue,
            };
            let ends: Vec<Form> = match &atom {
                Atom::Dim(d) => match self.range(*d) {
                    Some(range) if sign > 0 => range.lo.clone(),
                    Some(range) => range.hi.iter().map(|hi| hi.plus(-1)).collect(),
                    None => continue,
                },
                Atom::Mod(_, c) => vec![Form::from(if sign > 0 { 0 } else { c - 1 })],
                Atom::Floor(inner, c) => match self.bound(inner, sign > 0) {
                    Some(end) => vec![Form::from(end.div_euclid(*c))],
                    None => continue,
                },
            };
            for end in ends {
                if open.len() + done.len() < MOST_BOUNDS
                    && let Ok(term) = end.scale(&coefficient)
                {
                    open.push(rest.add(&term));
                }
            }
        }
        done
    }

    /// A constant lower bound of the form, or upper bound if not `below`.
    fn bound(&self, form: &Form, below: bool) -> Option<i128> {
        let numbers = |form: &Form| -> Option<i128> {
            let least = self.least(form);
            least.iter().filter_map(Poly::as_constant).max()
        };
        if below {
            numbers(form)
        } else {
            numbers(&form.neg()).map(|least| -least)
        }
    }

    /// Removes floors and remainders that the ranges decide.
    pub fn reduce(&self, form: &Form) -> Form {
        let mut reduced = Form::from(form.constant_part().clone());
        for (atom, coefficient) in form.terms() {
            let within = |inner: &Form, c: i128| {
                self.bound(inner, true).is_some_and(|least| least >= 0)
                    && self.bound(inner, false).is_some_and(|most| most < c)
            };
            let value = match atom {
                Atom::Floor(inner, c) if within(inner, *c) => Form::zero(),
                Atom::Mod(inner, c) if within(inner, *c) => self.reduce(inner),
                Atom::Dim(_) | Atom::Floor(..) | Atom::Mod(..) => Form::atom(atom.clone()),
            };
            reduced = match value.scale(coefficient) {
                Ok(term) => reduced.add(&term),
                Err(_) => return form.clone(),
            };
        }
        reduced
    }

    /// Is a polynomial of the parameters at least zero in the context?
    fn param_holds(&self, poly: &Poly) -> bool {
        if let Some(value) = poly.as_constant() {
            return value >= 0;
        }
        poly.degree() <= 1 && self.is_empty(Cond::cmp(Rel::Lt, Form::from(poly.clone()), 0), 0)
    }

    /// The number of samples in which a condition holds.
    fn frequency(&self, cond: &Cond) -> usize {
        self.samples.iter().filter(|s| s.holds(cond)).count()
    }

    /// The weight of the samples in which a condition holds; all values of a range are equally
    /// likely.
    pub fn weight(&self, cond: &Cond) -> f64 {
        let holds = self.samples.iter().filter(|s| s.holds(cond));
        holds.map(|s| s.weight).sum()
    }

    /// Is the more frequent of two outcomes the one to optimise for?
    pub fn prefers_frequent(&self) -> bool {
        self.large
    }

    /// Are the values of a form independent of all sizes?
    pub fn is_sizeless(&self, form: &Form) -> bool {
        let numbers = form.terms().all(|(_, c)| c.as_constant().is_some());
        let ranges = |v: DimId| {
            let range = self.range(v);
            range.is_some_and(|range| {
                let mut ends = range.lo.iter().chain(&range.hi);
                ends.all(|end| end.as_constant().is_some())
            })
        };
        form.constant_part().as_constant().is_some()
            && numbers
            && form.dims().into_iter().all(ranges)
    }

    /// Are there enough samples to see which cases exist at all?
    pub fn has_enough_samples(&self) -> bool {
        self.samples.len() >= 8
    }

    /// Are there enough samples to see which of two outcomes is more frequent?
    pub fn has_many_samples(&self) -> bool {
        self.samples.len() >= 32
    }

    /// Does a condition hold in more than a few of the samples? Without samples: can it hold at
    /// all?
    pub fn is_common(&self, cond: &Cond) -> bool {
        let count = self.frequency(cond);
        count * 16 > self.samples.len() || (!self.has_enough_samples() && !self.impossible(cond))
    }

    /// The end of its range at which a variable is wherever a condition holds, if there is one.
    pub fn pinned(&self, v: DimId, cond: &Cond) -> Option<i128> {
        let (lo, hi) = self.range(v)?.constant()?;
        let known = self.with(cond.clone());
        [lo, hi - 1].into_iter().find(|end| {
            let gap = Form::from(v).plus(-end);
            known.is_nonnegative(&gap) && known.is_nonnegative(&gap.neg())
        })
    }

    /// Do the exact sets prove that a condition holds nowhere? Undecided counts as no.
    pub fn impossible(&self, cond: &Cond) -> bool {
        if self.samples.iter().any(|s| s.holds(cond)) {
            return false;
        }
        let mut used: Vec<DimId> = cond.forms().into_iter().flat_map(Form::dims).collect();
        let mut all = cond.clone();
        let mut known: Vec<&Cond> = self.known.iter().map(|known| &**known).collect();
        known.sort_by_key(|c| c.alternatives());
        let mut cases = cond.alternatives();
        for known in known {
            cases = cases.saturating_mul(known.alternatives());
            if cases > MOST_CASES {
                break;
            }
            used.extend(known.forms().into_iter().flat_map(Form::dims));
            all = all.and(known.clone());
        }
        let mut at = 0;
        while at < used.len() {
            let v = used[at];
            at += 1;
            if used[..at - 1].contains(&v) {
                continue;
            }
            if let Some(range) = self.range(v) {
                let holds = range.holds(&Form::from(v));
                used.extend(holds.forms().into_iter().flat_map(Form::dims));
                all = all.and(holds);
            }
        }
        if !all.forms().into_iter().all(Form::is_quasi_affine) {
            return false;
        }
        let n = used.iter().map(|d| d.index() + 1).max().unwrap_or(0);
        self.is_empty(all, n)
    }

    /// Do the exact sets prove that a condition holds nowhere, whatever the facts?
    fn is_empty(&self, cond: Cond, n_dims: usize) -> bool {
        if let Some(answer) = self.decided.borrow().get(&cond) {
            return *answer;
        }
        let answer = self.decide.is_empty(&cond, n_dims).unwrap_or(false);
        self.decided.borrow_mut().insert(cond, answer);
        answer
    }
}

/// Parameters in the context: small ones, where edges meet, and large ones.
fn samples(decide: &Decide, machine: &Machine) -> Vec<Sample> {
    // Tiles are larger where blocks are warps of threads.
    let values: [i128; 12] = match machine.threads {
        None => [1, 2, 3, 4, 5, 7, 16, 33, 64, 150, 1000, 4099],
        Some(_) => [1, 2, 3, 5, 16, 33, 150, 1000, 4099, 8200, 20_011, 100_003],
    };
    let mut fixed: HashMap<usize, i128> = HashMap::new();
    equations(&decide.context, &mut fixed);
    let mut all = Vec::new();
    for n in 0..SAMPLES {
        let mut pick = Pick(n);
        let params: Vec<i128> = (0..decide.n_params)
            .map(|p| {
                let value = values[pick.below(values.len() as i128) as usize];
                fixed.get(&p).copied().unwrap_or(value)
            })
            .collect();
        if decide.context.eval(&params, &[]) == Ok(true) {
            all.push(Sample {
                params,
                vars: Vec::new(),
                weight: 1.0,
            });
        }
    }
    all
}

/// Parameters that the context fixes.
fn equations(context: &Cond, fixed: &mut HashMap<usize, i128>) {
    match context {
        Cond::And(parts) => parts.iter().for_each(|p| equations(p, fixed)),
        Cond::Cmp(Rel::Eq, left, right) => {
            let param = left.as_poly().and_then(|poly| {
                let mut terms = poly.terms();
                match (terms.next(), terms.next()) {
                    (Some((monomial, 1)), None) if monomial.len() == 1 => Some(monomial[0]),
                    _ => None,
                }
            });
            if let (Some(param), Some(value)) = (param, right.as_constant()) {
                fixed.insert(param.index(), value);
            }
        }
        Cond::Const(_) | Cond::Cmp(..) | Cond::Or(_) | Cond::Not(_) => {}
    }
}

/// A pseudo-random sequence that is always the same.
struct Pick(u64);

impl Pick {
    fn below(&mut self, n: i128) -> i128 {
        // Knuth's multiplier for a linear congruential generator modulo 2^64.
        self.0 = self
            .0
            .wrapping_add(1)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        i128::from(self.0 >> 33) % n.max(1)
    }
}
