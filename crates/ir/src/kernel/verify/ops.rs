//! Types and shapes of operations.

use crate::id::ValueId;
use crate::kernel::{Kernel, Memory, Op, Program, Shape, Value};
use crate::scalar::{BinOp, Scalar, UnOp};

use super::body::{Array, access_shape, array_of};
use super::is_literal_of;

/// The type and shape of a result.
#[derive(Clone, Copy)]
pub(in crate::kernel) struct OpType {
    pub ty: Scalar,
    pub shape: Shape,
}

/// Is the operator defined on the type?
fn unary_takes(op: UnOp, ty: Scalar) -> bool {
    match op {
        UnOp::Neg | UnOp::Abs => ty != Scalar::Bool,
        UnOp::Not => !ty.is_float(),
        UnOp::Sqrt
        | UnOp::Rsqrt
        | UnOp::Exp
        | UnOp::Log
        | UnOp::Floor
        | UnOp::Ceil
        | UnOp::Sin
        | UnOp::Cos
        | UnOp::Tanh => ty.is_float(),
    }
}

/// Is the operator defined on the type?
fn binary_takes(op: BinOp, ty: Scalar) -> bool {
    match op {
        BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Div | BinOp::Rem | BinOp::Pow => {
            ty != Scalar::Bool
        }
        BinOp::Min
        | BinOp::Max
        | BinOp::Eq
        | BinOp::Ne
        | BinOp::Lt
        | BinOp::Le
        | BinOp::Gt
        | BinOp::Ge => true,
        BinOp::And | BinOp::Or => ty == Scalar::Bool,
        BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor => !ty.is_float(),
        BinOp::Shl | BinOp::Shr => ty.is_int(),
    }
}

/// The type and shape of an operation's result. `declared` is the value it is assigned to; it alone
/// determines the type of a literal or a cast.
pub(in crate::kernel) fn type_of(
    program: &Program,
    kernel: &Kernel,
    op: &Op,
    declared: Option<&Value>,
) -> Result<OpType, String> {
    let value = |id: ValueId| {
        let found = kernel.values.get(id.index());
        found.ok_or_else(|| format!("there is no value {}", id.index()))
    };
    let array = |memory: Memory| {
        let found = array_of(program, kernel, memory);
        found.ok_or_else(|| "there is no such array".to_string())
    };
    let wanted = declared
        .map(|v| v.ty)
        .ok_or_else(|| "the value is not declared".to_string())?;
    let uniform = |ty| OpType {
        ty,
        shape: Shape::Uniform,
    };
    Ok(match op {
        Op::Lit(literal) => {
            if !is_literal_of(*literal, wanted) {
                return Err(format!("{literal} is no {wanted}"));
            }
            uniform(wanted)
        }
        Op::Index(form) => OpType {
            ty: Scalar::I64,
            shape: kernel.shape_of(form),
        },
        Op::Get(reg) => {
            let reg = kernel.regs.get(reg.index());
            let reg = reg.ok_or_else(|| "there is no such register".to_string())?;
            OpType {
                ty: reg.ty,
                shape: reg.shape,
            }
        }
        Op::Unary(op, a) => {
            let a = value(*a)?;
            if !unary_takes(*op, a.ty) {
                return Err(format!("`{}` is not defined on {}", op.name(), a.ty));
            }
            OpType {
                ty: a.ty,
                shape: a.shape,
            }
        }
        Op::Binary(op, a, b) => {
            let (a, b) = (value(*a)?, value(*b)?);
            if a.ty != b.ty {
                let (op, a, b) = (op.name(), a.ty, b.ty);
                return Err(format!("`{op}` takes two of one type, not {a} and {b}"));
            }
            if !binary_takes(*op, a.ty) {
                return Err(format!("`{}` is not defined on {}", op.name(), a.ty));
            }
            OpType {
                ty: if op.is_comparison() {
                    Scalar::Bool
                } else {
                    a.ty
                },
                shape: a.shape.max(b.shape),
            }
        }
        Op::Cast(a) => OpType {
            ty: wanted,
            shape: value(*a)?.shape,
        },
        Op::Select {
            cond,
            then,
            otherwise,
        } => {
            let (cond, then, otherwise) = (value(*cond)?, value(*then)?, value(*otherwise)?);
            if cond.ty != Scalar::Bool {
                return Err(format!("a choice is made by a {}", cond.ty));
            }
            either(then, otherwise, cond.shape)?
        }
        Op::Choose {
            cond,
            then,
            otherwise,
        } => {
            let shape = match kernel.cond_is_uniform(cond) {
                true => Shape::Uniform,
                false => Shape::Varying,
            };
            either(value(*then)?, value(*otherwise)?, shape)?
        }
        Op::Load { from, otherwise } => {
            let ty = array(from.memory)?.ty;
            if let Some(literal) = otherwise
                && !is_literal_of(*literal, ty)
            {
                return Err(format!("{literal} is no {ty}"));
            }
            OpType {
                ty,
                shape: access_shape(kernel, from),
            }
        }
        Op::Lookup { memory, index } => {
            let Array { ty, rank, .. } = array(*memory)?;
            if index.len() != rank {
                return Err(format!("{} indices for {rank} axes", index.len()));
            }
            let mut shape = Shape::Uniform;
            for id in index {
                let index = value(*id)?;
                if !index.ty.is_int() {
                    return Err(format!("an index is a {}", index.ty));
                }
                shape = shape.max(index.shape);
            }
            OpType { ty, shape }
        }
        // All lanes get the value of one lane.
        Op::Shuffle { value: of, from } => OpType {
            ty: value(*of)?.ty,
            shape: kernel.shape_of(from),
        },
        Op::LaneShift { low, high, by } => {
            if *by > kernel.lanes {
                return Err(format!("{by} is more than the lanes of a warp"));
            }
            let mut types = low.iter().chain(high).map(|v| value(*v).map(|v| v.ty));
            let ty = types.next().unwrap_or(Err("no vector is shifted".into()))?;
            for other in types {
                if other? != ty {
                    return Err("the shifted vectors have two types".into());
                }
            }
            OpType {
                ty,
                shape: Shape::Varying,
            }
        }
    })
}

fn either(then: &Value, otherwise: &Value, by: Shape) -> Result<OpType, String> {
    if then.ty != otherwise.ty {
        let (then, otherwise) = (then.ty, otherwise.ty);
        return Err(format!("a choice between {then} and {otherwise}"));
    }
    Ok(OpType {
        ty: then.ty,
        shape: by.max(then.shape).max(otherwise.shape),
    })
}
