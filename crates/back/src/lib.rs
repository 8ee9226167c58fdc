//! Printers: a verified [`Program`](systola_ir::kernel::Program) becomes the text of a target's
//! language.
//!
//! All targets use a dialect of C. [`c_family`] walks a kernel and prints what they have in common:
//! control, declarations, scalar arithmetic, index expressions. A [`dialect`] prints what differs.
//! [`cpu`] is C with vector types, where a warp is a vector and a lane one of its elements. In
//! [`cuda`] and [`opencl`], a lane is a thread; [`simt`] has what these two share.
//!
//! [`host`] prints what surrounds kernels outside our runtime: a comment that says how each is
//! launched, and a whole program with a `main`.
//!
//! Nothing here accesses files or devices; the output is a function of the program alone, so the
//! same program always gives the same bytes.

pub mod artifact;
pub mod c_family;
pub mod context;
pub mod cpu;
pub mod cuda;
pub mod dialect;
mod error;
pub mod expr;
pub mod host;
pub mod index;
pub mod names;
pub mod opencl;
pub mod prelude;
pub mod scalar;
pub mod simt;
mod usage;

pub use artifact::{Argument, Artifact, Choice, Constant, DeviceArtifact, DeviceEntry, Entry};
pub use error::{Error, Fault};
