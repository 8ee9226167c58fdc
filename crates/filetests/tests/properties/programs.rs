//! Small programs that once failed somewhere, on every target: `programs/*.ure`, each named for its
//! idea.

use std::collections::BTreeMap;

use systola::opencl::compile_opencl;
use systola::{OpenClOptions, RunOptions, compile};
use systola_driver::{Fix, Machine, check_mapping, emit_cuda, load, lower};
use systola_filetests::emulate::Emulated;
use systola_filetests::quick_cpu;
use systola_interp::{Arrays, expect_system};
use systola_ir::mapping::Mapping;
use systola_ir::system::{Module, System};

use crate::devices::device;
use crate::values::{compare, inputs};

const PROGRAMS: [(&str, &str); 2] = [
    ("halves", include_str!("programs/halves.ure")),
    ("functions", include_str!("programs/functions.ure")),
];

/// Runs a mapping at some sizes, in the order of the parameters.
type Runner<'a> = Box<dyn Fn(&[i128], &Arrays) -> Result<Arrays, String> + 'a>;

/// Sizes of all parameters.
const SIZES: [i64; 3] = [1, 5, 19];

/// Compares the result of every mapping on a target with the system; `make` gets whether it is the
/// first of its system.
fn on_all<'a>(
    modules: &'a [(&'static str, Module)],
    make: impl Fn(&'a Module, &'a Mapping, bool) -> Result<Option<Runner<'a>>, String>,
) {
    let mut runs = 0;
    for (file, module) in modules {
        let mut seen = Vec::new();
        for mapping in &module.mappings {
            let is_first = !seen.contains(&&mapping.system);
            seen.push(&mapping.system);
            let system = find(module, &mapping.system);
            let context = format!("{file}: {}", mapping.name);
            let made = make(module, mapping, is_first).unwrap_or_else(|e| panic!("{context}: {e}"));
            let Some(run) = made else { continue };
            for size in SIZES {
                let params = vec![i128::from(size); system.param_names().len()];
                let inputs = inputs(system, &params).expect("inputs");
                let got = run(&params, &inputs);
                let got = got.unwrap_or_else(|e| panic!("{context} at {size}: {e}"));
                let want = expect_system(system, &params, &inputs).expect("a legal system");
                compare(&want, &got, true).unwrap_or_else(|e| panic!("{context} at {size}: {e}"));
                runs += 1;
            }
        }
    }
    assert!(runs >= 12, "{runs} runs");
}

fn modules() -> Vec<(&'static str, Module)> {
    let parsed = |(file, text): (&'static str, &str)| {
        let module = load(text).unwrap_or_else(|e| panic!("{file}: {e:?}"));
        (file, module)
    };
    PROGRAMS.into_iter().map(parsed).collect()
}

/// One size for all parameters.
fn sizes<'a>(module: &'a Module, mapping: &Mapping) -> Vec<(&'a str, i64)> {
    let params = &find(module, &mapping.system).params;
    params.iter().map(|p| (p.name.as_str(), SIZES[1])).collect()
}

fn find<'a>(module: &'a Module, name: &str) -> &'a System {
    let found = module.systems.iter().find(|s| s.name == name);
    found.expect("a system of this name")
}

#[test]
fn they_are_legal() {
    for (file, module) in modules() {
        for mapping in &module.mappings {
            let checked = check_mapping(&module, mapping, &BTreeMap::new());
            assert!(checked.is_ok(), "{file}: {}: {checked:?}", mapping.name);
        }
    }
}

#[test]
fn machine_code_computes_what_they_say() {
    on_all(&modules(), |module, mapping, _| {
        let options = quick_cpu();
        let compiled = compile(module, &mapping.name, &sizes(module, mapping), &options);
        let compiled = compiled.map_err(|e| e.to_string())?;
        Ok(Some(Box::new(move |params, inputs| {
            let ran = compiled.run_tensors(params, inputs, &RunOptions { threads: 1 });
            ran.map(|(got, _)| got).map_err(|e| e.to_string())
        })))
    });
}

#[test]
fn cuda_computes_what_they_say() {
    on_all(&modules(), |module, mapping, _| {
        let sizes = sizes(module, mapping).into_iter();
        let sizes = sizes.map(|(name, n)| (name.to_string(), i128::from(n)));
        let machine = Machine::cuda();
        let lowered = lower(module, mapping, &sizes.collect(), &Fix::Nothing, &machine);
        let program = lowered.map_err(|e| format!("{e:?}"))?.program;
        let artifact = emit_cuda(&program).map_err(|e| e.to_string())?;
        let emulated = Emulated::compile(&program, &artifact, true)?;
        Ok(Some(Box::new(move |params, inputs| {
            emulated.run(params, inputs)
        })))
    });
}

/// The first mapping of each system on both kinds of devices, each of the others on one.
#[test]
fn opencl_computes_what_they_say() {
    for (what, shuffles) in [("with sub-groups", true), ("without sub-groups", false)] {
        let Some(device) = device(what, |info| info.shuffles.is_some() == shuffles) else {
            continue;
        };
        on_all(&modules(), |module, mapping, is_first| {
            if !is_first && mapping.name.len().is_multiple_of(2) == shuffles {
                return Ok(None);
            }
            let options = OpenClOptions {
                device,
                ..OpenClOptions::new()
            };
            let sizes = sizes(module, mapping);
            let compiled = compile_opencl(module, &mapping.name, &sizes, &options);
            let compiled = compiled.map_err(|e| e.to_string())?;
            Ok(Some(Box::new(move |params, inputs| {
                let ran = compiled.run_tensors(params, inputs);
                ran.map(|(got, _)| got).map_err(|e| e.to_string())
            })))
        });
    }
}
