//! What is checked before a change is merged, step by step.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::{apt, fuzz, gpu, opencl, root, target_folder};

/// One step: its name, and what it does.
struct Step {
    name: &'static str,
    run: fn() -> Result<Tally, String>,
}

/// Tests that a step ran; a step without tests of its own counts as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: usize,
    failed: usize,
    ignored: usize,
}

const ONE: Tally = Tally {
    passed: 1,
    failed: 0,
    ignored: 0,
};

/// All with one profile, so that nothing is compiled twice; it is optimised a little, see `Cargo.toml`.
const STEPS: &[Step] = &[
    Step {
        name: "tools",
        run: tools,
    },
    Step {
        name: "format",
        run: || cargo(&["fmt", "--all", "--check"]),
    },
    Step {
        name: "clippy",
        run: || {
            cargo(&[
                "clippy",
                "--workspace",
                "--all-targets",
                "--",
                "-D",
                "warnings",
            ])
        },
    },
    Step {
        name: "tests, doc tests, documentation's claims",
        run: || cargo_test(&["test", "--workspace", "--no-fail-fast"]),
    },
    Step {
        name: "documentation builds, no broken link",
        run: documentation,
    },
    Step {
        name: "sets against isl",
        run: || {
            cargo_test(&[
                "test",
                "-p",
                "affine",
                "--features",
                "isl-oracle",
                "--test",
                "isl",
            ])
        },
    },
    Step {
        name: "CUDA through NVRTC",
        run: cuda,
    },
    Step {
        name: "OpenCL on PoCL and on Intel's runtime",
        run: open_cl,
    },
    Step {
        name: "the tour",
        run: || cargo(&["run", "--", "tour"]),
    },
    Step {
        name: "lessons",
        run: lessons,
    },
    Step {
        name: "every program of the gallery is checked",
        run: gallery,
    },
    Step {
        name: "damaged programs are answered",
        run: || fuzz::run(400).map(|()| ONE),
    },
];

pub fn test() -> Result<(), String> {
    let mut total = Tally::default();
    let mut broken = Vec::new();
    let begin = Instant::now();
    for (n, step) in STEPS.iter().enumerate() {
        print!("[{:>2}/{}] {} ... ", n + 1, STEPS.len(), step.name);
        let _ = std::io::stdout().flush();
        let start = Instant::now();
        let result = (step.run)();
        let seconds = start.elapsed().as_secs_f64();
        match result {
            Ok(tally) => {
                let ignored = match tally.ignored {
                    0 => String::new(),
                    n => format!(", {n} ignored"),
                };
                println!("ok, {} passed{ignored}, {seconds:.1} s", tally.passed);
                total.passed += tally.passed;
                total.ignored += tally.ignored;
            }
            Err(output) => {
                println!("FAILED, {seconds:.1} s\n{output}");
                let tally = tally(&output);
                total.passed += tally.passed;
                total.failed += tally.failed.max(1);
                broken.push(step.name);
            }
        }
    }
    println!("{:.0} s in all", begin.elapsed().as_secs_f64());
    for name in &broken {
        println!("failed: {name}");
    }
    println!("{} passed, {} failed", total.passed, total.failed);
    if broken.is_empty() {
        Ok(())
    } else {
        Err(format!("{} of {} steps failed", broken.len(), STEPS.len()))
    }
}

pub fn deny() -> Result<(), String> {
    run(Command::new(env!("CARGO")).args(["deny", "check"]))
        .map(|_| ())
        .map_err(|e| format!("{e}\ncargo-deny is installed with `cargo install cargo-deny`"))
}

fn cargo(args: &[&str]) -> Result<Tally, String> {
    run(Command::new(env!("CARGO")).args(args))
}

fn cargo_test(args: &[&str]) -> Result<Tally, String> {
    let mut command = Command::new(env!("CARGO"));
    // OpenCL devices have a step of their own.
    command.args(args).env("SYSTOLA_OPENCL_DEVICES", "0");
    let output = output(&mut command)?;
    let tally = tally(&output);
    if tally.passed == 0 {
        return Err(format!("no test ran\n{output}"));
    }
    Ok(tally)
}

const CUDA: &[&[&str]] = &[
    &["--test", "cuda"],
    &["--bins", "nothing_that_is_timed_spills"],
    &["--bins", "mappings_for_gpus_compile_under_every_boundary"],
];

const OPENCL: &[&[&str]] = &[
    &["--test", "oracle", "opencl"],
    &["--test", "opencl"],
    &["--test", "gallery", "opencl"],
    &["--test", "stencils", "opencl"],
];

/// Every mapping of the gallery is compiled for GPUs, and what is timed there; NVRTC has to be there.
fn cuda() -> Result<Tally, String> {
    let folder = gpu::nvrtc()?;
    each_test(CUDA, |command| {
        command.env("SYSTOLA_NVRTC", &folder);
    })
}

/// Mappings of the gallery on two implementations of OpenCL, and what is said where something is missing; both have to be there.
fn open_cl() -> Result<Tally, String> {
    let vendors = opencl::set_up()?;
    each_test(OPENCL, |command| {
        command
            .env("OCL_ICD_VENDORS", &vendors)
            .env("SYSTOLA_OPENCL_DEVICES", "2")
            .env("POCL_CACHE_DIR", root().join("target/pocl-cache"));
    })
}

/// Tests one after the other, of each of which some must run. They are those of the whole workspace, as in the step before: with fewer packages
/// their features would differ, and everything would be built once more.
fn each_test(tests: &[&[&str]], set: impl Fn(&mut Command)) -> Result<Tally, String> {
    let mut sum = Tally::default();
    for test in tests {
        let mut command = Command::new(env!("CARGO"));
        command.args(["test", "--workspace"]).args(*test);
        set(&mut command);
        let output = output(&mut command)?;
        let tally = tally(&output);
        if tally.passed == 0 {
            return Err(format!("no test ran\n{output}"));
        }
        sum.passed += tally.passed;
        sum.ignored += tally.ignored;
    }
    Ok(sum)
}

/// One after the other: the command line and the library have one name, and cargo would write both to one folder at once.
fn documentation() -> Result<Tally, String> {
    let packages: [&[&str]; 2] = [
        &["-p", "systola-cli"],
        &["--workspace", "--exclude", "systola-cli"],
    ];
    for package in packages {
        run(Command::new(env!("CARGO"))
            .args([
                "doc",
                "--keep-going",
                "--no-deps",
                "--document-private-items",
            ])
            .args(package)
            .env("RUSTDOCFLAGS", "-D warnings"))?;
    }
    Ok(ONE)
}

fn run(command: &mut Command) -> Result<Tally, String> {
    output(command).map(|_| ONE)
}

/// What the command printed; `Err` with the same where it failed.
fn output(command: &mut Command) -> Result<String, String> {
    let result = command
        .current_dir(root())
        // What is compiled here does not go to the user's cache.
        .env("SYSTOLA_CACHE", root().join("target/systola-cache"))
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("{command:?}: {e}"))?;
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&result.stdout),
        String::from_utf8_lossy(&result.stderr)
    );
    if result.status.success() {
        Ok(text)
    } else {
        Err(format!("{command:?}: {}\n{text}", result.status))
    }
}

/// Sums over the lines `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
fn tally(output: &str) -> Tally {
    let mut sum = Tally::default();
    for line in output.lines().filter(|l| l.starts_with("test result:")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        for pair in words.windows(2) {
            let Ok(n) = pair[0].parse::<usize>() else {
                continue;
            };
            match pair[1] {
                "passed;" => sum.passed += n,
                "failed;" => sum.failed += n,
                "ignored;" => sum.ignored += n,
                _ => {}
            }
        }
    }
    sum
}

/// isl, which the set library is held against, is built from source with the first three; generated C
/// is given to a second compiler beside gcc.
fn tools() -> Result<Tally, String> {
    const TOOLS: [(&str, &str); 5] = [
        ("autoconf", "autoconf"),
        ("automake", "automake"),
        ("libtoolize", "libtool"),
        ("gcc", "gcc"),
        ("clang", "clang"),
    ];
    let missing = || -> Vec<&str> {
        TOOLS
            .iter()
            .filter(|(tool, _)| !apt::answers(tool, &["--version"]))
            .map(|(_, package)| *package)
            .collect()
    };
    let packages = missing();
    if packages.is_empty() {
        return Ok(ONE);
    }
    let by_hand = format!(
        "{} are needed to build isl, which the integer sets are tested against, and to compile \
         generated C, and could not be installed; install them by hand",
        packages.join(", ")
    );
    apt::install(&packages).map_err(|e| format!("{e}\n{by_hand}"))?;
    if missing().is_empty() {
        Ok(ONE)
    } else {
        Err(by_hand)
    }
}

/// Every example of the library runs, where it has any.
fn lessons() -> Result<Tally, String> {
    let folder = root().join("crates/systola/examples");
    if !folder.exists() {
        return Ok(Tally::default());
    }
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .map_err(|e| format!("{}: {e}", folder.display()))?
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "rs"))
        .filter_map(|path| path.file_stem().map(|s| s.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    // With the features that tests build them with: those of one package alone would build all once more.
    cargo(&["build", "--workspace", "--examples"])?;
    let built = target_folder().join("debug/examples");
    for name in &names {
        run(&mut Command::new(built.join(name)))?;
    }
    Ok(Tally {
        passed: names.len(),
        ..Tally::default()
    })
}

/// With the features that tests build it with, as for the lessons.
fn gallery() -> Result<Tally, String> {
    cargo(&["build", "--workspace", "--bin", "systola-lab"])?;
    let built = target_folder().join("debug/systola-lab");
    run(Command::new(built).args(["bench", "check", "--repeat", "1"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A filter that fits no test is found here, and not after an hour.
    #[test]
    fn tests_that_steps_name_are_there() {
        let mut rust = Vec::new();
        let mut folders = vec![root().join("crates")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("a readable folder") {
                let path = entry.expect("a readable folder").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|e| e == "rs") {
                    rust.push(path);
                }
            }
        }
        let in_files = |of: &str, what: &str| {
            let mut files = rust
                .iter()
                .filter(|path| path.to_string_lossy().contains(of));
            files.any(|path| std::fs::read_to_string(path).is_ok_and(|text| text.contains(what)))
        };
        for step in CUDA.iter().chain(OPENCL) {
            let found = match *step {
                ["--bins", name] => in_files("/src/", &format!("fn {name}()")),
                ["--test", file] => ["", "/main"].iter().any(|end| {
                    let end = format!("/tests/{file}{end}.rs");
                    rust.iter()
                        .any(|path| path.to_string_lossy().ends_with(&end))
                }),
                ["--test", file, name] => in_files(&format!("/tests/{file}"), name),
                _ => false,
            };
            assert!(found, "{step:?}");
        }
    }

    #[test]
    fn test_results_add_up() {
        let output = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out\n\
                      noise 7 passed;\n\
                      test result: FAILED. 10 passed; 2 failed; 0 ignored; 0 measured;\n";
        let expect = Tally {
            passed: 13,
            failed: 2,
            ignored: 1,
        };
        assert_eq!(tally(output), expect);
    }
}
