//! Two implementations of OpenCL for processors, which tests run on: PoCL, without sub-groups, and Intel's, with them.

use std::path::{Path, PathBuf};

use crate::{apt, python};

/// Below the root of the repository.
const ENVIRONMENT: &str = "target/opencl-venv";
const VENDORS: &str = "target/opencl-vendors";

/// Intel's runtime for processors. It is installed for tests and never handed on.
const PACKAGES: [&str; 2] = ["intel-opencl-rt==2026.2.0", "intel-cmplr-lib-rt==2026.2.0"];

/// The library that knows all implementations, and PoCL.
const DEBIAN: [&str; 2] = ["ocl-icd-libopencl1", "pocl-opencl-icd"];

/// Where Debian's package says which library PoCL is.
const POCL: &str = "/etc/OpenCL/vendors/pocl.icd";

/// The folder that names both implementations, where they were set up.
pub fn installed() -> Option<PathBuf> {
    let vendors = crate::root().join(VENDORS);
    vendors.join("intel.icd").exists().then_some(vendors)
}

/// Installs what is not there; the folder that names both, for `OCL_ICD_VENDORS`.
pub fn set_up() -> Result<PathBuf, String> {
    let vendors = crate::root().join(VENDORS);
    std::fs::create_dir_all(&vendors).map_err(|e| format!("{VENDORS}: {e}"))?;
    let pocl = pocl()?;
    write(&vendors.join("pocl.icd"), &pocl)?;
    let intel = intel()?;
    write(&vendors.join("intel.icd"), &intel.display().to_string())?;
    Ok(vendors)
}

fn write(path: &Path, library: &str) -> Result<(), String> {
    let text = format!("{}\n", library.trim());
    std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

/// The name of PoCL's library.
fn pocl() -> Result<String, String> {
    let read = || std::fs::read_to_string(POCL);
    if let Ok(name) = read() {
        return Ok(name);
    }
    apt::install(&DEBIAN).map_err(|e| {
        format!(
            "{e}\n{} are needed to run OpenCL; install them by hand",
            DEBIAN.join(", ")
        )
    })?;
    read().map_err(|e| format!("PoCL is installed, but {POCL}: {e}"))
}

/// The path of Intel's library. The file that its package brings names a folder that is not there.
fn intel() -> Result<PathBuf, String> {
    let python = python::environment(ENVIRONMENT)?;
    let library = crate::root().join(ENVIRONMENT).join("lib/libintelocl.so");
    if !library.is_file() {
        python::install(&python, &PACKAGES)?;
    }
    if library.is_file() {
        return Ok(library);
    }
    Err(format!(
        "{} is installed, but there is no {}",
        PACKAGES[0],
        library.display()
    ))
}
