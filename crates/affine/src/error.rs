//! Errors: every fallible operation returns an [`enum@Error`].

use thiserror::Error;

/// Why an operation gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// A coefficient left the range of [`Int`](crate::Int).
    #[error("a coefficient does not fit into 128 bits")]
    Overflow,
    /// The work budget was exceeded; the question is valid but too large.
    #[error("the set is too complex: more than {budget} elementary steps")]
    TooComplex {
        /// The budget that was exceeded, in elementary steps.
        budget: u64,
    },
    /// The operands belong to different spaces.
    #[error(
        "spaces differ: {left_params} parameters and {left_dims} dimensions against {right_params} and {right_dims}"
    )]
    SpaceMismatch {
        /// Parameters of the left operand.
        left_params: usize,
        /// Dimensions of the left operand.
        left_dims: usize,
        /// Parameters of the right operand.
        right_params: usize,
        /// Dimensions of the right operand.
        right_dims: usize,
    },
    /// A column, dimension or parameter that does not exist.
    #[error("index {index} is out of range, there are {len}")]
    OutOfRange {
        /// The offending index (or length).
        index: usize,
        /// The number of valid indices.
        len: usize,
    },
    /// The sizes of matrices or vectors do not match.
    #[error("size {found} where {expected} was expected")]
    Shape {
        /// The size that the operation needs.
        expected: usize,
        /// The size that it got.
        found: usize,
    },
    /// A divisor or modulus that is not positive.
    #[error("divisor {0} is not positive")]
    Divisor(i128),
    /// The points of an unbounded set were requested in order.
    #[error("the set is unbounded in dimension {dim}")]
    Unbounded {
        /// The first dimension without a bound.
        dim: usize,
    },
    /// The rows cannot be completed to a unimodular matrix.
    #[error("the rows are not primitive, so no unimodular matrix contains them")]
    NotPrimitive,
}

/// The result of a fallible operation of this crate.
pub type Result<T> = std::result::Result<T, Error>;
