//! Room for recursion, whatever the stack of the caller.

/// What the parser and the elaborator take at their limits of nesting when they are compiled
/// without optimisation is more than the 2 MB of a thread; this is several times as much.
const STACK: usize = 32 << 20;

/// Runs `work` on a stack of its own; on this one where there is no memory for another.
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
