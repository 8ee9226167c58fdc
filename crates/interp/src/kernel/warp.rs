//! One warp: its lanes execute each instruction together.

use std::collections::VecDeque;

use systola_ir::{BinOp, UnOp};

use crate::linear::Linear;
use crate::value::{OpError, Value, binary, cast, unary};

use super::code::{Code, Compute, FaultCode, Instr, Slot};
use super::fault::FaultKind;
use super::lanes::LaneForm;
use super::machine::{BlockState, Machine};
use super::race::{Clock, Mark};
use super::undefined::{Cell, Undefined, Why};

mod access;
mod look_back;

pub(super) use access::{Scratch, Touch};
pub(super) use look_back::Chains;

/// A fault without its context.
pub(super) struct Blame {
    pub lane: Option<usize>,
    pub kind: FaultKind,
    /// The origin of the undefined value, if it is about one.
    pub origin: Option<Undefined>,
}

impl Blame {
    pub fn new(lane: Option<usize>, kind: FaultKind) -> Blame {
        Blame {
            lane,
            kind,
            origin: None,
        }
    }

    pub fn warp(kind: FaultKind) -> Blame {
        Blame::new(None, kind)
    }

    pub fn lane(lane: usize, kind: FaultKind) -> Blame {
        Blame::new(Some(lane), kind)
    }

    fn overflow(lane: Option<usize>) -> Blame {
        Blame::new(lane, FaultKind::IndexOverflow)
    }

    fn because(mut self, origin: Undefined) -> Blame {
        self.origin = Some(origin);
        self
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Ready,
    /// At a barrier or signal, which synchronises all warps of the block.
    AtBarrier,
    /// At a flag: the buffer and position, and the awaited value.
    Awaiting {
        buffer: usize,
        position: usize,
        at_least: i64,
    },
    /// At a chain: the buffer, and a position where nothing or no sum is published yet.
    LookingBack {
        buffer: usize,
        position: usize,
    },
    Done,
}

/// An element of a copy in flight.
struct Arrival {
    shared: usize,
    position: usize,
    /// The lane that issued it.
    lane: usize,
    value: Cell,
    source: Source,
}

/// The source of a copy, and the stamp of its last write when it was issued.
struct Source {
    buffer: usize,
    position: usize,
    last_written: u64,
}

pub(super) struct Warp {
    pub id: usize,
    pub pc: usize,
    pub state: State,
    /// The index variables.
    pub point: Vec<i64>,
    /// For each loop variable, the end of its loop.
    ends: Vec<i64>,
    /// All values and registers.
    cells: Vec<Cell>,
    /// Copies since the last commit.
    copies: Vec<Arrival>,
    /// Committed groups, the oldest first.
    groups: VecDeque<Vec<Arrival>>,
    pub clock: Clock,
}

impl Warp {
    pub fn new(code: &Code<'_>, id: usize, mut point: Vec<i64>) -> Warp {
        if let Some(var) = code.warp_var {
            point[var] = id as i64;
        }
        Warp {
            id,
            pc: 0,
            state: State::Ready,
            ends: vec![0; point.len()],
            point,
            cells: vec![Err(Undefined::new(Why::Unset)); code.n_cells],
            copies: Vec::new(),
            groups: VecDeque::new(),
            clock: Clock::default(),
        }
    }

    /// Executes until the warp ends or has to wait.
    pub fn run(
        &mut self,
        machine: &mut Machine,
        code: &Code<'_>,
        block: &mut BlockState,
    ) -> Result<(), Blame> {
        loop {
            machine.count_step()?;
            match &code.instrs[self.pc] {
                Instr::Let(to, compute) => self.compute(machine, code, block, *to, compute)?,
                Instr::Set(reg, value) => {
                    for lane in 0..reg.n_cells(code.lanes) {
                        self.cells[reg.at(lane)] = self.cells[value.at(lane)].clone();
                    }
                }
                Instr::LoadWide(to, from, otherwise) => {
                    self.load(machine, code, block, to, from, otherwise)?;
                }
                Instr::Store(to, values) => self.store(machine, code, block, to, values)?,
                Instr::Copy { to, from, width } => {
                    self.copy(machine, code, block, to, from, *width)?;
                }
                Instr::CommitCopies => {
                    let group = std::mem::take(&mut self.copies);
                    self.groups.push_back(group);
                }
                Instr::WaitCopies(pending) => self.wait_copies(machine, block, *pending)?,
                Instr::Enter {
                    var,
                    lo,
                    hi,
                    backwards,
                    end,
                } => {
                    let bounds = |list: &[Linear]| -> Option<Vec<i64>> {
                        list.iter().map(|form| form.eval(&self.point)).collect()
                    };
                    let lo = bounds(lo).and_then(|list| list.into_iter().max());
                    let hi = bounds(hi).and_then(|list| list.into_iter().min());
                    let (Some(lo), Some(hi)) = (lo, hi) else {
                        return Err(Blame::overflow(None));
                    };
                    if lo >= hi {
                        self.pc = *end;
                        continue;
                    }
                    match backwards {
                        None => {
                            self.point[*var] = lo;
                            self.ends[*var] = hi;
                        }
                        Some(step) => {
                            self.point[*var] = lo + (hi - 1 - lo) / step * step;
                            self.ends[*var] = lo;
                        }
                    }
                }
                Instr::Repeat { var, step, body } => {
                    let next = self.point[*var].checked_add(*step);
                    let next = next.ok_or(Blame::overflow(None))?;
                    let end = self.ends[*var];
                    if (*step > 0 && next < end) || (*step < 0 && next >= end) {
                        self.point[*var] = next;
                        self.pc = *body;
                        continue;
                    }
                }
                Instr::Unless(test, to) => {
                    if !test.eval(&self.point).ok_or(Blame::overflow(None))? {
                        self.pc = *to;
                        continue;
                    }
                }
                Instr::Jump(to) => {
                    self.pc = *to;
                    continue;
                }
                Instr::Barrier | Instr::Signal(_) => {
                    self.state = State::AtBarrier;
                    return Ok(());
                }
                Instr::Await(flag, at_least) => {
                    let at_least = at_least.eval(&self.point).ok_or(Blame::overflow(None))?;
                    self.state = self.await_flag(machine, code, flag, at_least)?;
                    if self.state != State::Ready {
                        return Ok(());
                    }
                }
                Instr::LookBack(look) => {
                    self.state = self.look_back(machine, code, block, look)?;
                    if self.state != State::Ready {
                        return Ok(());
                    }
                }
                Instr::DynamicBlockId(var, counter) => {
                    self.point[*var] =
                        self.dynamic_block_id(machine, code, block, *var, counter)?;
                    // Counted once for the block.
                    self.pc += 1;
                    continue;
                }
                Instr::Fault(fault) => self.fault(code, fault)?,
                Instr::End => {
                    let groups = self.groups.iter().chain([&self.copies]);
                    let groups = groups.filter(|group| !group.is_empty()).count();
                    if groups > 0 {
                        return Err(Blame::warp(FaultKind::CopiesLeft { groups }));
                    }
                    self.state = State::Done;
                    return Ok(());
                }
            }
            machine.count(code.events[self.pc], 1);
            self.pc += 1;
        }
    }

    pub fn mark(&self, machine: &Machine, block: &BlockState) -> Mark {
        Mark {
            launch: machine.launch,
            block: block.number,
            warp: self.id as u32,
            epoch: block.epoch,
            signals: block.signals,
        }
    }

    fn compute(
        &mut self,
        machine: &mut Machine,
        code: &Code<'_>,
        block: &mut BlockState,
        to: Slot,
        compute: &Compute,
    ) -> Result<(), Blame> {
        let n = to.n_cells(code.lanes);
        match compute {
            Compute::Lit(value) => {
                for lane in 0..n {
                    self.cells[to.at(lane)] = Ok(value.clone());
                }
            }
            Compute::Index(form) => self.index(code, to, n, form)?,
            Compute::Get(reg) => {
                for lane in 0..n {
                    let cell = self.cells[reg.at(lane)].clone();
                    self.cells[to.at(lane)] = self.seen(code, cell);
                }
            }
            Compute::Unary(op, a) => self.unary(to, n, *op, *a)?,
            Compute::Binary(op, a, b) => self.binary(code, to, n, *op, (*a, *b))?,
            Compute::Cast(ty, a) => {
                for lane in 0..n {
                    self.cells[to.at(lane)] = match &self.cells[a.at(lane)] {
                        Ok(a) => Ok(cast(*ty, a).map_err(|e| operator(lane, e))?),
                        Err(undefined) => Err(*undefined),
                    };
                }
            }
            Compute::Select(cond, then, otherwise) => {
                for lane in 0..n {
                    let cell = match &self.cells[cond.at(lane)] {
                        Ok(Value::Bool(true)) => self.cells[then.at(lane)].clone(),
                        Ok(_) => self.cells[otherwise.at(lane)].clone(),
                        Err(undefined) => Err(*undefined),
                    };
                    self.cells[to.at(lane)] = cell;
                }
            }
            Compute::Choose(cond, then, otherwise) => {
                let shared = cond.shared_part(&self.point);
                for lane in 0..n {
                    self.enter_lane(code, lane);
                    let holds = cond.at(shared, &self.point);
                    let from = match holds.ok_or(Blame::overflow(Some(lane)))? {
                        true => then,
                        false => otherwise,
                    };
                    self.cells[to.at(lane)] = self.cells[from.at(lane)].clone();
                }
            }
            Compute::Load(from, otherwise) => {
                self.load(machine, code, block, &[to], from, otherwise)?;
            }
            Compute::Lookup(memory, index) => {
                self.lookup(machine, code, block, to, n, *memory, index)?;
            }
            Compute::Shuffle(value, from) => {
                let shared = from.shared_part(&self.point);
                for lane in 0..n {
                    self.enter_lane(code, lane);
                    let from = from.at(shared, &self.point, lane);
                    let from = usize::try_from(from.ok_or(Blame::overflow(Some(lane)))?);
                    self.cells[to.at(lane)] = match from {
                        Ok(from) if from < code.lanes => self.cells[value.at(from)].clone(),
                        Ok(_) | Err(_) => Err(self.undefined(code, Why::NoLane)),
                    };
                }
            }
            Compute::LaneShift { low, high, by } => {
                for lane in 0..n {
                    let element = lane + code.lanes - by;
                    let (from, lane_of_it) = match element < code.lanes {
                        true => (low, element),
                        false => (high, element - code.lanes),
                    };
                    self.cells[to.at(lane)] = match from {
                        Some(slot) => self.cells[slot.at(lane_of_it)].clone(),
                        None => Err(self.undefined(code, Why::NoLane)),
                    };
                }
            }
        }
        Ok(())
    }

    /// Ends the run where an equation has no value at the point of a lane.
    fn fault(&mut self, code: &Code<'_>, fault: &FaultCode) -> Result<(), Blame> {
        let shared = fault.when.shared_part(&self.point);
        for lane in 0..code.lanes {
            self.enter_lane(code, lane);
            let holds = fault.when.at(shared, &self.point);
            if !holds.ok_or(Blame::overflow(Some(lane)))? {
                continue;
            }
            match &self.cells[fault.bad.at(lane)] {
                Ok(Value::Bool(true)) => {}
                Ok(_) => continue,
                Err(undefined) => {
                    let blame = Blame::lane(lane, FaultKind::UndefinedTest);
                    return Err(blame.because(*undefined));
                }
            }
            let coordinates = fault.point.iter().map(|form| {
                let shared = form.shared_part(&self.point);
                form.at(shared, &self.point, lane)
            });
            let point: Option<Vec<i64>> = coordinates.collect();
            let site = fault.site;
            let point = point.ok_or(Blame::overflow(Some(lane)))?;
            return Err(Blame::lane(lane, FaultKind::Raised { site, point }));
        }
        Ok(())
    }

    /// A new undefined value with this instruction as its origin.
    fn undefined(&self, code: &Code<'_>, why: Why) -> Undefined {
        Undefined::new(why).seen_at(code.id.index(), self.pc)
    }

    #[inline]
    fn seen(&self, code: &Code<'_>, cell: Cell) -> Cell {
        cell.map_err(|undefined| undefined.seen_at(code.id.index(), self.pc))
    }

    #[inline]
    fn enter_lane(&mut self, code: &Code<'_>, lane: usize) {
        if let Some(var) = code.lane_var {
            self.point[var] = lane as i64;
        }
    }

    fn index(&mut self, code: &Code<'_>, to: Slot, n: usize, form: &LaneForm) -> Result<(), Blame> {
        let shared = form.shared_part(&self.point);
        for lane in 0..n {
            self.enter_lane(code, lane);
            let value = form.at(shared, &self.point, lane);
            let value = value.ok_or(Blame::overflow(Some(lane)))?;
            self.cells[to.at(lane)] = Ok(Value::I64(value));
        }
        Ok(())
    }

    fn unary(&mut self, to: Slot, n: usize, op: UnOp, a: Slot) -> Result<(), Blame> {
        for lane in 0..n {
            self.cells[to.at(lane)] = match &self.cells[a.at(lane)] {
                Ok(a) => Ok(unary(op, a).map_err(|e| operator(lane, e))?),
                Err(undefined) => Err(*undefined),
            };
        }
        Ok(())
    }

    fn binary(
        &mut self,
        code: &Code<'_>,
        to: Slot,
        n: usize,
        op: BinOp,
        (a, b): (Slot, Slot),
    ) -> Result<(), Blame> {
        for lane in 0..n {
            let cell = match (&self.cells[a.at(lane)], &self.cells[b.at(lane)]) {
                (Ok(a), Ok(b)) => match binary(op, a, b) {
                    Ok(value) => Ok(value),
                    Err(OpError::DivisionByZero(_) | OpError::NegativeExponent(_)) => {
                        Err(self.undefined(code, Why::NoResult))
                    }
                    Err(error @ OpError::Types { .. }) => return Err(operator(lane, error)),
                },
                (Err(undefined), _) | (_, Err(undefined)) => Err(*undefined),
            };
            self.cells[to.at(lane)] = cell;
        }
        Ok(())
    }
}

fn operator(lane: usize, error: OpError) -> Blame {
    Blame::lane(lane, FaultKind::Operator(error))
}
