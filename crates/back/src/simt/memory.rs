//! Loads, stores and copies by a lane.

use systola_ir::form::Cond;
use systola_ir::kernel::{Access, Memory};
use systola_ir::mapping::Engine;
use systola_ir::{Literal, Scalar, ValueId};

use super::{Guarded, Language, Simt, Space};
use crate::context::Context;
use crate::dialect::Action;
use crate::error::Fault;
use crate::expr::Expr;
use crate::index::Stride;
use crate::index::number;
use crate::prelude::File;
use crate::scalar::{self, c_type};

/// The type in which elements are stored in memory: a `bool` is a byte.
pub fn stored_type(cx: &Context<'_>, memory: Memory) -> Scalar {
    let ty = match memory {
        Memory::Global(b) => cx.program.buffers[b.index()].ty,
        Memory::Shared(s) => cx.kernel.shared[s.index()].ty,
    };
    if ty == Scalar::Bool { Scalar::U8 } else { ty }
}

/// An element in memory as a value of the type.
fn as_value(e: Expr, ty: Scalar) -> Expr {
    if ty == Scalar::Bool {
        Expr::binary("!=", &e, &Expr::atom("0"))
    } else {
        e
    }
}

/// The condition of an access; `None` where it always holds.
pub(super) fn guard(cx: &mut Context<'_>, when: &Cond) -> Result<Option<Expr>, Fault> {
    if *when == Cond::TRUE {
        return Ok(None);
    }
    cx.cond(when).map(Some)
}

impl Guarded {
    fn call(mut self, address: Expr, absent: Expr) -> Expr {
        let absent = match self.joined {
            None => absent,
            Some((join, n)) => Expr::call(join, &vec![absent; n]),
        };
        self.arguments.extend([address, absent]);
        Expr::call(&self.function, &self.arguments)
    }
}

/// Bytes of the widest access.
const WIDEST: u32 = 16;

/// How many of `width` consecutive elements of this size in bytes are moved at once: a vector
/// access starts at a multiple of its width.
fn chunk(width: u32, bytes: u32) -> u32 {
    if width.is_power_of_two() {
        width.min(WIDEST / bytes)
    } else {
        1
    }
}

impl<L: Language> Simt<L> {
    /// An element, at a distance along the last axis.
    pub(super) fn element(
        &self,
        cx: &mut Context<'_>,
        access: &Access,
        moved: u32,
    ) -> Result<Expr, Fault> {
        let array = cx.pointer(access.memory);
        let mut index = cx.counted_from_zero(access);
        if let Some(last) = index.last_mut() {
            *last = last.plus(moved.into());
        }
        let offset = cx.offset(access.memory, &index)?;
        Ok(Expr::index(&array, &offset))
    }

    /// The address of an element.
    pub(super) fn address(
        &self,
        cx: &mut Context<'_>,
        access: &Access,
        moved: u32,
    ) -> Result<Expr, Fault> {
        Ok(Expr::unary("&", &self.element(cx, access, moved)?))
    }

    /// The value of a load where its condition does not hold, as it would be stored in memory.
    fn absent(
        &self,
        cx: &mut Context<'_>,
        element: Scalar,
        otherwise: Option<Literal>,
    ) -> Result<Expr, Fault> {
        let literal = match otherwise {
            Some(Literal::Bool(b)) => Literal::Int(b.into()),
            Some(other) => other,
            None => Literal::Int(0),
        };
        scalar::literal(cx.prelude, element, literal)
    }

    pub(super) fn load(
        &self,
        cx: &mut Context<'_>,
        from: &Access,
        moved: u32,
        ty: Scalar,
        otherwise: Option<Literal>,
    ) -> Result<Expr, Fault> {
        let element = stored_type(cx, from.memory);
        if from.when == Cond::Const(false) {
            return Ok(as_value(self.absent(cx, element, otherwise)?, ty));
        }
        if let Some(guarded) = self.load_where(cx, from, element, 1)? {
            let address = self.address(cx, from, moved)?;
            let absent = self.absent(cx, element, otherwise)?;
            return Ok(as_value(guarded.call(address, absent), ty));
        }
        let guard = guard(cx, &from.when)?;
        let mut e = self.element(cx, from, moved)?;
        if let Some(guard) = guard {
            e = Expr::ternary(&guard, &e, &self.absent(cx, element, otherwise)?);
        }
        Ok(as_value(e, ty))
    }

    /// How `n` elements are loaded under a condition without a branch, if that is possible.
    fn load_where(
        &self,
        cx: &mut Context<'_>,
        from: &Access,
        element: Scalar,
        n: u32,
    ) -> Result<Option<Guarded>, Fault> {
        let is_constant = |b| self.constants.contains_key(&b);
        if from.when == Cond::TRUE || from.memory.buffer().is_none_or(is_constant) {
            return Ok(None);
        }
        self.language.load_where(cx, from, element, n)
    }

    /// Loads consecutive elements, as many at a time as one access moves.
    pub(super) fn load_elements(
        &self,
        cx: &mut Context<'_>,
        to: &[ValueId],
        from: &Access,
        otherwise: Option<Literal>,
    ) -> Result<Vec<Expr>, Fault> {
        let element = stored_type(cx, from.memory);
        let width = to.len() as u32;
        let chunk = chunk(width, element.bits() / 8);
        let ty = |cx: &Context<'_>, n: u32| cx.kernel.values[to[n as usize].index()].ty;
        if chunk == 1 || from.when == Cond::Const(false) {
            return (0..width)
                .map(|n| {
                    let ty = ty(cx, n);
                    self.load(cx, from, n, ty, otherwise)
                })
                .collect();
        }
        let pack = self.language.pack(cx.prelude, element, chunk)?;
        let mut loaded = Vec::new();
        for first in (0..width).step_by(chunk as usize) {
            let wanted = format!("{}_pack", cx.memory_name(from.memory));
            let name = cx.names.claim(&wanted);
            let address = self.address(cx, from, first)?;
            let space = self.space(from.memory);
            let there = Expr::cast(&format!("{space}const {pack} *"), &address);
            let whole = Expr::unary("*", &there).text;
            if let Some(guarded) = self.load_where(cx, from, element, chunk)? {
                let absent = self.absent(cx, element, otherwise)?;
                let call = guarded.call(there, absent).text;
                cx.lines.push(&format!("const {pack} {name} = {call};"));
            } else if let Some(guard) = guard(cx, &from.when)? {
                let absent = self.absent(cx, element, otherwise)?.text;
                let absent = vec![absent.as_str(); chunk as usize];
                let absent = self.language.pack_of(element, &pack, &absent);
                cx.lines.push(&format!("{pack} {name} = {absent};"));
                cx.lines.open(&format!("if ({})", guard.text));
                cx.lines.push(&format!("{name} = {whole};"));
                cx.lines.close();
            } else {
                cx.lines.push(&format!("const {pack} {name} = {whole};"));
            }
            for n in 0..chunk {
                let e = self.language.pack_element(element, chunk, &name, n)?;
                loaded.push(as_value(e, ty(cx, first + n)));
            }
        }
        Ok(loaded)
    }

    pub(super) fn store_elements(
        &self,
        cx: &mut Context<'_>,
        to: &Access,
        values: &[ValueId],
    ) -> Result<Action, Fault> {
        let taken: Vec<Expr> = values.iter().map(|v| cx.take(*v)).collect();
        if to.when == Cond::Const(false) {
            return Ok(Action::default());
        }
        let element = stored_type(cx, to.memory);
        let width = values.len() as u32;
        let chunk = chunk(width, element.bits() / 8);
        let guard = guard(cx, &to.when)?;
        let mut lines = Vec::new();
        for (n, group) in taken.chunks(chunk as usize).enumerate() {
            let first = n as u32 * chunk;
            if chunk == 1 {
                let there = self.element(cx, to, first)?;
                lines.push(format!("{} = {};", there.text, group[0].text));
                continue;
            }
            let pack = self.language.pack(cx.prelude, element, chunk)?;
            let address = self.address(cx, to, first)?;
            let elements: Vec<&str> = group.iter().map(|e| e.text.as_str()).collect();
            let elements = self.language.pack_of(element, &pack, &elements);
            let space = self.space(to.memory);
            let there = Expr::unary("*", &Expr::cast(&format!("{space}{pack} *"), &address));
            lines.push(format!("{} = {elements};", there.text));
        }
        Ok(Action { guard, lines })
    }

    /// Reads at computed indices, each clamped to its axis.
    pub(super) fn lookup(
        &self,
        cx: &mut Context<'_>,
        memory: Memory,
        index: &[ValueId],
        ty: Scalar,
    ) -> Result<Expr, Fault> {
        let array = cx.pointer(memory);
        let element = stored_type(cx, memory);
        let extents = cx.extents(memory);
        let mut offset: Option<Expr> = None;
        let mut some: Option<Expr> = None;
        for (axis, (value, extent)) in index.iter().zip(&extents).enumerate() {
            let of = cx.kernel.values[value.index()].ty;
            let name = format!("inside_{of}");
            let section = if of.is_signed_int() {
                "inside_signed"
            } else {
                "inside_unsigned"
            };
            let letters = [('T', c_type(of)?), ('N', of.name())];
            cx.prelude.add(&name, File::Simt, section, &letters);
            let count = cx.form(extent)?;
            // An array without elements has nothing to read, not even its first element.
            if extent.as_constant().is_none_or(|c| c <= 0) {
                let positive = Expr::binary(">", &count, &Expr::atom("0"));
                some = Some(match some {
                    None => positive,
                    Some(so_far) => Expr::binary("&&", &so_far, &positive),
                });
            }
            let inside = Expr::call(&name, &[cx.take(*value), count]);
            let term = match cx.stride(memory, axis)? {
                Stride::Const(1) => inside,
                Stride::Const(c) => Expr::binary("*", &number(c)?, &inside),
                Stride::Named(stride) => Expr::binary("*", &Expr::atom(stride), &inside),
            };
            offset = Some(match offset {
                None => term,
                Some(so_far) => Expr::binary("+", &so_far, &term),
            });
        }
        let mut e = Expr::index(&array, &offset.unwrap_or_else(|| Expr::atom("0")));
        if let Some(some) = some {
            e = Expr::ternary(&some, &e, &self.absent(cx, element, None)?);
        }
        Ok(as_value(e, ty))
    }

    /// Copies `width` consecutive elements into shared memory.
    pub(super) fn copy_elements(
        &self,
        cx: &mut Context<'_>,
        to: &Access,
        from: &Access,
        width: u32,
        engine: Engine,
    ) -> Result<Action, Fault> {
        let when = to.when.clone().and(from.when.clone());
        if when == Cond::Const(false) || width == 0 {
            return Ok(Action::default());
        }
        let element = stored_type(cx, to.memory);
        let bytes = element.bits() / 8;
        let chunk = chunk(width, bytes);
        let guard = guard(cx, &when)?;
        let engine = match engine {
            Engine::CpAsync | Engine::Bulk => self.language.copier(cx.prelude, chunk * bytes),
            Engine::Plain => None,
        };
        let mut lines = Vec::new();
        for first in (0..width).step_by(chunk as usize) {
            lines.push(match &engine {
                Some(copier) => {
                    let (to, from) = (self.address(cx, to, first)?, self.address(cx, from, first)?);
                    format!("{};", Expr::call(copier, &[to, from]).text)
                }
                None if chunk == 1 => {
                    let (to, from) = (self.element(cx, to, first)?, self.element(cx, from, first)?);
                    format!("{} = {};", to.text, from.text)
                }
                None => {
                    let pack = self.language.pack(cx.prelude, element, chunk)?;
                    let (near, far) = (self.space(to.memory), self.space(from.memory));
                    let (to, from) = (self.address(cx, to, first)?, self.address(cx, from, first)?);
                    let to = Expr::cast(&format!("{near}{pack} *"), &to);
                    let from = Expr::cast(&format!("{far}const {pack} *"), &from);
                    let (to, from) = (Expr::unary("*", &to), Expr::unary("*", &from));
                    format!("{} = {};", to.text, from.text)
                }
            });
        }
        Ok(Action { guard, lines })
    }

    /// The qualifier of a pointer into a memory.
    fn space(&self, memory: Memory) -> &'static str {
        let is_constant = |b| self.constants.contains_key(&b);
        self.language.space(match memory {
            Memory::Global(b) if is_constant(b) => Space::Constant,
            Memory::Global(_) => Space::Global,
            Memory::Shared(_) => Space::Shared,
        })
    }

    /// The address of a flag, and the condition of the access.
    pub(super) fn flag(
        &self,
        cx: &mut Context<'_>,
        access: &Access,
    ) -> Result<(Expr, Option<Expr>), Fault> {
        let uniform = access.index.iter().all(|form| cx.kernel.is_uniform(form));
        if !uniform || !cx.kernel.cond_is_uniform(&access.when) {
            return Err(Fault::unsupported("a flag depends on the lane"));
        }
        let guard = guard(cx, &access.when)?;
        Ok((self.address(cx, access, 0)?, guard))
    }
}
