//! Conditions and positions that depend on the lane.
//!
//! A condition is printed in one of two ways. To choose between values, it is a *mask*: a vector of
//! integers as wide as the values, 0 where it does not hold and −1 where it does. To guard a memory
//! access, it is the *bits* of an integer, one for each lane; the bits beyond the last lane are
//! zero.

use std::collections::HashSet;

use systola_ir::DimId;
use systola_ir::form::{Atom, Cond, Form, Rel};
use systola_ir::kernel::visit::walk;
use systola_ir::kernel::{Kernel, Op, Stmt};

use super::Cpu;
use super::lane_affine::{Small, split};
use super::lanes::{Vector, all_lanes, lanes_at, lanes_below};
use crate::context::Context;
use crate::error::Fault;
use crate::expr::{Expr, Level};
use crate::index::{Sum, floor_div, modulo, number};
use crate::prelude::File;
use crate::scalar::{c_type, signed};

/// A comparison of the lane itself with a uniform form.
struct Threshold {
    rel: Rel,
    with: Form,
}

/// `lane ⋈ with`, if the comparison has this form.
fn threshold(rel: Rel, uniform: &Form, small: &Small) -> Option<Threshold> {
    match small {
        Small::Lane => Some(Threshold {
            rel,
            with: uniform.neg(),
        }),
        Small::Sum(terms) => match terms.as_slice() {
            [(-1, Small::Lane)] => Some(Threshold {
                rel: flipped(rel),
                with: uniform.clone(),
            }),
            _ => None,
        },
        Small::Rest { .. } | Small::Const(_) | Small::Div(..) | Small::Mod(..) => None,
    }
}

/// The relation with its sides exchanged.
fn flipped(rel: Rel) -> Rel {
    match rel {
        Rel::Eq => Rel::Eq,
        Rel::Ne => Rel::Ne,
        Rel::Lt => Rel::Gt,
        Rel::Le => Rel::Ge,
        Rel::Gt => Rel::Lt,
        Rel::Ge => Rel::Le,
    }
}

impl Threshold {
    /// As `lane < n` or `lane == n`, possibly negated: (is it `==`, n, negated).
    fn normal(&self) -> (bool, Form, bool) {
        match self.rel {
            Rel::Eq => (true, self.with.clone(), false),
            Rel::Ne => (true, self.with.clone(), true),
            Rel::Lt => (false, self.with.clone(), false),
            Rel::Le => (false, self.with.plus(1), false),
            Rel::Gt => (false, self.with.plus(1), true),
            Rel::Ge => (false, self.with.clone(), true),
        }
    }
}

/// The conditions that several choices share.
pub fn shared(kernel: &Kernel) -> Vec<Cond> {
    let (mut once, mut often) = (HashSet::new(), Vec::new());
    walk(&kernel.body, &mut |stmt| {
        if let Stmt::Let(_, Op::Choose { cond, .. }) = stmt
            && !once.insert(cond.clone())
            && !often.contains(cond)
        {
            often.push(cond.clone());
        }
    });
    often
}

impl Cpu {
    /// Is the condition the same in all lanes?
    pub fn is_uniform(&self, cond: &Cond) -> bool {
        self.lane
            .is_none_or(|lane| !cond.forms().iter().any(|f| f.dims().contains(&lane)))
    }

    /// The conjuncts without the lane, and those with it.
    pub fn by_uniformity(&self, cond: &Cond) -> (Option<Cond>, Option<Cond>) {
        let parts: Vec<Cond> = match cond {
            Cond::And(parts) => parts.clone(),
            Cond::Const(_) | Cond::Cmp(..) | Cond::Or(_) | Cond::Not(_) => vec![cond.clone()],
        };
        let (uniform, varying): (Vec<_>, Vec<_>) =
            parts.into_iter().partition(|p| self.is_uniform(p));
        let join = |parts: Vec<Cond>| {
            let all = parts.into_iter().fold(Cond::TRUE, Cond::and);
            (all != Cond::TRUE).then_some(all)
        };
        (join(uniform), join(varying))
    }

    /// The condition as a mask with elements of this width in bits.
    pub fn mask(&self, cx: &mut Context<'_>, cond: &Cond, bits: u32) -> Result<Expr, Fault> {
        let vector = Vector::new(signed(bits), self.lanes);
        if self.is_uniform(cond) {
            let splat = vector.splat(cx.prelude)?;
            let cond = cx.cond(cond)?;
            return Ok(Expr::call(&splat, &[Expr::unary("-", &cond)]));
        }
        match cond {
            Cond::Const(_) => unreachable!("a constant is uniform"),
            Cond::Cmp(rel, left, right) => self.mask_of(cx, *rel, &left.sub(right), bits),
            Cond::And(parts) => self.mask_parts(cx, parts, "&", bits),
            Cond::Or(parts) => self.mask_parts(cx, parts, "|", bits),
            Cond::Not(inner) => Ok(Expr::unary("~", &self.mask(cx, inner, bits)?)),
        }
    }

    fn mask_parts(
        &self,
        cx: &mut Context<'_>,
        parts: &[Cond],
        op: &str,
        bits: u32,
    ) -> Result<Expr, Fault> {
        let mut result: Option<Expr> = None;
        for part in parts {
            let next = self.mask(cx, part, bits)?;
            result = Some(match result {
                None => next,
                Some(so_far) => Expr::binary(op, &so_far, &next),
            });
        }
        result.ok_or_else(|| Fault::unsupported("an empty condition depends on the lane"))
    }

    /// The mask of `form ⋈ 0`.
    fn mask_of(
        &self,
        cx: &mut Context<'_>,
        rel: Rel,
        form: &Form,
        bits: u32,
    ) -> Result<Expr, Fault> {
        let vector = Vector::new(signed(bits), self.lanes);
        if self.lane.is_none_or(|lane| !form.dims().contains(&lane)) {
            // The lane was on both sides and cancelled out.
            let holds = Expr::binary(rel.name(), &cx.form(form)?, &number(0)?);
            let splat = vector.splat(cx.prelude)?;
            return Ok(Expr::call(&splat, &[Expr::unary("-", &holds)]));
        }
        let Some((uniform, small)) = self.lane.and_then(|lane| split(form, lane, self.lanes))
        else {
            let wide = self.index_vector(cx, form)?;
            let mask = Expr::binary(rel.name(), &wide, &Expr::atom("0"));
            return self.resized(cx, mask, 64, bits);
        };
        if let Some(threshold) = threshold(rel, &uniform, &small) {
            let (exactly, n, negated) = threshold.normal();
            let function = if exactly {
                vector.lane_at(cx.prelude)?
            } else {
                vector.lane_below(cx.prelude)?
            };
            let mask = Expr::call(&function, &[cx.form(&n)?]);
            return Ok(if negated {
                Expr::unary("~", &mask)
            } else {
                mask
            });
        }
        let Some((width, (least, greatest))) = small.bits(self.lanes).zip(small.range(self.lanes))
        else {
            unreachable!("what was split is small")
        };
        // The narrowest integers that hold the values, but at least as wide as the mask.
        let width = width.max(bits.min(32));
        let left = self.small(cx, &small, width)?;
        let (below, above) = (least - 1, greatest + 1);
        let limit = uniform.neg();
        let limit = match limit.as_constant() {
            Some(c) => number(c.clamp(below, above))?,
            None => {
                cx.prelude.add("clamp_i64", File::Scalar, "clamp_i64", &[]);
                let args = [cx.form(&limit)?, number(below)?, number(above)?];
                Expr::call("clamp_i64", &args)
            }
        };
        let limit = Expr::cast(c_type(signed(width))?, &limit);
        let mask = Expr::binary(rel.name(), &left, &limit);
        self.resized(cx, mask, width, bits)
    }

    /// A mask converted to elements of another width.
    pub fn resized(
        &self,
        cx: &mut Context<'_>,
        mask: Expr,
        from: u32,
        to: u32,
    ) -> Result<Expr, Fault> {
        if from == to {
            return Ok(mask);
        }
        let ty = Vector::new(signed(to), self.lanes).name(cx.prelude)?;
        Ok(Expr::call(
            "__builtin_convertvector",
            &[mask, Expr::atom(ty)],
        ))
    }

    /// The only lane where the condition can hold, if it is of the form `lane == n`.
    pub fn only_lane(&self, cond: &Cond) -> Option<Form> {
        let Cond::Cmp(rel, left, right) = cond else {
            return None;
        };
        let (uniform, small) = split(&left.sub(right), self.lane?, self.lanes)?;
        match threshold(*rel, &uniform, &small)?.normal() {
            (true, n, false) => Some(n),
            (true | false, _, _) => None,
        }
    }

    /// The bits of a condition, as a name or a number.
    pub fn on(&self, cx: &mut Context<'_>, cond: &Cond) -> Result<Expr, Fault> {
        let bits = self.bits(cx, cond)?;
        if bits.level() == Level::Primary && bits.text.starts_with("UINT64_C") {
            return Ok(bits);
        }
        Ok(cx.name_once("uint64_t", "on", &bits))
    }

    /// The bits of a condition.
    fn bits(&self, cx: &mut Context<'_>, cond: &Cond) -> Result<Expr, Fault> {
        let all = Expr::atom(all_lanes(self.lanes));
        if self.is_uniform(cond) {
            let cond = cx.cond(cond)?;
            return Ok(Expr::ternary(&cond, &all, &Expr::atom("0")));
        }
        match cond {
            Cond::Const(_) => unreachable!("a constant is uniform"),
            Cond::Cmp(rel, left, right) => {
                let form = left.sub(right);
                let halves = self.lane.and_then(|lane| split(&form, lane, self.lanes));
                let threshold = halves.and_then(|(u, small)| threshold(*rel, &u, &small));
                let Some(threshold) = threshold else {
                    let mask = self.mask_of(cx, *rel, &form, 32)?;
                    let vector = Vector::new(signed(32), self.lanes);
                    let function = vector.lanes_where(cx.prelude)?;
                    return Ok(Expr::call(&function, &[mask]));
                };
                let (exactly, n, negated) = threshold.normal();
                if let Some(n) = n.as_constant() {
                    return Ok(Expr::atom(known_bits(self.lanes, exactly, n, negated)));
                }
                let function = if exactly {
                    lanes_at(cx.prelude, self.lanes)
                } else {
                    lanes_below(cx.prelude, self.lanes)
                };
                let bits = Expr::call(&function, &[cx.form(&n)?]);
                Ok(if negated {
                    Expr::binary("^", &bits, &all)
                } else {
                    bits
                })
            }
            Cond::And(parts) => self.bits_parts(cx, parts, "&"),
            Cond::Or(parts) => self.bits_parts(cx, parts, "|"),
            Cond::Not(inner) => Ok(Expr::binary("^", &self.bits(cx, inner)?, &all)),
        }
    }

    fn bits_parts(&self, cx: &mut Context<'_>, parts: &[Cond], op: &str) -> Result<Expr, Fault> {
        let mut result: Option<Expr> = None;
        for part in parts {
            let next = self.bits(cx, part)?;
            result = Some(match result {
                None => next,
                Some(so_far) => Expr::binary(op, &so_far, &next),
            });
        }
        result.ok_or_else(|| Fault::unsupported("an empty condition depends on the lane"))
    }

    /// A form as a vector of `int64_t`.
    pub fn index_vector(&self, cx: &mut Context<'_>, form: &Form) -> Result<Expr, Fault> {
        let vector = Vector::new(signed(64), self.lanes);
        let Some(lane) = self.lane.filter(|lane| form.dims().contains(lane)) else {
            let splat = vector.splat(cx.prelude)?;
            return Ok(Expr::call(&splat, &[cx.form(form)?]));
        };
        let Some((uniform, small)) = split(form, lane, self.lanes) else {
            return self.wide(cx, form, lane);
        };
        let only_lane = match &small {
            Small::Lane => true,
            Small::Sum(terms) => terms.iter().all(|(_, t)| matches!(t, Small::Lane)),
            Small::Rest { .. } | Small::Const(_) | Small::Div(..) | Small::Mod(..) => false,
        };
        let small = if only_lane {
            self.small(cx, &small, 64)?
        } else {
            let narrow = self.small(cx, &small, 32)?;
            self.resized(cx, narrow, 32, 64)?
        };
        Ok(if uniform == Form::zero() {
            small
        } else {
            Expr::binary("+", &cx.form(&uniform)?, &small)
        })
    }

    /// A form as a vector of `int64_t`, without any assumption on its range.
    fn wide(&self, cx: &mut Context<'_>, form: &Form, lane: DimId) -> Result<Expr, Fault> {
        let vector = Vector::new(signed(64), self.lanes);
        let mut uniform = Form::from(form.constant_part().clone());
        let mut sum: Option<Expr> = None;
        for (atom, coefficient) in form.terms() {
            let this = Form::atom(atom.clone());
            if !this.dims().contains(&lane) {
                uniform = uniform.add(&this.scale(coefficient)?);
                continue;
            }
            let lanes = match atom {
                Atom::Dim(_) => Expr::call(&vector.iota(cx.prelude)?, &[]),
                Atom::Floor(inner, c) => {
                    let inner = self.index_vector(cx, inner)?;
                    let by = Expr::call(&vector.splat(cx.prelude)?, &[number(*c)?]);
                    Expr::call(&self.division(cx, "div", vector)?, &[inner, by])
                }
                Atom::Mod(inner, c) => {
                    let inner = self.index_vector(cx, inner)?;
                    let by = Expr::call(&vector.splat(cx.prelude)?, &[number(*c)?]);
                    Expr::call(&self.division(cx, "rem", vector)?, &[inner, by])
                }
            };
            let term = if coefficient.as_constant() == Some(1) {
                lanes
            } else {
                Expr::binary("*", &cx.poly(coefficient)?, &lanes)
            };
            sum = Some(match sum {
                None => term,
                Some(so_far) => Expr::binary("+", &so_far, &term),
            });
        }
        let Some(sum) = sum else {
            unreachable!("the lane occurs in the form")
        };
        Ok(if uniform == Form::zero() {
            sum
        } else {
            Expr::binary("+", &cx.form(&uniform)?, &sum)
        })
    }

    /// A small number in each lane, as a vector of integers of this width in bits.
    pub fn small(&self, cx: &mut Context<'_>, small: &Small, bits: u32) -> Result<Expr, Fault> {
        let vector = Vector::new(signed(bits), self.lanes);
        Ok(match small {
            Small::Lane => Expr::call(&vector.iota(cx.prelude)?, &[]),
            Small::Rest { form, below: _ } => Expr::cast(c_type(vector.ty)?, &cx.form(form)?),
            Small::Const(c) => number(*c)?,
            Small::Sum(terms) => {
                let mut sum = Sum::default();
                for (factor, term) in terms {
                    match term {
                        Small::Const(c) => sum.add_number(factor * c)?,
                        Small::Lane
                        | Small::Rest { .. }
                        | Small::Sum(_)
                        | Small::Div(..)
                        | Small::Mod(..) => {
                            let term = self.small(cx, term, bits)?;
                            sum.add(*factor, &term)?;
                        }
                    }
                }
                sum.finish()
            }
            Small::Div(inner, c) => {
                let inner = self.small(cx, inner, bits)?;
                if c & (c - 1) == 0 {
                    floor_div(cx.prelude, &inner, *c)?
                } else {
                    Expr::binary("/", &inner, &number(*c)?)
                }
            }
            Small::Mod(inner, c) => {
                let inner = self.small(cx, inner, bits)?;
                if c & (c - 1) == 0 {
                    modulo(cx.prelude, &inner, *c)?
                } else {
                    Expr::binary("%", &inner, &number(*c)?)
                }
            }
        })
    }
}

/// The bits of `lane == n` or `lane < n`, possibly negated.
fn known_bits(lanes: u32, exactly: bool, n: i128, negated: bool) -> String {
    let holds = |l: u32| {
        let l = i128::from(l);
        (if exactly { l == n } else { l < n }) != negated
    };
    let bits = (0..lanes).filter(|l| holds(*l)).map(|l| 1u64 << l);
    format!("UINT64_C({:#x})", bits.sum::<u64>())
}
