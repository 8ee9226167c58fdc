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
    if ty == Scalar::Bool {
        0
    } else {
        ty.bits().div_ceil(32)
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

#[cfg(test)]
mod tests {
    use systola_ir::form::Form;
    use systola_ir::kernel::{Access, Memory, Reg, Value, Var, VarKind};
    use systola_ir::{BinOp, BufferId, DimId, Literal};

    use super::*;

    fn kernel(ty: Scalar, values: usize, body: Vec<Stmt>) -> Kernel {
        let value = |_| Value {
            name: "v".to_string(),
            ty,
            shape: Shape::Varying,
        };
        Kernel {
            name: "k".to_string(),
            lanes: 32,
            warps: 1,
            vars: vec![Var {
                name: "i".to_string(),
                kind: VarKind::Loop,
            }],
            shared: Vec::new(),
            regs: vec![Reg {
                name: "r".to_string(),
                ty,
                shape: Shape::Varying,
            }],
            values: (0..values).map(value).collect(),
            body,
        }
    }

    fn constant(value: u32) -> Stmt {
        Stmt::Let(ValueId(value), Op::Lit(Literal::Float(1.0)))
    }

    fn sum(value: u32, a: u32, b: u32) -> Stmt {
        Stmt::Let(
            ValueId(value),
            Op::Binary(BinOp::Add, ValueId(a), ValueId(b)),
        )
    }

    fn store(value: u32) -> Stmt {
        Stmt::Store {
            to: Access::new(Memory::Global(BufferId(0)), vec![Form::zero()]),
            value: ValueId(value),
        }
    }

    #[test]
    fn values_count_from_their_making_to_their_last_use() {
        // Three at once, then one.
        let body = || {
            vec![
                constant(0),
                constant(1),
                constant(2),
                sum(3, 0, 1),
                sum(4, 3, 2),
                store(4),
            ]
        };
        assert_eq!(pressure(&kernel(Scalar::F32, 5, body())), 3);
        assert_eq!(pressure(&kernel(Scalar::F64, 5, body())), 6);
        assert_eq!(pressure(&kernel(Scalar::Bool, 5, body())), 0);
    }

    #[test]
    fn a_register_lives_from_turn_to_turn() {
        let turn = vec![
            Stmt::Let(ValueId(0), Op::Get(RegId(0))),
            constant(1),
            sum(2, 0, 1),
            Stmt::Set(RegId(0), ValueId(2)),
        ];
        let body = vec![
            constant(3),
            Stmt::For {
                var: DimId(0),
                lo: vec![Form::zero()],
                hi: vec![Form::from(9)],
                step: 1,
                body: turn,
            },
            store(3),
        ];
        // The register or what was read from it, the addend, and what waits behind the loop.
        assert_eq!(pressure(&kernel(Scalar::F32, 4, body)), 3);
    }
}
