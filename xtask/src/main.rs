//! The developer commands of this project; `cargo xtask help` lists them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

mod apt;
#[cfg(test)]
mod arrows;
mod bench_setup;
mod build;
#[cfg(test)]
mod docs;
mod editors;
mod errors;
mod fuzz;
mod gpu;
#[cfg(test)]
mod imports;
mod isl;
mod lab;
mod opencl;
mod oracle;
mod python;
mod steps;
mod test_binaries;

const HELP: &str = "\
cargo xtask test           run all checks that a change must pass; installs what they need
cargo xtask test --all     the same, with every mapping on every target, which takes twice as long
cargo xtask errors         generate docs/errors.md from the codes in crates/ir
cargo xtask fuzz [N]       run N corrupted programs through the command line (default 2000)
cargo xtask fuzz --minutes N [--seed S] [--target T,...] [--workers W]
                           run random programs on every target of this machine, and compare with
                           their equations; failures are shrunk and saved in target/fuzz
cargo xtask bench ...      time generated code, and compare with baselines and the limits of the
                           machine; builds systola-lab with the release profile and passes the
                           arguments on; `cargo xtask bench --help` lists them
cargo xtask bench-setup    install the baselines of `cargo xtask bench cpu` below target/
cargo xtask verify ...     run every mapping of a folder on a device, and compare with the equations;
                           uses systola-lab; `cargo xtask verify --help` lists the arguments
cargo xtask isl            install isl below target/, as a Python package; prints the value for
                           AFFINE_ISL_PYTHON
cargo xtask nvrtc          install NVRTC below target/, for CUDA without a toolkit; prints the value
                           for SYSTOLA_NVRTC
cargo xtask opencl         install two OpenCL implementations, one of them below target/; prints the
                           value for OCL_ICD_VENDORS
cargo xtask editors        run the tests of editors/: the grammars, and the extension for VS Code
cargo xtask gpu            on a machine with a GPU: verify the gallery, with and without
                           compute-sanitizer, and run all benchmarks; writes bench/results/gpu.log
cargo xtask deny           check licences and advisories; needs cargo-deny
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["bench" | "verify", ..] => match lab::run(&args) {
            Ok(status) => return status,
            Err(why) => Err(why),
        },
        ["test"] => steps::test(),
        ["test", "--all"] => steps::test_all(),
        ["errors"] => errors::write(),
        ["fuzz"] => fuzz::run(2000),
        ["fuzz", args @ ..] if args[0].starts_with("--") => oracle::run(args),
        ["fuzz", n] => match n.parse() {
            Ok(n) => fuzz::run(n),
            Err(_) => Err(format!("`{n}` is not a number")),
        },
        ["bench-setup"] => bench_setup::run(),
        ["isl"] => isl::set_up().map(|python| println!("{}", python.display())),
        ["nvrtc"] => gpu::nvrtc().map(|folder| println!("{}", folder.display())),
        ["opencl"] => opencl::set_up().map(|folder| println!("{}", folder.display())),
        ["gpu"] => gpu::run(),
        ["editors"] => steps::editors(),
        ["deny"] => steps::deny(),
        ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        _ => Err(format!("unknown command\n\n{HELP}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map_or_else(PathBuf::new, Path::to_path_buf)
}

/// The folder of cargo's build outputs.
fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}
