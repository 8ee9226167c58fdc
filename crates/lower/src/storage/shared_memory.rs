//! The shared arrays of a block: queues, and windows of inputs.

use std::collections::HashMap;

use systola_ir::VarId;
use systola_ir::array::{Array, Link};
use systola_ir::kernel::Shared;
use systola_ir::target::Machine;

use crate::decide::Decide;
use crate::failure::Failure;
use crate::storage::partition::is_scanned;
use crate::storage::partition::{Partition, Pes, queued};
use crate::storage::queues::Circular;
use crate::storage::slots::Slots;
use crate::storage::staging::Staging;
use crate::storage::windows::{Window, windows};

#[derive(Clone, Debug)]
pub struct SharedMemory {
    pub arrays: Vec<Shared>,
    /// The queues of cells that are in shared memory.
    pub queues: HashMap<VarId, Circular>,
    pub windows: Vec<Window>,
}

impl SharedMemory {
    pub fn declare(
        array: &Array,
        decide: &Decide,
        machine: &Machine,
        slots: &Slots,
        partition: &Partition,
    ) -> Result<SharedMemory, Failure> {
        let mut arrays = Vec::new();
        let mut queues = HashMap::new();
        let places = partition.with_ranges(slots, &partition.places());
        let times = partition.with_ranges(slots, &partition.steps);
        for n in 0..array.cells.len() {
            let cell = VarId::from(n);
            let links: Vec<&Link> = queued(array, cell)
                .filter(|l| partition.is_in_memory(array, l))
                .filter(|l| !is_scanned(partition, cell, l))
                .collect();
            if !links.is_empty() {
                let queue = Circular::declare(
                    &mut arrays,
                    array,
                    cell,
                    &links,
                    &places,
                    &times,
                    partition.lanes,
                    matches!(partition.walk, Pes::Known { .. }),
                )?;
                queues.insert(cell, queue);
            }
        }
        let staging = Staging::new(machine, slots, partition);
        let windows = windows(array, decide, partition, &staging, &mut arrays)?;
        Ok(SharedMemory {
            arrays,
            queues,
            windows,
        })
    }
}
