//! A nest: loops, versions and ticks.

use systola_ir::form::{Cond, Form};

use crate::facts::Range;

/// What a block does, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Nest {
    Sequence(Vec<Nest>),
    /// Coordinate `k` takes the values of the range, `copies` of them in each iteration. The last
    /// iteration begins `copies` values before the end of the range.
    For {
        k: usize,
        range: Range,
        copies: i128,
        /// Does no iteration touch in memory what another one writes?
        independent: bool,
        body: Box<Nest>,
    },
    /// Coordinate `k` takes one value, if a condition holds.
    Once {
        k: usize,
        value: Form,
        when: Cond,
        body: Box<Nest>,
    },
    /// The same work twice: where the condition is known to hold, and where it does not.
    Versions {
        cond: Cond,
        inside: Box<Nest>,
        edge: Box<Nest>,
    },
    /// Prefetches the windows of the first iterations of a loop over coordinate `k`, inside `depth`
    /// loops.
    Prime {
        depth: usize,
        k: usize,
    },
    /// Fills the windows of inputs that belong inside `depth` loops.
    Fill {
        depth: usize,
    },
    /// Waits for what other blocks make for this iteration.
    Await,
    /// Signals the blocks that wait for this iteration.
    Signal,
    /// The warps of the block wait for each other.
    Barrier,
    /// All PEs, in one tick.
    Tick,
}

/// The launches of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum Which {
    All,
    /// Those that satisfy a condition over the launch coordinates of the slot.
    Inner(Cond),
    /// The first and the last launches, which have tests that the others do not need.
    Ends,
}

/// Nests one after another.
pub(super) fn sequence(mut parts: Vec<Nest>) -> Nest {
    match parts.len() {
        1 => parts.remove(0),
        _ => Nest::Sequence(parts),
    }
}
