//! After which iterations the warps of a block synchronise, where values go through memory.
//!
//! Two accesses of different warps to one place, one of them a write, are ordered by time. The loop
//! over the first time coordinate in which they differ has a barrier at the end of each iteration.

use systola_ir::DimId;
use systola_ir::array::Array;
use systola_ir::form::{Cond, Form, Overflow, Rel};

use crate::decide::{Decide, Undecided};
use crate::keep::order::{differ, equal};
use crate::keep::reads::{n_columns, stored_reads};
use crate::storage::partition::Partition;

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
        };
        'pairs: for first in &accesses {
            for second in &accesses {
                if (first.writes || second.writes)
                    && first.storage == second.storage
                    && !decide.is_empty(&crosses.of(first, second)?, 2 * n_columns(array))?
                {
                    *needed = true;
                    break 'pairs;
                }
            }
        }
    }
    Ok(needed)
}

/// Accesses of the points of a cell to one storage.
struct Access {
    writes: bool,
    storage: usize,
    index: Vec<Form>,
    when: Cond,
}

fn accesses(array: &Array) -> Result<Vec<Access>, Overflow> {
    let mut all = Vec::new();
    for cell in &array.cells {
        if let Some(kept) = &cell.kept {
            all.push(Access {
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
}

impl Crossing<'_> {
    /// Where two accesses meet in one place and block, in other warps, and their times differ first
    /// in the step at this depth.
    fn of(&self, first: &Access, second: &Access) -> Result<Cond, Overflow> {
        let n = n_columns(self.array);
        let second_at = |f: &Form| f.substitute(&|d| Some(Form::from(DimId::from(n + d.index()))));
        let index: Vec<Form> = second
            .index
            .iter()
            .map(second_at)
            .collect::<Result<_, _>>()?;
        let meet = first.when.clone().and(second.when.map(&second_at)?);
        let meet = meet.and(equal(&first.index, &index));
        let mut cases = Vec::new();
        for here in &self.array.pieces {
            for there in &self.array.pieces {
                let slot = |k: usize| match k.checked_sub(self.array.place.len()) {
                    None => (&here.place[k], &there.place[k]),
                    Some(t) => (&here.time[t], &there.time[t]),
                };
                let pairs = |list: &[usize]| -> Result<(Vec<Form>, Vec<Form>), Overflow> {
                    let mut both = (Vec::new(), Vec::new());
                    for k in list {
                        let (a, b) = slot(*k);
                        both.0.push(a.clone());
                        both.1.push(second_at(b)?);
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
                let warps: Vec<usize> = self.partition.warps.coordinates().collect();
                let (a, b) = pairs(&warps)?;
                cases.push(case.and(differ(&a, &b)));
            }
        }
        Ok(meet.and(Cond::Or(cases)))
    }
}
