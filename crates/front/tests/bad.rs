//! Malformed programs and what is said of them.
//!
//! Each file of `tests/bad` begins with one line for each diagnostic, in order:
//!
//! ```text
//! //~ E0203 7:16 expected f32, found i32
//! ```
//!
//! the code, the line and column of the primary span in this file, and the message. With
//! `SYSTOLA_BLESS=1` the lines are written anew.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use systola_front::parse_module;
use systola_ir::Diagnostic;

const HEADER: &str = "//~ ";

fn position(source: &str, offset: usize) -> (usize, usize) {
    let before = &source[..offset];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
    (line, column)
}

fn header(source: &str, errors: &[Diagnostic]) -> String {
    let mut text = String::new();
    for error in errors {
        let (line, column) = position(source, error.span().start as usize);
        let id = error.code.id;
        writeln!(text, "{HEADER}{id} {line}:{column} {}", error.message).expect("to a string");
    }
    text
}

fn without_header(source: &str) -> &str {
    let mut rest = source;
    while rest.starts_with(HEADER) {
        rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
    }
    rest
}

#[test]
fn mistakes_are_told() {
    let bless = std::env::var_os("SYSTOLA_BLESS").is_some();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad");
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("tests/bad")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "ure"))
        .collect();
    files.sort();
    assert!(files.len() >= 45, "only {} malformed programs", files.len());
    let mut failures = String::new();
    let mut codes = Vec::new();
    for path in files {
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let mut source = fs::read_to_string(&path).expect("a text");
        if bless {
            // The header moves what is below it, so its length comes first.
            let body = without_header(&source).to_string();
            let n_errors = parse_module(&body).err().map_or(0, |errors| errors.len());
            source = format!("{}{body}", format!("{HEADER}\n").repeat(n_errors));
        }
        let Err(errors) = parse_module(&source) else {
            writeln!(failures, "{name}: is accepted").expect("to a string");
            continue;
        };
        let body = without_header(&source);
        let found = header(&source, &errors);
        if bless {
            fs::write(&path, format!("{found}{body}")).expect("to write");
            continue;
        }
        codes.extend(errors.iter().map(|e| e.code.id));
        for error in &errors {
            if error.help.is_none() {
                writeln!(failures, "{name}: no help in {error}").expect("to a string");
            }
        }
        let expected = &source[..source.len() - body.len()];
        if expected.is_empty() {
            writeln!(failures, "{name}: has no expectation; found\n{found}").expect("to a string");
        } else if expected != found {
            writeln!(failures, "{name}:\nexpected\n{expected}found\n{found}").expect("to a string");
        }
    }
    assert!(failures.is_empty(), "{failures}");
    if !bless {
        for code in systola_ir::codes::all() {
            let ours = code.id.starts_with("E01") || code.id.starts_with("E02");
            // A file of 16 MiB is tested elsewhere.
            if ours && code.id != "E0109" && !codes.contains(&code.id) {
                panic!("no file of tests/bad provokes {}: {}", code.id, code.title);
            }
        }
    }
}
