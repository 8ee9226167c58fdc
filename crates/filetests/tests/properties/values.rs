//! Inputs of a system, and the comparison of two runs.

use systola_interp::compare::Expected;
use systola_interp::{Arrays, Tensor};
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

/// The same bits; where floats are regrouped, within what rounding may do.
pub fn compare(expected: &Expected, outputs: &Arrays, regroups: bool) -> Result<(), String> {
    if expected.arrays.keys().ne(outputs.keys()) {
        return Err("other outputs".into());
    }
    if regroups {
        let lines = systola_interp::compare::compare(expected, outputs);
        return lines.into_iter().try_for_each(|line| line.map(|_| ()));
    }
    for (name, want) in &expected.arrays {
        let got = &outputs[name];
        if want.ty() != got.ty() || want.shape != got.shape {
            return Err(format!("`{name}` has another type or shape"));
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
