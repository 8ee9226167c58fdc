//! Systems, arrays and kernels in their interpreters.

use systola_driver::{
    Copies, Fix, Lowered, Machine, Simd, Target, Threads, Unsized, check_mapping, load, lower,
};
use systola_interp::kernel::{FaultKind, Options, Order, RunError, run_kernel_program};
use systola_interp::{run_array, run_system};
use systola_ir::codes::run::TOO_LARGE;
use systola_ir::diag::{Diagnostic, Kind};
use systola_ir::mapping::Mapping;
use systola_ir::target::{Links, WarpSizes};

use super::batch::Ran;
use super::subject::{Run, Subject};

/// The system as it prints.
pub(super) fn on_system(subject: &Subject, run: &Run) -> Result<Ran, String> {
    let text = subject.module.to_string();
    let again =
        load(&text).map_err(|e| format!("it prints as what is refused: {}\n{text}", e[0]))?;
    let system = again.systems[run.system]
        .expand_batch()
        .map_err(|e| e.to_string())?;
    Ok(Ran::from_result(run_system(
        &system,
        &run.params,
        &run.inputs,
    )))
}

pub(super) fn on_array(
    subject: &Subject,
    mapping: &Mapping,
    run: &Run,
) -> Result<Option<Ran>, String> {
    let checked = match check_mapping(&subject.module, mapping, &run.sizes) {
        Ok(checked) => checked,
        Err(errors) if only_limits(&errors) => return Ok(None),
        Err(errors) => return Err(format!("legal for all sizes, refused: {}", errors[0])),
    };
    let outputs = run_array(&checked.array, &run.params, &run.inputs);
    Ok(Some(Ran::from_result(outputs)))
}

fn only_limits(errors: &[Diagnostic]) -> bool {
    errors.iter().all(|e| e.kind() == Kind::Limitation)
}

/// Does a legal mapping exceed a machine, or is it illegal for its number of lanes, with two points
/// as a proof?
pub(super) fn is_beyond(mapping: &Mapping, errors: &[Diagnostic]) -> bool {
    let text = mapping.to_string();
    let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    let illegal = || errors.iter().all(|e| e.counterexample.is_some());
    only_limits(errors) || words.any(|word| word == "L") && illegal()
}

/// Statements of a run; a mapping with more slots than that is left to compiled code.
const MOST_STEPS: u64 = 1 << 22;

/// Machines of several kinds, one for each seed.
fn machine(seed: u64) -> (Machine, Fix) {
    let mut machine = Machine {
        vector_bytes: [64, 16, 1, 32, 64, 32][(seed % 6) as usize],
        code_budget: 300,
        ..Machine::cpu(Simd::Avx512)
    };
    let mut fix = Fix::Nothing;
    if seed % 6 > 3 {
        // A coordinate becomes warps only if its extent is a constant.
        fix = Fix::Everything;
        machine.target = [Target::Cuda, Target::OpenCl][(seed / 6 % 2) as usize];
        machine.most_lanes = [4, 2][(seed % 2) as usize];
        // Machines without shuffles, whose barriers may or may not be in branches.
        let links = match machine.target {
            Target::OpenCl => Links::SharedMemory {
                waits_in_branches: (seed / 12).is_multiple_of(2),
            },
            Target::Cpu | Target::Cuda => Links::Shuffles(WarpSizes::one(machine.most_lanes)),
        };
        machine.threads = Some(Threads {
            warps: 16,
            wide_bytes: 16,
            copies: Copies::Asynchronous,
            block_memory: [227 << 10, 256, 0][(seed % 3) as usize],
            unsized_arrays: Unsized::Global,
            links,
            multiprocessor: None,
        });
    }
    (machine, fix)
}

/// A mapping as kernels for one machine, lowered again for each size where it is for one size only.
pub(super) struct Kernels<'a> {
    subject: &'a Subject,
    mapping: &'a Mapping,
    machine: Machine,
    fix: Fix,
    made: Option<Lowered>,
}

impl<'a> Kernels<'a> {
    pub(super) fn new(subject: &'a Subject, mapping: &'a Mapping, seed: u64) -> Kernels<'a> {
        let (machine, fix) = machine(seed);
        Kernels {
            subject,
            mapping,
            machine,
            fix,
            made: None,
        }
    }

    pub(super) fn run(&mut self, run: &Run, n: u64) -> Result<Option<Ran>, String> {
        if self.made.as_ref().is_none_or(is_fixed) {
            let module = &self.subject.module;
            self.made = match lower(module, self.mapping, &run.sizes, &self.fix, &self.machine) {
                Ok(lowered) => Some(lowered),
                Err(errors) if is_beyond(self.mapping, &errors) => return Ok(None),
                Err(errors) => return Err(format!("not lowered: {}", errors[0])),
            };
        }
        let Some(lowered) = &self.made else {
            return Ok(None);
        };
        let order = [Order::InOrder, Order::Reversed, Order::Shuffled(n)][(n % 3) as usize];
        let options = Options {
            order,
            step_limit: MOST_STEPS,
            ..Options::default()
        };
        let outcome = run_kernel_program(&lowered.program, &run.params, &run.inputs, &options);
        match outcome {
            Ok(outcome) => Ok(Some(Ran::Outputs(outcome.outputs))),
            Err(RunError::Raised(fault)) => Ok(Some(Ran::raised(&fault))),
            Err(error) if matches!(error.fault(), Some(FaultKind::StepLimit { .. })) => Ok(None),
            Err(RunError::Setup(error)) if error.code.id == TOO_LARGE.id => Ok(Some(Ran::Beyond)),
            Err(error) => Ok(Some(Ran::Error(format!("{error}\n{}", lowered.program)))),
        }
    }
}

pub(super) fn is_fixed(lowered: &Lowered) -> bool {
    lowered.program.params.iter().any(|p| p.fixed.is_some())
}
