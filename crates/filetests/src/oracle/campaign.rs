//! A campaign of any length: worker processes try draws, and this process counts, shrinks and
//! stores their finds.
//!
//! Compiled code may crash its process, so workers record what they are about to run in a file, and
//! are replaced when they end.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::corpus::{self, Entry};
use super::find::{Find, FindKind};
use super::runner::{Runner, runners};
use super::shrink::shrink;
use super::subject::{Subject, Unfit};
use super::{Outcome, try_all};
use crate::draw::{Drawn, draw_any, redraw};

/// Mappings of each draw.
const MAPPINGS: usize = 3;
/// Draws whose kernels are compiled together.
const BATCH: u64 = 16;
/// A worker that spends this time on one step, such as compiling the kernels of a batch, is
/// stopped.
const PATIENCE: Duration = Duration::from_secs(900);
/// The maximum number of attempts to shrink a find, and their time limit.
const ATTEMPTS: usize = 250;
const SHRINK_TIME: Duration = Duration::from_secs(180);
/// The number of finds after which the campaign ends.
const MOST_FINDS: usize = 20;

pub struct Options {
    pub time: Duration,
    pub seed: u64,
    /// Names of targets; none: all available ones.
    pub targets: Vec<String>,
    pub workers: u64,
    /// Where finds are kept.
    pub folder: PathBuf,
}

/// The summary of a campaign.
#[derive(Default)]
pub struct Summary {
    pub cases: BTreeMap<String, u64>,
    pub draws: u64,
    pub mappings: u64,
    /// Cases since the last find.
    pub in_a_row: u64,
    pub finds: Vec<PathBuf>,
}

impl Summary {
    pub fn total(&self) -> u64 {
        self.cases.values().sum()
    }
}

enum Event {
    Line(u64, String),
    Ended(u64),
}

/// Replays the corpus and earlier finds, then draws until the time is over.
pub fn run(options: &Options) -> Result<Summary, String> {
    fs::create_dir_all(&options.folder).map_err(|e| e.to_string())?;
    let mut campaign = Campaign {
        options,
        start: Instant::now(),
        summary: Summary::default(),
        shown: Instant::now(),
    };
    campaign.replay()?;
    campaign.draw()?;
    Ok(campaign.summary)
}

struct Campaign<'a> {
    options: &'a Options,
    start: Instant,
    summary: Summary,
    shown: Instant,
}

struct Worker {
    child: Child,
    journal: PathBuf,
    stopped: bool,
    /// The next batch, where it has to be replaced.
    next: u64,
}

impl Campaign<'_> {
    /// Every program in a process of its own.
    fn replay(&mut self) -> Result<(), String> {
        let mut files = Vec::new();
        for folder in [corpus::folder(), self.options.folder.clone()] {
            let Ok(list) = fs::read_dir(folder) else {
                continue;
            };
            let paths = list.filter_map(|file| file.ok().map(|f| f.path()));
            files.extend(paths.filter(|p| p.extension().is_some_and(|e| e == "ure")));
        }
        files.sort();
        for path in files {
            let path_text = path.to_string_lossy().into_owned();
            let (status, lines) = self.child(&["file", &path_text], &self.options.targets)?;
            let mut failed = !status.success();
            for line in lines {
                failed |= self.take(&line).is_some_and(|finds| !finds.is_empty());
            }
            if failed {
                eprintln!("still found: {path_text}: {status}");
                self.summary.in_a_row = 0;
                self.summary.finds.push(path);
            }
        }
        Ok(())
    }

    /// A process of this program, and what it prints.
    fn child(
        &self,
        args: &[&str],
        targets: &[String],
    ) -> Result<(ExitStatus, Vec<String>), String> {
        let mut command = command(args, targets)?;
        let output = command
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .map_err(|e| e.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok((output.status, text.lines().map(str::to_string).collect()))
    }

    fn draw(&mut self) -> Result<(), String> {
        let (send, receive) = channel();
        let mut workers: BTreeMap<u64, Worker> = BTreeMap::new();
        for n in 0..self.options.workers {
            workers.insert(n, self.spawn(n, n, &send)?);
        }
        while self.start.elapsed() < self.options.time && self.summary.finds.len() < MOST_FINDS {
            self.listen(&receive, &send, &mut workers)?;
            self.show(false);
        }
        for worker in workers.values_mut() {
            let _ = worker.child.kill();
            let _ = worker.child.wait();
            let _ = fs::remove_file(&worker.journal);
        }
        self.show(true);
        Ok(())
    }

    fn spawn(&self, n: u64, batch: u64, send: &Sender<Event>) -> Result<Worker, String> {
        let journal = self
            .options
            .folder
            .join(format!("worker-{}-{n}", std::process::id()));
        let (batch_text, stride) = (batch.to_string(), self.options.workers.to_string());
        let (seed, file) = (self.options.seed.to_string(), journal.to_string_lossy());
        let args = ["worker", &seed, &batch_text, &stride, &file];
        let mut child = command(&args, &self.options.targets)?
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| e.to_string())?;
        let output = child.stdout.take().ok_or("a worker without output")?;
        let send = send.clone();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = send.send(Event::Line(n, line));
            }
            let _ = send.send(Event::Ended(n));
        });
        Ok(Worker {
            child,
            journal,
            stopped: false,
            next: batch,
        })
    }

    fn listen(
        &mut self,
        receive: &Receiver<Event>,
        send: &Sender<Event>,
        workers: &mut BTreeMap<u64, Worker>,
    ) -> Result<(), String> {
        match receive.recv_timeout(Duration::from_millis(500)) {
            Ok(Event::Line(n, line)) => {
                let finds = self.take(&line).unwrap_or_default();
                if let Some(worker) = workers.get_mut(&n) {
                    worker.next += self.options.workers;
                }
                for find in finds {
                    self.keep(&find)?;
                }
            }
            Ok(Event::Ended(n)) => {
                if let Some(mut worker) = workers.remove(&n) {
                    let status = worker.child.wait().map_err(|e| e.to_string())?;
                    let kind = if worker.stopped {
                        FindKind::Hang
                    } else {
                        FindKind::Crash
                    };
                    let last = fs::read_to_string(&worker.journal).unwrap_or_default();
                    self.ended(kind, &last, &status.to_string())?;
                    let next = worker.next + self.options.workers;
                    workers.insert(n, self.spawn(n, next, send)?);
                }
            }
            Err(_) => {}
        }
        for worker in workers.values_mut() {
            let written = fs::metadata(&worker.journal).and_then(|m| m.modified());
            let since = written.ok().and_then(|at| at.elapsed().ok());
            if since.is_some_and(|since| since > PATIENCE) && !worker.stopped {
                worker.stopped = true;
                let _ = worker.child.kill();
            }
        }
        Ok(())
    }

    /// Counts a worker's report; returns its finds.
    fn take(&mut self, line: &str) -> Option<Vec<Value>> {
        let report: Value = serde_json::from_str(line).ok()?;
        for (target, n) in report["cases"].as_object()? {
            let n = n.as_u64().unwrap_or(0);
            *self.summary.cases.entry(target.clone()).or_default() += n;
            self.summary.in_a_row += n;
        }
        self.summary.draws += report["draws"].as_u64().unwrap_or(0);
        self.summary.mappings += report["mappings"].as_u64().unwrap_or(0);
        Some(report["finds"].as_array().cloned().unwrap_or_default())
    }

    /// A worker ended in the middle of a case.
    fn ended(&mut self, kind: FindKind, journal: &str, status: &str) -> Result<(), String> {
        let mut words = journal.split_whitespace();
        let seed = words.next().and_then(|w| w.parse::<u64>().ok());
        let (Some(seed), Some(target), Some(mapping)) = (seed, words.next(), words.next()) else {
            return Err(format!("a worker ended before its first case: {status}"));
        };
        let find = json!({
            "seed": seed,
            "kind": kind.name(),
            "target": target,
            "mapping": mapping,
            "message": status,
        });
        self.keep(&find)
    }

    /// Shrinks a find and writes it to a file.
    fn keep(&mut self, find: &Value) -> Result<(), String> {
        if self.summary.finds.len() >= MOST_FINDS {
            return Ok(());
        }
        self.summary.in_a_row = 0;
        let seed = find["seed"].as_u64().unwrap_or(0);
        let kind = find["kind"].as_str().unwrap_or("");
        let target = find["target"].as_str();
        let mapping = find["mapping"].as_str();
        let message = find["message"].as_str().unwrap_or("");
        eprintln!(
            "\nfound: seed {seed}, {kind} on {}, mapping {}: {}",
            target.unwrap_or("no target"),
            mapping.unwrap_or("none"),
            message.lines().next().unwrap_or("")
        );
        let drawn = draw_any(seed, MAPPINGS);
        let only: Vec<String> = target.iter().map(|t| (*t).to_string()).collect();
        let number = mapping.and_then(|m| m.trim_start_matches('m').parse::<usize>().ok());
        let choices = match number {
            Some(n) if n < drawn.begins.len() => drawn.choices_with(n),
            _ => drawn.choices.clone(),
        };
        let file = self
            .options
            .folder
            .join(format!("shrink-{}.json", std::process::id()));
        let start = Instant::now();
        let mut fails = |choices: &[u32]| -> bool {
            if start.elapsed() > SHRINK_TIME {
                return false;
            }
            let text = json!(choices).to_string();
            if fs::write(&file, text).is_err() {
                return false;
            }
            let path = file.to_string_lossy();
            let Ok((status, lines)) = self.child(&["choices", &path], &only) else {
                return false;
            };
            let said = lines
                .iter()
                .filter_map(|l| serde_json::from_str::<Value>(l).ok());
            let kinds: Vec<String> = said
                .flat_map(|report| report["finds"].as_array().cloned().unwrap_or_default())
                .filter_map(|find| find["kind"].as_str().map(str::to_string))
                .collect();
            match kind {
                "crash" => status.code().is_none(),
                _ => kinds.iter().any(|k| k == kind),
            }
        };
        let (small, mappings) = if kind != FindKind::Hang.name() && fails(&choices) {
            (shrink(&choices, ATTEMPTS, &mut fails), 1)
        } else {
            (drawn.choices.clone(), MAPPINGS)
        };
        let _ = fs::remove_file(&file);
        let drawn = redraw(&small, mappings);
        let entry = entry(&format!("seed {seed}"), &drawn, seed);
        let remarks = format!(
            "seed {seed}: {kind} on {}\n{}",
            target.unwrap_or("no target"),
            message.lines().next().unwrap_or("")
        );
        let path = self.options.folder.join(format!("seed_{seed}.ure"));
        let text = entry.file(&remarks);
        fs::write(&path, &text).map_err(|e| e.to_string())?;
        eprintln!("{text}kept as {}", path.display());
        self.summary.finds.push(path);
        Ok(())
    }

    /// A line on a terminal, at most twice a second; on anything else one each minute.
    fn show(&mut self, last: bool) {
        let terminal = std::io::stderr().is_terminal();
        let pause = Duration::from_secs(if terminal { 0 } else { 60 });
        if !last && self.shown.elapsed() < pause {
            return;
        }
        self.shown = Instant::now();
        let seconds = self.start.elapsed().as_secs_f64();
        let summary = &self.summary;
        let line = format!(
            "{:.0} s: {} programs, {} mappings, {} cases ({:.0} a second), {} in a row without a find, {} finds",
            seconds,
            summary.draws,
            summary.mappings,
            summary.total(),
            summary.total() as f64 / seconds.max(0.1),
            summary.in_a_row,
            summary.finds.len()
        );
        if terminal {
            eprint!("\r\x1b[K{line}{}", if last { "\n" } else { "" });
        } else {
            eprintln!("{line}");
        }
        let _ = std::io::stderr().flush();
    }
}

fn command(args: &[&str], targets: &[String]) -> Result<Command, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut command = Command::new(program);
    command.args(args);
    if !targets.is_empty() {
        command.arg("--target").arg(targets.join(","));
    }
    Ok(command)
}

fn entry(name: &str, drawn: &Drawn, seed: u64) -> Entry {
    Entry {
        name: name.to_string(),
        text: drawn.text(),
        sizes: drawn.sizes.clone(),
        close: drawn.rounds,
        seed,
    }
}

/// Tries the draws of these seeds together.
pub fn try_seeds(
    seeds: &[u64],
    runners: &[Runner],
    watch: &dyn Fn(u64, &str, &str),
) -> (Vec<u64>, Outcome) {
    let draws = seeds.iter().map(|seed| (*seed, draw_any(*seed, MAPPINGS)));
    try_draws(draws.collect(), runners, watch)
}

fn try_draws(
    draws: Vec<(u64, Drawn)>,
    runners: &[Runner],
    watch: &dyn Fn(u64, &str, &str),
) -> (Vec<u64>, Outcome) {
    let mut refused = Vec::new();
    let (mut subjects, mut from): (Vec<Subject>, Vec<u64>) = (Vec::new(), Vec::new());
    for (seed, drawn) in draws {
        watch(seed, "system", "none");
        let entry = entry(&format!("seed {seed}"), &drawn, seed);
        let made = super::find::guarded(|| entry.subject());
        let (kind, message) = match made {
            Ok(Ok(subject)) => {
                subjects.push(subject);
                from.push(seed);
                continue;
            }
            Ok(Err(Unfit::Limited(_))) => continue,
            Ok(Err(Unfit::Refused(message))) => (FindKind::Refused, message),
            Ok(Err(Unfit::Wrong(message))) => (FindKind::Wrong, message),
            Err(said) => (FindKind::Panic, said),
        };
        refused.push((
            seed,
            Find {
                subject: 0,
                kind,
                target: None,
                mapping: None,
                message,
            },
        ));
    }
    let mut outcome = try_all(&subjects, runners, &|n, target, mapping| {
        watch(from[n], target, mapping);
    });
    for (seed, mut find) in refused {
        find.subject = from.len();
        from.push(seed);
        outcome.finds.push(find);
    }
    (from, outcome)
}

/// A report of a batch, as workers print them.
fn report(from: &[u64], draws: usize, outcome: &Outcome) -> String {
    let finds: Vec<Value> = outcome
        .finds
        .iter()
        .map(|find| {
            json!({
                "seed": from.get(find.subject),
                "kind": find.kind.name(),
                "target": find.target,
                "mapping": find.mapping,
                "message": find.message,
            })
        })
        .collect();
    json!({
        "cases": outcome.cases,
        "mappings": outcome.mappings,
        "draws": draws,
        "finds": finds,
    })
    .to_string()
}

/// The loop of a worker: batch after batch, until its input ends.
pub fn work(
    seed: u64,
    first: u64,
    stride: u64,
    journal: &Path,
    names: &[String],
) -> Result<(), String> {
    let runners = runners(names)?;
    thread::spawn(|| {
        let mut rest = String::new();
        let _ = std::io::stdin().read_line(&mut rest);
        std::process::exit(0);
    });
    std::panic::set_hook(Box::new(|_| {}));
    let mut batch = first;
    loop {
        let start = seed.wrapping_add(batch.wrapping_mul(BATCH));
        let seeds: Vec<u64> = (0..BATCH).map(|n| start.wrapping_add(n)).collect();
        let (from, outcome) = try_seeds(&seeds, &runners, &|seed, target, mapping| {
            let _ = fs::write(journal, format!("{seed} {target} {mapping}"));
        });
        println!("{}", report(&from, seeds.len(), &outcome));
        batch += stride;
    }
}

/// One list of choices, tried and reported.
pub fn try_choices(path: &Path, names: &[String]) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|e| e.to_string())?;
    let choices: Vec<u32> = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let draws = vec![(0, redraw(&choices, 1))];
    let (from, outcome) = try_draws(draws, &runners(names)?, &|_, _, _| {});
    println!("{}", report(&from, 1, &outcome));
    Ok(())
}

/// The draws of some seeds, tried and reported.
pub fn try_range(first: u64, count: u64, names: &[String]) -> Result<(), String> {
    let seeds: Vec<u64> = (first..first + count).collect();
    let (from, outcome) = try_seeds(&seeds, &runners(names)?, &|_, _, _| {});
    println!("{}", report(&from, seeds.len(), &outcome));
    for find in &outcome.finds {
        eprintln!("seed {}: {find}", from[find.subject]);
    }
    Ok(())
}

/// One file, tried and reported.
pub fn try_file(path: &Path, names: &[String]) -> Result<(), String> {
    let entry = corpus::read(path)?;
    let subject = entry.subject().map_err(|e| format!("{e:?}"))?;
    let outcome = try_all(&[subject], &runners(names)?, &|_, _, _| {});
    println!("{}", report(&[0], 1, &outcome));
    for find in &outcome.finds {
        eprintln!("{find}");
    }
    Ok(())
}
