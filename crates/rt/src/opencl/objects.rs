//! Objects of OpenCL, each released when it is dropped: contexts, queues, memory, events, programs,
//! kernels.

#![expect(unsafe_code, reason = "OpenCL works on handles and addresses")]

use std::ffi::{CString, c_void};
use std::ptr::{null, null_mut};

use opencl_sys::{
    self as cl, cl_command_queue, cl_context, cl_device_id, cl_event, cl_int, cl_kernel, cl_mem,
    cl_program,
};

use super::api::{call, succeed};
use crate::device::driver::{self, LaunchArgument};
use crate::device::width::Width;
use crate::error::Error;

macro_rules! handle {
    ($(#[$doc:meta])* $name:ident($ty:ty), $release:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name($ty);

        // SAFETY: objects of OpenCL may be used from any thread.
        unsafe impl Send for $name {}
        // SAFETY: as above; what must not be shared is behind a lock.
        unsafe impl Sync for $name {}

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: it was made here and is not used again.
                unsafe { call!($release(self.0)) };
            }
        }
    };
}

handle!(Context(cl_context), clReleaseContext);
handle!(
    /// A command queue of a device.
    Queue(cl_command_queue),
    clReleaseCommandQueue
);
handle!(
    /// An event in a queue.
    Event(cl_event),
    clReleaseEvent
);
handle!(
    /// Code of one device.
    Program(cl_program),
    clReleaseProgram
);
handle!(
    /// A kernel. It holds its arguments, so that only one launch at a time may use it.
    Kernel(cl_kernel),
    clReleaseKernel
);

/// Calls a constructor and converts its status.
fn make<T>(action: &'static str, with: impl FnOnce(&mut cl_int) -> T) -> Result<T, Error> {
    let mut status = cl::CL_SUCCESS;
    let made = with(&mut status);
    succeed(action, status)?;
    Ok(made)
}

impl Context {
    pub(super) fn new(device: cl_device_id) -> Result<Context, Error> {
        // SAFETY: one device is named, and there is no callback.
        make("open a device", |status| unsafe {
            call!(clCreateContext(
                null(),
                1,
                &device,
                None,
                null_mut(),
                status
            ))
        })
        .map(Context)
    }
}

/// Memory of a device.
#[derive(Debug)]
pub struct Memory {
    handle: cl_mem,
    bytes: usize,
}

// SAFETY: memory may be used from any thread.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was made here, and runs that use it have ended.
        unsafe { call!(clReleaseMemObject(self.handle)) };
    }
}

/// The location of an array on a device. It does not own the memory: whoever passes it to a queue
/// keeps the memory alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferRange {
    handle: cl_mem,
    bytes: usize,
}

// SAFETY: it is only a handle.
unsafe impl Send for BufferRange {}
// SAFETY: as above.
unsafe impl Sync for BufferRange {}

impl BufferRange {
    pub(super) fn overlaps(self, other: BufferRange) -> bool {
        self.bytes > 0 && other.bytes > 0 && self.handle == other.handle
    }
}

/// The statuses of a device without enough memory for an array.
fn is_full(status: cl_int) -> bool {
    [
        cl::CL_MEM_OBJECT_ALLOCATION_FAILURE,
        cl::CL_OUT_OF_RESOURCES,
        cl::CL_OUT_OF_HOST_MEMORY,
        cl::CL_INVALID_BUFFER_SIZE,
    ]
    .contains(&status)
}

impl Memory {
    /// Zeroed memory; `None` if the device does not have enough. Some devices find that out only
    /// when the memory is written.
    pub(super) fn new(
        context: &Context,
        queue: &Queue,
        bytes: usize,
    ) -> Result<Option<Memory>, Error> {
        let mut status = cl::CL_SUCCESS;
        let size = bytes.max(16);
        // SAFETY: no memory of the host is named.
        let handle = unsafe {
            let both = cl::CL_MEM_READ_WRITE;
            call!(clCreateBuffer(
                context.0,
                both,
                size,
                null_mut(),
                &mut status
            ))
        };
        if is_full(status) {
            return Ok(None);
        }
        succeed("allocate memory", status)?;
        let memory = Memory { handle, bytes };
        // Slots without a point read unwritten memory; the results are not used, but zeros make
        // runs reproducible.
        let status = queue.fill_status(memory.handle, 1, size, [0; 8]);
        if is_full(status) {
            return Ok(None);
        }
        succeed("clear memory", status)?;
        // SAFETY: the queue lives.
        let status = unsafe { call!(clFinish(queue.0)) };
        if is_full(status) {
            return Ok(None);
        }
        succeed("clear memory", status)?;
        Ok(Some(memory))
    }

    pub(super) fn location(&self) -> BufferRange {
        BufferRange {
            handle: self.handle,
            bytes: self.bytes,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Queue {
    pub(super) fn new(context: &Context, device: cl_device_id) -> Result<Queue, Error> {
        // SAFETY: the device is that of the context.
        make("make a queue", |status| unsafe {
            let timed = cl::CL_QUEUE_PROFILING_ENABLE;
            call!(clCreateCommandQueue(context.0, device, timed, status))
        })
        .map(Queue)
    }

    fn fill_status(&self, to: cl_mem, size: usize, bytes: usize, element: [u8; 8]) -> cl_int {
        let pattern = element.as_ptr().cast::<c_void>();
        // SAFETY: the range is large enough, and the pattern is copied before the call returns.
        unsafe {
            call!(clEnqueueFillBuffer(
                self.0,
                to,
                pattern,
                size,
                0,
                bytes,
                0,
                null(),
                null_mut()
            ))
        }
    }

    pub(super) fn record_event(&self) -> Result<Event, Error> {
        let mut event = null_mut();
        // SAFETY: a handle is written.
        let status = unsafe { call!(clEnqueueMarkerWithWaitList(self.0, 0, null(), &mut event)) };
        succeed("record an event", status)?;
        Ok(Event(event))
    }

    /// Launches blocks of a kernel.
    pub(super) fn launch(
        &self,
        kernel: &Kernel,
        grid: [u32; 3],
        threads: u32,
    ) -> Result<(), Error> {
        let [x, y, z] = grid.map(|n| n as usize);
        let all = [x.saturating_mul(threads as usize), y, z];
        let block = [threads as usize, 1, 1];
        // SAFETY: a kernel stays inside its arrays, whose sizes were checked against the program;
        // the run keeps them alive until the queue is synchronised.
        let status = unsafe {
            call!(clEnqueueNDRangeKernel(
                self.0,
                kernel.0,
                3,
                null(),
                all.as_ptr(),
                block.as_ptr(),
                0,
                null(),
                null_mut()
            ))
        };
        succeed("launch a kernel", status)
    }
}

impl driver::Queue<BufferRange> for Queue {
    fn wait(&self) -> Result<(), Error> {
        // SAFETY: the queue lives.
        succeed("run the kernels", unsafe { call!(clFinish(self.0)) })
    }

    fn upload(&self, to: BufferRange, from: &[u8]) -> Result<(), Error> {
        assert!(from.len() <= to.bytes, "the range is large enough");
        if from.is_empty() {
            return Ok(());
        }
        let start = from.as_ptr().cast::<c_void>();
        // SAFETY: the range is large enough, and the call returns when the bytes were read.
        let status = unsafe {
            call!(clEnqueueWriteBuffer(
                self.0,
                to.handle,
                cl::CL_TRUE,
                0,
                from.len(),
                start,
                0,
                null(),
                null_mut()
            ))
        };
        succeed("copy to the device", status)
    }

    fn download(&self, to: &mut [u8], from: BufferRange) -> Result<(), Error> {
        assert!(to.len() <= from.bytes, "the range is large enough");
        if to.is_empty() {
            return Ok(());
        }
        let start = to.as_mut_ptr().cast::<c_void>();
        // SAFETY: the range is large enough, and the call returns when the bytes were written.
        let status = unsafe {
            call!(clEnqueueReadBuffer(
                self.0,
                from.handle,
                cl::CL_TRUE,
                0,
                to.len(),
                start,
                0,
                null(),
                null_mut()
            ))
        };
        succeed("copy from the device", status)
    }

    fn copy(&self, to: BufferRange, from: BufferRange, bytes: usize) -> Result<(), Error> {
        assert!(
            bytes <= to.bytes.min(from.bytes),
            "the ranges are large enough"
        );
        assert!(!to.overlaps(from), "the ranges are disjoint");
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: both ranges are large enough.
        let status = unsafe {
            call!(clEnqueueCopyBuffer(
                self.0,
                from.handle,
                to.handle,
                0,
                0,
                bytes,
                0,
                null(),
                null_mut()
            ))
        };
        succeed("copy on the device", status)
    }

    fn fill(&self, to: BufferRange, size: usize, n: usize, element: [u8; 8]) -> Result<(), Error> {
        assert!(size * n <= to.bytes, "the range is large enough");
        if n == 0 {
            return Ok(());
        }
        let status = self.fill_status(to.handle, size, size * n, element);
        succeed("fill memory", status)
    }
}

impl Event {
    /// Nanoseconds on the clock of the device; the event has completed.
    pub(super) fn time(&self) -> Result<u64, Error> {
        let mut time = 0u64;
        let start = std::ptr::from_mut(&mut time).cast::<c_void>();
        // SAFETY: a number is written.
        let status = unsafe {
            let end = cl::CL_PROFILING_COMMAND_END;
            call!(clGetEventProfilingInfo(self.0, end, 8, start, null_mut()))
        };
        succeed("read an event", status)?;
        Ok(time)
    }
}

impl Program {
    pub(super) fn from_source(context: &Context, code: &str) -> Result<Program, Error> {
        let (start, length) = (code.as_ptr().cast(), code.len());
        // SAFETY: one text of this length, which is copied.
        make("read a kernel", |status| unsafe {
            let mut start = start;
            call!(clCreateProgramWithSource(
                context.0,
                1,
                &raw mut start,
                &length,
                status
            ))
        })
        .map(Program)
    }

    pub(super) fn from_binary(
        context: &Context,
        device: cl_device_id,
        code: &[u8],
    ) -> Result<Program, Error> {
        let length = code.len();
        // SAFETY: the bytes are what this device gave for a program; it copies them and refuses
        // others.
        make("load a kernel", |status| unsafe {
            let mut start = code.as_ptr();
            call!(clCreateProgramWithBinary(
                context.0,
                1,
                &device,
                &length,
                &raw mut start,
                null_mut(),
                status
            ))
        })
        .map(Program)
    }

    /// Compiles it; returns the log, also of a success.
    pub(super) fn build(&self, device: cl_device_id, options: &str) -> Result<String, Error> {
        let text = CString::new(options).unwrap_or_default();
        // SAFETY: the device is that of the context, and there is no callback.
        let status = unsafe {
            let options = text.as_ptr();
            call!(clBuildProgram(
                self.0,
                1,
                &device,
                options,
                None,
                null_mut()
            ))
        };
        let log = self.log(device);
        match status {
            cl::CL_SUCCESS => Ok(log),
            cl::CL_DEVICE_NOT_AVAILABLE => Err(Error::DeviceLost {
                action: "compile a kernel",
            }),
            _ => Err(Error::OpenClBuild { status, log }),
        }
    }

    fn log(&self, device: cl_device_id) -> String {
        let mut size = 0;
        let which = cl::CL_PROGRAM_BUILD_LOG;
        // SAFETY: a length is written, then as many bytes.
        let bytes = unsafe {
            let none = null_mut();
            let status = call!(clGetProgramBuildInfo(
                self.0, device, which, 0, none, &mut size
            ));
            if status != cl::CL_SUCCESS {
                return String::new();
            }
            let mut bytes = vec![0u8; size];
            let start = bytes.as_mut_ptr().cast::<c_void>();
            call!(clGetProgramBuildInfo(
                self.0, device, which, size, start, &mut size
            ));
            bytes
        };
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).trim().to_string()
    }

    /// The machine code; empty where the device does not provide it.
    pub(super) fn binary(&self) -> Vec<u8> {
        let mut size = 0usize;
        // SAFETY: there is one device, so one length and one address are read; as many bytes are
        // written there.
        unsafe {
            let start = std::ptr::from_mut(&mut size).cast::<c_void>();
            let which = cl::CL_PROGRAM_BINARY_SIZES;
            let bytes = size_of::<usize>();
            let status = call!(clGetProgramInfo(self.0, which, bytes, start, null_mut()));
            if status != cl::CL_SUCCESS || size == 0 {
                return Vec::new();
            }
            let mut code = vec![0u8; size];
            let mut start = code.as_mut_ptr();
            let location = (&raw mut start).cast::<c_void>();
            let which = cl::CL_PROGRAM_BINARIES;
            let status = call!(clGetProgramInfo(self.0, which, bytes, location, null_mut()));
            if status != cl::CL_SUCCESS {
                return Vec::new();
            }
            code
        }
    }

    pub(super) fn kernel(&self, symbol: &str) -> Result<Kernel, Error> {
        let name = CString::new(symbol).unwrap_or_default();
        // SAFETY: the kernel keeps its program.
        make("find a kernel", |status| unsafe {
            call!(clCreateKernel(self.0, name.as_ptr(), status))
        })
        .map(Kernel)
    }
}

impl Kernel {
    /// Sets an argument that the back end wrote the kernel for.
    pub(super) fn set(
        &self,
        n: usize,
        argument: &LaunchArgument<'_, BufferRange>,
        width: Width,
    ) -> Result<(), Error> {
        let at = n as u32;
        // SAFETY: the bytes are copied before the call returns.
        let status = unsafe {
            match argument {
                LaunchArgument::Buffer(location) => {
                    let start = std::ptr::from_ref(&location.handle).cast::<c_void>();
                    call!(clSetKernelArg(self.0, at, size_of::<cl_mem>(), start))
                }
                LaunchArgument::Value(bytes) => {
                    let start = bytes.as_ptr().cast::<c_void>();
                    call!(clSetKernelArg(self.0, at, bytes.len(), start))
                }
                LaunchArgument::Index(value) => {
                    // Every supported machine is little-endian.
                    let bytes = width.encode(*value).to_le_bytes();
                    let size = match width {
                        Width::Narrow => 4,
                        Width::Wide => 8,
                    };
                    let start = bytes.as_ptr().cast::<c_void>();
                    call!(clSetKernelArg(self.0, at, size, start))
                }
                LaunchArgument::Shared(bytes) => {
                    let bytes = usize::try_from(*bytes).unwrap_or(usize::MAX).max(16);
                    call!(clSetKernelArg(self.0, at, bytes, null()))
                }
            }
        };
        succeed("set an argument", status)
    }
}
