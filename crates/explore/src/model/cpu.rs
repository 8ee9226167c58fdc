//! The terms of a kernel on a CPU: a warp is a vector, threads take blocks from a queue.

use systola_ir::KernelId;
use systola_ir::kernel::Program;
use systola_ir::kernel::census::Event;

use super::alive::alive;
use super::chain::{self, Latencies, Start};
use super::count::{Census, KernelCensus, bounds};
use super::device::{Cpu, Number};
use super::footprint::{Cache, Footprint, Traffic};
use super::predict::{Error, KernelPrediction, Term, longest};
use super::tally::Quantity;
use super::touch::LINE;

/// Bytes of the smallest page (Intel's and Arm's manuals).
const PAGE: f64 = 4096.0;

pub fn kernel(
    program: &Program,
    sizes: &[i128],
    census: &Census<'_>,
    n: usize,
    cpu: &Cpu,
) -> Result<KernelPrediction, Error> {
    let (code, counted) = (&census.codes[n], &census.kernels[n]);
    let tally = &counted.tally;
    let kernel = code.kernel;
    let lane_bytes = f64::from(kernel.lanes) * 4.0;
    let vectors_per_word = (lane_bytes / cpu.vector_bytes.value).ceil().max(1.0);
    let alive = alive(kernel);

    // The mean number of busy threads, in whole blocks.
    let blocks = counted.blocks / counted.launches;
    let threads = cpu.threads.value.max(1.0);
    let busy = blocks / (blocks / threads).ceil();
    let cycles = busy * cpu.clock.value;

    let sums = tally[Quantity::FloatOps] + tally[Quantity::DoubleOps];
    let others = tally[Quantity::IntOps]
        + 2.0 * tally[Quantity::IntProducts]
        + tally[Quantity::Choices]
        + tally[Quantity::Masks]
        + tally[Quantity::Moves];
    // Sums without a register are stored and loaded at each step; loaded values without one are
    // read at each use.
    let registers_of = |words: u32| f64::from(words) * vectors_per_word;
    let (computed, loaded) = (
        registers_of(alive.computed),
        registers_of(alive.all - alive.computed),
    );
    let room = cpu.vector_registers.value - 2.0;
    let part = |some: f64, all: f64| if some > 0.0 { some / all } else { 0.0 };
    let spilled = part(computed - room, computed) * sums;
    let once = tally[Quantity::VectorLoads];
    let without = part(loaded - (room - computed).max(0.0), loaded);
    let reloads = without * (sums - once).max(0.0);
    let loads = once + tally[Quantity::UniformLoads] + spilled + reloads;
    let split = cpu.split_load.value * tally[Quantity::SplitLoads];
    let stores = tally[Quantity::VectorStores] + spilled;
    let split_stores = cpu.split_store.value * tally[Quantity::SplitStores];
    let elements = tally[Quantity::GatheredElements] + tally[Quantity::ScatteredElements];
    let instructions = sums
        + others
        + loads
        + stores
        + 2.0 * elements
        + tally[Quantity::UniformOps]
        + 2.0 * tally[Quantity::Branches];

    let mut terms = Vec::new();
    let mut term = |name, amount, unit, rate, number| {
        terms.push(Term::new(name, amount, unit, rate, number));
    };
    term(
        "arithmetic",
        sums + others,
        "vectors",
        cpu.fma.value * cycles,
        &cpu.fma,
    );
    term(
        "moves between lanes",
        tally[Quantity::Moves],
        "vectors",
        cpu.moves.value * cycles,
        &cpu.moves,
    );
    term(
        "divisions and functions",
        tally[Quantity::Divides] * cpu.divide.value + tally[Quantity::Calls] * cpu.call.value,
        "cycles",
        cycles,
        &cpu.divide,
    );
    term(
        "loads",
        loads + split + elements * cpu.loads.value / cpu.gather.value,
        "loads",
        cpu.loads.value * cycles,
        &cpu.loads,
    );
    term(
        "stores",
        stores + split_stores,
        "stores",
        cpu.stores.value * cycles,
        &cpu.stores,
    );
    let (issue, number) = match code.text > cpu.decoded.value {
        true => (cpu.decode.value, &cpu.decode),
        false => (cpu.issue.value, &cpu.issue),
    };
    term(
        "instructions",
        instructions,
        "instructions",
        issue * cycles,
        number,
    );

    let point = middle(census, n)?;
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
    let chain = chain::cycles(
        program,
        KernelId::from(n),
        sizes,
        point,
        &[],
        &latencies,
        Start::WhenReady,
    )?;
    // The reorder buffer overlaps as many blocks as fit into it.
    let length = instructions / counted.blocks.max(1.0);
    let overlap = (cpu.window.value / length.max(1.0)).max(1.0);
    term(
        "dependent operations",
        chain * f64::from(kernel.warps) * counted.blocks / overlap,
        "cycles",
        cycles,
        &cpu.fma_latency,
    );

    let cache = |size: &Number, ways: f64| Cache {
        bytes: size.value,
        ways,
    };
    let line = LINE as f64;
    let l1 = traffic(census, n, cache(&cpu.l1_bytes, cpu.l1_ways.value), line)?;
    let l2 = traffic(census, n, cache(&cpu.l2_bytes, cpu.l2_ways.value), line)?;
    // L3 selects the set of a line by a hash.
    let memory = traffic(census, n, cache(&cpu.l3_bytes, 0.0), line)?;
    // The TLB is a cache whose lines are pages.
    let addresses = Cache {
        bytes: cpu.pages.value * PAGE,
        ways: 0.0,
    };
    let pages = traffic(census, n, addresses, PAGE)?.bytes() / PAGE;
    // A written line is read first, unless the store is non-temporal, and written back later.
    let hints = &kernel.hints.non_temporal;
    let streams = hints.iter().any(|h| h.when.eval(sizes, &[]) == Ok(true));
    let moved = |t: Traffic| t.read + t.written * if streams { 1.0 } else { 2.0 };
    term(
        "L2",
        moved(l1),
        "B",
        cpu.l2_bandwidth.value * busy,
        &cpu.l2_bandwidth,
    );
    term(
        "L3",
        moved(l2),
        "B",
        cpu.l3_bandwidth.value * busy,
        &cpu.l3_bandwidth,
    );
    let bandwidth = if busy > 1.0 {
        &cpu.copy_all
    } else {
        &cpu.copy_one
    };
    term("memory", moved(memory), "B", bandwidth.value, bandwidth);

    // Registers and L1 exchange nothing while L1 receives lines: the time of loads and stores is
    // added to that of the slowest cache behind it, as in the ECM model (Treibig and Hager 2010).
    // Moves between lanes, which replace loads, count like them.
    let seconds_of = |name: &str| {
        terms
            .iter()
            .find(|t| t.name == name)
            .map_or(0.0, |t| t.seconds)
    };
    let near = ["loads", "stores", "moves between lanes"].map(seconds_of);
    let near = near.into_iter().fold(0.0, f64::max);
    let far = ["L2", "L3", "memory"].map(seconds_of);
    let far = far.into_iter().fold(0.0, f64::max);
    let (limit, longest) = longest(&terms);
    let longest = longest.max(near + far);
    let pages = Term::new("pages", pages, "pages", cycles / cpu.page.value, &cpu.page);
    let blocks = Term::new(
        "blocks",
        counted.blocks,
        "blocks",
        busy / cpu.block.value,
        &cpu.block,
    );
    let launches = Term::new(
        "launches",
        counted.launches,
        "launches",
        1.0 / cpu.launch.value,
        &cpu.launch,
    );
    let seconds = longest + pages.seconds + blocks.seconds + launches.seconds;
    terms.extend([pages, blocks, launches]);
    Ok(KernelPrediction {
        seconds,
        terms,
        limit,
        registers: alive.all,
        occupancy: busy / threads,
        operations: tally[Event::Arithmetic] * f64::from(kernel.lanes),
    })
}

/// The middle block of the grid of the middle launch.
pub fn middle(census: &Census<'_>, n: usize) -> Result<Vec<i64>, Error> {
    let (code, counted) = (&census.codes[n], &census.kernels[n]);
    let mut point = vec![0; code.kernel.vars.len()];
    for (var, value) in code.host.iter().zip(arguments(counted)) {
        point[*var] = *value;
    }
    for range in &code.grid {
        let (lo, hi) = bounds(&range.lo, &range.hi, &point)?;
        point[range.var] = lo + hi.saturating_sub(lo).max(0) / 2;
    }
    Ok(point)
}

/// The arguments of a representative launch.
pub fn arguments(counted: &KernelCensus) -> &[i64] {
    let heaviest = counted.arguments.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    heaviest.map_or(&[], |(args, _)| args)
}

/// The traffic of all launches of a kernel into a cache with lines of this size.
fn traffic(census: &Census<'_>, n: usize, capacity: Cache, line: f64) -> Result<Traffic, Error> {
    let (code, counted) = (&census.codes[n], &census.kernels[n]);
    let mut footprint = Footprint::new(code, arguments(counted), line)?;
    let one = footprint.of_launch(capacity);
    Ok(Traffic::default().plus(one, counted.launches))
}
