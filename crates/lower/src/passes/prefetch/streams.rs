//! Prefetches lines of rows along which a kernel moves.
//!
//! A stencil reads several rows of an array side by side and moves along all of them at once: from
//! iteration to iteration of a loop, or from block to block. Most of these rows were read by an
//! earlier block, and are in a cache; the leading rows come from memory. The hardware follows such
//! streams, but only some at a time, and starts again at the end of each page. So an iteration
//! prefetches lines of the leading rows for later iterations, just far enough ahead to keep as many
//! requests in flight as a core can have.

use std::collections::BTreeMap;

use systola_ir::form::{Cond, Form};
use systola_ir::kernel::{Access, Cache, Kernel, Program, Stmt, VarKind};
use systola_ir::target::Prefetch;
use systola_ir::{BufferId, DimId};

use super::Line;
use super::rows::has_loop;

/// At most this many rows side by side: more are another kind of access.
const MOST_ROWS: usize = 64;
/// An earlier block is at most this far away along each coordinate.
const NEAR: i128 = 2;

/// A row of an array, as it is in one iteration.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    buffer: BufferId,
    /// The place of the row, without the constant part of its index along the last axis.
    place: Vec<Form>,
}

/// The first and the last of these constants that are read.
type Span = (i128, i128);

/// What moves along rows: the iterations of a loop, or the blocks.
struct Walk<'k> {
    program: &'k Program,
    kernel: &'k Kernel,
    var: DimId,
    step: i128,
    in_flight: i128,
    line_bytes: i128,
}

/// The prefetches of the loops of a kernel, or of its blocks.
pub fn lines(program: &Program, kernel: &Kernel, worth: &Prefetch, line_bytes: i128) -> Vec<Line> {
    let in_flight = i128::from(worth.in_flight);
    let walk = |var, step| Walk {
        program,
        kernel,
        var,
        step,
        in_flight,
        line_bytes,
    };
    let mut lines = Vec::new();
    if !has_loop(&kernel.body) {
        let blocks = kernel.vars_where(|k| matches!(k, VarKind::Block { .. }));
        if let Some(var) = blocks.last() {
            lines.extend(walk(var, 1).lines(&kernel.body, None));
        }
    }
    look(&walk, &kernel.body, &mut lines);
    lines
}

/// Finds the innermost loops. Of two branches, most blocks take the first.
fn look<'k>(walk: &impl Fn(DimId, i128) -> Walk<'k>, stmts: &[Stmt], lines: &mut Vec<Line>) {
    for stmt in stmts {
        match stmt {
            Stmt::For {
                var, step, body, ..
            } if !has_loop(body) => lines.extend(walk(*var, *step).lines(body, Some(*var))),
            Stmt::For { body, .. } => look(walk, body, lines),
            Stmt::If { then, .. } => look(walk, then, lines),
            _ => {}
        }
    }
}

impl Walk<'_> {
    fn lines(&self, body: &[Stmt], iteration_of: Option<DimId>) -> Vec<Line> {
        let mut rows = BTreeMap::new();
        self.collect(body, &mut rows);
        let mut lines = Vec::new();
        if rows.len() < 2 || rows.len() > MOST_ROWS {
            return lines;
        }
        let leads: Vec<(&Row, &Span)> = (rows.iter())
            .filter(|(row, _)| !rows.keys().any(|other| self.came_earlier(row, other)))
            .collect();
        let Some(ahead) = (self.in_flight - 1).checked_div(leads.len() as i128) else {
            return lines;
        };
        for (row, (lo, hi)) in leads {
            let bits = self.program.buffers[row.buffer.index()].ty.bits().max(8);
            let elements = self.line_bytes / i128::from(bits / 8);
            let Some(moves) = self.moves(&row.place) else {
                continue;
            };
            if moves < elements {
                continue;
            }
            // The part that the previous iteration has not read, `ahead` + 1 lines further on.
            let new = (*lo).max(hi - moves + 1) + (ahead + 1) * elements;
            for n in 0..(moves + elements - 1) / elements {
                let mut first = row.place.clone();
                if let Some(last) = first.last_mut() {
                    *last = last.plus(new + n * elements);
                }
                lines.push(Line {
                    iteration_of,
                    buffer: row.buffer,
                    into: Cache::L2,
                    index: first,
                    when: Cond::TRUE,
                });
            }
        }
        lines
    }

    fn collect(&self, stmts: &[Stmt], rows: &mut BTreeMap<Row, Span>) {
        for stmt in stmts {
            if let Some((load, width)) = stmt.global_load()
                && let Some((row, at)) = self.row(load)
            {
                let last = at + i128::from(self.kernel.lanes) - 1 + width as i128 - 1;
                let span = rows.entry(row).or_insert((at, last));
                *span = (span.0.min(at), span.1.max(last));
            }
            if let Stmt::If { then, .. } = stmt {
                self.collect(then, rows);
            }
        }
    }

    /// The row of a load and its offset in it, if the walk moves along the row and the lanes read
    /// neighbours.
    fn row(&self, load: &Access) -> Option<(Row, i128)> {
        let buffer = load.memory.buffer()?;
        let lane = self.kernel.lane().filter(|_| self.kernel.lanes > 1)?;
        self.moves(&load.index)?;
        let (last, rows) = load.index.split_last()?;
        let is_lane = |form: &Form| form.dims().contains(&lane);
        if last.coefficient(lane).as_constant() != Some(1)
            || last.has_digit_of(lane)
            || rows.iter().any(is_lane)
        {
            return None;
        }
        let at = number_in(last);
        let mut place = rows.to_vec();
        place.push(last.sub(&Form::from(lane)).plus(-at));
        Some((Row { buffer, place }, at))
    }

    /// The number of elements by which a row advances in an iteration, if it does and stays the
    /// same row.
    fn moves(&self, place: &[Form]) -> Option<i128> {
        let (last, rows) = place.split_last()?;
        let stays = |form: &Form| !form.dims().contains(&self.var);
        if last.has_digit_of(self.var) || !rows.iter().all(stays) {
            return None;
        }
        let by = last
            .coefficient(self.var)
            .as_constant()?
            .checked_mul(self.step)?;
        (by > 0).then_some(by)
    }

    /// Did an earlier block read the row, as another one of its rows?
    fn came_earlier(&self, row: &Row, other: &Row) -> bool {
        let (Some((last, rows)), Some((its_last, its_rows))) =
            (row.place.split_last(), other.place.split_last())
        else {
            return false;
        };
        if row.buffer != other.buffer || last != its_last {
            return false;
        }
        let distance: Option<Vec<i128>> = (its_rows.iter().zip(rows))
            .map(|(its, own)| its.sub(own).as_constant())
            .collect();
        let Some(distance) = distance else {
            return false;
        };
        let mut steps: Vec<Vec<i128>> = Vec::new();
        for block in self
            .kernel
            .vars_where(|k| matches!(k, VarKind::Block { .. }))
        {
            if block == self.var
                || last.dims().contains(&block)
                || rows.iter().any(|r| r.has_digit_of(block))
            {
                continue;
            }
            let step = rows.iter().map(|r| r.coefficient(block).as_constant());
            match step.collect::<Option<Vec<_>>>() {
                Some(step) => steps.push(step),
                None => return false,
            }
        }
        reaches(&distance, &steps, false)
    }
}

/// Is this distance a sum of multiples of the steps, the first of which goes back to an earlier
/// block?
fn reaches(distance: &[i128], steps: &[Vec<i128>], earlier: bool) -> bool {
    let Some((step, inner)) = steps.split_first() else {
        return earlier && distance.iter().all(|d| *d == 0);
    };
    let least = if earlier { -NEAR } else { 0 };
    (least..=NEAR).any(|n| {
        let left: Vec<i128> = distance.iter().zip(step).map(|(d, s)| d - n * s).collect();
        reaches(&left, inner, earlier || n > 0)
    })
}

/// The constant part of a form, without parameters.
pub fn number_in(form: &Form) -> i128 {
    let terms = form.constant_part().terms();
    terms
        .filter(|(monomial, _)| monomial.is_empty())
        .map(|t| t.1)
        .sum()
}
