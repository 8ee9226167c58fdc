//! Multiversions a block or an iteration: one version inside all arrays, one at an edge.
//!
//! The same work is emitted twice: under a condition on the block, or on the iteration of a loop,
//! and for the case that the condition does not hold. The second version is rare and not worth more
//! code, so nothing inside it is multiversioned again. Threads are an exception, since slow threads
//! hold up all others: if a block is at an edge along one axis, its iterations that are inside
//! along their own loop have an inside version too.

use systola_ir::DimId;
use systola_ir::form::{Cond, Form};

use crate::failure::Failure;
use crate::nest::build::Body;
use crate::nest::context::{At, Context, Path, packed_coordinates};
use crate::nest::interior::{Test, interior, without_implied};
use crate::nest::tree::{Nest, Which};
use crate::nest::walk::Walk;
use crate::storage::partition::Pes;

impl<'a> Context<'a> {
    /// Both versions of what `body` builds, or one if the condition is decided.
    pub(super) fn versions(
        &self,
        cond: Cond,
        at: &At<'a>,
        body: &Body<'_, 'a>,
    ) -> Result<Nest, Failure> {
        if matches!(cond, Cond::Const(_)) {
            return body(at);
        }
        let mut inside = at.clone();
        inside.facts = at.facts.with(cond.clone());
        Ok(Nest::Versions {
            inside: Box::new(body(&inside)?),
            edge: Box::new(body(&at.at_edge())?),
            cond,
        })
    }

    /// The condition for the inside version of a block.
    pub(super) fn block_inside(&self, at: &At<'a>) -> Result<Cond, Failure> {
        if self.is_known() {
            self.inside(at, 0, None)
        } else {
            Ok(Cond::TRUE)
        }
    }

    /// The condition for the inside version of an iteration of the loop over `k`.
    pub(super) fn iteration_inside(
        &self,
        depth: usize,
        k: usize,
        at: &At<'a>,
    ) -> Result<Cond, Failure> {
        if !self.is_known() {
            return Ok(Cond::TRUE);
        }
        // An outer loop may run over tiles of its own.
        let around = depth + 1 < self.partition.steps.len();
        match at.path {
            Path::Inside if around => self.inside(at, depth + 1, Some(k)),
            _ if self.carries_nothing(depth) => self.inside(at, depth + 1, Some(k)),
            Path::Edge if around && self.holds_up_others(depth) => {
                let inside = self.inside(at, depth + 1, Some(k))?;
                Ok(of_blocks(inside, DimId::from(k)))
            }
            Path::Inside | Path::Edge => Ok(Cond::TRUE),
        }
    }

    /// The launches that need no test for the first and last launches, as a condition over the
    /// launch coordinates.
    pub(super) fn launch_inside(&self) -> Result<Cond, Failure> {
        if !self.is_known() {
            return Ok(Cond::TRUE);
        }
        let is_launch = |d: DimId| self.partition.launches.contains(&d.index());
        let speaks = |test: &Test| self.is_of_launch(&test.cond);
        self.decided(&self.outside(), 0, None, &speaks, &is_launch)
    }

    /// The condition under which each test has one outcome for all PEs and for all steps from
    /// `depth` on. With `about`, only tests that use this coordinate count, which is that of the
    /// loop around these steps. The kernel for launches at the ends tests what depends on the
    /// launch alone at the place of use: all threads of a launch have the same answer.
    pub(super) fn inside(
        &self,
        at: &At<'a>,
        depth: usize,
        about: Option<usize>,
    ) -> Result<Cond, Failure> {
        let speaks = |test: &Test| {
            let mut dims = test.cond.forms().into_iter().flat_map(Form::dims);
            about.is_none_or(|k| dims.any(|d| d.index() == k))
                && (*self.which != Which::Ends || !self.is_of_launch(&test.cond))
        };
        // A CPU would repeat a test that depends on the block alone for every vector of its cells.
        let alone = self.machine.threads.is_none() && about.is_none();
        self.decided(at, depth, about, &speaks, &|_| alone)
    }

    /// Does a test depend on the launch, and otherwise only on unrolled coordinates?
    fn is_of_launch(&self, test: &Cond) -> bool {
        let unrolled = |k: &usize| {
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
        dims.iter().any(is_launch) && dims.iter().all(|k| is_launch(k) || unrolled(k))
    }

    fn decided(
        &self,
        at: &At<'a>,
        depth: usize,
        about: Option<usize>,
        speaks: &dyn Fn(&Test) -> bool,
        decides: &dyn Fn(DimId) -> bool,
    ) -> Result<Cond, Failure> {
        let (warp, nth) = packed_coordinates(self.slots);
        let inner = |d: DimId| {
            self.partition.steps[depth..].contains(&d.index())
                || self.partition.pes.contains(&d.index())
                || d == nth
                || self.partition.warps.has(d.index())
        };
        let speaking = self.tests.iter().filter(|t| speaks(t));
        let mut tests: Vec<Test> = speaking.cloned().collect();
        // Blocks of one warp take the same path.
        if let Some(packing) = &self.partition.packing {
            let block = packing.block_at(&Form::from(warp), &Form::from(nth))?;
            let packed = |d: DimId| (d.index() == packing.block).then(|| block.clone());
            for test in &mut tests {
                *test = test.map(&|f| f.substitute(&packed))?;
            }
        }
        // A loop need not repeat what its block has already tested.
        let holds = |form: &Form| {
            self.machine.threads.is_some()
                && about.is_some()
                && at
                    .value(form)
                    .is_ok_and(|form| at.facts.is_nonnegative(&form))
        };
        let matters = |d| inner(d) || decides(d);
        let renames = about.is_some() && self.renames_in_place(depth - 1);
        let predicated = |test: &Test| renames && test.of_stores;
        let inside = interior(
            &tests,
            &self.everywhere,
            &inner,
            &matters,
            &holds,
            &predicated,
        )
        .map(&|f| at.value(f))?;
        Ok(without_implied(at.facts.simplify(&inside)))
    }

    /// Does one copy of an iteration produce new values for all registers of a thread, so that
    /// renaming needs no further copies? Then iterations that store need no loop of their own
    /// beside the few that do not: a store is predicated, which costs less than the code.
    fn renames_in_place(&self, depth: usize) -> bool {
        self.machine.threads.is_some() && self.copies(depth).max(self.copies_to_rename(depth)) == 1
    }

    /// Does a block stream through many rows, one or a few in each iteration of a loop that is not
    /// unrolled, as a wavefront does? If the mapping insists on one, there is no room for more
    /// code. Blocks that wait for each other count all iterations.
    pub(super) fn streams(&self) -> bool {
        matches!(self.walk.first(), Some(Walk::Rolled | Walk::By(2..)))
            && !self.waits
            && self.shared.windows.is_empty()
            && self.holds_up_others(0)
    }

    /// Most iterations of a block at an edge along one axis are inside along the axis of the loop,
    /// and threads that test every cell fall far behind all others. The iteration must be short
    /// enough to be emitted twice.
    fn holds_up_others(&self, depth: usize) -> bool {
        self.machine.threads.is_some()
            && self.ticks_inside(depth).is_some_and(|ticks| {
                self.tick_cost().saturating_mul(ticks) <= 4 * self.machine.code_budget
            })
    }

    /// Is this the innermost loop, on a CPU, without loop-carried values? Then the vectors at the
    /// ends of rows are masked, and those between need no mask.
    fn carries_nothing(&self, depth: usize) -> bool {
        let Pes::Known { depth: ages } = &self.partition.walk else {
            return false;
        };
        self.machine.threads.is_none()
            && depth + 1 == self.partition.steps.len()
            && self.walk[depth] == Walk::Rolled
            && ages.iter().all(|d| *d == 0)
            && self.shared.queues.is_empty()
            && self.shared.windows.is_empty()
            && self.tick_cost() <= 4 * self.machine.code_budget
    }
}

/// The parts of a condition that depend on more than the iteration. What is the same in all blocks,
/// such as which rows of their tiles they own, costs no more than a test.
pub(super) fn of_blocks(cond: Cond, iteration: DimId) -> Cond {
    let parts = match cond {
        Cond::And(parts) => parts,
        other => vec![other],
    };
    let more = |cond: &Cond| {
        let mut dims = cond.forms().into_iter().flat_map(Form::dims);
        dims.any(|d| d != iteration)
    };
    parts.into_iter().filter(more).fold(Cond::TRUE, Cond::and)
}
