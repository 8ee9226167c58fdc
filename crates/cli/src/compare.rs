//! Are two results the same? Integers to the last bit, floats within a stated bound.

use systola_interp::Arrays;
use systola_interp::tensor::{Difference, Tensor};
use systola_ir::Scalar;

use crate::render::vector;

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

/// One line for each output; `Err` where one differs.
pub fn compare(expect: &Arrays, found: &Arrays) -> Vec<Result<String, String>> {
    expect
        .iter()
        .map(|(name, e)| match found.get(name) {
            None => Err(format!("{name}: missing")),
            Some(f) => compare_one(name, e, f),
        })
        .collect()
}

fn compare_one(name: &str, expect: &Tensor, found: &Tensor) -> Result<String, String> {
    let bound = bound(expect.ty());
    match expect.first_difference(found, bound) {
        None if bound == 0.0 => Ok(format!("{name}: {} elements equal", expect.data.len())),
        None => Ok(format!(
            "{name}: {} elements equal within {bound:.1e} (relative)",
            expect.data.len()
        )),
        Some(Difference::Kind) => Err(format!("{name}: another shape or type")),
        Some(Difference::Element { index, left, right }) => Err(format!(
            "{name}{}: {left} by the equations, {right} by the array",
            vector(&index)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expect: Tensor, found: Tensor, same: bool) {
        let one = |t| Arrays::from([("z".to_string(), t)]);
        let lines = compare(&one(expect), &one(found));
        assert_eq!(lines[0].is_ok(), same, "{lines:?}");
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
