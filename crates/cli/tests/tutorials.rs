//! The tutorials, typed as they stand: a page is run in a folder of its own, with the gallery and
//! the stencils of the repository beside it. The pictures that a page shows are those that its
//! commands draw; `SYSTOLA_BLESS=1` writes them. What the fences of a page mean:
//!
//! - `ure NAME`: the reader writes this file;
//! - `sh`: each command of `systola` succeeds; `sh fails`: it is refused, with status 1 or 2;
//! - `text` after it: lines of the output of the last command, in order; `…` stands for anything;
//! - `sh device`: needs a GPU or other tools, and is not run.

use std::fs;
use std::path::Path;

mod common;

use common::{command, root, stderr, stdout, temporary};

/// A fenced block: its info string, its lines, and the line of the page where it begins.
struct Block {
    info: String,
    text: String,
    line: usize,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    for (n, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(info), None) => {
                open = Some(Block {
                    info: info.trim().to_string(),
                    text: String::new(),
                    line: n + 1,
                });
            }
            (Some(_), Some(_)) => found.extend(open.take()),
            (None, Some(block)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    found
}

/// The commands of a block; a backslash at the end of a line continues it.
fn commands(text: &str) -> Vec<String> {
    let joined = text.replace("\\\n", " ");
    let lines = joined.lines().map(str::trim);
    lines
        .filter(|line| line.starts_with("systola "))
        .map(|line| line.split("  #").next().unwrap_or(line).trim().to_string())
        .collect()
}

/// The words of a command; quotes keep blanks together.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in command.chars() {
        match (c, quote) {
            ('"' | '\'', None) => quote = Some(c),
            (_, Some(q)) if c == q => quote = None,
            (' ', None) => words.push(String::new()),
            _ => words.last_mut().expect("a word").push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Is this line what the page shows, where `…` stands for anything?
fn fits(shown: &str, line: &str) -> bool {
    let mut rest = line;
    let mut parts = shown.split('…');
    let first = parts.next().unwrap_or("").trim();
    let Some(after) = rest.trim_start().strip_prefix(first) else {
        return false;
    };
    rest = after;
    for part in parts {
        let Some(at) = rest.find(part.trim()) else {
            return false;
        };
        rest = &rest[at + part.trim().len()..];
    }
    rest.trim().is_empty() || shown.trim_end().ends_with('…')
}

/// Does the output have the shown lines in this order?
fn compare(shown: &str, output: &str) -> Result<(), String> {
    let mut lines = output.lines();
    let wanted = shown.lines().filter(|line| !line.trim().is_empty());
    for wanted in wanted.filter(|line| line.trim() != "…") {
        if !lines.any(|line| fits(wanted, line)) {
            return Err(format!("`{wanted}` does not occur, or not in this order"));
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        fs::copy(from, to).unwrap();
    }
}

/// Follows a page; the number of commands.
fn follow(page: &str) -> usize {
    let text = fs::read_to_string(root().join("docs").join(page)).unwrap();
    let folder = temporary(page);
    let _ = fs::remove_dir_all(&folder);
    for name in ["gallery", "stencils"] {
        copy(&root().join(name), &folder.join(name));
    }
    let mut output = String::new();
    let mut run = 0;
    for block in blocks(&text) {
        let place = format!("docs/{page}:{}", block.line);
        let info: Vec<&str> = block.info.split_whitespace().collect();
        match info.as_slice() {
            [_, file] if file.contains('.') => fs::write(folder.join(file), &block.text).unwrap(),
            ["sh", rest @ ..] if rest != ["device"] => {
                let fails = rest == ["fails"];
                output.clear();
                for line in commands(&block.text) {
                    let arguments = words(&line);
                    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                    let mut command = command(&arguments[1..]);
                    // What was explored is kept for this page alone.
                    command
                        .current_dir(&folder)
                        .env("SYSTOLA_CACHE", folder.join("cache"));
                    let done = command.output().unwrap();
                    output = stdout(&done) + &stderr(&done);
                    let status = done.status.code();
                    let right = match fails {
                        true => matches!(status, Some(1 | 2)),
                        false => status == Some(0),
                    };
                    assert!(right, "{place}: {line}: status {status:?}\n{output}");
                    run += 1;
                }
            }
            ["text"] if !output.is_empty() => {
                if let Err(why) = compare(&block.text, &output) {
                    panic!("{place}: {why}\n{output}");
                }
                output.clear();
            }
            _ => output.clear(),
        }
    }
    hold_pictures(page, &text, &folder);
    run
}

/// Are the pictures of a page what its commands draw?
fn hold_pictures(page: &str, text: &str, folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if !text.contains(&format!("](img/{name})")) {
            continue;
        }
        let (drawn, shown) = (folder.join(&name), root().join("docs/img").join(&name));
        if std::env::var_os("SYSTOLA_BLESS").is_some() {
            copy(&drawn, &shown);
        }
        let same = fs::read(&shown).is_ok_and(|shown| shown == fs::read(&drawn).unwrap());
        assert!(same, "docs/{page}: img/{name}: SYSTOLA_BLESS=1 draws it");
    }
}

#[test]
fn lines_fit_where_dots_stand_for_anything() {
    assert!(fits("median … ms, …", "median 1.25 ms, 3 runs"));
    assert!(fits("  PEs  8", "PEs  8"));
    assert!(!fits("PEs 8", "PEs 80"));
    assert!(!fits("median … s", "median 1.25 ms of 3"));
    assert!(compare("b\n…\nd\n", "a\nb\nc\nd\n").is_ok());
    assert!(compare("b\na\n", "a\nb\n").is_err());
}

#[test]
fn a_reader_from_gpus_can_follow() {
    assert!(follow("tutorial-gpu.md") >= 8);
}

#[test]
fn a_reader_from_systolic_arrays_can_follow() {
    assert!(follow("tutorial-theory.md") >= 8);
}

#[test]
fn a_reader_with_an_application_can_follow() {
    assert!(follow("tutorial-application.md") >= 8);
}

#[test]
fn a_page_about_concepts_is_true() {
    assert!(follow("concepts.md") >= 5);
}

#[test]
fn a_page_about_scans_is_true() {
    assert!(follow("scans.md") >= 8);
}
