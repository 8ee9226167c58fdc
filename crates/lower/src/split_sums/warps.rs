//! Sums that cross the warps of a block within one tick.
//!
//! Before: a chain S(z) = S(z − e) ⊕ term(z) with links to other warps that take no time. After:
//! the cell `S_warp` is the same chain, begun anew in each warp. `S` is that part, combined with
//! what comes from the warps before, where the chain enters the warp from another one. That value
//! arrives between two stages of the tick: warps exchange their parts through shared memory
//! ([`crate::storage::warp_totals`]).
//!
//! Legal under the conditions of splitting a sum into launches ([`crate::split_sums`]), if the chain
//! begins nowhere inside of a warp that it also enters: the part of that warp would have to be
//! combined in some of its points only.

use std::borrow::Cow;

use systola_ir::array::{Array, Realisation};
use systola_ir::form::Form;
use systola_ir::mapping::PlaceLevel;
use systola_ir::system::Combine;
use systola_ir::{DimId, VarId};

use crate::decide::Decide;
use crate::emit::fault_sites::may_fault;
use crate::failure::Failure;
use crate::split_sums::look_back::SplitChain;
use crate::split_sums::{Between, Chain, starts};
use crate::storage::chains::{Joins, own_ports};
use crate::storage::links::crosses_warps;
use crate::storage::slots::Slots;

/// The array in which all sums across warps are split into their parts; `None` if there are none,
/// or if one of them cannot be split.
pub fn with_warp_parts(
    array: &Array,
    decide: &Decide,
    slots: &Slots,
) -> Result<Option<(Array, Vec<SplitChain>)>, Failure> {
    let crosses = |cell: &VarId| {
        let own = own_ports(array, *cell).into_iter();
        let mut links = own.flat_map(|p| &array.port(p).links);
        links.any(|l| crosses_warps(array, l))
    };
    let mut made = Cow::Borrowed(array);
    let mut chains = Vec::new();
    for cell in array.body.iter().copied().filter(crosses) {
        let Ok(mut chain) = Chain::of(array, decide, slots, cell, Between::Warps)? else {
            return Ok(None);
        };
        let mut links = chain.ports.iter().flat_map(|p| &array.port(*p).links);
        let at_once = [Realisation::Tree, Realisation::Hole];
        if links.any(|l| !at_once.contains(&l.realisation)) {
            return Ok(None);
        }
        if let Joins::Term(Combine::Fn(f)) = chain.joins
            && may_fault(array, &array.functions[f.index()].body)
        {
            return Ok(None);
        }
        let body = &array.cells[cell.index()].body;
        let domain = &array.cells[cell.index()].domain;
        let in_block =
            |level| matches!(level, PlaceLevel::Warp | PlaceLevel::Lane | PlaceLevel::Reg);
        let mut ends = chain.fixed.iter();
        if ends.any(|(k, at)| {
            let level = array.place.get(*k).map(|c| c.level);
            level.is_some_and(in_block) && at.as_constant().is_none()
        }) {
            return Ok(None);
        }
        let Some(entry) = chain.entry(array, slots)? else {
            return Ok(None);
        };
        let at_entry = |form: &Form| form.substitute(&|d| entry.get(d.index()).cloned());
        chain.later = domain
            .clone()
            .and(chain.entered(array, body))
            .map(&at_entry)?;
        let begins = starts(body, &chain.ports, chain.joins);
        let inside = domain.clone().and(begins).and(chain.later.clone());
        if !decide.is_empty(&inside, array.dims.len())? {
            return Ok(None);
        }
        chains.push(chain.split_parts(array, made.to_mut(), "warp"));
    }
    Ok(match made {
        Cow::Borrowed(_) => None,
        Cow::Owned(made) => Some((made, chains)),
    })
}

impl Chain {
    /// For each point, the coordinates of the point at which the chain enters its warp.
    fn entry(&self, array: &Array, slots: &Slots) -> Result<Option<Vec<Form>>, Failure> {
        let mut links = self.ports.iter().flat_map(|p| &array.port(*p).links);
        let Some(link) = links.find(|l| self.crosses(array, l)) else {
            return Ok(None);
        };
        let piece = &array.pieces[0];
        let n_place = array.place.len();
        let mut slot: Vec<Form> = piece.place.iter().chain(&piece.time).cloned().collect();
        for (k, left) in &self.fixed {
            let moved = match k.checked_sub(n_place) {
                None => &link.displacement[*k],
                Some(t) => &link.delay[t],
            };
            slot[*k] = left.add(&Form::from(moved.clone()));
        }
        let at = |form: &Form| form.substitute(&|d: DimId| slot.get(d.index()).cloned());
        let point = slots.pieces[0].point.iter().map(at);
        Ok(Some(point.collect::<Result<_, _>>()?))
    }
}
