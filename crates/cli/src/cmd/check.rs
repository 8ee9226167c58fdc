//! `systola check`: checks that a mapping is legal, and describes its array.

use std::fmt::Write;
use std::path::PathBuf;

use systola::CpuOptions;
use systola_driver::{Checked, check_mapping_at_some_sizes, check_system};
use systola_explore::choose::{Choice, Subject};
use systola_ir::array::Array;
use systola_ir::diag::Diagnostic;
use systola_ir::mapping::Mapping;
use systola_ir::system::System;
use systola_lower::report::Report;
use systola_lower::report::sections::{Align as ColumnAlign, Weight, scope, sections};

use crate::choose::cpu_platform;
use crate::files::read_text;
use crate::json;
use crate::runtime;
use crate::source::{Failure, Outcome, Sizes, Source, Status, given_sizes, parse_size, worst};
use crate::table::{Align, Table};
use crate::term::{self, Paint};

const EXAMPLES: &str = "\
Examples:
  systola check gallery/conv1d/core.ure
  systola check gallery/conv1d/core.ure --map sbm --set C=16 --set Q=5
  systola check gallery/conv1d/core.ure --json | jq '.mappings[] | {name, legal}'

A mapping that can be decided only at given sizes is checked at small ones where --set does not give all of them.
A system without a mapping in the file is shown with the one that `systola run` would choose.
The exit status is that of the worst finding: 0 all legal, 2 a known limitation, 1 a mistake.";

/// Check the systems and mappings of a file: legality for all sizes, PEs, links, registers
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A .ure file
    file: PathBuf,
    /// Only this mapping; may be repeated
    #[arg(long = "map", value_name = "NAME")]
    maps: Vec<String>,
    /// Give a parameter a value, for instance C=16; may be repeated
    #[arg(short = 'p', long = "set", value_name = "P=V", value_parser = parse_size)]
    sizes: Vec<(String, i128)>,
    /// Print JSON, as described in docs/json.md
    #[arg(long)]
    json: bool,
}

/// The result of checking one mapping.
#[derive(Debug)]
pub struct Verdict<'a> {
    pub mapping: &'a Mapping,
    pub result: Result<Checked, Vec<Diagnostic>>,
}

pub fn run(args: &Args) -> Outcome {
    let sizes = given_sizes(&args.sizes)?;
    if args.json {
        let text = read_text(&args.file)?;
        let path = args.file.display().to_string();
        match systola_driver::load_file(&args.file, &text) {
            Ok(module) => check_all(args, &Source { path, text, module }, &sizes),
            Err(diagnostics) => {
                let status = worst(&diagnostics);
                term::print(json::unreadable(&path, &text, &diagnostics, status));
                Ok(status)
            }
        }
    } else {
        check_all(args, &Source::load(&args.file)?, &sizes)
    }
}

fn check_all(args: &Args, source: &Source, sizes: &Sizes) -> Outcome {
    source.check_sizes(sizes)?;
    let mappings = selected(source, &args.maps)?;
    let systems: Vec<_> = source
        .module
        .systems
        .iter()
        .filter(|s| args.maps.is_empty() || mappings.iter().any(|m| m.system == s.name))
        .map(|system| (system, check_system(system, sizes)))
        .collect();
    let broken = |name: &str| {
        systems
            .iter()
            .any(|(s, found)| s.name == name && !found.is_empty())
    };
    let verdicts: Vec<Verdict<'_>> = mappings
        .iter()
        .filter(|m| !broken(&m.system))
        .map(|mapping| Verdict {
            mapping,
            result: check_mapping_at_some_sizes(&source.module, mapping, sizes),
        })
        .collect();
    let refused = verdicts.iter().filter_map(|v| v.result.as_ref().err());
    let found: Vec<&[Diagnostic]> = systems
        .iter()
        .map(|(_, found)| found.as_slice())
        .chain(refused.map(Vec::as_slice))
        .collect();
    let status = found.iter().map(|d| worst(d)).max().unwrap_or(Status::Done);
    let sound = systems.iter().filter(|(_, found)| found.is_empty());
    let unmapped = sound.filter(|(s, _)| !mappings.iter().any(|m| m.system == s.name));
    let chosen = match args.maps.is_empty() {
        true => unmapped
            .map(|(system, _)| Chosen::of(source, system, sizes))
            .collect::<Result<Vec<_>, Failure>>()?,
        false => Vec::new(),
    };

    if args.json {
        term::print(json::checked(
            source, sizes, &systems, &verdicts, &chosen, status,
        ));
        return Ok(status);
    }
    term::print(headline(source, &verdicts, mappings.len(), status));
    for (system, found) in &systems {
        let name = Paint::Bold.out(&system.name);
        if found.is_empty() {
            term::print(format!(
                "system {name}: {}{}\n",
                Paint::Green.out("well-defined"),
                at_sizes(sizes)
            ));
        } else {
            term::print(format!(
                "system {name}: {}\n",
                Paint::Red.out("not well-defined")
            ));
            source.print(found);
            for mapping in mappings.iter().filter(|m| m.system == system.name) {
                term::print(format!(
                    "mapping {}: not checked, its system has to be mended first\n",
                    Paint::Bold.out(&mapping.name)
                ));
            }
        }
    }
    for verdict in &verdicts {
        term::print("\n");
        match &verdict.result {
            Ok(checked) => term::print(summary(&checked.report, &checked.array)),
            Err(diagnostics) => {
                let word = if worst(diagnostics) == Status::Limitation {
                    Paint::Yellow.out("not supported")
                } else {
                    Paint::Red.out("illegal")
                };
                term::print(format!(
                    "mapping {} of {}: {word}\n",
                    Paint::Bold.out(&verdict.mapping.name),
                    verdict.mapping.system
                ));
                source.print(diagnostics);
            }
        }
    }
    for chosen in &chosen {
        term::print(chosen.text());
    }
    let all: Vec<Diagnostic> = found.concat();
    source.print_pointer(&all);
    Ok(status)
}

/// A design for a system without a mapping in the file.
#[derive(Debug)]
pub struct Chosen<'a> {
    pub system: &'a System,
    /// The design with its array, or why there is none.
    pub result: Result<(Choice, Checked), Diagnostic>,
}

impl<'a> Chosen<'a> {
    fn of(source: &Source, system: &'a System, sizes: &Sizes) -> Result<Chosen<'a>, Failure> {
        let options = CpuOptions::from_env().map_err(|e| runtime::fail(source, e))?;
        let subject = Subject {
            module: &source.module,
            system,
            sizes,
            platform: &cpu_platform(&options, 0),
        };
        let choose = || {
            let choice = subject.choose()?;
            let checked = check_mapping_at_some_sizes(&source.module, &choice.mapping, sizes)?;
            Ok((choice, checked))
        };
        let result = choose().map_err(|mut found: Vec<Diagnostic>| found.swap_remove(0));
        Ok(Chosen { system, result })
    }

    /// Below the report of the file. That there is no design is a note, since the file is right.
    fn text(&self) -> String {
        let name = Paint::Bold.out(&self.system.name);
        match &self.result {
            Ok((choice, checked)) => format!(
                "\nno mapping of {name} in the file; chosen: {choice}\n{}",
                summary(&checked.report, &checked.array)
            ),
            Err(why) => {
                let mut text = format!(
                    "\nno mapping of {name} was found: {} ({})\n",
                    why.message, why.code.id
                );
                if let Some(help) = &why.help {
                    text.push_str(&format!("  {}: {help}\n", Paint::Cyan.out("help")));
                }
                text
            }
        }
    }
}

/// The overall verdict, in one line.
fn headline(
    source: &Source,
    verdicts: &[Verdict<'_>],
    n_mappings: usize,
    status: Status,
) -> String {
    let module = &source.module;
    if module.systems.is_empty() && module.mappings.is_empty() && module.programs.is_empty() {
        let empty = Paint::Yellow.out("empty");
        return format!("{}: {empty}, there is nothing to check\n", source.path);
    }
    let legal = verdicts.iter().filter(|v| v.result.is_ok()).count();
    let word = match status {
        Status::Done => Paint::Green.out("legal"),
        Status::Limitation => Paint::Yellow.out("not supported"),
        Status::Mistake | Status::Bug => Paint::Red.out("illegal"),
    };
    let count = match n_mappings {
        0 => "no mapping".to_string(),
        1 => format!("{legal} of 1 mapping is legal"),
        n => format!("{legal} of {n} mappings are legal"),
    };
    format!("{}: {word}, {count}\n", source.path)
}

fn selected<'a>(source: &'a Source, names: &[String]) -> Result<Vec<&'a Mapping>, Failure> {
    if names.is_empty() {
        return Ok(source.module.mappings.iter().collect());
    }
    names
        .iter()
        .map(|name| source.mapping(Some(name), None))
        .collect()
}

fn at_sizes(sizes: &Sizes) -> String {
    if sizes.is_empty() {
        return String::new();
    }
    let parts: Vec<String> = sizes.iter().map(|(p, v)| format!("{p} = {v}")).collect();
    format!(" at {}", parts.join(", "))
}

/// The full report of a legal mapping; the verdict comes first.
pub fn summary(report: &Report, array: &Array) -> String {
    let mut out = format!(
        "mapping {} of {}: {} {}\n",
        Paint::Bold.out(&report.mapping),
        report.system,
        Paint::Green.out("legal"),
        scope(report),
    );
    for section in sections(report, &array.guards) {
        if let Some(title) = &section.title {
            let _ = writeln!(out, "  {}", Paint::Cyan.out(title));
        }
        let align = section.align.iter().map(|align| match align {
            ColumnAlign::Left => Align::Left,
            ColumnAlign::Right => Align::Right,
        });
        let mut table = Table::new(4, align.collect::<Vec<_>>());
        if let Some(header) = &section.header {
            table.header(header);
        }
        for row in &section.rows {
            table.row(row.iter().map(|cell| match cell.weight {
                Weight::Plain => cell.text.clone(),
                Weight::Strong => Paint::Bold.out(&cell.text),
                Weight::Quiet => Paint::Dim.out(&cell.text),
            }));
        }
        out.push_str(&table.render());
    }
    out
}
