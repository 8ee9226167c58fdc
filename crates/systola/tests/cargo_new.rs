//! The lesson `docs/rust.md`, as a reader follows it: the project is made from the blocks of the
//! page, built without the features, and run.

use std::fs;
use std::path::Path;
use std::process::Command;

/// The contents of the first block in a language.
fn block<'a>(page: &'a str, language: &str) -> &'a str {
    let begin = format!("```{language}\n");
    let at = page.find(&begin).expect(language) + begin.len();
    let end = page[at..].find("```").expect("the end of a block");
    &page[at..at + end]
}

#[test]
fn the_page_builds_and_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/rust.md")).unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cargo-new");
    fs::create_dir_all(folder.join("src")).unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        // What is unchanged is not compiled again.
        if fs::read_to_string(&path).ok().as_deref() != Some(text) {
            fs::write(path, text).unwrap();
        }
    };
    let here = format!("path = \"{}\"", env!("CARGO_MANIFEST_DIR"));
    let manifest = block(&page, "toml");
    let placed = manifest.replace("path = \"../systola/crates/systola\"", &here);
    assert_ne!(placed, manifest);
    // Not part of the workspace around it, and built fast.
    let quick = "\n[workspace]\n\n[profile.dev]\ndebug = false\n";
    write("Cargo.toml", &format!("{placed}{quick}"));
    write("src/main.rs", block(&page, "rust"));
    let lock = folder.join("Cargo.lock");
    if !lock.exists() {
        fs::copy(root.join("Cargo.lock"), lock).unwrap();
    }
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--offline"])
        .current_dir(&folder)
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .env("RUSTFLAGS", "-D warnings")
        .env_remove("CARGO_PROFILE_DEV_OPT_LEVEL")
        .env("SYSTOLA_CACHE", folder.join("kernels"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(out, block(&page, "text"), "{said}");
}
