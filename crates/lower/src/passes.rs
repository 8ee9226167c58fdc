//! The passes from kernels to kernels, in the order in which each target runs them.
//!
//! Kernels are emitted naively ([`crate::lower_kernel`]). A pass makes them faster or makes them
//! fit, and does not change what they compute: the interpreter of kernels runs them before and
//! after each pass. In debug builds the program is verified after every pass.

use systola_ir::kernel::{Kernel, Program};
use systola_ir::mapping::Transfer;
use systola_ir::target::{Links, Machine, Target};

use crate::failure::Failure;

pub mod defer_stores;
pub mod hoist_invariants;
pub mod hoist_loads;
pub mod lanes_through_memory;
pub mod lay_out_windows;
pub mod non_temporal;
pub mod outline_edge;
pub mod predicate_loads;
pub mod prefetch;
pub mod residency;
pub mod software_pipeline;
pub mod spill;
pub mod sync_warps;
pub mod tidy;
pub mod uniform_barriers;
pub mod vectorise_accesses;

use defer_stores::defer_stores;
use hoist_invariants::hoist_invariants;
use hoist_loads::hoist_loads;
use lanes_through_memory::lanes_through_memory;
use lay_out_windows::lay_out_windows;
use non_temporal::non_temporal_stores;
use outline_edge::outline_edge;
use predicate_loads::predicate_loads;
use prefetch::prefetch;
use residency::set_residency;
use software_pipeline::software_pipeline;
use spill::spill;
use sync_warps::{Rewritten, sync_warps};
use tidy::tidy;
use uniform_barriers::uniform_barriers;
use vectorise_accesses::vectorise_accesses;

/// A step from naive to final kernels.
pub struct Pass {
    /// The name that `systola dump --after` takes.
    pub name: &'static str,
    /// What it does, in a few words.
    pub about: &'static str,
    run: fn(&mut Program, &Context<'_>) -> Result<(), Failure>,
}

/// What a pass may use beside the program.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub machine: &'a Machine,
    /// What the mapping says about windows of inputs.
    pub transfers: &'a [Transfer],
}

impl Context<'_> {
    fn links(&self) -> Option<Links> {
        self.machine.threads.map(|threads| threads.links)
    }
}

impl Pass {
    pub fn run(&self, program: &mut Program, cx: &Context<'_>) -> Result<(), Failure> {
        (self.run)(program, cx)?;
        debug_assert_eq!(
            program.verify(),
            Vec::<String>::new(),
            "after {}: {program}",
            self.name
        );
        Ok(())
    }
}

/// The passes of a target.
pub fn passes(target: Target) -> &'static [Pass] {
    match target {
        Target::Cpu => &[PREFETCH, NON_TEMPORAL, FOLD, INVARIANTS, OUTLINE, DEFER],
        Target::Cuda => &[
            SPILL, VECTORISE, LAY_OUT, HOIST, PIPELINE,
            // These use the final loops and live values.
            PREFETCH, RESIDENCY, FOLD, SYNC, PREDICATE,
        ],
        Target::OpenCl => &[
            SPILL, VECTORISE, LAY_OUT, HOIST, PIPELINE, FOLD, LANES, SYNC,
        ],
    }
}

/// Runs all passes of the machine's target.
pub fn run_all(program: &mut Program, cx: &Context<'_>) -> Result<(), Failure> {
    let mut all = passes(cx.machine.target).iter();
    all.try_for_each(|pass| pass.run(program, cx))
}

// Before accesses are vectorised: a region of global memory may begin elsewhere than the shared
// array did.
const SPILL: Pass = Pass {
    name: "spill",
    about: "arrays that do not fit into shared memory move to global memory",
    run: |program, cx| match cx.machine.threads {
        None => Ok(()),
        Some(threads) => each(program, &mut |kernel, program| {
            Ok(tidy(spill(kernel, program, &threads)?))
        }),
    },
};

const VECTORISE: Pass = Pass {
    name: "vectorise-accesses",
    about: "accesses of a lane to consecutive elements are vectorised",
    run: |program, cx| match cx.machine.threads {
        None => Ok(()),
        Some(threads) => each(program, &mut |kernel, program| {
            let vectorised = vectorise_accesses(kernel, &program.buffers, threads.wide_bytes);
            Ok(tidy(vectorised))
        }),
    },
};

// After accesses are vectorised: no layout splits a vector access.
const LAY_OUT: Pass = Pass {
    name: "lay-out-windows",
    about: "rows of windows in shared memory are padded or swizzled, against bank conflicts",
    run: |program, cx| match cx.machine.threads {
        None => Ok(()),
        Some(threads) => each(program, &mut |kernel, program| {
            let (transfers, sizes) = (cx.transfers, &program.params);
            Ok(lay_out_windows(kernel, transfers, sizes, &threads)?)
        }),
    },
};

const HOIST: Pass = Pass {
    name: "hoist-loads",
    about: "loads move before stores to other elements of the same array",
    run: |program, _| each(program, &mut |kernel, _| Ok(hoist_loads(kernel))),
};

const PIPELINE: Pass = Pass {
    name: "software-pipeline",
    about: "loads of long iterations are issued one iteration ahead",
    run: |program, _| each(program, &mut |kernel, _| Ok(software_pipeline(kernel))),
};

const PREFETCH: Pass = Pass {
    name: "prefetch",
    about: "lines that are read later are prefetched",
    run: |program, cx| Ok(prefetch(program, cx.machine)?),
};

const NON_TEMPORAL: Pass = Pass {
    name: "non-temporal-stores",
    about: "stores of results that are not read again soon bypass the caches",
    run: |program, cx| Ok(non_temporal_stores(program, cx.machine)?),
};

const RESIDENCY: Pass = Pass {
    name: "residency",
    about: "how many blocks a multiprocessor should hold at once",
    run: |program, cx| {
        set_residency(program, cx.machine);
        Ok(())
    },
};

// After the passes that make accesses and loops, which have facts of their own about sizes, and
// before those that compare places.
const FOLD: Pass = Pass {
    name: "fold-constants",
    about: "sizes that are fixed become numbers",
    run: |program, _| {
        *program = program.clone().folded()?;
        Ok(())
    },
};

// Branches are removed around points where lanes wait, so the pass must know which values go
// through memory; their slots need no conditions.
const LANES: Pass = Pass {
    name: "lanes-through-memory",
    about: "without shuffles, values go through shared memory, and no branch around a barrier depends on the warp",
    run: |program, cx| match cx.links() {
        Some(Links::SharedMemory { waits_in_branches }) => {
            let rewritten = Rewritten::of(program);
            each(program, &mut |kernel, _| {
                let slots = kernel.shared.len();
                let kernel = lanes_through_memory(&kernel);
                uniform_barriers(kernel, waits_in_branches, slots, &rewritten)
            })
        }
        Some(Links::Shuffles(_)) | None => Ok(()),
    },
};

const SYNC: Pass = Pass {
    name: "sync-warps",
    about: "lanes of a warp synchronise where one reads what another wrote",
    run: |program, cx| match cx.links() {
        None => Ok(()),
        Some(links) => {
            let rewritten = Rewritten::of(program);
            each(program, &mut |kernel, _| {
                let threads = links.threads_of(kernel.lanes).unwrap_or(kernel.lanes);
                Ok(sync_warps(tidy(kernel), threads, &rewritten))
            })
        }
    },
};

const INVARIANTS: Pass = Pass {
    name: "hoist-invariants",
    about: "elements that every block reads are loaded once, before the first block",
    run: |program, _| {
        hoist_invariants(program);
        Ok(())
    },
};

// It must know which stores are non-temporal, and whether interior blocks have a function of their
// own.
const DEFER: Pass = Pass {
    name: "defer-stores",
    about: "non-temporal stores of a block are deferred until the next one runs",
    run: |program, cx| {
        defer_stores(program, cx.machine);
        Ok(())
    },
};

const OUTLINE: Pass = Pass {
    name: "outline-edge",
    about: "the branch of blocks at the edge becomes a function of its own",
    run: |program, _| each(program, &mut |kernel, _| Ok(outline_edge(kernel))),
};

const PREDICATE: Pass = Pass {
    name: "predicate-loads",
    about: "loads under a condition are predicated in straight-line code",
    run: |program, _| each(program, &mut |kernel, _| Ok(predicate_loads(kernel))),
};

/// Replaces each kernel; a pass may add buffers.
fn each(
    program: &mut Program,
    pass: &mut dyn FnMut(Kernel, &mut Program) -> Result<Kernel, Failure>,
) -> Result<(), Failure> {
    for kernel in std::mem::take(&mut program.kernels) {
        let kernel = pass(kernel, program)?;
        program.kernels.push(kernel);
    }
    Ok(())
}
