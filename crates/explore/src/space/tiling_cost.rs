//! A rough cost of a tiling, from its numbers alone: thousands are ordered by it, and the first of
//! them are lowered to kernels for the model.

use systola_ir::target::Machine;

use super::axes::{Axes, Read, Role};
use super::tiles::{Rest, Staging, Tiling, Unroll};

mod threads;
mod vectors;

pub use threads::SMS;

/// Smaller is better; comparable between tilings of one system on one machine.
pub fn cost(axes: &Axes, machine: &Machine, tiling: &Tiling) -> f64 {
    let shape = Shape::of(axes, tiling);
    let lanes = f64::from(machine.lanes(axes.bits));
    let busy = match machine.threads {
        None => vectors::cost(axes, machine, tiling, &shape),
        Some(threads) => threads::cost(axes, threads, lanes, tiling, &shape),
    };
    let idle_lanes = lanes / tiling.lanes() as f64;
    busy / shape.sums * shape.waste * idle_lanes
}

/// Properties of a tiling that both kinds of machines need.
struct Shape {
    /// Values of a lane at a time.
    sums: f64,
    /// Iterators of the sum, outermost first.
    reduced: Vec<usize>,
    /// Terms of the sum.
    taps: f64,
    /// Computed points per wanted point: points beyond an edge are wasted.
    waste: f64,
    blocks: f64,
}

impl Shape {
    fn of(axes: &Axes, tiling: &Tiling) -> Shape {
        let is_reduced = |a: &usize| axes.list[*a].role == Role::Reduced;
        let reduced: Vec<usize> = tiling.order.iter().copied().filter(is_reduced).collect();
        let (mut waste, mut blocks) = (1.0, 1.0);
        for split in &tiling.splits {
            let extent = axes.extent(split.axis) as f64;
            let tile = (split.tile() * split.warps) as f64;
            let tiles = (extent / tile).ceil();
            waste *= tiles * tile / extent;
            if split.rest == Rest::Block {
                blocks *= tiles;
            }
        }
        Shape {
            sums: tiling.registers() as f64,
            taps: reduced.iter().map(|a| axes.extent(*a) as f64).product(),
            reduced,
            waste,
            blocks,
        }
    }
}

/// Is an iterator of a sum unrolled?
fn is_unrolled(axes: &Axes, tiling: &Tiling, shape: &Shape, axis: usize) -> bool {
    let (first, last) = (shape.reduced.first(), shape.reduced.last());
    match tiling.unroll {
        Unroll::All => true,
        Unroll::Outermost if first == Some(&axis) => true,
        Unroll::Innermost | Unroll::Outermost | Unroll::Auto => {
            last == Some(&axis) && axes.list[axis].constant
        }
    }
}

/// Is a loaded element still in a register in the next step of an iterator?
fn is_in_register(axes: &Axes, tiling: &Tiling, shape: &Shape, axis: usize) -> bool {
    let innermost = shape.reduced.last() == Some(&axis);
    let written_out = match tiling.unroll {
        Unroll::All => true,
        Unroll::Innermost | Unroll::Outermost | Unroll::Auto => {
            innermost && axes.list[axis].constant
        }
    };
    written_out || tiling.skew.iter().any(|(p, _)| *p == axis)
}

/// Elements of an input that a lane loads for one tile.
fn elements(axes: &Axes, tiling: &Tiling, shape: &Shape, read: &Read) -> f64 {
    let kept = |axis: usize| is_in_register(axes, tiling, shape, axis);
    let mut n = 1.0;
    for row in &read.matrix {
        let mut near = 1.0;
        let mut far = 1.0;
        for split in tiling.splits.iter().filter(|s| row[s.axis] != 0) {
            near += row[split.axis].abs() as f64 * (split.low - 1) as f64;
            far *= split.high as f64;
        }
        for axis in shape.reduced.iter().filter(|a| row[**a] != 0 && kept(**a)) {
            near += row[*axis].abs() as f64 * (axes.extent(*axis) - 1) as f64;
        }
        n *= near * far;
    }
    for axis in &shape.reduced {
        if read.uses(*axis) && !kept(*axis) {
            n *= axes.extent(*axis) as f64;
        }
    }
    n
}

/// Is it staged in shared memory?
fn is_staged(tiling: &Tiling, read: &Read) -> bool {
    match &tiling.staging {
        Some(Staging::Panel { input, .. }) => *input == read.name,
        Some(Staging::Windows { inputs, .. }) => inputs.iter().any(|(i, _)| *i == read.name),
        None => false,
    }
}

/// Forwarding costs a little more than reading from L1.
fn forwarding_factor(tiling: &Tiling, read: &Read) -> f64 {
    match &tiling.forward {
        Some((input, _)) if *input == read.name => 1.2,
        Some(_) | None => 1.0,
    }
}

/// Are the elements of neighbouring lanes neither neighbours nor the same?
fn is_scattered(matrix: &[Vec<i128>], vector: usize) -> bool {
    let Some((last, rows)) = matrix.split_last() else {
        return false;
    };
    let used = matrix.iter().any(|row| row[vector] != 0);
    let next = rows.iter().all(|row| row[vector] == 0) && last[vector].abs() == 1;
    used && !next
}
