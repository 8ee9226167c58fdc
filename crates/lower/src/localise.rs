//! Localisation and serialisation: a system in core form becomes written-out uniform recurrences.
//!
//! Before: inputs are read wherever they are needed, sums are `reduce` and `scan`. After: no `reduce`
//! or `scan` is left, and every input that the mapping forwards travels in a variable of its own. A
//! system that is written out already comes back unchanged.
//!
//! * `reduce(op, q, f)` becomes an accumulation over the index space with q added to it, in the order
//!   that `sum Z along` gives, ascending by default. Its result is complete on the *last* face of q.
//!   A variable that does not contain the sum lives on the *first* face, and what the body of a sum
//!   reads of a variable is carried along q.
//! * A `reduce` over a constant window whose body reads variables at the window's iterators (a
//!   stencil) is unrolled.
//! * `forward x along e` is legal where the element that is read is the same at z and z − e.
//!
//! It stands first, since everything behind it reasons about uniform references only.

use std::collections::{BTreeMap, BTreeSet};

use systola_ir::codes::{limits, mapping as codes};
use systola_ir::form::{Cond, Form, Overflow, Poly, Rel};
use systola_ir::mapping::{Direction, DirectiveKind, Mapping, SumOrder};
use systola_ir::system::visit::{map_expr, walk};
use systola_ir::system::{Combine, Dim, Expr, Law, System, Var, shifted};
use systola_ir::{Diagnostic, DimId, InputId, Span, Type, VarId};

use crate::names::Names;

/// A written-out system, and which of its variables are sums born of a `reduce` or `scan`.
#[derive(Clone, Debug, PartialEq)]
pub struct Localised {
    pub system: System,
    /// The accumulations whose order the program leaves open.
    pub sums: Vec<VarId>,
}

/// Expands the batch and makes the mapping's choices of localisation and serialisation.
pub fn localise(system: &System, mapping: Option<&Mapping>) -> Result<Localised, Vec<Diagnostic>> {
    let batched = system.batch.is_some();
    let system = system
        .expand_batch()
        .map_err(|o| vec![overflow(o, system.span)])?;
    let unrolled = unroll_windows(&system).map_err(|d| vec![d])?;
    let choices = Choices::of(&unrolled, mapping)?;
    let mut pass = Pass {
        system: unrolled.clone(),
        batched,
        sums: BTreeSet::new(),
    };
    pass.serialise(&choices)?;
    pass.forward(&choices)?;
    Ok(Localised {
        system: pass.system,
        sums: pass.sums.into_iter().collect(),
    })
}

/// What the mapping says of inputs and sums.
#[derive(Default)]
struct Choices {
    /// Directions as written, checked against the grown index space later.
    forward: Vec<(InputId, Vec<systola_ir::mapping::NameExpr>, Span)>,
    order: BTreeMap<VarId, (Vec<(DimId, Direction)>, Span)>,
}

impl Choices {
    fn of(system: &System, mapping: Option<&Mapping>) -> Result<Choices, Vec<Diagnostic>> {
        let mut choices = Choices::default();
        let mut errors = Vec::new();
        for directive in mapping.iter().flat_map(|m| &m.directives) {
            match &directive.kind {
                DirectiveKind::Forward { input, along } => match system.find_input(&input.text) {
                    Some(id) => choices.forward.push((id, along.clone(), directive.span)),
                    None => errors.push(unknown_input(system, &input.text, input.span)),
                },
                DirectiveKind::Read { input } if system.find_input(&input.text).is_none() => {
                    errors.push(unknown_input(system, &input.text, input.span));
                }
                DirectiveKind::Sum { var, order } => match system.find_var(&var.text) {
                    Some(id) => match sum_order(system, id, order, directive.span) {
                        Ok(order) => {
                            choices.order.insert(id, (order, directive.span));
                        }
                        Err(error) => errors.push(error),
                    },
                    None => errors.push(
                        Diagnostic::new(
                            &codes::UNKNOWN_VARIABLE,
                            var.span,
                            format!("`{}` has no variable `{}`", system.name, var.text),
                        )
                        .help(format!(
                            "the variables are {}",
                            list(system.vars.iter().map(|v| v.name.as_str()))
                        )),
                    ),
                },
                _ => {}
            }
        }
        if errors.is_empty() {
            Ok(choices)
        } else {
            Err(errors)
        }
    }
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.map(|n| format!("`{n}`")).collect();
    if quoted.is_empty() {
        "none".into()
    } else {
        quoted.join(", ")
    }
}

fn unknown_input(system: &System, name: &str, span: Span) -> Diagnostic {
    Diagnostic::new(
        &codes::UNKNOWN_INPUT,
        span,
        format!("`{}` has no input `{name}`", system.name),
    )
    .help(format!(
        "the inputs are {}",
        list(system.inputs.iter().map(|i| i.name.as_str()))
    ))
}

/// The iterators that the sums of a variable run over.
fn sum_dims(system: &System, var: VarId) -> Vec<DimId> {
    let mut dims = Vec::new();
    walk(&system.vars[var.index()].body, &mut |e| match e {
        Expr::Reduce { dims: d, .. } => dims.extend(d.iter().copied()),
        Expr::Scan { dim, .. } => dims.push(*dim),
        _ => {}
    });
    dims
}

fn sum_order(
    system: &System,
    var: VarId,
    order: &SumOrder,
    span: Span,
) -> Result<Vec<(DimId, Direction)>, Diagnostic> {
    let dims = sum_dims(system, var);
    let SumOrder::Along(written) = order else {
        return Ok(dims.into_iter().rev().map(|d| (d, Direction::Up)).collect());
    };
    let name = &system.vars[var.index()].name;
    if dims.is_empty() {
        return Err(Diagnostic::new(
            &codes::NOT_A_SUM,
            span,
            format!("`{name}` has no `reduce` or `scan` whose order could be chosen"),
        )
        .help("a sum that is written out has its order in its equation already"));
    }
    let mut result = Vec::new();
    for (dim, direction) in written {
        let found = dims.iter().find(|d| system.dim(**d).name == dim.text);
        match found {
            Some(d) if !result.iter().any(|(seen, _)| seen == d) => result.push((*d, *direction)),
            _ => {
                return Err(Diagnostic::new(
                    &codes::NOT_A_SUM,
                    dim.span,
                    format!("`{name}` does not sum over `{}`", dim.text),
                )
                .help(format!(
                    "it sums over {}, each to be named once",
                    list(dims.iter().map(|d| system.dim(*d).name.as_str()))
                )));
            }
        }
    }
    // What is not named goes outside, ascending.
    for d in dims.into_iter().rev() {
        if !result.iter().any(|(seen, _)| *seen == d) {
            result.push((d, Direction::Up));
        }
    }
    Ok(result)
}

struct Pass {
    system: System,
    batched: bool,
    sums: BTreeSet<VarId>,
}

/// Where a variable lives along an iterator that only a sum runs over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Face {
    First,
    Last,
}

/// How one bound iterator is run through.
#[derive(Clone)]
struct Run {
    dim: DimId,
    direction: Direction,
    /// The value at the first and the last point.
    first: Form,
    last: Form,
}

impl Run {
    fn step(&self) -> i128 {
        match self.direction {
            Direction::Up => 1,
            Direction::Down => -1,
        }
    }

    fn at(&self, face: Face) -> Form {
        match face {
            Face::First => self.first.clone(),
            Face::Last => self.last.clone(),
        }
    }

    fn is_first(&self) -> Cond {
        Cond::cmp(Rel::Eq, self.dim, self.first.clone())
    }
}

impl Pass {
    fn serialise(&mut self, choices: &Choices) -> Result<(), Vec<Diagnostic>> {
        let n_outer = self.system.dims.len();
        if self.system.bound.is_empty() {
            return self.serialise_scans(choices);
        }
        let runs = self.runs(choices).map_err(|d| vec![d])?;
        let original = self.system.clone();
        let uses = |expr: &Expr, d: DimId| {
            let mut found = false;
            walk(expr, &mut |e| {
                if let Expr::Reduce { dims, .. } = e {
                    found |= dims.contains(&d);
                }
            });
            found
        };
        // A variable is on the last face of q if its value needs the finished sum over q.
        let mut face: BTreeMap<(VarId, DimId), Face> = BTreeMap::new();
        for run in &runs {
            for (n, var) in original.vars.iter().enumerate() {
                let own = if uses(&var.body, run.dim) {
                    Face::Last
                } else {
                    Face::First
                };
                face.insert((VarId::from(n), run.dim), own);
            }
            loop {
                let mut changed = false;
                for (n, var) in original.vars.iter().enumerate() {
                    let here = VarId::from(n);
                    if face[&(here, run.dim)] == Face::Last {
                        continue;
                    }
                    let mut last = false;
                    walk(&var.body, &mut |e| {
                        if let Expr::Var { var, index, .. } = e
                            && *index == original.identity_index()
                        {
                            last |= face[&(*var, run.dim)] == Face::Last;
                        }
                    });
                    if last {
                        face.insert((here, run.dim), Face::Last);
                        changed = true;
                    }
                }
                if !changed {
                    break;
                }
            }
        }
        // The iterators of the sums join the index space; the ids stay what they are.
        let bound = std::mem::take(&mut self.system.bound);
        self.system.dims.extend(bound);
        for run in &runs {
            let (lo, hi) = match run.direction {
                Direction::Up => (run.first.clone(), run.last.plus(1)),
                Direction::Down => (run.last.clone(), run.first.plus(1)),
            };
            self.system.dims[run.dim.index()].range = Some((lo, hi));
        }
        let mut build = Build {
            original: &original,
            runs: &runs,
            face: &face,
            n_outer,
            names: self.system.vars.iter().map(|v| v.name.clone()).collect(),
            vars: Vec::new(),
            sums: BTreeSet::new(),
            carries: BTreeMap::new(),
            order: choices.order.iter().map(|(v, (o, _))| (*v, o.clone())).collect(),
        };
        for n in 0..original.vars.len() {
            build.var(VarId::from(n)).map_err(|d| vec![d])?;
        }
        let mut vars = std::mem::take(&mut build.vars);
        // Original variables keep their ids; helpers follow, then all are put into body order later.
        vars.sort_by_key(|(id, _)| *id);
        self.sums.extend(build.sums.iter().copied());
        self.system.vars = vars.into_iter().map(|(_, var)| var).collect();
        let outputs = original
            .outputs
            .iter()
            .map(|output| {
                let mut output = output.clone();
                for write in &mut output.writes {
                    let mut read = None;
                    walk(&write.value, &mut |e| {
                        if let Expr::Var { var, .. } = e {
                            read = Some(*var);
                        }
                    });
                    let on = runs
                        .iter()
                        .map(|run| {
                            let face = read.map_or(Face::First, |v| face[&(v, run.dim)]);
                            Cond::cmp(Rel::Eq, run.dim, run.at(face))
                        })
                        .fold(write.when.clone(), Cond::and);
                    write.when = on;
                    write.value = grow(&write.value, &runs);
                }
                output
            })
            .collect();
        self.system.outputs = outputs;
        self.serialise_scans(choices)
    }

    /// The order of every bound iterator.
    fn runs(&self, choices: &Choices) -> Result<Vec<Run>, Diagnostic> {
        let system = &self.system;
        let mut direction = BTreeMap::new();
        for (order, _) in choices.order.values() {
            for (dim, way) in order {
                direction.insert(*dim, *way);
            }
        }
        let mut runs = Vec::new();
        for n in 0..system.bound.len() {
            let dim = DimId::from(system.dims.len() + n);
            let Dim { name, range, span } = &system.bound[n];
            let Some((lo, hi)) = range else {
                return Err(Diagnostic::new(
                    &limits::REDUCE_NEEDS_RANGE,
                    *span,
                    format!("the sum over `{name}` has no range"),
                ));
            };
            let direction = direction.get(&dim).copied().unwrap_or(Direction::Up);
            let (first, last) = match direction {
                Direction::Up => (lo.clone(), hi.plus(-1)),
                Direction::Down => (hi.plus(-1), lo.clone()),
            };
            runs.push(Run {
                dim,
                direction,
                first,
                last,
            });
        }
        Ok(runs)
    }

    fn serialise_scans(&mut self, choices: &Choices) -> Result<(), Vec<Diagnostic>> {
        let _ = choices;
        for n in 0..self.system.vars.len() {
            let var = VarId::from(n);
            let body = self.system.vars[n].body.clone();
            let Expr::Scan { .. } = &body else {
                // A scan inside a larger expression gets a variable of its own.
                let mut extracted = Vec::new();
                let rebuilt = map_expr::<std::convert::Infallible>(&body, &mut |e| {
                    Ok(match e {
                        Expr::Scan { .. } => {
                            let id = VarId::from(self.system.vars.len() + extracted.len());
                            extracted.push(e);
                            Expr::Var {
                                var: id,
                                index: self.system.identity_index(),
                                span: Span::NONE,
                            }
                        }
                        other => other,
                    })
                });
                if extracted.is_empty() {
                    continue;
                }
                let Ok(rebuilt) = rebuilt;
                for scan in extracted {
                    let id = VarId::from(self.system.vars.len());
                    let like = self.system.vars[n].clone();
                    self.system.vars.push(Var {
                        name: fresh(&format!("{}_scan", like.name), |name| {
                            self.system.vars.iter().any(|v| v.name == name)
                        }),
                        body: scan,
                        ..like
                    });
                    self.serialise_scan(id).map_err(|d| vec![d])?;
                }
                self.system.vars[n].body = rebuilt;
                continue;
            };
            self.serialise_scan(var).map_err(|d| vec![d])?;
        }
        Ok(())
    }

    fn serialise_scan(&mut self, var: VarId) -> Result<(), Diagnostic> {
        let domain = self.system.var_domain(var);
        let identity = self.system.identity_index();
        let this = &mut self.system.vars[var.index()];
        let Expr::Scan {
            op,
            dim,
            body,
            span,
        } = this.body.clone()
        else {
            return Ok(());
        };
        let mut e = vec![Poly::zero(); identity.len()];
        e[dim.index()] = Poly::constant(1);
        let earlier = Expr::Var {
            var,
            index: shifted(&identity, &e),
            span,
        };
        let inside = moved_domain(&domain, &e).map_err(|o| overflow(o, span))?;
        this.body = Expr::guard(inside, combine(op, earlier, (*body).clone()), *body);
        this.law = Law::Reorderable;
        self.sums.insert(var);
        Ok(())
    }

    fn forward(&mut self, choices: &Choices) -> Result<(), Vec<Diagnostic>> {
        for (input, along, span) in &choices.forward {
            self.forward_one(*input, along, *span).map_err(|d| vec![d])?;
        }
        Ok(())
    }

    fn forward_one(
        &mut self,
        input: InputId,
        along: &[systola_ir::mapping::NameExpr],
        span: Span,
    ) -> Result<(), Diagnostic> {
        let names = Names::of_system(&self.system);
        let dims = self.system.dim_names();
        let declared = self.system.inputs[input.index()].clone();
        // The iterator of a batch may be left out: nothing travels along it.
        let missing = dims.len().saturating_sub(along.len());
        if along.len() > dims.len() || (missing > 0 && missing != usize::from(self.batched)) {
            return Err(Diagnostic::new(
                &codes::WRONG_DIRECTION,
                span,
                format!(
                    "the direction has {} components, the index space ({}) has {}",
                    along.len(),
                    dims.join(", "),
                    dims.len()
                ),
            )
            .help("give one component for each iterator, those of sums last"));
        }
        let mut e = vec![Poly::zero(); missing];
        for component in along {
            let form = names.form(component)?;
            let Some(poly) = form.as_poly() else {
                return Err(Diagnostic::new(
                    &codes::WRONG_DIRECTION,
                    component.span,
                    "a direction is made of constants and parameters",
                ));
            };
            e.push(poly.clone());
        }
        if e.iter().all(Poly::is_zero) {
            return Err(Diagnostic::new(
                &codes::WRONG_DIRECTION,
                span,
                "a value can not be forwarded along the zero vector",
            )
            .help("choose e with A·e = 0 and e ≠ 0, where A is the access of the input"));
        }
        let identity = self.system.identity_index();
        // One travelling variable for every pattern of access.
        let mut patterns: Vec<(Vec<Form>, Vec<(VarId, Cond)>)> = Vec::new();
        for n in 0..self.system.vars.len() {
            let domain = self.system.var_domain(VarId::from(n));
            reads_of(&self.system.vars[n].body, input, &domain, &mut |index, when| {
                let found = patterns.iter_mut().find(|(p, _)| p == index);
                match found {
                    Some((_, readers)) => readers.push((VarId::from(n), when)),
                    None => patterns.push((index.clone(), vec![(VarId::from(n), when)])),
                }
            });
        }
        if patterns.is_empty() {
            return Err(Diagnostic::new(
                &codes::WRONG_DIRECTION,
                span,
                format!("`{}` is not read at iterators by any equation", declared.name),
            ));
        }
        for (index, readers) in patterns {
            for form in &index {
                let there = shift_form(form, &e).map_err(|o| overflow(o, span))?;
                if there != *form {
                    let params = self.system.param_names();
                    let shown: Vec<String> =
                        index.iter().map(|f| f.display(&params, &dims).to_string()).collect();
                    let moved: Vec<String> = index
                        .iter()
                        .map(|f| {
                            shift_form(f, &e).map_or_else(
                                |_| "?".into(),
                                |f| f.display(&params, &dims).to_string(),
                            )
                        })
                        .collect();
                    return Err(Diagnostic::new(
                        &codes::WRONG_DIRECTION,
                        span,
                        format!(
                            "`{name}[{}]` is another element at z - e, `{name}[{}]`: it can not be forwarded along this e",
                            shown.join(", "),
                            moved.join(", "),
                            name = declared.name,
                        ),
                    )
                    .help("choose e with A·e = 0, where A is the access of the input"));
                }
            }
            // Where it lives: the union of the readers' points.
            let on: Vec<Cond> = readers.iter().map(|(_, when)| when.clone()).collect();
            let on = if on.len() == 1 {
                on.into_iter().next().unwrap_or(Cond::TRUE)
            } else {
                Cond::Or(on)
            };
            let id = VarId::from(self.system.vars.len());
            let taken = |name: &str| {
                self.system.vars.iter().any(|v| v.name == name)
                    || self.system.inputs.iter().any(|v| v.name == name)
                    || dims.iter().any(|d| d == name)
                    || self.system.params.iter().any(|p| p.name == name)
            };
            let upper = declared.name.to_uppercase();
            let name = if taken(&upper) {
                fresh(&format!("{}_fwd", declared.name), taken)
            } else {
                upper
            };
            let domain = self.system.domain_cond();
            let inside = moved_domain(&domain.clone().and(without(&on, &domain)), &e)
                .map_err(|o| overflow(o, span))?;
            let body = Expr::guard(
                inside,
                Expr::Var {
                    var: id,
                    index: shifted(&identity, &e),
                    span,
                },
                Expr::Input {
                    input,
                    index: index.clone(),
                    span,
                },
            );
            let rest = without(&on, &domain);
            self.system.vars.push(Var {
                name,
                ty: Type::Scalar(declared.ty),
                law: Law::Fixed,
                on: if rest == Cond::TRUE { vec![] } else { vec![rest] },
                body,
                span,
            });
            for (reader, _) in readers {
                let body = &self.system.vars[reader.index()].body;
                let replaced = map_expr::<std::convert::Infallible>(body, &mut |e| {
                    Ok(match e {
                        Expr::Input {
                            input: i,
                            index: ref at,
                            span,
                        } if i == input && *at == index => Expr::Var {
                            var: id,
                            index: identity.clone(),
                            span,
                        },
                        other => other,
                    })
                });
                let Ok(replaced) = replaced;
                self.system.vars[reader.index()].body = replaced;
            }
        }
        Ok(())
    }
}

/// The parts of a conjunction that another conjunction does not already say.
fn without(cond: &Cond, known: &Cond) -> Cond {
    let known: Vec<&Cond> = match known {
        Cond::And(parts) => parts.iter().collect(),
        other => vec![other],
    };
    match cond {
        Cond::And(parts) => parts
            .iter()
            .filter(|p| !known.contains(p))
            .cloned()
            .fold(Cond::TRUE, Cond::and),
        other if known.contains(&other) => Cond::TRUE,
        other => other.clone(),
    }
}

/// z − e is in the domain, given that z is: the conditions that the move changes.
fn moved_domain(domain: &Cond, e: &[Poly]) -> Result<Cond, Overflow> {
    let parts: Vec<Cond> = match domain {
        Cond::And(parts) => parts.clone(),
        other => vec![other.clone()],
    };
    let mut moved = Cond::TRUE;
    for part in parts {
        let there = part.map(&|f| shift_form(f, e))?;
        if there != part {
            moved = moved.and(there);
        }
    }
    Ok(moved)
}

/// The form at z − e.
pub(crate) fn shift_form(form: &Form, e: &[Poly]) -> Result<Form, Overflow> {
    form.substitute(&|d| {
        let e = e.get(d.index()).filter(|e| !e.is_zero())?;
        Some(Form::from(d).sub(&Form::from(e.clone())))
    })
}

fn reads_of(expr: &Expr, input: InputId, when: &Cond, f: &mut impl FnMut(&Vec<Form>, Cond)) {
    match expr {
        Expr::Input {
            input: i, index, ..
        } if *i == input => f(index, when.clone()),
        Expr::Guard {
            cond,
            then,
            otherwise,
        } => {
            reads_of(then, input, &when.clone().and(cond.clone()), f);
            if let Some(otherwise) = otherwise {
                reads_of(otherwise, input, &when.clone().and(cond.clone().negate()), f);
            }
        }
        other => {
            for child in systola_ir::system::visit::children(other) {
                reads_of(child, input, when, f);
            }
        }
    }
}

fn combine(op: Combine, left: Expr, right: Expr) -> Expr {
    match op {
        Combine::Op(op) => Expr::binary(op, left, right),
        Combine::Fn(f) => Expr::Call(f, vec![left, right]),
    }
}

fn fresh(base: &str, taken: impl Fn(&str) -> bool) -> String {
    if !taken(base) {
        return base.into();
    }
    (2..)
        .map(|n| format!("{base}{n}"))
        .find(|name| !taken(name))
        .unwrap_or_default()
}

pub(crate) fn overflow(_: Overflow, span: Span) -> Diagnostic {
    Diagnostic::new(
        &limits::OVERFLOW,
        span,
        "a coefficient of an index expression is larger than 2^80",
    )
    .help("use smaller constants")
}

/// Variable references over the grown index space: the iterators of the sums stay where they are.
fn grow(expr: &Expr, runs: &[Run]) -> Expr {
    let grown = map_expr::<std::convert::Infallible>(expr, &mut |e| {
        Ok(match e {
            Expr::Var {
                var,
                mut index,
                span,
            } => {
                index.extend(runs.iter().map(|r| Form::from(r.dim)));
                Expr::Var { var, index, span }
            }
            other => other,
        })
    });
    match grown {
        Ok(grown) => grown,
    }
}

/// Rebuilds the variables of a system with `reduce` over the grown index space.
struct Build<'a> {
    original: &'a System,
    runs: &'a [Run],
    face: &'a BTreeMap<(VarId, DimId), Face>,
    n_outer: usize,
    names: Vec<String>,
    vars: Vec<(VarId, Var)>,
    sums: BTreeSet<VarId>,
    /// (variable, distance over the outer iterators, faces of the reader) → the variable that carries it.
    carries: BTreeMap<(VarId, Vec<Form>, Vec<DimId>), VarId>,
    /// The order of a variable's sums, innermost first.
    order: BTreeMap<VarId, Vec<(DimId, Direction)>>,
}

impl Build<'_> {
    fn next_id(&self) -> VarId {
        VarId::from(
            self.original.vars.len().max(
                self.vars
                    .iter()
                    .map(|(id, _)| id.index() + 1)
                    .max()
                    .unwrap_or(0),
            ),
        )
    }

    fn fresh_name(&mut self, base: &str) -> String {
        let names = &self.names;
        let name = fresh(base, |n| names.iter().any(|x| x == n));
        self.names.push(name.clone());
        name
    }

    /// `on` conditions that put a variable on its faces, except along `free` iterators.
    fn faces(&self, var: VarId, free: &[DimId]) -> Vec<Cond> {
        self.runs
            .iter()
            .filter(|run| !free.contains(&run.dim))
            .map(|run| Cond::cmp(Rel::Eq, run.dim, run.at(self.face[&(var, run.dim)])))
            .collect()
    }

    fn var(&mut self, id: VarId) -> Result<(), Diagnostic> {
        let var = self.original.vars[id.index()].clone();
        if let Expr::Reduce {
            op,
            dims,
            body,
            span,
        } = &var.body
        {
            let on = var
                .on
                .iter()
                .cloned()
                .chain(self.faces(id, dims))
                .collect::<Vec<_>>();
            let body = self.accumulate(id, *op, dims, body, *span, id, dims)?;
            self.sums.insert(id);
            self.vars.push((
                id,
                Var {
                    on,
                    body,
                    law: Law::Reorderable,
                    ..var
                },
            ));
            return Ok(());
        }
        let body = self.expr(id, &var.body, &[])?;
        let on = var.on.iter().cloned().chain(self.faces(id, &[])).collect();
        self.vars.push((id, Var { on, body, ..var }));
        Ok(())
    }

    /// The accumulation `select(first, f, acc(z - e) op f)` of a sum, owned by the variable `acc`.
    fn accumulate(
        &mut self,
        home: VarId,
        op: Combine,
        dims: &[DimId],
        body: &Expr,
        span: Span,
        acc: VarId,
        free: &[DimId],
    ) -> Result<Expr, Diagnostic> {
        let term = self.expr(home, body, dims)?;
        // Innermost first: as the mapping says, or else the last listed iterator runs fastest.
        let order = self.order.get(&home);
        let mut listed: Vec<DimId> = dims.iter().rev().copied().collect();
        listed.sort_by_key(|d| order.and_then(|o| o.iter().position(|(at, _)| at == d)));
        let runs: Vec<&Run> = listed
            .iter()
            .filter_map(|d| self.runs.iter().find(|r| r.dim == *d))
            .collect();
        for (n, run) in runs.iter().enumerate() {
            for inner in &runs[..n] {
                let depends = [&inner.first, &inner.last]
                    .iter()
                    .any(|f| f.dims().contains(&run.dim));
                if depends {
                    return Err(Diagnostic::new(
                        &limits::SUM_NOT_A_BOX,
                        span,
                        format!(
                            "the range of `{}` depends on `{}`, and one sum runs over both",
                            self.original.dim(inner.dim).name,
                            self.original.dim(run.dim).name
                        ),
                    )
                    .help("write one `reduce` inside the other"));
                }
            }
        }
        let n_dims = self.n_outer + self.original.bound.len();
        let identity: Vec<Form> = (0..n_dims).map(|n| Form::from(DimId::from(n))).collect();
        // From the outermost run inwards: step the innermost that is not at its first value, and
        // send all inside it back to their last.
        let mut expr = None;
        for (n, run) in runs.iter().enumerate().rev() {
            let mut index = identity.clone();
            index[run.dim.index()] = Form::from(run.dim).plus(-run.step());
            for inner in &runs[..n] {
                // The inner one is at its first value here, so first − last is the distance.
                let back = inner.last.sub(&inner.first);
                index[inner.dim.index()] = Form::from(inner.dim).add(&back);
            }
            self.stay_on_faces(home, free, &mut index).map_err(|o| overflow(o, span))?;
            let earlier = Expr::Var {
                var: acc,
                index,
                span,
            };
            let step = combine(op, earlier, term.clone());
            expr = Some(match expr {
                None => Expr::guard(
                    runs.iter().map(|r| r.is_first()).fold(Cond::TRUE, Cond::and),
                    term.clone(),
                    step,
                ),
                Some(outer) => push_in(outer, run, step),
            });
        }
        Ok(expr.unwrap_or(term))
    }

    /// An expression of the variable `home`, seen over the grown index space; `inside` are the
    /// iterators of the sums around it.
    fn expr(&mut self, home: VarId, expr: &Expr, inside: &[DimId]) -> Result<Expr, Diagnostic> {
        Ok(match expr {
            Expr::Reduce {
                op,
                dims,
                body,
                span,
            } => {
                let acc = self.next_id();
                let like = self.original.vars[home.index()].clone();
                let name = self.fresh_name(&format!("{}_sum", like.name));
                // Reserved first, so that nested sums get later ids.
                self.vars.push((acc, Var { name: name.clone(), ..like.clone() }));
                let free: Vec<DimId> = inside.iter().chain(dims).copied().collect();
                let ty = self.type_of_sum(&like.ty, *op, body);
                let body = self.accumulate(home, *op, dims, body, *span, acc, &free)?;
                let on = like
                    .on
                    .iter()
                    .cloned()
                    .chain(self.faces(home, &free))
                    .collect();
                if let Some((_, var)) = self.vars.iter_mut().find(|(id, _)| *id == acc) {
                    *var = Var {
                        name,
                        ty,
                        law: Law::Reorderable,
                        on,
                        body,
                        span: *span,
                    };
                }
                self.sums.insert(acc);
                // Outside of the sum the reader sits on the last face, where the sum is complete.
                Expr::Var {
                    var: acc,
                    index: self.identity(),
                    span: *span,
                }
            }
            Expr::Var { var, index, span } => self.reference(home, *var, index, *span, inside)?,
            other => {
                let mut failed = None;
                let rebuilt = rebuild_children(other, &mut |child| {
                    match self.expr(home, child, inside) {
                        Ok(e) => e,
                        Err(d) => {
                            failed.get_or_insert(d);
                            child.clone()
                        }
                    }
                });
                if let Some(d) = failed {
                    return Err(d);
                }
                rebuilt
            }
        })
    }

    /// A face may lie at a bound that depends on other iterators: where those move, it moves along.
    fn stay_on_faces(
        &self,
        var: VarId,
        free: &[DimId],
        index: &mut [Form],
    ) -> Result<(), Overflow> {
        for run in self.runs.iter().filter(|run| !free.contains(&run.dim)) {
            let face = run.at(self.face[&(var, run.dim)]);
            let moved = face.substitute(&|d| index.get(d.index()).cloned())?;
            index[run.dim.index()] = Form::from(run.dim).sub(&face.sub(&moved));
        }
        Ok(())
    }

    fn identity(&self) -> Vec<Form> {
        (0..self.n_outer + self.original.bound.len())
            .map(|n| Form::from(DimId::from(n)))
            .collect()
    }

    /// A variable as read by `home`: directly from its face, or carried along the sums around.
    fn reference(
        &mut self,
        home: VarId,
        var: VarId,
        index: &[Form],
        span: Span,
        inside: &[DimId],
    ) -> Result<Expr, Diagnostic> {
        // The faces of the variable at the point it is read from, as seen from a reader on its own.
        let mut direct: Vec<Form> = index.to_vec();
        for run in self.runs {
            let reader = if inside.contains(&run.dim) {
                run.first.clone()
            } else {
                run.at(self.face[&(home, run.dim)])
            };
            let source = run
                .at(self.face[&(var, run.dim)])
                .substitute(&|d| direct.get(d.index()).cloned())
                .map_err(|o| overflow(o, span))?;
            direct.push(Form::from(run.dim).sub(&reader.sub(&source)));
        }
        if inside.is_empty() {
            return Ok(Expr::Var {
                var,
                index: direct,
                span,
            });
        }
        let key = (var, index.to_vec(), inside.to_vec());
        let carry = match self.carries.get(&key) {
            Some(carry) => *carry,
            None => {
                let carry = self.next_id();
                let like = self.original.vars[home.index()].clone();
                let source = self.original.vars[var.index()].clone();
                let name = self.fresh_name(&format!("{}_carry", source.name));
                let identity = self.identity();
                // Innermost run first: hand on along the first run that is not at its start.
                let mut body = Expr::Var {
                    var,
                    index: direct,
                    span,
                };
                for dim in inside {
                    let Some(run) = self.runs.iter().find(|r| r.dim == *dim) else {
                        continue;
                    };
                    let mut from = identity.clone();
                    from[dim.index()] = Form::from(*dim).plus(-run.step());
                    self.stay_on_faces(home, inside, &mut from)
                        .map_err(|o| overflow(o, span))?;
                    body = Expr::guard(
                        run.is_first(),
                        body,
                        Expr::Var {
                            var: carry,
                            index: from,
                            span,
                        },
                    );
                }
                let on = like
                    .on
                    .iter()
                    .cloned()
                    .chain(self.faces(home, inside))
                    .collect();
                self.vars.push((
                    carry,
                    Var {
                        name,
                        ty: source.ty,
                        law: Law::Fixed,
                        on,
                        body,
                        span,
                    },
                ));
                self.carries.insert(key, carry);
                carry
            }
        };
        Ok(Expr::Var {
            var: carry,
            index: self.identity(),
            span,
        })
    }

    fn type_of_sum(&self, home: &Type, op: Combine, body: &Expr) -> Type {
        match op {
            Combine::Fn(f) => self.original.functions[f.index()].result.clone(),
            Combine::Op(_) => type_of(self.original, body).unwrap_or_else(|| home.clone()),
        }
    }
}

/// Adds the case "this run is not at its first value" inside the accumulation so far.
fn push_in(outer: Expr, run: &Run, step: Expr) -> Expr {
    match outer {
        Expr::Guard {
            cond,
            then,
            otherwise: Some(otherwise),
        } => Expr::Guard {
            cond,
            then,
            otherwise: Some(Box::new(Expr::guard(
                run.is_first().negate(),
                step,
                *otherwise,
            ))),
        },
        other => other,
    }
}

fn rebuild_children(expr: &Expr, f: &mut impl FnMut(&Expr) -> Expr) -> Expr {
    let mut boxed = |e: &Expr| Box::new(f(e));
    match expr {
        Expr::Lit(..)
        | Expr::Const(_)
        | Expr::Iter(_)
        | Expr::Param(_)
        | Expr::Local(_)
        | Expr::Var { .. }
        | Expr::Input { .. }
        | Expr::Port(_) => expr.clone(),
        Expr::Lookup { input, index, span } => Expr::Lookup {
            input: *input,
            index: index.iter().map(f).collect(),
            span: *span,
        },
        Expr::Unary(op, a) => Expr::Unary(*op, boxed(a)),
        Expr::Cast(ty, a) => Expr::Cast(*ty, boxed(a)),
        Expr::Field(a, n) => Expr::Field(boxed(a), *n),
        Expr::Binary(op, a, b) => Expr::Binary(*op, boxed(a), boxed(b)),
        Expr::Guard {
            cond,
            then,
            otherwise,
        } => Expr::Guard {
            cond: cond.clone(),
            then: boxed(then),
            otherwise: otherwise.as_deref().map(boxed),
        },
        Expr::Select {
            cond,
            then,
            otherwise,
        } => Expr::Select {
            cond: boxed(cond),
            then: boxed(then),
            otherwise: boxed(otherwise),
        },
        Expr::Tuple(parts) => Expr::Tuple(parts.iter().map(f).collect()),
        Expr::Call(function, parts) => Expr::Call(*function, parts.iter().map(f).collect()),
        Expr::Let {
            local,
            name,
            value,
            body,
        } => Expr::Let {
            local: *local,
            name: name.clone(),
            value: boxed(value),
            body: boxed(body),
        },
        Expr::Reduce {
            op,
            dims,
            body,
            span,
        } => Expr::Reduce {
            op: *op,
            dims: dims.clone(),
            body: boxed(body),
            span: *span,
        },
        Expr::Scan {
            op,
            dim,
            body,
            span,
        } => Expr::Scan {
            op: *op,
            dim: *dim,
            body: boxed(body),
            span: *span,
        },
    }
}

/// The type of an expression of a checked system; `None` only inside a function's body.
pub fn type_of(system: &System, expr: &Expr) -> Option<Type> {
    use systola_ir::Scalar;
    Some(match expr {
        Expr::Lit(ty, _) => Type::Scalar(*ty),
        Expr::Const(c) => Type::Scalar(system.consts[c.index()].ty),
        Expr::Iter(_) | Expr::Param(_) => Type::Scalar(Scalar::I64),
        Expr::Local(_) | Expr::Port(_) => return None,
        Expr::Var { var, .. } => system.vars[var.index()].ty.clone(),
        Expr::Input { input, .. } | Expr::Lookup { input, .. } => {
            Type::Scalar(system.inputs[input.index()].ty)
        }
        Expr::Unary(_, a) => type_of(system, a)?,
        Expr::Binary(op, ..) if op.is_comparison() => Type::Scalar(Scalar::Bool),
        Expr::Binary(_, a, b) => type_of(system, a).or_else(|| type_of(system, b))?,
        Expr::Cast(ty, _) => Type::Scalar(*ty),
        Expr::Guard {
            then, otherwise, ..
        } => type_of(system, then)
            .or_else(|| otherwise.as_deref().and_then(|e| type_of(system, e)))?,
        Expr::Select {
            then, otherwise, ..
        } => type_of(system, then).or_else(|| type_of(system, otherwise))?,
        Expr::Tuple(parts) => Type::Tuple(
            parts
                .iter()
                .map(|p| type_of(system, p))
                .collect::<Option<_>>()?,
        ),
        Expr::Field(a, n) => match type_of(system, a)? {
            Type::Tuple(parts) => parts.get(*n)?.clone(),
            Type::Scalar(_) => return None,
        },
        Expr::Call(f, _) => system.functions[f.index()].result.clone(),
        Expr::Let { body, .. } => type_of(system, body)?,
        Expr::Reduce { body, .. } | Expr::Scan { body, .. } => type_of(system, body)?,
    })
}

/// Replaces every `reduce` over a constant window that reads variables at its iterators by its terms.
fn unroll_windows(system: &System) -> Result<System, Diagnostic> {
    /// More terms than this are not written out.
    const MOST: i128 = 1024;
    let mut result = system.clone();
    let mut unrolled: BTreeSet<DimId> = BTreeSet::new();
    let mut failed: Option<Diagnostic> = None;
    for var in &mut result.vars {
        let body = map_expr::<std::convert::Infallible>(&var.body, &mut |e| {
            let Expr::Reduce {
                op,
                dims,
                body,
                span,
            } = &e
            else {
                return Ok(e);
            };
            let mut windowed = false;
            walk(body, &mut |inner| {
                if let Expr::Var { index, .. } = inner {
                    windowed |= index
                        .iter()
                        .any(|f| f.dims().iter().any(|d| dims.contains(d)));
                }
            });
            if !windowed {
                return Ok(e);
            }
            let mut points: Vec<Vec<(DimId, i128)>> = vec![Vec::new()];
            for d in dims {
                let range = system.dim(*d).range.as_ref();
                let bounds = range.and_then(|(lo, hi)| Some((lo.as_constant()?, hi.as_constant()?)));
                let size = bounds.map_or(0, |(lo, hi)| (hi - lo).max(0));
                match bounds {
                    Some((lo, hi)) if size > 0 && size * points.len() as i128 <= MOST => {
                        points = points
                            .into_iter()
                            .flat_map(|p| {
                                (lo..hi).map(move |v| {
                                    let mut p = p.clone();
                                    p.push((*d, v));
                                    p
                                })
                            })
                            .collect();
                    }
                    _ => {
                        failed.get_or_insert_with(|| {
                            Diagnostic::new(
                                &limits::WINDOW_NOT_CONSTANT,
                                *span,
                                format!(
                                    "variables are read at `{}`, whose range is not a constant window of at most {MOST} points",
                                    system.dim(*d).name
                                ),
                            )
                            .help("give the window constant bounds, or add the iterator to the index space")
                        });
                        return Ok(e);
                    }
                }
            }
            unrolled.extend(dims.iter().copied());
            let mut sum: Option<Expr> = None;
            for point in points {
                let value = |d: DimId| {
                    point
                        .iter()
                        .find(|(at, _)| *at == d)
                        .map(|(_, v)| Form::from(*v))
                };
                let fixed = systola_ir::system::map_forms(body, &|f| f.substitute(&value));
                let fixed = match fixed {
                    Ok(fixed) => fixed,
                    Err(o) => {
                        failed.get_or_insert(overflow(o, *span));
                        return Ok(e);
                    }
                };
                let Ok(term) = map_expr::<std::convert::Infallible>(&fixed, &mut |e| {
                    Ok(match e {
                        Expr::Iter(d) => match point.iter().find(|(at, _)| *at == d) {
                            Some((_, v)) => Expr::int(systola_ir::Scalar::I64, *v),
                            None => Expr::Iter(d),
                        },
                        other => other,
                    })
                });
                sum = Some(match sum {
                    None => term,
                    Some(sum) => combine(*op, sum, term),
                });
            }
            Ok(sum.unwrap_or(e))
        });
        let Ok(body) = body;
        var.body = body;
    }
    if let Some(failed) = failed {
        return Err(failed);
    }
    if unrolled.is_empty() {
        return Ok(result);
    }
    // Close the gaps that the unrolled iterators leave.
    let n = system.dims.len();
    let mut renumber: BTreeMap<DimId, DimId> = BTreeMap::new();
    let mut bound = Vec::new();
    for (k, dim) in system.bound.iter().enumerate() {
        let old = DimId::from(n + k);
        if !unrolled.contains(&old) {
            renumber.insert(old, DimId::from(n + bound.len()));
            bound.push(dim.clone());
        }
    }
    let rename = |f: &Form| f.substitute(&|d| renumber.get(&d).map(|d| Form::from(*d)));
    for dim in &mut bound {
        if let Some((lo, hi)) = &dim.range {
            let (lo, hi) = (rename(lo), rename(hi));
            dim.range = Some((
                lo.map_err(|o| overflow(o, dim.span))?,
                hi.map_err(|o| overflow(o, dim.span))?,
            ));
        }
    }
    result.bound = bound;
    for var in &mut result.vars {
        let body = systola_ir::system::map_forms(&var.body, &rename)
            .map_err(|o| overflow(o, var.span))?;
        let Ok(body) = map_expr::<std::convert::Infallible>(&body, &mut |e| {
            Ok(match e {
                Expr::Iter(d) => Expr::Iter(*renumber.get(&d).unwrap_or(&d)),
                Expr::Reduce {
                    op,
                    dims,
                    body,
                    span,
                } => Expr::Reduce {
                    op,
                    dims: dims.iter().map(|d| *renumber.get(d).unwrap_or(d)).collect(),
                    body,
                    span,
                },
                other => other,
            })
        });
        var.body = body;
    }
    Ok(result)
}
