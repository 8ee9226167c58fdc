//! From a checked array to a program of kernels.
//!
//! 1. [`storage`](crate::storage): how the coordinates of slots run on the machine, and where
//!    values are stored. A sum that crosses blocks becomes three arrays first
//!    ([`split_sums`](crate::split_sums)), whose programs are [linked](crate::link) at the end;
//! 2. [`nest`](crate::nest): the loops of a block, and which of them are unrolled, partitioned or
//!    multiversioned;
//! 3. [`emit`](crate::emit): one walk over the nest emits the statements;
//! 4. the [passes](crate::passes) of the target, from kernel to kernel.

use std::borrow::Cow;

use systola_ir::array::{Array, Port};
use systola_ir::kernel::{Buffer, BufferKind, Host, Program, Size};
use systola_ir::mapping::{PlaceLevel, TimeLevel};
use systola_ir::system::InputKind;
use systola_ir::target::{Copies, Links, Machine, Target, Threads, Unsized, WarpSizes};
use systola_ir::{Cond, DimId, Form, KernelId, ParamId};

use crate::decide::Decide;
use crate::emit::emit;
use crate::emit::fault_sites::{declare_faults, may_fault};
use crate::failure::Failure;
use crate::link::link;
use crate::names::fixed_value;
use crate::nest::print::NestText;
use crate::nest::tree::Which;
use crate::nest::{inner_launches, nest};
use crate::passes::tidy::tidy;
use crate::passes::{Context, passes};
use crate::split_sums::look_back::{SplitChain, with_look_back};
use crate::split_sums::warps::with_warp_parts;
use crate::split_sums::{Crossing, narrow, split};
use crate::storage::links::{crosses, is_at_once};
use crate::storage::partition::{Partition, Pes, partition_with_lanes};
use crate::storage::slots::Slots;
use crate::storage::waits::{narrow_iterations, with_chains, with_flags};
use crate::storage::{Chains, Plan, Storage};
use crate::watch::Watch;

/// A program that computes what the array does.
pub fn lower_kernel(
    array: &Array,
    decide: &Decide,
    machine: &Machine,
    watch: &mut Watch<'_>,
) -> Result<Program, Failure> {
    let mut program = lower_blocks(
        array,
        decide,
        machine,
        Blocks::All,
        Kernels::OfLaunches,
        watch,
    )?;
    let cx = Context {
        machine,
        transfers: &array.transfers,
    };
    if [Some(NEST), Some(EMIT)].contains(&watch.until) {
        return Ok(program);
    }
    for pass in passes(machine.target) {
        pass.run(&mut program, &cx)?;
        if !watch.goes_on(pass.name) {
            break;
        }
    }
    Ok(program)
}

/// The name of the step that builds the loops of blocks, before there are statements.
pub const NEST: &str = "nest";

/// The name of the step before the passes, which emits the kernels.
pub const EMIT: &str = "emit";

/// Why one lane would do the work of all although the mapping has lanes: values arrive in the step
/// in which they leave, in an order that is no scan along lanes.
pub fn one_lane(array: &Array, decide: &Decide, lanes: u32) -> Option<String> {
    let at_once = |port: &Port| port.links.iter().any(|l| is_at_once(array, port, l));
    let port = array.ports.iter().find(|p| at_once(p))?;
    let mut links = array.ports.iter().flat_map(|p| &p.links);
    if links.any(|l| crosses(array, l)) {
        return None;
    }
    let array = &with_flags(array);
    // A machine with warps: without them there would be more reasons for a single lane.
    let machine = Machine::threads(
        Target::Cuda,
        lanes,
        Threads {
            warps: 32,
            wide_bytes: 16,
            copies: Copies::Plain,
            block_memory: 1 << 17,
            unsized_arrays: Unsized::Block,
            links: Links::Shuffles(WarpSizes::one(lanes)),
            multiprocessor: None,
        },
    );
    let slots = Slots::new(array, decide).ok()?;
    let spread = |n: usize| {
        let range = slots.ranges[n].constant();
        array.place[n].level == PlaceLevel::Lane && range.is_none_or(|(lo, hi)| hi - lo > 1)
    };
    if lanes < 2 || !(0..array.place.len()).any(spread) {
        return None;
    }
    let partition = Partition::new(array, decide, &slots, &machine).ok()?;
    partition.vector.is_none().then(|| {
        format!(
            "one lane does the work of all: `{}` reads values of `{}` in the step in which they are made, in an order that is no scan along lanes",
            array.cells[port.sink.index()].name, array.cells[port.source.index()].name
        )
    })
}

/// Which blocks of a grid run.
enum Blocks {
    All,
    /// Those that write outputs.
    Writing,
}

fn lower_blocks(
    array: &Array,
    decide: &Decide,
    machine: &Machine,
    blocks: Blocks,
    kernels: Kernels,
    watch: &mut Watch<'_>,
) -> Result<Program, Failure> {
    let array = &with_flags(array);
    let mut slots = Slots::new(array, decide)?;
    let (array, chains) = with_look_back(array, decide, &slots)?;
    let array = array.as_ref();
    if !chains.is_empty() {
        return lower_launch(array, decide, machine, slots, &chains, kernels, watch);
    }
    let as_chains = |slots, watch: &mut Watch<'_>| {
        let array = with_chains(array);
        lower_launch(&array, decide, machine, slots, &[], kernels, watch)
    };
    match split(array, decide, &slots, machine)? {
        Crossing::None => {}
        Crossing::Parts(split) => {
            let mut part =
                |array, blocks| lower_blocks(array, decide, machine, blocks, Kernels::One, watch);
            let parts = part(&split.parts, Blocks::All)?;
            let joined = part(&split.joined, Blocks::All)?;
            if waits(&parts) || waits(&joined) {
                return as_chains(slots, watch);
            }
            let rest = part(&split.rest, Blocks::Writing)?;
            return Ok(link(parts, joined, rest));
        }
        Crossing::Chains => return as_chains(slots, watch),
    }
    // A fault in a block must be recorded even if the block writes no output.
    let faultless = !array.cells.iter().any(|cell| may_fault(array, &cell.body));
    match blocks {
        Blocks::All => {}
        Blocks::Writing if !faultless => {}
        Blocks::Writing => narrow(array, decide, &mut slots)?,
    }
    lower_launch(array, decide, machine, slots, &[], kernels, watch)
}

/// Do blocks wait for each other?
fn waits(program: &Program) -> bool {
    let mut buffers = program.buffers.iter();
    buffers.any(|b| matches!(b.kind, BufferKind::Flags))
}

/// How many kernels an array becomes.
#[derive(Clone, Copy, PartialEq)]
enum Kernels {
    One,
    /// Two if launches at the ends have tests that the launches between them do not need: one for
    /// each.
    OfLaunches,
}

/// Lowers an array to launches, one for every value of the launch coordinates.
fn lower_launch(
    array: &Array,
    decide: &Decide,
    machine: &Machine,
    mut slots: Slots,
    chains: &[SplitChain],
    kernels: Kernels,
    watch: &mut Watch<'_>,
) -> Result<Program, Failure> {
    let split = warps_apart(array, decide, &slots, machine)?;
    let (array, partition, of_warps) = match split {
        Some((array, partition, chains)) => (Cow::Owned(array), partition, chains),
        None => {
            let (array, partition) = partition_with_lanes(array, decide, &slots, machine)?;
            (array, partition, Vec::new())
        }
    };
    let array = array.as_ref();
    let chains = Chains {
        of_blocks: chains,
        of_warps: &of_warps,
    };
    narrow_iterations(array, decide, &partition, &mut slots)?;
    let mut program = declare(array);
    let storage = Storage::declare(
        array,
        decide,
        machine,
        slots,
        partition,
        &chains,
        &mut program,
    )?;
    watch.goes_on("storage");
    let plan = Plan {
        array,
        decide,
        machine,
        storage: &storage,
    };
    let inner = match (kernels, &storage.flags) {
        (Kernels::OfLaunches, None) => inner_launches(plan)?,
        _ => Cond::TRUE,
    };
    let all = match &inner {
        Cond::Const(_) => vec![Which::All],
        _ => vec![Which::Inner(inner.clone()), Which::Ends],
    };
    let mut sites = Vec::new();
    for which in &all {
        let nest = nest(plan, which)?;
        if !watch.goes_on(NEST) {
            watch.nests.push(NestText::new(&nest, array).to_string());
        }
        let (kernel, own) = emit(plan, &program, which, &nest)?;
        watch.goes_on(EMIT);
        sites.push(own);
        program.kernels.push(tidy(kernel));
    }
    declare_faults(&mut program, sites);
    program.body = host(array, &storage.slots, &inner, &mut program.host_vars)?;
    debug_assert_eq!(program.verify(), Vec::<String>::new(), "{program}");
    Ok(program)
}

/// The array in which sums across warps are split into parts, if its blocks have warps then. On
/// OpenCL devices one warp computes such a sum: random ones that were split made a driver of CPUs
/// write beyond its memory, for a reason that is not known.
fn warps_apart(
    array: &Array,
    decide: &Decide,
    slots: &Slots,
    machine: &Machine,
) -> Result<Option<(Array, Partition, Vec<SplitChain>)>, Failure> {
    if machine.target != Target::Cuda {
        return Ok(None);
    }
    let Some((array, chains)) = with_warp_parts(array, decide, slots)? else {
        return Ok(None);
    };
    let partition = Partition::new(&array, decide, slots, machine)?;
    let unrolled = matches!(partition.walk, Pes::Known { .. });
    let has_warps = unrolled && partition.warps.count() > 1 && partition.vector.is_some();
    Ok(has_warps.then_some((array, partition, chains)))
}

fn declare(array: &Array) -> Program {
    let params = array
        .params
        .iter()
        .enumerate()
        .map(|(n, p)| Size {
            name: p.name.clone(),
            fixed: fixed_value(&array.context, ParamId::from(n)),
        })
        .collect();
    let inputs = array.inputs.iter().map(|input| Buffer {
        name: input.name.clone(),
        ty: input.ty,
        kind: BufferKind::Input {
            data: match &input.kind {
                InputKind::Array => None,
                InputKind::Table { data } => data.clone(),
            },
        },
        axes: input.axes.clone(),
    });
    let outputs = array.outputs.iter().map(|output| Buffer {
        name: output.name.clone(),
        ty: output.ty,
        kind: BufferKind::Output { fill: output.fill },
        axes: output.axes.clone(),
    });
    Program {
        name: array.system.clone(),
        params,
        context: array.context.clone(),
        buffers: inputs.chain(outputs).collect(),
        kernels: Vec::new(),
        host_vars: Vec::new(),
        body: Vec::new(),
    }
}

/// A loop for every launch coordinate around the launch: of the only kernel, or of one kernel for
/// the inner launches and one for the others.
fn host(
    array: &Array,
    slots: &Slots,
    inner: &Cond,
    names: &mut Vec<String>,
) -> Result<Vec<Host>, Failure> {
    let n_place = array.place.len();
    let coordinates: Vec<usize> = (0..array.time.len())
        .filter(|t| array.time[*t].level == TimeLevel::Launch)
        .collect();
    let launch = |kernel: usize| {
        let args = (0..coordinates.len()).map(|n| Form::from(DimId::from(n)));
        vec![Host::Launch {
            kernel: KernelId::from(kernel),
            args: args.collect(),
        }]
    };
    // The first variables of a kernel are the launch coordinates, in this order.
    let of_host = |d: DimId| {
        let n = coordinates.iter().position(|t| n_place + t == d.index());
        n.map(|n| Form::from(DimId::from(n)))
    };
    let mut body = match inner {
        Cond::Const(_) => launch(0),
        cond => vec![Host::If {
            cond: cond.map(&|f| f.substitute(&of_host))?,
            then: launch(0),
            otherwise: launch(1),
        }],
    };
    names.extend(coordinates.iter().map(|t| array.time[*t].name.clone()));
    for (n, t) in coordinates.iter().enumerate().rev() {
        let range = &slots.ranges[n_place + t];
        body = vec![Host::For {
            var: DimId::from(n),
            lo: range.lo.clone(),
            hi: range.hi.clone(),
            body,
        }];
    }
    Ok(body)
}
