//! A text that is open in the editor, and what is known of it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use lsp_types::{TextDocumentContentChangeEvent, Uri};
use systola_ir::system::Module;
use systola_ir::{Diagnostic, Span};
use systola_surface::names::{Definition, NameKind, Reference, Role};

use crate::drift::Drift;
use crate::facts::Facts;
use crate::job::{Cache, Finish, Job, News, Verdict};
use crate::position::{Encoding, Lines};
use crate::snapshot::Snapshot;

#[derive(Debug)]
pub struct Document {
    pub uri: Uri,
    pub version: i32,
    pub text: Arc<str>,
    pub lines: Lines,
    /// Grows with every change, over all documents.
    pub generation: u64,
    /// When the text is read; none where it was.
    pub due: Option<Instant>,
    /// The text itself, read; none where it changed since.
    current: Option<Arc<Snapshot>>,
    /// The last one without mistakes of syntax.
    good: Option<Arc<Snapshot>>,
    /// Of the last text with right names and types.
    pub module: Option<Arc<Module>>,
    /// Mistakes of names and types in the current text.
    elaboration: Vec<Diagnostic>,
    /// By `system NAME` and `mapping NAME`.
    checks: BTreeMap<String, Check>,
    pub facts: BTreeMap<String, Arc<Facts>>,
    pub verdicts: BTreeMap<String, Verdict>,
    pub job: Option<Job>,
    /// The generation of a thread that was given up and has not ended yet.
    waits_for_job: Option<u64>,
    pub cache: Arc<Mutex<Cache>>,
}

/// What the check of an item found, in which text.
#[derive(Debug)]
struct Check {
    text: Arc<str>,
    found: Vec<Diagnostic>,
}

/// A name, in a version of the text.
#[derive(Debug)]
pub struct Found {
    pub snapshot: Arc<Snapshot>,
    pub drift: Drift,
    pub reference: Reference,
}

impl Found {
    pub fn definition(&self) -> &Definition {
        self.snapshot.index.definition(self.reference.definition)
    }

    /// Everywhere it stands in the current text.
    pub fn references(&self) -> impl Iterator<Item = (Span, Role)> {
        let all = self.snapshot.index.references_to(self.reference.definition);
        all.filter_map(|r| Some((self.drift.to_new(r.span)?, r.role)))
    }
}

/// A diagnostic of the current text; where it has no place, it is about this one.
#[derive(Debug)]
pub struct Placed<'a> {
    pub diagnostic: &'a Diagnostic,
    pub otherwise: Span,
}

impl Document {
    pub fn new(uri: Uri, version: i32, text: &str, encoding: Encoding, generation: u64) -> Self {
        Document {
            uri,
            version,
            text: text.into(),
            lines: Lines::new(text, encoding),
            generation,
            due: Some(Instant::now()),
            current: None,
            good: None,
            module: None,
            elaboration: Vec::new(),
            checks: BTreeMap::new(),
            facts: BTreeMap::new(),
            verdicts: BTreeMap::new(),
            job: None,
            waits_for_job: None,
            cache: Arc::default(),
        }
    }

    /// What its name says of its notation.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(self.uri.path().as_str())
    }

    /// The texts that the client typed, one after another.
    pub fn change(
        &mut self,
        version: i32,
        changes: &[TextDocumentContentChangeEvent],
        encoding: Encoding,
        generation: u64,
        due: Instant,
    ) {
        let mut text = self.text.to_string();
        for change in changes {
            match change.range {
                None => text.clone_from(&change.text),
                Some(range) => {
                    let lines = Lines::new(&text, encoding);
                    let start = lines.offset(&text, range.start);
                    let end = lines.offset(&text, range.end).max(start);
                    text.replace_range(start..end, &change.text);
                }
            }
        }
        self.version = version;
        if *text == *self.text {
            return;
        }
        // Its verdicts would be about another text.
        if let Some(job) = self.job.take() {
            job.give_up();
            self.waits_for_job = Some(self.generation);
        }
        self.generation = generation;
        self.due = Some(due);
        self.lines = Lines::new(&text, encoding);
        self.text = text.into();
        self.current = None;
        self.elaboration.clear();
    }

    /// Whether a thread may begin: one at a time.
    pub fn may_start_job(&self) -> bool {
        self.job.is_none() && self.waits_for_job.is_none()
    }

    /// Takes the end of a thread of an older generation; true where this document waited for it. A
    /// document that was closed and opened again hears of the threads of its predecessor too.
    pub fn ended(&mut self, generation: u64) -> bool {
        let is_awaited = self.waits_for_job == Some(generation);
        if is_awaited {
            self.waits_for_job = None;
        }
        is_awaited
    }

    /// The text, read.
    pub fn snapshot(&mut self) -> Arc<Snapshot> {
        let text = &self.text;
        let read = || Arc::new(Snapshot::read(Arc::clone(text)));
        let current = Arc::clone(self.current.get_or_insert_with(read));
        if current.errors.is_empty() {
            self.good = Some(Arc::clone(&current));
        }
        current
    }

    /// What names are looked up in: the text; while it has mistakes of syntax, the last one
    /// without, then what could be read.
    pub fn readings(&mut self) -> Vec<(Arc<Snapshot>, Drift)> {
        let current = self.snapshot();
        let mut all = vec![Arc::clone(&current)];
        if !current.errors.is_empty() {
            all.splice(0..0, self.good.clone());
        }
        let drift = |s: &Arc<Snapshot>| Drift::between(&s.text, &self.text);
        all.into_iter()
            .map(|s| (Arc::clone(&s), drift(&s)))
            .collect()
    }

    /// The name at a place.
    pub fn name_at(&mut self, offset: usize) -> Option<Found> {
        self.readings().into_iter().find_map(|(snapshot, drift)| {
            let reference = *snapshot.index.at(drift.to_old(offset)?)?;
            Some(Found {
                snapshot,
                drift,
                reference,
            })
        })
    }

    /// Takes what the thread says; true where there are other diagnostics now.
    pub fn hear(&mut self, news: News) -> bool {
        match news {
            News::Elaborated(Ok(module)) => {
                self.forget_others(&module);
                self.move_checks();
                self.module = Some(module);
                self.elaboration.clear();
            }
            News::Elaborated(Err(errors)) => self.elaboration = errors,
            News::System { name, found, facts } => {
                // The last right ones say more than none.
                if found.is_empty() {
                    self.facts.insert(name.clone(), facts);
                }
                return self.found(format!("system {name}"), found);
            }
            News::Mapping {
                name,
                found,
                verdict,
            } => {
                self.verdicts.insert(name.clone(), verdict);
                return self.found(format!("mapping {name}"), found);
            }
            News::Finished(Finish::Done | Finish::GivenUp | Finish::Bug) => {
                self.job = None;
                return false;
            }
        }
        true
    }

    fn found(&mut self, item: String, found: Vec<Diagnostic>) -> bool {
        let text = Arc::clone(&self.text);
        let check = Check { text, found };
        let is_empty = check.found.is_empty();
        let before = self.checks.insert(item, check);
        !is_empty || before.is_some_and(|before| !before.found.is_empty())
    }

    /// Forgets items that are not in the text any more.
    fn forget_others(&mut self, module: &Module) {
        let is_system = |name: &str| module.systems.iter().any(|s| s.name == name);
        let is_mapping = |name: &str| module.mappings.iter().any(|m| m.name == name);
        self.facts.retain(|name, _| is_system(name));
        self.verdicts.retain(|name, _| is_mapping(name));
        self.checks.retain(|item, _| match item.split_once(' ') {
            Some(("system", name)) => is_system(name),
            Some((_, name)) => is_mapping(name),
            None => false,
        });
    }

    /// What was found before an edit holds until the check says otherwise, unless the edit is in
    /// the midst of it.
    fn move_checks(&mut self) {
        for check in self.checks.values_mut() {
            if Arc::ptr_eq(&check.text, &self.text) {
                continue;
            }
            let drift = Drift::between(&check.text, &self.text);
            check.found.retain_mut(|diagnostic| {
                diagnostic.labels.iter_mut().all(|(span, _)| {
                    let moved = match span.is_none() {
                        true => Some(*span),
                        false => drift.to_new(*span),
                    };
                    moved.is_some_and(|moved| {
                        *span = moved;
                        true
                    })
                })
            });
            check.text = Arc::clone(&self.text);
        }
    }

    /// All that is to be said of the text, as far as it is known.
    pub fn diagnostics(&mut self) -> Vec<Placed<'_>> {
        self.snapshot();
        let mut all: Vec<Placed<'_>> = Vec::new();
        let Some(current) = &self.current else {
            return all;
        };
        let place = |diagnostic| Placed {
            diagnostic,
            otherwise: Span::NONE,
        };
        all.extend(current.errors.iter().map(place));
        all.extend(current.tree.hints.iter().map(place));
        all.extend(self.elaboration.iter().map(place));
        if current.errors.is_empty() && self.elaboration.is_empty() {
            for (item, check) in &self.checks {
                if !Arc::ptr_eq(&check.text, &self.text) {
                    continue;
                }
                let otherwise = match item.split_once(' ') {
                    Some(("system", name)) => current.name_span(name, NameKind::is_system),
                    Some((_, name)) => current.name_span(name, |kind| kind == NameKind::Mapping),
                    None => Span::NONE,
                };
                all.extend(check.found.iter().map(|diagnostic| Placed {
                    diagnostic,
                    otherwise,
                }));
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Event, Stamp};
    use crossbeam_channel::{Receiver, unbounded};

    fn opened(generation: u64) -> (Document, Receiver<Event>) {
        let uri: Uri = "file:///a.ure".parse().unwrap();
        let text = "system s(N) where N >= 1 { index i in 0..N; }";
        let mut document = Document::new(uri, 1, text, Encoding::Utf8, generation);
        let stamp = Stamp {
            document: "file:///a.ure".to_string(),
            generation,
        };
        let (sender, receiver) = unbounded();
        let (snapshot, cache) = (document.snapshot(), Arc::clone(&document.cache));
        document.job = Job::start(stamp, snapshot, cache, sender);
        (document, receiver)
    }

    fn typed(document: &mut Document, text: &str, generation: u64) {
        let change = TextDocumentContentChangeEvent {
            range: None,
            range_length: None,
            text: text.to_string(),
        };
        document.change(2, &[change], Encoding::Utf8, generation, Instant::now());
    }

    #[test]
    fn only_the_end_of_its_own_thread_lets_the_next_one_begin() {
        let (mut document, _events) = opened(5);
        assert!(!document.may_start_job());
        typed(&mut document, "system t(N) {}", 6);
        typed(&mut document, "system u(N) {}", 7);
        assert!(!document.may_start_job());
        // A thread of the text that was open before under this address.
        assert!(!document.ended(3));
        assert!(!document.may_start_job());
        assert!(document.ended(5));
        assert!(document.may_start_job());
        assert!(!document.ended(5));
    }
}
