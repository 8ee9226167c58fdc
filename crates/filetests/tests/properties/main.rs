//! Random small systems and mappings: the checker against every point tried, the array against the
//! system.
//!
//! For every draw:
//!
//! * "legal for all sizes" holds at every size that is tried, "legal at these sizes" at these;
//! * a refusal is confirmed: its counterexample is put into the mapping and shows what it claims;
//!   one without a counterexample is found again by trying all points;
//! * the array of a legal mapping computes what the system computes: the same bits, or, where sums
//!   of floats were declared reorderable, the same within what rounding may do;
//! * so do its kernels, on machines with vectors of several widths and with blocks in several
//!   orders;
//! * the counts of the report are those of the points that were tried.
//!
//! Beside them, systems written by hand: sums and running sums in every position and order.
//!
//! The same draws come in every run. `SYSTOLA_SEED=n` runs one system, `SYSTOLA_CASES=n` this many.

#[expect(dead_code, reason = "shared with the tests of the printers")]
#[path = "../../../back/tests/printed/common/build.rs"]
mod build;
mod case;
mod checker;
#[path = "../gallery/devices.rs"]
mod devices;
mod kernels;
mod large_indices;
mod printed;
mod programs;
mod refusals;
mod rounding;
mod scans;
mod sums;
mod tally;
mod values;
