//! A window of an input in shared memory, and the part of the input that it holds.

use systola_ir::form::Form;

use crate::storage::windows::Window;

/// A window of an input, and the part of the input that is in it.
#[derive(Clone, Debug)]
pub(super) struct StagedWindow {
    pub(super) of: Window,
    /// The first index on each axis, over the variables of the kernel.
    pub(super) start: Vec<Form>,
    /// The stage that is read.
    pub(super) stage: Form,
}

impl StagedWindow {
    /// A window that is not filled yet.
    pub(super) fn empty(of: Window) -> StagedWindow {
        StagedWindow {
            of,
            start: Vec::new(),
            stage: Form::zero(),
        }
    }
}
