//! The explorer: give the recurrence, get the best array.
//!
//! A [`space`] enumerates mappings of a system as text that anybody could have written; the compiler trusts them no more than a
//! user's. A model predicts the time of each from the kernels that it is lowered to. A search measures the few that matter.

pub mod agreement;
pub mod calibrate;
pub mod deadline;
pub mod measure;
pub mod model;
pub mod problem;
pub mod rank;
pub mod reduced;
pub mod report;
pub mod search;
pub mod session;
pub mod space;
