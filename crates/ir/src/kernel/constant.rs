//! Which inputs are in the constant memory of a GPU.
//!
//! Constant memory delivers one element per clock to all lanes of a warp. An input is put there if
//! it is small, has a known size, and is read at the same position by all lanes whenever it is
//! read.

use std::collections::BTreeSet;

use crate::id::{BufferId, ValueId};
use crate::kernel::visit::walk;
use crate::kernel::{Access, BufferKind, Kernel, Memory, Op, Program, Shape, Stmt};

/// Bytes of one array, and of all of them; the hardware has 64 KB in total (CUDA programming
/// guide).
const MOST_BYTES: i128 = 16 << 10;
const MOST_IN_ALL: i128 = 48 << 10;

/// The buffers for constant memory, with their numbers of elements.
pub fn constant_buffers(program: &Program) -> Vec<(BufferId, usize)> {
    let mut read = BTreeSet::new();
    let mut varying = BTreeSet::new();
    for kernel in &program.kernels {
        walk(&kernel.body, &mut |stmt| {
            look(kernel, stmt, &mut read, &mut varying);
        });
    }
    let mut total = 0;
    let mut found = Vec::new();
    for (n, buffer) in program.buffers.iter().enumerate() {
        let id = BufferId::from(n);
        let is_input = match buffer.kind {
            BufferKind::Input { .. } => true,
            BufferKind::Output { .. }
            | BufferKind::Temporary
            | BufferKind::Flags
            | BufferKind::Faults { .. } => false,
        };
        if !is_input || !read.contains(&id) || varying.contains(&id) {
            continue;
        }
        let extents = program.extents(id);
        let count = extents.iter().try_fold(1i128, |product, extent| {
            product.checked_mul(extent.as_constant()?.max(0))
        });
        let Some(count) = count.filter(|count| *count > 0) else {
            continue;
        };
        let bytes = count.saturating_mul(i128::from(buffer.ty.bits() / 8));
        if bytes > MOST_BYTES || total + bytes > MOST_IN_ALL {
            continue;
        }
        total += bytes;
        if let Ok(count) = usize::try_from(count) {
            found.push((id, count));
        }
    }
    found
}

fn look(
    kernel: &Kernel,
    stmt: &Stmt,
    read: &mut BTreeSet<BufferId>,
    varying: &mut BTreeSet<BufferId>,
) {
    let Some(buffer) = stmt.effects().reads().and_then(Memory::buffer) else {
        return;
    };
    read.insert(buffer);
    let one_place = |from: &Access| from.index.iter().all(|form| kernel.is_uniform(form));
    let is_uniform = |value: &ValueId| kernel.values[value.index()].shape == Shape::Uniform;
    let same = |op: &Op| op.access().is_none_or(one_place) && op.values().iter().all(is_uniform);
    // An input that vector loads or copies read stays in global memory.
    if !matches!(stmt, Stmt::Let(_, op) if same(op)) {
        varying.insert(buffer);
    }
}
