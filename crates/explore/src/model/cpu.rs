//! The terms of a kernel on a CPU: a warp is a vector, threads take blocks from a queue.

use systola_ir::Cond;
use systola_ir::kernel::Stmt;
use systola_ir::kernel::visit::{any, walk};

use super::alive::{Alive, alive};
use super::chain::{self, Latencies, Start};
use super::counted::CountedKernel;
use super::device::{Cpu, Number};
use super::footprint::{Cache, Traffic};
use super::predict::{Error, KernelPrediction, Term, longest};
use super::tally::Quantity;
use super::touch::LINE;

/// Bytes of the smallest page (Intel's and Arm's manuals).
const PAGE: f64 = 4096.0;

pub fn kernel(counted: &CountedKernel<'_>, cpu: &Cpu) -> Result<KernelPrediction, Error> {
    let alive = alive(counted.code.kernel);
    // The mean number of busy threads, in whole blocks.
    let blocks = counted.blocks_per_launch();
    let threads = cpu.threads.value.max(1.0);
    let busy = blocks / (blocks / threads).ceil();
    let cycles = busy * cpu.clock.value;

    let instructions = Instructions::count(counted, alive, cpu);
    let mut terms = Vec::from(instructions.terms(counted.code.text, cycles, cpu));
    terms.push(critical_path(counted, instructions.all, cycles, cpu)?);
    terms.extend(transfers(counted, busy, cpu)?);
    let (limit, longest) = longest(&terms);
    let runs = runs(counted, cpu)?;
    let runs = Term::new("runs", runs, "runs", busy / cpu.run.value, &cpu.run);
    let begun = pages_begun(counted, cpu)?;
    let begun = Term::new(
        "pages begun",
        begun,
        "pages",
        busy / cpu.page_start.value,
        &cpu.page_start,
    );
    let through_l1 = through_l1(&terms, runs.seconds + begun.seconds);
    let longest = longest.max(through_l1);

    let pages = tlb_misses(counted, cpu)?;
    let pages = Term::new("pages", pages, "pages", cycles / cpu.page.value, &cpu.page);
    let blocks = counted.blocks(busy / cpu.block.value, &cpu.block);
    let look_backs = look_backs(counted, busy, cpu)?;
    let launches = counted.launches(&cpu.launch);
    let seconds = longest + pages.seconds + blocks.seconds + look_backs.seconds + launches.seconds;
    terms.extend([runs, begun, pages, blocks, look_backs, launches]);
    Ok(KernelPrediction {
        seconds,
        terms,
        limit,
        registers: alive.all,
        occupancy: busy / threads,
        operations: counted.operations(),
    })
}

/// Vector instructions of all launches.
struct Instructions {
    arithmetic: f64,
    /// Moves between lanes.
    moves: f64,
    /// Cycles of divisions and functions.
    functions: f64,
    /// Loads and stores, with the additional cost of those that cross a line or gather elements.
    loads: f64,
    stores: f64,
    all: f64,
}

impl Instructions {
    fn count(counted: &CountedKernel<'_>, alive: Alive, cpu: &Cpu) -> Instructions {
        let tally = &counted.census.tally;
        let sums = tally[Quantity::FloatOps] + tally[Quantity::DoubleOps];
        let others = tally[Quantity::IntOps]
            + 2.0 * tally[Quantity::IntProducts]
            + tally[Quantity::Choices]
            + tally[Quantity::Masks]
            + tally[Quantity::Moves];
        let once = tally[Quantity::VectorLoads];
        let missing = MissingRegisters::new(counted, alive, cpu);
        let spilled = missing.computed * sums;
        let reloads = missing.loaded * (sums - once).max(0.0);
        let loads = once + tally[Quantity::UniformLoads] + spilled + reloads;
        let split = cpu.split_load.value * tally[Quantity::SplitLoads];
        let stores = tally[Quantity::VectorStores] + spilled;
        let split_stores = cpu.split_store.value * tally[Quantity::SplitStores];
        let elements = tally[Quantity::GatheredElements] + tally[Quantity::ScatteredElements];
        let arithmetic = sums + others;
        Instructions {
            arithmetic,
            moves: tally[Quantity::Moves],
            functions: tally[Quantity::Divides] * cpu.divide.value
                + tally[Quantity::Calls] * cpu.call.value,
            loads: loads + split + elements * cpu.loads.value / cpu.gather.value,
            stores: stores + split_stores,
            all: arithmetic
                + loads
                + stores
                + 2.0 * elements
                + tally[Quantity::UniformOps]
                + 2.0 * tally[Quantity::Branches],
        }
    }

    /// `text`: the instructions in the code of the kernel.
    fn terms(&self, text: f64, cycles: f64, cpu: &Cpu) -> [Term; 6] {
        let term = |name, amount, unit, number: &Number| {
            Term::new(name, amount, unit, number.value * cycles, number)
        };
        let issue = match text > cpu.decoded.value {
            true => &cpu.decode,
            false => &cpu.issue,
        };
        [
            term("arithmetic", self.arithmetic, "vectors", &cpu.fma),
            term("moves between lanes", self.moves, "vectors", &cpu.moves),
            Term::new(
                "divisions and functions",
                self.functions,
                "cycles",
                cycles,
                &cpu.divide,
            ),
            term("loads", self.loads, "loads", &cpu.loads),
            term("stores", self.stores, "stores", &cpu.stores),
            term("instructions", self.all, "instructions", issue),
        ]
    }
}

/// The shares of values without a register. Computed ones are stored and loaded at each step,
/// loaded ones are read at each use.
struct MissingRegisters {
    computed: f64,
    loaded: f64,
}

impl MissingRegisters {
    fn new(counted: &CountedKernel<'_>, alive: Alive, cpu: &Cpu) -> MissingRegisters {
        let lane_bytes = f64::from(counted.code.kernel.lanes) * 4.0;
        let vectors_per_word = (lane_bytes / cpu.vector_bytes.value).ceil().max(1.0);
        let computed = f64::from(alive.computed) * vectors_per_word;
        let loaded = f64::from(alive.all - alive.computed) * vectors_per_word;
        let room = cpu.vector_registers.value - 2.0;
        let part = |some: f64, all: f64| if some > 0.0 { some / all } else { 0.0 };
        MissingRegisters {
            computed: part(computed - room, computed),
            loaded: part(loaded - (room - computed).max(0.0), loaded),
        }
    }
}

/// The term of blocks that look back. Between threads lines go from core to core, and a block waits
/// for what the block before it publishes, so only chains beside each other go on at the same time.
/// One thread finds them published, and publishes too.
fn look_backs(counted: &CountedKernel<'_>, busy: f64, cpu: &Cpu) -> Result<Term, Error> {
    let mut longest: f64 = 0.0;
    let mut failed = None;
    walk(&counted.code.kernel.body, &mut |stmt| {
        if let Stmt::LookBack(look) = stmt
            && let Some(buffer) = look.chains[0].at.memory.buffer()
        {
            let extents = counted.program.extents(buffer);
            match extents[look.axis].eval(counted.sizes, &[]) {
                Ok(blocks) => longest = longest.max(blocks as f64),
                Err(e) => failed = Some(e),
            }
        }
    });
    if let Some(e) = failed {
        return Err(e.into());
    }
    let blocks = match longest > 0.0 {
        true => counted.census.blocks,
        false => 0.0,
    };
    let (chains, number) = match busy > 1.0 {
        true => (
            counted.blocks_per_launch() / longest.max(1.0),
            &cpu.look_back,
        ),
        false => (1.0, &cpu.publication),
    };
    let rate = chains.clamp(1.0, busy.max(1.0)) / number.value;
    Ok(Term::new("look-backs", blocks, "blocks", rate, number))
}

/// The term of operations that wait for each other.
fn critical_path(
    counted: &CountedKernel<'_>,
    instructions: f64,
    cycles: f64,
    cpu: &Cpu,
) -> Result<Term, Error> {
    let (kernel, blocks) = (counted.code.kernel, counted.census.blocks);
    let latencies = Latencies {
        sum: cpu.fma_latency.value,
        choice: cpu.alu_latency.value,
        moved: cpu.move_latency.value,
        global: cpu.load_latency.value,
        shared: cpu.load_latency.value,
        divide: cpu.divide.value,
        call: cpu.call.value * f64::from(kernel.lanes),
        barrier: 1.0,
        flag: 100.0,
    };
    let (point, start) = (counted.middle()?, Start::WhenReady);
    let chain = chain::cycles(kernel, counted.sizes, point, &[], &latencies, start)?;
    // The reorder buffer overlaps as many blocks as fit into it.
    let length = instructions / blocks.max(1.0);
    let overlap = (cpu.window.value / length.max(1.0)).max(1.0);
    Ok(Term::new(
        "dependent operations",
        chain * f64::from(kernel.warps) * blocks / overlap,
        "cycles",
        cycles,
        &cpu.fma_latency,
    ))
}

/// L3 selects the set of a line by a hash.
const L3_WAYS: f64 = 0.0;

fn l3(cpu: &Cpu) -> Cache {
    Cache {
        bytes: cpu.l3_bytes.value,
        ways: L3_WAYS,
    }
}

/// The terms of the bytes that cross the levels of the memory hierarchy.
fn transfers(counted: &CountedKernel<'_>, busy: f64, cpu: &Cpu) -> Result<[Term; 3], Error> {
    // A written line is read first, unless the store is non-temporal, and written back later.
    let hints = &counted.code.kernel.hints.non_temporal;
    let holds = |cond: &Cond| cond.eval(counted.sizes, &[]) == Ok(true);
    let streams = hints.iter().any(|h| holds(&h.when));
    let per_write = if streams { 1.0 } else { 2.0 };
    let moved = |cache_bytes: &Number, ways: f64| {
        let cache = Cache {
            bytes: cache_bytes.value,
            ways,
        };
        let traffic = traffic(counted, cache, LINE as f64)?;
        Ok::<f64, Error>(traffic.read + traffic.written * per_write)
    };
    let l2 = moved(&cpu.l1_bytes, cpu.l1_ways.value)?;
    let l3 = moved(&cpu.l2_bytes, cpu.l2_ways.value)?;
    let memory = moved(&cpu.l3_bytes, L3_WAYS)?;
    let copy = if busy > 1.0 {
        &cpu.copy_all
    } else {
        &cpu.copy_one
    };
    let per_thread = |name, bytes, bandwidth: &Number| {
        Term::new(name, bytes, "B", bandwidth.value * busy, bandwidth)
    };
    Ok([
        per_thread("L2", l2, &cpu.l2_bandwidth),
        per_thread("L3", l3, &cpu.l3_bandwidth),
        Term::new("memory", memory, "B", copy.value, copy),
    ])
}

/// Registers and L1 exchange nothing while L1 receives lines: the time of loads and stores is added
/// to that of the slowest cache behind it, as in the ECM model (Treibig and Hager 2010). Moves
/// between lanes, which replace loads, count like them. Memory is idle while the first line of a run
/// is on its way.
fn through_l1(terms: &[Term], runs: f64) -> f64 {
    let slowest = |names: &[&str]| {
        let named = terms.iter().filter(|t| names.contains(&t.name));
        named.map(|t| t.seconds).fold(0.0, f64::max)
    };
    let behind = slowest(&["L2", "L3"]).max(slowest(&["memory"]) + runs);
    slowest(&["loads", "stores", "moves between lanes"]) + behind
}

/// Runs of contiguous reads that begin in memory: those that begin outside of L1, and of them the share
/// whose bytes come from memory.
fn runs(counted: &CountedKernel<'_>, cpu: &Cpu) -> Result<f64, Error> {
    let mut footprint = counted.footprint(LINE as f64)?;
    footprint.large = cpu.l3_bytes.value;
    let l1 = Cache {
        bytes: cpu.l1_bytes.value,
        ways: 0.0,
    };
    let (near, far) = (footprint.of_launch(l1), footprint.of_launch(l3(cpu)));
    let share = (far.waited_for / near.waited_for.max(1.0)).min(1.0);
    Ok(near.runs * share * counted.census.launches)
}

/// Pages at whose beginning reads wait for memory. Hardware prefetches to the end of a page; the more
/// places are read at the same time, the more of them go on meanwhile. With two places a quarter of
/// the time was left, with four a sixteenth (`bench/results/2026-11-19-cpu-sums.md`).
fn pages_begun(counted: &CountedKernel<'_>, cpu: &Cpu) -> Result<f64, Error> {
    let prefetches = |stmt: &Stmt| matches!(stmt, Stmt::Prefetch { .. });
    if any(&counted.code.kernel.body, &prefetches) {
        return Ok(0.0);
    }
    let mut footprint = counted.footprint(LINE as f64)?;
    footprint.large = cpu.l3_bytes.value;
    let streams = footprint.streams(PAGE);
    if streams < 1.0 {
        return Ok(0.0);
    }
    let read = traffic(counted, l3(cpu), LINE as f64)?.read;
    Ok(read / PAGE / (streams * streams))
}

/// The TLB is a cache whose lines are pages.
fn tlb_misses(counted: &CountedKernel<'_>, cpu: &Cpu) -> Result<f64, Error> {
    let tlb = Cache {
        bytes: cpu.pages.value * PAGE,
        ways: 0.0,
    };
    Ok(traffic(counted, tlb, PAGE)?.bytes() / PAGE)
}

/// The traffic of all launches of a kernel into a cache with lines of this size.
fn traffic(counted: &CountedKernel<'_>, capacity: Cache, line: f64) -> Result<Traffic, Error> {
    let one = counted.footprint(line)?.of_launch(capacity);
    Ok(Traffic::default().plus(one, counted.census.launches))
}
