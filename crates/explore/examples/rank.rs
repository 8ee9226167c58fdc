//! How well the model ranks: predicts and measures many mappings of one system on this CPU.
//!
//! ```text
//! cargo run --release -p systola-explore --example rank -- FILE SIZE=VALUE… [--fix NAME,NAME] [--threads N] [--keep TIMES] [--again] [--terms MAPPING]
//! ```
//!
//! In a mapping of FILE, `<a|b|c>` stands for alternatives: each combination is a mapping of its
//! own. `--keep` names a file of measured times. It is read, if it exists, and written; its entries
//! are not measured again. With `--again` they are, and the smaller time counts. `--terms` prints
//! the terms of mappings whose name contains this text.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;

use systola_driver::{Fix, lower};
use systola_explore::agreement::Agreement;
use systola_explore::calibrate::{Subject, load};
use systola_explore::model::{Device, Prediction, Source, predict};
use systola_ir::kernel::{BufferKind, Program};
use systola_jit::CpuOptions;
use systola_jit::cpu::compile_lowered;
use systola_rt::timing::{Enough, Repeats, measure_reported};
use systola_rt::{CacheOptions, HostArray};
use systola_rt::{RunOptions, View, ViewMut};

struct Arguments {
    file: String,
    sizes: BTreeMap<String, i128>,
    fix: Vec<String>,
    threads: usize,
    keep: Option<String>,
    again: bool,
    terms: Option<String>,
}

fn arguments() -> Result<Arguments, Box<dyn Error>> {
    let mut found = Arguments {
        file: String::new(),
        sizes: BTreeMap::new(),
        fix: Vec::new(),
        threads: 1,
        keep: None,
        again: false,
        terms: None,
    };
    let mut list = std::env::args().skip(1);
    while let Some(argument) = list.next() {
        let mut value = || list.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--fix" => found.fix = value()?.split(',').map(str::to_string).collect(),
            "--threads" => found.threads = value()?.parse()?,
            "--keep" => found.keep = Some(value()?),
            "--again" => found.again = true,
            "--terms" => found.terms = Some(value()?),
            _ => match argument.split_once('=') {
                Some((name, size)) => {
                    found.sizes.insert(name.to_string(), size.parse()?);
                }
                None => found.file.clone_from(&argument),
            },
        }
    }
    Ok(found)
}

/// All combinations of the alternatives in a text; each adds to the name behind `mapping`.
fn expand(text: &str) -> Vec<(String, String)> {
    let Some((before, rest)) = text.split_once('<') else {
        return vec![(String::new(), text.to_string())];
    };
    let Some((choices, after)) = rest.split_once('>') else {
        return vec![(String::new(), text.to_string())];
    };
    // A comparison has a space behind it.
    if choices.starts_with([' ', '=']) || !choices.contains('|') {
        let tail = expand(rest);
        let join = |(name, tail)| (name, format!("{before}<{tail}"));
        return tail.into_iter().map(join).collect();
    }
    let mut list = Vec::new();
    for choice in choices.split('|') {
        for (name, tail) in expand(after) {
            let letters: String = choice
                .chars()
                .filter(|c| c.is_ascii_alphanumeric())
                .collect();
            list.push((
                format!("_{letters}{name}"),
                format!("{before}{choice}{tail}"),
            ));
        }
    }
    list
}

/// The text of a file with all alternatives expanded.
fn families(text: &str) -> String {
    let mut result = String::new();
    for (n, part) in text.split("\nmapping ").enumerate() {
        if n == 0 {
            result.push_str(part);
            continue;
        }
        for (suffix, mapping) in expand(part) {
            let (name, rest) = mapping.split_once(' ').unwrap_or((&mapping, ""));
            let _ = write!(result, "\nmapping {name}{suffix} {rest}");
        }
    }
    result
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = arguments()?;
    let text = families(&fs::read_to_string(&arguments.file)?);
    let module = systola_driver::load(&text).map_err(|errors| format!("{errors:?}"))?;
    let fix = match arguments.fix.is_empty() {
        true => Fix::Nothing,
        false => Fix::Names(arguments.fix.clone()),
    };
    let mut options = CpuOptions {
        fix: fix.clone(),
        ..CpuOptions::from_env()?
    };
    options.compile.time_limit = std::time::Duration::from_secs(20);
    let device = cpu(arguments.threads)?;
    let mut kept = BTreeMap::new();
    if let Some(text) = arguments
        .keep
        .as_ref()
        .and_then(|f| fs::read_to_string(f).ok())
    {
        for line in text.lines() {
            if let Some((name, seconds)) = line.split_once(' ') {
                kept.insert(name.to_string(), seconds.parse::<f64>()?);
            }
        }
    }
    let mut rows: Vec<(String, Prediction, f64)> = Vec::new();
    let (mut predicting, mut lowering) = (0.0, 0.0);
    for mapping in &module.mappings {
        let start = std::time::Instant::now();
        let lowered = match lower(&module, mapping, &arguments.sizes, &fix, &options.machine()) {
            Ok(lowered) => lowered,
            Err(errors) => {
                println!("{}: {}", mapping.name, errors[0]);
                continue;
            }
        };
        lowering += start.elapsed().as_secs_f64();
        let program = lowered.program.clone();
        let sizes: Vec<i128> = program
            .params
            .iter()
            .map(|p| {
                arguments
                    .sizes
                    .get(&p.name)
                    .copied()
                    .ok_or("a size is missing")
            })
            .collect::<Result<_, _>>()?;
        let start = std::time::Instant::now();
        let prediction = predict(&program, &sizes, &device)?;
        predicting += start.elapsed().as_secs_f64();
        if arguments
            .terms
            .as_ref()
            .is_some_and(|part| mapping.name.contains(part))
        {
            explain(&mapping.name, &prediction);
        }
        let seconds = match kept.get(&mapping.name) {
            Some(seconds) if !arguments.again => *seconds,
            before => {
                let compiled = match compile_lowered(lowered, &options) {
                    Ok(compiled) => compiled,
                    Err(error) => {
                        println!("{}: {error}", mapping.name);
                        continue;
                    }
                };
                let seconds = measure(&compiled, &program, &sizes, arguments.threads)?;
                let seconds = before.map_or(seconds, |before| before.min(seconds));
                kept.insert(mapping.name.clone(), seconds);
                if let Some(file) = &arguments.keep {
                    let lines: Vec<String> = kept
                        .iter()
                        .map(|(name, s)| format!("{name} {s:e}"))
                        .collect();
                    fs::write(file, lines.join("\n"))?;
                }
                seconds
            }
        };
        rows.push((mapping.name.clone(), prediction, seconds));
    }
    rows.sort_by(|a, b| a.2.total_cmp(&b.2));
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|a, b| rows[*a].1.seconds.total_cmp(&rows[*b].1.seconds));
    let place = |row: usize| order.iter().position(|r| *r == row).unwrap_or(0);
    println!("measured ms, predicted ms, place by the model, limit, registers, mapping");
    for (n, (name, prediction, seconds)) in rows.iter().enumerate() {
        println!(
            "{:10.3} {:10.3} {:4} {:22} {:4} {name}",
            seconds * 1e3,
            prediction.seconds * 1e3,
            place(n) + 1,
            prediction.limit,
            prediction.registers,
        );
    }
    let pairs: Vec<(f64, f64)> = rows.iter().map(|(_, p, s)| (p.seconds, *s)).collect();
    let found = Agreement::of(&pairs).ok_or("nothing was measured")?;
    println!(
        "{} designs: Spearman {:.3}; the fastest is number {} of the model; the model's first takes {:.3} times as long, the best of its first ten {:.3}",
        found.designs, found.correlation, found.rank_of_fastest, found.first, found.of_ten,
    );
    let n = rows.len() as f64;
    println!(
        "{:.2} ms to lower, {:.2} ms to predict, each",
        lowering * 1e3 / n,
        predicting * 1e3 / n
    );
    Ok(())
}

/// This CPU with its calibrated numbers.
fn cpu(threads: usize) -> Result<Device, Box<dyn Error>> {
    let cache = CacheOptions::from_env()?;
    let found = load(&Subject::Cpu, cache.as_ref());
    println!("calibrated: {}", found.stored);
    let mut device = found.device;
    device.set(&[("threads".to_string(), threads as f64)], Source::Reported);
    Ok(device)
}

fn explain(name: &str, prediction: &Prediction) {
    println!("{name}: {:.3} ms", prediction.seconds * 1e3);
    for term in &prediction.terms {
        println!(
            "  {:24} {:12.4e} {:12} {:10.3} ms  {}",
            term.name,
            term.amount,
            term.unit,
            term.seconds * 1e3,
            term.source
        );
    }
}

/// CPU time of this thread: time taken by other processes does not count.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// The minimum over several runs.
fn measure(
    compiled: &systola_jit::Compiled,
    program: &Program,
    sizes: &[i128],
    threads: usize,
) -> Result<f64, Box<dyn Error>> {
    let named: Vec<(&str, i64)> = program
        .params
        .iter()
        .zip(sizes)
        .map(|(p, value)| (p.name.as_str(), *value as i64))
        .collect();
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    for buffer in &program.buffers {
        let mut shape = Vec::new();
        for axis in &buffer.axes {
            let (lo, hi) = (axis.lo.eval(sizes, &[])?, axis.hi.eval(sizes, &[])?);
            shape.push((hi - lo) as usize);
        }
        match &buffer.kind {
            BufferKind::Input { data: None } => {
                let mut array = HostArray::zeros(buffer.ty, &shape)?;
                if let Some(data) = array.as_mut_slice::<f32>() {
                    for (n, x) in data.iter_mut().enumerate() {
                        *x = (n * 7 % 32) as f32 / 16.0 - 1.0;
                    }
                }
                inputs.push((buffer.name.as_str(), array));
            }
            BufferKind::Output { .. } => {
                outputs.push((buffer.name.as_str(), HostArray::zeros(buffer.ty, &shape)?));
            }
            BufferKind::Input { data: Some(_) }
            | BufferKind::Temporary
            | BufferKind::Flags
            | BufferKind::Faults { .. } => {}
        }
    }
    let given: Vec<(&str, View<'_>)> = inputs.iter().map(|(n, a)| (*n, a.view())).collect();
    let mut taken: Vec<(&str, ViewMut<'_>)> = outputs
        .iter_mut()
        .map(|(n, a)| (*n, a.view_mut()))
        .collect();
    let mut run = || -> Result<f64, systola_jit::cpu::Error> {
        let start = cpu_seconds();
        let stats = compiled.run(&named, &given, &mut taken, &RunOptions { threads })?;
        let spent = cpu_seconds() - start;
        let kernel = stats.kernel_seconds;
        Ok(if threads == 1 {
            kernel.min(spent)
        } else {
            kernel
        })
    };
    let once = run()?;
    let enough = Enough {
        least: 2,
        most: 40,
        seconds: 0.4,
    };
    let timed = enough.batch(once);
    let timing = measure_reported(Repeats { warm_up: 1, timed }, run)?;
    Ok(timing.min())
}
