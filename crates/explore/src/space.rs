//! The space of candidate mappings.
//!
//! Every point of the space is a mapping as a person would write it. No family knows an algorithm:
//! each considers the roles of the iterators ([`axes`]), and its mappings are checked like a
//! user's.
//!
//! * [`tiles`]: output-stationary, in tiles of registers, lanes and warps;
//! * [`folds`]: sums in stages, over time, registers, lanes and blocks;
//! * [`scans`]: running sums, over registers, lanes and blocks that look back;
//! * [`strips`]: a recurrence on a line of PEs, block after block;
//! * [`sweeps`]: many sweeps over a field, in registers, with tiles that overlap;
//! * [`sums`]: lanes along a sum or a recurrence;
//! * [`orders`]: loops in a legal order, for systems that no other family fits;
//! * [`mod@pieces`]: an order for each part of the index space, where there is none for all of it;
//! * loops in the order of a proof, where variables have iterators of their own;
//! * [`mod@designs`]: the allocations and linear schedules of the literature, whole or in blocks.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use systola_driver::{Fix, loops};
use systola_ir::mapping::Mapping;
use systola_rt::Deadline;

pub mod axes;
pub mod designs;
pub mod folds;
pub mod opposed;
pub mod orders;
pub mod pieces;
pub mod scans;
mod schedule;
pub mod strips;
pub mod sums;
pub mod sweeps;
mod text;
pub mod tiles;
mod tiling_cost;
mod tilings;

use self::axes::{Axes, Role};
use self::text::Text;
use crate::problem::Problem;

/// One mapping of the space, and the choices that made it.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    pub mapping: Mapping,
    /// The choices, for tables and pictures: `("lanes", "c")`, `("registers", "8 r × 2 c")`.
    pub choices: Vec<(&'static str, String)>,
}

impl Candidate {
    /// Is it this mapping, up to its name and the order of its lines?
    pub fn says_the_same(&self, other: &Mapping) -> bool {
        let lines = |mapping: &Mapping| -> Vec<String> {
            let lines = mapping.directives.iter().map(ToString::to_string);
            let mut lines: Vec<String> = lines.collect();
            lines.sort();
            lines
        };
        self.mapping.system == other.system && lines(&self.mapping) == lines(other)
    }
}

/// The maximum number of candidates of a family,
const MOST: usize = 3000;

/// and the minimum number, where time is short.
const LEAST: usize = 64;

/// The maximum number of designs of the literature, which are many and seldom the fastest: those
/// with the fewest steps among `COMPARED_DESIGNS`.
const MOST_DESIGNS: usize = 100;
const COMPARED_DESIGNS: usize = 100_000;

/// They come after this many other candidates: some of them take seconds to lower.
const BEFORE_DESIGNS: usize = 400;

/// Orders and lanes along sums come after this many other candidates: they win only where no other
/// family fits.
const BEFORE_ORDERS: usize = 12;

/// Looks at a counted deadline: shapes of tilings, their comparisons, and candidates that are
/// written.
const STEPS: u64 = 20_000;

/// The relative penalty of a tiling for each similar one before it.
const SIMILARITY_PENALTY: f64 = 0.01;

/// Components of schedules of the designs of the literature go up to this.
const BOUND: i128 = 2;

/// The most promising mappings of a problem, best first. Some may be refused at these sizes.
pub fn candidates(problem: &Problem<'_>) -> Vec<Candidate> {
    candidates_until(problem, &Deadline::after(Duration::MAX))
}

/// The same, limited by a count of steps instead of a time: always the same ones.
pub fn candidates_counted(problem: &Problem<'_>) -> Vec<Candidate> {
    candidates_until(problem, &Deadline::counted(STEPS))
}

/// The families of candidates, which are numbered in each.
const FAMILIES: [&str; 11] = [
    "tile",
    "fold",
    "scan",
    "strip",
    "sweep",
    "sum",
    "order",
    "piece",
    "design",
    LOOPS,
    LINEAR_ARRAY,
];

/// The family of [`linear_arrays`], which are for looking at.
pub const LINEAR_ARRAY: &str = "array";

/// The family of systems whose variables have iterators of their own: the loops in which their
/// values are shown to be computable.
const LOOPS: &str = "loops";

/// The designs of the literature that are compared for a picture.
const COMPARED_ARRAYS: usize = 2000;

/// Could a candidate have this name?
pub fn is_name_of_a_candidate(name: &str) -> bool {
    let digits = |rest: &str| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit());
    let mut families = FAMILIES.iter();
    families.any(|family| name.strip_prefix(family).is_some_and(digits))
}

/// The same, limited to candidates that are found until the deadline.
pub fn candidates_until(problem: &Problem<'_>, deadline: &Deadline) -> Vec<Candidate> {
    if !problem.system.has_one_space() {
        let mapping = loops(problem.system, &format!("{LOOPS}1"));
        let candidate = mapping.map(|mapping| Candidate {
            mapping,
            choices: vec![("loops", "in order".to_string())],
        });
        return candidate.into_iter().collect();
    }
    let Some(axes) = axes_of(problem) else {
        return Vec::new();
    };
    let system = &problem.system.name;
    let text = || Text::new(names(problem), lanes(problem, &axes));

    let tilings = promising(&axes, problem, deadline);
    let tilings = numbered("tile", tilings, deadline, |name, tiling| Candidate {
        mapping: tiling.write(&axes, name, system, text()),
        choices: tiling.choices(&axes),
    });
    let folds = folds::folds(&axes, &problem.machine, lanes(problem, &axes));
    let folds = numbered("fold", folds, deadline, |name, fold| Candidate {
        mapping: fold.write(&axes, name, system, text()),
        choices: fold.choices(&axes),
    });
    let scans = scans::scans(&axes, &problem.machine, lanes(problem, &axes));
    let scans = numbered("scan", scans, deadline, |name, scan| Candidate {
        mapping: scan.write(&axes, name, system, text()),
        choices: scan.choices(&axes),
    });
    let strips = strips::strips(&axes, &problem.machine);
    let strips = numbered("strip", strips, deadline, |name, strip| Candidate {
        mapping: strip.write(&axes, name, system, text()),
        choices: strip.choices(&axes),
    });
    let sweeps = sweeps::sweeps(&axes, &problem.machine);
    let sweeps = numbered("sweep", sweeps, deadline, |name, sweep| Candidate {
        mapping: sweep.write(&axes, name, system, text()),
        choices: sweep.choices(&axes),
    });
    let sums = numbered("sum", sums::along(&axes), deadline, |name, along| {
        Candidate {
            mapping: along.write(&axes, name, system, text()),
            choices: along.choices(&axes),
        }
    });
    let orders = orders::orders(&axes, &problem.machine);
    let orders = numbered("order", orders, deadline, |name, order| Candidate {
        mapping: order.write(&axes, name, system, text()),
        choices: order.choices(&axes),
    });
    let pieces = if orders.is_empty() {
        in_pieces(problem, &axes, deadline)
    } else {
        Vec::new()
    };
    let mut all = interleave(vec![folds, scans, tilings, strips, sweeps]);
    let at = all.len().min(BEFORE_ORDERS);
    all.splice(at..at, interleave(vec![sums, orders, pieces]));
    let at = all.len().min(BEFORE_DESIGNS);
    all.splice(at..at, tiled_designs(problem, &axes, deadline));
    all
}

/// The system may have a batch; pieces are those of one element of the batch.
fn in_pieces(problem: &Problem<'_>, axes: &Axes, deadline: &Deadline) -> Vec<Candidate> {
    let Ok(system) = problem.system.expand_batch() else {
        return Vec::new();
    };
    let sizes = system.params.iter().map(|p| problem.sizes.get(&p.name));
    let Some(sizes) = sizes.map(|s| s.copied()).collect::<Option<Vec<i128>>>() else {
        return Vec::new();
    };
    let list = pieces::pieces(axes, &system, &sizes, deadline);
    let named = list.into_iter().enumerate();
    let candidates = named.filter_map(|(n, pieces)| {
        let text = Text::new(names(problem), lanes(problem, axes));
        Some(Candidate {
            mapping: pieces.write(axes, &system, &format!("piece{}", n + 1), text)?,
            choices: pieces.choices(axes),
        })
    });
    candidates.collect()
}

/// The most promising tilings first. Those with the same registers and lanes are similar: each one
/// after the first is penalised, so that different ones are tried early.
fn promising(axes: &Axes, problem: &Problem<'_>, deadline: &Deadline) -> Vec<tiles::Tiling> {
    // A third of the remaining time each to find them, to compare them, and to write them.
    let part = |n: u32| deadline.or_at(Instant::now() + deadline.left() / n);
    let found = tilings::tilings(axes, &problem.machine, &part(3));
    let compared = part(2);
    let mut list: Vec<(f64, tiles::Tiling)> = found
        .into_iter()
        .enumerate()
        .take_while(|(n, _)| *n < LEAST || !compared.is_over())
        .map(|(_, t)| (tiling_cost::cost(axes, &problem.machine, &t), t))
        .collect();
    list.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut seen = HashSet::new();
    list.retain(|(_, t)| seen.insert(t.clone()));
    if problem.machine.threads.is_some() {
        let mut alike: HashMap<Vec<(i128, i128, i128)>, f64> = HashMap::new();
        for (cost, tiling) in &mut list {
            let shape = |s: &tiles::Split| (s.low, s.lanes, s.high);
            let before = alike
                .entry(tiling.splits.iter().map(shape).collect())
                .or_default();
            *cost *= 1.0 + SIMILARITY_PENALTY * *before;
            *before += 1.0;
        }
        list.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    list.into_iter().map(|(_, tiling)| tiling).collect()
}

/// The designs of the literature for a system at sizes: allocations and linear schedules with
/// components up to `bound`, over the whole index space, for every way to forward inputs and to
/// order sums.
pub fn designs(problem: &Problem<'_>, bound: i128) -> Vec<Candidate> {
    let Some(axes) = axes_of(problem) else {
        return Vec::new();
    };
    let inner = designs::array_axes(&axes);
    let list = designs::designs(&axes, &inner, bound);
    let forever = Deadline::after(Duration::MAX);
    numbered("design", list, &forever, |name, design| {
        let text = Text::new(names(problem), lanes(problem, &axes));
        Candidate {
            mapping: design.write(&axes, None, name, &problem.system.name, text),
            choices: design.choices(&axes),
        }
    })
}

/// The designs of the literature over the whole index space with components of at most 1, those
/// with the fewest steps first. Each is named by its place in the enumeration, at all sizes.
pub fn linear_arrays(problem: &Problem<'_>) -> Vec<Candidate> {
    let Some(axes) = axes_of(problem) else {
        return Vec::new();
    };
    let inner = designs::array_axes(&axes);
    let mut list = Vec::new();
    let limits = designs::Limits {
        designs: COMPARED_ARRAYS,
        deadline: None,
    };
    designs::visit(&axes, &inner, 1, &limits, &mut |design| list.push(design));
    let mut list: Vec<(usize, designs::Design)> = list.into_iter().enumerate().collect();
    list.sort_by_cached_key(|(_, design)| design.steps(|axis| axes.extent(axis)));
    list.truncate(MOST_DESIGNS);
    let write = |(n, design): (usize, designs::Design)| {
        let text = Text::new(names(problem), lanes(problem, &axes));
        let name = format!("{LINEAR_ARRAY}{}", n + 1);
        Candidate {
            mapping: design.write(&axes, None, &name, &problem.system.name, text),
            choices: design.choices(&axes),
        }
    };
    list.into_iter().map(write).collect()
}

/// The same in blocks: the parallel iterator of the array is tiled by multiples of the lanes.
fn tiled_designs(problem: &Problem<'_>, axes: &Axes, deadline: &Deadline) -> Vec<Candidate> {
    let inner = designs::array_axes(axes);
    let Some(cut) = inner
        .iter()
        .copied()
        .find(|a| axes.list[*a].role == Role::Parallel)
    else {
        return Vec::new();
    };
    let lanes = lanes(problem, axes);
    // Few steps first.
    let steps = |(design, size): &(designs::Design, i128)| {
        let extent = |axis: usize| {
            if axis == cut {
                *size
            } else {
                axes.extent(axis)
            }
        };
        design.steps(extent)
    };
    let mut list: Vec<(designs::Design, i128)> = Vec::new();
    let mut add = |design: designs::Design| {
        // Lanes of a tile: those of the iterator, or only those of the sum.
        let spread = design.allocation.iter().any(|row| row[cut] != 0);
        let sizes: &[i128] = if spread { &[1, 4] } else { &[16] };
        list.extend(sizes.iter().map(|size| (design.clone(), size * lanes)));
        if list.len() > 64 * MOST_DESIGNS {
            list.sort_by_cached_key(&steps);
            list.truncate(MOST_DESIGNS);
        }
    };
    let limits = designs::Limits {
        designs: COMPARED_DESIGNS,
        deadline: Some(deadline),
    };
    designs::visit(axes, &inner, BOUND, &limits, &mut add);
    list.sort_by_cached_key(&steps);
    list.truncate(MOST_DESIGNS);
    numbered("design", list, deadline, |name, (design, size)| {
        let text = Text::new(names(problem), lanes);
        let mut choices = design.choices(axes);
        choices.push(("tile", format!("{size} {}", axes.name(cut))));
        Candidate {
            mapping: design.write(axes, Some((cut, *size)), name, &problem.system.name, text),
            choices,
        }
    })
}

fn numbered<T>(
    family: &str,
    mut list: Vec<T>,
    deadline: &Deadline,
    candidate: impl Fn(&str, &T) -> Candidate,
) -> Vec<Candidate> {
    list.truncate(MOST);
    let named = list.iter().enumerate();
    named
        .take_while(|(n, _)| *n < LEAST || !deadline.is_over())
        .map(|(n, item)| candidate(&format!("{family}{}", n + 1), item))
        .collect()
}

/// The best of every family first, then the second best of every family.
fn interleave(families: Vec<Vec<Candidate>>) -> Vec<Candidate> {
    let mut families: Vec<_> = families.into_iter().map(Vec::into_iter).collect();
    let mut all = Vec::new();
    loop {
        let before = all.len();
        all.extend(families.iter_mut().filter_map(Iterator::next));
        if all.len() == before {
            return all;
        }
    }
}

fn axes_of(problem: &Problem<'_>) -> Option<Axes> {
    let params = &problem.system.params;
    let sizes = params.iter().map(|p| problem.sizes.get(&p.name).copied());
    let sizes: Vec<i128> = sizes.collect::<Option<_>>()?;
    let fixed: Vec<bool> = params
        .iter()
        .map(|p| match &problem.fix {
            Fix::Nothing => false,
            Fix::Everything => true,
            Fix::Names(names) => names.contains(&p.name),
        })
        .collect();
    Axes::of(problem.system, &sizes, &fixed)
}

fn lanes(problem: &Problem<'_>, axes: &Axes) -> i128 {
    i128::from(problem.machine.lanes(axes.bits))
}

/// Names that a mapping of the system must not use.
fn names(problem: &Problem<'_>) -> Vec<String> {
    let system = problem.system;
    let mut names = system.param_names();
    names.extend(system.dim_names());
    names.extend(system.batch.iter().map(|b| b.name.clone()));
    names.extend(system.vars.iter().map(|v| v.name.clone()));
    names.extend(system.inputs.iter().map(|i| i.name.clone()));
    names.extend(system.consts.iter().map(|c| c.name.clone()));
    names
}
