//! Undefined values and their origins.

use std::fmt;

use crate::value::Value;

/// The contents of a lane, a register or an element of memory.
pub(super) type Cell = Result<Value, Undefined>;

/// Why a value is undefined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The register was never set.
    Unset,
    /// The element was never written.
    Unwritten,
    /// The predicate of the load does not hold, and it has no `otherwise`.
    Predicate,
    /// The source lane or operand does not exist.
    NoLane,
    /// No block is before this one.
    NoBlock,
    /// The index is outside the axes.
    NoElement,
    /// The operator has no result: an integer was divided by zero or raised to a negative power.
    NoResult,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::Unset => "reads a register that was never set",
            Why::Unwritten => "reads an element that was never written",
            Why::Predicate => "loads nothing where its predicate does not hold",
            Why::NoLane => "takes the value of a lane that there is not",
            Why::NoBlock => "looks back from the first block of a chain",
            Why::NoElement => "looks up an element that there is not",
            Why::NoResult => "divides an integer by zero or raises it to a negative power",
        })
    }
}

/// The statement where an undefined value originated; it is kept through registers and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Undefined {
    pub why: Why,
    /// The kernel and the instruction that first read it; unknown for a value that was never read.
    pub at: Option<(u32, u32)>,
}

impl Undefined {
    pub fn new(why: Why) -> Undefined {
        Undefined { why, at: None }
    }

    /// Records this instruction as the origin, if it is the first to read it.
    pub fn seen_at(self, kernel: usize, pc: usize) -> Undefined {
        Undefined {
            why: self.why,
            at: self.at.or(Some((kernel as u32, pc as u32))),
        }
    }
}

/// Are both identical to the last bit, or both undefined?
pub(super) fn is_same(a: &Cell, b: &Cell) -> bool {
    match (a, b) {
        (Ok(a), Ok(b)) => a.is_identical(b),
        (Err(_), Err(_)) => true,
        (Ok(_), Err(_)) | (Err(_), Ok(_)) => false,
    }
}
