//! Serialises prefix sums: a `scan` becomes an accumulation along an iterator of the index space.

use systola_ir::form::{Cond, Form, Poly, Rel};
use systola_ir::system::visit::map_children;
use systola_ir::system::{Expr, Law, Var, shifted};
use systola_ir::{Diagnostic, DimId, VarId};

use super::parts;
use crate::localise::typing::type_of;
use crate::localise::{Pass, combine, fresh, moved_domain, overflow, shift_form};

impl Pass {
    pub(super) fn serialise_scans(&mut self) -> Result<(), Vec<Diagnostic>> {
        for n in 0..self.system.vars.len() {
            let body = self.system.vars[n].body.clone();
            let body = match &body {
                Expr::Scan {
                    op,
                    dim,
                    body,
                    span,
                } => self.extract(n, body, &Cond::TRUE).map(|inner| Expr::Scan {
                    op: *op,
                    dim: *dim,
                    body: Box::new(inner),
                    span: *span,
                }),
                other => self.extract(n, other, &Cond::TRUE),
            };
            self.system.vars[n].body = body.map_err(|d| vec![d])?;
            self.serialise_scan(VarId::from(n)).map_err(|d| vec![d])?;
        }
        Ok(())
    }

    /// A scan inside a larger expression gets a variable of its own, which exists where it is read.
    fn extract(&mut self, home: usize, expr: &Expr, when: &Cond) -> Result<Expr, Diagnostic> {
        match expr {
            Expr::Scan {
                op,
                dim,
                body,
                span,
            } => {
                // A prefix needs all earlier points, so a guard on its own iterator does not
                // restrict it.
                let independent = |c: &Cond| !c.forms().iter().any(|f| f.dims().contains(dim));
                let when: Vec<Cond> = parts(when).into_iter().filter(independent).collect();
                let inner = when.iter().cloned().fold(Cond::TRUE, Cond::and);
                let body = self.extract(home, body, &inner)?;
                let like = self.system.vars[home].clone();
                let ty = type_of(&self.system, &body).unwrap_or(like.ty.clone());
                let id = VarId::from(self.system.vars.len());
                self.system.vars.push(Var {
                    name: fresh(&format!("{}_scan", like.name), |name| {
                        self.system.vars.iter().any(|v| v.name == name)
                    }),
                    ty,
                    on: like.on.iter().cloned().chain(when).collect(),
                    body: Expr::Scan {
                        op: *op,
                        dim: *dim,
                        body: Box::new(body),
                        span: *span,
                    },
                    ..like
                });
                self.serialise_scan(id)?;
                Ok(Expr::Var {
                    var: id,
                    index: self.system.identity_index(),
                    span: *span,
                })
            }
            Expr::Guard {
                cond,
                then,
                otherwise,
            } => {
                let holds = when.clone().and(cond.clone());
                let fails = when.clone().and(cond.clone().negate());
                Ok(Expr::Guard {
                    cond: cond.clone(),
                    then: Box::new(self.extract(home, then, &holds)?),
                    otherwise: match otherwise {
                        Some(e) => Some(Box::new(self.extract(home, e, &fails)?)),
                        None => None,
                    },
                })
            }
            other => map_children(other, &mut |child| self.extract(home, child, when)),
        }
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
        // The face of another variable's sum may move along with the iterator.
        for cond in &this.on {
            let Cond::Cmp(Rel::Eq, left, face) = cond else {
                continue;
            };
            let is_left = |d: &DimId| *left == Form::from(*d);
            let Some(d) = (self.n_outer..identity.len())
                .map(DimId::from)
                .find(is_left)
            else {
                continue;
            };
            let there = shift_form(face, &e).map_err(|o| overflow(o, span))?;
            if let Some(moved) = face.sub(&there).as_poly() {
                e[d.index()] = moved.clone();
            }
        }
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
}
