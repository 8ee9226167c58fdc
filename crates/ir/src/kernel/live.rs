//! How much is live at once: values between their definition and their last use, registers between
//! a set and the last read.

use std::collections::HashSet;

use super::{Kernel, Op, Shape, Stmt};
use crate::id::{RegId, ValueId};
use crate::scalar::Scalar;

/// A value or register that can be live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Holder {
    Value(ValueId),
    Register(RegId),
}

/// The largest total weight of the holders that are live at once.
pub fn most_alive(kernel: &Kernel, weigh: &dyn Fn(Holder) -> u32) -> u32 {
    let mut walk = Walk {
        weigh,
        live: Live::default(),
        most: 0,
    };
    walk.list(&kernel.body);
    walk.most
}

/// The 32-bit words that a lane needs for a holder. Uniform values have registers of their own, and
/// bools are predicates; neither counts.
pub fn lane_words(kernel: &Kernel, holder: Holder) -> u32 {
    let (ty, shape) = match holder {
        Holder::Value(value) => {
            let value = &kernel.values[value.index()];
            (value.ty, value.shape)
        }
        Holder::Register(register) => {
            let register = &kernel.regs[register.index()];
            (register.ty, register.shape)
        }
    };
    match shape {
        Shape::Varying if ty != Scalar::Bool => ty.bits().div_ceil(32),
        Shape::Varying | Shape::Uniform => 0,
    }
}

#[derive(Clone, Debug, Default)]
struct Live {
    holders: HashSet<Holder>,
    weight: u32,
}

struct Walk<'w> {
    weigh: &'w dyn Fn(Holder) -> u32,
    /// What is live after the current statement: statements are walked backwards.
    live: Live,
    most: u32,
}

impl Walk<'_> {
    fn list(&mut self, list: &[Stmt]) {
        for stmt in list.iter().rev() {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::For { body, .. } => {
                // The first pass covers what is live after the loop, the second what one iteration
                // leaves for the next.
                for _ in 0..2 {
                    let after = self.live.clone();
                    self.list(body);
                    self.join(after);
                }
            }
            Stmt::If {
                then, otherwise, ..
            } => {
                let after = self.live.clone();
                self.list(then);
                let before = std::mem::replace(&mut self.live, after);
                self.list(otherwise);
                self.join(before);
            }
            Stmt::LookBack(look) => {
                self.simple(stmt);
                self.list(&look.joins.body);
            }
            Stmt::Let(..)
            | Stmt::Set(..)
            | Stmt::LoadWide { .. }
            | Stmt::Store { .. }
            | Stmt::StoreWide { .. }
            | Stmt::Prefetch { .. }
            | Stmt::Copy { .. }
            | Stmt::CommitCopies
            | Stmt::WaitCopies { .. }
            | Stmt::Barrier
            | Stmt::SyncWarp
            | Stmt::Signal { .. }
            | Stmt::Await { .. }
            | Stmt::DynamicBlock { .. }
            | Stmt::Fault { .. }
            | Stmt::Comment(_) => self.simple(stmt),
        }
    }

    fn simple(&mut self, stmt: &Stmt) {
        for value in stmt.defs() {
            self.end(Holder::Value(value));
        }
        if let Stmt::Set(register, _) = stmt {
            self.end(Holder::Register(*register));
        }
        for value in stmt.uses() {
            self.begin(Holder::Value(value));
        }
        if let Stmt::Let(_, Op::Get(register)) = stmt {
            self.begin(Holder::Register(*register));
        }
        self.most = self.most.max(self.live.weight);
    }

    fn begin(&mut self, holder: Holder) {
        if self.live.holders.insert(holder) {
            self.live.weight += (self.weigh)(holder);
        }
    }

    fn end(&mut self, holder: Holder) {
        if self.live.holders.remove(&holder) {
            self.live.weight -= (self.weigh)(holder);
        }
    }

    fn join(&mut self, other: Live) {
        for holder in other.holders {
            self.begin(holder);
        }
        self.most = self.most.max(self.live.weight);
    }
}
