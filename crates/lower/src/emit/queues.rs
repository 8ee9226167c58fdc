//! Queues of values in shared memory.

use systola_ir::form::Form;
use systola_ir::kernel::{Access, Memory, Stmt};
use systola_ir::{Scalar, ValueId, VarId};

use crate::emit::Emitter;
use crate::storage::queues::Circular;

impl Emitter<'_> {
    /// Loads what the PE at a slot put into its queue in shared memory.
    pub(super) fn read_queue(
        &mut self,
        queue: &Circular,
        name: &str,
        slot: &[Form],
    ) -> Vec<ValueId> {
        let index = queue.index(slot);
        let when = self.facts.simplify(&queue.has(slot));
        let load = |(id, ty): &(_, Scalar)| {
            let from = Access {
                memory: Memory::Shared(*id),
                index: index.clone(),
                when: when.clone(),
            };
            self.b.load(name, *ty, from, None)
        };
        queue.arrays.iter().map(load).collect()
    }

    /// Stores the values of a cell into its queue in shared memory, if it has one.
    pub(super) fn write_queue(&mut self, cell: VarId, slot: &[Form], values: &[ValueId]) {
        let Some(queue) = self.storage.shared.queues.get(&cell) else {
            return;
        };
        let index = queue.index(slot);
        for ((id, _), value) in queue.arrays.iter().zip(values) {
            let to = Access::new(Memory::Shared(*id), index.clone());
            // A carried value that was loaded from this very element is still there.
            if !self.b.is_load_of(*value, &to) {
                self.b.push(Stmt::Store { to, value: *value });
            }
        }
    }
}
