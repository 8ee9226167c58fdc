//! `cargo xtask test`: the checks that a change must pass before it is merged.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use crate::test_binaries::{self, TestBinary};
use crate::{apt, editors, fuzz, gpu, isl, opencl, root, target_folder};

/// One step: its name, and a function that runs it.
struct Step<'a> {
    name: String,
    run: Box<dyn FnOnce() -> Result<Tally, String> + Send + 'a>,
}

impl<'a> Step<'a> {
    fn new(
        name: impl Into<String>,
        run: impl FnOnce() -> Result<Tally, String> + Send + 'a,
    ) -> Self {
        Step {
            name: name.into(),
            run: Box::new(run),
        }
    }
}

/// The numbers of tests of a step. A step without tests counts as one test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub passed: usize,
    failed: usize,
    ignored: usize,
}

pub const ONE: Tally = Tally {
    passed: 1,
    failed: 0,
    ignored: 0,
};

/// Test programs that take minutes. They are started first, so that no core is idle at the end.
const LONG: [&str; 9] = [
    "filetests gallery",
    "filetests every_system",
    "filetests faults",
    "filetests stencils",
    "filetests oracle",
    "filetests properties",
    "lab systola-lab",
    "cli explore",
    "systola cargo_new",
];

/// Builds everything with one profile, so that nothing is compiled twice, while missing components
/// are downloaded. Then runs the steps in parallel, one per core.
pub fn test() -> Result<(), String> {
    let mut report = Report::default();
    let begin = Instant::now();
    let mut binaries = Vec::new();
    let (mut nvrtc, mut vendors, mut isl) = (None, None, None);
    let building = vec![
        Step::new("format", || cargo(&["fmt", "--all", "--check"])),
        Step::new("clippy", || {
            let what = ["clippy", "--workspace", "--all-targets"];
            cargo(&[&what[..], &["--", "-D", "warnings"]].concat())
        }),
        Step::new("tests build", || {
            binaries = test_binaries::build()?;
            // The programs that steps start, with the same features as for tests.
            cargo(&["build", "--workspace", "--bins", "--examples"])
        }),
    ];
    let downloading = vec![
        Step::new("tools", tools),
        Step::new("NVRTC", || {
            nvrtc = Some(gpu::nvrtc()?);
            Ok(ONE)
        }),
        Step::new("OpenCL: PoCL and Intel's runtime", || {
            vendors = Some(opencl::set_up()?);
            Ok(ONE)
        }),
        Step::new("isl", || {
            isl = Some(isl::set_up()?);
            Ok(ONE)
        }),
    ];
    report.run_in_parallel(vec![building, downloading], 2);
    let mut steps = Vec::new();
    if !binaries.is_empty() {
        binaries.sort_by_key(|binary| !LONG.contains(&binary.name.as_str()));
        steps.extend(vendors.iter().flat_map(|folder| open_cl(&binaries, folder)));
        steps.extend(nvrtc.iter().flat_map(|folder| cuda(&binaries, folder)));
        steps.extend(isl.iter().flat_map(|python| sets(&binaries, python)));
        steps.extend(binaries.iter().map(tests));
    }
    steps.extend(of_programs());
    // One cargo waits for another, so these are one list.
    let mut lists = vec![through_cargo()];
    lists.extend(steps.into_iter().map(|step| vec![step]));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    report.run_in_parallel(lists, workers);
    report.end(begin)
}

/// The same with `SYSTOLA_TESTS=all`, which tests with a sample of many cases read.
pub fn test_all() -> Result<(), String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut command = Command::new(program);
    command.arg("test").env("SYSTOLA_TESTS", "all");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the tests ended with {status}")),
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}

/// The results so far.
#[derive(Default)]
struct Report {
    steps: usize,
    total: Tally,
    broken: Vec<String>,
}

impl Report {
    /// Runs lists of steps in parallel, the steps of a list one after the other.
    fn run_in_parallel(&mut self, lists: Vec<Vec<Step<'_>>>, workers: usize) {
        let queue = Mutex::new(VecDeque::from(lists));
        let report = Mutex::new(self);
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    loop {
                        let next = queue.lock().ok().and_then(|mut queue| queue.pop_front());
                        let Some(list) = next else { break };
                        for step in list {
                            let start = Instant::now();
                            let result = (step.run)();
                            if let Ok(mut report) = report.lock() {
                                report.add(step.name, result, start);
                            }
                        }
                    }
                });
            }
        });
    }

    fn add(&mut self, name: String, result: Result<Tally, String>, start: Instant) {
        let seconds = start.elapsed().as_secs_f64();
        self.steps += 1;
        match result {
            Ok(tally) => {
                let ignored = match tally.ignored {
                    0 => String::new(),
                    n => format!(", {n} ignored"),
                };
                println!(
                    "{name} ... ok, {} passed{ignored}, {seconds:.1} s",
                    tally.passed
                );
                self.total.passed += tally.passed;
                self.total.ignored += tally.ignored;
            }
            Err(output) => {
                println!("{name} ... FAILED, {seconds:.1} s\n{output}");
                let tally = tally(&output);
                self.total.passed += tally.passed;
                self.total.failed += tally.failed.max(1);
                self.broken.push(name);
            }
        }
    }

    fn end(self, begin: Instant) -> Result<(), String> {
        println!("{:.0} s in all", begin.elapsed().as_secs_f64());
        for name in &self.broken {
            println!("failed: {name}");
        }
        println!("{} passed, {} failed", self.total.passed, self.total.failed);
        if self.broken.is_empty() {
            Ok(())
        } else {
            let (broken, all) = (self.broken.len(), self.steps);
            Err(format!("{broken} of {all} steps failed"))
        }
    }
}

/// The tests of a program, without OpenCL devices: those have steps of their own.
fn tests(binary: &TestBinary) -> Step<'_> {
    Step::new(format!("tests: {}", binary.name), move || {
        let mut command = binary.command(&[]);
        command
            .env("SYSTOLA_OPENCL_DEVICES", "0")
            .env("OCL_ICD_VENDORS", root().join("target/no-opencl-vendors"));
        output(&mut command).map(|output| tally(&output))
    })
}

/// Steps that build what is not built yet.
fn through_cargo() -> Vec<Step<'static>> {
    vec![
        Step::new("doc tests", || {
            cargo_test(&["test", "--workspace", "--doc"])
        }),
        Step::new("documentation builds, no broken link", documentation),
    ]
}

/// Steps that run a program that is built already.
fn of_programs() -> Vec<Step<'static>> {
    vec![
        Step::new("the tour", || {
            run(Command::new(built("systola")).arg("tour"))
        }),
        Step::new("editors", || editors::test(&built("systola"))),
        Step::new("lessons", lessons),
        Step::new("every program of the gallery is checked", gallery),
        Step::new("damaged programs are answered", || {
            fuzz::run_with(&built("systola"), 400).map(|()| ONE)
        }),
    ]
}

/// The tests of `editors/` alone.
pub fn editors() -> Result<(), String> {
    cargo(&["build", "--bin", "systola"])?;
    let tally = editors::test(&built("systola"))?;
    println!("{} passed", tally.passed);
    Ok(())
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
    // Tests on OpenCL devices have a step of their own.
    command.args(args).env("SYSTOLA_OPENCL_DEVICES", "0");
    let output = output(&mut command)?;
    let tally = tally(&output);
    if tally.passed == 0 {
        return Err(format!("no test ran\n{output}"));
    }
    Ok(tally)
}

/// The path of a program that was built with the tests.
fn built(name: &str) -> PathBuf {
    target_folder().join("debug").join(name)
}

/// The test programs of a step by name, each with filters of its tests; no filters mean all tests.
type Chosen = &'static [(&'static str, &'static [&'static str])];

const CUDA: Chosen = &[
    ("cuda", &[]),
    ("systola-lab", &["nothing_that_is_timed_spills"]),
    (
        "systola-lab",
        &["mappings_for_gpus_compile_under_every_boundary"],
    ),
];

const OPENCL: Chosen = &[
    ("gallery", &["opencl"]),
    ("stencils", &["opencl"]),
    ("oracle", &["opencl"]),
    ("affine", &["opencl"]),
    ("opencl", &[]),
    ("systola-lab", &["programs_for_opencl_compute_the_same"]),
];

const ISL: Chosen = &[("isl", &["agrees_with_isl"])];

/// Compiles every mapping of the gallery and every timed mapping for GPUs; requires NVRTC.
fn cuda<'a>(binaries: &'a [TestBinary], folder: &'a Path) -> Vec<Step<'a>> {
    chosen(binaries, CUDA, "CUDA through NVRTC", move |command| {
        command.env("SYSTOLA_NVRTC", folder);
    })
}

/// Compares random integer sets with isl; requires it.
fn sets<'a>(binaries: &'a [TestBinary], python: &'a Path) -> Vec<Step<'a>> {
    chosen(binaries, ISL, "sets against", move |command| {
        command.env("AFFINE_ISL_PYTHON", python).arg("--ignored");
    })
}

/// Runs mappings of the gallery, and tests of the messages about missing components, on two OpenCL
/// implementations; requires both.
fn open_cl<'a>(binaries: &'a [TestBinary], vendors: &'a Path) -> Vec<Step<'a>> {
    chosen(binaries, OPENCL, "OpenCL", move |command| {
        command
            .env("OCL_ICD_VENDORS", vendors)
            .env("SYSTOLA_OPENCL_DEVICES", "2")
            .env("POCL_CACHE_DIR", root().join("target/pocl-cache"));
    })
}

/// Runs tests of some programs in an environment of their own. At least one test of each program
/// must run.
fn chosen<'a>(
    binaries: &'a [TestBinary],
    choices: Chosen,
    name: &str,
    set: impl Fn(&mut Command) + Clone + Send + 'a,
) -> Vec<Step<'a>> {
    let mut steps = Vec::new();
    for (test, filter) in choices {
        let here: Vec<&TestBinary> = binaries.iter().filter(|b| b.test() == *test).collect();
        let set = set.clone();
        let label = format!("{name}: {test} {}", filter.join(" "));
        steps.push(Step::new(label.trim_end(), move || {
            let mut sum = Tally::default();
            for binary in here {
                let mut command = binary.command(filter);
                set(&mut command);
                let tally = tally(&output(&mut command)?);
                sum.passed += tally.passed;
                sum.ignored += tally.ignored;
            }
            if sum.passed == 0 {
                return Err(format!("no test of {test} ran"));
            }
            Ok(sum)
        }));
    }
    steps
}

/// Builds the documentation of all crates.
fn documentation() -> Result<Tally, String> {
    run(Command::new(env!("CARGO"))
        .args(["doc", "--workspace", "--keep-going", "--no-deps"])
        .arg("--document-private-items")
        .env("RUSTDOCFLAGS", "-D warnings"))?;
    Ok(ONE)
}

fn run(command: &mut Command) -> Result<Tally, String> {
    output(command).map(|_| ONE)
}

/// The output of a command; `Err` with the output if the command fails.
pub fn output(command: &mut Command) -> Result<String, String> {
    if command.get_current_dir().is_none() {
        command.current_dir(root());
    }
    let result = command
        // Compiled kernels must not go to the user's cache.
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

/// Sums up the lines `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
pub fn tally(output: &str) -> Tally {
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

/// Installs missing compilers of generated C.
fn tools() -> Result<Tally, String> {
    const TOOLS: [&str; 2] = ["gcc", "clang"];
    let missing = || -> Vec<&str> {
        TOOLS
            .into_iter()
            .filter(|tool| !apt::answers(tool, &["--version"]))
            .collect()
    };
    let packages = missing();
    if packages.is_empty() {
        return Ok(ONE);
    }
    let by_hand = format!(
        "{} are needed to compile generated C, but could not be installed; install them by hand",
        packages.join(", ")
    );
    apt::install(&packages).map_err(|e| format!("{e}\n{by_hand}"))?;
    if missing().is_empty() {
        Ok(ONE)
    } else {
        Err(by_hand)
    }
}

/// Runs every example of the library.
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
    let built = target_folder().join("debug/examples");
    for name in &names {
        run(&mut Command::new(built.join(name)))?;
    }
    Ok(Tally {
        passed: names.len(),
        ..Tally::default()
    })
}

fn gallery() -> Result<Tally, String> {
    run(Command::new(built("systola-lab")).args(["bench", "check", "--repeat", "1"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A filter that matches no test fails here at once, not after an hour.
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
        for step in CUDA.iter().chain(OPENCL).chain(ISL) {
            let found = match *step {
                ("systola-lab", [name]) => in_files("/lab/src/", &format!("fn {name}()")),
                (file, []) => ["", "/main"].iter().any(|end| {
                    let end = format!("/tests/{file}{end}.rs");
                    rust.iter()
                        .any(|path| path.to_string_lossy().ends_with(&end))
                }),
                (file, [name]) => in_files(&format!("/tests/{file}"), name),
                _ => false,
            };
            assert!(found, "{step:?}");
        }
        for name in LONG {
            let (package, test) = name.split_once(' ').expect("a package and a test");
            let places = [
                format!("crates/{package}/tests/{test}.rs"),
                format!("crates/{package}/tests/{test}/main.rs"),
                // The unit tests of a program are named after its package.
                format!("crates/{}/src/main.rs", test.trim_start_matches("systola-")),
            ];
            let found = places.iter().any(|place| root().join(place).exists());
            assert!(found, "{name}");
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
