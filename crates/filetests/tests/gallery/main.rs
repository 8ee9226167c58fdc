//! The gallery against `gallery/designs.json` and against the references.
//!
//! What a design needs (points, PEs, steps), which schedules are valid and which values come out were all
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
