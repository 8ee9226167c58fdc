//! The terms of a kernel on a GPU: a lane is a thread, blocks go to multiprocessors as there is room.

use systola_ir::kernel::Program;
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

/// Registers beside those of values: addresses, counters, the stack. What is beyond all registers is spilled.
const OTHER_REGISTERS: f64 = 18.0;
const SECTOR: f64 = 32.0;
/// Of an instruction of Volta and later.
const INSTRUCTION_BYTES: f64 = 16.0;
/// How much of the latency of a load is left when it is used: compilers begin loads before.
const AHEAD: f64 = 0.38;
/// Cycles of a scheduler for an instruction: operands that lie in one bank of registers, and turns between warps, take some.
const CYCLES: f64 = 1.08;
/// How many of the warps that there is room for are there on the average: profiles say 0.80 to 0.89.
const THERE: f64 = 0.85;
/// Cycles that a warp waits for code in which nothing is at hand, for each that it issues in.
const FETCH: f64 = 1.0;
/// Work of different kinds overlaps, but what takes nearly as long as the longest is felt: times are joined as lengths are, in this
/// norm. What multiprocessors do is joined in one, and that with what brings them their bytes, which overlaps better, in
/// another.
const NORM: f64 = 3.5;
const NORM_OF_BYTES: f64 = 4.6;
/// The part of the bytes of memory that lie in the half of the second cache which is not the multiprocessor's own, and go through
/// both: profiles count 1.43 to 1.5 sectors for each that is asked for.
const FAR_HALF: f64 = 0.5;
/// Memory is at its best where the blocks that run at the same time touch so many bytes one after another; each time that it is half as
/// many, it takes so much longer.
const STRETCH: f64 = 8192.0;
const HALVED: f64 = 0.05;
/// Of the parts of sectors that are stored beyond the first, those that reach the second cache by themselves: profiles say 0.12 where
/// stores follow each other at once, 0.52 to 0.67 elsewhere.
const IN_PARTS: f64 = 0.3;
/// The terms of what brings bytes.
const SECOND_CACHE: &str = "second cache";
const MEMORY: &str = "memory";
/// Shared memory that every block loses to the system.
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

    // Room on a multiprocessor.
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
    // The multiprocessor that has the most to do is the last to end.
    let most = (blocks / gpu.sms.value).ceil();
    let busy = blocks / most;
    let cycles = busy * gpu.clock.value;
    let resident = resident.min(most);
    let occupancy = resident * warps / gpu.warps.value;

    // Words beyond the registers go to memory and come back, once for each turn.
    let spilled = (wanted - gpu.thread_registers.value).max(0.0);
    let turns = tally[Quantity::Branches].max(counted.blocks * warps);
    let spills = 2.0 * spilled * turns;

    let sums = tally[Quantity::FloatOps] + tally[Quantity::IntOps] + tally[Quantity::IntProducts];
    let choices = tally[Quantity::Choices] + tally[Quantity::Masks];
    let special = tally[Quantity::Divides] + tally[Quantity::Calls] / f64::from(kernel.lanes);
    let moves = tally[Quantity::Moves];
    let accesses = tally[Quantity::GlobalAccesses]
        + tally[Quantity::Loads].min(tally[Quantity::SharedWavefronts])
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
        + tally[Quantity::Barriers];

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
    // Shuffles, shared memory and the first cache share one way.
    let wavefronts = moves / gpu.shuffles.value
        + (tally[Quantity::SharedWavefronts] + tally[Quantity::GlobalWavefronts] + spills)
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
    // A sector that accesses fill one after another goes out as often.
    let in_parts = tally[Quantity::StoredSectors] * SECTOR - tally[Quantity::StoredBytes];
    term(
        SECOND_CACHE,
        l2 + FAR_HALF * dram + IN_PARTS * in_parts.max(0.0),
        "B",
        gpu.l2_bandwidth.value * (busy / gpu.sms.value).min(1.0),
        &gpu.l2_bandwidth,
    );
    let stretch = footprint.stretch(resident * gpu.sms.value);
    let halved = (STRETCH / stretch.max(SECTOR)).log2().max(0.0);
    term(
        MEMORY,
        dram,
        "B",
        gpu.dram_bandwidth.value / (1.0 + HALVED * halved),
        &gpu.dram_bandwidth,
    );

    // How long a warp alone takes.
    let touched = tally[Quantity::GlobalSectors] * SECTOR;
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
        global: AHEAD * (gpu.l1_latency.value + misses * (l2_latency - gpu.l1_latency.value)),
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
    // Blocks at the edges take longer, and keep their places as long.
    let mut mean = alone;
    for (point, share) in edges(census, n)? {
        mean += (chain(point)? - alone) * share;
    }
    let waves = (blocks / (gpu.sms.value * resident)).max(1.0);
    // Code that is not at hand is waited for, the longer the fewer warps are there to go on meanwhile.
    let executed = code.executed_text(middle(census, n)?)? * INSTRUCTION_BYTES;
    let missing = (1.0 - gpu.instruction_bytes.value / executed.max(1.0)).max(0.0);
    let fetched = 1.0 + FETCH * missing / (resident * warps);
    let begun = gpu.issue.value * cycles;
    let at_best = instructions / begun;
    let alone = mean * waves * counted.launches / gpu.clock.value;
    let used = used(resident * warps / gpu.issue.value, at_best, alone);
    let why = if fetched > CYCLES.max(1.0 / used) {
        "code"
    } else if used < 1.0 / CYCLES {
        "latency of a warp"
    } else {
        "instructions"
    };
    term(
        why,
        instructions,
        "warps",
        begun * used / (CYCLES * fetched),
        &gpu.issue,
    );
    // Blocks begin one after another on the whole device.
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
    // What tiles have beyond the edges is done for nothing.
    let inside = of_block(code, middle(census, n)?)?.utilisation();
    let beyond = (inside / tally.utilisation()).max(1.0);
    let seconds = together(&terms) * beyond + launches.seconds;
    terms.push(launches);
    Ok(KernelPrediction {
        seconds,
        terms,
        limit,
        registers: alive,
        occupancy,
        operations: tally[Quantity::Arithmetic] * f64::from(kernel.lanes),
    })
}

/// The part of its cycles that a scheduler finds an instruction to begin in: of so many warps, each has one at hand, or waits, and they
/// do not wait for each other. `at_best` is how long they would take if there was always one, `alone` how long if each warp was alone.
fn used(warps: f64, at_best: f64, alone: f64) -> f64 {
    let ready = (at_best / warps / alone).min(1.0);
    let there = warps * THERE;
    if there < 1.0 {
        return there * ready;
    }
    1.0 - (1.0 - ready).powf(there)
}

/// How long terms take that overlap.
fn together(terms: &[Term]) -> f64 {
    let brings = |t: &&Term| t.name == SECOND_CACHE || t.name == MEMORY;
    let work = terms.iter().filter(|t| !brings(t)).map(|t| t.seconds);
    let bytes = terms.iter().filter(brings).map(|t| t.seconds);
    joined(bytes.chain([joined(work, NORM)]), NORM_OF_BYTES)
}

fn joined(seconds: impl Iterator<Item = f64>, norm: f64) -> f64 {
    let sum: f64 = seconds.map(|s| s.powf(norm)).sum();
    sum.powf(1.0 / norm)
}

/// The first and the last block along each axis of the grid, in the middle along the others, and which share of the blocks each stands
/// for.
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

/// Caches of GPUs spread lines by a hash.
fn spread(bytes: f64) -> Cache {
    Cache { bytes, ways: 0.0 }
}
