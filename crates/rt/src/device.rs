//! The common parts of runs on devices with their own memory.
//!
//! A [`Driver`] gives access to memory, queues and kernels of one kind of device. On top of it are
//! the memory pool ([`Gpu`], `pool`), arrays that stay on the device ([`DeviceArray`]), programs
//! ([`DeviceProgram`]) and their runs.

pub(crate) mod array;
mod choice;
pub(crate) mod driver;
pub(crate) mod gpu;
mod pool;
pub(crate) mod program;
mod run;
mod source;
pub(crate) mod variant;
pub(crate) mod width;

pub use array::DeviceArray;
pub use choice::choose;
pub use driver::{Driver, Queue};
pub use gpu::Gpu;
pub use program::DeviceProgram;
pub use source::{DeviceKernel, DeviceSource, KernelArgument, SharedPart};
pub use variant::Variant;
