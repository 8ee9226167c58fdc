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
use crate::rows::{Search, Turn};

/// Words of a thread from which on few warps are left.
const MANY_REGISTERS: u32 = 64;
/// Operations that go with a request, at least.
const LEAST_WORK: usize = 96;
/// Operations between a request and the turn that reads what it brings: what a few warps do while memory answers.
const AHEAD: usize = 1200;
/// Elements that come together: of rows that are nearer to each other one request is enough.
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
    let mut found = Requests::new();
    // What other blocks write meanwhile must not be read before they are done.
    if registers >= MANY_REGISTERS && !has_flags {
        let is_constant = |load: &Access| {
            let buffer = load.memory.buffer();
            buffer.is_some_and(|buffer| constants.contains(&buffer))
        };
        look(kernel, &kernel.body, &is_constant, &mut found);
    }
    found
}

fn look(kernel: &Kernel, stmts: &[Stmt], except: &dyn Fn(&Access) -> bool, found: &mut Requests) {
    for stmt in stmts {
        if let Stmt::For {
            var, step, body, ..
        } = stmt
        {
            let search = Search {
                kernel,
                var: *var,
                line: LINE,
                except,
            };
            let Turn { work, loads } = search.turn(body);
            if !loads.is_empty() && work >= loads.len() * LEAST_WORK {
                let turns = AHEAD.div_ceil(work.max(1)) as i128;
                let later = Form::from(*var).plus(turns * step);
                let moved = loads.into_iter().filter_map(|load| {
                    let index = search.moved(load, &later).ok()?;
                    Some(Access::new(load.memory, index))
                });
                found.insert(*var, moved.collect());
            }
        }
        for body in stmt.bodies() {
            look(kernel, body, except, found);
        }
    }
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
