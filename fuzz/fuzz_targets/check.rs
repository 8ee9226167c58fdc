//! Any program is checked without a panic, and what is called legal runs and computes what its system
//! says, at tiny sizes.
//!
//! `cargo +nightly fuzz run check fuzz/corpus/check gallery crates/filetests/tests/bad`

#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use systola_driver::{check_mapping, check_system, load};
use systola_interp::{Arrays, Tensor, run_array, run_system};
use systola_ir::codes::run;
use systola_ir::system::{InputKind, System};

/// Larger arrays are checked and not run.
const MOST_POINTS: i128 = 2_000;

fuzz_target!(|source: &str| {
    let Ok(module) = load(source) else { return };
    for system in &module.systems {
        let Some(sizes) = tiny(system) else { continue };
        let none = BTreeMap::new();
        let sound = check_system(system, &none).is_empty() && check_system(system, &sizes).is_empty();
        for mapping in module.mappings.iter().filter(|m| m.system == system.name) {
            let for_all = check_mapping(&module, mapping, &none);
            let checked = check_mapping(&module, mapping, &sizes);
            if let (Ok(_), Err(errors)) = (&for_all, &checked) {
                panic!("legal for all sizes, refused at {sizes:?}: {errors:?}");
            }
            let Ok(checked) = checked else { continue };
            let points = checked.report.counts.as_ref().map_or(0, |c| c.expanded);
            if !sound || points > MOST_POINTS {
                continue;
            }
            let params: Vec<i128> = system.params.iter().map(|p| sizes[&p.name]).collect();
            let Some(inputs) = inputs(system, &params) else { continue };
            let Ok(expected) = run_system(system, &params, &inputs) else { continue };
            match run_array(&checked.array, &params, &inputs) {
                Ok(outputs) => {
                    for (name, want) in &expected {
                        let difference = want.first_difference(&outputs[name], 1e-3);
                        assert!(difference.is_none(), "`{name}` differs: {difference:?}");
                    }
                }
                Err(error) if error.code == &run::TOO_LARGE => {}
                Err(error) => panic!("`{}` is legal and does not run: {error}", mapping.name),
            }
        }
    }
});

/// Small sizes in the context, if there are any.
fn tiny(system: &System) -> Option<BTreeMap<String, i128>> {
    let names = system.param_names();
    let context = system.context_cond();
    let fits = |value: &i128| context.eval(&vec![*value; names.len()], &[]) == Ok(true);
    let value = [3, 4, 2, 1, 8].into_iter().find(fits)?;
    Some(names.into_iter().map(|name| (name, value)).collect())
}

fn inputs(system: &System, params: &[i128]) -> Option<Arrays> {
    let mut arrays = Arrays::new();
    for input in &system.inputs {
        if matches!(&input.kind, InputKind::Table { data: Some(_) }) {
            continue;
        }
        let mut size = 1i128;
        for axis in &input.axes {
            let extent = axis.hi.eval(params, &[]).ok()? - axis.lo.eval(params, &[]).ok()?;
            size = size.checked_mul(extent.max(0))?;
        }
        if size > 10_000 {
            return None;
        }
        let tensor = Tensor::random(input.ty, &input.axes, params, 3).ok()?;
        arrays.insert(input.name.clone(), tensor);
    }
    Some(arrays)
}
