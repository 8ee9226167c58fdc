//! Dense integer matrices with exact operations.

use std::fmt;

use crate::error::{Error, Result};
use crate::hermite::hermite;
use crate::int::{Int, add, gcd_all, mul, mul_add, neg, sub};

/// A dense matrix of integers, stored by rows.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Matrix {
    n_rows: usize,
    n_cols: usize,
    data: Vec<Int>,
}

impl Matrix {
    /// The zero matrix.
    pub fn zero(n_rows: usize, n_cols: usize) -> Self {
        Matrix {
            n_rows,
            n_cols,
            data: vec![0; n_rows * n_cols],
        }
    }

    /// The identity matrix of size `n`.
    pub fn identity(n: usize) -> Self {
        let mut m = Matrix::zero(n, n);
        for i in 0..n {
            m.set(i, i, 1);
        }
        m
    }

    /// A matrix from its rows, which must all have `n_cols` entries.
    pub fn from_rows<R: AsRef<[Int]>>(n_cols: usize, rows: &[R]) -> Result<Self> {
        let mut data = Vec::with_capacity(n_cols * rows.len());
        for row in rows {
            let row = row.as_ref();
            if row.len() != n_cols {
                return Err(Error::Shape {
                    expected: n_cols,
                    found: row.len(),
                });
            }
            data.extend_from_slice(row);
        }
        Ok(Matrix {
            n_rows: rows.len(),
            n_cols,
            data,
        })
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of columns.
    pub fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// The entry at `(row, col)`, if there is one.
    pub fn get(&self, row: usize, col: usize) -> Option<Int> {
        (row < self.n_rows && col < self.n_cols).then(|| self.at(row, col))
    }

    /// Row `i`; empty when there is no such row.
    pub fn row(&self, i: usize) -> &[Int] {
        if i < self.n_rows {
            &self.data[i * self.n_cols..(i + 1) * self.n_cols]
        } else {
            &[]
        }
    }

    /// All rows, top to bottom.
    pub fn rows(&self) -> impl Iterator<Item = &[Int]> {
        (0..self.n_rows).map(|i| self.row(i))
    }

    /// Column `j`; empty when there is no such column.
    pub fn column(&self, j: usize) -> Vec<Int> {
        if j < self.n_cols {
            (0..self.n_rows).map(|i| self.at(i, j)).collect()
        } else {
            Vec::new()
        }
    }

    pub(crate) fn at(&self, i: usize, j: usize) -> Int {
        self.data[i * self.n_cols + j]
    }

    pub(crate) fn set(&mut self, i: usize, j: usize, v: Int) {
        self.data[i * self.n_cols + j] = v;
    }

    pub(crate) fn swap_rows(&mut self, a: usize, b: usize) {
        if a != b {
            for j in 0..self.n_cols {
                self.data.swap(a * self.n_cols + j, b * self.n_cols + j);
            }
        }
    }

    pub(crate) fn swap_cols(&mut self, a: usize, b: usize) {
        if a != b {
            for i in 0..self.n_rows {
                self.data.swap(i * self.n_cols + a, i * self.n_cols + b);
            }
        }
    }

    pub(crate) fn negate_row(&mut self, i: usize) -> Result<()> {
        for j in 0..self.n_cols {
            self.set(i, j, neg(self.at(i, j))?);
        }
        Ok(())
    }

    /// `row[i] += k * row[from]`
    pub(crate) fn add_row(&mut self, i: usize, k: Int, from: usize) -> Result<()> {
        if k != 0 {
            for j in 0..self.n_cols {
                self.set(i, j, mul_add(self.at(i, j), k, self.at(from, j))?);
            }
        }
        Ok(())
    }

    /// `col[j] += k * col[from]`
    pub(crate) fn add_col(&mut self, j: usize, k: Int, from: usize) -> Result<()> {
        if k != 0 {
            for i in 0..self.n_rows {
                self.set(i, j, mul_add(self.at(i, j), k, self.at(i, from))?);
            }
        }
        Ok(())
    }

    /// The transposed matrix.
    pub fn transpose(&self) -> Matrix {
        let mut m = Matrix::zero(self.n_cols, self.n_rows);
        for i in 0..self.n_rows {
            for j in 0..self.n_cols {
                m.set(j, i, self.at(i, j));
            }
        }
        m
    }

    /// The product `self * other`.
    pub fn mul(&self, other: &Matrix) -> Result<Matrix> {
        if self.n_cols != other.n_rows {
            return Err(Error::Shape {
                expected: self.n_cols,
                found: other.n_rows,
            });
        }
        let mut m = Matrix::zero(self.n_rows, other.n_cols);
        for i in 0..self.n_rows {
            for j in 0..other.n_cols {
                let mut s = 0;
                for k in 0..self.n_cols {
                    s = mul_add(s, self.at(i, k), other.at(k, j))?;
                }
                m.set(i, j, s);
            }
        }
        Ok(m)
    }

    /// The product `self * v`.
    pub fn mul_vec(&self, v: &[Int]) -> Result<Vec<Int>> {
        if self.n_cols != v.len() {
            return Err(Error::Shape {
                expected: self.n_cols,
                found: v.len(),
            });
        }
        self.rows().map(|r| dot(r, v)).collect()
    }

    fn require_square(&self) -> Result<usize> {
        if self.n_rows != self.n_cols {
            return Err(Error::Shape {
                expected: self.n_rows,
                found: self.n_cols,
            });
        }
        Ok(self.n_rows)
    }

    /// The determinant, by Bareiss' fraction-free elimination.
    pub fn determinant(&self) -> Result<Int> {
        let n = self.require_square()?;
        let mut m = self.clone();
        let mut sign = 1;
        let mut previous = 1;
        for k in 0..n {
            let Some(pivot) = (k..n).find(|&i| m.at(i, k) != 0) else {
                return Ok(0);
            };
            if pivot != k {
                m.swap_rows(pivot, k);
                sign = -sign;
            }
            bareiss_step(&mut m, k, k + 1..n, previous)?;
            previous = m.at(k, k);
        }
        mul(sign, previous)
    }

    /// The rank over the rationals.
    pub fn rank(&self) -> Result<usize> {
        let (h, _) = hermite(self)?;
        Ok(h.rows().filter(|r| r.iter().any(|&v| v != 0)).count())
    }

    /// A basis, as primitive rows, of the lattice `{ x : self * x = 0 }`.
    ///
    /// The basis generates all integer points of the null space, not only a sublattice.
    pub fn kernel(&self) -> Result<Vec<Vec<Int>>> {
        // Row operations U on the transpose: U * A^T = H, so the rows of U that belong to the zero
        // rows of H annihilate A.
        let (h, u) = hermite(&self.transpose())?;
        let mut basis = Vec::new();
        for i in 0..h.n_rows() {
            if h.row(i).iter().all(|&v| v == 0) {
                let mut row = u.row(i).to_vec();
                if row.iter().find(|&&v| v != 0).is_some_and(|&v| v < 0) {
                    for v in &mut row {
                        *v = neg(*v)?;
                    }
                }
                basis.push(row);
            }
        }
        Ok(basis)
    }

    /// The inverse as a pair `(N, d)` with `self * N = d * I` and `d > 0` smallest, or `None` when
    /// singular.
    pub fn inverse_rational(&self) -> Result<Option<(Matrix, Int)>> {
        let n = self.require_square()?;
        // Gauss-Jordan without fractions on [A | I]: the left half ends as det * I.
        let mut m = Matrix::zero(n, 2 * n);
        for i in 0..n {
            for j in 0..n {
                m.set(i, j, self.at(i, j));
            }
            m.set(i, n + i, 1);
        }
        let mut previous = 1;
        for k in 0..n {
            let Some(pivot) = (k..n).find(|&i| m.at(i, k) != 0) else {
                return Ok(None);
            };
            m.swap_rows(pivot, k);
            bareiss_step(&mut m, k, 0..n, previous)?;
            previous = m.at(k, k);
        }
        let mut d = previous;
        let mut inverse = Matrix::zero(n, n);
        for i in 0..n {
            for j in 0..n {
                inverse.set(i, j, m.at(i, n + j));
            }
        }
        let mut g = crate::int::gcd(gcd_all(&inverse.data)?, d)?;
        if d < 0 {
            g = neg(g)?;
        }
        if g != 0 && g != 1 {
            d = d.checked_div(g).ok_or(Error::Overflow)?;
            for v in &mut inverse.data {
                *v = v.checked_div(g).ok_or(Error::Overflow)?;
            }
        }
        Ok(Some((inverse, d)))
    }

    /// Whether the matrix is square with determinant 1 or -1.
    pub fn is_unimodular(&self) -> Result<bool> {
        if self.n_rows != self.n_cols {
            return Ok(false);
        }
        Ok(matches!(self.determinant()?, 1 | -1))
    }

    /// One integer solution of `self * x = b`, or `None` when there is none.
    pub fn solve_integer(&self, b: &[Int]) -> Result<Option<Vec<Int>>> {
        if b.len() != self.n_rows {
            return Err(Error::Shape {
                expected: self.n_rows,
                found: b.len(),
            });
        }
        // x^T A^T = b^T with U A^T = H: write x = U^T y, so that H^T y = b is solved by forward
        // substitution.
        let (h, u) = hermite(&self.transpose())?;
        let mut rest = b.to_vec();
        let mut x = vec![0; self.n_cols];
        for i in 0..h.n_rows() {
            let Some(pivot) = h.row(i).iter().position(|&v| v != 0) else {
                break;
            };
            let p = h.at(i, pivot);
            if rest[pivot] % p != 0 {
                return Ok(None);
            }
            let y = rest[pivot] / p;
            for (r, &v) in rest.iter_mut().zip(h.row(i)) {
                *r = sub(*r, mul(y, v)?)?;
            }
            for (s, &v) in x.iter_mut().zip(u.row(i)) {
                *s = add(*s, mul(y, v)?)?;
            }
        }
        Ok(rest.iter().all(|&r| r == 0).then_some(x))
    }
}

fn bareiss_step(
    m: &mut Matrix,
    k: usize,
    rows: std::ops::Range<usize>,
    previous: Int,
) -> Result<()> {
    let p = m.at(k, k);
    for i in rows {
        if i == k {
            continue;
        }
        let f = m.at(i, k);
        for j in 0..m.n_cols {
            let v = sub(mul(p, m.at(i, j))?, mul(f, m.at(k, j))?)?;
            m.set(i, j, v.checked_div(previous).ok_or(Error::Overflow)?);
        }
    }
    Ok(())
}

pub(crate) fn dot(a: &[Int], b: &[Int]) -> Result<Int> {
    let mut s = 0;
    for (&x, &y) in a.iter().zip(b) {
        s = mul_add(s, x, y)?;
    }
    Ok(s)
}

impl fmt::Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, row) in self.rows().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "[")?;
            for (j, v) in row.iter().enumerate() {
                write!(f, "{}{v}", if j > 0 { " " } else { "" })?;
            }
            write!(f, "]")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn determinant_and_inverse() {
        let m = Matrix::from_rows(3, &[[2, 1, 0], [0, 1, 3], [1, 0, 1]]).unwrap();
        assert_eq!(m.determinant().unwrap(), 5);
        let (n, d) = m.inverse_rational().unwrap().unwrap();
        assert_eq!(d, 5);
        let p = m.mul(&n).unwrap();
        for i in 0..3 {
            for j in 0..3 {
                assert_eq!(p.at(i, j), if i == j { d } else { 0 });
            }
        }
        assert!(!m.is_unimodular().unwrap());
    }

    #[test]
    fn kernel_is_saturated() {
        let m = Matrix::from_rows(3, &[[2, 4, 6]]).unwrap();
        let k = m.kernel().unwrap();
        assert_eq!(k.len(), 2);
        for row in &k {
            assert_eq!(m.mul_vec(row).unwrap(), vec![0]);
        }
        // (1, 1, -1) must be an integer combination of the basis.
        let basis = Matrix::from_rows(3, &k).unwrap().transpose();
        assert!(basis.solve_integer(&[1, 1, -1]).unwrap().is_some());
    }

    #[test]
    fn integer_solutions() {
        let m = Matrix::from_rows(2, &[[2, 4]]).unwrap();
        assert_eq!(m.solve_integer(&[3]).unwrap(), None);
        let x = m.solve_integer(&[6]).unwrap().unwrap();
        assert_eq!(m.mul_vec(&x).unwrap(), vec![6]);
    }

    #[test]
    fn overflow_is_an_error() {
        let m = Matrix::from_rows(2, &[[Int::MAX, 1], [1, Int::MAX]]).unwrap();
        assert_eq!(m.determinant(), Err(Error::Overflow));
    }
}
