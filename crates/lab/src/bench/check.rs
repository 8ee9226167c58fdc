//! `systola-lab bench check`: the time of Systola itself.

use std::path::{Path, PathBuf};
use std::time::Instant;

use systola_cli::files::read_text;
use systola_cli::source::{Failure, Outcome, Parameters, Sizes, Status};
use systola_cli::table::{Align, Table};
use systola_cli::term::{self, Paint};
use systola_driver::{check_mapping, check_system};

/// The time limit of checking one program.
const GOAL_MS: f64 = 50.0;

/// The value of all parameters under `--huge`.
const HUGE: i128 = 1_000_000;

const EXAMPLES: &str = "\
Examples:
  cargo xtask bench check         every program of gallery/
  cargo xtask bench check --huge  the same with all parameters at a million
  cargo xtask bench check my/programs

Programs are read, parsed and checked with all their mappings; the best of --repeat runs is shown.";

/// Time the check of every program of a folder, in milliseconds; the goal is 50 ms each
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A folder of .ure files, with those below it
    #[arg(default_value = "gallery")]
    folder: PathBuf,
    /// With all parameters at a million
    #[arg(long)]
    huge: bool,
    /// Runs of each program
    #[arg(long, default_value_t = 3, value_name = "N")]
    repeat: u32,
    /// Exit with status 1 if a program misses the goal
    #[arg(long)]
    strict: bool,
}

pub fn run(args: &Args) -> Outcome {
    let mut files = Vec::new();
    collect(&args.folder, &mut files)
        .map_err(|e| Failure::new(format!("cannot read {}: {e}", args.folder.display())))?;
    if files.is_empty() {
        return Err(
            Failure::new(format!("no .ure file in {}", args.folder.display()))
                .help("run it in the root of the repository, or name a folder"),
        );
    }
    files.sort();
    let mut table = Table::new(
        0,
        [
            Align::Left,
            Align::Right,
            Align::Right,
            Align::Right,
            Align::Right,
            Align::Left,
        ],
    );
    table.header(["program", "mappings", "legal", "parse ms", "check ms", ""]);
    let (mut total, mut slowest, mut missed) = (0.0, 0.0_f64, 0);
    let mut refused = Vec::new();
    for file in &files {
        let row = measure(file, args)?;
        let ms = row.parse + row.check;
        total += ms;
        slowest = slowest.max(ms);
        let over = ms > GOAL_MS;
        missed += u32::from(over);
        table.row([
            file.strip_prefix(&args.folder)
                .unwrap_or(file)
                .display()
                .to_string(),
            row.mappings.to_string(),
            row.legal.to_string(),
            format!("{:.2}", row.parse),
            format!("{:.2}", row.check),
            if over {
                Paint::Red.out(format!("over {GOAL_MS} ms"))
            } else {
                String::new()
            },
        ]);
        refused.extend(row.refused);
    }
    term::print(table.render());
    term::print(format!(
        "{} programs, {total:.0} ms in all, slowest {slowest:.1} ms, {missed} over the goal of {GOAL_MS} ms\n",
        files.len()
    ));
    if !refused.is_empty() {
        term::print(format!("refused: {}\n", refused.join(", ")));
    }
    Ok(if args.strict && missed > 0 {
        Status::Mistake
    } else {
        Status::Done
    })
}

struct CheckRow {
    mappings: usize,
    legal: usize,
    /// Milliseconds.
    parse: f64,
    check: f64,
    /// Mappings that are not legal, with their codes.
    refused: Vec<String>,
}

fn measure(file: &Path, args: &Args) -> Result<CheckRow, Failure> {
    let text = read_text(file)?;
    let mut best = CheckRow {
        mappings: 0,
        legal: 0,
        parse: f64::INFINITY,
        check: f64::INFINITY,
        refused: Vec::new(),
    };
    for _ in 0..args.repeat.max(1) {
        let start = Instant::now();
        let module = systola_driver::load(&text).map_err(|found| {
            let first = found.first().map(ToString::to_string).unwrap_or_default();
            Failure::new(format!("{}: {first}", file.display()))
        })?;
        best.parse = best.parse.min(ms_since(start));
        let start = Instant::now();
        best.refused.clear();
        best.legal = 0;
        best.mappings = module.mappings.len();
        for system in &module.systems {
            let found = check_system(system, &sizes(system.into(), args.huge));
            best.refused.extend(
                found
                    .first()
                    .map(|d| format!("{} ({})", system.name, d.code.id)),
            );
        }
        for mapping in &module.mappings {
            let system = module.systems.iter().find(|s| s.name == mapping.system);
            let sizes = system.map_or_else(Sizes::new, |s| sizes(s.into(), args.huge));
            match check_mapping(&module, mapping, &sizes) {
                Ok(_) => best.legal += 1,
                Err(found) => {
                    let code = found.first().map_or("?", |d| d.code.id);
                    best.refused.push(format!("{} ({code})", mapping.name));
                }
            }
        }
        best.check = best.check.min(ms_since(start));
    }
    Ok(best)
}

/// No sizes (a proof for all), or a million for each parameter as far as its context allows.
fn sizes(parameters: Parameters<'_>, huge: bool) -> Sizes {
    if !huge {
        return Sizes::new();
    }
    let names = parameters.params.iter().map(|p| p.name.clone());
    let all: Sizes = names.map(|name| (name, HUGE)).collect();
    let values: Vec<i128> = parameters.params.iter().map(|_| HUGE).collect();
    if parameters.holds(&values) {
        return all;
    }
    // A context such as K < N: the first parameter that violates it is reduced.
    for n in 0..values.len() {
        for smaller in [HUGE / 2, HUGE - 1, 1000, 8, 4, 3, 2, 1] {
            let mut values = values.clone();
            values[n] = smaller;
            if parameters.holds(&values) {
                return parameters.named(&values);
            }
        }
    }
    all
}

fn ms_since(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "ure") {
            files.push(path);
        }
    }
    Ok(())
}
