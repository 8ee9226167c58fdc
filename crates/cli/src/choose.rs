//! Chooses a mapping where the user names none: the best that was measured on this machine, else
//! the one that the model predicts to be the fastest. The model's choice is stored.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use systola::rt::Deadline;
use systola_driver::{Fix, check_system};
use systola_explore::deadline::run_until;
use systola_explore::problem::{Problem, short_sums};
use systola_explore::rank::{Ranked, Ranker};
use systola_ir::codes::explore as codes;
use systola_ir::mapping::Mapping;
use systola_ir::system::System;
use systola_ir::{Diagnostic, Span};

use crate::cmd::explore::all_candidates;
use crate::execute::duration;
use crate::source::{Failure, Parameters, Source};
use crate::target_device::TargetDevice;
use crate::term::{self, Paint};
use crate::tuned::{Remembered, Tuned, fix_of, mapping_of};

/// The number of candidates that are considered besides the mappings of the file.
const CONSIDERED: usize = 32;
/// The time limit, for systems of one statement and for others,
const SIMPLE: Duration = Duration::from_secs(2);
const OTHERS: Duration = Duration::from_secs(5);
/// and its extension where no candidate is known to be legal by then.
const PATIENCE: Duration = Duration::from_millis(1500);
/// The share of it for writing mappings.
const WRITING: f64 = 0.25;

/// A mapping, and the sizes that are constants in its kernels.
pub struct Choice {
    pub mapping: Mapping,
    pub fix: Fix,
}

/// Chooses a mapping, and prints the reason in one line.
pub fn choose(
    source: &Source,
    system: &System,
    params: &[i128],
    target_device: &TargetDevice,
) -> Result<Choice, Failure> {
    let begin = Instant::now();
    if let Some(choice) = measured(system, params, target_device) {
        return Ok(choice);
    }
    let names = system.params.iter().map(|p| p.name.clone());
    let listed: Vec<(String, i128)> = names.zip(params.iter().copied()).collect();
    let own = source.module.mappings.iter();
    let own: Vec<&Mapping> = own.filter(|m| m.system == system.name).collect();
    let remembered = Remembered::about(system, &own, &listed, target_device);
    if let Some((chosen, mapping, fix)) = remembered.last(system) {
        let (many, predicted) = (chosen.candidates, chosen.predicted);
        say_predicted(system, &mapping, many, predicted, ", remembered");
        return Ok(Choice { mapping, fix });
    }
    let sizes = Parameters::from(system).named(params);
    let fix = match target_device.fix() {
        Fix::Nothing => short_sums(system, &sizes),
        given @ (Fix::Everything | Fix::Names(_)) => given.clone(),
    };
    let problem = Problem {
        module: &source.module,
        system,
        sizes,
        fix: fix.clone(),
        machine: target_device.machine(),
    };
    let time = match system.vars.len() {
        0 | 1 => SIMPLE,
        _ => OTHERS,
    };
    let progress = ProgressBar::new_spinner();
    progress.enable_steady_tick(Duration::from_millis(100));
    progress.set_message(format!("choosing a mapping of {}", system.name));
    let ranked = rank(source, &problem, params, target_device, (begin, time));
    progress.finish_and_clear();
    let ranked = ranked?;
    let many = ranked.len();
    let best = ranked.into_iter().next();
    let best = best.and_then(|best| Some((best.predicted_seconds()?, best)));
    let Some((seconds, best)) = best else {
        // The first mapping of the file, or an error if it has none.
        let mapping = source.mapping(None, Some(&system.name))?.clone();
        let why = "the first of the file; the model ranked none in the time it has";
        say(system, &mapping.name, why);
        return Ok(Choice {
            mapping,
            fix: target_device.fix().clone(),
        });
    };
    let mapping = best.candidate.mapping;
    remembered.add(&mapping, &fix, seconds, many);
    say_predicted(system, &mapping, many, seconds, "");
    Ok(Choice { mapping, fix })
}

/// Legal candidates, by predicted time. `time`: when it began, and the limit.
fn rank(
    source: &Source,
    problem: &Problem<'_>,
    params: &[i128],
    target_device: &TargetDevice,
    (begin, time): (Instant, Duration),
) -> Result<Vec<Ranked>, Failure> {
    let deadline = Deadline::at(begin + time + PATIENCE);
    let late = || {
        let message = format!(
            "no mapping of `{}` was proved legal and lowered in {:.1} s",
            problem.system.name,
            begin.elapsed().as_secs_f64()
        );
        let found = Diagnostic::new(&codes::BUDGET_TOO_SMALL, Span::NONE, message);
        source
            .fail(&[found
                .help("name one with --map, or give `systola explore` more time with --budget")])
    };
    let check = || check_system(problem.system, &problem.sizes);
    let found = run_until(&deadline, check).map_err(|_| late())?;
    if !found.is_empty() {
        return Err(source.fail(&found));
    }
    let mut all = all_candidates(problem, &deadline.or_at(begin + time.mul_f64(WRITING)));
    let own = all.iter().filter(|(_, given)| *given).count();
    all.truncate(own + CONSIDERED);
    let ranker = Ranker {
        problem,
        params,
        model: &target_device.model(),
        end: begin + time,
        deadline,
    };
    let ranking = ranker.rank(all);
    if ranking.ranked.is_empty() && ranking.left > 0 && own == 0 {
        return Err(late());
    }
    Ok(ranking.ranked)
}

fn say_predicted(system: &System, mapping: &Mapping, many: usize, seconds: f64, more: &str) {
    say(
        system,
        &mapping.name,
        &format!(
            "the model's choice of {many}, {} predicted{more}; `systola explore` measures",
            duration(seconds)
        ),
    );
}

fn measured(system: &System, params: &[i128], target_device: &TargetDevice) -> Option<Choice> {
    let names = system.params.iter().map(|p| p.name.clone());
    let sizes: Vec<(String, i128)> = names.zip(params.iter().copied()).collect();
    let tuned = Tuned::read(system, &sizes, target_device);
    let (record, entry) = tuned.best(target_device.fix())?;
    let mapping = mapping_of(system, record, entry)?;
    say(
        system,
        &mapping.name,
        &format!(
            "the best of {} that `systola explore` measured here, {}",
            record.designs.len(),
            duration(entry.measured)
        ),
    );
    Some(Choice {
        mapping,
        fix: fix_of(record),
    })
}

fn say(system: &System, name: &str, why: &str) {
    term::print(format!(
        "{} {name} of {}: {why}\n",
        Paint::Dim.out("no --map:"),
        system.name
    ));
}
