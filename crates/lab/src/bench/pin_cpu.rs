//! One thread pinned to one CPU.
//!
//! On a shared machine one CPU may have a busy neighbour and another not. Measurements that are
//! compared must run on the same CPU: ours, the limit and the baselines, which inherit the affinity
//! of the thread that starts them.

use std::path::Path;

use super::limits::Rates;
use super::problem::{Scale, Work};
use super::rate_probe::RateProbe;

/// The maximum number of CPUs that are tried.
const MOST: usize = 16;
/// Measurements of each CPU, round-robin.
const ROUNDS: usize = 3;

/// The calling thread stays on its CPU until this is dropped.
#[derive(Debug)]
pub struct PinnedCpu {
    #[cfg(target_os = "linux")]
    before: Option<rustix::thread::CpuSet>,
}

#[cfg(target_os = "linux")]
impl PinnedCpu {
    /// Pins the thread to the CPU that is currently the fastest for this work. `program` is
    /// `bench/limits.c`, compiled.
    pub fn take(program: &Path, work: Work, scale: Scale) -> Result<PinnedCpu, String> {
        use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
        let Ok(before) = sched_getaffinity(None) else {
            return Ok(PinnedCpu { before: None });
        };
        let pinned = PinnedCpu {
            before: Some(before),
        };
        let only = |cpu| {
            let mut one = CpuSet::new();
            one.set(cpu);
            sched_setaffinity(None, &one)
        };
        let mut found = Vec::new();
        for cpu in (0..CpuSet::MAX_CPU).filter(|cpu| before.is_set(*cpu)) {
            if found.len() < MOST && only(cpu).is_ok() {
                found.push((cpu, RateProbe::start(program, 1, scale.copy_mib())?));
            }
        }
        for _ in 0..ROUNDS {
            for (_, probe) in &mut found {
                probe.take()?;
            }
        }
        let rates = found.iter().map(|(cpu, probe)| (*cpu, probe.median()));
        if let Some(cpu) = fastest_cpu(rates, work) {
            // If the CPU went offline meanwhile, the thread stays on another of them.
            let _ = only(cpu);
        }
        Ok(pinned)
    }
}

#[cfg(not(target_os = "linux"))]
impl PinnedCpu {
    /// This system cannot pin a thread.
    pub fn take(_program: &Path, _work: Work, _scale: Scale) -> Result<PinnedCpu, String> {
        Ok(PinnedCpu {})
    }
}

#[cfg(target_os = "linux")]
impl Drop for PinnedCpu {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = rustix::thread::sched_setaffinity(None, before);
        }
    }
}

/// The CPU that reaches the limit of the work in the shortest time.
fn fastest_cpu(cpus: impl Iterator<Item = (usize, Option<Rates>)>, work: Work) -> Option<usize> {
    let seconds = cpus.filter_map(|(cpu, rates)| Some((cpu, rates?.seconds(work))));
    seconds
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(cpu, _)| cpu)
}

#[cfg(test)]
mod tests {
    use super::super::limits;
    use super::super::tools::Scratch;
    use super::*;

    #[test]
    fn the_cpu_is_chosen_by_what_the_work_needs() {
        let rates = |fma_flops, copy_bytes| {
            Some(Rates {
                threads: 1,
                fma_flops,
                copy_bytes,
            })
        };
        let found = || [(3, rates(100e9, 10e9)), (5, None), (7, rates(50e9, 20e9))].into_iter();
        let work = |operations, bytes| Work { operations, bytes };
        assert_eq!(fastest_cpu(found(), work(1e9, 1e9)), Some(7));
        assert_eq!(fastest_cpu(found(), work(1e12, 1e9)), Some(3));
        assert_eq!(fastest_cpu(std::iter::empty(), work(1.0, 1.0)), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_is_pinned_until_it_is_not() {
        use rustix::thread::sched_getaffinity;
        let scratch = Scratch::new().ok().unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let program = limits::program(&root, &scratch).ok().unwrap();
        let before = sched_getaffinity(None).unwrap();
        let pinned = PinnedCpu::take(
            &program,
            Work {
                operations: 1e9,
                bytes: 1e6,
            },
            Scale::Small,
        )
        .unwrap();
        assert_eq!(sched_getaffinity(None).unwrap().count(), 1);
        drop(pinned);
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }
}
