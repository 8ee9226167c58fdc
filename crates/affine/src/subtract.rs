//! Exact differences, and operations based on them: complements, disjoint pieces, subsets,
//! equality.
//!
//! The complement of `{ x : exists q: C(x, q) }` is not a union of negated constraints as long as
//! `q` can be chosen freely. In div form it is: `q` is a function of `x`, so the definition stays
//! and the constraint is negated.

use crate::basic::BasicSet;
use crate::div::Div;
use crate::error::Result;
use crate::int::{Int, sub};
use crate::set::Set;
use crate::system::{Budget, Row, System, negate_ge};

impl Set {
    /// The points of this set that are not in `other`, in disjoint pieces for each piece of this
    /// set.
    pub fn subtract(&self, other: &Set) -> Result<Set> {
        self.subtract_in(other, &mut Budget::default())
    }

    pub(crate) fn subtract_in(&self, other: &Set, budget: &mut Budget) -> Result<Set> {
        self.space.require_same(other.space)?;
        let subtrahends = other.negatable(budget)?;
        let mut pieces = Vec::new();
        for a in &self.pieces {
            if a.is_empty_in(budget)? {
                continue;
            }
            subtract_each(a, &subtrahends, budget, &mut |p| {
                pieces.push(p);
                Ok(true)
            })?;
        }
        Ok(Set {
            space: self.space,
            pieces,
        })
    }

    fn negatable(&self, budget: &mut Budget) -> Result<Vec<Negatable>> {
        let mut all = Vec::new();
        for p in &self.pieces {
            for q in p.div_form(budget)? {
                let Some(q) = q.tidied(budget)? else { continue };
                match Negatable::new(&q)? {
                    Some(n) => all.push(n),
                    // Tidying can hide a definition; in that case, solve for the existentials
                    // again.
                    None => {
                        for r in q.eliminate(|_| false, budget)? {
                            if let Some(n) = Negatable::new(&r)? {
                                all.push(n);
                            }
                        }
                    }
                }
            }
        }
        Ok(all)
    }

    /// The points of the space that are not in the set.
    pub fn complement(&self) -> Result<Set> {
        Set::universe(self.space).subtract(self)
    }

    /// The points of `universe` that are not in the set.
    pub fn complement_in(&self, universe: &Set) -> Result<Set> {
        universe.subtract(self)
    }

    /// The same set in pairwise disjoint pieces, none of them empty.
    pub fn make_disjoint(&self) -> Result<Set> {
        self.make_disjoint_in(&mut Budget::default())
    }

    pub(crate) fn make_disjoint_in(&self, budget: &mut Budget) -> Result<Set> {
        let mut done = Set::empty(self.space);
        for p in &self.pieces {
            let rest = Set::from(p.clone()).subtract_in(&done, budget)?;
            done.pieces.extend(rest.pieces);
        }
        Ok(done)
    }

    /// Whether every point of this set is in `other`.
    pub fn is_subset(&self, other: &Set) -> Result<bool> {
        self.is_subset_in(other, &mut Budget::default())
    }

    pub(crate) fn is_subset_in(&self, other: &Set, budget: &mut Budget) -> Result<bool> {
        self.space.require_same(other.space)?;
        let mut subtrahends = None;
        for a in &self.pieces {
            if other.pieces.contains(a) || a.is_empty_in(budget)? {
                continue;
            }
            if subtrahends.is_none() {
                subtrahends = Some(other.negatable(budget)?);
            }
            let all = subtrahends.as_deref().unwrap_or_default();
            if !subtract_each(a, all, budget, &mut |_| Ok(false))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether both sets have the same points.
    pub fn is_equal(&self, other: &Set) -> Result<bool> {
        let budget = &mut Budget::default();
        Ok(self.is_subset_in(other, budget)? && other.is_subset_in(self, budget)?)
    }

    /// Whether no point is in both sets.
    pub fn is_disjoint(&self, other: &Set) -> Result<bool> {
        self.space.require_same(other.space)?;
        let budget = &mut Budget::default();
        for a in &self.pieces {
            for b in &other.pieces {
                if !a.intersect(b)?.is_empty_in(budget)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// A conjunction in div form, ready to be negated.
struct Negatable {
    n: usize,
    n_visible: usize,
    divs: Vec<Div>,
    eqs: Vec<Row>,
    ges: Vec<Row>,
}

impl Negatable {
    /// `set` must be in div form; otherwise `None`.
    fn new(set: &BasicSet) -> Result<Option<Negatable>> {
        let Some(divs) = set.div_definitions()? else {
            return Ok(None);
        };
        let mut implied = Vec::new();
        for d in &divs {
            implied.extend(d.rows()?);
        }
        let ges = set.sys.ges.iter().filter(|r| !implied.contains(r));
        let mut ges: Vec<Row> = ges.cloned().collect();
        let n_visible = set.space.n_vars();
        let mut eqs = set.sys.eqs.clone();
        let n_hidden = |r: &Row| r[1 + n_visible..].iter().filter(|&&c| c != 0).count();
        eqs.sort_by_key(n_hidden);
        ges.sort_by_key(n_hidden);
        Ok(Some(Negatable {
            n: set.sys.n,
            n_visible,
            divs,
            eqs,
            ges,
        }))
    }

    /// The definitions that `row` needs, directly or through other definitions, as a mask over
    /// `divs`.
    fn mark_needed(&self, row: &[Int], needed: &mut [bool]) {
        let mut mentioned: Vec<bool> = row[1..].iter().map(|&c| c != 0).collect();
        for (k, d) in self.divs.iter().enumerate().rev() {
            if mentioned[d.var] {
                needed[k] = true;
                for (m, &c) in mentioned.iter_mut().zip(&d.numerator[1..]) {
                    *m |= c != 0;
                }
            }
        }
    }
}

/// `base`, with the existentials of `b` appended as columns, restricted by rows over the columns of
/// `b`.
struct Splitter<'a> {
    base: System,
    columns: Vec<usize>,
    b: &'a Negatable,
    needed: Vec<bool>,
    taken_eqs: Vec<Row>,
    taken_ges: Vec<Row>,
}

impl Splitter<'_> {
    fn moved(&self, row: &[Int]) -> Row {
        let mut r = vec![0; self.base.n + 1];
        r[0] = row[0];
        for (&to, &c) in self.columns.iter().zip(&row[1..]) {
            r[to + 1] = c;
        }
        r
    }

    /// The intersection of `base` with all of `b`.
    fn whole(&self) -> Result<System> {
        let mut sys = self.base.clone();
        sys.eqs.extend(self.b.eqs.iter().map(|r| self.moved(r)));
        sys.ges.extend(self.b.ges.iter().map(|r| self.moved(r)));
        for d in &self.b.divs {
            for r in d.rows()? {
                sys.ges.push(self.moved(&r));
            }
        }
        Ok(sys)
    }

    /// The part of `base` inside all rows taken so far and inside `extra >= 0`.
    fn piece(&self, extra: &Row) -> Result<System> {
        let mut sys = self.base.clone();
        let mut needed = self.needed.clone();
        self.b.mark_needed(extra, &mut needed);
        sys.ges.push(self.moved(extra));
        sys.eqs.extend(self.taken_eqs.iter().map(|r| self.moved(r)));
        sys.ges.extend(self.taken_ges.iter().map(|r| self.moved(r)));
        for (d, _) in self.b.divs.iter().zip(&needed).filter(|(_, n)| **n) {
            for r in d.rows()? {
                let r = self.moved(&r);
                if !sys.ges.contains(&r) {
                    sys.ges.push(r);
                }
            }
        }
        Ok(sys)
    }
}

/// Calls `emit` with non-empty, pairwise disjoint pieces whose union is `a` minus all of
/// `subtrahends`, until it returns `false`. Returns whether it ran to the end.
fn subtract_each(
    a: &BasicSet,
    subtrahends: &[Negatable],
    budget: &mut Budget,
    emit: &mut dyn FnMut(BasicSet) -> Result<bool>,
) -> Result<bool> {
    let Some((b, rest)) = subtrahends.split_first() else {
        return emit(a.clone());
    };
    let n_visible = a.space.n_vars();
    let mut base = a.sys.clone();
    base.add_vars(b.n - b.n_visible);
    let columns = (0..b.n)
        .map(|v| if v < n_visible { v } else { v + a.n_exists() })
        .collect();
    let mut split = Splitter {
        base,
        columns,
        b,
        needed: vec![false; b.divs.len()],
        taken_eqs: Vec::new(),
        taken_ges: Vec::new(),
    };
    let constraints = b.eqs.iter().map(|r| (r, true));
    let constraints = constraints.chain(b.ges.iter().map(|r| (r, false)));
    let constraints: Vec<(&Row, bool)> = constraints.collect();
    if constraints.is_empty() {
        return Ok(true);
    }
    if crate::omega::is_empty(split.whole()?, budget)? {
        return subtract_each(a, rest, budget, emit);
    }
    let mut outside: Vec<BasicSet> = Vec::new();
    for (row, is_eq) in constraints {
        let mut negations = vec![negate_ge(row)?];
        if is_eq {
            let mut above = row.clone();
            above[0] = sub(above[0], 1)?;
            negations.push(above);
        }
        let mut any = false;
        for negation in &negations {
            let sys = split.piece(negation)?;
            budget.spend(sys.n_rows())?;
            if crate::omega::is_empty(sys.clone(), budget)? {
                continue;
            }
            any = true;
            let piece = BasicSet {
                space: a.space,
                sys,
            };
            if let Some(piece) = piece.tidied(budget)? {
                outside.push(piece);
            }
        }
        if any {
            let mut needed = std::mem::take(&mut split.needed);
            b.mark_needed(row, &mut needed);
            split.needed = needed;
            if is_eq {
                split.taken_eqs.push(row.clone());
            } else {
                split.taken_ges.push(row.clone());
            }
        }
    }
    for piece in outside {
        if !subtract_each(&piece, rest, budget, emit)? {
            return Ok(false);
        }
    }
    Ok(true)
}
