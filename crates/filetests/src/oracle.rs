//! The random-program oracle: one program on every target, compared with its equations.
//!
//! * [`Subject`]: a program with sizes, inputs and the results of its equations.
//! * [`Runner`]: what can run a program on this machine, an interpreter or a target.
//! * [`try_all`]: many subjects on many targets, with the kernels of all of them compiled together.
//! * [`shrink`]: a smaller draw that fails in the same way.
//! * [`campaign`]: draws in worker processes, for any length of time.
//!
//! A *case* is a (system, mapping, size, target) whose outputs were compared.

mod batch;
pub mod campaign;
mod compiled;
pub mod corpus;
mod emulated;
mod find;
mod interpreted;
mod opencl;
mod runner;
pub mod shrink;
mod subject;
mod unit;
mod values;

pub use batch::{Outcome, try_all};
pub use find::{Find, FindKind};
pub use runner::{Device, Runner, runners};
pub use subject::{Subject, Unfit};
