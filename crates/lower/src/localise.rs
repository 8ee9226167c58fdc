//! Localisation and serialisation: a system in core form becomes a system of uniform recurrences.
//!
//! Before: inputs are read wherever they are needed, and sums are `reduce` and `scan`. After: there
//! is no `reduce` or `scan`, and every input that the mapping forwards travels in a variable of its
//! own. A system that is in this form already is returned unchanged.
//!
//! * `reduce(op, q, f)` becomes an accumulation over the index space with q added to it, in the
//!   order that `sum Z along` gives, ascending by default. Its result is complete on the *last*
//!   face of q. A variable that does not contain the sum lives on the *first* face, and what the
//!   body of a sum reads of a variable is carried along q.
//! * A sum that a `let` names and that is read more than once becomes a variable.
//! * Sums over the same range under the same name share an iterator.
//! * A `reduce` over a constant window whose body reads variables at the window's iterators (a
//!   stencil) is unrolled.
//! * `forward x along e` is legal if the element that is read is the same at z and z − e.
//!
//! Localisation runs first, since all later steps handle uniform references only.

use std::collections::{BTreeMap, BTreeSet};

use systola_ir::codes::{limits, mapping as codes};
use systola_ir::form::{Cond, Form, Overflow, Poly};
use systola_ir::mapping::{Direction, DirectiveKind, Mapping, SumOrder};
use systola_ir::system::visit::{map_expr, walk};
use systola_ir::system::{Combine, Expr, Law, System};
use systola_ir::{Diagnostic, DimId, InputId, Span, VarId};

use crate::uniform::make_uniform;

mod forward;
mod named;
mod renumber;
mod serialise;
mod share;
mod typing;
mod windows;

use named::{has_sum, name_sums, uses};
use share::share_iterators;
use windows::unroll_windows;

/// A system of uniform recurrences, and which of its variables are sums from a `reduce` or `scan`.
#[derive(Clone, Debug, PartialEq)]
pub struct Localised {
    pub system: System,
    /// The accumulations whose order the program leaves open.
    pub sums: Vec<VarId>,
}

impl Localised {
    /// May the terms of an accumulation be regrouped?
    pub fn may_regroup(&self, var: VarId, op: Combine) -> bool {
        let declared = &self.system.vars[var.index()];
        self.sums.contains(&var)
            || declared.law >= Law::Associative
            || self.system.law_of(op, &declared.ty) >= Law::Associative
    }
}

/// Expands the batch and applies the mapping's choices of localisation and serialisation.
pub fn localise(system: &System, mapping: Option<&Mapping>) -> Result<Localised, Vec<Diagnostic>> {
    let batched = system.batch.is_some();
    let system = system
        .expand_batch()
        .map_err(|o| vec![overflow(o, system.span)])?;
    let mut unrolled = unroll_windows(&system).map_err(|d| vec![d])?;
    make_uniform(&mut unrolled).map_err(|o| vec![overflow(o, system.span)])?;
    let named = name_sums(&mut unrolled);
    let mut written = inline_lets(unrolled).map_err(|d| vec![d])?;
    let mut choices = Choices::of(&written, &named, mapping)?;
    let span = written.span;
    share_iterators(&mut written, &mut choices).map_err(|o| vec![overflow(o, span)])?;
    let mut pass = Pass {
        n_outer: written.dims.len(),
        system: written,
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

/// Inlines the `let`s around sums: a sum gets a variable of its own, in which the enclosing `let`s
/// are not visible. Named sums are variables by now, except inside other sums.
fn inline_lets(mut system: System) -> Result<System, Diagnostic> {
    let sum_in = |expr: &Expr| {
        let mut found = None;
        walk(expr, &mut |e| {
            if let Expr::Reduce { span, .. } | Expr::Scan { span, .. } = e {
                found.get_or_insert(*span);
            }
        });
        found
    };
    for var in &mut system.vars {
        var.body = map_expr(&var.body, &mut |e| {
            let Expr::Let {
                local,
                name,
                value,
                body,
            } = &e
            else {
                return Ok(e);
            };
            let Some(span) = sum_in(body) else {
                return Ok(e);
            };
            if uses(body, *local) > 1 && has_sum(value) {
                return Err(Diagnostic::new(
                    &limits::LET_OF_A_SUM,
                    span,
                    format!(
                        "`{name}` is a sum inside another sum, and is used more than once beside a third"
                    ),
                )
                .help(format!("make `{name}` a variable of its own")));
            }
            map_expr(body, &mut |inner| {
                Ok(match inner {
                    Expr::Local(l) if l == *local => (**value).clone(),
                    other => other,
                })
            })
        })?;
    }
    Ok(system)
}

/// What the mapping chooses for inputs and sums.
#[derive(Default)]
struct Choices {
    /// Directions as written; they are checked against the grown index space later.
    forward: Vec<(InputId, Vec<systola_ir::mapping::NameExpr>, Span)>,
    order: BTreeMap<VarId, (Vec<(DimId, Direction)>, Span)>,
}

impl Choices {
    /// `named`: the variables of named sums, each with the variable it came from; a choice for one
    /// holds for the other.
    fn of(
        system: &System,
        named: &[(VarId, VarId)],
        mapping: Option<&Mapping>,
    ) -> Result<Choices, Vec<Diagnostic>> {
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
                    Some(id) => {
                        let own = named.iter().filter(|(_, of)| *of == id);
                        let vars: Vec<VarId> = own.map(|(v, _)| *v).chain([id]).collect();
                        match sum_order(system, &vars, order, directive.span) {
                            Ok(order) => {
                                for var in vars {
                                    let dims = sum_dims(system, var);
                                    let mut own = order.clone();
                                    own.retain(|(d, _)| dims.contains(d));
                                    choices.order.insert(var, (own, directive.span));
                                }
                            }
                            Err(error) => errors.push(error),
                        }
                    }
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

/// The order of the sums of some variables; the mapping names the last of these.
fn sum_order(
    system: &System,
    vars: &[VarId],
    order: &SumOrder,
    span: Span,
) -> Result<Vec<(DimId, Direction)>, Diagnostic> {
    let dims: Vec<DimId> = vars.iter().flat_map(|v| sum_dims(system, *v)).collect();
    let SumOrder::Along(written) = order else {
        return Ok(dims.into_iter().rev().map(|d| (d, Direction::Up)).collect());
    };
    let name = vars.last().map_or("", |v| &system.vars[v.index()].name);
    if dims.is_empty() {
        return Err(Diagnostic::new(
            &codes::NOT_A_SUM,
            span,
            format!("`{name}` has no `reduce` or `scan` whose order could be chosen"),
        )
        .help("the equation of a sum that is already a recurrence fixes its order"));
    }
    let mut result = Vec::new();
    for (dim, direction) in written {
        // Several sums of one variable may use one name; the order applies to all of them.
        let named = dims.iter().filter(|d| system.dim(**d).name == dim.text);
        let named: Vec<DimId> = named.copied().collect();
        match named.first() {
            Some(d) if !result.iter().any(|(seen, _)| seen == d) => {
                result.extend(named.into_iter().map(|d| (d, *direction)));
            }
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
    // Iterators that are not named are outermost, ascending.
    for d in dims.into_iter().rev() {
        if !result.iter().any(|(seen, _)| *seen == d) {
            result.push((d, Direction::Up));
        }
    }
    Ok(result)
}

struct Pass {
    system: System,
    /// The number of iterators before those of the sums.
    n_outer: usize,
    batched: bool,
    sums: BTreeSet<VarId>,
}

/// The conditions under which z − e is in the domain, given that z is: those that the shift
/// changes.
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

pub(crate) fn combine(op: Combine, left: Expr, right: Expr) -> Expr {
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
