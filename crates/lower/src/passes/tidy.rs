//! Removes dead code: unused values, registers that are never read, arrays, and loops without
//! effect.

use systola_ir::kernel::visit::{walk, walk_mut};
use systola_ir::kernel::{Kernel, Memory, Op, Stmt};
use systola_ir::{RegId, SharedId, ValueId};

/// The kernel without dead code.
pub fn tidy(mut kernel: Kernel) -> Kernel {
    loop {
        let live = Live::of(&kernel);
        let before = count(&kernel.body);
        let body = std::mem::take(&mut kernel.body);
        kernel.body = keep(body, &live);
        if count(&kernel.body) == before {
            compact(&mut kernel);
            return kernel;
        }
    }
}

/// Removes the registers and arrays that no statement uses any more.
fn compact(kernel: &mut Kernel) {
    let mut regs = vec![false; kernel.regs.len()];
    let mut shared = vec![false; kernel.shared.len()];
    walk(&kernel.body, &mut |stmt| {
        let does = stmt.effects();
        for reg in does.get.into_iter().chain(does.set) {
            regs[reg.index()] = true;
        }
        for memory in does.reads().into_iter().chain(does.writes()) {
            mark(&mut shared, memory);
        }
    });
    let new_reg = numbered(&regs);
    let new_shared = numbered(&shared);
    move_memories(kernel, &|memory| {
        if let Memory::Shared(id) = memory {
            *id = SharedId::from(new_shared[id.index()]);
        }
    });
    walk_mut(&mut kernel.body, &mut |stmt| {
        if let Stmt::Let(_, Op::Get(reg)) | Stmt::Set(reg, _) = stmt {
            *reg = RegId::from(new_reg[reg.index()]);
        }
    });
    let mut used = regs.iter();
    kernel.regs.retain(|_| used.next() == Some(&true));
    let mut used = shared.iter();
    kernel.shared.retain(|_| used.next() == Some(&true));
}

/// Renames the memory of every access.
pub fn move_memories(kernel: &mut Kernel, moved: &impl Fn(&mut Memory)) {
    let hints = &mut kernel.hints;
    let non_temporal = hints.non_temporal.iter_mut().map(|hint| &mut hint.buffer);
    let invariants = hints.invariants.iter_mut().map(|hint| &mut hint.buffer);
    let deferred = hints.deferred.iter_mut().map(|hint| &mut hint.buffer);
    for hinted in non_temporal.chain(invariants).chain(deferred) {
        let mut memory = Memory::Global(*hinted);
        moved(&mut memory);
        if let Memory::Global(buffer) = memory {
            *hinted = buffer;
        }
    }
    walk_mut(&mut kernel.body, &mut |stmt| {
        if let Stmt::Let(_, Op::Lookup { memory, .. }) = stmt {
            moved(memory);
        }
        for access in stmt.accesses_mut() {
            moved(&mut access.memory);
        }
    });
}

fn mark(shared: &mut [bool], memory: Memory) {
    if let Memory::Shared(id) = memory {
        shared[id.index()] = true;
    }
}

/// The new number of each item once unused items are removed.
fn numbered(used: &[bool]) -> Vec<usize> {
    let mut next = 0;
    used.iter()
        .map(|used| {
            let at = next;
            next += usize::from(*used);
            at
        })
        .collect()
}

struct Live {
    values: Vec<bool>,
    regs: Vec<bool>,
    shared: Vec<bool>,
}

impl Live {
    fn of(kernel: &Kernel) -> Live {
        let mut live = Live {
            values: vec![false; kernel.values.len()],
            regs: vec![false; kernel.regs.len()],
            shared: vec![false; kernel.shared.len()],
        };
        walk(&kernel.body, &mut |stmt| {
            for value in stmt.uses() {
                live.values[value.index()] = true;
            }
            let does = stmt.effects();
            if let Some(reg) = does.get {
                live.regs[reg.index()] = true;
            }
            if let Some(memory) = does.reads() {
                mark(&mut live.shared, memory);
            }
        });
        live
    }

    fn has(&self, value: &ValueId) -> bool {
        self.values[value.index()]
    }

    fn reads(&self, reg: &RegId) -> bool {
        self.regs[reg.index()]
    }

    fn loads(&self, id: SharedId) -> bool {
        self.shared[id.index()]
    }
}

fn keep(stmts: Vec<Stmt>, live: &Live) -> Vec<Stmt> {
    let mut kept = Vec::new();
    for stmt in stmts {
        match stmt {
            Stmt::Let(value, _) if !live.has(&value) => {}
            Stmt::Set(reg, _) if !live.reads(&reg) => {}
            Stmt::LoadWide { ref to, .. } if !to.iter().any(|v| live.has(v)) => {}
            Stmt::Store { ref to, .. } | Stmt::StoreWide { ref to, .. } if matches!(to.memory, Memory::Shared(id) if !live.loads(id)) =>
                {}
            Stmt::For {
                var,
                lo,
                hi,
                step,
                body,
            } => {
                let body = keep(body, live);
                if !body.is_empty() {
                    kept.push(Stmt::For {
                        var,
                        lo,
                        hi,
                        step,
                        body,
                    });
                }
            }
            Stmt::If {
                cond,
                then,
                otherwise,
            } => {
                let (then, otherwise) = (keep(then, live), keep(otherwise, live));
                if !then.is_empty() || !otherwise.is_empty() {
                    kept.push(Stmt::If {
                        cond,
                        then,
                        otherwise,
                    });
                }
            }
            other => kept.push(other),
        }
    }
    kept
}

fn count(stmts: &[Stmt]) -> usize {
    let mut count = 0;
    walk(stmts, &mut |_| count += 1);
    count
}
