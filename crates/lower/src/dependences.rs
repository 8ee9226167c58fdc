//! The dependences of a system: who reads whom, at which distance, under which guards.
//!
//! `dependences` gives every reference to a variable as a distance e with V(z) reading U(z − e). A
//! reference inside a `reduce` over constant bounds may use its iterators (a window, as in a
//! stencil); it gives one dependence for each of their values. A distance is taken over the points
//! at which the reference is read ([`crate::uniform`]).

use systola_ir::codes::limits;
use systola_ir::diag::Diagnostic;
use systola_ir::form::{Cond, Form, Overflow, Poly};
use systola_ir::id::{DimId, InputId, VarId};
use systola_ir::span::Span;
use systola_ir::system::visit::children;
use systola_ir::system::{Expr, System};

use crate::uniform::{distance_where, is_never};

/// V(z) reads U(z − e) wherever `when` holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Dependence {
    pub sink: VarId,
    pub source: VarId,
    /// e = z − index, constant or in the parameters.
    pub distance: Vec<Poly>,
    /// The guards around the reference, over z only: guards that use an iterator of a `reduce` are
    /// omitted, and inside a `scan` only the guards within its body count.
    pub when: Cond,
    /// One of several distances of a single reference, whose index uses iterators of a `reduce`.
    pub window: bool,
    pub span: Span,
}

/// V(z) reads an element of an input wherever `when` holds.
#[derive(Clone, Debug, PartialEq)]
pub struct InputRead {
    pub sink: VarId,
    pub input: InputId,
    /// May use the iterators of an enclosing `reduce`.
    pub index: Vec<Form>,
    pub when: Cond,
    pub span: Span,
}

/// At most this many distances of one window are listed.
const MAX_WINDOW: i128 = 4096;

/// The dependences of a system with one index space whose references are uniform; `None` for others.
pub fn dependences(system: &System) -> Option<Vec<Dependence>> {
    if !system.has_one_space() {
        return None;
    }
    let mut all = Vec::new();
    let mut uniform = true;
    for n in 0..system.vars.len() {
        let sink = VarId::from(n);
        let domain = system.var_domain(sink);
        let result = walk_equation(system, sink, &mut |expr, site| {
            if let Expr::Var { var, index, span } = expr {
                let Some(list) = distances(system, &domain, site, index)? else {
                    uniform = false;
                    return Ok(());
                };
                all.extend(list.into_iter().map(|(distance, when, window)| Dependence {
                    sink,
                    source: *var,
                    distance,
                    when,
                    window,
                    span: *span,
                }));
            }
            Ok(())
        });
        uniform &= result.is_ok();
    }
    uniform.then_some(all)
}

pub fn input_reads(system: &System) -> Vec<InputRead> {
    let mut all = Vec::new();
    for n in 0..system.vars.len() {
        let sink = VarId::from(n);
        // An overflow is reported by the checks.
        let _ = walk_equation(&system.around(sink), sink, &mut |expr, site| {
            if let Expr::Input { input, index, span } = expr {
                all.push(InputRead {
                    sink,
                    input: *input,
                    index: index.clone(),
                    when: conjunction(&site.local),
                    span: *span,
                });
            }
            Ok(())
        });
    }
    all
}

/// The position of a subexpression in an equation.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// The conditions that hold there, over the point and `inner`.
    pub conds: Vec<Cond>,
    /// The iterators beside those of the index space: those of each enclosing `reduce`, and for
    /// each enclosing `scan` a fresh one (after all others) that runs over the prefix.
    pub inner: Vec<DimId>,
    /// The point at which it is evaluated; inside a `scan` this is not the point of the equation.
    pub here: Vec<Form>,
    /// Guards inside the innermost `scan`, as written.
    local: Vec<Cond>,
    n_scans: usize,
}

impl Site {
    pub(crate) fn new(system: &System, cond: Cond) -> Site {
        Site {
            conds: vec![cond.clone()],
            inner: Vec::new(),
            here: system.identity_index(),
            local: Vec::new(),
            n_scans: 0,
        }
    }

    /// Rewrites a form of the source over the point and `inner`.
    pub(crate) fn form(&self, form: &Form) -> Result<Form, Overflow> {
        if self.n_scans == 0 {
            return Ok(form.clone());
        }
        form.substitute(&|d| self.here.get(d.index()).cloned())
    }

    pub(crate) fn cond(&self, cond: &Cond) -> Result<Cond, Overflow> {
        if self.n_scans == 0 {
            return Ok(cond.clone());
        }
        cond.map(&|form| self.form(form))
    }

    /// The same site under one more guard.
    pub(crate) fn under(&self, guard: &Cond) -> Result<Site, Overflow> {
        let mut site = self.clone();
        site.conds.push(self.cond(guard)?);
        site.local.push(guard.clone());
        Ok(site)
    }

    fn in_reduce(&self, system: &System, dims: &[DimId]) -> Result<Site, Overflow> {
        let mut site = self.clone();
        for d in dims {
            site.inner.push(*d);
            if let Some(range) = system.dim_range(*d) {
                site.conds.push(self.cond(&range)?);
                site.local.push(range);
            }
        }
        Ok(site)
    }

    fn in_scan(&self, system: &System, domain: &Cond, dim: DimId) -> Result<Site, Overflow> {
        let mut site = self.clone();
        let fresh = DimId::from(system.dims.len() + system.bound.len() + self.n_scans);
        let last = self.form(&Form::from(dim))?;
        site.n_scans += 1;
        site.inner.push(fresh);
        if let Some(here) = site.here.get_mut(dim.index()) {
            *here = Form::from(fresh);
        }
        site.conds.push(site.cond(domain)?);
        site.conds
            .push(Cond::cmp(systola_ir::form::Rel::Le, fresh, last));
        site.local.clear();
        Ok(site)
    }

    /// The names of the iterators by their ids; those of prefixes have a prime.
    pub(crate) fn names(&self, system: &System) -> Vec<String> {
        let mut names = system.dim_names();
        let n_ids = self.inner.iter().map(|d| d.index() + 1).max().unwrap_or(0);
        names.resize(n_ids.max(names.len()), String::from("'"));
        for (dim, here) in self.here.iter().enumerate() {
            for d in here.dims() {
                if d.index() >= system.dims.len() + system.bound.len() {
                    names[d.index()] = format!("{}'", system.dims[dim].name);
                }
            }
        }
        names
    }
}

/// Calls `f` on every subexpression of an equation with its site, outermost first.
pub(crate) fn walk_equation(
    system: &System,
    var: VarId,
    f: &mut impl FnMut(&Expr, &Site) -> Result<(), Overflow>,
) -> Result<(), Overflow> {
    let domain = system.var_domain(var);
    let site = Site::new(system, system.context_cond().and(domain.clone()));
    walk(system, &domain, &system.vars[var.index()].body, &site, f)
}

/// The same for any expression; a `scan` runs within `domain`.
pub(crate) fn walk(
    system: &System,
    domain: &Cond,
    expr: &Expr,
    site: &Site,
    f: &mut impl FnMut(&Expr, &Site) -> Result<(), Overflow>,
) -> Result<(), Overflow> {
    f(expr, site)?;
    match expr {
        Expr::Guard {
            cond,
            then,
            otherwise,
        } => {
            walk(system, domain, then, &site.under(cond)?, f)?;
            if let Some(otherwise) = otherwise {
                let site = site.under(&cond.clone().negate())?;
                walk(system, domain, otherwise, &site, f)?;
            }
        }
        Expr::Reduce { dims, body, .. } => {
            walk(system, domain, body, &site.in_reduce(system, dims)?, f)?;
        }
        Expr::Scan { dim, body, .. } => {
            walk(
                system,
                domain,
                body,
                &site.in_scan(system, domain, *dim)?,
                f,
            )?;
        }
        Expr::Lit(..)
        | Expr::Const(_)
        | Expr::Iter(_)
        | Expr::Param(_)
        | Expr::Local(_)
        | Expr::Var { .. }
        | Expr::Input { .. }
        | Expr::Lookup { .. }
        | Expr::Unary(..)
        | Expr::Binary(..)
        | Expr::Cast(..)
        | Expr::Select { .. }
        | Expr::Tuple(_)
        | Expr::Field(..)
        | Expr::Call(..)
        | Expr::Let { .. }
        | Expr::Port(_) => {
            for child in children(expr) {
                walk(system, domain, child, site, f)?;
            }
        }
    }
    Ok(())
}

type Distances = Vec<(Vec<Poly>, Cond, bool)>;

/// The distances of one reference, each with its guard and whether it belongs to a window; `None` if
/// one of them changes from point to point.
fn distances(
    system: &System,
    domain: &Cond,
    site: &Site,
    index: &[Form],
) -> Result<Option<Distances>, Overflow> {
    let n_dims = system.dims.len();
    let used: Vec<DimId> = {
        let mut used: Vec<DimId> = index.iter().flat_map(Form::dims).collect();
        used.retain(|d| d.index() >= n_dims);
        used.sort_unstable();
        used.dedup();
        used
    };
    let Some(values) = window(system, &used) else {
        return Ok(None);
    };
    let mut all = Vec::with_capacity(values.len());
    for point in values {
        let at = |form: &Form| {
            form.substitute(&|d| {
                let n = used.iter().position(|u| *u == d)?;
                Some(Form::from(point[n]))
            })
        };
        let index_here = index.iter().map(at).collect::<Result<Vec<_>, _>>()?;
        let guards = site.local.iter().map(|guard| guard.map(&at));
        let mut guards = guards.collect::<Result<Vec<_>, _>>()?;
        if guards
            .iter()
            .any(|guard| constant_value(guard) == Some(false))
        {
            continue;
        }
        guards.retain(|guard| constant_value(guard).is_none());
        let read = guards.iter().cloned().fold(domain.clone(), Cond::and);
        let Some(distance) = distance_where(system, &index_here, &read) else {
            if is_never(system, &read) {
                continue;
            }
            return Ok(None);
        };
        all.push((
            distance,
            conjunction_of_point(&guards, n_dims),
            !used.is_empty(),
        ));
    }
    Ok(Some(all))
}

/// The value of a condition that uses neither iterators nor parameters.
fn constant_value(cond: &Cond) -> Option<bool> {
    let constant = cond.forms().iter().all(|form| form.as_constant().is_some());
    if constant {
        cond.eval(&[], &[]).ok()
    } else {
        None
    }
}

/// Every combination of values of iterators with constant ranges; `None` for other ranges and if
/// there are too many.
fn window(system: &System, used: &[DimId]) -> Option<Vec<Vec<i128>>> {
    let mut points: Vec<Vec<i128>> = vec![Vec::new()];
    for d in used {
        let (lo, hi) = system.dim(*d).range.as_ref()?;
        let (lo, hi) = (lo.as_constant()?, hi.as_constant()?);
        if (hi - lo).max(0).saturating_mul(points.len() as i128) > MAX_WINDOW {
            return None;
        }
        points = points
            .iter()
            .flat_map(|point| {
                (lo..hi).map(|value| {
                    let mut point = point.clone();
                    point.push(value);
                    point
                })
            })
            .collect();
    }
    Some(points)
}

pub(crate) fn overflow(span: Span) -> Diagnostic {
    Diagnostic::new(&limits::TOO_COMPLEX, span, Overflow.to_string())
}

/// A reference as the text language writes it.
pub(crate) fn reference(system: &System, var: VarId, index: &[Form]) -> String {
    let name = &system.vars[var.index()].name;
    format!("{name}({})", forms(system, index))
}

pub(crate) fn forms(system: &System, index: &[Form]) -> String {
    let (params, dims) = (system.param_names(), system.dim_names());
    let parts: Vec<String> = index
        .iter()
        .map(|form| form.display(&params, &dims).to_string())
        .collect();
    parts.join(", ")
}

fn conjunction(conds: &[Cond]) -> Cond {
    conds.iter().cloned().fold(Cond::TRUE, Cond::and)
}

fn conjunction_of_point(conds: &[Cond], n_dims: usize) -> Cond {
    let of_point = |cond: &&Cond| {
        cond.forms()
            .iter()
            .all(|form| form.dims().iter().all(|d| d.index() < n_dims))
    };
    conds
        .iter()
        .filter(of_point)
        .cloned()
        .fold(Cond::TRUE, Cond::and)
}
