//! Runs generated code on the CPU of this machine, and with the features `cuda` and `opencl` on
//! devices with a memory of their own.
//!
//! [`CpuProgram::compile`] takes a program of kernels and its C, compiles that with the system's
//! compiler, or finds it in the [`cache`], and loads it. [`CpuProgram::run`] then launches it as
//! often as wanted, on arrays in place.
//!
//! The C is trusted: a back end wrote it for the program, and it runs in this process. Everything
//! else is checked, and every refusal is an [`Error`] that carries the facts.
//!
//! # The calling convention
//!
//! Each kernel is one exported function,
//!
//! ```c
//! void symbol(const int64_t *sizes, const int64_t *args, void *const *buffers, void *scratch,
//!             int64_t first, int64_t last);
//! ```
//!
//! which runs the blocks first, …, last − 1, numbered row by row over the grid: the last block
//! variable runs fastest. `sizes` are the program's parameters in order, `args` the kernel's host
//! variables in order, `buffers` the first elements of the program's buffers in order, each dense,
//! row by row and aligned to its elements. `scratch` is this thread's own memory, aligned to 64
//! bytes and as large as [`Source::scratch`] says; it holds what the last block of any launch left
//! in it.

mod aligned;
mod bind;
pub mod buffer;
pub mod cache;
pub mod calibration;
#[cfg(any(feature = "cuda", feature = "opencl"))]
mod code_cache;
mod compile;
mod compiler;
mod cpu;
mod cpu_time;
#[cfg(feature = "cuda")]
pub mod cuda;
mod deadline;
#[cfg(any(feature = "cuda", feature = "opencl"))]
pub mod device;
mod error;
mod host_array;
mod layout;
mod library;
mod literal;
pub mod memory;
#[cfg(feature = "opencl")]
pub mod opencl;
mod pack;
mod page_offset;
mod pages;
mod per_sizes;
mod plan;
mod pool;
mod precompiled;
mod process;
mod raw;
mod run;
pub mod simd;
mod source;
pub mod timing;
mod trust;
pub mod tuning;
pub mod watch;

pub use buffer::{Element, View, ViewMut};
pub use cache::CacheOptions;
pub use compile::{CompileOptions, Note, Origin, require_compiler};
pub use cpu::{CpuProgram, RunOptions, Stats};
pub use deadline::Deadline;
pub use error::Error;
pub use host_array::HostArray;
pub use source::{ScratchPart, Source};
