//! How many blocks the registers of their threads leave room for.

/// Registers of a multiprocessor for a thread of each of its parts, and of a thread at most. A warp stays in its part.
const REGISTERS: u32 = (64 << 10) / (PARTS * 32);
const PARTS: u32 = 4;
const MOST_REGISTERS: u32 = 256;
/// Registers of a thread for what is not counted, and the least that it gets in all.
const SPARE_REGISTERS: u32 = 40;
const LEAST_REGISTERS: u32 = 64;
/// Of so many blocks or fewer one more counts, and is worth some of those.
const FEW_BLOCKS: u32 = 8;
const FEWER_SPARE: u32 = 24;
/// Threads and blocks that a multiprocessor holds.
const RESIDENT_THREADS: u32 = 2048;
const RESIDENT_BLOCKS: u32 = 32;

/// Blocks that a multiprocessor should hold at once: as many as have their registers there, with some for addresses
/// and for loads under way. Left alone, the compiler takes all registers for loads, and few blocks remain to hide
/// each other's latencies.
pub fn resident_blocks(registers: u32, threads: u32) -> u32 {
    let each = (registers + SPARE_REGISTERS).clamp(LEAST_REGISTERS, MOST_REGISTERS);
    let holds = |warps: u32| PARTS * warps * 32 / threads;
    let mut blocks = holds(REGISTERS / each);
    let more = ((blocks + 1) * threads).div_ceil(PARTS * 32);
    if blocks <= FEW_BLOCKS && REGISTERS / more >= registers + FEWER_SPARE {
        blocks = holds(more);
    }
    blocks.clamp(1, (RESIDENT_THREADS / threads).min(RESIDENT_BLOCKS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_share_the_registers() {
        // 24 and 40 to spare are 64, and 128 threads of them fit eight times; one more block leaves 56.
        assert_eq!(resident_blocks(24, 128), 9);
        assert_eq!(resident_blocks(64, 128), 5);
        assert_eq!(resident_blocks(104, 256), 2);
        assert_eq!(resident_blocks(250, 1024), 1);
        assert_eq!(resident_blocks(1, 32), 32);
        // 14 single warps would fit, but four in two of the parts of a multiprocessor leave 128 to each of them.
        assert_eq!(resident_blocks(104, 32), 12);
    }
}
