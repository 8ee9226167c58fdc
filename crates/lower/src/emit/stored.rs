//! Values that pass through global memory to later launches and to other blocks.

use systola_ir::array::{Array, Link, Port};
use systola_ir::form::{Cond, Form, Rel};
use systola_ir::kernel::{Access, Memory, Stmt};
use systola_ir::{ValueId, VarId};

use crate::emit::Emitter;
use crate::emit::cells::Here;
use crate::failure::Failure;
use crate::storage::inter_block::{each_once, live};
use crate::storage::place::Place;

impl Emitter<'_> {
    /// Stores what later launches read of a slot, if its tile owns it.
    pub(super) fn store_for_launches(
        &mut self,
        cell: VarId,
        owned: &Cond,
        here: &Here<'_>,
        values: &[ValueId],
    ) -> Result<(), Failure> {
        let launches = &self.storage.launches;
        if let Some(place) = launches.place(cell, here.slot, &here.point)? {
            let when = self.facts.simplify(&owned.clone().and(place.when.clone()));
            self.store(&place, when, values);
        }
        Ok(())
    }

    /// Stores what other blocks read of a slot.
    pub(super) fn store_for_blocks(
        &mut self,
        cell: VarId,
        here: &Here<'_>,
        values: &[ValueId],
    ) -> Result<(), Failure> {
        let inter_block = &self.storage.inter_block;
        let Some(place) = inter_block.place(cell, here.slot, &here.point)? else {
            return Ok(());
        };
        let when = each_once(here.valid.clone().and(place.when.clone()));
        let mut when = self.facts.simplify(&when);
        // Usually one lane holds what other blocks read; the rest of the condition is then uniform.
        let pinned = self
            .lane
            .and_then(|l| Some((l, self.facts.pinned(l, &when)?)));
        if when != Cond::Const(false)
            && let Some((lane, at)) = pinned
        {
            let rest = when.map(&|f| f.substitute(&|d| (d == lane).then(|| Form::from(at))))?;
            when = self.facts.simplify(&rest);
            if when != Cond::Const(false) {
                when = when.and(Cond::cmp(Rel::Eq, lane, at));
            }
        }
        self.store(&place, when, values);
        Ok(())
    }

    fn store(&mut self, place: &Place<'_>, when: Cond, values: &[ValueId]) {
        if when == Cond::Const(false) {
            return;
        }
        for ((buffer, _), value) in place.buffers.iter().zip(values) {
            self.b.push(Stmt::Store {
                to: Access {
                    memory: Memory::Global(*buffer),
                    index: place.index.clone(),
                    when: when.clone(),
                },
                value: *value,
            });
        }
    }

    /// Loads the value that a link brings from an earlier launch.
    pub(super) fn load_of_launch(
        &mut self,
        array: &Array,
        (port, link): (&Port, &Link),
        name: &str,
        here: &Here<'_>,
    ) -> Result<Vec<ValueId>, Failure> {
        let live = here.cond(&live(array, port, link)?)?;
        let live = each_once(here.valid.clone().and(live));
        let launches = &self.storage.launches;
        let source = launches.source(array, (port, link), here.slot, &here.point, live)?;
        let Some(place) = source else {
            return Ok(Vec::new());
        };
        let when = self.facts.simplify(&place.when);
        Ok(self.load(&place, when, name))
    }

    /// Loads the value that a link brings from another block; no load where nothing reads it.
    pub(super) fn load_of_block(
        &mut self,
        array: &Array,
        (port, link): (&Port, &Link),
        name: &str,
        here: &Here<'_>,
    ) -> Result<Vec<ValueId>, Failure> {
        let inter_block = &self.storage.inter_block;
        let source = inter_block.source(array, (port, link), here.slot, &here.point)?;
        let Some(place) = source else {
            return Ok(Vec::new());
        };
        let live = each_once(here.valid.clone().and(place.when.clone()));
        let when = self.facts.simplify(&live);
        if when == Cond::Const(false) {
            return Ok(Vec::new());
        }
        Ok(self.load(&place, when, name))
    }

    fn load(&mut self, place: &Place<'_>, when: Cond, name: &str) -> Vec<ValueId> {
        let mut values = Vec::new();
        for (buffer, ty) in place.buffers {
            let from = Access {
                memory: Memory::Global(*buffer),
                index: place.index.clone(),
                when: when.clone(),
            };
            values.push(self.b.load(name, *ty, from, None));
        }
        values
    }
}
