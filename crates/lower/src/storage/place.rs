//! The place of a value in global memory.

use systola_ir::form::{Cond, Form, Overflow};
use systola_ir::{BufferId, Scalar};

/// Elements of global memory that hold a value.
pub struct Place<'a> {
    /// One for each scalar.
    pub buffers: &'a [(BufferId, Scalar)],
    /// The same in all of them.
    pub index: Vec<Form>,
    /// The condition under which the value exists there.
    pub when: Cond,
}

impl<'a> Place<'a> {
    /// The place at an index, where a condition over the point holds.
    pub fn at(
        buffers: &'a [(BufferId, Scalar)],
        index: Vec<Form>,
        when: &Cond,
        point: &[Form],
    ) -> Result<Place<'a>, Overflow> {
        Ok(Place {
            buffers,
            index,
            when: when.map(&|f| f.substitute(&|d| point.get(d.index()).cloned()))?,
        })
    }
}
