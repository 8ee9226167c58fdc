//! Formatting: small texts before and after, and what holds for every text.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use rng::Rng;
use systola_front::{format, parse_module};

mod arbitrary;
mod rng;

/// Formats a text and holds what is true of every text.
fn formatted(text: &str) -> String {
    let once = format(text).unwrap_or_else(|e| panic!("{text}\n{e:#?}"));
    assert_eq!(format(&once).as_ref(), Ok(&once), "not idempotent:\n{text}");
    assert_eq!(words(text), words(&once), "{text}\n---\n{once}");
    assert_eq!(comments(text), comments(&once), "{text}\n---\n{once}");
    let codes = |text: &str| {
        let module = parse_module(text);
        module.map_err(|errors| errors.iter().map(|e| e.code.id).collect::<Vec<_>>())
    };
    let (before, after) = (codes(text), codes(&once));
    let print = |m: &systola_ir::system::Module| m.to_string();
    assert_eq!(before.as_ref().map(print), after.as_ref().map(print));
    assert!(before == after, "{text}\n---\n{once}");
    for line in once.lines() {
        assert_eq!(line, line.trim_end(), "{once}");
    }
    assert!(
        !once.contains("\n\n\n") && !once.starts_with('\n'),
        "{once}"
    );
    assert!(once.is_empty() || once.ends_with('\n') && !once.ends_with("\n\n"));
    once
}

/// Words, numbers and signs, without comments.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for line in text.lines() {
        let code = line.split("//").next().unwrap_or_default();
        let mut apart = true;
        for c in code.chars() {
            let is_word = c.is_alphanumeric() || "_'".contains(c);
            match words.last_mut().filter(|_| is_word && !apart) {
                Some(word) => word.push(c),
                None if c.is_whitespace() || c == '\u{feff}' => {}
                None => words.push(c.to_string()),
            }
            apart = !is_word;
        }
    }
    words
}

fn comments(text: &str) -> Vec<&str> {
    let of_line = |line: &'_ str| line.find("//").map(|at| at..line.len());
    let comments = text.lines().filter_map(|line| Some(&line[of_line(line)?]));
    comments.map(str::trim_end).collect()
}

fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    fn collect(folder: &Path, extension: &str, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                collect(&path, extension, files);
            } else if path.extension().is_some_and(|e| e == extension) {
                files.push(path);
            }
        }
    }
    let mut all = Vec::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    collect(&folder, extension, &mut all);
    all.sort();
    assert!(!all.is_empty(), "{}", folder.display());
    all
}

/// One idea for each pair of files; `SYSTOLA_BLESS=1` writes the second ones.
#[test]
fn small_texts_before_and_after() {
    let bless = std::env::var_os("SYSTOLA_BLESS").is_some_and(|v| v == "1");
    for path in files("tests/format", "before") {
        let result = formatted(&fs::read_to_string(&path).expect("a text"));
        let after = path.with_extension("after");
        if bless {
            fs::write(&after, result).expect("the file can be written");
            continue;
        }
        let expect = fs::read_to_string(&after).unwrap_or_default();
        assert_eq!(
            result,
            expect,
            "{}: SYSTOLA_BLESS=1 accepts it",
            path.display()
        );
    }
}

#[test]
fn our_programs_are_formatted() {
    let gallery = files("../../gallery", "ure");
    let stencils = files("../../stencils", "ure");
    let own = files("../cli/src/cmd", "ure");
    for path in gallery.iter().chain(&stencils).chain(&own) {
        let text = fs::read_to_string(path).expect("a text");
        assert_eq!(
            formatted(&text),
            text,
            "`systola fmt {}` formats it",
            path.display()
        );
    }
}

/// The programs in the documentation, but for those that show a mistake of syntax.
#[test]
fn the_documentation_is_formatted() {
    let mut pages = files("../../docs", "md");
    pages.push(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md"));
    let mut n_formatted = 0;
    for page in pages {
        let text = fs::read_to_string(&page).expect("a text");
        let by_code = page.file_name().is_some_and(|name| name == "errors.md");
        let mut rest = text.as_str();
        while let Some((_, block)) = rest.split_once("```ure") {
            let (info, block) = block.split_once('\n').expect("a line");
            let (example, after) = block.split_once("\n```").expect("an end of the block");
            rest = after;
            let example = format!("{example}\n");
            if format(&example).is_err() {
                assert!(by_code || info.starts_with(",error"), "{example}");
                continue;
            }
            let result = formatted(&example);
            // There a whole program stands on a line, however long.
            if !by_code {
                assert_eq!(result, example, "{}", page.display());
            }
            n_formatted += 1;
        }
    }
    assert!(n_formatted > 50, "{n_formatted}");
}

#[test]
fn every_declaration_and_directive_is_formatted() {
    for path in files("tests/good", "ure") {
        formatted(&fs::read_to_string(&path).expect("a text"));
    }
}

#[test]
fn mistakes_of_syntax_are_refused() {
    let errors = format("system s(N) { index i in 0..N var A: f32 = 1; }").expect_err("no `;`");
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].code.id, "E0102");
    // Names and types are not looked at.
    assert!(format("mapping m of nothing { lane = i; }").is_ok());
}

#[test]
fn line_ends_stay() {
    let text = "// one\r\nmapping m of s { // two\r\n  lane = i;\r\n}\r\n";
    let expect = "// one\r\nmapping m of s {  // two\r\n  lane = i;\r\n}\r\n";
    assert_eq!(formatted(text), expect);
    assert_eq!(formatted("// one\n// two\r\n"), "// one\n// two\n");
    assert_eq!(formatted("\u{feff}// one"), "// one\n");
    assert_eq!(formatted(" \n\n"), "");
}

/// A line is too long only if nothing on it can be moved to another.
#[test]
fn a_long_table_is_filled_in_time() {
    let elements: Vec<String> = (0..20_000).map(|n| n.to_string()).collect();
    let elements = elements.join(", ");
    let text = format!("system s() {{ table t[20000]: i32 = [{elements}]; }}");
    let result = format(&text).expect("well formed");
    assert!(result.lines().all(|line| line.len() <= 100));
    assert!(result.lines().count() < 20_000 / 10);
}

/// Puts comments, blank lines and other line breaks between the words of a text.
fn sprinkled(rng: &mut Rng, text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        let open = matches!(c, '(' | '[' | '{' | ';' | ',' | '+' | '*');
        if !c.is_whitespace() {
            out.push(c);
        }
        if !(c.is_whitespace() || open && rng.chance(10)) {
            continue;
        }
        match rng.below(40) {
            0 => out.push_str("  // behind\n"),
            1 => out.push_str("\n    // alone\n"),
            2 => out.push_str("\n\n\n// far ü\r\n"),
            3 => out.push_str(" // one\n//two  \n\n"),
            4 => out.push_str("  // above\n         // below\n"),
            5..=7 => out.push('\n'),
            8 => out.push_str("\n \n\t\n"),
            9 => out.push_str(" \t "),
            _ => {}
        }
        out.push(if c == '\n' { '\n' } else { ' ' });
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_programs_keep_their_tokens_and_comments(seed: u64) {
        let mut rng = Rng(seed);
        let text = arbitrary::module(&mut rng).to_string();
        let damaged = sprinkled(&mut rng, &text);
        formatted(&damaged);
        formatted(&damaged.replace('\n', " \n\n "));
    }

    /// As far as its lines are not too long.
    #[test]
    fn what_the_compiler_prints_is_formatted(seed: u64) {
        let text = arbitrary::module(&mut Rng(seed)).to_string();
        let result = formatted(&text);
        if text.lines().all(|line| line.len() <= 100) {
            prop_assert_eq!(result, text);
        }
    }
}
