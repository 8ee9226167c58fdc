//! A nest: loops, versions and ticks.

use systola_ir::form::{Cond, Form};

use crate::facts::Range;

/// What a block does, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Nest {
    Sequence(Vec<Nest>),
    /// Coordinate `k` takes the values of the range, `copies` of them in an iteration: the last begins that many values before the end
    /// of the range.
    For {
        k: usize,
        range: Range,
        copies: i128,
        body: Box<Nest>,
    },
    /// Coordinate `k` takes one value, if a condition holds.
    Once {
        k: usize,
        value: Form,
        when: Cond,
        body: Box<Nest>,
    },
    /// The same work twice: where the condition is known to hold, and where it is not.
    Versions {
        cond: Cond,
        inside: Box<Nest>,
        edge: Box<Nest>,
    },
    /// The windows of the first iterations of a loop over coordinate `k` are requested, inside of `depth` loops.
    Prime {
        depth: usize,
        k: usize,
    },
    /// The windows of inputs inside of `depth` loops are brought.
    Fill {
        depth: usize,
    },
    /// What other blocks make for this iteration is waited for.
    Await,
    /// Blocks that wait for this iteration are told.
    Signal,
    /// All PEs, at one time.
    Tick,
}

/// The launches of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum Which {
    All,
    /// Those for which a condition over the launch coordinates of the slot holds.
    Inner(Cond),
    /// The first and the last ones, which have tests that the others do without.
    Ends,
}

/// Nests one after another.
pub(super) fn sequence(mut parts: Vec<Nest>) -> Nest {
    match parts.len() {
        1 => parts.remove(0),
        _ => Nest::Sequence(parts),
    }
}
