//! `systola-lab verify hosts`: every mapping as a whole program, compiled by the compiler of its
//! language as a user would, and run on files, against the equations.

mod compiler;
mod program;

use std::path::{Path, PathBuf};

use systola_cli::device::DeviceName;
use systola_cli::files;
use systola_cli::named::named;
use systola_cli::source::{Failure, Outcome, Parameters, Sizes, Source, Status};
use systola_cli::term;
use systola_driver::{check_mapping, check_system};
use systola_interp::compare::compare;
use systola_interp::expect_system;
use systola_ir::mapping::Mapping;
use systola_ir::system::System;
use systola_ir::target::Target;

use self::compiler::{Compiler, Language};
use self::program::Programs;
use super::mappings::random_inputs;
use super::sizes::sizes;
use super::tally::{RunResult, Tally};
use crate::threads::{available, each};

const EXAMPLES: &str = "\
Examples:
  systola-lab verify hosts --target cuda --jobs 16 --log hosts.log
  systola-lab verify hosts gallery/conv2d --target c
  systola-lab verify hosts --target cuda --compile-only --flag=-arch=sm_80
  systola-lab verify hosts --target opencl --device 1

Each mapping of each file becomes one program (`systola emit --with-host`), which is compiled and run at several sizes on
random inputs, from files to files. Exit status 101 if one is not compiled, or a result differs.";

/// Compile and run whole programs, and compare with the equations
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// .ure files, or folders with some, also below them
    #[arg(default_values = ["gallery", "stencils"])]
    paths: Vec<PathBuf>,
    /// The language of the programs
    #[arg(long, value_parser = languages(), default_value = "c")]
    target: Target,
    /// Which device, by its index or a part of its name
    #[arg(long, value_name = "N|NAME", default_value_t)]
    device: DeviceName,
    /// Mappings of this name only
    #[arg(long = "map", value_name = "NAME")]
    map: Option<String>,
    /// The compiler; by default cc, or nvcc for CUDA
    #[arg(long, value_name = "PROGRAM")]
    compiler: Option<PathBuf>,
    /// Another argument of the compiler; may be repeated
    #[arg(long = "flag", value_name = "FLAG", allow_hyphen_values = true)]
    flags: Vec<String>,
    /// Run nothing
    #[arg(long)]
    compile_only: bool,
    /// Skip sizes with more points of the domain
    #[arg(long, value_name = "N", default_value_t = 300_000)]
    most_points: i128,
    /// Programs that are compiled and run at a time; as many as there are cores if not given
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Keep the texts of all programs in this folder
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// Write the output to a file as well
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

fn languages() -> impl clap::builder::TypedValueParser<Value = Target> {
    named(Target::ALL.map(|target| match target {
        Target::Cpu => ("c", "C, for CPUs", target),
        Target::Cuda => ("cuda", "CUDA C++, compiled by nvcc", target),
        Target::OpenCl => ("opencl", "C that calls OpenCL", target),
    }))
}

pub fn run(args: &Args) -> Outcome {
    let language = Language::of(args.target, &args.device)?;
    let mut compiler = Compiler::new(&language)?;
    if let Some(program) = &args.compiler {
        compiler.program.clone_from(program);
    }
    compiler.flags.extend(args.flags.iter().cloned());
    let mut found = Vec::new();
    for path in &args.paths {
        if path.is_dir() {
            found.extend(super::files(path)?);
        } else {
            found.push(path.clone());
        }
    }
    let sources = found.iter().map(|path| Source::load(path));
    let sources = sources.collect::<Result<Vec<_>, Failure>>()?;
    let mappings = sources.iter().flat_map(|source| {
        let own = source.module.mappings.iter();
        own.map(move |mapping| (source, mapping))
    });
    let wanted = |m: &Mapping| args.map.as_ref().is_none_or(|name| *name == m.name);
    let mappings: Vec<_> = mappings.filter(|(_, m)| wanted(m)).collect();
    let campaign = Campaign {
        language,
        compiler,
        compile_only: args.compile_only,
        most_points: args.most_points,
        most_sizes: usize::MAX,
        keep: args.keep.clone(),
    };
    if let Some(folder) = &args.keep {
        std::fs::create_dir_all(folder)
            .map_err(|e| Failure::new(format!("{}: {e}", folder.display())))?;
    }
    let jobs = args.jobs.unwrap_or_else(available);
    let done = each(&mappings, jobs, |(source, mapping)| {
        let rows = campaign.mapping(source, mapping);
        let name = format!("{} {}", source.path, mapping.name);
        let lines: String = rows.iter().map(|row| row.line(&name)).collect();
        term::print(&lines);
        (rows, lines)
    });
    let (mut tally, mut text) = (Tally::default(), String::new());
    for (rows, lines) in &done {
        rows.iter().for_each(|row| tally.count(row));
        text.push_str(lines);
    }
    let line = format!("{}\n", tally.line());
    term::print(&line);
    text.push_str(&line);
    if let Some(path) = &args.log {
        files::write(path, text.as_bytes())?;
    }
    if tally.verified == 0 && tally.failed == 0 {
        return Err(Failure::new("no program was made"));
    }
    Ok(match tally.failed {
        0 => Status::Done,
        _ => Status::Bug,
    })
}

/// How programs are made and run.
struct Campaign {
    language: Language,
    compiler: Compiler,
    compile_only: bool,
    most_points: i128,
    /// Sizes at which a mapping is run, the smallest first.
    most_sizes: usize,
    keep: Option<PathBuf>,
}

impl Campaign {
    fn mapping(&self, source: &Source, mapping: &Mapping) -> Vec<RunResult> {
        let system = match source.system(Some(&mapping.system)) {
            Ok(system) => system,
            Err(_) => return vec![RunResult::Failed("it has no system".to_string())],
        };
        let all = sizes(system, &Sizes::new());
        if all.is_empty() {
            return vec![RunResult::Skipped("no small sizes".to_string())];
        }
        let mut programs = Programs::new(self, &source.module, mapping);
        let mut rows = Vec::new();
        for params in all {
            if rows.len() >= self.most_sizes {
                break;
            }
            match self.at(&mut programs, source, system, mapping, &params) {
                Some(RunResult::Refused(what)) => {
                    rows.push(RunResult::Refused(what));
                    break;
                }
                Some(row) => rows.push(row),
                None => {}
            }
        }
        rows
    }

    /// None where there are too many points.
    fn at(
        &self,
        programs: &mut Programs<'_>,
        source: &Source,
        system: &System,
        mapping: &Mapping,
        params: &[i128],
    ) -> Option<RunResult> {
        let parameters = Parameters::from(system);
        let shown = parameters.show(params);
        let sizes = parameters.named(params);
        if let Some(first) = check_system(system, &sizes).first() {
            return Some(RunResult::Skipped(format!("{shown}: {first}")));
        }
        match check_mapping(&source.module, mapping, &sizes) {
            Ok(checked) => {
                let points = checked.report.counts.map_or(0, |c| c.expanded);
                if points > self.most_points {
                    return None;
                }
            }
            // Legal at some sizes only.
            Err(found) => {
                let first = found.first().map(ToString::to_string).unwrap_or_default();
                return Some(RunResult::Skipped(format!("{shown}: {first}")));
            }
        }
        let program = match programs.at(&sizes) {
            Ok(program) => program,
            Err(RunResult::Failed(what)) => {
                return Some(RunResult::Failed(format!("{shown}: {what}")));
            }
            Err(other) => return Some(other),
        };
        if self.compile_only {
            return Some(RunResult::Verified(format!("{shown}: compiled")));
        }
        let inputs = match random_inputs(system, params) {
            Ok(inputs) => inputs,
            Err(what) => return Some(RunResult::Skipped(format!("{shown}: {what}"))),
        };
        let expect = match expect_system(system, params, &inputs) {
            Ok(expect) => expect,
            Err(error) => return Some(RunResult::Skipped(format!("{shown}: {error}"))),
        };
        let (found, said) = match program.run(self.language.device(), params, &inputs) {
            Ok(done) => done,
            Err(error) => return Some(RunResult::Failed(format!("{shown}: {error}"))),
        };
        let lines = compare(&expect, &found);
        if let Some(line) = lines.into_iter().find_map(Result::err) {
            return Some(RunResult::Failed(format!("{shown}: {line}")));
        }
        let time = said.lines().find(|line| line.contains(" ms, "));
        let time = time.unwrap_or_default();
        Some(RunResult::Verified(format!("{shown}; {time}")))
    }

    /// The file in which a text is kept.
    fn kept(&self, mapping: &Mapping, system: &str, text: &str) -> Result<(), String> {
        let Some(folder) = &self.keep else {
            return Ok(());
        };
        let name = format!("{system}_{}.{}", mapping.name, self.language.extension());
        let path: &Path = &folder.join(name);
        std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
    }
}

#[cfg(test)]
mod tests;
