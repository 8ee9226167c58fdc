//! Runs generated code on an NVIDIA GPU.
//!
//! The driver and NVRTC, which compiles CUDA C++ at run time, are looked for when they are first needed: a program
//! that holds this starts on machines with neither, and [`devices`] says what is missing.
//!
//! [`CudaProgram`]'s `compile` takes a program of kernels and the CUDA C++ that was written for it.
//! Its `run` works on arrays of the host, its `run_on_device` on [`DeviceArray`]s, which stay on the GPU between
//! runs. Both return when the results are complete.

mod apart;
mod compile;
mod device;
mod driver;
mod nvrtc;

pub use apart::{Compilers, serve};
pub use compile::{Compiled, CudaCompileOptions, Resources, compile_only};
pub use device::{Cuda, CudaProgram, DeviceArray, DeviceInfo, Gpu, devices};
pub use nvrtc::version as nvrtc_version;
