//! The OpenCL devices that tests run on.

use systola::rt::opencl::{DeviceInfo, devices};

/// The first device that satisfies the condition, if there is one. If devices are required, there
/// must be one.
pub fn device(what: &str, is: impl Fn(&DeviceInfo) -> bool) -> Option<usize> {
    if std::env::var("SYSTOLA_OPENCL_DEVICES").is_ok_and(|n| n == "0") {
        println!("skipped: not asked for");
        return None;
    }
    let found = match devices() {
        Ok(all) => all.into_iter().find(|info| is(info)),
        Err(error) => {
            println!("{error}");
            None
        }
    };
    let promised = std::env::var("SYSTOLA_OPENCL_DEVICES").is_ok_and(|n| n != "0");
    assert!(found.is_some() || !promised, "no OpenCL device {what}");
    match &found {
        Some(info) => println!("{what}: {}, {}", info.name, info.platform),
        None => println!("skipped: no OpenCL device {what}"),
    }
    found.map(|info| info.ordinal)
}
