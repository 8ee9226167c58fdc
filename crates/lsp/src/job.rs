//! The thread of a document: types, then systems, then mappings, then counts at small sizes.
//!
//! The thread is given up as soon as the text changes: it asks by [`affine::cancel`], and what it
//! still reports is recognised by its generation. Verdicts on what did not change are taken from
//! the last time.

use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use affine::cancel;
use crossbeam_channel::Sender;
use systola_driver::sizes::{Parameters, Sizes, Small};
use systola_driver::{Checked, check_mapping, check_mapping_at_some_sizes, check_system};
use systola_ir::Diagnostic;
use systola_ir::mapping::Mapping;
use systola_ir::system::{Module, System};
use systola_lower::report::sections::{Section, scope, sections};
use systola_surface::elaborate_module;

use crate::facts::{Facts, facts};
use crate::snapshot::Snapshot;

/// The symbolic parts recurse with the depth of an expression.
const STACK: usize = 256 << 20;

/// Which text of which document something is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub document: String,
    pub generation: u64,
}

/// What a thread says.
#[derive(Debug)]
pub struct Event {
    pub stamp: Stamp,
    pub news: News,
}

#[derive(Debug)]
pub enum News {
    /// Names and types are right, or not.
    Elaborated(Result<Arc<Module>, Vec<Diagnostic>>),
    System {
        name: String,
        found: Vec<Diagnostic>,
        facts: Arc<Facts>,
    },
    Mapping {
        name: String,
        found: Vec<Diagnostic>,
        verdict: Verdict,
    },
    /// The thread ends, whether or not it came to the end of its work.
    Finished(Finish),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    Done,
    GivenUp,
    Bug,
}

/// What is known of a mapping.
#[derive(Clone, Debug)]
pub enum Verdict {
    Legal(Arc<ArrayReport>),
    /// With the codes of what was found.
    Refused(Vec<&'static str>),
    /// Its system has to be mended first.
    NotChecked,
}

/// What `systola check` prints of a legal mapping.
#[derive(Debug, PartialEq)]
pub struct ArrayReport {
    pub scope: String,
    pub sections: Vec<Section>,
}

/// Verdicts of one document without diagnostics, by the texts that they are about.
#[derive(Debug, Default)]
pub struct Cache {
    systems: HashMap<String, Arc<Facts>>,
    mappings: HashMap<String, Arc<ArrayReport>>,
}

/// A thread that runs.
#[derive(Debug)]
pub struct Job {
    over: Arc<AtomicBool>,
}

impl Job {
    /// Starts the thread; none where there is no memory for one.
    pub fn start(
        stamp: Stamp,
        snapshot: Arc<Snapshot>,
        cache: Arc<Mutex<Cache>>,
        sender: Sender<Event>,
    ) -> Option<Job> {
        let over = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&over);
        let thread = std::thread::Builder::new()
            .name("checks".into())
            .stack_size(STACK);
        let work = move || {
            let tell = |news| {
                let stamp = stamp.clone();
                // The server may be gone.
                let _ = sender.send(Event { stamp, news });
            };
            let checks = || cancel::run(is_over(asked), || run(&snapshot, &cache, &tell));
            let finish = match catch_unwind(AssertUnwindSafe(checks)) {
                Ok(Ok(())) => Finish::Done,
                Ok(Err(cancel::Cancelled)) => Finish::GivenUp,
                Err(_) => Finish::Bug,
            };
            drop(snapshot);
            tell(News::Finished(finish));
        };
        thread.spawn(work).ok().map(|_| Job { over })
    }

    /// Nobody waits for it any more.
    pub fn give_up(&self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.give_up();
    }
}

fn is_over(over: Arc<AtomicBool>) -> impl Fn() -> bool + 'static {
    move || over.load(Ordering::Relaxed)
}

fn run(snapshot: &Snapshot, cache: &Mutex<Cache>, tell: &dyn Fn(News)) {
    let module = match elaborate_module(snapshot.tree.clone()) {
        Ok(module) => Arc::new(module),
        Err(errors) => return tell(News::Elaborated(Err(errors))),
    };
    tell(News::Elaborated(Ok(Arc::clone(&module))));
    let mut checks = Checks {
        module: &module,
        cache,
        fresh: Cache::default(),
        broken: BTreeSet::new(),
    };
    for system in &module.systems {
        cancel::check_now();
        tell(checks.system(system));
    }
    for mapping in &module.mappings {
        cancel::check_now();
        tell(checks.mapping(mapping));
    }
    for mapping in &module.mappings {
        cancel::check_now();
        if let Some(news) = checks.counts(mapping) {
            tell(news);
        }
    }
    // What is not in the text any more is forgotten.
    *cache.lock().unwrap_or_else(PoisonError::into_inner) = checks.fresh;
}

struct Checks<'a> {
    module: &'a Module,
    cache: &'a Mutex<Cache>,
    fresh: Cache,
    /// Systems with mistakes.
    broken: BTreeSet<&'a str>,
}

impl<'a> Checks<'a> {
    fn system(&mut self, system: &'a System) -> News {
        let name = system.name.clone();
        let text = system.to_string();
        if let Some(facts) = self.look(|cache| cache.systems.get(&text).cloned()) {
            self.fresh.systems.insert(text, Arc::clone(&facts));
            let found = Vec::new();
            return News::System { name, found, facts };
        }
        let found = check_system(system, &Sizes::new());
        if found.is_empty() {
            let facts = Arc::new(facts(system));
            self.remember(|cache| cache.systems.insert(text.clone(), Arc::clone(&facts)));
            self.fresh.systems.insert(text, Arc::clone(&facts));
            return News::System { name, found, facts };
        }
        self.broken.insert(&system.name);
        let facts = Arc::default();
        News::System { name, found, facts }
    }

    fn mapping(&mut self, mapping: &Mapping) -> News {
        let name = mapping.name.clone();
        let mut found = Vec::new();
        let verdict = if self.broken.contains(mapping.system.as_str()) {
            Verdict::NotChecked
        } else if let Some(report) = self.known(mapping) {
            Verdict::Legal(report)
        } else {
            match check_mapping_at_some_sizes(self.module, mapping, &Sizes::new()) {
                Ok(checked) => Verdict::Legal(Arc::new(report_of(&checked))),
                Err(refused) => {
                    found = refused;
                    Verdict::Refused(found.iter().map(|d| d.code.id).collect())
                }
            }
        };
        if let Verdict::Legal(report) = &verdict {
            self.keep(mapping, report);
        }
        News::Mapping {
            name,
            found,
            verdict,
        }
    }

    /// The report with PEs, steps and throughput, which are counted at small sizes.
    fn counts(&mut self, mapping: &Mapping) -> Option<News> {
        let known = self.fresh.mappings.get(&self.key(mapping))?;
        if known.sections.iter().any(has_counts) {
            return None;
        }
        let known = Arc::clone(known);
        let system = self
            .module
            .systems
            .iter()
            .find(|s| s.name == mapping.system)?;
        let parameters = Parameters::from(system);
        let taken = parameters.with_small(&Sizes::new(), Small::Distinct)?;
        let sizes = parameters.named(&taken);
        let checked = check_mapping(self.module, mapping, &sizes).ok()?;
        let counted = report_of(&checked).sections;
        let counted = counted.into_iter().find(has_counts)?;
        // In the place of the advice to give sizes; all else holds for all of them.
        let mut sections = known.sections.clone();
        *sections.iter_mut().find(|s| s.title.is_none())? = counted;
        let report = Arc::new(ArrayReport {
            scope: known.scope.clone(),
            sections,
        });
        self.keep(mapping, &report);
        Some(News::Mapping {
            name: mapping.name.clone(),
            found: Vec::new(),
            verdict: Verdict::Legal(report),
        })
    }

    fn keep(&mut self, mapping: &Mapping, report: &Arc<ArrayReport>) {
        let key = self.key(mapping);
        self.remember(|cache| cache.mappings.insert(key.clone(), Arc::clone(report)));
        self.fresh.mappings.insert(key, Arc::clone(report));
    }

    fn known(&self, mapping: &Mapping) -> Option<Arc<ArrayReport>> {
        let key = self.key(mapping);
        self.look(|cache| cache.mappings.get(&key).cloned())
    }

    fn key(&self, mapping: &Mapping) -> String {
        let system = self
            .module
            .systems
            .iter()
            .find(|s| s.name == mapping.system);
        let system = system.map(ToString::to_string).unwrap_or_default();
        format!("{system}\n{mapping}")
    }

    fn look<T>(&self, what: impl FnOnce(&Cache) -> Option<T>) -> Option<T> {
        what(&self.cache.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Also where the thread is given up later.
    fn remember<T>(&self, what: impl FnOnce(&mut Cache) -> T) {
        what(&mut self.cache.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

fn has_counts(section: &Section) -> bool {
    let header = section.header.as_ref();
    header.is_some_and(|names| names.iter().any(|name| name == "PEs"))
}

fn report_of(checked: &Checked) -> ArrayReport {
    ArrayReport {
        scope: scope(&checked.report),
        sections: sections(&checked.report, &checked.array.guards),
    }
}
