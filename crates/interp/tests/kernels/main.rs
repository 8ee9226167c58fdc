//! The interpreter of kernels.

mod builder;
mod errors;
mod faults;
mod orders;
mod results;
mod speed;
