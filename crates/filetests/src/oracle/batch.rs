//! Many subjects on many targets.

use std::collections::BTreeMap;

use systola_driver::{Fix, Lowered, Machine, check_mapping, lower};
use systola_interp::Arrays;
use systola_ir::Diagnostic;
use systola_ir::kernel::RaisedFault;
use systola_ir::mapping::Mapping;

use super::find::{Find, FindKind, guarded};
use super::interpreted::{Kernels, is_beyond, is_fixed, on_array, on_system};
use super::runner::{Device, Runner};
use super::subject::{FAULTS, Run, Subject};
use super::values::compare;
use super::{compiled, emulated, opencl};

/// Kernels that are compiled together.
const UNIT: usize = 32;

/// OpenCL compilers are slow: one in this many mappings goes to a device.
const OPENCL_SAMPLE: u64 = 6;

/// The cases that were tried, and the finds.
#[derive(Default)]
pub struct Outcome {
    /// Cases without a find, for each target.
    pub cases: BTreeMap<String, u64>,
    /// Legal mappings.
    pub mappings: u64,
    /// Mappings that a target does not support.
    pub limited: u64,
    pub finds: Vec<Find>,
}

/// The result of a run.
pub(super) enum Ran {
    Outputs(Arrays),
    /// The code of a fault of the program.
    Fault(&'static str),
    /// The values between PEs need more memory than available, for a mapping with few points in
    /// many places.
    Beyond,
    Error(String),
}

impl Ran {
    pub(super) fn from_result(result: Result<Arrays, Diagnostic>) -> Ran {
        match result {
            Ok(outputs) => Ran::Outputs(outputs),
            Err(error) => match FAULTS.iter().find(|code| code.id == error.code.id) {
                Some(code) => Ran::Fault(code.id),
                None => Ran::Error(error.to_string()),
            },
        }
    }

    pub(super) fn raised(fault: &RaisedFault) -> Ran {
        Ran::Fault(fault.site.kind.code().id)
    }

    pub(super) fn from_error(error: &systola::cpu::Error) -> Ran {
        match error {
            systola::cpu::Error::Runtime(systola::rt::Error::Raised(fault)) => Ran::raised(fault),
            systola::cpu::Error::Runtime(systola::rt::Error::OutOfMemory { .. }) => Ran::Beyond,
            _ => Ran::Error(error.to_string()),
        }
    }
}

/// A mapping that was lowered for a target.
pub(super) struct Prepared<'a> {
    pub(super) subject: &'a Subject,
    position: usize,
    mapping: &'a Mapping,
    pub(super) lowered: Lowered,
    runs: Vec<&'a Run>,
}

/// A legal mapping.
struct Legal<'a> {
    position: usize,
    subject: &'a Subject,
    mapping: &'a Mapping,
    /// Among the mappings of its subject.
    n: u64,
}

/// Runs every legal mapping of every subject with every runner. `watch` is called before each run,
/// since a run may end this process.
pub fn try_all(
    subjects: &[Subject],
    runners: &[Runner],
    watch: &dyn Fn(usize, &str, &str),
) -> Outcome {
    let mut batch = Batch {
        outcome: Outcome::default(),
        watch,
    };
    let mut legal = Vec::new();
    for (position, subject) in subjects.iter().enumerate() {
        if runners.contains(&Runner::System) {
            batch.systems(position, subject);
        }
        for (n, mapping) in subject.module.mappings.iter().enumerate() {
            batch.announce(position, Runner::Array, mapping);
            let checked = guarded(|| check_mapping(&subject.module, mapping, &BTreeMap::new()));
            match checked {
                Ok(Ok(_)) => legal.push(Legal {
                    position,
                    subject,
                    mapping,
                    n: n as u64,
                }),
                Ok(Err(_)) => {}
                Err(said) => {
                    let find = batch.find(position, Runner::Array, mapping, FindKind::Panic, said);
                    batch.outcome.finds.push(find);
                }
            }
        }
    }
    batch.outcome.mappings = legal.len() as u64;
    for runner in runners {
        match runner {
            Runner::System => {}
            Runner::Array => batch.arrays(&legal),
            Runner::Kernel => batch.kernels(&legal),
            Runner::On(device) => batch.compiled(&legal, *device),
        }
    }
    batch.outcome
}

struct Batch<'a> {
    outcome: Outcome,
    watch: &'a dyn Fn(usize, &str, &str),
}

impl Batch<'_> {
    fn announce(&self, position: usize, runner: Runner, mapping: &Mapping) {
        (self.watch)(position, &runner.to_string(), &mapping.name);
    }

    fn find(
        &self,
        position: usize,
        runner: Runner,
        mapping: &Mapping,
        kind: FindKind,
        message: String,
    ) -> Find {
        Find {
            subject: position,
            kind,
            target: Some(runner.to_string()),
            mapping: Some(mapping.name.clone()),
            message,
        }
    }

    fn systems(&mut self, position: usize, subject: &Subject) {
        for run in &subject.runs {
            let result = guarded(|| on_system(subject, run));
            let verdict = match result {
                Ok(Ok(ran)) => judge(subject, run, ran),
                Ok(Err(error)) => Err((FindKind::Error, error)),
                Err(said) => Err((FindKind::Panic, said)),
            };
            match verdict {
                Ok(()) => self.count(Runner::System),
                Err((kind, message)) => self.outcome.finds.push(Find {
                    subject: position,
                    kind,
                    target: Some(Runner::System.to_string()),
                    mapping: None,
                    message,
                }),
            }
        }
    }

    fn count(&mut self, runner: Runner) {
        *self.outcome.cases.entry(runner.to_string()).or_default() += 1;
    }

    /// Counts a case, or keeps a find; returns whether there was none.
    fn settle(
        &mut self,
        legal: (usize, &Subject, &Mapping),
        run: &Run,
        runner: Runner,
        result: Result<Result<Option<Ran>, String>, String>,
    ) -> bool {
        let (position, subject, mapping) = legal;
        let verdict = match result {
            Ok(Ok(None | Some(Ran::Beyond))) => {
                self.outcome.limited += 1;
                return false;
            }
            Ok(Ok(Some(ran))) => judge(subject, run, ran),
            Ok(Err(error)) => Err((FindKind::Error, error)),
            Err(said) => Err((FindKind::Panic, said)),
        };
        match verdict {
            Ok(()) => {
                self.count(runner);
                true
            }
            Err((kind, message)) => {
                let message = format!("at {:?}: {message}", run.sizes);
                let find = self.find(position, runner, mapping, kind, message);
                self.outcome.finds.push(find);
                false
            }
        }
    }

    fn arrays(&mut self, legal: &[Legal<'_>]) {
        for one in legal {
            self.announce(one.position, Runner::Array, one.mapping);
            for run in one.subject.runs_of(&one.mapping.system) {
                let result = guarded(|| on_array(one.subject, one.mapping, run));
                let who = (one.position, one.subject, one.mapping);
                if !self.settle(who, run, Runner::Array, result) {
                    break;
                }
            }
        }
    }

    fn kernels(&mut self, legal: &[Legal<'_>]) {
        for one in legal {
            self.announce(one.position, Runner::Kernel, one.mapping);
            let seed = one.subject.seed + one.n;
            let mut kernels = Kernels::new(one.subject, one.mapping, seed);
            let runs = one.subject.runs_of(&one.mapping.system);
            for (n, run) in runs.into_iter().enumerate() {
                let result = guarded(|| kernels.run(run, n as u64));
                let who = (one.position, one.subject, one.mapping);
                if !self.settle(who, run, Runner::Kernel, result) {
                    break;
                }
            }
        }
    }

    fn compiled(&mut self, legal: &[Legal<'_>], device: Device) {
        let runner = Runner::On(device);
        let mut jobs = Vec::new();
        for one in legal {
            let seed = one.subject.seed + one.n;
            let machine = match device {
                Device::Cpu(simd) => Ok(compiled::machine(simd, seed)),
                Device::Cuda => Ok(Machine::cuda()),
                Device::OpenCl(_) if !seed.is_multiple_of(OPENCL_SAMPLE) => continue,
                Device::OpenCl(n) => opencl::machine(n),
            };
            self.announce(one.position, runner, one.mapping);
            let prepared = match machine {
                Ok(machine) => guarded(|| prepare(one, &machine)),
                Err(error) => Ok(Err(error)),
            };
            let (kind, message) = match prepared {
                Ok(Ok(Some(job))) => {
                    jobs.push(job);
                    continue;
                }
                Ok(Ok(None)) => {
                    self.outcome.limited += 1;
                    continue;
                }
                Ok(Err(error)) => (FindKind::Error, error),
                Err(said) => (FindKind::Panic, said),
            };
            let find = self.find(one.position, runner, one.mapping, kind, message);
            self.outcome.finds.push(find);
        }
        for unit in jobs.chunks(UNIT) {
            let unit: Vec<&Prepared<'_>> = unit.iter().collect();
            match device {
                Device::Cpu(simd) => {
                    let compiled = compiled::compile(&unit, simd);
                    self.run_unit(&unit, runner, compiled, compiled::run);
                }
                Device::OpenCl(n) => {
                    for job in &unit {
                        self.announce(job.position, runner, job.mapping);
                        let compiled = vec![opencl::compile(job, n)];
                        self.run_unit(&[job], runner, compiled, |c, run, _| opencl::run(c, run));
                    }
                }
                Device::Cuda => {
                    let compiled = emulated::compile(&unit);
                    self.run_unit(&unit, runner, compiled, |c, run, _| emulated::run(c, run));
                }
            }
        }
    }

    fn run_unit<C>(
        &mut self,
        unit: &[&Prepared<'_>],
        runner: Runner,
        compiled: Vec<Result<C, String>>,
        execute: impl Fn(&C, &Run, u64) -> Ran,
    ) {
        for (job, compiled) in unit.iter().zip(compiled) {
            self.announce(job.position, runner, job.mapping);
            let compiled = match compiled {
                Ok(compiled) => compiled,
                Err(message) => {
                    let kind = FindKind::Error;
                    let find = self.find(job.position, runner, job.mapping, kind, message);
                    self.outcome.finds.push(find);
                    continue;
                }
            };
            for (n, run) in job.runs.iter().enumerate() {
                let result = guarded(|| Ok(Some(execute(&compiled, run, n as u64))));
                let who = (job.position, job.subject, job.mapping);
                if !self.settle(who, run, runner, result) {
                    break;
                }
            }
        }
    }
}

fn prepare<'a>(one: &Legal<'a>, machine: &Machine) -> Result<Option<Prepared<'a>>, String> {
    let mut runs = one.subject.runs_of(&one.mapping.system);
    let Some(largest) = runs.last() else {
        return Ok(None);
    };
    let sizes = &largest.sizes;
    let module = &one.subject.module;
    let lowered = match lower(module, one.mapping, sizes, &Fix::Nothing, machine) {
        Ok(lowered) => lowered,
        Err(errors) if is_beyond(one.mapping, &errors) => return Ok(None),
        Err(errors) => return Err(format!("not lowered: {}", errors[0])),
    };
    if is_fixed(&lowered) {
        runs.retain(|run| run.sizes == *sizes);
    }
    Ok(Some(Prepared {
        subject: one.subject,
        position: one.position,
        mapping: one.mapping,
        lowered,
        runs,
    }))
}

fn judge(subject: &Subject, run: &Run, ran: Ran) -> Result<(), (FindKind, String)> {
    match (&run.expected, ran) {
        (Ok(expected), Ran::Outputs(found)) => {
            compare(expected, &found, subject.close).map_err(|e| (FindKind::Wrong, e))
        }
        // Which of several faults is reported first is not fixed.
        (Err(_), Ran::Fault(_)) => Ok(()),
        (Err(code), Ran::Outputs(_)) => {
            Err((FindKind::Error, format!("{} is not reported", code.id)))
        }
        (Ok(_), Ran::Fault(id)) => Err((FindKind::Error, format!("{id} is reported"))),
        (_, Ran::Beyond) => Err((FindKind::Error, "there is not enough memory".into())),
        (_, Ran::Error(error)) => Err((FindKind::Error, error)),
    }
}
