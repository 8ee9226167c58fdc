//! A launch: blocks in any order, and warps that synchronise at barriers.

use std::collections::VecDeque;

use systola_ir::kernel::census::Event;

use crate::linear::Linear;

use super::Order;
use super::code::{Code, Instr};
use super::fault::{Actor, Fault, FaultKind, Origin, RunError};
use super::machine::{BlockState, Machine};
use super::memory::{Layout, fresh_shared};
use super::warp::{Blame, State, Warp};

/// A xorshift generator (Marsaglia 2003), for reproducible orders.
pub(super) struct Random(u64);

impl Random {
    /// The generator of an order.
    pub fn of(order: Order) -> Random {
        Random::new(match order {
            Order::InOrder | Order::Reversed => 0,
            Order::Shuffled(seed) => seed,
        })
    }

    fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 33) % n.max(1) as u64) as usize
    }
}

/// 0 … n − 1 in an order.
fn arranged(n: usize, order: Order, random: &mut Random) -> Vec<usize> {
    let mut list: Vec<usize> = (0..n).collect();
    match order {
        Order::InOrder => {}
        Order::Reversed => list.reverse(),
        Order::Shuffled(_) => {
            for k in (1..n).rev() {
                list.swap(k, random.below(k + 1));
            }
        }
    }
    list
}

/// The maximum number of blocks of a grid.
const MAX_BLOCKS: i128 = 1 << 24;

/// The progress of a block.
enum Progress {
    Done,
    /// It can continue, but others may go first.
    Yields,
    /// All its unfinished warps wait for flags, or for warps that do. Did any of them make
    /// progress?
    Stalled {
        moved: bool,
    },
}

struct Block {
    state: BlockState,
    warps: Vec<Warp>,
}

/// One launch of a kernel.
pub(super) struct Launch<'m, 'c, 'a> {
    pub machine: &'m mut Machine,
    pub code: &'c Code<'a>,
    /// The code of every kernel: undefined values of earlier launches are reported too.
    pub all: &'c [(Code<'a>, Vec<Layout>)],
    pub shared: &'c [Layout],
    pub order: Order,
    /// The number of resident blocks, if blocks wait for each other.
    pub resident: usize,
    pub random: &'m mut Random,
}

impl Launch<'_, '_, '_> {
    pub fn run(&mut self, args: &[i64]) -> Result<(), RunError> {
        let mut base = vec![0; self.code.kernel.vars.len()];
        for (var, value) in self.code.host_vars.iter().zip(args) {
            base[*var] = *value;
        }
        self.machine.grid = self.grid(&base)?;
        self.machine.flags.clear();
        let n_blocks = self.machine.grid.len();
        self.machine.count(&[Event::Launches], 1);
        self.machine.count(&[Event::Blocks], n_blocks as u64);
        let mut waiting = VecDeque::from(arranged(n_blocks, self.order, self.random));
        let mut resident: Vec<Block> = Vec::new();
        // Without flags it is not observable whether blocks run one after another.
        let room = if self.code.awaits {
            self.resident.max(1)
        } else {
            1
        };
        while !waiting.is_empty() || !resident.is_empty() {
            while resident.len() < room
                && let Some(number) = waiting.pop_front()
            {
                resident.push(self.block(number, &base));
            }
            let mut progress = false;
            let schedule = arranged(resident.len(), self.order, self.random);
            let mut done = vec![false; resident.len()];
            for n in schedule {
                match self.advance(&mut resident[n])? {
                    Progress::Done => {
                        done[n] = true;
                        progress = true;
                    }
                    Progress::Yields => progress = true,
                    Progress::Stalled { moved } => progress |= moved,
                }
            }
            if !progress {
                return Err(self.deadlock(&resident));
            }
            let mut is_done = done.into_iter();
            resident.retain(|_| !is_done.next().unwrap_or(false));
        }
        self.machine.launch += 1;
        Ok(())
    }

    /// The coordinates of all blocks, the last one fastest.
    fn grid(&self, base: &[i64]) -> Result<Vec<Vec<i64>>, RunError> {
        let mut grid = vec![Vec::new()];
        for range in &self.code.grid {
            let values = |list: &[Linear]| -> Option<Vec<i64>> {
                list.iter().map(|form| form.eval(base)).collect()
            };
            let lo = values(&range.lo).and_then(|list| list.into_iter().max());
            let hi = values(&range.hi).and_then(|list| list.into_iter().min());
            let (Some(lo), Some(hi)) = (lo, hi) else {
                return Err(super::too_large());
            };
            let count = (i128::from(hi) - i128::from(lo)).max(0);
            if count.saturating_mul(grid.len() as i128) > MAX_BLOCKS {
                return Err(super::too_large());
            }
            let longer = |block: &Vec<i64>| {
                let block = block.clone();
                (lo..hi).map(move |x| block.iter().copied().chain([x]).collect())
            };
            grid = grid.iter().flat_map(longer).collect();
        }
        Ok(grid)
    }

    fn block(&self, number: usize, base: &[i64]) -> Block {
        let mut point = base.to_vec();
        for (range, value) in self.code.grid.iter().zip(&self.machine.grid[number]) {
            point[range.var] = *value;
        }
        let warps = 0..self.code.kernel.warps as usize;
        Block {
            state: BlockState {
                number: number as u32,
                shared: fresh_shared(self.shared),
                epoch: 0,
                signals: 0,
                block_ids: Vec::new(),
            },
            warps: warps
                .map(|id| Warp::new(self.code, id, point.clone()))
                .collect(),
        }
    }

    /// Runs the warps of a block, each until it must wait, until all are done or none can continue.
    fn advance(&mut self, block: &mut Block) -> Result<Progress, RunError> {
        let mut moved = false;
        loop {
            for w in arranged(block.warps.len(), self.order, self.random) {
                let warp = &mut block.warps[w];
                match warp.state {
                    State::Ready | State::Awaiting { .. } | State::LookingBack { .. } => {
                        let before = (warp.pc, warp.state);
                        let result = warp.run(self.machine, self.code, &mut block.state);
                        if let Err(blame) = result {
                            return Err(self.fault(block, w, blame));
                        }
                        moved |= (warp.pc, warp.state) != before;
                    }
                    State::AtBarrier | State::Done => {}
                }
            }
            let is =
                |state: fn(&State) -> bool| block.warps.iter().filter(|w| state(&w.state)).count();
            let done = is(|s| matches!(s, State::Done));
            let awaiting = is(|s| matches!(s, State::Awaiting { .. } | State::LookingBack { .. }));
            if done == block.warps.len() {
                return Ok(Progress::Done);
            }
            if awaiting > 0 {
                return Ok(Progress::Stalled { moved });
            }
            self.synchronise(block)?;
            moved = true;
            if self.code.awaits {
                return Ok(Progress::Yields);
            }
        }
    }

    /// Some warps are at a barrier or signal, and the others will not reach it.
    fn synchronise(&mut self, block: &mut Block) -> Result<(), RunError> {
        let first = block.warps.iter().position(|w| w.state == State::AtBarrier);
        let Some(first) = first else {
            panic!("a block without a warp that could continue");
        };
        let at = block.warps[first].pc;
        let iteration = |warp: &Warp| -> Vec<i64> {
            self.code.loops[at].iter().map(|v| warp.point[*v]).collect()
        };
        let here = iteration(&block.warps[first]);
        let comes = |w: &Warp| w.state == State::AtBarrier && w.pc == at && iteration(w) == here;
        if let Some(other) = block.warps.iter().position(|w| !comes(w)) {
            let warp = &block.warps[other];
            let at = match warp.state {
                State::Done => None,
                State::Ready
                | State::AtBarrier
                | State::Awaiting { .. }
                | State::LookingBack { .. } => Some(self.code.show(warp.pc)),
            };
            let blame = Blame::warp(FaultKind::DivergentBarrier { other, at });
            return Err(self.fault(block, first, blame));
        }
        let mut clock = block.warps[first].clock.clone();
        for warp in &block.warps {
            clock.join(&warp.clock);
        }
        block.state.epoch += 1;
        if let Instr::Signal(flag) = &self.code.instrs[at] {
            let found = block.warps[first].flag_position(self.machine, self.code, flag);
            let value = found.and_then(|place| {
                if let Some((buffer, position)) = place {
                    self.machine.use_flag(buffer, position)?;
                }
                Ok(place)
            });
            match value {
                Err(blame) => return Err(self.fault(block, first, blame)),
                Ok(None) => {}
                Ok(Some((buffer, position))) => {
                    block.state.signals += 1;
                    clock.set(block.state.number, block.state.signals);
                    self.machine.globals[buffer].count_up(position);
                    self.machine.flags.signal(buffer, position, &clock);
                }
            }
            self.machine.count(self.code.events[at], 1);
        } else {
            let n_warps = block.warps.len() as u64;
            self.machine.count(self.code.events[at], n_warps);
        }
        for warp in &mut block.warps {
            warp.clock = clock.clone();
            warp.state = State::Ready;
            warp.pc += 1;
        }
        Ok(())
    }

    fn deadlock(&self, resident: &[Block]) -> RunError {
        for block in resident {
            for (w, warp) in block.warps.iter().enumerate() {
                if let State::LookingBack { buffer, position } = warp.state {
                    let layout = &self.machine.globals[buffer].layout;
                    let kind = FaultKind::NothingPublished {
                        array: layout.name.clone(),
                        index: layout.index_of(position),
                    };
                    return self.fault(block, w, Blame::warp(kind));
                }
                if let State::Awaiting {
                    buffer,
                    position,
                    at_least,
                } = warp.state
                {
                    let store = &self.machine.globals[buffer];
                    let kind = FaultKind::Deadlock {
                        array: store.layout.name.clone(),
                        index: store.layout.index_of(position),
                        value: store.flag(position),
                        at_least,
                    };
                    return self.fault(block, w, Blame::warp(kind));
                }
            }
        }
        panic!("blocks that wait for nothing cannot continue");
    }

    fn fault(&self, block: &Block, warp: usize, blame: Blame) -> RunError {
        let code = self.code;
        let warp = &block.warps[warp];
        let origin = blame.origin.and_then(|undefined| {
            let (kernel, pc) = undefined.at?;
            let code = &self.all[kernel as usize].0;
            Some(Origin {
                kernel: code.kernel.name.clone(),
                stmt: code.show(pc as usize),
                why: undefined.why,
            })
        });
        let mut vars = code.host_vars.clone();
        vars.extend(code.grid.iter().map(|range| range.var));
        vars.extend(code.warp_var);
        vars.extend(block.state.block_ids.iter().map(|(var, _)| *var));
        vars.extend(&code.loops[warp.pc]);
        let show = |var: &usize| format!("{} = {}", code.kernel.vars[*var].name, warp.point[*var]);
        let vars: Vec<String> = vars.iter().map(show).collect();
        RunError::Fault(Box::new(Fault {
            kernel: code.kernel.name.clone(),
            launch: self.machine.launch,
            by: Actor {
                block: self.machine.grid[block.state.number as usize].clone(),
                warp: warp.id,
            },
            lane: blame.lane,
            stmt: code.show(warp.pc),
            vars: vars.join(", "),
            kind: blame.kind,
            origin,
        }))
    }
}
