//! Packs several blocks with few PEs into one warp.
//!
//! If the lane coordinate of a block takes few values, or there is none, most lanes would idle.
//! Then a warp runs several blocks, consecutive along the last block coordinate: lane l is PE l mod
//! P of block l div P, with P rounded up to a power of two. Values move between lanes as before,
//! since no point reads outside its array. Blocks beyond the grid have no points, so they store
//! nothing.
//!
//! Legal if blocks keep nothing in shared memory and the PEs are known, so that bounds of loops do
//! not depend on the block. Done if it fills lanes that would idle, unless most of the work is to
//! fetch elements that would then be far apart.

use systola_ir::DimId;
use systola_ir::array::{Array, Piece};
use systola_ir::form::{Form, Overflow, Poly};
use systola_ir::mapping::Store;
use systola_ir::system::Expr;
use systola_ir::system::visit::walk;

use crate::facts::Range;
use crate::storage::slots::Slots;

/// How blocks share the lanes of a warp.
#[derive(Clone, Debug)]
pub struct Packing {
    /// The block coordinate along which blocks are packed.
    pub block: usize,
    /// Lanes of one block.
    pub pes: i128,
    /// Blocks of one warp.
    pub blocks: i128,
    lo: Form,
    hi: Form,
}

impl Packing {
    /// The packing of lanes that only `vector` fills, if anything does.
    pub fn of(
        array: &Array,
        slots: &Slots,
        blocks: &[usize],
        vector: Option<usize>,
        lanes: u32,
    ) -> Option<Packing> {
        let block = *blocks.last()?;
        let used = match vector {
            None => 1,
            Some(p) => {
                let (lo, hi) = slots.ranges[p].constant()?;
                i128::from(u64::try_from(hi - lo).ok()?.checked_next_power_of_two()?)
            }
        };
        let lanes = i128::from(lanes);
        let (lo, hi) = slots.ranges[block].single()?;
        let alone = hi.sub(lo).as_constant() == Some(1);
        let staged = array.transfers.iter().any(|t| t.store == Store::Shared);
        if 2 * used > lanes || lanes % used != 0 || alone || staged {
            return None;
        }
        let work = array
            .pieces
            .iter()
            .map(|piece| Work::of(array, piece, block));
        let work = work.collect::<Result<Vec<_>, _>>().ok()?;
        work.iter().all(Work::pays).then(|| Packing {
            block,
            pes: used,
            blocks: lanes / used,
            lo: lo.clone(),
            hi: hi.clone(),
        })
    }

    /// The warps along the block coordinate.
    pub fn grid(&self) -> Range {
        let warps = self.hi.sub(&self.lo).plus(self.blocks - 1);
        Range::new(0, warps.floor_div(self.blocks))
    }

    /// The block coordinate of the n-th block of a warp.
    pub fn block_at(&self, warp: &Form, n: &Form) -> Result<Form, Overflow> {
        let first = warp.scale(&Poly::constant(self.blocks))?;
        Ok(self.lo.add(&first).add(n))
    }
}

/// The approximate work of a slot.
struct Work {
    operations: usize,
    /// Elements of inputs and outputs that neighbouring blocks neither share nor access side by
    /// side.
    scattered: usize,
}

impl Work {
    fn of(array: &Array, piece: &Piece, block: usize) -> Result<Work, Overflow> {
        let mut work = Work {
            operations: 0,
            scattered: 0,
        };
        let mut addresses: Vec<&[Form]> = Vec::new();
        for cell in array.body.iter().map(|c| &array.cells[c.index()]) {
            walk(&cell.body, &mut |e| match e {
                Expr::Input { index, .. } => addresses.push(index),
                Expr::Binary(..) | Expr::Unary(..) | Expr::Call(..) | Expr::Select { .. } => {
                    work.operations += 1;
                }
                Expr::Lit(..)
                | Expr::Const(_)
                | Expr::Iter(_)
                | Expr::Param(_)
                | Expr::Local(_)
                | Expr::Var { .. }
                | Expr::Lookup { .. }
                | Expr::Port(_)
                | Expr::Cast(..)
                | Expr::Guard { .. }
                | Expr::Tuple(_)
                | Expr::Field(..)
                | Expr::Let { .. }
                | Expr::Reduce { .. }
                | Expr::Scan { .. } => {}
            });
        }
        let systola_ir::array::Reverse::Forms(point) = &piece.reverse else {
            return Ok(work);
        };
        for index in addresses {
            let last = index.len().saturating_sub(1);
            for (axis, form) in index.iter().enumerate() {
                let form =
                    form.substitute(&|d| point.get(d.index()).map(|(f, n)| f.floor_div(*n)))?;
                let block = DimId::from(block);
                let step = form.coefficient(block).as_constant();
                if form.has_digit_of(block)
                    || !(step == Some(0) || (axis == last && step == Some(1)))
                {
                    work.scattered += 1;
                    break;
                }
            }
        }
        Ok(work)
    }

    fn pays(&self) -> bool {
        self.operations > self.scattered
    }
}
