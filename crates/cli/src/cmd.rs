//! The subcommands, one file each.

pub mod bench;
pub mod check;
pub mod dump;
pub mod emit;
pub mod explain;
pub mod run;
pub mod show;
pub mod tour;
