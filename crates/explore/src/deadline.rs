//! Work that ends at a deadline, finished or not.

use affine::cancel::{self, Cancelled};
use systola_rt::Deadline;

/// Does some work on this thread until it is done, or until the deadline: lowering, prediction and
/// interpretation check for it.
pub fn run_until<R>(deadline: &Deadline, work: impl FnOnce() -> R) -> Result<R, Cancelled> {
    let deadline = deadline.clone();
    cancel::run(move || deadline.is_over(), work)
}
