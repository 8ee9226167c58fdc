//! Programs from end to end: the mappings of the repository's programs are legal, and small
//! programs, each for one idea, compute what their equations say.

mod common;

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use common::{check, command, file, root, stderr, stdout};

/// The `.ure` files of a folder and its subfolders.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a readable folder");
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|e| e == "ure") {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn every_shipped_program_is_legal() {
    let folders = ["gallery", "stencils"];
    let all: Vec<PathBuf> = (folders.iter())
        .flat_map(|folder| files(&root().join(folder)))
        .collect();
    assert!(all.len() > 70, "{all:?}");
    let next = Mutex::new(all.iter());
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                loop {
                    let Some(path) = next.lock().unwrap().next() else {
                        return;
                    };
                    let path = path.display().to_string();
                    let output = command(&["check", &path])
                        .output()
                        .expect("the binary runs");
                    if output.status.code() != Some(0) {
                        let said = stdout(&output).lines().next().map(str::to_string);
                        let said = format!("{said:?}\n{}", stderr(&output));
                        failures.lock().unwrap().push(format!("{path}: {said}"));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn a_mapping_that_needs_sizes_is_checked_at_small_ones() {
    let path = "gallery/vision/motion_estimation.ure";
    let (out, _) = check(&["check", path, "--map", "linear_n"], 0);
    let said = "at the given sizes only: a delay multiplies parameters, and its sign depends on them; \
                not all are given, taking M = 3, N = 3";
    assert!(out.contains(said), "{out}");
    // Given sizes are kept, and a mapping that is illegal at them is reported.
    let (out, _) = check(&["check", path, "--map", "linear_n", "-p", "M=2"], 0);
    assert!(out.contains("taking M = 2, N = 3"), "{out}");
    let sizes = ["-p", "M=9", "-p", "N=2"];
    let args = [&["check", path, "--map", "linear_n"][..], &sizes].concat();
    check(&args, 1);
}

#[test]
fn an_empty_file_is_said_to_be_empty() {
    for (name, text) in [
        ("empty.ure", ""),
        ("only_a_comment.ure", "// nothing yet\n"),
    ] {
        let path = file(name, text);
        let (out, _) = check(&["check", &path], 0);
        assert!(out.contains("empty, there is nothing to check"), "{out}");
    }
}

#[test]
fn sizes_that_are_given_are_not_asked_for() {
    let text = "\
system gaps(N) where N >= 1 {
  input x[N]: i64;
  index n in 0..N;
  var A: i64 = x[n];
  output y[N]: i64 = A at [n];
}
mapping m of gaps { lane = 7*(n / 3) + 5*(n % 3) + n % 2; time = 0; }";
    let path = file("no_closed_form.ure", text);
    let run = [
        "run", &path, "--map", "m", "--target", "kernel", "-p", "N=9",
    ];
    let (_, err) = check(&run, 2);
    assert!(err.contains("L0730"), "{err}");
    assert!(!err.contains("--set"), "{err}");
}

/// On vectors of eight lanes, and on warps of threads.
#[test]
fn kernels_of_programs_compute_what_their_equations_say() {
    for path in files(&root().join("crates/cli/tests/programs")) {
        let path = path.display().to_string();
        let text = std::fs::read_to_string(&path).unwrap();
        let names = text.lines().filter_map(|l| l.strip_prefix("mapping "));
        for name in names.filter_map(|l| l.split(' ').next()) {
            for machine in [["--simd", "avx2"], ["--machine", "cuda"]] {
                let run = [
                    "run", &path, "--map", name, "--target", "kernel", "--verify",
                ];
                let (out, _) = check(&[&run[..], &machine].concat(), 0);
                assert!(out.contains("\nverified "), "{path} {name}\n{out}");
                assert!(!out.contains("DIFFERENT"), "{path} {name}\n{out}");
            }
        }
    }
}

#[test]
fn sums_over_registers_and_lanes_use_all_lanes() {
    let path = "crates/cli/tests/programs/registers_then_lanes.ure";
    for map in ["warps", "single", "threes", "two_by_two", "fives"] {
        let args = [
            "dump",
            path,
            "--map",
            map,
            "--after",
            "kernel",
            "--machine",
            "cuda",
        ];
        let (out, _) = check(&args, 0);
        assert!(out.contains(" of 32 lanes"), "{map}\n{out}");
        let (out, _) = check(&["check", path, "--map", map], 0);
        assert!(!out.contains("one lane does the work"), "{map}\n{out}");
    }
    // Independent warps run one by one on a CPU.
    for (simd, lanes) in [("avx2", " of 8 lanes"), ("avx512", " of 16 lanes")] {
        let args = [
            "dump", path, "--map", "warps", "--after", "kernel", "--simd", simd,
        ];
        let (out, _) = check(&args, 0);
        assert!(out.contains(lanes), "{out}");
    }
}

#[test]
fn the_number_of_lanes_that_makes_a_mapping_illegal_is_said() {
    let text = "\
system chain() {
  input x[40]: f32;
  index i in 0..40;
  var S: f32 = select(i == 0, 0, S(i - 1)) + x[i];
  output s[40]: f32 = S at [i];
}
mapping m of chain { block = i / (2*L); lane = i % (2*L); time = i; }";
    let path = file("lanes.ure", text);
    check(&["check", &path], 0);
    let (_, said) = check(&["emit", &path, "--map", "m", "--simd", "avx2"], 1);
    assert!(said.contains("E0504"), "{said}");
    assert!(said.contains("L is 8 on this target"), "{said}");
}

#[test]
fn one_lane_for_the_work_of_all_is_said() {
    let text = "\
system rows(N) where N >= 1 {
  input x[N, 8]: f32;
  index i in 0..N, j in 0..8;
  var A: f32 = select(i == 0, 0, select(j == 7, A(i - 1, j), A(i - 1, j + 1))) * select(j == 0, 1, A(i, j - 1)) + x[i, j];
  output y[8]: f32 = A at [j] when i == N - 1;
}
mapping m of rows { lane = j; time = i; broadcast A; }";
    let path = file("one_lane.ure", text);
    let (out, _) = check(&["check", &path], 0);
    assert!(out.contains("one lane does the work of all: `A`"), "{out}");
}
