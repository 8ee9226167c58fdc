//! Prints operations and the values they use.

use crate::id::ValueId;
use crate::kernel::Op;
use crate::scalar::{BinOp, Literal, Scalar, UnOp};
use crate::system::print::display_literal;
use crate::system::print::expr::level::{PRIMARY, UNARY};
use crate::system::print::expr::precedence;

use super::{KernelText, display_shape, join};

/// What the context of an expression determines about it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// Its type: a literal need not state it.
    Type,
    Nothing,
}

impl KernelText<'_> {
    /// `x: f32`, `uniform x, y: i32`.
    pub(super) fn declaration(&self, values: &[ValueId]) -> String {
        let first = values.first();
        let first = first.and_then(|v| self.kernel.values.get(v.index()));
        let shape = first.map_or("", |value| display_shape(value.shape));
        format!("{shape}{}", self.typed(values))
    }

    /// `x: f32`, `x, y: i32`.
    pub(super) fn typed(&self, values: &[ValueId]) -> String {
        let names = join(values.iter().map(|v| self.value(*v)));
        let first = values.first();
        match first.and_then(|v| self.kernel.values.get(v.index())) {
            Some(value) => format!("{names}: {}", value.ty),
            None => names,
        }
    }

    /// A value of a known type in the place of its use.
    pub(super) fn shown(&self, value: ValueId) -> String {
        self.operand(value, 0, Known::Type)
    }

    /// A value in the place of its use, in parentheses if it binds more weakly than its context.
    fn operand(&self, value: ValueId, least: u8, known: Known) -> String {
        match self.inlined_op(value) {
            Some(op) => {
                let (text, level) = self.op(value, op, known);
                if level < least {
                    format!("({text})")
                } else {
                    text
                }
            }
            None => self.value(value),
        }
    }

    /// What is known about operands that have the same type: one of them may determine it.
    fn known_of(&self, operands: &[ValueId], known: Known) -> Known {
        match operands.iter().any(|v| self.determines_type(*v)) {
            true => Known::Type,
            false => known,
        }
    }

    /// Is the type of the value known without its literals?
    fn determines_type(&self, value: ValueId) -> bool {
        match self.inlined_op(value) {
            None => true,
            Some(op) => match op {
                Op::Lit(_) => false,
                Op::Unary(_, a) => self.determines_type(*a),
                Op::Binary(op, a, b) => {
                    op.is_comparison() || self.determines_type(*a) || self.determines_type(*b)
                }
                Op::Select {
                    then, otherwise, ..
                }
                | Op::Choose {
                    then, otherwise, ..
                } => self.determines_type(*then) || self.determines_type(*otherwise),
                Op::Index(_)
                | Op::Get(_)
                | Op::Cast(_)
                | Op::Load { .. }
                | Op::Lookup { .. }
                | Op::Shuffle { .. }
                | Op::LaneShift { .. } => true,
            },
        }
    }

    fn literal(&self, value: ValueId, literal: Literal, known: Known) -> String {
        let text = display_literal(literal);
        let ty = self.kernel.values.get(value.index()).map(|v| v.ty);
        match (known, ty) {
            (Known::Type, _) | (_, None) => text,
            (Known::Nothing, Some(ty)) => match literal {
                Literal::Float(x) if !x.is_finite() => format!("{text}_{ty}"),
                Literal::Bool(_) => format!("{text}_{}", Scalar::Bool),
                Literal::Int(_) | Literal::Float(_) => format!("{text}{ty}"),
            },
        }
    }

    /// The text of an operation and how tightly it binds.
    pub(super) fn op(&self, value: ValueId, op: &Op, known: Known) -> (String, u8) {
        let all = |values: &[ValueId]| {
            let known = self.known_of(values, known);
            join(values.iter().map(|v| self.operand(*v, 0, known)))
        };
        // The context does not determine the type.
        let alone = |v: ValueId| self.operand(v, 0, self.known_of(&[v], Known::Nothing));
        let text = match op {
            Op::Lit(literal) => {
                let text = self.literal(value, *literal, known);
                let level = if text.starts_with('-') {
                    UNARY
                } else {
                    PRIMARY
                };
                return (text, level);
            }
            Op::Index(form) => format!("index({})", self.form(form)),
            Op::Get(reg) => self.reg(*reg),
            Op::Unary(op, a) => match op {
                UnOp::Neg | UnOp::Not => {
                    let operand = match self.inlined_op(*a) {
                        // A minus before a literal would become part of it.
                        Some(Op::Lit(_)) => format!("({})", self.operand(*a, 0, known)),
                        // `--x` would be hard to read.
                        _ => self.operand(*a, PRIMARY, known),
                    };
                    return (format!("{}{operand}", op.name()), UNARY);
                }
                UnOp::Abs
                | UnOp::Sqrt
                | UnOp::Rsqrt
                | UnOp::Exp
                | UnOp::Log
                | UnOp::Floor
                | UnOp::Ceil
                | UnOp::Sin
                | UnOp::Cos
                | UnOp::Tanh => {
                    format!("{}({})", op.name(), self.operand(*a, 0, known))
                }
            },
            Op::Binary(op, a, b) => match op {
                BinOp::Min | BinOp::Max | BinOp::Pow => {
                    format!("{}({})", op.name(), all(&[*a, *b]))
                }
                BinOp::Add
                | BinOp::Sub
                | BinOp::Mul
                | BinOp::Div
                | BinOp::Rem
                | BinOp::Eq
                | BinOp::Ne
                | BinOp::Lt
                | BinOp::Le
                | BinOp::Gt
                | BinOp::Ge
                | BinOp::And
                | BinOp::Or
                | BinOp::BitAnd
                | BinOp::BitOr
                | BinOp::BitXor
                | BinOp::Shl
                | BinOp::Shr => {
                    let level = precedence(*op);
                    // A comparison is a bool, whatever it compares.
                    let known = match op.is_comparison() {
                        true => Known::Nothing,
                        false => known,
                    };
                    let known = self.known_of(&[*a, *b], known);
                    // Operators group to the left; comparisons do not chain.
                    let left = self.operand(*a, level + u8::from(op.is_comparison()), known);
                    let right = self.operand(*b, level + 1, known);
                    return (format!("{left} {} {right}", op.name()), level);
                }
            },
            Op::Cast(a) => {
                let ty = self.kernel.values.get(value.index()).map(|v| v.ty.name());
                format!("{}({})", ty.unwrap_or("cast"), alone(*a))
            }
            // Without a value in it, the condition would read as a condition on positions.
            Op::Select {
                cond,
                then,
                otherwise,
            } => format!("select({}, {})", alone(*cond), all(&[*then, *otherwise])),
            Op::Choose {
                cond,
                then,
                otherwise,
            } => format!("select({}, {})", self.cond(cond), all(&[*then, *otherwise])),
            Op::Load { from, otherwise } => {
                let mut text = format!("{}{}", self.place(from), self.when(&from.when));
                if let Some(value) = otherwise {
                    text.push_str(&format!(" else {}", display_literal(*value)));
                }
                text
            }
            Op::Lookup { memory, index } => {
                let index = join(index.iter().map(|v| alone(*v)));
                format!("lookup({}, {index})", self.memory(*memory))
            }
            Op::Shuffle { value, from } => {
                let value = self.operand(*value, 0, known);
                format!("shuffle({value}, {})", self.form(from))
            }
            Op::LaneShift { low, high, by } => {
                let part = |v: &Option<ValueId>| match v {
                    Some(v) => self.operand(*v, 0, known),
                    None => "_".to_string(),
                };
                format!("lane_shift({}, {}, {by})", part(low), part(high))
            }
        };
        (text, PRIMARY)
    }
}
