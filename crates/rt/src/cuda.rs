//! Runs generated code on an NVIDIA GPU.
//!
//! The driver and NVRTC, which compiles CUDA C++ at run time, are loaded on first use: a program
//! that links this starts on machines with neither, and [`devices`] says what is missing.
//!
//! [`CudaProgram`]'s `compile` takes a program of kernels and the CUDA C++ that was written for it.
//! Its `run` works on arrays of the host, its `run_on_device` on [`DeviceArray`]s, which stay on
//! the GPU between runs. Both return when the results are complete.

mod compile;
mod device;
mod driver;
mod nvrtc;
mod out_of_process;

pub use compile::{Compiled, CudaCompileOptions, Resources, compile_only};
pub use device::{Cuda, CudaProgram, DeviceArray, DeviceInfo, Gpu, devices};
pub use nvrtc::version as nvrtc_version;
pub use out_of_process::{Compilers, serve};
