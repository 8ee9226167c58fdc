//! The programs of `stencils/`: the fifteen stencils of the literature in f64 under every boundary
//! condition, one step and several.

use std::collections::BTreeMap;
use std::path::Path;

use systola_driver::{check_system, load};
use systola_ir::system::System;

use crate::reference::{BOUNDARIES, Boundary, Grid, least, random, word};
use crate::run::{agree, run};

type Offset = Vec<i64>;

struct Entry {
    file: &'static str,
    rank: usize,
    /// The number of neighbours.
    n_taps: usize,
    /// The shape of the weights that are given at run time.
    weights: &'static [usize],
    /// Whether an offset belongs to the neighbourhood.
    has: fn(&[i64]) -> bool,
}

fn distance(o: &[i64]) -> i64 {
    o.iter().map(|o| o.abs()).sum()
}

fn is_star(o: &[i64], radius: i64) -> bool {
    o.iter().filter(|o| **o != 0).count() <= 1 && distance(o) <= radius
}

fn is_box(o: &[i64], radius: i64) -> bool {
    o.iter().all(|o| o.abs() <= radius)
}

fn entries() -> Vec<Entry> {
    fn star<const R: i64>(o: &[i64]) -> bool {
        is_star(o, R)
    }
    fn cube<const R: i64>(o: &[i64]) -> bool {
        is_box(o, R)
    }
    let entry = |file, rank, n_taps, weights, has| Entry {
        file,
        rank,
        n_taps,
        weights,
        has,
    };
    vec![
        entry("2d5pt", 2, 5, &[5], star::<1>),
        entry("2d9pt", 2, 9, &[9], star::<2>),
        entry("2d13pt", 2, 13, &[13], star::<3>),
        entry("2d17pt", 2, 17, &[17], star::<4>),
        entry("2d21pt", 2, 21, &[21], star::<5>),
        entry("2ds25pt", 2, 25, &[25], star::<6>),
        entry("2d25pt", 2, 25, &[5, 5], cube::<2>),
        entry("2d64pt", 2, 64, &[64], |o| {
            is_box(o, 4) && o[0] != 0 && o[1] != 0
        }),
        entry("2d81pt", 2, 81, &[9, 9], cube::<4>),
        entry("2d121pt", 2, 121, &[11, 11], cube::<5>),
        entry("3d7pt", 3, 7, &[7], star::<1>),
        entry("3d13pt", 3, 13, &[13], star::<2>),
        entry("3d27pt", 3, 27, &[3, 3, 3], cube::<1>),
        entry("3d125pt", 3, 125, &[5, 5, 5], cube::<2>),
        entry("poisson", 3, 19, &[19], |o| {
            is_box(o, 1) && distance(o) <= 2
        }),
    ]
}

fn offsets(rank: usize) -> Vec<Offset> {
    let mut list: Vec<Offset> = vec![Vec::new()];
    for _ in 0..rank {
        list = list
            .iter()
            .flat_map(|c| (-6..=6).map(|o| [c.as_slice(), &[o]].concat()))
            .collect();
    }
    list
}

fn text(file: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../stencils");
    let path = root.join(format!("{file}.ure"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn check(entry: &Entry, edge: Boundary) {
    let text = text(entry.file)
        .replace("f32", "f64")
        .replace(" fixed;", &format!(" {};", word(edge)));
    let module = load(&text).unwrap_or_else(|e| panic!("{text}\n{e:#?}"));
    let w = random(entry.weights, 21);
    let mut given = w.data.iter();
    let taps: Vec<(Offset, f64)> = (offsets(entry.rank).into_iter())
        .filter(|o| (entry.has)(o))
        .map(|o| (o, *given.next().expect("a weight for each neighbour")))
        .collect();
    assert_eq!(taps.len(), entry.n_taps, "{}", entry.file);
    for (name, numbers) in [("once", &[1][..]), ("many", &[1, 2])] {
        let system = module.systems.iter().find(|s| s.name == name);
        let system = system.unwrap_or_else(|| panic!("{} has no {name}", entry.file));
        let wrong = check_system(system, &BTreeMap::new());
        assert!(wrong.is_empty(), "{system}\n{wrong:#?}");
        for steps in numbers {
            check_run(entry, system, edge, *steps, &taps, &w);
        }
    }
}

fn check_run(
    entry: &Entry,
    system: &System,
    edge: Boundary,
    steps: usize,
    taps: &[(Offset, f64)],
    w: &Grid,
) {
    let farthest = taps.iter().flat_map(|(o, _)| o).map(|o| o.abs()).max();
    let reach = farthest.unwrap_or(0) as usize;
    let least = match edge {
        Boundary::Interior => 2 * reach * steps + 1,
        _ => least(edge, reach).max(3),
    };
    let shape: Vec<usize> = (0..entry.rank).map(|n| least + [2, 0, 4][n]).collect();
    let grid = random(&shape, 22);
    let mut expect = grid.clone();
    for _ in 0..steps {
        expect = expect.sweep(taps, edge);
    }
    let names = if entry.rank == 2 {
        &["N", "M"][..]
    } else {
        &["K", "N", "M"]
    };
    let mut sizes: Vec<(&str, i128)> = names
        .iter()
        .zip(&shape)
        .map(|(n, s)| (*n, *s as i128))
        .collect();
    sizes.push(("T", steps as i128));
    let inputs = [("u", &grid), ("w", w)];
    let found = run(system, &sizes, &inputs);
    let what = format!("{} {} {edge:?} {shape:?}", entry.file, system.name);
    agree(&expect, &found["u'"], &what);
}

#[test]
fn stars_and_boxes_in_the_plane() {
    for entry in entries().iter().filter(|e| e.rank == 2) {
        for edge in BOUNDARIES {
            check(entry, edge);
        }
    }
}

#[test]
fn stars_and_boxes_in_space() {
    for entry in entries().iter().filter(|e| e.rank == 3) {
        for edge in BOUNDARIES {
            check(entry, edge);
        }
    }
}

#[test]
fn programs_are_short() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../stencils");
    let mut n_programs = 0;
    for file in std::fs::read_dir(root).expect("a folder of programs") {
        let path = file.expect("a file").path();
        if path.extension().is_none_or(|e| e != "ure") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("text");
        let module = load(&text).unwrap_or_else(|e| panic!("{}\n{e:#?}", path.display()));
        assert!(!module.systems.is_empty());
        for system in &module.systems {
            let lines = text[system.span.range()].lines().count();
            assert!(
                lines <= 12,
                "{}: {} has {lines} lines",
                path.display(),
                system.name
            );
            let wrong = check_system(system, &BTreeMap::new());
            assert!(wrong.is_empty(), "{}\n{wrong:#?}", path.display());
            n_programs += 1;
        }
    }
    assert!(n_programs >= 34, "only {n_programs} programs");
}
