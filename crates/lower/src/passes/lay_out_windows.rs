//! Lays out the rows of a window in shared memory so that lanes avoid bank conflicts.
//!
//! A mapping may choose the layout. If it does not, each layout is tried: the accesses of a warp in
//! the first iterations of every loop, at sizes that are large and even, are counted in
//! bank-conflict wavefronts ([`shared_cost`]), as the interpreter of kernels counts them. A loop is
//! weighted by its trip count. The layout with the fewest wavefronts is chosen, and of two equal
//! ones the simpler.
//!
//! - *Padded* rows are longer by one vector access.
//! - *Swizzled* rows keep their length. In a row in line n of the banks, vector access c is at the
//!   place where access c + n was, modulo their number. This serves the same purpose as XOR of
//!   columns, but is a quasi-affine form.
//!
//! This runs after accesses are vectorised: no layout splits a vector access.

use systola_ir::form::{Form, Overflow, Poly};
use systola_ir::kernel::banks::{BANK_BYTES, BANKS, shared_cost};
use systola_ir::kernel::visit::{Rewrite, rewrite, walk};
use systola_ir::kernel::{Access, Kernel, Memory, Size, Stmt, VarKind};
use systola_ir::mapping::{Rows, Store, Transfer};
use systola_ir::target::Threads;
use systola_ir::{DimId, SharedId};

use crate::names::near;

/// The value of a parameter that is not fixed.
const SIZE: i128 = 4096;
/// Iterations of a loop that are sampled; the others are like them.
const SAMPLED_ITERATIONS: i128 = 2;
/// A loop is weighted by its trip count, up to this.
const MOST_ITERATIONS: i128 = 64;

/// The kernel with every window laid out as its transfer says.
pub fn lay_out_windows(
    mut kernel: Kernel,
    transfers: &[Transfer],
    sizes: &[Size],
    threads: &Threads,
) -> Result<Kernel, Overflow> {
    for transfer in transfers.iter().filter(|t| t.store == Store::Shared) {
        let name = near(&transfer.source.text);
        let Some(n) = kernel.shared.iter().position(|s| s.name == name) else {
            continue;
        };
        let Some(rows) = RowsOf::find(&kernel, SharedId::from(n), threads) else {
            continue;
        };
        match transfer.layout.rows {
            Rows::Plain | Rows::Pad(_) => {}
            Rows::Rotate => kernel = rows.swizzled(&kernel)?.unwrap_or(kernel),
            Rows::Chosen => kernel = rows.best(kernel, sizes, threads)?,
        }
    }
    Ok(kernel)
}

/// A window whose rows have a known length.
struct RowsOf {
    array: SharedId,
    /// Elements of a row.
    length: i128,
    /// Elements of a vector access.
    unit: i128,
    /// Elements of a line across all banks.
    line: i128,
}

impl RowsOf {
    /// `None` if there is only one row, its length is not constant, it does not consist of vector
    /// accesses, or elements are looked up in it.
    fn find(kernel: &Kernel, array: SharedId, threads: &Threads) -> Option<RowsOf> {
        let shared = &kernel.shared[array.index()];
        let [.., _, last] = shared.extents.as_slice() else {
            return None;
        };
        let bytes = i128::from(shared.ty.bits() / 8).max(1);
        let rows = RowsOf {
            array,
            length: last.as_constant()?,
            unit: (i128::from(threads.wide_bytes) / bytes).max(1),
            line: i128::from(BANKS * BANK_BYTES) / bytes,
        };
        let mut looked_up = false;
        walk(&kernel.body, &mut |stmt| {
            looked_up |= stmt.effects().lookup == Some(Memory::Shared(array));
        });
        (rows.length % rows.unit == 0 && !looked_up).then_some(rows)
    }

    fn best(&self, kernel: Kernel, sizes: &[Size], threads: &Threads) -> Result<Kernel, Overflow> {
        let count = |kernel: &Kernel| Sample::new(kernel, self.array, sizes).wavefronts();
        let mut least = count(&kernel)?;
        let mut best = None;
        let padded = Some(self.padded(&kernel)).filter(|k| fits(k, threads));
        for candidate in [padded, self.swizzled(&kernel)?].into_iter().flatten() {
            let wavefronts = count(&candidate)?;
            if wavefronts < least {
                (least, best) = (wavefronts, Some(candidate));
            }
        }
        Ok(best.unwrap_or(kernel))
    }

    fn padded(&self, kernel: &Kernel) -> Kernel {
        let mut kernel = kernel.clone();
        if let Some(last) = kernel.shared[self.array.index()].extents.last_mut() {
            *last = Poly::constant(self.length + self.unit);
        }
        kernel
    }

    /// `None` if a row is one access.
    fn swizzled(&self, kernel: &Kernel) -> Result<Option<Kernel>, Overflow> {
        if self.length <= self.unit {
            return Ok(None);
        }
        let mut kernel = kernel.clone();
        kernel.body = rewrite(&kernel.body, self)?;
        Ok(Some(kernel))
    }
}

impl Rewrite for RowsOf {
    fn index(&self, memory: Memory, mut index: Vec<Form>) -> Result<Vec<Form>, Overflow> {
        if memory != Memory::Shared(self.array) {
            return Ok(index);
        }
        if let [.., row, column] = index.as_mut_slice() {
            let line = row.floor_div((self.line / self.length).max(1));
            let access = column.floor_div(self.unit).add(&line);
            let swizzled = access.modulo(self.length / self.unit);
            *column = swizzled
                .scale(&Poly::constant(self.unit))?
                .add(&column.modulo(self.unit));
        }
        Ok(index)
    }
}

/// Do all shared arrays of a block fit?
fn fits(kernel: &Kernel, threads: &Threads) -> bool {
    let bytes = kernel.shared.iter().map(|shared| {
        let extents = shared.extents.iter().map(Poly::as_constant);
        let elements = extents.product::<Option<i128>>()?;
        u64::try_from(elements * i128::from(shared.ty.bits() / 8)).ok()
    });
    bytes
        .sum::<Option<u64>>()
        .is_some_and(|bytes| bytes <= threads.block_memory)
}

/// A few iterations of the first warp of a block.
struct Sample<'k> {
    kernel: &'k Kernel,
    array: SharedId,
    extents: Vec<i128>,
    sizes: Vec<i128>,
    at: Vec<i128>,
    seen: Vec<u64>,
}

impl<'k> Sample<'k> {
    fn new(kernel: &'k Kernel, array: SharedId, sizes: &[Size]) -> Sample<'k> {
        let extents = kernel.shared[array.index()].extents.iter();
        let at = kernel.vars.iter().map(|var| match var.kind {
            // Not the first block: blocks at an edge have more tests.
            VarKind::Block { .. } => 1,
            VarKind::Host
            | VarKind::Warp
            | VarKind::Lane
            | VarKind::Loop
            | VarKind::DynamicBlock => 0,
        });
        Sample {
            kernel,
            array,
            extents: extents.map(|e| e.as_constant().unwrap_or(1)).collect(),
            sizes: sizes.iter().map(|s| s.fixed.unwrap_or(SIZE)).collect(),
            at: at.collect(),
            seen: Vec::new(),
        }
    }

    /// The bank-conflict wavefronts of all accesses to the array.
    fn wavefronts(mut self) -> Result<i128, Overflow> {
        self.list(&self.kernel.body)
    }

    fn list(&mut self, list: &[Stmt]) -> Result<i128, Overflow> {
        let mut sum = 0i128;
        for stmt in list {
            let here = if let Stmt::For {
                var,
                lo,
                hi,
                step,
                body,
            } = stmt
            {
                self.iterations(*var, lo, hi, *step, body)?
            } else if let Stmt::If {
                cond,
                then,
                otherwise,
            } = stmt
            {
                let holds = cond.eval(&self.sizes, &self.at)?;
                self.list(if holds { then } else { otherwise })?
            } else {
                let effects = stmt.effects();
                let mut wavefronts = 0;
                for (access, width) in effects.read.into_iter().chain(effects.write) {
                    wavefronts += self.access(access, width)?;
                }
                wavefronts
            };
            sum = sum.checked_add(here).ok_or(Overflow)?;
        }
        Ok(sum)
    }

    fn iterations(
        &mut self,
        var: DimId,
        lo: &[Form],
        hi: &[Form],
        step: i128,
        body: &[Stmt],
    ) -> Result<i128, Overflow> {
        let value = |form: &Form| form.eval(&self.sizes, &self.at);
        let lo = lo.iter().map(value).collect::<Result<Vec<_>, _>>()?;
        let hi = hi.iter().map(value).collect::<Result<Vec<_>, _>>()?;
        let (Some(lo), Some(hi)) = (lo.into_iter().max(), hi.into_iter().min()) else {
            return Ok(0);
        };
        let all = (hi.saturating_sub(lo).max(0) + step - 1).div_euclid(step);
        let sampled = all.min(SAMPLED_ITERATIONS);
        let mut sum = 0i128;
        for n in 0..sampled {
            self.at[var.index()] = lo + n * step;
            sum = sum.checked_add(self.list(body)?).ok_or(Overflow)?;
        }
        let all = all.min(MOST_ITERATIONS);
        Ok(sum.checked_mul(all).ok_or(Overflow)? / sampled.max(1))
    }

    fn access(&mut self, access: &Access, width: usize) -> Result<i128, Overflow> {
        if access.memory != Memory::Shared(self.array) {
            return Ok(0);
        }
        let bytes = u64::from(self.kernel.shared[self.array.index()].ty.bits() / 8);
        let mut lanes = Vec::new();
        for lane in 0..self.kernel.lanes as usize {
            if let Some(var) = self.kernel.lane() {
                self.at[var.index()] = lane as i128;
            }
            if !access.when.eval(&self.sizes, &self.at)? {
                continue;
            }
            let mut position = 0i128;
            for (index, extent) in access.index.iter().zip(&self.extents) {
                let index = index.eval(&self.sizes, &self.at)?;
                let before = position.checked_mul(*extent).ok_or(Overflow)?;
                position = before.checked_add(index).ok_or(Overflow)?;
            }
            // Elements outside are never read: the sizes of the sample are too small for them.
            if let Ok(position) = u64::try_from(position) {
                lanes.push((lane, position.saturating_mul(bytes)));
            }
        }
        let bytes = bytes * width as u64;
        let cost = shared_cost(lanes.iter().copied(), bytes, &mut self.seen);
        Ok(i128::from(cost.wavefronts))
    }
}

#[cfg(test)]
mod tests {
    use systola_ir::form::Cond;
    use systola_ir::kernel::{Shared, Value, Var};
    use systola_ir::mapping::{Engine, Layout, Name};
    use systola_ir::{Scalar, ValueId};

    use super::*;
    use systola_ir::target::{Copies, Links, Unsized, WarpSizes};

    const LANES: usize = 32;

    fn threads(block_memory: u64) -> Threads {
        Threads {
            warps: 32,
            wide_bytes: 16,
            copies: Copies::Asynchronous,
            block_memory,
            unsized_arrays: Unsized::Global,
            links: Links::Shuffles(WarpSizes::one(32)),
            multiprocessor: None,
        }
    }

    /// Lane l loads `width` elements from row l / `per_row`, starting at column
    /// l % `per_row` · `width`.
    fn kernel(rows: i128, length: i128, per_row: i128, width: usize) -> Kernel {
        let lane = Form::from(DimId::from(0));
        let column = lane.modulo(per_row).scale(&Poly::constant(width as i128));
        let from = Access {
            memory: Memory::Shared(SharedId::from(0)),
            index: vec![lane.floor_div(per_row), column.unwrap()],
            when: Cond::TRUE,
        };
        let value = Value {
            name: "x".to_string(),
            ty: Scalar::F32,
            shape: systola_ir::kernel::Shape::Varying,
        };
        Kernel {
            hints: Default::default(),
            name: "k".to_string(),
            lanes: LANES as u32,
            warps: 1,
            vars: vec![Var {
                name: "lane".to_string(),
                kind: VarKind::Lane,
            }],
            shared: vec![Shared {
                name: near("x"),
                ty: Scalar::F32,
                extents: vec![Poly::constant(rows), Poly::constant(length)],
            }],
            regs: Vec::new(),
            values: vec![value; width],
            body: vec![Stmt::LoadWide {
                to: (0..width).map(ValueId::from).collect(),
                from,
                otherwise: None,
            }],
        }
    }

    fn transfer(rows: Rows) -> Transfer {
        Transfer {
            source: Name::from("x"),
            store: Store::Shared,
            at: None,
            stages: 1,
            layout: Layout::from(rows),
            engine: Engine::Plain,
        }
    }

    fn count(kernel: &Kernel) -> i128 {
        Sample::new(kernel, SharedId::from(0), &[])
            .wavefronts()
            .unwrap()
    }

    fn laid_out(kernel: &Kernel, rows: Rows, memory: u64) -> Kernel {
        lay_out_windows(kernel.clone(), &[transfer(rows)], &[], &threads(memory)).unwrap()
    }

    #[test]
    fn a_column_is_padded_and_a_row_stays() {
        // Every lane loads the first four elements of a row of 32: all in the same four banks.
        let column = kernel(32, 32, 1, 4);
        assert_eq!(count(&column), 32);
        let chosen = laid_out(&column, Rows::Chosen, 1 << 16);
        assert_eq!(count(&chosen), 4);
        assert_eq!(chosen.shared[0].extents[1], Poly::constant(36));
        let row = kernel(4, 32, 8, 4);
        assert_eq!(laid_out(&row, Rows::Chosen, 1 << 16), row);
    }

    #[test]
    fn rows_that_may_not_grow_are_swizzled() {
        let column = kernel(32, 32, 1, 4);
        let chosen = laid_out(&column, Rows::Chosen, 32 * 32 * 4);
        assert_eq!(chosen.shared, column.shared);
        assert_eq!(count(&chosen), 4);
        assert_eq!(chosen, laid_out(&column, Rows::Rotate, 1 << 16));
        // Two rows in a line of the banks: the swizzle changes with every second row.
        let narrow = kernel(32, 16, 1, 4);
        assert_eq!(count(&narrow), 16);
        assert_eq!(count(&laid_out(&narrow, Rows::Rotate, 1 << 16)), 4);
    }

    #[test]
    fn a_swizzled_row_keeps_all_its_elements() {
        for (rows, length) in [(32, 32), (32, 16), (8, 64), (5, 12)] {
            let swizzled = laid_out(&kernel(rows, length, 1, 1), Rows::Rotate, 1 << 16);
            let window = RowsOf::find(&swizzled, SharedId::from(0), &threads(1 << 16)).unwrap();
            for row in 0..rows {
                let mut seen: Vec<i128> = (0..length)
                    .map(|column| {
                        let index = vec![Form::from(row), Form::from(column)];
                        let index = window.index(Memory::Shared(SharedId::from(0)), index);
                        index.unwrap()[1].as_constant().unwrap()
                    })
                    .collect();
                seen.sort_unstable();
                assert_eq!(seen, (0..length).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn what_a_mapping_says_is_done() {
        let column = kernel(32, 32, 1, 4);
        for rows in [Rows::Plain, Rows::Pad(3)] {
            assert_eq!(laid_out(&column, rows, 1 << 16), column);
        }
    }
}
