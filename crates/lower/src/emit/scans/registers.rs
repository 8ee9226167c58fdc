//! The statements of a chain through registers and lanes.

use std::collections::BTreeMap;

use systola_ir::array::Link;
use systola_ir::form::{Cond, Form};
use systola_ir::{ValueId, VarId};

use crate::emit::Emitter;
use crate::emit::cells::{Bundle, Evaluated, Here};
use crate::emit::scans::Waiting;
use crate::failure::Failure;
use crate::storage::chains::{Scan, own_ports};
use crate::storage::links::is_at_once;
use crate::storage::queues::PeKey;

impl Emitter<'_> {
    /// The PE in registers of the same lane from which a link brings a value of this tick.
    pub(super) fn source(&self, link: &Link, pe: &PeKey) -> Option<PeKey> {
        let mut there = pe.clone();
        for (at, p) in self.partition.pes.iter().enumerate() {
            let moved = link.displacement[*p].as_constant()?;
            match there.get_mut(at) {
                Some(_) if Some(*p) == self.partition.vector && moved != 0 => return None,
                Some(x) => *x -= moved,
                None => return None,
            }
        }
        Some(there)
    }

    /// The values of a cell in all PEs of a tick. Its chain runs through the registers of a lane
    /// before it goes to the next lane.
    pub(in crate::emit) fn chained(
        &mut self,
        slot: &mut [Form],
        cell: VarId,
        scan: &Scan,
        wraps: &[i128],
        pes: &[PeKey],
        done: &mut [Vec<Evaluated>],
    ) -> Result<(), Failure> {
        // Independent chains, and the vectors of each in the order of the chain.
        let mut vectors: BTreeMap<(PeKey, i128), Vec<usize>> = BTreeMap::new();
        for (n, pe) in pes.iter().enumerate() {
            let mut chain = pe.clone();
            let vector = chain.pop().unwrap_or(0);
            let mut order = if scan.by > 0 { vector } else { -vector };
            for (at, (x, wrap)) in chain.iter_mut().zip(wraps).enumerate() {
                let returns = scan.returns().map_or(0, |returns| returns[at]);
                if *wrap == 0 && returns != 0 {
                    order = *x * returns;
                }
                if *wrap != 0 || returns != 0 {
                    *x = 0;
                }
            }
            vectors.entry((chain, order)).or_default().push(n);
        }
        for members in vectors.into_values() {
            self.chained_vector(slot, cell, scan, wraps, pes, &members, done)?;
        }
        Ok(())
    }

    fn chained_vector(
        &mut self,
        slot: &mut [Form],
        cell: VarId,
        scan: &Scan,
        wraps: &[i128],
        pes: &[PeKey],
        members: &[usize],
        done: &mut [Vec<Evaluated>],
    ) -> Result<(), Failure> {
        let array = self.array;
        let declared = &array.cells[cell.index()];
        let name = &declared.name;
        let ports = own_ports(array, cell);
        let mut waiting = Waiting::new();
        let mut values: BTreeMap<usize, Bundle> = BTreeMap::new();
        let mut entering: Option<Bundle> = None;
        // Each lane on its own, as if the chain began there.
        for n in self.sources_first(cell, pes, members) {
            self.at_pe(slot, &pes[n]);
            done[n].resize_with(1, Evaluated::default);
            let here = self.here(slot, &pes[n])?;
            let chain = self.chain(
                &declared.body,
                name,
                scan,
                &ports,
                &waiting,
                &here,
                &mut done[n][0],
            )?;
            let waits = any(chain.open.clone(), chain.reached.clone());
            entering = entering.or_else(|| chain.entering.clone());
            let begun = self.begun(scan, name, &declared.ty, chain);
            let value = begun.unwrap_or_else(|| self.placeholder(&declared.ty));
            self.now.insert((cell, pes[n].clone()), value.flat());
            waiting.insert(pes[n].clone(), self.facts.simplify(&waits));
            values.insert(n, value);
        }
        // The value that leaves each lane.
        let at_end = |n: &usize| {
            let mut places = self.partition.pes.iter().zip(wraps).zip(&pes[*n]);
            places.all(|((p, wrap), x)| {
                let range = self.slots.ranges[*p].constant().unwrap_or((0, 0));
                let is_lane = Some(*p) == self.partition.vector;
                is_lane || *wrap == 0 || *x == if *wrap < 0 { range.1 - 1 } else { range.0 }
            })
        };
        let Some(end) = members.iter().copied().find(at_end) else {
            unreachable!("a chain leaves a lane in one of its registers")
        };
        self.at_pe(slot, &pes[end]);
        let here = self.here(slot, &pes[end])?;
        let open = waiting[&pes[end]].clone();
        let carried = entering.or_else(|| self.carried(cell, scan, name, &here));
        let value = values[&end].clone();
        let left = self.along_lanes(scan, name, value, open, carried.as_ref(), &here)?;
        // The value that enters each lane, to be combined with the lane's registers.
        let first = self.beyond(scan, scan.by.abs());
        let moved = self.moved(name, &left, scan.by);
        let entered = match &carried {
            Some(carried) => moved.zip(carried, &mut |a, b| {
                self.b.choose(name, first.clone(), a, b)
            }),
            None => moved,
        };
        for n in members {
            let value = if *n == end {
                left.clone()
            } else {
                let waits = waiting[&pes[*n]].clone();
                let waits = match carried {
                    Some(_) => waits,
                    None => waits.and(first.clone()),
                };
                let waits = self.facts.simplify(&waits);
                self.at_pe(slot, &pes[*n]);
                let here = self.here(slot, &pes[*n])?;
                self.join(scan, name, waits, &entered, values[n].clone(), &here)?
            };
            let flat: Vec<ValueId> = value.flat();
            done[*n][0].cells.insert(cell, value);
            self.at_pe(slot, &pes[*n]);
            self.write_queue(cell, slot, &flat);
            self.now.insert((cell, pes[*n].clone()), flat);
        }
        Ok(())
    }

    /// The registers of a lane in the order of the chain.
    fn sources_first(&self, cell: VarId, pes: &[PeKey], members: &[usize]) -> Vec<usize> {
        let array = self.array;
        let ports = own_ports(array, cell).into_iter().map(|p| array.port(p));
        let links: Vec<&Link> = ports
            .flat_map(|port| port.links.iter().map(move |link| (port, link)))
            .filter(|(port, link)| is_at_once(array, port, link))
            .map(|(_, link)| link)
            .collect();
        let mut open: Vec<usize> = members.to_vec();
        let mut ordered = Vec::new();
        while !open.is_empty() {
            let ready = open.iter().position(|n| {
                let mut sources = links.iter().filter_map(|l| self.source(l, &pes[*n]));
                let waits = |pe: PeKey| open.iter().any(|m| m != n && pes[*m] == pe);
                !sources.any(waits)
            });
            // All steps go one way, so one of them is always ready.
            ordered.push(open.remove(ready.unwrap_or(0)));
        }
        ordered
    }

    /// The place of a known PE in an array of one piece.
    pub(in crate::emit) fn here<'s>(
        &self,
        slot: &'s [Form],
        pe: &'s PeKey,
    ) -> Result<Here<'s>, Failure> {
        let piece = &self.slots.pieces[0];
        let at = |f: &Form| f.substitute(&|d| slot.get(d.index()).cloned());
        Ok(Here {
            slot,
            pe,
            point: piece.point.iter().map(at).collect::<Result<_, _>>()?,
            valid: piece.valid.map(&at)?,
        })
    }
}

fn any(left: Cond, right: Cond) -> Cond {
    match (left, right) {
        (Cond::Const(false), only) | (only, Cond::Const(false)) => only,
        (left, right) => Cond::Or(vec![left, right]),
    }
}
