//! Cancellation of long computations.
//!
//! Questions about integer sets, and passes that depend on many of them, may take longer than a
//! caller wants to wait. [`run`] runs a computation together with a predicate that tells it to
//! stop. [`check`], called from inside the computation, evaluates the predicate at intervals. If it
//! holds, the computation unwinds to [`run`] without a message, and everything it held is dropped:
//! a computation either completes or has no result. Without a [`run`] around it, nothing is ever
//! cancelled.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

/// The computation was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the computation was cancelled")
    }
}

impl std::error::Error for Cancelled {}

/// Calls of [`check`] for each evaluation of the predicates: these may read a clock, while other
/// calls only decrement a counter.
const EVERY: u32 = 64;

type StopTest = Rc<dyn Fn() -> bool>;

thread_local! {
    static LEFT: Cell<u32> = const { Cell::new(0) };
    /// The predicates of all enclosing computations, the outermost first.
    static STOP_TESTS: RefCell<Vec<StopTest>> = const { RefCell::new(Vec::new()) };
}

/// Runs a computation on this thread until it ends, or until [`check`] finds that it should stop.
pub fn run<R>(
    should_stop: impl Fn() -> bool + 'static,
    work: impl FnOnce() -> R,
) -> Result<R, Cancelled> {
    if should_stop() {
        return Err(Cancelled);
    }
    STOP_TESTS.with(|tests| tests.borrow_mut().push(Rc::new(should_stop)));
    let _end = RemoveTest;
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| match payload.downcast() {
        Ok(cancelled) => *cancelled,
        Err(panic) => resume_unwind(panic),
    })
}

/// Removes the predicate, however the computation ended.
struct RemoveTest;

impl Drop for RemoveTest {
    fn drop(&mut self) {
        STOP_TESTS.with(|tests| tests.borrow_mut().pop());
    }
}

/// Unwinds to [`run`] if the computation should stop. Cheap enough for inner loops.
#[inline]
pub fn check() {
    let is_due = LEFT.with(|left| match left.get() {
        0 => {
            left.set(EVERY);
            true
        }
        n => {
            left.set(n - 1);
            false
        }
    });
    if is_due {
        check_now();
    }
}

/// Evaluates the predicates at once: for loops whose iterations take long.
#[cold]
pub fn check_now() {
    let should_stop = STOP_TESTS.with(|tests| tests.borrow().iter().any(|stop| stop()));
    if should_stop && !std::thread::panicking() {
        resume_unwind(Box::new(Cancelled));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_computation_ends_when_it_should_stop() {
        let evaluations = Rc::new(Cell::new(0));
        let seen = Rc::clone(&evaluations);
        let should_stop = move || {
            seen.set(seen.get() + 1);
            seen.get() > 3
        };
        let endless = || {
            loop {
                check();
            }
        };
        assert_eq!(run(should_stop, endless), Err::<(), _>(Cancelled));
        assert_eq!(evaluations.get(), 4);
        assert_eq!(run(|| true, || 1), Err(Cancelled));
        // The predicate has been removed.
        (0..1000).for_each(|_| check());
    }

    #[test]
    fn one_that_ends_in_time_has_its_result() {
        let work = || (0..1000).inspect(|_| check()).sum::<i32>();
        assert_eq!(run(|| false, work), Ok(499_500));
    }

    #[test]
    fn an_inner_one_ends_alone_or_with_the_outer_one() {
        let spin = || {
            loop {
                check();
            }
        };
        let inner = Rc::new(Cell::new(false));
        let set = Rc::clone(&inner);
        let result = run(
            || false,
            || {
                let evaluated = Rc::clone(&set);
                // Stops at the second evaluation.
                run(move || evaluated.replace(true), spin).map(|()| 1)
            },
        );
        assert_eq!((result, inner.get()), (Ok(Err(Cancelled)), true));
        let count = Rc::new(Cell::new(0));
        let both = run(
            move || count.replace(count.get() + 1) > 5,
            || {
                let inner: Result<(), Cancelled> = run(|| false, spin);
                assert_eq!(inner, Err(Cancelled));
                spin();
            },
        );
        assert_eq!(both, Err(Cancelled));
    }

    #[test]
    #[should_panic(expected = "a panic of its own")]
    fn panics_go_on() {
        let _ = run(|| false, || panic!("a panic of its own"));
    }
}
