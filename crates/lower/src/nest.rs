//! The loops of a block over time, as a tree: which of them are unrolled, split or multiversioned.
//!
//! A nest begins as one loop for each time coordinate around a tick. From the outermost loop inwards, each becomes
//!
//! 1. its iterations one after another, where [`unroll`] says so;
//! 2. a few single iterations and the loop between them, where the tests of the cells change at its ends ([`peel`]);
//! 3. prologue, steady state and epilogue, where a wavefront fills and drains ([`partition`]);
//! 4. a loop over two versions of its body, without and with tests ([`multiversion`]), as the block itself may be.
//!
//! Decisions are made here, before there are statements: a test of a cell is one condition over the coordinates of the slot, where
//! the kernel will have a copy of it for each PE and each unrolled iteration. [Emission](crate::emit) walks the finished tree and
//! decides nothing about loops.
//!
//! Forms and conditions are over the coordinates of the slot. One more coordinate, behind the last, is the warp where
//! blocks [share warps](crate::storage::packing).

use systola_ir::DimId;
use systola_ir::array::Array;
use systola_ir::form::{Cond, Form, Overflow};
use systola_ir::target::Machine;

use crate::decide::Decide;
use crate::facts::{Facts, Range};
use crate::failure::Failure;
use crate::nest::interior::{Test, tests};
use crate::nest::unroll::Walk;
use crate::storage::Plan;
use crate::storage::partition::{Partition, Pes};
use crate::storage::shared_memory::SharedMemory;
use crate::storage::slots::{self, Slots};

pub mod interior;
pub mod multiversion;
pub mod partition;
pub mod peel;
pub mod print;
pub mod unroll;

/// What a block does, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Nest {
    Sequence(Vec<Nest>),
    /// Coordinate `k` takes the values of the range, `copies` of them in an iteration: the last begins that many values before the end
    /// of the range.
    For {
        k: usize,
        range: Range,
        copies: i128,
        body: Box<Nest>,
    },
    /// Coordinate `k` takes one value, if a condition holds.
    Once {
        k: usize,
        value: Form,
        when: Cond,
        body: Box<Nest>,
    },
    /// The same work twice: where the condition is known to hold, and where it is not.
    Versions {
        cond: Cond,
        inside: Box<Nest>,
        edge: Box<Nest>,
    },
    /// The windows of the first iterations of a loop over coordinate `k` are requested, inside of `depth` loops.
    Prime {
        depth: usize,
        k: usize,
    },
    /// The windows of inputs inside of so many loops are brought.
    Fill {
        depth: usize,
    },
    /// What other blocks make for this iteration is waited for.
    Await,
    /// Blocks that wait for this iteration are told.
    Signal,
    /// All PEs, at one time.
    Tick,
}

/// The launches of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum Which {
    All,
    /// Those for which a condition over the launch coordinates of the slot holds.
    Inner(Cond),
    /// The first and the last ones, which have tests that the others do without.
    Ends,
}

/// The nest of a block, for some launches.
pub fn nest(plan: Plan<'_>, which: &Which) -> Result<Nest, Failure> {
    let cx = Context::new(plan, which)?;
    let at = cx.outside();
    cx.versions(cx.block_inside(&at)?, &at, &|at| cx.level(0, at))
}

/// The launches that do not test at which end they are, as a condition over the launch coordinates.
pub fn inner_launches(plan: Plan<'_>) -> Result<Cond, Failure> {
    Context::new(plan, &Which::All)?.launch_inside()
}

/// What the loops of a block are made from.
struct Context<'a> {
    array: &'a Array,
    decide: &'a Decide,
    machine: &'a Machine,
    slots: &'a Slots,
    partition: &'a Partition,
    shared: &'a SharedMemory,
    /// Do blocks wait for each other?
    waits: bool,
    which: &'a Which,
    /// Comparisons that cells do.
    tests: Vec<Test>,
    /// How each of the steps is walked.
    walk: Vec<Walk>,
    /// Ranges of all coordinates.
    everywhere: Facts<'a>,
}

/// A place in the nest.
#[derive(Clone)]
struct At<'a> {
    /// The values of the coordinates: a form over those of loops, or themselves.
    slot: Vec<Form>,
    facts: Facts<'a>,
    path: Path,
}

/// Which versions lead to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    /// Blocks or iterations inside of all arrays, or such that no version was made for them.
    Inside,
    /// Blocks or iterations at an edge: they are rare, and not worth more code.
    Edge,
}

impl<'a> Context<'a> {
    fn new(plan: Plan<'a>, which: &'a Which) -> Result<Context<'a>, Overflow> {
        let Plan {
            array,
            decide,
            machine,
            storage,
        } = plan;
        let (slots, partition) = (&storage.slots, &storage.partition);
        let mut everywhere = Facts::new(decide, machine);
        for (k, range) in slots.ranges.iter().enumerate() {
            everywhere.set_range(DimId::from(k), range.clone());
        }
        if let Some(packing) = &partition.packing {
            let (warp, nth) = packed_coordinates(slots);
            everywhere.set_range(warp, packing.grid());
            everywhere.set_range(nth, Range::new(0, packing.blocks));
        }
        Ok(Context {
            array,
            decide,
            machine,
            slots,
            partition,
            shared: &storage.shared,
            waits: storage.flags.is_some(),
            which,
            tests: tests(array, slots)?,
            walk: unroll::choose(array, slots, partition, machine),
            everywhere,
        })
    }

    /// Is a window brought inside of so many loops?
    fn has_windows(&self, depth: usize) -> bool {
        self.shared.windows.iter().any(|w| w.depth == depth)
    }

    /// Before the first loop.
    fn outside(&self) -> At<'a> {
        let mut facts = Facts::new(self.decide, self.machine);
        let grid = self.partition.launches.iter().chain(&self.partition.blocks);
        for k in grid {
            facts.set_range(DimId::from(*k), self.slots.ranges[*k].clone());
        }
        if let Some(packing) = &self.partition.packing {
            facts.set_range(packed_coordinates(self.slots).0, packing.grid());
        }
        if let Which::Inner(cond) = self.which {
            facts = facts.with(cond.clone());
        }
        let slot = (0..self.slots.ranges.len()).map(|k| Form::from(DimId::from(k)));
        At {
            slot: slot.collect(),
            facts,
            path: Path::Inside,
        }
    }

    fn is_known(&self) -> bool {
        matches!(self.partition.walk, Pes::Known { .. })
    }

    /// The loops over the time coordinates from `depth` on. What is inside of the first is an iteration before which other
    /// blocks are waited for and after which they are told.
    fn level(&self, depth: usize, at: &At<'a>) -> Result<Nest, Failure> {
        let steps = &self.partition.steps;
        let mut all = Vec::new();
        let signals = self.waits && depth == steps.len().min(1);
        if signals {
            all.push(Nest::Await);
        }
        if self.has_windows(depth) {
            all.push(Nest::Fill { depth });
        }
        match steps.get(depth).copied() {
            None => all.push(Nest::Tick),
            Some(k) => {
                if self.has_windows(depth + 1) {
                    all.push(Nest::Prime { depth, k });
                }
                all.push(self.steps(depth, k, at)?);
            }
        }
        if signals {
            all.push(Nest::Signal);
        }
        Ok(sequence(all))
    }

    fn steps(&self, depth: usize, k: usize, at: &At<'a>) -> Result<Nest, Failure> {
        let unrolled = |(lo, hi): (i128, i128)| -> Result<Nest, Failure> {
            let each = (lo..hi).map(|n| self.once(depth, k, Form::from(n), Cond::TRUE, at));
            Ok(sequence(each.collect::<Result<_, _>>()?))
        };
        match (self.walk[depth], self.slots.ranges[k].constant()) {
            (Walk::Unrolled, Some(ends)) => unrolled(ends),
            (Walk::By(n), Some(ends)) if ends.1 - ends.0 <= n => unrolled(ends),
            (Walk::Unrolled | Walk::By(_) | Walk::Rolled, _) => self.rolled(depth, k, at),
        }
    }

    /// A loop, and single iterations before and behind it.
    fn rolled(&self, depth: usize, k: usize, at: &At<'a>) -> Result<Nest, Failure> {
        let range = self.iterations(depth, k, at)?;
        let (first, last) = self.peel(depth, k, &range, at)?;
        let Some((lo, hi)) = range.single().map(|(lo, hi)| (lo.clone(), hi.clone())) else {
            return self.looped(depth, k, range, at);
        };
        let mut all = Vec::new();
        for n in 0..first {
            let value = lo.plus(n);
            let when = range.holds(&value);
            all.push(self.once(depth, k, value, when, at)?);
        }
        let middle = Range::new(lo.plus(first), hi.plus(-last));
        if !at.facts.is_nonnegative(&middle.lo[0].sub(&middle.hi[0])) {
            all.push(self.looped(depth, k, middle, at)?);
        }
        for n in (1..=last).rev() {
            // A short range has had this iteration among the first.
            let value = hi.plus(-n);
            let when = Range::new(lo.plus(first), hi.clone()).holds(&value);
            all.push(self.once(depth, k, value, when, at)?);
        }
        Ok(sequence(all))
    }

    /// One iteration of a loop, if it is there at all.
    fn once(
        &self,
        depth: usize,
        k: usize,
        value: Form,
        when: Cond,
        at: &At<'a>,
    ) -> Result<Nest, Failure> {
        let when = at.facts.simplify(&when);
        let mut inner = at.clone();
        inner.slot[k] = value.clone();
        match &when {
            Cond::Const(true) => {}
            Cond::Const(false) => return Ok(Nest::Sequence(Vec::new())),
            cond => inner.facts = at.facts.with(cond.clone()),
        }
        Ok(Nest::Once {
            k,
            value,
            when,
            body: Box::new(self.level(depth + 1, &inner)?),
        })
    }

    /// A loop, in parts where a wavefront fills and drains.
    fn looped(&self, depth: usize, k: usize, range: Range, at: &At<'a>) -> Result<Nest, Failure> {
        if let Some(steady) = self.steady(depth, k, &range, at)? {
            return self.in_parts(depth, k, &range, &steady, at);
        }
        let copies = match at.path {
            Path::Edge => 1,
            Path::Inside => self.copies(depth),
        };
        self.unrolled_by(k, range, copies, at, &|at| self.iteration(depth, k, at))
    }

    /// An iteration, as versions where that pays.
    fn iteration(&self, depth: usize, k: usize, at: &At<'a>) -> Result<Nest, Failure> {
        let inside = self.iteration_inside(depth, k, at)?;
        self.versions(inside, at, &|at| self.level(depth + 1, at))
    }

    /// A loop over the values of a range, where more is known inside of it.
    fn for_each(
        &self,
        k: usize,
        range: Range,
        copies: i128,
        known: Range,
        at: &At<'a>,
        body: &Body<'_, 'a>,
    ) -> Result<Nest, Failure> {
        let mut inner = at.clone();
        inner.slot[k] = Form::from(DimId::from(k));
        inner.facts.set_range(DimId::from(k), known);
        Ok(Nest::For {
            k,
            range,
            copies,
            body: Box::new(body(&inner)?),
        })
    }

    /// The iterations of a loop. At an edge tiles are cut off, and a block has no point in the others; blocks that wait for each
    /// other count all iterations.
    fn iterations(&self, depth: usize, k: usize, at: &At<'a>) -> Result<Range, Overflow> {
        let all = &self.slots.ranges[k];
        let cut = depth == 0 && at.path == Path::Edge && self.streams();
        let own = || slots::range(self.array, self.decide, k, &self.partition.blocks).ok();
        let range = if cut && self.partition.packing.is_none() {
            own()
        } else {
            None
        };
        range.as_ref().unwrap_or(all).map(&|f| at.value(f))
    }
}

/// What is made inside of a loop or a version.
type Body<'f, 'a> = dyn Fn(&At<'a>) -> Result<Nest, Failure> + 'f;

impl At<'_> {
    /// A form over the slot, at this place.
    fn value(&self, form: &Form) -> Result<Form, Overflow> {
        form.substitute(&|d| self.slot.get(d.index()).cloned())
    }

    fn at_edge(&self) -> Self {
        At {
            path: Path::Edge,
            ..self.clone()
        }
    }
}

/// The coordinates of the warp and of the block in it, where blocks share warps.
fn packed_coordinates(slots: &Slots) -> (DimId, DimId) {
    let n = slots.ranges.len();
    (DimId::from(n), DimId::from(n + 1))
}

fn sequence(mut parts: Vec<Nest>) -> Nest {
    match parts.len() {
        1 => parts.remove(0),
        _ => Nest::Sequence(parts),
    }
}
