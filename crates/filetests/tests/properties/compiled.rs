//! Some of the draws as code of a target: machine code of this machine, and CUDA C++ thread by thread.

use std::collections::BTreeMap;
use std::ops::Range;

use systola::cpu::Effort;
use systola::rt::Simd;
use systola::{CpuOptions, RunOptions};
use systola_driver::{Fix, check_mapping, cuda_machine, emit_cuda, load, lower};
use systola_filetests::draw::draw;
use systola_filetests::emulate::Emulated;
use systola_interp::{Arrays, expect_system};
use systola_ir::diag::Kind;
use systola_ir::mapping::Mapping;
use systola_ir::system::Module;

use crate::case::sizes;
use crate::values::{compare, inputs};

/// A mapping that is legal, with sizes and inputs.
struct Legal<'a> {
    seed: u64,
    /// Which of the mappings of the draw.
    n: u64,
    module: &'a Module,
    mapping: &'a Mapping,
    size: &'a BTreeMap<String, i128>,
    params: &'a [i128],
    inputs: &'a Arrays,
}

/// What a target made of a mapping: its outputs, and the source they came from.
enum Ran {
    Outputs(Arrays, String),
    Limited,
}

/// Holds what `run` makes of every legal mapping of some draws against the system. Answers how many were run, and how many
/// were beyond what is supported.
fn try_all(seeds: Range<u64>, run: impl Fn(&Legal<'_>) -> Result<Ran, String>) -> (u32, u32) {
    let (mut runs, mut limited) = (0, 0);
    for seed in seeds {
        let drawn = draw(seed, 2);
        let module = load(&drawn.text()).expect("it parses");
        let system = &module.systems[0];
        for (n, mapping) in module.mappings.iter().enumerate() {
            if check_mapping(&module, mapping, &BTreeMap::new()).is_err() {
                continue;
            }
            let size = sizes(&drawn).pop().unwrap_or_default();
            let params: Vec<i128> = system.param_names().iter().map(|p| size[p]).collect();
            let inputs = inputs(system, &params).expect("inputs");
            let context = format!("seed {seed}, mapping {n} at {size:?}");
            let legal = Legal {
                seed,
                n: n as u64,
                module: &module,
                mapping,
                size: &size,
                params: &params,
                inputs: &inputs,
            };
            match run(&legal).unwrap_or_else(|e| panic!("{context}: {e}")) {
                Ran::Limited => limited += 1,
                Ran::Outputs(got, source) => {
                    let expected = expect_system(system, &params, &inputs).expect("a legal system");
                    // A product that feeds a sum may be fused with it, so floats are compared up to the tolerance.
                    compare(&expected, &got, true)
                        .unwrap_or_else(|e| panic!("{context}: {e}\n{source}"));
                    runs += 1;
                }
            }
        }
    }
    (runs, limited)
}

/// The kernels of some of the same mappings as machine code, for vectors of this machine and short ones.
#[test]
fn machine_code_of_random_mappings_computes_what_the_system_computes() {
    let (runs, limited) = try_all(0..70, |legal| {
        let mut options = CpuOptions::new();
        options.effort = Effort::Little;
        if (legal.seed + legal.n).is_multiple_of(3) {
            options.simd = Simd::Portable;
        }
        let sizes = legal.size.iter();
        let named: Vec<(&str, i64)> = sizes.map(|(k, v)| (k.as_str(), *v as i64)).collect();
        let name = &legal.mapping.name;
        let compiled = match systola::compile(legal.module, name, &named, &options) {
            Ok(compiled) => compiled,
            Err(systola::cpu::Error::Refused(errors))
                if errors.iter().all(|e| e.kind() == Kind::Limitation) =>
            {
                return Ok(Ran::Limited);
            }
            Err(error) => return Err(error.to_string()),
        };
        let threads = 1 + (legal.seed % 3) as usize;
        let (got, _) = compiled
            .run_tensors(legal.params, legal.inputs, &RunOptions { threads })
            .map_err(|e| e.to_string())?;
        Ok(Ran::Outputs(got, compiled.source))
    });
    println!("{runs} mappings as machine code, {limited} limited");
    assert!(runs >= 60, "{runs} runs");
}

/// The CUDA C++ of other mappings, run thread by thread.
#[test]
fn cuda_of_random_mappings_computes_what_the_system_computes() {
    let (runs, limited) = try_all(100..130, |legal| {
        let machine = cuda_machine();
        let lowered = lower(
            legal.module,
            legal.mapping,
            legal.size,
            &Fix::Nothing,
            &machine,
        );
        let program = match lowered {
            Ok(lowered) => lowered.program,
            Err(errors) if errors.iter().all(|e| e.kind() == Kind::Limitation) => {
                return Ok(Ran::Limited);
            }
            Err(errors) => return Err(format!("{errors:?}")),
        };
        let artifact = emit_cuda(&program).map_err(|e| e.to_string())?;
        let narrow = (legal.seed + legal.n).is_multiple_of(2);
        let got = Emulated::compile(&program, &artifact, narrow)
            .and_then(|emulated| emulated.run(legal.params, legal.inputs))
            .map_err(|e| format!("{e}\n{}", artifact.source))?;
        Ok(Ran::Outputs(got, artifact.source))
    });
    println!("{runs} mappings as CUDA, {limited} limited");
    assert!(runs >= 25, "{runs} runs");
}
