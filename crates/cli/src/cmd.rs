//! The subcommands, one file each.

pub mod check;
pub mod devices;
pub mod dump;
pub mod emit;
pub mod explain;
pub mod explore;
pub mod moved;
pub mod nvrtc;
pub mod run;
pub mod show;
pub mod tour;
