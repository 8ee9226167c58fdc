//! Moves shared arrays that do not fit into shared memory to global memory.
//!
//! Before: all arrays of a block are in shared memory, however large. After: the largest of them
//! are temporaries in global memory, with an axis for each coordinate of the block in front, until
//! the rest fits. A block accesses its own region only, and what orders the lanes and warps of a
//! block orders their accesses to global memory too. Asynchronous copies write to shared memory, so
//! those into a region become loads and stores.
//!
//! Arrays that nothing uses any more are left to [`tidy`](mod@crate::passes::tidy). This runs
//! before accesses are vectorised, since a region may begin elsewhere than the array did.

use systola_ir::form::{Form, Overflow, Poly};
use systola_ir::kernel::visit::walk;
use systola_ir::kernel::{
    Access, Buffer, BufferKind, Kernel, Memory, Op, Program, Shape, Shared, Stmt, Value, VarKind,
};
use systola_ir::system::Axis;
use systola_ir::target::{Threads, Unsized};
use systola_ir::{BufferId, DimId, ParamId, Scalar, SharedId, ValueId};

/// The kernel with its largest shared arrays moved to global memory; their buffers are added to
/// `program`.
pub fn spill(
    mut kernel: Kernel,
    program: &mut Program,
    threads: &Threads,
) -> Result<Kernel, Overflow> {
    let Some(region) = region(&kernel) else {
        return Ok(kernel);
    };
    for array in chosen(&kernel, program, threads)? {
        let buffer = BufferId::from(program.buffers.len());
        let Shared { name, ty, extents } = kernel.shared[array.index()].clone();
        let mut axes: Vec<Axis> = region.iter().map(|(_, axis)| axis.clone()).collect();
        axes.extend(extents.iter().map(|extent| Axis {
            lo: Form::zero(),
            hi: Form::from(extent.clone()),
        }));
        program.buffers.push(Buffer {
            name: Buffer::unused_name(&format!("{}_{name}", kernel.name), &program.buffers),
            ty,
            kind: BufferKind::Temporary,
            axes,
        });
        let body = std::mem::take(&mut kernel.body);
        kernel.body = Moving {
            kernel: &mut kernel,
            array: Memory::Shared(array),
            region: &region,
            buffer: Memory::Global(buffer),
            ty,
        }
        .stmts(body);
    }
    let mut copies = false;
    walk(&kernel.body, &mut |stmt| {
        copies |= matches!(stmt, Stmt::Copy { .. });
    });
    if !copies {
        forget_waits(&mut kernel.body);
    }
    Ok(kernel)
}

/// Without asynchronous copies there is nothing to wait for.
fn forget_waits(stmts: &mut Vec<Stmt>) {
    stmts.retain(|stmt| !matches!(stmt, Stmt::CommitCopies | Stmt::WaitCopies { .. }));
    for body in stmts.iter_mut().flat_map(Stmt::bodies_mut) {
        forget_waits(body);
    }
}

/// Do the shared arrays of each kernel fit at these sizes, as far as they are known?
pub fn fits(
    program: &Program,
    sizes: &[Option<i128>],
    threads: &Threads,
) -> Result<bool, Overflow> {
    for kernel in &program.kernels {
        let mut total = 0i128;
        for array in &kernel.shared {
            let size = |p: ParamId| {
                let given = sizes.get(p.index()).copied().flatten();
                program.params[p.index()].fixed.or(given)
            };
            total = total.saturating_add(bytes(array, &size)?.unwrap_or(0));
        }
        if total > i128::from(threads.block_memory) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The coordinates of a block and their bounds over all launches, if the sizes alone determine
/// them.
fn region(kernel: &Kernel) -> Option<Vec<(DimId, Axis)>> {
    let mut region = Vec::new();
    for (n, var) in kernel.vars.iter().enumerate() {
        let VarKind::Block { lo, hi } = &var.kind else {
            continue;
        };
        let known = |bounds: &[Form]| bounds.iter().find(|f| f.dims().is_empty()).cloned();
        let axis = Axis {
            lo: known(lo)?,
            hi: known(hi)?,
        };
        region.push((DimId::from(n), axis));
    }
    Some(region)
}

/// The arrays to move: those of unknown size, if the device wants these moved, and the largest of
/// the others.
fn chosen(
    kernel: &Kernel,
    program: &Program,
    threads: &Threads,
) -> Result<Vec<SharedId>, Overflow> {
    let mut chosen = Vec::new();
    let mut sized = Vec::new();
    for (n, array) in kernel.shared.iter().enumerate() {
        match bytes(array, &|p| program.params[p.index()].fixed)? {
            Some(bytes) => sized.push((bytes, SharedId::from(n))),
            None if threads.unsized_arrays == Unsized::Global => chosen.push(SharedId::from(n)),
            None => {}
        }
    }
    sized.sort();
    let mut total: i128 = sized.iter().map(|(bytes, _)| bytes).sum();
    while total > i128::from(threads.block_memory)
        && let Some((bytes, array)) = sized.pop()
    {
        total -= bytes;
        chosen.push(array);
    }
    chosen.sort();
    Ok(chosen)
}

/// Bytes of an array, including what alignment may cost, if that is a number.
fn bytes(
    array: &Shared,
    size: &impl Fn(ParamId) -> Option<i128>,
) -> Result<Option<i128>, Overflow> {
    let mut product = Poly::constant(i128::from(array.ty.bits().max(8) / 8));
    for extent in &array.extents {
        product = product.mul(extent)?;
    }
    let known = Form::from(product).fix_params(size)?;
    Ok(known.as_constant().map(|bytes| bytes.saturating_add(64)))
}

/// One array that is being moved.
struct Moving<'a> {
    kernel: &'a mut Kernel,
    array: Memory,
    region: &'a [(DimId, Axis)],
    buffer: Memory,
    ty: Scalar,
}

impl Moving<'_> {
    fn stmts(&mut self, stmts: Vec<Stmt>) -> Vec<Stmt> {
        let mut moved = Vec::new();
        for mut stmt in stmts {
            for body in stmt.bodies_mut() {
                *body = self.stmts(std::mem::take(body));
            }
            if let Stmt::Copy {
                to, from, width, ..
            } = &stmt
                && to.memory == self.array
            {
                self.copy(to, from, *width, &mut moved);
                continue;
            }
            if let Stmt::Let(_, Op::Lookup { memory, index }) = &mut stmt
                && *memory == self.array
            {
                *memory = self.buffer;
                index.splice(0..0, self.own_region(&mut moved));
            }
            for access in stmt.accesses_mut() {
                self.access(access);
            }
            moved.push(stmt);
        }
        moved
    }

    fn access(&self, access: &mut Access) {
        if access.memory == self.array {
            access.memory = self.buffer;
            let own = self.region.iter().map(|(var, _)| Form::from(*var));
            access.index.splice(0..0, own);
        }
    }

    /// The region of the block as lookup indices, which count from 0.
    fn own_region(&mut self, before: &mut Vec<Stmt>) -> Vec<ValueId> {
        let mut whole = Vec::new();
        for (var, axis) in self.region {
            let own = self.value("own", Scalar::I64, Shape::Uniform);
            let form = Form::from(*var).sub(&axis.lo);
            before.push(Stmt::Let(own, Op::Index(form)));
            whole.push(own);
        }
        whole
    }

    /// Copies some neighbours, element by element.
    fn copy(&mut self, to: &Access, from: &Access, width: u32, into: &mut Vec<Stmt>) {
        let when = to.when.clone().and(from.when.clone());
        let neighbour = |access: &Access, n: i128| {
            let mut access = access.clone();
            if let Some(last) = access.index.last_mut() {
                *last = last.plus(n);
            }
            access.when = when.clone();
            access
        };
        for n in 0..i128::from(width) {
            let from = neighbour(from, n);
            let uniform = from.forms().into_iter().all(|f| self.kernel.is_uniform(f));
            let shape = if uniform {
                Shape::Uniform
            } else {
                Shape::Varying
            };
            let value = self.value("copied", self.ty, shape);
            let otherwise = None;
            into.push(Stmt::Let(value, Op::Load { from, otherwise }));
            let mut to = neighbour(to, n);
            self.access(&mut to);
            into.push(Stmt::Store { to, value });
        }
    }

    fn value(&mut self, name: &str, ty: Scalar, shape: Shape) -> ValueId {
        self.kernel.values.push(Value {
            name: name.to_string(),
            ty,
            shape,
        });
        ValueId::from(self.kernel.values.len() - 1)
    }
}
