//! Runs a function on a stack large enough for the recursion of parser and elaborator.

/// Without optimisation, parser and elaborator need more than the 2 MB of a thread at their limits
/// of nesting. This is several times what they need.
const STACK: usize = 32 << 20;

/// Runs `work` on a stack of its own, or on the current one if there is no memory for another.
pub fn with_room<T: Send>(work: impl Fn() -> T + Sync) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        match thread
            .spawn_scoped(scope, &work)
            .map(|thread| thread.join())
        {
            Ok(Ok(done)) => done,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => work(),
        }
    })
}
