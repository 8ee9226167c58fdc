//! Runs corrupted programs through the command line, which must answer any text with a diagnostic.
//!
//! Tokens of the gallery's programs are removed, duplicated, swapped and replaced at random places;
//! the same count always gives the same programs. An exit status other than 0, 1 and 2, or a
//! timeout, is a finding, and the text that caused it is kept.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::build::{Profile, Program, build};
use crate::root;

/// Wall time. The slowest program takes a few seconds on a busy machine, so the limit is far above
/// that.
const TIME_LIMIT: Duration = Duration::from_secs(300);

pub fn run(count: usize) -> Result<(), String> {
    run_with(&build(Program::CommandLine, Profile::Debug)?, count)
}

/// The same with a command line that is built already.
pub fn run_with(binary: &Path, count: usize) -> Result<(), String> {
    let mut seeds = Vec::new();
    collect(&root().join("gallery"), &mut seeds).map_err(|e| format!("gallery: {e}"))?;
    seeds.sort();
    let texts: Vec<String> = seeds
        .iter()
        .map(|path| std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display())))
        .collect::<Result<_, _>>()?;
    if texts.is_empty() {
        return Err("gallery has no programs to damage".into());
    }
    let folder = std::env::temp_dir().join(format!("systola-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let found: Vec<String> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..workers)
            .map(|worker| {
                let (texts, folder) = (&texts, &folder);
                scope.spawn(move || {
                    (worker..count)
                        .step_by(workers)
                        .filter_map(|n| attempt(binary, texts, folder, n).err())
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        handles
            .into_iter()
            .flat_map(|h| h.join().unwrap_or_else(|_| vec!["a worker died".into()]))
            .collect()
    });
    if found.is_empty() {
        let _ = std::fs::remove_dir_all(&folder);
        println!("{count} corrupted programs, no findings");
        Ok(())
    } else {
        Err(format!("{} findings:\n{}", found.len(), found.join("\n")))
    }
}

fn attempt(binary: &Path, texts: &[String], folder: &Path, n: usize) -> Result<(), String> {
    let mut random = Random(n as u64);
    let text = damage(texts, &mut random);
    let file = folder.join(format!("{n}.ure"));
    std::fs::write(&file, text).map_err(|e| e.to_string())?;
    let mut child = Command::new(binary)
        .args(["check", "--json"])
        .arg(&file)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("{}: {e}", binary.display()))?;
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            if matches!(status.code(), Some(0..=2)) {
                let _ = std::fs::remove_file(&file);
                return Ok(());
            }
            return Err(format!("{}: {status}", file.display()));
        }
        if start.elapsed() > TIME_LIMIT {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("{}: no answer in {TIME_LIMIT:?}", file.display()));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Applies one to four corruptions to one of the programs.
fn damage(texts: &[String], random: &mut Random) -> String {
    let mut tokens = tokens(&texts[random.below(texts.len())]);
    for _ in 0..=random.below(3) {
        let at = random
            .below(tokens.len().max(1))
            .min(tokens.len().saturating_sub(1));
        let other = random.below(tokens.len().max(1));
        match random.below(7) {
            0 => {
                tokens.remove(at);
            }
            1 => tokens.insert(at, tokens[at].clone()),
            2 => tokens.swap(at, other),
            3 => tokens[at] = tokens[other].clone(),
            4 => tokens[at] = FRAGMENTS[random.below(FRAGMENTS.len())].to_string(),
            5 => tokens.insert(at, FRAGMENTS[random.below(FRAGMENTS.len())].to_string()),
            _ => tokens.truncate(at.max(1)),
        }
        if tokens.is_empty() {
            break;
        }
    }
    tokens.concat()
}

/// Tokens that have broken compilers before.
const FRAGMENTS: [&str; 24] = [
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ";",
    ",",
    "-",
    "0",
    "1",
    "-1",
    "99999999999999999999999999999999999999999",
    "9223372036854775807",
    "1e400",
    "\u{0}",
    "é",
    "select",
    "reduce",
    "/ 0",
    "% 0",
    "else",
    "..",
    "==",
];

/// Splits a text into words, whitespace and single characters.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let class = |c: char| {
        if c.is_alphanumeric() || c == '_' {
            1
        } else if c.is_whitespace() {
            2
        } else {
            0
        }
    };
    for c in text.chars() {
        match tokens.last_mut() {
            Some(last) if class(c) != 0 && last.chars().next().map(class) == Some(class(c)) => {
                last.push(c);
            }
            _ => tokens.push(c.to_string()),
        }
    }
    tokens
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "ure") {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_make_up_the_text() {
        let text = "var X: f32 = x[c + q];\n";
        assert_eq!(tokens(text).concat(), text);
        assert!(tokens(text).contains(&"f32".to_string()));
    }

    #[test]
    fn damage_is_reproducible() {
        let texts = vec!["system s(N) { index i in 0..N; }".to_string()];
        let twice = |n| {
            (
                damage(&texts, &mut Random(n)),
                damage(&texts, &mut Random(n)),
            )
        };
        for n in 0..200 {
            let (a, b) = twice(n);
            assert_eq!(a, b);
        }
    }
}
