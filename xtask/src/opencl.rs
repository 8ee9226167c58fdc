//! Sets up two OpenCL implementations for CPUs that tests run on: PoCL, without sub-groups, and
//! Intel's, with sub-groups.

use std::path::{Path, PathBuf};

use crate::{apt, python};

/// Relative to the root of the repository.
const ENVIRONMENT: &str = "target/opencl-venv";
const VENDORS: &str = "target/opencl-vendors";

/// Intel's runtime for CPUs. It is installed for tests and never redistributed.
const PACKAGES: [&str; 2] = ["intel-opencl-rt==2026.2.0", "intel-cmplr-lib-rt==2026.2.0"];

/// The loader of OpenCL implementations (ICD loader), PoCL, and the headers for C programs.
const DEBIAN: [&str; 3] = [
    "ocl-icd-libopencl1",
    "pocl-opencl-icd",
    "ocl-icd-opencl-dev",
];

/// The header of C programs that call OpenCL.
const HEADER: &str = "/usr/include/CL/cl.h";

/// The file in which Debian's package names the library of PoCL.
const POCL: &str = "/etc/OpenCL/vendors/pocl.icd";

/// The folder that names both implementations, if they are set up.
pub fn installed() -> Option<PathBuf> {
    let vendors = crate::root().join(VENDORS);
    vendors.join("intel.icd").exists().then_some(vendors)
}

/// Installs what is missing. Returns the folder that names both implementations, for
/// `OCL_ICD_VENDORS`.
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

/// The file name of PoCL's library.
fn pocl() -> Result<String, String> {
    let read = || std::fs::read_to_string(POCL);
    if let Ok(name) = read()
        && Path::new(HEADER).is_file()
    {
        return Ok(name);
    }
    apt::install(&DEBIAN).map_err(|e| {
        format!(
            "{e}\n{} are needed to run OpenCL; install them by hand",
            DEBIAN.join(", ")
        )
    })?;
    if !Path::new(HEADER).is_file() {
        return Err(format!(
            "{} is installed, but there is no {HEADER}",
            DEBIAN[2]
        ));
    }
    read().map_err(|e| format!("PoCL is installed, but {POCL}: {e}"))
}

/// The path of Intel's library. The .icd file of its package names a folder that does not exist.
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
