//! `systola check`: checks that a mapping is legal, and describes its array.

use std::fmt::Write;
use std::path::PathBuf;

use systola_driver::{Checked, check_mapping, check_system};
use systola_ir::array::Array;
use systola_ir::codes::limits;
use systola_ir::diag::Diagnostic;
use systola_ir::mapping::Mapping;
use systola_lower::report::{Report, Scope};

use crate::files::read_text;
use crate::json;
use crate::source::{
    Failure, Outcome, Parameters, Sizes, Small, Source, Status, given_sizes, parse_size, worst,
};
use crate::table::{Align, Table};
use crate::term::{self, Paint};

const EXAMPLES: &str = "\
Examples:
  systola check gallery/conv1d/core.ure
  systola check gallery/conv1d/core.ure --map sbm --set C=16 --set Q=5
  systola check gallery/conv1d/core.ure --json | jq '.mappings[] | {name, legal}'

A mapping that can be decided only at given sizes is checked at small ones where --set does not give all of them.
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
            result: check_at_some_sizes(source, mapping, sizes),
        })
        .collect();
    let refused = verdicts.iter().filter_map(|v| v.result.as_ref().err());
    let found: Vec<&[Diagnostic]> = systems
        .iter()
        .map(|(_, found)| found.as_slice())
        .chain(refused.map(Vec::as_slice))
        .collect();
    let status = found.iter().map(|d| worst(d)).max().unwrap_or(Status::Done);

    if args.json {
        term::print(json::checked(source, sizes, &systems, &verdicts, status));
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
    let all: Vec<Diagnostic> = found.concat();
    source.print_pointer(&all);
    Ok(status)
}

/// Checks a mapping; where that is possible only at given sizes, and not all are given, at small
/// ones.
fn check_at_some_sizes(
    source: &Source,
    mapping: &Mapping,
    sizes: &Sizes,
) -> Result<Checked, Vec<Diagnostic>> {
    let found = check_mapping(&source.module, mapping, sizes);
    let needs_sizes = |d: &Diagnostic| d.code == &limits::NEEDS_SIZES;
    let Err(refused) = &found else { return found };
    let system = source
        .module
        .systems
        .iter()
        .find(|s| s.name == mapping.system);
    let Some(system) = system.filter(|_| refused.iter().all(needs_sizes)) else {
        return found;
    };
    let parameters = Parameters::from(system);
    for small in [Small::Equal, Small::Distinct] {
        let Some(taken) = parameters.with_small(sizes, small) else {
            continue;
        };
        let named = parameters.named(&taken);
        if let Ok(mut checked) = check_mapping(&source.module, mapping, &named) {
            if let Scope::GivenSizes(why) = &mut checked.report.scope {
                let _ = write!(
                    why,
                    "; not all are given, taking {}",
                    parameters.show(&taken)
                );
            }
            return Ok(checked);
        }
    }
    found
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
    let mut out = String::new();
    let scope = match &report.scope {
        Scope::AllSizes => "for all sizes".to_string(),
        Scope::GivenSizes(why) => format!("at the given sizes only: {why}"),
    };
    let _ = writeln!(
        out,
        "mapping {} of {}: {} {scope}",
        Paint::Bold.out(&report.mapping),
        report.system,
        Paint::Green.out("legal"),
    );
    heading(&mut out, &format!("array {}", report.name));
    let mut streams = Table::left(4);
    for s in &report.streams {
        streams.row([
            Paint::Bold.out(s.letter),
            s.name.clone(),
            letter_word(s.letter).to_string(),
            Paint::Dim.out(&s.reason),
        ]);
    }
    out.push_str(&streams.render());
    out.push_str(&numbers(report));

    if !report.links.is_empty() {
        heading(&mut out, "links");
        let mut links = Table::left(4);
        links.header([
            "dependence",
            "distance",
            "displacement",
            "delay",
            "realisation",
            "",
        ]);
        for row in &report.links {
            let dependence = if row.source == row.sink {
                row.source.clone()
            } else {
                format!("{} to {}", row.source, row.sink)
            };
            links.row([
                dependence,
                row.distance.clone(),
                row.displacement.clone(),
                row.delay.clone(),
                row.realisation.short_name().to_string(),
                row.guard
                    .as_ref()
                    .map_or_else(String::new, |g| Paint::Dim.out(format!("where {g}"))),
            ]);
        }
        out.push_str(&links.render());
    }
    if !report.registers.is_empty() {
        heading(&mut out, "registers per PE");
        let align = [Align::Left, Align::Right, Align::Right];
        let mut registers = Table::new(4, align);
        registers.header(["", "plain", "coalesced"]);
        for row in &report.registers {
            let name = match row.scalars {
                1 => row.name.clone(),
                n => format!("{} (x{n})", row.name),
            };
            registers.row([name, row.depth.clone(), row.coalesced.clone()]);
        }
        let total = |n: Option<i128>| n.map_or("?".to_string(), |n| n.to_string());
        registers.row([
            "in all".to_string(),
            total(report.registers_per_pe),
            total(report.coalesced_per_pe),
        ]);
        out.push_str(&registers.render());
    }
    if !array.guards.is_empty() {
        heading(&mut out, "guards");
        let mut guards = Table::left(4);
        for guard in &array.guards {
            let kept = if guard.kept { "kept" } else { "proved away" };
            guards.row([kept, guard.effect.as_str(), &Paint::Dim.out(&guard.reason)]);
        }
        out.push_str(&guards.render());
    }
    for (title, lines) in [
        ("injections", &report.injections),
        ("drains", &report.drains),
        ("transfers", &report.transfers),
        ("reverse", &report.reverse),
        ("kernel", &report.notes),
    ] {
        if !lines.is_empty() {
            heading(&mut out, title);
            for line in lines {
                let _ = writeln!(out, "    {line}");
            }
        }
    }
    out
}

fn heading(out: &mut String, title: &str) {
    let _ = writeln!(out, "  {}", Paint::Cyan.out(title));
}

/// PEs, steps, throughput, utilisation, period: one compact table.
fn numbers(report: &Report) -> String {
    let Some(counts) = &report.counts else {
        return format!(
            "    {}\n",
            Paint::Dim.out("give all sizes with --set to count PEs, steps and utilisation")
        );
    };
    let params: Vec<String> = counts
        .params
        .iter()
        .map(|(p, v)| format!("{p} = {v}"))
        .collect();
    let mut table = Table::new(4, [Align::Right; 8]);
    let mut head = vec!["PEs", "steps", "points"];
    let mut row = vec![
        counts.pes.to_string(),
        counts.steps.to_string(),
        counts.points.to_string(),
    ];
    if counts.expanded != counts.points {
        head.push("with copies");
        row.push(counts.expanded.to_string());
    }
    head.extend(["outputs", "throughput", "utilisation", "period"]);
    row.extend([
        counts.outputs.to_string(),
        format!("{:.3}", counts.throughput),
        percent(counts.utilisation),
        counts.period.map_or("-".to_string(), |p| p.to_string()),
    ]);
    table.header(head);
    table.row(row);
    let title = if params.is_empty() {
        "in numbers".to_string()
    } else {
        format!("at {}", params.join(", "))
    };
    format!("  {}\n{}", Paint::Cyan.out(title), table.render())
}

pub fn percent(fraction: f64) -> String {
    format!("{:.1} %", 100.0 * fraction)
}

fn letter_word(letter: char) -> &'static str {
    match letter {
        'B' => "broadcast",
        'F' => "forwarded",
        'S' => "stays",
        'A' => "aggregated",
        'M' => "migrates",
        _ => "no reuse",
    }
}
