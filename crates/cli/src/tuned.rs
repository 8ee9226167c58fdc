//! What earlier explorations know of a system, from the database in the cache folder.

use systola::rt::tuning::{Choices, Chosen, Entry, Key, Log, Record, Records, Stored, Tuning};
use systola_driver::{Fix, load};
use systola_explore::report::Outcome;
use systola_ir::codes::explore as codes;
use systola_ir::mapping::Mapping;
use systola_ir::system::System;

use crate::place::Place;
use crate::term::{self, Paint};

/// So many designs of an exploration are remembered, and all that stood in the file.
const REMEMBERED: usize = 256;

/// The records about one system at one size on one device.
pub struct Tuned {
    tuning: Option<Tuning>,
    key: String,
    records: Vec<Record>,
}

impl Tuned {
    /// Reads the database. What is damaged in it is said; without a cache nothing is known.
    pub fn read(system: &System, sizes: &[(String, i128)], place: &Place) -> Tuned {
        let key = key(system, "", sizes, place, &place.device());
        let tuning = place.cache().map(Tuning::new);
        Tuned {
            records: read_about(tuning.as_ref(), &key),
            tuning,
            key,
        }
    }

    /// The last exploration with these sizes fixed that came to its end.
    pub fn last(&self, fix: &Fix) -> Option<&Record> {
        let fix = fixed(fix);
        let mut own = self.records.iter().filter(|r| r.fix == fix && r.complete);
        own.next_back()
    }

    /// The fastest design that was ever measured, with the sizes that are fixed in it. `fix`: those that the user fixes; none: any.
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

    /// What an exploration found, as it is remembered.
    pub fn record(
        &self,
        system: &System,
        sizes: &[(String, i128)],
        place: &Place,
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
            target: place.target().to_string(),
            device: place.device(),
            fix: fixed(place.fix()),
            complete: outcome.ended != systola_explore::report::Ended::Interrupted,
            candidates: outcome.candidates,
            seconds: outcome.seconds,
            designs: designs.collect(),
        }
    }

    /// Remembers the best of it. That it can not be is said, and no more.
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

/// What a model chose for a system at one size on one device.
pub struct Remembered {
    choices: Option<Choices>,
    chosen: Chosen,
}

impl Remembered {
    /// The choice depends on the mappings of the file and on what the model knows of the device, too; nothing is read yet.
    pub fn about(
        system: &System,
        mappings: &[&Mapping],
        sizes: &[(String, i128)],
        place: &Place,
    ) -> Remembered {
        let mappings: Vec<String> = mappings.iter().map(ToString::to_string).collect();
        let device = format!("{} {:?}", place.device(), place.model());
        let fix = fixed(place.fix());
        let more = format!("{}\nfix {}", mappings.join("\n"), fix.join(", "));
        Remembered {
            choices: place.cache().map(Choices::new),
            chosen: Chosen {
                key: key(system, &more, sizes, place, &device),
                system: system.name.clone(),
                sizes: sizes.to_vec(),
                target: place.target().to_string(),
                device: place.device(),
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

    /// Remembers a choice; that it can not be is said, and no more.
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
    place: &Place,
    device: &str,
) -> String {
    let mut nameless = system.clone();
    nameless.name = "system".to_string();
    let key = Key {
        system: &format!("{nameless}{more}"),
        sizes,
        target: place.target(),
        device,
        version: env!("CARGO_PKG_VERSION"),
    };
    key.hash()
}

/// Reads the records about a key. What is damaged is said; without a cache nothing is known.
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

/// `name`: what the system was called when the mapping was written.
fn parse(system: &System, name: &str, mapping: &str) -> Option<Mapping> {
    let mut named = system.clone();
    named.name = name.to_string();
    let module = load(&format!("{named}\n{mapping}")).ok()?;
    let mut mapping = module.mappings.into_iter().next()?;
    mapping.system.clone_from(&system.name);
    Some(mapping)
}

/// As records say it.
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

/// The same the other way round.
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
