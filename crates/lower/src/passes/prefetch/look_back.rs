//! Prefetches the inputs of later blocks where blocks look back.
//!
//! A block that looks back has loaded all of its inputs and holds them in registers while it waits
//! for other blocks. So the registers of all resident blocks bound how many bytes are on their way,
//! and there are too few of them to keep memory busy. Each block therefore prefetches into L2 what
//! a later block will load: that takes no registers, and loads then wait for L2 only. Blocks take
//! their numbers in order, so the later block is the one whose number is greater by a constant.
//!
//! The lines of a block are divided among its threads. Inputs whose boxes are not known, or have
//! too many lines, are left out.

use std::collections::BTreeMap;

use systola_ir::form::{Cond, Form, Overflow, Poly, Rel};
use systola_ir::kernel::{Cache, Kernel, Program, VarKind};
use systola_ir::target::Prefetch;
use systola_ir::{BufferId, DimId};

use super::Line;
use super::blocks::{Found, Span, look};

/// At most this many lines for each thread.
const MOST_LINES: i128 = 16;

/// A box of an input that a block reads.
struct Read {
    buffer: BufferId,
    /// The first element, for the block that is prefetched.
    first: Vec<Form>,
    extents: Vec<i128>,
    /// The elements of a line.
    elements: i128,
}

/// What a kernel whose blocks look back prefetches for later blocks.
pub fn lines(
    program: &Program,
    kernel: &Kernel,
    worth: &Prefetch,
    line_bytes: i128,
    constants: &[BufferId],
) -> Result<Vec<Line>, Overflow> {
    let number = kernel.vars_where(|k| matches!(k, VarKind::DynamicBlock));
    let Some(number) = number.last() else {
        return Ok(Vec::new());
    };
    let threads: Vec<(DimId, u32)> = kernel
        .vars_where(|k| matches!(k, VarKind::Lane))
        .map(|lane| (lane, kernel.lanes))
        .chain(
            kernel
                .vars_where(|k| matches!(k, VarKind::Warp))
                .map(|warp| (warp, kernel.warps)),
        )
        .collect();
    let mut spans: BTreeMap<DimId, Span> = threads
        .iter()
        .map(|(var, n)| (*var, (0, i128::from(*n) - 1)))
        .collect();
    let mut found = Found::default();
    if look(program, kernel, &kernel.body, &mut spans, &mut found).is_none() {
        return Ok(Vec::new());
    }
    let mut reads = Vec::new();
    let mut bytes = 0i128;
    for ((buffer, place), spans) in found.boxes {
        if found.scattered.contains(&buffer) || constants.contains(&buffer) {
            continue;
        }
        let each = i128::from(program.buffers[buffer.index()].ty.bits().max(8) / 8);
        let extents: Vec<i128> = spans.iter().map(|(lo, hi)| hi - lo + 1).collect();
        bytes = extents
            .iter()
            .fold(each, |product: i128, extent| {
                product.saturating_mul(*extent)
            })
            .saturating_add(bytes);
        reads.push(Read {
            buffer,
            first: place
                .iter()
                .zip(&spans)
                .map(|(form, (lo, _))| form.plus(*lo))
                .collect(),
            extents,
            elements: (line_bytes / each).max(1),
        });
    }
    let ahead = (i128::from(worth.ahead) + bytes - 1) / bytes.max(1);
    let later = Form::from(number).plus(ahead);
    let mut thread = Form::zero();
    let mut n_threads = 1;
    for (var, n) in threads {
        thread = thread.add(&Form::from(var).scale(&Poly::constant(n_threads))?);
        n_threads *= i128::from(n);
    }
    let mut lines = Vec::new();
    for mut read in reads {
        for form in &mut read.first {
            *form = form.substitute(&|d| (d == number).then(|| later.clone()))?;
        }
        lines.extend(read.lines(&thread, n_threads)?);
    }
    Ok(lines)
}

impl Read {
    /// The lines of the box, divided among threads.
    fn lines(&self, thread: &Form, n_threads: i128) -> Result<Vec<Line>, Overflow> {
        let mut counts = self.extents.clone();
        if let Some(row) = counts.last_mut() {
            *row = (*row + self.elements - 1) / self.elements;
        }
        let all = counts.iter().fold(1, |n: i128, c| n.saturating_mul(*c));
        let rounds = all.saturating_add(n_threads - 1) / n_threads;
        if rounds > MOST_LINES {
            return Ok(Vec::new());
        }
        let mut lines = Vec::new();
        for round in 0..rounds {
            let line = thread.plus(round * n_threads);
            let mut left = line.clone();
            let mut index = self.first.clone();
            for (axis, (at, count)) in index.iter_mut().zip(&counts).enumerate().rev() {
                // The first axis has what is left.
                let moved = if axis > 0 {
                    left.modulo(*count)
                } else {
                    left.clone()
                };
                left = left.floor_div(*count);
                let step = if axis + 1 == counts.len() {
                    self.elements
                } else {
                    1
                };
                *at = at.add(&moved.scale(&Poly::constant(step))?);
            }
            lines.push(Line {
                iteration_of: None,
                buffer: self.buffer,
                into: Cache::L2,
                index,
                when: match (round + 1) * n_threads > all {
                    true => Cond::cmp(Rel::Lt, line, all),
                    false => Cond::TRUE,
                },
            });
        }
        Ok(lines)
    }
}
