//! Loads, stores, copies and flags of a warp.

use systola_ir::kernel::Memory;

use crate::value::Value;

use super::super::code::{AccessCode, ChainCode, Code, Slot};
use super::super::fault::FaultKind;
use super::super::lanes::LaneTest;
use super::super::machine::{BlockState, Machine};
use super::super::memory::{Conflict, Kind, Layout, Store};
use super::super::race::{Clock, Me};
use super::super::undefined::{Cell, Why, is_same};
use super::{Arrival, Blame, Source, State, Warp};

/// An active lane and the position of its first element.
pub(in super::super) type Touch = (usize, usize);

/// Reused scratch lists.
#[derive(Default)]
pub(in super::super) struct Scratch {
    touches: Vec<Touch>,
    sources: Vec<Touch>,
    work: Work,
    seen: Vec<u64>,
}

#[derive(Default)]
struct Work {
    /// The uniform part of each index.
    parts: Vec<Option<i64>>,
    index: Vec<i64>,
}

impl Warp {
    /// The active lanes: those where the predicates of the access and of the other one hold.
    fn resolve(
        &mut self,
        code: &Code<'_>,
        access: &AccessCode,
        also: Option<&LaneTest>,
        layout: &Layout,
        width: usize,
        work: &mut Work,
        touches: &mut Vec<Touch>,
    ) -> Result<(), Blame> {
        let Work { parts, index } = work;
        touches.clear();
        parts.clear();
        parts.extend(
            access
                .index
                .iter()
                .map(|form| form.shared_part(&self.point)),
        );
        let when = access.when.shared_part(&self.point);
        let also = also.map(|test| (test, test.shared_part(&self.point)));
        for lane in 0..access.lanes {
            let overflow = || Blame::overflow(Some(lane));
            self.enter_lane(code, lane);
            if !access.when.at(when, &self.point).ok_or_else(overflow)? {
                continue;
            }
            if let Some((test, shared)) = also
                && !test.at(shared, &self.point).ok_or_else(overflow)?
            {
                continue;
            }
            index.clear();
            for (form, part) in access.index.iter().zip(parts.iter()) {
                index.push(form.at(*part, &self.point, lane).ok_or_else(overflow)?);
            }
            match layout.position(index, width) {
                Some(position) if position % width == 0 || !width.is_power_of_two() => {
                    touches.push((lane, position));
                }
                Some(_) => return Err(Blame::lane(lane, layout.misaligned(index, width))),
                None => return Err(Blame::lane(lane, layout.out_of_bounds(index, width))),
            }
        }
        Ok(())
    }

    pub(super) fn load(
        &mut self,
        machine: &mut Machine,
        code: &Code<'_>,
        block: &mut BlockState,
        to: &[Slot],
        from: &AccessCode,
        otherwise: &Option<Value>,
    ) -> Result<(), Blame> {
        let absent = match otherwise {
            Some(value) => Ok(value.clone()),
            None => Err(self.undefined(code, Why::Predicate)),
        };
        for slot in to {
            for lane in 0..slot.n_cells(code.lanes) {
                self.cells[slot.at(lane)] = absent.clone();
            }
        }
        let mut scratch = std::mem::take(&mut machine.scratch);
        let Scratch {
            touches,
            work,
            seen,
            ..
        } = &mut scratch;
        let layout = &memory(machine, block, from.memory).layout;
        self.resolve(code, from, None, layout, to.len(), work, touches)?;
        let (mark, clock) = (self.mark(machine, block), self.clock.clone());
        let me = Me {
            mark,
            clock: &clock,
        };
        for (lane, position) in &*touches {
            for (k, slot) in to.iter().enumerate() {
                let cell = read(machine, block, me, from.memory, position + k, *lane)?;
                self.cells[slot.at(*lane)] = self.seen(code, cell);
            }
        }
        machine.count_access(block, from.memory, to.len(), touches, seen);
        machine.scratch = scratch;
        Ok(())
    }

    pub(super) fn lookup(
        &mut self,
        machine: &mut Machine,
        code: &Code<'_>,
        block: &mut BlockState,
        to: Slot,
        n: usize,
        from: Memory,
        index: &[Slot],
    ) -> Result<(), Blame> {
        let mut scratch = std::mem::take(&mut machine.scratch);
        let Scratch { touches, seen, .. } = &mut scratch;
        touches.clear();
        let (mark, clock) = (self.mark(machine, block), self.clock.clone());
        let me = Me {
            mark,
            clock: &clock,
        };
        for lane in 0..n {
            let layout = &memory(machine, block, from).layout;
            let mut position = Ok(0);
            for (slot, extent) in index.iter().zip(&layout.extent) {
                position = match (position, &self.cells[slot.at(lane)]) {
                    (Err(undefined), _) => Err(undefined),
                    (_, Err(undefined)) => Err(*undefined),
                    (Ok(position), Ok(x)) => match x.as_int() {
                        Some(x) if (0..i128::from(*extent)).contains(&x) => {
                            Ok(position * *extent as usize + x as usize)
                        }
                        Some(_) | None => Err(self.undefined(code, Why::NoElement)),
                    },
                };
            }
            self.cells[to.at(lane)] = match position {
                Ok(position) => {
                    touches.push((lane, position));
                    let cell = read(machine, block, me, from, position, lane)?;
                    self.seen(code, cell)
                }
                Err(undefined) => Err(undefined),
            };
        }
        machine.count_access(block, from, 1, touches, seen);
        machine.scratch = scratch;
        Ok(())
    }

    pub(super) fn store(
        &mut self,
        machine: &mut Machine,
        code: &Code<'_>,
        block: &mut BlockState,
        to: &AccessCode,
        values: &[Slot],
    ) -> Result<(), Blame> {
        let mut scratch = std::mem::take(&mut machine.scratch);
        let Scratch {
            touches,
            work,
            seen,
            ..
        } = &mut scratch;
        let layout = &memory(machine, block, to.memory).layout;
        self.resolve(code, to, None, layout, values.len(), work, touches)?;
        let stamp = machine.next_stamp();
        let me = Me {
            mark: self.mark(machine, block),
            clock: &self.clock,
        };
        for (lane, position) in &*touches {
            for (k, slot) in values.iter().enumerate() {
                let (position, lane) = (position + k, *lane);
                machine.check_flag(to.memory, position, lane)?;
                let value = &self.cells[slot.at(lane)];
                let store = memory(machine, block, to.memory);
                let is_seen = match store.kind {
                    Kind::Output | Kind::Flags => true,
                    Kind::Input | Kind::Temporary | Kind::Shared => false,
                };
                if let Err(undefined) = value
                    && is_seen
                {
                    let array = store.layout.name.clone();
                    let index = store.layout.index_of(position);
                    let kind = FaultKind::UndefinedStored { array, index };
                    return Err(Blame::lane(lane, kind).because(*undefined));
                }
                if let Err(conflict) = store.write(position, value, me, stamp) {
                    let other = first_to_touch(touches, values.len(), position);
                    let spot = (to.memory, position, lane);
                    return Err(blame(machine, block, conflict, spot, true, other));
                }
            }
        }
        machine.count_access(block, to.memory, values.len(), touches, seen);
        machine.scratch = scratch;
        Ok(())
    }

    pub(super) fn copy(
        &mut self,
        machine: &mut Machine,
        code: &Code<'_>,
        block: &mut BlockState,
        to: &AccessCode,
        from: &AccessCode,
        width: usize,
    ) -> Result<(), Blame> {
        let (Memory::Shared(shared), Memory::Global(buffer)) = (to.memory, from.memory) else {
            panic!("a copy that is not from global to shared memory passed the verifier");
        };
        let mut scratch = std::mem::take(&mut machine.scratch);
        let Scratch {
            touches,
            sources,
            work,
            seen,
        } = &mut scratch;
        let layout = &memory(machine, block, from.memory).layout;
        self.resolve(code, from, Some(&to.when), layout, width, work, sources)?;
        let layout = &memory(machine, block, to.memory).layout;
        self.resolve(code, to, Some(&from.when), layout, width, work, touches)?;
        let stamp = machine.next_stamp();
        let (mark, clock) = (self.mark(machine, block), self.clock.clone());
        let me = Me {
            mark,
            clock: &clock,
        };
        let first = self.copies.len();
        for ((lane, target), (_, source)) in touches.iter().zip(&*sources) {
            for k in 0..width {
                let (position, lane) = (target + k, *lane);
                let value = read(machine, block, me, from.memory, source + k, lane)?;
                let value = self.seen(code, value);
                let begun = memory(machine, block, to.memory).begin_copy(position, me, stamp);
                let mut here = self.copies[first..].iter();
                let conflict = match begun {
                    Ok(true) => None,
                    Ok(false) => {
                        if here.all(|a| a.position != position || is_same(&a.value, &value)) {
                            continue;
                        }
                        Some(Conflict::LanesDisagree)
                    }
                    Err(conflict) => Some(conflict),
                };
                if let Some(conflict) = conflict {
                    let other = first_to_touch(touches, width, position);
                    let spot = (to.memory, position, lane);
                    return Err(blame(machine, block, conflict, spot, true, other));
                }
                self.copies.push(Arrival {
                    shared: shared.index(),
                    position,
                    lane,
                    value,
                    source: Source {
                        buffer: buffer.index(),
                        position: source + k,
                        last_written: machine.globals[buffer.index()].last_written(source + k),
                    },
                });
            }
        }
        machine.count_access(block, from.memory, width, sources, seen);
        machine.count_access(block, to.memory, width, touches, seen);
        machine.scratch = scratch;
        Ok(())
    }

    pub(super) fn wait_copies(
        &mut self,
        machine: &mut Machine,
        block: &mut BlockState,
        pending: usize,
    ) -> Result<(), Blame> {
        let me = Me {
            mark: self.mark(machine, block),
            clock: &self.clock,
        };
        let arrived = self.groups.len().saturating_sub(pending);
        for arrival in self.groups.drain(..arrived).flatten() {
            let Arrival {
                shared,
                position,
                lane,
                value,
                source,
            } = arrival;
            let store = &machine.globals[source.buffer];
            if store.last_written(source.position) != source.last_written {
                let (array, index) = (
                    store.layout.name.clone(),
                    store.layout.index_of(source.position),
                );
                return Err(Blame::lane(
                    lane,
                    FaultKind::CopySourceWritten { array, index },
                ));
            }
            if let Err(conflict) = block.shared[shared].end_copy(position, &value, me) {
                let spot = (Memory::Shared(shared.into()), position, lane);
                return Err(blame(machine, block, conflict, spot, true, lane));
            }
        }
        Ok(())
    }

    /// The buffer and position of a flag, the same in all lanes; `None` where the predicate does
    /// not hold.
    pub fn flag_position(
        &mut self,
        machine: &mut Machine,
        code: &Code<'_>,
        flag: &AccessCode,
    ) -> Result<Option<(usize, usize)>, Blame> {
        let Memory::Global(buffer) = flag.memory else {
            panic!("a flag in shared memory passed the verifier");
        };
        let mut scratch = std::mem::take(&mut machine.scratch);
        let Scratch { touches, work, .. } = &mut scratch;
        let layout = &machine.globals[buffer.index()].layout;
        self.resolve(code, flag, None, layout, 1, work, touches)?;
        let position = touches.first().map(|(_, position)| *position);
        machine.scratch = scratch;
        Ok(position.map(|position| (buffer.index(), position)))
    }

    /// The elements at which the lanes publish.
    pub(super) fn places(
        &mut self,
        code: &Code<'_>,
        chain: &ChainCode,
        layout: &Layout,
        scratch: &mut Scratch,
    ) -> Result<Vec<Touch>, Blame> {
        let Scratch { touches, work, .. } = scratch;
        self.resolve(code, &chain.at, None, layout, 1, work, touches)?;
        Ok(touches.clone())
    }

    pub(super) fn await_flag(
        &mut self,
        machine: &mut Machine,
        code: &Code<'_>,
        flag: &AccessCode,
        at_least: i64,
    ) -> Result<State, Blame> {
        let Some((buffer, position)) = self.flag_position(machine, code, flag)? else {
            return Ok(State::Ready);
        };
        let value = machine.use_flag(buffer, position)?;
        if value < at_least {
            return Ok(State::Awaiting {
                buffer,
                position,
                at_least,
            });
        }
        let acquired = machine.flags.acquire(buffer, position, at_least);
        self.clock.join(&acquired);
        Ok(State::Ready)
    }

    /// The first warp that arrives takes the dynamic id of the block.
    pub(super) fn dynamic_block_id(
        &mut self,
        machine: &mut Machine,
        code: &Code<'_>,
        block: &mut BlockState,
        var: usize,
        counter: &AccessCode,
    ) -> Result<i64, Blame> {
        if let Some((_, number)) = block.block_ids.iter().find(|(v, _)| *v == var) {
            return Ok(*number);
        }
        let Some((buffer, position)) = self.flag_position(machine, code, counter)? else {
            panic!("a predicated dynamic block id passed the verifier");
        };
        machine.use_flag(buffer, position)?;
        let number = machine.globals[buffer].count_up(position);
        machine.flags.signal(buffer, position, &Clock::default());
        machine.count(code.events[self.pc], 1);
        block.block_ids.push((var, number));
        Ok(number)
    }
}

fn memory<'m>(machine: &'m mut Machine, block: &'m mut BlockState, at: Memory) -> &'m mut Store {
    match at {
        Memory::Global(id) => &mut machine.globals[id.index()],
        Memory::Shared(id) => &mut block.shared[id.index()],
    }
}

fn read(
    machine: &mut Machine,
    block: &mut BlockState,
    me: Me<'_>,
    from: Memory,
    position: usize,
    lane: usize,
) -> Result<Cell, Blame> {
    machine.check_flag(from, position, lane)?;
    let result = memory(machine, block, from).read(position, me);
    result.map_err(|conflict| {
        blame(
            machine,
            block,
            conflict,
            (from, position, lane),
            false,
            lane,
        )
    })
}

/// The first lane that touches an element.
fn first_to_touch(touches: &[Touch], width: usize, position: usize) -> usize {
    let covers = |touch: &&Touch| (touch.1..touch.1 + width).contains(&position);
    touches.iter().find(covers).map_or(0, |touch| touch.0)
}

fn blame(
    machine: &Machine,
    block: &BlockState,
    conflict: Conflict,
    (at, position, lane): (Memory, usize, usize),
    writes: bool,
    other_lane: usize,
) -> Blame {
    let store = match at {
        Memory::Global(id) => &machine.globals[id.index()],
        Memory::Shared(id) => &block.shared[id.index()],
    };
    let (array, index) = (store.layout.name.clone(), store.layout.index_of(position));
    let kind = match conflict {
        Conflict::Raced(raced) => FaultKind::Race {
            array,
            index,
            writes,
            other: machine.actor(&raced.other),
            other_writes: raced.other_writes,
        },
        Conflict::Copying(copier) => FaultKind::CopyInFlight {
            array,
            index,
            by: machine.actor(&copier),
        },
        Conflict::LanesDisagree => FaultKind::LanesDisagree {
            array,
            index,
            other_lane,
        },
    };
    Blame::lane(lane, kind)
}
