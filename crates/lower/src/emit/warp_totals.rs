//! Warps that exchange their parts of a sum.

use systola_ir::form::{Cond, Form, Rel};
use systola_ir::kernel::Stmt;
use systola_ir::{Type, ValueId, VarId};

use crate::emit::Emitter;
use crate::emit::cells::Bundle;
use crate::failure::Failure;
use crate::storage::queues::PeKey;
use crate::storage::warp_totals::{Ends, Exchange, WarpTotals};

/// The end of a chain, and the lane in which its part is complete if it is one.
type End = (PeKey, Option<i128>);

impl Emitter<'_> {
    /// Combines the parts of the warps before each warp, which this tick has completed.
    pub(super) fn combine_warps(
        &mut self,
        slot: &mut [Form],
        totals: &WarpTotals,
        pes: &[PeKey],
    ) -> Result<(), Failure> {
        let cell = &self.array.cells[totals.part.index()];
        let ends = self.ends(&totals.ends, pes);
        let mut live = Cond::Const(false);
        for (end, _) in &ends {
            self.at_pe(slot, end);
            let there = self.here(slot, end)?.cond(&cell.domain)?;
            live = Cond::Or(vec![live, self.facts.simplify(&there)]);
        }
        if self.facts.simplify(&live) == Cond::Const(false) {
            for (end, _) in ends {
                let nothing = self.placeholder(&cell.ty).flat();
                self.before.insert((totals.part, end), nothing);
            }
            return Ok(());
        }
        // The arrays may still be read for an earlier tick.
        let one = |k: &usize| {
            let range = self.slots.ranges[*k].constant();
            range.is_some_and(|(lo, hi)| hi - lo <= 1)
        };
        if !self.partition.steps.iter().all(one) {
            self.b.push(Stmt::Barrier);
        }
        let warp = self.warp_number(slot, None)?;
        for (end, lane) in &ends {
            let values = self.now[&(totals.part, end.clone())].clone();
            let when = match (self.lane, lane) {
                (Some(own), Some(lane)) => Cond::cmp(Rel::Eq, own, *lane),
                _ => Cond::TRUE,
            };
            self.leave_for_warps(&totals.exchange, end, &warp, &values, &when);
        }
        self.b.push(Stmt::Barrier);
        for (end, _) in &ends {
            let before = self.before_warp(slot, totals, end, &cell.name, &cell.ty)?;
            self.before
                .insert((totals.part, end.clone()), before.flat());
        }
        Ok(())
    }

    /// The different ends of the chains of some PEs.
    pub(super) fn ends(&self, ends: &Ends, pes: &[PeKey]) -> Vec<End> {
        let mut found: Vec<End> = Vec::new();
        for pe in pes {
            let end = ends.end(self.partition, self.slots, pe);
            if !found.contains(&end) {
                found.push(end);
            }
        }
        found
    }

    /// Stores values of an end where other warps read them.
    pub(super) fn leave_for_warps(
        &mut self,
        exchange: &Exchange,
        end: &PeKey,
        warp: &Form,
        values: &[ValueId],
        when: &Cond,
    ) {
        let lane = self.lane.map(Form::from);
        for ((array, _), value) in exchange.arrays.iter().zip(values) {
            let mut to = exchange.at(*array, end, warp, lane.clone());
            to.when = when.clone();
            self.b.push(Stmt::Store { to, value: *value });
        }
    }

    /// Loads what a warp has left.
    pub(super) fn left_by_warp(
        &mut self,
        exchange: &Exchange,
        end: &PeKey,
        warp: &Form,
        name: &str,
    ) -> Vec<ValueId> {
        let lane = self.lane.map(Form::from);
        let mut values = Vec::new();
        for (array, ty) in &exchange.arrays {
            let from = exchange.at(*array, end, warp, lane.clone());
            values.push(self.b.load(name, *ty, from, None));
        }
        values
    }

    /// The parts of all warps before this one, back to the one in which the chain begins.
    fn before_warp(
        &mut self,
        slot: &mut [Form],
        totals: &WarpTotals,
        end: &PeKey,
        name: &str,
        ty: &Type,
    ) -> Result<Bundle, Failure> {
        self.at_pe(slot, end);
        let own = slot[totals.along].clone();
        let mut sum: Option<Bundle> = None;
        let mut before: Option<Bundle> = None;
        for pair in totals.order.windows(2) {
            let (earlier, later) = (pair[0], pair[1]);
            let warp = self.warp_number(slot, Some((totals.along, earlier)))?;
            let values = self.left_by_warp(&totals.exchange, end, &warp, name);
            let Some(part) = Bundle::of(ty, &mut values.into_iter()) else {
                unreachable!("as many values as scalars")
            };
            sum = Some(match sum {
                None => part,
                Some(sum) => {
                    slot[totals.along] = Form::from(earlier);
                    let here = self.here(slot, end)?;
                    let entered = self.facts.simplify(&here.cond(&totals.later)?);
                    let joined =
                        self.combined(totals.joins, name, sum, Some(part.clone()), &here)?;
                    joined.zip(&part, &mut |a, b| {
                        self.b.choose(name, entered.clone(), a, b)
                    })
                }
            });
            slot[totals.along] = own.clone();
            let here = self.facts.simplify(&Cond::cmp(Rel::Eq, own.clone(), later));
            before = match (&sum, before) {
                (Some(sum), Some(before)) => {
                    Some(sum.zip(&before, &mut |a, b| self.b.choose(name, here.clone(), a, b)))
                }
                (sum, None) => sum.clone(),
                (None, before) => before,
            };
        }
        Ok(before.unwrap_or_else(|| self.placeholder(ty)))
    }

    /// The number of this warp, or of the one at another value of a coordinate.
    pub(super) fn warp_number(
        &self,
        slot: &[Form],
        other: Option<(usize, i128)>,
    ) -> Result<Form, Failure> {
        let place = |k: usize| match other {
            Some((along, at)) if along == k => Form::from(at),
            _ => slot[k].clone(),
        };
        let number = self.partition.warps.number(place)?;
        Ok(self.facts.reduce(&number))
    }

    /// Is the value one that is combined between warps?
    pub(super) fn warp_totals_of(&self, part: VarId) -> Option<&WarpTotals> {
        let mut all = self.storage.warp_totals.iter();
        all.find(|totals| totals.part == part)
    }
}
