//! Fewer and simpler constraints for the same points.

use crate::basic::BasicSet;
use crate::error::Result;
use crate::int::neg;
use crate::omega;
use crate::set::Set;
use crate::simplex;
use crate::system::{Budget, Row};
impl BasicSet {
    /// Simplified: normalised and tightened rows, equalities used to remove variables, no redundant
    /// inequality.
    pub fn simplify(&self) -> Result<BasicSet> {
        self.simplify_in(&mut Budget::default())
    }

    pub(crate) fn simplify_in(&self, budget: &mut Budget) -> Result<BasicSet> {
        let Some(mut set) = self.tidied(budget)? else {
            return Ok(BasicSet::empty(self.space));
        };
        if !set.reduce_equalities(budget)? {
            return Ok(BasicSet::empty(self.space));
        }
        if set.is_empty_in(budget)? {
            return Ok(BasicSet::empty(self.space));
        }
        set.remove_redundant(budget)?;
        Ok(set)
    }

    /// Rows normalised, unused existentials dropped, equal floors merged; `None` for a plain
    /// contradiction.
    pub(crate) fn tidied(&self, budget: &mut Budget) -> Result<Option<BasicSet>> {
        let sys = omega::tidy(self.sys.clone(), self.space.n_vars(), budget)?;
        Ok(sys.map(|sys| BasicSet {
            space: self.space,
            sys,
        }))
    }

    /// Solves equalities for a variable with coefficient 1 (an existential before a dimension, the
    /// last dimension first, before a parameter) and uses it everywhere else.
    fn reduce_equalities(&mut self, budget: &mut Budget) -> Result<bool> {
        let visible = self.space.n_vars();
        let params = self.space.n_params;
        let mut solved: Vec<Row> = Vec::new();
        loop {
            if !self.sys.normalize(budget)? {
                return Ok(false);
            }
            let rank = |v: usize| match v {
                v if v >= visible => 0,
                v if v >= params => 1 + (visible - v),
                v => 1 + visible + (params - v),
            };
            let pick = self
                .sys
                .eqs
                .iter()
                .enumerate()
                .flat_map(|(e, r)| {
                    // A stride such as i = 2 q stays as it is: replacing i by 2 q would hide the
                    // dimension.
                    let plain = r[1 + visible..].iter().all(|&c| c == 0);
                    (0..self.sys.n)
                        .filter(move |&v| matches!(r[v + 1], 1 | -1) && (plain || v >= visible))
                        .map(move |v| (e, v))
                })
                .min_by_key(|&(_, v)| rank(v));
            let Some((e, v)) = pick else { break };
            let row = self.sys.eqs.swap_remove(e);
            self.sys.substitute(v, &row, budget)?;
            let unit = row[v + 1];
            for r in &mut solved {
                let c = r[v + 1];
                if c != 0 {
                    *r = crate::system::combine(1, r, neg(c)? * unit, &row)?;
                }
            }
            if v < visible {
                solved.push(row);
            }
        }
        solved.reverse();
        self.sys.eqs.splice(0..0, solved);
        omega::compact(&mut self.sys, visible);
        Ok(true)
    }

    /// Drops inequalities that follow from the others. Rows that define a floor stay, so that the
    /// set keeps its div form.
    fn remove_redundant(&mut self, budget: &mut Budget) -> Result<()> {
        let visible = self.space.n_vars();
        let hidden: Vec<usize> = (visible..self.sys.n).collect();
        let needed = omega::definition_rows(&self.sys.ges, &hidden);
        simplex::remove_redundant(&mut self.sys, |r| needed.contains(r), budget)?;
        Ok(())
    }
}

impl Set {
    /// Every piece simplified on its own, empty ones dropped.
    pub fn simplify(&self) -> Result<Set> {
        self.simplify_in(&mut Budget::default())
    }

    pub(crate) fn simplify_in(&self, budget: &mut Budget) -> Result<Set> {
        let mut pieces: Vec<BasicSet> = Vec::new();
        for p in &self.pieces {
            let p = p.simplify_in(budget)?;
            let trivial = p
                .sys
                .ges
                .first()
                .is_some_and(|r| r[1..].iter().all(|&c| c == 0));
            if !trivial && !pieces.contains(&p) {
                pieces.push(p);
            }
        }
        Ok(Set {
            space: self.space,
            pieces,
        })
    }
}
