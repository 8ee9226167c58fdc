//! What all front ends share: the tree that they build, and the elaborator that resolves its names,
//! infers its types and writes it as systems, mappings and programs.
//!
//! A front end reads its own notation and returns a [`tree::Module`], with names unresolved and
//! literals untyped. [`elaborate_module`] does the rest, and finds all mistakes at once.

pub mod elaborate;
pub mod suggest;
pub mod tree;
pub mod words;

pub use elaborate::{
    elaborate_conv, elaborate_module, elaborate_program, elaborate_stencil, elaborate_system,
};
