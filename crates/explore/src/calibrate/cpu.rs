//! The CPU of this machine.

use systola_ir::Scalar;
use systola_rt::calibration::Numbers;
use systola_rt::{CompileOptions, CpuProgram, Error, HostArray, RunOptions, Source, simd};

use super::{Sizes, program};

const CODE: &str = include_str!("cpu.c");

const KERNELS: &[&str] = &[
    "clock_chain",
    "fma_rate",
    "fma_chain",
    "move_rate",
    "move_chain",
    "load_rate",
    "split_load_rate",
    "store_rate",
    "split_store_rate",
    "element_rate",
    "divide_rate",
    "read_rate",
    "copy_rate",
    "line_rate",
    "page_rate",
    "nothing",
];

/// Floats of an array that fits into L1, into L2, into L3, and into memory only.
const L1: i64 = 2048;
const L2: i64 = 1 << 17;
const L3: i64 = 1 << 21;
const DRAM: i64 = 1 << 25;
/// Pages of 1024 floats that are visited in a cycle.
const PAGES: i64 = 512;
/// Floats copied by one block.
const PIECE: i64 = 16 * 1024;

struct Bench {
    program: CpuProgram,
    source: HostArray,
    target: HostArray,
}

impl Bench {
    fn new() -> Result<Bench, Error> {
        let simd = simd::detect();
        let bytes = simd.bytes().max(16);
        let mut flags = vec![
            "-O2".to_string(),
            "-ffp-contract=fast".to_string(),
            format!("-DVECTOR_BYTES={bytes}"),
        ];
        flags.extend(simd::flags(simd));
        let source = Source {
            code: CODE.to_string(),
            symbols: KERNELS.iter().map(|k| (*k).to_string()).collect(),
            scratch: vec![Vec::new(); KERNELS.len()],
            flags,
        };
        let options = CompileOptions::from_env()?;
        Ok(Bench {
            program: CpuProgram::compile(program(KERNELS, 1, 1), source, &options)?,
            source: HostArray::zeros(Scalar::F32, &[L1 as usize])?,
            target: HostArray::zeros(Scalar::F32, &[L1 as usize])?,
        })
    }

    /// The minimum seconds over several runs: other load on the machine only makes runs longer.
    fn seconds(
        &mut self,
        kernel: &str,
        blocks: i64,
        elements: i64,
        launches: i64,
        threads: usize,
    ) -> Result<f64, Error> {
        let which = KERNELS.iter().position(|k| *k == kernel);
        let sizes = Sizes {
            which: which.unwrap_or_else(|| panic!("there is no benchmark `{kernel}`")),
            blocks,
            elements,
            launches,
        };
        if self.source.shape() != [elements as usize] {
            self.source = HostArray::zeros(Scalar::F32, &[elements as usize])?;
            self.target = HostArray::zeros(Scalar::F32, &[elements as usize])?;
            // Pages that were never written may all map to one zero page.
            for array in [&mut self.source, &mut self.target] {
                if let Some(data) = array.as_mut_slice::<f32>() {
                    data.fill(1.0);
                }
            }
        }
        let mut least = f64::MAX;
        let mut spent = 0.0;
        while spent < 0.3 {
            let stats = self.program.run(
                &sizes.values(),
                &[("source", self.source.view())],
                &mut [("target", self.target.view_mut())],
                &RunOptions { threads },
            )?;
            least = least.min(stats.kernel_seconds);
            spent += stats.total_seconds.max(1e-4);
        }
        Ok(least)
    }

    /// Operations per second of one thread, for a kernel whose block does `times` of them.
    fn rate(&mut self, kernel: &str, times: f64) -> Result<f64, Error> {
        let blocks = 20_000;
        let seconds = self.seconds(kernel, blocks, L1, 1, 1)?;
        Ok(blocks as f64 * times / seconds)
    }
}

pub fn measure(progress: &mut dyn FnMut(&str)) -> Result<Numbers, Error> {
    progress("compiling the benchmarks of the CPU");
    let mut bench = Bench::new()?;
    let mut numbers = Numbers::new();
    let mut keep = |name: &str, value: f64| numbers.push((name.to_string(), value));
    progress("clock");
    let clock = bench.rate("clock_chain", 64.0)?;
    keep("clock", clock);
    progress("multiply-adds");
    keep("fma", bench.rate("fma_rate", 10.0)? / clock);
    keep("fma_latency", clock / bench.rate("fma_chain", 8.0)?);
    progress("moves between lanes");
    keep("moves", bench.rate("move_rate", 8.0)? / clock);
    keep("move_latency", clock / bench.rate("move_chain", 8.0)?);
    progress("loads and stores");
    let (loads, split) = (
        bench.rate("load_rate", 8.0)?,
        bench.rate("split_load_rate", 8.0)?,
    );
    keep("loads", loads / clock);
    keep("split_load", (loads / split - 1.0).max(0.01));
    let (stores, split) = (
        bench.rate("store_rate", 8.0)?,
        bench.rate("split_store_rate", 8.0)?,
    );
    keep("stores", stores / clock);
    keep("split_store", (stores / split - 1.0).max(0.01));
    let lanes = f64::from(simd::detect().bytes().max(16)) / 4.0;
    keep("gather", bench.rate("element_rate", 2.0 * lanes)? / clock);
    progress("divisions");
    keep("divide", clock / bench.rate("divide_rate", 8.0)?);
    progress("caches");
    let passes = |elements: i64| (1 << 24) / elements;
    for (name, elements) in [("l2_bandwidth", L2), ("l3_bandwidth", L3)] {
        let seconds = bench.seconds("read_rate", passes(elements), elements, 1, 1)?;
        let bytes = (passes(elements) * elements * 4) as f64;
        keep(name, bytes / seconds);
    }
    progress("pages");
    let lines = bench.seconds("line_rate", 1000, PAGES * 1024, 1, 1)?;
    let pages = bench.seconds("page_rate", 1000, PAGES * 1024, 1, 1)?;
    let each = (pages - lines).max(0.0) / (1000 * PAGES) as f64;
    keep("page", (each * clock).max(0.1));
    progress("memory, one thread");
    let bytes = (2 * 4 * DRAM) as f64;
    let copy =
        |bench: &mut Bench, threads| bench.seconds("copy_rate", DRAM / PIECE, DRAM, 1, threads);
    keep("copy_one", bytes / copy(&mut bench, 1)?);
    progress("memory, all threads");
    keep("copy_all", bytes / copy(&mut bench, 0)?);
    progress("launches");
    let launches = 1000;
    let seconds = bench.seconds("nothing", 64, L1, launches, 0)?;
    keep("launch", seconds / launches as f64);
    Ok(numbers)
}
