//! How a machine realises the transfers that a mapping asks for.

use systola_ir::Scalar;
use systola_ir::form::Poly;
use systola_ir::mapping::{Engine, Order};
use systola_ir::target::{Copies, Machine, Threads};

use crate::storage::partition::Partition;
use crate::storage::slots::Slots;

/// How a machine realises transfers.
pub struct Staging<'a> {
    threads: Option<Threads>,
    slots: &'a Slots,
    partition: &'a Partition,
}

impl<'a> Staging<'a> {
    pub fn new(machine: &Machine, slots: &'a Slots, partition: &'a Partition) -> Staging<'a> {
        Staging {
            threads: machine.threads,
            slots,
            partition,
        }
    }

    /// The number of stages for transfers inside `depth` loops. The first iterations must be known
    /// before the loop, so its range must have one start.
    pub fn stages(&self, depth: usize, asked: u64) -> i128 {
        let range = depth
            .checked_sub(1)
            .map(|at| &self.slots.ranges[self.partition.steps[at]]);
        let known = range.is_some_and(|range| range.single().is_some());
        if self.threads.is_some() && known {
            i128::from(asked.max(1))
        } else {
            1
        }
    }

    /// The extent of a row in shared memory. Rows start at multiples of a vector access, unless the
    /// mapping fixes their length.
    pub fn row(&self, extent: &Poly, ty: Scalar, pad: i128) -> Poly {
        let Some(threads) = self.threads else {
            // A row is written in whole vectors.
            let lanes = i128::from(self.partition.lanes);
            return extent.add(&Poly::constant(lanes + pad));
        };
        let unit = i128::from(threads.wide_bytes * 8 / ty.bits()).max(1);
        let padded = extent.add(&Poly::constant(pad));
        match padded.as_constant() {
            Some(n) if pad == 0 => Poly::constant((n + unit - 1).div_euclid(unit) * unit),
            Some(_) => padded,
            // Lanes beyond the last element write, too.
            None => padded.add(&Poly::constant(i128::from(self.partition.lanes))),
        }
    }

    /// The order of a window. Column order is for lanes that are threads, since a vector is written
    /// along its row. The extents must be known.
    pub fn order(&self, asked: Order, extents: &[Poly]) -> Order {
        let known = extents.iter().all(|extent| extent.as_constant().is_some());
        if self.threads.is_some() && known {
            asked
        } else {
            Order::Rows
        }
    }

    /// Asynchronous copies move at least four bytes.
    pub fn engine(&self, asked: Engine, ty: Scalar) -> Engine {
        match self.threads.map(|threads| threads.copies) {
            Some(Copies::Asynchronous) if ty.bits() >= 32 => asked,
            Some(Copies::Asynchronous | Copies::Plain) | None => Engine::Plain,
        }
    }
}
