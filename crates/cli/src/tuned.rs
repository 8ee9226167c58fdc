//! Results of earlier explorations of a system, from the database in the cache folder.

use systola::rt::tuning::{Choices, Chosen, Entry, Key, Log, Record, Records, Stored, Tuning};
use systola_driver::{Fix, load};
use systola_explore::report::Outcome;
use systola_ir::codes::explore as codes;
use systola_ir::mapping::Mapping;
use systola_ir::system::System;

use crate::target_device::TargetDevice;
use crate::term::{self, Paint};

/// The maximum number of stored designs of an exploration, besides those of the file.
const REMEMBERED: usize = 256;

/// The records about one system at one size on one device.
pub struct Tuned {
    tuning: Option<Tuning>,
    key: String,
    records: Vec<Record>,
}

impl Tuned {
    /// Reads the database. Damaged lines are reported; without a cache it is empty.
    pub fn read(system: &System, sizes: &[(String, i128)], target_device: &TargetDevice) -> Tuned {
        let key = key(system, "", sizes, target_device, &target_device.device());
        let tuning = target_device.cache().map(Tuning::new);
        Tuned {
            records: read_about(tuning.as_ref(), &key),
            tuning,
            key,
        }
    }

    /// The last complete exploration with these sizes fixed.
    pub fn last(&self, fix: &Fix) -> Option<&Record> {
        let fix = fixed(fix);
        let mut own = self.records.iter().filter(|r| r.fix == fix && r.complete);
        own.next_back()
    }

    /// The fastest design ever measured, with the sizes that are fixed in it. `fix`: those that the
    /// user fixes; none: any.
    pub fn best(&self, fix: &Fix) -> Option<(&Record, &Entry)> {
        let wanted = match fix {
            Fix::Nothing => None,
            Fix::Everything | Fix::Names(_) => Some(fixed(fix)),
        };
        self.records
            .iter()
            .filter(|r| wanted.as_ref().is_none_or(|fix| r.fix == *fix))
            .filter_map(|r| Some((r, r.designs.first()?)))
            .min_by(|a, b| a.1.measured.total_cmp(&b.1.measured))
    }

    /// The record of an exploration.
    pub fn record(
        &self,
        system: &System,
        sizes: &[(String, i128)],
        target_device: &TargetDevice,
        outcome: &Outcome,
    ) -> Record {
        let designs = outcome.designs.iter().filter_map(|design| {
            let choices = design.candidate.choices.iter();
            Some(Entry {
                mapping: design.candidate.mapping.to_string(),
                given: design.given,
                taxonomy: design.taxonomy.clone(),
                choices: choices
                    .map(|(w, h)| ((*w).to_string(), h.clone()))
                    .collect(),
                predicted: design.predicted,
                limit: design.limit.clone(),
                measured: design.measured?,
                samples: design.samples,
                registers: design.registers,
            })
        });
        Record {
            key: self.key.clone(),
            system: system.name.clone(),
            sizes: sizes.to_vec(),
            target: target_device.target().to_string(),
            device: target_device.device(),
            fix: fixed(target_device.fix()),
            complete: outcome.ended != systola_explore::report::Ended::Interrupted,
            candidates: outcome.candidates,
            seconds: outcome.seconds,
            designs: designs.collect(),
        }
    }

    /// Stores a record. A failure is only a note.
    pub fn add(&self, record: &Record) {
        let mut record = record.clone();
        let mut nth = 0;
        record.designs.retain(|design| {
            nth += 1;
            nth <= REMEMBERED || design.given
        });
        if let Some(tuning) = &self.tuning
            && let Err(error) = tuning.add(&record)
        {
            note(&error.to_string());
        }
    }
}

/// The choice of a model for a system at one size on one device.
pub struct Remembered {
    choices: Option<Choices>,
    chosen: Chosen,
}

impl Remembered {
    /// The choice also depends on the mappings of the file and on the model's numbers of the
    /// device; nothing is read yet.
    pub fn about(
        system: &System,
        mappings: &[&Mapping],
        sizes: &[(String, i128)],
        target_device: &TargetDevice,
    ) -> Remembered {
        let mappings: Vec<String> = mappings.iter().map(ToString::to_string).collect();
        let device = format!("{} {:?}", target_device.device(), target_device.model());
        let fix = fixed(target_device.fix());
        let more = format!("{}\nfix {}", mappings.join("\n"), fix.join(", "));
        Remembered {
            choices: target_device.cache().map(Choices::new),
            chosen: Chosen {
                key: key(system, &more, sizes, target_device, &device),
                system: system.name.clone(),
                sizes: sizes.to_vec(),
                target: target_device.target().to_string(),
                device: target_device.device(),
                fix: Vec::new(),
                mapping: String::new(),
                predicted: 0.0,
                candidates: 0,
            },
        }
    }

    /// The last choice, with the sizes that are fixed in it.
    pub fn last(&self, system: &System) -> Option<(Chosen, Mapping, Fix)> {
        let chosen = read_about(self.choices.as_ref(), &self.chosen.key).pop()?;
        let mapping = parse(system, &chosen.system, &chosen.mapping)?;
        let fix = fix_named(&chosen.fix);
        Some((chosen, mapping, fix))
    }

    /// Stores a choice. A failure is only a note.
    pub fn add(&self, mapping: &Mapping, fix: &Fix, predicted: f64, candidates: usize) {
        let chosen = Chosen {
            fix: fixed(fix),
            mapping: mapping.to_string(),
            predicted,
            candidates,
            ..self.chosen.clone()
        };
        if let Some(choices) = &self.choices
            && let Err(error) = choices.add(&chosen)
        {
            note(&error.to_string());
        }
    }
}

fn key(
    system: &System,
    more: &str,
    sizes: &[(String, i128)],
    target_device: &TargetDevice,
    device: &str,
) -> String {
    let mut nameless = system.clone();
    nameless.name = "system".to_string();
    let key = Key {
        system: &format!("{nameless}{more}"),
        sizes,
        target: target_device.target().name(),
        device,
        version: env!("CARGO_PKG_VERSION"),
    };
    key.hash()
}

/// Reads the records with a key. Damaged lines are reported; without a cache there are none.
fn read_about<R: Stored>(log: Option<&Log<R>>, key: &str) -> Vec<R> {
    let Some(log) = log else {
        return Vec::new();
    };
    let Records { records, damaged } = log.read_about(key).unwrap_or_else(|error| {
        note(&error.to_string());
        Records::default()
    });
    if damaged > 0 {
        let lines = match damaged {
            1 => "1 line".to_string(),
            n => format!("{n} lines"),
        };
        note(&format!(
            "{lines} of {} damaged, and passed over",
            log.path().display()
        ));
    }
    records
}

/// The mapping of an entry, for a system that may have another name by now.
pub fn mapping_of(system: &System, record: &Record, entry: &Entry) -> Option<Mapping> {
    parse(system, &record.system, &entry.mapping)
}

/// `name`: the name of the system when the mapping was written.
fn parse(system: &System, name: &str, mapping: &str) -> Option<Mapping> {
    let mut named = system.clone();
    named.name = name.to_string();
    let module = load(&format!("{named}\n{mapping}")).ok()?;
    let mut mapping = module.mappings.into_iter().next()?;
    mapping.system.clone_from(&system.name);
    Some(mapping)
}

/// The names of fixed sizes, as in records.
fn fixed(fix: &Fix) -> Vec<String> {
    match fix {
        Fix::Nothing => Vec::new(),
        Fix::Everything => vec!["all".to_string()],
        Fix::Names(names) => {
            let mut names = names.clone();
            names.sort();
            names.dedup();
            names
        }
    }
}

/// The inverse.
pub fn fix_of(record: &Record) -> Fix {
    fix_named(&record.fix)
}

fn fix_named(names: &[String]) -> Fix {
    match names {
        [] => Fix::Nothing,
        [all] if all == "all" => Fix::Everything,
        names => Fix::Names(names.to_vec()),
    }
}

fn note(text: &str) {
    let code = codes::TUNING_UNUSABLE.id;
    term::eprint(format!("{}: {text} ({code})\n", Paint::Blue.err("note")));
}
