//! What a kernel counts as: the events of its statements and accesses. The kernel interpreter sums
//! them over a run; the model sums them over the loops and blocks that it samples.
//!
//! One instruction is one statement executed by one warp, whatever the number of its lanes.

use std::ops::{AddAssign, Index, IndexMut};

use super::banks::{SharedCost, shared_cost};
use super::visit::walk;
use super::{Access, Kernel, Memory, Op, Shape, Stmt};
use crate::id::ValueId;
use crate::scalar::BinOp;

/// Bytes of a sector, the unit of transfers of global memory.
pub const SECTOR: u64 = 32;

/// An active lane, and its offset in bytes from the start of the array.
pub type Touch = (usize, u64);

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Event {
            $($(#[$doc])* $name,)*
        }

        impl Event {
            pub const ALL: &[Event] = &[$(Event::$name,)*];
        }
    };
}

events! {
    Launches,
    Blocks,
    /// Operators and casts, and selections by a value.
    Arithmetic,
    /// Multiplications of floats whose result one addition or subtraction uses, and which may be
    /// fused with it.
    Fusible,
    /// Positions taken as values, choices by position, and tests for faults.
    Index,
    Shuffles,
    LaneShifts,
    Loads,
    Stores,
    Lookups,
    Copies,
    Barriers,
    /// Signals, waits for flags, dynamic block ids.
    Flags,
    /// 32-byte sectors of global memory that warps touch, summed over accesses.
    GlobalSectors,
    /// Bytes that the lanes access in global memory.
    GlobalBytes,
    /// Wavefronts of shared memory.
    SharedWavefronts,
    /// The wavefronts caused by bank conflicts.
    BankConflicts,
}

/// How often each event happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts([u64; Event::ALL.len()]);

impl Index<Event> for Counts {
    type Output = u64;

    fn index(&self, event: Event) -> &u64 {
        &self.0[event as usize]
    }
}

impl IndexMut<Event> for Counts {
    fn index_mut(&mut self, event: Event) -> &mut u64 {
        &mut self.0[event as usize]
    }
}

impl AddAssign<&Counts> for Counts {
    fn add_assign(&mut self, other: &Counts) {
        for (sum, count) in self.0.iter_mut().zip(&other.0) {
            *sum += count;
        }
    }
}

/// For each value: is it a product of floats that is used once, by an addition or subtraction?
pub fn fusible(kernel: &Kernel) -> Vec<bool> {
    let n = kernel.values.len();
    let (mut uses, mut added, mut product) = (vec![0; n], vec![false; n], vec![false; n]);
    walk(&kernel.body, &mut |stmt| {
        for value in stmt.uses() {
            uses[value.index()] += 1;
        }
        match stmt {
            Stmt::Let(_, Op::Binary(BinOp::Add | BinOp::Sub, a, b)) => {
                added[a.index()] = true;
                added[b.index()] = true;
            }
            Stmt::Let(value, Op::Binary(BinOp::Mul, ..)) => {
                product[value.index()] = kernel.values[value.index()].ty.is_float();
            }
            _ => {}
        }
    });
    (0..n)
        .map(|v| product[v] && added[v] && uses[v] == 1)
        .collect()
}

/// The events of one execution of a statement, without those of the memory it touches. Literals and
/// reads of registers count as operands. `fusible` has a flag for each value, as [`fusible`]
/// returns them.
pub fn events(stmt: &Stmt, fusible: &[bool]) -> &'static [Event] {
    match stmt {
        Stmt::Let(value, op) => match op {
            Op::Lit(_) | Op::Get(_) => &[],
            Op::Index(_) | Op::Choose { .. } => &[Event::Index],
            Op::Binary(..) if fusible[value.index()] => &[Event::Arithmetic, Event::Fusible],
            Op::Unary(..) | Op::Binary(..) | Op::Cast(_) | Op::Select { .. } => {
                &[Event::Arithmetic]
            }
            Op::Load { .. } => &[Event::Loads],
            Op::Lookup { .. } => &[Event::Lookups],
            Op::Shuffle { .. } => &[Event::Shuffles],
            Op::LaneShift { .. } => &[Event::LaneShifts],
        },
        Stmt::LoadWide { .. } => &[Event::Loads],
        Stmt::Store { .. } | Stmt::StoreWide { .. } => &[Event::Stores],
        Stmt::Copy { .. } => &[Event::Copies],
        Stmt::Fault { .. } => &[Event::Index],
        Stmt::Barrier => &[Event::Barriers],
        Stmt::Signal { .. }
        | Stmt::Await { .. }
        | Stmt::DynamicBlock { .. }
        | Stmt::LookBack(_) => &[Event::Flags],
        Stmt::Set(..)
        | Stmt::Prefetch { .. }
        | Stmt::CommitCopies
        | Stmt::WaitCopies { .. }
        | Stmt::SyncWarp
        | Stmt::For { .. }
        | Stmt::If { .. }
        | Stmt::Comment(_) => &[],
    }
}

impl Kernel {
    /// The lanes that load these values: all of them, or one on behalf of all.
    pub fn loading_lanes(&self, to: &[ValueId]) -> usize {
        self.lanes_if(self.values_vary(to))
    }

    /// The lanes that store these values.
    pub fn storing_lanes(&self, to: &Access, values: &[ValueId]) -> usize {
        self.lanes_if(self.access_varies(to) || self.values_vary(values))
    }

    /// The lanes that copy.
    pub fn copying_lanes(&self, to: &Access, from: &Access) -> usize {
        self.lanes_if(self.access_varies(to) || self.access_varies(from))
    }

    fn lanes_if(&self, varies: bool) -> usize {
        if varies { self.lanes as usize } else { 1 }
    }

    fn values_vary(&self, values: &[ValueId]) -> bool {
        let varies = |v: &ValueId| self.values[v.index()].shape == Shape::Varying;
        values.iter().any(varies)
    }

    fn access_varies(&self, access: &Access) -> bool {
        access.forms().iter().any(|form| !self.is_uniform(form))
    }
}

/// Counts the memory that one access of a warp touches: `bytes` from each offset on.
pub fn touched(
    memory: Memory,
    lanes: impl Iterator<Item = Touch> + Clone,
    bytes: u64,
    seen: &mut Vec<u64>,
) -> [(Event, u64); 2] {
    match memory {
        Memory::Global(_) => {
            seen.clear();
            let mut sum = 0;
            for (_, offset) in lanes {
                sum += bytes;
                seen.extend(offset / SECTOR..=(offset + bytes.max(1) - 1) / SECTOR);
            }
            seen.sort_unstable();
            seen.dedup();
            let sectors = seen.len() as u64;
            [(Event::GlobalBytes, sum), (Event::GlobalSectors, sectors)]
        }
        Memory::Shared(_) => {
            let SharedCost {
                wavefronts,
                conflicts,
            } = shared_cost(lanes, bytes, seen);
            [
                (Event::SharedWavefronts, wavefronts),
                (Event::BankConflicts, conflicts),
            ]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::BufferId;

    #[test]
    fn sectors_are_counted_once() {
        let check = |stride: u64, bytes: u64, expect: (u64, u64)| {
            let lanes = (0..32).map(|lane| (lane, lane as u64 * stride));
            let memory = Memory::Global(BufferId::from(0));
            let [(_, sum), (_, sectors)] = touched(memory, lanes, bytes, &mut Vec::new());
            assert_eq!((sectors, sum), expect, "{stride} {bytes}");
        };
        check(4, 4, (4, 128));
        check(0, 4, (1, 128));
        check(32, 4, (32, 128));
        check(16, 16, (16, 512));
    }
}
