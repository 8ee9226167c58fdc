//! Loaded code, and the calls into it.

#![expect(
    unsafe_code,
    reason = "a shared library is loaded and its functions are called"
)]

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Error;
use crate::pool::{Order, Pool};
use crate::raw::Address;

/// A kernel as the back end writes it; see the crate's documentation.
type Function = unsafe extern "C" fn(
    sizes: *const i64,
    args: *const i64,
    buffers: *const *mut c_void,
    scratch: *mut c_void,
    first: i64,
    last: i64,
);

/// A shared library.
#[derive(Clone)]
pub(crate) struct Library {
    handle: Arc<libloading::Library>,
    path: PathBuf,
}

impl Library {
    pub(crate) fn open(path: &Path) -> Result<Library, Error> {
        // SAFETY: the library was compiled from a back end's code, which has no initialisers.
        let handle = unsafe { open_now(path) }.map_err(|error| Error::LoadFailed {
            path: path.to_path_buf(),
            reason: reason(&error),
        })?;
        Ok(Library {
            handle: Arc::new(handle),
            path: path.to_path_buf(),
        })
    }

    pub(crate) fn kernel(&self, symbol: &str) -> Result<Kernel, Error> {
        // SAFETY: a back end gives the names of kernels only.
        let function = unsafe { self.handle.get::<Function>(symbol) };
        let function = *function.map_err(|error| Error::LoadFailed {
            path: self.path.clone(),
            reason: reason(&error),
        })?;
        Ok(Kernel {
            function,
            _library: Arc::clone(&self.handle),
        })
    }
}

/// Resolves every symbol at once: a missing one is an error here rather than the end of the process
/// later.
///
/// # Safety
///
/// The library's initialisers are sound.
#[cfg(unix)]
unsafe fn open_now(path: &Path) -> Result<libloading::Library, libloading::Error> {
    use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
    // SAFETY: passed on.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map(Into::into)
}

/// # Safety
///
/// The library's initialisers are sound.
#[cfg(not(unix))]
unsafe fn open_now(path: &Path) -> Result<libloading::Library, libloading::Error> {
    // SAFETY: passed on.
    unsafe { libloading::Library::new(path) }
}

fn reason(error: &libloading::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => source.to_string(),
        None => error.to_string(),
    }
}

/// A function of a library, which stays loaded as long.
#[derive(Clone)]
pub(crate) struct Kernel {
    function: Function,
    _library: Arc<libloading::Library>,
}

/// The arguments of every block of a launch.
pub(crate) struct Arguments<'a> {
    pub(crate) sizes: &'a [i64],
    pub(crate) args: &'a [i64],
    /// Addresses of arrays owned by the caller, as large as the program's axes at these sizes.
    pub(crate) buffers: &'a [Address],
    /// Scratch memory of each thread, as large as the kernel needs.
    pub(crate) scratch: &'a [Address],
}

impl Kernel {
    /// Runs the blocks 0, …, blocks − 1 on as many threads as there is scratch memory. Returns when
    /// all are done.
    pub(crate) fn launch(&self, pool: &Pool, blocks: i64, order: Order, with: &Arguments<'_>) {
        let call = Call {
            function: self.function,
            sizes: with.sizes.as_ptr(),
            args: with.args.as_ptr(),
            buffers: with.buffers.as_ptr().cast(),
            scratch: with.scratch.as_ptr(),
        };
        pool.run(blocks, order, with.scratch.len(), move |thread, blocks| {
            // SAFETY: the pool returns only after the last call of this closure has, and numbers
            // the threads from 0 to below the given count; until then everything is borrowed here.
            // The code is what a back end wrote for this program, whose buffers and scratch have
            // the sizes it was written for.
            unsafe { call.blocks(thread, blocks.start, blocks.end) }
        });
    }
}

#[derive(Clone, Copy)]
struct Call {
    function: Function,
    sizes: *const i64,
    args: *const i64,
    buffers: *const *mut c_void,
    scratch: *const Address,
}

// SAFETY: sizes, arguments and the lists of addresses are only read. The memory at the addresses is
// divided among blocks by the program, and a thread's scratch memory is its own.
unsafe impl Send for Call {}
// SAFETY: as above.
unsafe impl Sync for Call {}

impl Call {
    /// # Safety
    ///
    /// All that the pointers lead to is alive, and `thread` is used by no other call at the same
    /// time.
    unsafe fn blocks(&self, thread: usize, first: i64, last: i64) {
        // SAFETY: an `Address` is one pointer. The rest is passed on.
        unsafe {
            let scratch = *self.scratch.add(thread).cast::<*mut c_void>();
            (self.function)(self.sizes, self.args, self.buffers, scratch, first, last);
        }
    }
}
