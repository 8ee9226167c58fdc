//! The terms of a kernel on a GPU. A lane is a thread, and blocks are assigned to multiprocessors
//! as these have room.

use systola_ir::kernel::census::{self, Event};
use systola_ir::kernel::constant::constant_buffers;
use systola_ir::kernel::pressure::pressure;
use systola_ir::kernel::{Kernel, Stmt, VarKind};
use systola_ir::{BufferId, DimId};

use super::chain::{self, Latencies, Start};
use super::code::{Code, Layout};
use super::count::{bounds, of_block};
use super::counted::CountedKernel;
use super::device::{Gpu, Number};
use super::footprint::Cache;
use super::predict::{Error, KernelPrediction, Term, longest};
use super::tally::{Quantity, Tally};

/// Registers for addresses, counters and the stack, besides those of values. Values beyond the
/// available registers are spilled.
const OTHER_REGISTERS: f64 = 18.0;
const SECTOR: f64 = census::SECTOR as f64;
/// Bytes of an instruction on Volta and later.
const INSTRUCTION_BYTES: f64 = 16.0;
/// The share of the latency of a load that is not hidden: compilers issue loads before their uses.
const EXPOSED_LATENCY: f64 = 0.38;
/// Cycles of a scheduler per instruction: register bank conflicts and switches between warps take
/// the part above 1.
const ISSUE_CYCLES: f64 = 1.08;
/// Achieved occupancy: the mean share of the resident warps that are active. Profiles say 0.80 to
/// 0.89.
const ACHIEVED_OCCUPANCY: f64 = 0.85;
/// Cycles that a single warp waits for code outside the instruction cache, per issue cycle.
const FETCH: f64 = 1.0;
/// Work of different kinds overlaps, but a term nearly as long as the longest adds to the time:
/// terms are combined by this p-norm. The terms of the multiprocessors are combined by one norm,
/// and the result with the terms of the memory, which overlap better, by another.
const NORM: f64 = 3.5;
const NORM_OF_BYTES: f64 = 4.6;
/// The share of DRAM bytes that lie in the half of L2 far from the multiprocessor and go through
/// both halves: profiles count 1.43 to 1.5 sectors per requested sector.
const FAR_HALF: f64 = 0.5;
/// DRAM reaches its peak where concurrent blocks touch this many contiguous bytes; each halving
/// below it costs this share of additional time.
const STRETCH: f64 = 8192.0;
const SLOWDOWN: f64 = 0.05;
/// Of the partial stores to a sector beyond the first, the share that reaches L2 separately:
/// profiles say 0.12 where stores follow each other at once, 0.52 to 0.67 elsewhere.
const PARTIAL_SECTORS: f64 = 0.3;
/// The names of the terms of the memory.
const L2_TERM: &str = "L2";
const DRAM_TERM: &str = "memory";
/// Shared memory reserved by the system in every block.
const BLOCK_SHARED: f64 = 1024.0;

pub fn kernel(counted: &CountedKernel<'_>, gpu: &Gpu) -> Result<KernelPrediction, Error> {
    let tally = &counted.census.tally;
    let registers = pressure(counted.code.kernel);
    let residency = Residency::new(counted, gpu);
    let instructions = Instructions::count(counted, registers, gpu);
    let bytes = Bytes::count(counted, &residency, gpu)?;
    let warp_cycles = warp_cycles(counted, bytes.exposed_latency(tally, gpu), gpu)?;
    let alone = warp_cycles * residency.waves * counted.census.launches / gpu.clock.value;
    let fetch = fetch_slowdown(counted, &residency, gpu)?;

    let mut terms = Vec::from(instructions.terms(residency.cycles, gpu));
    terms.extend(bytes.terms(tally, &residency, gpu));
    terms.push(residency.issue(instructions.all, alone, fetch, gpu));
    // Blocks are launched one after another on the whole device.
    terms.push(counted.blocks(gpu.dispatch.value, &gpu.dispatch));

    let (limit, _) = longest(&terms);
    let launches = counted.launches(&gpu.launch);
    // The parts of tiles beyond the edges are wasted work.
    let inside = of_block(counted.code, counted.middle()?)?.utilisation();
    let beyond = (inside / tally.utilisation()).max(1.0);
    let [looks, published] = look_backs(counted, gpu);
    let seconds =
        overlapped(&terms) * beyond + looks.seconds + published.seconds + launches.seconds;
    terms.extend([looks, published, launches]);
    Ok(KernelPrediction {
        seconds,
        terms,
        limit,
        registers,
        occupancy: residency.warps / gpu.warps.value,
        operations: counted.operations(),
    })
}

/// How the blocks of a launch fill the multiprocessors.
struct Residency {
    /// Bytes of shared memory per block.
    shared: f64,
    /// Resident blocks and warps of a multiprocessor.
    blocks: f64,
    warps: f64,
    /// Sets of resident blocks that run one after another.
    waves: f64,
    /// The mean number of busy multiprocessors, and their cycles per second.
    busy: f64,
    cycles: f64,
}

impl Residency {
    fn new(counted: &CountedKernel<'_>, gpu: &Gpu) -> Residency {
        let kernel = counted.code.kernel;
        let warps = f64::from(kernel.warps);
        let shared: f64 = counted.code.shared.iter().map(Layout::total_bytes).sum();
        let hint = kernel.hints.resident_blocks.first();
        let room = [
            (gpu.warps.value / warps).floor(),
            hint.map_or(f64::MAX, |n| f64::from(*n)),
            (gpu.shared_bytes.value / (shared + BLOCK_SHARED)).floor(),
            gpu.blocks.value,
        ];
        let room = room.into_iter().fold(f64::MAX, f64::min).max(1.0);
        let blocks = counted.blocks_per_launch();
        // The multiprocessor with the most blocks ends last.
        let most = (blocks / gpu.sms.value).ceil();
        let busy = blocks / most;
        let resident = room.min(most);
        Residency {
            shared,
            blocks: resident,
            warps: resident * warps,
            waves: (blocks / (gpu.sms.value * resident)).max(1.0),
            busy,
            cycles: busy * gpu.clock.value,
        }
    }

    /// The term of the schedulers. `alone`: the seconds of each warp alone; `fetch`: the factor by
    /// which waiting for code slows them.
    fn issue(&self, instructions: f64, alone: f64, fetch: f64, gpu: &Gpu) -> Term {
        let rate = gpu.issue.value * self.cycles;
        let used = used(self.warps / gpu.issue.value, instructions / rate, alone);
        let name = if fetch > ISSUE_CYCLES.max(1.0 / used) {
            "code"
        } else if used < 1.0 / ISSUE_CYCLES {
            "latency of a warp"
        } else {
            "instructions"
        };
        let rate = rate * used / (ISSUE_CYCLES * fetch);
        Term::new(name, instructions, "warps", rate, &gpu.issue)
    }
}

/// Warp instructions of all launches.
struct Instructions {
    sums: f64,
    doubles: f64,
    choices: f64,
    /// Divisions and functions.
    special: f64,
    /// Wavefronts of the path that shuffles, shared memory and L1 share.
    wavefronts: f64,
    all: f64,
}

impl Instructions {
    fn count(counted: &CountedKernel<'_>, registers: u32, gpu: &Gpu) -> Instructions {
        let (kernel, tally) = (counted.code.kernel, &counted.census.tally);
        // Spilled words are stored and loaded once per iteration.
        let wanted = f64::from(registers) + OTHER_REGISTERS;
        let spilled = (wanted - gpu.thread_registers.value).max(0.0);
        let warps = counted.census.blocks * f64::from(kernel.warps);
        let spills = 2.0 * spilled * tally[Quantity::Branches].max(warps);

        let sums =
            tally[Quantity::FloatOps] + tally[Quantity::IntOps] + tally[Quantity::IntProducts];
        let choices = tally[Quantity::Choices] + tally[Quantity::Masks];
        let special = tally[Quantity::Divides] + tally[Quantity::Calls] / f64::from(kernel.lanes);
        let moves = tally[Quantity::Moves];
        let accesses = tally[Quantity::GlobalAccesses]
            + tally[Event::Loads].min(tally[Event::SharedWavefronts])
            + spills;
        let wavefronts =
            tally[Event::SharedWavefronts] + tally[Quantity::GlobalWavefronts] + spills;
        Instructions {
            sums,
            doubles: tally[Quantity::DoubleOps],
            choices,
            special,
            wavefronts: moves / gpu.shuffles.value + wavefronts / gpu.wavefronts.value,
            // A loop counts, compares and jumps; special functions are some ten instructions each.
            all: sums
                + tally[Quantity::DoubleOps]
                + choices
                + 10.0 * special
                + moves
                + accesses
                + tally[Quantity::UniformOps]
                + 3.0 * tally[Quantity::Branches]
                + tally[Event::Barriers],
        }
    }

    fn terms(&self, cycles: f64, gpu: &Gpu) -> [Term; 5] {
        let term = |name, amount, number: &Number| {
            Term::new(name, amount, "warps", number.value * cycles, number)
        };
        [
            term("multiply-adds", self.sums, &gpu.fma),
            term("multiply-adds of f64", self.doubles, &gpu.double),
            term("choices", self.choices, &gpu.alu),
            Term::new(
                "divisions and functions",
                self.special,
                "warps",
                gpu.special.value * cycles / 4.0,
                &gpu.special,
            ),
            Term::new(
                "wavefronts",
                self.wavefronts,
                "wavefronts",
                cycles,
                &gpu.wavefronts,
            ),
        ]
    }
}

/// Bytes of all launches that are exchanged with L2 and DRAM.
struct Bytes {
    l2: f64,
    dram: f64,
    /// Contiguous bytes of DRAM that concurrent blocks touch.
    stretch: f64,
}

impl Bytes {
    fn count(
        counted: &CountedKernel<'_>,
        residency: &Residency,
        gpu: &Gpu,
    ) -> Result<Bytes, Error> {
        let census = counted.census;
        let l1 = (gpu.l1_bytes.value - residency.shared * residency.blocks).max(16384.0);
        let mut footprint = counted.footprint(SECTOR)?;
        let block = footprint.of_block(spread(l1 / residency.blocks));
        let launch = footprint.of_launch(spread(gpu.l2_bytes.value));
        Ok(Bytes {
            l2: block.bytes() * census.blocks,
            dram: launch.bytes() * census.launches,
            stretch: footprint.stretch(residency.blocks * gpu.sms.value),
        })
    }

    fn terms(&self, tally: &Tally, residency: &Residency, gpu: &Gpu) -> [Term; 2] {
        // A sector filled by several accesses is written as often.
        let in_parts = tally[Quantity::StoredSectors] * SECTOR - tally[Quantity::StoredBytes];
        let l2 = self.l2 + FAR_HALF * self.dram + PARTIAL_SECTORS * in_parts.max(0.0);
        let l2_rate = gpu.l2_bandwidth.value * (residency.busy / gpu.sms.value).min(1.0);
        let halved = (STRETCH / self.stretch.max(SECTOR)).log2().max(0.0);
        let dram_rate = gpu.dram_bandwidth.value / (1.0 + SLOWDOWN * halved);
        [
            Term::new(L2_TERM, l2, "B", l2_rate, &gpu.l2_bandwidth),
            Term::new(DRAM_TERM, self.dram, "B", dram_rate, &gpu.dram_bandwidth),
        ]
    }

    /// The part of the mean latency of a load that is not hidden.
    fn exposed_latency(&self, tally: &Tally, gpu: &Gpu) -> f64 {
        let part = |some: f64, all: f64| {
            if all > 0.0 {
                (some / all).min(1.0)
            } else {
                0.0
            }
        };
        let misses = part(self.l2, tally[Event::GlobalSectors] * SECTOR);
        let far = part(self.dram, self.l2);
        let (l1, l2) = (gpu.l1_latency.value, gpu.l2_latency.value);
        let l2 = l2 + far * (gpu.dram_latency.value - l2);
        EXPOSED_LATENCY * (l1 + misses * (l2 - l1))
    }
}

/// The terms of warps that look back, and of what they publish and read.
fn look_backs(counted: &CountedKernel<'_>, gpu: &Gpu) -> [Term; 2] {
    let kernel = counted.code.kernel;
    let (warps, published) = look_backs_of_block(kernel, &kernel.body);
    let blocks = counted.census.blocks;
    let term = |name, each: f64, unit, number: &Number| {
        Term::new(name, each * blocks, unit, 1.0 / number.value, number)
    };
    [
        term("look-backs", warps, "warps", &gpu.look_back),
        term("publications", published, "parts", &gpu.publication),
    ]
}

/// The warps of a block that look back, and the number of chains along which they do.
fn look_backs_of_block(kernel: &Kernel, stmts: &[Stmt]) -> (f64, f64) {
    let mut all = (0.0, 0.0);
    for stmt in stmts {
        let own = if let Stmt::LookBack(look) = stmt {
            let first = &look.chains[0].at;
            let by_lane = !first.forms().iter().all(|form| kernel.is_uniform(form));
            let lanes = if by_lane { kernel.lanes } else { 1 };
            let warp = |d: &DimId| matches!(kernel.vars[d.index()].kind, VarKind::Warp);
            let forms = first.when.forms();
            let one = forms.iter().any(|form| form.dims().iter().any(warp));
            let warps = if one { 1.0 } else { f64::from(kernel.warps) };
            (warps, warps * (look.chains.len() as f64) * f64::from(lanes))
        } else {
            // Of two branches, a block takes one.
            let bodies = stmt.bodies().into_iter();
            let bodies = bodies.map(|body| look_backs_of_block(kernel, body));
            bodies.fold((0.0, 0.0), |a: (f64, f64), b| (a.0.max(b.0), a.1.max(b.1)))
        };
        all = (all.0 + own.0, all.1 + own.1);
    }
    all
}

/// The mean cycles of a warp alone. `global`: the latency of a load from global memory.
fn warp_cycles(counted: &CountedKernel<'_>, global: f64, gpu: &Gpu) -> Result<f64, Error> {
    let latencies = Latencies {
        sum: gpu.fma_latency.value,
        choice: gpu.fma_latency.value,
        moved: gpu.shuffle_latency.value,
        global,
        shared: gpu.shared_latency.value,
        divide: 40.0,
        call: 60.0,
        barrier: gpu.barrier.value,
        flag: gpu.flag.value,
    };
    let constants = constant_buffers(counted.program).into_iter();
    let constants: Vec<BufferId> = constants.map(|c| c.0).collect();
    let (kernel, sizes) = (counted.code.kernel, counted.sizes);
    let start = Start::InOrder;
    let cycles = |point| chain::cycles(kernel, sizes, point, &constants, &latencies, start);
    let middle = counted.middle()?;
    let edges = edges(counted.code, &middle)?;
    let inside = cycles(middle)?;
    // Blocks at the edges take longer and stay resident as long.
    let mut mean = inside;
    for (point, share) in edges {
        mean += (cycles(point)? - inside) * share;
    }
    Ok(mean)
}

/// Warps wait for code outside the instruction cache, the longer the fewer other warps are ready.
fn fetch_slowdown(
    counted: &CountedKernel<'_>,
    residency: &Residency,
    gpu: &Gpu,
) -> Result<f64, Error> {
    let executed = counted.code.executed_text(counted.middle()?)? * INSTRUCTION_BYTES;
    let missing = (1.0 - gpu.instruction_bytes.value / executed.max(1.0)).max(0.0);
    Ok(1.0 + FETCH * missing / residency.warps)
}

/// The share of cycles in which a scheduler issues an instruction: each of `warps` warps is ready
/// or waits, independently of the others. `at_best` is the time if a warp is always ready, `alone`
/// the time of each warp alone.
fn used(warps: f64, at_best: f64, alone: f64) -> f64 {
    let ready = (at_best / warps / alone).min(1.0);
    let active = warps * ACHIEVED_OCCUPANCY;
    if active < 1.0 {
        return active * ready;
    }
    1.0 - (1.0 - ready).powf(active)
}

/// The time of overlapping terms.
fn overlapped(terms: &[Term]) -> f64 {
    let brings = |t: &&Term| t.name == L2_TERM || t.name == DRAM_TERM;
    let work = terms.iter().filter(|t| !brings(t)).map(|t| t.seconds);
    let bytes = terms.iter().filter(brings).map(|t| t.seconds);
    p_norm(bytes.chain([p_norm(work, NORM)]), NORM_OF_BYTES)
}

fn p_norm(seconds: impl Iterator<Item = f64>, norm: f64) -> f64 {
    let sum: f64 = seconds.map(|s| s.powf(norm)).sum();
    sum.powf(1.0 / norm)
}

/// The first and the last block along each axis of the grid, in the middle of the others, with the
/// share of the blocks that each stands for.
fn edges(code: &Code<'_>, middle: &[i64]) -> Result<Vec<(Vec<i64>, f64)>, Error> {
    let mut list = Vec::new();
    for range in &code.grid {
        let (lo, hi) = bounds(&range.lo, &range.hi, middle)?;
        if hi - lo >= 3 {
            for at in [lo, hi - 1] {
                let mut edge = middle.to_vec();
                edge[range.var] = at;
                list.push((edge, 1.0 / (hi - lo) as f64));
            }
        }
    }
    Ok(list)
}

/// Caches of GPUs select the set of a line by a hash.
fn spread(bytes: f64) -> Cache {
    Cache { bytes, ways: 0.0 }
}
