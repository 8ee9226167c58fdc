//! Windows that the warps of a block bring together, some turns ahead.
//!
//! The elements of a window are dealt out to all lanes of all warps, a few neighbours to each so that they become
//! one wide access. With n stages the array has room for n windows, used in a circle: the window of turn t is
//! asked for in turn t − n + 1. One barrier in each turn says two things: the window of this turn is there for all
//! warps, and nobody reads the one of the turn before any more, whose room the next window takes. With
//! one stage a window is brought between two barriers.
//!
//! An asynchronous copy goes on while the turn is computed. The copies of a turn are a group, empty at the end, so that
//! the same number of groups may be under way in every turn. Lanes without such copies load and store.

use systola_ir::BufferId;
use systola_ir::form::{Cond, Form, Poly, Rel};
use systola_ir::kernel::census::SECTOR;
use systola_ir::kernel::{Access, Memory, Stmt};
use systola_ir::mapping::{Engine, Order};

use crate::emit::Emitter;
use crate::emit::brought::Brought;
use crate::facts::Range;
use crate::failure::Failure;
use crate::nest::interior::inside;

/// What is done where a condition does not hold.
#[derive(Clone, Copy, Debug)]
enum Otherwise {
    Nothing,
    /// The same, without knowing.
    Same,
}

/// The largest number of copies of a lane that are unrolled.
const MOST_ROUNDS: i128 = 16;

impl Emitter<'_> {
    /// The windows of the first turns of a loop, before it begins.
    pub(super) fn begin_stages(
        &mut self,
        at: usize,
        k: usize,
        slot: &[Form],
    ) -> Result<(), Failure> {
        let depth = at + 1;
        let stages = self.stages_at(depth);
        if stages < 2 {
            return Ok(());
        }
        if at > 0 {
            self.meet();
        }
        let range = self.iterations(k, slot)?;
        let mut first = slot.to_vec();
        for turn in 0..stages - 1 {
            let Some((lo, _)) = range.single() else { break };
            first[k] = lo.plus(turn);
            self.bring(depth, &first, range.holds(&first[k]))?;
        }
        Ok(())
    }

    /// Makes sure that the windows of this turn are there, and asks for a later one.
    pub(super) fn stage_windows(&mut self, depth: usize, slot: &[Form]) -> Result<(), Failure> {
        if !self.windows.iter().any(|w| w.of.depth == depth) {
            return Ok(());
        }
        let stages = self.stages_at(depth);
        let pending = u32::try_from(stages - 2).unwrap_or(0);
        if stages > 1 {
            self.wait(depth, pending);
            self.meet();
            let k = self.partition.steps[depth - 1];
            let mut later = slot.to_vec();
            later[k] = slot[k].plus(stages - 1);
            let there = self.iterations(k, slot)?.holds(&later[k]);
            self.bring(depth, &later, there)?;
        } else {
            if depth > 0 {
                self.meet();
            }
            self.bring(depth, slot, Cond::TRUE)?;
            self.wait(depth, 0);
            self.meet();
        }
        for n in 0..self.windows.len() {
            if self.windows[n].of.depth == depth {
                self.windows[n].start = self.windows[n].of.starts(slot)?;
                self.windows[n].stage = self.stage(depth, stages, slot);
                self.b.forget(self.windows[n].of.store);
            }
        }
        Ok(())
    }

    fn stages_at(&self, depth: usize) -> i128 {
        let here = self.windows.iter().filter(|w| w.of.depth == depth);
        here.map(|w| w.of.stages).max().unwrap_or(1)
    }

    /// Which of the rooms the window of a turn has.
    fn stage(&self, depth: usize, stages: i128, slot: &[Form]) -> Form {
        match depth.checked_sub(1) {
            Some(at) if stages > 1 => slot[self.partition.steps[at]].modulo(stages),
            Some(_) | None => Form::zero(),
        }
    }

    /// All warps of the block come here.
    fn meet(&mut self) {
        if self.partition.warps.count() > 1 {
            self.b.push(Stmt::Barrier);
        }
    }

    fn has_copies(&self, depth: usize) -> bool {
        let mut here = self.windows.iter().filter(|w| w.of.depth == depth);
        here.any(|w| w.of.engine != Engine::Plain)
    }

    fn wait(&mut self, depth: usize, pending: u32) {
        if self.has_copies(depth) {
            self.b.push(Stmt::WaitCopies { pending });
        }
    }

    /// Issues what brings the windows of a turn, if there is such a turn. A window inside of the axes of its
    /// input is brought without a test of any element.
    fn bring(&mut self, depth: usize, slot: &[Form], there: Cond) -> Result<(), Failure> {
        let there = self.facts.simplify(&there);
        for n in 0..self.windows.len() {
            if self.windows[n].of.depth != depth || there == Cond::Const(false) {
                continue;
            }
            let mut window = self.windows[n].clone();
            window.start = window.of.starts(slot)?;
            window.stage = self.stage(depth, window.of.stages, slot);
            let axes = &self.array.inputs[window.of.input.index()].axes;
            let far: Vec<Form> = (window.start.iter().zip(&window.of.axes))
                .map(|(start, (_, extent))| start.add(&Form::from(extent.clone())).plus(-1))
                .collect();
            let whole = inside(axes, &window.start).and(inside(axes, &far));
            self.when(there.clone(), Otherwise::Nothing, &mut |e| {
                let whole = e.facts.simplify(&whole);
                e.when(whole, Otherwise::Same, &mut |e| e.deal(&window))
            })?;
        }
        if self.has_copies(depth) {
            self.b.push(Stmt::CommitCopies);
        }
        Ok(())
    }

    /// Statements where a condition is known to hold, on which all warps agree.
    fn when(
        &mut self,
        cond: Cond,
        otherwise: Otherwise,
        f: &mut impl FnMut(&mut Self) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        match (&cond, otherwise) {
            (Cond::Const(true), _) | (Cond::Const(false), Otherwise::Same) => return f(self),
            (Cond::Const(false), Otherwise::Nothing) => return Ok(()),
            (Cond::Cmp(..) | Cond::And(_) | Cond::Or(_) | Cond::Not(_), _) => {}
        }
        self.registers.flush(&mut self.b);
        let around = self.facts.clone();
        self.facts = around.with(cond.clone());
        self.b.begin();
        let result = f(self);
        let then = self.b.end();
        self.facts = around;
        result?;
        let otherwise = match otherwise {
            Otherwise::Nothing => Vec::new(),
            Otherwise::Same => {
                self.b.begin();
                let result = f(self);
                let stmts = self.b.end();
                result?;
                stmts
            }
        };
        self.b.push(Stmt::If {
            cond,
            then,
            otherwise,
        });
        Ok(())
    }

    /// Every element of a window to one lane of one warp.
    fn deal(&mut self, window: &Brought) -> Result<(), Failure> {
        let extents: Option<Vec<i128>> = window
            .of
            .axes
            .iter()
            .map(|(_, extent)| extent.as_constant())
            .collect();
        match extents {
            Some(extents) => self.deal_flat(window, &extents),
            None => self.deal_rows(window, &mut Vec::new()),
        }
    }

    /// The number of a lane in its block.
    fn lane_number(&self) -> Form {
        let lanes = Poly::constant(i128::from(self.partition.lanes));
        let warp = self
            .warp
            .and_then(|w| Form::from(w).scale(&lanes).ok())
            .unwrap_or_default();
        self.lane.map_or(warp.clone(), |l| warp.add(&Form::from(l)))
    }

    /// In units of neighbours, numbered row by row; lane n of a block takes units n, n + lanes, …. Where columns lie
    /// next to each other, a sector of each row at a time: the lanes of a warp have few columns, and these are far apart
    /// in the banks if rows are padded.
    fn deal_flat(&mut self, window: &Brought, extents: &[i128]) -> Result<(), Failure> {
        let Some((last, lead)) = extents.split_last() else {
            return self.move_element(window, &[], Cond::TRUE);
        };
        let unit = self.unit(window, *last);
        let per_row = last / unit;
        let total = lead.iter().product::<i128>() * per_row;
        let block = i128::from(self.partition.lanes) * i128::from(self.partition.warps.count());
        let rounds = (total + block - 1).div_euclid(block);
        let round = |e: &mut Self, first: &Form| -> Result<(), Failure> {
            let number = first.add(&e.lane_number());
            let when = Cond::cmp(Rel::Lt, number.clone(), total);
            let when = e.facts.simplify(&when);
            let sector = e.sector(window, *last);
            let mut rest = number.floor_div(sector.unwrap_or(per_row));
            let first = number.modulo(sector.unwrap_or(per_row));
            let mut at = vec![first.scale(&Poly::constant(unit))?];
            for (axis, extent) in lead.iter().enumerate().rev() {
                let outermost = axis == 0 && sector.is_none();
                at.insert(
                    0,
                    if outermost {
                        rest.clone()
                    } else {
                        rest.modulo(*extent)
                    },
                );
                rest = rest.floor_div(*extent);
            }
            if let (Some(sector), Some(column)) = (sector, at.last_mut()) {
                *column = column.add(&rest.scale(&Poly::constant(sector))?);
            }
            let at: Vec<Form> = at.iter().map(|form| e.facts.reduce(form)).collect();
            for n in 0..unit {
                let mut at = at.clone();
                if let Some(column) = at.last_mut() {
                    *column = column.plus(n);
                }
                e.move_element(window, &at, when.clone())?;
            }
            Ok(())
        };
        if rounds <= MOST_ROUNDS {
            for n in 0..rounds {
                round(self, &Form::from(n * block))?;
            }
            return Ok(());
        }
        let name = format!("{}_unit", self.array.inputs[window.of.input.index()].name);
        self.looped(&name, Range::new(0, total), block, &mut |e, v| {
            round(e, &Form::from(v))
        })
    }

    /// Elements of a row that are dealt out before the next row, if not the whole row.
    fn sector(&self, window: &Brought, last: i128) -> Option<i128> {
        let ty = self.array.inputs[window.of.input.index()].ty;
        let sector = i128::from(SECTOR * 8 / u64::from(ty.bits())).max(1);
        (window.of.order == Order::Columns && last % sector == 0).then_some(sector)
    }

    /// Neighbours that one lane takes: as many as one access moves, where a row starts at a multiple of it.
    fn unit(&self, window: &Brought, last: i128) -> i128 {
        if window.of.order == Order::Columns {
            return 1;
        }
        let ty = self.array.inputs[window.of.input.index()].ty;
        let bytes = self.machine.threads.map_or(0, |t| t.wide_bytes);
        let mut unit = i128::from(bytes * 8 / ty.bits()).max(1);
        let declared = &self.array.inputs[window.of.input.index()].axes;
        let start = match (window.start.last(), declared.last()) {
            (Some(start), Some(axis)) => start.sub(&axis.lo),
            _ => return 1,
        };
        while unit > 1 && (last % unit != 0 || start.modulo(unit).as_constant() != Some(0)) {
            unit /= 2;
        }
        unit
    }

    /// Row by row, where the extents depend on the sizes: warps take turns in the first axis, lanes in the last.
    fn deal_rows(&mut self, window: &Brought, at: &mut Vec<Form>) -> Result<(), Failure> {
        let axis = at.len();
        let Some((_, extent)) = window.of.axes.get(axis) else {
            return self.move_element(window, at, Cond::TRUE);
        };
        let (first, last) = (axis == 0, axis + 1 == window.of.axes.len());
        let lanes = i128::from(self.partition.lanes);
        let mut step = if last { lanes } else { 1 };
        let mut lo = Form::zero();
        if let Some(warp) = self.warp.filter(|_| first) {
            lo = Form::from(warp).scale(&Poly::constant(step))?;
            step *= i128::from(self.partition.warps.count());
        }
        let name = format!("{}{axis}", self.array.inputs[window.of.input.index()].name);
        let range = Range::new(lo, Form::from(extent.clone()));
        self.looped(&name, range, step, &mut |e, v| {
            at.push(match e.lane {
                Some(lane) if last => Form::from(v).add(&Form::from(lane)),
                Some(_) | None => Form::from(v),
            });
            let result = e.deal_rows(window, at);
            at.pop();
            result
        })
    }

    /// One element of each lane, from the input or what the input states outside of its axes.
    fn move_element(&mut self, window: &Brought, at: &[Form], when: Cond) -> Result<(), Failure> {
        let declared = &self.array.inputs[window.of.input.index()];
        let index: Vec<Form> = at
            .iter()
            .zip(&window.start)
            .map(|(a, s)| a.add(s))
            .collect();
        let there = inside(&declared.axes, &index);
        let there = self.facts.with(when.clone()).simplify(&there);
        let to = Access {
            memory: Memory::Shared(window.of.store),
            index: window.of.index(&window.stage, at),
            when,
        };
        let from = Access {
            memory: Memory::Global(BufferId::from(window.of.input.index())),
            index,
            when: to.when.clone().and(there.clone()),
        };
        let (name, ty) = (&declared.name, declared.ty);
        if window.of.engine == Engine::Plain {
            let value = self.b.load(name, ty, from, declared.outside);
            self.b.push(Stmt::Store { to, value });
            return Ok(());
        }
        if let Some(outside) = declared.outside
            && there != Cond::TRUE
        {
            let value = self.b.literal(ty, outside);
            let when = to.when.clone().and(there.clone().negate());
            let when = self.facts.simplify(&when);
            self.b.push(Stmt::Store {
                to: Access { when, ..to.clone() },
                value,
            });
        }
        if there != Cond::Const(false) {
            self.b.push(Stmt::Copy {
                to,
                from,
                width: 1,
                engine: window.of.engine,
            });
        }
        Ok(())
    }
}
