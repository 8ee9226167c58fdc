//! One conjunction of affine constraints, with existential variables.

use crate::builder::{BasicSetBuilder, Floors};
use crate::error::{Error, Result};
use crate::expr::{Constraint, LinExpr, Space};
use crate::int::{Int, add};
use crate::omega;
use crate::system::{Budget, Row, System};
/// The integer points that satisfy a conjunction of equalities and inequalities.
///
/// The constraints may use existential variables: a point belongs to the set when some integer
/// values for them satisfy all constraints. Strides (`exists q: i = 2 q`), floors and remainders
/// are written that way; see [`BasicSetBuilder`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BasicSet {
    pub(crate) space: Space,
    pub(crate) sys: System,
}

impl BasicSet {
    /// All points of the space.
    pub fn universe(space: Space) -> Self {
        BasicSet {
            space,
            sys: System::new(space.n_vars()),
        }
    }

    /// No point.
    pub fn empty(space: Space) -> Self {
        let mut set = BasicSet::universe(space);
        let mut row = vec![0; space.n_vars() + 1];
        row[0] = -1;
        set.sys.ges.push(row);
        set
    }

    /// The points that satisfy all constraints, which use the columns of the space only.
    pub fn from_constraints(
        space: Space,
        constraints: impl IntoIterator<Item = Constraint>,
    ) -> Result<Self> {
        let mut builder = BasicSetBuilder::new(space);
        for c in constraints {
            builder.constrain(&c)?;
        }
        Ok(builder.build())
    }

    /// The space of the points.
    pub fn space(&self) -> Space {
        self.space
    }

    /// Number of existential variables.
    pub fn n_exists(&self) -> usize {
        self.sys.n - self.space.n_vars()
    }

    /// The constraints, over the columns `[params | dims | exists]`.
    pub fn constraints(&self) -> Vec<Constraint> {
        let eqs = self
            .sys
            .eqs
            .iter()
            .map(|r| Constraint::Eq(LinExpr::from_row(r)));
        let ges = self
            .sys
            .ges
            .iter()
            .map(|r| Constraint::Ge(LinExpr::from_row(r)));
        eqs.chain(ges).collect()
    }

    /// The points in both sets.
    pub fn intersect(&self, other: &BasicSet) -> Result<BasicSet> {
        self.space.require_same(other.space)?;
        let visible = self.space.n_vars();
        let n = self.sys.n + other.n_exists();
        let mut sys = self.sys.clone();
        sys.add_vars(other.n_exists());
        let columns: Vec<usize> = (0..other.sys.n)
            .map(|v| if v < visible { v } else { v + self.n_exists() })
            .collect();
        let moved = other.sys.remap(n, &columns);
        sys.eqs.extend(moved.eqs);
        sys.ges.extend(moved.ges);
        Ok(BasicSet {
            space: self.space,
            sys,
        })
    }

    /// The set with one more constraint over its columns (existentials included).
    pub fn with_constraint(&self, constraint: &Constraint) -> Result<BasicSet> {
        let mut builder = BasicSetBuilder {
            space: self.space,
            sys: self.sys.clone(),
            floors: Floors::New,
        };
        builder.constrain(constraint)?;
        Ok(builder.build())
    }

    /// Is there no integer point, for any values of the parameters?
    pub fn is_empty(&self) -> Result<bool> {
        self.is_empty_in(&mut Budget::default())
    }

    /// Like [`BasicSet::is_empty`], with a limited number of elementary steps, from which the steps
    /// taken are subtracted.
    pub fn is_empty_within(&self, steps: &mut u64) -> Result<bool> {
        charge(steps, |budget| self.is_empty_in(budget))
    }

    pub(crate) fn is_empty_in(&self, budget: &mut Budget) -> Result<bool> {
        omega::is_empty(self.sys.clone(), budget)
    }

    /// Whether the point belongs to the set.
    pub fn contains(&self, params: &[Int], dims: &[Int]) -> Result<bool> {
        check_len(params, self.space.n_params)?;
        check_len(dims, self.space.n_dims)?;
        if self.n_exists() == 0 {
            let value = |r: &Row| -> Result<Int> {
                let a = crate::matrix::dot(&r[1..=params.len()], params)?;
                let b = crate::matrix::dot(&r[1 + params.len()..], dims)?;
                add(r[0], add(a, b)?)
            };
            for r in &self.sys.eqs {
                if value(r)? != 0 {
                    return Ok(false);
                }
            }
            for r in &self.sys.ges {
                if value(r)? < 0 {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        let mut sys = self.sys.clone();
        for (v, &value) in params.iter().chain(dims).enumerate() {
            sys.fix(v, value)?;
        }
        Ok(!omega::is_empty(sys, &mut Budget::default())?)
    }
}

/// Works with a budget of `steps` and subtracts the steps that were taken.
pub(crate) fn charge<T>(steps: &mut u64, work: impl FnOnce(&mut Budget) -> Result<T>) -> Result<T> {
    let mut budget = Budget::new(*steps);
    let result = work(&mut budget);
    *steps = budget.left();
    result
}

pub(crate) fn check_len(values: &[Int], expected: usize) -> Result<()> {
    if values.len() != expected {
        return Err(Error::Shape {
            expected,
            found: values.len(),
        });
    }
    Ok(())
}
