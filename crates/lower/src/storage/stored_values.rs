//! The buffers of values that points read through memory.

use systola_ir::array::{Array, Storage};
use systola_ir::form::{Form, Overflow};
use systola_ir::kernel::{Buffer, BufferKind, Program};
use systola_ir::{BufferId, Scalar, VarId};

use crate::storage::place::Place;
use crate::storage::queues::scalars;

/// For each storage of an array, a buffer for each scalar of its type.
#[derive(Clone, Debug, Default)]
pub struct StoredValues {
    by_storage: Vec<Vec<(BufferId, Scalar)>>,
}

impl StoredValues {
    pub fn declare(array: &Array, program: &mut Program) -> StoredValues {
        let by_storage = array.storages.iter();
        let by_storage = by_storage.map(|storage| buffers(array, storage, program));
        StoredValues {
            by_storage: by_storage.collect(),
        }
    }

    /// Where the value of a cell at a point is kept; `None` if the cell keeps none.
    pub fn place(
        &self,
        array: &Array,
        cell: VarId,
        point: &[Form],
    ) -> Result<Option<Place<'_>>, Overflow> {
        let Some(kept) = &array.cells[cell.index()].kept else {
            return Ok(None);
        };
        let at = |f: &Form| f.substitute(&|d| point.get(d.index()).cloned());
        Ok(Some(Place {
            buffers: &self.by_storage[kept.storage.index()],
            index: kept.index.iter().map(at).collect::<Result<_, _>>()?,
            when: kept.when.map(&at)?,
        }))
    }

    /// Is the buffer read and written by the same kernels?
    pub fn has(&self, buffer: BufferId) -> bool {
        self.by_storage.iter().flatten().any(|(b, _)| *b == buffer)
    }
}

fn buffers(array: &Array, storage: &Storage, program: &mut Program) -> Vec<(BufferId, Scalar)> {
    let scalars = scalars(&storage.ty);
    if let (Some(output), [ty]) = (storage.output, scalars.as_slice()) {
        return vec![(BufferId::from(array.inputs.len() + output), *ty)];
    }
    let mut made = Vec::new();
    for (n, ty) in scalars.iter().enumerate() {
        let wanted = match scalars.len() {
            1 => storage.name.clone(),
            _ => format!("{}_{n}", storage.name),
        };
        program.buffers.push(Buffer {
            name: Buffer::unused_name(&wanted, &program.buffers),
            ty: *ty,
            kind: BufferKind::Temporary,
            axes: storage.axes.clone(),
        });
        made.push((BufferId::from(program.buffers.len() - 1), *ty));
    }
    made
}
