//! A report as titled tables, for everything that shows it: terminals, editors.

use systola_ir::array::Guard;

use super::{Counts, LinkRow, Report, Scope};

/// A table with its title.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    pub title: Option<String>,
    pub header: Option<Vec<String>>,
    pub align: Vec<Align>,
    pub rows: Vec<Vec<Cell>>,
}

/// Columns beyond those that are listed are to the left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    pub text: String,
    pub weight: Weight,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    Plain,
    Strong,
    /// An explanation beside the facts.
    Quiet,
}

/// All of a report, with the guards of its array.
pub fn sections(report: &Report, guards: &[Guard]) -> Vec<Section> {
    let mut sections = vec![streams(report), numbers(report)];
    sections.extend(links(&report.links));
    sections.extend(registers(report));
    sections.extend(guard_rows(guards));
    for (title, lines) in [
        ("injections", &report.injections),
        ("drains", &report.drains),
        ("memory", &report.kept),
        ("transfers", &report.transfers),
        ("reverse", &report.reverse),
        ("kernel", &report.notes),
    ] {
        if !lines.is_empty() {
            let rows = lines.iter().map(|line| vec![plain(line.as_str())]);
            sections.push(Section::new(title, rows.collect()));
        }
    }
    sections
}

/// For which sizes the verdict holds, behind the word "legal".
pub fn scope(report: &Report) -> String {
    match &report.scope {
        Scope::AllSizes => "for all sizes".to_string(),
        Scope::GivenSizes(why) => format!("at the given sizes only: {why}"),
    }
}

/// A part of one, as percents.
pub fn percent(fraction: f64) -> String {
    format!("{:.1} %", 100.0 * fraction)
}

impl Section {
    fn new(title: impl Into<String>, rows: Vec<Vec<Cell>>) -> Section {
        Section {
            title: Some(title.into()),
            header: None,
            align: Vec::new(),
            rows,
        }
    }
}

fn plain(text: impl Into<String>) -> Cell {
    cell(text, Weight::Plain)
}

fn quiet(text: impl Into<String>) -> Cell {
    cell(text, Weight::Quiet)
}

fn cell(text: impl Into<String>, weight: Weight) -> Cell {
    Cell {
        text: text.into(),
        weight,
    }
}

fn header(names: impl IntoIterator<Item = &'static str>) -> Option<Vec<String>> {
    Some(names.into_iter().map(str::to_string).collect())
}

fn streams(report: &Report) -> Section {
    let rows = report.streams.iter().map(|s| {
        vec![
            cell(s.letter, Weight::Strong),
            plain(s.name.as_str()),
            plain(letter_word(s.letter)),
            quiet(s.reason.as_str()),
        ]
    });
    Section::new(report.array_name(), rows.collect())
}

fn links(links: &[LinkRow]) -> Option<Section> {
    let rows = links.iter().map(|row| {
        let dependence = if row.source == row.sink {
            row.source.clone()
        } else {
            format!("{} to {}", row.source, row.sink)
        };
        let guard = row.guard.as_ref();
        vec![
            plain(dependence),
            plain(row.distance.as_str()),
            plain(row.displacement.as_str()),
            plain(row.delay.as_str()),
            plain(row.realisation.short_name()),
            guard.map_or_else(|| plain(""), |g| quiet(format!("where {g}"))),
        ]
    });
    let header = header([
        "dependence",
        "distance",
        "displacement",
        "delay",
        "realisation",
        "",
    ]);
    (!links.is_empty()).then(|| Section {
        header,
        ..Section::new("links", rows.collect())
    })
}

fn registers(report: &Report) -> Option<Section> {
    if report.registers.is_empty() {
        return None;
    }
    let rows = report.registers.iter().map(|row| {
        let name = match row.scalars {
            1 => row.name.clone(),
            n => format!("{} (x{n})", row.name),
        };
        vec![
            plain(name),
            plain(row.depth.as_str()),
            plain(row.coalesced.as_str()),
        ]
    });
    let total = |n: Option<i128>| plain(n.map_or("?".to_string(), |n| n.to_string()));
    let all = vec![
        plain("in all"),
        total(report.registers_per_pe),
        total(report.coalesced_per_pe),
    ];
    Some(Section {
        header: header(["", "plain", "coalesced"]),
        align: vec![Align::Left, Align::Right, Align::Right],
        ..Section::new("registers per PE", rows.chain([all]).collect())
    })
}

fn guard_rows(guards: &[Guard]) -> Option<Section> {
    let rows = guards.iter().map(|guard| {
        let kept = if guard.kept { "kept" } else { "proved away" };
        vec![
            plain(kept),
            plain(guard.effect.as_str()),
            quiet(guard.reason.as_str()),
        ]
    });
    (!guards.is_empty()).then(|| Section::new("guards", rows.collect()))
}

/// PEs, steps, throughput, utilisation, period: one compact table.
fn numbers(report: &Report) -> Section {
    let Some(counts) = &report.counts else {
        let hint = "give all sizes with --set to count PEs, steps and utilisation";
        return Section {
            title: None,
            ..Section::new("", vec![vec![quiet(hint)]])
        };
    };
    let (names, row): (Vec<&str>, Vec<Cell>) = numbers_of(counts).into_iter().unzip();
    let params = counts.params.iter().map(|(p, v)| format!("{p} = {v}"));
    let title = if counts.params.is_empty() {
        "in numbers".to_string()
    } else {
        format!("at {}", params.collect::<Vec<_>>().join(", "))
    };
    Section {
        header: header(names),
        align: vec![Align::Right; row.len()],
        ..Section::new(title, vec![row])
    }
}

fn numbers_of(counts: &Counts) -> Vec<(&'static str, Cell)> {
    let number = |n: i128| plain(n.to_string());
    let mut row = vec![
        ("PEs", number(counts.pes)),
        ("steps", number(counts.steps)),
        ("points", number(counts.points)),
    ];
    if counts.expanded != counts.points {
        row.push(("with copies", number(counts.expanded)));
    }
    let period = counts.period.map_or("-".to_string(), |p| p.to_string());
    row.extend([
        ("outputs", number(counts.outputs)),
        ("throughput", plain(format!("{:.3}", counts.throughput))),
        ("utilisation", plain(percent(counts.utilisation))),
        ("period", plain(period)),
    ]);
    row
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
