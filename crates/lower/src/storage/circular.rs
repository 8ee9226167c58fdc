//! Which inter-block buffers need two places only, since blocks have read a value long before the next but one block makes its own.
//!
//! Let all that reads a cell lie one block further along one coordinate, and let turns begin, end and count *s* later in each block
//! than in the one before. A block at turn t has seen its predecessor finish turn t − δ, where δ is the shortest delay that it waits for, and
//! so, through n blocks, the n-th before it finish t − n·δ or its last turn: with δ ≤ s no block of the chain has yet to begin. It writes where the
//! block 2m before it wrote at turn t − 2m·s, what was read 2m − 1 blocks before it at turn t − 2m·s + d for a link of delay d. That turn is
//! over for every m if δ ≤ s and d + δ ≤ 2·s. Blocks of one turn wait for the whole block before them, so for all.
//!
//! Nobody waits for more than without it, and a chain of any length keeps the values of two blocks.

use systola_ir::array::{Array, Link};
use systola_ir::form::Form;
use systola_ir::kernel::Program;
use systola_ir::{DimId, VarId};

use crate::failure::Failure;
use crate::storage::inter_block::{Handed, InterBlock, PLACES};
use crate::storage::links::flagged;
use crate::storage::partition::Partition;
use crate::storage::waits::{Flags, displacement};

/// Folds the buffers for which two places are enough.
pub fn fold(
    array: &Array,
    flags: &Flags,
    partition: &Partition,
    inter_block: &mut InterBlock,
    program: &mut Program,
) -> Result<(), Failure> {
    for (cell, handed) in inter_block.iter_mut() {
        if let Some(k) = foldable(array, flags, partition, cell, handed)? {
            handed.fold(k, program);
        }
    }
    Ok(())
}

/// The block coordinate along which the values of a cell go to the next block, and to none else, if two places are enough.
fn foldable(
    array: &Array,
    flags: &Flags,
    partition: &Partition,
    cell: VarId,
    handed: &Handed,
) -> Result<Option<usize>, Failure> {
    let of_cell = flagged(array).filter(|(port, _)| port.source == cell);
    let links: Vec<&Link> = of_cell.map(|(_, link)| link).collect();
    let mut step = None;
    for link in &links {
        let moved = displacement(array, link, &partition.blocks)?;
        let [(k, by @ (1 | -1))] = moved[..] else {
            return Ok(None);
        };
        if *step.get_or_insert((k, by)) != (k, by) {
            return Ok(None);
        }
    }
    let Some((k, by)) = step else {
        return Ok(None);
    };
    let Some((turn, (first, end))) = partition.steps.first().zip(flags.turns.as_ref()) else {
        return Ok(Some(k));
    };
    // By how much a form over the block grows from one block to the next.
    let growth = |form: &Form| -> Result<Option<i128>, Failure> {
        let before = |d: DimId| (d.index() == k).then(|| Form::from(d).plus(-by));
        Ok(form.sub(&form.substitute(&before)?).as_constant())
    };
    let later = [growth(first)?, growth(end)?, growth(handed.start(*turn))?];
    let delays = links.iter().map(|link| {
        let delay = &link.delay[*turn - array.place.len()];
        delay.as_constant()
    });
    let longest = delays
        .collect::<Option<Vec<i128>>>()
        .and_then(|list| list.into_iter().max());
    let shortest = flags.delay(&[(k, by)]).and_then(|d| d.as_constant());
    let ([Some(s), Some(s_end), Some(s_kept)], Some(longest), Some(shortest)) =
        (later, longest, shortest)
    else {
        return Ok(None);
    };
    let enough = s == s_end && s == s_kept && shortest <= s && longest + shortest <= PLACES * s;
    Ok(enough.then_some(k))
}
