//! OpenCL on the command line, with and without devices.

mod common;

use common::{CORE, check, check_with, temporary};

/// The indices of the devices of this machine. If devices are required, there must be some.
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
            // The second run finds it in the cache.
            let (out, _) = check(&[&run[..], &more].concat(), 0);
            assert!(out.contains("found in the cache"), "{out}");
        }
    }
}

#[test]
fn a_part_of_a_name_says_which_device() {
    let listed = devices();
    let run = ["run", CORE, "--map", "sbm", "--target", "opencl"];
    let more = ["--verify", "-p", "C=20", "-p", "Q=3", "--device"];
    if listed.is_empty() {
        return;
    }
    // PoCL is in the name of its device, whatever the index is.
    let (out, _) = check(&["devices"], 0);
    let line = out.lines().find(|line| line.contains("pthread"));
    if let Some(number) = line.and_then(|line| line.split_whitespace().nth(1)) {
        for named in ["PTHREAD", number] {
            let (out, _) = check(&[&run[..], &more, &[named]].concat(), 0);
            assert!(out.contains(" on pthread"), "{out}");
        }
    }
    for wrong in ["no such device", "99"] {
        let (_, err) = check(&[&run[..], &more, &[wrong]].concat(), 1);
        assert!(err.contains("E0649") && err.contains("0: "), "{err}");
    }
}

/// A device whose shuffles are sometimes wrong.
#[test]
fn what_fails_the_self_test_is_not_used() {
    let (out, _) = check(&["devices"], 0);
    let number = |line: &str| line.split_whitespace().nth(1).map(str::to_string);
    let line = out
        .lines()
        .find(|line| line.contains("; ") && line.contains(" sub-groups of "));
    let Some(device) = line.and_then(number) else {
        // Where devices are expected, one of them has sub-groups.
        let expected = std::env::var("SYSTOLA_OPENCL_DEVICES").unwrap_or_default();
        assert!(matches!(expected.as_str(), "" | "0"), "{out}");
        println!("skipped: no device with sub-groups");
        return;
    };
    let folder = temporary("self-test");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let library = folder.join("libfaulty.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../rt/tests/opencl/faulty.c");
    let done = std::process::Command::new("cc")
        .args([
            "-shared",
            "-fPIC",
            "-O1",
            "-Wno-incompatible-pointer-types",
            "-o",
        ])
        .arg(&library)
        .arg(source)
        .args(["-Wl,--no-as-needed", "-l:libOpenCL.so.1", "-ldl"])
        .status();
    assert!(done.is_ok_and(|status| status.success()));
    let (library, cache) = (library.display().to_string(), folder.display().to_string());
    let on = |fault: &'static str| {
        [
            ("SYSTOLA_OPENCL", library.as_str()),
            ("SYSTOLA_CACHE", cache.as_str()),
            ("FAULT", fault),
        ]
    };
    let scan = [
        "run",
        "gallery/scan/aggregate.ure",
        "--map",
        "row_in_vectors",
    ];
    let more = ["--target", "opencl", "--device", &device, "--verify"];
    let sizes = ["--set", "B=9", "--set", "N=50"];
    let args = [&scan[..], &more, &sizes].concat();
    let (out, _) = check_with(&on("wrong shuffles"), &args, 0);
    assert!(out.contains("verified r"), "{out}");
    let (out, _) = check_with(&on("wrong shuffles"), &["devices"], 0);
    let own = out
        .lines()
        .find(|line| line.starts_with(&format!("opencl {device} ")));
    let own = own.unwrap_or_else(|| panic!("{out}"));
    assert!(own.contains("fail its self-test and are not used"), "{own}");
    // A working device uses the capabilities that it announces.
    let calibration = folder.join("calibration");
    assert!(std::fs::read_dir(&calibration).unwrap().count() > 0);
    std::fs::remove_dir_all(&calibration).unwrap();
    let (out, _) = check_with(&on("none"), &args, 0);
    assert!(out.contains("verified r"), "{out}");
    let (out, _) = check_with(&on("none"), &["devices"], 0);
    assert!(
        !out.contains("self-test") && out.contains("sub-groups of "),
        "{out}"
    );
}

#[test]
fn without_a_device_it_is_said() {
    let none = [("SYSTOLA_OPENCL", "/no/such/library")];
    let run = ["run", CORE, "--map", "sbm", "--target", "opencl"];
    let (_, err) = check_with(&none, &run, 2);
    assert!(
        err.contains("E0660") && err.contains("/no/such/library"),
        "{err}"
    );
    let (out, _) = check_with(&none, &["devices"], 0);
    assert!(out.contains("no opencl: "), "{out}");
    let (out, _) = check(&["explain", "E0660"], 0);
    assert!(out.contains("libOpenCL.so.1"), "{out}");
}
