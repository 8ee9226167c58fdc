//! Prints operations and the values they use.

use crate::id::ValueId;
use crate::kernel::Op;
use crate::scalar::{BinOp, UnOp};
use crate::system::print::expr::level::{PRIMARY, UNARY};
use crate::system::print::expr::precedence;

use super::{KernelText, display_shape, join};

impl KernelText<'_> {
    /// `x: f32`, `uniform x, y: i32`.
    pub(super) fn declaration(&self, values: &[ValueId]) -> String {
        let names = join(values.iter().map(|v| self.value(*v)));
        match values
            .first()
            .and_then(|v| self.kernel.values.get(v.index()))
        {
            Some(value) => format!("{}{names}: {}", display_shape(value.shape), value.ty),
            None => names,
        }
    }

    /// A value where it is used, in parentheses if it binds more weakly than its surroundings.
    pub(super) fn operand(&self, value: ValueId, least: u8) -> String {
        match self.inlined_op(value) {
            Some(op) => {
                let (text, level) = self.op(value, op);
                if level < least {
                    format!("({text})")
                } else {
                    text
                }
            }
            None => self.value(value),
        }
    }

    /// The text of an operation and how tightly it binds.
    pub(super) fn op(&self, value: ValueId, op: &Op) -> (String, u8) {
        let all = |values: &[ValueId]| join(values.iter().map(|v| self.operand(*v, 0)));
        let text = match op {
            Op::Lit(literal) => {
                let text = literal.to_string();
                let level = if text.starts_with('-') {
                    UNARY
                } else {
                    PRIMARY
                };
                return (text, level);
            }
            Op::Index(form) => {
                let text = self.form(form);
                // A form with an operator in it takes its parentheses along: it is one number.
                let is_plain = text.chars().all(|c| c.is_alphanumeric() || c == '_');
                return (text, if is_plain { PRIMARY } else { 0 });
            }
            Op::Get(reg) => self.reg(*reg),
            Op::Unary(op, a) => match op {
                UnOp::Neg | UnOp::Not => {
                    // A minus before a literal would become part of it, `--x` would read oddly.
                    let operand = self.operand(*a, PRIMARY);
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
                    format!("{}({})", op.name(), self.operand(*a, 0))
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
                    // Operators group to the left; comparisons do not chain.
                    let left = self.operand(*a, level + u8::from(op.is_comparison()));
                    let right = self.operand(*b, level + 1);
                    return (format!("{left} {} {right}", op.name()), level);
                }
            },
            Op::Cast(a) => {
                let ty = self.kernel.values.get(value.index()).map(|v| v.ty.name());
                format!("{}({})", ty.unwrap_or("cast"), self.operand(*a, 0))
            }
            Op::Select {
                cond,
                then,
                otherwise,
            } => format!("select({})", all(&[*cond, *then, *otherwise])),
            Op::Choose {
                cond,
                then,
                otherwise,
            } => format!("select({}, {})", self.cond(cond), all(&[*then, *otherwise])),
            Op::Load { from, otherwise } => {
                let mut text = format!("{}{}", self.place(from), self.when(&from.when));
                if let Some(value) = otherwise {
                    text.push_str(&format!(" else {value}"));
                }
                text
            }
            Op::Lookup { memory, index } => {
                format!("lookup({}, {})", self.memory(*memory), all(index))
            }
            Op::Shuffle { value, from } => {
                format!("shuffle({}, {})", self.operand(*value, 0), self.form(from))
            }
            Op::Slide { low, high, by } => {
                let part = |v: &Option<ValueId>| match v {
                    Some(v) => self.operand(*v, 0),
                    None => "_".to_string(),
                };
                format!("slide({}, {}, {by})", part(low), part(high))
            }
        };
        (text, PRIMARY)
    }
}
