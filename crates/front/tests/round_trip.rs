//! parse ∘ print is the identity on random modules.

mod arbitrary;
mod rng;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use systola_front::{parse_mapping, parse_module};
use systola_ir::system::Module;

/// All lines of a value's debug output, without spans.
fn lines(text: &str) -> Vec<&str> {
    let is_span =
        |l: &str| l.trim_start().starts_with("start: ") || l.trim_start().starts_with("end: ");
    text.lines().filter(|l| !is_span(l)).collect()
}

/// The lines around the first difference between two values.
fn first_difference(found: &Module, expected: &Module) -> String {
    let (found, expected) = (format!("{found:#?}"), format!("{expected:#?}"));
    let (found, expected): (Vec<&str>, Vec<&str>) = (lines(&found), lines(&expected));
    let at = found
        .iter()
        .zip(&expected)
        .take_while(|(a, b)| a == b)
        .count();
    let around =
        |lines: &[&str]| lines[at.saturating_sub(12)..(at + 6).min(lines.len())].join("\n");
    format!("found\n{}\nexpected\n{}", around(&found), around(&expected))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn printed_modules_read_back(seed: u64) {
        let module = arbitrary::module(&mut rng::Rng(seed));
        let text = module.to_string();
        match parse_module(&text) {
            Ok(again) => {
                prop_assert_eq!(&again.to_string(), &text);
                prop_assert!(again == module, "{}\n{}", first_difference(&again, &module), text);
            }
            Err(errors) => {
                let shown: Vec<String> = errors
                    .iter()
                    .map(|e| format!("{e} at `{}`", text.get(e.span().range()).unwrap_or("")))
                    .collect();
                return Err(TestCaseError::fail(format!("{shown:#?}\n{text}")));
            }
        }
        for mapping in &module.mappings {
            prop_assert_eq!(parse_mapping(&mapping.to_string()), Ok(mapping.clone()));
        }
    }
}
