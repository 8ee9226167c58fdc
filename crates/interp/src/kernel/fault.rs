//! Errors that a run of kernels finds.

use std::fmt;

use systola_ir::Diagnostic;
use systola_ir::kernel::RaisedFault;

use crate::value::OpError;

use super::undefined::Why;

/// Why a program of kernels has no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RunError {
    /// The sizes or inputs do not fit; the codes are those of the other interpreters.
    #[error("{0}")]
    Setup(Box<Diagnostic>),
    /// The program is not well-formed, according to its verifier.
    #[error("the program is not well-formed: {}", .0.join("; "))]
    Invalid(Vec<String>),
    /// A lane violated a rule of kernels.
    #[error("{0}")]
    Fault(Box<Fault>),
    /// An equation has no value at a point.
    #[error("{0}")]
    Raised(Box<RaisedFault>),
    /// No launch writes this element, and the output has no fill.
    #[error("no launch writes {output}{}", show(index))]
    Unwritten { output: String, index: Vec<i64> },
}

impl From<Diagnostic> for RunError {
    fn from(diagnostic: Diagnostic) -> Self {
        RunError::Setup(Box::new(diagnostic))
    }
}

impl RunError {
    /// The violation of a lane, if that ended the run.
    pub fn fault(&self) -> Option<&FaultKind> {
        match self {
            RunError::Fault(fault) => Some(&fault.kind),
            RunError::Raised(_)
            | RunError::Setup(_)
            | RunError::Invalid(_)
            | RunError::Unwritten { .. } => None,
        }
    }
}

/// A violation and its context.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub kernel: String,
    /// The index of the launch.
    pub launch: u32,
    pub by: Actor,
    /// `None` where a statement concerns the whole warp.
    pub lane: Option<usize>,
    /// The statement, printed.
    pub stmt: String,
    /// The index variables in scope of the warp, as assignments.
    pub vars: String,
    pub kind: FaultKind,
    /// The origin of the undefined value, if it is about one.
    pub origin: Option<Origin>,
}

/// The statement that made an undefined value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    pub kernel: String,
    pub stmt: String,
    pub why: Why,
}

/// A warp of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// Coordinates in the grid.
    pub block: Vec<i64>,
    pub warp: usize,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {}, warp {}", show(&self.block), self.warp)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum FaultKind {
    OutOfBounds {
        array: String,
        index: Vec<i64>,
        /// lo..hi of each axis.
        axes: Vec<(i64, i64)>,
    },
    /// A vector access does not start at a multiple of its width.
    Misaligned {
        array: String,
        index: Vec<i64>,
        width: usize,
    },
    /// An undefined value is stored to memory visible to the caller.
    UndefinedStored {
        array: String,
        index: Vec<i64>,
    },
    /// Whether an equation has a value depends on an undefined one.
    UndefinedTest,
    Operator(OpError),
    /// The fault of a site happened at a point; the run reports it as [`RunError::Raised`].
    Raised {
        site: usize,
        point: Vec<i64>,
    },
    /// Nothing orders this access and an earlier one, and one of them writes.
    Race {
        array: String,
        index: Vec<i64>,
        writes: bool,
        other: Actor,
        other_writes: bool,
    },
    /// Two lanes store different values to one element in one statement.
    LanesDisagree {
        array: String,
        index: Vec<i64>,
        other_lane: usize,
    },
    /// The element is accessed before the copy into it was waited for.
    CopyInFlight {
        array: String,
        index: Vec<i64>,
        by: Actor,
    },
    /// The element was written between a copy of it and the wait for that copy.
    CopySourceWritten {
        array: String,
        index: Vec<i64>,
    },
    /// A warp ends while its copies are in flight.
    CopiesLeft {
        groups: usize,
    },
    /// In one launch a flag is incremented or waited for, and also loaded or stored.
    FlagTouched {
        array: String,
        index: Vec<i64>,
    },
    /// Not all warps of the block reach this barrier.
    DivergentBarrier {
        other: usize,
        at: Option<String>,
    },
    /// A deadlock: all warps wait; this is the first.
    Deadlock {
        array: String,
        index: Vec<i64>,
        value: i64,
        at_least: i64,
    },
    /// A deadlock: all warps wait; this is the first, and looks back to an element that no block has
    /// published.
    NothingPublished {
        array: String,
        index: Vec<i64>,
    },
    /// A second part of a chain is published for one block.
    PublishedTwice {
        array: String,
        index: Vec<i64>,
    },
    /// An index, bound or condition leaves 64 bits.
    IndexOverflow,
    /// More statements than the options allow.
    StepLimit {
        limit: u64,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault {
            kernel,
            launch,
            by,
            lane,
            stmt,
            vars,
            kind,
            origin,
        } = self;
        write!(
            f,
            "{kind}\n  in `{stmt}`\n  kernel {kernel} (launch {launch}), {by}"
        )?;
        if let Some(lane) = lane {
            write!(f, ", lane {lane}")?;
        }
        if !vars.is_empty() {
            write!(f, "\n  with {vars}")?;
        }
        if let Some(Origin { kernel, stmt, why }) = origin {
            write!(f, "\n  undefined since `{stmt}` in {kernel}, which {why}")?;
        }
        Ok(())
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = |writes: &bool| if *writes { "writes" } else { "reads" };
        match self {
            FaultKind::OutOfBounds { array, index, axes } => {
                let axes: Vec<String> = axes.iter().map(|(lo, hi)| format!("{lo}..{hi}")).collect();
                let (index, axes) = (show(index), axes.join(", "));
                write!(f, "{array}{index} does not exist: its axes are [{axes}]")
            }
            FaultKind::Misaligned {
                array,
                index,
                width,
            } => {
                let index = show(index);
                write!(
                    f,
                    "{width} elements from {array}{index} on are not at a multiple of {width}"
                )
            }
            FaultKind::UndefinedStored { array, index } => {
                write!(f, "an undefined value is stored to {array}{}", show(index))
            }
            FaultKind::UndefinedTest => {
                f.write_str("an undefined value decides whether there is a fault")
            }
            FaultKind::Operator(error) => error.fmt(f),
            FaultKind::Raised { site, point } => {
                write!(f, "the fault {} happened at {}", site + 1, show(point))
            }
            FaultKind::Race {
                array,
                index,
                writes,
                other,
                other_writes,
            } => write!(
                f,
                "a race on {array}{}: this {} it, {other} {} it, and nothing orders the two",
                show(index),
                verb(writes),
                verb(other_writes)
            ),
            FaultKind::LanesDisagree {
                array,
                index,
                other_lane,
            } => write!(
                f,
                "lane {other_lane} stores another value to {array}{} in the same statement",
                show(index)
            ),
            FaultKind::CopyInFlight { array, index, by } => write!(
                f,
                "{by} copies into {array}{}, and that was not waited for",
                show(index)
            ),
            FaultKind::CopySourceWritten { array, index } => {
                let index = show(index);
                write!(
                    f,
                    "{array}{index} was written while a copy of it was in flight"
                )
            }
            FaultKind::CopiesLeft { groups } => {
                write!(f, "the warp ends with {groups} groups of copies in flight")
            }
            FaultKind::FlagTouched { array, index } => {
                let index = show(index);
                write!(
                    f,
                    "the flag {array}{index} is also loaded or stored in this launch"
                )
            }
            FaultKind::DivergentBarrier { other, at } => match at {
                Some(at) => write!(f, "a divergent barrier: warp {other} is at `{at}`"),
                None => write!(f, "a divergent barrier: warp {other} has ended"),
            },
            FaultKind::Deadlock {
                array,
                index,
                value,
                at_least,
            } => write!(
                f,
                "a deadlock: {array}{} is {value}, awaited is {at_least}, and no other warp can continue",
                show(index)
            ),
            FaultKind::NothingPublished { array, index } => write!(
                f,
                "a deadlock: nothing is published at {array}{}, and no other warp can continue",
                show(index)
            ),
            FaultKind::PublishedTwice { array, index } => {
                write!(f, "{array}{} is published twice", show(index))
            }
            FaultKind::IndexOverflow => f.write_str("an index leaves 64 bits"),
            FaultKind::StepLimit { limit } => {
                write!(f, "more than {limit} statements were executed")
            }
        }
    }
}

/// `[3, 2]`.
fn show(index: &[i64]) -> String {
    crate::params::show_index(index)
}
