//! The gallery against `gallery/designs.json` and against the references.
//!
//! The requirements of a design (points, PEs, steps), the valid schedules and the results were all
//! found without Systola. Each test compares one stage of the compiler with them, for every file.

mod census;
mod cpu;
mod cuda;
mod designs;
mod devices;
mod flags;
mod kernels;
mod opencl;
mod programs;
mod suite;
mod support;
mod threads;
