//! The statements of a kernel: what comes first in a block, and the loops over time.
//!
//! How much of a loop is written out says [`unrolling`], which turns need no test [`steady`] and [`paths`]; a tick in the
//! middle of all loops is the business of [`pes`].
//!
//! [`unrolling`]: crate::kernel::unrolling
//! [`steady`]: crate::kernel::steady
//! [`paths`]: crate::kernel::paths
//! [`pes`]: crate::kernel::pes

use std::collections::HashMap;

use systola_ir::array::{Array, Link};
use systola_ir::form::{Cond, Form};
use systola_ir::kernel::{BufferKind, FaultSite, Kernel, Program, Shape, Stmt, VarKind};
use systola_ir::target::Machine;
use systola_ir::{DimId, RegId, ValueId, VarId};

use crate::apply_mapping::Failure;
use crate::decide::Decide;
use crate::kernel::borders::Borders;
use crate::kernel::builder::Builder;
use crate::kernel::facts::{Facts, Range};
use crate::kernel::faults::{Faults, may_fault};
use crate::kernel::flags::Flags;
use crate::kernel::interior::{Test, tests};
use crate::kernel::launches::Launches;
use crate::kernel::packing::Packing;
use crate::kernel::partition::{Partition, Pes, queued};
use crate::kernel::paths::of_blocks;
use crate::kernel::slots::{self, Slots};
use crate::kernel::staging::Staging;
use crate::kernel::state::{Circular, PeKey, Registers};
use crate::kernel::trees::is_scanned;
use crate::kernel::unrolling::Walk;
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
    pub decide: &'a Decide,
    pub slots: &'a Slots,
    pub machine: &'a Machine,
    pub lane: Option<DimId>,
    /// Which warp this is along the coordinate of the blocks that share it.
    pub packed: Form,
    pub warp: Option<DimId>,
    pub windows: Vec<Window>,
    /// Are these the statements of blocks that lie at an edge?
    pub at_edge: bool,
    /// Where the value that is being computed is chosen at all, if that is not often.
    pub seldom: Cond,
    /// Comparisons that cells do, over the slot.
    pub tests: Vec<Test>,
    /// How each of the steps is walked.
    pub walk: Vec<Walk>,
    /// Of which launches this is the kernel.
    pub which: Which,
    /// Where equations can go wrong.
    pub faults: Faults,
}

/// The launches of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum Which {
    All,
    /// Those for which a condition over the launch coordinates holds.
    Inner(Cond),
    /// The first and the last ones, which have tests that the others do without.
    Ends,
}

/// What goes through global memory, and how it is waited for.
#[derive(Clone, Copy)]
pub struct Stored<'a> {
    pub launches: &'a Launches,
    pub borders: &'a Borders,
    pub flags: Option<&'a Flags>,
}

/// Of what a kernel is made.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    pub array: &'a Array,
    pub decide: &'a Decide,
    pub machine: &'a Machine,
    pub slots: &'a Slots,
    pub partition: &'a Partition,
    pub stored: Stored<'a>,
}

/// The kernel of some launches of an array, and where its equations can go wrong.
pub fn emit(
    plan: Plan<'_>,
    program: &Program,
    which: Which,
) -> Result<(Kernel, Vec<FaultSite>), Failure> {
    let (mut emitter, slot) = begin(plan, program, which)?;
    emitter.block_in_order(slot)?;
    let sites = std::mem::take(&mut emitter.faults.sites);
    Ok((emitter.b.finish(), sites))
}

/// The launches that do not test at which end they are, as a condition over the launch coordinates.
pub fn inner_launches(plan: Plan<'_>, program: &Program) -> Result<Cond, Failure> {
    let (emitter, slot) = begin(plan, program, Which::All)?;
    match plan.partition.walk {
        Pes::Known { .. } => emitter.inside_launch(&slot),
        Pes::Looped => Ok(Cond::TRUE),
    }
}

fn begin<'a>(
    plan: Plan<'a>,
    program: &Program,
    which: Which,
) -> Result<(Emitter<'a>, Vec<Form>), Failure> {
    let Plan {
        array,
        decide,
        machine,
        slots,
        partition,
        stored,
    } = plan;
    let end = match which {
        Which::All | Which::Inner(_) => "",
        Which::Ends => "_ends",
    };
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
            &format!("{}_{}{end}", array.system, array.name),
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
        seldom: Cond::TRUE,
        tests: tests(array, slots)?,
        walk: Vec::new(),
        which,
        faults: Faults::default(),
    };
    let writes = array.outputs.iter().flat_map(|o| &o.writes);
    let equations = array.cells.iter().map(|cell| &cell.body);
    if equations
        .chain(writes.map(|write| &write.value))
        .any(|body| may_fault(array, body))
    {
        emitter.b.keep_operations();
    }
    let slot = emitter.prologue()?;
    if let Which::Inner(cond) = &emitter.which {
        emitter.facts = emitter.facts.with(cond.clone());
    }
    let staging = Staging::new(machine, slots, partition);
    emitter.windows = windows(array, decide, partition, &staging, &mut emitter.b)?;
    emitter.walk = emitter.choose_unrolling();
    Ok((emitter, slot))
}

impl<'a> Emitter<'a> {
    /// The statements that `f` makes, which may run often or not at all: no value stands for a register on the way
    /// into them or out of them.
    pub fn apart(
        &mut self,
        f: &mut impl FnMut(&mut Self) -> Result<(), Failure>,
    ) -> Result<Vec<Stmt>, Failure> {
        self.registers.flush(&mut self.b);
        self.b.begin();
        let result = f(self);
        self.registers.flush(&mut self.b);
        let made = self.b.end();
        result.map(|()| made)
    }

    /// The same where other facts are known.
    pub fn apart_where(
        &mut self,
        facts: Facts<'a>,
        f: &mut impl FnMut(&mut Self) -> Result<(), Failure>,
    ) -> Result<Vec<Stmt>, Failure> {
        let around = std::mem::replace(&mut self.facts, facts);
        let made = self.apart(f);
        self.facts = around;
        made
    }
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
    pub fn known_pes(&self) -> Vec<PeKey> {
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
        // Blocks that wait for each other count all turns.
        let range = if at == 0 && self.at_edge && self.flags.is_none() && self.streams() {
            self.turns_of_block(k, slot)?
        } else {
            self.turns(k, slot)?
        };
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
                slot[k] = value;
                let facts = self.facts.with(there.clone());
                let then = self.apart_where(facts, &mut |e| e.steps(at + 1, slot))?;
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
            && (!self.at_edge || (at == 0 && self.flags.is_none() && self.streams()))
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
        let inside = match self.partition.walk {
            Pes::Known { .. } if around && !self.at_edge => self.inside(slot, at + 1, Some(k))?,
            Pes::Known { .. } if self.goes_along_rows(at) => self.inside(slot, at + 1, Some(k))?,
            Pes::Known { .. } if around && self.tests_turns_at_edge(at) => {
                of_blocks(self.inside(slot, at + 1, Some(k))?, &slot[k])
            }
            Pes::Known { .. } | Pes::Looped => Cond::TRUE,
        };
        self.both(inside, &mut |e| e.steps(at + 1, slot))
    }

    pub fn looped(
        &mut self,
        name: &str,
        range: Range,
        step: i128,
        f: &mut impl FnMut(&mut Self, DimId) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let var = self.b.var(name, VarKind::Loop);
        let mut facts = self.facts.clone();
        facts.set_range(var, range.clone());
        let body = self.apart_where(facts, &mut |e| f(e, var))?;
        self.b.push(Stmt::For {
            var,
            lo: range.lo,
            hi: range.hi,
            step,
            body,
        });
        Ok(())
    }

    /// The turns of the loop over a time coordinate, in this block.
    pub fn turns(&self, k: usize, slot: &[Form]) -> Result<Range, Failure> {
        self.at_slot(&self.slots.ranges[k], slot)
    }

    /// Those of a block at an edge, where tiles are cut off: in no other turn it has a point.
    fn turns_of_block(&self, k: usize, slot: &[Form]) -> Result<Range, Failure> {
        if self.partition.packing.is_some() {
            return self.turns(k, slot);
        }
        let own = slots::range(self.array, self.decide, k, &self.partition.blocks);
        match own {
            Ok(range) => self.at_slot(&range, slot),
            Err(_) => self.turns(k, slot),
        }
    }

    pub fn at_slot(&self, range: &Range, slot: &[Form]) -> Result<Range, Failure> {
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
    pub fn within(&self, mut range: Range, outer: &Range) -> Range {
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
}
