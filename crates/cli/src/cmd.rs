//! The subcommands, one file each.

pub mod check;
pub mod completions;
pub mod devices;
pub mod dump;
pub mod emit;
pub mod explain;
pub mod explore;
pub mod fmt;
pub mod lsp;
pub mod man;
pub mod moved;
pub mod nvrtc;
pub mod run;
pub mod show;
pub mod tour;
