//! Lanes are threads of a GPU.
//!
//! The cost is the cycles of a multiprocessor for the tile of a warp: issued instructions,
//! wavefronts of L1, bytes from L2 and DRAM, and the latency of a warp among the resident ones. The
//! longest of them counts in full, the others a little. Among equal tilings the one with the
//! shorter code comes first.

use systola_ir::target::Threads;

use super::{
    Shape, elements, forwarding_factor, is_in_register, is_scattered, is_staged, is_unrolled,
};
use crate::space::axes::{Axes, Read};
use crate::space::tiles::Tiling;

/// Multiprocessors; this and the following numbers are those of an H200.
pub const SMS: f64 = 132.0;
/// Instructions issued by a multiprocessor in a cycle.
const ISSUE: f64 = 4.0;
/// Bytes from its L1 in a cycle.
const L1_BYTES: f64 = 128.0;
/// Bytes from L2 in a cycle, and from DRAM.
const L2_BYTES: f64 = 21.0;
const DRAM_BYTES: f64 = 16.3;
/// Latency of DRAM and of L1 in cycles.
const DRAM_LATENCY: f64 = 700.0;
const L1_LATENCY: f64 = 40.0;
/// Registers of a multiprocessor, in words for each lane, and its maximum number of warps.
const REGISTERS: f64 = 2048.0;
const WARPS: f64 = 64.0;
/// Registers of a thread, and those used for addresses and counters.
const THREAD_REGISTERS: f64 = 240.0;
const ADDRESS_REGISTERS: f64 = 20.0;
/// The cost of an operation under a mask.
const MASKED: f64 = 1.3;
/// The share of its time that a block waits for its last warp, per warp.
const TAIL: f64 = 0.005;
/// Instructions in the instruction cache, and cycles that a warp alone waits for each of the
/// others.
const CACHED_INSTRUCTIONS: f64 = 1792.0;
const FETCH: f64 = 5.0;

/// The cost of the results of a lane.
pub fn cost(axes: &Axes, threads: Threads, lanes: f64, tiling: &Tiling, shape: &Shape) -> f64 {
    let words = f64::from(axes.bits.div_ceil(32));
    let looped = |axis: &&usize| !is_unrolled(axes, tiling, shape, **axis);
    let operations = shape.sums * shape.taps * idle_steps(axes, tiling, shape);
    let iterations: f64 = shape
        .reduced
        .iter()
        .filter(looped)
        .map(|a| axes.extent(*a) as f64)
        .product();

    let mut instructions = operations + 4.0 * iterations;
    let mut near = 0.0;
    let mut live = shape.sums;
    for read in &axes.reads {
        let uniform = tiling.splits.iter().all(|s| !read.uses(s.axis));
        if uniform {
            // In constant memory; an operand where its index is a constant.
            instructions += if iterations > 1.0 { shape.taps } else { 0.0 };
            continue;
        }
        let mut access = Access::of(threads, lanes, tiling, read);
        let last = read.matrix.last();
        let shifts = |axis: &&usize| looped(axis) && last.is_some_and(|row| row[**axis] != 0);
        if shape.reduced.iter().any(|axis| shifts(&axis)) && !is_staged(tiling, read) {
            // Elements shift by one from iteration to iteration: they are loaded one by one.
            access.width = 1.0;
        }
        let n = elements(axes, tiling, shape, read) * forwarding_factor(tiling, read);
        // From the cache, in scattered lines.
        let long = shape.reduced.iter().any(|a| axes.extent(*a) >= 64);
        let lines = if long && !is_staged(tiling, read) {
            4.0
        } else {
            1.0
        };
        instructions += n / access.width * lines;
        near += n * access.conflicts * lines * f64::from(read.bits) / 8.0 * lanes;
        live += row_of(axes, tiling, shape, read);
    }
    for write in &axes.writes {
        let apart = if is_scattered(write, tiling.vector) {
            lanes / 4.0
        } else {
            1.0
        };
        instructions += shape.sums / 2.0 * apart;
        near += shape.sums * words * 4.0 * lanes * apart;
    }
    let compulsory = compulsory(axes, tiling) * lanes;

    let registers = live * words + ADDRESS_REGISTERS;
    let spilled = (registers / THREAD_REGISTERS).max(1.0);
    let warps = tiling.warps() as f64;
    let resident_blocks = (REGISTERS / registers.min(THREAD_REGISTERS) / warps)
        .floor()
        .clamp(1.0, 32.0);
    let resident_warps = (resident_blocks * warps).min(WARPS);
    // Every iteration waits for its loads, the first one for those from DRAM.
    let alone = DRAM_LATENCY + L1_LATENCY * iterations + instructions;

    let terms = [
        instructions / ISSUE,
        near / L1_BYTES,
        traffic(axes, tiling, &shape.reduced) / L2_BYTES,
        compulsory / DRAM_BYTES,
        alone / resident_warps,
    ];
    let longest = terms.iter().fold(0.0, |a: f64, b| a.max(*b));
    let busy = longest + 0.1 * (terms.iter().sum::<f64>() - longest);

    let waves = shape.blocks / (SMS * resident_blocks);
    let tail = if waves > 1.0 {
        1.0 + 0.5 * (waves.ceil() / waves - 1.0)
    } else {
        1.0
    };
    let idle = (SMS * 4.0 / (shape.blocks * warps)).max(1.0);
    let text = instructions / iterations.max(1.0);
    let code = 1.0
        + FETCH * (1.0 - CACHED_INSTRUCTIONS / text).max(0.0) / resident_warps
        + text / 100_000.0;
    // A block releases its resources when the last of its warps is done.
    let together = 1.0 + TAIL * warps;
    busy * spilled * spilled * tail * idle * code * together
}

/// Steps of a skewed loop per step in which a row has work: the others only test a condition.
fn idle_steps(axes: &Axes, tiling: &Tiling, shape: &Shape) -> f64 {
    let mut factor = 1.0;
    for (axis, along) in &tiling.skew {
        if !is_unrolled(axes, tiling, shape, *axis) {
            let steps = axes.extent(*axis) + tiling.split(*along).map_or(1, |s| s.low) - 1;
            factor *= MASKED * steps as f64 / axes.extent(*axis) as f64;
        }
    }
    factor
}

/// Elements of an input in registers at a time: a row of them, and as many rows as one step uses.
fn row_of(axes: &Axes, tiling: &Tiling, shape: &Shape, read: &Read) -> f64 {
    let Some(row) = read.matrix.last() else {
        return 1.0;
    };
    let mut n = 1.0;
    for split in tiling.splits.iter().filter(|s| row[s.axis] != 0) {
        n += row[split.axis].abs() as f64 * (split.registers() - 1) as f64;
    }
    for axis in shape.reduced.iter().filter(|a| row[**a] != 0) {
        if is_in_register(axes, tiling, shape, *axis) && axes.extent(*axis) < 64 {
            n += row[*axis].abs() as f64 * (axes.extent(*axis) - 1) as f64;
        }
    }
    let rows = &read.matrix[..read.matrix.len() - 1];
    for split in tiling
        .splits
        .iter()
        .filter(|s| rows.iter().any(|row| row[s.axis] != 0))
    {
        if tiling.skew.iter().all(|(_, along)| *along != split.axis) {
            n *= split.registers() as f64;
        }
    }
    n
}

/// How a warp reads an input.
struct Access {
    /// Elements of one load.
    width: f64,
    /// Bank-conflict wavefronts of a load, relative to a conflict-free one.
    conflicts: f64,
}

impl Access {
    fn of(threads: Threads, lanes: f64, tiling: &Tiling, read: &Read) -> Access {
        if is_scattered(&read.matrix, tiling.vector) {
            return Access {
                width: 1.0,
                conflicts: lanes / 4.0,
            };
        }
        let along = |axis: usize| read.matrix.last().is_some_and(|row| row[axis] == 1);
        let low = tiling
            .splits
            .iter()
            .filter(|s| along(s.axis))
            .map(|s| s.low)
            .max();
        let low = low.unwrap_or(1).max(1);
        let most = i128::from(threads.wide_bytes * 8 / read.bits.max(8)).max(1);
        let mut width = 1;
        while width * 2 <= most && low % (width * 2) == 0 {
            width *= 2;
        }
        // Neighbouring lanes are this many accesses apart; as many lanes as fill all banks go
        // together.
        let stride = low / width;
        let banks = (i128::from(lanes as i32) * 32 / (width * i128::from(read.bits))).max(1);
        let conflicts = if low > 1 { gcd(stride, banks) } else { 1 };
        Access {
            width: width as f64,
            conflicts: conflicts as f64,
        }
    }
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Bytes that a warp's share of a block reads from and writes to L2: each element of the block
/// once.
fn traffic(axes: &Axes, tiling: &Tiling, reduced: &[usize]) -> f64 {
    let own = |axis: usize| tiling.split(axis).map_or(1, |s| s.tile() * s.warps);
    let mut bytes = 0.0;
    for read in &axes.reads {
        let mut n = 1.0;
        for row in &read.matrix {
            let mut extent = 1.0;
            for (axis, c) in row.iter().enumerate().filter(|(_, c)| **c != 0) {
                let values = if reduced.contains(&axis) {
                    axes.extent(axis)
                } else {
                    own(axis)
                };
                extent += c.abs() as f64 * (values - 1) as f64;
            }
            n *= extent;
        }
        bytes += n * f64::from(read.bits) / 8.0;
    }
    let results: i128 = tiling.splits.iter().map(|s| s.tile() * s.warps).product();
    bytes += results as f64 * f64::from(axes.bits) / 8.0;
    bytes / tiling.warps() as f64
}

/// Compulsory DRAM bytes for the results of a lane: inputs that results do not share, and the
/// results.
fn compulsory(axes: &Axes, tiling: &Tiling) -> f64 {
    let sums = tiling.registers() as f64;
    let mut bytes = sums * f64::from(axes.bits) / 8.0;
    for read in &axes.reads {
        let own = tiling
            .splits
            .iter()
            .all(|s| s.tile() == 1 || read.uses(s.axis));
        if own {
            bytes += sums * f64::from(read.bits) / 8.0;
        }
    }
    bytes
}
