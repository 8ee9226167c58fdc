//! Windows that the warps of a block load together, some iterations ahead.
//!
//! The elements of a window are distributed over all lanes of all warps, a few neighbours to each
//! lane so that they become one vector access. With n stages the array has room for n windows, used
//! in rotation: the window of iteration t is prefetched in iteration t − n + 1. One barrier in each
//! iteration serves two purposes. It ensures that the window of this iteration has arrived for all
//! warps, and that no warp still reads the window of the previous iteration, whose stage the next
//! prefetch overwrites. With one stage a window is loaded between two barriers.
//!
//! An asynchronous copy proceeds while the iteration computes. The copies of an iteration form a
//! group, empty at the end of the loop, so that the same number of groups is in flight in every
//! iteration. Without asynchronous copies, lanes load and store.

use systola_ir::BufferId;
use systola_ir::form::{Cond, Form, Poly, Rel};
use systola_ir::kernel::census::SECTOR;
use systola_ir::kernel::{Access, Memory, Stmt};
use systola_ir::mapping::{Engine, Order};

use crate::emit::Emitter;
use crate::emit::staged_window::StagedWindow;
use crate::facts::Range;
use crate::failure::Failure;
use crate::nest::interior::inside;

/// What runs where a condition does not hold.
#[derive(Clone, Copy, Debug)]
enum Otherwise {
    Nothing,
    /// The same statements, without the condition as a fact.
    Same,
}

/// At most this many copies of a lane are unrolled.
const MOST_ROUNDS: i128 = 16;

impl Emitter<'_> {
    /// Prefetches the windows of the first iterations of a loop, before it begins.
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
            self.barrier();
        }
        let range = self.iterations(k, slot)?;
        let mut first = slot.to_vec();
        for n in 0..stages - 1 {
            let Some((lo, _)) = range.single() else { break };
            first[k] = lo.plus(n);
            self.load_windows(depth, &first, range.holds(&first[k]))?;
        }
        Ok(())
    }

    /// Waits for the windows of this iteration, and prefetches those of a later one.
    pub(super) fn stage_windows(&mut self, depth: usize, slot: &[Form]) -> Result<(), Failure> {
        if !self.windows.iter().any(|w| w.of.depth == depth) {
            return Ok(());
        }
        let stages = self.stages_at(depth);
        let pending = u32::try_from(stages - 2).unwrap_or(0);
        if stages > 1 {
            self.wait(depth, pending);
            self.barrier();
            let k = self.partition.steps[depth - 1];
            let mut later = slot.to_vec();
            later[k] = slot[k].plus(stages - 1);
            let there = self.iterations(k, slot)?.holds(&later[k]);
            self.load_windows(depth, &later, there)?;
        } else {
            if depth > 0 {
                self.barrier();
            }
            self.load_windows(depth, slot, Cond::TRUE)?;
            self.wait(depth, 0);
            self.barrier();
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

    /// The stage that holds the window of an iteration.
    fn stage(&self, depth: usize, stages: i128, slot: &[Form]) -> Form {
        match depth.checked_sub(1) {
            Some(at) if stages > 1 => slot[self.partition.steps[at]].modulo(stages),
            Some(_) | None => Form::zero(),
        }
    }

    /// Synchronises the warps of the block.
    fn barrier(&mut self) {
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

    /// Loads the windows of an iteration, if there is such an iteration. A window inside the axes
    /// of its input is loaded without a test of each element.
    fn load_windows(&mut self, depth: usize, slot: &[Form], there: Cond) -> Result<(), Failure> {
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

    /// Statements under a condition that is the same for all warps; it is a fact inside.
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

    /// Assigns every element of a window to one lane of one warp.
    fn deal(&mut self, window: &StagedWindow) -> Result<(), Failure> {
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

    /// Distributes units of neighbours, numbered row by row: lane n of a block takes units n, n +
    /// lanes, …. In column order it takes one sector of each row at a time: the lanes of a warp
    /// then have few columns, and these are in different banks if rows are padded.
    fn deal_flat(&mut self, window: &StagedWindow, extents: &[i128]) -> Result<(), Failure> {
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

    /// Elements of a row that are distributed before the next row; `None` means the whole row.
    fn sector(&self, window: &StagedWindow, last: i128) -> Option<i128> {
        let ty = self.array.inputs[window.of.input.index()].ty;
        let sector = i128::from(SECTOR * 8 / u64::from(ty.bits())).max(1);
        (window.of.order == Order::Columns && last % sector == 0).then_some(sector)
    }

    /// Neighbours that one lane takes: as many as one access moves, if rows start at a multiple of
    /// that.
    fn unit(&self, window: &StagedWindow, last: i128) -> i128 {
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

    /// Distributes row by row, if the extents depend on the sizes: warps split the first axis,
    /// lanes the last.
    fn deal_rows(&mut self, window: &StagedWindow, at: &mut Vec<Form>) -> Result<(), Failure> {
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

    /// One element for each lane: from the input, or outside its axes the value that the input
    /// declares there.
    fn move_element(
        &mut self,
        window: &StagedWindow,
        at: &[Form],
        when: Cond,
    ) -> Result<(), Failure> {
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
