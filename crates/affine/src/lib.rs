#![forbid(unsafe_code)]
#![warn(missing_docs)]
//! Exact integer linear algebra and integer sets in pure Rust.
//!
//! * [`Matrix`], [`hermite`], [`smith`], [`complete_unimodular`]: integer matrices and their normal forms.
//! * [`BasicSet`]: a conjunction of linear constraints over parameters, dimensions and existential
//!   variables; [`Set`]: a finite union of them. That is Presburger arithmetic: floors and remainders
//!   by constants are existentials, made by [`BasicSetBuilder::floor_div`] and
//!   [`BasicSetBuilder::modulo`].
//! * Sets are intersected, subtracted, projected (the Omega test, exact over the integers), compared,
//!   sampled, counted without enumeration, minimised lexicographically for all parameters at once, and
//!   scanned by loops.
//!
//! Every answer is exact. Arithmetic is checked and in 128 bits: a question whose numbers grow too
//! large is an [`Error::Overflow`], and one that takes too many steps an [`Error::TooComplex`], never a
//! wrong answer, a panic or a hang.
//!
//! ```
//! use affine::{Constraint, LinExpr, Set, Space};
//!
//! // { (i, j) : 0 <= i < N and 0 <= j <= i }, for all N.
//! let space = Space::new(1, 2);
//! let (n, i, j) = (space.param(0)?, space.dim(0)?, space.dim(1)?);
//! let triangle = Set::from_constraints(
//!     space,
//!     [
//!         Constraint::ge(&i, &LinExpr::zero())?,
//!         Constraint::lt(&i, &n)?,
//!         Constraint::ge(&j, &LinExpr::zero())?,
//!         Constraint::le(&j, &i)?,
//!     ],
//! )?;
//! assert_eq!(triangle.count(&[4])?, Some(10));
//! assert_eq!(triangle.count(&[1_000_000])?, Some(500_000_500_000));
//!
//! // Columns whose top is below the diagonal: for which N are there any?
//! let inner = triangle.with_constraint(&Constraint::ge(&j, &LinExpr::constant(1))?)?;
//! assert!(inner.fix_params(&[1])?.is_empty()?);
//! assert_eq!(inner.lexmin_point(&[5])?, Some(vec![1, 1]));
//! # Ok::<(), affine::Error>(())
//! ```

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
