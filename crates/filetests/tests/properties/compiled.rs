//! Some of the draws as code of a target: machine code of this machine, and CUDA C++ thread by thread.

use std::collections::BTreeMap;

use systola::cpu::Effort;
use systola::rt::Simd;
use systola::{CpuOptions, RunOptions};
use systola_driver::{Fix, check_mapping, cuda_machine, emit_cuda, load, lower};
use systola_filetests::draw::draw;
use systola_filetests::emulate::Emulated;
use systola_interp::run_system;
use systola_ir::diag::Kind;

use crate::case::sizes;
use crate::values::{compare, inputs};

/// The kernels of some of the same mappings as machine code, for vectors of this machine and short ones.
#[test]
fn machine_code_of_random_mappings_computes_what_the_system_computes() {
    let (mut runs, mut limited) = (0, 0);
    for seed in 0..70 {
        let drawn = draw(seed, 2);
        let module = load(&drawn.text()).expect("it parses");
        let system = &module.systems[0];
        for (n, mapping) in module.mappings.iter().enumerate() {
            if check_mapping(&module, mapping, &BTreeMap::new()).is_err() {
                continue;
            }
            let mut options = CpuOptions::new();
            options.effort = Effort::Little;
            if (seed + n as u64).is_multiple_of(3) {
                options.simd = Simd::Portable;
            }
            let size = sizes(&drawn).pop().unwrap_or_default();
            let named: Vec<(&str, i64)> =
                size.iter().map(|(k, v)| (k.as_str(), *v as i64)).collect();
            let context = format!("seed {seed}, mapping {n} at {size:?}");
            let compiled = match systola::compile(&module, &mapping.name, &named, &options) {
                Ok(compiled) => compiled,
                Err(systola::cpu::Error::Refused(errors))
                    if errors.iter().all(|e| e.kind() == Kind::Limitation) =>
                {
                    limited += 1;
                    continue;
                }
                Err(error) => panic!("{context}: {error}"),
            };
            let params: Vec<i128> = system.param_names().iter().map(|p| size[p]).collect();
            let inputs = inputs(system, &params).expect("inputs");
            let expected = run_system(system, &params, &inputs).expect("a legal system");
            let threads = 1 + (seed % 3) as usize;
            let (got, _) = compiled
                .run_tensors(&params, &inputs, &RunOptions { threads })
                .unwrap_or_else(|e| panic!("{context}: {e}"));
            // A product that feeds a sum may be fused with it, so floats are compared up to the tolerance.
            compare(&expected, &got, true)
                .unwrap_or_else(|e| panic!("{context}: {e}\n{}", compiled.source));
            runs += 1;
        }
    }
    println!("{runs} mappings as machine code, {limited} limited");
    assert!(runs >= 60, "{runs} runs");
}

/// The CUDA C++ of other mappings, run thread by thread.
#[test]
fn cuda_of_random_mappings_computes_what_the_system_computes() {
    let (mut runs, mut limited) = (0, 0);
    for seed in 100..130 {
        let drawn = draw(seed, 2);
        let module = load(&drawn.text()).expect("it parses");
        let system = &module.systems[0];
        for (n, mapping) in module.mappings.iter().enumerate() {
            if check_mapping(&module, mapping, &BTreeMap::new()).is_err() {
                continue;
            }
            let size = sizes(&drawn).pop().unwrap_or_default();
            let context = format!("seed {seed}, mapping {n} at {size:?}");
            let lowered = lower(&module, mapping, &size, &Fix::Nothing, &cuda_machine());
            let program = match lowered {
                Ok(lowered) => lowered.program,
                Err(errors) if errors.iter().all(|e| e.kind() == Kind::Limitation) => {
                    limited += 1;
                    continue;
                }
                Err(errors) => panic!("{context}: {errors:?}"),
            };
            let artifact = emit_cuda(&program).unwrap_or_else(|e| panic!("{context}: {e}"));
            let narrow = (seed + n as u64).is_multiple_of(2);
            let emulated = Emulated::compile(&program, &artifact, narrow)
                .unwrap_or_else(|e| panic!("{context}: {e}\n{}", artifact.source));
            let params: Vec<i128> = system.param_names().iter().map(|p| size[p]).collect();
            let inputs = inputs(system, &params).expect("inputs");
            let expected = run_system(system, &params, &inputs).expect("a legal system");
            let got = emulated
                .run(&params, &inputs)
                .unwrap_or_else(|e| panic!("{context}: {e}\n{}", artifact.source));
            compare(&expected, &got, true)
                .unwrap_or_else(|e| panic!("{context}: {e}\n{}", artifact.source));
            runs += 1;
        }
    }
    println!("{runs} mappings as CUDA, {limited} limited");
    assert!(runs >= 25, "{runs} runs");
}
