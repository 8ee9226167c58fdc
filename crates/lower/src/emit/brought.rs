//! Which part of an input its window in shared memory holds.

use systola_ir::form::Form;

use crate::storage::windows::Window;

/// A window of an input and which part of the input is in it.
#[derive(Clone, Debug)]
pub(super) struct Brought {
    pub(super) of: Window,
    /// The first indices, over the variables of the kernel.
    pub(super) start: Vec<Form>,
    /// Which of the stages is read.
    pub(super) stage: Form,
}

impl Brought {
    /// Before anything is in it.
    pub(super) fn empty(of: Window) -> Brought {
        Brought {
            of,
            start: Vec::new(),
            stage: Form::zero(),
        }
    }
}
