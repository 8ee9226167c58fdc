//! Are two results the same? Integers to the last bit, floats within a stated bound.

use systola_ir::Scalar;

use crate::params::show_index;
use crate::system::Arrays;
use crate::tensor::{Data, Difference, Tensor};
use crate::value::Value;

/// By how much two floats may differ, relative to the larger of 1 and both magnitudes. An array may
/// add in another order than the equations, where the program says so; this is 256 (for the narrow
/// types 32 and 8) units in the last place.
pub fn bound(ty: Scalar) -> f64 {
    match ty {
        Scalar::F64 => 256.0 * f64::EPSILON,
        Scalar::F32 => 256.0 * f64::from(f32::EPSILON),
        Scalar::F16 => 32.0 / 1024.0,
        Scalar::BF16 => 8.0 / 128.0,
        Scalar::Bool
        | Scalar::I8
        | Scalar::I16
        | Scalar::I32
        | Scalar::I64
        | Scalar::U8
        | Scalar::U16
        | Scalar::U32
        | Scalar::U64 => 0.0,
    }
}

/// What floats may differ by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// [`bound`], element by element: the same operations, at most in another order.
    Reordered,
    /// Compiled code may fuse products with sums, and where terms cancel, the last bits of the terms are all there
    /// is. So the measure is the largest magnitude of the array, and at least 1.
    Fused,
}

/// By how much floats of compiled code may differ, relative to the largest magnitude.
fn fused_bound(ty: Scalar) -> f64 {
    match ty {
        Scalar::F64 => 1e-12,
        Scalar::F32 => 1e-5,
        Scalar::F16
        | Scalar::BF16
        | Scalar::Bool
        | Scalar::I8
        | Scalar::I16
        | Scalar::I32
        | Scalar::I64
        | Scalar::U8
        | Scalar::U16
        | Scalar::U32
        | Scalar::U64 => bound(ty),
    }
}

/// One line for each output; `Err` where one differs.
pub fn compare(expect: &Arrays, found: &Arrays, rounding: Rounding) -> Vec<Result<String, String>> {
    expect
        .iter()
        .map(|(name, e)| match found.get(name) {
            None => Err(format!("{name}: missing")),
            Some(f) => compare_one(name, e, f, rounding),
        })
        .collect()
}

fn compare_one(
    name: &str,
    expect: &Tensor,
    found: &Tensor,
    rounding: Rounding,
) -> Result<String, String> {
    let count = expect.data.len();
    let (difference, bound) = match rounding {
        Rounding::Reordered => {
            let bound = bound(expect.ty());
            let text = format!("within {bound:.1e} (relative)");
            (expect.first_difference(found, bound), (bound, text))
        }
        Rounding::Fused => {
            let (bound, largest) = (fused_bound(expect.ty()), largest(expect));
            let shown = match largest {
                x if x < 1e6 => format!("{x:.3}"),
                x => format!("{x:.3e}"),
            };
            let text = format!("within {bound:.1e} of the largest magnitude, {shown}");
            let difference = first_apart(expect, found, bound * largest);
            (difference, (bound, text))
        }
    };
    match (difference, bound) {
        (None, (0.0, _)) => Ok(format!("{name}: {count} elements equal")),
        (None, (_, text)) => Ok(format!("{name}: {count} elements equal {text}")),
        (Some(Difference::Kind), _) => Err(format!("{name}: another shape or type")),
        (Some(Difference::Element { index, left, right }), (bound, text)) => {
            let allowed = match bound {
                0.0 => String::new(),
                _ => format!("; they may differ {text}"),
            };
            Err(format!(
                "{name}{}: {left} by the equations, {right} by the target{allowed}",
                show_index(&index)
            ))
        }
    }
}

/// The largest finite magnitude of an array, and at least 1.
fn largest(tensor: &Tensor) -> f64 {
    let finite = |most: f64, x: f64| {
        if x.is_finite() {
            most.max(x.abs())
        } else {
            most
        }
    };
    match &tensor.data {
        Data::F32(v) => v.iter().map(|x| f64::from(*x)).fold(1.0, finite),
        Data::F64(v) => v.iter().copied().fold(1.0, finite),
        data => (0..data.len())
            .filter_map(|at| data.get(at)?.as_float())
            .fold(1.0, finite),
    }
}

/// May an element of compiled code stand where another is expected? `largest`: the largest magnitude of the array.
pub fn is_fused_close(ty: Scalar, expect: &Value, found: &Value, largest: f64) -> bool {
    is_near(expect, found, fused_bound(ty) * largest.max(1.0))
}

fn is_near(left: &Value, right: &Value, most: f64) -> bool {
    match (left.as_float(), right.as_float()) {
        (Some(x), Some(y)) => floats_near(x, y, most),
        _ => left == right,
    }
}

fn floats_near(x: f64, y: f64, most: f64) -> bool {
    (x.is_nan() && y.is_nan()) || x == y || (x - y).abs() <= most
}

/// The first element by which two arrays are more than so much apart.
fn first_apart(expect: &Tensor, found: &Tensor, most: f64) -> Option<Difference> {
    if expect.shape != found.shape || expect.ty() != found.ty() {
        return Some(Difference::Kind);
    }
    let at = match (&expect.data, &found.data) {
        // Arrays of full size are compared: element by element through values takes ten times as long.
        (Data::F32(a), Data::F32(b)) => a
            .iter()
            .zip(b)
            .position(|(x, y)| x != y && !floats_near((*x).into(), (*y).into(), most)),
        (Data::F64(a), Data::F64(b)) => a
            .iter()
            .zip(b)
            .position(|(x, y)| x != y && !floats_near(*x, *y, most)),
        (Data::I32(a), Data::I32(b)) => a.iter().zip(b).position(|(x, y)| x != y),
        (a, b) => (0..a.len()).find(|at| match (a.get(*at), b.get(*at)) {
            (Some(x), Some(y)) => !is_near(&x, &y, most),
            _ => true,
        }),
    }?;
    Some(Difference::Element {
        index: expect.index_of(at),
        left: expect.data.get(at)?,
        right: found.data.get(at)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_by(rounding: Rounding, expect: Tensor, found: Tensor, same: bool) {
        let one = |t| Arrays::from([("z".to_string(), t)]);
        let lines = compare(&one(expect), &one(found), rounding);
        assert_eq!(lines[0].is_ok(), same, "{lines:?}");
    }

    fn check(expect: Tensor, found: Tensor, same: bool) {
        check_by(Rounding::Reordered, expect, found, same);
    }

    #[test]
    fn compiled_floats_are_measured_by_the_largest() {
        let check = |expect: Tensor, found: Tensor, same| {
            check_by(Rounding::Fused, expect, found, same);
        };
        let f32s = |v: &[f32]| Tensor::vector(v.to_vec());
        check(f32s(&[1000.0, 0.001]), f32s(&[1000.0, 0.002]), true);
        check(f32s(&[1000.0, 0.001]), f32s(&[1000.0, 0.1]), false);
        check(f32s(&[f32::NAN, 1.0]), f32s(&[f32::NAN, 1.0]), true);
        check(f32s(&[f32::NAN, 1.0]), f32s(&[1.0, 1.0]), false);
        check(f32s(&[f32::INFINITY]), f32s(&[f32::INFINITY]), true);
        check(f32s(&[f32::INFINITY]), f32s(&[3e38]), false);
        check(
            Tensor::vector(vec![7i32]),
            Tensor::vector(vec![8i32]),
            false,
        );
        check(
            Tensor::vector(vec![1.0f64]),
            Tensor::vector(vec![1.0 + 1e-11]),
            false,
        );
    }

    #[test]
    fn integers_are_exact_and_floats_are_close() {
        check(
            Tensor::vector(vec![1i32, 2]),
            Tensor::vector(vec![1i32, 2]),
            true,
        );
        check(
            Tensor::vector(vec![1i32, 2]),
            Tensor::vector(vec![1i32, 3]),
            false,
        );
        check(
            Tensor::vector(vec![1.0f32]),
            Tensor::vector(vec![1.000_001f32]),
            true,
        );
        check(
            Tensor::vector(vec![1.0f32]),
            Tensor::vector(vec![1.001f32]),
            false,
        );
        check(
            Tensor::vector(vec![1.0f64]),
            Tensor::vector(vec![1.000_001f64]),
            false,
        );
        check(Tensor::vector(vec![1u8]), Tensor::vector(vec![1u16]), false);
    }
}
