//! Look-back: blocks publish their parts of a chain and combine what others have published.
//!
//! On a machine a block takes the sum of some predecessor and the parts of all blocks between, as
//! far back as timing makes it look. Nothing that was published is forgotten here, so every such
//! predecessor can be taken: the nearest, the farthest or a random one, as the order of the run
//! says, and the parts combined from either end.

use std::collections::HashMap;

use super::super::Order;
use super::super::code::{ChainCode, Code, LookBackCode};
use super::super::fault::FaultKind;
use super::super::grid::Random;
use super::super::machine::{BlockState, Machine};
use super::super::memory::Layout;
use super::super::undefined::{Cell, Undefined, Why};
use super::access::Scratch;
use super::{Blame, State, Warp};

/// What the blocks of a run have published: for the buffer and position of each block, its part and
/// the sum up to it.
pub(in super::super) struct Chains {
    published: HashMap<(usize, usize), Published>,
    order: Order,
    random: Random,
}

struct Published {
    part: Vec<Cell>,
    sum: Option<Vec<Cell>>,
}

impl Chains {
    pub fn new(order: Order) -> Chains {
        Chains {
            published: HashMap::new(),
            order,
            random: Random::of(order),
        }
    }

    /// One of `n` choices.
    fn choose(&mut self, n: usize) -> usize {
        match self.order {
            Order::InOrder => 0,
            Order::Reversed => n - 1,
            Order::Shuffled(_) => self.random.below(n),
        }
    }
}

/// The position of a block in its chain.
struct Place {
    buffer: usize,
    position: usize,
    /// The positions of the blocks before it, the nearest first.
    before: Vec<usize>,
}

impl Place {
    fn new(layout: &Layout, look: &LookBackCode, buffer: usize, position: usize) -> Place {
        let at = (layout.index_of(position)[look.axis] - layout.lo[look.axis]) as usize;
        let extent = layout.extent[look.axis] as usize;
        let stride = layout.extent[look.axis + 1..].iter().product::<i64>() as usize;
        let before = match look.up {
            true => (1..=at).map(|n| position - n * stride).collect(),
            false => (1..extent - at).map(|n| position + n * stride).collect(),
        };
        Place {
            buffer,
            position,
            before,
        }
    }
}

impl Warp {
    pub(super) fn look_back(
        &mut self,
        machine: &mut Machine,
        code: &Code<'_>,
        block: &mut BlockState,
        look: &LookBackCode,
    ) -> Result<State, Blame> {
        let resumes = matches!(self.state, State::LookingBack { .. });
        // The places of all lanes in all chains.
        let mut places: Vec<(&ChainCode, usize, Place)> = Vec::new();
        for chain in &look.chains {
            let mut scratch: Scratch = std::mem::take(&mut machine.scratch);
            let layout = &machine.globals[chain.buffer].layout;
            let found = self.places(code, chain, layout, &mut scratch);
            machine.scratch = scratch;
            for (lane, position) in found? {
                let layout = &machine.globals[chain.buffer].layout;
                let place = Place::new(layout, look, chain.buffer, position);
                places.push((chain, lane, place));
            }
        }
        if !resumes {
            for (chain, lane, place) in &places {
                let part = chain.terms.iter().map(|t| self.cells[t.at(*lane)].clone());
                let part = Published {
                    part: part.collect(),
                    sum: None,
                };
                let at = (place.buffer, place.position);
                if machine.chains.published.insert(at, part).is_some() {
                    let layout = &machine.globals[place.buffer].layout;
                    let array = layout.name.clone();
                    let index = layout.index_of(place.position);
                    return Err(Blame::lane(
                        *lane,
                        FaultKind::PublishedTwice { array, index },
                    ));
                }
            }
        }
        // All lanes look back in one step.
        let mut choices = Vec::new();
        for (.., place) in &places {
            match sums_before(&machine.chains, place) {
                Ok(list) => choices.push(list),
                Err(position) => {
                    let buffer = place.buffer;
                    return Ok(State::LookingBack { buffer, position });
                }
            }
        }
        for slot in look.chains.iter().flat_map(|chain| &chain.before) {
            for lane in 0..slot.n_cells(code.lanes) {
                self.cells[slot.at(lane)] = Err(self.undefined(code, Why::Predicate));
            }
        }
        for ((chain, lane, place), choices) in places.iter().zip(choices) {
            let own = (place.buffer, place.position);
            let part = machine.chains.published[&own].part.clone();
            let none = || vec![Err(Undefined::new(Why::NoBlock)); part.len()];
            let (before, sum) = match choices.is_empty() {
                true => (none(), part),
                false => {
                    let depth = choices[machine.chains.choose(choices.len())];
                    let before = self.combined(machine, code, block, look, place, depth)?;
                    let sum = self.joined(machine, code, block, look, &before, &part)?;
                    (before, sum)
                }
            };
            for (slot, cell) in chain.before.iter().zip(before) {
                self.cells[slot.at(*lane)] = self.seen(code, cell);
            }
            if let Some(published) = machine.chains.published.get_mut(&own) {
                published.sum = Some(sum);
            }
        }
        Ok(State::Ready)
    }

    /// The sum up to the block `depth` places before the nearest one, with all parts after it.
    fn combined(
        &mut self,
        machine: &mut Machine,
        code: &Code<'_>,
        block: &mut BlockState,
        look: &LookBackCode,
        place: &Place,
        depth: usize,
    ) -> Result<Vec<Cell>, Blame> {
        let published = |at: usize| &machine.chains.published[&(place.buffer, place.before[at])];
        let mut list: Vec<Vec<Cell>> = vec![published(depth).sum.clone().unwrap_or_default()];
        list.extend((0..depth).rev().map(|at| published(at).part.clone()));
        let from_the_end = machine.chains.choose(2) == 1;
        let mut list = list.into_iter();
        if from_the_end {
            let mut sum = list.next_back().unwrap_or_default();
            for earlier in list.rev() {
                sum = self.joined(machine, code, block, look, &earlier, &sum)?;
            }
            return Ok(sum);
        }
        let mut sum = list.next().unwrap_or_default();
        for later in list {
            sum = self.joined(machine, code, block, look, &sum, &later)?;
        }
        Ok(sum)
    }

    fn joined(
        &mut self,
        machine: &mut Machine,
        code: &Code<'_>,
        block: &mut BlockState,
        look: &LookBackCode,
        earlier: &[Cell],
        later: &[Cell],
    ) -> Result<Vec<Cell>, Blame> {
        for (slots, cells) in [(&look.earlier, earlier), (&look.later, later)] {
            for (slot, cell) in slots.iter().zip(cells) {
                self.cells[slot.at(0)] = cell.clone();
            }
        }
        for (slot, compute) in &look.body {
            self.compute(machine, code, block, *slot, compute)?;
        }
        let joined = look.joined.iter();
        Ok(joined.map(|slot| self.cells[slot.at(0)].clone()).collect())
    }
}

/// How far back the predecessors are that a block can take the sum of: all parts after it are
/// there. Nothing before the first block; an error at the position where something is missing.
fn sums_before(chains: &Chains, place: &Place) -> Result<Vec<usize>, usize> {
    let mut found = Vec::new();
    for (depth, position) in place.before.iter().enumerate() {
        match chains.published.get(&(place.buffer, *position)) {
            Some(published) => {
                if published.sum.is_some() {
                    found.push(depth);
                }
            }
            None if found.is_empty() => return Err(*position),
            None => break,
        }
    }
    match (found.is_empty(), place.before.last()) {
        (true, Some(first)) => Err(*first),
        _ => Ok(found),
    }
}
