//! Random small systems and mappings: the checker against every point tried, the array against the
//! system.
//!
//! For every draw:
//!
//! * "legal for all sizes" holds at every size that is tried, "legal at these sizes" at these;
//! * a refusal is confirmed: its counterexample is put into the mapping and shows what it claims; one
//!   without a counterexample is found again by trying all points;
//! * the array of a legal mapping computes what the system computes: the same bits, or, where sums of
//!   floats were declared reorderable, the same up to [`tolerance`];
//! * so do its kernels, on machines with vectors of several widths and with blocks in several orders;
//! * the counts of the report are those of the points that were tried.
//!
//! The same draws come in every run. `SYSTOLA_SEED=n` runs one system, `SYSTOLA_CASES=n` so many.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use systola::cpu::Effort;
use systola::rt::Simd;
use systola::{CpuOptions, RunOptions};
use systola_driver::{
    Checked, Copies, Fix, Lowered, Machine, Threads, Unsized, check_mapping, check_system,
    cuda_machine, emit_cuda, load, lower,
};
use systola_filetests::brute::{Brute, Fault, Verdict};
use systola_filetests::draw::{Drawn, draw};
use systola_filetests::emulate::Emulated;
use systola_interp::kernel::{Options, Order, run_kernel_program};
use systola_interp::{Arrays, Tensor, run_array, run_system};
use systola_ir::diag::Kind;
use systola_ir::mapping::Mapping;
use systola_ir::system::{InputKind, Module, System};
use systola_ir::{Diagnostic, Scalar};
use systola_lower::localise::localise;
use systola_lower::report::Scope;

/// Systems, and mappings of each.
const SYSTEMS: u64 = 400;
const MAPPINGS: usize = 5;

/// What must have been drawn, and how often at least.
const REQUIRED: &[(&str, usize)] = &[
    ("1 dim", 20),
    ("2 dims", 100),
    ("3 dims", 100),
    ("4 dims", 20),
    ("box", 100),
    ("triangle", 50),
    ("band", 50),
    ("domain with mod", 20),
    ("domain by conditions", 50),
    ("negative bound", 100),
    ("bound other than 0", 100),
    ("no parameter", 50),
    ("1 parameter", 100),
    ("2 parameters", 100),
    ("several variables", 100),
    ("restricted variable", 50),
    ("constant distance", 200),
    ("parametric distance", 50),
    ("same point", 50),
    ("guard with mod", 50),
    ("propagation", 100),
    ("accumulation", 100),
    ("carry", 10),
    ("window", 20),
    ("reduce with a function", 10),
    ("variable inside a sum", 10),
    ("constant", 20),
    ("table", 20),
    ("let", 5),
    ("tuple", 20),
    ("function", 10),
    ("choice by value", 10),
    ("reduce", 100),
    ("triangular sum", 5),
    ("sum inside an expression", 10),
    ("scan", 30),
    ("sum along", 50),
    ("descending sum", 20),
    ("sum tree", 10),
    ("forward", 100),
    ("several place coordinates", 200),
    ("several time coordinates", 200),
    ("several projections", 200),
    ("no place", 20),
    ("not unimodular", 30),
    ("reverse given", 20),
    ("wrong reverse given", 5),
    ("tile", 100),
    ("tile of a tile", 20),
    ("overlap", 50),
    ("two overlapped tiles", 10),
    ("tiles in launches", 3),
    ("tile of a parameter", 3),
    ("place with an offset", 20),
    ("several pieces", 10),
    ("V > 1", 50),
    ("launch", 100),
    ("block step", 10),
    ("flags", 20),
    ("pieces", 50),
    ("broadcast", 100),
    ("schedule with a parameter", 20),
    ("table 1", 20),
    ("i8", 20),
    ("i16", 20),
    ("i32", 20),
    ("i64", 20),
    ("u8", 20),
    ("u16", 20),
    ("u32", 20),
    ("u64", 20),
    ("f32", 50),
    ("f64", 50),
    ("bool", 50),
    ("verdict: legal for all sizes", 300),
    ("verdict: legal at given sizes", 10),
    ("verdict: refused", 300),
    ("refused: E0501", 100),
    ("refused: E0502", 100),
    ("refused: E0503", 5),
    ("refused: E0504", 10),
    ("refused: E0505", 5),
    ("refused by a counterexample", 300),
    ("array run: same bits", 300),
    ("array run: within the tolerance", 20),
    ("array run: overlapped", 10),
    ("array run: pieces", 5),
    ("array run: launches", 20),
    ("array run: V > 1", 20),
    ("kernel run: made for all sizes", 500),
    ("kernel run: made for its size", 50),
];

#[derive(Default)]
struct Tally {
    counts: BTreeMap<String, usize>,
    failures: Vec<String>,
    times: Vec<(Duration, String)>,
}

impl Tally {
    fn count(&mut self, what: impl Into<String>) {
        *self.counts.entry(what.into()).or_default() += 1;
    }

    fn add(&mut self, other: Tally) {
        for (what, n) in other.counts {
            *self.counts.entry(what).or_default() += n;
        }
        self.failures.extend(other.failures);
        self.times.extend(other.times);
    }

    fn get(&self, what: &str) -> usize {
        self.counts.get(what).copied().unwrap_or(0)
    }

    fn table(&self) -> String {
        let rows = self
            .counts
            .iter()
            .map(|(what, n)| format!("{n:>7}  {what}"));
        rows.collect::<Vec<_>>().join("\n")
    }
}

/// Draws that once were compiled wrongly.
const ONCE_WRONG: [u64; 4] = [5093, 5321, 5480, 7194];

#[test]
fn the_checker_agrees_with_every_point_tried_and_arrays_with_their_systems() {
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let start = Instant::now();
    let (seeds, more) = match (number("SYSTOLA_SEED"), number("SYSTOLA_CASES")) {
        (Some(seed), cases) => (seed..seed + cases.unwrap_or(1), &[][..]),
        (None, cases) => (0..cases.unwrap_or(SYSTEMS), &ONCE_WRONG[..]),
    };
    let complete = seeds.end >= SYSTEMS && seeds.start == 0;
    let seeds: Vec<u64> = seeds.chain(more.iter().copied()).collect();
    let next = AtomicUsize::new(0);
    let all = Mutex::new(Tally::default());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let mut tally = Tally::default();
                while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    examine(*seed, &draw(*seed, MAPPINGS), &mut tally);
                }
                all.lock().expect("no thread panicked").add(tally);
            });
        }
    });
    let mut tally = all.into_inner().expect("no thread panicked");
    println!("{}", tally.table());
    tally
        .times
        .sort_by_key(|(time, _)| std::cmp::Reverse(*time));
    println!("{:.1?}; slowest:", start.elapsed());
    for (time, what) in tally.times.iter().take(8) {
        println!("{time:>9.1?}  {what}");
    }
    for failure in &tally.failures {
        println!("{}", failure.lines().next().unwrap_or_default());
    }
    for failure in tally.failures.iter().take(5) {
        println!("\n{failure}");
    }
    assert!(
        tally.failures.is_empty(),
        "{} draws failed",
        tally.failures.len()
    );
    if complete {
        for (what, least) in REQUIRED {
            let seen = tally.get(what);
            assert!(seen >= *least, "{what}: seen {seen} times, {least} wanted");
        }
        let all = tally.get("mappings");
        assert!(all >= 1500, "{all} mappings");
        let legal =
            tally.get("verdict: legal for all sizes") + tally.get("verdict: legal at given sizes");
        assert!(legal * 10 >= all * 3, "{legal} legal of {all}");
        let refused = tally.get("verdict: refused");
        assert!(refused * 10 >= all * 3, "{refused} refused of {all}");
    }
}

/// The kernels of some of the same mappings as machine code, for vectors of this machine and short ones.
#[test]
fn machine_code_of_random_mappings_computes_what_the_system_computes() {
    let (mut runs, mut limited) = (0, 0);
    for seed in 0..70 {
        let drawn = draw(seed, 2);
        let module = load(&drawn.text()).expect("it parses");
        let system = &module.systems[0];
        for (n, mapping) in module.mappings.iter().enumerate() {
            if check_mapping(&module, mapping, &BTreeMap::new()).is_err() {
                continue;
            }
            let mut options = CpuOptions::new();
            options.effort = Effort::Little;
            if (seed + n as u64).is_multiple_of(3) {
                options.simd = Simd::Portable;
            }
            let size = sizes(&drawn).pop().unwrap_or_default();
            let named: Vec<(&str, i64)> =
                size.iter().map(|(k, v)| (k.as_str(), *v as i64)).collect();
            let context = format!("seed {seed}, mapping {n} at {size:?}");
            let compiled = match systola::compile(&module, &mapping.name, &named, &options) {
                Ok(compiled) => compiled,
                Err(systola::cpu::Error::Refused(errors))
                    if errors.iter().all(|e| e.kind() == Kind::Limitation) =>
                {
                    limited += 1;
                    continue;
                }
                Err(error) => panic!("{context}: {error}"),
            };
            let params: Vec<i128> = system.param_names().iter().map(|p| size[p]).collect();
            let inputs = inputs(system, &params).expect("inputs");
            let expected = run_system(system, &params, &inputs).expect("a legal system");
            let threads = 1 + (seed % 3) as usize;
            let (got, _) = compiled
                .run_tensors(&params, &inputs, &RunOptions { threads })
                .unwrap_or_else(|e| panic!("{context}: {e}"));
            // A product that feeds a sum may be fused with it, so floats are compared up to the tolerance.
            compare(&expected, &got, true)
                .unwrap_or_else(|e| panic!("{context}: {e}\n{}", compiled.source));
            runs += 1;
        }
    }
    println!("{runs} mappings as machine code, {limited} limited");
    assert!(runs >= 60, "{runs} runs");
}

/// The CUDA C++ of other mappings, run thread by thread.
#[test]
fn cuda_of_random_mappings_computes_what_the_system_computes() {
    let (mut runs, mut limited) = (0, 0);
    for seed in 100..130 {
        let drawn = draw(seed, 2);
        let module = load(&drawn.text()).expect("it parses");
        let system = &module.systems[0];
        for (n, mapping) in module.mappings.iter().enumerate() {
            if check_mapping(&module, mapping, &BTreeMap::new()).is_err() {
                continue;
            }
            let size = sizes(&drawn).pop().unwrap_or_default();
            let context = format!("seed {seed}, mapping {n} at {size:?}");
            let lowered = lower(&module, mapping, &size, &Fix::Nothing, &cuda_machine());
            let program = match lowered {
                Ok(lowered) => lowered.program,
                Err(errors) if errors.iter().all(|e| e.kind() == Kind::Limitation) => {
                    limited += 1;
                    continue;
                }
                Err(errors) => panic!("{context}: {errors:?}"),
            };
            let artifact = emit_cuda(&program).unwrap_or_else(|e| panic!("{context}: {e}"));
            let narrow = (seed + n as u64).is_multiple_of(2);
            let emulated = Emulated::compile(&program, &artifact, narrow)
                .unwrap_or_else(|e| panic!("{context}: {e}\n{}", artifact.source));
            let params: Vec<i128> = system.param_names().iter().map(|p| size[p]).collect();
            let inputs = inputs(system, &params).expect("inputs");
            let expected = run_system(system, &params, &inputs).expect("a legal system");
            let got = emulated
                .run(&params, &inputs)
                .unwrap_or_else(|e| panic!("{context}: {e}\n{}", artifact.source));
            compare(&expected, &got, true)
                .unwrap_or_else(|e| panic!("{context}: {e}\n{}", artifact.source));
            runs += 1;
        }
    }
    println!("{runs} mappings as CUDA, {limited} limited");
    assert!(runs >= 25, "{runs} runs");
}

fn examine(seed: u64, drawn: &Drawn, tally: &mut Tally) {
    let text = drawn.text();
    let module = match load(&text) {
        Ok(module) => module,
        Err(errors) => {
            let list: Vec<String> = errors.iter().map(located(&text)).collect();
            tally.failures.push(format!(
                "seed {seed} does not parse: {}\n{text}",
                list.join("; ")
            ));
            return;
        }
    };
    tally.count("systems");
    let system = &module.systems[0];
    let sizes = sizes(drawn);
    let errors = check_system(system, &BTreeMap::new());
    if let Some(error) = errors.iter().find(|e| e.kind() == Kind::Mistake) {
        let system = &drawn.system;
        tally.failures.push(format!(
            "seed {seed}: the system is called wrong: {error}\n{system}"
        ));
        return;
    }
    for error in &errors {
        tally.count(format!("system limited: {}", error.code.id));
    }
    for (n, mapping) in module.mappings.iter().enumerate() {
        tally.count("mappings");
        let traits: BTreeSet<&str> = drawn
            .traits
            .union(&drawn.mappings[n].traits)
            .copied()
            .collect();
        for one in &traits {
            tally.count(*one);
        }
        let case = Case {
            seed,
            module: &module,
            system,
            mapping,
            sizes: &sizes,
            traits: &traits,
            regroups: drawn.regroups_floats,
        };
        let start = processor_time();
        if let Err(failure) = case.examine(tally) {
            tally.failures.push(format!(
                "seed {seed}, mapping {n}: {failure}\n{}",
                drawn.text_with(n)
            ));
        }
        let time = processor_time() - start;
        tally
            .times
            .push((time, format!("seed {seed}, mapping {n}")));
    }
}

/// Processor time of this thread; where the system does not tell, time.
fn processor_time() -> Duration {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = stat.and_then(|s| s.split_whitespace().next().and_then(|n| n.parse().ok()));
    nanos.map_or_else(
        || START.get_or_init(Instant::now).elapsed(),
        Duration::from_nanos,
    )
}

fn located(text: &str) -> impl Fn(&Diagnostic) -> String + '_ {
    |error| {
        let line = text[..error.span().range().start].lines().count();
        format!("line {line}: {error}")
    }
}

/// A few small sizes, the least one among them.
fn sizes(drawn: &Drawn) -> Vec<BTreeMap<String, i128>> {
    let steps: &[[i64; 2]] = match drawn.params.len() {
        0 => &[[0, 0]],
        1 => &[[0, 0], [1, 0], [3, 0]],
        _ => &[[0, 0], [1, 3], [3, 1]],
    };
    let at = |step: &[i64; 2]| {
        let values = drawn.params.iter().zip(step);
        values
            .map(|((name, least), more)| (name.clone(), i128::from(least + more)))
            .collect()
    };
    steps.iter().map(at).collect()
}

struct Case<'a> {
    seed: u64,
    module: &'a Module,
    system: &'a System,
    mapping: &'a Mapping,
    sizes: &'a [BTreeMap<String, i128>],
    traits: &'a BTreeSet<&'a str>,
    /// Sums of floats may be regrouped.
    regroups: bool,
}

impl Case<'_> {
    fn examine(&self, tally: &mut Tally) -> Result<(), String> {
        match check_mapping(self.module, self.mapping, &BTreeMap::new()) {
            Ok(checked) => {
                if checked.report.scope != Scope::AllSizes {
                    return Err("decided at sizes that were not given".into());
                }
                tally.count("verdict: legal for all sizes");
                for size in self.sizes {
                    self.legal_at(size, Some(&checked), tally)?;
                }
                self.kernels(tally)
            }
            Err(errors) if errors.iter().any(|e| e.kind() == Kind::Mistake) => {
                tally.count("verdict: refused");
                self.refused(&errors, self.sizes, tally)?;
                self.refused_at(tally)
            }
            Err(errors) => self.limited(&errors, tally),
        }
    }

    fn params(&self, size: &BTreeMap<String, i128>) -> Vec<i128> {
        let names = self.system.param_names();
        names.iter().map(|name| size[name]).collect()
    }

    fn tried(&self, params: &[i128]) -> Result<Verdict, String> {
        let localised = localise(self.system, Some(self.mapping))
            .map_err(|errors| format!("not localised: {}", errors[0]))?;
        let brute = Brute::new(&localised.system, &localised.sums, self.mapping, params)?;
        brute.verdict()
    }

    /// The checker says it is legal: is it, and does the array compute what the system says?
    fn legal_at(
        &self,
        size: &BTreeMap<String, i128>,
        symbolic: Option<&Checked>,
        tally: &mut Tally,
    ) -> Result<(), String> {
        let params = self.params(size);
        let verdict = self.tried(&params)?;
        if let Some((fault, witness)) = verdict.faults.first_key_value() {
            return Err(format!(
                "called legal, but at {size:?} {fault:?}: {witness}"
            ));
        }
        let checked = check_mapping(self.module, self.mapping, size)
            .map_err(|e| format!("legal for all sizes, refused at {size:?}: {}", e[0]))?;
        self.counts(&checked, &verdict)?;
        self.run(&checked, &params, tally)
            .map_err(|e| format!("at {size:?}: {e}"))?;
        // What was derived for all sizes runs at each, where it states its registers.
        if let Some(symbolic) = symbolic {
            let stated = symbolic
                .array
                .cells
                .iter()
                .all(|c| c.registers.depth.is_some());
            if stated && !self.system.params.is_empty() {
                tally.count("array run: derived for all sizes");
                self.run(symbolic, &params, tally)
                    .map_err(|e| format!("derived for all sizes, at {size:?}: {e}"))?;
            }
        }
        Ok(())
    }

    /// The mapping as kernels at all sizes: one program where it can be made for all, else one for each.
    fn kernels(&self, tally: &mut Tally) -> Result<(), String> {
        let mut machine = Machine {
            vector_bytes: [64, 16, 1, 32, 64, 32][(self.seed % 6) as usize],
            most_lanes: 64,
            registers: 32,
            code_budget: 300,
            threads: None,
        };
        let mut fix = Fix::Nothing;
        if self.seed % 6 > 3 {
            // Only numbers of warps become warps.
            fix = Fix::Everything;
            machine.most_lanes = [4, 2][(self.seed % 2) as usize];
            machine.threads = Some(Threads {
                warps: 16,
                wide_bytes: 16,
                copies: Copies::Asynchronous,
                block_memory: [227 << 10, 256, 0][(self.seed % 3) as usize],
                unsized_arrays: Unsized::Global,
            });
        }
        let mut made: Option<Lowered> = None;
        for (n, size) in self.sizes.iter().enumerate() {
            let is_fixed = |l: &Lowered| l.program.params.iter().any(|p| p.fixed.is_some());
            if made.as_ref().is_none_or(is_fixed) {
                match lower(self.module, self.mapping, size, &fix, &machine) {
                    Ok(lowered) => {
                        if lowered.program.kernels[0].warps > 1 {
                            tally.count("kernels with several warps");
                        }
                        made = Some(lowered);
                    }
                    Err(errors) if errors.iter().all(|e| e.kind() == Kind::Limitation) => {
                        tally.count(format!("kernels limited: {}", errors[0].code.id));
                        return Ok(());
                    }
                    Err(errors) => return Err(format!("not lowered at {size:?}: {}", errors[0])),
                }
            }
            let Some(lowered) = &made else { continue };
            tally.count(if is_fixed(lowered) {
                "kernel run: made for its size"
            } else {
                "kernel run: made for all sizes"
            });
            let params = self.params(size);
            let inputs = inputs(self.system, &params)?;
            let expected = run_system(self.system, &params, &inputs)
                .map_err(|e| format!("the system: {e}"))?;
            let options = Options {
                order: [Order::InOrder, Order::Reversed, Order::Shuffled(self.seed)][n % 3],
                ..Options::default()
            };
            let got = run_kernel_program(&lowered.program, &params, &inputs, &options)
                .map_err(|e| format!("the kernel at {size:?}: {e}\n{}", lowered.program))?;
            compare(&expected, &got.outputs, self.regroups)
                .map_err(|e| format!("the kernel at {size:?}: {e}\n{}", lowered.program))?;
        }
        Ok(())
    }

    fn counts(&self, checked: &Checked, verdict: &Verdict) -> Result<(), String> {
        let counts = checked.report.counts.as_ref().ok_or("no counts")?;
        let stated = (
            counts.points,
            counts.expanded,
            counts.pes,
            counts.steps,
            counts.outputs,
        );
        let tried = (
            verdict.points as i128,
            verdict.expanded as i128,
            verdict.pes as i128,
            verdict.steps,
            verdict.outputs as i128,
        );
        if stated != tried {
            return Err(format!(
                "(points, expanded, PEs, steps, outputs) are reported as {stated:?}, tried {tried:?}"
            ));
        }
        if let Some(period) = counts.period {
            for (place, times) in &verdict.busy {
                let times: Vec<i128> = times.iter().filter_map(|t| t.last().copied()).collect();
                let all = times.windows(2).all(|w| (w[1] - w[0]) % period == 0);
                if !all && checked.array.time.len() == 1 {
                    return Err(format!("period {period}, but {place:?} works at {times:?}"));
                }
            }
        }
        Ok(())
    }

    fn run(&self, checked: &Checked, params: &[i128], tally: &mut Tally) -> Result<(), String> {
        let inputs = inputs(self.system, params)?;
        let expected =
            run_system(self.system, params, &inputs).map_err(|e| format!("the system: {e}"))?;
        let outputs =
            run_array(&checked.array, params, &inputs).map_err(|e| format!("the array: {e}"))?;
        compare(&expected, &outputs, self.regroups)?;
        tally.count(if self.regroups {
            "array run: within the tolerance"
        } else {
            "array run: same bits"
        });
        for (one, label) in [
            ("overlap", "array run: overlapped"),
            ("pieces", "array run: pieces"),
            ("launch", "array run: launches"),
            ("V > 1", "array run: V > 1"),
        ] {
            if self.traits.contains(one) {
                tally.count(label);
            }
        }
        Ok(())
    }

    /// Every error that claims a fault must show it.
    fn refused(
        &self,
        errors: &[Diagnostic],
        sizes: &[BTreeMap<String, i128>],
        tally: &mut Tally,
    ) -> Result<(), String> {
        let localised = localise(self.system, Some(self.mapping))
            .map_err(|errors| format!("not localised: {}", errors[0]))?;
        for error in errors {
            let Some(fault) = Fault::of_code(error.code.id) else {
                return Err(format!("refused for no reason of legality: {error}"));
            };
            tally.count(format!("refused: {}", error.code.id));
            if let Some(example) = &error.counterexample {
                let params: Vec<i128> = example.params.iter().map(|p| p.1).collect();
                Brute::new(&localised.system, &localised.sums, self.mapping, &params)?
                    .confirm(fault, example)
                    .map_err(|why| format!("{error}\n{example:?} does not show it: {why}"))?;
                tally.count("refused by a counterexample");
                continue;
            }
            let mut found = false;
            let larger = self.larger();
            for size in sizes.iter().chain(&larger) {
                let verdict = self.tried(&self.params(size))?;
                found |= verdict.faults.contains_key(&fault);
                if found {
                    break;
                }
            }
            if !found {
                return Err(format!("{error}\nnot seen at {sizes:?} nor {larger:?}"));
            }
        }
        Ok(())
    }

    /// What is refused for all sizes may be legal at the least one.
    fn refused_at(&self, tally: &mut Tally) -> Result<(), String> {
        let Some(size) = self.sizes.first().filter(|s| !s.is_empty()) else {
            return Ok(());
        };
        match check_mapping(self.module, self.mapping, size) {
            Ok(checked) => {
                if !matches!(checked.report.scope, Scope::GivenSizes(_)) {
                    return Err(format!(
                        "refused, but legal for all sizes when asked for {size:?}"
                    ));
                }
                tally.count("refused, but legal at given sizes");
                self.legal_at(size, None, tally)
            }
            Err(errors) if errors.iter().any(|e| e.kind() == Kind::Mistake) => {
                self.wrong_at(&errors, size, tally)
            }
            Err(errors) => {
                tally.count(format!("limited at given sizes: {}", errors[0].code.id));
                Ok(())
            }
        }
    }

    /// Refused at given sizes: it must be illegal at these.
    fn wrong_at(
        &self,
        errors: &[Diagnostic],
        size: &BTreeMap<String, i128>,
        tally: &mut Tally,
    ) -> Result<(), String> {
        self.refused(errors, std::slice::from_ref(size), tally)?;
        let verdict = self.tried(&self.params(size))?;
        if verdict.is_legal() {
            return Err(format!("legal at {size:?}, but refused: {}", errors[0]));
        }
        Ok(())
    }

    fn larger(&self) -> Vec<BTreeMap<String, i128>> {
        let first = &self.sizes[0];
        [5, 7]
            .iter()
            .filter(|_| !first.is_empty())
            .map(|more| first.iter().map(|(n, v)| (n.clone(), v + more)).collect())
            .collect()
    }

    /// A limitation for all sizes: at given ones there is a verdict, and it is the right one.
    fn limited(&self, errors: &[Diagnostic], tally: &mut Tally) -> Result<(), String> {
        tally.count(format!("limited: {}", errors[0].code.id));
        let mut decided = None;
        for size in self.sizes {
            match check_mapping(self.module, self.mapping, size) {
                Ok(_) => {
                    decided = decided.or(Some("verdict: legal at given sizes"));
                    self.legal_at(size, None, tally)?;
                }
                Err(errors) if errors.iter().any(|e| e.kind() == Kind::Mistake) => {
                    decided = Some("verdict: refused");
                    self.wrong_at(&errors, size, tally)?;
                }
                Err(errors) => {
                    tally.count(format!("limited at given sizes: {}", errors[0].code.id));
                }
            }
        }
        tally.count(decided.unwrap_or("verdict: none"));
        Ok(())
    }
}

fn inputs(system: &System, params: &[i128]) -> Result<Arrays, String> {
    let mut arrays = Arrays::new();
    for (n, input) in system.inputs.iter().enumerate() {
        if matches!(&input.kind, InputKind::Table { data: Some(_) }) {
            continue;
        }
        let seed = 17 + n as u64;
        let tensor = Tensor::random(input.ty, &input.axes, params, seed)
            .map_err(|e| format!("input {}: {e}", input.name))?;
        arrays.insert(input.name.clone(), tensor);
    }
    Ok(arrays)
}

/// How far apart two orders of one sum may end, relative to the larger value (and at least 1): sums of
/// a few hundred terms of at most 8, each addition rounding once.
fn tolerance(ty: Scalar) -> f64 {
    match ty {
        Scalar::F32 => 1e-3,
        _ => 1e-11,
    }
}

fn compare(expected: &Arrays, outputs: &Arrays, regroups: bool) -> Result<(), String> {
    if expected.keys().ne(outputs.keys()) {
        return Err("other outputs".into());
    }
    for (name, want) in expected {
        let got = &outputs[name];
        if want.ty() != got.ty() || want.shape != got.shape {
            return Err(format!("`{name}` has another type or shape"));
        }
        if want.ty().is_float() && regroups {
            if let Some(difference) = want.first_difference(got, tolerance(want.ty())) {
                return Err(format!("`{name}` differs: {difference:?}"));
            }
            continue;
        }
        for at in 0..want.data.len() {
            let (a, b) = (want.data.get(at), got.data.get(at));
            let same = match (&a, &b) {
                (Some(a), Some(b)) => a.is_identical(b),
                _ => false,
            };
            if !same {
                return Err(format!("`{name}` differs at {at}: {a:?} and {b:?}"));
            }
        }
    }
    Ok(())
}

/// Sums and prefixes in every position that an expression has.
#[test]
fn sums_inside_other_expressions() {
    let cases: &[(&str, &str, &str)] = &[
        (
            "a let around a sum",
            "var U: i32 = (let h = x[i]; reduce(+, q in 0..Q, h * w[q]));",
            "time = (i, q);",
        ),
        (
            "a let inside a sum",
            "var U: i32 = reduce(+, q in 0..Q, (let h = x[i] * w[q]; h * h));",
            "time = (i, q);",
        ),
        (
            "a let around a prefix",
            "var U: i32 = (let h = x[i]; scan(+, i, h + 1));",
            "time = i;",
        ),
        (
            "a prefix of another type",
            "var U: i32 = i32(scan(max, i, f32(x[i])));",
            "time = i;",
        ),
        (
            "a sum of another type",
            "var U: i32 = i32(reduce(max, q in 0..Q, f32(w[q]) * 0.5)) + x[i];",
            "time = (i, q);",
        ),
        (
            "a sum of sums",
            "var U: i32 = reduce(+, q in 0..Q, w[q] * reduce(max, p in 0..N, x[p] + w[q]));",
            "time = (i, q, p);",
        ),
        (
            "two sums",
            "var U: i32 = reduce(+, q in 0..Q, w[q]) * reduce(max, p in 0..N, x[p]);",
            "time = (i, q, p);",
        ),
        (
            "a sum decides",
            "var U: i32 = select(reduce(+, q in 0..Q, w[q]) > 0, x[i], -x[i]);",
            "time = (i, q);",
        ),
        (
            "a sum under a guard",
            "var U: i32 = select(i == 0, 7, reduce(+, q in 0..Q, w[q] * x[i]));",
            "time = (i, q);",
        ),
        (
            "a sum as an argument",
            "fn f(a: i32, b: i32) -> i32 = 2 * a - b;\n var U: i32 = f(x[i], reduce(+, q in 0..Q, w[q]));",
            "time = (i, q);",
        ),
        (
            "a sum in a tuple",
            "var T: (i32, i32) = (x[i], reduce(+, q in 0..Q, w[q]));\n var U: i32 = T.0 - T.1;",
            "time = (i, q);",
        ),
        (
            "a prefix of a prefix",
            "var V: i32 = scan(+, i, x[i]);\n var U: i32 = scan(+, i, V);",
            "time = i;",
        ),
        (
            "a prefix inside a prefix",
            "var U: i32 = scan(+, i, scan(max, i, x[i]));",
            "time = i;",
        ),
        (
            "a prefix of sums",
            "var U: i32 = scan(+, i, reduce(+, q in 0..Q, w[q] * x[i]));",
            "time = (i, q);",
        ),
        (
            "a sum of prefixes",
            "var V: i32 = scan(+, i, x[i]);\n var U: i32 = reduce(+, q in 0..Q, w[q] * V);",
            "time = (i, q);",
        ),
        (
            "a sum of earlier values",
            "var V: i32 = x[i];\n var U: i32 = reduce(+, q in 0..Q, w[q] * select(i == 0, 1, V(i - 1)));",
            "time = (i, q);",
        ),
        (
            "a sum of its own last value",
            "var U: i32 = x[i] + select(i == 0, 0, reduce(+, q in 0..Q, w[q] * U(i - 1)));",
            "time = (i, q);",
        ),
        (
            "a sum of sums of a variable",
            "var V: i32 = x[i];\n var U: i32 = reduce(+, q in 0..Q, w[q] * reduce(max, p in 0..N, V + x[p]));",
            "time = (i, q, p);",
        ),
        (
            "a sum of a let of a sum",
            "var U: i32 = (let h = reduce(max, p in 0..N, x[p]); reduce(+, q in 0..Q, h * w[q]));",
            "time = (i, q, p);",
        ),
        (
            "a sum that exists under a guard",
            "var U: i32 = select(i == 0, 7, reduce(+, q in 0..Q, w[q] * x[i - 1]));",
            "time = (i, q);",
        ),
        (
            "a sum under an inner guard",
            "var U: i32 = reduce(+, q in 0..Q, select(q == 0, 1, w[q - 1]));",
            "time = (i, q);",
        ),
        (
            "a sum under a guard in a sum",
            "var U: i32 = reduce(+, q in 0..Q, select(q == 0, 1, reduce(+, p in 0..N, w[q - 1] * x[p])));",
            "time = (i, q, p);",
        ),
        (
            "a prefix under a guard",
            "var U: i32 = select(i == 0, 7, scan(+, i, x[i]));",
            "time = i;",
        ),
        (
            "a prefix beside a moving sum",
            "var V: i32 = reduce(+, p in 0..i + 1, x[p]);\n var U: i32 = V + scan(+, i, x[i]);",
            "time = (i, p);",
        ),
        (
            "a value beside a moving sum",
            "var V: i32 = reduce(+, p in 0..i + 1, x[p]);\n var U: i32 = V + select(i == 0, 0, U(i - 1));",
            "time = (i, p);",
        ),
        (
            "an earlier moving sum",
            "var V: i32 = reduce(+, p in 0..i + 1, x[p]);\n var U: i32 = x[i] + select(i == 0, 0, V(i - 1));",
            "time = (i, p);",
        ),
        (
            "a table inside a sum",
            "table t[4]: i32 = [3, 1, 4, 1];\n var U: i32 = reduce(+, q in 0..Q, t[(x[i] + w[q]) & 3]);",
            "time = (i, q);",
        ),
        (
            "the iterator inside a sum",
            "var U: i32 = reduce(+, q in 0..Q, i32(q * i) + w[q]);",
            "time = (i, q);",
        ),
    ];
    let mut failures = Vec::new();
    for (name, equations, mapping) in cases {
        let text = format!(
            "system s(N, Q) where N >= 1, Q >= 1 {{\n input x[N]: i32;\n input w[Q]: i32;\n index i in 0..N;\n {equations}\n output y[N]: i32 = U at [i];\n}}\nmapping m of s {{ {mapping} }}\n"
        );
        let result = std::panic::catch_unwind(|| run_both(&text));
        match result {
            Ok(Ok(())) => {}
            Ok(Err(why)) => failures.push(format!("{name}: {why}\n{text}")),
            Err(_) => failures.push(format!("{name}: a panic\n{text}")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn run_both(text: &str) -> Result<(), String> {
    let module =
        load(text).map_err(|e| e.iter().map(located(text)).collect::<Vec<_>>().join("; "))?;
    let system = &module.systems[0];
    if let Some(error) = check_system(system, &BTreeMap::new()).first() {
        return Err(error.to_string());
    }
    let sizes: BTreeMap<String, i128> =
        [("N", 4), ("Q", 3)].map(|(n, v)| (n.to_string(), v)).into();
    let checked =
        check_mapping(&module, &module.mappings[0], &sizes).map_err(|e| e[0].to_string())?;
    let params = [4, 3];
    let inputs = inputs(system, &params)?;
    let expected = run_system(system, &params, &inputs).map_err(|e| format!("the system: {e}"))?;
    let outputs =
        run_array(&checked.array, &params, &inputs).map_err(|e| format!("the array: {e}"))?;
    compare(&expected, &outputs, false)
}
