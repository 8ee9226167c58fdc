//! The subject of an exploration: a system at sizes, for a machine.

use std::collections::BTreeMap;

use systola_driver::{Fix, Lowered, Machine, lower};
use systola_ir::mapping::Mapping;
use systola_ir::system::{Module, System};
use systola_ir::{Diagnostic, Form};

use crate::sizes::params_in;
use crate::space::Candidate;

/// A checked system of a module at given sizes, and the machine that it is to run on.
#[derive(Clone, Debug)]
pub struct Problem<'a> {
    pub module: &'a Module,
    pub system: &'a System,
    pub sizes: BTreeMap<String, i128>,
    /// The sizes that become constants in kernels.
    pub fix: Fix,
    pub machine: Machine,
}

/// Sums up to this length are best unrolled, for which their sizes must be constants.
const SHORT: i128 = 64;

/// The sizes that should be constants: those that bound a short sum. Kernels for all sizes of a
/// filter, say, test for the last step in every step; those for one size need not.
pub fn short_sums(system: &System, sizes: &BTreeMap<String, i128>) -> Fix {
    let bounds = |form: &Form| -> Vec<String> {
        let params = params_in(form, system.params.len());
        params
            .into_iter()
            .map(|n| system.params[n].name.clone())
            .collect()
    };
    let ranges = system.bound.iter().filter_map(|dim| dim.range.as_ref());
    let mut names: Vec<String> = ranges
        .flat_map(|(lo, hi)| [bounds(lo), bounds(hi)].concat())
        .filter(|name| sizes.get(name).is_some_and(|size| *size <= SHORT))
        .collect();
    names.sort();
    names.dedup();
    match names.as_slice() {
        [] => Fix::Nothing,
        _ => Fix::Names(names),
    }
}

impl Problem<'_> {
    /// Proves a mapping legal and lowers it to kernels.
    pub fn lower(&self, mapping: &Mapping) -> Result<Lowered, Vec<Diagnostic>> {
        lower(self.module, mapping, &self.sizes, &self.fix, &self.machine)
    }

    /// The mappings of the file, and of these candidates those that are not in the file.
    pub fn with_own(&self, found: Vec<Candidate>) -> Vec<(Candidate, bool)> {
        let own = self.module.mappings.iter();
        let own: Vec<&Mapping> = own.filter(|m| m.system == self.system.name).collect();
        let is_new = |found: &Candidate| !own.iter().any(|m| found.says_the_same(m));
        let found = found.into_iter().filter(is_new);
        let given = own.iter().map(|mapping| Candidate {
            mapping: (*mapping).clone(),
            choices: Vec::new(),
        });
        let given = given.map(|candidate| (candidate, true));
        given.chain(found.map(|c| (c, false))).collect()
    }
}
