//! Kernels on the command line: interpreted, compiled, printed, and their errors.

mod common;

use common::{CORE, PROGRAM, check, check_with, file, npy, temporary};

/// Several shapes of arrays: sums that move and stay, wavefronts, grids, integers and floats.
const SAMPLES: &[(&str, &str)] = &[
    (CORE, "sbm"),
    (CORE, "fsa"),
    ("gallery/conv2d/core.ure", "fbs"),
    ("gallery/linear-algebra/matmul.ure", "output_stationary"),
    ("gallery/string/edit_distance.ure", "pe_per_a"),
    ("gallery/sort/odd_even.ure", "pe_per_key"),
    ("gallery/stencil/heat2d.ure", ""),
];

fn run<'a>(path: &'a str, map: &'a str, target: &'a str) -> Vec<&'a str> {
    let mut args = vec!["run", path, "--target", target];
    if !map.is_empty() {
        args.extend(["--map", map]);
    }
    args
}

#[test]
fn kernels_compute_what_the_equations_say() {
    for (path, map) in SAMPLES {
        for target in ["kernel", "cpu"] {
            let args = [run(path, map, target), vec!["--random", "3", "--verify"]].concat();
            let (out, _) = check(&args, 0);
            assert!(out.contains("\nverified "), "{args:?}\n{out}");
            assert!(!out.contains("DIFFERENT"), "{args:?}\n{out}");
        }
    }
}

#[test]
fn the_interpreter_counts_what_a_kernel_does() {
    let args = [run(CORE, "sbm", "kernel"), vec!["-p", "C=40", "-p", "Q=3"]].concat();
    let (out, _) = check(&args, 0);
    for row in [
        "instructions",
        "loads",
        "stores",
        "lane shifts",
        "global bytes",
        "bank conflicts",
    ] {
        assert!(out.contains(&format!(" {row} ")), "{row} in\n{out}");
    }
    let ends: Vec<usize> = out
        .lines()
        .skip_while(|l| !l.contains("kernel interpreted"))
        .skip(1)
        .map(|l| l.chars().count())
        .collect();
    assert!(
        ends.len() > 5 && ends.windows(2).all(|w| w[0] == w[1]),
        "{out}"
    );
}

#[test]
fn compiled_kernels_are_found_again() {
    let folder = temporary("a-new-cache");
    let _ = std::fs::remove_dir_all(&folder);
    let folder = folder.display().to_string();
    let variables = [("SYSTOLA_CACHE", folder.as_str())];
    let args = run(CORE, "sbm", "cpu");
    let (out, err) = check_with(&variables, &args, 0);
    assert!(out.contains("now in the cache"), "{out}\n{err}");
    let (out, _) = check_with(&variables, &args, 0);
    assert!(out.contains("found in the cache"), "{out}");
    let off = [("SYSTOLA_CACHE_MB", "0")];
    let (out, _) = check_with(&off, &args, 0);
    assert!(out.contains("not kept"), "{out}");
}

#[test]
fn a_kernel_says_for_which_sizes_it_is() {
    let says = |extra: &[&str], text: &str| {
        let sizes = ["--set", "C=20", "--set", "Q=3"];
        let args = [&run(CORE, "sbm", "kernel")[..], &sizes, extra].concat();
        let (out, _) = check(&args, 0);
        assert!(out.contains(text), "{text} in\n{out}");
    };
    says(&[], ") for all sizes\n");
    says(&["--fix", "Q"], ") for all sizes with Q = 3 fixed");
    says(
        &["--fix", "C,Q"],
        ") for C = 20, Q = 3 only, which are fixed",
    );
    says(
        &["--fix", "all"],
        ") for C = 20, Q = 3 only, which are fixed",
    );
    let (out, _) = check(&run("gallery/conv2d/core.ure", "sbm", "kernel"), 0);
    assert!(out.contains(" only: "), "the reason is printed\n{out}");
}

#[test]
fn threads_and_vectors_do_not_change_integers() {
    let path = file("threads.ure", PROGRAM);
    let values = |extra: &[&str]| {
        let args = [
            &run(&path, "sbm", "cpu")[..],
            &["-p", "C=100", "-p", "Q=4"],
            extra,
        ]
        .concat();
        let (out, _) = check(&args, 0);
        let at = out.find("z[100]").expect("the output is shown");
        let lines: Vec<&str> = out[at..].lines().take(2).collect();
        lines.join("\n")
    };
    let first = values(&[]);
    for extra in [
        &["--threads", "1"] as &[&str],
        &["--threads", "7"],
        &["--simd", "portable"],
    ] {
        assert_eq!(values(extra), first, "{extra:?}");
    }
}

#[test]
fn programs_run_as_kernels() {
    let path = file("kernel-program.ure", PROGRAM);
    for target in ["kernel", "cpu"] {
        let args = [
            run(&path, "", target),
            vec!["--program", "twice", "--verify"],
        ]
        .concat();
        let (out, _) = check(&args, 0);
        assert!(out.contains("verified y"), "{out}");
        assert!(out.contains("first: kernel") && out.contains("second: kernel"));
    }
    check(&["run", &path, "--program", "twice", "--map", "nothing"], 1);
}

#[test]
fn arrays_go_in_and_out_of_kernels() {
    let path = file("kernel-files.ure", PROGRAM);
    let x = file("kx.npy", npy("<i4", "(6,)", &[1, 2, 3, 4, 5, 6]));
    let w = file("kw.npy", npy("<i4", "(2,)", &[10, 1]));
    let z = file("kz.npy", "");
    let (x, w, z_arg) = (format!("x={x}"), format!("w={w}"), format!("z={z}"));
    for target in ["kernel", "cpu"] {
        let files = ["--in", &x, "--in", &w, "--out", &z_arg];
        let (out, _) = check(&[&run(&path, "sbm", target)[..], &files].concat(), 0);
        assert!(out.contains("z[5]: i32"), "{out}");
        let written = std::fs::read(&z).expect("it was written");
        let values = [12i32, 23, 34, 45, 56].iter().flat_map(|v| v.to_le_bytes());
        assert!(written.ends_with(&values.collect::<Vec<u8>>()));
    }
}

#[test]
fn bad_arrays_are_mistakes() {
    let path = file("kernel-bad.ure", PROGRAM);
    let whole = npy("<i4", "(6,)", &[1, 2, 3, 4, 5, 6]);
    let good = format!("x={}", file("good.npy", &whole));
    let truncated = format!("x={}", file("truncated.npy", &whole[..whole.len() - 5]));
    let no_header = format!("x={}", file("no-header.npy", &whole[..20]));
    let floats = format!("x={}", file("floats.npy", npy("<f4", "(6,)", &[0; 6])));
    let square = format!("x={}", file("square.npy", npy("<i4", "(2, 3)", &[0; 6])));
    for target in ["system", "kernel", "cpu"] {
        let refused = |extra: &[&str], code: &str| {
            let (_, err) = check(&[&run(&path, "sbm", target)[..], extra].concat(), 1);
            assert!(err.contains(code), "{code} for {target} in\n{err}");
        };
        refused(&["--in", &good, "-p", "C=5", "-p", "Q=3"], "E0606");
        refused(&["--in", &square, "-p", "C=5", "-p", "Q=2"], "E0606");
        refused(&["--in", &floats, "-p", "C=5", "-p", "Q=2"], "E0607");
        refused(&["--in", &truncated], "E0621");
        refused(&["--in", &no_header], "E0621");
        refused(&["--in", &good, "--in", &good], "E0639");
        refused(&["--in", "x=nowhere.npy"], "nowhere.npy");
        refused(&["--in", "y=nowhere.npy"], "no input `y`");
        refused(&["--set", "C=1_000_000_000_000_000"], "E0608");
    }
}

#[test]
fn without_a_compiler_it_is_said() {
    let without = [("SYSTOLA_CC", "/no/such/compiler")];
    let explore = vec!["explore", CORE, "--set", "C=100", "--set", "Q=5"];
    for args in [run(CORE, "fbs", "cpu"), explore] {
        let (_, err) = check_with(&without, &args, 2);
        assert!(
            err.contains("E0630") && err.contains("/no/such/compiler"),
            "{err}"
        );
        assert!(err.contains("--target kernel"), "{err}");
    }
}

#[test]
fn the_output_of_a_failing_compiler_is_printed() {
    let (_, err) = check_with(&[("SYSTOLA_CC", "false")], &run(CORE, "fbs", "cpu"), 1);
    assert!(err.contains("E0631") && err.contains("/false"), "{err}");
    assert!(err.contains("exit status: 1"), "{err}");
    let (out, _) = check(&["explain", "E0631"], 0);
    assert!(out.contains("SYSTOLA_CC"), "{out}");
}

#[test]
fn a_cache_that_can_not_be_written_is_a_note() {
    let below_a_file = format!("{}/cache", file("no-folder", ""));
    let variables = [("SYSTOLA_CACHE", below_a_file.as_str())];
    let (out, err) = check_with(&variables, &run(CORE, "fbs", "cpu"), 0);
    assert!(
        out.contains("not kept") && out.contains("kernel run in"),
        "{out}"
    );
    assert!(err.contains("E0633") && err.contains("no-folder"), "{err}");
}

#[test]
fn bad_settings_are_mistakes() {
    for (name, value) in [("SYSTOLA_SIMD", "mmx"), ("SYSTOLA_CACHE_MB", "plenty")] {
        let (_, err) = check_with(&[(name, value)], &run(CORE, "fbs", "cpu"), 1);
        assert!(err.contains("E0635") && err.contains(name), "{err}");
    }
    let foreign = if cfg!(target_arch = "aarch64") {
        "avx2"
    } else {
        "neon"
    };
    let args = [run(CORE, "fbs", "cpu"), vec!["--simd", foreign]].concat();
    let (_, err) = check(&args, 1);
    assert!(err.contains("E0635") && err.contains(foreign), "{err}");
    for extra in [
        &["--fix", "Z"] as &[&str],
        &["--simd", "mmx"],
        &["--threads", "0"],
        &["--threads", "many"],
        &["--map", "nothing"],
    ] {
        check(&[&["run", CORE, "--target", "cpu"], extra].concat(), 1);
    }
    for (target, extra) in [
        ("array", ["--fix", "all"]),
        ("system", ["--simd", "portable"]),
        ("array", ["--threads", "2"]),
        ("kernel", ["--threads", "2"]),
    ] {
        check(&[&run(CORE, "sbm", target)[..], &extra].concat(), 1);
    }
}

#[test]
fn what_is_wrong_is_not_compiled() {
    let outside = "\
system outside(N) where N >= 1 {
  input x[N]: i32;
  index i in 0..N;
  var A: i32 = x[i + 1];
  output z[N]: i32 = A at [i];
}
mapping m of outside { lane = i; time = 0; }
";
    let path = file("outside.ure", outside);
    for args in [
        run(&path, "m", "cpu"),
        run(&path, "m", "kernel"),
        vec!["emit", &path],
        vec!["dump", &path, "--after", "kernel"],
    ] {
        let (out, err) = check(&args, 1);
        assert!(err.contains("E0306"), "{args:?}\n{out}\n{err}");
    }
    let crowded = file("crowded.ure", PROGRAM);
    let (_, err) = check(&run(&crowded, "crowded", "cpu"), 1);
    assert!(err.contains("E0502"), "{err}");
}

#[test]
fn a_known_limitation_is_status_2() {
    let half = "\
system half(N) where N >= 1 {
  input x[N]: f16;
  index i in 0..N;
  var A: f16 = x[i] * x[i];
  output z[N]: f16 = A at [i];
}
mapping m of half { lane = i; time = 0; }
";
    let path = file("half.ure", half);
    let (_, err) = check(&run(&path, "m", "cpu"), 2);
    assert!(
        err.contains("L0722") && err.contains("--target kernel"),
        "{err}"
    );
    check(&[run(&path, "m", "kernel"), vec!["--verify"]].concat(), 0);
    check(&["emit", &path], 2);
}

#[test]
fn values_that_have_no_meaning_are_mistakes() {
    let refused = |name: &str, body: &str, code: &str| {
        let text = format!(
            "system s(N) where N >= 1 {{\n  table t[2]: i32 = [1, 2];\n  input x[N]: i32;\n  \
             index i in 0..N;\n  var A: i32 = {body};\n  output z[N]: i32 = A at [i];\n}}\n\
             mapping m of s {{ lane = i; time = 0; }}\n"
        );
        let path = file(name, text);
        let (_, err) = check(&run(&path, "m", "kernel"), 1);
        assert!(err.contains(code), "{err}");
    };
    refused("zero.ure", "x[i] / (x[i] - x[i])", "E0613");
    refused("lookup.ure", "t[abs(x[i]) + 2]", "E0615");
}

#[test]
fn kernels_are_printed() {
    let dump = [
        "dump", CORE, "--map", "fbs", "--after", "kernel", "--simd", "avx2",
    ];
    let (out, _) = check(&dump, 0);
    for part in [
        "program conv1d(C, Q)",
        "kernel conv1d_fbs",
        "8 lanes",
        "launch",
    ] {
        assert!(out.contains(part), "{part} in\n{out}");
    }
    assert_eq!(check(&dump, 0).0, out);
    let fixed = [&dump[..], &["--fix", "Q", "--set", "Q=3"]].concat();
    assert!(check(&fixed, 0).0.contains("Q = 3"));
    let (_, err) = check(&[&dump[..], &["--fix", "Q"]].concat(), 1);
    assert!(err.contains("--set Q"), "{err}");
    check(&["dump", CORE, "--after", "array", "--fix", "all"], 1);
}

#[test]
fn code_is_emitted() {
    let emit = [
        "emit", CORE, "--map", "fbs", "--target", "c", "--simd", "avx2",
    ];
    let (out, _) = check(&emit, 0);
    for part in ["void conv1d_fbs", "vector_size(32)", "#include <stdint.h>"] {
        assert!(out.contains(part), "{part} in\n{out}");
    }
    let path = file("emitted.c", "");
    check(&[&emit[..], &["-o", &path]].concat(), 0);
    assert_eq!(std::fs::read_to_string(&path).expect("it was written"), out);
    let (wide, _) = check(&[&emit[..6], &["--simd", "avx512"]].concat(), 0);
    assert!(wide.contains("vector_size(64)"), "{wide}");
    check(&[&emit[..], &["-o", "/no/such/folder/out.c"]].concat(), 1);
    // There is no kernel for all sizes, so sizes must be given.
    let open = ["emit", "gallery/conv2d/core.ure", "--map", "sbm"];
    check(&open, 2);
    let sizes = ["-p", "R=8", "-p", "C=9", "-p", "H=3", "-p", "Q=3"];
    check(&[&open[..], &sizes].concat(), 0);
}

/// The listings of `docs/kernels.md` are the output of their commands; SYSTOLA_BLESS=1 rewrites
/// them.
#[test]
fn the_page_on_kernels_shows_what_is_printed() {
    let page = common::root().join("docs/kernels.md");
    let text = std::fs::read_to_string(&page).expect("the page is there");
    let mut blocks: Vec<String> = text.split("```").map(str::to_string).collect();
    let program = blocks.iter().find_map(|b| b.strip_prefix("ure\n"));
    let path = file("page.ure", program.expect("the page has a program"));
    let mut shown = 0;
    for block in blocks.iter_mut().skip(1).step_by(2) {
        let mut lines = block.lines();
        let (language, first) = (lines.next(), lines.next().unwrap_or_default());
        let Some((mark, command)) = first.split_once(" systola ") else {
            continue;
        };
        let arguments = command.replace("conv1d.ure", &path);
        let (out, _) = check(&arguments.split(' ').collect::<Vec<_>>(), 0);
        // Of C, only the kernel: the part before it is the same for all.
        let from = match mark {
            "//" => out.find("\nvoid ").expect("a function") + 1,
            _ => 0,
        };
        let language = language.unwrap_or_default();
        let expect = format!("{language}\n{mark} systola {command}\n{}", &out[from..]);
        if std::env::var_os("SYSTOLA_BLESS").is_none() {
            assert_eq!(*block, expect, "docs/kernels.md is out of date");
        }
        *block = expect;
        shown += 1;
    }
    assert_eq!(shown, 3);
    let (prose, listings): (Vec<_>, Vec<_>) = (0..blocks.len()).partition(|n| n % 2 == 0);
    let listings: String = listings.iter().map(|n| blocks[*n].as_str()).collect();
    for text in prose.iter().map(|n| &blocks[*n]) {
        for quoted in text
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|q| q.contains("*b"))
        {
            assert!(listings.contains(quoted), "no listing has `{quoted}`");
        }
    }
    if std::env::var_os("SYSTOLA_BLESS").is_some() {
        std::fs::write(&page, blocks.join("```")).expect("the page can be written");
    }
}

/// Indices and guards that wrap around 64 bits in machine code.
const LARGE: &[(&str, &str, &[&str])] = &[
    (
        "index-wraps-load.ure",
        "system s(N) where N >= 1 {
  input x[N]: i32;
  index i in 0..40*N;
  var Z: i32 = x[(i*439804651110) / 17592186044423];
  output z[40*N]: i32 = Z at [i];
}
mapping m of s { tile i by 2*L as (b, ii); block = b; lane = ii % L; reg = ii / L; time = 0; }
",
        &["--set", "N=600000"],
    ),
    (
        "index-wraps-store.ure",
        "system s(N) where N >= 1 {
  index i in 0..40*N;
  var Z: i32 = 1;
  output z[N]: i32 = Z at [(i*439804651110) / 17592186044423] when i % 64 == 0 else 0;
}
mapping m of s { tile i by 2*L as (b, ii); block = b; lane = ii % L; reg = ii / L; time = 0; }
",
        &["--set", "N=600000"],
    ),
    (
        "guard-wraps.ure",
        "system s(N) where N >= 1 {
  index i in 0..N;
  var Z: i32 = select(i * 4611686018427387904 <= N, 1, 2);
  output z[N]: i32 = Z at [i];
}
mapping m of s { lane = i; time = 0; }
",
        &["--set", "N=8"],
    ),
    (
        "guard-wraps-parameter.ure",
        "system s(N, K) where N >= 1 {
  input x[N]: i32;
  index i in 0..N;
  var Z: i32 = select(3*i + 2*K > 5, x[i], 7);
  output z[N]: i32 = Z at [i];
}
mapping m of s { lane = i; time = 0; }
",
        &["--set", "N=8", "--set", "K=4611686018427387904"],
    ),
];

#[test]
fn indices_that_leave_64_bits_are_refused_before_anything_runs() {
    for (name, text, sizes) in LARGE {
        let path = file(name, text);
        let args = [&run(&path, "m", "cpu")[..], sizes].concat();
        let (_, err) = check(&args, 1);
        assert!(err.contains("E0608") && err.contains("can reach"), "{err}");
        // If the interpreter reaches the point quickly, it reports the same.
        if sizes.contains(&"N=8") {
            let args = [&run(&path, "m", "kernel")[..], sizes].concat();
            let (_, err) = check(&args, 1);
            assert!(err.contains("E0608"), "{args:?}\n{err}");
        }
    }
    // A number that is too large at every size.
    let tiled = LARGE[2].1.replace(
        "lane = i;",
        "tile i by 2*L as (b, ii); block = b; lane = ii % L; reg = ii / L;",
    );
    let path = file("guard-wraps-tiled.ure", &tiled);
    let (_, err) = check(&run(&path, "m", "cpu"), 1);
    assert!(err.contains("E0608"), "{err}");
    let path = file("guard-wraps-parameter.ure", LARGE[3].1);
    // Indices that fit are accepted.
    let sizes = ["--set", "N=8", "--set", "K=-1000000000000000000"];
    let args = [&run(&path, "m", "cpu")[..], &sizes, &["--verify"]].concat();
    let (out, _) = check(&args, 0);
    assert!(out.contains("7  7  7  7"), "{out}");
}

#[test]
fn arrays_beyond_memory_are_told_with_their_bytes() {
    let path = file("kernel-beyond-memory.ure", PROGRAM);
    for target in ["system", "array", "kernel", "cpu"] {
        for (size, bytes) in [
            ("C=4_000_000_000_000", "32000000000012"),
            ("C=200_000_000_000_000_000", "1600000000000000012"),
            ("C=9_000_000_000_000_000_000", "2^64"),
        ] {
            let args = [&run(&path, "sbm", target)[..], &["-p", size, "-p", "Q=2"]].concat();
            let (_, err) = check(&args, 1);
            assert!(
                err.contains("E0608") && err.contains(bytes),
                "{args:?}\n{err}"
            );
        }
    }
}

/// An equation without a value ends a run on every target with its code and a point, and no output
/// is written.
#[test]
fn a_run_without_a_value_says_where_and_writes_nothing() {
    let text = "system divide(N) where N >= 1 {
  input a[N]: i32;
  input d[N]: i32;
  index i in 0..N;
  var Z: i32 = a[i] / d[i];
  output z[N]: i32 = Z at [i];
}
mapping m of divide { tile i by L as (b, ii); block = b; lane = ii; time = 0; }
";
    let path = file("divide.ure", text);
    let a = format!("a={}", file("fa.npy", npy("<i4", "(5,)", &[1, 2, 3, 4, 5])));
    let zero = format!("d={}", file("fd.npy", npy("<i4", "(5,)", &[1, 2, 3, 0, 5])));
    let fine = format!("d={}", file("fe.npy", npy("<i4", "(5,)", &[1, 2, 3, 9, 5])));
    let z = temporary("quotients.npy");
    let _ = std::fs::remove_file(&z);
    let out = format!("z={}", z.display());
    for target in ["system", "array", "kernel", "cpu"] {
        let both = ["--map", "m", "--in", &a, "--out", &out];
        let args = [&["run", &path, "--target", target][..], &both].concat();
        let (_, err) = check(&[&args[..], &["--in", &zero]].concat(), 1);
        for said in ["E0613", "(i = 3)", "N = 5"] {
            assert!(err.contains(said), "{target}: {said} in\n{err}");
        }
        assert!(!z.exists(), "{target}");
        check(&[&args[..], &["--in", &fine, "--verify"]].concat(), 0);
        assert!(std::fs::remove_file(&z).is_ok(), "{target}");
    }
    // Random divisors are not zero.
    check(&["run", &path, "--set", "N=400", "--random", "1"], 0);
}
