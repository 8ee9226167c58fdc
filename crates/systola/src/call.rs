//! One call of a kernel, argument by argument.

use systola_rt::{Stats, View, ViewMut};

use crate::error::Error;
use crate::kernel::Kernel;

/// A call that is being written down; [`Call::run`] does it. It begins with [`Kernel::input`],
/// [`Kernel::output`] or [`Kernel::size`].
#[derive(Debug)]
#[must_use = "a call does nothing until `run`"]
pub struct Call<'a> {
    kernel: &'a Kernel,
    sizes: Vec<(&'a str, i64)>,
    inputs: Vec<(&'a str, View<'a>)>,
    outputs: Vec<(&'a str, ViewMut<'a>)>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(kernel: &'a Kernel) -> Call<'a> {
        Call {
            kernel,
            sizes: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
        }
    }

    /// An array that is read: a slice, a vector or, with the feature `ndarray`, an array of that
    /// crate or a view of one.
    pub fn input(mut self, name: &'a str, array: impl Into<View<'a>>) -> Self {
        self.inputs.push((name, array.into()));
        self
    }

    /// An array that is written.
    pub fn output(mut self, name: &'a str, array: impl Into<ViewMut<'a>>) -> Self {
        self.outputs.push((name, array.into()));
        self
    }

    /// A size that does not follow from the shapes.
    pub fn size(mut self, name: &'a str, size: i64) -> Self {
        self.sizes.push((name, size));
        self
    }

    /// Runs the kernel; returns when the outputs are complete.
    pub fn run(mut self) -> Result<Stats, Error> {
        let outputs = &mut self.outputs;
        self.kernel.call_at(&self.sizes, &self.inputs, outputs)
    }
}
