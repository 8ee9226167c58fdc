//! The problems without a GPU: the interpreter of kernels runs what would be compiled for one.

use std::collections::BTreeMap;
use std::path::Path;

use systola::interp::kernel::{Options, run_kernel_program};
use systola::interp::{self, Data as Elements, Tensor};
use systola::rt::HostArray;
use systola_driver::{cuda_machine, lower};

use super::arrays::{Array, Arrays, Values};
use super::case::{Case, Data, Group, Trial};
use super::{cases, fits, measure};

#[test]
fn filters_are_chosen_by_their_size() {
    assert!(fits("3", Some("3x3")) && fits("5x17", Some("5x17")) && fits("64", Some("64")));
    assert!(!fits("3", Some("13x13")) && !fits("3", None) && !fits("1", Some("1x9")));
}

/// Programs, mappings, inputs and references belong together.
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

fn interpret(
    root: &Path,
    case: &Case,
    mapping: &str,
    data: &Data,
    trial: &Trial,
) -> Result<(), String> {
    let module = measure::load(root, case.program)?;
    let mapping = module.mappings.iter().find(|m| m.name == mapping);
    let by_name: BTreeMap<String, i128> = trial
        .sizes
        .iter()
        .map(|(name, value)| ((*name).to_string(), i128::from(*value)))
        .collect();
    let fix = measure::fixed(case.fix);
    let mapping = mapping.ok_or("no such mapping")?;
    let lowered = lower(&module, mapping, &by_name, &fix, &cuda_machine());
    let program = lowered.map_err(|found| format!("{found:?}"))?.program;
    let sizes: Vec<i128> = program.params.iter().map(|p| by_name[&p.name]).collect();
    let inputs: interp::Arrays = data
        .inputs
        .iter()
        .map(|(name, array)| ((*name).to_string(), tensor(array)))
        .collect();
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
