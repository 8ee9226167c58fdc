//! The command line as a user sees it: status, streams, files.

use std::path::Path;

use systola_driver::load;

mod common;

use common::{CORE, PROGRAM, check, check_with, command, file, npy, root, stderr, stdout};

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("valid JSON")
}

#[test]
fn a_legal_mapping_is_status_0_and_the_verdict_comes_first() {
    let (out, _) = check(
        &["check", CORE, "--map", "sbm", "-p", "C=16", "-p", "Q=5"],
        0,
    );
    let first = out.lines().next().unwrap_or_default();
    assert!(first.contains("legal"), "{first}");
    for fact in [
        "SBM",
        "80.0 %",
        "shuffle",
        "register",
        "coalesced",
        "reverse",
        "c = lane - time",
    ] {
        assert!(out.contains(fact), "{fact} in\n{out}");
    }
}

#[test]
fn an_illegal_mapping_is_status_1_with_a_counterexample() {
    let path = file("illegal.ure", PROGRAM);
    let (out, err) = check(&["check", &path], 1);
    assert!(
        out.starts_with(&format!("{path}: illegal, 1 of 3 mappings are legal")),
        "{out}"
    );
    assert!(err.contains("E0502") && err.contains("E0501"), "{err}");
    assert!(err.contains("counterexample at"), "{err}");
    assert!(err.contains("point 1") && err.contains("point 2"), "{err}");
    check(&["check", &path, "--map", "sbm"], 0);
}

/// The parameters and mappings in the examples of help texts exist in their files.
#[test]
fn examples_of_help_texts_fit_their_files() {
    let mut seen = 0;
    for name in ["", "check", "show", "dump", "emit", "run", "explore"] {
        let help = [name, "--help"];
        let (help, _) = check(&help[usize::from(name.is_empty())..], 0);
        for example in examples(&help) {
            let words: Vec<&str> = example.split_whitespace().collect();
            let Some(file) = words.iter().find(|w| w.ends_with(".ure")) else {
                continue;
            };
            let text = std::fs::read_to_string(root().join(file));
            let module = load(&text.unwrap_or_else(|e| panic!("{example}: {e}"))).expect("legal");
            let is_param = |name: &str| {
                let mut params = module.systems.iter().flat_map(|system| &system.params);
                name == "all" || params.any(|param| param.name == name)
            };
            for pair in words.windows(2) {
                let fits = match pair[0] {
                    "--set" | "-p" => is_param(pair[1].split('=').next().unwrap_or_default()),
                    "--fix" => pair[1].split(',').all(is_param),
                    "--map" => module.mappings.iter().any(|m| m.name == pair[1]),
                    _ => continue,
                };
                assert!(fits, "{} {} in `{example}`", pair[0], pair[1]);
                seen += 1;
            }
        }
    }
    assert!(seen > 40, "{seen} options");
}

/// The lines of a help text that start the program, with continuation lines joined.
fn examples(help: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut inside = false;
    for line in help.lines() {
        if line.starts_with("  systola ") {
            found.push(line.trim().to_string());
            inside = true;
        } else if inside && line.starts_with("  --") {
            let last = found.last_mut().expect("inside one");
            last.push_str(&format!(" {}", line.trim()));
        } else {
            inside = false;
        }
    }
    found
}

#[test]
fn an_old_word_is_a_hint_and_status_0() {
    let text = "stencil s(N) { field u[N]: f32 held; u = 0.5*u[-1] + 0.5*u[1]; }";
    let (out, err) = check(&["check", &file("old.ure", text)], 0);
    assert!(out.contains("legal"), "{out}");
    assert!(err.contains("hint H0801"), "{err}");
    assert!(err.contains("write `fixed`"), "{err}");
}

#[test]
fn several_errors_are_told_at_once() {
    let broken = "system s(N) {\n  input x[N]: f32;\n  index i in 0..N;\n  var X: f32 = y[i];\n  var Y: f32 = u[i];\n}\n";
    let (_, err) = check(&["check", &file("broken.ure", broken)], 1);
    assert!(err.matches("error E0").count() >= 2, "{err}");
    assert!(err.contains("systola explain"), "{err}");
}

#[test]
fn json_has_its_documented_shape() {
    let (out, _) = check(
        &[
            "check", CORE, "--map", "sbm", "--set", "C=16", "--set", "Q=5", "--json",
        ],
        0,
    );
    let document = json(&out);
    assert_eq!(document["schema"], 1);
    assert_eq!(document["status"], 0);
    assert_eq!(document["params"]["C"], 16);
    assert_eq!(document["systems"][0]["well_defined"], true);
    let mapping = &document["mappings"][0];
    assert_eq!(mapping["name"], "sbm");
    assert_eq!(mapping["legal"], true);
    assert_eq!(mapping["scope"], "all-sizes");
    assert_eq!(mapping["taxonomy"], "SBM");
    for (field, value) in [
        ("points", 80),
        ("expanded", 80),
        ("pes", 20),
        ("steps", 5),
        ("outputs", 16),
    ] {
        assert_eq!(mapping[field], value, "{field}");
    }
    assert_eq!(mapping["utilisation"], 0.8);
    assert_eq!(mapping["registers"]["per_pe"], 5);
    assert_eq!(mapping["registers"]["total"], 100);
    for list in [
        "streams",
        "links",
        "guards",
        "injections",
        "drains",
        "transfers",
        "reverse",
        "diagnostics",
    ] {
        assert!(mapping[list].is_array(), "{list}");
    }
    // Every field of a mapping that the page describes exists.
    let page = std::fs::read_to_string(root().join("docs/json.md")).unwrap();
    for field in mapping.as_object().unwrap().keys() {
        assert!(
            page.contains(&format!("`{field}`")),
            "docs/json.md lacks `{field}`"
        );
    }
}

#[test]
fn json_of_a_refusal_has_place_and_counterexample() {
    let path = file("refusal.ure", PROGRAM);
    let (out, _) = check(&["check", &path, "--map", "crowded", "--json"], 1);
    let mapping = &json(&out)["mappings"][0];
    assert_eq!(mapping["legal"], false);
    assert!(mapping["pes"].is_null());
    let diagnostic = &mapping["diagnostics"][0];
    assert_eq!(diagnostic["code"], "E0502");
    assert_eq!(diagnostic["span"]["line"], 10);
    let points = diagnostic["counterexample"]["points"].as_array().unwrap();
    assert_eq!(points.len(), 2);
    assert_eq!(points[0]["place"], points[1]["place"]);
    assert_eq!(points[0]["time"], points[1]["time"]);
    assert_ne!(points[0]["point"], points[1]["point"]);
    assert!(diagnostic["counterexample"]["params"].is_object());

    let broken = file("unreadable.ure", "system {");
    let (out, _) = check(&["check", &broken, "--json"], 1);
    assert!(!json(&out)["diagnostics"].as_array().unwrap().is_empty());
}

#[test]
fn colours_are_for_terminals_only() {
    let path = file("colours.ure", PROGRAM);
    for args in [
        &["check", path.as_str()] as &[&str],
        &["help"],
        &["tour", "--fast"],
        &["check", "nowhere.ure"],
    ] {
        let output = command(args)
            .env("SYSTOLA_CC", "/no/such/compiler")
            .output()
            .expect("the binary runs");
        assert!(!stdout(&output).contains('\x1b'), "{args:?}");
        assert!(!stderr(&output).contains('\x1b'), "{args:?}");
    }
    let output = command(&["check", &path]).env("NO_COLOR", "1").output();
    let output = output.expect("the binary runs");
    assert!(!stderr(&output).contains('\x1b'));
}

#[test]
fn mistakes_in_the_command_are_status_1() {
    check(&["frobnicate"], 1);
    check(&[], 1);
    check(&["check"], 1);
    let (_, err) = check(&["check", "nowhere.ure"], 1);
    assert!(err.contains("nowhere.ure"), "{err}");
    let (_, err) = check(&["check", CORE, "--map", "zzz"], 1);
    assert!(err.contains("sbm"), "the known mappings are named: {err}");
    let (_, err) = check(&["check", CORE, "--set", "K=3"], 1);
    assert!(err.contains("C, Q"), "{err}");
    check(&["check", CORE, "--set", "C"], 1);
    check(&["check", CORE, "--set", "C=0", "--set", "Q=1"], 1);
    check(&["check", &file("binary.ure", [0x80, 0xff, 0x00])], 1);
    check(&["run", CORE, "--in", "y=y.npy"], 1);
    check(&["explain", "E9999"], 1);
}

#[test]
fn help_and_version_are_status_0() {
    let (out, _) = check(&["help"], 0);
    for sub in [
        "check", "run", "show", "dump", "emit", "tour", "explain", "explore", "Examples",
    ] {
        assert!(out.contains(sub), "{sub}");
    }
    for sub in ["check", "run", "show", "dump", "emit"] {
        let (out, _) = check(&[sub, "--help"], 0);
        assert!(out.contains("Examples"), "{sub}");
    }
    check(&["--version"], 0);
}

#[test]
fn arrays_go_in_and_out_through_files() {
    let path = file("files.ure", PROGRAM);
    let x = file("x.npy", npy("<i4", "(6,)", &[1, 2, 3, 4, 5, 6]));
    let w = file("w.npy", npy("<i4", "(2,)", &[10, 1]));
    let z = file("z.npy", "");
    let (x, w, z_arg) = (format!("x={x}"), format!("w={w}"), format!("z={z}"));
    let inputs = [
        "--in",
        x.as_str(),
        "--in",
        w.as_str(),
        "--out",
        z_arg.as_str(),
    ];
    for target in [
        &["--target", "system"] as &[&str],
        &["--target", "array", "--map", "sbm", "--verify"],
    ] {
        let args = [&["run", path.as_str()], &inputs as &[&str], target].concat();
        let (out, _) = check(&args, 0);
        assert!(out.contains("z[5]: i32"), "{out}");
        let written = std::fs::read(&z).unwrap();
        assert!(written.starts_with(b"\x93NUMPY"));
        let values: Vec<u8> = [12i32, 23, 34, 45, 56]
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect();
        assert!(written.ends_with(&values));
    }
    let wrong = file("wrong.npy", npy("<f4", "(6,)", &[0; 6]));
    let (_, err) = check(&["run", &path, "--in", &format!("x={wrong}")], 1);
    assert!(err.contains("E06"), "{err}");
    let damaged = file("damaged.npy", "no numbers");
    let (_, err) = check(&["run", &path, "--in", &format!("x={damaged}")], 1);
    assert!(err.contains("E0621"), "{err}");
}

#[test]
fn random_runs_are_reproducible_and_verified() {
    let args = [
        "run", CORE, "--target", "array", "--map", "fbs", "--random", "7", "--verify",
    ];
    let values = || {
        let (out, _) = check(&args, 0);
        let lines = out.lines().filter(|l| !l.contains(" run in "));
        lines.map(str::to_string).collect::<Vec<_>>()
    };
    let first = values();
    assert!(
        first.iter().any(|l| l.starts_with("verified z")),
        "{first:?}"
    );
    assert_eq!(first, values());
}

#[test]
fn programs_run_on_both_targets() {
    let path = file("program.ure", PROGRAM);
    for target in ["system", "array"] {
        let (out, _) = check(
            &[
                "run",
                &path,
                "--program",
                "twice",
                "--target",
                target,
                "--verify",
            ],
            0,
        );
        assert!(out.contains("y[4]: i32"), "{out}");
        assert!(out.contains("verified y"), "{out}");
    }
}

#[test]
fn dump_prints_every_stage() {
    let (parsed, _) = check(&["dump", CORE], 0);
    assert!(
        parsed.contains("system conv1d(C, Q)") && parsed.contains("mapping fsa"),
        "{parsed}"
    );
    // The output parses, and prints the same again.
    let again = file("printed.ure", &parsed);
    assert_eq!(check(&["dump", &again], 0).0, parsed);
    let (localised, _) = check(&["dump", CORE, "--map", "sbm", "--after", "localise"], 0);
    assert!(
        localised.contains("system conv1d") && !localised.contains("reduce"),
        "{localised}"
    );
    let (array, _) = check(&["dump", CORE, "--map", "sbm", "--after", "array"], 0);
    assert!(array.contains("lane"), "{array}");
}

#[test]
fn pictures_are_written_and_always_the_same() {
    let draw = |name: &str| {
        let path = file(name, "");
        check(
            &[
                "show", CORE, "--map", "sbm", "--set", "C=6", "--set", "Q=3", "-o", &path,
            ],
            0,
        );
        std::fs::read_to_string(path).unwrap()
    };
    let svg = draw("one.svg");
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert_eq!(svg, draw("two.svg"));
    let of_the_readme = std::fs::read_to_string(root().join("docs/img/conv1d-sbm.svg")).unwrap();
    assert!(
        svg == of_the_readme,
        "docs/img/conv1d-sbm.svg is not what its command draws"
    );
    let three_dims = file("three.svg", "");
    let (out, _) = check(
        &[
            "show",
            "gallery/linear-algebra/matmul.ure",
            "-o",
            &three_dims,
        ],
        0,
    );
    assert!(out.contains("not drawn"), "{out}");
}

#[test]
fn the_tour_ends_well() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).display().to_string();
    let (out, _) = check(&["tour", "--dir", &folder], 0);
    for part in ["SBM", "FBS", "counterexample", "agree", "systola-tour.svg"] {
        assert!(out.contains(part), "{part} in\n{out}");
    }
    for row in ["a plain loop", "sbm", "fbs", "sbm_tiles", "fbs_tiles"] {
        let timed = |l: &str| l.contains(row) && l.trim_end().ends_with(" x");
        assert!(out.lines().any(timed), "{row} in\n{out}");
    }
    let without = [("SYSTOLA_CC", "/no/such/compiler")];
    let (out, _) = check_with(&without, &["tour", "--fast", "--dir", &folder], 0);
    for part in ["E0630", "goes on without", "7. The picture"] {
        assert!(out.contains(part), "{part} in\n{out}");
    }
    let program = format!("{folder}/systola-tour.ure");
    check(&["check", &program, "--map", "sbm"], 0);
    check(&["check", &program], 1);
}

#[test]
fn every_code_is_explained() {
    let (list, _) = check(&["explain"], 0);
    let codes: Vec<&str> = list
        .lines()
        .filter_map(|l| l.split_whitespace().next())
        .collect();
    assert!(codes.len() > 20);
    for code in codes {
        let (out, _) = check(&["explain", &code.to_lowercase()], 0);
        assert!(out.contains(code));
    }
    let page = std::fs::read_to_string(root().join("docs/errors.md")).expect("a page");
    assert_eq!(check(&["explain", "--markdown"], 0).0, page);
}

#[test]
fn commands_that_moved_say_where_to() {
    for (args, new) in [
        (&["bench", "cpu", "--only", "conv1d"][..], "bench"),
        (&["bench", "--help"], "bench"),
        (&["verify", "gallery", "--target", "cpu"], "verify"),
        (&["gpu", "verify", "gallery"], "verify"),
    ] {
        let (out, err) = check(args, 1);
        assert!(out.is_empty() && err.lines().count() == 1, "{out}{err}");
        for call in [
            format!("`cargo xtask {new}`"),
            format!("`systola-lab {new}`"),
        ] {
            assert!(err.contains(&call), "{err}");
        }
    }
}
