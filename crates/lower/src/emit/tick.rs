//! The PEs of a tick, and the cells of a slot.

use std::collections::HashMap;

use systola_ir::array::{Cell, Role};
use systola_ir::form::{Cond, Form, Poly};
use systola_ir::kernel::Stmt;
use systola_ir::{InputId, ValueId, VarId};

use crate::emit::Emitter;
use crate::emit::cells::{Bundle, Evaluated, Here};
use crate::facts::Range;
use crate::failure::Failure;
use crate::nest::interior::interior;
use crate::storage::look_back::PublishedChain;
use crate::storage::partition::Pes;
use crate::storage::queues::PeKey;
use crate::storage::slots::{SlotPiece, range};
use crate::storage::warp_totals::WarpTotals;

impl Emitter<'_> {
    /// All PEs of a block in one tick.
    pub(super) fn tick(&mut self, slot: &mut Vec<Form>) -> Result<(), Failure> {
        match self.partition.walk {
            Pes::Known { .. } => {
                self.now.clear();
                let pes = self.partition.known_pes(self.slots);
                let mut done: Vec<Vec<Evaluated>> = Vec::new();
                done.resize_with(pes.len(), Vec::new);
                let stages = self.partition.stages.cells(self.array);
                for (n, cells) in stages.iter().enumerate() {
                    let mut cells = cells.as_slice();
                    if let [cell] = cells
                        && let Some(scan) = self.partition.scans.get(cell)
                        && let Some(wraps) = scan.wraps()
                    {
                        self.chained(slot, *cell, scan, wraps, &pes, &mut done)?;
                        cells = &[];
                    }
                    for (pe, done) in pes.iter().zip(&mut done) {
                        self.at_pe(slot, pe);
                        let last = n + 1 == stages.len();
                        for (cell, value) in self.pe(slot, pe, cells, done, last)? {
                            self.now.insert((cell, pe.clone()), value);
                        }
                    }
                    let complete = |totals: &&WarpTotals| stages[n].contains(&totals.part);
                    for totals in self.storage.warp_totals.iter().filter(complete) {
                        self.combine_warps(slot, totals, &pes)?;
                    }
                    let complete = |chain: &&PublishedChain| stages[n].contains(&chain.part);
                    for chain in self.storage.look_backs.iter().filter(complete) {
                        self.look_back(slot, chain, &pes)?;
                    }
                }
                let now = std::mem::take(&mut self.now);
                self.registers.shift(&mut self.b, &now);
                Ok(())
            }
            Pes::Looped => self.pes(0, slot),
        }?;
        if self.partition.warps.need_barrier(self.array) {
            self.b.push(Stmt::Barrier);
        }
        Ok(())
    }

    /// Sets the coordinates of a known PE.
    pub(super) fn at_pe(&self, slot: &mut [Form], pe: &PeKey) {
        for (p, value) in self.partition.pes.iter().zip(pe) {
            slot[*p] = if Some(*p) == self.partition.vector {
                let (lo, _) = self.slots.ranges[*p].constant().unwrap_or((0, 0));
                self.lanes_from(lo + value * i128::from(self.partition.lanes))
            } else {
                Form::from(*value)
            };
        }
    }

    pub(super) fn lanes_from(&self, first: impl Into<Form>) -> Form {
        let first = first.into();
        match (self.lane, &self.partition.packing) {
            (Some(lane), None) => first.add(&Form::from(lane)),
            (Some(lane), Some(packing)) => first.add(&Form::from(lane).modulo(packing.pes)),
            (None, _) => first,
        }
    }

    /// Loops over the PEs of a block, the coordinates from `at` on.
    pub(super) fn pes(&mut self, at: usize, slot: &mut Vec<Form>) -> Result<(), Failure> {
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
        // Only PEs that have a point at this time are visited, if simple bounds say which.
        let tight = range(self.array, self.decide, p, &given)
            .ok()
            .and_then(|r| r.map(&|f| self.form_at(f, slot)).ok())
            .filter(|r| r.lo.len() + r.hi.len() <= 6);
        let range = tight
            .unwrap_or_default()
            .within(&self.slots.ranges[p], &self.facts);
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
                    "PEs run downwards from a bound with several forms".into(),
                )
                .into());
            };
            let iterations = hi.sub(&lo).plus(step - 1).floor_div(step);
            let last = lo.add(&iterations.plus(-1).scale(&Poly::constant(step))?);
            return self.looped(&name, Range::new(0, iterations), 1, &mut |e, v| {
                slot[p] = last.sub(&Form::from(v).scale(&Poly::constant(step))?);
                e.pe_or_further(at, slot)
            });
        }
        self.looped(&name, range, step, &mut |e, v| {
            slot[p] = Form::from(v);
            e.pe_or_further(at, slot)
        })
    }

    /// The PEs at a value of coordinate `at`: all lanes of a vector, or loops over further
    /// coordinates.
    pub(super) fn pe_or_further(&mut self, at: usize, slot: &mut Vec<Form>) -> Result<(), Failure> {
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
        let is_lane = |d| Some(d) == lane;
        let inside = interior(&tests, &self.facts, &is_lane, &is_lane, &|_| false, &|_| {
            false
        });
        if matches!(inside, Cond::Const(_)) {
            return self.memory_pe(slot);
        }
        let facts = self.facts.with(inside.clone());
        let then = self.scoped_with(facts, &mut |e| e.memory_pe(slot))?;
        let otherwise = self.scoped(&mut |e| e.memory_pe(slot))?;
        self.b.push(Stmt::If {
            cond: inside,
            then,
            otherwise,
        });
        Ok(())
    }

    pub(super) fn memory_pe(&mut self, slot: &[Form]) -> Result<(), Failure> {
        let (cells, mut done) = (&self.array.body, Vec::new());
        self.pe(slot, &Vec::new(), cells, &mut done, true).map(drop)
    }

    /// The element that a cell carries through time in one PE, if that is all it does. It is loaded
    /// once, before the first step, so no PE tests whether it is the first to need it.
    pub(super) fn stays<'c>(
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

    /// Evaluates some cells of one slot and fills their queues; after the last cells it stores the
    /// slot's results. `done` holds what has been evaluated of the slot, by pieces.
    pub(super) fn pe(
        &mut self,
        slot: &[Form],
        pe: &PeKey,
        cells: &[VarId],
        done: &mut Vec<Evaluated>,
        last: bool,
    ) -> Result<Vec<(VarId, Vec<ValueId>)>, Failure> {
        let array = self.array;
        let pieces = &self.slots.pieces;
        done.resize_with(pieces.len(), Evaluated::default);
        let mut result: HashMap<VarId, Bundle> = HashMap::new();
        for (piece, done) in pieces.iter().zip(done) {
            let at = |f: &Form| f.substitute(&|d| slot.get(d.index()).cloned());
            let valid = piece.valid.map(&at)?;
            let here = Here {
                slot,
                pe,
                point: piece.point.iter().map(at).collect::<Result<_, _>>()?,
                valid: valid.clone(),
            };
            let valid = if pieces.len() > 1 {
                self.facts.simplify(&valid)
            } else {
                valid
            };
            if valid == Cond::Const(false) {
                continue;
            }
            for cell in cells {
                let declared = &array.cells[cell.index()];
                let owner = || (format!("`{}`", declared.name), declared.span);
                let (stays, scan) = (self.stays(declared, piece)?, self.partition.scans.get(cell));
                let live = |_: &Self| {
                    let points = declared.domain.clone().and(array.owned());
                    let live = here.valid.clone().and(here.cond(&points)?);
                    // The terms of a tree over lanes are evaluated at other points than the cell's
                    // own.
                    Ok((live, scan.is_none().then_some(points)))
                };
                let value =
                    self.within_equation(&declared.body, &owner, live, |e| match (stays, scan) {
                        (Some((input, index)), _) => e.inject(input, index, &here),
                        (None, Some(scan)) => e.scanned(*cell, scan, &here, done),
                        (None, None) => e.expr(&declared.body, &declared.name, &here, done),
                    })?;
                done.cells.insert(*cell, value);
            }
            if last {
                self.leave(&valid, &here, done)?;
            }
            for cell in cells {
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
        for cell in cells {
            let Some(value) = result.get(cell) else {
                continue;
            };
            let flat = value.flat();
            self.write_queue(*cell, slot, &flat);
            values.push((*cell, flat));
        }
        Ok(values)
    }

    /// Stores what leaves a slot after its cells: outputs, and values for later launches and other
    /// blocks.
    fn leave(
        &mut self,
        valid: &Cond,
        here: &Here<'_>,
        done: &mut Evaluated,
    ) -> Result<(), Failure> {
        let array = self.array;
        self.drain(valid, here, done)?;
        let owned = valid.clone().and(here.cond(&array.owned())?);
        for cell in &array.body {
            let values = done.cells[cell].flat();
            self.store_for_launches(*cell, &owned, here, &values)?;
            self.store_for_blocks(*cell, here, &values)?;
            self.keep_value(*cell, valid, here, &values)?;
        }
        Ok(())
    }
}
