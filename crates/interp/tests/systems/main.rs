//! The interpreters of systems and programs.

#![allow(
    clippy::result_large_err,
    clippy::cloned_ref_to_slice_refs,
    reason = "an index list of one form reads like the others"
)]

mod builder;
mod equations;
mod errors;
mod programs;
mod speed;
