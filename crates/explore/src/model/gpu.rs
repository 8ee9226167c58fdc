//! The terms of a kernel on a GPU: a lane is a thread, blocks are assigned to multiprocessors as
//! they have room.

use systola_ir::kernel::Program;
use systola_ir::kernel::census::{self, Event};
use systola_ir::kernel::constant::constant_buffers;
use systola_ir::kernel::pressure::pressure;
use systola_ir::{BufferId, KernelId};

use super::chain::{self, Latencies, Start};
use super::count::{Census, bounds, of_block};
use super::cpu::{arguments, middle};
use super::device::Gpu;
use super::footprint::{Cache, Footprint};
use super::predict::{Error, KernelPrediction, Term, longest};
use super::tally::Quantity;

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

pub fn kernel(
    program: &Program,
    sizes: &[i128],
    census: &Census<'_>,
    n: usize,
    gpu: &Gpu,
) -> Result<KernelPrediction, Error> {
    let (code, counted) = (&census.codes[n], &census.kernels[n]);
    let tally = &counted.tally;
    let kernel = code.kernel;
    let warps = f64::from(kernel.warps);

    // Resident blocks of a multiprocessor.
    let alive = pressure(kernel);
    let wanted = f64::from(alive) + OTHER_REGISTERS;
    let own: f64 = code.shared.iter().map(|array| array.total_bytes()).sum();
    let room = [
        (gpu.warps.value / warps).floor(),
        kernel
            .hints
            .resident_blocks
            .first()
            .map_or(f64::MAX, |n| f64::from(*n)),
        (gpu.shared_bytes.value / (own + BLOCK_SHARED)).floor(),
        gpu.blocks.value,
    ];
    let resident = room.into_iter().fold(f64::MAX, f64::min).max(1.0);
    let blocks = counted.blocks / counted.launches;
    // The multiprocessor with the most blocks ends last.
    let most = (blocks / gpu.sms.value).ceil();
    let busy = blocks / most;
    let cycles = busy * gpu.clock.value;
    let resident = resident.min(most);
    let occupancy = resident * warps / gpu.warps.value;

    // Spilled words are stored and loaded once per iteration.
    let spilled = (wanted - gpu.thread_registers.value).max(0.0);
    let iterations = tally[Quantity::Branches].max(counted.blocks * warps);
    let spills = 2.0 * spilled * iterations;

    let sums = tally[Quantity::FloatOps] + tally[Quantity::IntOps] + tally[Quantity::IntProducts];
    let choices = tally[Quantity::Choices] + tally[Quantity::Masks];
    let special = tally[Quantity::Divides] + tally[Quantity::Calls] / f64::from(kernel.lanes);
    let moves = tally[Quantity::Moves];
    let accesses = tally[Quantity::GlobalAccesses]
        + tally[Event::Loads].min(tally[Event::SharedWavefronts])
        + spills;
    // A loop counts, compares and jumps; special functions are some ten instructions each.
    let instructions = sums
        + tally[Quantity::DoubleOps]
        + choices
        + 10.0 * special
        + moves
        + accesses
        + tally[Quantity::UniformOps]
        + 3.0 * tally[Quantity::Branches]
        + tally[Event::Barriers];

    let mut terms = Vec::new();
    let mut term = |name, amount, unit, rate, number| {
        terms.push(Term::new(name, amount, unit, rate, number));
    };
    term(
        "multiply-adds",
        sums,
        "warps",
        gpu.fma.value * cycles,
        &gpu.fma,
    );
    term(
        "multiply-adds of f64",
        tally[Quantity::DoubleOps],
        "warps",
        gpu.double.value * cycles,
        &gpu.double,
    );
    term(
        "choices",
        choices,
        "warps",
        gpu.alu.value * cycles,
        &gpu.alu,
    );
    term(
        "divisions and functions",
        special,
        "warps",
        gpu.special.value * cycles / 4.0,
        &gpu.special,
    );
    // Shuffles, shared memory and L1 share one path.
    let wavefronts = moves / gpu.shuffles.value
        + (tally[Event::SharedWavefronts] + tally[Quantity::GlobalWavefronts] + spills)
            / gpu.wavefronts.value;
    term(
        "wavefronts",
        wavefronts,
        "wavefronts",
        cycles,
        &gpu.wavefronts,
    );

    let cache = (gpu.l1_bytes.value - own * resident).max(16384.0);
    let mut footprint = Footprint::new(code, arguments(counted), SECTOR)?;
    let block = footprint.of_block(spread(cache / resident));
    let l2 = block.bytes() * counted.blocks;
    let memory = footprint.of_launch(spread(gpu.l2_bytes.value));
    let dram = memory.bytes() * counted.launches;
    // A sector filled by several accesses is written as often.
    let in_parts = tally[Quantity::StoredSectors] * SECTOR - tally[Quantity::StoredBytes];
    term(
        L2_TERM,
        l2 + FAR_HALF * dram + PARTIAL_SECTORS * in_parts.max(0.0),
        "B",
        gpu.l2_bandwidth.value * (busy / gpu.sms.value).min(1.0),
        &gpu.l2_bandwidth,
    );
    let stretch = footprint.stretch(resident * gpu.sms.value);
    let halved = (STRETCH / stretch.max(SECTOR)).log2().max(0.0);
    term(
        DRAM_TERM,
        dram,
        "B",
        gpu.dram_bandwidth.value / (1.0 + SLOWDOWN * halved),
        &gpu.dram_bandwidth,
    );

    // The time of a warp alone.
    let touched = tally[Event::GlobalSectors] * SECTOR;
    let part = |some: f64, all: f64| {
        if all > 0.0 {
            (some / all).min(1.0)
        } else {
            0.0
        }
    };
    let (misses, far) = (part(l2, touched), part(dram, l2));
    let l2_latency = gpu.l2_latency.value + far * (gpu.dram_latency.value - gpu.l2_latency.value);
    let latencies = Latencies {
        sum: gpu.fma_latency.value,
        choice: gpu.fma_latency.value,
        moved: gpu.shuffle_latency.value,
        global: EXPOSED_LATENCY
            * (gpu.l1_latency.value + misses * (l2_latency - gpu.l1_latency.value)),
        shared: gpu.shared_latency.value,
        divide: 40.0,
        call: 60.0,
        barrier: gpu.barrier.value,
        flag: gpu.flag.value,
    };
    let constants: Vec<BufferId> = constant_buffers(program).into_iter().map(|c| c.0).collect();
    let chain = |point: Vec<i64>| {
        chain::cycles(
            program,
            KernelId::from(n),
            sizes,
            point,
            &constants,
            &latencies,
            Start::InOrder,
        )
    };
    let alone = chain(middle(census, n)?)?;
    // Blocks at the edges take longer and stay resident as long.
    let mut mean = alone;
    for (point, share) in edges(census, n)? {
        mean += (chain(point)? - alone) * share;
    }
    let waves = (blocks / (gpu.sms.value * resident)).max(1.0);
    // Warps wait for code outside the instruction cache, the longer the fewer other warps are
    // ready.
    let executed = code.executed_text(middle(census, n)?)? * INSTRUCTION_BYTES;
    let missing = (1.0 - gpu.instruction_bytes.value / executed.max(1.0)).max(0.0);
    let fetched = 1.0 + FETCH * missing / (resident * warps);
    let begun = gpu.issue.value * cycles;
    let at_best = instructions / begun;
    let alone = mean * waves * counted.launches / gpu.clock.value;
    let used = used(resident * warps / gpu.issue.value, at_best, alone);
    let why = if fetched > ISSUE_CYCLES.max(1.0 / used) {
        "code"
    } else if used < 1.0 / ISSUE_CYCLES {
        "latency of a warp"
    } else {
        "instructions"
    };
    term(
        why,
        instructions,
        "warps",
        begun * used / (ISSUE_CYCLES * fetched),
        &gpu.issue,
    );
    // Blocks are launched one after another on the whole device.
    term(
        "blocks",
        counted.blocks,
        "blocks",
        gpu.dispatch.value,
        &gpu.dispatch,
    );

    let (limit, _) = longest(&terms);
    let launches = Term::new(
        "launches",
        counted.launches,
        "launches",
        1.0 / gpu.launch.value,
        &gpu.launch,
    );
    // The parts of tiles beyond the edges are wasted work.
    let inside = of_block(code, middle(census, n)?)?.utilisation();
    let beyond = (inside / tally.utilisation()).max(1.0);
    let seconds = overlapped(&terms) * beyond + launches.seconds;
    terms.push(launches);
    Ok(KernelPrediction {
        seconds,
        terms,
        limit,
        registers: alive,
        occupancy,
        operations: tally[Event::Arithmetic] * f64::from(kernel.lanes),
    })
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
fn edges(census: &Census<'_>, n: usize) -> Result<Vec<(Vec<i64>, f64)>, Error> {
    let point = middle(census, n)?;
    let mut list = Vec::new();
    for range in &census.codes[n].grid {
        let (lo, hi) = bounds(&range.lo, &range.hi, &point)?;
        if hi - lo >= 3 {
            for at in [lo, hi - 1] {
                let mut edge = point.clone();
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
