//! Small fields, which are checked like large ones.

use std::path::Path;

use clap::Parser;

use super::super::super::session::tests::assert_baselines_are_right;
use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

fn args(words: &[&str]) -> Args {
    let words = ["bench", "--target", "cpu", "--small"]
        .into_iter()
        .chain(words.iter().copied());
    Line::parse_from(words).args
}

fn small(words: &[&str]) -> Report {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    match measure(&args(words), &root) {
        Ok(report) => report,
        Err(Failure::Outside { message, .. }) => panic!("{message}"),
        Err(Failure::Reported(status)) => panic!("{status:?}"),
    }
}

/// Every mapping for CPUs agrees with single sweeps in f64; so do plain C and the installed
/// baselines.
#[test]
fn small_fields_are_swept() {
    let report = small(&["--threads", "2", "--steps", "21"]);
    assert_baselines_are_right(&report);
    assert_eq!(report.rows.len(), 8);
    for row in &report.rows {
        assert_eq!(row.refused, None, "{}", row.problem);
        assert!(row.ms > Some(0.0), "{}", row.problem);
    }
    let text = table::text(&report);
    for start in ["100 × 150, 1 sweep ", "40 × 50 × 70, 21 sweeps "] {
        let rows = text.lines().filter(|l| l.starts_with(start)).count();
        assert_eq!(rows, 2, "{text}");
    }
    assert!(text.contains("× copy"), "{text}");
}

#[test]
fn stencils_without_a_cpu_mapping_are_reported() {
    for words in [["--only", "2d9pt"], ["--type", "f64"]] {
        let refused = chosen(&args(&words));
        assert!(matches!(refused, Err(Failure::Outside { .. })));
    }
    assert_eq!(chosen(&args(&["--only", "3d7pt"])).ok().unwrap().len(), 1);
}
