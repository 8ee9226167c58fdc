//! Lexicographic schedules: rows s₁, s₂, … such that the first nonzero s · e is positive, for every
//! dependence e.
//!
//! Rows are chosen one after the other. A row must have s · e ≥ 0 for all remaining dependences,
//! and *carries* those with s · e > 0. Carrying as many as possible never rules out a later row
//! (Feautrier 1992), so greedy choice finds a schedule if one with small coefficients exists.

use affine::{Int, Matrix};

use super::designs::vectors;

/// The preference among rows that carry something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefer {
    /// One iterator in each row: loops in the order of the text.
    Loops,
    /// Few rows: the remaining iterators are parallel.
    Fronts,
}

/// Rows over n iterators, and the dependences that they do not carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    pub rows: Vec<Vec<i128>>,
    /// Iterators that complete the rows to a basis: points of one time differ in them.
    pub free: Vec<usize>,
    /// Positions of dependences that no row can carry.
    pub left: Vec<usize>,
}

/// A schedule over the iterators `inner` of `n`; the dependences are over all n.
pub fn schedule(
    dependences: &[Vec<i128>],
    n: usize,
    inner: &[usize],
    prefer: Prefer,
) -> Option<Schedule> {
    let rows = candidates(n, inner, prefer);
    let mut left: Vec<usize> = (0..dependences.len())
        .filter(|d| dependences[*d].iter().any(|c| *c != 0))
        .collect();
    let mut chosen: Vec<Vec<i128>> = Vec::new();
    while !left.is_empty() {
        let mut best: Option<(usize, &Vec<i128>)> = None;
        for row in &rows {
            let steps = left.iter().map(|d| dot(row, &dependences[*d]));
            let steps: Option<Vec<i128>> = steps.collect();
            let Some(steps) = steps.filter(|steps| steps.iter().all(|s| *s >= 0)) else {
                continue;
            };
            let carried = steps.iter().filter(|s| **s > 0).count();
            let better = match best {
                None => true,
                Some((most, _)) => prefer == Prefer::Fronts && carried > most,
            };
            if carried > 0 && better {
                best = Some((carried, row));
            }
        }
        let Some((_, row)) = best else {
            break;
        };
        left.retain(|d| dot(row, &dependences[*d]) == Some(0));
        chosen.push(row.clone());
    }
    let free = complement(inner, &chosen)?;
    Some(Schedule {
        rows: chosen,
        free,
        left,
    })
}

/// Rows with small coefficients: those of one iterator first, in the order of the text, ascending
/// before descending.
fn candidates(n: usize, inner: &[usize], prefer: Prefer) -> Vec<Vec<i128>> {
    let mut list = Vec::new();
    for axis in inner {
        for sign in [1, -1] {
            let mut row = vec![0; n];
            row[*axis] = sign;
            list.push(row);
        }
    }
    let bound = match inner.len() {
        0..=4 => 2,
        5 | 6 => 1,
        _ => 0,
    };
    let mut others: Vec<Vec<i128>> = Vec::new();
    for short in vectors(inner.len(), bound) {
        if short.iter().filter(|c| **c != 0).count() > 1 {
            let mut row = vec![0; n];
            for (axis, c) in inner.iter().zip(short) {
                row[*axis] = c;
            }
            others.push(row);
        }
    }
    let size = |row: &Vec<i128>| -> (i128, usize) {
        let negative = row.iter().filter(|c| **c < 0).count();
        (row.iter().map(|c| c.abs()).sum(), negative)
    };
    others.sort_by_key(size);
    list.extend(others);
    if prefer == Prefer::Fronts {
        list.sort_by_key(size);
    }
    list
}

/// Iterators whose unit vectors complete the rows to a basis of `inner`: unimodular if possible,
/// and the last iterators first, since neighbours in memory differ in them.
fn complement(inner: &[usize], rows: &[Vec<i128>]) -> Option<Vec<usize>> {
    let wanted = inner.len().checked_sub(rows.len())?;
    let mut best = None;
    for free in subsets(inner, wanted) {
        let own = |row: &Vec<i128>| -> Vec<Int> { inner.iter().map(|a| row[*a]).collect() };
        let mut all: Vec<Vec<Int>> = rows.iter().map(own).collect();
        all.extend(free.iter().map(|axis| {
            let unit = inner.iter().map(|a| Int::from(a == axis));
            unit.collect::<Vec<Int>>()
        }));
        let determinant = Matrix::from_rows(inner.len(), &all).and_then(|m| m.determinant());
        match determinant.ok()?.abs() {
            1 => return Some(free),
            0 => {}
            _ => best = best.or(Some(free)),
        }
    }
    best
}

/// The subsets of a size, those of the last elements first.
fn subsets(list: &[usize], size: usize) -> Vec<Vec<usize>> {
    let Some((last, rest)) = list.split_last() else {
        return if size == 0 {
            vec![Vec::new()]
        } else {
            Vec::new()
        };
    };
    let mut all = Vec::new();
    if size > 0 {
        for mut subset in subsets(rest, size - 1) {
            subset.push(*last);
            all.push(subset);
        }
    }
    all.extend(subsets(rest, size));
    all
}

fn dot(a: &[i128], b: &[i128]) -> Option<i128> {
    a.iter()
        .zip(b)
        .try_fold(0i128, |sum, (a, b)| sum.checked_add(a.checked_mul(*b)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(dependences: &[&[i128]], prefer: Prefer, rows: &[&[i128]], free: &[usize]) {
        let dependences: Vec<Vec<i128>> = dependences.iter().map(|e| e.to_vec()).collect();
        let n = dependences[0].len();
        let inner: Vec<usize> = (0..n).collect();
        let found = schedule(&dependences, n, &inner, prefer).unwrap();
        assert_eq!(found.rows, rows);
        assert_eq!(found.free, free);
        assert!(found.left.is_empty(), "{found:?}");
    }

    #[test]
    fn loops_follow_the_text_where_they_can() {
        let lu: &[&[i128]] = &[&[1, 0, 0], &[0, 1, 0], &[0, 0, 1]];
        let rows: &[&[i128]] = &[&[1, 0, 0], &[0, 1, 0], &[0, 0, 1]];
        check(lu, Prefer::Loops, rows, &[]);
        check(lu, Prefer::Fronts, &[&[1, 1, 1]], &[1, 2]);
    }

    #[test]
    fn a_loop_runs_down_where_it_has_to() {
        check(
            &[&[0, -1], &[1, 5]],
            Prefer::Loops,
            &[&[1, 0], &[0, -1]],
            &[],
        );
    }

    #[test]
    fn rows_are_skewed_where_no_loop_is_legal() {
        check(&[&[1, -1], &[0, 1]], Prefer::Fronts, &[&[2, 1]], &[0]);
    }

    #[test]
    fn what_goes_both_ways_is_left() {
        let both = vec![vec![1, 0], vec![0, 1], vec![0, -1]];
        let found = schedule(&both, 2, &[0, 1], Prefer::Loops).unwrap();
        assert_eq!(found.rows, vec![vec![1, 0]]);
        assert_eq!((found.free, found.left), (vec![1], vec![1, 2]));
    }
}
