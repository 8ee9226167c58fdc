//! A thread pool that shares the blocks of a launch.
//!
//! The launching thread works too, so that a launch ends even if every other thread is busy or
//! could not be started. It posts slots for helpers, withdraws unclaimed ones when no blocks are
//! left, and waits for the helpers that claimed one. Between launches, a helper first spins and
//! goes to sleep after [`SPIN`]: host loops launch in quick succession, and waking a thread takes
//! longer than many launches.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// How threads take blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Chunks of consecutive blocks, smaller towards the end.
    Chunks,
    /// One by one; each thread finishes its block before it takes the next. A block may then wait
    /// for those with smaller numbers: each of them has finished or is running on a thread.
    Increasing,
}

/// The time that a thread spins before it sleeps.
const SPIN: Duration = Duration::from_micros(40);
/// The maximum number of threads of a launch, including the launching one.
pub(crate) const MOST_THREADS: usize = 1024;
/// Generated code may spill all registers to the stack.
const STACK_BYTES: usize = 8 << 20;
/// A chunk is this fraction of an even share of the remaining blocks.
const CHUNKS_PER_SHARE: i64 = 4;

/// The number of threads that this process may use at once.
pub(crate) fn available_threads() -> usize {
    static AVAILABLE: OnceLock<usize> = OnceLock::new();
    *AVAILABLE.get_or_init(|| thread::available_parallelism().map_or(1, usize::from))
}

pub(crate) struct Pool {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    /// Counts launches, so that a spinning thread sees one without taking the lock.
    posted: AtomicU64,
}

#[derive(Default)]
struct Queue {
    slots: VecDeque<HelperSlots>,
    workers: usize,
    sleeping: usize,
}

/// Slots for helpers in a launch.
struct HelperSlots {
    job: Arc<Job>,
    next: usize,
    end: usize,
}

struct Job {
    blocks: Blocks,
    body: Box<dyn Fn(usize, Range<i64>) + Send + Sync>,
    /// Helpers that claimed a slot and have not finished.
    active: AtomicUsize,
    panicked: AtomicBool,
    owner: Thread,
}

/// The blocks that have not been taken yet.
struct Blocks {
    next: AtomicI64,
    end: i64,
    /// A thread takes one of `shares` parts of the remaining blocks, and at least one block.
    shares: i64,
}

impl Blocks {
    fn new(n: i64, order: Order, threads: usize) -> Blocks {
        let shares = match order {
            Order::Chunks => (threads as i64).saturating_mul(CHUNKS_PER_SHARE),
            Order::Increasing => i64::MAX,
        };
        Blocks {
            next: AtomicI64::new(0),
            end: n,
            shares,
        }
    }

    fn take(&self) -> Option<Range<i64>> {
        let mut first = self.next.load(Ordering::Relaxed);
        while first < self.end {
            let last = first + ((self.end - first) / self.shares).max(1);
            let taken =
                self.next
                    .compare_exchange_weak(first, last, Ordering::Relaxed, Ordering::Relaxed);
            match taken {
                Ok(_) => return Some(first..last),
                Err(now) => first = now,
            }
        }
        None
    }
}

impl Pool {
    fn new() -> Pool {
        Pool {
            shared: Arc::default(),
        }
    }

    /// The pool of this process.
    pub(crate) fn global() -> &'static Pool {
        static POOL: OnceLock<Pool> = OnceLock::new();
        POOL.get_or_init(Pool::new)
    }

    /// Calls `body(thread, blocks)` until every block in 0..n was in one call, and returns when all
    /// calls have returned. Calls with the same `thread` are sequential; it is below `threads`,
    /// which is at least 1.
    pub(crate) fn run(
        &self,
        n: i64,
        order: Order,
        threads: usize,
        body: impl Fn(usize, Range<i64>) + Send + Sync + 'static,
    ) {
        let useful = usize::try_from(n).unwrap_or(usize::MAX);
        let threads = threads.min(useful).min(MOST_THREADS);
        if threads <= 1 {
            match order {
                Order::Chunks if n > 0 => body(0, 0..n),
                Order::Chunks => {}
                Order::Increasing => (0..n).for_each(|block| body(0, block..block + 1)),
            }
            return;
        }
        let job = Arc::new(Job {
            blocks: Blocks::new(n, order, threads),
            body: Box::new(body),
            active: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
            owner: thread::current(),
        });
        self.shared.post(&job, threads);
        // Even if a block panics here, no helper may still use the caller's borrowed data.
        let end = WaitForHelpers {
            shared: &self.shared,
            job: &job,
        };
        job.work(0);
        drop(end);
        assert!(!job.panicked.load(Ordering::Relaxed), "a block panicked");
    }
}

impl Job {
    fn work(&self, thread: usize) {
        while let Some(blocks) = self.blocks.take() {
            (self.body)(thread, blocks);
        }
    }
}

struct WaitForHelpers<'a> {
    shared: &'a Shared,
    job: &'a Arc<Job>,
}

impl Drop for WaitForHelpers<'_> {
    fn drop(&mut self) {
        self.shared.withdraw(self.job);
        spin_until(|| self.job.active.load(Ordering::Acquire) == 0);
        while self.job.active.load(Ordering::Acquire) != 0 {
            thread::park();
        }
    }
}

/// Spins until a condition holds or [`SPIN`] has passed.
fn spin_until(until: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    loop {
        for _ in 0..32 {
            if until() {
                return true;
            }
            std::hint::spin_loop();
        }
        if available_threads() == 1 || start.elapsed() > SPIN {
            return false;
        }
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn post(self: &Arc<Self>, job: &Arc<Job>, threads: usize) {
        let mut queue = self.queue();
        while queue.workers < threads - 1 && self.start_worker(queue.workers) {
            queue.workers += 1;
        }
        queue.slots.push_back(HelperSlots {
            job: Arc::clone(job),
            next: 1,
            end: threads,
        });
        let sleeping = queue.sleeping;
        drop(queue);
        self.posted.fetch_add(1, Ordering::Release);
        if sleeping > threads - 1 {
            (1..threads).for_each(|_| self.wake.notify_one());
        } else if sleeping > 0 {
            self.wake.notify_all();
        }
    }

    /// Returns false if the thread cannot be started.
    fn start_worker(self: &Arc<Self>, n: usize) -> bool {
        let shared = Arc::clone(self);
        thread::Builder::new()
            .name(format!("systola-{n}"))
            .stack_size(STACK_BYTES)
            .spawn(move || {
                loop {
                    let (job, thread) = shared.claim();
                    help(&job, thread);
                }
            })
            .is_ok()
    }

    fn withdraw(&self, job: &Arc<Job>) {
        self.queue()
            .slots
            .retain(|slots| !Arc::ptr_eq(&slots.job, job));
    }

    fn claim(&self) -> (Arc<Job>, usize) {
        loop {
            let seen = self.posted.load(Ordering::Acquire);
            if let Some(claimed) = self.queue().claim() {
                return claimed;
            }
            if spin_until(|| self.posted.load(Ordering::Acquire) != seen) {
                continue;
            }
            let mut queue = self.queue();
            loop {
                if let Some(claimed) = queue.claim() {
                    return claimed;
                }
                queue.sleeping += 1;
                queue = self
                    .wake
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner);
                queue.sleeping -= 1;
            }
        }
    }
}

impl Queue {
    fn claim(&mut self) -> Option<(Arc<Job>, usize)> {
        let slots = self.slots.front_mut()?;
        let thread = slots.next;
        slots.next += 1;
        let job = Arc::clone(&slots.job);
        if slots.next == slots.end {
            self.slots.pop_front();
        }
        // Under the lock, so that the owner, which withdraws under it, waits for all earlier
        // claims.
        job.active.fetch_add(1, Ordering::Relaxed);
        Some((job, thread))
    }
}

fn help(job: &Job, thread: usize) {
    let work = std::panic::AssertUnwindSafe(|| job.work(thread));
    if std::panic::catch_unwind(work).is_err() {
        job.panicked.store(true, Ordering::Relaxed);
    }
    if job.active.fetch_sub(1, Ordering::AcqRel) == 1 {
        job.owner.unpark();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    /// Runs n blocks and counts how often each was in a call, and whether a thread was in two calls
    /// at once.
    fn check(pool: &Pool, n: usize, order: Order, threads: usize) {
        struct Seen {
            blocks: Vec<AtomicU32>,
            busy: Vec<AtomicBool>,
        }
        let seen = Arc::new(Seen {
            blocks: (0..n).map(|_| AtomicU32::new(0)).collect(),
            busy: (0..threads).map(|_| AtomicBool::new(false)).collect(),
        });
        let inner = Arc::clone(&seen);
        pool.run(n as i64, order, threads, move |thread, blocks| {
            assert!(!inner.busy[thread].swap(true, Ordering::AcqRel));
            if order == Order::Increasing {
                assert_eq!(blocks.end - blocks.start, 1);
            }
            for block in blocks {
                inner.blocks[block as usize].fetch_add(1, Ordering::Relaxed);
            }
            inner.busy[thread].store(false, Ordering::Release);
        });
        let once = |b: &AtomicU32| b.load(Ordering::Relaxed) == 1;
        assert!(seen.blocks.iter().all(once), "{n} {order:?} {threads}");
    }

    #[test]
    fn every_block_runs_once() {
        let pool = Pool::new();
        for n in [0, 1, 2, 3, 10, 1000, 12345] {
            for threads in [1, 2, 3, 7] {
                check(&pool, n, Order::Chunks, threads);
                check(&pool, n, Order::Increasing, threads);
            }
        }
    }

    #[test]
    fn many_callers_share_the_threads() {
        let pool = Pool::new();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for n in 0..300 {
                        check(&pool, n % 23, Order::Chunks, 3);
                    }
                });
            }
        });
    }

    #[test]
    fn a_block_may_wait_for_smaller_ones() {
        let pool = Pool::new();
        for threads in [1, 2, 7] {
            let done = Arc::new(AtomicI64::new(0));
            let inner = Arc::clone(&done);
            pool.run(500, Order::Increasing, threads, move |_, blocks| {
                while inner.load(Ordering::Acquire) != blocks.start {
                    thread::yield_now();
                }
                inner.store(blocks.end, Ordering::Release);
            });
            assert_eq!(done.load(Ordering::Relaxed), 500);
        }
    }

    #[test]
    fn chunks_shrink_to_single_blocks() {
        let blocks = Blocks::new(1000, Order::Chunks, 4);
        let sizes: Vec<i64> = std::iter::from_fn(|| blocks.take())
            .map(|b| b.end - b.start)
            .collect();
        assert_eq!(sizes[0], 1000 / 16);
        assert!(sizes.is_sorted_by(|a, b| a >= b));
        assert!(sizes.ends_with(&[1; 16]));
        assert_eq!(sizes.iter().sum::<i64>(), 1000);
        let few = Blocks::new(5, Order::Chunks, 4);
        assert_eq!(few.take(), Some(0..1));
        let most = Blocks::new(i64::MAX, Order::Chunks, 4);
        assert_eq!(most.take().unwrap().end, i64::MAX / 16);
    }

    #[test]
    fn a_panic_in_a_block_reaches_the_caller_and_leaves_the_pool_whole() {
        let pool = Pool::new();
        for bad in 0..40 {
            let run = std::panic::AssertUnwindSafe(|| {
                pool.run(40, Order::Chunks, 3, move |_, blocks| {
                    assert!(!blocks.contains(&bad), "as the test wants");
                });
            });
            assert!(std::panic::catch_unwind(run).is_err());
        }
        check(&pool, 1000, Order::Chunks, 3);
    }
}
