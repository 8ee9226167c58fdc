//! Where in global memory a value is.

use systola_ir::form::{Cond, Form};
use systola_ir::{BufferId, Scalar};

/// Elements of global memory that hold a value.
pub struct Place<'a> {
    /// One for each scalar.
    pub buffers: &'a [(BufferId, Scalar)],
    /// The same in all of them.
    pub index: Vec<Form>,
    /// Where the value is there.
    pub when: Cond,
}
