//! How a kernel uses its values, registers and memories: which are live, how often each value is
//! read, what statements write, and where a register can be declared.

use std::collections::BTreeSet;

use systola_ir::kernel::visit::walk;
use systola_ir::kernel::{Kernel, Memory, Op, Stmt};
use systola_ir::{RegId, ValueId};

/// The state that an expression depends on and that statements can change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    pub regs: BTreeSet<RegId>,
    pub memories: BTreeSet<Memory>,
    /// All memory: a barrier or an acquire makes new contents visible.
    pub all_memory: bool,
}

impl Places {
    pub fn extend(&mut self, other: &Places) {
        self.regs.extend(&other.regs);
        self.memories.extend(&other.memories);
        self.all_memory |= other.all_memory;
    }

    pub fn meets(&self, other: &Places) -> bool {
        !self.regs.is_disjoint(&other.regs)
            || !self.memories.is_disjoint(&other.memories)
            || (self.all_memory && !other.memories.is_empty())
            || (other.all_memory && !self.memories.is_empty())
    }

    pub fn is_empty(&self) -> bool {
        self.regs.is_empty() && self.memories.is_empty() && !self.all_memory
    }
}

/// The state that an operation itself reads, besides values.
pub fn reads(op: &Op) -> Places {
    let does = op.effects();
    Places {
        regs: does.get.into_iter().collect(),
        memories: does.reads().into_iter().collect(),
        all_memory: false,
    }
}

/// The state that a statement may change, including the statements nested in it.
pub fn writes(stmt: &Stmt) -> Places {
    let mut places = Places::default();
    walk(std::slice::from_ref(stmt), &mut |stmt| {
        let does = stmt.effects();
        places.regs.extend(does.set);
        places.memories.extend(does.writes());
        places.all_memory |= does.orders.is_some();
    });
    places
}

/// Which values and registers are live, and how often live statements read each value.
#[derive(Clone, Debug)]
pub struct Usage {
    pub live_regs: Vec<bool>,
    /// The number of reads of each value; 0 if it is dead.
    pub reads: Vec<u32>,
    /// Are all readers of the value within a few statements of it, in the same list?
    pub near: Vec<bool>,
    /// Buffers and shared arrays that are stored to.
    pub written: BTreeSet<Memory>,
    /// Do blocks communicate through flags?
    pub has_flags: bool,
}

impl Usage {
    pub fn new(kernel: &Kernel) -> Usage {
        let mut live_values = vec![false; kernel.values.len()];
        let mut live_regs = vec![false; kernel.regs.len()];
        let mut changed = true;
        while changed {
            changed = false;
            walk(&kernel.body, &mut |stmt| {
                if !is_live(stmt, |v| live_values[v.index()], |r| live_regs[r.index()]) {
                    return;
                }
                for v in stmt.uses() {
                    changed |= !std::mem::replace(&mut live_values[v.index()], true);
                }
                if let Some(reg) = stmt.effects().get {
                    changed |= !std::mem::replace(&mut live_regs[reg.index()], true);
                }
            });
        }
        let mut reads = vec![0; kernel.values.len()];
        let mut written = BTreeSet::new();
        let mut has_flags = false;
        walk(&kernel.body, &mut |stmt| {
            if is_live(stmt, |v| live_values[v.index()], |r| live_regs[r.index()]) {
                for v in stmt.uses() {
                    reads[v.index()] += 1;
                }
            }
            let does = stmt.effects();
            written.extend(does.writes());
            written.extend(does.flags().map(|flag| flag.memory));
            written.extend(does.fault.map(Memory::Global));
            has_flags |= does.flags().next().is_some();
        });
        let mut near = vec![true; kernel.values.len()];
        find_near(&kernel.body, &mut near);
        Usage {
            live_regs,
            reads,
            near,
            written,
            has_flags,
        }
    }
}

/// The maximum number of statements between a value and its reader for the value to be printed
/// there. Further away it would be computed later than in the kernel, whose order needs few
/// registers.
const NEAR: usize = 4;

fn find_near(stmts: &[Stmt], near: &mut [bool]) {
    let mut defined = std::collections::BTreeMap::new();
    let of_lanes = stmts.iter().filter(|s| !matches!(s, Stmt::SyncWarp));
    for (at, stmt) in of_lanes.enumerate() {
        for v in stmt.uses() {
            let close = defined.get(&v).is_some_and(|d| at - d <= NEAR);
            near[v.index()] &= close;
        }
        if let Stmt::Let(v, _) = stmt {
            defined.insert(*v, at);
        }
        for list in stmt.bodies() {
            find_near(list, near);
        }
    }
}

/// Has the statement an effect that is visible later? A statement that computes a value or sets a
/// register has one if that is live.
fn is_live(stmt: &Stmt, value: impl Fn(ValueId) -> bool, reg: impl Fn(RegId) -> bool) -> bool {
    let made = stmt.defs();
    let does = stmt.effects();
    match does.set {
        Some(set) => reg(set),
        None if does.flags().next().is_some() => true,
        None => made.is_empty() || made.into_iter().any(value),
    }
}

/// Would printing these statements print anything but comments?
pub fn does_something(stmts: &[Stmt], usage: &Usage) -> bool {
    let is_read = |v: ValueId| usage.reads[v.index()] > 0;
    let is_live_reg = |reg: RegId| usage.live_regs[reg.index()];
    stmts.iter().any(|stmt| {
        let inside = stmt.bodies();
        if !inside.is_empty() && stmt.effects().flags().next().is_none() {
            return inside.into_iter().any(|list| does_something(list, usage));
        }
        !matches!(stmt, Stmt::Comment(_)) && is_live(stmt, is_read, is_live_reg)
    })
}

/// The registers whose first `Set` can declare them: it is in the innermost list that contains all
/// uses of the register, and precedes all other uses, so no use sees an older value. The answer is
/// the number of that `Set` among all, outer statements first.
pub fn declaring_sets(kernel: &Kernel) -> Vec<Option<usize>> {
    let touches = |stmts: &[Stmt], reg: RegId| {
        let mut found = false;
        walk(stmts, &mut |s| {
            let does = s.effects();
            found |= does.get == Some(reg) || does.set == Some(reg);
        });
        found
    };
    let sets_in = |stmts: &[Stmt]| {
        let mut n = 0;
        walk(stmts, &mut |s| n += usize::from(matches!(s, Stmt::Set(..))));
        n
    };
    let find = |reg: RegId| {
        let mut list = kernel.body.as_slice();
        let mut before = 0;
        loop {
            let touched: Vec<usize> = (0..list.len())
                .filter(|n| touches(&list[*n..=*n], reg))
                .collect();
            let first = *touched.first()?;
            before += sets_in(&list[..first]);
            if let Stmt::Set(to, _) = &list[first]
                && *to == reg
            {
                return Some(before);
            }
            if touched.len() > 1 {
                return None;
            }
            let bodies = list[first].bodies();
            let inner: Vec<usize> = (0..bodies.len())
                .filter(|n| touches(bodies[*n], reg))
                .collect();
            let [only] = inner[..] else { return None };
            before += bodies[..only]
                .iter()
                .map(|body| sets_in(body))
                .sum::<usize>();
            list = bodies[only];
        }
    };
    (0..kernel.regs.len())
        .map(|n| find(RegId::from(n)))
        .collect()
}
