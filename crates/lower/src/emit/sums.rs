//! Sums that a point adds up itself.

use systola_ir::form::{Cond, Form, Rel};
use systola_ir::kernel::{Op, Shape, Stmt};
use systola_ir::system::{Combine, Expr};
use systola_ir::{DimId, Poly, RegId, Span, ValueId};

use crate::emit::Emitter;
use crate::emit::cells::{Bundle, Evaluated, Here, Sum};
use crate::facts::Range;
use crate::failure::{Failure, limitation};
use crate::storage_maps::reads::bound_range;

impl Emitter<'_> {
    /// Adds up the terms of a sum, one after the other.
    pub(super) fn sum(
        &mut self,
        sum: &Sum<'_>,
        name: &str,
        here: &Here<'_>,
        done: &mut Evaluated,
    ) -> Result<Bundle, Failure> {
        let mut at = here.clone();
        let columns = self.array.dims.len() + self.array.bound.len();
        at.point.resize(columns, Form::zero());
        let op = match sum.op {
            Combine::Op(op) => op,
            Combine::Fn(_) => return self.folded(sum, name, &at, done),
        };
        let mut total = None;
        let body = self.scoped(&mut |e| {
            e.terms(sum, sum.dims, &at, &mut |e, here| {
                let (term, present) = e.present(sum, here)?;
                let (term, _) = e.on_path(&present, |e| e.expr(term, name, here, done))?;
                let term = term.scalar();
                let reg = e.total(name, term, &present);
                total = Some(reg);
                let old = e.b.value(name, e.b.ty(term), Op::Get(reg));
                let new = e.binary(op, name, old, term);
                let new = e.b.choose(name, present, new, old);
                e.b.push(Stmt::Set(reg, new));
                Ok(())
            })
        })?;
        let Some(reg) = total else {
            unreachable!("loops have a body");
        };
        let ty = self.b.kernel.regs[reg.index()].ty;
        let Some(neutral) = op.identity(ty) else {
            return Err(no_neutral_value(sum));
        };
        let neutral = self.b.literal(ty, neutral);
        self.b.push(Stmt::Set(reg, neutral));
        body.into_iter().for_each(|stmt| self.b.push(stmt));
        Ok(Bundle::Scalar(self.b.value(name, ty, Op::Get(reg))))
    }

    /// A register for a sum of such terms.
    fn total(&mut self, name: &str, term: ValueId, present: &Cond) -> RegId {
        let masked = match self.b.kernel.cond_is_uniform(present) {
            true => Shape::Uniform,
            false => Shape::Varying,
        };
        let shape = self.b.shape(term).max(masked);
        self.b.reg(format!("{name}_sum"), self.b.ty(term), shape)
    }

    /// The same for a function, which has no neutral value: the sum begins with its first term.
    fn folded(
        &mut self,
        sum: &Sum<'_>,
        name: &str,
        here: &Here<'_>,
        done: &mut Evaluated,
    ) -> Result<Bundle, Failure> {
        let ([d], Combine::Fn(f)) = (sum.dims, sum.op) else {
            return Err(no_neutral_value(sum));
        };
        let declared = &self.array.bound[d.index() - self.array.dims.len()];
        let Some((lo, hi)) = &declared.range else {
            unreachable!("an iterator of a sum has a range");
        };
        let (lo, hi) = (here.at(lo)?, here.at(hi)?);
        let depends = |f: &Form| self.lane.is_some_and(|lane| f.dims().contains(&lane));
        if depends(&lo) || depends(&hi) || !self.facts.is_nonnegative(&hi.sub(&lo).plus(-1)) {
            return Err(no_neutral_value(sum));
        }
        let mut at = here.clone();
        at.point[d.index()] = lo.clone();
        let first = self.expr(sum.body, name, &at, done)?;
        let flat = first.flat();
        let registers: Vec<RegId> = flat
            .iter()
            .map(|value| {
                // A later term may differ from lane to lane where the first one does not.
                let shape = match self.lane {
                    Some(_) => Shape::Varying,
                    None => Shape::Uniform,
                };
                self.b.reg(format!("{name}_sum"), self.b.ty(*value), shape)
            })
            .collect();
        for (reg, value) in registers.iter().zip(flat) {
            self.b.push(Stmt::Set(*reg, value));
        }
        let current = |e: &mut Self| -> Bundle {
            let values: Vec<ValueId> = registers
                .iter()
                .map(|reg| {
                    let ty = e.b.kernel.regs[reg.index()].ty;
                    e.b.value(name, ty, Op::Get(*reg))
                })
                .collect();
            first.of_scalars(&mut values.into_iter())
        };
        let range = Range::new(lo.plus(1), hi);
        self.looped(&declared.name, range, 1, &mut |e, v| {
            let mut at = here.clone();
            at.point[d.index()] = Form::from(v);
            let term = e.expr(sum.body, name, &at, done)?;
            let before = current(e);
            let added = e.call(f, vec![before, term], &at)?;
            for (reg, value) in registers.iter().zip(added.flat()) {
                e.b.push(Stmt::Set(*reg, value));
            }
            Ok(())
        })?;
        Ok(current(self))
    }

    /// The loops over the iterators of a sum.
    fn terms(
        &mut self,
        sum: &Sum<'_>,
        dims: &[DimId],
        here: &Here<'_>,
        f: &mut dyn FnMut(&mut Self, &Here<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Some((d, inner)) = dims.split_first() else {
            return f(self, here);
        };
        let declared = &self.array.bound[d.index() - self.array.dims.len()];
        let Some((lo, hi)) = &declared.range else {
            unreachable!("an iterator of a sum has a range");
        };
        let (lo, hi) = (here.at(lo)?, here.at(hi)?);
        let mut range = Range::new(
            self.uniform_end(&lo, true, sum.span)?,
            self.uniform_end(&hi, false, sum.span)?,
        );
        // Terms that a condition leaves out are not visited.
        if inner.is_empty() {
            let (_, present) = without_absent(sum);
            self.narrow(*d, &present, here, &mut range)?;
        }
        let name = declared.name.clone();
        self.looped(&name, range, 1, &mut |e, v| {
            let mut inside = here.clone();
            inside.point[d.index()] = Form::from(v);
            e.terms(sum, inner, &inside, f)
        })
    }

    /// An end of a loop that all lanes run together.
    fn uniform_end(&self, form: &Form, low: bool, span: Span) -> Result<Form, Failure> {
        let Some(lane) = self.lane.filter(|lane| form.dims().contains(lane)) else {
            return Ok(form.clone());
        };
        let last = i128::from(self.partition.lanes) - 1;
        let at = match form.coefficient(lane).as_constant() {
            Some(c) if (c > 0) == low => 0,
            Some(_) => last,
            None => 0,
        };
        let outside = form.sub(&Form::from(lane).scale(&form.coefficient(lane))?);
        if outside.dims().contains(&lane) {
            let message =
                "the lanes of a warp have sums of different lengths, by a rounded quotient";
            return Err(limitation(span, message.to_string()));
        }
        Ok(form.substitute(&|d| (d == lane).then(|| Form::from(at)))?)
    }

    /// Moves the ends of a loop to where a condition holds.
    fn narrow(
        &self,
        d: DimId,
        present: &Cond,
        here: &Here<'_>,
        range: &mut Range,
    ) -> Result<(), Failure> {
        let parts = match present {
            Cond::And(parts) => parts.clone(),
            other => vec![other.clone()],
        };
        for part in &parts {
            let Cond::Cmp(rel, left, right) = part else {
                continue;
            };
            // gap = sign·d + rest, compared with zero.
            let gap = left.sub(right);
            let Some(sign @ (1 | -1)) = gap.coefficient(d).as_constant() else {
                continue;
            };
            let own = Form::from(d).scale(&Poly::constant(sign))?;
            let rest = gap.sub(&own);
            let zero = here.at(&rest.scale(&Poly::constant(-sign))?)?;
            let uniform = self.lane.is_none_or(|lane| !zero.dims().contains(&lane));
            if rest.dims().contains(&d) || !uniform {
                continue;
            }
            let (above, below) = match (rel, sign) {
                (Rel::Eq, _) => (Some(zero.clone()), Some(zero.plus(1))),
                (Rel::Ge, 1) | (Rel::Le, -1) => (Some(zero), None),
                (Rel::Gt, 1) | (Rel::Lt, -1) => (Some(zero.plus(1)), None),
                (Rel::Le, 1) | (Rel::Ge, -1) => (None, Some(zero.plus(1))),
                (Rel::Lt, 1) | (Rel::Gt, -1) => (None, Some(zero)),
                _ => (None, None),
            };
            range.lo.extend(above);
            range.hi.extend(below);
        }
        let known = std::mem::take(range);
        *range = known.without_implied(&self.facts);
        Ok(())
    }

    /// The term of a sum, and where there is one.
    fn present<'e>(&self, sum: &Sum<'e>, here: &Here<'_>) -> Result<(&'e Expr, Cond), Failure> {
        let (term, present) = without_absent(sum);
        let mut cond = here.cond(&present)?;
        for d in sum.dims {
            cond = cond.and(here.cond(&bound_range(self.array, *d))?);
        }
        Ok((term, self.facts.simplify(&cond)))
    }
}

fn no_neutral_value(sum: &Sum<'_>) -> Failure {
    let message = "a point adds up this sum itself, and no first term is known to be there for the function that combines them";
    limitation(sum.span, message.to_string())
}

/// The terms of a sum, and the condition under which there is one: a guard that otherwise gives the
/// neutral value leaves its term out.
fn without_absent<'e>(sum: &Sum<'e>) -> (&'e Expr, Cond) {
    if let Combine::Op(op) = sum.op
        && let Expr::Guard {
            cond,
            then,
            otherwise: Some(otherwise),
        } = sum.body
        && let Expr::Lit(ty, literal) = &**otherwise
        && op.identity(*ty) == Some(*literal)
    {
        return (then, cond.clone());
    }
    (sum.body, Cond::TRUE)
}
