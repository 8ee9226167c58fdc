//! Names that are unique within one kernel.

use std::collections::{HashMap, HashSet};

use crate::id::{DimId, KernelId, RegId, ValueId};
use crate::kernel::visit::walk;
use crate::kernel::{Kernel, Op, Program, Stmt};

use super::inline::inlined;

/// A kernel ready to be printed, whole or by the statement.
pub struct KernelText<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) params: Vec<String>,
    pub(super) buffers: Vec<String>,
    pub(super) vars: Vec<String>,
    pub(super) shared: Vec<String>,
    pub(super) regs: Vec<String>,
    values: Vec<String>,
    /// The operation of each value that a `Let` assigns.
    ops: Vec<Option<&'a Op>>,
    inlined: Vec<bool>,
}

impl<'a> KernelText<'a> {
    /// `None`: the program has no such kernel.
    pub fn new(program: &'a Program, kernel: KernelId) -> Option<KernelText<'a>> {
        let kernel = program.kernels.get(kernel.index())?;
        let mut taken = Taken::default();
        let params = taken.all(program.params.iter().map(|p| p.name.as_str()));
        let buffers = taken.all(program.buffers.iter().map(|b| b.name.as_str()));
        let vars = taken.all(kernel.vars.iter().map(|v| v.name.as_str()));
        let shared = taken.all(kernel.shared.iter().map(|s| s.name.as_str()));
        let regs = taken.all(kernel.regs.iter().map(|r| r.name.as_str()));
        let mut ops = vec![None; kernel.values.len()];
        walk(&kernel.body, &mut |stmt| {
            if let Stmt::Let(value, op) = stmt
                && let Some(slot) = ops.get_mut(value.index())
            {
                *slot = Some(op);
            }
        });
        let inlined = inlined(kernel);
        // Only what is seen needs a name of its own.
        let values = kernel
            .values
            .iter()
            .zip(&inlined)
            .map(|(value, hidden)| match hidden {
                true => value.name.clone(),
                false => taken.one(&value.name),
            })
            .collect();
        Some(KernelText {
            kernel,
            params,
            buffers,
            vars,
            shared,
            regs,
            values,
            ops,
            inlined,
        })
    }

    pub(super) fn is_inlined(&self, value: ValueId) -> bool {
        self.inlined.get(value.index()).copied().unwrap_or(false)
    }

    /// The operation that stands in the place of an inlined value.
    pub(super) fn inlined_op(&self, value: ValueId) -> Option<&'a Op> {
        if self.is_inlined(value) {
            *self.ops.get(value.index())?
        } else {
            None
        }
    }

    pub fn value(&self, value: ValueId) -> String {
        name(&self.values, value.index(), "value")
    }

    pub fn reg(&self, reg: RegId) -> String {
        name(&self.regs, reg.index(), "reg")
    }

    pub fn var(&self, var: DimId) -> String {
        name(&self.vars, var.index(), "i")
    }
}

/// An id that points nowhere still prints.
pub(super) fn name(names: &[String], index: usize, fallback: &str) -> String {
    names
        .get(index)
        .cloned()
        .unwrap_or_else(|| format!("{fallback}{index}"))
}

#[derive(Default)]
struct Taken {
    names: HashSet<String>,
    /// The last number given to a name, so that many of one name stay cheap.
    numbers: HashMap<String, usize>,
}

impl Taken {
    fn one(&mut self, name: &str) -> String {
        let mut unique = name.to_string();
        while !self.names.insert(unique.clone()) {
            let number = self.numbers.entry(name.to_string()).or_default();
            *number += 1;
            unique = format!("{name}.{number}");
        }
        unique
    }

    fn all<'n>(&mut self, names: impl Iterator<Item = &'n str>) -> Vec<String> {
        names.map(|name| self.one(name)).collect()
    }
}
