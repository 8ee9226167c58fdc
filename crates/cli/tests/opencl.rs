//! OpenCL on the command line: what is printed without a device, what runs on every one there is, and what is said where there is none.

mod common;

use common::{CORE, check, check_with};

/// The numbers of the devices that answer on this machine; where they were promised, there must be some.
fn devices() -> Vec<String> {
    let (out, _) = check(&["devices"], 0);
    let lines = out.lines().filter_map(|line| line.strip_prefix("opencl "));
    let found: Vec<String> = lines
        .filter_map(|rest| rest.split(' ').next())
        .map(str::to_string)
        .collect();
    let promised = std::env::var("SYSTOLA_OPENCL_DEVICES").is_ok_and(|n| n != "0");
    assert!(found.len() >= 2 || !promised, "{out}");
    assert!(
        !found.is_empty() || out.contains("no opencl: there is no OpenCL device"),
        "{out}"
    );
    found
}

#[test]
fn opencl_is_printed_without_a_device() {
    let dot = "gallery/scan/aggregate.ure";
    let emit = ["emit", dot, "--map", "at_once", "--target", "opencl"];
    let (out, _) = check(&emit, 0);
    for part in [
        "__kernel __attribute__((reqd_work_group_size(32, 1, 1)))",
        "__attribute__((intel_reqd_sub_group_size(32))) void",
        "__global const float *restrict x",
        "get_sub_group_local_id()",
        "sub_group_shuffle",
    ] {
        assert!(out.contains(part), "{part}\n{out}");
    }
    let (out, _) = check(
        &[&emit[..], &["--lanes", "8", "--no-sub-groups"]].concat(),
        0,
    );
    assert!(!out.contains("sub_group"), "{out}");
    for part in [
        "reqd_work_group_size(8, 1, 1)",
        "__local float sent_f32s[",
        "barrier(",
    ] {
        assert!(out.contains(part), "{part}\n{out}");
    }
    let fixed = ["emit", CORE, "--map", "taps", "--target", "opencl"];
    let (out, _) = check(&[&fixed[..], &["-p", "Q=5", "--fix", "Q"]].concat(), 0);
    assert!(out.contains("__constant const float *restrict w"), "{out}");
}

#[test]
fn options_of_other_targets_are_refused() {
    let run = ["run", CORE, "--map", "sbm"];
    for (more, said) in [
        (&["--target", "opencl", "--threads", "2"][..], "--threads"),
        (&["--target", "opencl", "--simd", "avx2"][..], "--simd"),
        (&["--target", "cpu", "--lanes", "8"][..], "--lanes"),
        (
            &["--target", "cuda", "--no-sub-groups"][..],
            "--no-sub-groups",
        ),
    ] {
        let (_, err) = check(&[&run[..], more].concat(), 1);
        assert!(err.contains(said), "{err}");
    }
    let (_, err) = check(&["emit", CORE, "--map", "sbm", "--device", "0"], 1);
    assert!(err.contains("--device"), "{err}");
}

#[test]
fn every_device_verifies() {
    for device in devices() {
        for lanes in ["8", "16"] {
            let run = [
                "run", CORE, "--map", "sbm", "--target", "opencl", "--verify",
            ];
            let more = [
                "--device", &device, "--lanes", lanes, "-p", "C=100", "-p", "Q=5",
            ];
            let (out, _) = check(&[&run[..], &more].concat(), 0);
            assert!(out.contains("\nverified "), "{out}");
            assert!(
                out.contains(&format!("kernel with {lanes} lanes (opencl)")),
                "{out}"
            );
            // The second time it comes from the cache.
            let (out, _) = check(&[&run[..], &more].concat(), 0);
            assert!(out.contains("found in the cache"), "{out}");
        }
        let verify = ["verify", "gallery/conv1d/core.ure", "--map", "fbs"];
        let more = [
            "--target",
            "opencl",
            "--device",
            &device,
            "--most-points",
            "400",
        ];
        let (out, _) = check(&[&verify[..], &more].concat(), 0);
        assert!(out.contains(" 0 failed"), "{out}");
    }
}

/// Each border over rows and over planes, in f32 and f64, one sweep and many. Plain mappings, since PoCL compiles others for minutes.
#[test]
fn every_device_takes_every_border() {
    for device in devices() {
        for stencil in ["stencils/2d9pt.ure", "stencils/3d7pt.ure"] {
            let verify = ["verify", stencil, "--borders", "--map", "plain"];
            let more = ["--target", "opencl", "--device", &device, "--jobs", "2"];
            let (out, _) = check(&[&verify[..], &more].concat(), 0);
            assert!(out.contains(" 0 failed"), "{out}");
        }
    }
}

/// Boundary conditions of inputs, and sums over registers and lanes.
#[test]
fn every_device_computes_what_the_equations_say() {
    for device in devices() {
        for (file, points) in [
            ("inputs_with_borders", "400"),
            ("registers_then_lanes", "3000"),
        ] {
            let path = format!("crates/cli/tests/programs/{file}.ure");
            let more = [
                "--target",
                "opencl",
                "--device",
                &device,
                "--most-points",
                points,
            ];
            let (out, _) = check(&[&["verify", &path][..], &more].concat(), 0);
            assert!(out.contains(" 0 failed"), "{out}");
        }
    }
}

#[test]
fn every_device_is_timed() {
    for device in devices() {
        let bench = ["bench", "opencl", "--small", "--device", &device];
        let more = ["--k", "3", "--mapping", "walk"];
        let (out, _) = check(&[&bench[..], &more].concat(), 0);
        let row = out.lines().find(|line| line.contains(" walk "));
        let row = row.unwrap_or_else(|| panic!("{out}"));
        assert!(row.contains(" TF"), "{out}");
    }
}

#[test]
fn without_a_device_it_is_said() {
    let none = [("SYSTOLA_OPENCL", "/no/such/library")];
    let run = ["run", CORE, "--map", "sbm", "--target", "opencl"];
    let (_, err) = check_with(&none, &run, 1);
    assert!(
        err.contains("E0660") && err.contains("/no/such/library"),
        "{err}"
    );
    let (out, _) = check_with(&none, &["devices"], 0);
    assert!(out.contains("no opencl: "), "{out}");
    let (_, err) = check_with(
        &none,
        &["gpu", "verify", "gallery", "--target", "opencl"],
        1,
    );
    assert!(err.contains("E0660"), "{err}");
    let (out, _) = check(&["explain", "E0660"], 0);
    assert!(out.contains("libOpenCL.so.1"), "{out}");
}
