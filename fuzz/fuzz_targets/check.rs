//! Any program is checked without a panic, and what is called legal runs and computes what its system
//! says, at tiny sizes.
//!
//! `cargo +nightly fuzz run check fuzz/corpus/check gallery crates/filetests/tests/bad`

#![no_main]

use libfuzzer_sys::fuzz_target;
use systola_filetests::examine::examine;

/// Larger arrays are checked and not run.
const MOST_POINTS: i128 = 2_000;

fuzz_target!(|source: &str| {
    examine(source, MOST_POINTS);
});
