//! The subcommands, one file each.

pub mod bench;
pub mod check;
pub mod devices;
pub mod dump;
pub mod emit;
pub mod explain;
pub mod explore;
pub mod gpu;
pub mod nvrtc;
pub mod run;
pub mod show;
pub mod tour;
pub mod verify;
