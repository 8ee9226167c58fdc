//! Lanes are a vector of a CPU.
//!
//! The cost counts multiply-adds and loads for one tile, and the reasons for idle units: too few
//! independent sums, too many for the registers, too few blocks.

use systola_ir::target::Machine;

use super::{Shape, elements, forwarding_factor, is_scattered, is_staged};
use crate::space::axes::Axes;
use crate::space::tiles::{Tiling, Unroll};

/// Operations that must be in flight for a unit to be busy.
const IN_FLIGHT: f64 = 8.0;

/// The cost of the results of a tile.
pub fn cost(axes: &Axes, machine: &Machine, tiling: &Tiling, shape: &Shape) -> f64 {
    let lanes = f64::from(machine.lanes(axes.bits));
    let apart = |matrix: &[Vec<i128>]| match is_scattered(matrix, tiling.vector) {
        true => lanes,
        false => 1.0,
    };
    let long = shape.reduced.iter().any(|a| axes.extent(*a) >= 256);
    let mut loads = 0.0;
    for read in &axes.reads {
        let n = elements(axes, tiling, shape, read) * forwarding_factor(tiling, read);
        let far = !is_staged(tiling, read) && long && read.uses(tiling.vector);
        loads += n * apart(&read.matrix) * if far { 1.5 } else { 1.0 };
    }
    for write in &axes.writes {
        loads += shape.sums * (apart(write) - 1.0);
    }
    // Two units multiply, two load, and a load that crosses a line counts twice.
    let multiply = shape.sums * shape.taps / 2.0;
    let load = loads / 1.3;
    let busy = multiply.max(load) + 0.15 * multiply.min(load);

    let spilled = ((shape.sums + 2.0) / machine.registers as f64).max(1.0);
    let latency = (IN_FLIGHT / shape.sums).max(1.0);
    let idle = (2.0 / shape.blocks).max(1.0);
    let rolled = match tiling.unroll {
        Unroll::Auto => 1.0,
        Unroll::All => 0.99,
        Unroll::Outermost => 0.995,
        Unroll::Innermost => 1.005,
    };
    busy * spilled * spilled * latency * idle * rolled
}
