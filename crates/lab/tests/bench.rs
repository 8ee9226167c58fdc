//! Benchmarks through the built binary.

mod common;

use common::{CORE, check, temporary};

#[test]
fn check_tells_what_each_program_takes() {
    let folder = temporary("bench");
    std::fs::create_dir_all(&folder).unwrap();
    let program = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::copy(program.join(CORE), folder.join("one.ure")).unwrap();
    let folder = folder.display().to_string();
    for huge in [&[] as &[&str], &["--huge"]] {
        let args = [&["bench", "check", folder.as_str(), "--repeat", "1"], huge].concat();
        let (out, _) = check(&args, 0);
        assert!(
            out.contains("one.ure") && out.contains("1 programs"),
            "{out}"
        );
    }
    check(&["bench", "check", "nowhere"], 1);
}

#[test]
fn help_shows_examples_that_exist() {
    for sub in ["check", "cpu", "cuda", "stencils", "opencl"] {
        let (out, _) = check(&["bench", sub, "--help"], 0);
        assert!(out.contains("cargo xtask bench "), "{sub}: {out}");
    }
}
