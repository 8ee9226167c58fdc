//! Where an access goes: the address of its first lane, and how the other lanes follow.

use systola_ir::form::{Form, Poly};
use systola_ir::kernel::{Access, Memory};

use super::Cpu;
use super::transfer::Transfer;
use crate::context::Context;
use crate::error::Fault;
use crate::expr::Expr;
use crate::index::{Stride, Sum, number};

/// The elements that the lanes of an access go to, relative to each other.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// All lanes go to one element.
    Same,
    /// Consecutive elements.
    Row,
    /// Consecutive elements in reverse: the last lane goes to the first one.
    Reversed,
    /// Elements at this distance from each other.
    Strided(Expr),
    /// Elements at these offsets from the start of the array.
    Anywhere(Expr),
}

/// The elements of an access.
pub struct Place {
    pub array: String,
    /// The offset of lane 0 from the start of the array; 0 for `Anywhere`.
    pub offset: Expr,
    pub pattern: Pattern,
}

impl Place {
    /// The address of lane 0.
    pub fn pointer(&self) -> Expr {
        if self.offset.text == "0" {
            Expr::atom(&self.array)
        } else {
            Expr::unary("&", &Expr::index(&self.array, &self.offset))
        }
    }
}

impl Cpu {
    /// Where an access goes, at a distance along the last axis.
    pub fn place(
        &self,
        cx: &mut Context<'_>,
        access: &Access,
        moved: i128,
    ) -> Result<Place, Fault> {
        let array = cx.pointer(access.memory);
        let mut index = self.counted_from_zero(cx, access);
        if let Some(last) = index.last_mut() {
            *last = last.plus(moved);
        }
        let occurs = |form: &Form| self.lane.is_some_and(|lane| form.dims().contains(&lane));
        let linear = |form: &Form| match self.lane {
            Some(lane) => {
                let rest = form.substitute(&|d| (d == lane).then(Form::zero));
                let steady = Form::from(lane).scale(&form.coefficient(lane));
                rest.and_then(|rest| Ok(rest.add(&steady?) == *form))
                    .unwrap_or(false)
            }
            None => true,
        };
        if index.iter().any(|form| occurs(form) && !linear(form)) {
            let offset = self.offset_vector(cx, access.memory, &index)?;
            return Ok(Place {
                array,
                offset: Expr::atom("0"),
                pattern: Pattern::Anywhere(offset),
            });
        }
        let mut first = Vec::new();
        let mut steps = Vec::new();
        for form in &index {
            let step = self
                .lane
                .map_or_else(Poly::zero, |lane| form.coefficient(lane));
            first.push(form.substitute(&|d| (Some(d) == self.lane).then(Form::zero))?);
            steps.push(Form::from(step));
        }
        let step = self.offset(cx, access.memory, &steps)?;
        let pattern = match step.text.as_str() {
            "0" => Pattern::Same,
            "1" => Pattern::Row,
            "-1" => Pattern::Reversed,
            _ => Pattern::Strided(step),
        };
        if pattern == Pattern::Reversed
            && let Some(last) = first.last_mut()
        {
            // The row begins at the element of the last lane.
            *last = last.plus(1 - i128::from(self.lanes));
        }
        let offset = self.offset(cx, access.memory, &first)?;
        Ok(Place {
            array,
            offset,
            pattern,
        })
    }

    /// The index of an access, counted from the first element of each axis.
    fn counted_from_zero(&self, cx: &Context<'_>, access: &Access) -> Vec<Form> {
        match access.memory {
            Memory::Global(b) => {
                let axes = &cx.program.buffers[b.index()].axes;
                let counted_from_zero = access.index.iter().zip(axes);
                counted_from_zero
                    .map(|(form, axis)| form.sub(&axis.lo))
                    .collect()
            }
            Memory::Shared(_) => access.index.clone(),
        }
    }

    /// The offset of a uniform index: axes with constant strides become one form.
    fn offset(&self, cx: &mut Context<'_>, memory: Memory, index: &[Form]) -> Result<Expr, Fault> {
        let mut flat = Form::zero();
        let mut sum = Sum::default();
        for (axis, form) in index.iter().enumerate() {
            if *form == Form::zero() {
                continue;
            }
            match cx.stride(memory, axis)? {
                Stride::Const(c) => flat = flat.add(&form.scale(&Poly::constant(c))?),
                Stride::Named(stride) => {
                    let stride = Expr::atom(stride);
                    let term = match form.as_constant() {
                        Some(1) => stride,
                        Some(_) | None => Expr::binary("*", &cx.form(form)?, &stride),
                    };
                    sum.add(1, &term)?;
                }
            }
        }
        cx.add_form(&mut sum, &flat)?;
        Ok(sum.finish())
    }

    /// The offset of an index that contains the lane in an arbitrary way, as a vector of `int64_t`.
    fn offset_vector(
        &self,
        cx: &mut Context<'_>,
        memory: Memory,
        index: &[Form],
    ) -> Result<Expr, Fault> {
        let mut uniform = index.to_vec();
        let mut sum: Option<Expr> = None;
        for (axis, form) in index.iter().enumerate() {
            if self.lane.is_none_or(|lane| !form.dims().contains(&lane)) {
                continue;
            }
            uniform[axis] = Form::zero();
            let lanes = self.index_vector(cx, form)?;
            let term = match cx.stride(memory, axis)? {
                Stride::Const(1) => lanes,
                Stride::Const(c) => Expr::binary("*", &number(c)?, &lanes),
                Stride::Named(stride) => Expr::binary("*", &Expr::atom(stride), &lanes),
            };
            sum = Some(match sum {
                None => term,
                Some(so_far) => Expr::binary("+", &so_far, &term),
            });
        }
        let Some(sum) = sum else {
            unreachable!("the lane occurs in the index")
        };
        let rest = self.offset(cx, memory, &uniform)?;
        Ok(if rest.text == "0" {
            sum
        } else {
            Expr::binary("+", &sum, &rest)
        })
    }

    /// The function that loads from a place, and its first arguments. A reversed row without a
    /// predicate is loaded in memory order.
    pub fn loading(&self, place: &Place, masked: bool) -> Result<(Transfer, Vec<Expr>), Fault> {
        let start = place.pointer();
        Ok(match (&place.pattern, masked) {
            (Pattern::Same, _) => unreachable!("one element is no vector"),
            (Pattern::Row | Pattern::Reversed, false) => (Transfer::Load, vec![start]),
            (Pattern::Row, true) => (Transfer::LoadIf, vec![start]),
            (Pattern::Reversed, true) => {
                let start = self.last_first(place)?;
                (Transfer::GatherIf, vec![start, number(-1)?])
            }
            (Pattern::Strided(by), false) => (Transfer::Gather, vec![start, by.clone()]),
            (Pattern::Strided(by), true) => (Transfer::GatherIf, vec![start, by.clone()]),
            (Pattern::Anywhere(at), false) => (Transfer::GatherAt, vec![start, at.clone()]),
            (Pattern::Anywhere(at), true) => (Transfer::GatherAtIf, vec![start, at.clone()]),
        })
    }

    /// The function that stores to a place, and its first arguments.
    pub fn storing(&self, place: &Place, masked: bool) -> Result<(Transfer, Vec<Expr>), Fault> {
        let (transfer, args) = self.loading(place, masked)?;
        let transfer = match transfer {
            Transfer::Load => Transfer::Store,
            Transfer::LoadIf => Transfer::StoreIf,
            Transfer::Gather => Transfer::Scatter,
            Transfer::GatherIf => Transfer::ScatterIf,
            Transfer::GatherAt => Transfer::ScatterAt,
            Transfer::GatherAtIf => Transfer::ScatterAtIf,
            Transfer::Store
            | Transfer::StoreIf
            | Transfer::Scatter
            | Transfer::ScatterIf
            | Transfer::ScatterAt
            | Transfer::ScatterAtIf
            | Transfer::Lookup
            | Transfer::LookupFar => unreachable!("a load does not store"),
        };
        Ok((transfer, args))
    }

    /// The address of lane 0 of a reversed row.
    fn last_first(&self, place: &Place) -> Result<Expr, Fault> {
        let last = number(i128::from(self.lanes) - 1)?;
        Ok(Expr::binary("+", &place.pointer(), &last))
    }

    /// The address of a lane whose number is a variable.
    pub fn lane_pointer(&self, place: &Place, lane: &str) -> Result<Expr, Fault> {
        let lane = Expr::atom(lane);
        let (start, moved) = match &place.pattern {
            Pattern::Same => return Ok(place.pointer()),
            Pattern::Row => (place.pointer(), lane),
            Pattern::Reversed => {
                let last = self.last_first(place)?;
                return Ok(Expr::binary("-", &last, &lane));
            }
            Pattern::Strided(by) => (place.pointer(), Expr::binary("*", &lane, by)),
            Pattern::Anywhere(at) => (place.pointer(), Expr::element(at, &lane)),
        };
        Ok(Expr::binary("+", &start, &moved))
    }
}
