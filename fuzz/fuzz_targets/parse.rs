//! Any text gives a module or diagnostics, and a module survives printing.
//!
//! `cargo +nightly fuzz run parse fuzz/corpus/parse gallery crates/front/tests/bad`

#![no_main]

use libfuzzer_sys::fuzz_target;
use systola_front::parse_module;

fuzz_target!(|source: &str| {
    match parse_module(source) {
        Ok(module) => {
            let printed = module.to_string();
            assert_eq!(parse_module(&printed).as_ref(), Ok(&module), "{printed}");
        }
        Err(errors) => {
            assert!(!errors.is_empty());
            for error in errors {
                assert!(source.get(error.span().range()).is_some(), "{error}");
            }
        }
    }
});
