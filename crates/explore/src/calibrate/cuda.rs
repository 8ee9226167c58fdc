//! NVIDIA GPUs.

use std::sync::Arc;

use systola_ir::Scalar;
use systola_rt::calibration::Numbers;
use systola_rt::cuda::{CudaCompileOptions, CudaProgram, DeviceArray, DeviceInfo, Gpu};
use systola_rt::device::{DeviceKernel, DeviceSource, KernelArgument};
use systola_rt::timing::Repeats;
use systola_rt::{Error, HostArray};

use super::{Sizes, program};

/// The text of the benchmarks, in CUDA C++.
pub const CODE: &str = include_str!("cuda.cu");

const KERNELS: &[&str] = &[
    "fma_rate",
    "double_rate",
    "choice_rate",
    "shuffle_rate",
    "shared_rate",
    "l1_rate",
    "fma_chain",
    "shuffle_chain",
    "shared_chain",
    "memory_chain",
    "index_chain",
    "barrier_chain",
    "read_rate",
    "nothing",
];

/// Warps of a block.
const WARPS: u32 = 8;
/// Loop iterations of a thread, and operations unrolled in one iteration.
const ITERATIONS: f64 = 64.0;
const UNROLLED: f64 = 128.0;
/// Floats of an array that fits into L1, into L2, and into memory only.
const L1: i64 = 4096;
const L2: i64 = 4 << 20;
const DRAM: i64 = 1 << 28;

struct Bench {
    gpu: Arc<Gpu>,
    program: CudaProgram,
    arrays: Option<(DeviceArray, DeviceArray)>,
}

impl Bench {
    fn new(info: &DeviceInfo) -> Result<Bench, Error> {
        let gpu = Gpu::open(info.ordinal)?;
        let kernel = |symbol: &&str| DeviceKernel {
            symbol: (*symbol).to_string(),
            threads: WARPS * 32,
            arguments: vec![
                KernelArgument::Buffer(0),
                KernelArgument::Buffer(1),
                KernelArgument::Size(2),
            ],
            dynamic_shared: Vec::new(),
            static_shared: 16 << 10,
            choices: Vec::new(),
        };
        let source = DeviceSource {
            code: CODE.to_string(),
            kernels: KERNELS.iter().map(kernel).collect(),
            constants: Vec::new(),
        };
        let options = CudaCompileOptions::from_env()?;
        let program =
            CudaProgram::compile(program(KERNELS, WARPS, 32), source, &gpu, &options, None)?;
        Ok(Bench {
            gpu,
            program,
            arrays: None,
        })
    }

    /// The minimum seconds over several runs.
    fn seconds(
        &mut self,
        kernel: &str,
        blocks: i64,
        elements: i64,
        launches: i64,
    ) -> Result<f64, Error> {
        let which = KERNELS.iter().position(|k| *k == kernel);
        let sizes = Sizes {
            which: which.unwrap_or_else(|| panic!("there is no benchmark `{kernel}`")),
            blocks,
            elements,
            launches,
        };
        let fits = |(a, _): &(DeviceArray, DeviceArray)| a.shape() == [elements as usize];
        if !self.arrays.as_ref().is_some_and(fits) {
            self.arrays = None;
            let zeros = HostArray::zeros(Scalar::F32, &[elements as usize])?;
            let source = DeviceArray::from_view(&self.gpu, &zeros.view())?;
            let target = DeviceArray::new(&self.gpu, Scalar::F32, &[elements as usize])?;
            self.arrays = Some((source, target));
        }
        let Some((source, target)) = &mut self.arrays else {
            panic!("the arrays were made above");
        };
        let mut least = f64::MAX;
        // A run must not leave elements of an array larger than the caches in L2 for the next run.
        let (rounds, timed) = if elements == DRAM { (3, 1) } else { (1, 7) };
        for _ in 0..rounds {
            if elements == DRAM {
                target.time_copies(source, 1)?;
            }
            let timing = self.program.time_on_device(
                &sizes.values(),
                &[("source", source)],
                &mut [("target", target)],
                Repeats { warm_up: 0, timed },
            )?;
            least = least.min(timing.min());
        }
        Ok(least)
    }
}

pub fn measure(info: &DeviceInfo, progress: &mut dyn FnMut(&str)) -> Result<Numbers, Error> {
    progress("compiling the benchmarks of the GPU");
    let mut bench = Bench::new(info)?;
    let mut numbers = Numbers::new();
    let mut keep = |name: &str, value: f64| numbers.push((name.to_string(), value));
    let sms = f64::from(info.multiprocessors);
    let clock = f64::from(info.clock_khz) * 1e3;
    // Eight blocks of eight warps fill a multiprocessor.
    let blocks = 8 * i64::from(info.multiprocessors);
    let warps = blocks as f64 * f64::from(WARPS) / sms;
    for (kernel, name) in [
        ("fma_rate", "fma"),
        ("double_rate", "double"),
        ("choice_rate", "alu"),
        ("shuffle_rate", "shuffles"),
        ("shared_rate", "wavefronts"),
    ] {
        progress(name);
        let seconds = bench.seconds(kernel, blocks, L1, 1)?;
        keep(name, warps * ITERATIONS * UNROLLED / (seconds * clock));
    }
    for (kernel, name) in [
        ("fma_chain", "fma_latency"),
        ("shuffle_chain", "shuffle_latency"),
        ("shared_chain", "shared_latency"),
        ("barrier_chain", "barrier"),
    ] {
        progress(name);
        let seconds = bench.seconds(kernel, 1, L1, 1)?;
        keep(name, seconds * clock / (ITERATIONS * UNROLLED));
    }
    // The time of the address arithmetic is not part of the latency of a load.
    let addresses = bench.seconds("index_chain", 1, L1, 1)?;
    for (elements, name) in [
        (L1, "l1_latency"),
        (L2, "l2_latency"),
        (DRAM, "dram_latency"),
    ] {
        progress(name);
        let seconds = bench.seconds("memory_chain", 1, elements, 1)?;
        keep(
            name,
            (seconds - addresses) * clock / (ITERATIONS * UNROLLED),
        );
    }
    progress("l2_bandwidth");
    let passes = 16.0;
    let seconds = bench.seconds("read_rate", blocks, L2, 1)?;
    keep("l2_bandwidth", passes * 4.0 * L2 as f64 / seconds);
    progress("dram_bandwidth");
    bench.arrays = None;
    let zeros = HostArray::zeros(Scalar::F32, &[DRAM as usize])?;
    let from = DeviceArray::from_view(&bench.gpu, &zeros.view())?;
    let mut to = DeviceArray::new(&bench.gpu, Scalar::F32, &[DRAM as usize])?;
    let least = to.time_copies(&from, 7)?.min();
    keep("dram_bandwidth", 2.0 * from.bytes() as f64 / least);
    drop((from, to));
    progress("launch");
    let launches = 200;
    let seconds = bench.seconds("nothing", 1, L1, launches)?;
    keep("launch", seconds / launches as f64);
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use systola_rt::cuda::{compile_only, nvrtc_version};
    use systola_rt::device::Variant;

    use super::*;

    #[test]
    fn the_benchmarks_compile() {
        if let Err(none) = nvrtc_version() {
            println!("skipped: {none}");
            return;
        }
        for arch in ["sm_80", "sm_90"] {
            let made = compile_only(
                CODE,
                arch,
                &Variant::narrow(),
                &CudaCompileOptions::default(),
            )
            .unwrap();
            assert!(!made.cubin.is_empty());
        }
        for kernel in KERNELS {
            assert!(CODE.contains(&format!("KERNEL({kernel})")), "{kernel}");
        }
    }

    #[test]
    fn without_a_gpu_there_is_a_reason() {
        if systola_rt::cuda::devices().is_ok_and(|list| !list.is_empty()) {
            println!("skipped: there is a GPU");
            return;
        }
        let info = DeviceInfo {
            ordinal: 0,
            name: "a GPU that is not there".to_string(),
            multiprocessors: 1,
            clock_khz: 1_000_000,
            memory: 1 << 30,
            capability: (9, 0),
            shared_per_block: 48 << 10,
            driver: (13, 0),
        };
        let error = measure(&info, &mut |_| {}).unwrap_err();
        assert!(!error.to_string().is_empty());
    }
}
