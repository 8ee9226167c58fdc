//! The values that an array keeps in memory: where each is, who writes it, and who reads it when.

use std::collections::{BTreeSet, HashMap};

use systola_ir::array::{Array, Storage};
use systola_ir::diag::MappedPoint;
use systola_ir::mapping::TimeLevel;
use systola_ir::system::Expr;

use super::{Builder, list, number};
use crate::picture::memory::{Life, Memory, Read, Stored};

impl Builder<'_> {
    /// The lives of all values, in the order in which they are written.
    pub(super) fn memory(&self, slots: &[MappedPoint]) -> Memory {
        let mut lives: Vec<Life> = Vec::new();
        let mut known: HashMap<(usize, &[i128]), usize> = HashMap::new();
        for slot in slots {
            let z = slot.point.as_slice();
            for (n, cell) in self.array.cells.iter().enumerate() {
                let Some(kept) = &cell.kept else { continue };
                if !self.holds(&cell.domain, z) || !self.holds(&kept.when, z) {
                    continue;
                }
                let Some(element) = self.eval(&kept.index, z) else {
                    continue;
                };
                known.insert((n, z), lives.len());
                lives.push(Life {
                    stream: n,
                    point: z.to_vec(),
                    storage: kept.storage.index(),
                    element,
                    written: slot.time.clone(),
                    reads: Vec::new(),
                    is_result: self.is_result(n, z),
                });
            }
        }
        for slot in slots {
            let z = slot.point.as_slice();
            for (n, cell) in self.array.cells.iter().enumerate() {
                if !self.holds(&cell.domain, z) {
                    continue;
                }
                let mut sources = BTreeSet::new();
                self.visit_reads(&cell.body, &mut z.to_vec(), &mut |read, at| {
                    if let Expr::Var { var, index, .. } = read
                        && let Some(point) = self.eval(index, at)
                        && let Some(life) = known.get(&(var.index(), point.as_slice()))
                    {
                        sources.insert(*life);
                    }
                });
                // A cell that keeps nothing hands what it makes to another one of its point.
                let own = known.get(&(n, z));
                let of_point = || (0..self.array.cells.len()).find_map(|c| known.get(&(c, z)));
                let makes = own.or_else(of_point).copied();
                for source in sources {
                    let time = slot.time.clone();
                    lives[source].reads.push(Read { time, makes });
                }
            }
        }
        for life in &mut lives {
            life.reads.sort();
        }
        Memory {
            clock: clock(self.array),
            storages: self.stored(&lives),
            lives,
        }
    }

    /// Does an output take the value from where it is kept?
    fn is_result(&self, cell: usize, z: &[i128]) -> bool {
        let kept = self.array.cells[cell].kept.as_ref();
        let storage = kept.map(|kept| &self.array.storages[kept.storage.index()]);
        let output = storage.and_then(|storage| storage.output);
        output.is_some_and(|output| {
            let mut writes = self.array.outputs[output].writes.iter();
            writes.any(|write| {
                matches!(write.value, Expr::Var { var, .. } if var.index() == cell)
                    && self.holds(&write.when, z)
            })
        })
    }

    fn stored(&self, lives: &[Life]) -> Vec<Stored> {
        let storages = self.array.storages.iter().enumerate();
        let storages = storages.map(|(n, storage)| {
            let own = lives.iter().filter(|life| life.storage == n);
            let places: BTreeSet<&[i128]> = own.clone().map(|l| l.element.as_slice()).collect();
            let (values, count) = (own.count(), places.len());
            Stored {
                name: storage.name.clone(),
                title: format!(
                    "{}: {} in {}",
                    self.what(storage),
                    number(values as i128, "value"),
                    number(count as i128, "place")
                ),
                n_places: count,
            }
        });
        storages.collect()
    }

    /// `lu, where the output is`, `A, an array of 2 × 6`.
    fn what(&self, storage: &Storage) -> String {
        let name = &storage.name;
        if storage.output.is_some() {
            return format!("{name}, where the output is");
        }
        let lengths: Option<Vec<i128>> = storage
            .axes
            .iter()
            .map(|axis| axis.hi.sub(&axis.lo).eval(self.params, &[]).ok())
            .collect();
        match lengths.as_deref() {
            Some([]) => format!("{name}, one element"),
            Some(lengths) => {
                let lengths: Vec<String> = lengths.iter().map(i128::to_string).collect();
                format!("{name}, an array of {}", lengths.join(" × "))
            }
            None => name.clone(),
        }
    }
}

/// The names of the time coordinates.
fn clock(array: &Array) -> Vec<String> {
    let names = array.time.iter().map(|coordinate| {
        let name = coordinate.alias.as_ref().unwrap_or(&coordinate.name);
        match coordinate.level {
            TimeLevel::Launch if *name != coordinate.name => format!("launch {name}"),
            _ => name.clone(),
        }
    });
    names.collect()
}

impl Life {
    /// `S(1,2,3)` and shorter labels of the same value.
    pub fn labels(&self, stream: &str) -> [String; 2] {
        let point = list(&self.point);
        [format!("{stream}({point})"), point]
    }
}
