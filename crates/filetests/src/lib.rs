//! Runs Systola's test programs: the files of `gallery/`, compared with facts and results that were
//! obtained without Systola.
//!
//! * [`gallery`]: finds the files, and the facts about their designs in `gallery/designs.json`.
//! * [`mod@reference`]: what each program computes, as plain loops from the mathematics.
//! * [`tensor`]: the arrays that go in and come out.
//! * [`draw`]: small systems and mappings, drawn from a seed.
//! * [`brute`]: legality by trying every point.
//! * [`emulate`]: printed CUDA C++, run thread by thread.
//! * [`mod@examine`]: any text through every check and, where it is legal, through a run.
//! * [`oracle`]: random programs on every target, for any length of time.
//! * [`mod@read_back`]: printed kernels, read and printed again.
//! * [`quick_cpu`], [`usual_cpu`]: how tests compile C.
//! * [`ways`]: which of the slow ways of running the gallery a mapping takes.
//! * [`cpus`]: work on all CPUs, and the CPU time of a thread.

use systola_allocator as _;

pub mod brute;
pub mod cpus;
pub mod draw;
pub mod emulate;
pub mod examine;
pub mod gallery;
pub mod oracle;
mod quick;
pub mod read_back;
pub mod reference;
pub mod tensor;
pub mod ways;

pub use quick::{quick_cpu, usual_cpu};
