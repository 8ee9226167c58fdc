//! Builders of conjunctions: constraints, floors and remainders are added one after the other.

use crate::basic::BasicSet;
use crate::div::Div;
use crate::error::{Error, Result};
use crate::expr::{Constraint, LinExpr, Space};
use crate::int::{Int, neg, sub};
use crate::map::Map;
use crate::system::{Row, System};
/// Builds a [`BasicSet`] or a [`Map`], adding existential variables as it goes.
///
/// ```
/// use affine::{BasicSetBuilder, Space};
/// # fn main() -> Result<(), affine::Error> {
/// let space = Space::new(0, 1);
/// let i = space.dim(0)?;
/// let mut b = BasicSetBuilder::new(space);
/// let r = b.modulo(&i, 3)?; // i mod 3
/// b.eq(&r, &2.into())?;
/// let set = b.build();
/// assert!(set.contains(&[], &[5])? && !set.contains(&[], &[6])?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct BasicSetBuilder {
    pub(crate) space: Space,
    pub(crate) sys: System,
    pub(crate) floors: Floors,
}

/// What becomes of a floor that has been added before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Floors {
    /// It gets one more existential variable.
    New,
    /// It shares the existing variable.
    Shared,
}

impl BasicSetBuilder {
    /// Starts with all points of the space.
    pub fn new(space: Space) -> Self {
        BasicSetBuilder {
            space,
            sys: System::new(space.n_vars()),
            floors: Floors::New,
        }
    }

    /// Like [`BasicSetBuilder::new`], but equal floors share one existential variable, which means
    /// fewer variables for a question about all of them at once. A projection may find other
    /// bounds.
    pub fn with_shared_floors(space: Space) -> Self {
        BasicSetBuilder {
            floors: Floors::Shared,
            ..BasicSetBuilder::new(space)
        }
    }

    /// The space of the points.
    pub fn space(&self) -> Space {
        self.space
    }

    /// A new existential variable.
    pub fn exists(&mut self) -> LinExpr {
        self.sys.add_vars(1);
        LinExpr::var(self.sys.n - 1)
    }

    /// `floor(e / divisor)` for a positive divisor.
    pub fn floor_div(&mut self, e: &LinExpr, divisor: Int) -> Result<LinExpr> {
        if divisor <= 0 {
            return Err(Error::Divisor(divisor));
        }
        if divisor == 1 {
            return Ok(e.clone());
        }
        let row = e.to_row(self.sys.n)?;
        if e.is_constant() {
            return Ok(LinExpr::constant(crate::int::floor_div(row[0], divisor)?));
        }
        let div = |var: usize, numerator: Row| Div {
            var,
            numerator,
            divisor,
        };
        for q in self.space.n_vars()..self.sys.n {
            if self.floors == Floors::Shared && row[q + 1] == 0 {
                let rows = div(q, row.clone()).rows()?;
                if rows.iter().all(|r| self.sys.ges.contains(r)) {
                    return Ok(LinExpr::var(q));
                }
            }
        }
        self.sys.add_vars(1);
        let q = self.sys.n - 1;
        let mut numerator = row;
        numerator.push(0);
        self.sys.ges.extend(div(q, numerator).rows()?);
        Ok(LinExpr::var(q))
    }

    /// `ceil(e / divisor)` for a positive divisor.
    pub fn ceil_div(&mut self, e: &LinExpr, divisor: Int) -> Result<LinExpr> {
        self.floor_div(&e.plus(sub(divisor, 1)?)?, divisor)
    }

    /// `e mod modulus`, in `0..modulus`, for a positive modulus.
    pub fn modulo(&mut self, e: &LinExpr, modulus: Int) -> Result<LinExpr> {
        let q = self.floor_div(e, modulus)?;
        e.add_scaled(neg(modulus)?, &q)
    }

    /// Adds a constraint over the columns added so far.
    pub fn constrain(&mut self, constraint: &Constraint) -> Result<()> {
        let row = constraint.expr().to_row(self.sys.n)?;
        match constraint {
            Constraint::Eq(_) => self.sys.eqs.push(row),
            Constraint::Ge(_) => self.sys.ges.push(row),
        }
        Ok(())
    }

    /// Adds `a = b`.
    pub fn eq(&mut self, a: &LinExpr, b: &LinExpr) -> Result<()> {
        self.constrain(&Constraint::eq(a, b)?)
    }

    /// Adds `a >= b`.
    pub fn ge(&mut self, a: &LinExpr, b: &LinExpr) -> Result<()> {
        self.constrain(&Constraint::ge(a, b)?)
    }

    /// Adds `a <= b`.
    pub fn le(&mut self, a: &LinExpr, b: &LinExpr) -> Result<()> {
        self.constrain(&Constraint::le(a, b)?)
    }

    /// Adds `a < b`.
    pub fn lt(&mut self, a: &LinExpr, b: &LinExpr) -> Result<()> {
        self.constrain(&Constraint::lt(a, b)?)
    }

    /// Adds `a > b`.
    pub fn gt(&mut self, a: &LinExpr, b: &LinExpr) -> Result<()> {
        self.constrain(&Constraint::gt(a, b)?)
    }

    /// Adds `low <= e < high`.
    pub fn range(&mut self, low: &LinExpr, e: &LinExpr, high: &LinExpr) -> Result<()> {
        self.le(low, e)?;
        self.lt(e, high)
    }

    /// The set of points that satisfy everything that was added.
    pub fn build(self) -> BasicSet {
        BasicSet {
            space: self.space,
            sys: self.sys,
        }
    }

    /// The map from the points that satisfy everything that was added to the values of `outputs`.
    pub fn build_map(self, outputs: Vec<LinExpr>) -> Result<Map> {
        Map::new(self.build(), outputs)
    }
}
