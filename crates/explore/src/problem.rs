//! What is explored: a system at sizes, for a machine.

use std::collections::BTreeMap;

use systola_driver::{Fix, Lowered, Machine, lower};
use systola_ir::Diagnostic;
use systola_ir::mapping::Mapping;
use systola_ir::system::{Module, System};

/// A system of a module at given sizes, and the machine that it is to run on. The system is checked.
#[derive(Clone, Debug)]
pub struct Problem<'a> {
    pub module: &'a Module,
    pub system: &'a System,
    pub sizes: BTreeMap<String, i128>,
    /// Which sizes become numbers in kernels.
    pub fix: Fix,
    pub machine: Machine,
}

impl Problem<'_> {
    /// Proves a mapping legal and lowers it to kernels.
    pub fn lower(&self, mapping: &Mapping) -> Result<Lowered, Vec<Diagnostic>> {
        lower(self.module, mapping, &self.sizes, &self.fix, &self.machine)
    }
}
