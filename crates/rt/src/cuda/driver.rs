//! The driver of the GPU, call by call: contexts, memory, modules, launches, events.

#![expect(
    unsafe_code,
    reason = "the driver is a C library that works on addresses of the device"
)]

use std::ffi::{CStr, CString, c_int, c_void};
use std::sync::{Arc, OnceLock};

use cudarc::driver::sys::{self, CUdevice_attribute as Attribute, CUresult};

use super::device::DeviceInfo;
use crate::device::driver::Queue;
use crate::error::Error;

/// Converts the driver's result of a call.
fn succeed(action: &'static str, result: CUresult) -> Result<(), Error> {
    if result == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let mut text = std::ptr::null();
    // SAFETY: the driver returns a static string, or leaves the pointer null.
    let said = unsafe {
        if sys::cuGetErrorString(result, &mut text) == CUresult::CUDA_SUCCESS && !text.is_null() {
            CStr::from_ptr(text).to_string_lossy().into_owned()
        } else {
            String::new()
        }
    };
    Err(Error::CudaFailed {
        action,
        reason: format!("{said} ({result:?})"),
    })
}

/// Loads and initialises the driver, once; returns its version, 13000 for 13.0.
pub(crate) fn start() -> Result<i32, Error> {
    static STARTED: OnceLock<Result<i32, String>> = OnceLock::new();
    let started = STARTED.get_or_init(|| {
        // SAFETY: NVIDIA's libraries may be loaded at any time; the calls have no preconditions.
        unsafe {
            if !sys::is_culib_present() {
                return Err("the driver's library (libcuda.so) is not installed".to_string());
            }
            let mut version = 0;
            let result = sys::cuDriverGetVersion(&mut version);
            succeed("query its version", result).map_err(|e| e.to_string())?;
            // A driver without a device refuses to start.
            succeed("start", sys::cuInit(0)).map_err(|e| e.to_string())?;
            Ok(version)
        }
    });
    started.clone().map_err(|reason| Error::NoDriver { reason })
}

pub(crate) fn device_count() -> Result<i32, Error> {
    let mut count = 0;
    // SAFETY: a number is written.
    succeed("count devices", unsafe {
        sys::cuDeviceGetCount(&mut count)
    })?;
    Ok(count)
}

fn attribute(device: sys::CUdevice, which: Attribute) -> Result<i32, Error> {
    let mut value = 0;
    // SAFETY: a number is written.
    let result = unsafe { sys::cuDeviceGetAttribute(&mut value, which, device) };
    succeed("query an attribute", result)?;
    Ok(value)
}

/// The properties of a device.
pub(crate) fn device_info(ordinal: i32, driver: i32) -> Result<DeviceInfo, Error> {
    let mut device = 0;
    let mut name = [0u8; 256];
    let mut memory = 0;
    // SAFETY: numbers and at most `name.len()` bytes are written.
    unsafe {
        succeed("find a device", sys::cuDeviceGet(&mut device, ordinal))?;
        let result = sys::cuDeviceGetName(name.as_mut_ptr().cast(), 255, device);
        succeed("query the name", result)?;
        succeed(
            "query the memory",
            sys::cuDeviceTotalMem_v2(&mut memory, device),
        )?;
    }
    let number = |which| attribute(device, which).map(i32::unsigned_abs);
    let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
    Ok(DeviceInfo {
        ordinal: ordinal.unsigned_abs() as usize,
        name: name.to_string_lossy().into_owned(),
        multiprocessors: number(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        clock_khz: number(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?,
        memory: memory as u64,
        capability: (
            number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        shared_per_block: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?
            .into(),
        driver: (
            driver.unsigned_abs() / 1000,
            driver.unsigned_abs() % 1000 / 10,
        ),
    })
}

/// The primary context of a device, shared by the process; kept until the process ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context(sys::CUcontext);

// SAFETY: a context may be current in any number of threads.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    pub(crate) fn of(ordinal: i32) -> Result<Context, Error> {
        let (mut device, mut context) = (0, std::ptr::null_mut());
        // SAFETY: both are written.
        unsafe {
            succeed("find a device", sys::cuDeviceGet(&mut device, ordinal))?;
            let result = sys::cuDevicePrimaryCtxRetain(&mut context, device);
            succeed("open a device", result)?;
        }
        Ok(Context(context))
    }

    /// Makes this the current device of the thread.
    pub(crate) fn enter(self) -> Result<(), Error> {
        // SAFETY: the context is never released.
        succeed("choose a device", unsafe { sys::cuCtxSetCurrent(self.0) })
    }

    /// Free bytes of the device.
    pub(crate) fn free_memory(self) -> Result<u64, Error> {
        self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: two numbers are written.
        let result = unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) };
        succeed("query the free memory", result)?;
        Ok(free as u64)
    }
}

/// Memory of a device.
#[derive(Debug)]
pub struct Memory {
    context: Context,
    start: u64,
    bytes: usize,
}

impl Memory {
    /// Zeroed memory at a multiple of 256 bytes; `None` if the device does not have enough.
    pub(crate) fn new(context: Context, bytes: usize) -> Result<Option<Memory>, Error> {
        context.enter()?;
        let mut start = 0;
        // SAFETY: an address is written.
        match unsafe { sys::cuMemAlloc_v2(&mut start, bytes.max(1)) } {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => Ok(None),
            result => {
                succeed("allocate memory", result)?;
                let memory = Memory {
                    context,
                    start,
                    bytes,
                };
                // Slots without a point read unwritten memory; the results are not used, but zeros
                // make runs reproducible.
                unsafe {
                    let cleared = sys::cuMemsetD8_v2(start, 0, bytes.max(1));
                    succeed("clear memory", cleared)?;
                    let done = sys::cuStreamSynchronize(std::ptr::null_mut());
                    succeed("clear memory", done)?;
                }
                Ok(Some(memory))
            }
        }
    }

    pub(crate) fn location(&self) -> DeviceRange {
        DeviceRange {
            start: self.start,
            bytes: self.bytes,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The address range of an array on a device. It does not own the memory: whoever passes it to a
/// stream keeps the memory alive until the stream is synchronised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceRange {
    start: u64,
    bytes: usize,
}

impl DeviceRange {
    /// # Safety
    ///
    /// The device has `bytes` of memory at `start`, as long as the range is used.
    pub(crate) unsafe fn new(start: u64, bytes: usize) -> DeviceRange {
        DeviceRange { start, bytes }
    }

    pub(crate) fn start(self) -> u64 {
        self.start
    }

    pub(crate) fn overlaps(self, other: DeviceRange) -> bool {
        let end = |location: DeviceRange| location.start.saturating_add(location.bytes as u64);
        self.bytes > 0 && other.bytes > 0 && self.start < end(other) && other.start < end(self)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: it was allocated here, and runs that use it have ended.
            unsafe { sys::cuMemFree_v2(self.start) };
        }
    }
}

/// A stream: work of a device in order.
#[derive(Debug)]
pub struct Stream {
    context: Context,
    handle: sys::CUstream,
}

// SAFETY: a stream may be used from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    pub(crate) fn new(context: Context) -> Result<Stream, Error> {
        context.enter()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: a handle is written.
        let result = unsafe { sys::cuStreamCreate(&mut handle, 1) };
        succeed("make a stream", result)?;
        Ok(Stream { context, handle })
    }

    /// Launches blocks of a kernel, in order. The arguments are those of the kernel's parameters.
    pub(crate) fn launch(
        &self,
        function: &Function,
        [x, y, z]: [u32; 3],
        threads: u32,
        shared: u32,
        arguments: &[u64],
    ) -> Result<(), Error> {
        self.context.enter()?;
        let mut pointers: Vec<*mut c_void> = arguments
            .iter()
            .map(|a| std::ptr::from_ref(a).cast_mut().cast())
            .collect();
        // SAFETY: the driver copies the arguments before it returns. A kernel stays inside its
        // arrays, whose sizes were checked against the program; the run keeps them alive until the
        // stream is synchronised.
        let result = unsafe {
            sys::cuLaunchKernel(
                function.handle,
                x,
                y,
                z,
                threads,
                1,
                1,
                shared,
                self.handle,
                pointers.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        succeed("launch a kernel", result)
    }
}

impl Queue<DeviceRange> for Stream {
    fn wait(&self) -> Result<(), Error> {
        self.context.enter()?;
        // SAFETY: the stream lives.
        let result = unsafe { sys::cuStreamSynchronize(self.handle) };
        succeed("run the kernels", result)
    }

    fn upload(&self, to: DeviceRange, from: &[u8]) -> Result<(), Error> {
        assert!(from.len() <= to.bytes, "the range is large enough");
        if from.is_empty() {
            return Ok(());
        }
        self.context.enter()?;
        // SAFETY: the range is large enough, and the bytes live until the wait is over.
        let result = unsafe {
            sys::cuMemcpyHtoDAsync_v2(to.start, from.as_ptr().cast(), from.len(), self.handle)
        };
        succeed("copy to the device", result)?;
        self.wait()
    }

    fn download(&self, to: &mut [u8], from: DeviceRange) -> Result<(), Error> {
        assert!(to.len() <= from.bytes, "the range is large enough");
        if to.is_empty() {
            return Ok(());
        }
        self.context.enter()?;
        // SAFETY: the range is large enough, and the bytes live until the wait is over.
        let result = unsafe {
            sys::cuMemcpyDtoHAsync_v2(to.as_mut_ptr().cast(), from.start, to.len(), self.handle)
        };
        succeed("copy from the device", result)?;
        self.wait()
    }

    fn copy(&self, to: DeviceRange, from: DeviceRange, bytes: usize) -> Result<(), Error> {
        assert!(
            bytes <= to.bytes.min(from.bytes),
            "the ranges are large enough"
        );
        assert!(!to.overlaps(from), "the ranges are disjoint");
        if bytes == 0 {
            return Ok(());
        }
        self.context.enter()?;
        // SAFETY: both ranges are large enough.
        let result = unsafe { sys::cuMemcpyDtoDAsync_v2(to.start, from.start, bytes, self.handle) };
        succeed("copy on the device", result)
    }

    fn fill(&self, to: DeviceRange, size: usize, n: usize, element: [u8; 8]) -> Result<(), Error> {
        assert!(size * n <= to.bytes, "the range is large enough");
        if n == 0 {
            return Ok(());
        }
        let to = to.start;
        self.context.enter()?;
        let [a, b, c, d, e, f, g, h] = element;
        let low = u32::from_ne_bytes([a, b, c, d]);
        let high = u32::from_ne_bytes([e, f, g, h]);
        // SAFETY: the range is large enough.
        let result = unsafe {
            match size {
                1 => sys::cuMemsetD8Async(to, a, n, self.handle),
                2 => sys::cuMemsetD16Async(to, u16::from_ne_bytes([a, b]), n, self.handle),
                4 => sys::cuMemsetD32Async(to, low, n, self.handle),
                8 if low == high => sys::cuMemsetD32Async(to, low, 2 * n, self.handle),
                8 => {
                    // As two columns of 32 bits.
                    let half = |to, with| sys::cuMemsetD2D32Async(to, 8, with, 1, n, self.handle);
                    match half(to, low) {
                        CUresult::CUDA_SUCCESS => half(to + 4, high),
                        failed => failed,
                    }
                }
                other => unreachable!("no element has {other} bytes"),
            }
        };
        succeed("fill memory", result)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: it was made here and is not used again.
            unsafe { sys::cuStreamDestroy_v2(self.handle) };
        }
    }
}

/// An event in a stream.
#[derive(Debug)]
pub struct Event(sys::CUevent);

// SAFETY: an event may be used from any thread.
unsafe impl Send for Event {}

impl Event {
    pub(crate) fn new(context: Context) -> Result<Event, Error> {
        context.enter()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: a handle is written.
        succeed("make an event", unsafe {
            sys::cuEventCreate(&mut handle, 0)
        })?;
        Ok(Event(handle))
    }

    pub(crate) fn record(&self, stream: &Stream) -> Result<(), Error> {
        // SAFETY: both live.
        succeed("record an event", unsafe {
            sys::cuEventRecord(self.0, stream.handle)
        })
    }

    /// Seconds since an earlier event; both have completed.
    pub(crate) fn since(&self, earlier: &Event) -> Result<f64, Error> {
        let mut milliseconds = 0f32;
        // SAFETY: a number is written.
        let result = unsafe { sys::cuEventElapsedTime_v2(&mut milliseconds, earlier.0, self.0) };
        succeed("read an event", result)?;
        Ok(f64::from(milliseconds) / 1e3)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: it was made here and is not used again.
        unsafe { sys::cuEventDestroy_v2(self.0) };
    }
}

/// Loaded machine code.
#[derive(Debug)]
pub(crate) struct Module {
    context: Context,
    handle: sys::CUmodule,
}

// SAFETY: a module may be used from any thread.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

/// A kernel of a module; it keeps the module loaded.
#[derive(Clone, Debug)]
pub struct Function {
    handle: sys::CUfunction,
    _module: Arc<Module>,
}

// SAFETY: a function may be launched from any thread.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Module {
    pub(crate) fn load(context: Context, cubin: &[u8]) -> Result<Arc<Module>, Error> {
        context.enter()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the bytes are an image for this driver, which copies them; it refuses others.
        let result = unsafe { sys::cuModuleLoadData(&mut handle, cubin.as_ptr().cast()) };
        succeed("load a kernel", result)?;
        Ok(Arc::new(Module { context, handle }))
    }

    pub(crate) fn function(self: &Arc<Module>, symbol: &str) -> Result<Function, Error> {
        self.context.enter()?;
        let mut handle = std::ptr::null_mut();
        let name = CString::new(symbol).unwrap_or_default();
        // SAFETY: the module lives as long as the function.
        let result = unsafe { sys::cuModuleGetFunction(&mut handle, self.handle, name.as_ptr()) };
        succeed("find a kernel", result)?;
        Ok(Function {
            handle,
            _module: Arc::clone(self),
        })
    }

    /// The address range of a variable; `None` if the compiler removed it.
    pub(crate) fn global(&self, symbol: &str) -> Result<Option<DeviceRange>, Error> {
        self.context.enter()?;
        let (mut start, mut bytes) = (0, 0);
        let name = CString::new(symbol).unwrap_or_default();
        // SAFETY: two numbers are written.
        let result = unsafe {
            sys::cuModuleGetGlobal_v2(&mut start, &mut bytes, self.handle, name.as_ptr())
        };
        if result == CUresult::CUDA_ERROR_NOT_FOUND {
            return Ok(None);
        }
        succeed("find constant memory", result)?;
        Ok(Some(DeviceRange { start, bytes }))
    }
}

impl Function {
    /// Opts in to more dynamic shared memory than the default limit.
    pub(crate) fn allow_shared(&self, bytes: u64) -> Result<(), Error> {
        let bytes = c_int::try_from(bytes).unwrap_or(c_int::MAX);
        let which = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function lives.
        let result = unsafe { sys::cuFuncSetAttribute(self.handle, which, bytes) };
        succeed("request shared memory", result)
    }

    /// Registers of a thread, and bytes of local memory, which spilled registers are part of.
    pub(crate) fn resources(&self) -> Result<(u32, u32), Error> {
        let query = |which| {
            let mut value = 0;
            // SAFETY: a number is written.
            let result = unsafe { sys::cuFuncGetAttribute(&mut value, which, self.handle) };
            succeed("query the registers", result).map(|()| i32::unsigned_abs(value))
        };
        Ok((
            query(sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            query(sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
        ))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: no function of it is left.
            unsafe { sys::cuModuleUnload(self.handle) };
        }
    }
}
