//! Prefetches lines into a cache.
//!
//! Hardware prefetches sequences once it detects them, but it follows few at a time and stops at
//! the end of a page; a GPU does not prefetch at all. So loops and blocks issue prefetches, if they
//! do enough work for each line that loads alone do not keep the machine busy:
//!
//! - `rows`: a loop that walks down the rows of an array prefetches rows of later iterations;
//! - `streams`: a loop, or the sequence of blocks, that moves along several rows prefetches the
//!   lines of those that come from memory;
//! - `blocks`: a block prefetches the part of its input that a later block is the first to read.
//!
//! CPUs use all three, in blocks that are not at the edge of the domain, and for arrays that are
//! too large for the caches. GPUs use the first, if live values take many registers, so that few
//! warps are resident to hide the latency, and
//!
//! - `look_back`: a block that will wait for others prefetches the inputs of a later block.

use systola_ir::form::{Cond, Form, Overflow, Rel};
use systola_ir::kernel::constant::constant_buffers;
use systola_ir::kernel::pressure::pressure;
use systola_ir::kernel::visit::{any, walk};
use systola_ir::kernel::{Access, Cache, Kernel, Memory, Program, Stmt};
use systola_ir::target::{Machine, Prefetch};
use systola_ir::{BufferId, DimId};

use iteration::Search;

mod blocks;
mod iteration;
mod look_back;
mod rows;
mod streams;

/// A line to prefetch.
#[derive(Debug, PartialEq)]
struct Line {
    /// It is prefetched in every iteration of this loop; `None`: once in every block.
    iteration_of: Option<DimId>,
    buffer: BufferId,
    into: Cache,
    index: Vec<Form>,
    /// The lanes that prefetch.
    when: Cond,
}

/// Adds prefetches to all kernels.
pub fn prefetch(program: &mut Program, machine: &Machine) -> Result<(), Overflow> {
    let Some(worth) = machine.memory.prefetch else {
        return Ok(());
    };
    for n in 0..program.kernels.len() {
        let kernel = &program.kernels[n];
        let lines = match machine.threads {
            None => of_vectors(program, kernel, machine, &worth)?,
            Some(_) => of_threads(program, kernel, machine, &worth)?,
        };
        let mut groups: Vec<Group> = Vec::new();
        for line in lines {
            let is_its = |group: &&mut Group| {
                (group.iteration_of, group.buffer, group.into)
                    == (line.iteration_of, line.buffer, line.into)
            };
            match groups.iter_mut().find(is_its) {
                Some(group) => group.lines.push((line.index, line.when)),
                None => groups.push(Group {
                    iteration_of: line.iteration_of,
                    buffer: line.buffer,
                    into: line.into,
                    lines: vec![(line.index, line.when)],
                }),
            }
        }
        for group in groups.into_iter().rev() {
            let Some(when) = too_large_for_caches(program, group.buffer, machine)? else {
                continue;
            };
            group.insert(&mut program.kernels[n], &when);
        }
    }
    Ok(())
}

/// Lines that are prefetched at one place.
struct Group {
    iteration_of: Option<DimId>,
    buffer: BufferId,
    into: Cache,
    lines: Vec<(Vec<Form>, Cond)>,
}

impl Group {
    /// Puts them at the beginning of their loop or of the block.
    fn insert(self, kernel: &mut Kernel, when: &Cond) {
        let stmts = self.lines.into_iter().map(|(index, lanes)| Stmt::Prefetch {
            at: Access {
                memory: Memory::Global(self.buffer),
                index,
                when: when.clone().and(lanes),
            },
            into: self.into,
        });
        let place = match self.iteration_of {
            None => Some(interior_mut(&mut kernel.body)),
            Some(var) => loop_body(&mut kernel.body, var),
        };
        if let Some(place) = place {
            // A block has no position before it has taken its number.
            let takes = |stmt: &Stmt| matches!(stmt, Stmt::DynamicBlock { .. });
            let at = place.iter().rposition(takes).map_or(0, |n| n + 1);
            place.splice(at..at, stmts);
        }
    }
}

/// The body of the loop over a variable.
fn loop_body(stmts: &mut [Stmt], of: DimId) -> Option<&mut Vec<Stmt>> {
    for stmt in stmts {
        if matches!(stmt, Stmt::For { var, .. } if *var == of) {
            return stmt.bodies_mut().into_iter().next();
        }
        let inside = stmt.bodies_mut().into_iter();
        if let Some(found) = inside.filter_map(|body| loop_body(body, of)).next() {
            return Some(found);
        }
    }
    None
}

/// The statements of interior blocks, if a kernel only chooses between them and those at the edge.
fn interior(body: &[Stmt]) -> &[Stmt] {
    match edge_branch(body).map(|n| &body[n]) {
        Some(Stmt::If { then, .. }) => then,
        _ => body,
    }
}

fn interior_mut(body: &mut Vec<Stmt>) -> &mut Vec<Stmt> {
    match edge_branch(body) {
        Some(n) => match &mut body[n] {
            Stmt::If { then, .. } => then,
            _ => unreachable!("it is a branch"),
        },
        None => body,
    }
}

/// The only statement of a body, if it is a choice between two branches.
fn edge_branch(body: &[Stmt]) -> Option<usize> {
    let is_comment = |stmt: &Stmt| matches!(stmt, Stmt::Comment(_));
    let mut stmts = (0..body.len()).filter(|n| !is_comment(&body[*n]));
    let n = stmts.next().filter(|_| stmts.next().is_none())?;
    let Stmt::If {
        then, otherwise, ..
    } = &body[n]
    else {
        return None;
    };
    (!then.is_empty() && !otherwise.is_empty()).then_some(n)
}

/// For machines whose lanes are a vector of one thread.
fn of_vectors(
    program: &Program,
    kernel: &Kernel,
    machine: &Machine,
    worth: &Prefetch,
) -> Result<Vec<Line>, Overflow> {
    let line_bytes = i128::from(machine.memory.line);
    let inside = &Kernel {
        body: interior(&kernel.body).to_vec(),
        ..kernel.clone()
    };
    let at_once = i128::from(kernel.lanes);
    let mut lines = rows::lines(inside, worth, at_once, &|_| false);
    for line in &mut lines {
        let zero = |d: DimId| (Some(d) == kernel.lane()).then(Form::zero);
        for form in &mut line.index {
            *form = form.substitute(&zero)?;
        }
    }
    lines.extend(streams::lines(program, inside, worth, line_bytes));
    lines.extend(blocks::lines(program, inside, worth, line_bytes)?);
    Ok(lines)
}

/// For machines whose lanes are threads. Constant memory has a cache of its own.
fn of_threads(
    program: &Program,
    kernel: &Kernel,
    machine: &Machine,
    worth: &Prefetch,
) -> Result<Vec<Line>, Overflow> {
    let constants: Vec<BufferId> = constant_buffers(program).into_iter().map(|c| c.0).collect();
    let line_bytes = i128::from(machine.memory.line);
    if any(&kernel.body, &|stmt| matches!(stmt, Stmt::LookBack(_))) {
        return look_back::lines(program, kernel, worth, line_bytes, &constants);
    }
    let mut has_flags = false;
    walk(&kernel.body, &mut |stmt| {
        has_flags |= stmt.effects().flags().next().is_some();
    });
    // A prefetch must not read what other blocks have yet to write.
    if has_flags || pressure(kernel) < worth.pressure {
        return Ok(Vec::new());
    }
    let is_constant = |load: &Access| {
        let buffer = load.memory.buffer();
        buffer.is_some_and(|buffer| constants.contains(&buffer))
    };
    // A warp reads at most one line of each row: elements closer than that arrive with it.
    Ok(rows::lines(kernel, worth, line_bytes, &is_constant))
}

/// The condition on the sizes under which the next reader of an array does not expect it in the
/// caches; `None` if it is known to be small.
pub fn too_large_for_caches(
    program: &Program,
    buffer: BufferId,
    machine: &Machine,
) -> Result<Option<Cond>, Overflow> {
    let cached = i128::from(machine.memory.cached);
    let bits = program.buffers[buffer.index()].ty.bits().max(8);
    let mut bytes = Form::from(i128::from(bits / 8));
    for extent in program.extents(buffer) {
        let extent = extent.fix_params(&|p| program.params[p.index()].fixed)?;
        match bytes.mul(&extent) {
            Some(product) => bytes = product?,
            None => return Ok(None),
        }
    }
    Ok(match bytes.as_constant() {
        _ if cached == 0 => Some(Cond::TRUE),
        Some(bytes) if bytes < cached => None,
        Some(_) => Some(Cond::TRUE),
        None => Some(Cond::cmp(Rel::Ge, bytes, cached)),
    })
}
