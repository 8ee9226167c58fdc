//! Which mapping runs where the user names none: the best that was measured here, else the one that the model expects to be the fastest.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use systola_driver::{Fix, check_system};
use systola_explore::problem::{Problem, short_sums};
use systola_explore::rank::Ranker;
use systola_ir::mapping::Mapping;
use systola_ir::system::System;

use crate::cmd::explore::all_candidates;
use crate::execute::duration;
use crate::place::Place;
use crate::source::{Failure, Parameters, Source};
use crate::term::{self, Paint};
use crate::tuned::{Tuned, fix_of, mapping_of};

/// So many candidates are looked at, beside the mappings of the file.
const LOOKED_AT: usize = 32;
/// More than it ever takes.
const PATIENCE: Duration = Duration::from_secs(3600);

/// A mapping, and the sizes that are numbers in its kernels.
pub struct Choice {
    pub mapping: Mapping,
    pub fix: Fix,
}

/// Chooses, and says in one line why.
pub fn choose(
    source: &Source,
    system: &System,
    params: &[i128],
    place: &Place,
) -> Result<Choice, Failure> {
    let sizes = Parameters::from(system).named(params);
    let found = check_system(system, &sizes);
    if !found.is_empty() {
        return Err(source.fail(&found));
    }
    if let Some(choice) = remembered(system, params, place) {
        return Ok(choice);
    }
    let fix = match place.fix() {
        Fix::Nothing => short_sums(system, &sizes),
        given @ (Fix::Everything | Fix::Names(_)) => given.clone(),
    };
    let problem = Problem {
        module: &source.module,
        system,
        sizes,
        fix: fix.clone(),
        machine: place.machine(),
    };
    let mut all = all_candidates(&problem);
    let own = all.iter().filter(|(_, given)| *given).count();
    all.truncate(own + LOOKED_AT);
    let ranker = Ranker {
        problem: &problem,
        params,
        model: &place.model(),
        end: Instant::now() + PATIENCE,
        stop: &AtomicBool::new(false),
    };
    let ranking = ranker.rank(all);
    let many = ranking.ranked.len();
    let best = ranking.ranked.into_iter().next();
    let best = best.filter(|design| design.predicted.is_some());
    let Some(best) = best else {
        // The first of the file, or what is to be said where it has none.
        return Ok(Choice {
            mapping: source.mapping(None, Some(&system.name))?.clone(),
            fix: place.fix().clone(),
        });
    };
    let seconds = best.predicted_seconds().unwrap_or_default();
    say(
        system,
        &best.candidate.mapping.name,
        &format!(
            "the model's choice of {many}, {} predicted; `systola explore` measures",
            duration(seconds)
        ),
    );
    Ok(Choice {
        mapping: best.candidate.mapping,
        fix,
    })
}

fn remembered(system: &System, params: &[i128], place: &Place) -> Option<Choice> {
    let names = system.params.iter().map(|p| p.name.clone());
    let sizes: Vec<(String, i128)> = names.zip(params.iter().copied()).collect();
    let tuned = Tuned::read(system, &sizes, place);
    let (record, entry) = tuned.best(place.fix())?;
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
