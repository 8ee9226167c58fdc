//! The reads of a cell in one step: from links, from memory, from inputs.

use std::collections::HashMap;

use systola_ir::array::Realisation;
use systola_ir::codes::array as codes;
use systola_ir::form::Overflow;
use systola_ir::{Diagnostic, PortId, VarId};

use super::{Element, Machine, State, too_large};
use crate::code::{Read, Reads, Stop};
use crate::value::Value;

/// Serves the reads of one cell in one step.
pub(super) struct StepReads<'a> {
    pub(super) machine: &'a Machine<'a>,
    pub(super) state: &'a State,
    pub(super) here: &'a HashMap<&'a [i64], usize>,
    pub(super) now: &'a [Option<Option<Value>>],
    pub(super) start: usize,
    pub(super) slot: usize,
    pub(super) cell: VarId,
    /// A value of this step that is not computed yet.
    pub(super) needs: Option<(usize, VarId)>,
    /// The elements that were read from memory.
    pub(super) taken: Vec<Element>,
}

impl StepReads<'_> {
    fn port(&mut self, port: PortId) -> Result<Value, Stop> {
        let machine = self.machine;
        let code = &machine.ports[port.index()];
        let source = machine.array.ports[port.index()].source;
        let slot = &machine.slots[self.slot];
        let mut holding = code
            .links
            .iter()
            .filter(|l| l.test.eval(&slot.point) == Some(true));
        let (Some(link), None) = (holding.next(), holding.next()) else {
            let name = &machine.array.cells[source.index()].name;
            return Err(Diagnostic::new(
                &codes::NO_LINK,
                machine.array.ports[port.index()].span,
                format!("no single link delivers `{name}` at {:?}", slot.point),
            )
            .into());
        };
        let wanted: Vec<i64> = slot
            .point
            .iter()
            .zip(&code.distance)
            .map(|(z, e)| z - e)
            .collect();
        let value = match link.realisation {
            Realisation::Hole => return Err(Stop::Undefined),
            Realisation::Reinject => {
                let Some((input, index)) = &machine.cells[source.index()].propagated else {
                    return Err(machine
                        .not_there(
                            self.cell,
                            self.slot,
                            "only a propagated input is injected again",
                        )
                        .into());
                };
                // The element that the source holds at its own point, which another cell may read.
                let index: Option<Vec<i64>> = index.iter().map(|f| f.eval(&wanted)).collect();
                let index = index.ok_or_else(|| too_large(Overflow))?;
                let span = machine.array.cells[source.index()].span;
                return Ok(machine.inputs.read(*input, &index, span)?);
            }
            Realisation::Launch => {
                let point = wanted[machine.array.tiles.len()..].to_vec();
                match self.state.memory.get(&(source.index(), point)) {
                    Some(value) => value.clone(),
                    None => {
                        return Err(machine
                            .not_there(
                                self.cell,
                                self.slot,
                                "no earlier launch left the value in memory",
                            )
                            .into());
                    }
                }
            }
            Realisation::Wire
            | Realisation::Register
            | Realisation::Buffer
            | Realisation::Shuffle
            | Realisation::Shared
            | Realisation::Flags
            | Realisation::LookBack
            | Realisation::Message
            | Realisation::Broadcast
            | Realisation::Tree => {
                let place: Vec<i64> = slot
                    .place
                    .iter()
                    .zip(&link.displacement)
                    .map(|(p, d)| p - d)
                    .collect();
                self.take_from_queue(source, &place, link.ticks, &wanted)?
            }
        };
        value.ok_or(Stop::Undefined)
    }

    fn take_from_queue(
        &mut self,
        source: VarId,
        place: &[i64],
        ticks: i64,
        wanted: &[i64],
    ) -> Result<Option<Value>, Stop> {
        let machine = self.machine;
        let fail = |why: &str| -> Result<Option<Value>, Stop> {
            Err(machine.not_there(self.cell, self.slot, why).into())
        };
        if ticks == 0 {
            let Some(slot) = self.here.get(place).copied() else {
                return fail("the PE it comes from has no point in this step");
            };
            if machine.slots[slot].point != wanted {
                return fail("the PE it comes from works on another point");
            }
            let at = (slot - self.start) * machine.cells.len() + source.index();
            return match &self.now[at] {
                Some(value) => Ok(value.clone()),
                None => {
                    self.needs = Some((slot, source));
                    Err(Stop::Undefined)
                }
            };
        }
        if ticks >= machine.cells[source.index()].depth {
            return fail("the queue is shorter than the delay");
        }
        let due = machine.ticks[self.slot] - ticks;
        let queue = self
            .state
            .places
            .get(place)
            .and_then(|id| self.state.queues.get(&(*id, source.index())));
        let entry = queue.and_then(|q| q.iter().rev().find(|e| e.tick == due));
        match entry {
            None => fail("nothing was put into the queue at the step it is due from"),
            Some(entry) if machine.slots[entry.slot].point != wanted => {
                fail("another point's value is in the queue")
            }
            Some(entry) => Ok(entry.value.clone()),
        }
    }
}

impl Reads for StepReads<'_> {
    fn read(&mut self, read: Read<'_>) -> Result<Value, Stop> {
        match read {
            Read::Port(port) => self.port(port),
            Read::Input { input, index, span } => {
                Ok(self.machine.inputs.read(input, index, span)?)
            }
            Read::Var { var, point, .. } => {
                let reader = (self.cell, self.slot);
                let (element, value) = self.state.stored.read(self.machine, var, point, reader)?;
                self.taken.push(element);
                value.ok_or(Stop::Undefined)
            }
        }
    }
}
