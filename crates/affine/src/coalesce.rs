//! Fewer pieces for the same set.

use crate::basic::BasicSet;
use crate::error::Result;
use crate::omega;
use crate::set::Set;
use crate::system::{Budget, Row, System};
impl Set {
    /// Simplified, without pieces inside others, and with pieces joined where their union is again
    /// a conjunction.
    ///
    /// Joining is best effort: it never changes the set and stops trying when it gets expensive.
    pub fn coalesce(&self) -> Result<Set> {
        self.coalesce_in(&mut Budget::default())
    }

    pub(crate) fn coalesce_in(&self, budget: &mut Budget) -> Result<Set> {
        let mut set = self.simplify_in(budget)?;
        let mut i = 0;
        'outer: while i < set.pieces.len() {
            for j in 0..set.pieces.len() {
                if i == j {
                    continue;
                }
                let (a, b) = (&set.pieces[i], &set.pieces[j]);
                if budget.is_spent() {
                    return Ok(set);
                }
                let joined = budget.try_within(200_000, |b2| join(a, b, b2))?;
                if let Some(Some(p)) = joined {
                    let (low, high) = (i.min(j), i.max(j));
                    set.pieces.remove(high);
                    set.pieces[low] = p;
                    i = 0;
                    continue 'outer;
                }
            }
            i += 1;
        }
        Ok(set)
    }
}

/// One conjunction equal to the union of two, if the constraints that hold on both describe it.
fn join(a: &BasicSet, b: &BasicSet, budget: &mut Budget) -> Result<Option<BasicSet>> {
    let (sa, sb) = (Set::from(a.clone()), Set::from(b.clone()));
    if sa.is_subset_in(&sb, budget)? {
        return Ok(Some(b.clone()));
    }
    if a.n_exists() != b.n_exists() {
        return Ok(None);
    }
    // With existentials, rows can be compared only when both use the same ones.
    let hidden = |s: &BasicSet| -> Vec<Row> {
        let visible = s.space.n_vars();
        s.sys
            .rows()
            .filter(|r| r[1 + visible..].iter().any(|&c| c != 0))
            .cloned()
            .collect()
    };
    let shared = hidden(a);
    let same = hidden(b);
    if shared.len() != same.len() || !shared.iter().all(|r| same.contains(r)) {
        return Ok(None);
    }
    let mut envelope = BasicSet {
        space: a.space,
        sys: System::new(a.sys.n),
    };
    let as_ges = |s: &BasicSet| -> Result<Vec<Row>> {
        let mut rows = s.sys.ges.clone();
        for r in &s.sys.eqs {
            rows.push(r.clone());
            rows.push(crate::system::negate(r)?);
        }
        Ok(rows)
    };
    let valid_on = |s: &BasicSet, r: &Row, budget: &mut Budget| -> Result<bool> {
        let mut sys = s.sys.clone();
        sys.ges.push(crate::system::negate_ge(r)?);
        omega::is_empty(sys, budget)
    };
    for r in as_ges(a)? {
        if shared.contains(&r) || valid_on(b, &r, budget)? {
            envelope.sys.ges.push(r);
        }
    }
    for r in as_ges(b)? {
        if shared.contains(&r) || valid_on(a, &r, budget)? {
            envelope.sys.ges.push(r);
        }
    }
    let union = Set {
        space: a.space,
        pieces: vec![a.clone(), b.clone()],
    };
    if !Set::from(envelope.clone()).is_subset_in(&union, budget)? {
        return Ok(None);
    }
    Ok(Some(envelope.simplify_in(budget)?))
}
