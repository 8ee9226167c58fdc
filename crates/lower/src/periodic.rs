//! Periodic iterators: tiles that overlap around a ring.
//!
//! An iterator x in 0..M is *periodic* if the equations are the same at every x except for
//! references that wrap around: `select(x == 0, U(t-1, x+M-1), U(t-1, x-1))` reads its neighbour on
//! the ring in both cases. Within a launch a tile with `overlap … periodic` has copies of the cells
//! around it, including cells beyond the ends of the ring, so that no reference wraps. At the
//! beginning of a launch values are loaded from memory, which holds only the cells 0..M.
//!
//! Before, if S sweeps t make a launch:
//!
//! ```text
//! index t in 0..T, x in 0..M;
//! var U = f(select(x == 0, U(t-1, x+M-1), U(t-1, x-1)), …);
//! ```
//!
//! After, with r the reach of one sweep, and x' = x - 1:
//!
//! ```text
//! index t in 0..T, x in -(S-1)·r .. M + (S-1)·r;
//! var U on -(S-1 - t%S)·r <= x < M + (S-1 - t%S)·r =
//!     f(select(t % S == 0,
//!         select(x' < 0, U(t-1, x'+M), select(x' >= M, U(t-1, x'-M), U(t-1, x'))),
//!         U(t-1, x')), …);
//! ```
//!
//! Outputs are written for 0 <= x < M. A value wraps around once, so the ring must be at least as
//! long as the reach of a launch. If the context does not imply that, the mapping is decided at
//! given sizes. This runs before localisation, since it is the only choice of a mapping that
//! changes the index space.

use std::convert::Infallible;

use systola_ir::codes::limits;
use systola_ir::form::{Cond, Form, Poly, Rel};
use systola_ir::mapping::{DirectiveKind, Mapping, NameExpr, NameExprKind, TimeLevel};
use systola_ir::system::visit::{map_expr, walk};
use systola_ir::system::{Expr, System};
use systola_ir::{Diagnostic, DimId, Span};

use crate::decide::{Decide, Undecided};
use crate::failure::Failure;

/// An iterator that runs around a ring, and the length of the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    pub dim: DimId,
    pub length: Form,
}

/// The iterators along which a system without a batch is periodic and some reference wraps.
pub fn rings(system: &System) -> Vec<Ring> {
    let mut rings = Vec::new();
    for n in 0..system.dims.len() {
        let dim = DimId::from(n);
        let Some(ring) = ring(system, dim) else {
            continue;
        };
        let plain = unwrapped(system, std::slice::from_ref(&ring));
        if plain.is_ok_and(|plain| plain.vars != system.vars) {
            rings.push(ring);
        }
    }
    rings
}

fn ring(system: &System, dim: DimId) -> Option<Ring> {
    let (lo, hi) = system.dims[dim.index()].range.as_ref()?;
    let is_ring = lo.as_constant() == Some(0) && hi.as_poly().is_some();
    is_ring.then(|| Ring {
        dim,
        length: hi.clone(),
    })
}

/// The same system with neighbours on the rings at constant distances, as if rings had no ends; or
/// the reason why it is not periodic.
pub fn unwrapped(system: &System, rings: &[Ring]) -> Result<System, &'static str> {
    let on_ring = |form: &Form| {
        form.dims()
            .iter()
            .any(|d| rings.iter().any(|r| r.dim == *d))
    };
    let cond_on_ring = |cond: &Cond| cond.forms().into_iter().any(on_ring);
    let mut plain = system.clone();
    for var in &mut plain.vars {
        let body: Result<Expr, Infallible> = map_expr(&var.body, &mut |expr| {
            Ok(match expr {
                Expr::Var { var, index, span } => Expr::Var {
                    var,
                    index: index.iter().map(|f| nearest(f, rings)).collect(),
                    span,
                },
                Expr::Input { input, index, span } => Expr::Input {
                    input,
                    index: index.iter().map(|f| nearest(f, rings)).collect(),
                    span,
                },
                Expr::Guard {
                    cond,
                    then,
                    otherwise: Some(otherwise),
                } if cond_on_ring(&cond) && then == otherwise => *otherwise,
                other => other,
            })
        });
        var.body = match body {
            Ok(body) => body,
            Err(never) => match never {},
        };
    }
    let mut why = None;
    let mut refuse = |reason: &'static str| why = why.or(Some(reason));
    let ranges = plain.dims.iter().chain(&plain.bound);
    let ranges = ranges.filter_map(|d| d.range.as_ref());
    let domains = plain.vars.iter().flat_map(|v| &v.on).chain(&plain.domain);
    if ranges.flat_map(|(lo, hi)| [lo, hi]).any(on_ring) || domains.into_iter().any(cond_on_ring) {
        refuse("the domain depends on it");
    }
    let writes = plain.outputs.iter().flat_map(|o| &o.writes);
    if writes.into_iter().any(|w| cond_on_ring(&w.when)) {
        refuse("an output is written at some of its points only");
    }
    for var in &plain.vars {
        walk(&var.body, &mut |expr| match expr {
            Expr::Guard { cond, .. } if cond_on_ring(cond) => {
                refuse("an equation says something else at some of its points");
            }
            Expr::Iter(d) if rings.iter().any(|r| r.dim == *d) => {
                refuse("an equation uses it as a value");
            }
            Expr::Var { index, .. } => {
                for ring in rings {
                    let distance = index[ring.dim.index()].sub(&Form::from(ring.dim));
                    if distance.as_constant().is_none() {
                        refuse("a variable is read at a distance that is not constant");
                    }
                }
            }
            Expr::Input { input, index, .. } => {
                let input = &plain.inputs[input.index()];
                let axes = &input.axes;
                for (form, axis) in index.iter().zip(axes).filter(|(form, _)| on_ring(form)) {
                    // An input with `else` has a value beyond its ends, not its other end.
                    let around = rings.iter().any(|ring| {
                        let far = form.sub(&Form::from(ring.dim)).as_constant();
                        let inside = far == Some(0) || (far.is_some() && input.outside.is_none());
                        inside && axis.lo == Form::zero() && axis.hi == ring.length
                    });
                    if !around {
                        refuse("an input is read that does not lie around it");
                    }
                }
            }
            Expr::Scan { dim, .. } if rings.iter().any(|r| r.dim == *dim) => {
                refuse("a prefix sum runs along it");
            }
            _ => {}
        });
    }
    match why {
        None => Ok(plain),
        Some(why) => Err(why),
    }
}

/// x + c + k·M is x + c on the ring; the shortest distance if M is a number.
fn nearest(form: &Form, rings: &[Ring]) -> Form {
    let is_on = |ring: &&Ring| form.coefficient(ring.dim) == Poly::constant(1);
    let Some(ring) = rings.iter().find(is_on) else {
        return form.clone();
    };
    let far = form.sub(&Form::from(ring.dim));
    let ways = [far.clone(), far.sub(&ring.length), far.add(&ring.length)];
    let ways = ways.iter().filter_map(Form::as_constant);
    let shortest = ways.min_by_key(|c| c.abs());
    shortest.map_or_else(|| form.clone(), |c| Form::from(ring.dim).plus(c))
}

/// The system as a mapping with periodic tiles sees it, and the rings of these tiles; `None`
/// without such tiles.
pub fn open_rings(
    system: &System,
    mapping: &Mapping,
) -> Result<Option<(System, Vec<Ring>)>, Failure> {
    let refused = |span: Span, text: String| {
        Failure::Refused(vec![Diagnostic::new(&limits::PERIODIC, span, text).help(
            "leave `periodic` out, and let every sweep have a launch of its own",
        )])
    };
    let mut wanted = Vec::new();
    for directive in &mapping.directives {
        if let DirectiveKind::Tile {
            dim,
            periodic: true,
            ..
        } = &directive.kind
        {
            wanted.push((dim, directive.span));
        }
    }
    let Some((_, first)) = wanted.first() else {
        return Ok(None);
    };
    let system = system
        .expand_batch()
        .map_err(|overflow| Failure::Undecided(overflow.into()))?;
    let mut rings = Vec::new();
    for (dim, span) in &wanted {
        let found = system.dims.iter().position(|d| d.name == dim.text);
        let ring = found.and_then(|n| ring(&system, DimId::from(n)));
        rings.push(ring.ok_or_else(|| {
            refused(
                *span,
                format!("`{}` is no iterator that runs from 0 to a size", dim.text),
            )
        })?);
    }
    let plain = unwrapped(&system, &rings)
        .map_err(|why| refused(*first, format!("the system is not periodic: {why}")))?;
    let Some((time, sweeps)) = launched(&system, mapping) else {
        return Err(refused(
            *first,
            "periodic tiles need a launch for each sweep or for a number of them".to_string(),
        ));
    };
    let opened = Opened {
        rings: &rings,
        time,
        sweeps,
    };
    let system = opened
        .system(&plain)?
        .map_err(|why| refused(*first, why.to_string()))?;
    Ok(Some((system, rings)))
}

/// The iterator of the launches, and the number of its points in one launch: `launch = t`, or
/// `launch = tl` with `tile t by 4 as (tl, s)`.
fn launched(system: &System, mapping: &Mapping) -> Option<(DimId, i128)> {
    let launch = mapping.directives.iter().find_map(|d| match &d.kind {
        DirectiveKind::Time {
            level: TimeLevel::Launch,
            forms,
        } => match forms.as_slice() {
            [
                NameExpr {
                    kind: NameExprKind::Name(name),
                    ..
                },
            ] => Some(name),
            _ => None,
        },
        _ => None,
    })?;
    let dim = |name: &str| {
        let found = system.dims.iter().position(|d| d.name == name);
        found.map(DimId::from)
    };
    if let Some(time) = dim(launch) {
        return Some((time, 1));
    }
    mapping.directives.iter().find_map(|d| match &d.kind {
        DirectiveKind::Tile {
            dim: tiled,
            size:
                NameExpr {
                    kind: NameExprKind::Int(size),
                    ..
                },
            outer,
            overlap: None,
            ..
        } if outer.text == *launch && *size > 0 => Some((dim(&tiled.text)?, *size)),
        _ => None,
    })
}

/// The rings of a system, cut open for launches of several sweeps.
struct Opened<'a> {
    rings: &'a [Ring],
    time: DimId,
    sweeps: i128,
}

impl Opened<'_> {
    fn system(&self, plain: &System) -> Result<Result<System, &'static str>, Failure> {
        let mut opened = plain.clone();
        let mut starts: Vec<(i128, i128)> = vec![(0, 0); self.rings.len()];
        let mut why = None;
        for var in &plain.vars {
            walk(&var.body, &mut |expr| {
                let Expr::Var { index, .. } = expr else {
                    return;
                };
                let back = |d: DimId| Form::from(d).sub(&index[d.index()]).as_constant();
                if back(self.time) != Some(1) {
                    why = Some("a variable is read that is not of the sweep before");
                }
                for (ring, (lo, hi)) in self.rings.iter().zip(&mut starts) {
                    let e = back(ring.dim).unwrap_or(0);
                    *lo = (*lo).max(e);
                    *hi = (*hi).max(-e);
                }
            });
        }
        if let Some(why) = why {
            return Ok(Err(why));
        }
        let decide = Decide {
            n_params: plain.params.len(),
            context: plain.context_cond(),
        };
        let sweep = Form::from(self.time).modulo(self.sweeps);
        let over = |sweeps: &Form, reach: i128| sweeps.scale(&Poly::constant(reach));
        for (ring, (lo, hi)) in self.rings.iter().zip(&starts) {
            let far = self.sweeps * (*lo).max(*hi);
            let short = Cond::Cmp(Rel::Lt, ring.length.clone(), Form::from(far));
            if !decide.is_empty(&short, 0).map_err(Failure::Undecided)? {
                let needs = "a ring must be as long as a launch reaches";
                return match ring.length.as_constant() {
                    Some(_) => Ok(Err("the ring is shorter than a launch reaches")),
                    None => Err(Failure::Undecided(Undecided::NeedsSizes(needs.to_string()))),
                };
            }
            let all = self.sweeps - 1;
            let range = (Form::from(-all * lo), ring.length.plus(all * hi));
            opened.dims[ring.dim.index()].range = Some(range);
            let x = Form::from(ring.dim);
            let overflow = |o: systola_ir::form::Overflow| Failure::Undecided(o.into());
            for var in &mut opened.vars {
                if all * lo > 0 {
                    let start = over(&sweep, *lo).map_err(overflow)?.plus(-all * lo);
                    var.on.push(Cond::Cmp(Rel::Ge, x.clone(), start));
                }
                if all * hi > 0 {
                    let end = ring.length.plus(all * hi);
                    let end = end.sub(&over(&sweep, *hi).map_err(overflow)?);
                    var.on.push(Cond::Cmp(Rel::Lt, x.clone(), end));
                }
            }
            for write in opened.outputs.iter_mut().flat_map(|o| &mut o.writes) {
                let inside = Cond::cmp(Rel::Ge, x.clone(), 0);
                let inside = inside.and(Cond::Cmp(Rel::Lt, x.clone(), ring.length.clone()));
                write.when = write.when.clone().and(inside);
            }
        }
        let first = Cond::cmp(Rel::Eq, sweep, 0);
        for var in &mut opened.vars {
            let body: Result<Expr, Infallible> = map_expr(&var.body, &mut |expr| {
                Ok(match expr {
                    Expr::Var { var, index, span } => {
                        let at = |index: Vec<Form>| Expr::Var { var, index, span };
                        let plain = at(index.clone());
                        Expr::guard(first.clone(), self.around(&index, 0, &at), plain)
                    }
                    Expr::Input { input, index, span } => {
                        let at = |index: Vec<Form>| Expr::Input { input, index, span };
                        self.around(&index, 0, &at)
                    }
                    other => other,
                })
            });
            var.body = match body {
                Ok(body) => body,
                Err(never) => match never {},
            };
        }
        Ok(Ok(opened))
    }

    /// Reads at an index whose components on rings may be beyond an end.
    fn around(&self, index: &[Form], from: usize, at: &dyn Fn(Vec<Form>) -> Expr) -> Expr {
        let ring_of = |form: &Form| {
            let is_on = |r: &&Ring| form.coefficient(r.dim) == Poly::constant(1);
            self.rings.iter().find(is_on)
        };
        let next = (from..index.len()).find_map(|n| ring_of(&index[n]).map(|ring| (n, ring)));
        let Some((n, ring)) = next else {
            return at(index.to_vec());
        };
        let moved = |to: Form| {
            let mut index = index.to_vec();
            index[n] = to;
            self.around(&index, n + 1, at)
        };
        let here = &index[n];
        let before = Cond::cmp(Rel::Lt, here.clone(), 0);
        let behind = Cond::Cmp(Rel::Ge, here.clone(), ring.length.clone());
        Expr::guard(
            before,
            moved(here.add(&ring.length)),
            Expr::guard(behind, moved(here.sub(&ring.length)), moved(here.clone())),
        )
    }
}
