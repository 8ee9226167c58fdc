//! The stable JSON of `systola check --json`; `docs/json.md` describes it.

use std::collections::BTreeMap;

use serde::Serialize;
use systola_driver::Checked;
use systola_ir::diag::{Counterexample, Diagnostic, Kind};
use systola_ir::system::System;
use systola_lower::report::Scope;

use crate::cmd::check::{Chosen, Verdict};
use crate::render::line_column;
use crate::source::{Sizes, Source, Status};

/// Incremented when a field changes its meaning or is removed, not for new fields.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    file: &'a str,
    params: ParamsJson<'a>,
    systems: Vec<SystemJson<'a>>,
    mappings: Vec<MappingJson<'a>>,
    chosen: Vec<ChosenJson<'a>>,
    diagnostics: Vec<DiagnosticJson<'a>>,
    status: u8,
}

type ParamsJson<'a> = BTreeMap<&'a str, i128>;

#[derive(Serialize)]
struct SystemJson<'a> {
    name: &'a str,
    well_defined: bool,
    diagnostics: Vec<DiagnosticJson<'a>>,
}

/// All fields exist for every mapping; for an illegal one they are null or empty.
#[derive(Default, Serialize)]
struct MappingJson<'a> {
    name: &'a str,
    system: &'a str,
    legal: bool,
    scope: Option<&'static str>,
    scope_reason: Option<&'a str>,
    taxonomy: Option<&'a str>,
    streams: Vec<StreamJson<'a>>,
    points: Option<i128>,
    expanded: Option<i128>,
    pes: Option<i128>,
    steps: Option<i128>,
    outputs: Option<i128>,
    throughput: Option<f64>,
    utilisation: Option<f64>,
    period: Option<i128>,
    registers: RegistersJson<'a>,
    links: Vec<LinkJson<'a>>,
    guards: Vec<GuardJson<'a>>,
    injections: &'a [String],
    drains: &'a [String],
    memory: &'a [String],
    transfers: &'a [String],
    notes: &'a [String],
    reverse: &'a [String],
    diagnostics: Vec<DiagnosticJson<'a>>,
}

/// A design for a system without a mapping in the file; without one, why there is none.
#[derive(Serialize)]
struct ChosenJson<'a> {
    why: String,
    text: Option<String>,
    sizes: ParamsJson<'a>,
    mapping: MappingJson<'a>,
}

#[derive(Serialize)]
struct StreamJson<'a> {
    name: &'a str,
    letter: char,
    reason: &'a str,
}

#[derive(Default, Serialize)]
struct RegistersJson<'a> {
    per_pe: Option<i128>,
    coalesced_per_pe: Option<i128>,
    total: Option<i128>,
    coalesced_total: Option<i128>,
    cells: Vec<RegisterJson<'a>>,
}

#[derive(Serialize)]
struct RegisterJson<'a> {
    name: &'a str,
    scalars: usize,
    depth: &'a str,
    coalesced: &'a str,
}

#[derive(Serialize)]
struct LinkJson<'a> {
    source: &'a str,
    sink: &'a str,
    distance: &'a str,
    displacement: &'a str,
    delay: &'a str,
    realisation: &'static str,
    guard: Option<&'a str>,
}

#[derive(Serialize)]
struct GuardJson<'a> {
    effect: &'a str,
    kept: bool,
    reason: &'a str,
}

#[derive(Serialize)]
struct DiagnosticJson<'a> {
    code: &'static str,
    kind: &'static str,
    message: &'a str,
    span: Option<SpanJson>,
    labels: Vec<LabelJson<'a>>,
    notes: &'a [String],
    help: Option<&'a str>,
    counterexample: Option<CounterexampleJson<'a>>,
}

/// Lines and columns count from 1, columns in characters; the end is exclusive.
#[derive(Serialize)]
struct SpanJson {
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
}

#[derive(Serialize)]
struct LabelJson<'a> {
    span: SpanJson,
    text: &'a str,
}

#[derive(Serialize)]
struct CounterexampleJson<'a> {
    params: ParamsJson<'a>,
    dims: &'a [String],
    points: Vec<PointJson<'a>>,
}

#[derive(Serialize)]
struct PointJson<'a> {
    point: &'a [i128],
    place: &'a [i128],
    time: &'a [i128],
}

/// A file that could not be parsed.
pub fn unreadable(path: &str, text: &str, found: &[Diagnostic], status: Status) -> String {
    print(&Document {
        schema: SCHEMA,
        file: path,
        params: ParamsJson::new(),
        systems: Vec::new(),
        mappings: Vec::new(),
        chosen: Vec::new(),
        diagnostics: diagnostics(text, found),
        status: status.code(),
    })
}

/// A file that was checked.
pub fn checked(
    source: &Source,
    sizes: &Sizes,
    systems: &[(&System, Vec<Diagnostic>)],
    verdicts: &[Verdict<'_>],
    chosen: &[Chosen<'_>],
    status: Status,
) -> String {
    let text = &source.text;
    let systems = systems.iter().map(|(system, found)| SystemJson {
        name: &system.name,
        well_defined: found.is_empty(),
        diagnostics: diagnostics(text, found),
    });
    let mappings = verdicts.iter().map(|verdict| {
        let mut json = match &verdict.result {
            Ok(checked) => legal(checked),
            Err(found) => MappingJson {
                diagnostics: diagnostics(text, found),
                ..MappingJson::default()
            },
        };
        json.name = &verdict.mapping.name;
        json.system = &verdict.mapping.system;
        json
    });
    print(&Document {
        schema: SCHEMA,
        file: &source.path,
        params: params(sizes.iter()),
        systems: systems.collect(),
        mappings: mappings.collect(),
        chosen: chosen
            .iter()
            .map(|chosen| chosen_json(text, chosen))
            .collect(),
        diagnostics: Vec::new(),
        status: status.code(),
    })
}

fn chosen_json<'a>(text: &str, chosen: &'a Chosen<'_>) -> ChosenJson<'a> {
    match &chosen.result {
        Ok((choice, checked)) => ChosenJson {
            why: choice.why.to_string(),
            text: Some(choice.mapping.to_string()),
            sizes: choice.sizes.iter().map(|(p, v)| (p.as_str(), *v)).collect(),
            mapping: MappingJson {
                name: &choice.mapping.name,
                system: &chosen.system.name,
                ..legal(checked)
            },
        },
        Err(found) => ChosenJson {
            why: found.message.clone(),
            text: None,
            sizes: ParamsJson::new(),
            mapping: MappingJson {
                system: &chosen.system.name,
                diagnostics: diagnostics(text, std::slice::from_ref(found)),
                ..MappingJson::default()
            },
        },
    }
}

fn print(document: &Document<'_>) -> String {
    let mut text = serde_json::to_string_pretty(document)
        .expect("plain structs with string keys always serialise");
    text.push('\n');
    text
}

fn params<'a>(list: impl Iterator<Item = (&'a String, &'a i128)>) -> ParamsJson<'a> {
    list.map(|(name, value)| (name.as_str(), *value)).collect()
}

fn guard(guard: &systola_ir::array::Guard) -> GuardJson<'_> {
    GuardJson {
        effect: &guard.effect,
        kept: guard.kept,
        reason: &guard.reason,
    }
}

fn legal(checked: &Checked) -> MappingJson<'_> {
    let report = &checked.report;
    let counts = report.counts.as_ref();
    let pes = counts.map(|c| c.pes);
    let total = |per_pe: Option<i128>| per_pe.zip(pes).and_then(|(r, n)| r.checked_mul(n));
    let (scope, scope_reason) = match &report.scope {
        Scope::AllSizes => ("all-sizes", None),
        Scope::GivenSizes(why) => ("given-sizes", Some(why.as_str())),
    };
    MappingJson {
        legal: true,
        scope: Some(scope),
        scope_reason,
        taxonomy: Some(&report.name),
        streams: report
            .streams
            .iter()
            .map(|s| StreamJson {
                name: &s.name,
                letter: s.letter,
                reason: &s.reason,
            })
            .collect(),
        points: counts.map(|c| c.points),
        expanded: counts.map(|c| c.expanded),
        pes,
        steps: counts.map(|c| c.steps),
        outputs: counts.map(|c| c.outputs),
        throughput: counts.map(|c| c.throughput),
        utilisation: counts.map(|c| c.utilisation),
        period: counts.and_then(|c| c.period),
        registers: RegistersJson {
            per_pe: report.registers_per_pe,
            coalesced_per_pe: report.coalesced_per_pe,
            total: total(report.registers_per_pe),
            coalesced_total: total(report.coalesced_per_pe),
            cells: report
                .registers
                .iter()
                .map(|r| RegisterJson {
                    name: &r.name,
                    scalars: r.scalars,
                    depth: &r.depth,
                    coalesced: &r.coalesced,
                })
                .collect(),
        },
        links: report
            .links
            .iter()
            .map(|l| LinkJson {
                source: &l.source,
                sink: &l.sink,
                distance: &l.distance,
                displacement: &l.displacement,
                delay: &l.delay,
                realisation: l.realisation.short_name(),
                guard: l.guard.as_deref(),
            })
            .collect(),
        guards: checked.array.guards.iter().map(guard).collect(),
        injections: &report.injections,
        drains: &report.drains,
        memory: &report.kept,
        transfers: &report.transfers,
        notes: &report.notes,
        reverse: &report.reverse,
        ..MappingJson::default()
    }
}

fn diagnostics<'a>(text: &str, found: &'a [Diagnostic]) -> Vec<DiagnosticJson<'a>> {
    found.iter().map(|d| diagnostic(text, d)).collect()
}

fn diagnostic<'a>(text: &str, d: &'a Diagnostic) -> DiagnosticJson<'a> {
    let span = |span: systola_ir::Span| {
        let (line, column) = line_column(text, span.start as usize);
        let (end_line, end_column) = line_column(text, span.end as usize);
        SpanJson {
            line,
            column,
            end_line,
            end_column,
        }
    };
    DiagnosticJson {
        code: d.code.id,
        kind: match d.kind() {
            Kind::Mistake => "mistake",
            Kind::Limitation => "limitation",
            Kind::Hint => "hint",
        },
        message: &d.message,
        span: (!d.span().is_none()).then(|| span(d.span())),
        labels: d
            .labels
            .iter()
            .filter(|(s, _)| !s.is_none())
            .map(|(s, text)| LabelJson {
                span: span(*s),
                text,
            })
            .collect(),
        notes: &d.notes,
        help: d.help.as_deref(),
        counterexample: d.counterexample.as_ref().map(counterexample),
    }
}

fn counterexample(example: &Counterexample) -> CounterexampleJson<'_> {
    CounterexampleJson {
        params: params(example.params.iter().map(|(name, value)| (name, value))),
        dims: &example.dims,
        points: example
            .points
            .iter()
            .map(|p| PointJson {
                point: &p.point,
                place: &p.place,
                time: &p.time,
            })
            .collect(),
    }
}
