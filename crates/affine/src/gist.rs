//! Simplification of a set in a context.

use crate::basic::BasicSet;
use crate::error::Result;
use crate::expr::{Constraint, LinExpr};
use crate::omega;
use crate::set::Set;
use crate::system::Budget;
impl Set {
    /// A set with fewer constraints that agrees with this one on `context`.
    ///
    /// Only inequalities and equalities without existentials are dropped; a context of several
    /// pieces is used only through the constraints that hold on all of it.
    pub fn gist(&self, context: &Set) -> Result<Set> {
        self.space.require_same(context.space)?;
        let budget = &mut Budget::default();
        let context = context.simplify_in(budget)?;
        let mut pieces = Vec::new();
        for p in &self.pieces {
            let mut set = p.simplify_in(budget)?;
            let relevant = Set::from(set.clone()).intersect_in(&context, budget)?;
            if relevant.is_empty_in(budget)? {
                continue;
            }
            let visible = self.space.n_vars();
            let mut i = set.sys.eqs.len();
            while i > 0 {
                i -= 1;
                let row = set.sys.eqs[i].clone();
                if row[1 + visible..].iter().any(|&c| c != 0) {
                    continue;
                }
                let mut rest = set.clone();
                rest.sys.eqs.remove(i);
                if implied(
                    &rest,
                    &context,
                    &Constraint::Eq(LinExpr::from_row(&row)),
                    budget,
                )? {
                    set = rest;
                }
            }
            let mut i = set.sys.ges.len();
            while i > 0 {
                i -= 1;
                let row = set.sys.ges[i].clone();
                if row[1 + visible..].iter().any(|&c| c != 0) {
                    continue;
                }
                let mut rest = set.clone();
                rest.sys.ges.remove(i);
                if implied(
                    &rest,
                    &context,
                    &Constraint::Ge(LinExpr::from_row(&row)),
                    budget,
                )? {
                    set = rest;
                }
            }
            // Strides and floors are dropped together if the context implies all of them.
            if set.n_exists() > 0 {
                let mut plain = set.clone();
                plain
                    .sys
                    .eqs
                    .retain(|r| r[1 + visible..].iter().all(|&c| c == 0));
                plain
                    .sys
                    .ges
                    .retain(|r| r[1 + visible..].iter().all(|&c| c == 0));
                omega::compact(&mut plain.sys, visible);
                let there = Set::from(plain.clone()).intersect_in(&context, budget)?;
                if there.is_subset_in(&set.clone().into(), budget)? {
                    set = plain;
                }
            }
            pieces.push(set);
        }
        Ok(Set {
            space: self.space,
            pieces,
        })
    }
}

fn implied(
    rest: &BasicSet,
    context: &Set,
    constraint: &Constraint,
    budget: &mut Budget,
) -> Result<bool> {
    for negation in constraint.negated()? {
        let outside = rest.with_constraint(&negation)?;
        for c in &context.pieces {
            if !outside.intersect(c)?.is_empty_in(budget)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
