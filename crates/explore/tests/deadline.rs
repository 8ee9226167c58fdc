//! Programs with huge spaces and slow candidates: enumeration and ranking end in time, for CPUs and
//! for GPUs.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use systola_driver::{Machine, Simd, load};
use systola_explore::model::{Cpu, Device, Gpu};
use systola_explore::problem::{Problem, short_sums};
use systola_explore::rank::Ranker;
use systola_explore::space::{Candidate, candidates_until};
use systola_rt::Deadline;

/// Two sums over two iterators each, beside two parallel ones: millions of linear schedules.
const TWO_SUMS: &str = include_str!("../../filetests/tests/programs/sobel.ure");

/// Fields in three dimensions that are swept: each candidate takes long to lower.
const WAVES: &str = "
stencil acoustic(K, N, M, T) {
  field u[K, N, M]: f32 fixed;
  field p[K, N, M]: f32 fixed;
  field v[K, N, M]: f32 fixed;
  input w[25]: f32;
  steps T;
  u = 2*u - p + v * sum(w * u over star 4);
  p = u;
}";

fn cpu() -> Machine {
    Machine::cpu(Simd::Avx512)
}

fn check(text: &str, sizes: &[(&str, i128)], machine: Machine) {
    let module = load(text).unwrap();
    let system = &module.systems[0];
    let sizes: BTreeMap<String, i128> = sizes.iter().map(|(n, v)| ((*n).to_string(), *v)).collect();
    let params: Vec<i128> = system.params.iter().map(|p| sizes[&p.name]).collect();
    let model = match machine.threads {
        None => Device::Cpu(Cpu::default()),
        Some(_) => Device::Gpu(Gpu::default()),
    };
    let problem = Problem {
        module: &module,
        system,
        fix: short_sums(system, &sizes),
        sizes,
        machine,
    };
    let budget = Duration::from_secs(1);
    let start = Instant::now();
    let found = candidates_until(&problem, &Deadline::after(budget));
    let all: Vec<(Candidate, bool)> = found.into_iter().map(|c| (c, false)).collect();
    let written = start.elapsed();
    let total = all.len();
    assert!(total > 0);
    let ranker = Ranker {
        problem: &problem,
        params: &params,
        model: &model,
        end: Instant::now() + budget / 2,
        deadline: Deadline::after(budget),
    };
    let ranking = ranker.rank(all);
    let late = Instant::now().saturating_duration_since(ranker.deadline.end());
    println!(
        "{}: {total} candidates in {written:?}, {} ranked, {} left, {late:?} late",
        system.name,
        ranking.ranked.len(),
        ranking.left
    );
    assert_eq!(ranking.panicked.len(), 0);
    assert_eq!(
        ranking.ranked.len() + ranking.refused.len() + ranking.left,
        total
    );
    // Far more than it takes on a busy machine, and far less than a candidate of these may take.
    assert!(late < Duration::from_secs(60), "{late:?}");
}

#[test]
fn millions_of_schedules_are_no_wait() {
    let sizes = [("N", 1000), ("M", 1000)];
    check(TWO_SUMS, &sizes, cpu());
    check(TWO_SUMS, &sizes, Machine::cuda());
}

#[test]
fn slow_candidates_are_cancelled() {
    let sizes = [("K", 64), ("N", 64), ("M", 64), ("T", 10)];
    check(WAVES, &sizes, cpu());
    check(WAVES, &sizes, Machine::cuda());
}
