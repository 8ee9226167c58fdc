//! Chooses a mapping where the user names none: the best that was measured on this machine, else
//! the one that the model predicts to be the fastest.
//!
//! What the model chooses depends on the input and the platform alone. Its work is bounded by
//! counts: of candidates, and of the questions about integer sets that lowering asks. No clock
//! decides, so the same input gives the same mapping on a busy machine too.

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use affine::cancel::{self, Cancelled};
use systola_driver::{Fix, check_mapping, check_system};
use systola_ir::codes::{explore as codes, limits, run as run_codes};
use systola_ir::mapping::Mapping;
use systola_ir::system::{Module, System};
use systola_ir::{Diagnostic, Span};
use systola_rt::timing::duration;

use crate::measure::STACK;
use crate::platform::Platform;
use crate::problem::{Problem, short_sums};
use crate::rank::{Ranked, evaluate};
use crate::sizes::{Parameters, Sizes, typical};
use crate::space::opposed::opposed;
use crate::space::{
    Candidate, LINEAR_ARRAY, candidates_counted, is_name_of_a_candidate, linear_arrays,
};
use crate::tuned::{Known, Remembered, Tuned, fix_of, known, mapping_of};

/// The number of candidates that are considered besides the mappings of the file,
const CONSIDERED: usize = 32;
/// and where none of them has a kernel.
const CONSIDERED_AT_LAST: usize = 256;
/// Candidates that are lowered before the work is counted again.
const AT_ONCE: usize = 8;
/// The work for one candidate, and for all of them once one has a kernel. A unit takes some
/// microseconds (`affine::cancel`).
const WORK_OF_ONE: u64 = 60_000;
const WORK: u64 = 4 * WORK_OF_ONE;
/// The same as long as none has one.
const WORK_AT_LAST: u64 = 4 * WORK;

/// The subject of a choice: a checked file, one of its systems, and where it is to run.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub module: &'a Module,
    pub system: &'a System,
    /// The sizes that are given; for the others typical ones are taken.
    pub sizes: &'a Sizes,
    pub platform: &'a Platform,
}

/// A mapping, and the sizes that are constants in its kernels.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    pub mapping: Mapping,
    pub fix: Fix,
    pub why: Why,
    /// The sizes it was chosen for.
    pub sizes: Vec<(String, i128)>,
    /// The names of those that were not given.
    pub taken: Vec<String>,
    /// What is wrong with the stored results.
    pub notes: Vec<String>,
}

/// Why a mapping was chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Why {
    /// It is the best that was explored.
    Measured { designs: usize, seconds: f64 },
    /// The model predicts it to be the fastest.
    Predicted {
        candidates: usize,
        seconds: f64,
        /// By an earlier call.
        remembered: bool,
    },
    /// It is the first legal one; the model has no prediction for any.
    Legal { candidates: usize },
    /// It is a linear array with few steps, for looking at.
    FewSteps,
    /// It is the first of the file.
    First,
    /// The user named it.
    Named,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Measured { designs, seconds } => write!(
                f,
                "the best of {designs} that `systola explore` measured here, {}",
                duration(*seconds)
            ),
            Why::Predicted {
                candidates,
                seconds,
                remembered,
            } => {
                let more = if *remembered { ", remembered" } else { "" };
                let seconds = duration(*seconds);
                write!(
                    f,
                    "the model's choice of {candidates}, {seconds} predicted{more}; `systola explore` measures"
                )
            }
            Why::Legal { candidates } => write!(
                f,
                "the first that is legal of {candidates}, none of which the model can predict"
            ),
            Why::FewSteps => {
                f.write_str("a linear array with few steps, since the file has no mapping")
            }
            Why::First => f.write_str("the first of the file"),
            Why::Named => f.write_str("named"),
        }
    }
}

impl fmt::Display for Choice {
    /// `tile1 of conv1d: the model's choice of 42, …`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, system) = (&self.mapping.name, &self.mapping.system);
        write!(f, "{name} of {system}")?;
        if !self.taken.is_empty() {
            let show = |(p, v): &(String, i128)| format!("{p} = {v}");
            let sizes: Vec<String> = self.sizes.iter().map(show).collect();
            let (sizes, taken) = (sizes.join(", "), self.taken.join(", "));
            write!(f, " at {sizes} ({taken} not given)")?;
        }
        write!(f, ": {}", self.why)
    }
}

impl Choice {
    /// The first mapping of the file for a system, if it has one.
    pub fn first(module: &Module, system: &System, fix: &Fix) -> Option<Choice> {
        let mapping = module.mappings.iter().find(|m| m.system == system.name)?;
        Some(Choice::of(mapping.clone(), fix.clone(), Why::First))
    }

    /// A mapping that needed no choice.
    pub fn named(mapping: Mapping, fix: Fix) -> Choice {
        Choice::of(mapping, fix, Why::Named)
    }

    fn of(mapping: Mapping, fix: Fix, why: Why) -> Choice {
        Choice {
            mapping,
            fix,
            why,
            sizes: Vec::new(),
            taken: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// The file with this mapping.
    pub fn added_to(&self, module: &Module) -> Module {
        let mut module = module.clone();
        let same = |m: &Mapping| m.name == self.mapping.name && m.system == self.mapping.system;
        if !module.mappings.iter().any(same) {
            module.mappings.push(self.mapping.clone());
        }
        module
    }
}

impl<'a> Subject<'a> {
    /// Chooses a mapping.
    pub fn choose(&self) -> Result<Choice, Vec<Diagnostic>> {
        let task = Task::new(*self)?;
        let mut notes = Vec::new();
        if let Some(choice) = task.measured(&mut notes) {
            return Ok(task.finish(choice, notes));
        }
        let own = task.own();
        let remembered =
            Remembered::about(self.system, &own, &task.listed, &task.taken, self.platform);
        if let Some((chosen, mapping, fix)) = remembered.last(self.system, &mut notes) {
            let why = Why::Predicted {
                candidates: chosen.candidates,
                seconds: chosen.predicted,
                remembered: true,
            };
            return Ok(task.finish(Choice::of(mapping, fix, why), notes));
        }
        let choice = task.by_the_model()?;
        if let Why::Predicted {
            candidates,
            seconds,
            ..
        } = choice.why
        {
            notes.extend(remembered.add(&choice.mapping, &choice.fix, seconds, candidates));
        }
        Ok(task.finish(choice, notes))
    }

    /// A design by the name that the explorer or a choice printed: a stored one, else the candidate
    /// of this name. `None`: there is none.
    pub fn named(&self, name: &str) -> Result<Option<Choice>, Vec<Diagnostic>> {
        if !is_name_of_a_candidate(name) {
            return Ok(None);
        }
        if let Some(found) = known(self.system, name, self.sizes, self.platform) {
            return Ok(Some(self.of_known(found)));
        }
        let task = Task::new(*self)?;
        let problem = task.problem();
        let found = on_large_stack(|| match name.starts_with(LINEAR_ARRAY) {
            true => linear_arrays(&problem),
            false => candidates_counted(&problem),
        });
        let found = found.into_iter().find(|c| c.mapping.name == name);
        Ok(found.map(|candidate| {
            let choice = Choice::of(candidate.mapping, task.fix(), Why::Named);
            task.finish(choice, Vec::new())
        }))
    }

    /// An array that a picture can show: with a linear schedule of few steps. Where there is none,
    /// as [`Subject::choose`].
    pub fn readable(&self) -> Result<Choice, Vec<Diagnostic>> {
        let task = Task::new(*self)?;
        let problem = task.problem();
        let arrays = on_large_stack(|| linear_arrays(&problem));
        for candidate in arrays.iter().take(CONSIDERED) {
            let check = || check_mapping(self.module, &candidate.mapping, &problem.sizes);
            if let (Ok(Ok(_)), _) = on_large_stack(|| within(WORK_OF_ONE, check)) {
                let mapping = candidate.mapping.clone();
                return Ok(task.finish(Choice::of(mapping, task.fix(), Why::FewSteps), Vec::new()));
            }
        }
        self.choose()
    }

    fn of_known(&self, found: Known) -> Choice {
        let is_taken = |(p, _): &&(String, i128)| !self.sizes.contains_key(p);
        let taken: Vec<String> = found
            .sizes
            .iter()
            .filter(is_taken)
            .map(|s| s.0.clone())
            .collect();
        let fix = match &self.platform.fix {
            // A size that is not given is no constant.
            Fix::Nothing if taken.is_empty() => found.fix,
            given => given.clone(),
        };
        Choice {
            sizes: found.sizes,
            taken,
            ..Choice::of(found.mapping, fix, Why::Named)
        }
    }
}

/// A subject with all sizes.
struct Task<'a> {
    subject: Subject<'a>,
    params: Vec<i128>,
    listed: Vec<(String, i128)>,
    taken: Vec<String>,
}

impl<'a> Task<'a> {
    fn new(subject: Subject<'a>) -> Result<Task<'a>, Vec<Diagnostic>> {
        let parameters = Parameters::from(subject.system);
        let missing = parameters.missing(subject.sizes);
        let taken: Vec<String> = missing.into_iter().map(str::to_string).collect();
        let params = typical(subject.system, subject.sizes).ok_or_else(|| {
            let message = format!(
                "no sizes were found that satisfy the context of `{}`",
                subject.system.name
            );
            let found = Diagnostic::new(&run_codes::CONTEXT_VIOLATED, Span::NONE, message);
            vec![found.help("give all sizes")]
        })?;
        let names = subject.system.params.iter().map(|p| p.name.clone());
        Ok(Task {
            listed: names.zip(params.iter().copied()).collect(),
            subject,
            params,
            taken,
        })
    }

    /// The mappings of the file.
    fn own(&self) -> Vec<&'a Mapping> {
        let all = self.subject.module.mappings.iter();
        all.filter(|m| m.system == self.subject.system.name)
            .collect()
    }

    /// The sizes that become constants: those that the user fixes, else those of short sums, unless
    /// they were only taken.
    fn fix(&self) -> Fix {
        match &self.subject.platform.fix {
            Fix::Nothing => short_sums(self.subject.system, self.subject.sizes),
            given @ (Fix::Everything | Fix::Names(_)) => given.clone(),
        }
    }

    fn problem(&self) -> Problem<'a> {
        Problem {
            module: self.subject.module,
            system: self.subject.system,
            sizes: self.listed.iter().cloned().collect(),
            fix: self.fix(),
            machine: self.subject.platform.machine.clone(),
        }
    }

    fn finish(&self, choice: Choice, notes: Vec<String>) -> Choice {
        Choice {
            sizes: self.listed.clone(),
            taken: self.taken.clone(),
            notes,
            ..choice
        }
    }

    fn measured(&self, notes: &mut Vec<String>) -> Option<Choice> {
        let Subject {
            system, platform, ..
        } = self.subject;
        let tuned = Tuned::read(system, &self.listed, platform);
        notes.extend(tuned.notes.iter().cloned());
        let (record, entry) = tuned.best(&platform.fix)?;
        let mapping = mapping_of(system, record, entry)?;
        let fix = match self.taken.is_empty() {
            true => fix_of(record),
            false => self.fix(),
        };
        let why = Why::Measured {
            designs: record.designs.len(),
            seconds: entry.measured,
        };
        Some(Choice::of(mapping, fix, why))
    }

    /// The candidate that the model predicts to be the fastest.
    fn by_the_model(&self) -> Result<Choice, Vec<Diagnostic>> {
        let problem = self.problem();
        let check = || check_system(problem.system, &problem.sizes);
        let checked = on_large_stack(|| within(WORK_AT_LAST, check)).0;
        let found = checked.map_err(|Cancelled| vec![self.too_much(0)])?;
        if !found.is_empty() {
            return Err(found);
        }
        let all = on_large_stack(|| all_candidates(&problem));
        let mut trials = Trials {
            problem: &problem,
            params: &self.params,
            platform: self.subject.platform,
            ranked: Vec::new(),
            refused: None,
            cancelled: Vec::new(),
            looked_at: 0,
            work: 0,
        };
        let own = self.own().len();
        let (first, rest) = all.split_at(all.len().min(own + CONSIDERED));
        trials.try_all(first, WORK_OF_ONE);
        if trials.ranked.is_empty() {
            let rest = &rest[..rest.len().min(CONSIDERED_AT_LAST - CONSIDERED)];
            trials.try_all(rest, WORK_OF_ONE);
        }
        if trials.ranked.is_empty() {
            // Those that were cancelled, with more patience.
            let late = std::mem::take(&mut trials.cancelled);
            trials.work = 0;
            trials.try_all(&late, WORK_AT_LAST);
        }
        let candidates = trials.looked_at;
        if trials.ranked.is_empty() {
            return Err(vec![match trials.cancelled.is_empty() {
                true => no_design(self.subject.system, candidates, trials.refused),
                false => self.too_much(candidates),
            }]);
        }
        let mut ranked = trials.ranked;
        let seconds = |r: &Ranked| r.predicted_seconds().unwrap_or(f64::INFINITY);
        // The first of equals, in the order of the candidates.
        ranked.sort_by(|a, b| seconds(a).total_cmp(&seconds(b)));
        let why = match ranked[0].predicted_seconds() {
            Some(seconds) => Why::Predicted {
                candidates: ranked.len(),
                seconds,
                remembered: false,
            },
            None => Why::Legal {
                candidates: ranked.len(),
            },
        };
        let best = ranked.swap_remove(0).candidate.mapping;
        Ok(Choice::of(best, problem.fix.clone(), why))
    }

    fn too_much(&self, candidates: usize) -> Diagnostic {
        let message = format!(
            "no mapping of `{}` was proved legal and lowered: {candidates} candidates took too much work",
            self.subject.system.name
        );
        Diagnostic::new(&codes::BUDGET_TOO_SMALL, Span::NONE, message)
            .help("name one with --map, or give `systola explore` enough time with --budget")
    }
}

/// The error where no candidate is legal.
pub fn no_design(system: &System, candidates: usize, why: Option<String>) -> Diagnostic {
    let message = format!("no candidate is legal and has a kernel at these sizes, of {candidates}");
    let help = match opposed(system) {
        Some((a, b)) => format!(
            "`{a}` and `{b}` go against each other, and all variables of a point run at one place and time: make \
             them two systems, and a `program` that runs one after the other"
        ),
        None => "write a mapping by hand, and see what `systola check` says of it".into(),
    };
    let mut found = Diagnostic::new(&limits::NO_DESIGN, Span::NONE, message).help(help);
    found
        .notes
        .extend(why.map(|why| format!("the first: {why}")));
    found
}

/// The mappings of the file, and those of the space that are not in the file.
fn all_candidates(problem: &Problem<'_>) -> Vec<(Candidate, bool)> {
    problem.with_own(candidates_counted(problem))
}

/// Candidates that are lowered one after the other.
struct Trials<'a> {
    problem: &'a Problem<'a>,
    params: &'a [i128],
    platform: &'a Platform,
    ranked: Vec<Ranked>,
    /// Why the first was refused.
    refused: Option<String>,
    cancelled: Vec<(Candidate, bool)>,
    looked_at: usize,
    /// The work so far.
    work: u64,
}

impl Trials<'_> {
    /// Lowers candidates, each with at most so much work, while there is work left. Those of one
    /// batch run at once; how many do so has no influence on the result.
    fn try_all(&mut self, candidates: &[(Candidate, bool)], work_of_one: u64) {
        for batch in candidates.chunks(AT_ONCE) {
            let most = match self.ranked.is_empty() {
                true => WORK_AT_LAST.max(2 * work_of_one),
                false => WORK,
            };
            if self.work >= most {
                if self.ranked.is_empty() {
                    self.cancelled.extend_from_slice(batch);
                }
                return;
            }
            let trials = on_threads(batch, |(candidate, given)| {
                within(work_of_one, || {
                    evaluate(
                        self.problem,
                        self.params,
                        &self.platform.model,
                        candidate,
                        *given,
                    )
                })
            });
            for (one, trial) in batch.iter().zip(trials) {
                // A panic is a bug of ours, and the candidate is left out.
                let Some((found, work)) = trial else { continue };
                self.work += work;
                self.looked_at += 1;
                match found {
                    Ok(Ok(ranked)) => self.ranked.push(ranked),
                    Ok(Err(why)) => {
                        self.refused.get_or_insert(why);
                    }
                    Err(Cancelled) => self.cancelled.push(one.clone()),
                }
            }
        }
    }
}

/// Runs a computation with at most so much work, and says how much it took. On a thread of its own
/// the count is always the same.
fn within<R>(most: u64, work: impl FnOnce() -> R) -> (Result<R, Cancelled>, u64) {
    let asked = Rc::new(Cell::new(0));
    let seen = Rc::clone(&asked);
    let is_over = move || {
        seen.set(seen.get() + 1);
        seen.get() > most
    };
    let result = cancel::run(is_over, work);
    (result, asked.get())
}

/// Applies a function to each item, every time on a fresh thread with a large stack, as many at
/// once as there are hardware threads. `None`: it panicked.
fn on_threads<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<Option<R>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, R)>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..threads.min(items.len()) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(at) else { break };
                    let run = || catch_unwind(AssertUnwindSafe(|| work(item)));
                    if let Ok(result) = on_large_stack(run) {
                        let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                        done.push((at, result));
                    }
                }
            });
        }
    });
    let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
    for (at, result) in done.into_inner().unwrap_or_else(PoisonError::into_inner) {
        results[at] = Some(result);
    }
    results
}

/// Runs some work on a fresh thread with a large stack: symbolic parts recurse with the depth of
/// an expression. On this thread where there is no memory for one.
pub fn on_large_stack<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    let work = Mutex::new(Some(work));
    let take = || work.lock().unwrap_or_else(PoisonError::into_inner).take();
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().stack_size(STACK);
        let started = builder.spawn_scoped(scope, || take().map(|work| work()));
        let result = match started.map(|thread| thread.join()) {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => None,
        };
        result.unwrap_or_else(|| take().expect("it was not run yet")())
    })
}
