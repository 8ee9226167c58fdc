//! The rational relaxation: an exact simplex [tableau], and branch and bound on top of it.
//!
//! Fourier-Motzkin elimination makes many redundant rows. The tableau finds them, and often decides
//! emptiness before any integer reasoning: without a rational point there is no integer point, and
//! a vertex with integer coordinates is an integer point.

mod entry;
mod growing;
mod tableau;

use crate::error::{Error, Result};
use crate::int::{Int, floor_div, neg, sub};
use crate::system::{Budget, Row, System};
use entry::Entry;
pub(crate) use growing::Growing;
use tableau::Tableau;

/// The result of branch and bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// There is no integer point.
    Empty,
    /// An integer point.
    Point(Vec<Int>),
    /// Undecided within the given number of relaxations.
    Open,
}

/// Branch and bound with at most `nodes` relaxations.
pub(crate) fn search(sys: &System, nodes: usize, budget: &mut Budget) -> Result<Found> {
    match search_with::<i64>(sys, nodes, budget) {
        Err(Error::Overflow) => search_with::<Int>(sys, nodes, budget),
        answer => answer,
    }
}

fn search_with<T: Entry>(sys: &System, nodes: usize, budget: &mut Budget) -> Result<Found> {
    match Tableau::<T>::new(sys, budget)? {
        None => Ok(Found::Empty),
        Some(tableau) => branch(tableau, sys.n, nodes, budget),
    }
}

/// Branch and bound over the first `n` variables, from the vertex of a tableau.
fn branch<T: Entry>(
    tableau: Tableau<T>,
    n: usize,
    nodes: usize,
    budget: &mut Budget,
) -> Result<Found> {
    let mut todo = vec![tableau];
    let mut left = nodes;
    while let Some(t) = todo.pop() {
        let x = t.vertex(n);
        let Some(v) = x.iter().position(|&(value, d)| value % d != 0) else {
            return Ok(Found::Point(
                x.into_iter().map(|(value, d)| value / d).collect(),
            ));
        };
        if left == 0 {
            return Ok(Found::Open);
        }
        left -= 1;
        let floor = floor_div(x[v].0, x[v].1)?;
        let mut row = vec![0; n + 1];
        let mut above = t.clone();
        row[v + 1] = 1;
        row[0] = sub(neg(floor)?, 1)?;
        if above.push(&row, budget)? {
            todo.push(above);
        }
        let mut below = t;
        row[v + 1] = -1;
        row[0] = floor;
        if below.push(&row, budget)? {
            todo.push(below);
        }
    }
    Ok(Found::Empty)
}

/// Drops inequalities that follow from the rest over the rationals (or nearly, for integer points),
/// the last ones first. Rows for which `keep` holds stay. Returns `false` when the system has no
/// rational point.
pub(crate) fn remove_redundant(
    sys: &mut System,
    keep: impl Fn(&Row) -> bool,
    budget: &mut Budget,
) -> Result<bool> {
    match remove_redundant_with::<i64>(sys, &keep, budget) {
        Err(Error::Overflow) => remove_redundant_with::<Int>(sys, &keep, budget),
        answer => answer,
    }
}

fn remove_redundant_with<T: Entry>(
    sys: &mut System,
    keep: &impl Fn(&Row) -> bool,
    budget: &mut Budget,
) -> Result<bool> {
    let Some(mut tableau) = Tableau::<T>::new(sys, budget)? else {
        return Ok(false);
    };
    let first = 2 * sys.eqs.len();
    for i in (0..sys.ges.len()).rev() {
        if !keep(&sys.ges[i]) && tableau.is_redundant(first + i, budget)? {
            tableau.forget(first + i);
            sys.ges.remove(i);
        }
    }
    Ok(true)
}

/// The smallest value of each row over the rational points, rounded up to an integer, or `None`
/// where it is unbounded; `None` for all when there is no point.
pub(crate) fn minima(
    sys: &System,
    rows: &[Row],
    budget: &mut Budget,
) -> Result<Option<Vec<Option<Int>>>> {
    match minima_with::<i64>(sys, rows, budget) {
        Err(Error::Overflow) => minima_with::<Int>(sys, rows, budget),
        answer => answer,
    }
}

fn minima_with<T: Entry>(
    sys: &System,
    rows: &[Row],
    budget: &mut Budget,
) -> Result<Option<Vec<Option<Int>>>> {
    let Some(tableau) = Tableau::<T>::new(sys, budget)? else {
        return Ok(None);
    };
    let minimum = |row: &Row| tableau.clone().minimum_of(row, budget);
    rows.iter().map(minimum).collect::<Result<_>>().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branch_and_bound_ends_on_a_small_box() {
        let sys = System {
            n: 2,
            eqs: vec![],
            ges: vec![
                vec![3, 1, 0],
                vec![3, -1, 0],
                vec![-1, -3, -4],
                vec![2, 3, 4],
            ],
        };
        let mut budget = Budget::new(10_000);
        assert!(matches!(search(&sys, 60, &mut budget), Ok(Found::Point(_))));
    }

    #[test]
    fn numbers_beyond_64_bits_are_as_exact() {
        // 3^15 x <= 3^30 + 1 and 3^15 x >= 3^30 - 1, and the same with y: x = y = 3^15 is the only
        // solution.
        let (big, square): (Int, Int) = (3_i128.pow(15), 3_i128.pow(30));
        let mut sys = System {
            n: 2,
            eqs: vec![],
            ges: vec![
                vec![square + 1, -big, 0],
                vec![1 - square, big, 0],
                vec![square + 1, -1, 1 - big],
                vec![1 - square, 1, big - 1],
            ],
        };
        let mut budget = Budget::new(10_000);
        assert_eq!(
            search_with::<i64>(&sys, 60, &mut budget),
            Err(Error::Overflow)
        );
        let point = search(&sys, 60, &mut budget);
        assert_eq!(point, Ok(Found::Point(vec![big, big])));
        let low = minima(&sys, &[vec![0, 1, 0]], &mut budget);
        assert_eq!(low, Ok(Some(vec![Some(big)])));
        sys.ges.push(vec![square, -1, 0]);
        assert_eq!(remove_redundant(&mut sys, |_| false, &mut budget), Ok(true));
        assert_eq!(sys.ges.len(), 4);
    }
}
