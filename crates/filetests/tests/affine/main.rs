//! Affine recurrences: textbook equations against independent programs, alignments with a common
//! space, and random systems.
//!
//! The same draws come in every run; `SYSTOLA_CASES=n` takes this many.

mod aligned;
mod compiled;
mod memory;
mod random;
mod textbook;
#[expect(dead_code, reason = "shared with the properties")]
#[path = "../properties/values.rs"]
mod values;
