//! Inputs brought into the cache ahead of the block that reads them.
//!
//! Blocks that follow each other read boxes of an input that move on by a fixed distance, so most of what a block reads is in the
//! cache already, and the part at the front is new. The lines of that part, for a block some way ahead, are asked for
//! in the turns of the block's longest loop, since requests that come all at once wait for each other. The hardware does the same once it sees a sequence; but it stops at every page, and loads that
//! wait for the first lines of a block hold up all that comes behind them.
//!
//! It is done where the boxes are known and one row high, where the input is too large to be in the cache, and where the
//! work that goes with a line is worth a request: a kernel that does little is busy with its loads. Boxes of several rows
//! are the business of [`along`].

use std::collections::{BTreeMap, BTreeSet};

use systola_ir::form::{Atom, Form, Poly};
use systola_ir::kernel::{Access, BufferKind, Kernel, Memory, Program, Stmt, VarKind};
use systola_ir::{BufferId, DimId};

use super::{Cpu, ahead, along};
use crate::c_family::Context;
use crate::error::Fault;
use crate::expr::Expr;
use crate::index::number;
use crate::prelude::File;

/// Bytes.
pub const LINE: i128 = 64;
/// Operations on vectors that go with a line, at least.
const LEAST_WORK: i128 = 64;
/// Operations between a request and the block that it is for: a few times what a line takes to arrive.
const AHEAD: i128 = 8192;
/// Lines for one block, at most.
const MOST_LINES: i128 = 64;

/// First and last value.
type Span = (i128, i128);

/// A part of a row of an input that a block reads and those before it did not.
#[derive(Debug, PartialEq)]
struct Front {
    buffer: BufferId,
    /// The first element, for the block that is asked for.
    first: Vec<Form>,
    extent: i128,
}

/// A loop that is in no other.
#[derive(Clone, Debug, PartialEq)]
struct Turns {
    var: DimId,
    first: i128,
    count: i128,
    /// Operations on vectors in all of them.
    work: i128,
}

/// What one block does.
#[derive(Default)]
struct Found {
    /// Boxes that are read, by buffer and by what their place depends on.
    boxes: BTreeMap<(BufferId, Vec<Form>), Vec<Span>>,
    /// Inputs that are also read elsewhere.
    scattered: BTreeSet<BufferId>,
    loops: Vec<Turns>,
}

/// A line of an array that is read later.
#[derive(Debug, PartialEq)]
pub struct Line {
    /// It is asked for in every turn of this loop, or once in every block.
    pub turn_of: Option<DimId>,
    pub buffer: BufferId,
    pub first: Vec<Form>,
}

/// Into which cache a line is brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    First,
    Second,
}

/// Lines to ask for.
#[derive(Clone, Debug)]
pub struct Request {
    buffer: BufferId,
    into: Cache,
    /// The first element of each.
    lines: Vec<Vec<Form>>,
}

impl Cpu {
    /// Asks for what a later block reads; what is left to the turns of a loop is remembered.
    pub(super) fn fetch_ahead(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        let mut of_block = Vec::new();
        let first = (ahead::lines(cx.kernel), Cache::First);
        let second = (along::lines(cx.program, cx.kernel), Cache::Second);
        for (lines, into) in [first, second] {
            for line in lines {
                let requests = match line.turn_of {
                    Some(var) => self.requests.entry(var).or_default(),
                    None => &mut of_block,
                };
                let is_it = |r: &&mut Request| r.buffer == line.buffer && r.into == into;
                match requests.iter_mut().find(is_it) {
                    Some(request) => request.lines.push(line.first),
                    None => requests.push(Request {
                        buffer: line.buffer,
                        into,
                        lines: vec![line.first],
                    }),
                }
            }
        }
        for request in &of_block {
            self.request(cx, request)?;
        }
        let Some((fronts, turns)) = fronts(cx.program, cx.kernel) else {
            return Ok(());
        };
        for front in fronts {
            let bits = Self::memory_type(cx, Memory::Global(front.buffer)).bits();
            let elements = LINE / i128::from(bits / 8);
            let mut lines = front.lines(elements);
            let per_turn = turns
                .as_ref()
                .map_or(0, |turns| lines.len() as i128 / turns.count);
            if let Some(turns) = turns.as_ref().filter(|_| per_turn > 0) {
                let turn = Form::from(turns.var).plus(-turns.first);
                let moved = turn.scale(&Poly::constant(elements * per_turn))?;
                let in_turns = lines.drain(..(per_turn * turns.count) as usize);
                let mut of_a_turn: Vec<Vec<Form>> = in_turns.take(per_turn as usize).collect();
                for line in &mut of_a_turn {
                    if let Some(last) = line.last_mut() {
                        *last = last.add(&moved);
                    }
                }
                self.requests.entry(turns.var).or_default().push(Request {
                    buffer: front.buffer,
                    into: Cache::First,
                    lines: of_a_turn,
                });
            }
            let (buffer, into) = (front.buffer, Cache::First);
            let request = Request {
                buffer,
                into,
                lines,
            };
            self.request(cx, &request)?;
        }
        Ok(())
    }

    /// Asks for what was left to the turns of this loop.
    pub(super) fn fetch_in_turn(&mut self, cx: &mut Context<'_>, var: DimId) -> Result<(), Fault> {
        for request in self.requests.remove(&var).unwrap_or_default() {
            self.request(cx, &request)?;
        }
        Ok(())
    }

    fn request(&mut self, cx: &mut Context<'_>, request: &Request) -> Result<(), Fault> {
        if request.lines.is_empty() {
            return Ok(());
        }
        let Some(large) = self.large(cx, request.buffer)? else {
            return Ok(());
        };
        let memory = Memory::Global(request.buffer);
        let bytes = i128::from(Self::memory_type(cx, memory).bits() / 8);
        let function = match request.into {
            Cache::First => "fetch",
            Cache::Second => "fetch_near",
        };
        cx.prelude.add(function, File::Memory, function, &[]);
        cx.lines.open(&format!("if ({})", large.text));
        for line in &request.lines {
            let place = self.place(cx, &Access::new(memory, line.clone()), 0)?;
            let at = Expr::binary("*", &place.offset, &number(bytes)?);
            let call = Expr::call(function, &[Expr::atom(place.array), at]);
            cx.lines.push(&format!("{};", call.text));
        }
        cx.lines.close();
        Ok(())
    }
}

impl Front {
    /// How many lines of so many elements.
    fn count(&self, elements: i128) -> i128 {
        (self.extent + elements - 1) / elements
    }

    /// Their first elements.
    fn lines(&self, elements: i128) -> Vec<Vec<Form>> {
        let line = |n: i128| {
            let mut line = self.first.clone();
            if let Some(last) = line.last_mut() {
                *last = last.plus(n * elements);
            }
            line
        };
        (0..self.count(elements)).map(line).collect()
    }
}

/// What to ask for, and the loop to do it in; `None`: nothing is known of it, or it is too much.
fn fronts(program: &Program, kernel: &Kernel) -> Option<(Vec<Front>, Option<Turns>)> {
    let fastest = kernel
        .vars_where(|k| matches!(k, VarKind::Block { .. }))
        .last()?;
    let mut spans: BTreeMap<DimId, Span> = BTreeMap::new();
    if let Some(lane) = kernel.lane() {
        spans.insert(lane, (0, i128::from(kernel.lanes) - 1));
    }
    let mut found = Found::default();
    let work = look(program, kernel, &kernel.body, &mut spans, &mut found)?;
    let ahead = (AHEAD / work.max(1)).max(1);
    let mut fronts = Vec::new();
    let mut requests = 0i128;
    for ((buffer, place), spans) in found.boxes {
        if found.scattered.contains(&buffer) {
            continue;
        }
        let Some(front) = front(buffer, &place, &spans, fastest, ahead) else {
            continue;
        };
        let elements = LINE / i128::from(program.buffers[buffer.index()].ty.bits().max(8) / 8);
        requests += front.count(elements);
        fronts.push(front);
    }
    let turns = found.loops.into_iter().max_by_key(|l| l.work);
    (requests <= MOST_LINES && requests.checked_mul(LEAST_WORK)? <= work).then_some((fronts, turns))
}

/// What a block reads first, of a box at this place, if that is one row and moves along itself.
fn front(
    buffer: BufferId,
    place: &[Form],
    spans: &[Span],
    fastest: DimId,
    ahead: i128,
) -> Option<Front> {
    let mut moving = None;
    for (axis, form) in place.iter().enumerate() {
        let step = form.coefficient(fastest).as_constant()?;
        if form.has_digit_of(fastest) || step < 0 || (step > 0 && moving.is_some()) {
            return None;
        }
        if step > 0 {
            moving = Some((axis, step));
        }
    }
    let (axis, step) = moving?;
    let one_row = spans.iter().rev().skip(1).all(|(lo, hi)| lo == hi);
    if axis + 1 != place.len() || !one_row {
        return None;
    }
    let mut first = Vec::new();
    for (form, (lo, _)) in place.iter().zip(spans) {
        first.push(form.plus(*lo));
    }
    let (lo, hi) = *spans.last()?;
    let new = lo.max(hi.checked_sub(step)?.checked_add(1)?);
    let moved = step.checked_mul(ahead)?.checked_add(new)?;
    *first.last_mut()? = place.last()?.plus(moved);
    Some(Front {
        buffer,
        first,
        extent: hi.checked_sub(new)?.checked_add(1)?,
    })
}

/// Collects what some statements read, and counts their operations on vectors. `None`: a loop whose length
/// depends on the sizes.
fn look(
    program: &Program,
    kernel: &Kernel,
    stmts: &[Stmt],
    spans: &mut BTreeMap<DimId, Span>,
    found: &mut Found,
) -> Option<i128> {
    let mut work = 0i128;
    for stmt in stmts {
        work += i128::from(kernel.is_work(stmt));
        let does = stmt.effects();
        if let Some((from, width)) = does.read {
            found.read(program, spans, from, width);
        }
        if let Some(memory) = does.lookup {
            found.scatter(memory);
        }
        if let Stmt::For {
            var,
            lo,
            hi,
            step,
            body,
        } = stmt
        {
            let all = |forms: &[Form]| -> Option<Vec<i128>> {
                forms.iter().map(Form::as_constant).collect()
            };
            let (lo, hi) = (*all(lo)?.iter().max()?, *all(hi)?.iter().min()?);
            if lo >= hi {
                continue;
            }
            let last = (hi - 1 - lo) / step;
            let around = spans.insert(*var, (lo, lo + last * step));
            let n_loops = found.loops.len();
            let inside = look(program, kernel, body, spans, found)?;
            found.loops.truncate(n_loops);
            match around {
                Some(span) => spans.insert(*var, span),
                None => spans.remove(var),
            };
            let all = inside.checked_mul(last + 1)?;
            if *step == 1 {
                found.loops.push(Turns {
                    var: *var,
                    first: lo,
                    count: last + 1,
                    work: all,
                });
            }
            work = work.checked_add(all)?;
        }
        if let Stmt::If {
            then, otherwise, ..
        } = stmt
        {
            let then = look(program, kernel, then, spans, found)?;
            let n_loops = found.loops.len();
            let otherwise = look(program, kernel, otherwise, spans, found)?;
            // The longer one is often that of the edge, which tests more.
            if then > 0 {
                found.loops.truncate(n_loops);
            }
            work = work.checked_add(if then > 0 { then } else { otherwise })?;
        }
    }
    Some(work)
}

impl Found {
    fn scatter(&mut self, memory: Memory) {
        self.scattered.extend(memory.buffer());
    }

    /// Adds what an access of so many neighbours reads while the variables go through their spans.
    fn read(
        &mut self,
        program: &Program,
        spans: &BTreeMap<DimId, Span>,
        from: &Access,
        width: usize,
    ) {
        let Some(buffer) = from.memory.buffer() else {
            return;
        };
        match program.buffers[buffer.index()].kind {
            BufferKind::Input { .. } => {}
            BufferKind::Output { .. }
            | BufferKind::Temporary
            | BufferKind::Flags
            | BufferKind::Faults { .. } => return,
        }
        let reached: Option<Vec<_>> = from.index.iter().map(|form| reach(form, spans)).collect();
        let Some(reached) = reached else {
            return self.scatter(from.memory);
        };
        let (place, mut own): (Vec<Form>, Vec<Span>) = reached.into_iter().unzip();
        if let Some((_, hi)) = own.last_mut() {
            *hi += width as i128 - 1;
        }
        let known = self
            .boxes
            .entry((buffer, place))
            .or_insert_with(|| own.clone());
        for (known, own) in known.iter_mut().zip(own) {
            *known = (known.0.min(own.0), known.1.max(own.1));
        }
    }
}

/// A form as one of what does not change in a block, and the span of the rest.
fn reach(form: &Form, spans: &BTreeMap<DimId, Span>) -> Option<(Form, Span)> {
    let mut place = form.clone();
    let mut reached = (0i128, 0i128);
    for (atom, factor) in form.terms() {
        let dim = match atom {
            Atom::Dim(dim) => dim,
            Atom::Floor(inner, _) | Atom::Mod(inner, _) => {
                if inner.dims().iter().any(|d| spans.contains_key(d)) {
                    return None;
                }
                continue;
            }
        };
        let Some((lo, hi)) = spans.get(dim) else {
            continue;
        };
        let factor = factor.as_constant()?;
        let ends = (factor.checked_mul(*lo)?, factor.checked_mul(*hi)?);
        reached.0 = reached.0.checked_add(ends.0.min(ends.1))?;
        reached.1 = reached.1.checked_add(ends.0.max(ends.1))?;
        let term = Form::from(*dim).scale(&Poly::constant(factor));
        place = place.sub(&term.ok()?);
    }
    let c = along::number_in(&place);
    let place = place.plus(-c);
    let reached = (reached.0.checked_add(c)?, reached.1.checked_add(c)?);
    Some((place, reached))
}
