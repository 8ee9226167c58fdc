//! Loops over points only, with every equation where it has points.
//!
//! Where values go through memory, nothing has to tick in a slot without a point. A loop runs over
//! the values that its coordinate takes at the point of the loops around it, and is cut where the
//! tests of the cells change: in each part, cells compute everywhere or nowhere, and a part without
//! any is left out. So the loops of several equations are those that a person writes.

use systola_ir::DimId;
use systola_ir::form::{Cond, Form, Poly, Rel};

use crate::facts::Range;
use crate::failure::Failure;
use crate::nest::context::{At, Context};
use crate::nest::tree::{Nest, sequence};
use crate::nest::walk::Walk;
use crate::storage::slots;

/// A loop is cut at most this often.
pub const MOST_CUTS: usize = 4;

impl<'a> Context<'a> {
    /// The versions of a block for tests of the launch and the block alone.
    pub(super) fn by_grid(&self, at: &At<'a>, cuts: usize) -> Result<Nest, Failure> {
        let partition = self.partition;
        let of_grid = |d: &DimId| {
            let mut grid = partition.launches.iter().chain(&partition.blocks);
            grid.any(|k| *k == d.index())
        };
        let open = self.tests.iter().map(|test| &test.cond).find(|cond| {
            let mut forms = cond.forms().into_iter();
            forms.all(|f| f.dims().iter().all(of_grid))
                && !matches!(at.facts.simplify(cond), Cond::Const(_))
        });
        let Some(cond) = open.filter(|_| cuts > 0) else {
            return self.level(0, at);
        };
        let version = |holds: Cond| {
            let mut at = at.clone();
            at.facts = at.facts.with(holds);
            self.by_grid(&at, cuts - 1).map(Box::new)
        };
        Ok(Nest::Versions {
            inside: version(cond.clone())?,
            edge: version(cond.clone().negate())?,
            cond: cond.clone(),
        })
    }

    /// The loops over the points at a step.
    pub(super) fn separated(&self, depth: usize, k: usize, at: &At<'a>) -> Result<Nest, Failure> {
        let partition = self.partition;
        let around = [
            &partition.launches[..],
            &partition.blocks,
            &partition.steps[..depth],
        ]
        .concat();
        let exact = slots::range(self.array, self.decide, k, &around).ok();
        let range = exact.as_ref().unwrap_or(&self.slots.ranges[k]);
        let range = range.map(&|f| at.value(f))?.without_implied(&at.facts);
        let mut parts = Vec::new();
        self.cut(depth, k, range, at, MOST_CUTS, &mut parts)?;
        Ok(sequence(parts))
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
        if self.is_empty(&inner)? {
            return Ok(());
        }
        let cut = match cuts {
            0 => None,
            _ => self.change(depth, k, &inner)?,
        };
        if let Some(cut) = cut {
            let (mut before, mut after) = (range.clone(), range);
            before.hi.push(cut.clone());
            after.lo.push(cut);
            let go_on = |part: Range, parts: &mut Vec<Nest>| {
                let part = part.without_implied(&at.facts);
                self.cut(depth, k, part, at, cuts - 1, parts)
            };
            go_on(before, parts)?;
            return go_on(after, parts);
        }
        if let Some((lo, hi)) = range.single()
            && hi.sub(lo).as_constant() == Some(1)
        {
            parts.push(self.once(depth, k, lo.clone(), Cond::TRUE, at)?);
            if self.barriers[depth] {
                parts.push(Nest::Barrier);
            }
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

    /// Does no cell have a point here?
    fn is_empty(&self, at: &At<'a>) -> Result<bool, Failure> {
        for piece in &self.slots.pieces {
            let point = |f: &Form| f.substitute(&|d| piece.point.get(d.index()).cloned());
            for cell in &self.array.cells {
                let domain = cell.domain.map(&point)?.map(&|f| at.value(f))?;
                if at.facts.simplify(&domain) != Cond::Const(false) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// A value of the coordinate at which the outcome of a test changes.
    fn change(&self, depth: usize, k: usize, at: &At<'a>) -> Result<Option<Form>, Failure> {
        let later = self.partition.steps[depth + 1..].iter().copied();
        let inner: Vec<usize> = later.chain(self.partition.places()).collect();
        let v = DimId::from(k);
        for test in &self.tests {
            let Cond::Cmp(rel, left, right) = &test.cond else {
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
