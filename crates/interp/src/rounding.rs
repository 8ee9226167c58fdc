//! Error bounds: how far a correct result may be from that of the equations, computed for every
//! float.
//!
//! Compiled code may add in another order where the program allows it, fuse products with sums, and
//! use functions with errors of some units in the last place. So each float carries an error bound,
//! computed from the magnitudes of its operands (running error analysis; N. J. Higham, Accuracy and
//! Stability of Numerical Algorithms, 3.3). With the unit roundoff u of the type:
//!
//! * the error of a sum of n terms, in any order, is that of its terms and n·u·Σ|xᵢ|, where the
//!   terms are those of the whole chain of sums: cancellation is measured by what was added, not by
//!   what is left;
//! * that of a product is |a|·eᵦ + |b|·eₐ + eₐ·eᵦ and its own rounding;
//! * that of any other operator is the change of its result when its operands change by their
//!   errors, and the units in the last place that it is allowed (`slack`);
//! * that of a choice by an undecided comparison is the distance of its two values;
//! * where a function combines the terms of a sum, another grouping has other results in between:
//!   every application counts as a few roundings more, unless it is exact. That is an estimate, no
//!   bound: results in between may be larger than the result.
//!
//! Inputs are exact. Each side may be off by the bound, so two results may differ by twice as much.
//!
//! While a run tracks errors, a float is the tuple (value, error, Σ|xᵢ|, n, ()) and an undecided
//! bool is (value, true, ()): no tuple of a program has an empty one in it.

use systola_ir::{BinOp, Scalar, Type, UnOp};

use crate::value::{self, OpError, Value};

/// The tolerance between two results, relative to the bound of one.
pub const SIDES: f64 = 2.0;

/// The roundings that another grouping adds to each application of a function.
const REGROUPED: f64 = 4.0;

/// A float with its error bound.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Tracked {
    value: f64,
    ty: Scalar,
    /// The error of the terms and of everything before.
    error: f64,
    /// Σ|xᵢ| of the terms of a sum.
    magnitude: f64,
    /// The number of additions in the chain.
    additions: f64,
}

/// The relative error of one rounding, and the minimum error: a device may flush subnormal numbers
/// to 0.
fn unit(ty: Scalar) -> (f64, f64) {
    match ty {
        Scalar::F64 => (f64::EPSILON / 2.0, f64::MIN_POSITIVE),
        Scalar::F32 => (f64::from(f32::EPSILON) / 2.0, f32::MIN_POSITIVE.into()),
        Scalar::F16 => (1.0 / 2048.0, 6.2e-5),
        Scalar::BF16 => (1.0 / 256.0, f32::MIN_POSITIVE.into()),
        Scalar::Bool
        | Scalar::I8
        | Scalar::I16
        | Scalar::I32
        | Scalar::I64
        | Scalar::U8
        | Scalar::U16
        | Scalar::U32
        | Scalar::U64 => (0.0, 0.0),
    }
}

impl Tracked {
    fn exact(value: f64, ty: Scalar) -> Tracked {
        Tracked::with_error(value, ty, 0.0)
    }

    fn with_error(value: f64, ty: Scalar, error: f64) -> Tracked {
        Tracked {
            value,
            ty,
            error,
            magnitude: value.abs(),
            additions: 0.0,
        }
    }

    /// The bound of its error.
    fn bound(&self) -> f64 {
        let (unit, least) = unit(self.ty);
        if self.additions == 0.0 {
            return self.error;
        }
        let bound = self.error + self.additions * (unit * self.magnitude + least);
        // A sum may overflow its type in one order only.
        if bound.is_nan() { f64::INFINITY } else { bound }
    }

    fn encode(&self) -> Value {
        let value = value::literal(self.ty, systola_ir::Literal::Float(self.value));
        let numbers = [self.error, self.magnitude, self.additions].map(Value::F64);
        let [error, magnitude, additions] = numbers;
        Value::Tuple([value, error, magnitude, additions, mark()].into())
    }
}

/// The marker at the end of a tracked value.
fn mark() -> Value {
    Value::Tuple([].into())
}

fn is_mark(value: &Value) -> bool {
    matches!(value, Value::Tuple(parts) if parts.is_empty())
}

fn scalar_of(value: &Value) -> Option<Scalar> {
    match value {
        Value::F16(_) => Some(Scalar::F16),
        Value::BF16(_) => Some(Scalar::BF16),
        Value::F32(_) => Some(Scalar::F32),
        Value::F64(_) => Some(Scalar::F64),
        Value::Bool(_)
        | Value::I8(_)
        | Value::I16(_)
        | Value::I32(_)
        | Value::I64(_)
        | Value::U8(_)
        | Value::U16(_)
        | Value::U32(_)
        | Value::U64(_)
        | Value::Tuple(_) => None,
    }
}

fn decode(value: &Value) -> Option<Tracked> {
    if let Some(ty) = scalar_of(value) {
        return Some(Tracked::exact(value.as_float()?, ty));
    }
    let Value::Tuple(parts) = value else {
        return None;
    };
    let [
        value,
        Value::F64(error),
        Value::F64(magnitude),
        Value::F64(additions),
        end,
    ] = &parts[..]
    else {
        return None;
    };
    if !is_mark(end) {
        return None;
    }
    Some(Tracked {
        value: value.as_float()?,
        ty: scalar_of(value)?,
        error: *error,
        magnitude: *magnitude,
        additions: *additions,
    })
}

/// A bool, and whether the errors leave it undecided.
fn truth(value: &Value) -> Option<(bool, bool)> {
    match value {
        Value::Bool(b) => Some((*b, false)),
        Value::Tuple(parts) => match &parts[..] {
            [Value::Bool(b), Value::Bool(open), end] if is_mark(end) => Some((*b, *open)),
            _ => None,
        },
        _ => None,
    }
}

fn encode_truth(holds: bool, open: bool) -> Value {
    match open {
        false => Value::Bool(holds),
        true => Value::Tuple([Value::Bool(holds), Value::Bool(true), mark()].into()),
    }
}

/// An input value: exact, or with the given error.
pub(crate) fn given(value: Value, error: Option<f64>) -> Value {
    match (scalar_of(&value), value.as_float()) {
        (Some(ty), Some(x)) => Tracked::with_error(x, ty, error.unwrap_or(0.0)).encode(),
        _ => value,
    }
}

/// A result of the function that combines the terms of a sum, in any grouping.
pub(crate) fn regrouped(value: Value) -> Value {
    if let Some(mut float) = decode(&value) {
        let (unit, _) = unit(float.ty);
        if float.bound() > 0.0 {
            float.error += REGROUPED * unit * float.value.abs();
        }
        return float.encode();
    }
    match value {
        Value::Tuple(parts) if !parts.last().is_some_and(is_mark) => {
            Value::Tuple(parts.iter().cloned().map(regrouped).collect())
        }
        other => other,
    }
}

/// The value itself, and the bound of its error.
pub(crate) fn split(value: &Value) -> (Value, f64) {
    if let Some((holds, _)) = truth(value) {
        return (Value::Bool(holds), 0.0);
    }
    match (decode(value), value) {
        (Some(tracked), Value::Tuple(parts)) => (parts[0].clone(), tracked.bound()),
        _ => (value.clone(), 0.0),
    }
}

/// The type of a tracked value.
pub(crate) fn tracked_type(ty: &Type) -> Type {
    let end = || Type::Tuple(Vec::new());
    match ty {
        Type::Scalar(s) if s.is_float() => {
            let number = || Type::Scalar(Scalar::F64);
            Type::Tuple(vec![ty.clone(), number(), number(), number(), end()])
        }
        Type::Scalar(Scalar::Bool) => Type::Tuple(vec![ty.clone(), ty.clone(), end()]),
        Type::Scalar(_) => ty.clone(),
        Type::Tuple(parts) => Type::Tuple(parts.iter().map(tracked_type).collect()),
    }
}

/// A value converted to its tracked type.
pub(crate) fn fitted(value: &Value, ty: &Type) -> Value {
    match (ty, value) {
        (Type::Scalar(Scalar::Bool), _) => match truth(value) {
            Some((b, open)) => Value::Tuple([Value::Bool(b), Value::Bool(open), mark()].into()),
            None => value.clone(),
        },
        (Type::Scalar(_), _) => match decode(value) {
            Some(tracked) => tracked.encode(),
            None => value.clone(),
        },
        (Type::Tuple(types), Value::Tuple(parts)) => {
            let parts = types.iter().zip(parts.iter());
            Value::Tuple(parts.map(|(ty, part)| fitted(part, ty)).collect())
        }
        (Type::Tuple(_), _) => value.clone(),
    }
}

/// The error of an operator on some target in units in the last place, besides the errors of its
/// operands.
fn slack(op: Operator) -> f64 {
    match op {
        Operator::Unary(UnOp::Neg | UnOp::Abs | UnOp::Not) => 0.0,
        // Not every device rounds them correctly.
        Operator::Unary(UnOp::Sqrt) | Operator::Binary(BinOp::Div) => 6.0,
        // Functions, with the errors that OpenCL allows.
        Operator::Unary(_) | Operator::Binary(BinOp::Pow) => 32.0,
        Operator::Binary(_) => 1.0,
    }
}

#[derive(Clone, Copy)]
enum Operator {
    Unary(UnOp),
    Binary(BinOp),
}

pub(crate) fn unary(op: UnOp, a: &Value) -> Result<Value, OpError> {
    if let Some((holds, open)) = truth(a) {
        let negated = value::unary(op, &Value::Bool(holds))?;
        return Ok(truth(&negated).map_or(negated, |(b, _)| encode_truth(b, open)));
    }
    let Some(x) = decode(a) else {
        return value::unary(op, a);
    };
    let plain = value::literal(x.ty, systola_ir::Literal::Float(x.value));
    let result = value::unary(op, &plain)?;
    let Some(y) = result.as_float() else {
        return Ok(result);
    };
    if matches!(op, UnOp::Neg | UnOp::Abs) {
        return Ok(Tracked { value: y, ..x }.encode());
    }
    let e = x.bound();
    let moved = |by: f64| {
        let at = match op {
            // A square that rounding made negative.
            UnOp::Sqrt if x.value >= 0.0 => (x.value + by).max(0.0),
            _ => x.value + by,
        };
        let moved = value::unary(op, &Value::F64(at)).ok()?;
        moved.as_float()
    };
    let error = spread(&[moved(-e), moved(0.0), moved(e)], moved(0.0));
    Ok(rounded(y, x.ty, error, slack(Operator::Unary(op))).encode())
}

/// A result with the error of its operands and its own.
fn rounded(value: f64, ty: Scalar, error: f64, slack: f64) -> Tracked {
    let (unit, least) = unit(ty);
    let error = error + slack * unit * value.abs() + least;
    let known = value.is_finite() && !error.is_nan();
    Tracked::with_error(value, ty, if known { error } else { no_bound(value) })
}

/// Infinities and NaN are exact; a number without a bound may be anything.
fn no_bound(value: f64) -> f64 {
    if value.is_finite() {
        f64::INFINITY
    } else {
        0.0
    }
}

/// The distance of the values from the middle one.
fn spread(values: &[Option<f64>], middle: Option<f64>) -> f64 {
    let Some(middle) = middle.filter(|m| m.is_finite()) else {
        return f64::NAN;
    };
    let distance = |v: &Option<f64>| v.map_or(f64::INFINITY, |v| (v - middle).abs());
    let distances = values.iter().map(distance);
    distances.fold(0.0, |most, x| {
        if x.is_nan() {
            f64::INFINITY
        } else {
            most.max(x)
        }
    })
}

pub(crate) fn binary(op: BinOp, a: &Value, b: &Value) -> Result<Value, OpError> {
    if let (Some((x, x_open)), Some((y, y_open))) = (truth(a), truth(b)) {
        let result = value::binary(op, &Value::Bool(x), &Value::Bool(y))?;
        // An operand that decides alone makes the result decided.
        let decided = match op {
            BinOp::And => (!x && !x_open) || (!y && !y_open),
            BinOp::Or => (x && !x_open) || (y && !y_open),
            _ => false,
        };
        let open = (x_open || y_open) && !decided;
        return Ok(truth(&result).map_or(result, |(b, _)| encode_truth(b, open)));
    }
    let (Some(x), Some(y)) = (decode(a), decode(b)) else {
        return value::binary(op, a, b);
    };
    let plain = |t: &Tracked| value::literal(t.ty, systola_ir::Literal::Float(t.value));
    let result = value::binary(op, &plain(&x), &plain(&y))?;
    let (ex, ey) = (x.bound(), y.bound());
    let Some(z) = result.as_float() else {
        let open = ex + ey > 0.0 && (x.value - y.value).abs() <= ex + ey;
        return Ok(truth(&result).map_or(result, |(holds, _)| encode_truth(holds, open)));
    };
    let tracked = match op {
        BinOp::Add | BinOp::Sub => Tracked {
            value: z,
            ty: x.ty,
            error: x.error + y.error,
            magnitude: x.magnitude + y.magnitude,
            additions: x.additions.max(y.additions) + 1.0,
        },
        BinOp::Mul => {
            let error = x.value.abs() * ey + y.value.abs() * ex + ex * ey;
            rounded(z, x.ty, error, 1.0)
        }
        BinOp::Min | BinOp::Max => chosen(op, x, y, z),
        _ => {
            let at = |dx: f64, dy: f64| {
                let (x, y) = (Value::F64(x.value + dx), Value::F64(y.value + dy));
                value::binary(op, &x, &y).ok()?.as_float()
            };
            // A divisor that may be 0, or of either sign.
            let pole = op == BinOp::Div && y.value.abs() <= ey && ey > 0.0;
            let corners = [at(-ex, -ey), at(-ex, ey), at(ex, -ey), at(ex, ey)];
            let error = if pole {
                f64::INFINITY
            } else {
                spread(&corners, at(0.0, 0.0))
            };
            rounded(z, x.ty, error, slack(Operator::Binary(op)))
        }
    };
    Ok(tracked.encode())
}

/// The smaller or the larger of two: one of them where the errors decide it.
fn chosen(op: BinOp, x: Tracked, y: Tracked, z: f64) -> Tracked {
    let (ex, ey) = (x.bound(), y.bound());
    if (x.value - y.value).abs() > ex + ey || x.value.is_nan() || y.value.is_nan() {
        let first = match op {
            BinOp::Min => x.value < y.value || y.value.is_nan(),
            _ => x.value > y.value || y.value.is_nan(),
        };
        let one = if first { x } else { y };
        return Tracked { value: z, ..one };
    }
    Tracked::with_error(z, x.ty, ex.max(ey))
}

pub(crate) fn cast(ty: Scalar, a: &Value) -> Result<Value, OpError> {
    if let Some((holds, _)) = truth(a) {
        return Ok(given(value::cast(ty, &Value::Bool(holds))?, None));
    }
    let Some(x) = decode(a) else {
        let result = value::cast(ty, a)?;
        let Some(y) = result.as_float() else {
            return Ok(result);
        };
        // An integer that the type may not hold is rounded.
        let (unit, _) = unit(ty);
        let exact = a
            .as_int()
            .is_some_and(|i| i.unsigned_abs() as f64 * unit < 1.0);
        let error = if exact { 0.0 } else { unit * y.abs() };
        return Ok(Tracked::with_error(y, ty, error).encode());
    };
    let plain = value::literal(x.ty, systola_ir::Literal::Float(x.value));
    let result = value::cast(ty, &plain)?;
    let Some(y) = result.as_float() else {
        return Ok(result);
    };
    if ty == x.ty {
        return Ok(x.encode());
    }
    let wider = unit(ty).0 < unit(x.ty).0;
    let error = x.bound();
    Ok(if wider {
        Tracked::with_error(y, ty, error).encode()
    } else {
        rounded(y, ty, error, 1.0).encode()
    })
}

/// The chosen value of a condition. An undecided one may choose the other.
pub(crate) fn select(cond: &Value, then: Value, otherwise: Value) -> Option<Value> {
    let (holds, open) = truth(cond)?;
    let (one, other) = if holds {
        (then, otherwise)
    } else {
        (otherwise, then)
    };
    Some(if open { unsure(&one, &other) } else { one })
}

/// A value that may also be another one.
fn unsure(one: &Value, other: &Value) -> Value {
    match (decode(one), decode(other)) {
        (Some(x), Some(y)) => {
            let distance = (x.value - y.value).abs() + y.bound();
            let distance = if distance.is_nan() {
                f64::INFINITY
            } else {
                distance
            };
            Tracked::with_error(x.value, x.ty, x.bound().max(distance)).encode()
        }
        _ => match (truth(one), truth(other), one, other) {
            (Some((a, a_open)), Some((b, b_open)), ..) => {
                encode_truth(a, a != b || a_open || b_open)
            }
            (_, _, Value::Tuple(a), Value::Tuple(b)) if a.len() == b.len() => {
                Value::Tuple(a.iter().zip(b.iter()).map(|(a, b)| unsure(a, b)).collect())
            }
            _ => one.clone(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(x: f32) -> Value {
        given(Value::F32(x), None)
    }

    fn error(value: &Value) -> f64 {
        split(value).1
    }

    const U: f64 = f32::EPSILON as f64 / 2.0;

    #[test]
    fn sums_are_measured_by_what_was_added() {
        let mut sum = f32s(1e6);
        for x in [1.0f32, -1e6, 2.0] {
            sum = binary(BinOp::Add, &sum, &f32s(x)).unwrap();
        }
        let (value, bound) = split(&sum);
        assert_eq!(value, Value::F32(3.0));
        let expect = 3.0 * U * 2_000_003.0;
        assert!((bound - expect).abs() < 1e-6 * expect, "{bound}");
    }

    #[test]
    fn the_order_of_a_sum_hardly_matters() {
        let total = |terms: &[f32]| {
            let terms = terms.iter().map(|x| f32s(*x));
            let sum = terms.reduce(|a, b| binary(BinOp::Add, &a, &b).unwrap());
            error(&sum.unwrap())
        };
        let up: Vec<f32> = (0..100).map(|k| (k as f32).exp2()).collect();
        let down: Vec<f32> = up.iter().rev().copied().collect();
        let (a, b) = (total(&up), total(&down));
        assert!((a - b).abs() < 1e-9 * a, "{a} {b}");
    }

    #[test]
    fn bounds_are_relative_to_what_is_compared() {
        for scale in [1e-12f32, 1.0, 1e12] {
            let x = binary(BinOp::Mul, &f32s(scale), &f32s(3.0)).unwrap();
            let y = binary(BinOp::Div, &x, &f32s(7.0)).unwrap();
            let relative = error(&y) / f64::from(scale * 3.0 / 7.0);
            assert!((U..20.0 * U).contains(&relative), "{relative}");
        }
        assert_eq!(error(&f32s(1e-9)), 0.0);
    }

    #[test]
    fn functions_stretch_errors() {
        let near_one = binary(BinOp::Sub, &f32s(1.5), &f32s(0.5)).unwrap();
        let log = unary(UnOp::Log, &near_one).unwrap();
        assert!(error(&log) >= 2.0 * U, "{}", error(&log));
        let zero = binary(BinOp::Sub, &f32s(1.0), &f32s(1.0)).unwrap();
        let root = unary(UnOp::Sqrt, &zero).unwrap();
        assert!(error(&root) >= (2.0 * U).sqrt() * 0.9 && error(&root) < 1e-3);
        let pole = binary(BinOp::Div, &f32s(1.0), &zero).unwrap();
        // It is infinite by the equations, and must be infinite.
        assert_eq!(split(&pole).0, Value::F32(f32::INFINITY));
    }

    #[test]
    fn an_open_choice_may_go_the_other_way() {
        let third = binary(BinOp::Div, &f32s(1.0), &f32s(3.0)).unwrap();
        let open = binary(BinOp::Lt, &third, &f32s(1.0 / 3.0)).unwrap();
        assert_eq!(truth(&open), Some((false, true)));
        let value = select(&open, f32s(10.0), f32s(4.0)).unwrap();
        assert_eq!(split(&value), (Value::F32(4.0), 6.0));
        let closed = binary(BinOp::Lt, &third, &f32s(0.5)).unwrap();
        assert_eq!(select(&closed, f32s(10.0), f32s(4.0)), Some(f32s(10.0)));
        let either = binary(BinOp::Or, &open, &closed).unwrap();
        assert_eq!(truth(&either), Some((true, false)));
        let smaller = binary(BinOp::Min, &f32s(-1.0), &third).unwrap();
        assert_eq!(error(&smaller), 0.0);
    }

    #[test]
    fn conversions_keep_errors() {
        let third = binary(BinOp::Div, &f32s(1.0), &f32s(3.0)).unwrap();
        let wide = cast(Scalar::F64, &third).unwrap();
        assert_eq!(error(&wide), error(&third));
        let narrow = cast(Scalar::F32, &wide).unwrap();
        assert!(error(&narrow) > error(&wide));
        assert_eq!(error(&cast(Scalar::F32, &Value::I32(7)).unwrap()), 0.0);
        let large = cast(Scalar::F32, &Value::I64(1 << 40 | 1)).unwrap();
        assert!(error(&large) > 0.0);
        assert_eq!(cast(Scalar::I32, &f32s(2.5)).unwrap(), Value::I32(2));
    }
}
