//! Inputs of a system, and whether two runs gave the same.

use systola_interp::{Arrays, Tensor};
use systola_ir::Scalar;
use systola_ir::system::{InputKind, System};

pub fn inputs(system: &System, params: &[i128]) -> Result<Arrays, String> {
    let mut arrays = Arrays::new();
    for (n, input) in system.inputs.iter().enumerate() {
        if matches!(&input.kind, InputKind::Table { data: Some(_) }) {
            continue;
        }
        let seed = 17 + n as u64;
        let tensor = Tensor::random(input.ty, &input.axes, params, seed)
            .map_err(|e| format!("input {}: {e}", input.name))?;
        arrays.insert(input.name.clone(), tensor);
    }
    Ok(arrays)
}

/// How far apart two orders of one sum may end, relative to the larger value (and at least 1): sums of
/// a few hundred terms of at most 8, each addition rounding once.
fn tolerance(ty: Scalar) -> f64 {
    match ty {
        Scalar::F32 => 1e-3,
        _ => 1e-11,
    }
}

pub fn compare(expected: &Arrays, outputs: &Arrays, regroups: bool) -> Result<(), String> {
    if expected.keys().ne(outputs.keys()) {
        return Err("other outputs".into());
    }
    for (name, want) in expected {
        let got = &outputs[name];
        if want.ty() != got.ty() || want.shape != got.shape {
            return Err(format!("`{name}` has another type or shape"));
        }
        if want.ty().is_float() && regroups {
            if let Some(difference) = want.first_difference(got, tolerance(want.ty())) {
                return Err(format!("`{name}` differs: {difference:?}"));
            }
            continue;
        }
        for at in 0..want.data.len() {
            let (a, b) = (want.data.get(at), got.data.get(at));
            let same = match (&a, &b) {
                (Some(a), Some(b)) => a.is_identical(b),
                _ => false,
            };
            if !same {
                return Err(format!("`{name}` differs at {at}: {a:?} and {b:?}"));
            }
        }
    }
    Ok(())
}
