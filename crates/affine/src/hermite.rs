//! Hermite normal form and unimodular completion.
//!
//! Row operations that stay within the integers and are invertible (swaps, sign changes, adding a
//! multiple of one row to another) multiply a matrix from the left by a unimodular `U`. They bring
//! every matrix into a unique upper echelon form, the integer counterpart of Gaussian elimination.

use crate::error::{Error, Result};
use crate::int::{Int, floor_div, nearest_quotient, neg};
use crate::matrix::Matrix;

/// The row-style Hermite normal form `(H, U)` with `U * a = H`, `U` unimodular.
///
/// `H` is in echelon form with positive pivots; entries above a pivot lie in `0..pivot`; zero rows
/// come last.
pub fn hermite(a: &Matrix) -> Result<(Matrix, Matrix)> {
    let mut h = a.clone();
    let mut u = Matrix::identity(a.n_rows());
    let mut top = 0;
    for col in 0..a.n_cols() {
        if top == a.n_rows() {
            break;
        }
        loop {
            let smallest = (top..a.n_rows())
                .filter(|&i| h.at(i, col) != 0)
                .min_by_key(|&i| h.at(i, col).unsigned_abs());
            let Some(pivot) = smallest else { break };
            h.swap_rows(pivot, top);
            u.swap_rows(pivot, top);
            let mut clean = true;
            for i in top + 1..a.n_rows() {
                if h.at(i, col) != 0 {
                    let q = neg(nearest_quotient(h.at(i, col), h.at(top, col))?)?;
                    h.add_row(i, q, top)?;
                    u.add_row(i, q, top)?;
                    clean &= h.at(i, col) == 0;
                }
            }
            if clean {
                break;
            }
        }
        if h.at(top, col) == 0 {
            continue;
        }
        if h.at(top, col) < 0 {
            h.negate_row(top)?;
            u.negate_row(top)?;
        }
        for i in 0..top {
            let q = neg(floor_div(h.at(i, col), h.at(top, col))?)?;
            h.add_row(i, q, top)?;
            u.add_row(i, q, top)?;
        }
        top += 1;
    }
    Ok((h, u))
}

/// A unimodular matrix whose first rows are `rows`.
///
/// This is possible exactly when the rows are primitive: they are independent and every integer
/// point of the subspace they span is an integer combination of them. Otherwise
/// [`Error::NotPrimitive`].
pub fn complete_unimodular(rows: &Matrix) -> Result<Matrix> {
    let n = rows.n_cols();
    let r = rows.n_rows();
    if r > n {
        return Err(Error::NotPrimitive);
    }
    // U * rows^T = H. For primitive rows the upper square of H is unimodular and in Hermite form,
    // so it is I, and rows * U^T = [I 0]: the inverse of U^T starts with `rows`.
    let (h, u) = hermite(&rows.transpose())?;
    for i in 0..n {
        for j in 0..r {
            if h.at(i, j) != Int::from(i == j) {
                return Err(Error::NotPrimitive);
            }
        }
    }
    match u.transpose().inverse_rational()? {
        Some((inverse, 1)) => Ok(inverse),
        _ => Err(Error::NotPrimitive),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hermite_of_a_lattice() {
        let a = Matrix::from_rows(2, &[[4, 6], [2, 2]]).unwrap();
        let (h, u) = hermite(&a).unwrap();
        assert_eq!(u.mul(&a).unwrap(), h);
        assert!(u.is_unimodular().unwrap());
        assert_eq!(h, Matrix::from_rows(2, &[[2, 0], [0, 2]]).unwrap());
    }

    #[test]
    fn completion() {
        let rows = Matrix::from_rows(3, &[[2, 3, 5], [1, 1, 1]]).unwrap();
        let m = complete_unimodular(&rows).unwrap();
        assert!(m.is_unimodular().unwrap());
        assert_eq!(m.row(0), rows.row(0));
        assert_eq!(m.row(1), rows.row(1));
        let bad = Matrix::from_rows(2, &[[2, 4]]).unwrap();
        assert_eq!(complete_unimodular(&bad), Err(Error::NotPrimitive));
    }
}
