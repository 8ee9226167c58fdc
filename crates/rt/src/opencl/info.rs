//! The devices of this machine, of all implementations, and their features.

#![expect(unsafe_code, reason = "OpenCL writes query results to addresses")]

use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use opencl_sys::{self as cl, cl_device_id, cl_int, cl_platform_id, cl_uint};

use super::api::{api, call, succeed};
use super::self_test::recall;
use crate::cache::CacheOptions;
use crate::error::Error;

/// The properties and features of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Its index among the devices of all implementations.
    pub ordinal: usize,
    pub name: String,
    /// The implementation, with its version.
    pub platform: String,
    pub driver: String,
    /// Is it a CPU?
    pub is_cpu: bool,
    pub compute_units: u32,
    /// Bytes.
    pub memory: u64,
    /// The maximum bytes of one array.
    pub largest_array: u64,
    /// Bytes of local memory of a work-group.
    pub local_memory: u64,
    /// Bytes of all arguments in constant memory.
    pub constant_memory: u64,
    /// Bytes of arrays that a kernel may take by value and read as fast as its registers; 0 where
    /// arguments are ordinary memory, or this is unknown.
    pub constant_arguments: u64,
    /// The maximum number of threads of a block.
    pub most_threads: u32,
    /// The newest version of OpenCL C that it compiles.
    pub language: (u32, u32),
    /// Is there arithmetic on f64?
    pub doubles: bool,
    /// Do atomics acquire and release for all blocks?
    pub flags: bool,
    /// Are there atomics on 64 bits?
    pub wide_atomics: bool,
    /// Are divisions and roots of f32 rounded correctly, if that is requested?
    pub exact_division: bool,
    /// How lanes of a sub-group exchange values, and the sizes of sub-groups that a kernel can
    /// require, in increasing order. None: not supported.
    pub shuffles: Option<(Shuffles, Vec<u32>)>,
    /// Were its features tested? That is done when it is first opened.
    pub is_tested: bool,
    /// Sub-group sizes that failed the test; they are not offered.
    pub failed_sizes: Vec<u32>,
    /// Did its flags fail the test? Then there are none.
    pub failed_flags: bool,
}

/// The extension that provides shuffles in a sub-group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shuffles {
    /// `cl_khr_subgroup_shuffle`; `relative`: and `cl_khr_subgroup_shuffle_relative`.
    Khronos { relative: bool },
    /// `cl_intel_subgroups`.
    Intel,
}

/// Bytes of the arguments of a kernel reserved for addresses and sizes.
const OTHER_ARGUMENTS: u64 = 512;

/// Every device of this machine, or why there is none. Features that failed an earlier test are
/// removed.
pub fn devices() -> Result<Vec<DeviceInfo>, Error> {
    let found = all_devices()?;
    let found = found.into_iter().enumerate();
    let cache = CacheOptions::from_env().ok().flatten();
    found
        .map(|(n, (platform, device))| {
            let mut info = info(n, platform, device)?;
            recall(&mut info, cache.as_ref());
            Ok(info)
        })
        .collect()
}

/// Every device with its platform, in the order of both.
///
/// One thread at a time: an implementation may enumerate its devices during the first query, and
/// show another thread devices that are not initialised yet. PoCL 3.1 does.
pub(super) fn all_devices() -> Result<Vec<(cl_platform_id, cl_device_id)>, Error> {
    static QUERYING: Mutex<()> = Mutex::new(());
    api()?;
    let _alone = QUERYING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut found = Vec::new();
    for platform in platforms()? {
        let mut count = 0;
        // SAFETY: a length is written, then as many devices.
        unsafe {
            let all = cl::CL_DEVICE_TYPE_ALL;
            let null = std::ptr::null_mut();
            let status = call!(clGetDeviceIDs(platform, all, 0, null, &mut count));
            if status == cl::CL_DEVICE_NOT_FOUND || count == 0 {
                continue;
            }
            succeed("count its devices", status)?;
            let mut devices = vec![std::ptr::null_mut(); count as usize];
            let start = devices.as_mut_ptr();
            let status = call!(clGetDeviceIDs(platform, all, count, start, &mut count));
            succeed("list its devices", status)?;
            devices.truncate(count as usize);
            found.extend(devices.into_iter().map(|device| (platform, device)));
        }
    }
    if found.is_empty() {
        return Err(Error::NoOpenCl {
            reason: "its implementations know no device".to_string(),
        });
    }
    Ok(found)
}

/// The status where no implementation is installed.
const NO_PLATFORM: cl_int = -1001;

fn platforms() -> Result<Vec<cl_platform_id>, Error> {
    let none = || Error::NoOpenCl {
        reason: "no implementation is installed".to_string(),
    };
    let mut count: cl_uint = 0;
    // SAFETY: a length is written, then as many platforms.
    unsafe {
        let status = call!(clGetPlatformIDs(0, std::ptr::null_mut(), &mut count));
        if status == NO_PLATFORM || (status == cl::CL_SUCCESS && count == 0) {
            return Err(none());
        }
        succeed("count its implementations", status)?;
        let mut platforms = vec![std::ptr::null_mut(); count as usize];
        let start = platforms.as_mut_ptr();
        let status = call!(clGetPlatformIDs(count, start, &mut count));
        succeed("list its implementations", status)?;
        platforms.truncate(count as usize);
        Ok(platforms)
    }
}

/// The bytes of a property; empty where the device does not know it.
fn property(device: cl_device_id, which: cl_uint) -> Vec<u8> {
    let mut size = 0;
    // SAFETY: a length is written, then as many bytes.
    unsafe {
        let null = std::ptr::null_mut();
        let status = call!(clGetDeviceInfo(device, which, 0, null, &mut size));
        if status != cl::CL_SUCCESS {
            return Vec::new();
        }
        let mut bytes = vec![0u8; size];
        let start = bytes.as_mut_ptr().cast::<c_void>();
        let status = call!(clGetDeviceInfo(device, which, size, start, &mut size));
        if status != cl::CL_SUCCESS {
            return Vec::new();
        }
        bytes.truncate(size);
        bytes
    }
}

fn platform_text(platform: cl_platform_id, which: cl_uint) -> String {
    let mut size = 0;
    // SAFETY: a length is written, then as many bytes.
    unsafe {
        let null = std::ptr::null_mut();
        let status = call!(clGetPlatformInfo(platform, which, 0, null, &mut size));
        if status != cl::CL_SUCCESS {
            return String::new();
        }
        let mut bytes = vec![0u8; size];
        let start = bytes.as_mut_ptr().cast::<c_void>();
        call!(clGetPlatformInfo(platform, which, size, start, &mut size));
        text(&bytes)
    }
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_string()
}

/// A number of 1 to 8 bytes.
fn number(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    let n = bytes.len().min(8);
    all[..n].copy_from_slice(&bytes[..n]);
    u64::from_le_bytes(all)
}

/// Numbers of the size of an address.
fn numbers(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.chunks_exact(size_of::<usize>()).map(number)
}

pub(super) fn info(
    ordinal: usize,
    platform: cl_platform_id,
    device: cl_device_id,
) -> Result<DeviceInfo, Error> {
    let query = |which| property(device, which);
    let extensions = text(&query(cl::CL_DEVICE_EXTENSIONS));
    let has = |name: &str| extensions.split_whitespace().any(|word| word == name);
    let language = language(&query(cl::CL_DEVICE_OPENCL_C_ALL_VERSIONS))
        .into_iter()
        .chain(version(&text(&query(cl::CL_DEVICE_OPENCL_C_VERSION))))
        .max()
        .unwrap_or((1, 1));
    let orders = number(&query(cl::CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES));
    let needed = cl::CL_DEVICE_ATOMIC_ORDER_ACQ_REL | cl::CL_DEVICE_ATOMIC_SCOPE_DEVICE;
    let wide = number(&query(cl::CL_DEVICE_DOUBLE_FP_CONFIG));
    let single = number(&query(cl::CL_DEVICE_SINGLE_FP_CONFIG));
    let first = numbers(&query(cl::CL_DEVICE_MAX_WORK_ITEM_SIZES)).next();
    let group = number(&query(cl::CL_DEVICE_MAX_WORK_GROUP_SIZE));
    let most_threads = group.min(first.unwrap_or(group));
    Ok(DeviceInfo {
        ordinal,
        name: text(&query(cl::CL_DEVICE_NAME)),
        platform: format!(
            "{}, {}",
            platform_text(platform, cl::CL_PLATFORM_NAME),
            platform_text(platform, cl::CL_PLATFORM_VERSION)
        ),
        driver: text(&query(cl::CL_DRIVER_VERSION)),
        is_cpu: number(&query(cl::CL_DEVICE_TYPE)) & cl::CL_DEVICE_TYPE_CPU != 0,
        compute_units: number(&query(cl::CL_DEVICE_MAX_COMPUTE_UNITS)) as u32,
        memory: number(&query(cl::CL_DEVICE_GLOBAL_MEM_SIZE)),
        largest_array: number(&query(cl::CL_DEVICE_MAX_MEM_ALLOC_SIZE)),
        local_memory: number(&query(cl::CL_DEVICE_LOCAL_MEM_SIZE)),
        constant_memory: number(&query(cl::CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE)),
        constant_arguments: if has("cl_nv_device_attribute_query") {
            // Devices with these attributes keep arguments in constant memory.
            number(&query(cl::CL_DEVICE_MAX_PARAMETER_SIZE)).saturating_sub(OTHER_ARGUMENTS)
        } else {
            0
        },
        most_threads: u32::try_from(most_threads).unwrap_or(u32::MAX),
        language,
        doubles: wide != 0 || has("cl_khr_fp64"),
        flags: match language {
            (1, _) => false,
            // Features that are optional in later versions are mandatory in this one.
            (2, _) => true,
            _ => orders & needed == needed,
        },
        wide_atomics: has("cl_khr_int64_base_atomics"),
        exact_division: single & cl::CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT != 0,
        shuffles: shuffles(&has, &query(cl::CL_DEVICE_SUB_GROUP_SIZES_INTEL)),
        is_tested: false,
        failed_sizes: Vec::new(),
        failed_flags: false,
    })
}

/// The available shuffles, if kernels can require the size of a sub-group.
fn shuffles(has: &impl Fn(&str) -> bool, sizes: &[u8]) -> Option<(Shuffles, Vec<u32>)> {
    if !has("cl_intel_required_subgroup_size") {
        return None;
    }
    let mut sizes: Vec<u32> = numbers(sizes)
        .filter_map(|size| u32::try_from(size).ok())
        .filter(|size| size.is_power_of_two())
        .collect();
    sizes.sort_unstable();
    if sizes.is_empty() {
        return None;
    }
    let functions = if has("cl_khr_subgroup_shuffle") {
        Shuffles::Khronos {
            relative: has("cl_khr_subgroup_shuffle_relative"),
        }
    } else if has("cl_intel_subgroups") {
        Shuffles::Intel
    } else {
        return None;
    };
    Some((functions, sizes))
}

/// The versions in a list of numbers with names.
fn language(list: &[u8]) -> Vec<(u32, u32)> {
    const ENTRY: usize = 4 + 64;
    let versions = list.chunks_exact(ENTRY).map(|entry| {
        let version = number(&entry[..4]) as u32;
        (version >> 22, version >> 12 & 0x3ff)
    });
    versions.collect()
}

/// The version in a text such as `OpenCL C 1.2 and more`.
fn version(text: &str) -> Option<(u32, u32)> {
    let word = text.split_whitespace().nth(2)?;
    let (major, minor) = word.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        assert_eq!(version("OpenCL C 1.2 PoCL"), Some((1, 2)));
        assert_eq!(version("OpenCL C 3.0"), Some((3, 0)));
        assert_eq!(version("no"), None);
        let mut entry = [0u8; 68];
        entry[..4].copy_from_slice(&((3u32 << 22) | (1 << 12) | 7).to_le_bytes());
        assert_eq!(language(&entry), [(3, 1)]);
    }

    #[test]
    fn shuffles_need_a_size_that_can_be_asked_for() {
        let sizes: Vec<u8> = [16usize, 8].iter().flat_map(|s| s.to_le_bytes()).collect();
        let required = "cl_intel_required_subgroup_size";
        let with = |names: &[&str]| shuffles(&|name: &str| names.contains(&name), &sizes);
        assert_eq!(with(&["cl_khr_subgroup_shuffle"]), None);
        assert_eq!(with(&[required]), None);
        let intel = with(&[required, "cl_intel_subgroups"]);
        assert_eq!(intel, Some((Shuffles::Intel, vec![8, 16])));
        let khronos = with(&[required, "cl_khr_subgroup_shuffle"]);
        let expect = Shuffles::Khronos { relative: false };
        assert_eq!(khronos, Some((expect, vec![8, 16])));
    }
}
