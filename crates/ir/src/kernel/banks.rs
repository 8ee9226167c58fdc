//! The banks of shared memory: how many wavefronts an access of a warp takes.

/// The number of banks of shared memory, of [`BANK_BYTES`] each.
pub const BANKS: u64 = 32;
pub const BANK_BYTES: u64 = 4;
/// The largest number of bytes that a lane accesses at once; wider accesses are split.
const LANE_BYTES: u64 = 16;

/// The cost of one access of a warp to shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedCost {
    pub wavefronts: u64,
    /// The wavefronts caused by bank conflicts.
    pub conflicts: u64,
}

/// The cost of one access of a warp: `lanes` has each active lane with its offset in bytes, in the
/// order of the lanes, and each accesses `bytes` bytes.
///
/// The lanes are served in groups, so that a group gets no more words than there are banks. Within
/// a group, different words of the same bank need a wavefront each. Where pairs of lanes access the
/// same words, a group has twice as many lanes.
pub fn shared_cost(
    lanes: impl Iterator<Item = (usize, u64)> + Clone,
    bytes: u64,
    seen: &mut Vec<u64>,
) -> SharedCost {
    let mut sum = SharedCost::default();
    let mut part = 0;
    let pairs = bytes > BANK_BYTES && is_in_pairs(lanes.clone(), seen);
    while part < bytes {
        let width = (bytes - part).min(LANE_BYTES);
        let words = width.next_power_of_two().max(BANK_BYTES) / BANK_BYTES;
        let groups = if pairs { words.div_ceil(2) } else { words };
        let group_lanes = (BANKS / groups) as usize;
        let mut rest = lanes.clone().peekable();
        while let Some((first, _)) = rest.peek().copied() {
            let end = (first / group_lanes + 1) * group_lanes;
            seen.clear();
            while let Some((_, offset)) = rest.next_if(|(lane, _)| *lane < end) {
                let from = (offset + part) / BANK_BYTES;
                seen.extend(from..=(offset + part + width - 1) / BANK_BYTES);
            }
            seen.sort_unstable();
            seen.dedup();
            let mut words = [0u64; BANKS as usize];
            for word in &*seen {
                words[(word % BANKS) as usize] += 1;
            }
            let most = words.into_iter().max().unwrap_or(0);
            sum.wavefronts += most;
            sum.conflicts += most.saturating_sub(1);
        }
        part += width;
    }
    sum
}

/// Does each active lane n access the same bytes as lane n ^ 1, or each the same as lane n ^ 2?
fn is_in_pairs(lanes: impl Iterator<Item = (usize, u64)> + Clone, seen: &mut Vec<u64>) -> bool {
    const OFF: u64 = u64::MAX;
    seen.clear();
    for (lane, offset) in lanes.clone() {
        seen.resize(lane, OFF);
        seen.push(offset);
    }
    [1, 2].into_iter().any(|distance| {
        lanes.clone().all(|(lane, offset)| {
            let other = seen.get(lane ^ distance).copied().unwrap_or(OFF);
            other == offset || other == OFF
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(stride: u64, bytes: u64) -> (u64, u64) {
        let lanes = (0..32).map(|l| (l, l as u64 * stride));
        let SharedCost {
            wavefronts,
            conflicts,
        } = shared_cost(lanes, bytes, &mut Vec::new());
        (wavefronts, conflicts)
    }

    #[test]
    fn banks_conflict_as_on_the_hardware() {
        assert_eq!(shared(4, 4), (1, 0));
        assert_eq!(shared(0, 4), (1, 0), "a broadcast");
        assert_eq!(shared(8, 4), (2, 1));
        assert_eq!(shared(128, 4), (32, 31));
        assert_eq!(shared(132, 4), (1, 0), "padded");
        assert_eq!(shared(1, 1), (1, 0), "bytes of one word");
        assert_eq!(shared(8, 8), (2, 0), "two groups");
        assert_eq!(shared(16, 16), (4, 0), "four groups");
        assert_eq!(shared(32, 16), (8, 4));
        assert_eq!(shared(0, 8), (1, 0), "a broadcast, in one group");
        assert_eq!(shared(0, 16), (2, 0), "in two groups");
        assert_eq!(
            shared(32, 32),
            (16, 8),
            "two accesses of 16 bytes, each two-way"
        );
    }

    /// The lanes of a warp as a matrix: each accesses 16 bytes of its row.
    #[test]
    fn lanes_in_pairs_take_half_the_wavefronts() {
        let of = |offset: fn(u64) -> u64| {
            let lanes = (0..32).map(|l| (l, 16 * offset(l as u64)));
            shared_cost(lanes, 16, &mut Vec::new()).wavefronts
        };
        assert_eq!(of(|l| l / 16), 2, "two rows");
        assert_eq!(of(|l| l / 2), 2, "pairs next to each other");
        assert_eq!(of(|l| l % 2 + 2 * (l / 4)), 2, "pairs two apart");
        assert_eq!(of(|l| l % 16), 4, "pairs 16 apart");
    }
}
