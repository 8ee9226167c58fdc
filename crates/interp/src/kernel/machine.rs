//! The state shared by all blocks of a launch: global memory, flags, counters.

use std::collections::HashMap;

use systola_ir::kernel::Memory;
use systola_ir::kernel::census::{Counts, Event, touched};

use super::Options;
use super::fault::{Actor, FaultKind};
use super::memory::{Kind, Store};
use super::race::{Clock, Mark};
use super::warp::{Blame, Chains, Scratch, Touch};

/// Global memory and the state of the run.
pub(super) struct Machine {
    pub globals: Vec<Store>,
    pub flags: Flags,
    pub chains: Chains,
    /// Counts of each kernel.
    pub counts: Vec<Counts>,
    /// The current kernel.
    pub kernel: usize,
    pub launch: u32,
    /// Coordinates of the blocks of this launch.
    pub grid: Vec<Vec<i64>>,
    pub scratch: Scratch,
    pub step_limit: u64,
    steps: u64,
    stamp: u64,
}

/// The state shared by the warps of a block.
pub(super) struct BlockState {
    /// The position in the grid, the last coordinate fastest.
    pub number: u32,
    pub shared: Vec<Store>,
    /// Barriers passed.
    pub epoch: u32,
    /// Signals given.
    pub signals: u32,
    /// The variables bound to dynamic block ids, with their values.
    pub block_ids: Vec<(usize, i64)>,
}

impl Machine {
    pub fn new(globals: Vec<Store>, n_kernels: usize, options: &Options) -> Machine {
        Machine {
            globals,
            flags: Flags::default(),
            counts: vec![Counts::default(); n_kernels],
            kernel: 0,
            launch: 0,
            grid: Vec::new(),
            scratch: Scratch::default(),
            step_limit: options.step_limit,
            chains: Chains::new(options.order),
            steps: 0,
            stamp: 0,
        }
    }

    #[inline]
    pub fn count(&mut self, events: &[Event], times: u64) {
        for event in events {
            self.counts[self.kernel][*event] += times;
        }
    }

    #[inline]
    pub fn count_step(&mut self) -> Result<(), Blame> {
        self.steps += 1;
        if self.steps > self.step_limit {
            let limit = self.step_limit;
            return Err(Blame::warp(FaultKind::StepLimit { limit }));
        }
        Ok(())
    }

    /// A unique number of one execution of a statement.
    pub fn next_stamp(&mut self) -> u64 {
        self.stamp += 1;
        self.stamp
    }

    pub fn actor(&self, mark: &Mark) -> Actor {
        Actor {
            block: self.grid[mark.block as usize].clone(),
            warp: mark.warp as usize,
        }
    }

    pub fn count_access(
        &mut self,
        block: &BlockState,
        memory: Memory,
        width: usize,
        touches: &[Touch],
        seen: &mut Vec<u64>,
    ) {
        let store = match memory {
            Memory::Global(id) => &self.globals[id.index()],
            Memory::Shared(id) => &block.shared[id.index()],
        };
        let bytes = store.layout.bytes();
        let lanes = touches.iter().map(|(lane, p)| (*lane, *p as u64 * bytes));
        for (event, n) in touched(memory, lanes, bytes * width as u64, seen) {
            self.count(&[event], n);
        }
    }

    /// A plain access must not touch a flag of this launch.
    #[inline]
    pub fn check_flag(&self, memory: Memory, position: usize, lane: usize) -> Result<(), Blame> {
        let Memory::Global(id) = memory else {
            return Ok(());
        };
        let buffer = id.index();
        if self.globals[buffer].kind == Kind::Flags && self.flags.knows(buffer, position) {
            return Err(Blame::lane(lane, self.flag_touched(buffer, position)));
        }
        Ok(())
    }

    fn flag_touched(&self, buffer: usize, position: usize) -> FaultKind {
        let layout = &self.globals[buffer].layout;
        FaultKind::FlagTouched {
            array: layout.name.clone(),
            index: layout.index_of(position),
        }
    }

    /// The value of an element that is a flag from now on, until the launch ends.
    pub fn use_flag(&mut self, buffer: usize, position: usize) -> Result<i64, Blame> {
        if self.globals[buffer].is_touched_in(position, self.launch) {
            return Err(Blame::warp(self.flag_touched(buffer, position)));
        }
        let value = self.globals[buffer].flag(position);
        self.flags.begin(buffer, position, value);
        Ok(value)
    }
}

/// The knowledge gained by waiting for a flag, for each flag of the launch.
#[derive(Default)]
pub(super) struct Flags(HashMap<(usize, usize), History>);

struct History {
    /// The value when the launch first used it.
    base: i64,
    /// The clock of each increment of the flag.
    known: Vec<Clock>,
}

impl Flags {
    pub fn clear(&mut self) {
        self.0.clear();
    }

    fn knows(&self, buffer: usize, position: usize) -> bool {
        self.0.contains_key(&(buffer, position))
    }

    fn begin(&mut self, buffer: usize, position: usize, value: i64) {
        self.0.entry((buffer, position)).or_insert(History {
            base: value,
            known: Vec::new(),
        });
    }

    /// Records an increment of the flag with the clock of its block.
    pub fn signal(&mut self, buffer: usize, position: usize, clock: &Clock) {
        if let Some(history) = self.0.get_mut(&(buffer, position)) {
            let mut known = history.known.last().cloned().unwrap_or_default();
            known.join(clock);
            history.known.push(known);
        }
    }

    /// The clock of a block that saw the flag reach `at_least`. The flag may be larger by now, but
    /// the waiting block need not see that.
    pub fn acquire(&self, buffer: usize, position: usize, at_least: i64) -> Clock {
        let history = self.0.get(&(buffer, position));
        let last = history.and_then(|history| {
            let signals = usize::try_from(at_least.checked_sub(history.base)?).ok()?;
            history.known.get(signals.checked_sub(1)?)
        });
        last.cloned().unwrap_or_default()
    }
}
