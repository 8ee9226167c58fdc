//! Campaigns and benchmarks on every OpenCL device there is.

mod common;

use common::{CORE, check};
use systola::rt::opencl;
use systola_filetests::ways::all_wanted;

/// The indices of the devices of this machine. If devices are required, there must be some.
fn devices() -> Vec<String> {
    let found = opencl::devices().map_or(0, |all| all.len());
    let promised = std::env::var("SYSTOLA_OPENCL_DEVICES").is_ok_and(|n| n != "0");
    assert!(found >= 2 || !promised, "{found} devices");
    (0..found).map(|n| n.to_string()).collect()
}

#[test]
fn every_device_verifies() {
    for device in devices() {
        let verify = ["verify", CORE, "--map", "fbs", "--target", "opencl"];
        let more = ["--device", &device, "--most-points", "400"];
        let (out, _) = check(&[&verify[..], &more].concat(), 0);
        assert!(out.contains(" 0 failed"), "{out}");
    }
}

/// Each boundary condition, one sweep and many: in f32 over rows on one device, in f64 over planes
/// on the next. With `SYSTOLA_TESTS=all`, each device takes both, the other way around too. Only
/// plain mappings, since PoCL takes minutes to compile the others.
#[test]
fn every_device_takes_every_boundary() {
    let stencils = ["stencils/2d9pt.ure", "stencils/3d7pt.ure"];
    for (n, device) in devices().iter().enumerate() {
        for (m, stencil) in stencils.iter().enumerate() {
            if n % 2 != m && !all_wanted() {
                continue;
            }
            let ty = if n % 2 == m {
                ["f32", "f64"][m]
            } else {
                ["f64", "f32"][m]
            };
            let verify = [
                "verify",
                stencil,
                "--boundaries",
                "--map",
                "plain",
                "--type",
                ty,
            ];
            let more = ["--target", "opencl", "--device", device, "--jobs", "2"];
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
            ("inputs_with_boundaries", "400"),
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
fn a_part_of_a_name_says_which_device() {
    let verify = ["verify", CORE, "--map", "fbs", "--target", "opencl"];
    let more = ["--most-points", "50", "--device"];
    // PoCL is in the name of its device, whatever the index is.
    let all = opencl::devices().unwrap_or_default();
    if all.iter().any(|device| device.name.contains("pthread")) {
        let (out, _) = check(&[&verify[..], &more, &["PTHREAD"]].concat(), 0);
        assert!(
            out.starts_with("pthread") && out.contains(" 0 failed"),
            "{out}"
        );
    }
    for wrong in ["no such device", "99"] {
        if !all.is_empty() {
            let (_, err) = check(&[&verify[..], &more, &[wrong]].concat(), 1);
            assert!(err.contains("E0649") && err.contains("0: "), "{err}");
        }
    }
}
