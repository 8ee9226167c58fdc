//! Finite unions of conjunctions: the sets of Presburger arithmetic.

use crate::basic::{BasicSet, check_len};
use crate::error::{Error, Result};
use crate::expr::{Constraint, LinExpr, Space};
use crate::int::Int;
use crate::map::Map;
use crate::omega;
use crate::subtract::{Negatable, subtract_each};
use crate::system::{Budget, Row, System};

/// A finite union of [`BasicSet`]s of one space. Pieces may overlap unless an operation says otherwise.
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

    /// The same set with every existential determined by the point, as a stride or a floor.
    pub fn div_form(&self) -> Result<Set> {
        self.div_form_in(&mut Budget::default())
    }

    pub(crate) fn div_form_in(&self, budget: &mut Budget) -> Result<Set> {
        let mut pieces = Vec::new();
        for p in &self.pieces {
            pieces.extend(p.div_form(budget)?);
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
                    // Tidying can hide a definition; then solve for the existentials again.
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

    /// The points of this set that are not in `other`, in disjoint pieces for each piece of this set.
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

    /// Simplified, without pieces inside others, and with pieces joined where their union is again a conjunction.
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

    /// A set with fewer constraints that agrees with this one on `context`.
    ///
    /// Only inequalities and equalities without existentials are dropped; a context of several pieces is used only
    /// through the constraints that hold on all of it.
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
            // Strides and floors go together when the context implies all that they say.
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

    fn map_pieces(&self, space: Space, f: impl Fn(&BasicSet) -> Result<BasicSet>) -> Result<Set> {
        Ok(Set {
            space,
            pieces: self.pieces.iter().map(f).collect::<Result<_>>()?,
        })
    }

    /// The projection that forgets the dimensions in `range`, exactly.
    pub fn project_out(&self, range: std::ops::Range<usize>) -> Result<Set> {
        self.project_out_in(range, &mut Budget::default())
    }

    pub(crate) fn project_out_in(
        &self,
        range: std::ops::Range<usize>,
        budget: &mut Budget,
    ) -> Result<Set> {
        if range.end > self.space.n_dims || range.start > range.end {
            return Err(Error::OutOfRange {
                index: range.end.max(range.start),
                len: self.space.n_dims,
            });
        }
        let first = self.space.n_params + range.start;
        let last = self.space.n_params + range.end;
        let gone = |v: usize| (first..last).contains(&v);
        let space = Space::new(self.space.n_params, self.space.n_dims - range.len());
        let mut pieces: Vec<BasicSet> = Vec::new();
        for p in &self.pieces {
            let mut parts = Vec::new();
            for q in p.eliminate(gone, budget)? {
                let q = q.delete_columns(space, gone);
                if !q.is_empty_in(budget)? {
                    parts.push(q);
                }
            }
            if parts.len() > 1 {
                let joined =
                    budget.try_within(100_000, |b| whole_shadow(p, space, gone, &parts, b))?;
                if let Some(Some(shadow)) = joined {
                    parts = vec![shadow];
                }
            }
            for q in parts {
                if !pieces.contains(&q) {
                    pieces.push(q);
                }
            }
        }
        Ok(Set { space, pieces })
    }

    /// The projection onto the dimensions in `range`.
    pub fn project_onto(&self, range: std::ops::Range<usize>) -> Result<Set> {
        let budget = &mut Budget::default();
        let after =
            self.project_out_in(range.end.min(self.space.n_dims)..self.space.n_dims, budget)?;
        if range.end > self.space.n_dims {
            return Err(Error::OutOfRange {
                index: range.end,
                len: self.space.n_dims,
            });
        }
        after.project_out_in(0..range.start, budget)
    }

    /// The first components of a set of pairs: the projection onto the first `n` dimensions.
    pub fn domain_of(&self, n: usize) -> Result<Set> {
        self.project_onto(0..n)
    }

    /// The second components of a set of pairs: the projection onto the dimensions from `n` on.
    pub fn range_of(&self, n: usize) -> Result<Set> {
        self.project_out(0..n)
    }

    /// The parameter values for which the set has a point, as a set without dimensions.
    pub fn params(&self) -> Result<Set> {
        self.project_out(0..self.space.n_dims)
    }

    /// The set with numbers in place of all parameters; the result has no parameters.
    pub fn fix_params(&self, params: &[Int]) -> Result<Set> {
        check_len(params, self.space.n_params)?;
        self.map_pieces(Space::new(0, self.space.n_dims), |p| p.fix_params(params))
    }

    /// The points whose dimension `dim` has the given value; the dimension stays.
    pub fn fix_dim(&self, dim: usize, value: Int) -> Result<Set> {
        let e = self.space.dim(dim)?.sub(&value.into())?;
        self.map_pieces(self.space, |p| {
            p.with_constraint(&Constraint::Eq(e.clone()))
        })
    }

    /// The points whose parameter `param` has the given value; the parameter stays.
    pub fn fix_param(&self, param: usize, value: Int) -> Result<Set> {
        let e = self.space.param(param)?.sub(&value.into())?;
        self.map_pieces(self.space, |p| {
            p.with_constraint(&Constraint::Eq(e.clone()))
        })
    }

    /// All parameters become leading dimensions.
    pub fn params_to_dims(&self) -> Set {
        self.with_n_params(0).unwrap_or_else(|_| self.clone())
    }

    /// The first `n` dimensions become the last parameters.
    pub fn dims_to_params(&self, n: usize) -> Result<Set> {
        self.with_n_params(self.space.n_params + n)
    }

    /// The same columns with the first `n_params` of them as parameters.
    pub fn with_n_params(&self, n_params: usize) -> Result<Set> {
        let n = self.space.n_vars();
        if n_params > n {
            return Err(Error::OutOfRange {
                index: n_params,
                len: n,
            });
        }
        let space = Space::new(n_params, n - n_params);
        self.map_pieces(space, |p| Ok(p.clone().with_space(space)))
    }

    /// `n` new dimensions without constraints, the first of them at position `at`.
    pub fn insert_dims(&self, at: usize, n: usize) -> Result<Set> {
        if at > self.space.n_dims {
            return Err(Error::OutOfRange {
                index: at,
                len: self.space.n_dims,
            });
        }
        let first = self.space.n_params + at;
        let space = Space::new(self.space.n_params, self.space.n_dims + n);
        self.map_pieces(space, |p| {
            let columns: Vec<usize> = (0..p.sys.n)
                .map(|v| if v < first { v } else { v + n })
                .collect();
            Ok(BasicSet {
                space,
                sys: p.sys.remap(p.sys.n + n, &columns),
            })
        })
    }

    /// `n` new parameters without constraints, the first of them at position `at`.
    pub fn insert_params(&self, at: usize, n: usize) -> Result<Set> {
        if at > self.space.n_params {
            return Err(Error::OutOfRange {
                index: at,
                len: self.space.n_params,
            });
        }
        let space = Space::new(self.space.n_params + n, self.space.n_dims);
        self.map_pieces(space, |p| {
            let columns: Vec<usize> = (0..p.sys.n)
                .map(|v| if v < at { v } else { v + n })
                .collect();
            Ok(BasicSet {
                space,
                sys: p.sys.remap(p.sys.n + n, &columns),
            })
        })
    }

    /// Dimensions in another order: new dimension `i` is old dimension `order[i]`.
    pub fn permute_dims(&self, order: &[usize]) -> Result<Set> {
        let d = self.space.n_dims;
        if order.len() != d {
            return Err(Error::Shape {
                expected: d,
                found: order.len(),
            });
        }
        let mut place = vec![usize::MAX; d];
        for (new, &old) in order.iter().enumerate() {
            if old >= d || place[old] != usize::MAX {
                return Err(Error::OutOfRange { index: old, len: d });
            }
            place[old] = new;
        }
        let k = self.space.n_params;
        self.map_pieces(self.space, |p| {
            let columns: Vec<usize> = (0..p.sys.n)
                .map(|v| {
                    if v >= k && v < k + d {
                        k + place[v - k]
                    } else {
                        v
                    }
                })
                .collect();
            Ok(BasicSet {
                space: self.space,
                sys: p.sys.remap(p.sys.n, &columns),
            })
        })
    }

    /// All pairs of a point of this set and a point of `other`, as points with the dimensions of both.
    pub fn product(&self, other: &Set) -> Result<Set> {
        if self.space.n_params != other.space.n_params {
            return self.space.require_same(other.space).map(|()| self.clone());
        }
        let left = self.insert_dims(self.space.n_dims, other.space.n_dims)?;
        let right = other.insert_dims(0, self.space.n_dims)?;
        left.intersect(&right)
    }

    /// The image under an affine map given by its components over `[params | dims]`.
    pub fn apply(&self, outputs: &[LinExpr]) -> Result<Set> {
        self.image(&Map::affine(self.space, outputs.to_vec())?)
    }

    /// The image under a map: all `f(x)` for points `x` of the set in the domain of `f`.
    pub fn image(&self, map: &Map) -> Result<Set> {
        self.space.require_same(map.domain.space)?;
        let budget = &mut Budget::default();
        let (k, d, m) = (self.space.n_params, self.space.n_dims, map.outputs.len());
        let source = Set::from(map.domain.clone());
        let mut graph = Vec::new();
        for p in &self.pieces {
            for f in &source.pieces {
                // The domain goes first, so that the columns of the outputs stay what they are.
                let both = f.intersect(p)?;
                let n = both.sys.n + m;
                let columns: Vec<usize> = (0..both.sys.n)
                    .map(|v| if v < k + d { v } else { v + m })
                    .collect();
                let mut sys = both.sys.remap(n, &columns);
                for (i, e) in map.outputs.iter().enumerate() {
                    let row = e.to_row(both.sys.n)?;
                    let mut eq = vec![0; n + 1];
                    eq[0] = row[0];
                    for (&to, &c) in columns.iter().zip(&row[1..]) {
                        eq[to + 1] = c;
                    }
                    eq[k + d + i + 1] = -1;
                    sys.eqs.push(eq);
                }
                graph.push(BasicSet {
                    space: Space::new(k, d + m),
                    sys,
                });
            }
        }
        let graph = Set {
            space: Space::new(k, d + m),
            pieces: graph,
        };
        graph.project_out_in(0..d, budget)
    }

    /// The points of the domain of `map` that it sends into this set.
    pub fn preimage(&self, map: &Map) -> Result<Set> {
        self.space.require_same(map.target_space())?;
        let domain = &map.domain;
        let (k, m) = (self.space.n_params, map.outputs.len());
        let mut pieces = Vec::new();
        for p in &self.pieces {
            let n = domain.sys.n + p.n_exists();
            let mut images: Vec<LinExpr> = (0..k).map(LinExpr::var).collect();
            images.extend(map.outputs.iter().cloned());
            images.extend((0..p.n_exists()).map(|q| LinExpr::var(domain.sys.n + q)));
            debug_assert_eq!(images.len(), k + m + p.n_exists());
            let moved = |rows: &[Row]| -> Result<Vec<Row>> {
                rows.iter()
                    .map(|r| LinExpr::from_row(r).substitute(&images)?.to_row(n))
                    .collect()
            };
            let mut sys: System = domain.sys.clone();
            sys.add_vars(p.n_exists());
            sys.eqs.extend(moved(&p.sys.eqs)?);
            sys.ges.extend(moved(&p.sys.ges)?);
            pieces.push(BasicSet {
                space: domain.space,
                sys,
            });
        }
        Ok(Set {
            space: domain.space,
            pieces,
        })
    }
}

/// The rational projection of `p`, if the exact projection in `parts` fills it.
fn whole_shadow(
    p: &BasicSet,
    space: Space,
    gone: impl Fn(usize) -> bool,
    parts: &[BasicSet],
    budget: &mut Budget,
) -> Result<Option<BasicSet>> {
    let visible = p.space.n_vars();
    let Some(mut sys) = omega::real_shadow(p.sys.clone(), |v| v < visible && !gone(v), budget)?
    else {
        return Ok(None);
    };
    omega::compact(&mut sys, visible);
    let shadow = BasicSet {
        space: p.space,
        sys,
    }
    .delete_columns(space, gone);
    let parts = Set {
        space,
        pieces: parts.to_vec(),
    };
    let fills = Set::from(shadow.clone()).is_subset_in(&parts, budget)?;
    Ok(if fills {
        Some(shadow.simplify_in(budget)?)
    } else {
        None
    })
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
