//! What the loops of a block are built from, and a position among them.

use std::cell::RefCell;
use std::collections::HashMap;

use systola_ir::array::Array;
use systola_ir::form::{Cond, Form, Overflow};
use systola_ir::target::Machine;
use systola_ir::{DimId, VarId};

use crate::decide::{Decide, Undecided};
use crate::facts::{Facts, Range};
use crate::nest::interior::{Test, tests, tests_of_cells};
use crate::nest::memory_order::barriers;
use crate::nest::tree::Which;
use crate::nest::walk::{Walk, choose};
use crate::storage::Plan;
use crate::storage::partition::{Partition, Pes};
use crate::storage::shared_memory::SharedMemory;
use crate::storage::slots::Slots;

/// What the loops of a block are built from.
pub(super) struct Context<'a> {
    pub(super) array: &'a Array,
    pub(super) decide: &'a Decide,
    pub(super) machine: &'a Machine,
    pub(super) slots: &'a Slots,
    pub(super) partition: &'a Partition,
    pub(super) shared: &'a SharedMemory,
    /// Do blocks wait for each other?
    pub(super) waits: bool,
    pub(super) which: &'a Which,
    /// Comparisons of the cells.
    pub(super) tests: Vec<Test>,
    /// The same for each cell, in an array that keeps values.
    pub(super) of_cells: Vec<Vec<Cond>>,
    /// How each of the steps runs.
    pub(super) walk: Vec<Walk>,
    /// For each of the steps, whether the warps synchronise after an iteration.
    pub(super) barriers: Vec<bool>,
    /// For a loop and the cells in it, whether its iterations are independent.
    pub(super) independent: RefCell<HashMap<(usize, Vec<VarId>), bool>>,
    /// Ranges of all coordinates.
    pub(super) everywhere: Facts<'a>,
}

/// A position in the nest.
#[derive(Clone)]
pub(super) struct At<'a> {
    /// The values of the coordinates: forms over the coordinates of loops, or the coordinates
    /// themselves.
    pub(super) slot: Vec<Form>,
    pub(super) facts: Facts<'a>,
    pub(super) path: Path,
}

/// The versions that lead to a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    /// Blocks or iterations inside all arrays, or those that have only one version.
    Inside,
    /// Blocks or iterations at an edge: they are rare, and not worth more code.
    Edge,
}

impl<'a> Context<'a> {
    pub(super) fn new(plan: Plan<'a>, which: &'a Which) -> Result<Context<'a>, Undecided> {
        let Plan {
            array,
            decide,
            machine,
            storage,
        } = plan;
        let (slots, partition) = (&storage.slots, &storage.partition);
        let mut everywhere = Facts::new(decide, machine);
        for (k, range) in slots.ranges.iter().enumerate() {
            everywhere.set_range(DimId::from(k), range.clone());
        }
        if let Some(packing) = &partition.packing {
            let (warp, nth) = packed_coordinates(slots);
            everywhere.set_range(warp, packing.grid());
            everywhere.set_range(nth, Range::new(0, packing.blocks));
        }
        Ok(Context {
            array,
            decide,
            machine,
            slots,
            partition,
            shared: &storage.shared,
            waits: storage.flags.is_some(),
            which,
            tests: tests(array, slots)?,
            of_cells: match array.keeps_values() {
                true => tests_of_cells(array, slots)?,
                false => Vec::new(),
            },
            walk: choose(array, slots, partition, machine),
            barriers: barriers(array, partition, decide)?,
            independent: RefCell::default(),
            everywhere,
        })
    }

    /// Is a window filled inside this number of loops?
    pub(super) fn has_windows(&self, depth: usize) -> bool {
        self.shared.windows.iter().any(|w| w.depth == depth)
    }

    /// The position before the first loop.
    pub(super) fn outside(&self) -> At<'a> {
        let mut facts = Facts::new(self.decide, self.machine);
        let grid = self.partition.launches.iter().chain(&self.partition.blocks);
        for k in grid {
            facts.set_range(DimId::from(*k), self.slots.ranges[*k].clone());
        }
        if let Some(packing) = &self.partition.packing {
            facts.set_range(packed_coordinates(self.slots).0, packing.grid());
        }
        if let Which::Inner(cond) = self.which {
            facts = facts.with(cond.clone());
        }
        let slot = (0..self.slots.ranges.len()).map(|k| Form::from(DimId::from(k)));
        At {
            slot: slot.collect(),
            facts,
            path: Path::Inside,
        }
    }

    pub(super) fn is_known(&self) -> bool {
        matches!(self.partition.walk, Pes::Known { .. })
    }
}

impl At<'_> {
    /// A form over the slot, at this position.
    pub(super) fn value(&self, form: &Form) -> Result<Form, Overflow> {
        form.substitute(&|d| self.slot.get(d.index()).cloned())
    }

    pub(super) fn at_edge(&self) -> Self {
        At {
            path: Path::Edge,
            ..self.clone()
        }
    }
}

/// The coordinates of the warp and of the block in it, where blocks share warps.
pub(super) fn packed_coordinates(slots: &Slots) -> (DimId, DimId) {
    let n = slots.ranges.len();
    (DimId::from(n), DimId::from(n + 1))
}
