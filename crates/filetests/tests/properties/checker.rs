//! Many draws, examined on all CPUs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use systola_driver::{check_system, load};
use systola_filetests::cpus::{cpu_time, on_all_cpus};
use systola_filetests::draw::{Drawn, draw};
use systola_ir::diag::Kind;

use crate::case::{Case, located, sizes};
use crate::tally::{REQUIRED, Tally};

/// Systems, and mappings of each.
const SYSTEMS: u64 = 400;
const MAPPINGS: usize = 5;

#[test]
fn the_checker_agrees_with_every_point_tried_and_arrays_with_their_systems() {
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let start = Instant::now();
    let seeds = match (number("SYSTOLA_SEED"), number("SYSTOLA_CASES")) {
        (Some(seed), cases) => seed..seed + cases.unwrap_or(1),
        (None, cases) => 0..cases.unwrap_or(SYSTEMS),
    };
    let complete = seeds.end >= SYSTEMS && seeds.start == 0;
    let seeds: Vec<u64> = seeds.collect();
    let tallies = on_all_cpus(&seeds, |seed| {
        let mut tally = Tally::default();
        examine(*seed, &draw(*seed, MAPPINGS), &mut tally);
        tally
    });
    let mut tally = Tally::default();
    tallies.into_iter().for_each(|one| tally.add(one));
    println!("{}", tally.table());
    tally
        .times
        .sort_by_key(|(time, _)| std::cmp::Reverse(*time));
    println!("{:.1?}; slowest:", start.elapsed());
    for (time, what) in tally.times.iter().take(8) {
        println!("{time:>9.1?}  {what}");
    }
    for failure in &tally.failures {
        println!("{}", failure.lines().next().unwrap_or_default());
    }
    for failure in tally.failures.iter().take(5) {
        println!("\n{failure}");
    }
    assert!(
        tally.failures.is_empty(),
        "{} draws failed",
        tally.failures.len()
    );
    if complete {
        for (what, least) in REQUIRED {
            let seen = tally.get(what);
            assert!(seen >= *least, "{what}: seen {seen} times, {least} wanted");
        }
        let all = tally.get("mappings");
        assert!(all >= 1500, "{all} mappings");
        let legal =
            tally.get("verdict: legal for all sizes") + tally.get("verdict: legal at given sizes");
        assert!(legal * 10 >= all * 3, "{legal} legal of {all}");
        let refused = tally.get("verdict: refused");
        assert!(refused * 10 >= all * 3, "{refused} refused of {all}");
    }
}

fn examine(seed: u64, drawn: &Drawn, tally: &mut Tally) {
    let text = drawn.text();
    let module = match load(&text) {
        Ok(module) => module,
        Err(errors) => {
            let list: Vec<String> = errors.iter().map(located(&text)).collect();
            tally.failures.push(format!(
                "seed {seed} does not parse: {}\n{text}",
                list.join("; ")
            ));
            return;
        }
    };
    tally.count("systems");
    let system = &module.systems[0];
    let sizes = sizes(drawn);
    let errors = check_system(system, &BTreeMap::new());
    if let Some(error) = errors.iter().find(|e| e.kind() == Kind::Mistake) {
        let system = &drawn.system;
        tally.failures.push(format!(
            "seed {seed}: the system is called wrong: {error}\n{system}"
        ));
        return;
    }
    for error in &errors {
        tally.count(format!("system limited: {}", error.code.id));
    }
    for (n, mapping) in module.mappings.iter().enumerate() {
        tally.count("mappings");
        let traits: BTreeSet<&str> = drawn
            .traits
            .union(&drawn.mappings[n].traits)
            .copied()
            .collect();
        for one in &traits {
            tally.count(*one);
        }
        let case = Case {
            seed,
            module: &module,
            system,
            mapping,
            sizes: &sizes,
            traits: &traits,
            regroups: drawn.regroups_floats,
        };
        let start = cpu_time();
        if let Err(failure) = case.examine(tally) {
            tally.failures.push(format!(
                "seed {seed}, mapping {n}: {failure}\n{}",
                drawn.text_with(n)
            ));
        }
        let time = cpu_time() - start;
        tally
            .times
            .push((time, format!("seed {seed}, mapping {n}")));
    }
}
