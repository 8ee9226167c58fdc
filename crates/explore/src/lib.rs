//! The explorer: give the recurrence, get the best array.
//!
//! A [`space`] enumerates mappings of a system as text that a user could have written; the compiler
//! checks them like a user's. A model predicts the time of each from the kernels that it is lowered
//! to. A search measures the most promising ones.

pub mod agreement;
pub mod calibrate;
pub mod choose;
pub mod deadline;
pub mod measure;
pub mod model;
pub mod platform;
pub mod problem;
pub mod rank;
pub mod reduced;
pub mod report;
pub mod search;
pub mod session;
pub mod space;
pub mod target_device;
pub mod tuned;

pub use systola_driver::sizes;
