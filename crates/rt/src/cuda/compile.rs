//! From CUDA C++ to machine code: from the cache, or through NVRTC.
//!
//! The number of resident blocks per multiprocessor limits the registers of a thread, and values
//! that do not fit are spilled to memory. The registers needed are known only after compiling. So
//! if the log reports spills, a source is compiled again: with branches around loads that are
//! otherwise predicated, and then, in the variant that spills less, for fewer resident blocks. The
//! source of a kernel has a list of such numbers, the largest first, and a macro named after the
//! kernel selects one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::nvrtc::{self, Made};
use super::out_of_process::Compilers;
use crate::cache::{CacheOptions, hash_of};
use crate::code_cache::{CachedCode, find_or_make};
use crate::compile::{Note, Origin};
use crate::deadline::Deadline;
use crate::device::variant::Variant;
use crate::error::Error;

/// How CUDA C++ is compiled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CudaCompileOptions {
    /// Additional options for NVRTC.
    pub flags: Vec<String>,
    /// Compile only once, even if registers are spilled.
    pub once: bool,
    /// `None`: nothing is cached.
    pub cache: Option<CacheOptions>,
    /// Processes that compile; `None`: this one.
    pub out_of_process: Option<Arc<Compilers>>,
    /// The deadline at which compiling processes are stopped; this process cannot be stopped.
    pub deadline: Option<Deadline>,
}

impl CudaCompileOptions {
    /// With the cache that the environment names.
    pub fn from_env() -> Result<CudaCompileOptions, Error> {
        Ok(CudaCompileOptions {
            flags: Vec::new(),
            once: false,
            cache: CacheOptions::from_env()?,
            out_of_process: None,
            deadline: None,
        })
    }
}

/// Machine code.
#[derive(Clone, Debug)]
pub struct Compiled {
    pub cubin: Vec<u8>,
    pub origin: Origin,
    pub notes: Vec<Note>,
    /// The compiler's log; empty where the code comes from the cache.
    pub log: String,
}

/// The resources of a kernel, as the compiler counts them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    pub kernel: String,
    pub registers: u32,
    /// Spilled bytes.
    pub spilled: u32,
    pub stack: u32,
}

/// Compiles for an architecture such as `sm_90`; no GPU is needed.
pub fn compile_only(
    code: &str,
    arch: &str,
    variant: &Variant,
    options: &CudaCompileOptions,
) -> Result<Compiled, Error> {
    compile(code, arch, variant, options, &|_| Vec::new())
}

/// The resources of the kernels in some machine code, as reported by a driver.
pub(crate) type ResourceQuery<'a> = &'a dyn Fn(&[u8]) -> Vec<Resources>;

pub(crate) fn compile(
    code: &str,
    arch: &str,
    variant: &Variant,
    options: &CudaCompileOptions,
    query: ResourceQuery<'_>,
) -> Result<Compiled, Error> {
    let mut flags = vec![
        format!("--gpu-architecture={arch}"),
        "--std=c++17".to_string(),
        "--ptxas-options=-v".to_string(),
    ];
    flags.extend(variant.flags());
    flags.extend(options.flags.iter().cloned());
    let key = || {
        let (major, minor) = nvrtc::version()?;
        let version = format!("NVRTC {major}.{minor}");
        let mut parts = vec![
            env!("CARGO_PKG_VERSION").as_bytes(),
            version.as_bytes(),
            code.as_bytes(),
            if options.once { b"once" } else { b"" },
        ];
        parts.extend(flags.iter().map(|flag| flag.as_bytes()));
        Ok(hash_of(&parts))
    };
    let CachedCode {
        bytes,
        origin,
        notes,
        log,
    } = find_or_make(options.cache.as_ref(), key, || {
        let deadline = options.deadline.as_ref();
        let make = |flags: &[String]| match &options.out_of_process {
            _ if deadline.is_some_and(Deadline::is_over) => Err(Error::OutOfTime),
            Some(compilers) => compilers.compile(code, flags, deadline),
            None => nvrtc::compile(code, flags),
        };
        let made = if options.once {
            make(&flags)
        } else {
            without_spills(code, &flags, &make, query)
        };
        made.map(|made| (made.cubin, made.log))
    })?;
    Ok(Compiled {
        cubin: bytes,
        origin,
        notes,
        log,
    })
}

/// The macro that turns predicates into branches.
const BRANCHES: &str = "BRANCHES";

/// With the name of a kernel, the macro that selects a number of its list.
const FEWER: &str = "FEWER_";

/// The index in its list for each kernel whose index is not 0.
type Residencies = BTreeMap<String, u32>;

/// Compiles with as many resident blocks as the registers allow: for each kernel the first number
/// of its list without spills, or the one with the fewest spills if there is none. If that loses
/// many warps and the previous number spills little, the previous one.
fn without_spills(
    code: &str,
    flags: &[String],
    make: &dyn Fn(&[String]) -> Result<Made, Error>,
    query: ResourceQuery<'_>,
) -> Result<Made, Error> {
    // Not every compiler reports spills; a driver does, if there is one.
    let taken = |made: &Made| match resources(&made.log) {
        none if none.is_empty() => query(&made.cubin),
        reported => reported,
    };
    let spilled = |made: &Made| -> u32 { taken(made).iter().map(|k| k.spilled).sum() };
    let mut flags = flags.to_vec();
    let plain = make(&flags)?;
    if spilled(&plain) == 0 {
        return Ok(plain);
    }
    let mut first = plain;
    if code.contains(BRANCHES) {
        flags.push(format!("-D{BRANCHES}"));
        let branching = make(&flags)?;
        if spilled(&branching) < spilled(&first) {
            first = branching;
        } else {
            flags.pop();
        }
    }
    let compile = |residencies: &Residencies| {
        let chosen = residencies
            .iter()
            .map(|(kernel, at)| format!("-D{FEWER}{kernel}={at}"));
        let all: Vec<String> = flags.iter().cloned().chain(chosen).collect();
        make(&all)
    };
    // The list is printed as `FEWER_k == 0 ? 8 : FEWER_k == 1 ? 6 : 4`.
    let last = |kernel: &str| code.matches(&format!("{FEWER}{kernel} ==")).count() as u32;
    descend(first, compile, taken, last)
}

/// The resources of a kernel at an index of its list.
type Tried = (u32, Resources);

/// `last`: the last index of the list of a kernel.
fn descend<M>(
    mut made: M,
    compile: impl Fn(&Residencies) -> Result<M, Error>,
    taken: impl Fn(&M) -> Vec<Resources>,
    last: impl Fn(&str) -> u32,
) -> Result<M, Error> {
    let mut residencies = Residencies::new();
    let mut tried: BTreeMap<String, Vec<Tried>> = BTreeMap::new();
    let mut settled: BTreeSet<String> = BTreeSet::new();
    loop {
        let mut moved = false;
        for now in taken(&made) {
            if settled.contains(&now.kernel) {
                continue;
            }
            let name = now.kernel.clone();
            let at = residencies.get(&name).copied().unwrap_or(0);
            let tried = tried.entry(name.clone()).or_default();
            let before = tried.last().cloned();
            tried.push((at, now.clone()));
            let next = match before {
                Some((before, taken)) if costs_warps(&taken, &now) => before,
                _ if now.spilled == 0 => at,
                _ if at >= last(&name) => best(tried),
                _ if now.is_hopeless() => last(&name),
                _ if now.spilled > LARGE_SPILL => (at + last(&name)).div_ceil(2),
                _ => at + 1,
            };
            if next <= at {
                settled.insert(name.clone());
            }
            moved |= next != at;
            residencies.insert(name, next);
        }
        if !moved {
            return Ok(made);
        }
        made = compile(&residencies)?;
    }
}

/// The first index with few spills, or else the one with the fewest; some are spilled everywhere.
fn best(tried: &[Tried]) -> u32 {
    let little = tried.iter().find(|(_, taken)| taken.spilled <= SMALL_SPILL);
    let least = tried.iter().min_by_key(|(_, taken)| taken.spilled);
    little.or(least).map_or(0, |(at, _)| *at)
}

/// Spilled bytes of a thread that cost less than a third of all warps.
const SMALL_SPILL: u32 = 64;

/// More than the registers gained by one step of a list: half of the list is skipped.
const LARGE_SPILL: u32 = 256;

/// Is it better to spill a little? Spills are in the paths of few blocks.
fn costs_warps(before: &Resources, now: &Resources) -> bool {
    before.spilled <= SMALL_SPILL && 3 * now.warps() <= 2 * before.warps()
}

/// The maximum number of registers of a thread.
const MAX_REGISTERS: u32 = 255;

impl Resources {
    /// Does it spill even with all registers that a thread can have?
    fn is_hopeless(&self) -> bool {
        self.registers + self.spilled / 4 > MAX_REGISTERS + LARGE_SPILL / 4
    }

    /// Warps that fit into the register file of one partition of a multiprocessor.
    fn warps(&self) -> u32 {
        const REGISTERS: u32 = (64 << 10) / (4 * 32);
        REGISTERS / self.registers.next_multiple_of(8).max(1)
    }
}

impl Compiled {
    /// The resources of each kernel, in the order of the log.
    pub fn resources(&self) -> Vec<Resources> {
        resources(&self.log)
    }

    /// Warnings in the log.
    pub fn warnings(&self) -> Vec<&str> {
        let warns = |line: &&str| line.to_lowercase().contains("warning");
        self.log.lines().filter(warns).collect()
    }
}

fn resources(log: &str) -> Vec<Resources> {
    /// The number before a word.
    fn before(line: &str, words: &str) -> u32 {
        let Some(at) = line.find(words) else { return 0 };
        let number = line[..at].trim_end().rsplit([' ', ',']).next();
        number.and_then(|n| n.parse().ok()).unwrap_or(0)
    }
    let mut found: Vec<Resources> = Vec::new();
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let kernel = rest.split('\'').next().unwrap_or_default().to_string();
            found.push(Resources {
                kernel,
                ..Resources::default()
            });
        }
        let Some(last) = found.last_mut() else {
            continue;
        };
        if line.contains("bytes spill stores") {
            last.stack = before(line, "bytes stack frame");
            last.spilled = before(line, "bytes spill stores");
        }
        if line.contains("Used ") && line.contains(" registers") {
            last.registers = before(line, "registers");
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel with the given spills at each index of its list, and the last of them beyond.
    fn kernel(name: &str, spilled: &[u32], residencies: &Residencies) -> Resources {
        let at = residencies.get(name).copied().unwrap_or(0);
        let at = spilled.len().min(at as usize + 1) - 1;
        Resources {
            kernel: name.to_string(),
            registers: 56 + 8 * at as u32,
            spilled: spilled[at],
            stack: 0,
        }
    }

    #[test]
    fn fewer_blocks_are_tried_until_nothing_spills() {
        let compile = |residencies: &Residencies| -> Result<Vec<Resources>, Error> {
            Ok(vec![
                kernel("light", &[0, 0], residencies),
                kernel("tight", &[24, 16, 0, 0], residencies),
                kernel("hopeless", &[8, 8, 16], residencies),
            ])
        };
        let first = compile(&Residencies::new()).unwrap();
        let last = |name: &str| match name {
            "light" => 1,
            "tight" => 3,
            _ => 2,
        };
        let made = descend(first, compile, Clone::clone, last).unwrap();
        let found: Vec<(u32, u32)> = made.iter().map(|k| (k.registers, k.spilled)).collect();
        assert_eq!(found, [(56, 0), (72, 0), (56, 8)]);
    }

    /// A compilation takes seconds; none is repeated or tried beyond the end of a list.
    #[test]
    fn nothing_is_compiled_in_vain() {
        let tries = std::cell::Cell::new(0);
        let settle = |list: &[u32]| {
            tries.set(1);
            let compile = |residencies: &Residencies| -> Result<Vec<Resources>, Error> {
                tries.set(tries.get() + 1);
                Ok(vec![kernel("k", list, residencies)])
            };
            let first = vec![kernel("k", list, &Residencies::new())];
            let last = |_: &str| list.len() as u32 - 1;
            let made = descend(first, compile, Clone::clone, last).unwrap();
            (made[0].spilled, tries.get())
        };
        assert_eq!(settle(&[8]), (8, 1));
        assert_eq!(settle(&[8, 0]), (0, 2));
        assert_eq!(settle(&[80, 8, 0]), (0, 3));
        assert_eq!(settle(&[80, 72]), (72, 2));
        assert_eq!(settle(&[8, 8, 16]), (8, 4));
        assert_eq!(settle(&[1000, 800, 700, 72]), (72, 3));
        assert_eq!(settle(&[1000, 800, 0, 0]), (0, 2));
        assert_eq!(settle(&[1000, 800, 700, 600, 72, 0]), (0, 4));
        // More than all registers would hold.
        assert_eq!(settle(&[4000, 3000, 2000, 1500, 900]), (900, 2));
    }

    #[test]
    fn a_little_is_spilled_rather_than_a_third_of_the_warps_lost() {
        let take = |registers, spilled| Resources {
            kernel: "k".to_string(),
            registers,
            spilled,
            stack: 0,
        };
        let settle = |list: &[Resources]| {
            let compile = |residencies: &Residencies| -> Result<Vec<Resources>, Error> {
                let at = residencies.get("k").copied().unwrap_or(0) as usize;
                Ok(vec![list[at.min(list.len() - 1)].clone()])
            };
            let first = compile(&Residencies::new()).unwrap();
            let last = |_: &str| list.len() as u32 - 1;
            let made = descend(first, compile, Clone::clone, last);
            made.unwrap().remove(0)
        };
        // Three warps in a partition, or two.
        let three = take(168, 40);
        assert_eq!(settle(&[three.clone(), take(188, 0)]), three);
        // Spills are avoided where that costs no warp, or where they are large.
        let other = take(170, 0);
        assert_eq!(settle(&[take(168, 68), other.clone()]), other);
        let as_many = take(64, 0);
        assert_eq!(settle(&[take(58, 8), as_many.clone()]), as_many);
        let three_of_four = take(168, 0);
        assert_eq!(
            settle(&[take(128, 16), three_of_four.clone()]),
            three_of_four
        );
        // One step further it would be too much.
        let middle = take(168, 12);
        assert_eq!(
            settle(&[take(152, 80), middle.clone(), take(250, 0)]),
            middle
        );
    }

    #[test]
    fn registers_and_spills_are_read_from_the_log() {
        let log = "ptxas info    : 0 bytes gmem\n\
                   ptxas info    : Compiling entry function 'a_kernel' for 'sm_90'\n\
                   ptxas info    : Function properties for a_kernel\n    \
                   16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n\
                   ptxas info    : Used 255 registers, used 0 barriers, 16 bytes cumulative stack size\n\
                   ptxas info    : Compiling entry function 'b_kernel' for 'sm_90'\n\
                   ptxas info    : Used 10 registers\n";
        let expect = |kernel: &str, registers, spilled, stack| Resources {
            kernel: kernel.to_string(),
            registers,
            spilled,
            stack,
        };
        assert_eq!(
            resources(log),
            [expect("a_kernel", 255, 8, 16), expect("b_kernel", 10, 0, 0)]
        );
    }
}
