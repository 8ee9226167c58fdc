//! `systola explore`: finds the fastest mapping of a system.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use systola::rt::tuning::{Entry, Record};
use systola::rt::{Deadline, RunOptions, require_compiler};
use systola::{CudaOptions, OpenClOptions, cpu};
use systola_driver::{Fix, check_system};
use systola_explore::agreement::Agreement;
use systola_explore::choose::no_design;
use systola_explore::deadline::run_until;
use systola_explore::measure::cpu::HostCpu;
use systola_explore::measure::device::{Nvidia, OpenClDevice};
use systola_explore::problem::{Problem, short_sums};
use systola_explore::reduced::Reduced;
use systola_explore::report::{Design, Ended, Outcome as Explored};
use systola_explore::session::{self, Event, Options};
use systola_explore::space::{Candidate, candidates_until};
use systola_explore::target_device::TargetDevice;
use systola_explore::tuned::{Tuned, fix_of, mapping_of};
use systola_ir::codes::{explore as codes, run as run_codes};
use systola_ir::mapping::Mapping;
use systola_ir::system::System;
use systola_ir::target::Target;
use systola_ir::{Diagnostic, Span};

use super::nvrtc;
use crate::device::DeviceName;
use crate::execute::duration;
use crate::lowering::{LoweringArgs, Purpose, parse_lanes};
use crate::named::targets;
use crate::runtime;
use crate::save;
use crate::source::{Failure, Outcome, Parameters, Sizes, Source, Status, given_sizes, parse_size};
use crate::term::{self, Paint};

mod explain;
mod json;
mod list;
mod plot;
mod progress;
mod table;

const EXAMPLES: &str = "\
Examples:
  systola explore gallery/conv1d/core.ure --set C=1_000_000 --set Q=5 --fix Q
  systola explore gallery/conv2d/core.ure --set R=2048 --set C=2048 --set H=5 --set Q=5 --fix H,Q --budget 1m --plot pictures
  systola explore gallery/linear-algebra/matmul_core.ure --set M=512 --set N=512 --set K=512 --save found
  systola explore gallery/conv1d/core.ure --set C=1_000_000 --set Q=5 --list --top 5
  systola explore gallery/conv1d/core.ure --set C=1_000_000 --set Q=5 --survey 500 --budget 10m --plot pictures
  systola explore gallery/conv1d/core.ure --set C=1_000_000 --set Q=5 --explain taps

Candidates are mappings that a user could have written: proved legal, compiled, verified and measured like those of the
file, which are measured too. The results are stored; `systola run` without --map uses them. Ctrl-C ends a search and keeps
its results, a second one ends the command.

Environment: as for `systola run`; the database is in the folder SYSTOLA_CACHE.";

/// Find the fastest mapping of a system at given sizes
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A .ure file
    file: PathBuf,
    /// The system; all systems of the file if not given
    #[arg(long, value_name = "NAME")]
    system: Option<String>,
    /// Give a parameter a value, for instance C=16; all are needed
    #[arg(short = 'p', long = "set", value_name = "P=V", value_parser = parse_size)]
    sizes: Vec<(String, i128)>,
    /// The target of the mapping
    #[arg(long, value_parser = targets(), default_value = "cpu")]
    target: Target,
    /// Which GPU or OpenCL device, by its index or a part of its name; `systola devices` lists them
    #[arg(long, value_name = "N|NAME")]
    device: Option<DeviceName>,
    /// Threads of the CPU; one for each core if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Lanes of a warp on an OpenCL device, limited to what it supports; the best for the device if
    /// not given
    #[arg(long, value_name = "N", value_parser = parse_lanes)]
    lanes: Option<u32>,
    /// Time for each system: writing mappings, lowering, compiling, measuring. It ends within two
    /// seconds after that, whatever is slow; if nothing was measured by then, with the mapping that
    /// the model predicts to be the fastest
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_budget)]
    budget: Duration,
    /// The number of designs to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Seed of the inputs and of randomly drawn candidates
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Measure this many designs, sampled uniformly from the space, instead of searching, and
    /// report how well the model ranks them
    #[arg(long, value_name = "N", conflicts_with_all = ["save", "list"])]
    survey: Option<NonZeroUsize>,
    /// In a survey: only designs whose longest kernel has at most this many instructions, which
    /// compile fast
    #[arg(long, value_name = "N", requires = "survey")]
    text: Option<u32>,
    /// Search even if the result of an earlier search is stored
    #[arg(long)]
    again: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Write pictures of the model against measurements and of the space into a folder
    #[arg(long, value_name = "DIR")]
    plot: Option<PathBuf>,
    /// Write the best mapping into the file, under this name
    #[arg(long, value_name = "NAME", conflicts_with = "list")]
    save: Option<String>,
    /// Print every term of the model for the best design, or for one by its name, which is then not
    /// measured
    #[arg(long, value_name = "DESIGN", num_args = 0..=1, default_missing_value = "", conflicts_with = "json")]
    explain: Option<String>,
    /// List the candidates in the order of the model, without measuring any
    #[arg(long, conflicts_with = "json")]
    list: bool,
    #[command(flatten)]
    lowering: LoweringArgs,
}

/// `30s`, `500ms`, `2m`, or seconds.
fn parse_budget(text: &str) -> Result<Duration, String> {
    let at = text.find(|c: char| c.is_ascii_alphabetic());
    let (number, unit) = text.split_at(at.unwrap_or(text.len()));
    let scale = match unit {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "m" | "min" => 60.0,
        _ => return Err("write it as 30s, 500ms or 2m".to_string()),
    };
    let seconds = number.trim().parse::<f64>().ok().map(|n| n * scale);
    let seconds = seconds.filter(|s| *s > 0.0 && *s <= 1e6);
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "a positive time is needed, for instance 30s".to_string())
}

/// The minimum CPU time of every compiler.
const LEAST_TO_COMPILE: Duration = Duration::from_secs(3);

/// The share of the budget for writing mappings.
const WRITING: f64 = 0.3;

/// Set by Ctrl-C.
static STOP: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// The exit status after a second Ctrl-C, as in shells.
const INTERRUPTED: i32 = 130;

const INTERRUPTED_EARLY: &str = "interrupted before anything was measured";

fn watch_for_interrupts() {
    // Without a handler Ctrl-C ends the command, which leaves all files intact.
    let _ = ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED);
        }
    });
}

/// The exploration of one system.
struct Task<'a> {
    source: &'a Source,
    args: &'a Args,
    system: &'a System,
    params: Vec<i128>,
    target_device: &'a TargetDevice,
    /// The start and the end of its budget.
    begin: Instant,
    deadline: Deadline,
}

/// The result of an exploration.
struct Answer<'a> {
    system: &'a System,
    record: Record,
    /// `None`: the answer is from the database.
    outcome: Option<Explored>,
}

pub fn run(args: &Args) -> Outcome {
    let source = Source::load(&args.file)?;
    let systems: Vec<&System> = match &args.system {
        Some(name) => vec![source.system(Some(name))?],
        None if source.module.systems.is_empty() => vec![source.system(None)?],
        None => source.module.systems.iter().collect(),
    };
    let sizes = given_sizes(&args.sizes)?;
    source.check_sizes(&sizes)?;
    args.lowering.check(&source)?;
    check_options(args, &systems)?;
    if let Some(name) = &args.save {
        save::check_name(&source, name)?;
    }
    let target_device = target_device(&source, args)?;
    watch_for_interrupts();
    let mut status = Status::Done;
    let mut answers = Vec::new();
    // The sizes that the user fixes, or those of short sums.
    let own = |system: &&System| match args.lowering.fix() {
        Fix::Nothing => target_device.with_fix(short_sums(system, &sizes)),
        Fix::Everything | Fix::Names(_) => target_device.clone(),
    };
    let target_devices: Vec<TargetDevice> = systems.iter().map(own).collect();
    for (system, target_device) in systems.into_iter().zip(&target_devices) {
        let mut task = Task {
            params: Vec::new(),
            source: &source,
            args,
            system,
            target_device,
            begin: Instant::now(),
            deadline: Deadline::after(args.budget).or_when(&STOP),
        };
        task.params = task.within(|| task_sizes(&source, system, &sizes))??;
        if args.list {
            list::print(&task)?;
            continue;
        }
        if let Some(design) = args.explain.as_deref().filter(|name| !name.is_empty()) {
            explain::named(&task, design)?;
            continue;
        }
        let answer = task.answer()?;
        status = status.max(answer.say(&task)?);
        answers.push(answer);
    }
    if args.json {
        term::print(json::document(&source, &target_device, &answers, status));
    }
    Ok(status)
}

fn check_options(args: &Args, systems: &[&System]) -> Result<(), Failure> {
    if args.threads.is_some() && args.target != Target::Cpu {
        return Err(Failure::new("--threads goes with --target cpu"));
    }
    if args.device.is_some() && args.target == Target::Cpu {
        return Err(Failure::new("--device goes with --target cuda or opencl"));
    }
    if args.lanes.is_some() && args.target != Target::OpenCl {
        return Err(Failure::new("--lanes goes with --target opencl"));
    }
    let machine = args.lowering.names_machine();
    let allowed = args.target == Target::Cpu && machine == Some("--simd");
    if let Some(option) = machine.filter(|_| !allowed) {
        return Err(Failure::new(format!(
            "{option} does not go with this target"
        )));
    }
    if systems.len() > 1 && (args.save.is_some() || args.explain.is_some()) {
        let names: Vec<&str> = systems.iter().map(|s| s.name.as_str()).collect();
        return Err(Failure::new(
            "--save and --explain are about one system, and the file has several",
        )
        .help(format!("choose one with --system {}", names.join("|"))));
    }
    Ok(())
}

fn target_device(source: &Source, args: &Args) -> Result<TargetDevice, Failure> {
    let fail = |error| runtime::fail(source, error);
    match args.target {
        Target::Cpu => {
            let mut options = args.lowering.options(source, Purpose::Run)?;
            require_compiler(&options.compile).map_err(|e| runtime::fail_alone(&e))?;
            // Nothing is measured while a compiler runs, so each has a limit.
            let limit = (args.budget / 10).max(LEAST_TO_COMPILE);
            options.compile.time_limit = options.compile.time_limit.min(limit);
            let run = RunOptions {
                threads: args.threads.unwrap_or(0).into(),
            };
            Ok(TargetDevice::Cpu(options, run))
        }
        Target::Cuda => {
            let mut options = CudaOptions::from_env().map_err(fail)?;
            options.fix = args.lowering.fix();
            if let Some(device) = &args.device {
                options.device = device.cuda().map_err(|e| fail(e.into()))?;
            }
            options.compile.out_of_process = nvrtc::compilers();
            TargetDevice::cuda(options).map_err(|e| fail(cpu::Error::from(e)))
        }
        Target::OpenCl => {
            let mut options = OpenClOptions::from_env().map_err(fail)?;
            options.fix = args.lowering.fix();
            if let Some(device) = &args.device {
                options.device = device.opencl().map_err(|e| fail(e.into()))?;
            }
            options.lanes = args.lanes;
            TargetDevice::opencl(options).map_err(fail)
        }
    }
}

/// A value for every parameter; the system is checked for them.
fn task_sizes(source: &Source, system: &System, sizes: &Sizes) -> Result<Vec<i128>, Failure> {
    let parameters = Parameters::from(system);
    let missing = parameters.missing(sizes);
    if !missing.is_empty() {
        let message = format!(
            "the sizes {} of `{}` are not given",
            missing.join(", "),
            system.name
        );
        let example: Vec<String> = missing
            .iter()
            .map(|name| format!("--set {name}=…"))
            .collect();
        let found = Diagnostic::new(&run_codes::MISSING_PARAM, Span::NONE, message);
        let help = format!(
            "the best mapping depends on all sizes: {}",
            example.join(" ")
        );
        return Err(source.fail(&[found.help(help)]));
    }
    let found = check_system(system, sizes);
    if !found.is_empty() {
        return Err(source.fail(&found));
    }
    Ok(system.params.iter().map(|p| sizes[&p.name]).collect())
}

impl<'a> Task<'a> {
    fn problem(&self) -> Problem<'a> {
        Problem {
            module: &self.source.module,
            system: self.system,
            sizes: Parameters::from(self.system).named(&self.params),
            fix: self.target_device.fix().clone(),
            machine: self.target_device.machine(),
        }
    }

    fn sizes(&self) -> Vec<(String, i128)> {
        let names = self.system.params.iter().map(|p| p.name.clone());
        names.zip(self.params.iter().copied()).collect()
    }

    /// `conv1d at C = 16, Q = 5 on cpu (…)`.
    fn title(&self) -> String {
        format!(
            "{} at {} on {} ({})",
            self.system.name,
            Parameters::from(self.system).show(&self.params),
            self.target_device.target(),
            self.target_device.device()
        )
    }

    /// The mappings of the file, and those of the space.
    fn candidates(&self) -> Vec<(Candidate, bool)> {
        let end = self.begin + self.args.budget.mul_f64(WRITING);
        let problem = self.problem();
        problem.with_own(candidates_until(&problem, &self.deadline.or_at(end)))
    }

    /// Runs required work within the budget.
    fn within<R>(&self, work: impl FnOnce() -> R) -> Result<R, Failure> {
        run_until(&self.deadline, work).map_err(|_| {
            if self.deadline.is_stopped() {
                return Failure::new(INTERRUPTED_EARLY);
            }
            let seconds = self.begin.elapsed().as_secs_f64();
            self.failure(session::Error::BudgetTooSmall(seconds))
        })
    }

    /// From the database, or by a search.
    fn answer(&self) -> Result<Answer<'a>, Failure> {
        let platform = self.target_device.platform();
        let tuned = Tuned::read(self.system, &self.sizes(), &platform);
        for note in &tuned.notes {
            runtime::print_tuning_note(note);
        }
        let anew = self.args.again || self.args.survey.is_some();
        let last = tuned.last(self.target_device.fix()).filter(|_| !anew);
        if let Some(record) = last {
            return Ok(Answer {
                system: self.system,
                record: record.clone(),
                outcome: None,
            });
        }
        let outcome = self.search()?;
        let record = tuned.record(self.system, &self.sizes(), &platform, &outcome);
        // The best of a survey may be far from the overall best.
        if !record.designs.is_empty()
            && self.args.survey.is_none()
            && let Some(note) = tuned.add(&record)
        {
            runtime::print_tuning_note(&note);
        }
        Ok(Answer {
            system: self.system,
            record,
            outcome: Some(outcome),
        })
    }

    fn search(&self) -> Result<Explored, Failure> {
        let progress = progress::Bar::new(self.args.budget);
        progress.begin();
        let mut on_event = |event: Event<'_>| progress.on_event(event);
        let problem = self.problem();
        let options = Options {
            begin: self.begin,
            deadline: self.deadline.clone(),
            seed: self.args.seed,
            survey: self.args.survey.map(|designs| Reduced {
                designs: designs.get(),
                text: self.args.text.map(f64::from),
            }),
        };
        let (all, model) = (self.candidates(), self.target_device.model());
        let (params, on_event): (_, &mut dyn FnMut(Event<'_>)) = (&self.params, &mut on_event);
        let fail = |error| runtime::fail(self.source, error);
        let found = match self.target_device {
            TargetDevice::Cpu(options_of_target, run) => {
                let target = HostCpu {
                    options: options_of_target.clone(),
                    run: *run,
                };
                session::explore(&problem, params, all, &target, &model, &options, on_event)
            }
            TargetDevice::Cuda(options_of_target, _) => {
                let target = Nvidia::open(options_of_target.clone()).map_err(fail)?;
                session::explore(&problem, params, all, &target, &model, &options, on_event)
            }
            TargetDevice::OpenCl(options_of_target, _) => {
                let target = OpenClDevice::open(options_of_target.clone()).map_err(fail)?;
                session::explore(&problem, params, all, &target, &model, &options, on_event)
            }
        };
        progress.end();
        found.map_err(|error| self.failure(error))
    }

    fn failure(&self, error: session::Error) -> Failure {
        let message = error.to_string();
        match error {
            session::Error::NoDesign(candidates, why) => {
                let found = no_design(self.system, candidates, why);
                self.source.fail(&[found])
            }
            session::Error::AllLong { .. } => {
                let found = Diagnostic::new(&codes::ALL_LONG, Span::NONE, message);
                self.source
                    .fail(&[found.help("give --text a larger number, or leave it out")])
            }
            session::Error::BudgetTooSmall(_) => {
                let found = Diagnostic::new(&codes::BUDGET_TOO_SMALL, Span::NONE, message);
                self.source
                    .fail(&[found.help("give it more time, as --budget 30s")])
            }
            session::Error::Run(error) => runtime::fail(self.source, error),
        }
    }
}

impl Answer<'_> {
    /// The best first.
    fn designs(&self) -> &[Entry] {
        &self.record.designs
    }

    /// How well the model ranks the measured designs.
    fn agreement(&self) -> Option<Agreement> {
        let designs = self.designs().iter();
        let pairs: Vec<(f64, f64)> = designs
            .filter_map(|d| Some((d.predicted?, d.measured)))
            .collect();
        Agreement::of(&pairs)
    }

    /// Prints the table and performs the other requested actions; returns whether results were
    /// wrong.
    fn say(&self, task: &Task<'_>) -> Outcome {
        let args = task.args;
        if !args.json {
            term::print(table::text(self, task));
        }
        let mut status = Status::Done;
        if let Some(outcome) = &self.outcome {
            for (design, why) in outcome.wrong() {
                status = Status::Bug;
                report_wrong(task, &design.candidate.mapping.to_string(), why);
            }
            if self.designs().is_empty() && status == Status::Done {
                let Some(expected) = &outcome.expected else {
                    return Err(self.nothing(outcome));
                };
                return self.say_expected(task, expected);
            }
        }
        if let Some(dir) = &args.plot {
            for path in plot::write(self, task, dir)? {
                if !args.json {
                    term::print(format!("{} written\n", path.display()));
                }
            }
        }
        let best = self.designs().first();
        if let (Some(name), Some(best)) = (&args.save, best) {
            let mapping = mapping_of(task.system, &self.record, best);
            let mapping =
                mapping.ok_or_else(|| Failure::new("the mapping cannot be read again"))?;
            self.save(task, &duration(best.measured), mapping, name)?;
            if !args.json {
                term::print(format!("mapping {name} written to {}\n", task.source.path));
            }
        }
        if args.explain.is_some()
            && let Some(best) = best
            && let Some(mapping) = mapping_of(task.system, &self.record, best)
        {
            explain::mapping(task, &mapping, &fix_of(&self.record), Some(best.measured))?;
        }
        Ok(status)
    }

    /// `time`: that of the mapping, in words.
    fn save(
        &self,
        task: &Task<'_>,
        time: &str,
        mapping: Mapping,
        name: &str,
    ) -> Result<(), Failure> {
        let (sizes, fix) = (&self.record.sizes, fix_of(&self.record));
        let platform = task.target_device.platform();
        let why = format!(": {time}");
        let comment = save::comment("Found by the explorer", sizes, &fix, &platform, &why);
        save::save(task.source, &comment, mapping, name)
    }

    /// Nothing was measured: prints the best design by the model.
    fn say_expected(&self, task: &Task<'_>, expected: &Design) -> Outcome {
        let mapping = &expected.candidate.mapping;
        let seconds = expected.predicted.unwrap_or_default();
        if !task.args.json {
            term::print(format!(
                "  nothing was measured; of what is legal, the model expects {} to be the fastest: {} predicted\n\n{mapping}",
                mapping.name,
                duration(seconds)
            ));
        }
        if let Some(name) = &task.args.save {
            let time = format!("{} predicted, nothing measured", duration(seconds));
            self.save(task, &time, mapping.clone(), name)?;
            if !task.args.json {
                term::print(format!("mapping {name} written to {}\n", task.source.path));
            }
        }
        Ok(Status::Done)
    }

    /// The error where nothing was measured.
    fn nothing(&self, outcome: &Explored) -> Failure {
        if outcome.ended == Ended::Interrupted {
            return Failure::new(INTERRUPTED_EARLY);
        }
        let reason = outcome.designs.iter().find_map(|design| {
            let fault = design.fault.as_ref()?;
            Some(format!("{}: {}", design.name(), table::fault_text(fault)))
        });
        let failure = Failure::new(format!(
            "none of {} designs that were tried could be measured",
            outcome.designs.len()
        ));
        match reason {
            Some(reason) => failure.help(reason),
            None => failure,
        }
    }
}

fn report_wrong(task: &Task<'_>, mapping: &str, why: &str) {
    term::eprint(format!(
        "{}: a design is wrong: {why}\n{mapping}\
         This is a bug of Systola, not of your program; the design was left out. Please report it at\n  \
         {}/issues\nwith the text above, {} and the sizes: {}.\n",
        Paint::Red.err("internal error"),
        env!("CARGO_PKG_REPOSITORY"),
        task.source.path,
        task.title(),
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_have_units() {
        let check =
            |text, millis| assert_eq!(parse_budget(text), Ok(Duration::from_millis(millis)));
        check("30s", 30_000);
        check("30", 30_000);
        check("500ms", 500);
        check("1.5m", 90_000);
        for wrong in ["", "s", "-1s", "0", "3h", "nan", "1e9"] {
            assert!(parse_budget(wrong).is_err(), "{wrong}");
        }
    }
}
