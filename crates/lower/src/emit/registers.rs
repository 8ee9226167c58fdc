//! Queues in registers: renamed from tick to tick, and written back where a loop closes.

use std::collections::HashMap;

use systola_ir::kernel::{Op, Shape, Stmt};
use systola_ir::{RegId, Scalar, Type, ValueId, VarId};

use crate::emit::builder::Builder;
use crate::storage::queues::{PeKey, scalars};

#[derive(Clone, Copy, Debug)]
struct Held {
    reg: RegId,
    /// The value that the register holds, if it has a name.
    stored: Option<ValueId>,
    current: Option<ValueId>,
}

impl Held {
    /// The current value, read from the register if it has no name yet.
    fn value(&mut self, builder: &mut Builder, name: &str) -> ValueId {
        if let Some(value) = self.current {
            return value;
        }
        let ty = builder.kernel.regs[self.reg.index()].ty;
        let value = builder.value(name, ty, Op::Get(self.reg));
        self.stored = Some(value);
        self.current = Some(value);
        value
    }
}

/// Queues in registers.
#[derive(Debug, Default)]
pub struct Registers {
    queues: HashMap<(VarId, PeKey), Vec<Vec<Held>>>,
    order: Vec<(VarId, PeKey)>,
}

impl Registers {
    /// Declares `depth` registers for each scalar of a cell, one for each age.
    pub fn declare(
        &mut self,
        builder: &mut Builder,
        cell: VarId,
        name: &str,
        ty: &Type,
        pe: PeKey,
        depth: usize,
        shape: Shape,
    ) {
        let parts = scalars(ty);
        let queue = (1..=depth)
            .map(|age| {
                let held = |(n, scalar): (usize, &Scalar)| {
                    let mut full = name.to_string();
                    for p in &pe {
                        full.push_str(&format!("_{}", p.to_string().replace('-', "m")));
                    }
                    if parts.len() > 1 {
                        full.push_str(&format!("_f{n}"));
                    }
                    if age > 1 {
                        full.push_str(&format!("_age{age}"));
                    }
                    Held {
                        reg: builder.reg(full, *scalar, shape),
                        stored: None,
                        current: None,
                    }
                };
                parts.iter().enumerate().map(held).collect()
            })
            .collect();
        self.order.push((cell, pe.clone()));
        self.queues.insert((cell, pe), queue);
    }

    /// The value of a given age in ticks, if there is such a PE.
    pub fn read(
        &mut self,
        builder: &mut Builder,
        cell: VarId,
        name: &str,
        pe: &PeKey,
        age: usize,
    ) -> Option<Vec<ValueId>> {
        let parts = self
            .queues
            .get_mut(&(cell, pe.clone()))?
            .get_mut(age.checked_sub(1)?)?;
        Some(
            parts
                .iter_mut()
                .map(|held| held.value(builder, name))
                .collect(),
        )
    }

    /// Ends a tick: every queue moves on, by renaming.
    pub fn shift(&mut self, builder: &mut Builder, now: &HashMap<(VarId, PeKey), Vec<ValueId>>) {
        for key in &self.order {
            let Some(queue) = self.queues.get_mut(key) else {
                continue;
            };
            for age in (1..queue.len()).rev() {
                let (young, old) = queue.split_at_mut(age);
                let (Some(from), Some(to)) = (young.last_mut(), old.first_mut()) else {
                    continue;
                };
                for (from, to) in from.iter_mut().zip(to) {
                    let name = builder.kernel.regs[from.reg.index()].name.clone();
                    to.current = Some(from.value(builder, &name));
                }
            }
            if let (Some(first), Some(values)) = (queue.first_mut(), now.get(key)) {
                for (held, value) in first.iter_mut().zip(values) {
                    held.current = Some(*value);
                }
            }
        }
    }

    /// Writes renamed values back to the registers, and forgets the names.
    pub fn flush(&mut self, builder: &mut Builder) {
        for key in &self.order {
            for held in self.queues.get_mut(key).into_iter().flatten().flatten() {
                if held.current != held.stored
                    && let Some(value) = held.current
                {
                    builder.push(Stmt::Set(held.reg, value));
                }
                held.current = None;
                held.stored = None;
            }
        }
    }
}
