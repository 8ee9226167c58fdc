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
use systola_ir::mapping::{Direction, Directive, DirectiveKind, Mapping, Name, SumStage};
use systola_ir::system::visit::{map_expr, walk};
use systola_ir::system::{Combine, Expr, Law, System};
use systola_ir::{Diagnostic, DimId, InputId, Span, VarId};

use crate::uniform::make_uniform;

mod forward;
mod forward_values;
mod named;
mod renumber;
mod serialise;
mod share;
mod tiles;
mod typing;
mod windows;

use named::{has_sum, name_sums, uses};
use share::share_iterators;
use tiles::tile_sums;
pub(crate) use tiles::value_of;
use windows::unroll_windows;

/// A system of uniform recurrences, and which of its variables are sums from a `reduce` or `scan`.
#[derive(Clone, Debug, PartialEq)]
pub struct Localised {
    pub system: System,
    /// The accumulations whose order the program leaves open.
    pub sums: Vec<VarId>,
    /// The iterators of sums that tiles have replaced.
    pub tiled: Vec<String>,
    /// Do points read values of others through memory, at any distance?
    pub through_memory: bool,
}

impl Localised {
    /// The directives of the mapping that are still to be applied.
    pub fn remaining<'m>(&self, mapping: &'m Mapping) -> impl Iterator<Item = &'m Directive> {
        mapping.directives.iter().filter(|directive| {
            !matches!(&directive.kind, DirectiveKind::Tile { dim, .. } if self.tiled.contains(&dim.text))
        })
    }

    /// May the terms of an accumulation be regrouped?
    pub fn may_regroup(&self, var: VarId, op: Combine) -> bool {
        let declared = &self.system.vars[var.index()];
        self.sums.contains(&var)
            || declared.law >= Law::Associative
            || self.system.law_of(op, &declared.ty) >= Law::Associative
    }
}

/// Expands the batch and applies the mapping's choices of localisation and serialisation. `lanes`
/// is the number of lanes of the target.
///
/// Where that leaves references at distances that change from point to point, or the mapping stores
/// values, points read each other's values through memory. Sums then stay what they are, unless the
/// mapping orders them: a point adds up the terms of its own.
pub fn localise(
    system: &System,
    mapping: Option<&Mapping>,
    lanes: i128,
) -> Result<Localised, Vec<Diagnostic>> {
    let has = |is: &dyn Fn(&DirectiveKind) -> bool| {
        mapping.is_some_and(|m| m.directives.iter().any(|d| is(&d.kind)))
    };
    let stores = has(&|kind| matches!(kind, DirectiveKind::Store { .. }));
    let orders_sums = has(&|kind| matches!(kind, DirectiveKind::Sum { .. }));
    let serialised = serialised(system, mapping, lanes);
    let through_memory = match &serialised {
        Ok(localised) => stores || !is_uniform(&localised.system),
        Err(errors) => {
            let mut errors = errors.iter();
            stores || errors.all(|e| e.code == &limits::WINDOW_NOT_CONSTANT)
        }
    };
    if !through_memory || mapping.is_none() {
        return serialised;
    }
    // A prefix has its values from its neighbours, in a variable of its own.
    let has_scans = system.vars.iter().any(|var| {
        let mut found = false;
        walk(&var.body, &mut |e| found |= matches!(e, Expr::Scan { .. }));
        found
    });
    let mut localised = match orders_sums || has_scans {
        true => serialised?,
        false => with_sums(system, mapping)?,
    };
    localised.through_memory = true;
    Ok(localised)
}

/// Is every variable read at constant distances?
fn is_uniform(system: &System) -> bool {
    let mut uniform = true;
    for var in &system.vars {
        walk(&var.body, &mut |e| {
            if let Expr::Var { index, .. } = e {
                uniform &= system.distance(index).is_some();
            }
        });
    }
    uniform
}

/// Applies what a mapping says of inputs, and leaves sums as they are.
fn with_sums(system: &System, mapping: Option<&Mapping>) -> Result<Localised, Vec<Diagnostic>> {
    let mut written = system
        .expand_batch()
        .map_err(|o| vec![overflow(o, system.span)])?;
    make_uniform(&mut written).map_err(|o| vec![overflow(o, system.span)])?;
    let choices = Choices::of(&written, &[], mapping)?;
    let mut pass = Pass {
        n_outer: written.dims.len(),
        batched: system.batch.is_some(),
        system: written,
        sums: BTreeSet::new(),
    };
    pass.forward(&choices)?;
    Ok(Localised {
        system: pass.system,
        sums: Vec::new(),
        tiled: Vec::new(),
        through_memory: false,
    })
}

/// The system with its sums as accumulations.
fn serialised(
    system: &System,
    mapping: Option<&Mapping>,
    lanes: i128,
) -> Result<Localised, Vec<Diagnostic>> {
    let batched = system.batch.is_some();
    let system = system
        .expand_batch()
        .map_err(|o| vec![overflow(o, system.span)])?;
    let mut unrolled = unroll_windows(&system).map_err(|d| vec![d])?;
    make_uniform(&mut unrolled).map_err(|o| vec![overflow(o, system.span)])?;
    let named = name_sums(&mut unrolled);
    let mut written = inline_lets(unrolled).map_err(|d| vec![d])?;
    let tiled = tile_sums(&mut written, mapping, lanes).map_err(|d| vec![d])?;
    let mut choices = Choices::of(&written, &named, mapping)?;
    choices.present = tiled.present;
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
        tiled: tiled.iterators,
        through_memory: false,
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
    forward: Vec<(Forwarded, Vec<systola_ir::mapping::NameExpr>, Span)>,
    order: BTreeMap<VarId, (Stages, Span)>,
    /// Where a sum has a term: conditions on the tile indices of iterators whose last tile is not
    /// full.
    present: Vec<Cond>,
}

/// What a mapping forwards.
#[derive(Clone, Copy, Debug)]
enum Forwarded {
    Input(InputId),
    Var(VarId),
}

/// The stages of a sum, each with its iterators, innermost first.
type Stages = Vec<Vec<(DimId, Direction)>>;

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
                DirectiveKind::Forward { input, along } => {
                    let (along, span) = (along.clone(), directive.span);
                    let found = system.find_input(&input.text).map(Forwarded::Input);
                    match found.or(system.find_var(&input.text).map(Forwarded::Var)) {
                        Some(what) => choices.forward.push((what, along, span)),
                        None => errors.push(unknown_input(system, &input.text, input.span)),
                    }
                }
                DirectiveKind::Read { input } if system.find_input(&input.text).is_none() => {
                    errors.push(unknown_input(system, &input.text, input.span));
                }
                DirectiveKind::Sum { var, stages } => match system.find_var(&var.text) {
                    Some(id) => {
                        let own = named.iter().filter(|(_, of)| *of == id);
                        let vars: Vec<VarId> = own.map(|(v, _)| *v).chain([id]).collect();
                        match sum_stages(system, &vars, stages, directive.span) {
                            Ok(stages) => {
                                for var in vars {
                                    let dims = sum_dims(system, var);
                                    let mut own = stages.clone();
                                    for stage in &mut own {
                                        stage.retain(|(d, _)| dims.contains(d));
                                    }
                                    own.retain(|stage| !stage.is_empty());
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
        choices.same_stages(system, mapping);
        if errors.is_empty() {
            Ok(choices)
        } else {
            Err(errors)
        }
    }

    /// A sum of which the mapping says nothing has the stages of another one over iterators of the
    /// same names, so that both can share these.
    fn same_stages(&mut self, system: &System, mapping: Option<&Mapping>) {
        let directives = mapping.iter().flat_map(|m| &m.directives);
        let staged: Vec<(&[SumStage], Span)> = directives
            .filter_map(|directive| match &directive.kind {
                DirectiveKind::Sum { stages, .. } if stages.len() > 1 => {
                    Some((stages.as_slice(), directive.span))
                }
                _ => None,
            })
            .collect();
        for var in (0..system.vars.len()).map(VarId::from) {
            if self.order.contains_key(&var) || sum_dims(system, var).is_empty() {
                continue;
            }
            let order = staged.iter().find_map(|(stages, span)| {
                let order = sum_stages(system, &[var], stages, *span).ok()?;
                Some((order, *span))
            });
            self.order.extend(order.map(|order| (var, order)));
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

/// The stages of the sums of some variables; the mapping names the last of these.
fn sum_stages(
    system: &System,
    vars: &[VarId],
    written: &[SumStage],
    span: Span,
) -> Result<Stages, Diagnostic> {
    let dims: Vec<DimId> = vars.iter().flat_map(|v| sum_dims(system, *v)).collect();
    let name = vars.last().map_or("", |v| &system.vars[v.index()].name);
    let mut stages = Stages::new();
    for stage in written {
        let named: Vec<(&Name, Direction)> = match stage {
            SumStage::Along(list) => list.iter().map(|(name, way)| (name, *way)).collect(),
            // Down to the first value, at which there is always a term.
            SumStage::Tree(list) => list.iter().map(|name| (name, Direction::Down)).collect(),
        };
        if dims.is_empty() && !named.is_empty() {
            return Err(Diagnostic::new(
                &codes::NOT_A_SUM,
                span,
                format!("`{name}` has no `reduce` or `scan` whose order could be chosen"),
            )
            .help("the equation of a sum that is already a recurrence fixes its order"));
        }
        let mut own = Vec::new();
        for (dim, direction) in named {
            // Several sums of one variable may use one name; the order applies to all of them.
            let same = dims.iter().filter(|d| system.dim(**d).name == dim.text);
            let same: Vec<DimId> = same.copied().collect();
            let mut seen = stages.iter().flatten().chain(&own);
            if same.is_empty() || seen.any(|(seen, _)| same.contains(seen)) {
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
            own.extend(same.into_iter().map(|d| (d, direction)));
        }
        match stage {
            SumStage::Along(_) => stages.push(own),
            SumStage::Tree(_) => stages.extend(own.into_iter().map(|d| vec![d])),
        }
    }
    // Iterators that are not named are the last stage's outermost, ascending; or trees.
    let left: Vec<DimId> = dims
        .into_iter()
        .rev()
        .filter(|d| !stages.iter().flatten().any(|(seen, _)| seen == d))
        .collect();
    match (written.last(), stages.last_mut()) {
        (Some(SumStage::Tree(_)), Some(_)) => {
            stages.extend(left.into_iter().map(|d| vec![(d, Direction::Down)]));
        }
        (_, Some(last)) => last.extend(left.into_iter().map(|d| (d, Direction::Up))),
        (_, None) => stages.push(left.into_iter().map(|d| (d, Direction::Up)).collect()),
    }
    stages_are_legal(system, vars, &stages, span)?;
    Ok(stages)
}

/// Stages add the terms in another order than the one they are written in, and complete only the
/// whole sum.
fn stages_are_legal(
    system: &System,
    vars: &[VarId],
    stages: &Stages,
    span: Span,
) -> Result<(), Diagnostic> {
    if stages.iter().filter(|stage| !stage.is_empty()).count() < 2 {
        return Ok(());
    }
    for var in vars.iter().map(|v| &system.vars[v.index()]) {
        let mut error = None;
        walk(&var.body, &mut |e| match e {
            Expr::Reduce {
                op: Combine::Fn(f), ..
            } if system.functions[f.index()].law < Law::Reorderable => {
                let function = &system.functions[f.index()].name;
                error = Some(
                    Diagnostic::new(
                        &codes::STAGES_NEED_LAW,
                        span,
                        format!(
                            "stages add up terms that do not follow each other, and `{function}` does not promise that their order does not matter"
                        ),
                    )
                    .help(format!(
                        "if it does not, write `reorderable` after the result of `fn {function}`; \
                         else keep to one stage"
                    )),
                );
            }
            Expr::Scan { .. } => {
                error = Some(
                    Diagnostic::new(
                        &codes::NOT_A_SUM,
                        span,
                        format!(
                            "`{}` is a `scan`: all its prefixes are results, and stages have only the whole sum",
                            var.name
                        ),
                    )
                    .help("give the order of a `scan` in one stage"),
                );
            }
            _ => {}
        });
        if let Some(error) = error {
            return Err(error);
        }
    }
    Ok(())
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
