//! `systola gpu verify`: every mapping of a folder on a device, against the equations.
//!
//! Each file is run by a process of its own: a kernel that breaks its process, or does not end, is one failure and
//! not the end of all others.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use systola::cpu::Error;
use systola_driver::{Fix, check_mapping, check_system, fits, lower};
use systola_interp::tensor::Tensor;
use systola_interp::{Arrays, run_system, value};
use systola_ir::diag::Kind;
use systola_ir::mapping::Mapping;
use systola_ir::system::{InputKind, System};
use systola_ir::{Diagnostic, Literal, Scalar};

use super::sizes::sizes;
use super::target::{Compiled, Device, Target};
use crate::lowering::parse_lanes;
use crate::source::{Failure, Outcome, Parameters, Sizes, Source, Status, parse_size};
use crate::term;
use systola_interp::compare::{Rounding, compare};

const EXAMPLES: &str = "\
Examples:
  systola gpu verify gallery --log verify.log
  systola gpu verify gallery/conv2d/core.ure --map tiles
  systola gpu verify gallery --target opencl --device 1 --jobs 2
  compute-sanitizer systola gpu verify gallery/conv2d/core.ure --most-points 2000

Each mapping runs at several sizes, twice at each, on random inputs. Exit status 101 if a result differs or a
run fails.";

/// Run every mapping on a device and compare with the equations
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A .ure file, or a folder with some, also below it
    #[arg(default_value = "gallery")]
    path: PathBuf,
    /// Mappings of this name only
    #[arg(long = "map", value_name = "NAME")]
    map: Option<String>,
    /// Give a parameter a value; may be repeated
    #[arg(short = 'p', long = "set", value_name = "P=V", value_parser = parse_size)]
    sizes: Vec<(String, i128)>,
    /// What runs them
    #[arg(long, value_enum, default_value = "cuda")]
    target: Target,
    /// Which device, by its number
    #[arg(long, value_name = "N", default_value_t = 0)]
    device: usize,
    /// Lanes of a warp on an OpenCL device
    #[arg(long, value_name = "N", value_parser = parse_lanes)]
    lanes: Option<u32>,
    /// On an OpenCL device, links through the memory of a block also where there are sub-groups
    #[arg(long)]
    no_sub_groups: bool,
    /// Sizes with more points of the domain are left out
    #[arg(long, value_name = "N", default_value_t = 300_000)]
    most_points: i128,
    /// Processes at a time
    #[arg(long, value_name = "N", default_value_t = 4)]
    jobs: usize,
    /// Seconds after which the process of a file is stopped
    #[arg(long, value_name = "SECONDS", default_value_t = 240)]
    patience: u64,
    /// Write all that is printed to a file as well
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

/// What is counted over all files; the words stand in the last line of each process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    verified: usize,
    failed: usize,
    refused: usize,
}

impl Tally {
    fn line(self) -> String {
        let Tally {
            verified,
            failed,
            refused,
        } = self;
        format!("{verified} runs verified, {failed} failed, {refused} mappings without a kernel")
    }

    /// Reads what [`Tally::line`] writes.
    fn parse(line: &str) -> Option<Tally> {
        let number = |part: &str| part.split(' ').next()?.parse().ok();
        let mut parts = line.split(", ");
        let (verified, failed, refused) = (parts.next()?, parts.next()?, parts.next()?);
        verified.ends_with(" runs verified").then_some(())?;
        Some(Tally {
            verified: number(verified)?,
            failed: number(failed)?,
            refused: number(refused)?,
        })
    }

    fn add(&mut self, other: Tally) {
        self.verified += other.verified;
        self.failed += other.failed;
        self.refused += other.refused;
    }
}

pub fn run(args: &Args) -> Outcome {
    let (device, mut text) =
        Device::find(args.target, args.device, args.lanes, args.no_sub_groups)?;
    term::print(&text);
    let tally = if args.path.is_dir() {
        let files = files(&args.path)?;
        let (tally, rows) = in_processes(args, &files)?;
        text.push_str(&rows);
        tally
    } else {
        let (tally, rows) = verify_file(args, &device)?;
        text.push_str(&rows);
        tally
    };
    let line = format!("{}\n", tally.line());
    term::print(&line);
    text.push_str(&line);
    if let Some(path) = &args.log {
        std::fs::write(path, text)
            .map_err(|e| Failure::new(format!("cannot write {}: {e}", path.display())))?;
    }
    Ok(match tally.failed {
        0 => Status::Done,
        _ => Status::Bug,
    })
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let cannot = |e| Failure::new(format!("cannot read {}: {e}", folder.display()));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if path.extension().is_some_and(|e| e == "ure") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Runs this command again for each file.
fn in_processes(args: &Args, files: &[PathBuf]) -> Result<(Tally, String), Failure> {
    let program = std::env::current_exe().map_err(|e| Failure::new(e.to_string()))?;
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Tally, String)>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..args.jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    let Some(file) = files.get(n) else { break };
                    let (tally, rows) = one_process(&program, args, file);
                    term::print(&rows);
                    let mut done = done
                        .lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner);
                    done.push((n, tally, rows));
                }
            });
        }
    });
    let mut done = done
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(n, ..)| *n);
    let (mut total, mut text) = (Tally::default(), String::new());
    for (_, tally, rows) in done {
        total.add(tally);
        text.push_str(&rows);
    }
    Ok((total, text))
}

fn one_process(program: &Path, args: &Args, file: &Path) -> (Tally, String) {
    let failed = |what: String| {
        let tally = Tally {
            failed: 1,
            ..Tally::default()
        };
        (tally, format!("FAILED {}: {what}\n", file.display()))
    };
    let mut command = Command::new(program);
    command.args(["gpu", "verify"]).arg(file);
    command.args(["--target", args.target.name()]);
    command.args(["--device", &args.device.to_string()]);
    if let Some(lanes) = args.lanes {
        command.args(["--lanes", &lanes.to_string()]);
    }
    if args.no_sub_groups {
        command.arg("--no-sub-groups");
    }
    command.args(["--most-points", &args.most_points.to_string()]);
    if let Some(map) = &args.map {
        command.args(["--map", map]);
    }
    for (name, value) in &args.sizes {
        command.args(["--set", &format!("{name}={value}")]);
    }
    let spawned = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let child = match spawned {
        Ok(child) => child,
        Err(error) => return failed(error.to_string()),
    };
    let limit = Duration::from_secs(args.patience);
    let output = match wait(child, limit) {
        Ok(output) => output,
        Err(what) => return failed(what),
    };
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    // The first line says what runs, the last what was counted.
    let lines: Vec<&str> = out.lines().skip(1).collect();
    let Some((tally, rows)) = lines
        .split_last()
        .and_then(|(last, rows)| Some((Tally::parse(last)?, rows)))
    else {
        return failed(format!("{}\n{out}{err}", output.status));
    };
    let mut text = String::new();
    for row in rows {
        let _ = writeln!(text, "{row}");
    }
    if !err.is_empty() {
        let _ = writeln!(text, "{}", err.trim_end());
    }
    (tally, text)
}

/// The output of a process that ends in time.
fn wait(mut child: std::process::Child, limit: Duration) -> Result<std::process::Output, String> {
    let start = Instant::now();
    // Its output is read meanwhile, so that a full pipe does not stop it.
    let out = child.stdout.take();
    let err = child.stderr.take();
    let read = |pipe: Option<Box<dyn std::io::Read + Send>>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut pipe) = pipe {
                let _ = std::io::Read::read_to_end(&mut pipe, &mut bytes);
            }
            bytes
        })
    };
    let out = read(out.map(|p| Box::new(p) as Box<dyn std::io::Read + Send>));
    let err = read(err.map(|p| Box::new(p) as Box<dyn std::io::Read + Send>));
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if start.elapsed() < limit => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
        }
    };
    let (stdout, stderr) = (
        out.join().unwrap_or_default(),
        err.join().unwrap_or_default(),
    );
    match status {
        Some(status) => Ok(std::process::Output {
            status,
            stdout,
            stderr,
        }),
        None => Err(format!(
            "stopped after {} s\n{}",
            limit.as_secs(),
            String::from_utf8_lossy(&stdout)
        )),
    }
}

/// All mappings of a file, in this process.
fn verify_file(args: &Args, device: &Device) -> Result<(Tally, String), Failure> {
    let source = Source::load(&args.path)?;
    let mut tally = Tally::default();
    let mut text = String::new();
    let given: Sizes = args.sizes.iter().cloned().collect();
    let mappings = source.module.mappings.iter();
    for mapping in mappings.filter(|m| args.map.as_ref().is_none_or(|n| *n == m.name)) {
        let system = source.system(Some(&mapping.system))?;
        for row in verify_mapping(args, device, &source, system, mapping, &given) {
            let (word, what) = match row {
                Row::Verified(what) => {
                    tally.verified += 1;
                    ("ok     ", what)
                }
                Row::Failed(what) => {
                    tally.failed += 1;
                    ("FAILED ", what)
                }
                Row::Refused(what) => {
                    tally.refused += 1;
                    ("refused", what)
                }
                Row::Skipped(what) => ("skipped", what),
            };
            let line = format!("{word} {} {}: {what}\n", args.path.display(), mapping.name);
            term::print(&line);
            text.push_str(&line);
        }
    }
    Ok((tally, text))
}

enum Row {
    Verified(String),
    Failed(String),
    /// No kernel is made of it yet.
    Refused(String),
    Skipped(String),
}

fn verify_mapping(
    args: &Args,
    device: &Device,
    source: &Source,
    system: &System,
    mapping: &Mapping,
    given: &Sizes,
) -> Vec<Row> {
    let all = sizes(system, given);
    if all.is_empty() {
        return vec![Row::Skipped("no small sizes".to_string())];
    }
    let machine = device.machine();
    let mut rows = Vec::new();
    let mut made: Option<Compiled> = None;
    for params in all {
        let parameters = Parameters::from(system);
        let shown = parameters.show(&params);
        let sizes = parameters.named(&params);
        let is_fixed = |c: &Compiled| c.program().params.iter().any(|p| p.fixed.is_some());
        let wrong = check_system(system, &sizes);
        if let Some(first) = wrong.first() {
            rows.push(Row::Skipped(format!("{shown}: {first}")));
            continue;
        }
        match check_mapping(&source.module, mapping, &sizes) {
            Ok(checked) => {
                let points = checked.report.counts.map_or(0, |c| c.expanded);
                if points > args.most_points {
                    continue;
                }
            }
            // Legal at some sizes only.
            Err(found) => {
                let first = found.first().map(ToString::to_string).unwrap_or_default();
                rows.push(Row::Skipped(format!("{shown}: {first}")));
                continue;
            }
        }
        let is_for_others = |c: &Compiled| is_fixed(c) || !fits(c.program(), &sizes, &machine);
        if made.as_ref().is_none_or(is_for_others) {
            let lowered = match lower(&source.module, mapping, &sizes, &Fix::Nothing, &machine) {
                Ok(lowered) => lowered,
                Err(found) => {
                    rows.push(refused(&shown, &found));
                    return rows;
                }
            };
            match device.compile(lowered) {
                Ok(compiled) => made = Some(compiled),
                Err(Error::Refused(found)) => {
                    rows.push(refused(&shown, &found));
                    return rows;
                }
                Err(error) => {
                    rows.push(Row::Failed(format!("{shown}: {error}")));
                    return rows;
                }
            }
        }
        let Some(compiled) = &made else { continue };
        rows.push(verify_run(system, compiled, &params, &shown));
    }
    rows
}

/// A limitation is none of the mapping's fault.
fn refused(shown: &str, found: &[Diagnostic]) -> Row {
    let limited = found.iter().all(|d| d.kind() == Kind::Limitation);
    let all: Vec<String> = found.iter().map(ToString::to_string).collect();
    let what = format!("{shown}: {}", all.join("; "));
    if limited {
        Row::Refused(what)
    } else {
        Row::Failed(what)
    }
}

/// One run on random inputs, done twice: what depends on luck may differ.
fn verify_run(system: &System, compiled: &Compiled, params: &[i128], shown: &str) -> Row {
    let inputs = match random_inputs(system, params) {
        Ok(inputs) => inputs,
        Err(what) => return Row::Skipped(format!("{shown}: {what}")),
    };
    let expect = match run_system(system, params, &inputs) {
        Ok(expect) => expect,
        Err(error) => return Row::Skipped(format!("{shown}: {error}")),
    };
    let mut microseconds = 0.0;
    let mut blocks = 0;
    for _ in 0..2 {
        let (found, stats) = match compiled.run_tensors(params, &inputs) {
            Ok(done) => done,
            Err(error) => return Row::Failed(format!("{shown}: {error}")),
        };
        microseconds = stats.kernel_seconds * 1e6;
        blocks = stats.blocks;
        let lines = compare(&expect, &found, Rounding::Fused);
        if let Some(line) = lines.into_iter().find_map(Result::err)
            && !is_as_sensitive(system, params, &inputs, (&expect, &found))
        {
            return Row::Failed(format!("{shown}: {line}"));
        }
    }
    Row::Verified(format!(
        "{shown}; {blocks} blocks, {microseconds:.0} µs{}",
        compiled.resources()
    ))
}

fn random_inputs(system: &System, params: &[i128]) -> Result<Arrays, String> {
    let expanded = system.expand_batch().map_err(|e| e.to_string())?;
    let mut arrays = Arrays::new();
    for (n, input) in expanded.inputs.iter().enumerate() {
        if matches!(input.kind, InputKind::Table { data: Some(_) }) {
            continue;
        }
        let tensor = Tensor::random(input.ty, &input.axes, params, n as u64);
        let tensor = tensor.map_err(|e| format!("input {}: {e}", input.name))?;
        arrays.insert(input.name.clone(), tensor);
    }
    Ok(arrays)
}

/// How many times the equations' own answer to a change of the last bits of their inputs a result may be away.
const SENSITIVE: f64 = 64.0;

/// Some equations make large differences of small ones: elimination without pivots on a random matrix, say. Are
/// the results no further apart than those of the equations on inputs that differ in their last bits?
fn is_as_sensitive(
    system: &System,
    params: &[i128],
    inputs: &Arrays,
    (expect, found): (&Arrays, &Arrays),
) -> bool {
    let mut shaken = inputs.clone();
    for tensor in shaken.values_mut() {
        let ty = tensor.ty();
        let last = match ty {
            Scalar::F32 => f64::from(f32::EPSILON),
            _ => f64::EPSILON,
        };
        for at in 0..tensor.data.len() {
            if let Some(x) = tensor.data.get(at).and_then(|v| v.as_float()) {
                let by = if at % 2 == 0 { 1.0 + last } else { 1.0 - last };
                let moved = value::literal(ty, Literal::Float(x * by));
                tensor.data.set(at, &moved);
            }
        }
    }
    let Ok(other) = run_system(system, params, &shaken) else {
        return false;
    };
    expect.iter().all(|(name, expect)| {
        let apart = |b: &Arrays| -> Option<f64> {
            let b = b.get(name)?;
            (0..expect.data.len()).try_fold(0f64, |worst, at| {
                let (x, y) = (expect.data.get(at)?, b.data.get(at)?);
                let difference = match (x.as_float(), y.as_float()) {
                    (Some(x), Some(y)) if x == y || (x.is_nan() && y.is_nan()) => 0.0,
                    (Some(x), Some(y)) if x.is_nan() || y.is_nan() => f64::INFINITY,
                    (Some(x), Some(y)) => (x - y).abs(),
                    _ => f64::from(u8::from(x != y)),
                };
                Some(worst.max(difference))
            })
        };
        match (apart(found), apart(&other)) {
            (Some(found), Some(other)) => found.is_finite() && found <= SENSITIVE * other,
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tallies_are_read_as_they_are_written() {
        let tally = Tally {
            verified: 12,
            failed: 1,
            refused: 3,
        };
        assert_eq!(Tally::parse(&tally.line()), Some(tally));
        assert_eq!(Tally::parse("kernel run in 3 ms"), None);
        assert_eq!(Tally::parse("a, b, c"), None);
    }

    #[test]
    fn only_what_the_equations_do_themselves_is_allowed() {
        let module = systola_driver::load(
            "system s(N) where N >= 1 {
               input x[N]: f32;
               index i in 0..N;
               var S: f32 = x[i] * 1000.0;
               output s[N]: f32 = S at [i] when true;
             }",
        )
        .unwrap();
        let system = &module.systems[0];
        let one = |v: Vec<f32>| Arrays::from([("x".to_string(), Tensor::vector(v))]);
        let out = |v: Vec<f32>| Arrays::from([("s".to_string(), Tensor::vector(v))]);
        let inputs = one(vec![1.0, 2.0]);
        let expect = out(vec![1000.0, 2000.0]);
        let check = |found: Vec<f32>, allowed| {
            let both = (&expect, &out(found));
            assert_eq!(is_as_sensitive(system, &[2], &inputs, both), allowed);
        };
        check(vec![1000.001, 2000.0], true);
        check(vec![1000.1, 2000.0], false);
        check(vec![1000.0, f32::NAN], false);
        check(vec![1000.0, f32::INFINITY], false);
    }
}
