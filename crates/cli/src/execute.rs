//! Runs a system or a program on a target, and prints what runs.

use std::time::{Duration, Instant};

use clap::builder::TypedValueParser;
use indicatif::ProgressBar;
use systola::cpu::{self, compile_lowered};
use systola::cuda::compile_cuda_lowered;
use systola::device::DeviceCompiled;
use systola::opencl::compile_opencl_lowered;
use systola::rt::device::Driver;
use systola::rt::timing::{Repeats, Timing};
use systola::rt::{Note, Origin, Stats};
use systola::{CpuOptions, CudaOptions, OpenClOptions, RunOptions};
use systola_driver::{Fix, Lowered, Machine, Target, check_mapping};
use systola_explore::choose::{Choice, Subject};
use systola_explore::platform::Platform;
use systola_explore::space::is_name_of_a_candidate;
use systola_interp::array::run_array;
use systola_interp::compare::Expected;
use systola_interp::kernel::{Options, run_kernel_program};
use systola_interp::tensor::data_bytes;
use systola_interp::{Arrays, expect_program, expect_system, run_program, run_system};
use systola_ir::kernel::census::Counts;
use systola_ir::mapping::Mapping;
use systola_ir::system::{Program, Source as Feed, System};

use crate::choose::{Say, announce, cpu_platform, platform_of, save_choice};
use crate::counts::counts_table;
use crate::job::Job;
use crate::lowering::{LoweringArgs, lower_checked, scope_text};
use crate::named::named;
use crate::runtime;
use crate::source::{Failure, Parameters, Source};
use crate::target_device::TargetDevice;
use crate::term::{self, Paint};

pub use systola::rt::timing::duration;

/// What computes: an interpreter, or the compiled kernel on a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runner {
    System,
    Array,
    Kernel,
    On(Target),
}

/// Reads a runner by its name.
pub fn runners() -> impl TypedValueParser<Value = Runner> {
    let interpreters = [
        ("system", "Evaluate the equations", Runner::System),
        (
            "array",
            "Step the systolic array cycle by cycle",
            Runner::Array,
        ),
        (
            "kernel",
            "Interpret the kernel lane by lane, and count what it does",
            Runner::Kernel,
        ),
    ];
    let interpreters = interpreters.map(|(name, help, runner)| (name, help.to_string(), runner));
    let compiled = Target::ALL.map(|target| {
        let help = format!("Compile the kernel for {} and run it", target.device());
        (target.name(), help, Runner::On(target))
    });
    named(interpreters.into_iter().chain(compiled))
}

/// The settings of a run.
pub struct Execution<'a> {
    pub source: &'a Source,
    pub runner: Runner,
    /// Chosen mappings.
    pub maps: &'a [String],
    /// Write a mapping that was chosen into the file under this name.
    pub save: Option<&'a str>,
    pub options: CpuOptions,
    pub cuda: CudaOptions,
    pub opencl: OpenClOptions,
    pub lowering: &'a LoweringArgs,
    pub threads: usize,
    /// The number of timed runs of compiled code, besides the one whose outputs are shown.
    pub times: usize,
}

/// The outputs of a run, and remarks printed after them.
pub struct Ran {
    pub outputs: Arrays,
    pub remarks: Vec<String>,
}

/// Makes the inputs of another run from the outputs of the last one, if there is to be one.
pub type Next<'a> = dyn FnMut(&Arrays) -> Result<Option<Arrays>, Failure> + 'a;

impl Execution<'_> {
    /// Runs a system once, and again as long as `next` makes inputs; a program once. Everything is
    /// compiled once.
    pub fn run(
        &self,
        job: &Job<'_>,
        params: &[i128],
        inputs: &Arrays,
        next: &mut Next<'_>,
    ) -> Result<Ran, Failure> {
        if self.runner == Runner::System {
            let start = Instant::now();
            let evaluate = |inputs: &Arrays| Ok((self.equations(job, params, inputs)?, ()));
            let (outputs, _) = again(inputs, next, evaluate)?;
            let seconds = start.elapsed().as_secs_f64();
            let remarks = vec![format!("equations evaluated in {}", duration(seconds))];
            return Ok(Ran { outputs, remarks });
        }
        match job {
            Job::System(system, _) => self.run_system(system, params, inputs, next, true),
            Job::Program(program) => self.run_stages(program, params, inputs),
        }
    }

    /// The result of the equations, for any target.
    fn equations(
        &self,
        job: &Job<'_>,
        params: &[i128],
        inputs: &Arrays,
    ) -> Result<Arrays, Failure> {
        match job {
            Job::System(system, _) => run_system(system, params, inputs),
            Job::Program(program) => run_program(&self.source.module, program, params, inputs),
        }
        .map_err(|d| self.source.fail(&[d]))
    }

    /// The same, with an error bound of each float.
    pub fn expected(
        &self,
        job: &Job<'_>,
        params: &[i128],
        inputs: &Arrays,
    ) -> Result<Expected, Failure> {
        match job {
            Job::System(system, _) => expect_system(system, params, inputs),
            Job::Program(program) => expect_program(&self.source.module, program, params, inputs),
        }
        .map_err(|d| self.source.fail(&[d]))
    }

    fn run_stages(
        &self,
        program: &Program,
        params: &[i128],
        inputs: &Arrays,
    ) -> Result<Ran, Failure> {
        let systems = &self.source.module.systems;
        let mut stages: Vec<Arrays> = Vec::new();
        let mut remarks = Vec::new();
        let fetch = |stages: &[Arrays], feed: &Feed| match feed {
            Feed::Input(n) => inputs.get(&program.inputs[*n].name).cloned(),
            Feed::Output { stage, output } => {
                let system = &systems[program.stages[*stage].system];
                stages[*stage].get(&system.outputs[*output].name).cloned()
            }
        };
        for stage in &program.stages {
            let system = &systems[stage.system];
            let values: Vec<i128> = stage
                .args
                .iter()
                .map(|form| form.eval(params, &[]))
                .collect::<Result<_, _>>()
                .map_err(|e| Failure::new(format!("stage {}: {e}", stage.name)))?;
            let mut given = Arrays::new();
            for (input, feed) in &stage.inputs {
                let name = &system.inputs[input.index()].name;
                given.extend(fetch(&stages, feed).map(|tensor| (name.clone(), tensor)));
            }
            let ran = self.run_system(system, &values, &given, &mut |_| Ok(None), false)?;
            let named = |remark: String| format!("{}: {remark}", stage.name);
            remarks.extend(ran.remarks.into_iter().map(named));
            stages.push(ran.outputs);
        }
        let mut outputs = Arrays::new();
        for (name, feed) in &program.outputs {
            outputs.extend(fetch(&stages, feed).map(|tensor| (name.clone(), tensor)));
        }
        Ok(Ran { outputs, remarks })
    }

    /// `alone`: a named mapping must be one of this system.
    fn run_system(
        &self,
        system: &System,
        params: &[i128],
        inputs: &Arrays,
        next: &mut Next<'_>,
        alone: bool,
    ) -> Result<Ran, Failure> {
        let Choice { mapping, fix, .. } = self.choice(system, params, alone)?;
        let lowered = || self.lower(system, &mapping, params, &fix);
        match self.runner {
            Runner::System => unreachable!("equations need no mapping"),
            Runner::Array => self.on_array(system, &mapping, params, inputs, next),
            Runner::Kernel => self.on_interpreter(&lowered()?, params, inputs, next),
            Runner::On(Target::Cpu) => self.on_cpu(lowered()?, params, inputs, next),
            Runner::On(Target::Cuda) => {
                let lowered = lowered()?;
                let kept = self.cuda.compile.cache.is_some();
                self.on_device(params, inputs, next, kept, || {
                    let compiled = compile_cuda_lowered(lowered, &self.cuda)?;
                    let name = compiled.gpu().info.name.clone();
                    Ok((compiled, name))
                })
            }
            Runner::On(Target::OpenCl) => {
                let lowered = lowered()?;
                let kept = self.opencl.compile.cache.is_some();
                self.on_device(params, inputs, next, kept, || {
                    let compiled = compile_opencl_lowered(lowered, &self.opencl)?;
                    let name = compiled.gpu().info.name.clone();
                    Ok((compiled, name))
                })
            }
        }
    }

    /// The mapping that the user names. Without one, compiled targets take the best; the
    /// interpreters, which are for inspection, take the first of the file, if it has one.
    fn choice(&self, system: &System, params: &[i128], alone: bool) -> Result<Choice, Failure> {
        let module = &self.source.module;
        let is_in_file = |name: &str| module.mappings.iter().any(|m| m.name == name);
        let fix = self.machine()?.0.clone();
        for name in self.maps {
            let is_it = |m: &&Mapping| m.name == *name && m.system == system.name;
            if let Some(mapping) = module.mappings.iter().find(is_it) {
                return Ok(Choice::named(mapping.clone(), fix));
            }
        }
        let inspects = matches!(self.runner, Runner::Array | Runner::Kernel);
        let others = self.maps.iter().filter(|name| !is_in_file(name));
        let candidates: Vec<&String> = others.filter(|n| is_name_of_a_candidate(n)).collect();
        if self.maps.is_empty()
            && inspects
            && let Some(choice) = Choice::first(module, system, &fix)
        {
            return Ok(choice);
        }
        let sizes = Parameters::from(system).named(params);
        let subject = Subject {
            module,
            system,
            sizes: &sizes,
            platform: &self.platform()?,
        };
        for name in candidates {
            let found = subject
                .named(name)
                .map_err(|found| self.source.fail(&found))?;
            if let Some(choice) = found {
                return self.chosen(choice, subject.platform);
            }
        }
        if let Some(name) = self.maps.first().filter(|_| alone) {
            // Looking it up again reports the alternatives.
            let mapping = self.source.mapping(Some(name), Some(&system.name))?;
            return Ok(Choice::named(mapping.clone(), fix));
        }
        if inspects && let Some(choice) = Choice::first(module, system, &fix) {
            return Ok(choice);
        }
        // Writing and ranking mappings takes a second or two.
        let progress = ProgressBar::new_spinner();
        progress.enable_steady_tick(Duration::from_millis(100));
        progress.set_message(format!("choosing a mapping of {}", system.name));
        let choice = subject.choose();
        progress.finish_and_clear();
        let choice = choice.map_err(|found| self.source.fail(&found))?;
        announce(&choice, Say::Out);
        self.chosen(choice, subject.platform)
    }

    /// Saves a choice if that is wanted.
    fn chosen(&self, choice: Choice, platform: &Platform) -> Result<Choice, Failure> {
        if let Some(name) = self.save {
            save_choice(self.source, &choice, platform, name)?;
            term::print(format!("mapping {name} written to {}\n", self.source.path));
        }
        Ok(choice)
    }

    /// Where kernels run, or would run.
    fn platform(&self) -> Result<Platform, Failure> {
        let fail = |error| runtime::fail(self.source, error);
        Ok(match self.runner {
            Runner::System | Runner::Array => cpu_platform(&self.options, self.threads),
            Runner::Kernel => platform_of(&self.machine()?.1, &self.options),
            Runner::On(Target::Cpu) => cpu_platform(&self.options, self.threads),
            Runner::On(Target::Cuda) => {
                let target_device = TargetDevice::cuda(self.cuda.clone());
                let found = target_device.map_err(|error| fail(cpu::Error::from(error)))?;
                found.platform()
            }
            Runner::On(Target::OpenCl) => {
                let found = TargetDevice::opencl(self.opencl.clone()).map_err(fail)?;
                found.platform()
            }
        })
    }

    fn on_array(
        &self,
        system: &System,
        mapping: &Mapping,
        params: &[i128],
        inputs: &Arrays,
        next: &mut Next<'_>,
    ) -> Result<Ran, Failure> {
        let start = Instant::now();
        let sizes = Parameters::from(system).named(params);
        let checked = check_mapping(&self.source.module, mapping, &sizes)
            .map_err(|d| self.source.fail(&d))?;
        let counts = checked
            .report
            .counts
            .as_ref()
            .map_or_else(String::new, |c| {
                format!(": {} PEs, {} steps", c.pes, c.steps)
            });
        term::print(format!(
            "mapping {} of {}, {}{counts}\n",
            Paint::Bold.out(&mapping.name),
            system.name,
            checked.report.array_name()
        ));
        let (outputs, _) = again(inputs, next, |inputs| {
            let outputs = run_array(&checked.array, params, inputs);
            Ok((outputs.map_err(|d| self.source.fail(&[d]))?, ()))
        })?;
        let seconds = start.elapsed().as_secs_f64();
        let remarks = vec![format!("array run in {}", duration(seconds))];
        Ok(Ran { outputs, remarks })
    }

    /// The machine of the kernels, and its name.
    fn machine(&self) -> Result<(&Fix, Machine, &'static str), Failure> {
        Ok(match self.runner {
            Runner::On(target @ Target::Cuda) => {
                (&self.cuda.fix, self.cuda.machine(), target.name())
            }
            Runner::On(target @ Target::OpenCl) => {
                let device = self.opencl.open();
                let device = device.map_err(|error| runtime::fail(self.source, error))?;
                let machine = self.opencl.machine(&device.info);
                (&self.opencl.fix, machine, target.name())
            }
            Runner::System | Runner::Array | Runner::Kernel | Runner::On(Target::Cpu) => {
                let (machine, name) = self.lowering.machine(&self.options);
                (&self.options.fix, machine, name)
            }
        })
    }

    fn lower(
        &self,
        system: &System,
        mapping: &Mapping,
        params: &[i128],
        fix: &Fix,
    ) -> Result<Lowered, Failure> {
        let sizes = Parameters::from(system).named(params);
        let (_, machine, name) = self.machine()?;
        let lowered = lower_checked(self.source, system, mapping, &sizes, fix, &machine)?;
        let lanes = lowered.program.kernels.iter().map(|k| k.lanes).max();
        term::print(format!(
            "mapping {} of {}, {}: kernel with {} lanes ({}) {}\n",
            Paint::Bold.out(&mapping.name),
            system.name,
            lowered.checked.report.array_name(),
            lanes.unwrap_or(1),
            name,
            scope_text(&lowered)
        ));
        Ok(lowered)
    }

    fn on_interpreter(
        &self,
        lowered: &Lowered,
        params: &[i128],
        inputs: &Arrays,
        next: &mut Next<'_>,
    ) -> Result<Ran, Failure> {
        let start = Instant::now();
        let program = &lowered.program;
        let (outputs, counts) = again(inputs, next, |inputs| {
            let outcome = run_kernel_program(program, params, inputs, &Options::default())
                .map_err(|error| runtime::fail_kernel(self.source, error))?;
            Ok((outcome.outputs, (outcome.kernels, outcome.counts)))
        })?;
        let seconds = start.elapsed().as_secs_f64();
        let n_runs = counts.len();
        let (of_kernels, of_all) = counts.into_iter().next_back().unwrap_or_default();
        let kernels: Vec<(&str, &Counts)> = program
            .kernels
            .iter()
            .map(|kernel| kernel.name.as_str())
            .zip(&of_kernels)
            .collect();
        let table = counts_table(&kernels, &of_all);
        let frame = match n_runs {
            1 => "",
            _ => "; counts of the last run",
        };
        Ok(Ran {
            outputs,
            remarks: vec![format!(
                "kernel interpreted in {}{frame}\n{table}",
                duration(seconds)
            )],
        })
    }

    fn on_cpu(
        &self,
        lowered: Lowered,
        params: &[i128],
        inputs: &Arrays,
        next: &mut Next<'_>,
    ) -> Result<Ran, Failure> {
        let start = Instant::now();
        let compiled = compile_lowered(lowered, &self.options)
            .map_err(|error| runtime::fail(self.source, error))?;
        let loaded = compiled.loaded();
        let kept = self.options.compile.cache.is_some();
        print_origin(loaded.origin(), kept, loaded.notes(), start);
        let options = RunOptions {
            threads: self.threads,
        };
        let (outputs, stats) = again(inputs, next, |inputs| {
            let ran = compiled.run_tensors(params, inputs, &options);
            ran.map_err(|error| runtime::fail(self.source, error))
        })?;
        let stats = sum(&stats);
        let threads = match self.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            n => n,
        };
        let threads = stats.blocks.min(threads as u64).max(1);
        let remark = format!(
            "kernel run in {}: {}, {}, {}",
            duration(stats.kernel_seconds),
            counted(stats.launches, "launch", "launches"),
            counted(stats.blocks, "block", "blocks"),
            counted(threads, "thread", "threads")
        );
        let mut remarks = vec![remark];
        if let Some(repeats) = self.repeats() {
            let timed = compiled.time_tensors(params, inputs, &options, repeats);
            let timing = timed.map_err(|error| runtime::fail(self.source, error))?;
            remarks.push(self.timing("in place", &timing, [inputs, &outputs]));
        }
        Ok(Ran { outputs, remarks })
    }

    /// `compile`: the code, and the name of the device.
    fn on_device<D: Driver>(
        &self,
        params: &[i128],
        inputs: &Arrays,
        next: &mut Next<'_>,
        kept: bool,
        compile: impl FnOnce() -> Result<(DeviceCompiled<D>, String), cpu::Error>,
    ) -> Result<Ran, Failure> {
        let start = Instant::now();
        let (compiled, device) = compile().map_err(|error| runtime::fail(self.source, error))?;
        let loaded = compiled.loaded();
        print_origin(loaded.origin(), kept, &loaded.notes(), start);
        let (outputs, stats) = again(inputs, next, |inputs| {
            let ran = compiled.run_tensors(params, inputs);
            ran.map_err(|error| runtime::fail(self.source, error))
        })?;
        let stats = sum(&stats);
        let remark = format!(
            "kernel run in {} on {device}: {}, {}",
            duration(stats.kernel_seconds),
            counted(stats.launches, "launch", "launches"),
            counted(stats.blocks, "block", "blocks"),
        );
        let mut remarks = vec![remark];
        if let Some(repeats) = self.repeats() {
            let timed = compiled.time_tensors(params, inputs, repeats);
            let timing = timed.map_err(|error| runtime::fail(self.source, error))?;
            remarks.push(self.timing("on the device", &timing, [inputs, &outputs]));
        }
        Ok(Ran { outputs, remarks })
    }

    fn repeats(&self) -> Option<Repeats> {
        (self.times > 0).then_some(Repeats {
            warm_up: 1,
            timed: self.times,
        })
    }

    /// The time of several runs. The throughput counts every element of the arrays once.
    fn timing(&self, place: &str, timing: &Timing, arrays: [&Arrays; 2]) -> String {
        let all = arrays.into_iter().flat_map(|arrays| arrays.values());
        let bytes: u64 = all.map(|t| data_bytes(t.ty(), t.data.len())).sum();
        let median = timing.median();
        format!(
            "{} in a row, arrays {place}: median {}, best {}; {:.1} GB/s of inputs and outputs",
            counted(self.times as u64, "run", "runs"),
            duration(median),
            duration(timing.min()),
            bytes as f64 / median / 1e9,
        )
    }
}

/// The outputs of the last run, and what else each run made.
fn again<T>(
    inputs: &Arrays,
    next: &mut Next<'_>,
    mut run: impl FnMut(&Arrays) -> Result<(Arrays, T), Failure>,
) -> Result<(Arrays, Vec<T>), Failure> {
    let (mut outputs, first) = run(inputs)?;
    let mut all = vec![first];
    while let Some(inputs) = next(&outputs)? {
        let (made, one) = run(&inputs)?;
        outputs = made;
        all.push(one);
    }
    Ok((outputs, all))
}

fn sum(runs: &[Stats]) -> Stats {
    let mut sum = Stats::default();
    for stats in runs {
        sum.launches += stats.launches;
        sum.blocks += stats.blocks;
        sum.kernel_seconds += stats.kernel_seconds;
    }
    sum
}

/// Prints the origin of machine code.
fn print_origin(origin: Origin, cached: bool, notes: &[Note], start: Instant) {
    let took = duration(start.elapsed().as_secs_f64());
    term::print(match origin {
        Origin::Cache => "kernel found in the cache\n".to_string(),
        Origin::Compiler if cached && notes.is_empty() => {
            format!("kernel compiled in {took}, now in the cache\n")
        }
        Origin::Compiler => format!("kernel compiled in {took}, not kept\n"),
    });
    runtime::print_notes(notes);
}

fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn no_target_has_the_name_of_an_interpreter() {
        for target in Target::ALL {
            let name = OsStr::new(target.name());
            let found = runners().parse_ref(&clap::Command::new("t"), None, name);
            assert_eq!(found.ok(), Some(Runner::On(target)));
        }
    }
}
