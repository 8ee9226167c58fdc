//! Chooses how many blocks a multiprocessor should hold at once (achieved occupancy).
//!
//! It should hold as many as fit with all live values in registers, and with some registers to
//! spare for addresses and loads in flight. Without such a bound the compiler takes all registers
//! for loads, and few blocks remain to hide each other's latencies.

use systola_ir::kernel::pressure::pressure;
use systola_ir::kernel::visit::any;
use systola_ir::kernel::{Program, Stmt};
use systola_ir::target::{Machine, Multiprocessor};

/// Threads of a warp of a GPU, whatever its lanes.
const WARP: u32 = 32;
/// Spare registers of a thread beyond its live values, and the least number of registers in all.
/// Tuned with `bench cuda` and `bench stencils` on an H200 (bench/results/2026-11-16-h200.md).
const SPARE_REGISTERS: u32 = 40;
const LEAST_REGISTERS: u32 = 64;
/// Below this number of resident blocks, or if blocks wait for what others publish, one more block
/// hides more latency than the difference of the two numbers of spare registers is worth. A prefix
/// sum of 2²⁸ elements takes 0.76 ms with 20 blocks, 0.81 with 16
/// (bench/results/2026-11-19-h200-scans.md).
const FEW_BLOCKS: u32 = 8;
const FEWER_SPARE: u32 = 24;

/// Sets the hint on every kernel, if the machine describes a multiprocessor.
pub fn set_residency(program: &mut Program, machine: &Machine) {
    let Some(of) = machine.threads.and_then(|threads| threads.multiprocessor) else {
        return;
    };
    for kernel in &mut program.kernels {
        let threads = kernel.warps * WARP;
        let looks_back = any(&kernel.body, &|stmt| matches!(stmt, Stmt::LookBack(_)));
        let spare = if looks_back {
            FEWER_SPARE
        } else {
            SPARE_REGISTERS
        };
        kernel.hints.resident_blocks = resident_blocks(&of, pressure(kernel), spare, threads);
    }
}

/// The number of blocks, followed by the smaller numbers that give a thread more registers, down to
/// half of the first. The compiler tries these if it runs out of registers.
fn resident_blocks(of: &Multiprocessor, registers: u32, spare: u32, threads: u32) -> Vec<u32> {
    let most = most_blocks(of, registers, spare, threads);
    let mut found = vec![most];
    let mut given = given_registers(of, most, threads);
    for blocks in (most.div_ceil(2)..most).rev() {
        let more = given_registers(of, blocks, threads);
        if more > given {
            found.push(blocks);
            given = more;
        }
    }
    found
}

fn most_blocks(of: &Multiprocessor, registers: u32, spare: u32, threads: u32) -> u32 {
    let each = (registers + spare).clamp(LEAST_REGISTERS, of.thread_registers);
    let holds = |warps: u32| of.parts * warps * WARP / threads;
    let mut blocks = holds(lane_registers(of) / each);
    let more = warps_of_part(of, blocks + 1, threads);
    if blocks <= FEW_BLOCKS && lane_registers(of) / more >= registers + FEWER_SPARE {
        blocks = holds(more);
    }
    blocks.clamp(1, (of.threads / threads).min(of.blocks))
}

/// The registers of one part of a multiprocessor that its warps share, for each lane.
fn lane_registers(of: &Multiprocessor) -> u32 {
    of.registers / (of.parts * WARP)
}

fn warps_of_part(of: &Multiprocessor, blocks: u32, threads: u32) -> u32 {
    (blocks * threads).div_ceil(of.parts * WARP)
}

/// Registers of a thread if there are this many blocks.
fn given_registers(of: &Multiprocessor, blocks: u32, threads: u32) -> u32 {
    let each = lane_registers(of) / warps_of_part(of, blocks, threads);
    (each - each % of.register_unit).min(of.thread_registers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resident(registers: u32, threads: u32) -> Vec<u32> {
        let of = Machine::cuda().threads.and_then(|t| t.multiprocessor);
        resident_blocks(&of.unwrap(), registers, SPARE_REGISTERS, threads)
    }

    #[test]
    fn blocks_share_the_registers() {
        let most = |registers, threads| resident(registers, threads)[0];
        // 24 live and 40 spare registers are 64, and 128 threads with 64 registers each fit eight
        // times; one more block leaves 56.
        assert_eq!(most(24, 128), 9);
        assert_eq!(most(64, 128), 5);
        assert_eq!(most(104, 256), 2);
        assert_eq!(most(250, 1024), 1);
        assert_eq!(most(1, 32), 32);
        // 14 single warps would fit by registers alone, but four warps in two of the parts of a
        // multiprocessor leave 128 to each of them.
        assert_eq!(most(104, 32), 12);
    }

    #[test]
    fn fewer_blocks_leave_more_to_each() {
        assert_eq!(resident(24, 128), [9, 8, 7, 6, 5]);
        // The number of single warps changes by four, one for each part.
        assert_eq!(resident(1, 32), [32, 28, 24, 20, 16]);
        assert_eq!(resident(250, 1024), [1]);
    }
}
