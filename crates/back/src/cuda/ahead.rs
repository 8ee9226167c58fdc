//! Lines asked for some turns of a loop before they are read.
//!
//! Where the values of a thread take most registers, few warps are there to hide the way from memory, and all of them wait
//! for the row that a turn reads first. So a turn asks for the row of a later one: it takes no register and nobody waits for it.
//!
//! It is done in loops whose turns do much for a row that is read; elsewhere there are warps enough, and a request is one more instruction.
//! An address behind the end of the array, for the last turns, becomes that of its last element.

use std::collections::HashMap;

use systola_ir::form::Form;
use systola_ir::kernel::{Access, Kernel, Stmt};
use systola_ir::{BufferId, DimId};

use crate::c_family::Context;
use crate::error::Fault;
use crate::expr::Expr;
use crate::prelude::File;

/// Words of a thread from which on few warps are left.
const MANY_REGISTERS: u32 = 64;
/// Operations that go with a request, at least.
const LEAST_WORK: usize = 96;
/// Operations between a request and the turn that reads what it brings: what a few warps do while memory answers.
const AHEAD: usize = 1200;
/// Bytes that come together: of rows that are nearer to each other one request is enough.
const LINE: i128 = 128;

/// What is asked for in the turns of a loop: places of a later turn.
pub type Requests = HashMap<DimId, Vec<Access>>;

/// The requests of all loops of a kernel, which needs so many registers. Constant memory has a cache of its own, and to ask
/// for it takes longer than to read it.
pub fn requests(
    kernel: &Kernel,
    constants: &[BufferId],
    registers: u32,
    has_flags: bool,
) -> Requests {
    let search = Search { kernel, constants };
    let mut found = Requests::new();
    // What other blocks write meanwhile must not be read before they are done.
    if registers >= MANY_REGISTERS && !has_flags {
        search.look(&kernel.body, &mut found);
    }
    found
}

struct Search<'k> {
    kernel: &'k Kernel,
    /// Inputs in constant memory.
    constants: &'k [BufferId],
}

impl Search<'_> {
    fn look(&self, stmts: &[Stmt], found: &mut Requests) {
        for stmt in stmts {
            if let Stmt::For {
                var, step, body, ..
            } = stmt
            {
                let mut loads = Vec::new();
                let work = self.turn(body, *var, &mut loads);
                if !loads.is_empty() && work >= loads.len() * LEAST_WORK {
                    let turns = AHEAD.div_ceil(work.max(1)) as i128;
                    let later = Form::from(*var).plus(turns * step);
                    let at = |d: DimId| (d == *var).then(|| later.clone());
                    let moved = loads.into_iter().filter_map(|load| {
                        let index: Result<Vec<_>, _> =
                            load.index.iter().map(|form| form.substitute(&at)).collect();
                        Some(Access::new(load.memory, index.ok()?))
                    });
                    found.insert(*var, moved.collect());
                }
            }
            for body in stmt.bodies() {
                self.look(body, found);
            }
        }
    }

    /// The operations of one turn, of which loops inside are no part; and the loads whose rows move with it. Of two
    /// branches the longer one counts, but the loads of the first, which is that of most turns.
    fn turn<'s>(&self, stmts: &'s [Stmt], var: DimId, loads: &mut Vec<&'s Access>) -> usize {
        let mut work = 0;
        for stmt in stmts {
            work += usize::from(self.kernel.is_work(stmt));
            if let Some((load, _)) = stmt.global_load()
                && !self.is_constant(load)
            {
                add(load, var, loads);
            }
            if let Stmt::If {
                then, otherwise, ..
            } = stmt
            {
                let then = self.turn(then, var, loads);
                work += then.max(self.turn(otherwise, var, &mut Vec::new()));
            }
        }
        work
    }

    fn is_constant(&self, load: &Access) -> bool {
        let buffer = load.memory.buffer();
        buffer.is_some_and(|buffer| self.constants.contains(&buffer))
    }
}

/// Adds a load whose row moves with the loop, if none is near it: of those that follow each other the first
/// to come there is asked for.
fn add<'k>(load: &'k Access, var: DimId, loads: &mut Vec<&'k Access>) {
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
        let (last, rows) = apart
            .split_last()
            .map_or((0, [].as_slice()), |(l, r)| (*l, r));
        if last.abs() < LINE && rows.iter().all(|d| *d >= 0) && rows.iter().any(|d| *d > 0) {
            *known = load;
        }
        if last.abs() < LINE {
            return;
        }
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

/// Prints requests.
pub fn ask(cx: &mut Context<'_>, places: Vec<Access>) -> Result<(), Fault> {
    for place in places {
        cx.prelude.add("ask_for", File::Cuda, "ask_for", &[]);
        let array = cx.pointer(place.memory);
        let index = cx.counted_from_zero(&place);
        let offset = cx.offset(place.memory, &index)?;
        let size = cx.volume(place.memory)?;
        let call = Expr::call("ask_for", &[Expr::atom(array), offset, size]);
        cx.lines.push(&format!("{};", call.text));
    }
    Ok(())
}
