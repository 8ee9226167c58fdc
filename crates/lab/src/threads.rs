//! Work on several threads at a time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Lowering recurses with the depth of expressions.
const STACK: usize = 256 << 20;

/// As many threads as the machine runs at once.
pub fn available() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Does all jobs, on this number of threads; their results keep the order of the jobs.
pub fn each<J: Sync, R: Send>(jobs: &[J], threads: usize, work: impl Fn(&J) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, R)>> = Mutex::default();
    let run = || {
        while let Some((at, job)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            jobs.get(at).map(|job| (at, job))
        } {
            let made = work(job);
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.push((at, made));
        }
    };
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..threads.clamp(1, jobs.len().max(1)))
            .filter_map(|_| {
                let builder = std::thread::Builder::new().stack_size(STACK);
                builder.spawn_scoped(scope, run).ok()
            })
            .collect();
        if started.is_empty() {
            run();
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, made)| made).collect()
}

/// Sets each element by its index, on all threads.
pub fn fill<T: Send>(values: &mut [T], set: impl Fn(usize, &mut T) + Sync) {
    let part_len = values.len().div_ceil(available()).max(1);
    std::thread::scope(|scope| {
        for (part, values) in values.chunks_mut(part_len).enumerate() {
            let set = &set;
            scope.spawn(move || {
                for (n, value) in values.iter_mut().enumerate() {
                    set(part * part_len + n, value);
                }
            });
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_their_jobs() {
        let jobs: Vec<usize> = (0..100).collect();
        for threads in [0, 1, 7] {
            let done = each(&jobs, threads, |n| n * n);
            assert!(done.into_iter().eq(jobs.iter().map(|n| n * n)), "{threads}");
        }
        assert!(each(&[] as &[usize], 3, |n| *n).is_empty());
    }

    #[test]
    fn elements_know_their_numbers() {
        let mut values = vec![0; 1001];
        fill(&mut values, |n, value| *value = n);
        assert!(values.into_iter().eq(0..1001));
    }
}
