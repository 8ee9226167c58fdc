//! Non-temporal stores.
//!
//! A store to a line that is not in the cache reads the line first, and evicts another one. If an
//! array is too large to be found in the cache again, and nothing in this launch reads what is
//! written (an output, or what a sweep leaves to the next one), its stores bypass the caches: no
//! line is read, and inputs that are shared stay cached.

use std::collections::BTreeSet;

use systola_ir::form::{Atom, Form, Overflow};
use systola_ir::kernel::visit::walk;
use systola_ir::kernel::{Access, BufferKind, Kernel, Memory, NonTemporal, Program, VarKind};
use systola_ir::target::Machine;
use systola_ir::{BufferId, DimId};

use super::prefetch::too_large_for_caches;

/// Sets the hint for the buffers of every kernel, if the machine has such stores.
pub fn non_temporal_stores(program: &mut Program, machine: &Machine) -> Result<(), Overflow> {
    if !machine.memory.streams {
        return Ok(());
    }
    for n in 0..program.kernels.len() {
        let mut hints = Vec::new();
        for buffer in write_only(program, &program.kernels[n]) {
            if let Some(when) = too_large_for_caches(program, buffer, machine)? {
                hints.push(NonTemporal { buffer, when });
            }
        }
        program.kernels[n].hints.non_temporal = hints;
    }
    Ok(())
}

/// The outputs that no kernel reads, and temporaries that this kernel writes for later launches
/// while it reads other elements of them.
fn write_only(program: &Program, kernel: &Kernel) -> BTreeSet<BufferId> {
    let mut outputs: BTreeSet<BufferId> = (0..program.buffers.len())
        .filter(|n| matches!(program.buffers[*n].kind, BufferKind::Output { .. }))
        .map(BufferId::from)
        .collect();
    for kernel in &program.kernels {
        walk(&kernel.body, &mut |stmt| {
            if let Some(buffer) = stmt.effects().reads().and_then(Memory::buffer) {
                outputs.remove(&buffer);
            }
        });
    }
    // A flag does not order non-temporal stores.
    let kind = |n: &usize| &program.buffers[*n].kind;
    let buffers = 0..program.buffers.len();
    if !buffers
        .clone()
        .any(|n| matches!(kind(&n), BufferKind::Flags))
    {
        let temporaries = buffers.filter(|n| matches!(kind(n), BufferKind::Temporary));
        let temporaries = temporaries.map(BufferId::from);
        outputs.extend(temporaries.filter(|buffer| leaves(kernel, *buffer)));
    }
    outputs
}

/// Is a buffer written, and read at other elements only?
fn leaves(kernel: &Kernel, buffer: BufferId) -> bool {
    let (mut read, mut written) = (Vec::new(), Vec::new());
    let mut is_looked_up = false;
    walk(&kernel.body, &mut |stmt| {
        let does = stmt.effects();
        let ours = |access: &&Access| access.memory.buffer() == Some(buffer);
        read.extend(does.read.map(|(from, _)| from).filter(ours));
        written.extend(does.write.map(|(to, _)| to).filter(ours));
        is_looked_up |= does.lookup.and_then(Memory::buffer) == Some(buffer);
    });
    !written.is_empty()
        && !is_looked_up
        && (written.iter())
            .all(|to| (read.iter()).all(|from| are_distinct(kernel, &to.index, &from.index)))
}

/// Do two accesses differ along an axis that launches use alternately: as two remainders, of
/// neighbours?
fn are_distinct(kernel: &Kernel, to: &[Form], from: &[Form]) -> bool {
    let is_of_launch = |d: DimId| kernel.vars[d.index()].kind == VarKind::Host;
    let differ = |(to, from): (&Form, &Form)| {
        let (Some((a, m)), Some((b, n))) = (remainder(to), remainder(from)) else {
            return false;
        };
        let gap = a.sub(b).as_constant();
        m == n
            && gap.is_some_and(|d| d.rem_euclid(m) != 0)
            && a.dims().into_iter().all(is_of_launch)
    };
    to.iter().zip(from).any(differ)
}

/// The dividend and the divisor of a form that is a remainder.
fn remainder(form: &Form) -> Option<(&Form, i128)> {
    let mut terms = form.terms();
    match (terms.next(), terms.next()) {
        (Some((Atom::Mod(inner, by), c)), None)
            if c.as_constant() == Some(1) && form.constant_part().as_constant() == Some(0) =>
        {
            Some((inner.as_ref(), *by))
        }
        _ => None,
    }
}
