//! Operations and their operands: types of literals, and values without a name.

use super::ParseError;
use super::expr::{Expr, ExprKind};
use super::lexer::At;
use super::names::{Named, Names};
use crate::form::Cond;
use crate::id::ValueId;
use crate::kernel::verify::ops::type_of;
use crate::kernel::{Access, Kernel, Memory, Op, Program, Shape, Stmt, Value};
use crate::scalar::{BinOp, Literal, Scalar, UnOp};

/// The name of a value that the text does not name.
const UNNAMED: &str = "v";

/// The part of a kernel that has been read.
pub(super) struct Scope<'p> {
    pub program: &'p Program,
    pub kernel: Kernel,
    pub names: Names,
    /// The assignments of unnamed values, which the next statement uses.
    pub before: Vec<Stmt>,
}

impl Scope<'_> {
    pub(super) fn declare_value(
        &mut self,
        at: At,
        name: &str,
        ty: Scalar,
        shape: Shape,
    ) -> Result<ValueId, ParseError> {
        let id = ValueId::from(self.kernel.values.len());
        self.names.declare(at, name, Named::Value(id))?;
        let name = name.to_string();
        self.kernel.values.push(Value { name, ty, shape });
        Ok(id)
    }

    /// A value in the place of its use. `ty` is the type it must have, where the context determines
    /// it.
    pub(super) fn value(&mut self, expr: &Expr, ty: Option<Scalar>) -> Result<ValueId, ParseError> {
        match &expr.kind {
            ExprKind::Group(of) => return self.value(of, ty),
            ExprKind::Name(name) => {
                if let Some(Named::Value(id)) = self.names.find(name) {
                    return Ok(id);
                }
            }
            ExprKind::Lit(..)
            | ExprKind::Unary(..)
            | ExprKind::Binary(..)
            | ExprKind::Call(..)
            | ExprKind::Element { .. } => {}
        }
        let wanted = self.type_written(expr).or(ty);
        let op = self.op(expr, wanted)?;
        // Only literals and casts need the declared type, and both have one.
        let declared = Value {
            name: UNNAMED.to_string(),
            ty: wanted.unwrap_or(Scalar::Bool),
            shape: Shape::Uniform,
        };
        let found = type_of(self.program, &self.kernel, &op, Some(&declared));
        let found = found.map_err(|why| expr.at.error(why))?;
        let id = ValueId::from(self.kernel.values.len());
        self.kernel.values.push(Value {
            ty: found.ty,
            shape: found.shape,
            ..declared
        });
        self.before.push(Stmt::Let(id, op));
        Ok(id)
    }

    /// The type that a literal or a cast states, if it does.
    fn type_written(&self, expr: &Expr) -> Option<Scalar> {
        match &expr.kind {
            ExprKind::Lit(Literal::Bool(_), None) => Some(Scalar::Bool),
            ExprKind::Lit(_, ty) => *ty,
            ExprKind::Call(name, _) => Scalar::from_name(name),
            ExprKind::Name(_)
            | ExprKind::Unary(..)
            | ExprKind::Binary(..)
            | ExprKind::Element { .. }
            | ExprKind::Group(_) => None,
        }
    }

    /// The operation that an expression denotes, for a value of this type.
    pub(super) fn op(&mut self, expr: &Expr, ty: Option<Scalar>) -> Result<Op, ParseError> {
        match &expr.kind {
            ExprKind::Group(of) => self.op(of, ty),
            ExprKind::Name(name) => match self.names.find(name) {
                Some(Named::Reg(reg)) => Ok(Op::Get(reg)),
                Some(Named::Value(_)) => Err(expr.at.error(format!(
                    "expected an operation: `{name}` is a value already"
                ))),
                Some(Named::Param(_) | Named::Var(_)) => Err(expr.at.error(format!(
                    "expected a value: the position is written `index({name})`"
                ))),
                Some(other) => Err(expr
                    .at
                    .error(format!("expected a value: `{name}` is {}", other.kind()))),
                None => Err(self.names.unknown(expr.at, name)),
            },
            ExprKind::Lit(literal, written) => match written.or(ty) {
                Some(_) => Ok(Op::Lit(*literal)),
                None if matches!(literal, Literal::Bool(_)) => Ok(Op::Lit(*literal)),
                None => Err(expr.at.error(format!(
                    "the type of {literal} is not known: add it as a suffix, as in `{literal}i32`"
                ))),
            },
            ExprKind::Unary(op, of) => Ok(Op::Unary(*op, self.value(of, ty)?)),
            ExprKind::Binary(op, left, right) => {
                let ty = match op.is_comparison() {
                    true => None,
                    false => ty,
                };
                let [a, b] = self.run([left, right], ty)?;
                Ok(Op::Binary(*op, a, b))
            }
            ExprKind::Call(name, args) => self.call(expr.at, name, args, ty),
            ExprKind::Element { .. } => {
                let from = self.place(expr)?;
                let otherwise = None;
                Ok(Op::Load { from, otherwise })
            }
        }
    }

    /// Reads operands of the same type: one of them may determine it for the others.
    fn run<const N: usize>(
        &mut self,
        list: [&Expr; N],
        ty: Option<Scalar>,
    ) -> Result<[ValueId; N], ParseError> {
        let ty = ty.or_else(|| list.iter().find_map(|expr| self.type_of(expr)));
        let mut values = [ValueId(0); N];
        for (slot, expr) in values.iter_mut().zip(list) {
            *slot = self.value(expr, ty)?;
        }
        Ok(values)
    }

    /// The type of an expression, where it can be determined without its context.
    fn type_of(&self, expr: &Expr) -> Option<Scalar> {
        let memory = |name: &str| match self.names.find(name)? {
            Named::Buffer(id) => Some(self.program.buffers[id.index()].ty),
            Named::Shared(id) => Some(self.kernel.shared[id.index()].ty),
            Named::Param(_) | Named::Var(_) | Named::Reg(_) | Named::Value(_) => None,
        };
        match &expr.kind {
            ExprKind::Name(name) => match self.names.find(name)? {
                Named::Reg(reg) => Some(self.kernel.regs[reg.index()].ty),
                Named::Value(id) => Some(self.kernel.values[id.index()].ty),
                Named::Param(_) | Named::Buffer(_) | Named::Var(_) | Named::Shared(_) => None,
            },
            ExprKind::Lit(..) => self.type_written(expr),
            ExprKind::Unary(_, of) | ExprKind::Group(of) => self.type_of(of),
            ExprKind::Binary(op, ..) if op.is_comparison() => Some(Scalar::Bool),
            ExprKind::Binary(_, left, right) => self.type_of(left).or_else(|| self.type_of(right)),
            ExprKind::Call(name, args) => match (name.as_str(), args.as_slice()) {
                ("index", _) => Some(Scalar::I64),
                ("lookup", [array, ..]) => match &array.kind {
                    ExprKind::Name(array) => memory(array),
                    _ => None,
                },
                ("select", [_, rest @ ..]) => rest.iter().find_map(|arg| self.type_of(arg)),
                ("shuffle" | "lane_shift", [list @ .., _]) => {
                    list.iter().find_map(|arg| self.type_of(arg))
                }
                (cast, _) => Scalar::from_name(cast)
                    .or_else(|| args.iter().find_map(|arg| self.type_of(arg))),
            },
            ExprKind::Element { array, .. } => memory(array),
        }
    }

    fn call(
        &mut self,
        at: At,
        name: &str,
        args: &[Expr],
        ty: Option<Scalar>,
    ) -> Result<Op, ParseError> {
        if let Some(op) = UnOp::function(name)
            && let [of] = args
        {
            return Ok(Op::Unary(op, self.value(of, ty)?));
        }
        if Scalar::from_name(name).is_some()
            && let [of] = args
        {
            let inner = self.type_of(of);
            return Ok(Op::Cast(self.value(of, inner)?));
        }
        match (name, args) {
            ("min" | "max" | "pow", [a, b]) => {
                let op = match name {
                    "min" => BinOp::Min,
                    "max" => BinOp::Max,
                    _ => BinOp::Pow,
                };
                let [a, b] = self.run([a, b], ty)?;
                Ok(Op::Binary(op, a, b))
            }
            ("index", [form]) => Ok(Op::Index(form.form(&self.names)?)),
            ("select", [cond, then, otherwise]) if cond.is_position(&self.names) => {
                let cond = cond.cond(&self.names)?;
                let [then, otherwise] = self.run([then, otherwise], ty)?;
                Ok(Op::Choose {
                    cond,
                    then,
                    otherwise,
                })
            }
            ("select", [cond, then, otherwise]) => {
                let cond = self.value(cond, Some(Scalar::Bool))?;
                let [then, otherwise] = self.run([then, otherwise], ty)?;
                Ok(Op::Select {
                    cond,
                    then,
                    otherwise,
                })
            }
            ("lookup", [array, index @ ..]) => {
                let memory = match &array.kind {
                    ExprKind::Name(name) => self.memory(array.at, name)?,
                    _ => return Err(array.at.error("expected the name of an array")),
                };
                let mut values = Vec::new();
                for expr in index {
                    let ty = self.type_of(expr);
                    values.push(self.value(expr, ty)?);
                }
                let index = values;
                Ok(Op::Lookup { memory, index })
            }
            ("shuffle", [value, from]) => Ok(Op::Shuffle {
                value: self.value(value, ty)?,
                from: from.form(&self.names)?,
            }),
            ("lane_shift", [low, high, by]) => {
                let (low, high) = (self.part(low, ty)?, self.part(high, ty)?);
                let by = match by.kind {
                    ExprKind::Lit(Literal::Int(by), None) => u32::try_from(by).ok(),
                    _ => None,
                };
                let by = by.ok_or_else(|| at.error("a lane shift is by a number of lanes"))?;
                Ok(Op::LaneShift { low, high, by })
            }
            _ => Err(at.error(format!(
                "there is no operation `{name}` with {} operands",
                args.len()
            ))),
        }
    }

    /// One side of a lane shift; `_` stands for none.
    fn part(&mut self, expr: &Expr, ty: Option<Scalar>) -> Result<Option<ValueId>, ParseError> {
        match &expr.kind {
            ExprKind::Name(name) if name == "_" => Ok(None),
            _ => Ok(Some(self.value(expr, ty)?)),
        }
    }

    pub(super) fn memory(&self, at: At, name: &str) -> Result<Memory, ParseError> {
        match self.names.find(name) {
            Some(Named::Buffer(id)) => Ok(Memory::Global(id)),
            Some(Named::Shared(id)) => Ok(Memory::Shared(id)),
            Some(other) => Err(at.error(format!("`{name}` is {}, no array", other.kind()))),
            None => Err(self.names.unknown(at, name)),
        }
    }

    /// The type of an array's elements.
    pub(super) fn element_type(&self, memory: Memory) -> Scalar {
        match memory {
            Memory::Global(id) => self.program.buffers[id.index()].ty,
            Memory::Shared(id) => self.kernel.shared[id.index()].ty,
        }
    }

    /// `x[i, j]`: an access of one element.
    pub(super) fn place(&self, expr: &Expr) -> Result<Access, ParseError> {
        match self.places(expr)? {
            (access, None) => Ok(access),
            (_, Some(_)) => Err(expr.at.error("expected an access of one element")),
        }
    }

    /// `x[i, j]` or `x[i, 4*j ..+4]`, with the number of elements where it is written.
    pub(super) fn places(&self, expr: &Expr) -> Result<(Access, Option<u32>), ParseError> {
        let ExprKind::Element {
            array,
            index,
            width,
        } = &expr.kind
        else {
            return Err(expr.at.error("expected an element of an array"));
        };
        let memory = self.memory(expr.at, array)?;
        let index: Result<_, _> = index.iter().map(|form| form.form(&self.names)).collect();
        let access = Access {
            memory,
            index: index?,
            when: Cond::TRUE,
        };
        Ok((access, *width))
    }
}
