//! The functions of OpenCL that are called, found in the library at run time.

#![expect(
    unsafe_code,
    reason = "OpenCL is a C library whose functions are looked up by name"
)]

use std::ffi::CStr;
use std::sync::OnceLock;

use libloading::Library;
use opencl_sys::cl_function_types as types;
use opencl_sys::cl_int;

use crate::error::Error;

macro_rules! functions {
    ($($name:ident: $ty:ident,)*) => {
        /// Every function was found.
        #[expect(non_snake_case, reason = "these are the names of the functions")]
        pub(crate) struct Api {
            $(pub(crate) $name: types::$ty,)*
            _library: Library,
        }

        impl Api {
            fn load(library: Library) -> Result<Api, String> {
                // SAFETY: the types are those of the functions in every version of OpenCL since
                // 1.2.
                unsafe {
                    Ok(Api {
                        $($name: find(&library, concat!(stringify!($name), "\0"))?,)*
                        _library: library,
                    })
                }
            }
        }
    };
}

functions! {
    clGetPlatformIDs: clGetPlatformIDs_t,
    clGetPlatformInfo: clGetPlatformInfo_t,
    clGetDeviceIDs: clGetDeviceIDs_t,
    clGetDeviceInfo: clGetDeviceInfo_t,
    clCreateContext: clCreateContext_t,
    clReleaseContext: clReleaseContext_t,
    clCreateCommandQueue: clCreateCommandQueue_t,
    clReleaseCommandQueue: clReleaseCommandQueue_t,
    clFinish: clFinish_t,
    clCreateBuffer: clCreateBuffer_t,
    clReleaseMemObject: clReleaseMemObject_t,
    clEnqueueReadBuffer: clEnqueueReadBuffer_t,
    clEnqueueWriteBuffer: clEnqueueWriteBuffer_t,
    clEnqueueCopyBuffer: clEnqueueCopyBuffer_t,
    clEnqueueFillBuffer: clEnqueueFillBuffer_t,
    clEnqueueMarkerWithWaitList: clEnqueueMarkerWithWaitList_t,
    clGetEventProfilingInfo: clGetEventProfilingInfo_t,
    clReleaseEvent: clReleaseEvent_t,
    clCreateProgramWithSource: clCreateProgramWithSource_t,
    clCreateProgramWithBinary: clCreateProgramWithBinary_t,
    clBuildProgram: clBuildProgram_t,
    clGetProgramInfo: clGetProgramInfo_t,
    clGetProgramBuildInfo: clGetProgramBuildInfo_t,
    clReleaseProgram: clReleaseProgram_t,
    clCreateKernel: clCreateKernel_t,
    clReleaseKernel: clReleaseKernel_t,
    clSetKernelArg: clSetKernelArg_t,
    clEnqueueNDRangeKernel: clEnqueueNDRangeKernel_t,
}

/// # Safety
///
/// The function has this type.
unsafe fn find<T: Copy>(library: &Library, name: &str) -> Result<T, String> {
    let name = CStr::from_bytes_with_nul(name.as_bytes()).unwrap_or_default();
    // SAFETY: the caller's promise; the library is kept as long as the function.
    let found = unsafe { library.get::<T>(name.to_bytes_with_nul()) };
    match found {
        Ok(function) => Ok(*function),
        Err(_) => Err(format!(
            "the library has no {}; OpenCL 1.2 is needed",
            name.to_string_lossy()
        )),
    }
}

/// Calls a function that was found.
macro_rules! call {
    ($name:ident($($argument:expr),* $(,)?)) => {
        match $crate::opencl::api::api() {
            Ok(api) => match api.$name {
                Some(function) => function($($argument),*),
                None => unreachable!("every function is there"),
            },
            Err(_) => unreachable!("the library was loaded before"),
        }
    };
}
pub(crate) use call;

/// Names of the library, on systems of all kinds.
const NAMES: [&str; 4] = [
    "libOpenCL.so.1",
    "libOpenCL.so",
    "OpenCL.dll",
    "/System/Library/Frameworks/OpenCL.framework/OpenCL",
];

/// The library, loaded once.
pub(crate) fn api() -> Result<&'static Api, Error> {
    static LOADED: OnceLock<Result<Api, String>> = OnceLock::new();
    let loaded = LOADED.get_or_init(|| {
        let named = std::env::var("SYSTOLA_OPENCL").ok();
        let named = named.filter(|name| !name.is_empty());
        let names = match &named {
            Some(name) => vec![name.as_str()],
            None => NAMES.to_vec(),
        };
        // SAFETY: loading runs only the initialisers of the library.
        let found = names.iter().find_map(|n| unsafe { Library::new(*n) }.ok());
        match (found, named) {
            (Some(library), _) => Api::load(library),
            (None, Some(name)) => Err(format!("SYSTOLA_OPENCL is {name}, which cannot be loaded")),
            (None, None) => Err("its library (libOpenCL.so.1) is not installed".to_string()),
        }
    });
    loaded.as_ref().map_err(|reason| Error::NoOpenCl {
        reason: reason.clone(),
    })
}

/// Converts the status of an OpenCL call.
pub(crate) fn succeed(action: &'static str, status: cl_int) -> Result<(), Error> {
    match status {
        opencl_sys::CL_SUCCESS => Ok(()),
        opencl_sys::CL_DEVICE_NOT_AVAILABLE => Err(Error::DeviceLost { action }),
        _ => Err(Error::OpenClFailed {
            action,
            reason: match name(status) {
                Some(name) => format!("{name} ({status})"),
                None => format!("error {status}"),
            },
        }),
    }
}

/// The name of a status.
fn name(status: cl_int) -> Option<&'static str> {
    Some(match status {
        opencl_sys::CL_DEVICE_NOT_FOUND => "CL_DEVICE_NOT_FOUND",
        opencl_sys::CL_COMPILER_NOT_AVAILABLE => "CL_COMPILER_NOT_AVAILABLE",
        opencl_sys::CL_MEM_OBJECT_ALLOCATION_FAILURE => "CL_MEM_OBJECT_ALLOCATION_FAILURE",
        opencl_sys::CL_OUT_OF_RESOURCES => "CL_OUT_OF_RESOURCES",
        opencl_sys::CL_OUT_OF_HOST_MEMORY => "CL_OUT_OF_HOST_MEMORY",
        opencl_sys::CL_PROFILING_INFO_NOT_AVAILABLE => "CL_PROFILING_INFO_NOT_AVAILABLE",
        opencl_sys::CL_BUILD_PROGRAM_FAILURE => "CL_BUILD_PROGRAM_FAILURE",
        opencl_sys::CL_INVALID_VALUE => "CL_INVALID_VALUE",
        opencl_sys::CL_INVALID_DEVICE => "CL_INVALID_DEVICE",
        opencl_sys::CL_INVALID_COMMAND_QUEUE => "CL_INVALID_COMMAND_QUEUE",
        opencl_sys::CL_INVALID_BINARY => "CL_INVALID_BINARY",
        opencl_sys::CL_INVALID_KERNEL_NAME => "CL_INVALID_KERNEL_NAME",
        opencl_sys::CL_INVALID_ARG_INDEX => "CL_INVALID_ARG_INDEX",
        opencl_sys::CL_INVALID_ARG_VALUE => "CL_INVALID_ARG_VALUE",
        opencl_sys::CL_INVALID_ARG_SIZE => "CL_INVALID_ARG_SIZE",
        opencl_sys::CL_INVALID_KERNEL_ARGS => "CL_INVALID_KERNEL_ARGS",
        opencl_sys::CL_INVALID_WORK_GROUP_SIZE => "CL_INVALID_WORK_GROUP_SIZE",
        opencl_sys::CL_INVALID_WORK_ITEM_SIZE => "CL_INVALID_WORK_ITEM_SIZE",
        opencl_sys::CL_INVALID_BUFFER_SIZE => "CL_INVALID_BUFFER_SIZE",
        _ => return None,
    })
}
