//! Malformed programs, wrong systems, illegal mappings and known limitations, and their
//! diagnostics.
//!
//! Each file of a corpus begins with one line for each diagnostic, in order:
//!
//! ```text
//! //~ E0501 13:3 dependence (0, 1) of `Z` goes back in time: it takes -1 steps
//! ```
//!
//! the code, the line and column of the primary span in this file, and the message. A file whose
//! header has a line `//~ help:` states the help of each diagnostic too. With `SYSTOLA_BLESS=1` the
//! lines are written anew. There are two corpora: `crates/front/tests/bad`
//! has what the parser refuses, `tests/bad` what parses and is refused by a check, or has no kernel
//! yet.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use systola_driver::{Fix, Machine, Simd, check_mapping, check_system, load, lower};
use systola_front::parse_module;
use systola_ir::{Diagnostic, codes};

const HEADER: &str = "//~ ";

/// Begins the line of a help.
const HELP: &str = "//~ help: ";

struct Corpus {
    /// Beside the manifest of this crate.
    folder: &'static str,
    /// Programs that must be there.
    least: usize,
    /// The diagnostics of a program; an error where it is none of this corpus.
    diagnostics: fn(&str) -> Result<Vec<Diagnostic>, Vec<Diagnostic>>,
    shows_way_out: fn(&Diagnostic) -> bool,
    /// Beginnings of the codes that the programs provoke, all of them.
    ranges: &'static [&'static str],
    /// Codes that no program provokes, with the reason.
    excused: &'static [(&'static str, &'static str)],
}

#[test]
fn syntax_errors_are_reported() {
    run(&Corpus {
        folder: "../front/tests/bad",
        least: 45,
        diagnostics: |source| Ok(parse_module(source).err().unwrap_or_default()),
        shows_way_out: |error| error.help.is_some(),
        ranges: &["E01", "E02"],
        excused: &[("E0109", "a file of 16 MiB is tested elsewhere")],
    });
}

#[test]
fn errors_and_limitations_are_reported() {
    run(&Corpus {
        folder: "tests/bad",
        least: 30,
        diagnostics: checked,
        shows_way_out: |error| error.help.is_some() || !error.notes.is_empty(),
        ranges: &["E03", "E04", "E05", "L07"],
        excused: &[
            ("E0312", "the parser refuses it first, as E0214"),
            ("E0313", "the grammar asks for a range, E0102"),
            (
                "E0417",
                "the parser refuses a mapping of no system, E0219; `--map` is the command line's",
            ),
            ("L0711", "the grammar asks for a range, E0102"),
            (
                "L0723",
                "the explorer reports it: crates/cli/tests/explore.rs",
            ),
        ],
    });
}

/// Systems are checked first; the mappings of a wrong system are skipped, and only legal mappings
/// are lowered to kernels.
fn checked(source: &str) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
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
    if errors.is_empty() {
        let machine = Machine {
            code_budget: 1000,
            ..Machine::cpu(Simd::Avx512)
        };
        for mapping in &module.mappings {
            let lowered = lower(&module, mapping, &sizes, &Fix::Nothing, &machine);
            errors.extend(lowered.err().into_iter().flatten());
        }
    }
    Ok(errors)
}

fn run(corpus: &Corpus) {
    let bless = std::env::var_os("SYSTOLA_BLESS").is_some();
    let files = programs(corpus.folder);
    assert!(files.len() >= corpus.least, "only {} programs", files.len());
    let mut failures = String::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut fail = |what: String| writeln!(failures, "{what}").expect("to a string");
    for path in files {
        let name = path.file_name().expect("a name").to_string_lossy();
        let mut source = fs::read_to_string(&path).expect("a text");
        if bless {
            // The header shifts the lines below it, so its length is needed first.
            let body = without_header(&source).to_string();
            let errors = (corpus.diagnostics)(&body).unwrap_or_default();
            let (n_helps, line) = if states_help(&source) {
                (
                    errors.iter().filter(|error| error.help.is_some()).count(),
                    HELP,
                )
            } else {
                (0, HEADER)
            };
            let n_lines = errors.len() + n_helps;
            source = format!("{}{body}", format!("{line}\n").repeat(n_lines));
        }
        let errors = match (corpus.diagnostics)(&source) {
            Ok(errors) if errors.is_empty() => {
                fail(format!("{name}: is accepted"));
                continue;
            }
            Ok(errors) => errors,
            Err(errors) => {
                let list = header(&source, &errors);
                fail(format!("{name}: does not parse:\n{list}"));
                continue;
            }
        };
        for error in &errors {
            seen.insert(error.code.id);
            if error.span().is_none() {
                fail(format!("{name}: {error}: it has no place in the text"));
            }
            if !(corpus.shows_way_out)(error) {
                fail(format!("{name}: {error}: it shows no way out"));
            }
        }
        let body = without_header(&source);
        let found = header(&source, &errors);
        if bless {
            fs::write(&path, format!("{found}{body}")).expect("to write");
        } else if format!("{found}{body}") != source {
            let expected = &source[..source.len() - body.len()];
            fail(format!("{name}: expected\n{expected}found\n{found}"));
        }
    }
    let ours = |id: &str| corpus.ranges.iter().any(|range| id.starts_with(range));
    for code in codes::all().filter(|code| ours(code.id)) {
        let excused = corpus.excused.iter().any(|(id, _)| *id == code.id);
        match (seen.contains(code.id), excused) {
            (false, false) => fail(format!("{}: no program provokes it", code.id)),
            (true, true) => fail(format!("{}: a program provokes it after all", code.id)),
            (true, false) | (false, true) => {}
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

fn programs(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("a folder of programs")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "ure"))
        .collect();
    files.sort();
    files
}

fn states_help(source: &str) -> bool {
    let header = &source[..source.len() - without_header(source).len()];
    header.lines().any(|line| line.starts_with(HELP.trim_end()))
}

fn header(source: &str, errors: &[Diagnostic]) -> String {
    let mut text = String::new();
    let with_help = states_help(source);
    for error in errors {
        let (line, column) = position(source, error.span().start as usize);
        let id = error.code.id;
        writeln!(text, "{HEADER}{id} {line}:{column} {}", error.message).expect("to a string");
        if let (true, Some(help)) = (with_help, &error.help) {
            writeln!(text, "{HELP}{help}").expect("to a string");
        }
    }
    text
}

fn position(source: &str, offset: usize) -> (usize, usize) {
    let before = &source[..offset];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
    (line, column)
}

fn without_header(source: &str) -> &str {
    let mut rest = source;
    while rest.starts_with(HEADER) {
        rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
    }
    rest
}

/// The directive that a help shows, written where it says, makes its mapping legal.
#[test]
fn a_suggested_broadcast_mends_the_mapping() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad/broadcast_without_its_directive.ure");
    let source = fs::read_to_string(path).expect("a text");
    let errors = checked(&source).expect("it parses");
    assert_eq!(errors.len(), 1, "{errors:?}");
    let help = errors[0].help.as_deref().expect("a help");
    let directive = help.split('`').find(|code| code.starts_with("broadcast "));
    let directive = directive.unwrap_or_else(|| panic!("no directive in {help}"));
    assert!(
        help.contains("below `time = …;` in the mapping `m`"),
        "{help}"
    );
    let mended = source.replace(
        "  time = c + q;\n",
        &format!("  time = c + q;\n  {directive}\n"),
    );
    assert_ne!(mended, source);
    let errors = checked(&mended).expect("it parses");
    assert!(
        errors.iter().all(|error| !error.code.id.starts_with('E')),
        "{errors:?}"
    );
}
