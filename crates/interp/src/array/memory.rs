//! The memory in which cells keep values for other points.
//!
//! Every place remembers which point wrote it and which points have read it since, so that an
//! access that nothing orders is found, whatever the order in which this interpreter runs.

use std::collections::BTreeMap;

use systola_ir::array::Array;
use systola_ir::codes::array as codes;
use systola_ir::form::Overflow;
use systola_ir::mapping::PlaceLevel;
use systola_ir::{Diagnostic, VarId};

use super::slots::Slot;
use super::{Machine, too_large};
use crate::linear::{Linear, Test};
use crate::value::Value;

/// Where the values of a cell are kept.
pub(super) struct StorageMapCode {
    storage: usize,
    index: Vec<Linear>,
    when: Test,
}

/// A storage and the indices of an element.
pub(super) type Element = (usize, Vec<i64>);

impl StorageMapCode {
    pub(super) fn of(
        array: &Array,
        cell: usize,
        params: &[i128],
    ) -> Result<Option<StorageMapCode>, Diagnostic> {
        let Some(kept) = &array.cells[cell].kept else {
            return Ok(None);
        };
        let index = kept.index.iter().map(|f| Linear::compile(f, params));
        Ok(Some(StorageMapCode {
            storage: kept.storage.index(),
            index: index.collect::<Result<_, _>>().map_err(too_large)?,
            when: Test::compile(&kept.when, params).map_err(too_large)?,
        }))
    }

    pub(super) fn element(&self, point: &[i64]) -> Result<Element, Diagnostic> {
        let index: Option<Vec<i64>> = self.index.iter().map(|f| f.eval(point)).collect();
        let index = index.ok_or_else(|| too_large(Overflow))?;
        Ok((self.storage, index))
    }
}

/// What is in an element.
struct Content {
    cell: VarId,
    /// The slot it was made in.
    slot: usize,
    /// `None` for a don't-care value.
    value: Option<Value>,
    /// The slots that have read it.
    readers: Vec<usize>,
}

#[derive(Default)]
pub(super) struct Stored {
    elements: BTreeMap<Element, Content>,
}

impl Stored {
    /// The value of `cell` at `point`, as the slot `reader` finds it.
    pub(super) fn read(
        &self,
        machine: &Machine<'_>,
        cell: VarId,
        point: &[i64],
        reader: (VarId, usize),
    ) -> Result<(Element, Option<Value>), Diagnostic> {
        let fail = |why: &str| Err(machine.not_there(reader.0, reader.1, why));
        let Some(kept) = &machine.cells[cell.index()].kept else {
            return fail("the cell that is read keeps no values");
        };
        let element = kept.element(point)?;
        let Some(content) = self.elements.get(&element) else {
            return fail("nothing was written to its place in memory");
        };
        if content.cell != cell || machine.slots[content.slot].point != point {
            return fail("another point's value is in its place in memory");
        }
        if !machine.comes_before(content.slot, reader.1) {
            return fail("it is in memory, but nothing makes it visible here");
        }
        Ok((element, content.value.clone()))
    }

    pub(super) fn note_reader(&mut self, element: &Element, slot: usize) {
        if let Some(content) = self.elements.get_mut(element)
            && content.readers.last() != Some(&slot)
        {
            content.readers.push(slot);
        }
    }

    /// Writes the value of a cell in a slot.
    pub(super) fn write(
        &mut self,
        machine: &Machine<'_>,
        cell: VarId,
        slot: usize,
        value: Option<Value>,
    ) -> Result<(), Diagnostic> {
        let Some(kept) = &machine.cells[cell.index()].kept else {
            return Ok(());
        };
        let point = &machine.slots[slot].point;
        if kept.when.eval(point) == Some(false) {
            return Ok(());
        }
        let element = kept.element(point)?;
        if let Some(before) = self.elements.get(&element) {
            let mut others = before.readers.iter().filter(|r| **r != slot);
            let unordered = |other: usize| !machine.comes_before(other, slot);
            let other = others.find(|r| unordered(**r)).copied();
            let other = other.or(Some(before.slot).filter(|writer| unordered(*writer)));
            if let Some(other) = other {
                let name = &machine.array.storages[element.0].name;
                let (here, there) = (&machine.slots[slot], &machine.slots[other]);
                return Err(Diagnostic::new(
                    &codes::UNORDERED,
                    machine.array.cells[cell.index()].span,
                    format!(
                        "{name}{:?} is written at {:?}, and accessed at {:?}, and nothing orders the two",
                        element.1, here.point, there.point
                    ),
                ));
            }
        }
        let content = Content {
            cell,
            slot,
            value,
            readers: Vec::new(),
        };
        self.elements.insert(element, content);
        Ok(())
    }

    /// The values that are in a storage.
    pub(super) fn contents(
        &self,
        storage: usize,
    ) -> impl Iterator<Item = (&[i64], Option<&Value>)> {
        let own = self.elements.iter().filter(move |(e, _)| e.0 == storage);
        own.map(|((_, index), content)| (index.as_slice(), content.value.as_ref()))
    }
}

impl Machine<'_> {
    /// Is all that the first slot does complete, and visible, when the second one runs?
    fn comes_before(&self, first: usize, second: usize) -> bool {
        let (launch, later) = (self.launch(first), self.launch(second));
        if launch != later {
            return launch < later;
        }
        let (first, second) = (&self.slots[first], &self.slots[second]);
        self.block(first) == self.block(second) && first.time < second.time
    }

    fn block(&self, slot: &Slot) -> Vec<i64> {
        let coordinates = self.array.place.iter().zip(&slot.place);
        let of_block = |level| matches!(level, PlaceLevel::Node | PlaceLevel::Block);
        let own = coordinates.filter(|(c, _)| of_block(c.level));
        own.map(|(_, value)| *value).collect()
    }
}
