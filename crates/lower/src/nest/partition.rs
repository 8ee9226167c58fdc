//! Partitions a loop into prologue, steady state and epilogue.
//!
//! A wavefront fills and drains: only between its first and its last iterations does no cell need a
//! test. If these iterations are an interval, the loop becomes three loops in sequence, and the
//! middle one has no test. Since it has no branch either, several of its iterations can be
//! unrolled, and queues are renamed from iteration to iteration: with as many copies as a value is
//! old, no register is ever moved.
//!
//! A test that decides only about stores stays where it is if no copies are needed: a store is
//! predicated.

use systola_ir::DimId;
use systola_ir::form::{Cond, Form, Poly, Rel};

use crate::facts::{Facts, Range};
use crate::failure::Failure;
use crate::nest::context::{At, Context, Path};
use crate::nest::multiversion::of_blocks;
use crate::nest::tree::{Nest, sequence};
use crate::storage::partition::Pes;

/// From iteration `first` on and before iteration `end` no test is needed.
#[derive(Debug)]
pub(super) struct Steady {
    first: Option<Form>,
    end: Option<Form>,
}

impl<'a> Context<'a> {
    /// The steady state of a loop: the iterations in which no test inside the loop has two
    /// outcomes, if they are an interval and worth a loop of their own. At an edge, tests that have
    /// the same outcome in all blocks remain.
    pub(super) fn steady(
        &self,
        depth: usize,
        k: usize,
        range: &Range,
        at: &At<'a>,
    ) -> Result<Option<Steady>, Failure> {
        // An outer loop may run over tiles of its own, and a loop with waits is a wavefront.
        let around = depth + 1 < self.partition.steps.len();
        let wavefront = self.waits || (around && self.machine.threads.is_some());
        let worth = match at.path {
            Path::Inside => true,
            Path::Edge => depth == 0 && self.streams(),
        };
        if !self.is_known() || !wavefront || !worth {
            return Ok(None);
        }
        let iteration = DimId::from(k);
        let mut inner = at.clone();
        inner.slot[k] = Form::from(iteration);
        inner.facts.set_range(iteration, range.clone());
        let mut inside = self.inside(&inner, depth + 1, Some(k))?;
        if at.path == Path::Edge {
            inside = of_blocks(inside, iteration);
        }
        let conds = match inside {
            Cond::Const(_) => return Ok(None),
            Cond::And(parts) => parts,
            other => vec![other],
        };
        let (mut firsts, mut ends) = (Vec::new(), Vec::new());
        for cond in &conds {
            match bound(cond, iteration)? {
                Some(Bound::From(first)) => firsts.push(first),
                Some(Bound::To(end)) => ends.push(end),
                None => return Ok(None),
            }
        }
        let first = dominant(&at.facts, &firsts, &|a, b| a.sub(b));
        let end = dominant(&at.facts, &ends, &|a, b| b.sub(a));
        if first.is_none() != firsts.is_empty() || end.is_none() != ends.is_empty() {
            return Ok(None);
        }
        Ok(Some(Steady { first, end }))
    }

    /// The prologue, the steady state and the epilogue of a loop.
    pub(super) fn partitioned(
        &self,
        depth: usize,
        k: usize,
        range: &Range,
        steady: &Steady,
        at: &At<'a>,
    ) -> Result<Nest, Failure> {
        let Steady { first, end } = steady;
        let mut fill = range.clone();
        let mut middle = range.clone();
        let mut drain = range.clone();
        if let Some(first) = first {
            fill.hi.push(first.clone());
            middle.lo.push(first.clone());
            drain.lo.push(first.clone());
        }
        if let Some(end) = end {
            middle.hi.push(end.clone());
            drain.lo.push(end.clone());
        }
        let mut all = Vec::new();
        if first.is_some() {
            all.extend(self.with_tests(depth, k, fill, at)?);
        }
        let copies = match at.path {
            Path::Edge => 1,
            Path::Inside => self.copies(depth).max(self.copies_to_rename(depth)),
        };
        let middle = middle.without_implied(&at.facts);
        let body = |at: &At<'a>| self.level(depth + 1, at);
        all.push(self.unrolled_by(k, middle, copies, at, &body)?);
        if end.is_some() {
            all.extend(self.with_tests(depth, k, drain, at)?);
        }
        Ok(sequence(all))
    }

    /// Iterations with tests, if there can be any.
    fn with_tests(
        &self,
        depth: usize,
        k: usize,
        range: Range,
        at: &At<'a>,
    ) -> Result<Option<Nest>, Failure> {
        let range = range.without_implied(&at.facts);
        let empty = |lo: &Form, hi: &Form| at.facts.is_nonnegative(&lo.sub(hi));
        let mut starts = range.lo.iter();
        if starts.any(|lo| range.hi.iter().any(|hi| empty(lo, hi))) {
            return Ok(None);
        }
        let body = |at: &At<'a>| self.level(depth + 1, at);
        let edge = at.at_edge();
        Ok(Some(self.for_each(
            k,
            range.clone(),
            1,
            range,
            &edge,
            &body,
        )?))
    }

    /// The number of copies of an iteration after which every register holds a value made in them;
    /// one, if that is too much code.
    pub(super) fn copies_to_rename(&self, depth: usize) -> i128 {
        let Pes::Known { depth: ages } = &self.partition.walk else {
            return 1;
        };
        let Some(ticks) = self.ticks_inside(depth) else {
            return 1;
        };
        // The oldest value is read before the end of the iteration in which it becomes that old. If
        // its successor is made before that, a move is needed, which is an instruction like any
        // other where lanes are threads.
        let oldest = ages.iter().copied().max().unwrap_or(0);
        let spared = usize::from(self.machine.threads.is_none());
        let copies = oldest.saturating_sub(spared).div_ceil(ticks.max(1)).max(1);
        let cost = self
            .tick_cost()
            .saturating_mul(ticks)
            .saturating_mul(copies);
        if cost > 4 * self.machine.code_budget {
            return 1;
        }
        i128::try_from(copies).unwrap_or(1)
    }
}

/// The form that is on the far side of all others.
fn dominant(
    facts: &Facts<'_>,
    forms: &[Form],
    beyond: &dyn Fn(&Form, &Form) -> Form,
) -> Option<Form> {
    let all = |a: &&Form| {
        let mut others = forms.iter();
        others.all(|b| facts.is_nonnegative(&beyond(a, b)))
    };
    forms.iter().find(all).cloned()
}

enum Bound {
    /// The iteration is at least this.
    From(Form),
    /// The iteration is before this.
    To(Form),
}

/// c·iteration + rest ≥ 0 as a bound on the iteration.
fn bound(cond: &Cond, iteration: DimId) -> Result<Option<Bound>, Failure> {
    let Cond::Cmp(Rel::Ge, left, right) = cond else {
        return Ok(None);
    };
    let gap = left.sub(right);
    let Some(c) = gap.coefficient(iteration).as_constant() else {
        return Ok(None);
    };
    let rest = gap.sub(&Form::from(iteration).scale(&Poly::constant(c))?);
    if c == 0 || rest.dims().contains(&iteration) {
        return Ok(None);
    }
    Ok(Some(if c > 0 {
        Bound::From(rest.neg().plus(c - 1).floor_div(c))
    } else {
        Bound::To(rest.floor_div(-c).plus(1))
    }))
}
