//! Rows asked for some turns of a loop before they are read.
//!
//! A loop that walks down the rows of an array reads another page in every turn. The hardware sees no sequence in that: it looks for
//! neighbouring lines and stops at the end of a page. So a turn asks for the lines that a later one reads.
//!
//! It is done in innermost loops, where a turn does much for every line, since elsewhere there is nothing that the wait could be hidden behind,
//! and where the array is too large to be in the cache.

use systola_ir::form::Form;
use systola_ir::kernel::{Access, Kernel, Stmt};
use systola_ir::{BufferId, DimId};

/// Operations on vectors that go with a line, at least.
const LEAST_WORK: usize = 16;
/// Operations between a request and the turn that reads what it brings.
const AHEAD: usize = 2048;

/// A line of an array in a later turn of a loop.
#[derive(Debug, PartialEq)]
pub struct Line {
    pub turn_of: DimId,
    pub buffer: BufferId,
    pub first: Vec<Form>,
}

/// What the loops of a kernel ask for.
pub fn lines(kernel: &Kernel) -> Vec<Line> {
    let mut lines = Vec::new();
    look(kernel, &kernel.body, &mut lines);
    lines
}

fn look(kernel: &Kernel, stmts: &[Stmt], lines: &mut Vec<Line>) {
    for stmt in stmts {
        if let Stmt::For {
            var, step, body, ..
        } = stmt
            && !has_loop(body)
        {
            let mut loads = Vec::new();
            let work = turn(kernel, body, *var, &mut loads);
            if work >= loads.len() * LEAST_WORK {
                let later = Form::from(*var).plus(AHEAD.div_ceil(work.max(1)) as i128 * step);
                lines.extend(loads.iter().filter_map(|load| {
                    let moved = |d: DimId| {
                        let is_lane = Some(d) == kernel.lane();
                        let first = is_lane.then(Form::zero);
                        first.or_else(|| (d == *var).then(|| later.clone()))
                    };
                    let index = load.index.iter().map(|form| form.substitute(&moved));
                    Some(Line {
                        turn_of: *var,
                        buffer: load.memory.buffer()?,
                        first: index.collect::<Result<_, _>>().ok()?,
                    })
                }));
            }
        }
        for body in stmt.bodies() {
            look(kernel, body, lines);
        }
    }
}

fn has_loop(stmts: &[Stmt]) -> bool {
    stmts
        .iter()
        .any(|stmt| matches!(stmt, Stmt::For { .. }) || stmt.bodies().into_iter().any(has_loop))
}

/// The operations of one turn, and the loads whose rows move with it. Of two branches the first is that of most turns.
fn turn<'s>(kernel: &Kernel, stmts: &'s [Stmt], var: DimId, loads: &mut Vec<&'s Access>) -> usize {
    let mut work = 0;
    for stmt in stmts {
        work += usize::from(kernel.is_work(stmt));
        if let Some((load, _)) = stmt.global_load() {
            add(kernel, load, var, loads);
        }
        if let Stmt::If {
            then, otherwise, ..
        } = stmt
        {
            let first = turn(kernel, then, var, loads);
            work += first.max(turn(kernel, otherwise, var, &mut Vec::new()));
        }
    }
    work
}

/// Adds a load whose row moves with the loop, if none is on its line: of those that follow each other the first to come there is asked for.
fn add<'s>(kernel: &Kernel, load: &'s Access, var: DimId, loads: &mut Vec<&'s Access>) {
    let Some((_, rows)) = load.index.split_last() else {
        return;
    };
    let moves = |form: &Form| match form.coefficient(var).as_constant() {
        Some(step) => step > 0 && !form.has_digit_of(var),
        None => false,
    };
    if !rows.iter().any(moves) {
        return;
    }
    for known in loads.iter_mut() {
        let Some(apart) = distance(known, load) else {
            continue;
        };
        let Some((last, rows)) = apart.split_last() else {
            continue;
        };
        if last.abs() >= i128::from(kernel.lanes) {
            continue;
        }
        if rows.iter().all(|d| *d >= 0) && rows.iter().any(|d| *d > 0) {
            *known = load;
        }
        return;
    }
    loads.push(load);
}

/// From one place to another of the same array, where it is known.
fn distance(from: &Access, to: &Access) -> Option<Vec<i128>> {
    if from.memory != to.memory || from.index.len() != to.index.len() {
        return None;
    }
    let pairs = from.index.iter().zip(&to.index);
    pairs.map(|(from, to)| to.sub(from).as_constant()).collect()
}
