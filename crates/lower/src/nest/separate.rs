//! Loops over points only, with every equation where it has points.
//!
//! Where values go through memory, nothing has to tick in a slot without a point. A loop runs over
//! the values that its coordinate takes at the point of the loops around it, and is cut where the
//! tests of the cells change: in each part, cells compute everywhere or nowhere, and a part without
//! any is left out. So the loops of several equations are those that a person writes.

use systola_ir::form::{Atom, Cond, Form, Poly, Rel};
use systola_ir::{DimId, VarId};

use crate::digits::gcd;
use crate::facts::Range;
use crate::failure::Failure;
use crate::nest::context::{At, Context};
use crate::nest::memory_order::is_independent;
use crate::nest::tree::{Nest, sequence};
use crate::nest::walk::Walk;
use crate::storage::slots::{self, Part};

/// A loop whose tests repeat after at most as many iterations has a body for each of them.
const LONGEST_PERIOD: i128 = 4;

/// The greatest number of cuts of a loop; a cut that depends on sizes counts as four.
pub const MOST_CUTS: usize = 16;

impl<'a> Context<'a> {
    /// The versions of a block for tests of the launch and the block alone.
    pub(super) fn by_grid(&self, at: &At<'a>, cuts: usize) -> Result<Nest, Failure> {
        let partition = self.partition;
        let of_grid = |d: &DimId| {
            let mut grid = partition.launches.iter().chain(&partition.blocks);
            grid.any(|k| *k == d.index())
        };
        let alive = self.alive(at)?;
        let open = self.tests_of(&alive).find(|cond| {
            let dims: Vec<DimId> = cond.forms().into_iter().flat_map(Form::dims).collect();
            !dims.is_empty()
                && dims.iter().all(of_grid)
                && !matches!(at.facts.simplify(cond), Cond::Const(_))
        });
        let Some(cond) = open.filter(|_| cuts > 0) else {
            return self.level(0, at);
        };
        let version = |holds: Cond| {
            let mut at = at.clone();
            at.facts = at.facts.with(holds);
            self.by_grid(&at, cuts.saturating_sub(4)).map(Box::new)
        };
        Ok(Nest::Versions {
            inside: version(cond.clone())?,
            edge: version(cond.clone().negate())?,
            cond: cond.clone(),
        })
    }

    /// The loops over the points at a step.
    pub(super) fn separated(&self, depth: usize, k: usize, at: &At<'a>) -> Result<Nest, Failure> {
        let range = self.points_of(depth, k, at)?;
        let range = range.map(&|f| at.value(f))?.without_implied(&at.facts);
        let mut parts = Vec::new();
        match self.period(depth, k, at)? {
            Some(period) => parts.push(self.by_remainder(depth, k, &range, period, at)?),
            None => self.cut(depth, k, range, at, MOST_CUTS, &mut parts)?,
        }
        Ok(sequence(parts))
    }

    /// The values that a coordinate takes at the points of the cells that are alive.
    fn points_of(&self, depth: usize, k: usize, at: &At<'a>) -> Result<Range, Failure> {
        let partition = self.partition;
        let around = [
            &partition.launches[..],
            &partition.blocks,
            &partition.steps[..depth],
        ]
        .concat();
        let alive = self.alive(at)?;
        let mut parts = Vec::new();
        for piece in &self.array.pieces {
            for cell in &alive {
                let domain = self.array.cells[cell.index()].domain.clone();
                parts.push(Part {
                    cond: domain.and(piece.cond.clone()),
                    value: piece.coordinate(k).clone(),
                    given: around
                        .iter()
                        .map(|g| piece.coordinate(*g).clone())
                        .collect(),
                });
            }
        }
        match slots::bounds(self.decide, self.array.dims.len(), parts, &around) {
            Ok(range) => Ok(range),
            Err(_) if !self.slots.ranges[k].lo.is_empty() => Ok(self.slots.ranges[k].clone()),
            Err(undecided) => Err(undecided.into()),
        }
    }

    fn cut(
        &self,
        depth: usize,
        k: usize,
        range: Range,
        at: &At<'a>,
        cuts: usize,
        parts: &mut Vec<Nest>,
    ) -> Result<(), Failure> {
        let ends = range
            .lo
            .iter()
            .flat_map(|lo| range.hi.iter().map(move |hi| lo.sub(hi)));
        if ends.into_iter().any(|gap| at.facts.is_nonnegative(&gap)) {
            return Ok(());
        }
        let mut inner = at.clone();
        inner.slot[k] = Form::from(DimId::from(k));
        inner.facts.set_range(DimId::from(k), range.clone());
        if self.alive(&inner)?.is_empty() {
            return Ok(());
        }
        let cut = match cuts {
            0 => None,
            _ => self.change(depth, k, &inner)?,
        };
        if let Some(cut) = cut {
            // Only small sizes have values in another order, which is not worth loops of its own.
            let usual = self.usual_order(&range, &cut, at);
            if usual != Cond::TRUE {
                let mut versions = [Vec::new(), Vec::new()];
                let mut inside = at.clone();
                inside.facts = at.facts.with(usual.clone());
                let usually = range.clone().without_implied(&inside.facts);
                self.cut(depth, k, usually, &inside, cuts, &mut versions[0])?;
                let mut edge = at.clone();
                edge.facts = at.facts.with(usual.clone().negate());
                self.cut(depth, k, range, &edge, 0, &mut versions[1])?;
                let [inside, edge] = versions.map(|parts| Box::new(sequence(parts)));
                parts.push(Nest::Versions {
                    cond: usual,
                    inside,
                    edge,
                });
                return Ok(());
            }
            // Numbers, such as those of phases, can be in one order only, and make few parts.
            let left = match cut.as_constant() {
                Some(_) => cuts - 1,
                None => cuts.saturating_sub(4),
            };
            let (mut before, mut after) = (range.clone(), range);
            before.hi.push(cut.clone());
            after.lo.push(cut);
            let go_on = |part: Range, parts: &mut Vec<Nest>| {
                let part = part.without_implied(&at.facts);
                self.cut(depth, k, part, at, left, parts)
            };
            go_on(before, parts)?;
            return go_on(after, parts);
        }
        if let Some((lo, hi)) = range.single()
            && hi.sub(lo).as_constant() == Some(1)
        {
            parts.push(self.once(depth, k, lo.clone(), Cond::TRUE, at)?);
            parts.extend(self.barriers[depth].then_some(Nest::Barrier));
            return Ok(());
        }
        let copies = match self.walk[depth] {
            Walk::By(n) => n,
            Walk::Unrolled | Walk::Rolled => 1,
        };
        let body = |at: &At<'a>| {
            let inside = self.level(depth + 1, at)?;
            Ok(match self.barriers[depth] {
                true => sequence(vec![inside, Nest::Barrier]),
                false => inside,
            })
        };
        parts.push(self.unrolled_by(k, range, copies, at, &body)?);
        Ok(())
    }

    /// The condition under which a cut is between the ends of a range, as far as sizes decide that.
    fn usual_order(&self, range: &Range, cut: &Form, at: &At<'a>) -> Cond {
        let from = range.lo.iter().map(|lo| cut.sub(lo));
        let to = range.hi.iter().map(|hi| hi.sub(cut));
        let mut usual = Cond::TRUE;
        for gap in from.chain(to) {
            if gap.dims().is_empty() && !at.facts.is_nonnegative(&gap) {
                usual = usual.and(Cond::cmp(Rel::Ge, gap, 0));
            }
        }
        at.facts.simplify(&usual)
    }

    /// The modulus of a coordinate in tests that say in which iterations cells have points.
    fn period(&self, depth: usize, k: usize, at: &At<'a>) -> Result<Option<i128>, Failure> {
        let v = DimId::from(k);
        let later = self.partition.steps[depth + 1..].iter().copied();
        let inner: Vec<usize> = later.chain(self.partition.places()).collect();
        let mut period = 1;
        let alive = self.alive(at)?;
        for test in self.tests_of(&alive) {
            for form in test.forms() {
                for (atom, _) in form.terms() {
                    let Atom::Mod(of, m) = atom else { continue };
                    let others = of.dims().into_iter().filter(|d| *d != v);
                    let alone = others.into_iter().all(|d| !inner.contains(&d.index()));
                    let affine = of.terms().all(|(atom, _)| matches!(atom, Atom::Dim(_)));
                    let known = at.value(of)?.modulo(*m);
                    if of.dims().contains(&v) && alone && affine && known.as_constant().is_none() {
                        period = lcm(period, *m);
                    }
                }
            }
        }
        Ok((2..=LONGEST_PERIOD).contains(&period).then_some(period))
    }

    /// A loop over whole periods, in which each remainder has a body of its own.
    fn by_remainder(
        &self,
        depth: usize,
        k: usize,
        range: &Range,
        period: i128,
        at: &At<'a>,
    ) -> Result<Nest, Failure> {
        let lo = range.lo.iter().map(|f| f.floor_div(period)).collect();
        let hi = range
            .hi
            .iter()
            .map(|f| f.plus(period - 1).floor_div(period))
            .collect();
        let periods = Range { lo, hi };
        let v = DimId::from(k);
        let mut bodies = Vec::new();
        for remainder in 0..period {
            // In the body the coordinate is what it is; in the loop it counts periods.
            let mut inner = at.clone();
            inner.slot[k] = Form::from(v);
            inner.facts.set_range(v, range.clone());
            let own = Cond::cmp(Rel::Eq, Form::from(v).modulo(period), remainder);
            inner.facts = inner.facts.with(own);
            if self.alive(&inner)?.is_empty() {
                continue;
            }
            let value = Form::from(v)
                .scale(&Poly::constant(period))?
                .plus(remainder);
            bodies.push(Nest::Once {
                k,
                when: range.holds(&value),
                value,
                body: Box::new(self.level(depth + 1, &inner)?),
            });
            bodies.extend(self.barriers[depth].then_some(Nest::Barrier));
        }
        Ok(Nest::For {
            k,
            range: periods,
            copies: 1,
            independent: false,
            body: Box::new(sequence(bodies)),
        })
    }

    /// May the iterations of a loop run in any order? Only compilers of C ask, of innermost loops.
    pub(super) fn is_independent(&self, k: usize, at: &At<'a>) -> Result<bool, Failure> {
        let last = self.partition.steps.last() == Some(&k);
        let plain = self.partition.vector.is_none() && self.machine.threads.is_none();
        // A window is filled again in each iteration.
        let windows = !self.shared.windows.is_empty();
        if !self.array.keeps_values() || !last || !plain || windows {
            return Ok(false);
        }
        let alive = self.alive(at)?;
        let known = (k, alive.clone());
        if let Some(answer) = self.independent.borrow().get(&known) {
            return Ok(*answer);
        }
        let depth = self.partition.steps.len() - 1;
        let (array, decide) = (self.array, self.decide);
        // What is too hard to decide is not claimed.
        let answer = is_independent(array, self.partition, decide, depth, &alive).unwrap_or(false);
        self.independent.borrow_mut().insert(known, answer);
        Ok(answer)
    }

    /// The tests of some cells.
    fn tests_of<'t>(&'t self, cells: &'t [VarId]) -> impl Iterator<Item = &'t Cond> {
        cells.iter().flat_map(|cell| &self.of_cells[cell.index()])
    }

    /// The cells that have points here.
    fn alive(&self, at: &At<'a>) -> Result<Vec<VarId>, Failure> {
        let mut alive = Vec::new();
        for (n, cell) in self.array.cells.iter().enumerate() {
            for piece in &self.slots.pieces {
                let point = |f: &Form| f.substitute(&|d| piece.point.get(d.index()).cloned());
                let domain = cell.domain.map(&point)?.map(&|f| at.value(f))?;
                if at.facts.simplify(&domain) != Cond::Const(false) {
                    alive.push(VarId::from(n));
                    break;
                }
            }
        }
        Ok(alive)
    }

    /// A value of the coordinate at which the outcome of a test changes.
    fn change(&self, depth: usize, k: usize, at: &At<'a>) -> Result<Option<Form>, Failure> {
        let later = self.partition.steps[depth + 1..].iter().copied();
        let inner: Vec<usize> = later.chain(self.partition.places()).collect();
        let v = DimId::from(k);
        let alive = self.alive(at)?;
        for test in self.tests_of(&alive) {
            let Cond::Cmp(rel, left, right) = test else {
                continue;
            };
            let gap = left.sub(right);
            let Some(sign @ (1 | -1)) = gap.coefficient(v).as_constant() else {
                continue;
            };
            let own = Form::from(v).scale(&Poly::constant(sign))?;
            let rest = gap.sub(&own);
            let dims = rest.dims();
            if dims.contains(&v) || dims.iter().any(|d| inner.contains(&d.index())) {
                continue;
            }
            let zero = at.value(&rest.scale(&Poly::constant(-sign))?)?;
            let changes = match rel {
                Rel::Eq | Rel::Ne => vec![zero.clone(), zero.plus(1)],
                Rel::Ge | Rel::Lt if sign > 0 => vec![zero],
                Rel::Gt | Rel::Le if sign < 0 => vec![zero],
                Rel::Ge | Rel::Lt | Rel::Gt | Rel::Le => vec![zero.plus(1)],
            };
            for change in changes {
                let reached = Cond::Cmp(Rel::Ge, Form::from(v), change.clone());
                if !matches!(at.facts.simplify(&reached), Cond::Const(_)) {
                    return Ok(Some(change));
                }
            }
        }
        Ok(None)
    }
}

fn lcm(a: i128, b: i128) -> i128 {
    a / gcd(a, b) * b
}
