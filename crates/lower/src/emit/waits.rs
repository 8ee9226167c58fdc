//! Blocks that wait for each other: dynamic block ids, waits and signals.

use systola_ir::form::{Cond, Form, Poly, Rel};
use systola_ir::kernel::{Access, Memory, Stmt, VarKind};

use crate::emit::Emitter;
use crate::facts::Range;
use crate::failure::Failure;
use crate::nest::tree::Nest;
use crate::storage::waits::{Flags, Ordered};

impl Emitter<'_> {
    /// One block. If blocks are ordered, its place follows from a dynamic block id.
    pub(super) fn block_in_order(
        &mut self,
        nest: &Nest,
        slot: &mut Vec<Form>,
    ) -> Result<(), Failure> {
        let Some(flags) = self.storage.flags.as_ref() else {
            return self.nest(nest, slot);
        };
        let mut count = flags.order[0].extent();
        for o in &flags.order[1..] {
            let extent = Poly::constant(o.extent().as_constant().unwrap_or(1));
            count = count.scale(&extent)?;
        }
        let block_id = match flags.order.as_slice() {
            [only] if !only.downwards && only.lo == Form::zero() => self.coordinate_name(only.k),
            _ => "block_id".to_string(),
        };
        let block_id = self.b.var(&block_id, VarKind::DynamicBlock);
        self.facts.set_range(block_id, Range::new(0, count));
        let still = |k: &&usize| !flags.is_ordered(**k);
        let blocks = self.partition.blocks.iter().filter(still);
        let counter = self.partition.launches.iter().chain(blocks);
        self.b.push(Stmt::DynamicBlock {
            var: block_id,
            counter: Access::new(
                Memory::Global(flags.arrivals),
                counter.map(|k| slot[*k].clone()).collect(),
            ),
        });
        if let [only] = flags.order.as_slice() {
            slot[only.k] = only.place(&Form::from(block_id));
            return self.nest(nest, slot);
        }
        self.place(0, Form::from(block_id), nest, slot)
    }

    /// The coordinates of a block from the one at `at` on, as digits of a number.
    fn place(
        &mut self,
        at: usize,
        number: Form,
        nest: &Nest,
        slot: &mut Vec<Form>,
    ) -> Result<(), Failure> {
        let flags = self.storage.flags.as_ref();
        let Some((flags, o)) = flags.and_then(|f| Some((f, f.order.get(at)?))) else {
            return self.nest(nest, slot);
        };
        let faster = flags.order[at + 1..].iter().map(Ordered::extent);
        let below: i128 = faster.filter_map(|e| e.as_constant()).product();
        let place = o.place(&number.floor_div(below));
        // A loop of one iteration gives the coordinate a name.
        let var = self.b.var(&self.coordinate_name(o.k), VarKind::Loop);
        self.facts.set_range(var, self.slots.ranges[o.k].clone());
        slot[o.k] = Form::from(var);
        self.b.begin();
        let result = self.place(at + 1, number.modulo(below), nest, slot);
        let body = self.b.end();
        result?;
        self.b.push(Stmt::For {
            var,
            lo: vec![place.clone()],
            hi: vec![place.plus(1)],
            step: 1,
            body,
        });
        Ok(())
    }

    /// Waits for everything that the iteration at this slot reads from other blocks.
    pub(super) fn await_blocks(&mut self, slot: &[Form]) -> Result<(), Failure> {
        let Some(flags) = self.storage.flags.as_ref() else {
            return Ok(());
        };
        for wait in &flags.waits {
            let mut source = slot.to_vec();
            let mut there = Cond::TRUE;
            for (k, by) in &wait.displacement {
                source[*k] = slot[*k].plus(-by);
                there = there.and(self.slots.ranges[*k].holds(&source[*k]));
            }
            let Some((k, (first, end))) =
                self.partition.steps.first().zip(flags.iterations.as_ref())
            else {
                self.await_progress(flags, &source, there, Form::from(1));
                continue;
            };
            let here = |f: &Form, slot: &[Form]| f.substitute(&|d| slot.get(d.index()).cloned());
            let begins = Cond::cmp(Rel::Eq, slot[*k].clone(), here(first, slot)?);
            let (first, end) = (here(first, &source)?, here(end, &source)?);
            // The number of iterations before the one that is waited for.
            let before = (slot[*k].sub(&Form::from(wait.delay.clone()))).sub(&first);
            let left = Cond::cmp(Rel::Lt, before.clone(), end.sub(&first));
            let next = Cond::cmp(Rel::Eq, before.modulo(flags.batch), 0);
            // One signal covers a whole batch, so only its first iteration waits. After the last
            // iteration of the other block there is nothing to wait for.
            let new = Cond::Or(vec![begins.clone(), next]);
            let batch = before.floor_div(flags.batch).plus(1);
            self.await_progress(
                flags,
                &source,
                there.clone().and(left.clone()).and(new),
                batch,
            );
            let late = self.facts.with(begins.clone());
            if late.simplify(&left) != Cond::TRUE {
                let over = there.and(begins).and(left.negate());
                let all = end.sub(&first).plus(flags.batch - 1);
                self.await_progress(flags, &source, over, all.floor_div(flags.batch));
            }
        }
        Ok(())
    }

    /// Waits until the block at a slot has signalled at least this many times.
    fn await_progress(&mut self, flags: &Flags, source: &[Form], when: Cond, at_least: Form) {
        let when = self.facts.simplify(&when);
        if when == Cond::Const(false) || self.facts.is_nonnegative(&at_least.neg()) {
            return;
        }
        let Some(flag) = self.progress(flags, source) else {
            return;
        };
        self.b.push(Stmt::Await {
            flag: Access { when, ..flag },
            at_least,
        });
    }

    /// Signals that the iteration at this slot is complete.
    pub(super) fn signal_blocks(&mut self, slot: &[Form]) -> Result<(), Failure> {
        let Some(flags) = self.storage.flags.as_ref() else {
            return Ok(());
        };
        let Some(mut flag) = self.progress(flags, slot) else {
            return Ok(());
        };
        if let Some((k, (first, end))) = self.partition.steps.first().zip(flags.iterations.as_ref())
        {
            let here = |f: &Form| f.substitute(&|d| slot.get(d.index()).cloned());
            let over = slot[*k].plus(1);
            let full = over.sub(&here(first)?).modulo(flags.batch);
            flag.when = self.facts.simplify(&Cond::Or(vec![
                Cond::cmp(Rel::Eq, full, 0),
                Cond::cmp(Rel::Eq, over, here(end)?),
            ]));
        }
        if flag.when != Cond::Const(false) {
            self.b.push(Stmt::Signal { flag });
        }
        Ok(())
    }

    fn progress(&self, flags: &Flags, slot: &[Form]) -> Option<Access> {
        let blocks = self.partition.blocks.iter();
        let axes = self.partition.launches.iter().chain(blocks);
        let place = axes.map(|k| slot[*k].clone()).collect();
        Some(Access::new(Memory::Global(flags.progress?), place))
    }
}
