//! How many registers a thread needs at least: the words of all values that are still wanted, where they are most.
//!
//! Counted in the order in which the kernel is written. What is the same in all lanes comes from constant memory or
//! is a number in an instruction, conditions are in registers of their own, and neither counts; nor do addresses and
//! loop variables, of which the compiler makes as many as it likes.

use std::collections::BTreeSet;

use systola_ir::kernel::{Kernel, Op, Shape, Stmt};
use systola_ir::{RegId, Scalar, ValueId};

/// What waits for a later use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Held {
    Value(ValueId),
    Register(RegId),
}

/// Registers of 32 bits that a thread holds at once.
pub fn counted_registers(kernel: &Kernel) -> usize {
    let mut count = Count {
        kernel,
        names: vec![None; kernel.values.len()],
        most: 0,
    };
    systola_ir::kernel::visit::walk(&kernel.body, &mut |stmt| {
        if let Stmt::Let(value, Op::Get(reg)) = stmt {
            count.names[value.index()] = Some(*reg);
        }
    });
    count.before(&kernel.body, BTreeSet::new());
    count.most
}

struct Count<'a> {
    kernel: &'a Kernel,
    /// The register that a value is another name of.
    names: Vec<Option<RegId>>,
    most: usize,
}

impl Count<'_> {
    /// What is held before some statements, given what is held after them.
    fn before(&mut self, body: &[Stmt], after: BTreeSet<Held>) -> BTreeSet<Held> {
        let mut held = after;
        for stmt in body.iter().rev() {
            match stmt {
                Stmt::For { body, .. } => {
                    // What a turn needs at its start is held at the end of the turn before it.
                    let after = held.clone();
                    loop {
                        let first = self.before(body, held.clone());
                        let all: BTreeSet<Held> = first.union(&after).copied().collect();
                        if all.is_subset(&held) {
                            break;
                        }
                        held.extend(all);
                    }
                }
                Stmt::If {
                    then, otherwise, ..
                } => {
                    let mut other = self.before(otherwise, held.clone());
                    held = self.before(then, held);
                    held.append(&mut other);
                }
                Stmt::Let(..)
                | Stmt::Set(..)
                | Stmt::LoadWide { .. }
                | Stmt::Store { .. }
                | Stmt::StoreWide { .. }
                | Stmt::Copy { .. }
                | Stmt::CommitCopies
                | Stmt::WaitCopies { .. }
                | Stmt::Barrier
                | Stmt::Signal { .. }
                | Stmt::Await { .. }
                | Stmt::Ticket { .. }
                | Stmt::Comment(_) => {
                    self.note(&held);
                    for value in stmt.defs() {
                        held.remove(&Held::Value(value));
                    }
                    if let Stmt::Set(reg, _) = stmt {
                        held.remove(&Held::Register(*reg));
                    }
                    for value in stmt.uses() {
                        held.insert(match self.names[value.index()] {
                            Some(reg) => Held::Register(reg),
                            None => Held::Value(value),
                        });
                    }
                }
            }
        }
        self.note(&held);
        held
    }

    fn note(&mut self, held: &BTreeSet<Held>) {
        let words = held.iter().map(|held| {
            let (ty, shape) = match held {
                Held::Value(v) => {
                    let value = &self.kernel.values[v.index()];
                    (value.ty, value.shape)
                }
                Held::Register(r) => {
                    let reg = &self.kernel.regs[r.index()];
                    (reg.ty, reg.shape)
                }
            };
            match shape {
                Shape::Uniform => 0,
                Shape::Varying => words(ty),
            }
        });
        self.most = self.most.max(words.sum());
    }
}

fn words(ty: Scalar) -> usize {
    match ty {
        Scalar::Bool => 0,
        Scalar::I8
        | Scalar::I16
        | Scalar::I32
        | Scalar::U8
        | Scalar::U16
        | Scalar::U32
        | Scalar::F16
        | Scalar::BF16
        | Scalar::F32 => 1,
        Scalar::I64 | Scalar::U64 | Scalar::F64 => 2,
    }
}
