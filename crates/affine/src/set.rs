//! Finite unions of conjunctions: the sets of Presburger arithmetic.

use crate::basic::{BasicSet, check_len};
use crate::error::Result;
use crate::expr::{Constraint, Space};
use crate::int::Int;
use crate::system::Budget;
/// A finite union of [`BasicSet`]s of one space. Pieces may overlap unless an operation says
/// otherwise.
#[derive(Clone, Debug)]
pub struct Set {
    pub(crate) space: Space,
    pub(crate) pieces: Vec<BasicSet>,
}

impl From<BasicSet> for Set {
    fn from(piece: BasicSet) -> Set {
        Set {
            space: piece.space,
            pieces: vec![piece],
        }
    }
}

impl Set {
    /// All points.
    pub fn universe(space: Space) -> Set {
        BasicSet::universe(space).into()
    }

    /// No point.
    pub fn empty(space: Space) -> Set {
        Set {
            space,
            pieces: Vec::new(),
        }
    }

    /// The points that satisfy all constraints.
    pub fn from_constraints(
        space: Space,
        constraints: impl IntoIterator<Item = Constraint>,
    ) -> Result<Set> {
        Ok(BasicSet::from_constraints(space, constraints)?.into())
    }

    /// The union of pieces of one space.
    pub fn from_pieces(space: Space, pieces: Vec<BasicSet>) -> Result<Set> {
        for p in &pieces {
            space.require_same(p.space)?;
        }
        Ok(Set { space, pieces })
    }

    /// The space of the points.
    pub fn space(&self) -> Space {
        self.space
    }

    /// The conjunctions whose union is the set.
    pub fn pieces(&self) -> &[BasicSet] {
        &self.pieces
    }

    /// The points in one of the sets or both.
    pub fn union(&self, other: &Set) -> Result<Set> {
        self.space.require_same(other.space)?;
        let mut pieces = self.pieces.clone();
        for p in &other.pieces {
            if !pieces.contains(p) {
                pieces.push(p.clone());
            }
        }
        Ok(Set {
            space: self.space,
            pieces,
        })
    }

    /// The points in both sets.
    pub fn intersect(&self, other: &Set) -> Result<Set> {
        self.intersect_in(other, &mut Budget::default())
    }

    pub(crate) fn intersect_in(&self, other: &Set, budget: &mut Budget) -> Result<Set> {
        self.space.require_same(other.space)?;
        let many = self.pieces.len() * other.pieces.len() > 1;
        let mut pieces = Vec::new();
        for a in &self.pieces {
            for b in &other.pieces {
                budget.spend(a.sys.n_rows() + b.sys.n_rows())?;
                if let Some(p) = a.intersect(b)?.tidied(budget)?
                    && (!many || !p.is_empty_in(budget)?)
                {
                    pieces.push(p);
                }
            }
        }
        Ok(Set {
            space: self.space,
            pieces,
        })
    }

    /// The points that also satisfy a constraint over `[params | dims]`.
    pub fn with_constraint(&self, constraint: &Constraint) -> Result<Set> {
        let extra = BasicSet::from_constraints(self.space, [constraint.clone()])?;
        self.intersect(&extra.into())
    }

    /// Whether there is no point, for any values of the parameters.
    pub fn is_empty(&self) -> Result<bool> {
        self.is_empty_in(&mut Budget::default())
    }

    pub(crate) fn is_empty_in(&self, budget: &mut Budget) -> Result<bool> {
        for p in &self.pieces {
            if !p.is_empty_in(budget)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the point belongs to the set.
    pub fn contains(&self, params: &[Int], dims: &[Int]) -> Result<bool> {
        check_len(params, self.space.n_params)?;
        check_len(dims, self.space.n_dims)?;
        for p in &self.pieces {
            if p.contains(params, dims)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
