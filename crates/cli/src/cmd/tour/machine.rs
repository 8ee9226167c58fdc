//! The last part of the tour: the same mappings as machine code, compared with hand-written loops.

use std::collections::BTreeMap;

use systola::cpu::{Compiled, compile};
use systola::rt::timing::{Repeats, Timing};
use systola::rt::{CpuProgram, Error, Source as Code};
use systola::{CpuOptions, RunOptions, View, ViewMut, cpu};
use systola_driver::C_FLAGS;
use systola_interp::{Arrays, Tensor};
use systola_ir::kernel::{Host, Kernel, Program};
use systola_ir::{KernelId, Scalar};

use crate::execute::duration;
use crate::runtime;
use crate::source::{Failure, Source};
use crate::table::{Align, Table};
use crate::term::{self, Paint};
use systola_interp::compare::{compare_two, largest, usual};

use super::Guide;

/// Outputs and taps: a signal of sixteen megabytes, no multiple of any vector.
const OUTPUTS: usize = 4_000_003;
const TAPS: usize = 9;

const REPEATS: Repeats = Repeats {
    warm_up: 1,
    timed: 5,
};

/// Hand-written loops, in the calling convention of compiled kernels. Taps are not known at compile
/// time, as for the kernels.
const LOOP: &str = "\
for (int64_t c = 0; c < C; c++) {
    float sum = 0;
    for (int64_t q = 0; q < Q; q++)
        sum += x[c + q] * w[q];
    z[c] = sum;
}";

/// The other order of the two loops, which compilers turn into vector code.
const EXCHANGED: &str = "\
for (int64_t c = 0; c < C; c++)
    z[c] = x[c] * w[0];
for (int64_t q = 1; q < Q; q++)
    for (int64_t c = 0; c < C; c++)
        z[c] += x[c + q] * w[q];";

pub fn walk(guide: &Guide, source: &Source) -> Result<(), Failure> {
    guide.say(
        "A kernel is the array folded onto a CPU: blocks for its threads, lanes for its\n\
         vectors, registers. Systola prints it as C and the C compiler of this machine makes code of it.\n\
         sbm and fbs have a PE for every sample, all of them one block. In tiles, each block is an array\n\
         small enough for the caches, and every thread takes some; L is the lanes of a vector:",
    );
    guide.listing("mapping sbm_tiles");
    guide.listing("mapping fbs_tiles");
    match contest(guide, source) {
        Ok(()) => Ok(()),
        Err(Stop::Bug(message)) => Err(Failure::new(format!("a bug of Systola: {message}"))),
        Err(Stop::Refused(cpu::Error::Refused(found))) => Err(source.fail(&found)),
        Err(Stop::Refused(cpu::Error::Runtime(error))) => {
            // The machine lacks a component; the rest of the tour does not need it.
            let why = runtime::diagnostic(&error);
            let said: Vec<String> = [why.to_string()].into_iter().chain(why.notes).collect();
            guide.say(&format!(
                "{}\n{}\nThe tour goes on without machine code.",
                Paint::Yellow.out("This cannot be shown here."),
                said.join("\n")
            ));
            Ok(())
        }
    }
}

/// Why the walk ends early.
enum Stop {
    Refused(cpu::Error),
    Bug(String),
}

impl From<cpu::Error> for Stop {
    fn from(error: cpu::Error) -> Self {
        Stop::Refused(error)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Refused(error.into())
    }
}

fn contest(guide: &Guide, source: &Source) -> Result<(), Stop> {
    let options = CpuOptions::from_env()?;
    let sizes = [("C", OUTPUTS as i64), ("Q", TAPS as i64)];
    let names = ["sbm", "fbs", "sbm_tiles", "fbs_tiles"];
    let mappings: Vec<(&str, Compiled)> = names
        .into_iter()
        .map(|name| Ok((name, compile(&source.module, name, &sizes, &options)?)))
        .collect::<Result<_, cpu::Error>>()?;
    let by_hand = |body: &str| plain(mappings[0].1.program(), body, &options);
    let (plain_loop, exchanged) = (by_hand(LOOP)?, by_hand(EXCHANGED)?);

    let (x, w) = signal();
    let inputs = [("x", View::from(&x[..])), ("w", View::from(&w[..]))];
    let values = sizes.map(|(_, value)| value);
    let one = RunOptions { threads: 1 };
    let mut expect = vec![0.0; OUTPUTS];
    let reference = time(&mut expect, |z| {
        Ok(plain_loop.time(&values, &inputs, z, &one, REPEATS)?)
    })?;
    let mut z = vec![0.0; OUTPUTS];
    let mut rows = vec![("a plain loop over c and q".to_string(), 1, reference)];
    let seconds = time(&mut z, |z| {
        Ok(exchanged.time(&values, &inputs, z, &one, REPEATS)?)
    })?;
    same("the loop over q and c", &expect, &z)?;
    rows.push(("the two loops exchanged".to_string(), 1, seconds));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for (name, kernel) in &mappings {
        let tiled = name.ends_with("_tiles");
        for threads in [1, cores]
            .into_iter()
            .take(if tiled && cores > 1 { 2 } else { 1 })
        {
            let options = RunOptions { threads };
            let seconds = time(&mut z, |z| {
                kernel.time(&sizes, &inputs, z, &options, REPEATS)
            })?;
            same(name, &expect, &z)?;
            rows.push((format!("mapping {name}"), threads, seconds));
        }
    }
    print_table(&rows, options.simd.name());
    guide.say(&format!(
        "All results {} within 1e-5 of the largest; each time is the median of {}. Kernels and loops are for\n\
         all sizes, and made by the same compiler with the same flags.",
        Paint::Green.out("agree"),
        REPEATS.timed
    ));
    Ok(())
}

/// The median of the times of several runs. No element is left from an earlier run.
fn time(
    z: &mut [f32],
    run: impl FnOnce(&mut [(&str, ViewMut<'_>)]) -> Result<Timing, cpu::Error>,
) -> Result<f64, cpu::Error> {
    z.fill(f32::NAN);
    Ok(run(&mut [("z", ViewMut::from(z))])?.median())
}

fn print_table(rows: &[(String, usize, f64)], simd: &str) {
    let reference = rows.first().map_or(f64::NAN, |(_, _, seconds)| *seconds);
    let right = Align::Right;
    let mut table = Table::new(4, [Align::Left, right, right, right, right]);
    table.header([
        format!("{OUTPUTS} outputs, {TAPS} taps, {simd}"),
        "threads".to_string(),
        "time".to_string(),
        "Gflop/s".to_string(),
        "speed".to_string(),
    ]);
    for (name, threads, seconds) in rows {
        let flops = 2.0 * (OUTPUTS * TAPS) as f64;
        table.row([
            name.clone(),
            threads.to_string(),
            duration(*seconds),
            format!("{:.1}", flops / seconds / 1e9),
            format!("{:.1} x", reference / seconds),
        ]);
    }
    term::print("\n");
    term::print(table.render());
}

fn same(who: &str, expect: &[f32], found: &[f32]) -> Result<(), Stop> {
    let one = |z: &[f32]| Arrays::from([("z".to_string(), Tensor::vector(z.to_vec()))]);
    let expect = one(expect);
    let least = usual(Scalar::F32) * largest(&expect["z"]);
    let least = BTreeMap::from([("z".to_string(), least)]);
    for line in compare_two(&expect, &one(found), &least) {
        line.map_err(|difference| Stop::Bug(format!("{who}: {difference}")))?;
    }
    Ok(())
}

/// Hand-written loops as a program with one kernel of one block.
fn plain(like: &Program, body: &str, options: &CpuOptions) -> Result<CpuProgram, Error> {
    let kernel = Kernel {
        hints: Default::default(),
        name: "plain".into(),
        lanes: 1,
        warps: 1,
        vars: Vec::new(),
        shared: Vec::new(),
        regs: Vec::new(),
        values: Vec::new(),
        body: Vec::new(),
    };
    let program = Program {
        name: "plain".into(),
        params: like.params.clone(),
        context: like.context.clone(),
        buffers: like.buffers.clone(),
        kernels: vec![kernel],
        host_vars: Vec::new(),
        body: vec![Host::Launch {
            kernel: KernelId(0),
            args: Vec::new(),
        }],
    };
    let code = format!(
        "#include <stdint.h>\n\
         void plain(const int64_t *sizes, const int64_t *args, void *const *buffers, void *scratch,\n\
         \x20          int64_t first, int64_t last)\n\
         {{\n\
         const int64_t C = sizes[0], Q = sizes[1];\n\
         const float *restrict x = buffers[0], *restrict w = buffers[1];\n\
         float *restrict z = buffers[2];\n\
         {body}\n\
         }}\n"
    );
    let mut flags: Vec<String> = C_FLAGS.map(str::to_string).to_vec();
    flags.extend(systola::rt::simd::flags(options.simd));
    let source = Code {
        code,
        symbols: vec!["plain".into()],
        scratch: vec![Vec::new()],
        flags,
    };
    CpuProgram::compile(program, source, &options.compile)
}

fn signal() -> (Vec<f32>, Vec<f32>) {
    let n = OUTPUTS + TAPS - 1;
    let x = (0..n)
        .map(|i| (i * 7919 % 1009) as f32 / 504.0 - 1.0)
        .collect();
    let w = (0..TAPS).map(|q| 1.0 / (1 + q) as f32).collect();
    (x, w)
}
