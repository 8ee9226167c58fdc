//! How many values of a lane are alive at once, and which of them could be loaded again.
//!
//! A compiler that runs out of vector registers lets values go that lie in memory anyway, and reads them there at each use. Only when sums
//! alone are more than the registers, it has to store some and load them again at each step.

use std::collections::HashSet;

use systola_ir::kernel::{Kernel, Op, Shape, Stmt};
use systola_ir::{RegId, Scalar, ValueId};

/// The most words of a lane that are alive at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alive {
    /// That were computed.
    pub computed: u32,
    /// That were loaded, or computed.
    pub all: u32,
}

pub fn alive(kernel: &Kernel) -> Alive {
    let mut walk = Walk {
        kernel,
        loaded: vec![false; kernel.values.len()],
        live: Live::default(),
        most: Alive::default(),
    };
    systola_ir::kernel::visit::walk(&kernel.body, &mut |stmt| match stmt {
        Stmt::Let(value, Op::Load { .. }) => walk.loaded[value.index()] = true,
        Stmt::LoadWide { to, .. } => to.iter().for_each(|v| walk.loaded[v.index()] = true),
        _ => {}
    });
    walk.list(&kernel.body);
    walk.most
}

#[derive(Clone, Debug, Default)]
struct Live {
    values: HashSet<ValueId>,
    registers: HashSet<RegId>,
    words: Alive,
}

struct Walk<'k> {
    kernel: &'k Kernel,
    loaded: Vec<bool>,
    /// After the statement that is looked at: statements are walked backwards.
    live: Live,
    most: Alive,
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
                let words = self.words_of(value);
                self.live.words.all -= words.all;
                self.live.words.computed -= words.computed;
            }
        }
        if let Stmt::Set(register, _) = stmt
            && self.live.registers.remove(register)
        {
            let words = self.words_in(*register);
            self.live.words.all -= words;
            self.live.words.computed -= words;
        }
        for value in stmt.uses() {
            self.value(value);
        }
        if let Stmt::Let(_, Op::Get(register)) = stmt {
            self.register(*register);
        }
        self.remember();
    }

    fn remember(&mut self) {
        self.most.all = self.most.all.max(self.live.words.all);
        self.most.computed = self.most.computed.max(self.live.words.computed);
    }

    fn value(&mut self, value: ValueId) {
        if self.live.values.insert(value) {
            let words = self.words_of(value);
            self.live.words.all += words.all;
            self.live.words.computed += words.computed;
        }
    }

    fn register(&mut self, register: RegId) {
        if self.live.registers.insert(register) {
            let words = self.words_in(register);
            self.live.words.all += words;
            self.live.words.computed += words;
        }
    }

    fn join(&mut self, other: Live) {
        for value in other.values {
            self.value(value);
        }
        for register in other.registers {
            self.register(register);
        }
        self.remember();
    }

    fn words_of(&self, value: ValueId) -> Alive {
        let about = &self.kernel.values[value.index()];
        let all = words(about.ty, about.shape);
        let computed = if self.loaded[value.index()] { 0 } else { all };
        Alive { computed, all }
    }

    fn words_in(&self, register: RegId) -> u32 {
        let about = &self.kernel.regs[register.index()];
        words(about.ty, about.shape)
    }
}

/// What is the same in all lanes has registers of its own, and so have truths.
fn words(ty: Scalar, shape: Shape) -> u32 {
    match shape {
        Shape::Varying if ty != Scalar::Bool => ty.bits().div_ceil(32),
        Shape::Varying | Shape::Uniform => 0,
    }
}
