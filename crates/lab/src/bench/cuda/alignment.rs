//! Smith-Waterman with affine gaps, of many pairs of strings.

use std::sync::Arc;

use super::super::problem::{GAP_EXTEND, GAP_OPEN};
use super::super::reference::{self, Scoring};
use super::case::{Case, Cells, Data, Mappings, Output, Trial, Unit, Work};
use super::sample::complete;
use crate::arrays::{Array, Values, bits, letters};

/// Scores of 16 or 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Score {
    I16,
    I32,
}

const LETTERS: usize = 20;

/// For each gap two subtractions and a maximum, for the score an addition and three maxima, one for
/// the best.
const OPERATIONS: usize = 11;

pub fn smith_waterman(pairs: usize, n: usize, score: Score) -> Case {
    let sizes = vec![
        ("P", pairs as i64),
        ("N", n as i64),
        ("M", n as i64),
        ("S", LETTERS as i64),
    ];
    let of_trial = sizes.clone();
    let (system, width) = match score {
        Score::I16 => ("smith_waterman_batch", 16),
        Score::I32 => ("smith_waterman_batch32", 32),
    };
    let cells = (pairs * n * n) as f64;
    Case {
        name: format!("{pairs} pairs of {n}, i{width}"),
        program: "string/smith_waterman_batch.ure",
        mappings: Mappings::Of { system, but: &[] },
        sizes,
        fix: &["N", "M", "S"],
        work: Work {
            operations: OPERATIONS as f64 * cells,
            unit: Unit::Integer,
            bytes: (2 * pairs * n) as f64,
            cells: Some(Cells {
                count: cells,
                unit: "GCUPS",
            }),
        },
        note: String::new(),
        baseline: None,
        make: Box::new(move |_| {
            let (a, b) = (letters(4, pairs * n, 20), letters(5, pairs * n, 20));
            let sub = substitution();
            let scoring = Scoring {
                substitution: &sub,
                letters: LETTERS,
                open: GAP_OPEN,
                extend: GAP_EXTEND,
            };
            let expected = reference::smith_waterman(&a, &b, n, n, scoring);
            let output = Output {
                name: "score",
                shape: vec![pairs],
                check: complete(1, Arc::new(expected), 0.0),
            };
            let scores = match score {
                Score::I16 => Values::I16(sub),
                Score::I32 => Values::I32(sub.into_iter().map(i32::from).collect()),
            };
            Data {
                inputs: vec![
                    ("a", Array::new(&[pairs, n], Values::U8(a))),
                    ("b", Array::new(&[pairs, n], Values::U8(b))),
                    ("sub", Array::new(&[LETTERS, LETTERS], scores)),
                ],
                trials: vec![Trial {
                    sizes: of_trial.clone(),
                    outputs: vec![output],
                }],
            }
        }),
    }
}

/// Like the matrices for proteins: symmetric, a letter is worth 4 to 11 against itself and -4 to 1
/// against others.
fn substitution() -> Vec<i16> {
    let mut sub = vec![0; LETTERS * LETTERS];
    for i in 0..LETTERS {
        for j in 0..=i {
            let random = bits(6, i * LETTERS + j) >> 32;
            let score = if i == j {
                4 + (random % 8) as i16
            } else {
                (random % 6) as i16 - 4
            };
            sub[i * LETTERS + j] = score;
            sub[j * LETTERS + i] = score;
        }
    }
    sub
}
