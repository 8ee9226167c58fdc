//! The cost of a run: instructions, memory transactions, bank conflicts.
//!
//! One instruction is one statement executed by one warp, whatever the number of its lanes.

use std::ops::AddAssign;

use systola_ir::kernel::banks::{Passes, passes};

/// Bytes of a sector, the unit of transfers of global memory.
pub const SECTOR: u64 = 32;

/// Sums over the warps of all launches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub launches: u64,
    pub blocks: u64,
    /// Operators and casts, and selections by a value.
    pub arithmetic: u64,
    /// Those that multiply floats for one addition and may be fused with it.
    pub fusible: u64,
    /// Positions taken as values, and choices by position.
    pub index: u64,
    pub shuffles: u64,
    pub slides: u64,
    pub loads: u64,
    pub stores: u64,
    pub lookups: u64,
    pub copies: u64,
    pub barriers: u64,
    /// Signals, waits for flags, dynamic block ids.
    pub flags: u64,
    /// 32-byte sectors of global memory that warps touch, summed over accesses.
    pub global_sectors: u64,
    /// Bytes that the lanes access there.
    pub global_bytes: u64,
    /// Wavefronts of shared memory.
    pub shared_wavefronts: u64,
    /// The wavefronts caused by bank conflicts.
    pub bank_conflicts: u64,
}

impl AddAssign<&Counts> for Counts {
    fn add_assign(&mut self, other: &Counts) {
        let Counts {
            launches,
            blocks,
            arithmetic,
            fusible,
            index,
            shuffles,
            slides,
            loads,
            stores,
            lookups,
            copies,
            barriers,
            flags,
            global_sectors,
            global_bytes,
            shared_wavefronts,
            bank_conflicts,
        } = other;
        self.launches += launches;
        self.blocks += blocks;
        self.arithmetic += arithmetic;
        self.fusible += fusible;
        self.index += index;
        self.shuffles += shuffles;
        self.slides += slides;
        self.loads += loads;
        self.stores += stores;
        self.lookups += lookups;
        self.copies += copies;
        self.barriers += barriers;
        self.flags += flags;
        self.global_sectors += global_sectors;
        self.global_bytes += global_bytes;
        self.shared_wavefronts += shared_wavefronts;
        self.bank_conflicts += bank_conflicts;
    }
}

impl Counts {
    /// One access of a warp to global memory: `bytes` from each offset on.
    pub(super) fn global(
        &mut self,
        offsets: impl Iterator<Item = u64>,
        bytes: u64,
        seen: &mut Vec<u64>,
    ) {
        seen.clear();
        for offset in offsets {
            self.global_bytes += bytes;
            seen.extend(offset / SECTOR..=(offset + bytes.max(1) - 1) / SECTOR);
        }
        seen.sort_unstable();
        seen.dedup();
        self.global_sectors += seen.len() as u64;
    }

    /// One access of a warp to shared memory: each active lane with its offset.
    pub(super) fn shared(
        &mut self,
        lanes: impl Iterator<Item = (usize, u64)> + Clone,
        bytes: u64,
        seen: &mut Vec<u64>,
    ) {
        let Passes {
            wavefronts,
            conflicts,
        } = passes(lanes, bytes, seen);
        self.shared_wavefronts += wavefronts;
        self.bank_conflicts += conflicts;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_are_counted_once() {
        let sectors = |stride: u64, bytes: u64| {
            let mut counts = Counts::default();
            counts.global((0..32).map(|l| l * stride), bytes, &mut Vec::new());
            (counts.global_sectors, counts.global_bytes)
        };
        assert_eq!(sectors(4, 4), (4, 128));
        assert_eq!(sectors(0, 4), (1, 128));
        assert_eq!(sectors(32, 4), (32, 128));
        assert_eq!(sectors(16, 16), (16, 512));
    }
}
