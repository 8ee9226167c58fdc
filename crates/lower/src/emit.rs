//! Emits the statements of a kernel in one walk over the nest of a block.
//!
//! A kernel runs through the slots of a block: loops over the time coordinates in lexicographic
//! order, and in every tick (`tick.rs`) the PEs of the block, one lane for each value of the last
//! lane coordinate. At each slot the cells (`cells.rs`) are evaluated in body order, whether or not
//! the slot has a point. A point inside the domain never reads a value made outside it, so only
//! memory accesses are guarded: loads by the axes of the input, stores by the domain. Conditions
//! that the [facts](crate::facts) decide at compile time leave no code: unrolled coordinates are
//! numbers, and guards that hold everywhere disappear. A builder (`builder.rs`) merges equal
//! values.

use std::collections::HashMap;

use systola_ir::array::Array;
use systola_ir::form::{Cond, Form, Overflow};
use systola_ir::kernel::{BufferKind, FaultSite, Kernel, Program, Shape, Stmt, VarKind};
use systola_ir::target::Machine;
use systola_ir::{BufferId, DimId, RegId, ValueId, VarId};

use crate::decide::Decide;
use crate::emit::builder::Builder;
use crate::emit::fault_sites::{Faults, may_fault};
use crate::emit::registers::Registers;
use crate::emit::staged_window::StagedWindow;
use crate::facts::{Facts, Range};
use crate::failure::Failure;
use crate::nest::interior::{Test, tests};
use crate::nest::tree::{Nest, Which};
use crate::storage::packing::Packing;
use crate::storage::partition::{Partition, Pes};
use crate::storage::queues::PeKey;
use crate::storage::slots::Slots;
use crate::storage::waits::Flags;
use crate::storage::{Plan, Storage};

mod builder;
mod cells;
pub mod fault_sites;
mod faults;
mod intervals;
mod look_back;
mod ports;
mod queues;
mod registers;
mod repeats;
mod scans;
mod staged_window;
mod staging;
mod stored;
mod stored_values;
mod sums;
mod tick;
mod waits;
mod warp_totals;
mod windows;

/// A kernel under construction, with everything that its statements are made from.
struct Emitter<'a> {
    array: &'a Array,
    storage: &'a Storage,
    slots: &'a Slots,
    partition: &'a Partition,
    b: Builder,
    facts: Facts<'a>,
    registers: Registers,
    /// For each cell that is scanned along the lanes, the registers that hold the previous vector.
    scan_carries: HashMap<VarId, Vec<RegId>>,
    /// Values of this tick, if the PEs are known at compile time.
    now: HashMap<(VarId, PeKey), Vec<ValueId>>,
    /// By the cell and the PE in which a part is complete: what the blocks or warps before have
    /// handed on.
    before: HashMap<(VarId, PeKey), Vec<ValueId>>,
    decide: &'a Decide,
    machine: &'a Machine,
    lane: Option<DimId>,
    /// The number of this warp along the block coordinate that is packed into warps.
    packed: Form,
    warp: Option<DimId>,
    windows: Vec<StagedWindow>,
    /// The condition under which the value being computed is selected, if that is rare.
    rare_path: Cond,
    /// Comparisons of the cells, over the slot.
    tests: Vec<Test>,
    /// Where equations can fault.
    faults: Faults,
    /// Is the value of an output being computed, whose variables are those of its point?
    in_output: bool,
}

/// The kernel of some launches of an array, and the sites where its equations can fault.
pub fn emit(
    plan: Plan<'_>,
    program: &Program,
    which: &Which,
    nest: &Nest,
) -> Result<(Kernel, Vec<FaultSite>), Failure> {
    let (mut emitter, mut slot) = Emitter::begin(plan, program, which)?;
    emitter.block_in_order(nest, &mut slot)?;
    Ok((emitter.b.finish(), emitter.faults.sites))
}

impl<'a> Emitter<'a> {
    fn begin(
        plan: Plan<'a>,
        program: &Program,
        which: &Which,
    ) -> Result<(Emitter<'a>, Vec<Form>), Failure> {
        let Plan {
            array,
            decide,
            machine,
            storage,
        } = plan;
        let end = match which {
            Which::All | Which::Inner(_) => "",
            Which::Ends => "_ends",
        };
        // A launch never writes the elements that it reads from earlier launches.
        let read_only: Vec<bool> = program
            .buffers
            .iter()
            .enumerate()
            .map(|(n, b)| {
                let never_changes =
                    matches!(b.kind, BufferKind::Input { .. } | BufferKind::Temporary);
                never_changes && !storage.kept.has(BufferId::from(n))
            })
            .collect();
        let name = format!("{}_{}{end}", array.system, array.name);
        let windows = &storage.shared.windows;
        let mut b = Builder::new(&name, storage.partition.lanes, read_only);
        b.kernel.shared.clone_from(&storage.shared.arrays);
        b.staged = windows.iter().map(|w| w.store).collect();
        let mut emitter = Emitter {
            array,
            storage,
            slots: &storage.slots,
            partition: &storage.partition,
            b,
            facts: Facts::new(decide, machine),
            registers: Registers::default(),
            scan_carries: HashMap::new(),
            now: HashMap::new(),
            before: HashMap::new(),
            decide,
            machine,
            lane: None,
            packed: Form::zero(),
            warp: None,
            windows: windows.iter().cloned().map(StagedWindow::empty).collect(),
            rare_path: Cond::TRUE,
            tests: tests(array, &storage.slots)?,
            faults: Faults::default(),
            in_output: false,
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
        if let Which::Inner(cond) = which {
            let cond = emitter.cond_at(cond, &slot)?;
            emitter.facts = emitter.facts.with(cond);
        }
        Ok((emitter, slot))
    }
}

impl<'a> Emitter<'a> {
    /// The statements that `f` emits, in a scope of their own. They may run many times or never, so
    /// no value stands for a register when they begin or end.
    fn scoped(
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

    /// The same with other facts.
    fn scoped_with(
        &mut self,
        facts: Facts<'a>,
        f: &mut impl FnMut(&mut Self) -> Result<(), Failure>,
    ) -> Result<Vec<Stmt>, Failure> {
        let around = std::mem::replace(&mut self.facts, facts);
        let made = self.scoped(f);
        self.facts = around;
        made
    }
}

impl Emitter<'_> {
    fn coordinate_name(&self, k: usize) -> String {
        let (name, alias) = match k.checked_sub(self.array.place.len()) {
            None => (&self.array.place[k].name, &self.array.place[k].alias),
            Some(t) => (&self.array.time[t].name, &self.array.time[t].alias),
        };
        alias.as_ref().unwrap_or(name).clone()
    }

    /// Declares the variables that launch, grid and lanes bind, and the registers of queues.
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
            let name = if Flags::is_dynamic(self.storage.flags.as_ref(), *k) {
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
            for pe in partition.known_pes(self.slots) {
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
        Ok(slot)
    }

    /// The statements of a nest.
    fn nest(&mut self, nest: &Nest, slot: &mut Vec<Form>) -> Result<(), Failure> {
        match nest {
            Nest::Sequence(parts) => parts.iter().try_for_each(|part| self.nest(part, slot)),
            Nest::For {
                k,
                range,
                copies,
                independent,
                body,
            } => {
                let range = range.map(&|f| self.form_at(f, slot))?;
                let name = self.coordinate_name(*k);
                self.looped(&name, range, *copies, &mut |e, v| {
                    if *independent {
                        e.b.kernel.hints.independent.push(v);
                    }
                    (0..*copies).try_for_each(|n| {
                        slot[*k] = Form::from(v).plus(n);
                        e.nest(body, slot)
                    })
                })
            }
            Nest::Once {
                k,
                value,
                when,
                body,
            } => {
                let when = self.cond_at(when, slot)?;
                // The value may be that of the loop around, as in the remainders of a period.
                let around = slot[*k].clone();
                slot[*k] = self.form_at(value, slot)?;
                self.only_if(when, &mut |e| e.nest(body, slot))?;
                slot[*k] = around;
                Ok(())
            }
            Nest::Versions { cond, inside, edge } => {
                let cond = self.cond_at(cond, slot)?;
                match self.facts.simplify(&cond) {
                    Cond::Const(true) => self.nest(inside, slot),
                    Cond::Const(false) => self.nest(edge, slot),
                    cond => {
                        let facts = self.facts.with(cond.clone());
                        let then = self.scoped_with(facts, &mut |e| e.nest(inside, slot))?;
                        // Both versions of what keeps values are worth their own code.
                        let facts = match self.array.keeps_values() {
                            true => self.facts.with(cond.clone().negate()),
                            false => self.facts.clone(),
                        };
                        let otherwise = self.scoped_with(facts, &mut |e| e.nest(edge, slot))?;
                        self.b.push(Stmt::If {
                            cond,
                            then,
                            otherwise,
                        });
                        Ok(())
                    }
                }
            }
            Nest::Prime { depth, k } => self.begin_stages(*depth, *k, slot),
            Nest::Fill { depth } => self.fill_windows(*depth, slot),
            Nest::Await => self.await_blocks(slot),
            Nest::Signal => self.signal_blocks(slot),
            Nest::Barrier => {
                self.b.push(Stmt::Barrier);
                Ok(())
            }
            Nest::Tick => self.tick(slot),
        }
    }

    /// Emits what `f` makes under a condition.
    fn only_if(
        &mut self,
        cond: Cond,
        f: &mut impl FnMut(&mut Self) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        match self.facts.simplify(&cond) {
            Cond::Const(true) => f(self),
            Cond::Const(false) => Ok(()),
            cond => {
                let then = self.scoped_with(self.facts.with(cond.clone()), f)?;
                self.b.push(Stmt::If {
                    cond,
                    then,
                    otherwise: Vec::new(),
                });
                Ok(())
            }
        }
    }

    fn looped(
        &mut self,
        name: &str,
        range: Range,
        step: i128,
        f: &mut impl FnMut(&mut Self, DimId) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let var = self.b.var(name, VarKind::Loop);
        let mut facts = self.facts.clone();
        facts.set_range(var, range.clone());
        let body = self.scoped_with(facts, &mut |e| f(e, var))?;
        self.b.push(Stmt::For {
            var,
            lo: range.lo,
            hi: range.hi,
            step,
            body,
        });
        Ok(())
    }

    /// A form of the nest over the variables of the kernel.
    fn form_at(&self, form: &Form, slot: &[Form]) -> Result<Form, Overflow> {
        form.substitute(&|d| match d.index() {
            warp if warp == slot.len() => Some(self.packed.clone()),
            k => slot.get(k).cloned(),
        })
    }

    fn cond_at(&self, cond: &Cond, slot: &[Form]) -> Result<Cond, Overflow> {
        cond.map(&|f| self.form_at(f, slot))
    }

    /// The iterations of the loop over a time coordinate, in this block.
    fn iterations(&self, k: usize, slot: &[Form]) -> Result<Range, Overflow> {
        self.slots.ranges[k].map(&|f| self.form_at(f, slot))
    }
}
