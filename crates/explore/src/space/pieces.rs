//! An order for each part of the index space, where no order is legal for all of it.
//!
//! The guards of references say where a dependence exists. The index space is cut along one of
//! them, and each half again while it has no order of its own. The parts run one after the other,
//! as a whole or within each iteration of common outer loops; all sequences are written, and the
//! legality check decides between them.

use systola_ir::form::{Atom, Cond, Form, Rel};
use systola_ir::mapping::{
    Directive, DirectiveKind, Mapping, NameCond, NameExpr, NameOp, PlaceLevel, TimeLevel,
};
use systola_ir::sets::{set_of, system_space};
use systola_ir::system::System;
use systola_lower::dependences::{Dependence, dependences};
use systola_rt::Deadline;

use super::axes::{Axes, Role};
use super::schedule::{Prefer, Schedule, schedule};
use super::text::{Text, combination, signed_sum};
use super::tilings::permutations;

/// How often a part is cut again.
const DEEPEST: usize = 2;

/// The number of guards that are tried as cuts, and of ways to cut that are kept.
const MOST_CUTS: usize = 8;
const MOST_WAYS: usize = 8;

/// The parts, in the order in which their conditions are tested, and when each runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Pieces {
    parts: Vec<Part>,
    phases: Vec<usize>,
    /// The number of time coordinates before the one that orders the parts.
    outside: usize,
}

#[derive(Clone, Debug, PartialEq)]
struct Part {
    conds: Vec<Cond>,
    schedule: Schedule,
}

/// None where one order is enough, or no guard helps.
pub fn pieces(axes: &Axes, system: &System, sizes: &[i128], deadline: &Deadline) -> Vec<Pieces> {
    let Some(cutter) = Cutter::new(axes, system, sizes, deadline) else {
        return Vec::new();
    };
    let mut ways = cutter.cut(&[], DEEPEST);
    ways.retain(|parts| parts.len() > 1);
    ways.sort_by_key(Vec::len);
    let mut all = Vec::new();
    for parts in ways.into_iter().take(MOST_WAYS) {
        let numbers: Vec<usize> = (0..parts.len()).collect();
        let rows = parts.iter().map(|part| part.schedule.rows.len()).max();
        for phases in permutations(&numbers, usize::MAX) {
            all.extend((0..rows.unwrap_or(0)).map(|outside| Pieces {
                parts: parts.clone(),
                phases: phases.clone(),
                outside,
            }));
        }
    }
    all
}

struct Cutter<'a> {
    axes: &'a Axes,
    system: &'a System,
    /// With their distances over all iterators.
    dependences: Vec<(Dependence, Vec<i128>)>,
    /// Comparisons of iterators in guards.
    cuts: Vec<Cond>,
    deadline: &'a Deadline,
}

impl<'a> Cutter<'a> {
    fn new(
        axes: &'a Axes,
        system: &'a System,
        sizes: &[i128],
        deadline: &'a Deadline,
    ) -> Option<Cutter<'a>> {
        let mut list = Vec::new();
        let mut cuts = Vec::new();
        for dependence in dependences(system)? {
            let e = dependence.distance.iter().map(|p| p.eval(sizes).ok());
            let mut e: Vec<i128> = e.collect::<Option<_>>()?;
            e.resize(axes.list.len(), 0);
            comparisons(&dependence.when, &mut cuts);
            list.push((dependence, e));
        }
        cuts.truncate(MOST_CUTS);
        Some(Cutter {
            axes,
            system,
            dependences: list,
            cuts,
            deadline,
        })
    }

    /// Ways to cut the points where the conditions hold into parts, each with an order.
    fn cut(&self, conds: &[Cond], depth: usize) -> Vec<Vec<Part>> {
        let here = self.dependences.iter().filter(|d| self.exists(d, conds));
        let distances: Vec<Vec<i128>> = here.map(|(_, e)| e.clone()).collect();
        let recurrent: Vec<usize> = self.axes.with_role(Role::Recurrent).collect();
        let n = self.axes.list.len();
        let found = schedule(&distances, n, &recurrent, Prefer::Loops);
        if let Some(schedule) = found.filter(|s| s.left.is_empty()) {
            let conds = conds.to_vec();
            return vec![vec![Part { conds, schedule }]];
        }
        let Some(depth) = depth.checked_sub(1).filter(|_| !self.deadline.is_over()) else {
            return Vec::new();
        };
        let mut ways = Vec::new();
        for cut in self.cuts.iter().filter(|cut| !conds.contains(cut)) {
            let half = |cond: Cond| self.cut(&[conds, &[cond]].concat(), depth);
            let first = half(cut.clone());
            if first.is_empty() {
                continue;
            }
            for other in half(cut.clone().negate()) {
                let joined = first.iter().map(|parts| [&parts[..], &other].concat());
                ways.extend(joined);
            }
        }
        ways.sort_by_key(Vec::len);
        ways.truncate(MOST_WAYS);
        ways
    }

    /// Does the dependence exist at any of these points?
    fn exists(&self, (dependence, _): &(Dependence, Vec<i128>), conds: &[Cond]) -> bool {
        // A test that is undecided or out of time counts as yes.
        if self.deadline.is_over() {
            return true;
        }
        let system = self.system;
        let mut cond = system.context_cond();
        cond = cond.and(system.var_domain(dependence.sink));
        cond = cond.and(dependence.when.clone());
        for part in conds {
            cond = cond.and(part.clone());
        }
        let set = set_of(&cond, system_space(system));
        !set.is_ok_and(|set| set.is_empty().unwrap_or(false))
    }
}

/// The comparisons in a condition that involve an iterator.
fn comparisons(cond: &Cond, found: &mut Vec<Cond>) {
    match cond {
        Cond::Const(_) => {}
        Cond::Cmp(_, left, right) => {
            let uses_iterator = !left.sub(right).dims().is_empty();
            let negated = cond.clone().negate();
            if uses_iterator && !found.contains(cond) && !found.contains(&negated) {
                found.push(cond.clone());
            }
        }
        Cond::And(parts) | Cond::Or(parts) => {
            for part in parts {
                comparisons(part, found);
            }
        }
        Cond::Not(inner) => comparisons(inner, found),
    }
}

impl Pieces {
    /// None: a condition cannot be written in a mapping.
    pub fn write(
        &self,
        axes: &Axes,
        system: &System,
        name: &str,
        mut text: Text,
    ) -> Option<Mapping> {
        let places = places(axes, &mut text);
        let most = self.parts.iter().map(|part| part.steps(axes).len()).max()?;
        let mut pieces: Vec<(NameCond, Vec<Directive>)> = Vec::new();
        for (part, phase) in self.parts.iter().zip(&self.phases) {
            let mut lines = places.clone();
            let mut forms = part.steps(axes);
            forms.resize(most, NameExpr::int(0));
            forms.insert(self.outside, NameExpr::int(*phase as i128));
            let reduced = axes.with_role(Role::Reduced);
            let reduced = reduced.filter(|axis| !axes.is_unrolled(*axis));
            forms.extend(reduced.map(|axis| NameExpr::name(axes.name(axis))));
            let level = TimeLevel::Step;
            lines.push(DirectiveKind::Time { level, forms });
            let conds = part.conds.iter().map(|cond| name_cond(system, cond));
            let cond = NameCond::And(conds.collect::<Option<_>>()?);
            pieces.push((cond, lines.into_iter().map(Directive::from).collect()));
        }
        let (_, rest) = pieces.pop()?;
        for (cond, directives) in pieces {
            text.line(DirectiveKind::When { cond, directives });
        }
        for directive in rest {
            text.line(directive.kind);
        }
        Some(text.finish(name, &system.name))
    }

    /// The choices, in words.
    pub fn choices(&self, axes: &Axes) -> Vec<(&'static str, String)> {
        let parts = self.parts.iter().zip(&self.phases);
        let mut parts: Vec<(&usize, String)> = parts
            .map(|(part, phase)| {
                let steps: Vec<String> = part.steps(axes).iter().map(NameExpr::to_string).collect();
                (phase, steps.join(", "))
            })
            .collect();
        parts.sort();
        let steps: Vec<String> = parts.into_iter().map(|(_, steps)| steps).collect();
        vec![
            ("family", "pieces".to_string()),
            ("steps", steps.join(", then ")),
        ]
    }
}

impl Part {
    fn steps(&self, axes: &Axes) -> Vec<NameExpr> {
        let names = || axes.list.iter().map(|a| a.name.as_str());
        let rows = self.schedule.rows.iter().map(|row| {
            let terms: Vec<(i128, &str)> = row.iter().copied().zip(names()).collect();
            combination(&terms).unwrap_or(NameExpr::int(0))
        });
        let free = self.schedule.free.iter();
        rows.chain(free.map(|axis| NameExpr::name(axes.name(*axis))))
            .collect()
    }
}

/// Parallel iterators are blocks, the last one lanes.
fn places(axes: &Axes, text: &mut Text) -> Vec<DirectiveKind> {
    let parallel: Vec<usize> = axes.with_role(Role::Parallel).collect();
    let Some((last, others)) = parallel.split_last() else {
        return Vec::new();
    };
    let (outer, inner) = text.tile(axes.name(*last), text.lanes, true);
    let mut blocks: Vec<NameExpr> = Vec::new();
    blocks.extend(others.iter().map(|axis| NameExpr::name(axes.name(*axis))));
    blocks.push(NameExpr::name(outer));
    let place = |level, forms| DirectiveKind::Place { level, forms };
    vec![
        place(PlaceLevel::Block, blocks),
        place(PlaceLevel::Lane, vec![NameExpr::name(inner)]),
    ]
}

/// A condition in the syntax of a mapping.
fn name_cond(system: &System, cond: &Cond) -> Option<NameCond> {
    let list = |parts: &[Cond]| -> Option<Vec<NameCond>> {
        parts.iter().map(|c| name_cond(system, c)).collect()
    };
    Some(match cond {
        Cond::Cmp(rel, left, right) => {
            NameCond::Cmp(*rel, name_expr(system, left)?, name_expr(system, right)?)
        }
        Cond::And(parts) => NameCond::And(list(parts)?),
        Cond::Or(parts) => NameCond::Or(list(parts)?),
        Cond::Not(inner) => NameCond::Not(Box::new(name_cond(system, inner)?)),
        Cond::Const(true) => NameCond::And(Vec::new()),
        Cond::Const(false) => NameCond::Cmp(Rel::Lt, NameExpr::int(0), NameExpr::int(0)),
    })
}

/// A form in the syntax of a mapping; none where it has products of iterators and parameters.
fn name_expr(system: &System, form: &Form) -> Option<NameExpr> {
    let mut terms = Vec::new();
    for (atom, factor) in form.terms() {
        let term = match atom {
            Atom::Dim(d) => NameExpr::name(system.dims.get(d.index())?.name.as_str()),
            Atom::Floor(inner, m) => {
                NameExpr::binary(NameOp::Div, name_expr(system, inner)?, NameExpr::int(*m))
            }
            Atom::Mod(inner, m) => {
                NameExpr::binary(NameOp::Mod, name_expr(system, inner)?, NameExpr::int(*m))
            }
        };
        terms.push((factor.as_constant()?, term));
    }
    for (monomial, c) in form.constant_part().terms() {
        let mut names = monomial.iter().map(|p| {
            let param = system.params.get(p.index())?;
            Some(NameExpr::name(param.name.as_str()))
        });
        match names.next() {
            None => terms.push((c.signum(), NameExpr::int(c.abs()))),
            Some(first) => {
                let product = names.try_fold(first?, |product, name| {
                    Some(NameExpr::binary(NameOp::Mul, product, name?))
                });
                terms.push((c, product?));
            }
        }
    }
    Some(signed_sum(terms).unwrap_or(NameExpr::int(0)))
}
