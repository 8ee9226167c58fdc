//! How many blocks the registers of their threads leave room for.

/// Registers of a multiprocessor for a thread of each of its parts, and of a thread at most. A warp stays in its part.
const REGISTERS: u32 = (64 << 10) / (PARTS * 32);
const PARTS: u32 = 4;
const MOST_REGISTERS: u32 = 256;
/// Registers of a thread are given out by so many.
const TOGETHER: u32 = 8;
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
///
/// Behind it, for a compiler that runs out of registers all the same, the next smaller numbers that leave more to a
/// thread, down to half of the first.
pub fn resident_blocks(registers: u32, threads: u32) -> Vec<u32> {
    let most = most_blocks(registers, threads);
    let mut found = vec![most];
    let mut given = given_registers(most, threads);
    for blocks in (most.div_ceil(2)..most).rev() {
        let more = given_registers(blocks, threads);
        if more > given {
            found.push(blocks);
            given = more;
        }
    }
    found
}

fn most_blocks(registers: u32, threads: u32) -> u32 {
    let each = (registers + SPARE_REGISTERS).clamp(LEAST_REGISTERS, MOST_REGISTERS);
    let holds = |warps: u32| PARTS * warps * 32 / threads;
    let mut blocks = holds(REGISTERS / each);
    let more = warps_of_part(blocks + 1, threads);
    if blocks <= FEW_BLOCKS && REGISTERS / more >= registers + FEWER_SPARE {
        blocks = holds(more);
    }
    blocks.clamp(1, (RESIDENT_THREADS / threads).min(RESIDENT_BLOCKS))
}

fn warps_of_part(blocks: u32, threads: u32) -> u32 {
    (blocks * threads).div_ceil(PARTS * 32)
}

/// Registers of a thread where there are so many blocks.
fn given_registers(blocks: u32, threads: u32) -> u32 {
    let each = REGISTERS / warps_of_part(blocks, threads);
    (each - each % TOGETHER).min(MOST_REGISTERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_share_the_registers() {
        let most = |registers, threads| resident_blocks(registers, threads)[0];
        // 24 and 40 to spare are 64, and 128 threads of them fit eight times; one more block leaves 56.
        assert_eq!(most(24, 128), 9);
        assert_eq!(most(64, 128), 5);
        assert_eq!(most(104, 256), 2);
        assert_eq!(most(250, 1024), 1);
        assert_eq!(most(1, 32), 32);
        // 14 single warps would fit, but four in two of the parts of a multiprocessor leave 128 to each of them.
        assert_eq!(most(104, 32), 12);
    }

    #[test]
    fn fewer_blocks_leave_more_to_each() {
        assert_eq!(resident_blocks(24, 128), [9, 8, 7, 6, 5]);
        // Single warps come and go by four, one for each part.
        assert_eq!(resident_blocks(1, 32), [32, 28, 24, 20, 16]);
        assert_eq!(resident_blocks(250, 1024), [1]);
    }
}
