//! Wrong systems, illegal mappings and known limitations, and what is said of them.
//!
//! Each file of `tests/bad` begins with one line for each diagnostic, in order:
//!
//! ```text
//! //~ E0501 13:3 dependence (0, 1) of `Z` goes back in time: it takes -1 steps
//! ```
//!
//! the code, the line and column of the primary span in this file, and the message. Systems are
//! checked first; the mappings of a wrong system are not looked at. With `SYSTOLA_BLESS=1` the lines
//! are written anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use systola_driver::{check_mapping, check_system, load};
use systola_ir::{Diagnostic, codes};

const HEADER: &str = "//~ ";

/// Codes that no text provokes, with the reason.
const NOT_FROM_TEXT: &[(&str, &str)] = &[
    ("E0312", "the parser refuses it first, as E0214"),
    ("E0313", "the grammar asks for a range, E0102"),
    (
        "E0417",
        "the parser refuses a mapping of no system, E0219; `--map` is the command line's",
    ),
    ("L0711", "the grammar asks for a range, E0102"),
];

fn diagnostics(source: &str) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
    let module = load(source)?;
    let sizes = BTreeMap::new();
    let mut errors: Vec<Diagnostic> = module
        .systems
        .iter()
        .flat_map(|system| check_system(system, &sizes))
        .collect();
    if errors.is_empty() {
        for mapping in &module.mappings {
            errors.extend(
                check_mapping(&module, mapping, &sizes)
                    .err()
                    .into_iter()
                    .flatten(),
            );
        }
    }
    Ok(errors)
}

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
fn mistakes_and_limitations_are_told() {
    let bless = std::env::var_os("SYSTOLA_BLESS").is_some();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad");
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("tests/bad")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "ure"))
        .collect();
    files.sort();
    assert!(files.len() >= 30, "only {} programs", files.len());
    let mut failures = String::new();
    let mut seen: BTreeSet<String> = BTreeSet::new();
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
            let n_errors = diagnostics(&body).map_or(0, |errors| errors.len());
            source = format!("{}{body}", format!("{HEADER}\n").repeat(n_errors));
        }
        let errors = match diagnostics(&source) {
            Ok(errors) if errors.is_empty() => {
                writeln!(failures, "{name}: is accepted").expect("to a string");
                continue;
            }
            Ok(errors) => errors,
            Err(errors) => {
                let list = header(&source, &errors);
                writeln!(failures, "{name}: does not parse:\n{list}").expect("to a string");
                continue;
            }
        };
        seen.extend(errors.iter().map(|e| e.code.id.to_string()));
        for error in &errors {
            if error.span().is_none() {
                writeln!(failures, "{name}: {error}: it has no place in the text")
                    .expect("to a string");
            }
            if error.help.is_none() && error.notes.is_empty() {
                writeln!(failures, "{name}: {error}: it shows no way out").expect("to a string");
            }
        }
        let body = without_header(&source);
        let found = header(&source, &errors);
        if bless {
            fs::write(&path, format!("{found}{body}")).expect("to write");
        } else if format!("{found}{body}") != source {
            let expected = &source[..source.len() - body.len()];
            writeln!(failures, "{name}: expected\n{expected}found\n{found}").expect("to a string");
        }
    }
    let ranges = ["E03", "E04", "E05", "L07"];
    for code in codes::all().filter(|c| ranges.iter().any(|r| c.id.starts_with(r))) {
        let excused = NOT_FROM_TEXT.iter().any(|(id, _)| *id == code.id);
        match (seen.contains(code.id), excused) {
            (false, false) => {
                writeln!(failures, "{}: no program provokes it", code.id).expect("to a string");
            }
            (true, true) => {
                writeln!(failures, "{}: a program provokes it after all", code.id)
                    .expect("to a string");
            }
            _ => {}
        }
    }
    assert!(failures.is_empty(), "{failures}");
}
