#![forbid(unsafe_code)]
#![warn(missing_docs)]
//! Exact integer linear algebra and integer sets in pure Rust.

mod basic;
mod count;
mod display;
mod error;
mod expr;
mod hermite;
mod int;
mod lex;
mod map;
mod matrix;
mod omega;
mod optimum;
mod polynomial;
mod scan;
mod set;
mod simplex;
mod smith;
mod subtract;
mod system;

pub use basic::{BasicSet, BasicSetBuilder};
pub use display::Text;
pub use error::{Error, Result};
pub use expr::{Constraint, LinExpr, Space};
pub use hermite::{complete_unimodular, hermite};
pub use int::Int;
pub use map::Map;
pub use matrix::Matrix;
pub use optimum::SymbolicBounds;
pub use scan::{Loop, LoopNest, Points};
pub use set::Set;
pub use smith::smith;
