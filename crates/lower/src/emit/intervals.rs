//! Bounds of the values of a kernel, from their types and operations.
//!
//! They hold for values that belong to a point; an undefined value may lie outside them. They are
//! good enough to omit tests of divisors and indices that are never wrong: `x % 4`, `x & 3`, a byte
//! into a table of 256.

use systola_ir::kernel::Op;
use systola_ir::{BinOp, Literal, Scalar, UnOp, ValueId};

/// The least and the greatest number, both included.
pub type Interval = (i128, i128);

/// All values of a type; `None` for floats.
pub fn of_type(ty: Scalar) -> Option<Interval> {
    match ty {
        Scalar::Bool => Some((0, 1)),
        _ => ty.int_range(),
    }
}

/// The interval of a list of literals, if all of them are integers.
pub fn of_literals(list: &[Literal]) -> Option<Interval> {
    let numbers = list.iter().map(|literal| match literal {
        Literal::Int(v) => Some(*v),
        Literal::Bool(b) => Some(i128::from(*b)),
        Literal::Float(_) => None,
    });
    let numbers: Vec<i128> = numbers.collect::<Option<_>>()?;
    Some((*numbers.iter().min()?, *numbers.iter().max()?))
}

/// The interval of an operation with a result of type `ty`. `of` gives the interval of an operand,
/// `loaded` that of the elements of a memory.
pub fn of_op(
    ty: Scalar,
    op: &Op,
    of: &impl Fn(ValueId) -> Option<Interval>,
    loaded: impl Fn() -> Option<Interval>,
) -> Option<Interval> {
    let all = of_type(ty)?;
    let found = match op {
        Op::Lit(literal) => of_literals(std::slice::from_ref(literal)),
        Op::Index(form) => form.as_constant().map(|c| (c, c)),
        Op::Unary(UnOp::Neg, a) => of(*a).map(|(lo, hi)| (-hi, -lo)),
        Op::Unary(UnOp::Abs, a) => of(*a).map(|(lo, hi)| {
            let least = if lo <= 0 && hi >= 0 {
                0
            } else {
                lo.abs().min(hi.abs())
            };
            (least, lo.abs().max(hi.abs()))
        }),
        Op::Binary(op, a, b) => of(*a).zip(of(*b)).and_then(|(a, b)| binary(*op, a, b)),
        Op::Cast(a) if ty == Scalar::Bool => of(*a).map(|(lo, hi)| {
            let never_zero = lo > 0 || hi < 0;
            (i128::from(never_zero), i128::from((lo, hi) != (0, 0)))
        }),
        Op::Cast(a) => of(*a),
        Op::Select {
            then, otherwise, ..
        }
        | Op::Choose {
            then, otherwise, ..
        } => of(*then).zip(of(*otherwise)).map(either),
        Op::Load { otherwise, .. } => match otherwise {
            None => loaded(),
            Some(literal) => {
                let otherwise = of_literals(std::slice::from_ref(literal));
                loaded().zip(otherwise).map(either)
            }
        },
        Op::Lookup { .. } => loaded(),
        Op::Unary(
            UnOp::Not
            | UnOp::Sqrt
            | UnOp::Rsqrt
            | UnOp::Exp
            | UnOp::Log
            | UnOp::Sin
            | UnOp::Cos
            | UnOp::Tanh
            | UnOp::Floor
            | UnOp::Ceil,
            _,
        )
        | Op::Get(_)
        | Op::Shuffle { .. }
        | Op::LaneShift { .. } => None,
    };
    // A result outside its type wraps around.
    found
        .filter(|(lo, hi)| all.0 <= *lo && *hi <= all.1)
        .or(Some(all))
}

fn either((a, b): (Interval, Interval)) -> Interval {
    (a.0.min(b.0), a.1.max(b.1))
}

/// The least and the greatest result over the ends of both intervals.
fn ends(a: Interval, b: Interval, f: impl Fn(i128, i128) -> Option<i128>) -> Option<Interval> {
    let all = [f(a.0, b.0)?, f(a.0, b.1)?, f(a.1, b.0)?, f(a.1, b.1)?];
    Some((*all.iter().min()?, *all.iter().max()?))
}

fn binary(op: BinOp, a: Interval, b: Interval) -> Option<Interval> {
    let one_less_than_a_power =
        |x: i128| (x.cast_unsigned() + 1).next_power_of_two().cast_signed() - 1;
    match op {
        BinOp::Add => ends(a, b, i128::checked_add),
        BinOp::Sub => ends(a, b, i128::checked_sub),
        BinOp::Mul => ends(a, b, i128::checked_mul),
        BinOp::Min => Some((a.0.min(b.0), a.1.min(b.1))),
        BinOp::Max => Some((a.0.max(b.0), a.1.max(b.1))),
        // Both round down.
        BinOp::Div if b.0 > 0 => ends(a, b, |x, y| Some(x.div_euclid(y))),
        BinOp::Rem if b.0 > 0 && a.0 >= 0 => Some((0, a.1.min(b.1 - 1))),
        BinOp::Rem if b.0 > 0 => Some((0, b.1 - 1)),
        BinOp::Rem if b.1 < 0 => Some((b.0 + 1, 0)),
        BinOp::BitAnd if a.0 >= 0 && b.0 >= 0 => Some((0, a.1.min(b.1))),
        BinOp::BitAnd if a.0 >= 0 => Some((0, a.1)),
        BinOp::BitAnd if b.0 >= 0 => Some((0, b.1)),
        BinOp::BitOr if a.0 >= 0 && b.0 >= 0 => {
            Some((a.0.max(b.0), one_less_than_a_power(a.1.max(b.1))))
        }
        BinOp::BitXor if a.0 >= 0 && b.0 >= 0 => Some((0, one_less_than_a_power(a.1.max(b.1)))),
        BinOp::Shr if b.0 >= 0 && b.1 < 8 => ends(a, b, |x, by| Some(x >> by)),
        BinOp::Shl if b.0 >= 0 && b.1 < 8 => ends(a, b, |x, by| x.checked_mul(1 << by)),
        BinOp::Eq
        | BinOp::Ne
        | BinOp::Lt
        | BinOp::Le
        | BinOp::Gt
        | BinOp::Ge
        | BinOp::And
        | BinOp::Or => Some((0, 1)),
        BinOp::Div
        | BinOp::Rem
        | BinOp::Pow
        | BinOp::BitAnd
        | BinOp::BitOr
        | BinOp::BitXor
        | BinOp::Shl
        | BinOp::Shr => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every result on small numbers lies in the interval computed for its operands.
    #[test]
    fn what_operators_give_lies_between_the_ends() {
        let value = |op: BinOp, x: i128, y: i128| -> Option<i128> {
            let floor =
                |x: i128, y: i128| x.div_euclid(y) - i128::from(y < 0 && x.rem_euclid(y) != 0);
            Some(match op {
                BinOp::Add => x + y,
                BinOp::Sub => x - y,
                BinOp::Mul => x * y,
                BinOp::Min => x.min(y),
                BinOp::Max => x.max(y),
                BinOp::Div if y != 0 => floor(x, y),
                BinOp::Rem if y != 0 => x - y * floor(x, y),
                BinOp::BitAnd => x & y,
                BinOp::BitOr => x | y,
                BinOp::BitXor => x ^ y,
                BinOp::Shl if (0..8).contains(&y) => x << y,
                BinOp::Shr if (0..8).contains(&y) => x >> y,
                _ => return None,
            })
        };
        let all = [
            BinOp::Add,
            BinOp::Sub,
            BinOp::Mul,
            BinOp::Min,
            BinOp::Max,
            BinOp::Div,
            BinOp::Rem,
            BinOp::BitAnd,
            BinOp::BitOr,
            BinOp::BitXor,
            BinOp::Shl,
            BinOp::Shr,
        ];
        let some = -5..=6;
        let intervals: Vec<Interval> = some
            .clone()
            .flat_map(|lo| (lo..=6).step_by(3).map(move |hi| (lo, hi)))
            .collect();
        for op in all {
            for a in &intervals {
                for b in &intervals {
                    let Some((lo, hi)) = binary(op, *a, *b) else {
                        continue;
                    };
                    for x in a.0..=a.1 {
                        for y in b.0..=b.1 {
                            if let Some(v) = value(op, x, y) {
                                assert!(lo <= v && v <= hi, "{x} {op:?} {y} in {a:?} {b:?}");
                            }
                        }
                    }
                }
            }
        }
    }
}
