//! What a kernel needs of itself: live values and registers, how often each value is read, what statements
//! write, and where a register can be declared.

use std::collections::BTreeSet;

use systola_ir::RegId;
use systola_ir::kernel::visit::walk;
use systola_ir::kernel::{Kernel, Memory, Op, Stmt};

/// What an expression depends on that statements can change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    pub regs: BTreeSet<RegId>,
    pub memories: BTreeSet<Memory>,
    /// Every memory: what a barrier or an acquire makes visible.
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

/// What an operation itself reads besides values.
pub fn reads(op: &Op) -> Places {
    let mut places = Places::default();
    match op {
        Op::Get(reg) => {
            places.regs.insert(*reg);
        }
        Op::Load { from, .. } => {
            places.memories.insert(from.memory);
        }
        Op::Lookup { memory, .. } => {
            places.memories.insert(*memory);
        }
        Op::Lit(_)
        | Op::Index(_)
        | Op::Unary(..)
        | Op::Binary(..)
        | Op::Cast(_)
        | Op::Select { .. }
        | Op::Choose { .. }
        | Op::Shuffle { .. }
        | Op::Slide { .. } => {}
    }
    places
}

/// What a statement may change, with all that is inside of it.
pub fn writes(stmt: &Stmt) -> Places {
    let mut places = Places::default();
    collect_writes(stmt, &mut places);
    places
}

fn collect_writes(stmt: &Stmt, places: &mut Places) {
    match stmt {
        Stmt::Set(reg, _) => {
            places.regs.insert(*reg);
        }
        Stmt::Store { to, .. } | Stmt::StoreWide { to, .. } | Stmt::Copy { to, .. } => {
            places.memories.insert(to.memory);
        }
        Stmt::WaitCopies { .. }
        | Stmt::Barrier
        | Stmt::Signal { .. }
        | Stmt::Await { .. }
        | Stmt::Ticket { .. } => places.all_memory = true,
        Stmt::For { body, .. } => body.iter().for_each(|s| collect_writes(s, places)),
        Stmt::If {
            then, otherwise, ..
        } => then
            .iter()
            .chain(otherwise)
            .for_each(|s| collect_writes(s, places)),
        Stmt::Let(..) | Stmt::LoadWide { .. } | Stmt::CommitCopies | Stmt::Comment(_) => {}
    }
}

/// Which values and registers matter, and how often values are read by what matters.
#[derive(Clone, Debug)]
pub struct Usage {
    pub live_regs: Vec<bool>,
    /// Reads of each value; 0: it is dead.
    pub reads: Vec<u32>,
    /// Is all that reads the value within a few statements of it, in the same list?
    pub near: Vec<bool>,
    /// Buffers and shared arrays that are stored to.
    pub written: BTreeSet<Memory>,
    /// Do blocks talk to each other through flags?
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
                let live = is_live(stmt, &live_values, &live_regs);
                if !live {
                    return;
                }
                for v in stmt.uses() {
                    changed |= !std::mem::replace(&mut live_values[v.index()], true);
                }
                if let Stmt::Let(_, Op::Get(reg)) = stmt {
                    changed |= !std::mem::replace(&mut live_regs[reg.index()], true);
                }
            });
        }
        let mut reads = vec![0; kernel.values.len()];
        let mut written = BTreeSet::new();
        let mut has_flags = false;
        walk(&kernel.body, &mut |stmt| {
            if is_live(stmt, &live_values, &live_regs) {
                for v in stmt.uses() {
                    reads[v.index()] += 1;
                }
            }
            match stmt {
                Stmt::Store { to, .. } | Stmt::StoreWide { to, .. } | Stmt::Copy { to, .. } => {
                    written.insert(to.memory);
                }
                Stmt::Signal { flag: access }
                | Stmt::Await { flag: access, .. }
                | Stmt::Ticket {
                    counter: access, ..
                } => {
                    written.insert(access.memory);
                    has_flags = true;
                }
                Stmt::Let(..)
                | Stmt::Set(..)
                | Stmt::LoadWide { .. }
                | Stmt::CommitCopies
                | Stmt::WaitCopies { .. }
                | Stmt::For { .. }
                | Stmt::If { .. }
                | Stmt::Barrier
                | Stmt::Comment(_) => {}
            }
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

/// Statements between a value and what reads it, at most, for it to be printed there. Further away it would
/// be computed later than the kernel says, and the order of a kernel is the one that needs few registers.
const NEAR: usize = 4;

fn find_near(stmts: &[Stmt], near: &mut [bool]) {
    let mut defined = std::collections::BTreeMap::new();
    for (at, stmt) in stmts.iter().enumerate() {
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

/// Does the statement do anything that is seen later?
fn is_live(stmt: &Stmt, values: &[bool], regs: &[bool]) -> bool {
    match stmt {
        Stmt::Let(v, _) => values[v.index()],
        Stmt::LoadWide { to, .. } => to.iter().any(|v| values[v.index()]),
        Stmt::Set(reg, _) => regs[reg.index()],
        Stmt::Store { .. }
        | Stmt::StoreWide { .. }
        | Stmt::Copy { .. }
        | Stmt::CommitCopies
        | Stmt::WaitCopies { .. }
        | Stmt::For { .. }
        | Stmt::If { .. }
        | Stmt::Barrier
        | Stmt::Signal { .. }
        | Stmt::Await { .. }
        | Stmt::Ticket { .. }
        | Stmt::Comment(_) => true,
    }
}

/// Would printing these statements print more than comments?
pub fn does_something(stmts: &[Stmt], usage: &Usage) -> bool {
    stmts.iter().any(|stmt| match stmt {
        Stmt::Let(v, _) => usage.reads[v.index()] > 0,
        Stmt::LoadWide { to, .. } => to.iter().any(|v| usage.reads[v.index()] > 0),
        Stmt::Set(reg, _) => usage.live_regs[reg.index()],
        Stmt::For { body, .. } => does_something(body, usage),
        Stmt::If {
            then, otherwise, ..
        } => does_something(then, usage) || does_something(otherwise, usage),
        Stmt::Store { .. }
        | Stmt::StoreWide { .. }
        | Stmt::Copy { .. }
        | Stmt::CommitCopies
        | Stmt::WaitCopies { .. }
        | Stmt::Barrier
        | Stmt::Signal { .. }
        | Stmt::Await { .. }
        | Stmt::Ticket { .. } => true,
        Stmt::Comment(_) => false,
    })
}

/// The registers whose first `Set` can declare them: it stands in the innermost list that has all uses of the
/// register, before all others, so no use sees an older value. The answer is the number of that `Set`
/// among all, outer statements first.
pub fn declaring_sets(kernel: &Kernel) -> Vec<Option<usize>> {
    let touches = |stmts: &[Stmt], reg: RegId| {
        let mut found = false;
        walk(stmts, &mut |s| found |= touches_reg(s, reg));
        found
    };
    let mut numbers = std::collections::BTreeMap::new();
    walk(&kernel.body, &mut |s| {
        if matches!(s, Stmt::Set(..)) {
            numbers.insert(std::ptr::from_ref(s), numbers.len());
        }
    });
    let find = |reg: RegId| {
        let mut list = kernel.body.as_slice();
        loop {
            let used: Vec<&Stmt> = list
                .iter()
                .filter(|s| touches(std::slice::from_ref(*s), reg))
                .collect();
            let first = used.first()?;
            if let Stmt::Set(to, _) = first
                && *to == reg
            {
                return numbers.get(&std::ptr::from_ref(*first)).copied();
            }
            let [only] = used[..] else { return None };
            let inner: Vec<&[Stmt]> = only
                .bodies()
                .into_iter()
                .filter(|list| touches(list, reg))
                .collect();
            let [next] = inner[..] else { return None };
            list = next;
        }
    };
    (0..kernel.regs.len())
        .map(|n| find(RegId::from(n)))
        .collect()
}

fn touches_reg(stmt: &Stmt, reg: RegId) -> bool {
    match stmt {
        Stmt::Let(_, Op::Get(from)) => *from == reg,
        Stmt::Set(to, _) => *to == reg,
        Stmt::Let(..)
        | Stmt::LoadWide { .. }
        | Stmt::Store { .. }
        | Stmt::StoreWide { .. }
        | Stmt::Copy { .. }
        | Stmt::CommitCopies
        | Stmt::WaitCopies { .. }
        | Stmt::For { .. }
        | Stmt::If { .. }
        | Stmt::Barrier
        | Stmt::Signal { .. }
        | Stmt::Await { .. }
        | Stmt::Ticket { .. }
        | Stmt::Comment(_) => false,
    }
}
