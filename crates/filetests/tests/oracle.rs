//! A fixed part of the random-program oracle: the corpus, and the first draws, on every target of
//! this machine.

use std::collections::BTreeMap;

use systola_filetests::cpus::on_all_cpus;
use systola_filetests::draw::{draw_any, draw_scan};
use systola_filetests::oracle::campaign::try_seeds;
use systola_filetests::oracle::{Device, Runner, Subject, corpus, runners, try_all};

/// Draws, in batches whose kernels are compiled together.
const BATCHES: u64 = 2;
const BATCH: u64 = 12;

/// Running sums whose kernels are compiled together.
const SCANS: u64 = 12;

/// The required traits of the draws.
const REQUIRED: &[(&str, usize)] = &[
    ("division in a read", 20),
    ("division in a write", 20),
    ("guard with a division", 5),
    ("two writes", 20),
    ("table indexed by a value", 5),
    ("table given at run time", 5),
    ("cast", 10),
    ("shift", 5),
    ("unary operator", 10),
    ("rounded float", 5),
    ("several sums", 5),
    ("batch", 10),
    ("stencil", 30),
    ("stencil of many sweeps", 15),
    ("stencil of several fields", 3),
    ("chain of stencils", 3),
    ("program", 15),
    ("u8", 20),
    ("i8", 20),
    ("i16", 20),
];

fn without_open_cl() -> Vec<Runner> {
    let mut list = runners(&[]).expect("runners");
    list.retain(|runner| !matches!(runner, Runner::On(Device::OpenCl(_))));
    list
}

#[test]
fn the_corpus_is_right_on_every_target() {
    let entries = corpus::read_all(&corpus::folder()).expect("the corpus is readable");
    assert!(!entries.is_empty());
    let subjects: Vec<Subject> = entries
        .iter()
        .map(|entry| {
            let subject = entry.subject();
            subject.unwrap_or_else(|e| panic!("{}: {e:?}", entry.name))
        })
        .collect();
    let outcome = try_all(&subjects, &without_open_cl(), &|_, _, _| {});
    for find in &outcome.finds {
        println!("{}: {find}", subjects[find.subject].name);
    }
    assert!(outcome.finds.is_empty());
}

#[test]
fn random_programs_compute_what_their_equations_say() {
    let runners = without_open_cl();
    let batches: Vec<u64> = (0..BATCHES).collect();
    let outcomes = on_all_cpus(&batches, |batch| {
        let seeds: Vec<u64> = (batch * BATCH..(batch + 1) * BATCH).collect();
        try_seeds(&seeds, &runners, &|_, _, _| {})
    });
    let mut cases: BTreeMap<String, u64> = BTreeMap::new();
    let mut finds = 0;
    for (from, outcome) in outcomes {
        for (target, n) in outcome.cases {
            *cases.entry(target).or_default() += n;
        }
        for find in outcome.finds {
            println!("seed {}: {find}", from[find.subject]);
            finds += 1;
        }
    }
    println!("{cases:?}");
    assert_eq!(finds, 0);
    for runner in &runners {
        let seen = cases.get(&runner.to_string()).copied().unwrap_or(0);
        assert!(seen >= 40, "{seen} cases on {runner}");
    }
}

/// The number of running sums to draw; `SYSTOLA_CASES=n` draws this many.
fn scans() -> u64 {
    let given = std::env::var("SYSTOLA_CASES").ok();
    given.and_then(|n| n.parse().ok()).unwrap_or(2 * SCANS)
}

/// Running sums that look back, on these runners; the kernels of a batch are compiled together.
fn running_sums(seeds: std::ops::Range<u64>, runners: &[Runner]) -> BTreeMap<String, u64> {
    let batches: Vec<u64> = seeds.clone().step_by(SCANS as usize).collect();
    let outcomes = on_all_cpus(&batches, |from| {
        let subjects: Vec<Subject> = (*from..seeds.end.min(from + SCANS))
            .map(|seed| {
                let drawn = draw_scan(seed);
                let name = format!("scan {seed}");
                Subject::new(&name, &drawn.text, &drawn.sizes, drawn.close, seed)
                    .unwrap_or_else(|e| panic!("{name}: {e:?}\n{}", drawn.text))
            })
            .collect();
        let outcome = try_all(&subjects, runners, &|_, _, _| {});
        for find in &outcome.finds {
            let subject = &subjects[find.subject];
            println!("{}: {find}\n{}", subject.name, subject.text);
        }
        outcome
    });
    let mut cases: BTreeMap<String, u64> = BTreeMap::new();
    let mut finds = 0;
    for outcome in outcomes {
        for (target, n) in outcome.cases {
            *cases.entry(target).or_default() += n;
        }
        finds += outcome.finds.len();
    }
    println!("{cases:?}");
    assert_eq!(finds, 0);
    cases
}

#[test]
fn running_sums_across_blocks_are_right_on_every_target() {
    let runners = without_open_cl();
    let cases = running_sums(0..scans(), &runners);
    for runner in &runners {
        let seen = cases.get(&runner.to_string()).copied().unwrap_or(0);
        assert!(seen >= 30, "{seen} cases on {runner}");
    }
}

#[test]
fn running_sums_across_blocks_on_opencl_devices() {
    let mut list = runners(&[]).expect("runners");
    list.retain(|runner| matches!(runner, Runner::On(Device::OpenCl(_))));
    if list.is_empty() {
        println!("skipped: SYSTOLA_OPENCL_DEVICES says how many devices there are");
        return;
    }
    let cases = running_sums(0..scans(), &list);
    for runner in &list {
        let seen = cases.get(&runner.to_string()).copied().unwrap_or(0);
        assert!(seen >= 5, "{seen} cases on {runner}");
    }
}

/// Where `SYSTOLA_OPENCL_DEVICES` promises devices, as in `cargo xtask test`.
#[test]
fn random_programs_on_opencl_devices() {
    let mut list = runners(&[]).expect("runners");
    list.retain(|runner| matches!(runner, Runner::On(Device::OpenCl(_))));
    if list.is_empty() {
        println!("skipped: SYSTOLA_OPENCL_DEVICES says how many devices there are");
        return;
    }
    let seeds: Vec<u64> = (0..24).collect();
    let (from, outcome) = try_seeds(&seeds, &list, &|_, _, _| {});
    for find in &outcome.finds {
        println!("seed {}: {find}", from[find.subject]);
    }
    assert!(outcome.finds.is_empty());
    for runner in &list {
        let seen = outcome.cases.get(&runner.to_string()).copied();
        assert!(seen.unwrap_or(0) >= 5, "{seen:?} cases on {runner}");
    }
}

#[test]
fn draws_have_everything() {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 0..400 {
        for one in draw_any(seed, 1).traits {
            *seen.entry(one).or_default() += 1;
        }
    }
    for (what, least) in REQUIRED {
        let n = seen.get(what).copied().unwrap_or(0);
        assert!(n >= *least, "{what}: drawn {n} times, {least} wanted");
    }
}
