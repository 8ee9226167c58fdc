//! Compares results: integers exactly, floats within error bounds.

use std::collections::BTreeMap;

use systola_ir::Scalar;

use crate::params::show_index;
use crate::rounding::SIDES;
use crate::system::Arrays;
use crate::tensor::{Data, Tensor};
use crate::value::Value;

/// The results of the equations, with an error bound of each float, see
/// [`rounding`](crate::rounding).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expected {
    pub arrays: Arrays,
    /// Bounds of the elements of each array in row-major order; empty where they are exact.
    pub bounds: BTreeMap<String, Vec<f64>>,
}

/// One line for each output; `Err` where one differs.
pub fn compare(expect: &Expected, found: &Arrays) -> Vec<Result<String, String>> {
    let compared = expect.arrays.iter().map(|(name, array)| {
        let Some(other) = found.get(name) else {
            return Err(format!("{name}: missing"));
        };
        let none = Vec::new();
        let bounds = expect.bounds.get(name).unwrap_or(&none);
        compare_one(name, array, other, |at| {
            SIDES * bounds.get(at).copied().unwrap_or(0.0)
        })
    });
    compared.collect()
}

/// Compares two compiled results of the same computation, neither of which is the reference.
/// `least`: the minimum tolerance of each output.
pub fn compare_two(
    first: &Arrays,
    second: &Arrays,
    least: &BTreeMap<String, f64>,
) -> Vec<Result<String, String>> {
    let compared = first.iter().map(|(name, array)| {
        let Some(other) = second.get(name) else {
            return Err(format!("{name}: missing"));
        };
        let least = least.get(name).copied().unwrap_or(f64::INFINITY);
        compare_one(name, array, other, |_| SIDES * least)
    });
    compared.collect()
}

/// Is an element within `bound` of the expected one?
pub fn is_close(expect: &Value, found: &Value, bound: f64) -> bool {
    match (expect.as_float(), found.as_float()) {
        (Some(x), Some(y)) => floats_near(x, y, SIDES * bound),
        _ => expect == found,
    }
}

fn floats_near(x: f64, y: f64, most: f64) -> bool {
    (x.is_nan() && y.is_nan())
        || x == y
        || (x - y).abs() <= most
        || (!y.is_nan() && most == f64::INFINITY)
}

/// `most`: the tolerance of an element, by its position.
fn compare_one(
    name: &str,
    expect: &Tensor,
    found: &Tensor,
    most: impl Fn(usize) -> f64,
) -> Result<String, String> {
    if expect.shape != found.shape || expect.ty() != found.ty() {
        return Err(format!("{name}: another shape or type"));
    }
    let count = expect.data.len();
    let Some(at) = first_beyond(&expect.data, &found.data, &most) else {
        return Ok(match expect.ty().is_float() {
            false => format!("{name}: {count} elements equal"),
            true => format!("{name}: {count} elements equal{}", widest(expect, most)),
        });
    };
    let shown = |data: &Data| data.get(at).map_or_else(String::new, |v| v.to_string());
    let allowed = match expect.ty().is_float() {
        false => String::new(),
        true => format!("; rounding may make {:.1e} of difference", most(at)),
    };
    Err(format!(
        "{name}{}: {} by the equations, {} by the target{allowed}",
        show_index(&expect.index_of(at)),
        shown(&expect.data),
        shown(&found.data)
    ))
}

/// Of longer arrays, a message is about this many elements, at equal distances.
const TYPICAL: usize = 1 << 20;

/// The tolerance for messages, relative to each element.
fn widest(expect: &Tensor, most: impl Fn(usize) -> f64) -> String {
    let step = expect.data.len().div_ceil(TYPICAL).max(1);
    let relative = (0..expect.data.len()).step_by(step).filter_map(|at| {
        let value = expect.data.get(at)?.as_float()?.abs();
        (value > 0.0 && value.is_finite()).then(|| most(at) / value)
    });
    let mut relative: Vec<f64> = relative.filter(|r| !r.is_nan()).collect();
    if relative.iter().all(|r| *r == 0.0) {
        return String::new();
    }
    let middle = relative.len() / 2;
    let (_, middle, _) = relative.select_nth_unstable_by(middle, f64::total_cmp);
    format!(" within what rounding may do, {middle:.1e} of an element")
}

/// The first element at which two arrays differ by more than the tolerance.
fn first_beyond(expect: &Data, found: &Data, most: &impl Fn(usize) -> f64) -> Option<usize> {
    match (expect, found) {
        // A typed fast path: comparing by `Value` takes ten times as long.
        (Data::F32(a), Data::F32(b)) => a
            .iter()
            .zip(b)
            .enumerate()
            .position(|(at, (x, y))| x != y && !floats_near((*x).into(), (*y).into(), most(at))),
        (Data::F64(a), Data::F64(b)) => a
            .iter()
            .zip(b)
            .enumerate()
            .position(|(at, (x, y))| x != y && !floats_near(*x, *y, most(at))),
        (Data::I32(a), Data::I32(b)) => a.iter().zip(b).position(|(x, y)| x != y),
        (a, b) => (0..a.len()).find(|at| match (a.get(*at), b.get(*at)) {
            (Some(x), Some(y)) => match (x.as_float(), y.as_float()) {
                (Some(x), Some(y)) => !floats_near(x, y, most(*at)),
                _ => x != y,
            },
            _ => true,
        }),
    }
}

/// The tolerance of a float without error tracking, relative to the largest magnitude of its array.
pub fn usual(ty: Scalar) -> f64 {
    match ty {
        Scalar::F64 => 1e-12,
        Scalar::F32 => 1e-5,
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

/// The largest finite magnitude of an array.
pub fn largest(tensor: &Tensor) -> f64 {
    let finite = |most: f64, x: f64| {
        if x.is_finite() {
            most.max(x.abs())
        } else {
            most
        }
    };
    match &tensor.data {
        Data::F32(v) => v.iter().map(|x| f64::from(*x)).fold(0.0, finite),
        Data::F64(v) => v.iter().copied().fold(0.0, finite),
        data => (0..data.len())
            .filter_map(|at| data.get(at)?.as_float())
            .fold(0.0, finite),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expect: Tensor, bounds: &[f64], found: Tensor, same: bool) {
        let one = |t| Arrays::from([("z".to_string(), t)]);
        let expect = Expected {
            arrays: one(expect),
            bounds: BTreeMap::from([("z".to_string(), bounds.to_vec())]),
        };
        let lines = compare(&expect, &one(found));
        assert_eq!(lines[0].is_ok(), same, "{lines:?}");
    }

    fn f32s(v: &[f32]) -> Tensor {
        Tensor::vector(v.to_vec())
    }

    #[test]
    fn each_element_has_its_bound() {
        let (x, bounds) = ([1e9f32, 1e-9], [100.0, 1e-16]);
        check(f32s(&x), &bounds, f32s(&[1e9 + 128.0, 1e-9]), true);
        check(f32s(&x), &bounds, f32s(&[1e9 + 1024.0, 1e-9]), false);
        check(f32s(&x), &bounds, f32s(&[1e9, 1.001e-9]), false);
        check(f32s(&x), &[], f32s(&[1e9, 1e-9]), true);
        check(f32s(&[0.0]), &[], f32s(&[-0.0]), true);
    }

    #[test]
    fn what_is_no_number_must_be_the_same() {
        let (nan, infinite) = (f32::NAN, f32::INFINITY);
        check(f32s(&[nan, 1.0]), &[0.0; 2], f32s(&[nan, 1.0]), true);
        check(f32s(&[nan]), &[1.0], f32s(&[1.0]), false);
        check(f32s(&[1.0]), &[f64::INFINITY], f32s(&[nan]), false);
        check(f32s(&[infinite]), &[0.0], f32s(&[infinite]), true);
        check(f32s(&[infinite]), &[1.0], f32s(&[3e38]), false);
    }

    #[test]
    fn integers_are_exact() {
        let ints = |v: &[i32]| Tensor::vector(v.to_vec());
        check(ints(&[1, 2]), &[], ints(&[1, 2]), true);
        check(ints(&[1, 2]), &[], ints(&[1, 3]), false);
        check(
            Tensor::vector(vec![1u8]),
            &[],
            Tensor::vector(vec![1u16]),
            false,
        );
    }
}
