//! Smith normal form: every integer matrix is diagonal up to unimodular changes of basis on both
//! sides.

use crate::error::Result;
use crate::int::{nearest_quotient, neg};
use crate::matrix::Matrix;

/// The Smith normal form `(S, U, V)` with `U * a * V = S`, `U` and `V` unimodular.
///
/// `S` is diagonal with non-negative entries, each dividing the next.
pub fn smith(a: &Matrix) -> Result<(Matrix, Matrix, Matrix)> {
    let mut s = a.clone();
    let mut u = Matrix::identity(a.n_rows());
    let mut v = Matrix::identity(a.n_cols());
    let (n, m) = (a.n_rows(), a.n_cols());
    for k in 0..n.min(m) {
        loop {
            let smallest = (k..n)
                .flat_map(|i| (k..m).map(move |j| (i, j)))
                .filter(|&(i, j)| s.at(i, j) != 0)
                .min_by_key(|&(i, j)| s.at(i, j).unsigned_abs());
            let Some((pi, pj)) = smallest else {
                return Ok((s, u, v));
            };
            s.swap_rows(pi, k);
            u.swap_rows(pi, k);
            s.swap_cols(pj, k);
            v.swap_cols(pj, k);
            let mut clean = true;
            for i in k + 1..n {
                if s.at(i, k) != 0 {
                    let q = neg(nearest_quotient(s.at(i, k), s.at(k, k))?)?;
                    s.add_row(i, q, k)?;
                    u.add_row(i, q, k)?;
                    clean &= s.at(i, k) == 0;
                }
            }
            for j in k + 1..m {
                if s.at(k, j) != 0 {
                    let q = neg(nearest_quotient(s.at(k, j), s.at(k, k))?)?;
                    s.add_col(j, q, k)?;
                    v.add_col(j, q, k)?;
                    clean &= s.at(k, j) == 0;
                }
            }
            if !clean {
                continue;
            }
            // The pivot must divide the rest; otherwise, add an offending row and continue with a
            // smaller pivot.
            let offending =
                (k + 1..n).find(|&i| (k + 1..m).any(|j| s.at(i, j).wrapping_rem(s.at(k, k)) != 0));
            match offending {
                Some(i) => {
                    s.add_row(k, 1, i)?;
                    u.add_row(k, 1, i)?;
                }
                None => break,
            }
        }
        if s.at(k, k) < 0 {
            s.negate_row(k)?;
            u.negate_row(k)?;
        }
    }
    Ok((s, u, v))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smith_divides() {
        let a = Matrix::from_rows(3, &[[2, 4, 4], [-6, 6, 12], [10, 4, 16]]).unwrap();
        let (s, u, v) = smith(&a).unwrap();
        assert_eq!(u.mul(&a).unwrap().mul(&v).unwrap(), s);
        assert_eq!((s.at(0, 0), s.at(1, 1), s.at(2, 2)), (2, 2, 156));
    }
}
