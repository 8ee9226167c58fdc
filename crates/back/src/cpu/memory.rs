//! Loads and stores, according to how the lane enters the address.

use systola_ir::form::Cond;
use systola_ir::kernel::{Access, Memory};
use systola_ir::{Literal, Scalar, ValueId};

use super::lanes::Vector;
use super::place::{Pattern, Place};
use super::transfer::Transfer;
use super::vector::Operand;
use super::{Cpu, Rep};
use crate::context::Context;
use crate::dialect::Action;
use crate::error::Fault;
use crate::expr::Expr;
use crate::index::number;
use crate::scalar;

/// The type in which elements are stored in memory.
fn stored(ty: Scalar) -> Scalar {
    if ty == Scalar::Bool { Scalar::U8 } else { ty }
}

impl Cpu {
    pub(super) fn memory_type(cx: &Context<'_>, memory: Memory) -> Scalar {
        stored(match memory {
            Memory::Global(b) => cx.program.buffers[b.index()].ty,
            Memory::Shared(s) => cx.kernel.shared[s.index()].ty,
        })
    }

    /// The load of a value, at a distance along the last axis. A value that is read several times
    /// is held in a register.
    pub(super) fn load(
        &self,
        cx: &mut Context<'_>,
        value: ValueId,
        from: &Access,
        moved: i128,
        otherwise: Option<Literal>,
    ) -> Result<(Expr, Rep), Fault> {
        let ty = cx.kernel.values[value.index()].ty;
        let element = Self::memory_type(cx, from.memory);
        let absent = otherwise.unwrap_or(Literal::Int(0));
        let absent = scalar::literal(cx.prelude, ty, absent)?;
        let absent = Operand {
            expr: if ty == Scalar::Bool {
                Expr::atom(if absent.text == "true" { "1" } else { "0" })
            } else {
                absent
            },
            ty: element,
            rep: Rep::Scalar,
            literal: None,
        };
        if from.when == Cond::Const(false) {
            return Ok(self.as_value(absent.expr, Rep::Scalar, ty));
        }
        if moved == 0
            && let Some(hoisted) = self.hoisted(from)
        {
            return Ok(self.as_value(hoisted, Rep::Scalar, ty));
        }
        let (uniform, varying) = self.by_uniformity(&from.when);
        let place = self.place(cx, from, moved)?;
        let (mut e, rep) = match (&place.pattern, varying) {
            (Pattern::Same, None) => (Expr::index(&place.array, &place.offset), Rep::Scalar),
            (Pattern::Same, Some(cond)) => {
                let any = Expr::binary("!=", &self.on(cx, &cond)?, &Expr::atom("0"));
                let there = Expr::index(&place.array, &place.offset);
                let one = scalar::choice(element, &any, &there, &absent.expr)?;
                if otherwise.is_none() {
                    (one, Rep::Scalar)
                } else {
                    let vector = Vector::new(element, self.lanes);
                    let (select, splat) = (vector.select(cx.prelude)?, vector.splat(cx.prelude)?);
                    let mask = self.mask(cx, &cond, element.bits())?;
                    let args = [mask, Expr::call(&splat, &[one]), self.vector(cx, &absent)?];
                    (Expr::call(&select, &args), Rep::Vector)
                }
            }
            (pattern, varying) => {
                let (transfer, mut args) = self.loading(&place, varying.is_some())?;
                if let Some(cond) = &varying {
                    args.push(self.on(cx, cond)?);
                    args.push(self.vector(cx, &absent)?);
                }
                let vector = Vector::new(element, self.lanes);
                let mut e = Expr::call(&transfer.function(cx.prelude, vector)?, &args);
                let is_global = matches!(from.memory, Memory::Global(_));
                let often = cx.usage.reads[value.index()] > 1;
                if transfer == Transfer::Load && is_global && often {
                    e = vector.hold(cx.prelude, e)?;
                }
                if *pattern == Pattern::Reversed && varying.is_none() {
                    let backwards: Vec<u32> = (0..self.lanes).rev().collect();
                    e = Expr::call(&vector.permute(cx.prelude, &backwards)?, &[e]);
                }
                (e, Rep::Vector)
            }
        };
        if let Some(cond) = uniform {
            let cond = cx.cond(&cond)?;
            e = if rep == Rep::Scalar {
                scalar::choice(element, &cond, &e, &absent.expr)?
            } else {
                Expr::ternary(&cond, &e, &self.vector(cx, &absent)?)
            };
        }
        Ok(self.as_value(e, rep, ty))
    }

    /// An element in memory as a value of the type: a `bool` is stored as a byte.
    pub(super) fn as_value(&self, e: Expr, rep: Rep, ty: Scalar) -> (Expr, Rep) {
        if ty != Scalar::Bool {
            return (e, rep);
        }
        let rep = if rep == Rep::Vector {
            Rep::Mask(8)
        } else {
            rep
        };
        (Expr::binary("!=", &e, &Expr::atom("0")), rep)
    }

    /// A store, at a distance along the last axis.
    pub(super) fn store_at(
        &mut self,
        cx: &mut Context<'_>,
        to: &Access,
        moved: i128,
        value: ValueId,
    ) -> Result<Action, Fault> {
        if to.when == Cond::Const(false) {
            cx.take(value);
            return Ok(Action::default());
        }
        let element = Self::memory_type(cx, to.memory);
        let (uniform, varying) = self.by_uniformity(&to.when);
        let place = self.place(cx, to, moved)?;
        let mut guard = match uniform {
            Some(cond) => Some(cx.cond(&cond)?),
            None => None,
        };
        let line = if place.pattern == Pattern::Same {
            // Lanes that store to the same element store the same value, so only the first active
            // lane stores.
            let lane = match &varying {
                None => Expr::atom("0"),
                Some(cond) => {
                    let (on, lane) = self.first_lane(cx, cond)?;
                    guard = on.map(|on| both(guard.take(), on)).or(guard);
                    lane
                }
            };
            let e = if self.reps[value.index()] == Rep::Scalar {
                cx.take(value)
            } else {
                let name = self.named(cx, value)?;
                self.element(cx, value, Expr::index(&name, &lane))
            };
            let there = Expr::index(&place.array, &place.offset);
            format!("{} = {};", there.text, e.text)
        } else {
            let a = self.read(cx, value);
            let v = self.as_stored(cx, &a, element)?;
            let (transfer, mut args) = self.storing(&place, varying.is_some())?;
            let vector = Vector::new(element, self.lanes);
            if let Some(cond) = &varying {
                args.push(self.on(cx, cond)?);
            }
            let v = if place.pattern == Pattern::Reversed && varying.is_none() {
                let backwards: Vec<u32> = (0..self.lanes).rev().collect();
                Expr::call(&vector.permute(cx.prelude, &backwards)?, &[v])
            } else {
                v
            };
            match self.keep(cx, &args[0], &v)? {
                Some(line) => line,
                None => {
                    args.push(v);
                    let streamed = self.stream(cx, to.memory, transfer, vector)?;
                    let function = match streamed {
                        Some((function, large)) => {
                            args.push(large);
                            function
                        }
                        None => transfer.function(cx.prelude, vector)?,
                    };
                    format!("{};", Expr::call(&function, &args).text)
                }
            }
        };
        Ok(Action {
            guard,
            lines: vec![line],
        })
    }

    /// A test whether the condition holds in any lane, unless it always does, and the first lane in
    /// which it holds.
    fn first_lane(&self, cx: &mut Context<'_>, cond: &Cond) -> Result<(Option<Expr>, Expr), Fault> {
        let lanes = i128::from(self.lanes);
        if let Some(n) = self.only_lane(cond) {
            let lane = cx.form(&n)?;
            let inside = match n.as_constant() {
                Some(c) if (0..lanes).contains(&c) => None,
                Some(_) => Some(Expr::atom("false")),
                None => {
                    let least = Expr::binary(">=", &lane, &Expr::atom("0"));
                    let greatest = Expr::binary("<", &lane, &number(lanes)?);
                    Some(Expr::binary("&&", &least, &greatest))
                }
            };
            return Ok((inside, lane));
        }
        let on = self.on(cx, cond)?;
        let any = Expr::binary("!=", &on, &Expr::atom("0"));
        Ok((Some(any), Expr::call("__builtin_ctzll", &[on])))
    }

    /// A value as a vector of elements as they are stored in memory.
    fn as_stored(&self, cx: &mut Context<'_>, a: &Operand, element: Scalar) -> Result<Expr, Fault> {
        if a.ty != Scalar::Bool {
            return self.vector(cx, a);
        }
        let vector = Vector::new(element, self.lanes);
        let mask = self.mask_value(cx, a, 8)?;
        let one = Expr::binary("&", &mask, &Expr::atom("1"));
        Ok(Expr::cast(&vector.name(cx.prelude)?, &one))
    }

    /// Copies `width` consecutive elements for each lane.
    pub(super) fn copy_elements(
        &self,
        cx: &mut Context<'_>,
        to: &Access,
        from: &Access,
        width: u32,
    ) -> Result<Action, Fault> {
        let when = to.when.clone().and(from.when.clone());
        if when == Cond::Const(false) || width == 0 {
            return Ok(Action::default());
        }
        let (uniform, varying) = self.by_uniformity(&when);
        let guard = match uniform {
            Some(cond) => Some(cx.cond(&cond)?),
            None => None,
        };
        let (target, source) = (self.place(cx, to, 0)?, self.place(cx, from, 0)?);
        let bytes = Self::memory_type(cx, to.memory).bits() / 8;
        cx.prelude.include("string.h");
        let memcpy = |to: &Expr, from: &Expr, elements: u32| {
            format!("memcpy({}, {}, {});", to.text, from.text, elements * bytes)
        };
        let in_a_row = |place: &Place| match &place.pattern {
            Pattern::Row => width == 1,
            Pattern::Strided(by) => by.text == width.to_string(),
            Pattern::Same | Pattern::Reversed | Pattern::Anywhere(_) => false,
        };
        let one = target.pattern == Pattern::Same && source.pattern == Pattern::Same;
        let lines = match &varying {
            None if one => vec![memcpy(&target.pointer(), &source.pointer(), width)],
            None if in_a_row(&target) && in_a_row(&source) => {
                vec![memcpy(
                    &target.pointer(),
                    &source.pointer(),
                    width * self.lanes,
                )]
            }
            Some(_) | None => {
                let mut lines = Vec::new();
                let on = match &varying {
                    None => None,
                    Some(cond) => Some(self.on(cx, cond)?),
                };
                let lane = cx.names.claim("l");
                lines.push(format!(
                    "for (int {lane} = 0; {lane} < {}; {lane}++)",
                    self.lanes
                ));
                let mut indent = "    ".to_string();
                if let Some(on) = on {
                    let own = Expr::binary(">>", &on, &Expr::atom(&lane));
                    let own = Expr::binary("&", &own, &number(1)?);
                    lines.push(format!("{indent}if ({})", own.text));
                    indent.push_str("    ");
                }
                let (target, source) = (
                    self.lane_pointer(&target, &lane)?,
                    self.lane_pointer(&source, &lane)?,
                );
                lines.push(format!("{indent}{}", memcpy(&target, &source, width)));
                lines
            }
        };
        Ok(Action { guard, lines })
    }

    /// The address of a flag, and the condition of the access.
    pub(super) fn flag(
        &self,
        cx: &mut Context<'_>,
        access: &Access,
    ) -> Result<(Expr, Option<Expr>), Fault> {
        let (uniform, varying) = self.by_uniformity(&access.when);
        let place = self.place(cx, access, 0)?;
        if varying.is_some() || place.pattern != Pattern::Same {
            return Err(Fault::unsupported("a flag depends on the lane"));
        }
        let guard = match uniform {
            Some(cond) => Some(cx.cond(&cond)?),
            None => None,
        };
        Ok((place.pointer(), guard))
    }
}

pub(super) fn both(a: Option<Expr>, b: Expr) -> Expr {
    match a {
        None => b,
        Some(a) => Expr::binary("&&", &a, &b),
    }
}
