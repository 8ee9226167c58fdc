//! Results too large to be computed again in full are compared in a sample: the first and last
//! [`EDGE`] rows and [`RANDOM`] rows between them in full, and the first and last [`EDGE`] columns
//! of every row.
//!
//! Each block of threads computes some rows and some columns, and blocks at an edge have code of
//! their own. The sample covers every column of blocks, many rows of them and all edges.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::case::Check;
use crate::arrays::bits;
use crate::compare::{Piece, fault_of_array, rows};
use crate::threads::fill;

const EDGE: usize = 40;
const RANDOM: usize = 200;

/// A part of a row, with the expected values.
struct Part {
    row: usize,
    columns: Range<usize>,
    values: Vec<f64>,
}

/// Compares a result with `reference`, which adds the expected values to zeros in a part of a row.
pub fn sampled(
    [rows, columns]: [usize; 2],
    tolerance: f64,
    reference: impl Fn(usize, Range<usize>, &mut [f64]) + Sync + 'static,
) -> Check {
    // The same for all mappings of a problem.
    let expected = OnceLock::new();
    Box::new(move |result| {
        let expected: &Vec<Part> = expected.get_or_init(|| {
            let mut pieces = pieces(rows, columns);
            fill(&mut pieces, |_, piece| {
                piece.values = vec![0.0; piece.columns.len()];
                reference(piece.row, piece.columns.clone(), &mut piece.values);
            });
            pieces
        });
        let pieces = expected.iter().map(|part| Piece {
            row: part.row,
            column: part.columns.start,
            values: &part.values,
        });
        fault_of_array(result, columns, tolerance, pieces)
    })
}

/// All of a result.
pub fn complete(columns: usize, expected: Arc<Vec<f64>>, tolerance: f64) -> Check {
    Box::new(move |result| fault_of_array(result, columns, tolerance, rows(&expected, columns)))
}

fn pieces(rows: usize, columns: usize) -> Vec<Part> {
    let mut full = vec![false; rows];
    for edge in 0..EDGE.min(rows) {
        full[edge] = true;
        full[rows - 1 - edge] = true;
    }
    for n in 0..RANDOM {
        full[(bits(11, n) % rows as u64) as usize] = true;
    }
    let narrow = columns <= 2 * EDGE;
    let piece = |row, columns| Part {
        row,
        columns,
        values: Vec::new(),
    };
    let mut pieces = Vec::new();
    // Full rows come first, distributed round-robin, so that each thread gets a similar share.
    let mut rest = Vec::new();
    for (row, full) in full.into_iter().enumerate() {
        if full || narrow {
            pieces.push(piece(row, 0..columns));
        } else {
            rest.push(piece(row, 0..EDGE));
            rest.push(piece(row, columns - EDGE..columns));
        }
    }
    interleave(pieces, rest)
}

/// Distributes the long pieces evenly among the short ones.
fn interleave(long: Vec<Part>, short: Vec<Part>) -> Vec<Part> {
    let each = short.len().checked_div(long.len()).unwrap_or(0);
    let mut dealt = Vec::with_capacity(long.len() + short.len());
    let mut short = short.into_iter();
    for piece in long {
        dealt.push(piece);
        dealt.extend(short.by_ref().take(each));
    }
    dealt.extend(short);
    dealt
}

#[cfg(test)]
mod tests {
    use systola::rt::HostArray;

    use super::*;

    fn check(shape: [usize; 2], wrong: [usize; 2]) -> Option<String> {
        let [rows, columns] = shape;
        let mut values: Vec<f32> = (0..rows * columns).map(|n| (n % 1000) as f32).collect();
        values[wrong[0] * columns + wrong[1]] += 1.0;
        let array = HostArray::from_slice(&values, &shape).unwrap();
        let check = sampled(shape, 0.5, move |row, all, out| {
            for (column, out) in all.zip(out) {
                *out = ((row * columns + column) % 1000) as f64;
            }
        });
        check(&array)
    }

    #[test]
    fn edges_are_compared_and_small_results_in_full() {
        for wrong in [
            [0, 500],
            [39, 500],
            [960, 500],
            [999, 0],
            [500, 39],
            [500, 960],
        ] {
            let said = check([1000, 1000], wrong).unwrap();
            assert!(said.contains(&format!("row {}", wrong[0])), "{said}");
        }
        for row in 0..60 {
            for column in [0, 30, 69] {
                assert!(check([60, 70], [row, column]).is_some());
            }
        }
    }

    #[test]
    fn many_rows_inside_are_compared() {
        let full = pieces(1000, 1000);
        let inside = full.iter().filter(|p| p.columns.len() == 1000).count();
        assert!((200..=280).contains(&inside), "{inside}");
        let every: usize = pieces(70, 90).iter().map(|p| p.columns.len()).sum();
        assert_eq!(every, 70 * 90);
    }

    #[test]
    fn what_is_not_a_number_is_wrong() {
        let array = HostArray::from_slice(&[0.0f64, f64::NAN], &[2]).unwrap();
        assert!(complete(2, Arc::new(vec![0.0, 0.0]), 1.0)(&array).is_some());
        assert!(complete(1, Arc::new(vec![0.0]), 1.0)(&array).is_none());
    }
}
