//! The order of the accesses of points to one place of memory.
//!
//! Two accesses to one place, one of them a write, are ordered by time. If they are in different
//! warps, the loop over the first time coordinate in which they differ has a barrier at the end of
//! each iteration. If there are none that differ first in the innermost loop, its iterations are
//! independent.

use systola_ir::array::Array;
use systola_ir::form::{Cond, Form, Overflow, Rel};
use systola_ir::{DimId, VarId};

use crate::decide::{Decide, Undecided};
use crate::storage::partition::Partition;
use crate::storage_maps::order::{differ, equal};
use crate::storage_maps::reads::{n_columns, stored_reads};

/// For each of the steps, whether an iteration ends with a barrier.
pub fn barriers(
    array: &Array,
    partition: &Partition,
    decide: &Decide,
) -> Result<Vec<bool>, Undecided> {
    let mut needed = vec![false; partition.steps.len()];
    if !array.keeps_values() || partition.warps.count() == 1 {
        return Ok(needed);
    }
    let accesses = accesses(array)?;
    for (depth, needed) in needed.iter_mut().enumerate() {
        let crosses = Crossing {
            array,
            partition,
            depth,
            in_other_warps: true,
        };
        // Where that is too hard to decide, the warps synchronise.
        *needed = crosses.anywhere(&accesses, decide).unwrap_or(true);
    }
    Ok(needed)
}

/// May the iterations of the loop over the step at `depth` run in any order, for some cells?
pub fn is_independent(
    array: &Array,
    partition: &Partition,
    decide: &Decide,
    depth: usize,
    cells: &[VarId],
) -> Result<bool, Undecided> {
    let mut accesses = accesses(array)?;
    accesses.retain(|access| cells.contains(&access.cell));
    let conflicts = Crossing {
        array,
        partition,
        depth,
        in_other_warps: false,
    };
    Ok(!conflicts.anywhere(&accesses, decide)?)
}

/// Accesses of the points of a cell to one storage.
struct Access {
    cell: VarId,
    writes: bool,
    storage: usize,
    index: Vec<Form>,
    when: Cond,
}

fn accesses(array: &Array) -> Result<Vec<Access>, Overflow> {
    let mut all = Vec::new();
    for (n, cell) in array.cells.iter().enumerate() {
        if let Some(kept) = &cell.kept {
            all.push(Access {
                cell: VarId::from(n),
                writes: true,
                storage: kept.storage.index(),
                index: kept.index.clone(),
                when: cell.domain.clone().and(kept.when.clone()),
            });
        }
    }
    for read in stored_reads(array) {
        let Some(kept) = &array.cells[read.source.index()].kept else {
            continue;
        };
        let at = |f: &Form| f.substitute(&|d| read.index.get(d.index()).cloned());
        all.push(Access {
            cell: read.sink,
            writes: false,
            storage: kept.storage.index(),
            index: kept.index.iter().map(at).collect::<Result<_, _>>()?,
            when: read.when,
        });
    }
    Ok(all)
}

struct Crossing<'a> {
    array: &'a Array,
    partition: &'a Partition,
    depth: usize,
    in_other_warps: bool,
}

impl Crossing<'_> {
    fn anywhere(&self, accesses: &[Access], decide: &Decide) -> Result<bool, Undecided> {
        for (n, first) in accesses.iter().enumerate() {
            for second in &accesses[n..] {
                if (first.writes || second.writes)
                    && first.storage == second.storage
                    && !decide.is_empty(&self.of(first, second)?, 2 * n_columns(self.array))?
                {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Where two accesses are to one place, in one block, and their times differ first in the step at
    /// this depth.
    fn of(&self, first: &Access, second: &Access) -> Result<Cond, Overflow> {
        let n = n_columns(self.array);
        let second_at = |f: &Form| f.substitute(&|d| Some(Form::from(DimId::from(n + d.index()))));
        let index: Vec<Form> = second
            .index
            .iter()
            .map(second_at)
            .collect::<Result<_, _>>()?;
        let both = first.when.clone().and(second.when.map(&second_at)?);
        let both = both.and(equal(&first.index, &index));
        let mut cases = Vec::new();
        for here in &self.array.pieces {
            for there in &self.array.pieces {
                let pairs = |list: &[usize]| -> Result<(Vec<Form>, Vec<Form>), Overflow> {
                    let mut both = (Vec::new(), Vec::new());
                    for k in list {
                        both.0.push(here.coordinate(*k).clone());
                        both.1.push(second_at(there.coordinate(*k))?);
                    }
                    Ok(both)
                };
                let steps = &self.partition.steps;
                let same = [
                    &self.partition.launches[..],
                    &self.partition.blocks,
                    &steps[..self.depth],
                ];
                let (a, b) = pairs(&same.concat())?;
                let mut case = here.cond.clone().and(there.cond.map(&second_at)?);
                case = case.and(equal(&a, &b));
                let (a, b) = pairs(&[steps[self.depth]])?;
                case = case.and(Cond::Cmp(Rel::Ne, a[0].clone(), b[0].clone()));
                if self.in_other_warps {
                    let warps: Vec<usize> = self.partition.warps.coordinates().collect();
                    let (a, b) = pairs(&warps)?;
                    case = case.and(differ(&a, &b));
                }
                cases.push(case);
            }
        }
        Ok(both.and(Cond::Or(cases)))
    }
}
