//! NVIDIA GPUs on the command line, with and without a GPU.

mod common;

use std::sync::Arc;

use common::{CORE, check, command, stderr, stdout};
use systola::rt::cuda::{Compilers, CudaCompileOptions, compile_only, nvrtc_version};
use systola::rt::device::Variant;

/// Whether this machine has a working GPU.
fn has_gpu() -> bool {
    let (out, _) = check(&["devices"], 0);
    out.lines().any(|line| line.starts_with("cuda "))
}

#[test]
fn devices_are_listed_or_their_absence_is_explained() {
    let (out, err) = check(&["devices"], 0);
    assert!(err.is_empty(), "{err}");
    assert!(out.contains("cpu ") && out.contains("NVRTC"), "{out}");
    assert!(
        has_gpu() || out.contains("no cuda: there is no NVIDIA GPU"),
        "{out}"
    );
}

#[test]
fn cuda_is_printed_without_a_gpu() {
    let (out, _) = check(&["emit", CORE, "--map", "fbs", "--target", "cuda"], 0);
    for part in [
        "extern \"C\" __global__ void __launch_bounds__(32, FEWER_conv1d_fbs_kernel == 0 ? 32 : ",
        "const float *__restrict__ x",
        "threadIdx.x % 32",
    ] {
        assert!(out.contains(part), "{part}\n{out}");
    }
    let fixed = ["emit", CORE, "--map", "taps", "--target", "cuda"];
    let (out, _) = check(&[&fixed[..], &["-p", "Q=5", "--fix", "Q"]].concat(), 0);
    assert!(out.contains("__constant__ float w_constant[5];"), "{out}");
}

/// NVRTC compiles for one thread of a process at a time, so this program compiles in many.
#[test]
fn other_processes_compile_the_same() {
    if let Err(error) = nvrtc_version() {
        assert!(std::env::var_os("SYSTOLA_NVRTC").is_none(), "{error}");
        println!("skipped: {error}");
        return;
    }
    let code = |n: u32| format!("extern \"C\" __global__ void k(int *x) {{ *x = {n}; }}");
    let here = CudaCompileOptions::default();
    let by = |program: &str| CudaCompileOptions {
        out_of_process: Some(Arc::new(Compilers::new(program, &["nvrtc"]))),
        ..CudaCompileOptions::default()
    };
    let own = by(env!("CARGO_BIN_EXE_systola"));
    let compile = |text: &str, options: &CudaCompileOptions| {
        compile_only(text, "sm_90", &Variant::narrow(), options)
    };
    std::thread::scope(|scope| {
        for n in 0..4 {
            let (own, here, code) = (&own, &here, &code);
            scope.spawn(move || {
                for text in [code(n), code(n + 10)] {
                    let there = compile(&text, own).unwrap();
                    assert_eq!(there.cubin, compile(&text, here).unwrap().cubin);
                }
            });
        }
    });
    let refused = compile("__global__ void k() { x = 1; }", &own).unwrap_err();
    assert!(refused.to_string().contains("is undefined"), "{refused}");
    // A program that does not answer, or does not exist, is skipped.
    for program in ["/bin/false", "/no/such/program"] {
        let none = by(program);
        compile(&code(1), &none).unwrap();
    }
}

#[test]
fn options_of_other_targets_are_refused() {
    let emit = ["emit", CORE, "--map", "sbm"];
    for (more, said) in [
        (&["--target", "cuda", "--simd", "avx2"][..], "--simd"),
        (&["--target", "cuda", "--machine", "cpu"][..], "--machine"),
        (&["--arch", "sm_90"][..], "--arch"),
    ] {
        let (_, err) = check(&[&emit[..], more].concat(), 1);
        assert!(err.contains(said), "{err}");
    }
    let run = ["run", CORE, "--map", "sbm"];
    for (more, said) in [
        (&["--target", "cuda", "--threads", "2"][..], "--threads"),
        (&["--target", "cuda", "--simd", "avx2"][..], "--simd"),
        (&["--target", "cpu", "--machine", "cuda"][..], "--machine"),
        (&["--target", "cpu", "--device", "0"][..], "--device"),
        (&["--machine", "cuda"][..], "--machine"),
    ] {
        let (_, err) = check(&[&run[..], more].concat(), 1);
        assert!(err.contains(said), "{err}");
    }
}

#[test]
fn the_kernel_of_a_gpu_is_interpreted() {
    let run = ["run", CORE, "--map", "sbm", "--target", "kernel"];
    let (out, _) = check(&[&run[..], &["--machine", "cuda", "--verify"]].concat(), 0);
    assert!(out.contains("kernel with 32 lanes (cuda)"), "{out}");
    assert!(out.contains("\nverified "), "{out}");
    let dump = ["dump", CORE, "--map", "sbm", "--after", "kernel"];
    let (out, _) = check(&[&dump[..], &["--machine", "cuda"]].concat(), 0);
    assert!(out.contains("32 lanes"), "{out}");
}

/// On a machine with a GPU the same commands verify.
#[test]
fn without_a_gpu_it_is_said() {
    let run = ["run", CORE, "--map", "sbm", "--target", "cuda", "--verify"];
    if has_gpu() {
        let (out, _) = check(&run, 0);
        assert!(out.contains("\nverified "), "{out}");
        return;
    }
    let (_, err) = check(&run, 2);
    assert!(
        err.contains("E0641") && err.contains("--target cpu"),
        "{err}"
    );
    let (out, _) = check(&["explain", "E0641"], 0);
    assert!(out.contains("systola devices"), "{out}");
}

/// An invalid architecture: NVRTC reports it, or is missing.
#[test]
fn what_nvrtc_says_is_shown() {
    let args = ["emit", CORE, "--map", "sbm", "--target", "cuda", "--arch"];
    let output = command(&[&args[..], &["sm_10"]].concat()).output();
    let output = output.expect("it runs");
    let (out, err) = (stdout(&output), stderr(&output));
    // Nothing is printed that was not compiled as asked for.
    assert!(out.is_empty(), "{out}");
    match output.status.code() {
        Some(1) => assert!(
            err.contains("E0644") && err.contains("gpu-architecture"),
            "{err}"
        ),
        // Without NVRTC a component is missing.
        status => assert!(status == Some(2) && err.contains("E0643"), "{err}"),
    }
}
