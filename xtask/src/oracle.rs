//! `cargo xtask fuzz --minutes N`: builds and starts the random-program oracle.

use std::process::Command;

use crate::{opencl, root, target_folder};

/// Passes all arguments on to the oracle, which reports unknown ones.
pub fn run(args: &[&str]) -> Result<(), String> {
    // With the features of the whole workspace, as for tests.
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--workspace", "--bin", "oracle"])
        .current_dir(root())
        .status()
        .map_err(|e| e.to_string())?;
    if !status.success() {
        return Err("the oracle does not build".into());
    }
    let target = target_folder();
    let binary = target
        .join("debug")
        .join(format!("oracle{}", std::env::consts::EXE_SUFFIX));
    let mut command = Command::new(binary);
    command
        .arg("--folder")
        .arg(target.join("fuzz"))
        .args(args)
        .current_dir(root());
    if let Some(vendors) = opencl::installed() {
        command
            .env("OCL_ICD_VENDORS", vendors)
            .env("SYSTOLA_OPENCL_DEVICES", "2")
            .env("POCL_CACHE_DIR", root().join("target/pocl-cache"));
    } else {
        eprintln!("no OpenCL: `cargo xtask opencl` installs two implementations");
    }
    match command.status().map_err(|e| e.to_string())? {
        status if status.success() => Ok(()),
        _ => Err("the oracle found something".into()),
    }
}
