//! The interpreter of kernels.

mod builder;
mod errors;
mod faults;
mod look_back;
mod orders;
mod results;
mod speed;
