//! Prefetches the inputs of later blocks.
//!
//! Consecutive blocks read boxes of an input that advance by a fixed distance, so most of what a
//! block reads is already in the cache, and only the part at the front is new. The lines of that
//! part, for a block some distance ahead, are prefetched in the iterations of the block's longest
//! loop, since requests in one burst would wait for each other.
//!
//! This is done if the boxes are known and one row high, and if the work for each line is worth a
//! request: a kernel that does little is busy with its loads. Boxes of several rows belong to
//! [`streams`].

use std::collections::{BTreeMap, BTreeSet};

use systola_ir::form::{Atom, Cond, Form, Overflow, Poly};
use systola_ir::kernel::{Access, BufferKind, Cache, Kernel, Memory, Program, Stmt, VarKind};
use systola_ir::target::Prefetch;
use systola_ir::{BufferId, DimId};

use super::{Line, streams};

/// A whole block is prefetched this many times as far ahead as an iteration, and must do this many
/// times as much work for each line: its lines come in a burst.
const BURST: i128 = 4;
/// At most this many lines for one block.
const MOST_LINES: i128 = 64;

/// First and last value.
pub(super) type Span = (i128, i128);

/// A part of a row of an input that a block reads and the blocks before it did not.
#[derive(Debug, PartialEq)]
struct Front {
    buffer: BufferId,
    /// The first element, for the block that is prefetched.
    first: Vec<Form>,
    extent: i128,
}

/// A loop that is inside no other.
#[derive(Clone, Debug, PartialEq)]
struct Iterations {
    var: DimId,
    first: i128,
    count: i128,
    /// Vector operations in all iterations.
    work: i128,
}

/// What one block does.
#[derive(Default)]
pub(super) struct Found {
    /// Boxes that are read, by buffer and by the part of their index that is constant within a
    /// block.
    pub boxes: BTreeMap<(BufferId, Vec<Form>), Vec<Span>>,
    /// Inputs that are also read elsewhere.
    pub scattered: BTreeSet<BufferId>,
    loops: Vec<Iterations>,
    /// The variables of loops with a single iteration, and their values.
    single: BTreeMap<DimId, Form>,
}

/// What a kernel prefetches for later blocks.
pub fn lines(
    program: &Program,
    kernel: &Kernel,
    worth: &Prefetch,
    line_bytes: i128,
) -> Result<Vec<Line>, Overflow> {
    let mut found = Vec::new();
    let Some((fronts, iterations)) = fronts(program, kernel, worth, line_bytes) else {
        return Ok(found);
    };
    for front in fronts {
        let buffer = front.buffer;
        let line = |iteration_of: Option<DimId>, index: Vec<Form>| Line {
            iteration_of,
            buffer,
            into: Cache::L1,
            index,
            when: Cond::TRUE,
        };
        let bits = program.buffers[buffer.index()].ty.bits().max(8);
        let elements = line_bytes / i128::from(bits / 8);
        let mut lines = front.lines(elements);
        let each = iterations
            .as_ref()
            .map_or(0, |all| lines.len() as i128 / all.count);
        if let Some(all) = iterations.as_ref().filter(|_| each > 0) {
            let iteration = Form::from(all.var).plus(-all.first);
            let moved = iteration.scale(&Poly::constant(elements * each))?;
            let spread = lines.drain(..(each * all.count) as usize);
            for mut index in spread.take(each as usize) {
                if let Some(last) = index.last_mut() {
                    *last = last.add(&moved);
                }
                found.push(line(Some(all.var), index));
            }
        }
        found.extend(lines.into_iter().map(|index| line(None, index)));
    }
    Ok(found)
}

impl Front {
    /// The number of lines, for lines of this many elements.
    fn count(&self, elements: i128) -> i128 {
        (self.extent + elements - 1) / elements
    }

    /// The first element of each line.
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

/// What to prefetch, and the loop in which to do it; `None` if nothing is known, or if there are
/// too many lines.
fn fronts(
    program: &Program,
    kernel: &Kernel,
    worth: &Prefetch,
    line_bytes: i128,
) -> Option<(Vec<Front>, Option<Iterations>)> {
    let fastest = kernel
        .vars_where(|k| matches!(k, VarKind::Block { .. }))
        .last()?;
    let mut spans: BTreeMap<DimId, Span> = BTreeMap::new();
    if let Some(lane) = kernel.lane() {
        spans.insert(lane, (0, i128::from(kernel.lanes) - 1));
    }
    let mut found = Found::default();
    let work = look(program, kernel, &kernel.body, &mut spans, &mut found)?;
    let ahead = (BURST * i128::from(worth.distance) / work.max(1)).max(1);
    let mut fronts = Vec::new();
    let mut requests = 0i128;
    for ((buffer, place), spans) in found.boxes {
        if found.scattered.contains(&buffer) {
            continue;
        }
        let Some(front) = front(buffer, &place, &spans, fastest, ahead) else {
            continue;
        };
        let elements =
            line_bytes / i128::from(program.buffers[buffer.index()].ty.bits().max(8) / 8);
        requests += front.count(elements);
        fronts.push(front);
    }
    let iterations = found.loops.into_iter().max_by_key(|l| l.work);
    (requests <= MOST_LINES && requests.checked_mul(BURST * i128::from(worth.work))? <= work)
        .then_some((fronts, iterations))
}

/// What a block is the first to read in a box at this place, if the box is one row that moves along
/// itself.
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

/// Collects what some statements read, and counts their vector operations. `None` if the length of
/// a loop depends on the sizes.
pub(super) fn look(
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
            if let ([first], [end]) = (lo.as_slice(), hi.as_slice())
                && end.sub(first).as_constant() == Some(1)
            {
                let value = found.outside_of_loops(first).ok()?;
                found.single.insert(*var, value);
                work = work.checked_add(look(program, kernel, body, spans, found)?)?;
                continue;
            }
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
                found.loops.push(Iterations {
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
            // The longer branch is often that of the edge, which has more tests.
            if then > 0 {
                found.loops.truncate(n_loops);
            }
            work = work.checked_add(if then > 0 { then } else { otherwise })?;
        }
    }
    Some(work)
}

impl Found {
    /// The form without the variables of loops that run once.
    fn outside_of_loops(&self, form: &Form) -> Result<Form, Overflow> {
        form.substitute(&|d| self.single.get(&d).cloned())
    }

    fn scatter(&mut self, memory: Memory) {
        self.scattered.extend(memory.buffer());
    }

    /// Adds what an access of `width` neighbours reads while the variables go through their spans.
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
        let own = |form| reach(&self.outside_of_loops(form).ok()?, spans);
        let reached: Option<Vec<_>> = from.index.iter().map(own).collect();
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

/// Splits a form into the part that is constant within a block, and the span of the rest.
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
    let c = streams::number_in(&place);
    let place = place.plus(-c);
    let reached = (reached.0.checked_add(c)?, reached.1.checked_add(c)?);
    Some((place, reached))
}
