//! From OpenCL C to machine code: from the cache, or through the compiler of the device.

use opencl_sys::cl_device_id;

use super::info::DeviceInfo;
use super::objects::{Context, Program};
use crate::cache::{CacheOptions, hash_of};
use crate::code_cache::{CachedCode, find_or_make};
use crate::compile::{Note, Origin};
use crate::device::variant::Variant;
use crate::error::Error;

/// How OpenCL C is compiled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenClCompileOptions {
    /// Additional options for the compiler.
    pub flags: Vec<String>,
    /// `None`: nothing is cached.
    pub cache: Option<CacheOptions>,
}

impl OpenClCompileOptions {
    /// With the cache that the environment names.
    pub fn from_env() -> Result<OpenClCompileOptions, Error> {
        Ok(OpenClCompileOptions {
            flags: Vec::new(),
            cache: CacheOptions::from_env()?,
        })
    }
}

/// Code that is ready to be launched.
pub(super) struct Built {
    pub(super) program: Program,
    pub(super) origin: Origin,
    pub(super) notes: Vec<Note>,
}

pub(super) fn build(
    context: &Context,
    device: cl_device_id,
    info: &DeviceInfo,
    code: &str,
    variant: &Variant,
    options: &OpenClCompileOptions,
) -> Result<Built, Error> {
    let flags = flags(info, variant, options);
    let mut made = None;
    let make = |made: &mut Option<Program>| {
        let program = Program::from_source(context, code)?;
        let log = program.build(device, &flags)?;
        // Some devices compile again to return it.
        let bytes = match &options.cache {
            Some(_) => program.binary(),
            None => Vec::new(),
        };
        *made = Some(program);
        Ok((bytes, log))
    };
    let key = || {
        Ok(hash_of(&[
            env!("CARGO_PKG_VERSION").as_bytes(),
            info.name.as_bytes(),
            info.platform.as_bytes(),
            info.driver.as_bytes(),
            code.as_bytes(),
            flags.as_bytes(),
        ]))
    };
    let CachedCode {
        bytes,
        origin,
        notes,
        ..
    } = find_or_make(options.cache.as_ref(), key, || make(&mut made))?;
    let program = match made {
        Some(program) => program,
        None => {
            let loaded = Program::from_binary(context, device, &bytes);
            let loaded = loaded.and_then(|program| {
                program.build(device, &flags)?;
                Ok(program)
            });
            match loaded {
                Ok(program) => program,
                // Code of another driver version is compiled again.
                Err(_) => {
                    make(&mut made)?;
                    let Some(program) = made else {
                        unreachable!("it was made just now")
                    };
                    return Ok(Built {
                        program,
                        origin: Origin::Compiler,
                        notes,
                    });
                }
            }
        }
    };
    Ok(Built {
        program,
        origin,
        notes,
    })
}

fn flags(info: &DeviceInfo, variant: &Variant, options: &OpenClCompileOptions) -> String {
    let (major, minor) = info.language;
    let mut flags = Vec::new();
    // The first version has no option for itself.
    if (major, minor) > (1, 0) {
        flags.push(format!("-cl-std=CL{major}.{minor}"));
    }
    if info.exact_division {
        flags.push("-cl-fp32-correctly-rounded-divide-sqrt".to_string());
    }
    flags.extend(variant.flags());
    flags.extend(options.flags.iter().cloned());
    flags.join(" ")
}
