//! Results are compared within the error bound of each element, whatever the magnitudes of the
//! data.

use std::collections::BTreeMap;

use systola::RunOptions;
use systola_driver::{Fix, load, lower};
use systola_filetests::quick_cpu;
use systola_interp::compare::compare;
use systola_interp::kernel::{Options, run_kernel_program};
use systola_interp::{Arrays, Data, Tensor, expect_system};
use systola_ir::system::{Module, System};

/// A file of the gallery, a mapping, and sizes.
type Case = (&'static str, &'static str, &'static [(&'static str, i128)]);

/// Programs with sums that mappings reorder.
const SUMS: &[Case] = &[
    ("conv1d/core.ure", "sbm", &[("C", 100), ("Q", 7)]),
    ("conv1d/core.ure", "fsa", &[("C", 100), ("Q", 7)]),
    ("linear-algebra/matmul.ure", "output_stationary", &[]),
    ("scan/aggregate.ure", "at_once", &[("N", 60)]),
    ("scan/aggregate.ure", "downwards", &[("N", 60)]),
    ("scan/aggregate.ure", "blocks", &[("N", 60)]),
    ("scan/prefix_rows.ure", "", &[("B", 3), ("N", 100)]),
];

fn module(path: &str) -> Module {
    let path = format!("{}/../../gallery/{path}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    load(&text).unwrap_or_else(|e| panic!("{path}: {e:?}"))
}

/// Random numbers times 10 to the power that `power` gives for each.
fn scaled(system: &System, params: &[i128], power: impl Fn(usize) -> i32) -> Arrays {
    let inputs = system.inputs.iter().enumerate();
    let inputs = inputs.map(|(n, input)| {
        let tensor = Tensor::random(input.ty, &input.axes, params, 3 + n as u64);
        let mut tensor = tensor.unwrap();
        match &mut tensor.data {
            Data::F32(v) => {
                for (at, x) in v.iter_mut().enumerate() {
                    *x *= 10f32.powi(power(at));
                }
            }
            other => panic!("{} is {:?}", input.name, other.ty()),
        }
        (input.name.clone(), tensor)
    });
    inputs.collect()
}

/// A way to scale the elements of an array.
type Power = fn(usize) -> i32;

/// Tiny, huge, and both beside each other.
const POWERS: [(&str, Power); 4] = [
    ("1e-9", |_| -9),
    ("1", |_| 0),
    ("1e12", |_| 12),
    ("mixed", |at| {
        [0, 9, -9, 4, -4, 9, 0][at * 2_654_435_761 % 7]
    }),
];

#[test]
fn reordered_and_fused_sums_stay_within_their_bounds() {
    for (path, name, sizes) in SUMS {
        let module = module(path);
        let mapping = module
            .mappings
            .iter()
            .find(|m| name.is_empty() || m.name == *name);
        let mapping = mapping.unwrap_or_else(|| panic!("{path} has no {name}"));
        let system = module
            .systems
            .iter()
            .find(|s| s.name == mapping.system)
            .unwrap();
        let names = system.param_names();
        let size = |name: &String| {
            let given = sizes.iter().find(|(n, _)| n == name);
            given.map_or(13, |(_, v)| *v)
        };
        let named: BTreeMap<String, i128> = names.iter().map(|n| (n.clone(), size(n))).collect();
        let params: Vec<i128> = names.iter().map(size).collect();
        let options = quick_cpu();
        let lowered = lower(&module, mapping, &named, &Fix::Nothing, &options.machine()).unwrap();
        let program = lowered.program.clone();
        let compiled = systola::cpu::compile_lowered(lowered, &options).unwrap();
        for (scale, power) in POWERS {
            let context = format!("{path} {name}, data of {scale}");
            let inputs = scaled(system, &params, power);
            let expected = expect_system(system, &params, &inputs).unwrap();
            let (found, _) = compiled
                .run_tensors(&params, &inputs, &RunOptions::default())
                .unwrap();
            let kernel = run_kernel_program(&program, &params, &inputs, &Options::default());
            for found in [found, kernel.unwrap().outputs] {
                for line in compare(&expected, &found) {
                    line.unwrap_or_else(|e| panic!("{context}: {e}"));
                }
                // An error of a thousandth of any element is detected, unless the terms of its sum
                // are much larger.
                let mut caught = 0;
                let mut seen = 0;
                for (output, tensor) in &found {
                    let Data::F32(values) = &tensor.data else {
                        panic!("{output} is of another type")
                    };
                    for at in 0..values.len() {
                        let mut wrong = values.clone();
                        wrong[at] *= 1.001;
                        let mut changed = found.clone();
                        changed.get_mut(output).unwrap().data = Data::F32(wrong);
                        seen += usize::from(values[at] != 0.0);
                        caught +=
                            usize::from(compare(&expected, &changed).iter().any(Result::is_err));
                    }
                }
                // A single element may be the rest of a cancellation.
                assert!(
                    caught * 10 >= seen * 7 || seen < 10,
                    "{context}: {caught} of {seen} are found"
                );
            }
        }
    }
}
