//! The files as programs: they parse, read the expected elements, and compute the expected results.

use std::collections::{BTreeMap, BTreeSet};

use systola_filetests::gallery::{self, Algorithm, Coefficient};
use systola_filetests::reference;
use systola_filetests::tensor::Params;
use systola_front::text::parse_module;
use systola_interp::run_system;
use systola_ir::mapping::{DirectiveKind, PlaceLevel, TimeLevel};

use crate::support::{
    algorithms, assert_close, distances, dot, eval, from_interp, mapping, ordered, parse, place,
    points, seeded, sizes, system, to_interp,
};

#[test]
fn every_file_parses_and_prints_itself() {
    for file in gallery::files() {
        let module = parse(&file);
        let printed = module.to_string();
        let again = parse_module(&printed).unwrap_or_else(|e| {
            panic!(
                "{}: printed, it does not parse: {e:?}\n{printed}",
                file.path
            )
        });
        assert_eq!(again.to_string(), printed, "{}", file.path);
        assert!(
            !module.systems.is_empty() && !module.mappings.is_empty(),
            "{}",
            file.path
        );
    }
}

#[test]
fn every_design_is_a_mapping_under_its_name() {
    let normal = |text: &str| {
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        words.join(" ")
    };
    for (algorithm, file, module) in algorithms() {
        assert_eq!(file.id(), Some(algorithm.id.as_str()), "{}", file.path);
        let names: Vec<&str> = module.mappings.iter().map(|m| m.name.as_str()).collect();
        let stated: Vec<&str> = algorithm
            .designs
            .iter()
            .map(|d| d.mapping.as_str())
            .collect();
        assert_eq!(names, stated, "{}", file.path);
        for design in &algorithm.designs {
            let comment = file.comment_above(&design.mapping);
            assert_eq!(
                comment.first(),
                Some(&design.name.as_str()),
                "{}",
                file.path
            );
            let text = normal(&comment.join(" "));
            assert!(
                text.contains(&normal(&design.note)),
                "{}: {}",
                file.path,
                design.note
            );
        }
    }
}

#[test]
fn every_listed_file_has_an_algorithm() {
    let listed: BTreeSet<String> = gallery::algorithms().into_iter().map(|a| a.id).collect();
    let found: Vec<String> = gallery::files()
        .iter()
        .filter_map(|f| f.id().map(str::to_string))
        .collect();
    assert_eq!(found.len(), listed.len());
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), listed);
}

#[test]
fn mappings_are_the_matrices_of_their_designs() {
    for (algorithm, file, module) in algorithms() {
        let system = system(&module, &algorithm.system);
        let dims: Vec<String> = system.dims.iter().map(|d| d.name.clone()).collect();
        assert_eq!(dims, algorithm.dims, "{}", file.path);
        for design in &algorithm.designs {
            let mapping = mapping(&module, &design.mapping);
            assert_eq!(mapping.system, algorithm.system);
            let (mut lane, mut time, mut broadcast) = (Vec::new(), Vec::new(), Vec::new());
            for directive in &mapping.directives {
                match &directive.kind {
                    DirectiveKind::Place {
                        level: PlaceLevel::Lane,
                        forms,
                    } => lane = forms.clone(),
                    DirectiveKind::Time {
                        level: TimeLevel::Step,
                        forms,
                    } => time = forms.clone(),
                    DirectiveKind::Broadcast { var } => broadcast.push(var.text.clone()),
                    other => panic!("{}: {other:?}", file.path),
                }
            }
            assert_eq!(
                broadcast, design.broadcast,
                "{}: {}",
                file.path, design.name
            );
            for checked in &design.checked {
                for z in points(system, &checked.params) {
                    let params = checked
                        .params
                        .0
                        .iter()
                        .map(|(n, v)| (n.clone(), i128::from(*v)));
                    let names = dims
                        .iter()
                        .cloned()
                        .zip(z.iter().copied())
                        .chain(params)
                        .collect();
                    let lane: Vec<i128> = lane.iter().map(|f| eval(f, &names)).collect();
                    let time: Vec<i128> = time.iter().map(|f| eval(f, &names)).collect();
                    assert_eq!(lane, place(design, &checked.params, &z), "{}", design.name);
                    assert_eq!(
                        time,
                        [dot(&design.s, &checked.params, &z)],
                        "{}",
                        design.name
                    );
                }
            }
        }
    }
}

/// `designs.json` fits the domains of the files: counted point by point, without the checker.
#[test]
fn points_pes_and_steps_are_as_stated() {
    for (algorithm, file, module) in algorithms() {
        let system = system(&module, &algorithm.system);
        for design in &algorithm.designs {
            for checked in &design.checked {
                let context = format!("{}: {} at {:?}", file.path, design.name, checked.params);
                let points = points(system, &checked.params);
                let time = |z: &Vec<i128>| dot(&design.s, &checked.params, z);
                let pes: BTreeSet<_> = points
                    .iter()
                    .map(|z| place(design, &checked.params, z))
                    .collect();
                let slots: BTreeSet<_> = points
                    .iter()
                    .map(|z| (place(design, &checked.params, z), time(z)))
                    .collect();
                let first = points.iter().map(time).min().expect("points");
                let last = points.iter().map(time).max().expect("points");
                assert_eq!(points.len(), checked.points, "{context}: points");
                assert_eq!(
                    slots.len(),
                    checked.points,
                    "{context}: two points in one slot"
                );
                assert_eq!(pes.len(), checked.pes, "{context}: PEs");
                assert_eq!(last - first + 1, checked.steps as i128, "{context}: steps");
            }
        }
    }
}

#[test]
fn dependences_are_as_stated() {
    // Affine in the parameters: equal at these sizes means equal.
    let sizes = [[2, 3, 5, 7], [11, 4, 9, 6], [8, 13, 10, 3]];
    for (algorithm, file, module) in algorithms() {
        let system = system(&module, &algorithm.system);
        for values in sizes {
            let params = Params(system.param_names().into_iter().zip(values).collect());
            let at = |e: &Vec<Coefficient>| e.iter().map(|c| c.eval(&params).into()).collect();
            let stated = algorithm.dependences.iter();
            let stated: BTreeMap<String, BTreeSet<Vec<i128>>> = stated
                .map(|(var, list)| (var.clone(), list.iter().map(at).collect()))
                .collect();
            assert_eq!(
                distances(system, &params),
                stated,
                "{} at {params:?}",
                file.path
            );
        }
    }
}

/// All vectors of n coordinates in -reach..=reach.
fn cube(n: usize, reach: i128) -> Vec<Vec<i128>> {
    (0..n).fold(vec![Vec::new()], |vectors, _| {
        let extend = |v: Vec<i128>| (-reach..=reach).map(move |x| [v.as_slice(), &[x]].concat());
        vectors.into_iter().flat_map(extend).collect()
    })
}

fn product(a: &[i128], b: &[i128]) -> i128 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn small_schedules_are_counted_as_stated() {
    let mut n_oracles = 0;
    for (algorithm, file, module) in algorithms() {
        let Some(oracle) = &algorithm.oracle else {
            continue;
        };
        n_oracles += 1;
        let system = system(&module, &algorithm.system);
        let n = system.dims.len();
        let dependences: Vec<Vec<i128>> = distances(system, &oracle.params)
            .into_values()
            .flatten()
            .collect();
        let causal = |s: &Vec<i128>| dependences.iter().all(|e| product(s, e) >= 1);
        let schedules: Vec<Vec<i128>> = cube(n, 3).into_iter().filter(causal).collect();
        assert_eq!(
            schedules.len(),
            oracle.schedules,
            "{}: schedules",
            file.path
        );

        // Of d and -d one is counted: the one whose first coordinate other than 0 is positive.
        let projections: Vec<Vec<i128>> = cube(n, 1)
            .into_iter()
            .filter(|d| d.iter().find(|x| **x != 0).is_some_and(|x| *x > 0))
            .collect();
        let pairs = schedules
            .iter()
            .map(|s| projections.iter().filter(|d| product(s, d) != 0).count());
        assert_eq!(pairs.sum::<usize>(), oracle.pairs, "{}: pairs", file.path);

        let points = points(system, &oracle.params);
        let makespan = |s: &Vec<i128>| {
            let times: Vec<i128> = points.iter().map(|z| product(s, z)).collect();
            times.iter().max().expect("points") - times.iter().min().expect("points") + 1
        };
        let shortest = schedules.iter().map(makespan).min();
        assert_eq!(
            shortest,
            Some(oracle.min_makespan.into()),
            "{}: makespan",
            file.path
        );
        let argmin = oracle.argmin.iter().map(|x| i128::from(*x)).collect();
        assert_eq!(
            makespan(&argmin),
            oracle.min_makespan.into(),
            "{}: argmin",
            file.path
        );
    }
    assert_eq!(n_oracles, 44);
}

#[test]
fn every_system_has_a_reference() {
    for file in gallery::files() {
        for system in &parse(&file).systems {
            let found = reference::find(&file.path, &system.name);
            assert!(found.is_some(), "{}: {}", file.path, system.name);
        }
    }
}

#[test]
fn programs_compute_their_references() {
    let algorithms: BTreeMap<String, Algorithm> = gallery::algorithms()
        .into_iter()
        .map(|a| (a.file.clone(), a))
        .collect();
    for file in gallery::files() {
        let module = parse(&file);
        for system in &module.systems {
            let reference = reference::find(&file.path, &system.name).expect("a reference");
            for params in sizes(&reference, system, algorithms.get(&file.path)) {
                let context = format!("{}: {} at {params:?}", file.path, system.name);
                let inputs = seeded(&reference, &params);
                let want = (reference.outputs)(&params, &inputs);
                let got = run_system(
                    system,
                    &ordered(system, &params),
                    &to_interp(system, &inputs),
                )
                .unwrap_or_else(|e| panic!("{context}: {e}\n{:?}", e.notes));
                assert_close(&from_interp(&got), &want, reference.tolerance, &context);
            }
        }
    }
}
