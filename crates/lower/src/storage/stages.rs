//! The cells of a tick in stages.
//!
//! A value that arrives in the tick in which it leaves needs its source to run first. PEs that run
//! in one direction ensure that as long as all such values move that way. A chain of stencils moves
//! values both ways: then all PEs evaluate the cells of one stage before any of them evaluates the
//! next stage, and between stages values move freely. This needs PEs that are unrolled, and cells
//! that do not wait for each other in a cycle.

use systola_ir::VarId;
use systola_ir::array::{Array, Link, Port, Realisation};

use crate::storage::links::is_at_once;

/// For each cell, the number of its stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stages {
    of: Vec<usize>,
}

impl Stages {
    /// A single stage: all cells of a PE one after another.
    pub fn one(array: &Array) -> Stages {
        Stages {
            of: vec![0; array.cells.len()],
        }
    }

    /// Puts the source of each value that arrives at once into an earlier stage than its readers,
    /// except for sums along their own cell. `None` if cells wait for each other.
    pub fn several(array: &Array) -> Option<Stages> {
        let mut stages = Stages::one(array);
        // A chain of n cells has at most n stages.
        for _ in 0..=array.cells.len() {
            let mut settled = true;
            for port in array.ports.iter().filter(|p| p.source != p.sink) {
                for link in &port.links {
                    let later = is_at_once(array, port, link);
                    let least = stages.of[port.source.index()] + usize::from(later);
                    let same_tick = later || link.realisation == Realisation::Wire;
                    if same_tick && stages.of[port.sink.index()] < least {
                        stages.of[port.sink.index()] = least;
                        settled = false;
                    }
                }
            }
            if settled {
                return Some(stages);
            }
        }
        None
    }

    /// The same with a separate stage for each cell that `alone` selects: cells before it in its
    /// stage run earlier, cells after it later. Values that arrive at once from other cells are
    /// separate already.
    pub fn isolated(self, array: &Array, alone: impl Fn(VarId) -> bool) -> Stages {
        let mut of = self.of.clone();
        let mut next = 0;
        for cells in self.cells(array) {
            for (n, cell) in cells.iter().enumerate() {
                let cut = n > 0 && (alone(*cell) || alone(cells[n - 1]));
                next += usize::from(cut);
                of[cell.index()] = next;
            }
            next += 1;
        }
        Stages { of }
    }

    /// Is the value complete before the stage of its sink begins?
    pub fn separate(&self, port: &Port) -> bool {
        self.of[port.source.index()] < self.of[port.sink.index()]
    }

    /// The values that arrive at once within a stage.
    pub fn at_once<'a>(&'a self, array: &'a Array) -> impl Iterator<Item = (&'a Port, &'a Link)> {
        let ports = array.ports.iter().filter(|p| !self.separate(p));
        ports
            .flat_map(|p| p.links.iter().map(move |l| (p, l)))
            .filter(|(p, l)| is_at_once(array, p, l))
    }

    /// The cells of each stage, in the order of the body.
    pub fn cells(&self, array: &Array) -> Vec<Vec<VarId>> {
        let n = self.of.iter().max().map_or(1, |last| last + 1);
        let mut cells = vec![Vec::new(); n];
        for cell in &array.body {
            cells[self.of[cell.index()]].push(*cell);
        }
        cells
    }
}
