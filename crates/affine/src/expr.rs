//! Affine expressions and constraints over the columns of a space.
//!
//! A point of a space has parameters and dimensions; a conjunction may add existential variables.
//! All of them are *columns*, in this order: `[params | dims | exists]`. An expression is a
//! constant and one coefficient for each column; columns beyond its length have coefficient zero,
//! so expressions over a space stay valid when existentials are added.

use crate::error::{Error, Result};
use crate::int::{Int, add, gcd_all, mul, mul_add, neg, sub};

/// The number of parameters and dimensions of the points of a set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Space {
    /// Number of symbolic constants; they come first among the columns.
    pub n_params: usize,
    /// Number of dimensions of a point.
    pub n_dims: usize,
}

impl Space {
    /// A space of `n_dims`-dimensional points with `n_params` parameters.
    pub fn new(n_params: usize, n_dims: usize) -> Self {
        Space { n_params, n_dims }
    }

    /// Number of visible columns, parameters and dimensions together.
    pub fn n_vars(self) -> usize {
        self.n_params + self.n_dims
    }

    /// Parameter `i` as an expression.
    pub fn param(self, i: usize) -> Result<LinExpr> {
        if i >= self.n_params {
            return Err(Error::OutOfRange {
                index: i,
                len: self.n_params,
            });
        }
        Ok(LinExpr::var(i))
    }

    /// Dimension `i` as an expression.
    pub fn dim(self, i: usize) -> Result<LinExpr> {
        Ok(LinExpr::var(self.dim_column(i)?))
    }

    /// The column of dimension `i`.
    pub fn dim_column(self, i: usize) -> Result<usize> {
        if i >= self.n_dims {
            return Err(Error::OutOfRange {
                index: i,
                len: self.n_dims,
            });
        }
        Ok(self.n_params + i)
    }

    pub(crate) fn require_same(self, other: Space) -> Result<()> {
        if self != other {
            return Err(Error::SpaceMismatch {
                left_params: self.n_params,
                left_dims: self.n_dims,
                right_params: other.n_params,
                right_dims: other.n_dims,
            });
        }
        Ok(())
    }
}

/// An affine expression: a constant plus an integer multiple of each column.
#[derive(Clone, Debug)]
pub struct LinExpr {
    /// The constant, then the coefficients; never empty.
    row: Vec<Int>,
}

impl LinExpr {
    /// The expression 0.
    pub fn zero() -> Self {
        LinExpr::constant(0)
    }

    /// A constant expression.
    pub fn constant(c: Int) -> Self {
        LinExpr { row: vec![c] }
    }

    /// The expression that is just the given column.
    pub fn var(column: usize) -> Self {
        let mut row = vec![0; column + 2];
        row[column + 1] = 1;
        LinExpr { row }
    }

    /// An expression from the coefficients of the leading columns and a constant.
    pub fn new(coeffs: &[Int], constant: Int) -> Self {
        let mut row = Vec::with_capacity(coeffs.len() + 1);
        row.push(constant);
        row.extend_from_slice(coeffs);
        LinExpr { row }
    }

    pub(crate) fn from_row(row: &[Int]) -> Self {
        LinExpr { row: row.to_vec() }
    }

    /// The row over `n` columns, or an error when a later column is used.
    pub(crate) fn to_row(&self, n: usize) -> Result<Vec<Int>> {
        if self.n_columns() > n {
            return Err(Error::OutOfRange {
                index: self.n_columns() - 1,
                len: n,
            });
        }
        let mut row = self.row.clone();
        row.resize(n + 1, 0);
        Ok(row)
    }

    /// The coefficient of a column.
    pub fn coeff(&self, column: usize) -> Int {
        self.row.get(column + 1).copied().unwrap_or(0)
    }

    /// The constant term.
    pub fn constant_term(&self) -> Int {
        self.row[0]
    }

    /// The coefficients of the leading columns; the rest are zero.
    pub fn coeffs(&self) -> &[Int] {
        &self.row[1..]
    }

    /// One past the last column with a coefficient that is not zero.
    pub fn n_columns(&self) -> usize {
        self.row
            .iter()
            .skip(1)
            .rposition(|&c| c != 0)
            .map_or(0, |i| i + 1)
    }

    /// Whether no column occurs.
    pub fn is_constant(&self) -> bool {
        self.n_columns() == 0
    }

    /// Replaces the coefficient of a column.
    pub fn set_coeff(&mut self, column: usize, value: Int) {
        if self.row.len() < column + 2 {
            self.row.resize(column + 2, 0);
        }
        self.row[column + 1] = value;
    }

    /// Replaces the constant term.
    pub fn set_constant(&mut self, value: Int) {
        self.row[0] = value;
    }

    fn zip(&self, other: &LinExpr, f: impl Fn(Int, Int) -> Result<Int>) -> Result<LinExpr> {
        let n = self.row.len().max(other.row.len());
        let at = |r: &[Int], i: usize| r.get(i).copied().unwrap_or(0);
        let row = (0..n)
            .map(|i| f(at(&self.row, i), at(&other.row, i)))
            .collect::<Result<_>>()?;
        Ok(LinExpr { row })
    }

    /// `self + other`
    pub fn add(&self, other: &LinExpr) -> Result<LinExpr> {
        self.zip(other, add)
    }

    /// `self - other`
    pub fn sub(&self, other: &LinExpr) -> Result<LinExpr> {
        self.zip(other, sub)
    }

    /// `-self`
    pub fn neg(&self) -> Result<LinExpr> {
        self.scale(-1)
    }

    /// `factor * self`
    pub fn scale(&self, factor: Int) -> Result<LinExpr> {
        let row = self
            .row
            .iter()
            .map(|&c| mul(factor, c))
            .collect::<Result<_>>()?;
        Ok(LinExpr { row })
    }

    /// `self + c`
    pub fn plus(&self, c: Int) -> Result<LinExpr> {
        let mut e = self.clone();
        e.row[0] = add(e.row[0], c)?;
        Ok(e)
    }

    /// `self + factor * other`
    pub fn add_scaled(&self, factor: Int, other: &LinExpr) -> Result<LinExpr> {
        self.zip(other, |a, b| mul_add(a, factor, b))
    }

    /// The value at the given columns; missing values count as zero.
    pub fn eval(&self, values: &[Int]) -> Result<Int> {
        let mut s = self.row[0];
        for (&c, &v) in self.row[1..].iter().zip(values) {
            s = mul_add(s, c, v)?;
        }
        Ok(s)
    }

    /// The expression with column `i` replaced by `images[i]`; columns without an image must not
    /// occur.
    pub fn substitute(&self, images: &[LinExpr]) -> Result<LinExpr> {
        if self.n_columns() > images.len() {
            return Err(Error::OutOfRange {
                index: self.n_columns() - 1,
                len: images.len(),
            });
        }
        let mut e = LinExpr::constant(self.row[0]);
        for (&c, image) in self.row[1..].iter().zip(images) {
            if c != 0 {
                e = e.add_scaled(c, image)?;
            }
        }
        Ok(e)
    }

    /// The greatest common divisor of all coefficients, without the constant.
    pub fn content(&self) -> Result<Int> {
        gcd_all(&self.row[1..])
    }
}

impl PartialEq for LinExpr {
    fn eq(&self, other: &LinExpr) -> bool {
        let n = self.n_columns();
        self.row[0] == other.row[0] && n == other.n_columns() && self.row[1..=n] == other.row[1..=n]
    }
}

impl Eq for LinExpr {}

impl std::hash::Hash for LinExpr {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.row[..=self.n_columns()].hash(state);
    }
}

impl From<Int> for LinExpr {
    fn from(c: Int) -> Self {
        LinExpr::constant(c)
    }
}

/// One condition on a point.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Constraint {
    /// The expression is zero.
    Eq(LinExpr),
    /// The expression is zero or positive.
    Ge(LinExpr),
}

impl Constraint {
    /// `a = b`
    pub fn eq(a: &LinExpr, b: &LinExpr) -> Result<Self> {
        Ok(Constraint::Eq(a.sub(b)?))
    }

    /// `a >= b`
    pub fn ge(a: &LinExpr, b: &LinExpr) -> Result<Self> {
        Ok(Constraint::Ge(a.sub(b)?))
    }

    /// `a <= b`
    pub fn le(a: &LinExpr, b: &LinExpr) -> Result<Self> {
        Constraint::ge(b, a)
    }

    /// `a > b`
    pub fn gt(a: &LinExpr, b: &LinExpr) -> Result<Self> {
        Ok(Constraint::Ge(a.sub(b)?.plus(-1)?))
    }

    /// `a < b`
    pub fn lt(a: &LinExpr, b: &LinExpr) -> Result<Self> {
        Constraint::gt(b, a)
    }

    /// The expression that is compared with zero.
    pub fn expr(&self) -> &LinExpr {
        match self {
            Constraint::Eq(e) | Constraint::Ge(e) => e,
        }
    }

    /// Whether the condition holds at the given columns.
    pub fn holds(&self, values: &[Int]) -> Result<bool> {
        Ok(match self {
            Constraint::Eq(e) => e.eval(values)? == 0,
            Constraint::Ge(e) => e.eval(values)? >= 0,
        })
    }

    /// The conditions whose union is the negation of this one.
    pub fn negated(&self) -> Result<Vec<Constraint>> {
        let below = |e: &LinExpr| -> Result<Constraint> { Ok(Constraint::Ge(neg_minus_one(e)?)) };
        Ok(match self {
            Constraint::Ge(e) => vec![below(e)?],
            Constraint::Eq(e) => vec![below(e)?, Constraint::Ge(e.plus(-1)?)],
        })
    }
}

fn neg_minus_one(e: &LinExpr) -> Result<LinExpr> {
    let mut row = e.row.iter().map(|&c| neg(c)).collect::<Result<Vec<_>>>()?;
    row[0] = sub(row[0], 1)?;
    Ok(LinExpr { row })
}
