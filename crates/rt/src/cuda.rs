//! Runs generated code on an NVIDIA GPU.
//!
//! The driver and NVRTC, which compiles CUDA C++ at run time, are looked for when they are first needed: a program
//! that holds this starts on machines with neither, and [`devices`] says what is missing.
//!
//! [`CudaProgram::compile`] takes a program of kernels and the CUDA C++ that was written for it.
//! [`CudaProgram::run`] works on arrays of the host, [`CudaProgram::run_on_device`] on [`DeviceArray`]s, which stay on
//! the GPU between runs. Both return when the results are complete.

mod compile;
mod device;
mod device_array;
mod driver;
mod nvrtc;
mod pool;
mod program;
mod run;
mod source;
mod width;

pub use compile::{Compiled, CudaCompileOptions, Resources, compile_only};
pub use device::{DeviceInfo, Gpu, devices};
pub use device_array::DeviceArray;
pub use nvrtc::version as nvrtc_version;
pub use program::CudaProgram;
pub use source::{CudaArgument, CudaKernel, CudaSource, SharedPart};
