//! The common part of all front ends: the tree that they build, and the elaborator that resolves
//! its names, infers its types and converts it to systems, mappings and programs.
//!
//! A front end parses its own notation and returns a [`tree::Module`] with unresolved names and
//! untyped literals. [`elaborate_module`] does the rest, and reports all errors at once.

pub mod elaborate;
pub mod names;
pub mod suggest;
pub mod tree;
pub mod words;

pub use elaborate::{
    elaborate_conv, elaborate_module, elaborate_program, elaborate_stencil, elaborate_system,
};
