//! Loops in parts, and loops with several turns written out.
//!
//! A wavefront fills and drains: only between its first and its last turns no cell needs a test. Where these turns are an
//! interval, the loop becomes three, one after the other, and the one in the middle has no test. Since it has
//! no branch either, several of its turns can be written out, and queues are renamed from turn to turn:
//! with as many turns as a value is old, no register is ever moved.

use systola_ir::DimId;
use systola_ir::form::{Cond, Form, Poly, Rel};
use systola_ir::kernel::VarKind;

use crate::apply_mapping::Failure;
use crate::kernel::facts::Range;
use crate::kernel::loops::Emitter;
use crate::kernel::partition::Pes;
use crate::kernel::paths::of_blocks;

/// The turns from the first to before the last of these need no test.
#[derive(Debug)]
pub struct Steady {
    first: Option<Form>,
    end: Option<Form>,
}

impl Emitter<'_> {
    /// The turns of a loop in which no test inside of it has two outcomes, if they are an interval. At an edge what is the
    /// same in all blocks is tested on.
    pub fn steady(
        &mut self,
        at: usize,
        k: usize,
        range: &Range,
        slot: &[Form],
    ) -> Result<Option<Steady>, Failure> {
        // A variable to speak of a turn, for as long as the question takes.
        let turn = self.b.var("turn", VarKind::Loop);
        let around = self.facts.clone();
        self.facts.set_range(turn, range.clone());
        let mut probe = slot.to_vec();
        probe[k] = Form::from(turn);
        let inside = self.inside(&probe, at + 1, Some(k));
        self.facts = around;
        self.b.kernel.vars.pop();
        let inside = if self.at_edge {
            of_blocks(inside?, &probe[k])
        } else {
            inside?
        };
        let conds = match inside {
            Cond::Const(_) => return Ok(None),
            Cond::And(parts) => parts,
            other => vec![other],
        };
        let (mut firsts, mut ends) = (Vec::new(), Vec::new());
        for cond in &conds {
            match bound(cond, turn)? {
                Some(Bound::From(first)) => firsts.push(first),
                Some(Bound::To(end)) => ends.push(end),
                None => return Ok(None),
            }
        }
        let first = self.dominant(&firsts, &|a, b| a.sub(b));
        let end = self.dominant(&ends, &|a, b| b.sub(a));
        if first.is_none() != firsts.is_empty() || end.is_none() != ends.is_empty() {
            return Ok(None);
        }
        Ok(Some(Steady { first, end }))
    }

    /// The one of the forms that is on the far side of all others.
    fn dominant(&self, forms: &[Form], beyond: &dyn Fn(&Form, &Form) -> Form) -> Option<Form> {
        let all = |a: &&Form| {
            let mut others = forms.iter();
            others.all(|b| self.facts.is_nonnegative(&beyond(a, b)))
        };
        forms.iter().find(all).cloned()
    }

    /// The loop up to its steady turns, these, and what is left.
    pub fn in_parts(
        &mut self,
        at: usize,
        k: usize,
        range: &Range,
        steady: &Steady,
        slot: &mut Vec<Form>,
    ) -> Result<(), Failure> {
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
        if first.is_some() {
            self.edge_turns(at, k, fill, slot)?;
        }
        let middle = self.least_bounds(middle);
        let factor = if self.at_edge {
            1
        } else {
            self.written_out(at).max(self.turns_to_rename(at))
        };
        self.turns_by(k, middle, factor, slot, &|e, value, slot| {
            slot[k] = value;
            e.steps(at + 1, slot)
        })?;
        if end.is_some() {
            self.edge_turns(at, k, drain, slot)?;
        }
        Ok(())
    }

    /// Turns with tests, if there can be any.
    fn edge_turns(
        &mut self,
        at: usize,
        k: usize,
        range: Range,
        slot: &mut Vec<Form>,
    ) -> Result<(), Failure> {
        let range = self.least_bounds(range);
        let empty = |lo: &Form, hi: &Form| self.facts.is_nonnegative(&lo.sub(hi));
        if range
            .lo
            .iter()
            .any(|lo| range.hi.iter().any(|hi| empty(lo, hi)))
        {
            return Ok(());
        }
        let name = self.coordinate_name(k);
        self.at_the_edge(&mut |e| {
            e.looped(&name, range.clone(), 1, &mut |e, v| {
                slot[k] = Form::from(v);
                e.steps(at + 1, slot)
            })
        })
    }

    /// The range without bounds that others imply.
    fn least_bounds(&self, range: Range) -> Range {
        Range {
            lo: self.furthest(range.lo, &|a, b| a.sub(b)),
            hi: self.furthest(range.hi, &|a, b| b.sub(a)),
        }
    }

    /// The forms that are not on the near side of another one.
    fn furthest(&self, forms: Vec<Form>, beyond: &dyn Fn(&Form, &Form) -> Form) -> Vec<Form> {
        let implies = |a: &Form, b: &Form| self.facts.is_nonnegative(&beyond(a, b));
        let mut kept: Vec<Form> = Vec::new();
        for form in forms {
            if !kept.iter().any(|k| implies(k, &form)) {
                kept.retain(|k| !implies(&form, k));
                kept.push(form);
            }
        }
        kept
    }

    /// A loop with so many turns written out, one after the other.
    pub fn turns_by(
        &mut self,
        k: usize,
        range: Range,
        factor: i128,
        slot: &mut Vec<Form>,
        turn: &Turn<'_>,
    ) -> Result<(), Failure> {
        let name = self.coordinate_name(k);
        let single = range.single().map(|(lo, hi)| (lo.clone(), hi.clone()));
        let rest = match single {
            Some((lo, hi)) if factor > 1 => {
                let main = Range::new(lo.clone(), hi.plus(1 - factor));
                self.looped(&name, main, factor, &mut |e, v| {
                    (0..factor).try_for_each(|n| turn(e, Form::from(v).plus(n), slot))
                })?;
                let whole = hi
                    .sub(&lo)
                    .floor_div(factor)
                    .scale(&Poly::constant(factor))?;
                Range {
                    lo: vec![lo.clone(), lo.add(&whole)],
                    hi: vec![hi],
                }
            }
            Some(_) | None => range,
        };
        let rest = self.least_bounds(rest);
        self.looped(&name, rest, 1, &mut |e, v| turn(e, Form::from(v), slot))
    }

    /// After so many turns of a loop every register holds a value that was made in them; one, if that is too much code.
    fn turns_to_rename(&self, at: usize) -> i128 {
        let Pes::Known { depth } = &self.partition.walk else {
            return 1;
        };
        let Some(ticks) = self.ticks_inside(at) else {
            return 1;
        };
        // The oldest value is read before the turn ends in which it becomes that old; where its successor is made
        // before that, it takes a move, which is an instruction like others where lanes are threads.
        let oldest = depth.iter().copied().max().unwrap_or(0);
        let spared = usize::from(self.machine.threads.is_none());
        let factor = oldest.saturating_sub(spared).div_ceil(ticks.max(1)).max(1);
        let cost = self
            .tick_cost()
            .saturating_mul(ticks)
            .saturating_mul(factor);
        if cost > 4 * self.machine.code_budget {
            return 1;
        }
        i128::try_from(factor).unwrap_or(1)
    }
}

/// One turn of a loop, at the value of its coordinate.
type Turn<'t> = dyn Fn(&mut Emitter<'_>, Form, &mut Vec<Form>) -> Result<(), Failure> + 't;

enum Bound {
    /// The turn is at least this.
    From(Form),
    /// The turn is before this.
    To(Form),
}

/// c·turn + rest ≥ 0 as a bound of the turn.
fn bound(cond: &Cond, turn: DimId) -> Result<Option<Bound>, Failure> {
    let Cond::Cmp(Rel::Ge, left, right) = cond else {
        return Ok(None);
    };
    let gap = left.sub(right);
    let Some(c) = gap.coefficient(turn).as_constant() else {
        return Ok(None);
    };
    let rest = gap.sub(&Form::from(turn).scale(&Poly::constant(c))?);
    if c == 0 || rest.dims().contains(&turn) {
        return Ok(None);
    }
    Ok(Some(if c > 0 {
        Bound::From(rest.neg().plus(c - 1).floor_div(c))
    } else {
        Bound::To(rest.floor_div(-c).plus(1))
    }))
}
