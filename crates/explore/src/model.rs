//! The model: how long a program of kernels takes on a device, without running it.
//!
//! [`count`] takes the census of a program at sizes: instructions, accesses, sectors, wavefronts;
//! [`footprint`] finds the bytes that cross each level of the memory hierarchy, [`chain`] the
//! critical path of dependent operations, [`alive`] the number of live values. [`device`] holds the
//! numbers of a device, each with its source. [`predict()`] divides the one by the other into the
//! terms of [`cpu`] and [`gpu`]; the largest limits a design. [`ssam`] is another model, shown for
//! comparison.

pub mod alive;
pub mod chain;
pub mod code;
pub mod count;
pub mod counted;
pub mod cpu;
pub mod device;
pub mod footprint;
pub mod gpu;
pub mod predict;
pub mod price;
pub mod ssam;
pub mod tally;
pub mod touch;

pub use device::{Cpu, Device, Gpu, Source};
pub use predict::{Error, Prediction, Term, predict};
