//! How many registers a thread needs: the most words that are live at once.
//!
//! The kernel is walked backwards. What is the same in all lanes has registers of its own on this machine, and a truth
//! is a predicate; neither counts, nor do addresses.

use std::collections::HashSet;

use systola_ir::kernel::{Kernel, Op, Shape, Stmt};
use systola_ir::{RegId, Scalar, ValueId};

/// The most registers of 32 bits that the values and the registers of the kernel take at a time.
pub fn pressure(kernel: &Kernel) -> u32 {
    let mut walk = Walk {
        kernel,
        live: Live::default(),
        most: 0,
    };
    walk.list(&kernel.body);
    walk.most
}

#[derive(Clone, Debug, Default)]
struct Live {
    values: HashSet<ValueId>,
    registers: HashSet<RegId>,
    words: u32,
}

struct Walk<'k> {
    kernel: &'k Kernel,
    /// After the statement that is looked at.
    live: Live,
    most: u32,
}

fn words(ty: Scalar) -> u32 {
    match ty {
        Scalar::Bool => 0,
        _ => ty.bits().div_ceil(32),
    }
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
                // Once for what lives behind the loop, once for what a turn leaves to the next.
                for _ in 0..2 {
                    let behind = self.live.clone();
                    self.list(body);
                    self.join(behind);
                }
            }
            Stmt::If {
                then, otherwise, ..
            } => {
                let behind = self.live.clone();
                self.list(then);
                let before = std::mem::replace(&mut self.live, behind);
                self.list(otherwise);
                self.join(before);
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
            | Stmt::Comment(_) => self.simple(stmt),
        }
    }

    fn simple(&mut self, stmt: &Stmt) {
        for value in stmt.defs() {
            if self.live.values.remove(&value) {
                self.live.words -= self.words_of(value);
            }
        }
        if let Stmt::Set(register, _) = stmt
            && self.live.registers.remove(register)
        {
            self.live.words -= self.words_in(*register);
        }
        for value in stmt.uses() {
            self.value(value);
        }
        if let Stmt::Let(_, Op::Get(register)) = stmt {
            self.register(*register);
        }
        self.most = self.most.max(self.live.words);
    }

    fn value(&mut self, value: ValueId) {
        if self.live.values.insert(value) {
            self.live.words += self.words_of(value);
        }
    }

    fn register(&mut self, register: RegId) {
        if self.live.registers.insert(register) {
            self.live.words += self.words_in(register);
        }
    }

    fn join(&mut self, other: Live) {
        for value in other.values {
            self.value(value);
        }
        for register in other.registers {
            self.register(register);
        }
        self.most = self.most.max(self.live.words);
    }

    fn words_of(&self, value: ValueId) -> u32 {
        let value = &self.kernel.values[value.index()];
        match value.shape {
            Shape::Uniform => 0,
            Shape::Varying => words(value.ty),
        }
    }

    fn words_in(&self, register: RegId) -> u32 {
        let register = &self.kernel.regs[register.index()];
        match register.shape {
            Shape::Uniform => 0,
            Shape::Varying => words(register.ty),
        }
    }
}
