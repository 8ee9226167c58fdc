//! The project's own commands: `cargo xtask help`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

mod apt;
#[cfg(test)]
mod arrows;
mod bench_setup;
mod build;
#[cfg(test)]
mod docs;
mod errors;
mod fuzz;
mod gpu;
#[cfg(test)]
mod imports;
mod lab;
mod opencl;
mod oracle;
mod python;
mod steps;
mod test_binaries;

const HELP: &str = "\
cargo xtask test           all that is checked before a change is merged; sets itself up
cargo xtask errors         write docs/errors.md from the codes in crates/ir
cargo xtask fuzz [N]       N damaged programs through the command line (default 2000)
cargo xtask fuzz --minutes N [--seed S] [--target T,...] [--workers W]
                           random programs on every target of this machine, against their equations; finds are shrunk and kept in target/fuzz
cargo xtask bench ...      times what Systola makes, beside baselines and the limits of the machine: builds systola-lab for release and
                           passes the arguments on; `cargo xtask bench --help` shows them
cargo xtask bench-setup    installs what `cargo xtask bench cpu` compares with, below target/
cargo xtask verify ...     runs every mapping of a folder on a device and compares with the equations, by systola-lab;
                           `cargo xtask verify --help` shows its arguments
cargo xtask nvrtc          installs NVRTC below target/, for CUDA without a toolkit; prints what to set SYSTOLA_NVRTC to
cargo xtask opencl         installs two implementations of OpenCL, one below target/; prints what to set OCL_ICD_VENDORS to
cargo xtask gpu            on a machine with a GPU: the gallery verified, also below compute-sanitizer, and all benchmarks; writes bench/results/gpu.log
cargo xtask deny           licences and advisories, where cargo-deny is installed
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
        ["errors"] => errors::write(),
        ["fuzz"] => fuzz::run(2000),
        ["fuzz", args @ ..] if args[0].starts_with("--") => oracle::run(args),
        ["fuzz", n] => match n.parse() {
            Ok(n) => fuzz::run(n),
            Err(_) => Err(format!("`{n}` is not a number")),
        },
        ["bench-setup"] => bench_setup::run(),
        ["nvrtc"] => gpu::nvrtc().map(|folder| println!("{}", folder.display())),
        ["opencl"] => opencl::set_up().map(|folder| println!("{}", folder.display())),
        ["gpu"] => gpu::run(),
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

/// Where cargo puts what it builds.
fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}
