//! `systola devices`: the devices of this machine that kernels can be compiled for.

use systola::rt::calibration;
use systola::rt::cuda::{devices, nvrtc_version};
use systola::rt::opencl::{self, DeviceInfo};
use systola::rt::{CacheOptions, Error, simd};
use systola_explore::calibrate::{self, Subject};
use systola_explore::model::Source;

use crate::source::{Failure, Outcome, Status};
use crate::table::Table;
use crate::term;

/// List the CPU and the GPUs of this machine, and their measured numbers
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Measure the CPU and the NVIDIA GPUs, some seconds each, and store the numbers for the
    /// explorer's model
    #[arg(long)]
    calibrate: bool,
}

pub fn run(args: &Args) -> Outcome {
    let mut table = Table::left(0);
    table.header(["target", "device"]);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let simd = simd::detect();
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
    let cache = CacheOptions::from_env().map_err(|e| Failure::new(e.to_string()))?;
    let gpus = found.into_iter().flatten().map(Subject::Cuda);
    for subject in std::iter::once(Subject::Cpu).chain(gpus) {
        if args.calibrate {
            measure(&subject, cache.as_ref())?;
        }
        show(&subject, cache.as_ref());
    }
    Ok(Status::Done)
}

/// Measures a device and stores its numbers.
fn measure(subject: &Subject, cache: Option<&CacheOptions>) -> Result<(), Failure> {
    let Some(cache) = cache else {
        return Err(Failure::new("there is no cache to store the numbers in")
            .help("set SYSTOLA_CACHE to a folder, and SYSTOLA_CACHE_MB to more than 0"));
    };
    let name = subject.name();
    let mut progress = |what: &str| term::eprint(format!("{name}: {what}\n"));
    let numbers = calibrate::measure(subject, &mut progress)
        .map_err(|error| Failure::new(format!("{name} cannot be measured: {error}")))?;
    calibration::store(cache, &name, &numbers).map_err(|error| {
        Failure::new(format!("the numbers of {name} cannot be stored: {error}"))
    })?;
    Ok(())
}

/// Shows the numbers of a device, if any were measured.
fn show(subject: &Subject, cache: Option<&CacheOptions>) {
    let found = calibrate::load(subject, cache);
    let name = subject.name();
    if let Some(damaged) = &found.damaged {
        term::eprint(format!(
            "{damaged}; `systola devices --calibrate` measures {name} again\n"
        ));
    }
    if !found.stored {
        term::print(format!("{name}: not calibrated\n"));
        return;
    }
    let mut table = Table::left(0);
    table.header([&name, "", "", ""]);
    for entry in found.device.entries() {
        if entry.number.source == Source::Calibrated {
            let (value, unit) = scaled(entry.number.value, entry.unit);
            table.row([
                entry.name.to_string(),
                value,
                unit,
                entry.meaning.to_string(),
            ]);
        }
    }
    term::print(table.render());
}

/// A number with an SI prefix.
fn scaled(value: f64, unit: &str) -> (String, String) {
    let steps = [(1e12, "T"), (1e9, "G"), (1e6, "M")];
    let found = steps.iter().find(|(least, _)| value >= *least);
    match found {
        Some((least, letter)) => (format!("{:.2}", value / least), format!("{letter}{unit}")),
        None if unit == "s" => (format!("{:.2}", value * 1e6), "µs".to_string()),
        None => (format!("{value:.2}"), unit.to_string()),
    }
}

fn describe(device: &DeviceInfo) -> String {
    let list = |sizes: &[u32]| {
        let sizes: Vec<String> = sizes.iter().map(u32::to_string).collect();
        sizes.join(", ")
    };
    let mut links = match &device.shuffles {
        Some((_, sizes)) if device.is_tested => format!("sub-groups of {}", list(sizes)),
        Some((_, sizes)) => format!("sub-groups of {} (tested at first use)", list(sizes)),
        None => "no sub-groups".to_string(),
    };
    if !device.failed_sizes.is_empty() {
        let failed = list(&device.failed_sizes);
        links.push_str(&format!(
            " (those of {failed} fail its self-test and are not used)"
        ));
    }
    let mut lacks = Vec::new();
    if !device.doubles {
        lacks.push(", no f64");
    }
    if device.failed_flags {
        lacks.push(", no flags (they fail its self-test and are not used)");
    } else if !device.flags {
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
