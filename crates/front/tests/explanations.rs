//! Every explanation of a syntax or type error contains a program that causes it.

use systola_front::parse_module;
use systola_ir::codes;
use systola_ir::system::Module;

#[test]
fn examples_provoke_their_codes() {
    for code in codes::all().filter(|c| c.id.starts_with("E01") || c.id.starts_with("E02")) {
        // The example would need 16 MiB.
        if code.id == codes::syntax::SOURCE_TOO_LONG.id {
            continue;
        }
        let example = code
            .explain
            .split_once("```ure\n")
            .and_then(|(_, rest)| rest.split_once("```"))
            .map(|(example, _)| example)
            .unwrap_or_else(|| panic!("{} has no example", code.id));
        let errors = parse_module(example).expect_err(code.id);
        let found: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert!(
            errors.iter().all(|e| e.code == code),
            "{}: {found:?}",
            code.id
        );
        assert!(
            errors.iter().all(|e| e.help.is_some()),
            "{}: {found:?}",
            code.id
        );
    }
}

/// The example of a hint and its suggested notation have the same meaning.
#[test]
fn examples_of_hints_are_read_and_hinted_at() {
    let code = &codes::hints::OLD_WORD;
    let (_, rest) = code.explain.split_once("```ure\n").expect("an example");
    let (example, _) = rest.split_once("```").expect("its end");
    let old = parse_module(example).expect("old words are read");
    let new = parse_module(&example.replace("held", "fixed")).expect("new words are read");
    assert_eq!(new.hints, []);
    let [hint] = old.hints.as_slice() else {
        panic!("one hint: {:?}", old.hints);
    };
    assert_eq!(hint.code, code);
    let at = example.find("held").expect("the old word") as u32;
    assert_eq!((hint.span().start, hint.span().end), (at, at + 4));
    let system = |module: &Module| module.systems[0].to_string();
    assert_eq!(system(&old), system(&new));
}

#[test]
fn a_long_source_is_refused() {
    let source = " ".repeat((16 << 20) + 1);
    let errors = parse_module(&source).expect_err("too long");
    assert_eq!(errors[0].code, &codes::syntax::SOURCE_TOO_LONG);
}
