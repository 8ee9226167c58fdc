//! Values that points read through memory.

use systola_ir::form::{Cond, Form};
use systola_ir::kernel::{Access, Memory, Stmt};
use systola_ir::{ValueId, VarId};

use crate::emit::Emitter;
use crate::emit::cells::{Bundle, Here};
use crate::failure::Failure;
use crate::storage::inter_block::each_once;
use crate::storage::place::Place;

impl Emitter<'_> {
    /// Loads the value of another point.
    pub(super) fn kept_value(
        &mut self,
        cell: VarId,
        index: &[Form],
        name: &str,
        here: &Here<'_>,
    ) -> Result<Bundle, Failure> {
        let array = self.array;
        let ty = &array.cells[cell.index()].ty;
        let point = index.iter().map(|f| here.at(f));
        let point = point.collect::<Result<Vec<_>, _>>()?;
        let Some(place) = self.storage.kept.place(array, cell, &point)? else {
            unreachable!("what is read is kept");
        };
        let when = self.facts.simplify(&each_once(self.here_live()));
        if when == Cond::Const(false) {
            return Ok(self.placeholder(ty));
        }
        let elements = place.buffers.iter().zip(self.elements(&place, &when));
        let values = elements.map(|((_, ty), from)| self.b.load(name, *ty, from, None));
        let values: Vec<ValueId> = values.collect();
        let value = Bundle::of(ty, &mut values.into_iter());
        Ok(value.unwrap_or_else(|| self.placeholder(ty)))
    }

    /// Stores the value of a cell for other points.
    pub(super) fn keep_value(
        &mut self,
        cell: VarId,
        valid: &Cond,
        here: &Here<'_>,
        values: &[ValueId],
    ) -> Result<(), Failure> {
        let array = self.array;
        let Some(place) = self.storage.kept.place(array, cell, &here.point)? else {
            return Ok(());
        };
        let domain = here
            .cond(&array.cells[cell.index()].domain)?
            .and(place.when.clone());
        let when = self.facts.simplify(&each_once(valid.clone().and(domain)));
        if when == Cond::Const(false) {
            return Ok(());
        }
        for (to, value) in self.elements(&place, &when).into_iter().zip(values) {
            // What comes from the same place is there already.
            if !self.b.is_load_of(*value, &to) {
                self.b.push(Stmt::Store { to, value: *value });
            }
        }
        Ok(())
    }

    /// The accesses to the scalars of a place.
    fn elements(&self, place: &Place<'_>, when: &Cond) -> Vec<Access> {
        let index = place.index.iter().map(|f| self.facts.without_digits(f));
        let index: Vec<Form> = index.collect();
        let access = |(buffer, _): &(_, _)| Access {
            memory: Memory::Global(*buffer),
            index: index.clone(),
            when: when.clone(),
        };
        place.buffers.iter().map(access).collect()
    }
}
