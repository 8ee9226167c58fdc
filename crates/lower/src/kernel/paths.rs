//! The path of blocks inside of all arrays, and that of blocks at an edge.
//!
//! The same statements are made twice: where a condition on the block, or on the turn of a loop, is known to hold, and where it
//! is not. The second way is rare and not worth more code, so that nothing in it is told apart any further. Only of threads
//! the slow ones hold up all others: there the turns at one edge that are inside along their own loop are told apart too.

use systola_ir::DimId;
use systola_ir::form::{Cond, Form};
use systola_ir::kernel::Stmt;

use crate::apply_mapping::Failure;
use crate::kernel::facts::{Facts, Range};
use crate::kernel::interior::{Test, interior, without_implied};
use crate::kernel::loops::{Emitter, Which};
use crate::kernel::partition::Pes;
use crate::kernel::unrolling::Walk;

impl Emitter<'_> {
    /// Where the tests have one outcome for all PEs and for all steps from `at` on. Of interest may be
    /// those tests only that speak of one coordinate. The launches at the ends ask what depends on the launch alone where
    /// they need it: all threads of a launch have the same answer.
    pub fn inside(&self, slot: &[Form], at: usize, about: Option<usize>) -> Result<Cond, Failure> {
        let speaks = |test: &Cond| {
            let mut dims = test.forms().into_iter().flat_map(Form::dims);
            about.is_none_or(|k| dims.any(|d| d.index() == k))
                && (self.which != Which::Ends || !self.is_of_launch(test))
        };
        // A processor would ask what depends on the block alone again for every vector of its cells.
        let alone = self.machine.threads.is_none() && about.is_none();
        self.decided(slot, at, about, &speaks, &|_| alone)
    }

    /// Where the tests that depend on nothing but the launch have one outcome.
    pub fn inside_launch(&self, slot: &[Form]) -> Result<Cond, Failure> {
        let is_launch = |d: DimId| self.partition.launches.contains(&d.index());
        self.decided(slot, 0, None, &|test| self.is_of_launch(test), &is_launch)
    }

    /// Does a test depend on the launch, and else on nothing but what is written out?
    fn is_of_launch(&self, test: &Cond) -> bool {
        let written = |k: &usize| {
            let mut steps = self.partition.steps.iter().zip(&self.walk);
            steps.any(|(step, walk)| step == k && *walk == Walk::Unrolled)
        };
        let dims: Vec<usize> = test
            .forms()
            .into_iter()
            .flat_map(Form::dims)
            .map(DimId::index)
            .collect();
        let is_launch = |k: &usize| self.partition.launches.contains(k);
        dims.iter().any(is_launch) && dims.iter().all(|k| is_launch(k) || written(k))
    }

    fn decided(
        &self,
        slot: &[Form],
        at: usize,
        about: Option<usize>,
        speaks: &dyn Fn(&Cond) -> bool,
        decides: &dyn Fn(DimId) -> bool,
    ) -> Result<Cond, Failure> {
        let mut facts = Facts::new(self.decide, self.machine);
        for (k, range) in self.slots.ranges.iter().enumerate() {
            facts.set_range(DimId::from(k), range.clone());
        }
        // Blocks of one warp take the same path: two more coordinates are the warp and the block in it.
        let (warp, nth) = (slot.len(), slot.len() + 1);
        let packing = self.partition.packing.as_ref();
        if let Some(packing) = packing {
            facts.set_range(DimId::from(warp), packing.grid());
            facts.set_range(DimId::from(nth), Range::new(0, packing.blocks));
        }
        let inner = |d: DimId| {
            self.partition.steps[at..].contains(&d.index())
                || self.partition.pes.contains(&d.index())
                || d.index() == nth
                || self.partition.warps.has(d.index())
        };
        let speaking = self.tests.iter().filter(|t| speaks(&t.cond));
        let mut tests: Vec<Test> = speaking.cloned().collect();
        if let Some(packing) = packing {
            let [warp, nth] = [warp, nth].map(|n| Form::from(DimId::from(n)));
            let block = packing.block_at(&warp, &nth)?;
            let packed = |d: DimId| (d.index() == packing.block).then(|| block.clone());
            for test in &mut tests {
                *test = test.map(&|f| f.substitute(&packed))?;
            }
        }
        let there = |d: DimId| {
            if d.index() == warp {
                return Some(self.packed.clone());
            }
            slot.get(d.index()).cloned()
        };
        // Where a block has chosen its path, a loop in it need not ask again.
        let holds = |form: &Form| {
            self.machine.threads.is_some()
                && about.is_some()
                && (form.substitute(&there)).is_ok_and(|form| self.facts.is_nonnegative(&form))
        };
        let inside = interior(&tests, &facts, &inner, &|d| inner(d) || decides(d), &holds)
            .map(&|f| f.substitute(&there))?;
        Ok(without_implied(self.facts.simplify(&inside)))
    }

    /// Both paths, unless this is at an edge already.
    pub fn either(
        &mut self,
        cond: Cond,
        f: &mut impl FnMut(&mut Self) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if self.at_edge {
            return f(self);
        }
        self.both(cond, f)
    }

    /// The same statements where a condition is known to hold, and where it is not.
    pub fn both(
        &mut self,
        cond: Cond,
        f: &mut impl FnMut(&mut Self) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if matches!(cond, Cond::Const(_)) {
            return f(self);
        }
        let then = self.apart_where(self.facts.with(cond.clone()), f)?;
        let otherwise = self.apart(&mut |e| e.at_the_edge(f))?;
        self.b.push(Stmt::If {
            cond,
            then,
            otherwise,
        });
        Ok(())
    }

    /// Does a block go through many rows, one or some in a turn of a loop that stays, as a wavefront does? A mapping that insists on
    /// one has no room for more code.
    pub fn streams(&self) -> bool {
        matches!(self.walk.first(), Some(Walk::Rolled | Walk::By(2..)))
            && self.windows.is_empty()
            && self.tests_turns_at_edge(0)
    }

    /// Most turns at the edge along one axis are inside along that of the loop, and threads that test every cell are
    /// far behind all others.
    pub fn tests_turns_at_edge(&self, at: usize) -> bool {
        self.machine.threads.is_some()
            && self.ticks_inside(at).is_some_and(|ticks| {
                self.tick_cost().saturating_mul(ticks) <= 4 * self.machine.code_budget
            })
    }

    /// Is this the innermost loop, and does a turn leave nothing to the next one, on a processor? Then the vectors at the ends
    /// of rows are masked, and those between need not be.
    pub fn goes_along_rows(&self, at: usize) -> bool {
        let Pes::Known { depth } = &self.partition.walk else {
            return false;
        };
        self.machine.threads.is_none()
            && at + 1 == self.partition.steps.len()
            && self.walk[at] == Walk::Rolled
            && depth.iter().all(|d| *d == 0)
            && self.memories.is_empty()
            && self.windows.is_empty()
            && self.tick_cost() <= 4 * self.machine.code_budget
    }

    /// Statements that run seldom, and are not worth more code.
    pub fn at_the_edge(
        &mut self,
        f: &mut impl FnMut(&mut Self) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let at_edge = std::mem::replace(&mut self.at_edge, true);
        let result = f(self);
        self.at_edge = at_edge;
        result
    }
}

/// The parts of a condition that speak of more than the turn. What is the same in all blocks, such as which rows of their
/// tiles they own, takes no more than a test.
pub fn of_blocks(cond: Cond, turn: &Form) -> Cond {
    let parts = match cond {
        Cond::And(parts) => parts,
        other => vec![other],
    };
    let turn = turn.dims();
    let more = |cond: &Cond| {
        let mut dims = cond.forms().into_iter().flat_map(Form::dims);
        dims.any(|d| !turn.contains(&d))
    };
    parts.into_iter().filter(more).fold(Cond::TRUE, Cond::and)
}
