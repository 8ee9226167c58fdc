//! `systola devices`: what kernels can be compiled for on this machine.

use systola::rt::cuda::{devices, nvrtc_version};
use systola::rt::opencl::{self, DeviceInfo};
use systola::rt::{Error, Simd};

use crate::source::{Outcome, Status};
use crate::table::Table;
use crate::term;

/// List the processor and the GPUs of this machine
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: &Args) -> Outcome {
    let mut table = Table::left(0);
    table.header(["target", "device"]);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let simd = Simd::detect();
    table.row([
        "cpu".to_string(),
        format!(
            "{threads} threads, vectors of {} bytes ({})",
            simd.bytes(),
            simd.name()
        ),
    ]);
    let found = devices();
    for device in found.iter().flatten() {
        table.row([
            format!("cuda {}", device.ordinal),
            format!(
                "{}, {} multiprocessors, {:.1} GB, {}, driver for CUDA {}.{}",
                device.name,
                device.multiprocessors,
                device.memory as f64 / 1e9,
                device.arch(),
                device.driver.0,
                device.driver.1
            ),
        ]);
    }
    let others = opencl::devices();
    for device in others.iter().flatten() {
        table.row([format!("opencl {}", device.ordinal), describe(device)]);
    }
    term::print(table.render());
    if let Some(none) = absence(&found) {
        term::print(format!("no cuda: {none}\n"));
    }
    if let Err(none) = &others {
        term::print(format!("no opencl: {none}\n"));
    }
    match nvrtc_version() {
        Ok((major, minor)) => term::print(format!("NVRTC {major}.{minor}\n")),
        Err(error) => term::print(format!("{error}\n")),
    }
    Ok(Status::Done)
}

fn describe(device: &DeviceInfo) -> String {
    let links = match &device.shuffles {
        Some((_, sizes)) => {
            let sizes: Vec<String> = sizes.iter().map(u32::to_string).collect();
            format!("sub-groups of {}", sizes.join(", "))
        }
        None => "no sub-groups".to_string(),
    };
    let mut lacks = Vec::new();
    if !device.doubles {
        lacks.push(", no f64");
    }
    if !device.flags {
        lacks.push(", no flags");
    }
    format!(
        "{}, {} compute units, {:.1} GB, {links}{}; {}",
        device.name,
        device.compute_units,
        device.memory as f64 / 1e9,
        lacks.concat(),
        device.platform
    )
}

/// Why there is no GPU, if there is none.
fn absence<T>(found: &Result<Vec<T>, Error>) -> Option<String> {
    match found {
        Ok(list) if list.is_empty() => Some("the driver knows no device".to_string()),
        Ok(_) => None,
        Err(error) => Some(error.to_string()),
    }
}
