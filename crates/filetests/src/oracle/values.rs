//! Inputs of a system, and the comparison of two runs.

use systola_interp::tensor::split_mix;
use systola_interp::value;
use systola_interp::{Arrays, Tensor, Value};
use systola_ir::Scalar;
use systola_ir::scalar::Literal;
use systola_ir::system::{Axis, InputKind, System};

/// Random inputs: floats are small multiples of 1/8, so that sums and a few products are exact in
/// any order; some of the integers are the extremes of their type.
pub(super) fn inputs(system: &System, params: &[i128], seed: u64) -> Result<Arrays, String> {
    let mut arrays = Arrays::new();
    for (n, input) in system.inputs.iter().enumerate() {
        if matches!(&input.kind, InputKind::Table { data: Some(_) }) {
            continue;
        }
        let tensor = random(input.ty, &input.axes, params, seed.wrapping_add(n as u64))
            .map_err(|e| format!("input {}: {e}", input.name))?;
        arrays.insert(input.name.clone(), tensor);
    }
    Ok(arrays)
}

pub(super) fn random(
    ty: Scalar,
    axes: &[Axis],
    params: &[i128],
    seed: u64,
) -> Result<Tensor, String> {
    let mut tensor = Tensor::zeros(ty, axes, params).map_err(|e| e.to_string())?;
    let mut state = seed.wrapping_mul(0x2545_f491_4f6c_dd1d);
    let extremes = split_mix(&mut state).is_multiple_of(3);
    for at in 0..tensor.data.len() {
        let draw = split_mix(&mut state);
        let value = element(ty, draw, extremes);
        tensor.data.set(at, &value);
    }
    Ok(tensor)
}

fn element(ty: Scalar, draw: u64, extremes: bool) -> Value {
    let small = (draw >> 8) % 64;
    let literal = match ty.int_range() {
        None if ty == Scalar::Bool => Literal::Bool(draw & 256 != 0),
        None => Literal::Float((small as f64 - 32.0) / 8.0),
        Some((least, greatest)) => {
            let number = match (draw & 7, extremes) {
                (0, true) => least,
                (1, true) => greatest,
                (2, true) => greatest / 2 + 1,
                _ if least < 0 => i128::from(small) % 16 - 8,
                _ => i128::from(small) % 16,
            };
            Literal::Int(number)
        }
    };
    value::literal(ty, literal)
}

/// The tolerance between the results of inexact operations, relative to the larger value (and at
/// least 1).
fn tolerance(ty: Scalar) -> f64 {
    match ty {
        Scalar::F32 => 1e-3,
        _ => 1e-11,
    }
}

/// Exact floats are the same numbers; 0 and -0 are one.
fn same_number(a: &Value, b: &Value) -> bool {
    match (a.to_f64(), b.to_f64()) {
        (Some(a), Some(b)) => a == b || (a.is_nan() && b.is_nan()),
        _ => false,
    }
}

/// The first difference. `close`: floats were computed by operations that round.
pub(super) fn compare(expected: &Arrays, found: &Arrays, close: bool) -> Result<(), String> {
    if expected.keys().ne(found.keys()) {
        return Err("other outputs".into());
    }
    for (name, want) in expected {
        let got = &found[name];
        if want.ty() != got.ty() || want.shape != got.shape {
            return Err(format!("`{name}` has another type or shape"));
        }
        let is_float = want.ty().is_float();
        if is_float && close {
            if let Some(difference) = want.first_difference(got, tolerance(want.ty())) {
                return Err(format!("`{name}` differs: {difference:?}"));
            }
            continue;
        }
        for at in 0..want.data.len() {
            let (a, b) = (want.data.get(at), got.data.get(at));
            let same = match (&a, &b) {
                (Some(a), Some(b)) if is_float => same_number(a, b),
                (Some(a), Some(b)) => a.is_identical(b),
                _ => false,
            };
            if !same {
                let index = want.index_of(at);
                return Err(format!(
                    "`{name}` differs at {index:?}: {a:?} is right, {b:?} was found"
                ));
            }
        }
    }
    Ok(())
}
