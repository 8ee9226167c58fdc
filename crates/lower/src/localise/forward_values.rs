//! Forwarded variables: a value that several points read travels from reader to reader.
//!
//! A reference V(f(z)) with f(z) = f(z − e) reads one value at all points of a line along e. If the
//! value is made on that line, up to a constant distance d, so z − d = f(z) + k·e with k ≥ 0, then
//! it is carried there: a new variable has C(x) = V(x) where k is 0, and C(x − e) elsewhere, and the
//! reference becomes C(z − d), which is uniform. C lives on the points between the value and its
//! last reader.

use systola_ir::form::{Cond, Form, Overflow, Poly, Rel};
use systola_ir::system::visit::{children, map_children};
use systola_ir::system::{Expr, Law, System, Var, shifted};
use systola_ir::{Diagnostic, DimId, Span, VarId};

use super::{Pass, fresh, overflow, shift_form};
use crate::decide::Decide;
use crate::uniform::{constant_where, distance_where};

/// References to a variable at the same index, each with its reader and the points that read.
struct Pattern {
    index: Vec<Form>,
    readers: Vec<(VarId, Cond)>,
}

/// How far the value of a reference travels.
struct Travel {
    /// The constant part of the distance.
    from: Vec<Poly>,
    /// k at the point where the value is taken, z − d.
    steps: Form,
}

impl Pass {
    /// Forwards a variable along e. References at a constant distance stay as they are: at small sizes
    /// all of them may be. What is left at changing distances goes through memory.
    pub(super) fn forward_value(
        &mut self,
        var: VarId,
        e: &[Poly],
        span: Span,
    ) -> Result<(), Diagnostic> {
        let failed = |o| overflow(o, span);
        for pattern in self.references(var) {
            let Some(travel) = travel(&self.system, &pattern, e).map_err(failed)? else {
                continue;
            };
            if let Some(carrier) = self.value_carrier(var, &pattern, &travel, e, span)? {
                self.read_value(var, &pattern, &travel, carrier)
                    .map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Adds the variable that carries the value of a pattern along e; `None` if the points that read
    /// it ahead of the value are none, or not known in closed form.
    fn value_carrier(
        &mut self,
        var: VarId,
        pattern: &Pattern,
        travel: &Travel,
        e: &[Poly],
        span: Span,
    ) -> Result<Option<VarId>, Diagnostic> {
        let failed = |o| overflow(o, span);
        let ahead: Vec<Poly> = travel.from.iter().map(Poly::neg).collect();
        let begun = compared(Rel::Le, &travel.steps);
        let mut pieces = Vec::new();
        for (_, when) in &pattern.readers {
            let taken = when.map(&|f| shift_form(f, &ahead)).map_err(failed)?;
            let taken = taken.and(begun.clone());
            if self.is_never(&taken) {
                continue;
            }
            let Some(mut piece) = before(&taken, e).map_err(failed)? else {
                return Ok(None);
            };
            piece.push(begun.clone());
            self.without_implied(&mut piece);
            if !pieces.contains(&piece) {
                pieces.push(piece);
            }
        }
        let on = match pieces.as_slice() {
            [] => return Ok(None),
            [piece] => piece.clone(),
            _ => vec![Cond::Or(pieces.into_iter().map(Cond::And).collect())],
        };
        // The value exists where the carrier takes it, the carrier where it takes its own, and all of
        // it in the index space.
        let domain = on.iter().cloned().fold(Cond::TRUE, Cond::and);
        let first = compared(Rel::Eq, &travel.steps);
        let later = domain.clone().and(first.clone().negate());
        let back = domain.map(&|f| shift_form(f, e)).map_err(failed)?;
        let made = self.system.var_domain(var);
        if !self.is_never(&domain.clone().and(first.clone()).and(made.negate()))
            || !self.is_never(&later.and(back.negate()))
            || !self.holds(domain)
        {
            return Ok(None);
        }
        let carrier = VarId::from(self.system.vars.len());
        let here = self.system.identity_index();
        let read = |var, index| Expr::Var { var, index, span };
        let declared = &self.system.vars[var.index()];
        let carried = Var {
            name: fresh(&format!("{}_fwd", declared.name), |name| {
                let system = &self.system;
                system.vars.iter().any(|v| v.name == name)
                    || system.inputs.iter().any(|v| v.name == name)
                    || system.dim_names().iter().any(|d| d == name)
                    || system.params.iter().any(|p| p.name == name)
            }),
            ty: declared.ty.clone(),
            law: Law::Fixed,
            own: None,
            on,
            body: Expr::guard(
                first,
                read(var, here.clone()),
                read(carrier, shifted(&here, e)),
            ),
            span,
        };
        self.system.vars.push(carried);
        Ok(Some(carrier))
    }

    /// Is a domain a part of the index space? The index space of aligned variables is made of their
    /// domains, and grows.
    fn holds(&mut self, domain: Cond) -> bool {
        let outside = domain.clone().and(self.system.domain_cond().negate());
        if self.is_never(&outside) {
            return true;
        }
        match self.system.domain.as_mut_slice() {
            [Cond::Or(domains)] => {
                domains.push(domain);
                true
            }
            _ => false,
        }
    }

    /// The points of a variable; without what the index space says beside ranges, if that follows.
    fn points_of(&self, var: VarId) -> Cond {
        let dims = (0..self.system.dims.len()).map(DimId::from);
        let ranges = dims.filter_map(|d| self.system.dim_range(d));
        let on = self.system.vars[var.index()].on.iter().cloned();
        let on = ranges.chain(on).fold(Cond::TRUE, Cond::and);
        let outside = on.clone().and(self.system.domain_cond().negate());
        match self.is_never(&outside) {
            true => on,
            false => self.system.var_domain(var),
        }
    }

    /// The references to a variable by their index, if one of the same index is not uniform.
    fn references(&self, var: VarId) -> Vec<Pattern> {
        let mut patterns: Vec<Pattern> = Vec::new();
        let mut changing: Vec<Vec<Form>> = Vec::new();
        for (n, reader) in self.system.vars.iter().enumerate() {
            let points = self.points_of(VarId::from(n));
            reads_of(&reader.body, &points, &mut |expr, when| {
                let Expr::Var { var: v, index, .. } = expr else {
                    return;
                };
                if *v != var {
                    return;
                }
                if distance_where(&self.system, index, when).is_none() {
                    changing.push(index.clone());
                }
                let reader = (VarId::from(n), when.clone());
                match patterns.iter_mut().find(|p| p.index == *index) {
                    Some(pattern) => pattern.readers.push(reader),
                    None => patterns.push(Pattern {
                        index: index.clone(),
                        readers: vec![reader],
                    }),
                }
            });
        }
        patterns.retain(|pattern| changing.contains(&pattern.index));
        patterns
    }

    /// Removes conditions that follow from the others.
    fn without_implied(&self, conds: &mut Vec<Cond>) {
        let mut n = 0;
        while n < conds.len() {
            let cond = conds.remove(n);
            let others = conds.iter().cloned().fold(Cond::TRUE, Cond::and);
            if !self.is_never(&others.and(cond.clone().negate())) {
                conds.insert(n, cond);
                n += 1;
            }
        }
    }

    fn is_never(&self, cond: &Cond) -> bool {
        let decide = Decide {
            n_params: self.system.params.len(),
            context: self.system.context_cond(),
        };
        let empty = decide.is_empty(cond, self.system.dims.len() + self.system.bound.len());
        empty.unwrap_or(false)
    }

    /// Makes the readers of a pattern read its carrier, where they are ahead of the value.
    fn read_value(
        &mut self,
        var: VarId,
        pattern: &Pattern,
        travel: &Travel,
        carrier: VarId,
    ) -> Result<(), Overflow> {
        let steps = shift_form(&travel.steps, &travel.from)?;
        let ahead = compared(Rel::Le, &steps);
        let index = shifted(&self.system.identity_index(), &travel.from);
        for reader in 0..self.system.vars.len() {
            let mut own = pattern.readers.iter();
            if reader == carrier.index() || !own.any(|(of, _)| of.index() == reader) {
                continue;
            }
            let points = self.points_of(VarId::from(reader));
            let body = self.system.vars[reader].body.clone();
            let body = replace(&body, &points, &mut |expr, when| match expr {
                Expr::Var {
                    var: v,
                    index: i,
                    span,
                } if *v == var && *i == pattern.index => {
                    let carried = Expr::Var {
                        var: carrier,
                        index: index.clone(),
                        span: *span,
                    };
                    let behind = when.clone().and(ahead.clone().negate());
                    Some(match self.is_never(&behind) {
                        true => carried,
                        false => Expr::guard(ahead.clone(), carried, expr.clone()),
                    })
                }
                _ => None,
            });
            self.system.vars[reader].body = body;
        }
        Ok(())
    }
}

/// Replaces subexpressions, given the condition under which each is reached.
fn replace(expr: &Expr, when: &Cond, f: &mut dyn FnMut(&Expr, &Cond) -> Option<Expr>) -> Expr {
    if let Some(new) = f(expr, when) {
        return new;
    }
    if let Expr::Guard {
        cond,
        then,
        otherwise,
    } = expr
    {
        let inside = when.clone().and(cond.clone());
        let outside = when.clone().and(cond.clone().negate());
        return Expr::Guard {
            cond: cond.clone(),
            then: Box::new(replace(then, &inside, f)),
            otherwise: otherwise
                .as_ref()
                .map(|e| Box::new(replace(e, &outside, f))),
        };
    }
    let rebuilt = map_children(expr, &mut |child| {
        Ok::<_, std::convert::Infallible>(replace(child, when, f))
    });
    match rebuilt {
        Ok(rebuilt) => rebuilt,
        Err(never) => match never {},
    }
}

fn reads_of(expr: &Expr, when: &Cond, f: &mut dyn FnMut(&Expr, &Cond)) {
    f(expr, when);
    match expr {
        Expr::Guard {
            cond,
            then,
            otherwise,
        } => {
            reads_of(then, &when.clone().and(cond.clone()), f);
            if let Some(otherwise) = otherwise {
                reads_of(otherwise, &when.clone().and(cond.clone().negate()), f);
            }
        }
        other => children(other)
            .into_iter()
            .for_each(|child| reads_of(child, when, f)),
    }
}

/// How far a value travels along e to a reference, if it is constant along e and on the line.
fn travel(system: &System, pattern: &Pattern, e: &[Poly]) -> Result<Option<Travel>, Overflow> {
    let Pattern { index, readers } = pattern;
    for form in index {
        if shift_form(form, e)? != *form {
            return Ok(None);
        }
    }
    let away: Vec<Form> = system
        .identity_index()
        .iter()
        .zip(index)
        .map(|(here, there)| here.sub(there))
        .collect();
    // The coordinate that counts the steps, a unit.
    let unit = |p: &Poly| p.as_constant().filter(|c| c.abs() == 1);
    let Some((n, sign)) = e.iter().enumerate().find_map(|(n, p)| Some((n, unit(p)?))) else {
        return Ok(None);
    };
    let steps = away[n].scale(&Poly::constant(sign))?;
    let mut from = Vec::with_capacity(e.len());
    for (away, e) in away.iter().zip(e) {
        let rest = away.sub(&steps.scale(e)?);
        let mut found = readers
            .iter()
            .map(|(_, when)| constant_where(system, &rest, when));
        match found.next().flatten() {
            Some(constant) if found.all(|other| other.as_ref() == Some(&constant)) => {
                from.push(constant);
            }
            _ => return Ok(None),
        }
    }
    let ahead: Vec<Poly> = from.iter().map(Poly::neg).collect();
    let steps = shift_form(&steps, &ahead)?;
    Ok(Some(Travel { from, steps }))
}

/// The points from which some number m ≥ 0 of steps along e leads to a point of a condition, by
/// eliminating m; `None` if a condition that changes along e is no comparison of affine forms that
/// changes by one in a step.
fn before(cond: &Cond, e: &[Poly]) -> Result<Option<Vec<Cond>>, Overflow> {
    let mut fixed = Vec::new();
    // m >= lower, m <= upper.
    let (mut lower, mut upper) = (vec![Form::zero()], Vec::new());
    let mut open = vec![cond.clone()];
    while let Some(cond) = open.pop() {
        let moves = |form: &Form| Ok::<_, Overflow>(shift_form(form, e)? != *form);
        let mut changes = false;
        for form in cond.forms() {
            changes |= moves(form)?;
        }
        match cond {
            Cond::And(parts) => open.extend(parts.into_iter().rev()),
            Cond::Const(true) => {}
            other if !changes => fixed.push(other),
            Cond::Cmp(rel, left, right) => {
                // slack >= 0
                let slack = match rel {
                    Rel::Ge => left.sub(&right),
                    Rel::Gt => left.sub(&right).plus(-1),
                    Rel::Le => right.sub(&left),
                    Rel::Lt => right.sub(&left).plus(-1),
                    Rel::Eq => {
                        open.push(Cond::Cmp(Rel::Ge, left.clone(), right.clone()));
                        open.push(Cond::Cmp(Rel::Le, left, right));
                        continue;
                    }
                    Rel::Ne => return Ok(None),
                };
                let step = slack.sub(&shift_form(&slack, e)?);
                match step.as_constant() {
                    Some(1) => lower.push(slack.neg()),
                    Some(-1) => upper.push(slack),
                    _ => return Ok(None),
                }
            }
            Cond::Not(inner) => match *inner {
                Cond::Cmp(rel, left, right) => open.push(Cond::Cmp(rel.opposite(), left, right)),
                _ => return Ok(None),
            },
            Cond::Const(false) | Cond::Or(_) => return Ok(None),
        }
    }
    for least in &lower {
        for most in &upper {
            fixed.push(compared(Rel::Le, &most.sub(least)));
        }
    }
    Ok(Some(fixed))
}

/// The comparison of 0 with a form, each term on the side on which it is positive: `i <= N - 1`.
fn compared(rel: Rel, form: &Form) -> Cond {
    let mut left = Form::zero();
    for (atom, factor) in form.terms() {
        if factor.as_constant().is_some_and(|c| c < 0)
            && let Ok(term) = Form::atom(atom.clone()).scale(&factor.neg())
        {
            left = left.add(&term);
        }
    }
    let right = form.add(&left);
    Cond::cmp(rel, left, right)
}
