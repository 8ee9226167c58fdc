//! Verification campaigns through the built binary, on the CPU and without a device.

mod common;

use common::{CORE, check, check_with};

#[test]
fn programs_compute_what_their_equations_say() {
    let folder = "crates/cli/tests/programs";
    let (out, _) = check(&["verify", folder, "--target", "cpu"], 0);
    assert!(out.contains(" 0 failed"), "{out}");
}

#[test]
fn a_stencil_is_verified_under_the_boundaries_that_are_named() {
    let verify = ["verify", "stencils", "--target", "cpu", "--only", "2d9pt"];
    let more = ["--boundaries=mirror,wrap", "--type", "f64", "--jobs", "2"];
    let (out, _) = check(&[&verify[..], &more].concat(), 0);
    assert!(out.contains("stencil  mirror   wrap  runs\n"), "{out}");
    assert!(out.contains(" 0 failed"), "{out}");
    for (args, said) in [
        (
            &["stencils/heat.ure", "--boundaries"][..],
            "none of the stencils",
        ),
        (&["stencils", "--only", "none"][..], "has no file none.ure"),
        (&["stencils", "--boundaries=nearest"][..], "nearest"),
        // The old name of the option.
        (&["stencils", "--borders=nearest"][..], "nearest"),
        (&["stencils", "--type", "f32"][..], "--boundaries"),
    ] {
        let (_, err) = check(&[&["verify", "--target", "cpu"], args].concat(), 1);
        assert!(err.contains(said), "{err}");
    }
}

#[test]
fn a_parameter_is_given_once() {
    let verify = ["verify", CORE, "--target", "cpu"];
    let sizes = ["--set", "C=16", "--set", "Q=5", "--set", "C=17"];
    let (_, err) = check(&[&verify[..], &sizes].concat(), 1);
    assert!(err.contains("`C` twice: 16 and 17"), "{err}");
}

#[test]
fn what_is_missing_is_said() {
    let check = |name: &str, target: &str, parts: &[&str]| {
        let verify = ["verify", "gallery", "--target", target];
        let (_, err) = check_with(&[(name, "/no/such/file")], &verify, 2);
        for part in parts {
            assert!(err.contains(part), "{err}");
        }
    };
    check("SYSTOLA_CC", "cpu", &["E0630", "/no/such/file"]);
    check("SYSTOLA_OPENCL", "opencl", &["E0660", "/no/such/file"]);
    if systola::rt::cuda::devices().is_err() {
        check("SYSTOLA_NVRTC", "cuda", &["E0641"]);
    }
}
