//! Builds the finished nest from a loop for each time coordinate, the outermost loop first.

use systola_ir::DimId;
use systola_ir::form::{Cond, Form, Overflow};

use crate::facts::Range;
use crate::failure::Failure;
use crate::nest::context::{At, Context, Path};
use crate::nest::tree::{Nest, sequence};
use crate::nest::walk::Walk;
use crate::storage::slots;

/// Builds what is inside a loop or a version.
pub(super) type Body<'f, 'a> = dyn Fn(&At<'a>) -> Result<Nest, Failure> + 'f;

impl<'a> Context<'a> {
    /// The loops over the time coordinates from `depth` on. An iteration of the first loop waits
    /// for other blocks before it begins and signals them when it is complete.
    pub(super) fn level(&self, depth: usize, at: &At<'a>) -> Result<Nest, Failure> {
        let steps = &self.partition.steps;
        let mut all = Vec::new();
        let signals = self.waits && depth == steps.len().min(1);
        if signals {
            all.push(Nest::Await);
        }
        if self.has_windows(depth) {
            all.push(Nest::Fill { depth });
        }
        match steps.get(depth).copied() {
            None => all.push(Nest::Tick),
            Some(k) => {
                if self.has_windows(depth + 1) {
                    all.push(Nest::Prime { depth, k });
                }
                all.push(self.steps(depth, k, at)?);
            }
        }
        if signals {
            all.push(Nest::Signal);
        }
        Ok(sequence(all))
    }

    fn steps(&self, depth: usize, k: usize, at: &At<'a>) -> Result<Nest, Failure> {
        if self.array.keeps_values() {
            return self.separated(depth, k, at);
        }
        let unrolled = |(lo, hi): (i128, i128)| -> Result<Nest, Failure> {
            let each = (lo..hi).map(|n| self.once(depth, k, Form::from(n), Cond::TRUE, at));
            Ok(sequence(each.collect::<Result<_, _>>()?))
        };
        match (self.walk[depth], self.slots.ranges[k].constant()) {
            (Walk::Unrolled, Some(ends)) => unrolled(ends),
            (Walk::By(n), Some(ends)) if ends.1 - ends.0 <= n => unrolled(ends),
            (Walk::Unrolled | Walk::By(_) | Walk::Rolled, _) => self.rolled(depth, k, at),
        }
    }

    /// A loop, and peeled iterations before and after it.
    fn rolled(&self, depth: usize, k: usize, at: &At<'a>) -> Result<Nest, Failure> {
        let range = self.iterations(depth, k, at)?;
        let (first, last) = self.peel(depth, k, &range, at)?;
        let Some((lo, hi)) = range.single().map(|(lo, hi)| (lo.clone(), hi.clone())) else {
            return self.looped(depth, k, range, at);
        };
        let mut all = Vec::new();
        for n in 0..first {
            let value = lo.plus(n);
            let when = range.holds(&value);
            all.push(self.once(depth, k, value, when, at)?);
        }
        let middle = Range::new(lo.plus(first), hi.plus(-last));
        if !at.facts.is_nonnegative(&middle.lo[0].sub(&middle.hi[0])) {
            all.push(self.looped(depth, k, middle, at)?);
        }
        for n in (1..=last).rev() {
            // In a short range the first iterations already include this one.
            let value = hi.plus(-n);
            let when = Range::new(lo.plus(first), hi.clone()).holds(&value);
            all.push(self.once(depth, k, value, when, at)?);
        }
        Ok(sequence(all))
    }

    /// One iteration of a loop, if it exists.
    pub(super) fn once(
        &self,
        depth: usize,
        k: usize,
        value: Form,
        when: Cond,
        at: &At<'a>,
    ) -> Result<Nest, Failure> {
        // A loop may be unrolled millions of times.
        affine::cancel::check();
        let when = at.facts.simplify(&when);
        let mut inner = at.clone();
        inner.slot[k] = value.clone();
        match &when {
            Cond::Const(true) => {}
            Cond::Const(false) => return Ok(Nest::Sequence(Vec::new())),
            cond => inner.facts = at.facts.with(cond.clone()),
        }
        Ok(Nest::Once {
            k,
            value,
            when,
            body: Box::new(self.level(depth + 1, &inner)?),
        })
    }

    /// A loop, partitioned if a wavefront fills and drains.
    fn looped(&self, depth: usize, k: usize, range: Range, at: &At<'a>) -> Result<Nest, Failure> {
        if let Some(steady) = self.steady(depth, k, &range, at)? {
            return self.partitioned(depth, k, &range, &steady, at);
        }
        let copies = match at.path {
            Path::Edge => 1,
            Path::Inside => self.copies(depth),
        };
        self.unrolled_by(k, range, copies, at, &|at| self.iteration(depth, k, at))
    }

    /// An iteration, multiversioned if that pays.
    fn iteration(&self, depth: usize, k: usize, at: &At<'a>) -> Result<Nest, Failure> {
        let inside = self.iteration_inside(depth, k, at)?;
        self.versions(inside, at, &|at| self.level(depth + 1, at))
    }

    /// A loop over the values of a range; inside it the values are known to be in `known`.
    pub(super) fn for_each(
        &self,
        k: usize,
        range: Range,
        copies: i128,
        known: Range,
        at: &At<'a>,
        body: &Body<'_, 'a>,
    ) -> Result<Nest, Failure> {
        let mut inner = at.clone();
        inner.slot[k] = Form::from(DimId::from(k));
        inner.facts.set_range(DimId::from(k), known);
        Ok(Nest::For {
            k,
            range,
            copies,
            independent: self.is_independent(k, &inner)?,
            body: Box::new(body(&inner)?),
        })
    }

    /// The iterations of a loop. At an edge tiles are cut off, and a block runs only the iterations
    /// in which it has points; blocks that wait for each other count all iterations.
    fn iterations(&self, depth: usize, k: usize, at: &At<'a>) -> Result<Range, Overflow> {
        let all = &self.slots.ranges[k];
        let cut = depth == 0 && at.path == Path::Edge && self.streams();
        let own = || slots::range(self.array, self.decide, k, &self.partition.blocks).ok();
        let range = if cut && self.partition.packing.is_none() {
            own()
        } else {
            None
        };
        range.as_ref().unwrap_or(all).map(&|f| at.value(f))
    }
}
