//! Equations without a value: every target ends with the code of the equations, at a point that has
//! no value, and lanes without a point never fault.

use std::collections::BTreeMap;

use systola::Simd;
use systola::opencl::compile_opencl;
use systola::rt::simd;
use systola::{CpuOptions, OpenClOptions, RunOptions};
use systola_driver::{Fix, Machine, emit_cuda, load, lower};
use systola_filetests::emulate::Emulated;
use systola_filetests::quick_cpu;
use systola_interp::kernel::{Options, RunError, run_kernel_program};
use systola_interp::{Arrays, Tensor, run_array, run_system, value};
use systola_ir::kernel::{Program, RaisedFault};
use systola_ir::mapping::Mapping;
use systola_ir::system::{Module, System};
use systola_ir::{Literal, Scalar};

#[path = "../gallery/devices.rs"]
mod devices;
mod programs;
mod random;

/// The result of a run on a target.
#[derive(Debug)]
enum Outcome {
    Done(Arrays),
    /// The code, and the point where the target reports it separately from the text.
    Fault(String, Option<Vec<i64>>),
}

impl Outcome {
    fn of(raised: &RaisedFault) -> Outcome {
        let code = raised.diagnostic().code.id.to_string();
        Outcome::Fault(code, Some(raised.point.clone()))
    }
}

/// A file with one system, at concrete sizes and inputs.
struct Case {
    module: Module,
    sizes: BTreeMap<String, i128>,
    inputs: Arrays,
    /// Has the equation no value at this point?
    is_wrong: Box<Points>,
}

/// Some points.
type Points = dyn Fn(&[i64]) -> bool;

/// A case of a text: each input is a function of the position of an element.
fn case(text: &str, sizes: &[(&str, i128)], inputs: &[(&str, &dyn Fn(usize) -> i128)]) -> Case {
    let module = load(text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    let sizes: BTreeMap<String, i128> = sizes.iter().map(|(k, v)| ((*k).to_string(), *v)).collect();
    let system = &module.systems[0];
    let params = params(system, &sizes);
    let mut arrays = Arrays::new();
    for (name, at) in inputs {
        let input = &system.inputs[system.find_input(name).expect("an input").index()];
        let mut tensor = Tensor::zeros(input.ty, &input.axes, &params).expect("small");
        for n in 0..tensor.data.len() {
            tensor
                .data
                .set(n, &value::literal(input.ty, Literal::Int(at(n))));
        }
        arrays.insert((*name).to_string(), tensor);
    }
    Case {
        module,
        sizes,
        inputs: arrays,
        is_wrong: Box::new(|_| true),
    }
}

impl Case {
    /// Says at which points the equation has no value.
    fn wrong_where(mut self, is: impl Fn(&[i64]) -> bool + 'static) -> Case {
        self.is_wrong = Box::new(is);
        self
    }
}

fn params(system: &System, sizes: &BTreeMap<String, i128>) -> Vec<i128> {
    system.param_names().iter().map(|p| sizes[p]).collect()
}

/// Where cases run.
#[derive(Clone, Copy, Debug)]
enum Target {
    Array,
    /// The kernel interpreter, for vectors of this many bytes or for threads.
    Kernel(Option<Simd>),
    Cpu(Simd),
    Emulated,
    OpenCl(usize),
}

fn simds() -> Vec<Simd> {
    let named = Simd::ALL.iter().map(|s| s.name());
    named.filter_map(|name| simd::named(name).ok()).collect()
}

/// The interpreters, and the compiled targets of this machine: one vector width, or all of them
/// with all devices.
fn targets(all: bool) -> Vec<Target> {
    let mut targets = vec![Target::Array, Target::Kernel(None), Target::Emulated];
    targets.extend(simds().into_iter().map(|simd| Target::Kernel(Some(simd))));
    if !all {
        targets.push(Target::Cpu(simd::detect()));
        return targets;
    }
    targets.extend(simds().into_iter().map(Target::Cpu));
    let links = [
        devices::device("with sub-groups", |info| info.shuffles.is_some()),
        devices::device("without sub-groups", |info| info.shuffles.is_none()),
    ];
    targets.extend(links.into_iter().flatten().map(Target::OpenCl));
    targets
}

fn lowered(case: &Case, mapping: &Mapping, simd: Option<Simd>) -> Program {
    let machine = match simd {
        None => Machine::cuda(),
        Some(simd) => {
            let mut options = CpuOptions::new();
            options.simd = simd;
            options.machine()
        }
    };
    let lowered = lower(&case.module, mapping, &case.sizes, &Fix::Nothing, &machine);
    lowered.unwrap_or_else(|e| panic!("{e:?}")).program
}

fn run(case: &Case, mapping: &Mapping, target: Target) -> Outcome {
    let system = &case.module.systems[0];
    let params = params(system, &case.sizes);
    let named: Vec<(&str, i64)> = case
        .sizes
        .iter()
        .map(|(k, v)| (k.as_str(), *v as i64))
        .collect();
    let runtime = |error: systola::cpu::Error| match error {
        systola::cpu::Error::Runtime(systola::rt::Error::Raised(raised)) => Outcome::of(&raised),
        error => panic!("{target:?}: {error}"),
    };
    match target {
        Target::Array => {
            let checked = systola_driver::check_mapping(&case.module, mapping, &case.sizes);
            let checked = checked.unwrap_or_else(|e| panic!("{e:?}"));
            match run_array(&checked.array, &params, &case.inputs) {
                Ok(outputs) => Outcome::Done(outputs),
                Err(error) => Outcome::Fault(error.code.id.to_string(), None),
            }
        }
        Target::Kernel(simd) => {
            let program = lowered(case, mapping, simd);
            match run_kernel_program(&program, &params, &case.inputs, &Options::default()) {
                Ok(outcome) => Outcome::Done(outcome.outputs),
                Err(RunError::Raised(raised)) => Outcome::of(&raised),
                Err(error) => panic!("{target:?}: {error}\n{program}"),
            }
        }
        Target::Cpu(simd) => {
            let mut options = quick_cpu();
            options.simd = simd;
            let compiled = systola::compile(&case.module, &mapping.name, &named, &options);
            let compiled = compiled.unwrap_or_else(|e| panic!("{e}"));
            match compiled.run_tensors(&params, &case.inputs, &RunOptions { threads: 2 }) {
                Ok((outputs, _)) => Outcome::Done(outputs),
                Err(error) => runtime(error),
            }
        }
        Target::Emulated => {
            let program = lowered(case, mapping, None);
            let artifact = emit_cuda(&program).unwrap_or_else(|e| panic!("{e:?}"));
            let made = Emulated::compile(&program, &artifact, true);
            let made = made.unwrap_or_else(|e| panic!("{e}\n{}", artifact.source));
            match made.try_run(&params, &case.inputs) {
                Ok(Ok(outputs)) => Outcome::Done(outputs),
                Ok(Err(raised)) => Outcome::of(&raised),
                Err(error) => panic!("{error}\n{}", artifact.source),
            }
        }
        Target::OpenCl(device) => {
            let options = OpenClOptions {
                device,
                lanes: Some(8),
                ..OpenClOptions::new()
            };
            let compiled = compile_opencl(&case.module, &mapping.name, &named, &options);
            let compiled = compiled.unwrap_or_else(|e| panic!("{e}"));
            match compiled.run_tensors(&params, &case.inputs) {
                Ok((outputs, _)) => Outcome::Done(outputs),
                Err(error) => runtime(error),
            }
        }
    }
}

/// All mappings of the case on the targets, against the equations; `code`: that of the fault, if
/// there is one.
fn check(case: &Case, code: Option<&str>, targets: &[Target]) {
    let system = &case.module.systems[0];
    let params = params(system, &case.sizes);
    let expected = run_system(system, &params, &case.inputs);
    let found = expected.as_ref().err().map(|error| error.code.id);
    assert_eq!(found, code, "{}: {expected:?}", system.name);
    for mapping in &case.module.mappings {
        for target in targets {
            let context = format!("{} {} on {target:?}", system.name, mapping.name);
            match (run(case, mapping, *target), &expected) {
                (Outcome::Done(outputs), Ok(expected)) => {
                    assert_eq!(outputs, *expected, "{context}");
                }
                (Outcome::Fault(found, point), Err(expected)) => {
                    assert_eq!(found, expected.code.id, "{context}");
                    if let Some(point) = point {
                        assert!((case.is_wrong)(&point), "{context}: {point:?}");
                    }
                }
                (found, _) => panic!("{context}: {found:?}"),
            }
        }
    }
}

/// Has a lowered mapping a test for faults at all?
fn has_sites(text: &str) -> bool {
    let module = load(text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    let found = |machine| {
        let mapping = &module.mappings[0];
        let lowered = lower(&module, mapping, &BTreeMap::new(), &Fix::Nothing, &machine);
        let program = lowered.unwrap_or_else(|e| panic!("{e:?}")).program;
        program
            .buffers
            .iter()
            .any(|b| b.kind.fault_sites().is_some())
    };
    let (cpu, cuda) = (found(CpuOptions::new().machine()), found(Machine::cuda()));
    assert_eq!(cpu, cuda, "{text}");
    cpu
}

const INTEGERS: [Scalar; 8] = [
    Scalar::I8,
    Scalar::I16,
    Scalar::I32,
    Scalar::I64,
    Scalar::U8,
    Scalar::U16,
    Scalar::U32,
    Scalar::U64,
];
