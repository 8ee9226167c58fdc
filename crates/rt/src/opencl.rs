//! Runs generated code on any device with OpenCL: GPUs of all vendors, and CPUs.
//!
//! The OpenCL loader is loaded on first use; [`devices`] says what is missing. `SYSTOLA_OPENCL`
//! names another one.
//!
//! [`OpenClProgram`]'s `compile` takes a program of kernels and its OpenCL C for the features of
//! the device ([`DeviceInfo`]). Its `run` works on arrays of the host, its `run_on_device` on
//! [`DeviceArray`]s, which stay on the device between runs. Both return when the results are
//! complete.

mod api;
mod build;
mod device;
mod info;
mod objects;
mod self_test;

pub use build::OpenClCompileOptions;
pub use device::{DeviceArray, Gpu, OpenCl, OpenClProgram};
pub use info::{DeviceInfo, Shuffles, devices};
