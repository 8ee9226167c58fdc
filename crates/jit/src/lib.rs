//! Mappings compiled and run in this process.
//!
//! [`compile`] lowers a mapping for the CPU of this machine and compiles it; with the features
//! `cuda` and `opencl` there are `compile_cuda` and `compile_opencl` for devices with a memory of
//! their own. The result runs as often as wanted, on arrays in place.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(any(feature = "cuda", feature = "opencl"))]
pub mod device;
#[cfg(feature = "opencl")]
pub mod opencl;
pub mod tensors;

pub use cpu::{Compiled, CpuOptions, compile};
#[cfg(feature = "cuda")]
pub use cuda::{CudaCompiled, CudaOptions, compile_cuda};
#[cfg(feature = "opencl")]
pub use opencl::{OpenClCompiled, OpenClOptions, compile_opencl};
