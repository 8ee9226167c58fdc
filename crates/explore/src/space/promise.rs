//! A first guess at what a tiling costs, from its numbers alone: thousands are ordered by it, and the first of them are lowered
//! to kernels, which the model looks at.
//!
//! Counted are the instructions of a lane for one of its results: multiply-adds, loads after what is in registers already is
//! left out, and what leaves a machine idle: too few independent sums, too many for the registers, too few blocks.

use systola_lower::kernel::Machine;

use super::axes::{Axes, Read, Role};
use super::tiles::{Rest, Staging, Tiling, Unroll};

/// Operations that must be under way at once for a unit to be busy.
const IN_FLIGHT: f64 = 8.0;

/// Bytes that a multiprocessor gets from the memory of the device in a cycle.
const FAR_BYTES: f64 = 20.0;

/// Small is good; comparable between tilings of one system on one machine.
pub fn cost(axes: &Axes, machine: &Machine, tiling: &Tiling) -> f64 {
    let lanes = f64::from(machine.lanes(axes.bits));
    let sums = tiling.registers() as f64;
    let reduced: Vec<usize> = tiling
        .order
        .iter()
        .copied()
        .filter(|a| axes.list[*a].role == Role::Reduced)
        .collect();
    let taps: f64 = reduced.iter().map(|a| axes.extent(*a) as f64).product();
    let operations = sums * taps;

    let mut loads = 0.0;
    let mut words = 0.0;
    for read in &axes.reads {
        let (n, wide) = loads_of(axes, machine, tiling, &reduced, read);
        let uniform = tiling.splits.iter().all(|s| !read.uses(s.axis));
        let in_constant = uniform && machine.threads.is_some();
        if !in_constant {
            let apart = apart(machine, lanes, &read.matrix, tiling.vector);
            loads += n / wide * apart;
            words += n * apart;
        }
    }
    for write in &axes.writes {
        let apart = apart(machine, lanes, write, tiling.vector);
        loads += sums * (apart - 1.0);
        words += sums * (apart - 1.0);
    }
    let busy = match machine.threads {
        // Two units multiply, two load, and a load that crosses a line counts twice.
        None => {
            let multiply = operations / 2.0;
            let load = loads / 1.3;
            multiply.max(load) + 0.15 * multiply.min(load)
        }
        // Four warps issue in a cycle, and one access of 128 bytes is served.
        Some(_) => {
            let issue = (operations + loads + 2.0 * sums) / 4.0;
            let near = words * f64::from(axes.bits) / 32.0;
            let far = traffic(axes, tiling, &reduced) / FAR_BYTES;
            issue.max(near).max(far) + 0.1 * (near + far)
        }
    };

    let (pressure, room) = match machine.threads {
        None => (sums + 2.0, machine.registers as f64),
        Some(_) => (1.6 * sums * f64::from(axes.bits.div_ceil(32)) + 24.0, 200.0),
    };
    let spilled = if pressure > room {
        pressure / room
    } else {
        1.0
    };
    let latency = match machine.threads {
        None => (IN_FLIGHT / sums).max(1.0),
        Some(_) => (4.0 / (sums * tiling.warps() as f64)).max(1.0).sqrt(),
    };
    // What lies beyond an edge is computed for nothing.
    let mut waste = 1.0;
    let mut blocks = 1.0;
    for split in &tiling.splits {
        let extent = axes.extent(split.axis) as f64;
        let tile = (split.tile() * split.warps) as f64;
        let tiles = (extent / tile).ceil();
        waste *= tiles * tile / extent;
        if split.rest == Rest::Block {
            blocks *= tiles;
        }
    }
    let wanted = match machine.threads {
        None => 2.0,
        Some(_) => 264.0 / tiling.warps() as f64,
    };
    let idle = (wanted / blocks).max(1.0);
    let rolled = match tiling.unroll {
        Unroll::Auto => 1.0,
        Unroll::All => 0.99,
        Unroll::Outermost => 0.995,
        Unroll::Innermost => 1.005,
    };
    let idle_lanes = lanes / tiling.lanes() as f64;
    busy / sums * spilled * spilled * latency * waste * idle * idle_lanes * rolled
}

/// Bytes that a warp's share of a block brings from afar and takes there: each element of the block once.
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

/// How many accesses one of neighbouring lanes becomes: one if their elements are neighbours or the same.
fn apart(machine: &Machine, lanes: f64, matrix: &[Vec<i128>], vector: usize) -> f64 {
    let Some((last, rows)) = matrix.split_last() else {
        return 1.0;
    };
    let used = matrix.iter().any(|row| row[vector] != 0);
    let next = rows.iter().all(|row| row[vector] == 0) && last[vector].abs() == 1;
    match (used && !next, machine.threads.is_some()) {
        (false, _) => 1.0,
        (true, false) => lanes,
        (true, true) => lanes / 4.0,
    }
}

/// Elements of an input that a lane loads for one tile, and how many of them come in one load.
fn loads_of(
    axes: &Axes,
    machine: &Machine,
    tiling: &Tiling,
    reduced: &[usize],
    read: &Read,
) -> (f64, f64) {
    // Steps in which an element that was loaded is still there.
    let kept = |axis: usize| {
        let innermost = reduced.last() == Some(&axis);
        let written_out = match tiling.unroll {
            Unroll::All => true,
            Unroll::Innermost | Unroll::Outermost | Unroll::Auto => {
                innermost && axes.list[axis].constant
            }
        };
        written_out || tiling.skew.iter().any(|(p, _)| *p == axis)
    };
    let mut n = 1.0;
    for row in &read.matrix {
        let mut near = 1.0;
        let mut far = 1.0;
        for split in tiling.splits.iter().filter(|s| row[s.axis] != 0) {
            near += row[split.axis].abs() as f64 * (split.low - 1) as f64;
            far *= split.high as f64;
        }
        for axis in reduced.iter().filter(|a| row[**a] != 0 && kept(**a)) {
            near += row[*axis].abs() as f64 * (axes.extent(*axis) - 1) as f64;
        }
        n *= near * far;
    }
    for axis in reduced {
        let used = read.uses(*axis);
        if used && !kept(*axis) {
            n *= axes.extent(*axis) as f64;
        }
    }
    let staged = match &tiling.staging {
        Some(Staging::Panel { input, .. }) => *input == read.name,
        Some(Staging::Windows { inputs, .. }) => inputs.iter().any(|(i, _)| *i == read.name),
        None => false,
    };
    let forwarded = tiling
        .forward
        .as_ref()
        .is_some_and(|(input, _)| *input == read.name);
    let mut wide = 1.0;
    if let Some(threads) = machine.threads {
        let neighbours = tiling
            .splits
            .iter()
            .filter(|s| read.matrix.last().is_some_and(|row| row[s.axis] == 1))
            .map(|s| s.low)
            .max();
        let most = f64::from(threads.wide_bytes * 8 / read.bits.max(8));
        wide = (neighbours.unwrap_or(1) as f64).min(most).max(1.0);
    }
    let near_memory = match (staged, machine.threads.is_some()) {
        // From the cache, in lines that are far apart.
        (false, true) if reduced.iter().any(|a| axes.extent(*a) >= 64) => 4.0,
        (false, false)
            if reduced.iter().any(|a| axes.extent(*a) >= 256) && read.uses(tiling.vector) =>
        {
            1.5
        }
        (true | false, true | false) => 1.0,
    };
    let handed_on = if forwarded { 1.2 } else { 1.0 };
    (n * near_memory * handed_on, wide)
}
