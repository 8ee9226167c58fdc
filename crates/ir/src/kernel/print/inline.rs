//! Which values are printed in the place of their one use.

use std::collections::HashMap;

use crate::id::{RegId, ValueId};
use crate::kernel::visit::walk;
use crate::kernel::{Kernel, Op, Stmt};

/// The largest number of operations that are printed inside one statement.
const MAX_INLINED: usize = 8;

/// For each value: is it printed where it is used?
///
/// Its only use must be in the same list of statements; otherwise a value used in a loop would
/// appear to be computed in every iteration. A register may be read in several places, but not
/// after the next time it is set.
pub(super) fn inlined(kernel: &Kernel) -> Vec<bool> {
    let mut uses = vec![0usize; kernel.values.len()];
    let mut defs = uses.clone();
    let count = |list: Vec<ValueId>, counts: &mut [usize]| {
        for value in list {
            if let Some(count) = counts.get_mut(value.index()) {
                *count += 1;
            }
        }
    };
    walk(&kernel.body, &mut |stmt| {
        count(stmt.uses(), &mut uses);
        count(stmt.defs(), &mut defs);
    });
    let mut inlined = vec![false; kernel.values.len()];
    mark(&kernel.body, &uses, &mut inlined);
    // Ill-formed kernels are printed too: a value that is assigned twice is not inlined.
    for (flag, defs) in inlined.iter_mut().zip(defs) {
        *flag &= defs == 1;
    }
    inlined
}

fn mark(body: &[Stmt], uses: &[usize], inlined: &mut [bool]) {
    let mut used_at: HashMap<ValueId, Vec<usize>> = HashMap::new();
    let mut set_at: HashMap<RegId, Vec<usize>> = HashMap::new();
    for (n, stmt) in body.iter().enumerate() {
        for value in stmt.uses() {
            used_at.entry(value).or_default().push(n);
        }
        walk(std::slice::from_ref(stmt), &mut |inner| {
            if let Stmt::Set(reg, _) = inner {
                set_at.entry(*reg).or_default().push(n);
            }
        });
        for inner in stmt.bodies() {
            mark(inner, uses, inlined);
        }
    }
    // The statement that shows what each statement computes, directly or through other inlined
    // values.
    let mut shown_at: Vec<usize> = (0..body.len()).collect();
    let mut taken = vec![0; body.len()];
    for (n, stmt) in body.iter().enumerate().rev() {
        let Stmt::Let(value, op) = stmt else {
            continue;
        };
        let Some(flag) = inlined.get_mut(value.index()) else {
            continue;
        };
        if matches!(op, Op::Lit(_)) {
            *flag = true;
            continue;
        }
        let used_here = used_at.get(value).map_or(&[][..], Vec::as_slice);
        let Some(sink) = used_here.iter().map(|at| shown_at[*at]).max() else {
            continue;
        };
        let is_after = used_here.iter().all(|at| n < *at);
        if used_here.len() != uses[value.index()] || !is_after || !is_quiet(op) {
            continue;
        }
        if let Op::Get(reg) = op {
            let sets = set_at.get(reg).map_or(&[][..], Vec::as_slice);
            *flag = !sets.iter().any(|at| n < *at && *at < sink);
        } else if used_here.len() == 1 && taken[sink] < MAX_INLINED {
            taken[sink] += 1;
            shown_at[n] = sink;
            *flag = true;
        }
    }
}

/// Does the operation access neither memory nor another lane?
fn is_quiet(op: &Op) -> bool {
    let does = op.effects();
    does.reads().is_none() && !does.crosses_lanes
}
