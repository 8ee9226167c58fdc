//! The model: how long a program of kernels takes on a device, without running it.
//!
//! [`count`] takes the census of a program at sizes: instructions, accesses, sectors, passes; [`footprint`] finds the bytes that cross each level of
//! the memory, [`chain`] how long results wait for each other, [`alive`] how many of them there are at once. [`device`] holds the numbers of a device, each with its source. [`predict()`] divides the
//! one by the other: the terms of [`cpu`] and [`gpu`], and the largest is what limits a design. [`ssam`] is another model, shown beside.

pub mod alive;
pub mod chain;
pub mod code;
pub mod count;
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
