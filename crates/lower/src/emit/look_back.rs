//! Blocks that look back: a part is published, and what the blocks before have published arrives.

use std::collections::BTreeSet;

use systola_ir::form::{Cond, Form, Rel};
use systola_ir::kernel::{BlockChain, Joins, LookBack, Op, Shape, Stmt};
use systola_ir::{Scalar, ValueId, VarId};

use crate::emit::Emitter;
use crate::emit::cells::Bundle;
use crate::failure::Failure;
use crate::storage::look_back::PublishedChain;
use crate::storage::queues::{PeKey, scalars};
use crate::storage::warp_totals::Exchange;

impl Emitter<'_> {
    /// Looks back over the chains whose parts this tick has completed.
    pub(super) fn look_back(
        &mut self,
        slot: &mut [Form],
        look: &PublishedChain,
        pes: &[PeKey],
    ) -> Result<(), Failure> {
        let array = self.array;
        let cell = &array.cells[look.part.index()];
        let types = scalars(&cell.ty);
        let name = cell.name.as_str();
        let ends = self.ends(&look.ends, pes);
        let mut chains: Vec<BlockChain> = Vec::new();
        for (end, lane) in &ends {
            self.at_pe(slot, end);
            let mut at = look.at(slot, self.slots);
            at.when = self.facts.simplify(&at.when);
            let mut terms = self.now[&(look.part, end.clone())].clone();
            if let Some(lane) = lane {
                for term in &mut terms {
                    *term = self.b.shuffle(name, *term, Form::from(*lane));
                }
            }
            chains.push(BlockChain {
                at,
                terms,
                before: Vec::new(),
            });
        }
        let places: Vec<Cond> = chains.iter().map(|chain| chain.at.when.clone()).collect();
        for (chain, (end, _)) in chains.iter_mut().zip(&ends) {
            let shapes = chain.at.forms().into_iter();
            let shape = shapes.map(|form| self.b.kernel.shape_of(form)).max();
            let shape = shape.unwrap_or(Shape::Uniform);
            chain.before = self.operands("before", &types, shape);
            let key = (look.part, end.clone());
            self.before.insert(key, chain.before.clone());
        }
        // Chains under different predicates look back one after another.
        while let Some(first) = chains.first() {
            let when = first.at.when.clone();
            let (now, later) = chains.into_iter().partition(|c| c.at.when == when);
            chains = later;
            let joins = self.joins(slot, look, &ends[0].0, &types)?;
            self.b.push(Stmt::LookBack(Box::new(LookBack {
                chains: now,
                axis: look.axis,
                up: look.up,
                joins,
            })));
        }
        if let Some(exchange) = &look.handed {
            self.hand_to_warps(look.part, exchange, &ends, &places);
        }
        Ok(())
    }

    /// One warp has looked back: the others receive what it has found.
    fn hand_to_warps(
        &mut self,
        part: VarId,
        exchange: &Exchange,
        ends: &[(PeKey, Option<i128>)],
        places: &[Cond],
    ) {
        let first = Form::zero();
        for ((end, lane), place) in ends.iter().zip(places) {
            let before = self.before[&(part, end.clone())].clone();
            let one = match (self.lane, lane) {
                (Some(own), Some(_)) => Cond::cmp(Rel::Eq, own, 0),
                _ => Cond::TRUE,
            };
            let when = place.clone().and(one);
            self.leave_for_warps(exchange, end, &first, &before, &when);
        }
        self.b.push(Stmt::Barrier);
        for (end, _) in ends {
            let before = self.left_by_warp(exchange, end, &first, "before");
            self.before.insert((part, end.clone()), before);
        }
    }

    fn operands(&mut self, name: &str, types: &[Scalar], shape: Shape) -> Vec<ValueId> {
        let each = types.iter();
        each.map(|ty| self.b.declare(name, *ty, shape)).collect()
    }

    /// The operation of a chain.
    fn joins(
        &mut self,
        slot: &[Form],
        look: &PublishedChain,
        pe: &PeKey,
        types: &[Scalar],
    ) -> Result<Joins, Failure> {
        let cell = &self.array.cells[look.part.index()];
        let earlier = self.operands("earlier", types, Shape::Uniform);
        let later = self.operands("later", types, Shape::Uniform);
        let bundle = |values: &[ValueId]| match Bundle::of(&cell.ty, &mut values.iter().copied()) {
            Some(bundle) => bundle,
            None => unreachable!("as many values as scalars"),
        };
        let (first, second) = (bundle(&earlier), bundle(&later));
        let here = self.here(slot, pe)?;
        self.b.begin();
        let joined = self.combined(look.joins, &cell.name, first, Some(second), &here);
        let all = self.b.end();
        let joined = joined?.flat();
        // Parameters and elements of tables are read before.
        let mut inside: BTreeSet<ValueId> = earlier.iter().chain(&later).copied().collect();
        let mut body = Vec::new();
        for stmt in all {
            let is_literal = matches!(stmt, Stmt::Let(_, Op::Lit(_)));
            if is_literal || stmt.uses().iter().any(|value| inside.contains(value)) {
                inside.extend(stmt.defs());
                body.push(stmt);
            } else {
                self.b.push(stmt);
            }
        }
        Ok(Joins {
            earlier,
            later,
            body,
            joined,
        })
    }

    /// What the blocks or warps before this one have handed on to a PE.
    pub(super) fn combined_before(&self, part: VarId, pe: &PeKey) -> Vec<ValueId> {
        let mut chains = self.storage.look_backs.iter();
        let of_blocks = chains.find(|chain| chain.part == part).map(|c| &c.ends);
        let of_warps = self.warp_totals_of(part).map(|totals| &totals.ends);
        let Some(ends) = of_blocks.or(of_warps) else {
            unreachable!("such a link leads along a chain")
        };
        let (end, _) = ends.end(self.partition, self.slots, pe);
        match self.before.get(&(part, end)) {
            Some(before) => before.clone(),
            None => unreachable!("parts are combined before the stage of the whole sum"),
        }
    }
}
