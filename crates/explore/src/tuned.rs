//! Results of earlier explorations of a system, from the database in the cache folder.

use systola_driver::{Fix, load};
use systola_ir::mapping::Mapping;
use systola_ir::system::System;
use systola_rt::tuning::{
    Choices, Chosen, Entry, Key, Log, Record, Records, Stored, Tuning, hash_of_system,
};

use crate::platform::Platform;
use crate::report::{Ended, Outcome};
use crate::sizes::Sizes;

/// The maximum number of stored designs of an exploration, besides those of the file.
const REMEMBERED: usize = 256;

/// The records about one system at one size on one device.
pub struct Tuned {
    tuning: Option<Tuning>,
    key: String,
    records: Vec<Record>,
    /// Damaged lines, and why nothing can be read.
    pub notes: Vec<String>,
}

impl Tuned {
    /// Reads the database; without a cache it is empty.
    pub fn read(system: &System, sizes: &[(String, i128)], platform: &Platform) -> Tuned {
        let key = key(system, "", sizes, platform, &platform.device);
        let tuning = platform.cache.as_ref().map(Tuning::new);
        let mut notes = Vec::new();
        Tuned {
            records: read_about(tuning.as_ref(), &key, &mut notes),
            tuning,
            key,
            notes,
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
        platform: &Platform,
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
            target: platform.target().to_string(),
            device: platform.device.clone(),
            fix: fixed(&platform.fix),
            complete: outcome.ended != Ended::Interrupted,
            candidates: outcome.candidates,
            seconds: outcome.seconds,
            designs: designs.collect(),
        }
    }

    /// Stores a record. A failure is only a note, which is returned.
    #[must_use]
    pub fn add(&self, record: &Record) -> Option<String> {
        let mut record = record.clone();
        let mut nth = 0;
        record.designs.retain(|design| {
            nth += 1;
            nth <= REMEMBERED || design.given
        });
        let added = self.tuning.as_ref()?.add(&record);
        added.err().map(|error| error.to_string())
    }
}

/// The choice of a model for a system at one size on one device.
pub struct Remembered {
    choices: Option<Choices>,
    chosen: Chosen,
}

impl Remembered {
    /// The choice also depends on the mappings of the file, on which sizes are given and on the
    /// model's numbers of the device; nothing is read yet.
    pub fn about(
        system: &System,
        mappings: &[&Mapping],
        sizes: &[(String, i128)],
        taken: &[String],
        platform: &Platform,
    ) -> Remembered {
        let mappings: Vec<String> = mappings.iter().map(ToString::to_string).collect();
        let device = format!("{} {:?}", platform.device, platform.model);
        let given = match taken {
            [] => String::new(),
            names => format!(", {} not given", names.join(", ")),
        };
        let fix = fixed(&platform.fix);
        let more = format!("{}\nfix {}{given}", mappings.join("\n"), fix.join(", "));
        Remembered {
            choices: platform.cache.as_ref().map(Choices::new),
            chosen: Chosen {
                key: key(system, &more, sizes, platform, &device),
                about: hash_of_system(&nameless(system)),
                system: system.name.clone(),
                sizes: sizes.to_vec(),
                target: platform.target().to_string(),
                device: platform.device.clone(),
                fix: Vec::new(),
                mapping: String::new(),
                predicted: 0.0,
                candidates: 0,
            },
        }
    }

    /// The last choice, with the sizes that are fixed in it.
    pub fn last(&self, system: &System, notes: &mut Vec<String>) -> Option<(Chosen, Mapping, Fix)> {
        let chosen = read_about(self.choices.as_ref(), &self.chosen.key, notes).pop()?;
        let mapping = parse(system, &chosen.system, &chosen.mapping)?;
        let fix = fix_named(&chosen.fix);
        Some((chosen, mapping, fix))
    }

    /// Stores a choice. A failure is only a note, which is returned.
    #[must_use]
    pub fn add(
        &self,
        mapping: &Mapping,
        fix: &Fix,
        predicted: f64,
        candidates: usize,
    ) -> Option<String> {
        let chosen = Chosen {
            fix: fixed(fix),
            mapping: mapping.to_string(),
            predicted,
            candidates,
            ..self.chosen.clone()
        };
        let added = self.choices.as_ref()?.add(&chosen);
        added.err().map(|error| error.to_string())
    }
}

/// A design that was printed before.
pub struct Known {
    pub mapping: Mapping,
    pub fix: Fix,
    pub sizes: Vec<(String, i128)>,
    /// Seconds; `None` where only the model chose it.
    pub measured: Option<f64>,
}

/// The last design of this name that an exploration or a choice stored about a system, at sizes
/// that do not contradict the given ones: for this platform, else for another.
pub fn known(system: &System, name: &str, given: &Sizes, platform: &Platform) -> Option<Known> {
    let cache = platform.cache.as_ref()?;
    let fits = |sizes: &[(String, i128)]| {
        let same = |(p, v): &(String, i128)| given.get(p).is_none_or(|own| own == v);
        sizes.iter().all(same)
    };
    let is_named = |text: &str| text.starts_with(&format!("mapping {name} of "));
    let is_here = |target: &str, device: &str| {
        target == platform.target().name() && device == platform.device
    };
    let mut all: Vec<(bool, Known)> = Vec::new();
    let records = Tuning::new(cache).read().unwrap_or_default().records;
    for record in records.iter().rev().filter(|r| fits(&r.sizes)) {
        let entry = record.designs.iter().find(|d| is_named(&d.mapping));
        let own = || key_on(system, "", &record.sizes, &record.target, &record.device);
        if let Some(entry) = entry
            && record.key == own()
            && let Some(mapping) = mapping_of(system, record, entry)
        {
            let known = Known {
                mapping,
                fix: fix_of(record),
                sizes: record.sizes.clone(),
                measured: Some(entry.measured),
            };
            all.push((is_here(&record.target, &record.device), known));
        }
    }
    let about = hash_of_system(&nameless(system));
    let choices = Choices::new(cache).read().unwrap_or_default().records;
    for chosen in choices.iter().rev().filter(|c| fits(&c.sizes)) {
        if chosen.about == about
            && is_named(&chosen.mapping)
            && let Some(mapping) = parse(system, &chosen.system, &chosen.mapping)
        {
            let known = Known {
                mapping,
                fix: fix_named(&chosen.fix),
                sizes: chosen.sizes.clone(),
                measured: None,
            };
            all.push((is_here(&chosen.target, &chosen.device), known));
        }
    }
    let at = all.iter().position(|(here, _)| *here).unwrap_or(0);
    (!all.is_empty()).then(|| all.swap_remove(at).1)
}

/// The text of a system without its name.
fn nameless(system: &System) -> String {
    let mut nameless = system.clone();
    nameless.name = "system".to_string();
    nameless.to_string()
}

fn key(
    system: &System,
    more: &str,
    sizes: &[(String, i128)],
    platform: &Platform,
    device: &str,
) -> String {
    key_on(system, more, sizes, platform.target().name(), device)
}

fn key_on(
    system: &System,
    more: &str,
    sizes: &[(String, i128)],
    target: &str,
    device: &str,
) -> String {
    let key = Key {
        system: &format!("{}{more}", nameless(system)),
        sizes,
        target,
        device,
        version: env!("CARGO_PKG_VERSION"),
    };
    key.hash()
}

/// Reads the records with a key. Damaged lines are noted; without a cache there are none.
fn read_about<R: Stored>(log: Option<&Log<R>>, key: &str, notes: &mut Vec<String>) -> Vec<R> {
    let Some(log) = log else {
        return Vec::new();
    };
    let Records { records, damaged } = log.read_about(key).unwrap_or_else(|error| {
        notes.push(error.to_string());
        Records::default()
    });
    if damaged > 0 {
        let lines = match damaged {
            1 => "1 line".to_string(),
            n => format!("{n} lines"),
        };
        let path = log.path().display();
        notes.push(format!("{lines} of {path} damaged, and passed over"));
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
