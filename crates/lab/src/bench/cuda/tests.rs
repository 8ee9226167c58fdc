//! The problems without a GPU: the kernel interpreter runs the code that would be compiled for one.

use std::collections::BTreeMap;
use std::path::Path;

use systola::device::device_source;
use systola::interp::kernel::{Options, run_kernel_program};
use systola::interp::{self, Data as Elements, Tensor};
use systola::ir::system::Module;
use systola::rt::HostArray;
use systola::rt::cuda::{CudaCompileOptions, Resources, compile_only, nvrtc_version};
use systola::rt::device::Variant;
use systola_driver::{Fix, Machine, emit_cuda, lower};
use systola_filetests::read_back::read_back;
use systola_filetests::ways::{all_wanted, number};

use super::case::{Case, Data, Group, Trial};
use super::measure::{Job, Kernel};
use super::{cases, fits, measure};
use crate::arrays::{Array, Arrays, Values};

#[test]
fn filters_are_chosen_by_their_size() {
    assert!(fits("3", Some("3x3")) && fits("5x17", Some("5x17")) && fits("64", Some("64")));
    assert!(!fits("3", Some("13x13")) && !fits("3", None) && !fits("1", Some("1x9")));
}

/// Programs, mappings, inputs and references are consistent.
#[test]
fn every_small_case_is_right() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let arrays = Arrays::default();
    for group in Group::ALL {
        for case in cases(&root, group, true).unwrap().1 {
            let data = (case.make)(&arrays);
            let names = measure::mappings(&root, &case).unwrap();
            assert!(!names.is_empty(), "{}", case.name);
            for mapping in names {
                for trial in &data.trials {
                    let said = interpret(&root, &case, &mapping, &data, trial);
                    assert_eq!(said, Ok(()), "{} {mapping}", case.name);
                }
            }
        }
    }
}

/// The compiler for GPUs, which runs without one, spills nothing in timed kernels: in every third
/// one, or with `SYSTOLA_TESTS=all` in all of them.
#[test]
fn nothing_that_is_timed_spills() {
    if let Err(error) = nvrtc_version() {
        assert!(std::env::var_os("SYSTOLA_NVRTC").is_none(), "{error}");
        println!("skipped: {error}");
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut failures, mut timed) = (Vec::new(), 0);
    for group in Group::ALL {
        let cases = cases(&root, group, false).unwrap().1;
        let with_mappings = |(n, case)| {
            let mut names = measure::mappings(&root, case).unwrap();
            let mut m = n;
            names.retain(|_| {
                m += 1;
                all_wanted() || m % 3 == 1
            });
            (case, names)
        };
        let list: Vec<(&Case, Vec<String>)> = cases.iter().enumerate().map(with_mappings).collect();
        timed += list.iter().map(|(_, names)| names.len()).sum::<usize>();
        let compiled = measure::compile_all(&list, |job| resources(&root, job));
        for ((case, _), kernels) in list.iter().zip(compiled) {
            for Kernel { mapping, compiled } in kernels {
                match compiled {
                    Ok(all) if all.iter().all(|kernel| kernel.spilled == 0) => {}
                    other => failures.push(format!("{} {mapping}: {other:?}", case.name)),
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(timed > 20, "{timed}");
}

fn resources(root: &Path, job: Job<'_>) -> Result<Vec<Resources>, String> {
    let module = measure::load(root, job.program)?;
    let sizes = job.sizes.iter();
    let sizes = sizes.map(|(name, value)| ((*name).to_string(), i128::from(*value)));
    let mapping = module.mappings.iter().find(|m| m.name == job.mapping);
    let mapping = mapping.ok_or("no such mapping")?;
    let fix = measure::fixed(job.fix);
    let lowered = lower(&module, mapping, &sizes.collect(), &fix, &Machine::cuda());
    let lowered = lowered.map_err(|found| format!("{found:?}"))?;
    let artifact = emit_cuda(&lowered.program).map_err(|found| format!("{found:?}"))?;
    let source = device_source(artifact);
    let sizes = lowered.sizes.ok_or("sizes are missing")?;
    let variant = Variant::at(&lowered.program, &source.kernels, &sizes).unwrap();
    let options = CudaCompileOptions::default();
    let made = compile_only(&source.code, "sm_90", &variant, &options);
    Ok(made.map_err(|e| e.to_string())?.resources())
}

fn interpret(
    root: &Path,
    case: &Case,
    mapping: &str,
    data: &Data,
    trial: &Trial,
) -> Result<(), String> {
    let module = measure::load(root, case.program)?;
    interpret_in(&module, mapping, &measure::fixed(case.fix), data, trial)
}

/// Interprets the kernels for a GPU, and checks the results; a quarter of the mappings must be read as
/// they are printed.
pub fn interpret_in(
    module: &Module,
    mapping: &str,
    fix: &Fix,
    data: &Data,
    trial: &Trial,
) -> Result<(), String> {
    let mapping = module.mappings.iter().find(|m| m.name == mapping);
    let by_name: BTreeMap<String, i128> = trial
        .sizes
        .iter()
        .map(|(name, value)| ((*name).to_string(), i128::from(*value)))
        .collect();
    let mapping = mapping.ok_or("no such mapping")?;
    let lowered = lower(module, mapping, &by_name, fix, &Machine::cuda());
    let program = lowered.map_err(|found| format!("{found:?}"))?.program;
    let sizes: Vec<i128> = program.params.iter().map(|p| by_name[&p.name]).collect();
    let inputs: interp::Arrays = data
        .inputs
        .iter()
        .map(|(name, array)| ((*name).to_string(), tensor(array)))
        .collect();
    if all_wanted() || number(&mapping.system, &mapping.name).is_multiple_of(4) {
        read_back(&program)?;
    }
    let ran = run_kernel_program(&program, &sizes, &inputs, &Options::default());
    let outputs = ran.map_err(|e| e.to_string())?.outputs;
    for output in &trial.outputs {
        let got = host(&outputs[output.name]);
        if got.shape() != output.shape {
            return Err(format!("{} has the shape {:?}", output.name, got.shape()));
        }
        if let Some(fault) = (output.check)(&got) {
            return Err(fault);
        }
    }
    Ok(())
}

fn tensor(array: &Array) -> Tensor {
    Tensor {
        lo: vec![0; array.shape.len()],
        shape: array.shape.clone(),
        data: match &array.values {
            Values::F32(v) => Elements::F32(v.clone()),
            Values::F64(v) => Elements::F64(v.clone()),
            Values::U8(v) => Elements::U8(v.clone()),
            Values::I16(v) => Elements::I16(v.clone()),
            Values::I32(v) => Elements::I32(v.clone()),
        },
    }
}

fn host(tensor: &Tensor) -> HostArray {
    let shape = &tensor.shape;
    let array = match &tensor.data {
        Elements::F32(v) => HostArray::from_slice(v, shape),
        Elements::F64(v) => HostArray::from_slice(v, shape),
        Elements::I16(v) => HostArray::from_slice(v, shape),
        Elements::I32(v) => HostArray::from_slice(v, shape),
        Elements::Bool(_)
        | Elements::I8(_)
        | Elements::I64(_)
        | Elements::U8(_)
        | Elements::U16(_)
        | Elements::U32(_)
        | Elements::U64(_)
        | Elements::F16(_)
        | Elements::BF16(_) => panic!("no problem has such a result"),
    };
    array.unwrap()
}
