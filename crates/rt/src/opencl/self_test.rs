//! Tests whether a device implements the features that it reports.
//!
//! Some implementations report sub-groups whose shuffles are occasionally wrong. So a device is
//! tested when it is first opened: all kinds of shuffles that generated kernels use, at every size
//! offered, several sub-groups and barriers in loops, and blocks that wait for each other by flags.
//! Features that pass are used, and the result is stored for the version of the driver; without
//! sub-groups, links go through local memory.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use opencl_sys::cl_device_id;

use super::build::{Built, OpenClCompileOptions, build};
use super::info::{DeviceInfo, Shuffles};
use super::objects::{Context, Kernel, Memory, Queue};
use crate::cache::CacheOptions;
use crate::calibration;
use crate::device::driver::{LaunchArgument, Queue as _};
use crate::device::variant::Variant;
use crate::device::width::Width;
use crate::error::Error;

const TEXT: &str = include_str!("self_test.cl");

/// Incremented with the source: results of an earlier version do not apply.
const VERSION: u32 = 1;

/// Launches of each kernel. Known flaws show in a third of them.
const LAUNCHES: usize = 48;

/// A device that has not finished by then is considered to hang.
const PATIENCE: Duration = Duration::from_secs(300);

/// Sub-groups of a block, as in the source.
const WARPS: usize = 3;
/// Blocks of a launch, and iterations of the loop in it.
const BLOCKS: usize = 6;
const ROUNDS: i32 = 4;
/// Blocks that wait for each other, and their threads.
const CHAIN: usize = 64;
const CHAIN_THREADS: usize = 16;

/// The features of a device that may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Verdict {
    /// Sizes of sub-groups that passed.
    sizes: Vec<u32>,
    flags: bool,
}

impl Verdict {
    fn apply(&self, info: &mut DeviceInfo) {
        if let Some((_, offered)) = &mut info.shuffles {
            let failed: Vec<u32> = offered
                .extract_if(.., |s| !self.sizes.contains(s))
                .collect();
            info.failed_sizes.extend(failed);
        }
        if info
            .shuffles
            .as_ref()
            .is_some_and(|(_, sizes)| sizes.is_empty())
        {
            info.shuffles = None;
        }
        info.failed_flags = info.flags && !self.flags;
        info.flags &= self.flags;
        info.is_tested = true;
    }
}

/// Removes features that failed an earlier test from a device's description.
pub(super) fn recall(info: &mut DeviceInfo, cache: Option<&CacheOptions>) {
    if let Some(verdict) = cache.and_then(|cache| remembered(info, cache)) {
        verdict.apply(info);
    }
}

/// Tests an opened device, unless that was done before, and removes features that failed from its
/// description.
pub(super) fn examine(info: &mut DeviceInfo, device: cl_device_id, cache: Option<&CacheOptions>) {
    recall(info, cache);
    if info.is_tested || (info.shuffles.is_none() && !info.flags) {
        return;
    }
    let (verdict, lasting) = run_in_time(info, device);
    if let Some(cache) = cache.filter(|_| lasting) {
        // Without the file the device is tested again next time.
        let _ = calibration::store(cache, &name(info), &numbers(info, &verdict));
    }
    verdict.apply(info);
}

fn name(info: &DeviceInfo) -> String {
    let DeviceInfo {
        name,
        platform,
        driver,
        ..
    } = info;
    format!("self-test {VERSION} of {name}, {platform}, driver {driver}").replace('\n', " ")
}

fn numbers(info: &DeviceInfo, verdict: &Verdict) -> calibration::Numbers {
    let truth = |holds: bool| f64::from(u8::from(holds));
    let offered = info.shuffles.iter().flat_map(|(_, sizes)| sizes);
    let mut numbers: calibration::Numbers = offered
        .map(|s| (s.to_string(), truth(verdict.sizes.contains(s))))
        .collect();
    numbers.push(("flags".to_string(), truth(verdict.flags)));
    numbers
}

fn remembered(info: &DeviceInfo, cache: &CacheOptions) -> Option<Verdict> {
    let found = calibration::load(cache, &name(info)).ok()??;
    let holds = |what: &str| {
        found
            .iter()
            .any(|(own, value)| own == what && *value == 1.0)
    };
    let sizes = info.shuffles.iter().flat_map(|(_, sizes)| sizes);
    Some(Verdict {
        sizes: sizes.copied().filter(|s| holds(&s.to_string())).collect(),
        flags: holds("flags"),
    })
}

/// The verdict, and whether it is to be stored. A test that hangs is abandoned with its thread.
fn run_in_time(info: &DeviceInfo, device: cl_device_id) -> (Verdict, bool) {
    let mut nothing = Verdict {
        sizes: Vec::new(),
        flags: false,
    };
    let (sender, receiver) = channel();
    let own = info.clone();
    let device = super::device::Handle(device);
    let spawned = std::thread::Builder::new().spawn(move || {
        let handle = device;
        let done = test(&own, handle.0, &|part| {
            let _ = sender.send(Some(part));
        });
        let _ = sender.send(done.ok().map(|()| Part::End));
    });
    if spawned.is_err() {
        return (nothing, false);
    }
    loop {
        match receiver.recv_timeout(PATIENCE) {
            Ok(Some(Part::Size(size))) => nothing.sizes.push(size),
            Ok(Some(Part::Flags)) => nothing.flags = true,
            Ok(Some(Part::End)) => return (nothing, true),
            // The test could not run this time.
            Ok(None) | Err(RecvTimeoutError::Disconnected) => return (nothing, false),
            Err(RecvTimeoutError::Timeout) => return (nothing, true),
        }
    }
}

/// A feature that passed.
enum Part {
    Size(u32),
    Flags,
    End,
}

fn test(info: &DeviceInfo, device: cl_device_id, passed: &dyn Fn(Part)) -> Result<(), Error> {
    let context = Context::new(device)?;
    let queue = Queue::new(&context, device)?;
    let room = |size: &&u32| **size as usize * WARPS <= info.most_threads as usize;
    if let Some((functions, sizes)) = &info.shuffles {
        // Sizes of which no block can hold several are not used.
        let sizes: Vec<u32> = sizes.iter().filter(room).copied().collect();
        let made = compile(info, &context, device, Some((*functions, &sizes)));
        for size in &sizes {
            let Ok(Built { program, .. }) = &made else {
                break;
            };
            let kernel = program.kernel(&format!("links_{size}"))?;
            if links(info, &context, &queue, &kernel, *size as usize)? {
                passed(Part::Size(*size));
            }
        }
    }
    if info.flags {
        let built = compile(info, &context, device, None);
        if let Ok(Built { program, .. }) = &built
            && chain(&context, &queue, &program.kernel("chain")?)?
        {
            passed(Part::Flags);
        }
    }
    Ok(())
}

/// The kernels of sub-groups, or the one with flags.
fn compile(
    info: &DeviceInfo,
    context: &Context,
    device: cl_device_id,
    links: Option<(Shuffles, &[u32])>,
) -> Result<Built, Error> {
    let mut text = String::new();
    let mut define = |name: &str| text.push_str(&format!("#define {name}\n"));
    if info.doubles {
        define("DOUBLES");
    }
    let all = match links {
        None => {
            define("FLAGS");
            String::new()
        }
        Some((functions, sizes)) => {
            match functions {
                Shuffles::Khronos { relative: true } => define("RELATIVE"),
                Shuffles::Khronos { relative: false } => {}
                Shuffles::Intel => define("INTEL"),
            }
            sizes.iter().map(|s| format!("LINKS({s})\n")).collect()
        }
    };
    text.push_str(&TEXT.replace("LINKS_OF_ALL_SIZES", &all));
    let options = OpenClCompileOptions::default();
    build(context, device, info, &text, &Variant::narrow(), &options)
}

/// Small numbers that differ from launch to launch.
fn values(n: usize, seed: usize) -> Vec<i32> {
    let mixed = |k: usize| (k * 2_654_435_761 + seed * 40_503) >> 7;
    (0..n).map(|k| (mixed(k) % 23) as i32 - 9).collect()
}

fn bytes(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_ne_bytes()).collect()
}

fn memory(context: &Context, queue: &Queue, n: usize) -> Result<Memory, Error> {
    let memory = Memory::new(context, queue, n * 4)?;
    memory.ok_or_else(|| Error::DeviceMemory {
        what: "its test".to_string(),
        bytes: n * 4,
        free: 0,
    })
}

/// Does the device give the expected result in every launch?
fn links(
    info: &DeviceInfo,
    context: &Context,
    queue: &Queue,
    kernel: &Kernel,
    size: usize,
) -> Result<bool, Error> {
    let n = BLOCKS * WARPS * size;
    let (x, z) = (memory(context, queue, n)?, memory(context, queue, n)?);
    let rounds = ROUNDS.to_ne_bytes();
    for seed in 0..LAUNCHES {
        let input = values(n, seed);
        queue.upload(x.location(), &bytes(&input))?;
        queue.upload(z.location(), &bytes(&vec![-1; n]))?;
        kernel.set(0, &LaunchArgument::Buffer(x.location()), Width::Narrow)?;
        kernel.set(1, &LaunchArgument::Buffer(z.location()), Width::Narrow)?;
        kernel.set(2, &LaunchArgument::Value(&rounds), Width::Narrow)?;
        queue.launch(kernel, [BLOCKS as u32, 1, 1], (WARPS * size) as u32)?;
        let mut found = vec![0; n * 4];
        queue.download(&mut found, z.location())?;
        if found != bytes(&expected(&input, size, info.doubles)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The expected result of the kernel of sub-groups.
fn expected(x: &[i32], size: usize, doubles: bool) -> Vec<i32> {
    let mut z = Vec::with_capacity(x.len());
    for at in 0..x.len() {
        let (lane, warp) = (at % size, at / size % WARPS);
        let (first, block) = (at - lane, at / (size * WARPS) * size * WARPS);
        let mut sum = 0;
        for round in 0..ROUNDS {
            let v = |k: usize| x[k] + round;
            let own = |lane: usize| v(first + lane);
            let up: i32 = (0..=lane).map(own).sum();
            let down: i32 = (lane..size).map(own).sum();
            let both = up + 2 * down;
            sum += both + 4 * both + 16 * both;
            let turned = own(size - 1 - lane);
            sum += turned + own((lane * 3 + round as usize) % size) + own(0);
            if doubles {
                sum += 64 * (both + turned);
            }
            sum += own((lane + 1) % size);
            if warp != 1 && lane > 0 {
                sum += 5 * own(lane - 1);
            }
            sum += (0..=warp)
                .map(|i| own((lane + 2 + i + 1) % size))
                .sum::<i32>();
            sum += (block..block + warp * size).map(v).sum::<i32>();
            if round % 2 == 1 {
                sum += 3 * v(block + (WARPS - 1 - warp) * size + lane);
            }
        }
        z.push(sum);
    }
    z
}

fn chain(context: &Context, queue: &Queue, kernel: &Kernel) -> Result<bool, Error> {
    let n = CHAIN * CHAIN_THREADS;
    let (x, z) = (memory(context, queue, n)?, memory(context, queue, n)?);
    let flags = memory(context, queue, CHAIN + 1)?;
    for seed in 0..LAUNCHES {
        let input = values(n, seed);
        queue.upload(x.location(), &bytes(&input))?;
        queue.upload(z.location(), &bytes(&vec![-1; n]))?;
        queue.upload(flags.location(), &bytes(&[0; CHAIN + 1]))?;
        for (n, array) in [&x, &z, &flags].into_iter().enumerate() {
            kernel.set(n, &LaunchArgument::Buffer(array.location()), Width::Narrow)?;
        }
        queue.launch(kernel, [CHAIN as u32, 1, 1], CHAIN_THREADS as u32)?;
        let mut found = vec![0; n * 4];
        queue.download(&mut found, z.location())?;
        let sum = |at: usize| {
            (0..=at / CHAIN_THREADS)
                .map(|b| input[b * CHAIN_THREADS + at % CHAIN_THREADS])
                .sum()
        };
        let expect: Vec<i32> = (0..n).map(sum).collect();
        if found != bytes(&expect) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_go_up_down_and_through_the_block() {
        // With one lane, only the lane itself and the lanes of earlier warps count.
        let z = expected(&[5, 7, 11], 1, false);
        let each = |v: i32, warp: i32, before: i32, across: i32| {
            (0..ROUNDS)
                .map(|r| {
                    let v = v + r;
                    let odd = if r % 2 == 1 { 3 * (across + r) } else { 0 };
                    21 * 3 * v + (5 + warp) * v + before + odd
                })
                .sum::<i32>()
        };
        let rounds: i32 = (0..ROUNDS).sum();
        assert_eq!(z[0], each(5, 0, 0, 11));
        assert_eq!(z[1], each(7, 1, 5, 7) + rounds);
        assert_eq!(z[2], each(11, 2, 12, 5) + 2 * rounds);
    }
}
