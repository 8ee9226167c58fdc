//! Inter-block buffers that need to keep only two blocks, since each value is read long before the
//! block after next makes its own.
//!
//! Let all readers of a cell lie one block further along one coordinate, and let iterations begin,
//! end and count *s* later in each block than in the one before. A block at iteration t has seen
//! its predecessor finish iteration t − δ, where δ is the shortest delay that it waits for. So,
//! through n blocks, the n-th block before it has finished iteration t − n·δ or its last iteration:
//! with δ ≤ s every block of the chain has begun. The block overwrites what the block 2m before it
//! wrote at iteration t − 2m·s. For a link of delay d, the block 2m − 1 before it read this value
//! at iteration t − 2m·s + d. That iteration is complete for every m if δ ≤ s and d + δ ≤ 2·s.
//! Blocks of one iteration wait for the whole block before them, so for all.
//!
//! No block waits longer than without folding, and a chain of any length keeps the values of two
//! blocks.

use systola_ir::array::{Array, Link};
use systola_ir::form::Form;
use systola_ir::kernel::Program;
use systola_ir::{DimId, VarId};

use crate::failure::Failure;
use crate::storage::inter_block::{BLOCKS_KEPT, InterBlock, InterBlockBuffer};
use crate::storage::links::flagged;
use crate::storage::partition::Partition;
use crate::storage::waits::{Flags, displacement};

/// Folds the buffers that need to keep only two blocks.
pub fn fold(
    array: &Array,
    flags: &Flags,
    partition: &Partition,
    inter_block: &mut InterBlock,
    program: &mut Program,
) -> Result<(), Failure> {
    for (cell, buffer) in inter_block.iter_mut() {
        if let Some(k) = foldable(array, flags, partition, cell, buffer)? {
            buffer.fold(k, program);
        }
    }
    Ok(())
}

/// The block coordinate along which the values of a cell go to the next block only, if it is enough
/// to keep two blocks.
fn foldable(
    array: &Array,
    flags: &Flags,
    partition: &Partition,
    cell: VarId,
    buffer: &InterBlockBuffer,
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
    let Some((outermost, (first, end))) = partition.steps.first().zip(flags.iterations.as_ref())
    else {
        return Ok(Some(k));
    };
    // The growth of a form over the block from one block to the next.
    let growth = |form: &Form| -> Result<Option<i128>, Failure> {
        let before = |d: DimId| (d.index() == k).then(|| Form::from(d).plus(-by));
        Ok(form.sub(&form.substitute(&before)?).as_constant())
    };
    let later = [
        growth(first)?,
        growth(end)?,
        growth(buffer.start(*outermost))?,
    ];
    let delays = links.iter().map(|link| {
        let delay = &link.delay[*outermost - array.place.len()];
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
    let enough =
        s == s_end && s == s_kept && shortest <= s && longest + shortest <= BLOCKS_KEPT * s;
    Ok(enough.then_some(k))
}
