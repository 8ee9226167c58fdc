//! Every mapping of a file, or of all files of a folder, against the equations.

use std::path::{Path, PathBuf};
use std::time::Duration;

use systola_cli::source::{Failure, Parameters, Sizes, Source, given_sizes};
use systola_cli::target_device::TargetDevice;
use systola_cli::term;
use systola_driver::{check_mapping, check_system};
use systola_interp::compare::compare;
use systola_interp::{Arrays, draw, expect_system};
use systola_ir::mapping::Mapping;
use systola_ir::system::System;

use super::Args;
use super::code::{Code, no_code};
use super::device::Compiled;
use super::processes::{parsed_output, verify_again};
use super::sizes::sizes;
use super::tally::{RunResult, Tally};
use crate::threads::each;

/// A process for each file.
pub fn verify_files(args: &Args, files: &[PathBuf]) -> Result<(Tally, String), Failure> {
    let program = std::env::current_exe().map_err(|e| Failure::new(e.to_string()))?;
    let done = each(files, args.jobs, |file| {
        let (tally, rows) = in_process(&program, args, file);
        term::print(&rows);
        (tally, rows)
    });
    let (mut total, mut text) = (Tally::default(), String::new());
    for (tally, rows) in done {
        total.add(tally);
        text.push_str(&rows);
    }
    Ok((total, text))
}

fn in_process(program: &Path, args: &Args, file: &Path) -> (Tally, String) {
    let command = verify_again(program, args, file);
    let limit = Duration::from_secs(args.patience);
    match parsed_output(&command, limit, Tally::parse) {
        Ok((lines, tally)) => (
            tally,
            lines.iter().map(|line| format!("{line}\n")).collect(),
        ),
        Err(what) => {
            let tally = Tally {
                failed: 1,
                ..Tally::default()
            };
            (tally, format!("FAILED {}: {what}\n", file.display()))
        }
    }
}

/// All mappings of a file, in this process.
pub fn verify_file(args: &Args, device: &TargetDevice) -> Result<(Tally, String), Failure> {
    let source = Source::load(&args.path)?;
    let mut tally = Tally::default();
    let mut text = String::new();
    let given = given_sizes(&args.sizes)?;
    let mappings = source.module.mappings.iter();
    for mapping in mappings.filter(|m| args.map.as_ref().is_none_or(|n| *n == m.name)) {
        let system = source.system(Some(&mapping.system))?;
        for row in verify_mapping(args, device, &source, system, mapping, &given) {
            tally.count(&row);
            let line = row.line(&format!("{} {}", args.path.display(), mapping.name));
            term::print(&line);
            text.push_str(&line);
        }
    }
    Ok((tally, text))
}

fn verify_mapping(
    args: &Args,
    device: &TargetDevice,
    source: &Source,
    system: &System,
    mapping: &Mapping,
    given: &Sizes,
) -> Vec<RunResult> {
    let all = sizes(system, given);
    if all.is_empty() {
        return vec![RunResult::Skipped("no small sizes".to_string())];
    }
    let mut rows = Vec::new();
    let mut code = Code::new(device, &source.module, mapping);
    for params in all {
        let parameters = Parameters::from(system);
        let shown = parameters.show(&params);
        let sizes = parameters.named(&params);
        let wrong = check_system(system, &sizes);
        if let Some(first) = wrong.first() {
            rows.push(RunResult::Skipped(format!("{shown}: {first}")));
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
                rows.push(RunResult::Skipped(format!("{shown}: {first}")));
                continue;
            }
        }
        match code.at(&sizes) {
            Ok(compiled) => rows.push(verify_run(system, compiled, &params, &shown)),
            Err(error) => {
                rows.push(no_code(&shown, &error));
                return rows;
            }
        }
    }
    rows
}

/// One run on random inputs, done twice, since a race may show only sometimes.
fn verify_run(system: &System, compiled: &Compiled, params: &[i128], shown: &str) -> RunResult {
    let inputs = match random_inputs(system, params) {
        Ok(inputs) => inputs,
        Err(what) => return RunResult::Skipped(format!("{shown}: {what}")),
    };
    let expect = match expect_system(system, params, &inputs) {
        Ok(expect) => expect,
        Err(error) => return RunResult::Skipped(format!("{shown}: {error}")),
    };
    let mut microseconds = 0.0;
    let mut blocks = 0;
    for _ in 0..2 {
        let (found, stats) = match compiled.run_tensors(params, &inputs) {
            Ok(done) => done,
            Err(error) => return RunResult::Failed(format!("{shown}: {error}")),
        };
        microseconds = stats.kernel_seconds * 1e6;
        blocks = stats.blocks;
        let lines = compare(&expect, &found);
        if let Some(line) = lines.into_iter().find_map(Result::err) {
            return RunResult::Failed(format!("{shown}: {line}"));
        }
    }
    RunResult::Verified(format!(
        "{shown}; {blocks} blocks, {microseconds:.0} µs{}",
        compiled.resources()
    ))
}

pub(super) fn random_inputs(system: &System, params: &[i128]) -> Result<Arrays, String> {
    let expanded = system.expand_batch().map_err(|e| e.to_string())?;
    let arrays = draw::random_inputs(&expanded, params, |n| n.index() as u64);
    arrays.map_err(|(name, e)| format!("input {name}: {e}"))
}
