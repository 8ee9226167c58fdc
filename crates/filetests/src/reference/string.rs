//! Pairs of strings.

use super::{EXACT, Reference};
use crate::tensor::{Arrays, Params, Rng, Tensor};

const SIZES: &[&[i64]] = &[&[1, 1], &[1, 5], &[6, 1], &[7, 7], &[9, 4]];

pub fn references() -> Vec<Reference> {
    let strings = |file, system, outputs| Reference {
        file,
        system,
        sizes: SIZES,
        inputs: dna,
        outputs,
        tolerance: EXACT,
    };
    let smith_waterman = |system| Reference {
        file: "string/smith_waterman_batch.ure",
        system,
        sizes: &[
            &[1, 1, 1, 1],
            &[3, 5, 1, 2],
            &[33, 4, 7, 4],
            &[7, 1, 6, 3],
            &[70, 6, 5, 5],
        ],
        inputs: |p, rng| {
            let [s] = p.get(["S"]);
            // Matches are worth a lot, so that gaps can pay.
            let mut sub = rng.ints([s, s], -4, 3);
            for letter in 0..s {
                sub[[letter, letter]] = 14;
            }
            pairs(p, rng, s as i64).with("sub", sub)
        },
        outputs: |p, arrays| {
            let sub = arrays.ints("sub");
            let score = |a: i64, b: i64| sub[[a as usize, b as usize]];
            let each = |a: &[i64], b: &[i64]| align(a, b, score, |length| 11 + (length - 1));
            Arrays::new().with("score", of_pairs(p, arrays, each))
        },
        tolerance: EXACT,
    };
    let mut all = vec![
        strings("string/edit_distance.ure", "edit_distance", |_, arrays| {
            let (a, b) = (arrays.ints("a"), arrays.ints("b"));
            scalar("d", edit_distance(&a.data, &b.data))
        }),
        strings("string/lcs.ure", "lcs", |p, arrays| {
            let [n, m] = p.get(["N", "M"]);
            let (a, b) = (arrays.ints("a"), arrays.ints("b"));
            let l = Tensor::from_fn([n, m], |[i, j]| {
                common_subsequence(&a.data[..=i], &b.data[..=j])
            });
            Arrays::new().with("l", l)
        }),
        strings(
            "string/smith_waterman.ure",
            "smith_waterman",
            |_, arrays| {
                let score = |a: i64, b: i64| if a == b { 3 } else { -1 };
                scalar("score", local_alignment(arrays, score, |length| 2 * length))
            },
        ),
        strings(
            "string/smith_waterman_affine.ure",
            "smith_waterman_affine",
            |_, arrays| {
                let score = |a: i64, b: i64| if a == b { 3 } else { -2 };
                scalar(
                    "score",
                    local_alignment(arrays, score, |length| 3 + (length - 1)),
                )
            },
        ),
        strings(
            "string/common_substring.ure",
            "common_substring",
            |_, arrays| {
                let (a, b) = (&arrays.ints("a").data, &arrays.ints("b").data);
                let longest = (1..=a.len().min(b.len()))
                    .rev()
                    .find(|len| a.windows(*len).any(|s| b.windows(*len).any(|t| s == t)));
                scalar("len", longest.unwrap_or(0) as i64)
            },
        ),
        Reference {
            file: "string/edit_distance_batch.ure",
            system: "edit_distance_batch",
            sizes: BATCHES,
            inputs: |p, rng| pairs(p, rng, 4),
            outputs: |p, arrays| {
                let each = |a: &[i64], b: &[i64]| edit_distance(a, b);
                Arrays::new().with("d", of_pairs(p, arrays, each))
            },
            tolerance: EXACT,
        },
        smith_waterman("smith_waterman_batch"),
        smith_waterman("smith_waterman_batch32"),
    ];
    let strips = all[0].also("string/edit_distance_strips.ure", STRIPS);
    all.push(strips);
    all
}

const STRIPS: &[&[i64]] = &[&[1, 1], &[70, 9], &[131, 40], &[17, 35], &[9, 67]];

const BATCHES: &[&[i64]] = &[&[1, 1, 1], &[2, 5, 1], &[33, 4, 7], &[7, 1, 6], &[70, 6, 5]];

fn pairs(p: &Params, rng: &mut Rng, letters: i64) -> Arrays {
    let [pairs, n, m] = p.get(["P", "N", "M"]);
    Arrays::new()
        .with("a", rng.ints([pairs, n], 0, letters))
        .with("b", rng.ints([pairs, m], 0, letters))
}

fn of_pairs(p: &Params, arrays: &Arrays, each: impl Fn(&[i64], &[i64]) -> i64) -> Tensor<i64> {
    let [pairs, n, m] = p.get(["P", "N", "M"]);
    let (a, b) = (&arrays.ints("a").data, &arrays.ints("b").data);
    Tensor::from_fn([pairs], |[k]| {
        each(&a[k * n..(k + 1) * n], &b[k * m..(k + 1) * m])
    })
}

fn dna(p: &Params, rng: &mut Rng) -> Arrays {
    let [n, m] = p.get(["N", "M"]);
    Arrays::new()
        .with("a", rng.ints([n], 0, 4))
        .with("b", rng.ints([m], 0, 4))
}

fn scalar(name: &str, value: i64) -> Arrays {
    Arrays::new().with(name, Tensor::filled([], value))
}

/// Wagner and Fischer, row by row, with the row and column of the empty prefixes.
fn edit_distance(a: &[i64], b: &[i64]) -> i64 {
    let mut row: Vec<i64> = (0..=b.len() as i64).collect();
    for (i, x) in a.iter().enumerate() {
        let mut next = vec![i as i64 + 1];
        for (j, y) in b.iter().enumerate() {
            let replaced = row[j] + i64::from(x != y);
            next.push(replaced.min(row[j + 1] + 1).min(next[j] + 1));
        }
        row = next;
    }
    row[b.len()]
}

fn common_subsequence(a: &[i64], b: &[i64]) -> i64 {
    let mut row = vec![0; b.len() + 1];
    for x in a {
        let mut next = vec![0];
        for (j, y) in b.iter().enumerate() {
            let longest = if x == y {
                row[j] + 1
            } else {
                row[j + 1].max(next[j])
            };
            next.push(longest);
        }
        row = next;
    }
    row[b.len()]
}

fn local_alignment(
    arrays: &Arrays,
    score: impl Fn(i64, i64) -> i64,
    gap: impl Fn(i64) -> i64,
) -> i64 {
    align(&arrays.ints("a").data, &arrays.ints("b").data, score, gap)
}

/// Smith and Waterman as published: a gap of any length ends at each cell, at a cost `gap(length)`.
fn align(a: &[i64], b: &[i64], score: impl Fn(i64, i64) -> i64, gap: impl Fn(i64) -> i64) -> i64 {
    let mut h = Tensor::filled([a.len() + 1, b.len() + 1], 0);
    let mut best = 0;
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let mut value = (h[[i - 1, j - 1]] + score(a[i - 1], b[j - 1])).max(0);
            for length in 1..=i {
                value = value.max(h[[i - length, j]] - gap(length as i64));
            }
            for length in 1..=j {
                value = value.max(h[[i, j - length]] - gap(length as i64));
            }
            h[[i, j]] = value;
            best = best.max(value);
        }
    }
    best
}
