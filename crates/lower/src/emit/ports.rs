//! Values that arrive on a port.
//!
//! The link whose guard holds delivers the value. Guards that are decided at compile time leave no
//! code, and a hole needs no guard since any value will do there. Between lanes a value moves by a
//! lane shift over the vectors of its PEs.

use systola_ir::array::{Link, Port, Realisation, Role};
use systola_ir::{Cond, DimId, Form, InputId, PortId, ValueId, VarId};

use crate::emit::Emitter;
use crate::emit::cells::{Bundle, Evaluated, Here};
use crate::failure::Failure;
use crate::storage::links::delivering;
use crate::storage::partition::Pes;
use crate::storage::queues::{PeKey, scalars};

impl Emitter<'_> {
    pub(super) fn port(
        &mut self,
        port: PortId,
        name: &str,
        here: &Here<'_>,
        done: &Evaluated,
    ) -> Result<Bundle, Failure> {
        let array = self.array;
        let port = array.port(port);
        let mut open: Vec<(Cond, Cond, &Link)> = Vec::new();
        for (link, choice) in delivering(port) {
            match self.facts.simplify(&here.cond(&link.guard)?) {
                Cond::Const(false) => {}
                guard => open.push((self.facts.simplify(&here.cond(&choice)?), guard, link)),
            }
        }
        if let Some(sure) = open.iter().position(|(choice, ..)| *choice == Cond::TRUE) {
            open = vec![open.swap_remove(sure)];
        }
        let source = &array.cells[port.source.index()];
        let mut result: Option<Bundle> = None;
        for (choice, guard, link) in open.into_iter().rev() {
            let mut fixed = Vec::new();
            let value = match self.only_lane(link, &guard) {
                Some((lane, at)) => {
                    let there = here.with(lane, at, &mut fixed)?;
                    self.arrives(port, link, name, &there, done)?
                }
                None => self.arrives(port, link, name, here, done)?,
            };
            result = Some(match result {
                // The last link needs no guard: one of the guards holds, or nothing reads the
                // value.
                None => value,
                Some(otherwise) => value.zip(&otherwise, &mut |then, otherwise| {
                    self.b.choose(name, choice.clone(), then, otherwise)
                }),
            });
        }
        Ok(result.unwrap_or_else(|| self.placeholder(&source.ty)))
    }

    /// The one lane that needs the value of a link, if the link loads from memory and blocks wait
    /// for each other. All lanes may then load the element of that lane.
    fn only_lane(&self, link: &Link, guard: &Cond) -> Option<(DimId, i128)> {
        let loads = match link.realisation {
            Realisation::Flags | Realisation::Reinject => self.storage.flags.is_some(),
            Realisation::Wire
            | Realisation::Register
            | Realisation::Buffer
            | Realisation::Shuffle
            | Realisation::Shared
            | Realisation::Launch
            | Realisation::LookBack
            | Realisation::Message
            | Realisation::Broadcast
            | Realisation::Tree
            | Realisation::Hole => false,
        };
        let lane = self.lane.filter(|_| loads)?;
        Some((lane, self.facts.pinned(lane, guard)?))
    }

    pub(super) fn placeholder(&mut self, ty: &systola_ir::Type) -> Bundle {
        let holes: Vec<ValueId> = scalars(ty).iter().map(|s| self.b.hole(*s)).collect();
        match Bundle::of(ty, &mut holes.into_iter()) {
            Some(bundle) => bundle,
            None => unreachable!("as many holes as scalars"),
        }
    }

    pub(super) fn arrives(
        &mut self,
        port: &Port,
        link: &Link,
        name: &str,
        here: &Here<'_>,
        done: &Evaluated,
    ) -> Result<Bundle, Failure> {
        let array = self.array;
        let source = port.source;
        let cell = &array.cells[source.index()];
        if let Role::Propagation { input, index, .. } = &cell.role {
            let again = matches!(
                link.realisation,
                Realisation::Reinject | Realisation::Broadcast
            );
            if again {
                // The element that the source carries; along the propagation this is the element of
                // this point.
                let e = array.extend_distance(&port.distance);
                let behind = |d: DimId| {
                    let e = e.get(d.index())?;
                    Some(Form::from(d).sub(&Form::from(e.clone())))
                };
                let index = index
                    .iter()
                    .map(|form| form.substitute(&behind))
                    .collect::<Result<Vec<_>, _>>()?;
                return self.inject(*input, &index, here);
            }
        }
        let values = match link.realisation {
            Realisation::Wire => match done.cells.get(&source) {
                Some(value) => return Ok(value.clone()),
                None => unreachable!("a wire comes from an earlier cell"),
            },
            Realisation::Launch => self.load_of_launch(array, (port, link), name, here)?,
            Realisation::Flags => self.load_of_block(array, (port, link), name, here)?,
            Realisation::LookBack => self.combined_before(source, here.pe),
            Realisation::Register
            | Realisation::Buffer
            | Realisation::Shuffle
            | Realisation::Shared
            | Realisation::Broadcast
            | Realisation::Tree => self.queued(source, link, name, here)?,
            Realisation::Reinject | Realisation::Message | Realisation::Hole => Vec::new(),
        };
        Ok(Bundle::of(&cell.ty, &mut values.into_iter())
            .unwrap_or_else(|| self.placeholder(&cell.ty)))
    }

    /// Loads the element that a propagation carries from the input itself.
    pub(super) fn inject(
        &mut self,
        input: InputId,
        index: &[Form],
        here: &Here<'_>,
    ) -> Result<Bundle, Failure> {
        let index = self.address(index, here)?;
        Ok(Bundle::Scalar(self.input(input, index)))
    }

    /// Reads the queue of another PE, or of this one; returns no values if there is no such PE.
    fn queued(
        &mut self,
        source: VarId,
        link: &Link,
        name: &str,
        here: &Here<'_>,
    ) -> Result<Vec<ValueId>, Failure> {
        if let Pes::Known { .. } = self.partition.walk
            && let Some(age) = self.partition.age(self.array, link)
        {
            return Ok(self.register_queue(source, link, age, name, here.pe));
        }
        let n_place = self.array.place.len();
        let there: Vec<Form> = here
            .slot
            .iter()
            .enumerate()
            .map(|(k, form)| {
                let gone = match k.checked_sub(n_place) {
                    None => &link.displacement[k],
                    Some(t) => &link.delay[t],
                };
                form.sub(&Form::from(gone.clone()))
            })
            .collect();
        Ok(match self.storage.shared.queues.get(&source) {
            Some(queue) => self.read_queue(queue, name, &there),
            None => Vec::new(),
        })
    }

    fn register_queue(
        &mut self,
        source: VarId,
        link: &Link,
        age: usize,
        name: &str,
        pe: &PeKey,
    ) -> Vec<ValueId> {
        let moved = |p: usize| link.displacement[p].as_constant().unwrap_or(0);
        let mut key = pe.clone();
        let mut lanes = 0;
        for (at, p) in self.partition.pes.iter().enumerate() {
            if Some(*p) == self.partition.vector {
                lanes = moved(*p);
            } else {
                key[at] -= moved(*p);
            }
        }
        if lanes == 0 {
            return self.held(source, name, &key, age).unwrap_or_default();
        }
        // The wanted lanes start in vector `low`, `into` lanes after its first.
        let width = i128::from(self.partition.lanes);
        let last = key.len() - 1;
        let start = key[last] * width - lanes;
        let (low, into) = (start.div_euclid(width), start.rem_euclid(width));
        key[last] = low;
        let below = self.held(source, name, &key, age);
        if into == 0 {
            return below.unwrap_or_default();
        }
        key[last] = low + 1;
        let above = self.held(source, name, &key, age);
        let by = u32::try_from(width - into).unwrap_or(0);
        let n = scalars(&self.array.cells[source.index()].ty).len();
        (0..n)
            .filter_map(|part| {
                let pick = |values: &Option<Vec<ValueId>>| values.as_ref().map(|v| v[part]);
                self.b.lane_shift(name, pick(&below), pick(&above), by)
            })
            .collect()
    }

    /// The vector of a PE `age` ticks ago; 0 is this tick.
    pub(super) fn held(
        &mut self,
        cell: VarId,
        name: &str,
        pe: &PeKey,
        age: usize,
    ) -> Option<Vec<ValueId>> {
        if age == 0 {
            return self.now.get(&(cell, pe.clone())).cloned();
        }
        self.registers.read(&mut self.b, cell, name, pe, age)
    }
}
