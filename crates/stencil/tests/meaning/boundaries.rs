//! Every boundary condition, in one to three dimensions, with one step and several, on small grids
//! of odd sizes.

use std::fmt::Write;

use crate::reference::{BOUNDARIES, Boundary, least, random, word};
use crate::run::{agree, run, system};

/// Offsets with a different weight for each, of sum 1.
pub fn weighted(offsets: Vec<Vec<i64>>) -> Vec<(Vec<i64>, f64)> {
    let n = offsets.len() as f64;
    let total: f64 = (0..offsets.len()).map(|k| 1.0 + k as f64 / n).sum();
    let weight = |k: usize| {
        let sign = if k % 3 == 1 { -1.0 } else { 1.0 };
        sign * (1.0 + k as f64 / n) / total
    };
    offsets
        .into_iter()
        .enumerate()
        .map(|(k, o)| (o, weight(k)))
        .collect()
}

/// The text of a stencil with these weights as literals.
pub fn text(rank: usize, edge: Boundary, steps: Option<&str>, taps: &[(Vec<i64>, f64)]) -> String {
    let sizes = ["A", "B", "C"][..rank].join(", ");
    let mut text = format!(
        "stencil s({sizes}, T) where T >= 1 {{\n  field u[{sizes}]: f64 {};\n",
        word(edge)
    );
    if let Some(steps) = steps {
        let _ = writeln!(text, "  steps {steps};");
    }
    let terms: Vec<String> = (taps.iter())
        .map(|(offset, weight)| {
            let offset: Vec<String> = offset.iter().map(ToString::to_string).collect();
            format!("{weight:?}*u[{}]", offset.join(", "))
        })
        .collect();
    let _ = write!(text, "  u = {};\n}}\n", terms.join(" + "));
    text
}

/// The reach of the taps along an axis.
pub fn reach(taps: &[(Vec<i64>, f64)], axis: usize) -> (usize, usize) {
    let at = || taps.iter().map(|(o, _)| o[axis]);
    let before = at().min().unwrap_or(0).min(0).unsigned_abs() as usize;
    let behind = at().max().unwrap_or(0).max(0) as usize;
    (before, behind)
}

/// Runs a stencil as a system and by the reference.
pub fn check(
    rank: usize,
    edge: Boundary,
    steps: usize,
    given: Option<&str>,
    taps: &[(Vec<i64>, f64)],
    shape: &[usize],
) {
    let text = text(rank, edge, given, taps);
    let system = system(&text);
    let grid = random(shape, 1 + shape.iter().sum::<usize>() as u64);
    let mut expect = grid.clone();
    for _ in 0..steps {
        expect = expect.sweep(taps, edge);
    }
    let names = ["A", "B", "C"];
    let mut sizes: Vec<(&str, i128)> = (0..rank).map(|n| (names[n], shape[n] as i128)).collect();
    sizes.push(("T", steps as i128));
    let found = run(&system, &sizes, &[("u", &grid)]);
    agree(
        &expect,
        &found["u'"],
        &format!("{text}{system}{shape:?}, {steps} steps"),
    );
}

/// The smallest shape that a stencil allows, with additional cells.
pub fn shape(
    edge: Boundary,
    steps: usize,
    taps: &[(Vec<i64>, f64)],
    rank: usize,
    more: usize,
) -> Vec<usize> {
    (0..rank)
        .map(|axis| {
            let (before, behind) = reach(taps, axis);
            let least = match edge {
                Boundary::Interior => (before + behind) * steps + 1,
                _ => least(edge, before.max(behind)),
            };
            least + (more + axis) % (more + 2)
        })
        .collect()
}

fn star(rank: usize, radius: i64) -> Vec<Vec<i64>> {
    let mut list = vec![vec![0; rank]];
    for axis in 0..rank {
        for o in (-radius..=radius).filter(|o| *o != 0) {
            let mut offset = vec![0; rank];
            offset[axis] = o;
            list.push(offset);
        }
    }
    list
}

fn cube(rank: usize, radius: i64) -> Vec<Vec<i64>> {
    let mut list: Vec<Vec<i64>> = vec![Vec::new()];
    for _ in 0..rank {
        list = list
            .iter()
            .flat_map(|c| (-radius..=radius).map(|o| [c.as_slice(), &[o]].concat()))
            .collect();
    }
    list
}

fn neighbourhoods(rank: usize) -> Vec<Vec<Vec<i64>>> {
    // To one side only, with gaps, and without the cell itself.
    let mut odd = vec![vec![-2; rank], vec![1; rank]];
    odd[1][0] = 0;
    let mut below = vec![vec![0; rank], vec![0; rank]];
    below[1][0] = 2;
    below[0][rank - 1] = 1;
    let mut list = vec![star(rank, 1), cube(rank, 1), star(rank, 2), odd, below];
    if rank < 3 {
        list.push(cube(rank, 2));
    }
    list
}

fn all(rank: usize, edges: &[Boundary]) {
    for edge in edges {
        for offsets in neighbourhoods(rank) {
            let taps = weighted(offsets);
            for steps in [1, 2, 3] {
                for more in [0, 1, 3] {
                    let shape = shape(*edge, steps, &taps, rank, more);
                    let number = steps.to_string();
                    let given = match (steps, more) {
                        (1, 0) => None,
                        (_, 1) => Some(number.as_str()),
                        _ => Some("T"),
                    };
                    check(rank, *edge, steps, given, &taps, &shape);
                }
            }
        }
    }
}

#[test]
fn one_dimension() {
    all(1, &BOUNDARIES);
}

#[test]
fn two_dimensions() {
    all(2, &BOUNDARIES);
}

#[test]
fn three_dimensions() {
    all(3, &BOUNDARIES[..4]);
}

#[test]
fn three_dimensions_folded_back() {
    all(3, &BOUNDARIES[4..]);
}
