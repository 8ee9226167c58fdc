//! Cancellation of long computations.
//!
//! Questions about integer sets, and passes that ask many of them, may take longer than anybody wants to wait. [`run`] runs a
//! computation together with a question, "is it over?". [`check`], called from inside the computation, asks it every so often. Where
//! the answer is yes, the computation unwinds to [`run`] without a message, and everything it held is dropped. So a computation has
//! its one result or none. Without a [`run`] around it nothing is ever cancelled.

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

/// Calls of [`check`] for each time that the questions are asked: these may look at a clock, a call is a decrement.
const EVERY: u32 = 64;

type Question = Rc<dyn Fn() -> bool>;

thread_local! {
    static LEFT: Cell<u32> = const { Cell::new(0) };
    /// Of all computations around, the outermost first.
    static QUESTIONS: RefCell<Vec<Question>> = const { RefCell::new(Vec::new()) };
}

/// Runs a computation on this thread until it ends, or until one of its calls of [`check`] finds that it is over.
pub fn run<R>(
    is_over: impl Fn() -> bool + 'static,
    work: impl FnOnce() -> R,
) -> Result<R, Cancelled> {
    if is_over() {
        return Err(Cancelled);
    }
    QUESTIONS.with(|questions| questions.borrow_mut().push(Rc::new(is_over)));
    let _end = Forget;
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| match payload.downcast() {
        Ok(cancelled) => *cancelled,
        Err(panic) => resume_unwind(panic),
    })
}

/// Takes the question back, however the computation ended.
struct Forget;

impl Drop for Forget {
    fn drop(&mut self) {
        QUESTIONS.with(|questions| questions.borrow_mut().pop());
    }
}

/// Unwinds to [`run`] if the computation is over. Cheap enough for inner loops.
#[inline]
pub fn check() {
    let asks = LEFT.with(|left| match left.get() {
        0 => {
            left.set(EVERY);
            true
        }
        n => {
            left.set(n - 1);
            false
        }
    });
    if asks {
        check_now();
    }
}

/// The same, and the questions are asked at once: for loops whose iterations take long.
#[cold]
pub fn check_now() {
    let is_over = QUESTIONS.with(|questions| questions.borrow().iter().any(|over| over()));
    if is_over && !std::thread::panicking() {
        resume_unwind(Box::new(Cancelled));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_computation_ends_when_it_is_over() {
        let asked = Rc::new(Cell::new(0));
        let seen = Rc::clone(&asked);
        let over = move || {
            seen.set(seen.get() + 1);
            seen.get() > 3
        };
        let endless = || {
            loop {
                check();
            }
        };
        assert_eq!(run(over, endless), Err::<(), _>(Cancelled));
        assert_eq!(asked.get(), 4);
        assert_eq!(run(|| true, || 1), Err(Cancelled));
        // Nobody asks any more.
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
                let asked = Rc::clone(&set);
                // Over at its second question.
                run(move || asked.replace(true), spin).map(|()| 1)
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
