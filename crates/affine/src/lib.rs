#![forbid(unsafe_code)]
#![warn(missing_docs)]
//! Exact integer linear algebra and integer sets in pure Rust.
//!
//! A [`Set`] is a finite union of conjunctions of affine constraints over integers: the sets of
//! Presburger arithmetic. Its points have dimensions, and its constraints may use parameters
//! (symbolic constants) and existential variables, which express strides, floors and remainders by
//! constants. Every operation is exact over the integers and holds for all values of the
//! parameters.
//!
//! ```
//! use affine::{BasicSetBuilder, Set, Space};
//!
//! # fn main() -> Result<(), affine::Error> {
//! // { (i, j) : 0 <= i < N and i <= j < N and (i + j) mod 2 = 0 }
//! let space = Space::new(1, 2);
//! let (n, i, j) = (space.param(0)?, space.dim(0)?, space.dim(1)?);
//! let mut b = BasicSetBuilder::new(space);
//! b.range(&0.into(), &i, &n)?;
//! b.range(&i, &j, &n)?;
//! let parity = b.modulo(&i.add(&j)?, 2)?;
//! b.eq(&parity, &0.into())?;
//! let set = Set::from(b.build());
//!
//! assert!(!set.is_empty()?);
//! assert_eq!(set.count(&[1_000_000])?, Some(250_000_500_000));
//! assert_eq!(set.sample()?, Some((vec![1], vec![0, 0])));
//! assert_eq!(set.lexmax_point(&[10])?, Some(vec![9, 9]));
//!
//! // For which i is there a j? The projection is exact.
//! let rows = set.project_out(1..2)?.coalesce()?;
//! assert_eq!(rows.display(&["N"], &["i"]).to_string(), "{ (i) : 0 <= i < N }");
//! # Ok(())
//! # }
//! ```
//!
//! # Contents
//!
//! - [`Matrix`], [`hermite()`], [`smith()`], [`complete_unimodular`]: linear algebra over the
//!   integers.
//! - [`Space`], [`LinExpr`], [`Constraint`], [`BasicSetBuilder`], [`Map`]: building sets and maps.
//! - [`Set`]: Boolean operations, projection by the Omega test, emptiness, subset and equality,
//!   images and preimages, lexicographic minima, sample points, bounds, counting, and loops that
//!   visit the points in order.
//!
//! # Limits
//!
//! Arithmetic is on checked 128-bit integers: [`Error::Overflow`] instead of a wrapped value. Work
//! is counted in elementary steps, and [`Error::TooComplex`] ends an operation after a fixed number
//! of them, the same on every machine. Nothing panics, and there is no `unsafe` code. A caller can
//! cancel operations that take too long ([`cancel`]).

mod basic;
mod builder;
pub mod cancel;
mod coalesce;
mod columns;
mod count;
mod display;
mod div;
mod error;
mod expr;
mod gist;
mod hermite;
mod image;
mod int;
mod lex;
mod map;
mod matrix;
mod omega;
mod optimum;
mod polynomial;
mod project;
mod relax;
mod scan;
mod set;
mod simplex;
mod simplify;
mod smith;
mod subtract;
mod system;

pub use basic::BasicSet;
pub use builder::BasicSetBuilder;
pub use display::Text;
pub use error::{Error, Result};
pub use expr::{Constraint, LinExpr, Space};
pub use hermite::{complete_unimodular, hermite};
pub use int::Int;
pub use map::Map;
pub use matrix::Matrix;
pub use optimum::SymbolicBounds;
pub use relax::{Relaxation, Relaxer};
pub use scan::{Loop, LoopNest, Points};
pub use set::Set;
pub use smith::smith;
