//! Options from the environment, in a process that has only the given variables.

use std::process::Command;

use systola_rt::{CompileOptions, simd};

const CHILD: &str = "SYSTOLA_TEST_PRINT_OPTIONS";

#[test]
#[ignore = "a part of the other tests here, which start it as a process of its own"]
fn print_options() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    match CompileOptions::from_env() {
        Ok(options) => println!(
            "compilers {:?}\ncache {:?}",
            options.compilers, options.cache
        ),
        Err(error) => println!("error {error}"),
    }
    match simd::from_env() {
        Ok(simd) => println!("simd {}", simd.name()),
        Err(error) => println!("error {error}"),
    }
}

fn check(variables: &[(&str, &str)], expect: &[&str]) {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["print_options", "--exact", "--ignored", "--nocapture"])
        .env_clear()
        .env(CHILD, "1")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    assert!(child.status.success());
    let said = String::from_utf8_lossy(&child.stdout);
    for line in expect {
        assert!(said.lines().any(|l| l == *line), "{line} in:\n{said}");
    }
}

#[test]
fn compilers_are_those_of_the_environment() {
    check(&[], &[r#"compilers ["cc", "gcc", "clang"]"#, "cache None"]);
    check(
        &[("CC", "ccache gcc")],
        &[r#"compilers ["ccache gcc", "cc", "gcc", "clang"]"#],
    );
    check(
        &[("CC", "tcc"), ("SYSTOLA_CC", "gcc-12")],
        &[r#"compilers ["gcc-12"]"#],
    );
}

#[test]
fn the_cache_is_that_of_the_environment() {
    let mb = |dir: &str, mb: u64| {
        let bytes = mb << 20;
        format!("cache Some(CacheOptions {{ dir: \"{dir}\", limit: {bytes} }})")
    };
    let home = ("HOME", "/h");
    let xdg = ("XDG_CACHE_HOME", "/x");
    check(&[home], &[&mb("/h/.cache/systola", 512)]);
    check(&[home, xdg], &[&mb("/x/systola", 512)]);
    check(
        &[home, ("XDG_CACHE_HOME", "relative")],
        &[&mb("/h/.cache/systola", 512)],
    );
    check(
        &[
            home,
            xdg,
            ("SYSTOLA_CACHE", "/c"),
            ("SYSTOLA_CACHE_MB", "7"),
        ],
        &[&mb("/c", 7)],
    );
    check(&[home, ("SYSTOLA_CACHE_MB", "0")], &["cache None"]);
    check(
        &[home, ("SYSTOLA_CACHE_MB", "many")],
        &[
            "error the environment variable SYSTOLA_CACHE_MB is `many`; it must be a number of megabytes",
        ],
    );
}

#[test]
fn the_vector_unit_can_be_chosen() {
    let detected = format!("simd {}", simd::detect().name());
    check(&[], &[&detected]);
    check(&[("SYSTOLA_SIMD", "")], &[&detected]);
    check(&[("SYSTOLA_SIMD", "portable")], &["simd portable"]);
    check(
        &[("SYSTOLA_SIMD", "mmx")],
        &[
            "error the environment variable SYSTOLA_SIMD is `mmx`; it must be avx512, avx2, sse, neon or portable",
        ],
    );
}
