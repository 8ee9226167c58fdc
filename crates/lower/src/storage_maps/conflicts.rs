//! Is a value overwritten before all its readers have read it?
//!
//! Let r read the value of p. Another point q with the same place in memory must write before p
//! does, or after r has read: otherwise r finds the value of q. Points that no order relates may run
//! in any order. Where a storage is an output, the end of the run reads what is written there. And of two
//! points that write to one place one comes first, even if nobody reads what they write: the memory of
//! a machine has no place for two values at once.

use systola_ir::VarId;
use systola_ir::array::{Array, StorageMap};
use systola_ir::form::{Cond, Form, Overflow};
use systola_ir::id::DimId;

use crate::decide::Decide;
use crate::failure::Failure;
use crate::storage_maps::order::{Placed, differ, equal, is_never, not_before, placed};
use crate::storage_maps::reads::{StoredRead, n_columns};

/// A value that a reader does not find.
#[derive(Debug)]
pub struct Lost {
    pub params: Vec<i128>,
    /// The point that made it.
    pub made: Vec<i128>,
    pub source: VarId,
    /// The point that takes its place.
    pub taker: (VarId, Vec<i128>),
    pub reader: Reader,
}

/// Who reads a value.
#[derive(Debug, PartialEq)]
pub enum Reader {
    Point(VarId, Vec<i128>),
    /// The end of the run.
    End,
    /// Nobody, but two points write at once.
    Nobody,
}

/// Where the values of cells are kept, while that is being decided.
pub struct Places<'a> {
    pub array: &'a Array,
    pub reads: &'a [StoredRead],
    pub decide: &'a Decide,
    /// For each cell.
    pub kept: Vec<Option<StorageMap>>,
    /// Readers at the end of the run: what a storage that is an output holds then.
    pub finals: Vec<StoredRead>,
}

impl Places<'_> {
    /// A value that is lost because of the place of `cell`, as a reader of it or as what overwrites
    /// others.
    pub fn lost(&self, cell: VarId) -> Result<Option<Lost>, Failure> {
        let all = self.reads.iter().map(|r| (r, false));
        let all = all.chain(self.finals.iter().map(|r| (r, true)));
        for (read, at_end) in all {
            for taker in 0..self.kept.len() {
                let taker = VarId::from(taker);
                if (read.source == cell || taker == cell)
                    && let Some(lost) = self.taken(read, at_end, taker)?
                {
                    return Ok(Some(lost));
                }
            }
        }
        for other in 0..self.kept.len() {
            if let Some(lost) = self.written_at_once(cell, VarId::from(other))? {
                return Ok(Some(lost));
            }
        }
        Ok(None)
    }

    /// Two points that write to one place, of which none comes first.
    fn written_at_once(&self, cell: VarId, other: VarId) -> Result<Option<Lost>, Failure> {
        let domain = &self.array.cells[cell.index()].domain;
        let n = self.array.dims.len();
        let here: Vec<Form> = (0..n).map(|d| Form::from(DimId::from(d))).collect();
        let there: Vec<Form> = (n..2 * n).map(|d| Form::from(DimId::from(d))).collect();
        let Some(live) = self.in_one_place((cell, &here), (other, &there))? else {
            return Ok(None);
        };
        let written = self.kept[cell.index()]
            .as_ref()
            .map(|kept| kept.when.clone());
        let live = live.and(domain.clone()).and(written.unwrap_or(Cond::TRUE));
        for first in placed(self.array, &here)? {
            for second in placed(self.array, &there)? {
                let question = live
                    .clone()
                    .and(first.cond.clone())
                    .and(second.cond.clone());
                let question = question.and(not_before(&first, &second));
                let question = question.and(not_before(&second, &first));
                let Some((params, point)) = self.decide.sample(&question, 2 * n)? else {
                    continue;
                };
                return Ok(Some(Lost {
                    made: point[..n].to_vec(),
                    source: cell,
                    taker: (other, point[n..].to_vec()),
                    reader: Reader::Nobody,
                    params,
                }));
            }
        }
        Ok(None)
    }

    /// Where two different values have one place, and the second one is made; `None` if nowhere.
    fn in_one_place(
        &self,
        first: (VarId, &[Form]),
        second: (VarId, &[Form]),
    ) -> Result<Option<Cond>, Failure> {
        let kept = |cell: VarId| self.kept[cell.index()].as_ref();
        let (Some(place), Some(other)) = (kept(first.0), kept(second.0)) else {
            return Ok(None);
        };
        if place.storage != other.storage {
            return Ok(None);
        }
        let at = |form: &Form, point: &[Form]| -> Result<Form, Overflow> {
            form.substitute(&|d| point.get(d.index()).cloned())
        };
        let all = |forms: &[Form], point: &[Form]| -> Result<Vec<Form>, Overflow> {
            forms.iter().map(|f| at(f, point)).collect()
        };
        let mut same = equal(&all(&place.index, first.1)?, &all(&other.index, second.1)?);
        if first.0 == second.0 {
            same = differ(first.1, second.1).and(same);
        }
        let domain = self.array.cells[second.0.index()].domain.clone();
        let same = same.and(domain.and(other.when.clone()).map(&|f| at(f, second.1))?);
        Ok((!is_never(&same)).then_some(same))
    }

    /// Does a point of `taker` overwrite what is read?
    fn taken(
        &self,
        read: &StoredRead,
        at_end: bool,
        taker: VarId,
    ) -> Result<Option<Lost>, Failure> {
        // The columns: the reader with the iterators of its sums, then the point that overwrites.
        let (n, m) = (self.array.dims.len(), n_columns(self.array));
        let reader: Vec<Form> = (0..n).map(|d| Form::from(DimId::from(d))).collect();
        let second: Vec<Form> = (m..m + n).map(|d| Form::from(DimId::from(d))).collect();
        let made = &read.index;
        let Some(same) = self.in_one_place((read.source, made), (taker, &second))? else {
            return Ok(None);
        };
        let live = read.when.clone().and(same);
        let (makers, takers) = (placed(self.array, made)?, placed(self.array, &second)?);
        let readers = match at_end {
            true => vec![None],
            false => placed(self.array, &reader)?.into_iter().map(Some).collect(),
        };
        for maker in &makers {
            for taker_at in &takers {
                for reader_at in &readers {
                    let late = order(maker, taker_at, reader_at.as_ref(), &reader, &second);
                    if is_never(&late) {
                        continue;
                    }
                    let question = live.clone().and(late);
                    let Some((params, point)) = self.decide.sample(&question, m + n)? else {
                        continue;
                    };
                    let made = made.iter().map(|f| f.eval(&params, &point));
                    return Ok(Some(Lost {
                        made: made.collect::<Result<_, _>>()?,
                        source: read.source,
                        taker: (taker, point[m..].to_vec()),
                        reader: match at_end {
                            true => Reader::End,
                            false => Reader::Point(read.sink, point[..n].to_vec()),
                        },
                        params,
                    }));
                }
            }
        }
        Ok(None)
    }
}

/// Where the taker neither comes before the maker, nor after the reader.
fn order(
    maker: &Placed,
    taker: &Placed,
    reader: Option<&Placed>,
    reads_at: &[Form],
    takes_at: &[Form],
) -> Cond {
    let mut cond = maker.cond.clone().and(taker.cond.clone());
    cond = cond.and(not_before(taker, maker));
    if let Some(reader) = reader {
        // At one point all reads come before all writes.
        cond = cond.and(reader.cond.clone());
        cond = cond
            .and(not_before(reader, taker))
            .and(differ(reads_at, takes_at));
    }
    cond
}
