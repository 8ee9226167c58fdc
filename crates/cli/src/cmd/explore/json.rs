//! The stable JSON of `systola explore --json`; `docs/json.md` describes it.

use std::collections::BTreeMap;

use serde::Serialize;
use systola::rt::tuning::Entry;
use systola_explore::report::Ended;
use systola_explore::search::Fault;

use super::Answer;
use super::table::{fault_text, front, name_of};
use crate::source::{Source, Status};
use crate::target_device::TargetDevice;

/// Incremented when a field changes its meaning or is removed, not for new fields.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    file: &'a str,
    target: &'a str,
    device: String,
    systems: Vec<SystemJson<'a>>,
    status: u8,
}

#[derive(Serialize)]
struct SystemJson<'a> {
    name: &'a str,
    params: BTreeMap<&'a str, i128>,
    fix: &'a [String],
    /// Found by an earlier run.
    remembered: bool,
    strategy: Option<&'a str>,
    ended: Option<&'a str>,
    seconds: f64,
    candidates: usize,
    refused: Option<usize>,
    model: Option<ModelJson>,
    designs: Vec<DesignJson<'a>>,
    /// Set where nothing was measured.
    expected: Option<ExpectedJson<'a>>,
    failed: Vec<FailedJson<'a>>,
}

/// How well the model ranks.
#[derive(Serialize)]
struct ModelJson {
    designs: usize,
    rank_correlation: f64,
    place_of_fastest: usize,
    first_takes: f64,
    best_of_ten_takes: f64,
}

#[derive(Serialize)]
struct DesignJson<'a> {
    name: &'a str,
    given: bool,
    taxonomy: &'a str,
    choices: BTreeMap<&'a str, &'a str>,
    predicted_seconds: Option<f64>,
    measured_seconds: f64,
    samples: usize,
    registers: Option<u32>,
    on_front: bool,
    limit: Option<&'a str>,
    mapping: &'a str,
}

/// The best by the model.
#[derive(Serialize)]
struct ExpectedJson<'a> {
    name: &'a str,
    predicted_seconds: Option<f64>,
    mapping: String,
}

#[derive(Serialize)]
struct FailedJson<'a> {
    name: &'a str,
    kind: &'static str,
    reason: String,
    mapping: String,
}

pub fn document(
    source: &Source,
    target_device: &TargetDevice,
    answers: &[Answer<'_>],
    status: Status,
) -> String {
    let document = Document {
        schema: SCHEMA,
        file: &source.path,
        target: target_device.target().name(),
        device: target_device.device(),
        systems: answers.iter().map(system).collect(),
        status: status.code(),
    };
    let mut text = serde_json::to_string_pretty(&document)
        .expect("plain structs with string keys always serialise");
    text.push('\n');
    text
}

fn system<'a>(answer: &'a Answer<'_>) -> SystemJson<'a> {
    let record = &answer.record;
    let outcome = answer.outcome.as_ref();
    let on_front = front(&record.designs);
    let designs = record.designs.iter().zip(on_front);
    SystemJson {
        name: &answer.system.name,
        params: record.sizes.iter().map(|(p, v)| (p.as_str(), *v)).collect(),
        fix: &record.fix,
        remembered: outcome.is_none(),
        strategy: outcome.map(|o| o.strategy),
        ended: outcome.map(|o| match o.ended {
            Ended::Complete => "complete",
            Ended::Budget => "budget",
            Ended::Interrupted => "interrupted",
        }),
        seconds: record.seconds,
        candidates: record.candidates,
        refused: outcome.map(|o| o.refused.len()),
        model: answer.agreement().map(|found| ModelJson {
            designs: found.designs,
            rank_correlation: found.correlation,
            place_of_fastest: found.rank_of_fastest,
            first_takes: found.first,
            best_of_ten_takes: found.of_ten,
        }),
        designs: designs.map(|(d, on_front)| design(d, on_front)).collect(),
        expected: outcome
            .and_then(|o| o.expected.as_ref())
            .map(|design| ExpectedJson {
                name: design.name(),
                predicted_seconds: design.predicted,
                mapping: design.candidate.mapping.to_string(),
            }),
        failed: outcome.map(failed).unwrap_or_default(),
    }
}

fn design(entry: &Entry, on_front: bool) -> DesignJson<'_> {
    let choices = entry.choices.iter();
    DesignJson {
        name: name_of(entry),
        given: entry.given,
        taxonomy: &entry.taxonomy,
        choices: choices.map(|(w, h)| (w.as_str(), h.as_str())).collect(),
        predicted_seconds: entry.predicted,
        measured_seconds: entry.measured,
        samples: entry.samples,
        registers: entry.registers,
        on_front,
        limit: entry.limit.as_deref(),
        mapping: &entry.mapping,
    }
}

fn failed(outcome: &systola_explore::report::Outcome) -> Vec<FailedJson<'_>> {
    let faulty = outcome.designs.iter();
    let faulty = faulty.filter_map(|d| Some((d, d.fault.as_ref()?)));
    faulty
        .map(|(design, fault)| FailedJson {
            name: design.name(),
            kind: match fault {
                Fault::Refused(_) => "refused",
                Fault::Failed(_) => "failed",
                Fault::TooSlow => "slow",
                Fault::Late => "late",
                Fault::Wrong(_) => "wrong",
            },
            reason: fault_text(fault),
            mapping: design.candidate.mapping.to_string(),
        })
        .collect()
}
