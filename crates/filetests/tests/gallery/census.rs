//! The census of the model against the kernel interpreter, for every mapping of the gallery.
//!
//! Without sampling, both counts are equal. Only lookups in tables differ: their addresses depend
//! on values, so the census does not know the memory they touch.

use std::collections::BTreeMap;

use systola_driver::{Fix, lower};
use systola_explore::model::code::Lanes;
use systola_explore::model::count::{Census, Sampling};
use systola_explore::model::tally::Tally;
use systola_filetests::gallery::{self, Algorithm};
use systola_filetests::reference;
use systola_interp::kernel::{Options, run_kernel_program};
use systola_ir::kernel::census::{Counts, Event};

use crate::kernels::{AT_SOME_SIZES, machines};
use crate::support::{ordered, parse, seeded, sizes, system, to_interp};

#[test]
fn the_census_counts_what_the_interpreter_counts() {
    let algorithms: BTreeMap<String, Algorithm> = gallery::algorithms()
        .into_iter()
        .map(|a| (a.file.clone(), a))
        .collect();
    let (mut runs, mut numbers, mut with_lookups) = (0, 0, 0);
    let mut failures = Vec::new();
    let machines = machines();
    let machines = [
        (&machines[0], Lanes::Vectors { bytes: 64 }),
        (&machines[3], Lanes::Threads),
    ];
    for file in gallery::files() {
        let module = parse(&file);
        let algorithm = algorithms.get(&file.path);
        for mapping in &module.mappings {
            let system = system(&module, &mapping.system);
            let reference = reference::find(&file.path, &system.name).expect("a reference");
            let Some(params) = sizes(&reference, system, algorithm).pop_last() else {
                continue;
            };
            let values = ordered(system, &params);
            let inputs = to_interp(system, &seeded(&reference, &params));
            let by_name: BTreeMap<String, i128> = params
                .0
                .iter()
                .map(|(k, v)| (k.clone(), i128::from(*v)))
                .collect();
            for (machine, lanes) in machines {
                let context = format!("{}: {} at {params:?}, {lanes:?}", file.path, mapping.name);
                let lowered = lower(&module, mapping, &by_name, &Fix::Nothing, machine);
                let Ok(lowered) = lowered else {
                    let name = (file.path.as_str(), mapping.name.as_str());
                    assert!(AT_SOME_SIZES.contains(&name), "{context}");
                    continue;
                };
                let program = &lowered.program;
                let census = Census::take(program, &values, lanes, Sampling::Everything).unwrap();
                let run = run_kernel_program(program, &values, &inputs, &Options::default());
                let run = run.unwrap_or_else(|error| panic!("{context}: {error}"));
                runs += 1;
                with_lookups += usize::from(run.counts[Event::Lookups] > 0);
                let kernels = census.kernels.iter().zip(&run.kernels);
                for (n, (tally, counts)) in kernels.enumerate() {
                    let differing = differences(&tally.tally, counts);
                    numbers += Event::ALL.len();
                    if !differing.is_empty() {
                        failures.push(format!("{context}, kernel {n}: {}", differing.join(", ")));
                    }
                }
            }
        }
    }
    println!("{runs} runs, {with_lookups} of them with lookups, {numbers} numbers");
    assert!(
        failures.is_empty(),
        "{} failures\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert!(with_lookups * 4 < runs);
}

fn differences(tally: &Tally, counts: &Counts) -> Vec<String> {
    let differs = |event: &&Event| match **event {
        Event::GlobalSectors
        | Event::GlobalBytes
        | Event::SharedWavefronts
        | Event::BankConflicts
            if counts[Event::Lookups] > 0 =>
        {
            tally[**event] > counts[**event] as f64
        }
        event => tally[event] != counts[event] as f64,
    };
    let show = |event: &Event| format!("{event:?} {} for {}", tally[*event], counts[*event]);
    Event::ALL.iter().filter(differs).map(show).collect()
}
