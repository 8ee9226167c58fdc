//! Checks and lowering: systems under mappings become arrays, and arrays become kernels.
//!
//! [`pipeline`] calls the steps in order and reads top to bottom.

pub mod align;
pub mod apply_mapping;
pub mod build_array;
pub mod check_system;
pub mod clock;
pub mod components;
pub mod cost;
pub mod decide;
pub mod dependences;
pub mod difference;
pub mod digits;
pub mod emit;
pub mod facts;
pub mod failure;
pub mod guards;
pub mod legality;
pub mod link;
pub mod localise;
pub mod loops;
pub mod lower_kernel;
pub mod names;
pub mod nest;
pub mod passes;
pub mod periodic;
pub mod pipeline;
pub mod report;
pub mod resolve;
pub mod reverse;
pub mod roles;
pub mod schedulable;
pub mod specialise;
pub mod split_sums;
pub mod storage;
pub mod storage_maps;
pub mod taxonomy;
pub mod uniform;
pub mod watch;
