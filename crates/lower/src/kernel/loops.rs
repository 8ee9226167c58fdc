//! The statements of a kernel: loops over time, PEs of a tick, cells of a slot.
//!
//! A time coordinate is unrolled if the mapping says so, wholly or by some number of steps, or if the code stays within
//! its budget, the innermost first. A loop that stays is peeled where the tests of the cells change at its first or
//! last turns, so that its body has none of them.

use std::collections::HashMap;

use systola_ir::array::{Array, Cell, Link, Role, TimeCoord};
use systola_ir::form::{Atom, Cond, Form, Poly, Rel};
use systola_ir::kernel::{BufferKind, Kernel, Program, Shape, Stmt, VarKind};
use systola_ir::{DimId, InputId, RegId, ValueId, VarId};

use crate::apply_mapping::Failure;
use crate::decide::Decide;
use crate::kernel::Machine;
use crate::kernel::borders::Borders;
use crate::kernel::builder::Builder;
use crate::kernel::cells::{Bundle, Evaluated, Here};
use crate::kernel::facts::{Facts, Range};
use crate::kernel::flags::Flags;
use crate::kernel::interior::{interior, tests};
use crate::kernel::launches::Launches;
use crate::kernel::packing::Packing;
use crate::kernel::partition::{Partition, Pes, queued};
use crate::kernel::slots::{SlotPiece, Slots, range};
use crate::kernel::staging::Staging;
use crate::kernel::state::{Circular, PeKey, Registers};
use crate::kernel::trees::is_scanned;
use crate::kernel::windows::{Window, windows};

/// A kernel under construction, with all that its statements are made from.
pub struct Emitter<'a> {
    pub array: &'a Array,
    pub partition: &'a Partition,
    pub launches: &'a Launches,
    pub borders: &'a Borders,
    pub flags: Option<&'a Flags>,
    pub b: Builder,
    pub facts: Facts<'a>,
    pub registers: Registers,
    pub memories: HashMap<VarId, Circular>,
    /// Of the cells that are scanned along the lanes, the vector before this one.
    pub handed: HashMap<VarId, Vec<RegId>>,
    /// Values of this tick, where PEs are known.
    pub now: HashMap<(VarId, PeKey), Vec<ValueId>>,
    decide: &'a Decide,
    pub slots: &'a Slots,
    pub machine: &'a Machine,
    pub lane: Option<DimId>,
    /// Which warp this is along the coordinate of the blocks that share it.
    packed: Form,
    pub warp: Option<DimId>,
    pub windows: Vec<Window>,
    /// Are these the statements of blocks that lie at an edge?
    at_edge: bool,
    /// Comparisons that cells do, over the slot.
    tests: Vec<Cond>,
    /// How each of the steps is walked.
    walk: Vec<Walk>,
}

/// However many turns the mapping wants written out, more only take longer to compile.
const MOST_COPIES: i128 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Walk {
    Unrolled,
    /// In a loop that advances by so many.
    By(i128),
    Rolled,
}

/// What goes through global memory, and how it is waited for.
#[derive(Clone, Copy)]
pub struct Stored<'a> {
    pub launches: &'a Launches,
    pub borders: &'a Borders,
    pub flags: Option<&'a Flags>,
}

/// The kernel of an array.
pub fn emit(
    array: &Array,
    decide: &Decide,
    machine: &Machine,
    slots: &Slots,
    partition: &Partition,
    stored: Stored<'_>,
    program: &Program,
) -> Result<Kernel, Failure> {
    // What a launch reads of earlier ones is in another place than what it writes.
    let read_only: Vec<bool> = program
        .buffers
        .iter()
        .map(|b| matches!(b.kind, BufferKind::Input { .. } | BufferKind::Temporary))
        .collect();
    let mut emitter = Emitter {
        array,
        partition,
        launches: stored.launches,
        borders: stored.borders,
        flags: stored.flags,
        b: Builder::new(
            &format!("{}_{}", array.system, array.name),
            partition.lanes,
            read_only,
        ),
        facts: Facts::new(decide, machine),
        registers: Registers::default(),
        memories: HashMap::new(),
        handed: HashMap::new(),
        now: HashMap::new(),
        decide,
        slots,
        machine,
        lane: None,
        packed: Form::zero(),
        warp: None,
        windows: Vec::new(),
        at_edge: false,
        tests: tests(array, slots)?,
        walk: Vec::new(),
    };
    let slot = emitter.prologue()?;
    let staging = Staging::new(machine, slots, partition);
    emitter.windows = windows(array, decide, partition, &staging, &mut emitter.b)?;
    emitter.walk = emitter.choose_unrolling();
    emitter.block_in_order(slot)?;
    Ok(emitter.b.finish())
}

impl Emitter<'_> {
    pub fn coordinate_name(&self, k: usize) -> String {
        let (name, alias) = match k.checked_sub(self.array.place.len()) {
            None => (&self.array.place[k].name, &self.array.place[k].alias),
            Some(t) => (&self.array.time[t].name, &self.array.time[t].alias),
        };
        alias.as_ref().unwrap_or(name).clone()
    }

    /// Declares what the launch, the grid and the lanes bind, and the queues.
    fn prologue(&mut self) -> Result<Vec<Form>, Failure> {
        let n = self.array.place.len() + self.array.time.len();
        let mut slot = vec![Form::zero(); n];
        let partition = self.partition;
        for k in &partition.launches {
            let v = self.b.var(&self.coordinate_name(*k), VarKind::Host);
            self.facts.set_range(v, self.slots.ranges[*k].clone());
            slot[*k] = Form::from(v);
        }
        for k in &partition.blocks {
            let packed = partition.packing.as_ref().filter(|p| p.block == *k);
            let range = packed.map_or_else(|| self.slots.ranges[*k].clone(), Packing::grid);
            let Range { lo, hi } = range.clone();
            let name = self.coordinate_name(*k);
            let name = if Flags::draws(self.flags, *k) {
                format!("{name}_grid")
            } else {
                name
            };
            let v = self.b.var(&name, VarKind::Block { lo, hi });
            self.facts.set_range(v, range);
            slot[*k] = Form::from(v);
        }
        if partition.lanes > 1 {
            let v = self.b.var("l", VarKind::Lane);
            self.facts
                .set_range(v, Range::new(0, i128::from(partition.lanes)));
            self.lane = Some(v);
            if let Some(packing) = &partition.packing {
                let n = Form::from(v).floor_div(packing.pes);
                self.packed = slot[packing.block].clone();
                slot[packing.block] = packing.block_at(&self.packed, &n)?;
            }
        }
        if let Pes::Known { depth } = &partition.walk {
            let shape = if partition.lanes > 1 {
                Shape::Varying
            } else {
                Shape::Uniform
            };
            for pe in self.known_pes() {
                for (n, depth) in depth.iter().enumerate().filter(|(_, d)| **d > 0) {
                    let cell = &self.array.cells[n];
                    self.registers.declare(
                        &mut self.b,
                        VarId::from(n),
                        &cell.name,
                        &cell.ty,
                        pe.clone(),
                        *depth,
                        shape,
                    );
                }
            }
        }
        self.b.kernel.warps = partition.warps.count();
        if partition.warps.count() > 1 {
            let v = self.b.var("w", VarKind::Warp);
            self.facts
                .set_range(v, Range::new(0, i128::from(partition.warps.count())));
            for (k, place) in partition.warps.places(v) {
                slot[k] = self.facts.reduce(&place);
            }
            self.warp = Some(v);
        }
        let places = partition.with_ranges(self.slots, &partition.places());
        let times = partition.with_ranges(self.slots, &partition.steps);
        for n in 0..self.array.cells.len() {
            let cell = VarId::from(n);
            let links: Vec<&Link> = queued(self.array, cell)
                .filter(|l| partition.is_in_memory(self.array, l))
                .filter(|l| !is_scanned(partition, cell, l))
                .collect();
            if !links.is_empty() {
                let memory = Circular::declare(
                    &mut self.b,
                    self.array,
                    cell,
                    &links,
                    &places,
                    &times,
                    partition.lanes,
                    matches!(partition.walk, Pes::Known { .. }),
                )?;
                self.memories.insert(cell, memory);
            }
        }
        Ok(slot)
    }

    /// The PEs of a block in the order of their walk, where they are known.
    fn known_pes(&self) -> Vec<PeKey> {
        let mut keys: Vec<PeKey> = vec![Vec::new()];
        for p in &self.partition.pes {
            let (lo, hi) = self.slots.ranges[*p].constant().unwrap_or((0, 0));
            let mut values: Vec<i128> = if Some(*p) == self.partition.vector {
                let width = i128::from(self.partition.lanes);
                (0..(hi - lo + width - 1) / width).collect()
            } else {
                (lo..hi).collect()
            };
            if self.partition.descending.contains(p) {
                values.reverse();
            }
            keys = keys
                .iter()
                .flat_map(|key| {
                    values.iter().map(move |v| {
                        let mut key = key.clone();
                        key.push(*v);
                        key
                    })
                })
                .collect();
        }
        keys
    }

    /// One block: with tests, and without where it lies inside.
    pub fn block(&mut self, slot: Vec<Form>) -> Result<(), Failure> {
        let inside = match self.partition.walk {
            Pes::Known { .. } => self.inside(&slot, 0, None)?,
            Pes::Looped => Cond::TRUE,
        };
        self.either(inside, &mut |e| e.steps(0, &mut slot.clone()))
    }

    /// Where the tests have one outcome for all PEs and for all steps from `at` on. Of interest may be
    /// those tests only that speak of one coordinate.
    pub fn inside(&self, slot: &[Form], at: usize, about: Option<usize>) -> Result<Cond, Failure> {
        let mut facts = Facts::new(self.decide, self.machine);
        for (k, range) in self.slots.ranges.iter().enumerate() {
            facts.set_range(DimId::from(k), range.clone());
        }
        // Blocks of one warp take the same path: two more coordinates are the warp and the block in it.
        let (warp, nth) = (slot.len(), slot.len() + 1);
        let packing = self.partition.packing.as_ref();
        if let Some(packing) = packing {
            facts.set_range(DimId::from(warp), packing.grid());
            facts.set_range(DimId::from(nth), Range::new(0, packing.blocks));
        }
        let inner = |d: DimId| {
            self.partition.steps[at..].contains(&d.index())
                || self.partition.pes.contains(&d.index())
                || d.index() == nth
                || self.partition.warps.has(d.index())
        };
        let speaks = |test: &&Cond| {
            about.is_none_or(|k| {
                let mut dims = test.forms().into_iter().flat_map(Form::dims);
                dims.any(|d| d.index() == k)
            })
        };
        let mut tests: Vec<Cond> = self.tests.iter().filter(speaks).cloned().collect();
        if let Some(packing) = packing {
            let [warp, nth] = [warp, nth].map(|n| Form::from(DimId::from(n)));
            let block = packing.block_at(&warp, &nth)?;
            let packed = |d: DimId| (d.index() == packing.block).then(|| block.clone());
            for test in &mut tests {
                *test = test.map(&|f| f.substitute(&packed))?;
            }
        }
        let there = |d: DimId| {
            if d.index() == warp {
                return Some(self.packed.clone());
            }
            slot.get(d.index()).cloned()
        };
        // Where a block has chosen its path, a loop in it need not ask again.
        let holds = |form: &Form| {
            self.machine.threads.is_some()
                && about.is_some()
                && (form.substitute(&there)).is_ok_and(|form| self.facts.is_nonnegative(&form))
        };
        let inside = interior(&tests, &facts, &inner, &holds).map(&|f| f.substitute(&there))?;
        Ok(self.facts.simplify(&inside))
    }

    /// The same statements twice: where a condition is known to hold, and where it is not, which is
    /// rare and not worth more code.
    fn either(
        &mut self,
        cond: Cond,
        f: &mut impl FnMut(&mut Self) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if self.at_edge {
            return f(self);
        }
        self.both(cond, f)
    }

    fn both(
        &mut self,
        cond: Cond,
        f: &mut impl FnMut(&mut Self) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if matches!(cond, Cond::Const(_)) {
            return f(self);
        }
        self.registers.flush(&mut self.b);
        let around = self.facts.clone();
        self.facts = around.with(cond.clone());
        self.b.begin();
        let then = f(self);
        self.registers.flush(&mut self.b);
        let then_stmts = self.b.end();
        then?;
        self.facts = around;
        self.b.begin();
        let otherwise = self.at_the_edge(f);
        self.registers.flush(&mut self.b);
        let otherwise_stmts = self.b.end();
        otherwise?;
        self.b.push(Stmt::If {
            cond,
            then: then_stmts,
            otherwise: otherwise_stmts,
        });
        Ok(())
    }

    /// Values that one tick computes, roughly.
    pub fn tick_cost(&self) -> usize {
        let mut ops = 0;
        for cell in &self.array.cells {
            systola_ir::system::visit::walk(&cell.body, &mut |_| ops += 1);
        }
        (ops * self.known_pes().len()).max(1)
    }

    fn choose_unrolling(&self) -> Vec<Walk> {
        let steps = &self.partition.steps;
        let mut walk = vec![Walk::Rolled; steps.len()];
        if !matches!(self.partition.walk, Pes::Known { .. }) {
            return walk;
        }
        let mut cost = self.tick_cost();
        let mut open = true;
        for (at, k) in steps.iter().enumerate().rev() {
            let asked = self.asked_to_unroll(k - self.array.place.len());
            if let Some(Walk::By(n)) = asked {
                walk[at] = Walk::By(n);
                cost = cost.saturating_mul(usize::try_from(n).unwrap_or(1));
                open = false;
                continue;
            }
            let Some((lo, hi)) = self.slots.ranges[*k].constant() else {
                open = false;
                continue;
            };
            let extent = usize::try_from(hi - lo).unwrap_or(usize::MAX).max(1);
            let more = cost.saturating_mul(extent);
            // What the innermost loop reads again is loaded once when it is unrolled, and that is
            // worth more code than the loops around it.
            let budget = if at + 1 == steps.len() {
                4 * self.machine.code_budget
            } else {
                self.machine.code_budget
            };
            if asked.is_some() || (open && more <= budget) {
                walk[at] = Walk::Unrolled;
                cost = more;
            } else {
                open = false;
            }
        }
        walk
    }

    /// Ticks of a turn of the loop `at`, where all loops inside of it are written out.
    pub fn ticks_inside(&self, at: usize) -> Option<usize> {
        let inner = self.partition.steps[at + 1..].iter();
        let walks = inner.zip(&self.walk[at + 1..]);
        walks
            .map(|(k, walk)| match walk {
                Walk::Unrolled => {
                    let (lo, hi) = self.slots.ranges[*k].constant()?;
                    usize::try_from(hi - lo).ok()
                }
                Walk::By(_) | Walk::Rolled => None,
            })
            .product()
    }

    /// What the mapping says of this time coordinate in `unroll`.
    fn asked_to_unroll(&self, t: usize) -> Option<Walk> {
        let TimeCoord { name, alias, .. } = &self.array.time[t];
        let mut asked = self.array.unroll.iter();
        let (_, by) = asked.find(|(asked, _)| asked == name || Some(asked) == alias.as_ref())?;
        Some(match by {
            None => Walk::Unrolled,
            Some(n) => Walk::By(i128::from(*n).clamp(1, MOST_COPIES)),
        })
    }

    /// The loops over the time coordinates from `at` on. What is inside of the first is a turn, before which other blocks
    /// are waited for and after which they are told.
    pub fn steps(&mut self, at: usize, slot: &mut Vec<Form>) -> Result<(), Failure> {
        if self.flags.is_none() || at != self.partition.steps.len().min(1) {
            return self.loops(at, slot);
        }
        self.await_blocks(slot)?;
        self.loops(at, slot)?;
        self.signal_blocks(slot)
    }

    fn loops(&mut self, at: usize, slot: &mut Vec<Form>) -> Result<(), Failure> {
        self.fill_windows(at, slot)?;
        let Some(k) = self.partition.steps.get(at).copied() else {
            return self.tick(slot);
        };
        self.begin_stages(at, k, slot)?;
        match (self.walk[at], self.slots.ranges[k].constant()) {
            (Walk::Unrolled, Some((lo, hi))) => {
                for value in lo..hi {
                    slot[k] = Form::from(value);
                    self.steps(at + 1, slot)?;
                }
                Ok(())
            }
            (Walk::By(n), Some((lo, hi))) if hi - lo <= n => {
                for value in lo..hi {
                    slot[k] = Form::from(value);
                    self.steps(at + 1, slot)?;
                }
                Ok(())
            }
            (Walk::Unrolled | Walk::By(_) | Walk::Rolled, _) => self.rolled(at, k, slot),
        }
    }

    fn rolled(&mut self, at: usize, k: usize, slot: &mut Vec<Form>) -> Result<(), Failure> {
        let range = self.turns(k, slot)?;
        let (first, last) = self.peel(at, k, &range, slot)?;
        let Some((lo, hi)) = range.single().map(|(lo, hi)| (lo.clone(), hi.clone())) else {
            return self.turn(at, k, range, slot);
        };
        for n in 0..first {
            self.single(at, k, lo.plus(n), &range, slot)?;
        }
        let middle = Range::new(lo.plus(first), hi.plus(-last));
        if !self.facts.is_nonnegative(&middle.lo[0].sub(&middle.hi[0])) {
            self.turn(at, k, middle, slot)?;
        }
        for n in (1..=last).rev() {
            // A short range has had this turn among the first.
            let late = Range::new(lo.plus(first), hi.clone());
            self.single(at, k, hi.plus(-n), &late, slot)?;
        }
        Ok(())
    }

    /// One turn of a loop, if it is in the range at all.
    fn single(
        &mut self,
        at: usize,
        k: usize,
        value: Form,
        range: &Range,
        slot: &mut Vec<Form>,
    ) -> Result<(), Failure> {
        let there = self.facts.simplify(&range.holds(&value));
        match there {
            Cond::Const(true) => {
                slot[k] = value;
                self.steps(at + 1, slot)
            }
            Cond::Const(false) => Ok(()),
            there => {
                self.registers.flush(&mut self.b);
                let around = self.facts.clone();
                self.facts = around.with(there.clone());
                self.b.begin();
                slot[k] = value;
                let result = self.steps(at + 1, slot);
                self.registers.flush(&mut self.b);
                let then = self.b.end();
                self.facts = around;
                result?;
                self.b.push(Stmt::If {
                    cond: there,
                    then,
                    otherwise: Vec::new(),
                });
                Ok(())
            }
        }
    }

    /// A loop.
    fn turn(
        &mut self,
        at: usize,
        k: usize,
        range: Range,
        slot: &mut Vec<Form>,
    ) -> Result<(), Failure> {
        // A loop around others may be over tiles of its own, and one with waits is a wavefront.
        let around = at + 1 < self.partition.steps.len();
        let wavefront = self.flags.is_some() || (around && self.machine.threads.is_some());
        let known = matches!(self.partition.walk, Pes::Known { .. });
        if known
            && wavefront
            && !self.at_edge
            && let Some(steady) = self.steady(at, k, &range, slot)?
        {
            return self.in_parts(at, k, &range, &steady, slot);
        }
        let factor = if self.at_edge {
            1
        } else {
            self.written_out(at)
        };
        self.turns_by(k, range, factor, slot, &|e, value, slot| {
            e.one_turn(at, k, value, slot)
        })
    }

    /// How many turns of a loop that stays the mapping wants one after the other.
    pub fn written_out(&self, at: usize) -> i128 {
        match self.walk[at] {
            Walk::By(n) => n,
            Walk::Unrolled | Walk::Rolled => 1,
        }
    }

    fn one_turn(
        &mut self,
        at: usize,
        k: usize,
        value: Form,
        slot: &mut Vec<Form>,
    ) -> Result<(), Failure> {
        slot[k] = value;
        // A loop around others may be over tiles of its own.
        let around = at + 1 < self.partition.steps.len();
        let tested = around && (!self.at_edge || self.tests_turns_at_edge(at));
        let inside = match self.partition.walk {
            Pes::Known { .. } if tested => self.inside(slot, at + 1, Some(k))?,
            Pes::Known { .. } | Pes::Looped => Cond::TRUE,
        };
        self.both(inside, &mut |e| e.steps(at + 1, slot))
    }

    /// Most turns at the edge along one axis are inside along that of the loop, and threads that test every cell are
    /// far behind all others.
    fn tests_turns_at_edge(&self, at: usize) -> bool {
        self.machine.threads.is_some()
            && self.ticks_inside(at).is_some_and(|ticks| {
                self.tick_cost().saturating_mul(ticks) <= 4 * self.machine.code_budget
            })
    }

    /// Statements that run seldom, and are not worth more code.
    pub fn at_the_edge(
        &mut self,
        f: &mut impl FnMut(&mut Self) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let at_edge = std::mem::replace(&mut self.at_edge, true);
        let result = f(self);
        self.at_edge = at_edge;
        result
    }

    pub fn looped(
        &mut self,
        name: &str,
        range: Range,
        step: i128,
        f: &mut impl FnMut(&mut Self, DimId) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.registers.flush(&mut self.b);
        let var = self.b.var(name, VarKind::Loop);
        let around = self.facts.clone();
        self.facts.set_range(var, range.clone());
        self.b.begin();
        let result = f(self, var);
        self.registers.flush(&mut self.b);
        let body = self.b.end();
        self.facts = around;
        result?;
        self.b.push(Stmt::For {
            var,
            lo: range.lo,
            hi: range.hi,
            step,
            body,
        });
        Ok(())
    }

    /// How many first and last turns of a loop have tests that the others do not have.
    fn peel(
        &self,
        at: usize,
        k: usize,
        range: &Range,
        slot: &[Form],
    ) -> Result<(i128, i128), Failure> {
        const MOST: i128 = 2;
        let Some((lo, hi)) = range.single() else {
            return Ok((0, 0));
        };
        if !matches!(self.partition.walk, Pes::Known { .. }) || self.at_edge {
            return Ok((0, 0));
        }
        let inner: Vec<usize> = self.partition.steps[at + 1..]
            .iter()
            .copied()
            .chain(self.partition.places())
            .collect();
        let (mut first, mut last) = (0, 0);
        for test in &self.tests {
            let Cond::Cmp(rel, left, right) = test else {
                continue;
            };
            let gap = left.sub(right);
            let sign = match gap.coefficient(DimId::from(k)).as_constant() {
                Some(s @ (1 | -1)) => s,
                _ => continue,
            };
            let plain = gap.terms().all(|(atom, _)| matches!(atom, Atom::Dim(_)));
            if !plain || gap.dims().iter().any(|d| inner.contains(&d.index())) {
                continue;
            }
            // gap = sign·t + rest: zero at t = −sign·rest.
            let rest = gap.sub(&Form::from(DimId::from(k)).scale(&Poly::constant(sign))?);
            let zero = rest
                .scale(&Poly::constant(-sign))?
                .substitute(&|d| slot.get(d.index()).cloned())?;
            let changes = match rel {
                Rel::Eq | Rel::Ne => vec![zero.clone(), zero.plus(1)],
                Rel::Ge | Rel::Lt => vec![if sign > 0 { zero } else { zero.plus(1) }],
                Rel::Gt | Rel::Le => vec![if sign > 0 { zero.plus(1) } else { zero }],
            };
            for change in changes {
                if let Some(n) = change.sub(lo).as_constant()
                    && (1..=MOST).contains(&n)
                {
                    first = first.max(n);
                }
                if let Some(n) = hi.sub(&change).as_constant()
                    && (1..=MOST).contains(&n)
                {
                    last = last.max(n);
                }
            }
        }
        let inside: usize = self.partition.steps[at + 1..]
            .iter()
            .zip(&self.walk[at + 1..])
            .map(|(k, walk)| {
                let turns = match walk {
                    Walk::Unrolled => self.slots.ranges[*k]
                        .constant()
                        .map_or(1, |(lo, hi)| hi - lo),
                    Walk::By(n) => *n,
                    Walk::Rolled => 1,
                };
                usize::try_from(turns).unwrap_or(1).max(1)
            })
            .product();
        let copies = usize::try_from(1 + first + last).unwrap_or(1);
        let cost = self
            .tick_cost()
            .saturating_mul(inside)
            .saturating_mul(copies);
        // Threads have no vector's worth of work in each instruction that a test costs.
        let budgets = if self.machine.threads.is_some() {
            32
        } else {
            8
        };
        if cost > budgets * self.machine.code_budget {
            return Ok((0, 0));
        }
        Ok((first, last))
    }

    /// All PEs of a block at one time.
    fn tick(&mut self, slot: &mut Vec<Form>) -> Result<(), Failure> {
        match self.partition.walk {
            Pes::Known { .. } => {
                self.now.clear();
                for pe in self.known_pes() {
                    for (p, value) in self.partition.pes.iter().zip(&pe) {
                        slot[*p] = if Some(*p) == self.partition.vector {
                            let (lo, _) = self.slots.ranges[*p].constant().unwrap_or((0, 0));
                            self.lanes_from(lo + value * i128::from(self.partition.lanes))
                        } else {
                            Form::from(*value)
                        };
                    }
                    let values = self.pe(slot, &pe)?;
                    for (cell, value) in values {
                        self.now.insert((cell, pe.clone()), value);
                    }
                }
                let now = std::mem::take(&mut self.now);
                self.registers.shift(&mut self.b, &now);
                Ok(())
            }
            Pes::Looped => self.pes(0, slot),
        }?;
        if self.partition.warps.meet(self.array) {
            self.b.push(Stmt::Barrier);
        }
        Ok(())
    }

    fn lanes_from(&self, first: impl Into<Form>) -> Form {
        let first = first.into();
        match (self.lane, &self.partition.packing) {
            (Some(lane), None) => first.add(&Form::from(lane)),
            (Some(lane), Some(packing)) => first.add(&Form::from(lane).modulo(packing.pes)),
            (None, _) => first,
        }
    }

    /// Loops over the PEs of a block, the coordinates from `at` on.
    fn pes(&mut self, at: usize, slot: &mut Vec<Form>) -> Result<(), Failure> {
        let Some(p) = self.partition.pes.get(at).copied() else {
            return self.memory_pe(slot);
        };
        let warps: Vec<usize> = self.partition.warps.coordinates().collect();
        let given: Vec<usize> = [
            &self.partition.launches[..],
            &self.partition.blocks[..],
            &self.partition.steps[..],
            &warps,
            &self.partition.pes[..at],
        ]
        .concat();
        // Only PEs that have a point at this time are walked, where that is easily said.
        let tight = range(self.array, self.decide, p, &given)
            .ok()
            .and_then(|r| self.at_slot(&r, slot).ok())
            .filter(|r| r.lo.len() + r.hi.len() <= 6);
        let range = self.within(tight.unwrap_or_default(), &self.slots.ranges[p]);
        let name = self.coordinate_name(p);
        let step = if Some(p) == self.partition.vector {
            i128::from(self.partition.lanes)
        } else {
            1
        };
        if self.partition.descending.contains(&p) {
            let Some((lo, hi)) = self.slots.ranges[p]
                .single()
                .map(|(lo, hi)| (lo.clone(), hi.clone()))
            else {
                return Err(crate::decide::Undecided::NeedsSizes(
                    "PEs are walked downwards from a bound with several forms".into(),
                )
                .into());
            };
            let turns = hi.sub(&lo).plus(step - 1).floor_div(step);
            let last = lo.add(&turns.plus(-1).scale(&Poly::constant(step))?);
            return self.looped(&name, Range::new(0, turns), 1, &mut |e, v| {
                slot[p] = last.sub(&Form::from(v).scale(&Poly::constant(step))?);
                e.pe_or_further(at, slot)
            });
        }
        self.looped(&name, range, step, &mut |e, v| {
            slot[p] = Form::from(v);
            e.pe_or_further(at, slot)
        })
    }

    /// The PEs from the one that coordinate `at` begins at: all lanes of a vector, or loops over further coordinates.
    fn pe_or_further(&mut self, at: usize, slot: &mut Vec<Form>) -> Result<(), Failure> {
        let p = self.partition.pes[at];
        if Some(p) != self.partition.vector {
            return self.pes(at + 1, slot);
        }
        slot[p] = self.lanes_from(slot[p].clone());
        let tests = self
            .tests
            .iter()
            .map(|t| t.map(&|f| f.substitute(&|d| slot.get(d.index()).cloned())))
            .collect::<Result<Vec<_>, _>>()?;
        let lane = self.lane;
        let inside = interior(&tests, &self.facts, &|d| Some(d) == lane, &|_| false);
        self.either(inside, &mut |e| e.memory_pe(slot))
    }

    /// The turns of the loop over a time coordinate, in this block.
    pub fn turns(&self, k: usize, slot: &[Form]) -> Result<Range, Failure> {
        self.at_slot(&self.slots.ranges[k], slot)
    }

    fn at_slot(&self, range: &Range, slot: &[Form]) -> Result<Range, Failure> {
        let at = |forms: &[Form]| {
            forms
                .iter()
                .map(|f| f.substitute(&|d| slot.get(d.index()).cloned()))
                .collect::<Result<Vec<_>, _>>()
        };
        Ok(Range {
            lo: at(&range.lo)?,
            hi: at(&range.hi)?,
        })
    }

    /// Both ranges at once: bounds of the second that the first does not imply are added to it.
    fn within(&self, mut range: Range, outer: &Range) -> Range {
        for lo in &outer.lo {
            if !range
                .lo
                .iter()
                .any(|l| self.facts.is_nonnegative(&l.sub(lo)))
            {
                range.lo.push(lo.clone());
            }
        }
        for hi in &outer.hi {
            if !range
                .hi
                .iter()
                .any(|h| self.facts.is_nonnegative(&hi.sub(h)))
            {
                range.hi.push(hi.clone());
            }
        }
        range
    }

    fn memory_pe(&mut self, slot: &[Form]) -> Result<(), Failure> {
        self.pe(slot, &Vec::new()).map(drop)
    }

    /// The element that a cell carries through time in one PE, if that is all it does: it is loaded once,
    /// before the first step, and no PE asks whether it is the first to need it.
    fn stays<'c>(
        &self,
        cell: &'c Cell,
        piece: &SlotPiece,
    ) -> Result<Option<(InputId, &'c [Form])>, Failure> {
        let Role::Propagation { input, index, .. } = &cell.role else {
            return Ok(None);
        };
        for form in index {
            let address = form.substitute(&|d| piece.point.get(d.index()).cloned())?;
            let dims = address.dims();
            if dims
                .iter()
                .any(|d| self.partition.steps.contains(&d.index()))
            {
                return Ok(None);
            }
        }
        Ok(Some((*input, index)))
    }

    /// The cells of one slot, its stores, and what its queues take.
    fn pe(&mut self, slot: &[Form], pe: &PeKey) -> Result<Vec<(VarId, Vec<ValueId>)>, Failure> {
        let array = self.array;
        let mut result: HashMap<VarId, Bundle> = HashMap::new();
        for piece in &self.slots.pieces {
            let at = |f: &Form| f.substitute(&|d| slot.get(d.index()).cloned());
            let valid = piece.valid.map(&at)?;
            let here = Here {
                slot,
                pe,
                point: piece.point.iter().map(at).collect::<Result<_, _>>()?,
                valid: valid.clone(),
            };
            let valid = if self.slots.pieces.len() > 1 {
                self.facts.simplify(&valid)
            } else {
                valid
            };
            if valid == Cond::Const(false) {
                continue;
            }
            let mut done = Evaluated::default();
            for cell in &array.body {
                let declared = &array.cells[cell.index()];
                let value = match (self.stays(declared, piece)?, self.partition.scans.get(cell)) {
                    (Some((input, index)), _) => self.inject(input, index, &here)?,
                    (None, Some(scan)) => self.scanned(*cell, scan, &here, &mut done)?,
                    (None, None) => self.expr(&declared.body, &declared.name, &here, &mut done)?,
                };
                done.cells.insert(*cell, value);
            }
            self.drain(&valid, &here, &mut done)?;
            let owned = valid.clone().and(here.cond(&array.owned())?);
            for cell in &array.body {
                let values = done.cells[cell].flat();
                self.launches
                    .write(&mut self.b, &self.facts, *cell, &owned, &here, &values)?;
                self.borders
                    .write(&mut self.b, &self.facts, self.lane, *cell, &here, &values)?;
            }
            for cell in &array.body {
                let value = done.cells[cell].clone();
                let value = match result.remove(cell) {
                    Some(other) => {
                        let name = &array.cells[cell.index()].name;
                        value.zip(&other, &mut |a, b| self.b.choose(name, valid.clone(), a, b))
                    }
                    None => value,
                };
                result.insert(*cell, value);
            }
        }
        let mut values = Vec::new();
        for cell in &array.body {
            let Some(value) = result.get(cell) else {
                continue;
            };
            let flat = value.flat();
            if let Some(memory) = self.memories.get(cell).cloned() {
                memory.write(&mut self.b, slot, &flat);
            }
            values.push((*cell, flat));
        }
        Ok(values)
    }
}
