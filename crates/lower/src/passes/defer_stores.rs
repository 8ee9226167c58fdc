//! Defers the stores of a block until the next block runs.
//!
//! A non-temporal store occupies one of the few buffers between a core and memory until memory has
//! accepted it, and loads that miss the L1 cache need the same buffers. A block that computes all
//! of its sums at once stores them all at its end, and the loads with which the next block begins
//! wait. So results are kept until the next block runs, and are stored in pairs throughout its
//! work; those of the last block follow at the end.
//!
//! This is done if a block, or its inside version, is straight-line code with much work for each
//! result, and if a result is a whole cache line. Whether an array is large enough for non-temporal
//! stores, and whether its rows begin at lines, is tested at run time.

use systola_ir::form::{Atom, Cond, Form};
use systola_ir::kernel::{Access, Deferred, Kernel, Memory, Program, Shape, Stmt};
use systola_ir::target::Machine;
use systola_ir::{BufferId, Scalar};

/// The least and the largest number of results of a block: 64 lines are 4 KiB of the L1 cache.
const RESULTS: std::ops::RangeInclusive<usize> = 4..=64;
/// The least number of vector operations for each result. A 5 × 5 convolution has 25 and gains a
/// tenth; a 3 × 3 convolution has 9 and is limited by memory anyway
/// (bench/results/2026-11-18-decisions.md).
const LEAST_WORK: usize = 16;
/// The number of results that are stored at a time, behind one test.
const GROUP_SIZE: u32 = 2;

/// Sets the hint on every kernel.
pub fn defer_stores(program: &mut Program, machine: &Machine) {
    for n in 0..program.kernels.len() {
        let buffer = candidate(program, &program.kernels[n], machine);
        let deferred = buffer.map(|buffer| Deferred {
            buffer,
            group_size: GROUP_SIZE,
        });
        program.kernels[n].hints.deferred = deferred;
    }
}

/// The buffer that all results of a block go to, if deferring them pays.
fn candidate(program: &Program, kernel: &Kernel, machine: &Machine) -> Option<BufferId> {
    let outlined = kernel.branches().filter(|_| kernel.hints.outlined_edge);
    let body = outlined.map_or(&kernel.body[..], |(_, inside, _)| inside);
    let mut stores: Vec<&Access> = Vec::new();
    let mut work = 0;
    for stmt in body {
        let does = stmt.effects();
        let copies = does.read.is_some() && does.write.is_some();
        let waits = does.flags().next().is_some() || does.orders.is_some();
        if copies || waits || !stmt.bodies().is_empty() {
            return None;
        }
        work += usize::from(kernel.is_work(stmt));
        if let Stmt::Store { to, value } = stmt
            && to.when == Cond::TRUE
            && kernel.values[value.index()].shape == Shape::Varying
        {
            stores.push(to);
        }
    }
    let Memory::Global(buffer) = stores.first()?.memory else {
        return None;
    };
    let stored = &program.buffers[buffer.index()];
    let is_fit = kernel
        .hints
        .non_temporal
        .iter()
        .any(|hint| hint.buffer == buffer)
        && stored.ty != Scalar::Bool
        && kernel.lanes * stored.ty.bits() / 8 == machine.memory.line
        && RESULTS.contains(&stores.len())
        && work >= LEAST_WORK * stores.len()
        && stores.iter().all(|to| to.memory == Memory::Global(buffer))
        && stores.iter().all(|to| is_line(program, kernel, to));
    is_fit.then_some(buffer)
}

/// Do the lanes store all elements of a line, provided that every row begins at a line?
fn is_line(program: &Program, kernel: &Kernel, to: &Access) -> bool {
    let (Memory::Global(buffer), Some(lane)) = (to.memory, kernel.lane()) else {
        return false;
    };
    let axes = &program.buffers[buffer.index()].axes;
    let from_zero = to.index.iter().zip(axes);
    let from_zero: Vec<Form> = from_zero.map(|(form, axis)| form.sub(&axis.lo)).collect();
    let Some((last, others)) = from_zero.split_last() else {
        return false;
    };
    let has_digits = |form: &Form| form.terms().any(|(atom, _)| !matches!(atom, Atom::Dim(_)));
    let lanes = i128::from(kernel.lanes);
    let multiple = |c: Option<i128>| c.is_some_and(|c| c % lanes == 0);
    let rest = last.sub(&Form::from(lane));
    !from_zero.iter().any(has_digits)
        && !others.iter().any(|form| form.dims().contains(&lane))
        && !rest.dims().contains(&lane)
        && rest
            .terms()
            .all(|(_, factor)| multiple(factor.as_constant()))
        && multiple(rest.constant_part().as_constant())
}
