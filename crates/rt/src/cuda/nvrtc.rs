//! NVRTC: CUDA C++ becomes machine code of a GPU.

#![expect(
    unsafe_code,
    reason = "NVRTC is a C library, found and loaded when it is needed"
)]

use std::env;
use std::ffi::{CString, c_char, c_int};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cudarc::nvrtc::sys;

use crate::error::Error;

/// The result of compiling a source.
pub(crate) struct Made {
    pub(crate) cubin: Vec<u8>,
    /// The log of a successful compilation.
    pub(crate) log: String,
}

/// Loads the library on first use.
pub(crate) fn ensure_loaded() -> Result<(), Error> {
    static FOUND: OnceLock<bool> = OnceLock::new();
    let found = *FOUND.get_or_init(|| {
        for dir in folders() {
            if preload(&dir) {
                break;
            }
        }
        // SAFETY: NVIDIA's libraries may be loaded at any time.
        unsafe { sys::is_culib_present() }
    });
    if found {
        Ok(())
    } else {
        let looked = folders().iter().map(|p| p.display().to_string()).collect();
        Err(Error::NoNvrtc { looked })
    }
}

/// Folders in which toolkits install it, besides those known to the loader.
fn folders() -> Vec<PathBuf> {
    let mut folders = Vec::new();
    if let Some(own) = env::var_os("SYSTOLA_NVRTC").filter(|v| !v.is_empty()) {
        folders.push(PathBuf::from(own));
    }
    for name in ["CUDA_HOME", "CUDA_PATH"] {
        if let Some(home) = env::var_os(name).filter(|v| !v.is_empty()) {
            folders.push(Path::new(&home).join("lib64"));
            folders.push(Path::new(&home).join("targets/x86_64-linux/lib"));
        }
    }
    folders.push(PathBuf::from("/usr/local/cuda/lib64"));
    folders
}

/// Loads the library from a folder, if it exists, so that it is found by its name afterwards.
fn preload(dir: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return false;
    };
    let mut names: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    names.sort();
    let named = |path: &PathBuf, start: &str| {
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned());
        name.is_some_and(|n| n.starts_with(start) && !n.contains(".alt."))
    };
    let builtins = names.iter().filter(|p| named(p, "libnvrtc-builtins.so."));
    let library = names.iter().rev().find(|p| named(p, "libnvrtc.so."));
    let Some(library) = library else {
        return false;
    };
    // The library loads its built-ins by name.
    for path in builtins {
        keep_loaded(path);
    }
    keep_loaded(library)
}

fn keep_loaded(path: &Path) -> bool {
    // SAFETY: NVIDIA's libraries may be loaded at any time.
    match unsafe { libloading::Library::new(path) } {
        Ok(library) => {
            std::mem::forget(library);
            true
        }
        Err(_) => false,
    }
}

/// Major and minor number.
pub fn version() -> Result<(u32, u32), Error> {
    ensure_loaded()?;
    let (mut major, mut minor) = (0, 0);
    // SAFETY: two numbers are written.
    let result = unsafe { sys::nvrtcVersion(&mut major, &mut minor) };
    succeed(result, String::new)?;
    Ok((major.unsigned_abs(), minor.unsigned_abs()))
}

fn succeed(result: sys::nvrtcResult, log: impl FnOnce() -> String) -> Result<(), Error> {
    match result {
        sys::nvrtcResult::NVRTC_SUCCESS => Ok(()),
        failed => Err(Error::NvrtcFailed {
            reason: format!("{failed:?}"),
            log: log(),
        }),
    }
}

/// Compiles a source.
pub(crate) fn compile(code: &str, options: &[String]) -> Result<Made, Error> {
    ensure_loaded()?;
    let text = |s: &str| {
        CString::new(s).map_err(|_| Error::NvrtcFailed {
            reason: "a zero byte in the source".to_string(),
            log: String::new(),
        })
    };
    let code = text(code)?;
    let options: Vec<CString> = options.iter().map(|o| text(o)).collect::<Result<_, _>>()?;
    let pointers: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
    let program = Program::new(&code)?;
    // SAFETY: the program and all texts live until the end of this function.
    let result =
        unsafe { sys::nvrtcCompileProgram(program.0, pointers.len() as c_int, pointers.as_ptr()) };
    succeed(result, || program.log())?;
    let cubin = program.read(sys::nvrtcGetCUBINSize, sys::nvrtcGetCUBIN)?;
    Ok(Made {
        cubin,
        log: program.log(),
    })
}

struct Program(sys::nvrtcProgram);

type Size = unsafe fn(sys::nvrtcProgram, *mut usize) -> sys::nvrtcResult;
type Get = unsafe fn(sys::nvrtcProgram, *mut c_char) -> sys::nvrtcResult;

impl Program {
    fn new(code: &CString) -> Result<Program, Error> {
        let mut program = std::ptr::null_mut();
        // SAFETY: the text ends in zero and outlives the program; there are no headers.
        let result = unsafe {
            sys::nvrtcCreateProgram(
                &mut program,
                code.as_ptr(),
                c"kernel.cu".as_ptr(),
                0,
                std::ptr::null(),
                std::ptr::null(),
            )
        };
        succeed(result, String::new)?;
        Ok(Program(program))
    }

    fn read(&self, size: Size, get: Get) -> Result<Vec<u8>, Error> {
        let mut bytes = 0;
        // SAFETY: a number is written.
        succeed(unsafe { size(self.0, &mut bytes) }, String::new)?;
        let mut data = vec![0u8; bytes];
        // SAFETY: as many bytes are written.
        succeed(
            unsafe { get(self.0, data.as_mut_ptr().cast()) },
            String::new,
        )?;
        Ok(data)
    }

    fn log(&self) -> String {
        let log = self.read(sys::nvrtcGetProgramLogSize, sys::nvrtcGetProgramLog);
        let log = log.unwrap_or_default();
        let text = String::from_utf8_lossy(&log);
        text.trim_end_matches('\0').trim().to_string()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: it was created and is not used again.
        unsafe { sys::nvrtcDestroyProgram(&mut self.0) };
    }
}
