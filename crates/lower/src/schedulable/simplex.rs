//! Non-negative solutions of small systems of linear equations, exactly.

use affine::{Error, Result};

/// Some n >= 0 with a · n = b for every row (a, b), b >= 0, up to a positive integer factor; so
/// equations with right-hand side zero hold exactly. `None` if there is no rational solution.
///
/// This is the first phase of the simplex method with Bland's rule, in integers: all entries of the
/// tableau have the last pivot as their common denominator, and each division is exact (Edmonds).
pub(super) fn nonnegative_solution(rows: Vec<(Vec<i128>, i128)>) -> Result<Option<Vec<i128>>> {
    let n_columns = rows.first().map_or(0, |row| row.0.len());
    let mut tableau: Vec<Vec<i128>> = rows
        .into_iter()
        .map(|(mut row, b)| {
            row.push(b);
            row
        })
        .collect();
    // Columns from n_columns on are the artificial variables, which leave the basis for good.
    let mut basis: Vec<usize> = (0..tableau.len()).map(|n| n_columns + n).collect();
    let mut denominator: i128 = 1;
    loop {
        let mut entering = None;
        for column in 0..n_columns {
            let mut gain: i128 = 0;
            for (row, basic) in tableau.iter().zip(&basis) {
                if *basic >= n_columns {
                    gain = gain.checked_add(row[column]).ok_or(Error::Overflow)?;
                }
            }
            if gain > 0 {
                entering = Some(column);
                break;
            }
        }
        let Some(entering) = entering else { break };
        let mut leaving: Option<usize> = None;
        for (n, row) in tableau
            .iter()
            .enumerate()
            .filter(|(_, row)| row[entering] > 0)
        {
            let better = match leaving {
                None => true,
                Some(best) => {
                    let here = mul(row[n_columns], tableau[best][entering])?;
                    let there = mul(tableau[best][n_columns], row[entering])?;
                    here < there || (here == there && basis[n] < basis[best])
                }
            };
            if better {
                leaving = Some(n);
            }
        }
        let Some(leaving) = leaving else { break };
        let pivot_row = tableau[leaving].clone();
        let pivot = pivot_row[entering];
        for (n, row) in tableau.iter_mut().enumerate() {
            if n == leaving {
                continue;
            }
            let factor = row[entering];
            for (entry, pivot_entry) in row.iter_mut().zip(&pivot_row) {
                let difference = mul(*entry, pivot)?
                    .checked_sub(mul(factor, *pivot_entry)?)
                    .ok_or(Error::Overflow)?;
                *entry = difference / denominator;
            }
        }
        denominator = pivot;
        basis[leaving] = entering;
    }
    let mut solution = vec![0; n_columns];
    for (row, basic) in tableau.iter().zip(&basis) {
        if *basic < n_columns {
            solution[*basic] = row[n_columns];
        } else if row[n_columns] != 0 {
            return Ok(None);
        }
    }
    Ok(Some(solution))
}

fn mul(a: i128, b: i128) -> Result<i128> {
    a.checked_mul(b).ok_or(Error::Overflow)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rows: &[(&[i128], i128)], solvable: bool) {
        let rows: Vec<_> = rows.iter().map(|(a, b)| (a.to_vec(), *b)).collect();
        let found = nonnegative_solution(rows.clone()).unwrap();
        assert_eq!(found.is_some(), solvable);
        if let Some(solution) = found {
            let values: Vec<i128> = rows
                .iter()
                .map(|(a, _)| a.iter().zip(&solution).map(|(x, y)| x * y).sum())
                .collect();
            assert!(solution.iter().all(|n| *n >= 0));
            for ((_, b), value) in rows.iter().zip(&values) {
                assert_eq!(*value == 0, *b == 0);
            }
        }
    }

    #[test]
    fn circulations() {
        check(&[(&[1, -1], 0), (&[1, 1], 1)], true);
        check(&[(&[1, 2], 0), (&[1, 1], 1)], false);
        check(&[(&[2, -3, 0], 0), (&[0, 1, 1], 0), (&[1, 1, 1], 1)], false);
        check(&[(&[2, -3, 5], 0), (&[1, 0, -7], 0), (&[1, 1, 1], 1)], true);
    }
}
