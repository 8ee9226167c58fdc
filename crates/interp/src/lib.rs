//! The meaning of Systola's representations: interpreters, written for clarity.
//!
//! * [`system`] evaluates a recurrence system on demand, [`program`] a sequence of them.
//! * [`code`] evaluates one expression at one point; all interpreters share it.
//! * [`draw`] makes random inputs for which a system is defined.
//! * [`compare`] compares two results within the bounds of [`rounding`].
//! * [`value`] implements the operators, [`tensor`] the arrays that go in and out, [`npy`] their
//!   file format. Nothing here touches a file.

#![allow(
    clippy::result_large_err,
    reason = "a diagnostic is made once, where a run ends"
)]

pub mod array;
pub mod code;
pub mod compare;
pub mod domain;
pub mod draw;
pub mod inputs;
pub mod kernel;
pub mod linear;
mod memo;
pub mod npy;
pub mod params;
pub mod program;
pub mod rounding;
pub mod system;
pub mod tensor;
pub mod value;

pub use array::{run_array, trace};
pub use code::{Code, Env, Frame, Library, Read, Reads, Stop, eval};
pub use inputs::Inputs;
pub use kernel::run_kernel_program;
pub use params::bind_params;
pub use program::{expect_program, run_program};
pub use system::sample::{Sample, SampleOptions, sample_system};
pub use system::{Arrays, Demand, Options, expect_system, run_system, run_system_with};
pub use tensor::{Data, Tensor};
pub use value::{OpError, Value};
