//! Which coordinates of a slot are blocks, loops, lanes, or known when the kernel is made.
//!
//! Node and block coordinates make the grid, launch coordinates the host's loops. The last lane
//! coordinate becomes the lanes of a warp, in as many vectors as it takes; the last vector may reach
//! beyond the array. Where that leaves most lanes idle, a warp runs several blocks ([`packing`]). Warp
//! coordinates are warps where the machine has them ([`warps`]). All other place coordinates of a block are PEs that
//! one lane runs one after the other: their registers are the lane's.
//!
//! [`packing`]: crate::storage::packing
//! [`warps`]: crate::storage::warps
//!
//! A value that arrives in the tick in which it leaves orders the PEs of a tick: they are walked in an order in
//! which sources come first, in vectors where the values along the lanes are a scan ([`crate::storage::chains`]), else in
//! stages ([`crate::storage::stages`]), else one by one.

use std::borrow::Cow;
use std::collections::HashMap;

use systola_ir::array::{Array, Link, Port, Realisation};
use systola_ir::form::Poly;
use systola_ir::mapping::{PlaceLevel, TimeLevel};
use systola_ir::target::Machine;
use systola_ir::{Span, VarId};

use crate::clock::{LONGEST_QUEUE, queue_ticks, radix};
use crate::decide::Decide;
use crate::facts::Range;
use crate::failure::Failure;
use crate::failure::limitation;
use crate::storage::chains::{Scan, along_lanes, register_chains, scans};
use crate::storage::links::flagged;
use crate::storage::links::is_queued;
use crate::storage::packing::Packing;
use crate::storage::queues::{PeKey, scalars};
use crate::storage::slots::Slots;
use crate::storage::stages::Stages;
use crate::storage::warps::Warps;

/// The plan of a kernel. Coordinates are those of the slots.
#[derive(Clone, Debug)]
pub struct Partition {
    pub lanes: u32,
    pub launches: Vec<usize>,
    pub blocks: Vec<usize>,
    /// Time coordinates inside of a launch, outermost first.
    pub steps: Vec<usize>,
    /// Place coordinates that are warps.
    pub warps: Warps,
    /// Place coordinates inside of a warp, in the order in which they are walked.
    pub pes: Vec<usize>,
    /// The one of `pes`, its last, that is spread over the lanes.
    pub vector: Option<usize>,
    /// PEs are walked downwards along these, so that sources come first.
    pub descending: Vec<usize>,
    /// Cells that all PEs evaluate before those of the next stage.
    pub stages: Stages,
    /// Cells whose values of one tick are chained along the lanes.
    pub scans: HashMap<VarId, Scan>,
    /// Do several blocks share a warp?
    pub packing: Option<Packing>,
    pub walk: Pes,
    radix: Option<Vec<Poly>>,
}

/// What is decided about the places of a block together.
struct Places {
    warps: Warps,
    vector: Option<usize>,
    pes: Vec<usize>,
    descending: Vec<usize>,
    scans: HashMap<VarId, Scan>,
}

/// How the PEs of a block are walked, which decides where their queues can live.
#[derive(Clone, Debug)]
pub enum Pes {
    /// Unrolled: a queue is in registers, `depth` ages of each cell, unless a link's
    /// delay is long or depends on the sizes.
    Known { depth: Vec<usize> },
    /// In loops, with all queues in memory.
    Looped,
}

/// No more PEs than this are unrolled.
pub const MOST_VECTORS: i128 = 96;

/// A chain through registers and lanes is unrolled for at most this number of vectors: each has a scan in every tick, and C compilers
/// take long for more.
const MOST_CHAINED: i128 = 16;

/// How an array is run. Where one lane would do all of it, for want of warps, and a block for each warp has lanes: that array instead.
pub fn partition_with_lanes<'a>(
    array: &'a Array,
    decide: &Decide,
    slots: &Slots,
    machine: &Machine,
) -> Result<(Cow<'a, Array>, Partition), Failure> {
    let partition = Partition::new(array, decide, slots, machine)?;
    if partition.vector.is_none()
        && machine.threads.is_none()
        && let Some(apart) = with_warps_as_blocks(array)
    {
        let other = Partition::new(&apart, decide, slots, machine)?;
        if other.vector.is_some() {
            return Ok((Cow::Owned(apart), other));
        }
    }
    Ok((Cow::Borrowed(array), partition))
}

/// The array with a block for each warp, where warps have nothing to do with each other: fewer PEs are walked together then, and their
/// chains are short enough for vectors.
fn with_warps_as_blocks(array: &Array) -> Option<Array> {
    let is_warp = |level| level == PlaceLevel::Warp;
    let mut links = array.ports.iter().flat_map(|port| &port.links);
    let joined = links.any(|link| {
        let mut moved = array.place.iter().zip(&link.displacement);
        moved.any(|(c, d)| is_warp(c.level) && !d.is_zero())
    });
    let warps = array.place.iter().filter(|c| is_warp(c.level)).count();
    if warps == 0 || joined || !array.transfers.is_empty() {
        return None;
    }
    let mut apart = array.clone();
    for coordinate in apart.place.iter_mut().filter(|c| is_warp(c.level)) {
        coordinate.level = PlaceLevel::Block;
    }
    Some(apart)
}

impl Partition {
    pub fn new(
        array: &Array,
        decide: &Decide,
        slots: &Slots,
        machine: &Machine,
    ) -> Result<Partition, Failure> {
        let n_place = array.place.len();
        let places = |is: &dyn Fn(PlaceLevel) -> bool| -> Vec<usize> {
            (0..n_place).filter(|p| is(array.place[*p].level)).collect()
        };
        let times = |is: &dyn Fn(TimeLevel) -> bool| -> Vec<usize> {
            (0..array.time.len())
                .filter(|t| is(array.time[*t].level))
                .map(|t| n_place + t)
                .collect()
        };
        let blocks = places(&|l| matches!(l, PlaceLevel::Node | PlaceLevel::Block));
        let warps = places(&|l| l == PlaceLevel::Warp);
        let lane_coordinates = places(&|l| l == PlaceLevel::Lane);
        let regs = places(&|l| l == PlaceLevel::Reg);
        let one = Stages::one(array);
        let bits = array
            .cells
            .iter()
            .flat_map(|c| scalars(&c.ty))
            .map(systola_ir::Scalar::bits)
            .max()
            .unwrap_or(32);
        let most = machine.lanes(bits);
        let spread = |real: &Warps, vector: Option<usize>| -> Vec<usize> {
            let others = lane_coordinates.iter().filter(|p| Some(**p) != vector);
            let walked = warps.iter().filter(|p| !real.has(**p));
            walked
                .chain(others)
                .chain(&regs)
                .chain(&vector)
                .copied()
                .collect()
        };
        let real = Warps::choose(array, slots, machine, most, &warps, &immediate(array, &one));
        let in_vectors = |stages: &Stages| {
            let vector = *lane_coordinates.last().filter(|_| most > 1)?;
            let pes = spread(&real, Some(vector));
            let scans = scans(array, stages.at_once(array), &pes, vector, most)?;
            let descending = order(array, &immediate(array, stages), &pes).ok()?;
            Some(Places {
                warps: real.clone(),
                vector: Some(vector),
                pes,
                descending,
                scans,
            })
        };
        // Chains go through the registers of a lane first, each in a stage of its own.
        let by_registers = || {
            let vector = *lane_coordinates.last().filter(|_| most > 1)?;
            let pes = spread(&real, Some(vector));
            let chains = register_chains(array, slots, &pes, vector, most);
            if chains.is_empty() {
                return None;
            }
            let stages = Stages::several(array)?.isolated(array, |c| chains.contains_key(&c));
            let others =
                |(p, _): &(&Port, &Link)| p.source != p.sink || !chains.contains_key(&p.sink);
            let mut found = scans(
                array,
                stages.at_once(array).filter(others),
                &pes,
                vector,
                most,
            )?;
            let immediate: Vec<(&Link, Span)> = (stages.at_once(array).filter(others))
                .map(|(p, l)| (l, p.span))
                .collect();
            let descending = order(array, &immediate, &pes).ok()?;
            found.extend(chains);
            let places = Places {
                warps: real.clone(),
                vector: Some(vector),
                pes,
                descending,
                scans: found,
            };
            Some((stages, places))
        };
        let one_by_one = |stages: &Stages| {
            let none = Warps::default();
            let pes = spread(&none, None);
            let descending = order(array, &immediate(array, stages), &pes)?;
            Ok::<Places, Failure>(Places {
                warps: none,
                vector: None,
                pes,
                descending,
                scans: HashMap::new(),
            })
        };
        let radix = radix(array, decide, None)?;
        let partition = |stages: &Stages, places: Places| {
            let vector = places.vector;
            let mut partition = Partition {
                lanes: if vector.is_some() { most } else { 1 },
                launches: times(&|l| l == TimeLevel::Launch),
                blocks: blocks.clone(),
                steps: times(&|l| matches!(l, TimeLevel::BlockStep | TimeLevel::Step)),
                warps: places.warps,
                pes: places.pes,
                vector,
                descending: places.descending,
                stages: stages.clone(),
                scans: places.scans,
                packing: None,
                walk: Pes::Looped,
                radix: radix.clone(),
            };
            if let Some(depth) = partition.depths(array, slots, machine) {
                partition.walk = Pes::Known { depth };
                let mut links = array.ports.iter().flat_map(|p| &p.links);
                // Blocks of one warp could not wait for each other.
                let alone = partition.warps.count() == 1 && flagged(array).next().is_none();
                if alone && !links.any(|l| partition.is_in_memory(array, l)) {
                    partition.packing = Packing::of(array, slots, &partition.blocks, vector, most);
                }
            }
            if partition.packing.is_some() {
                partition.lanes = most;
            }
            partition
        };
        if let Some(plan) = in_vectors(&one) {
            return Ok(partition(&one, plan));
        }
        let written_out = |p: &Partition| matches!(p.walk, Pes::Known { .. });
        let several = Stages::several(array);
        let in_stages = several
            .as_ref()
            .and_then(|s| Some((s.clone(), in_vectors(s)?)));
        let alone = || {
            let stages = several.clone()?;
            let places = one_by_one(&stages).ok()?;
            Some((stages, places))
        };
        for (stages, places) in [in_stages, by_registers(), alone()].into_iter().flatten() {
            let staged = partition(&stages, places);
            let chained = staged.scans.values().any(|scan| scan.wraps().is_some());
            let short = || staged.vectors(slots).is_some_and(|n| n <= MOST_CHAINED);
            if written_out(&staged) && (!chained || short()) {
                return Ok(staged);
            }
        }
        Ok(partition(&one, one_by_one(&one)?))
    }

    /// The ages of every cell that are kept in registers, if the PEs can be unrolled.
    fn depths(&self, array: &Array, slots: &Slots, machine: &Machine) -> Option<Vec<usize>> {
        let vectors = self.vectors(slots)?;
        if vectors > MOST_VECTORS {
            return None;
        }
        let mut depths = Vec::new();
        let mut registers = 0;
        for (n, cell) in array.cells.iter().enumerate() {
            let mut depth = 0;
            for link in queued(array, VarId::from(n)) {
                if self.warps.crosses(link) {
                    continue;
                }
                if !link.displacement.iter().all(|d| d.as_constant().is_some()) {
                    return None;
                }
                if let Some(age) = self.age(array, link) {
                    depth = depth.max(age);
                }
            }
            registers += depth * scalars(&cell.ty).len();
            depths.push(depth);
        }
        let needed = usize::try_from(vectors).ok()?.saturating_mul(registers);
        // A few spilled registers cost less than queues in memory with their addresses.
        (needed <= machine.registers * 8).then_some(depths)
    }

    /// The delay of a link in ticks, if a register queue of that length is sensible.
    pub fn age(&self, array: &Array, link: &Link) -> Option<usize> {
        if self.warps.crosses(link) {
            return None;
        }
        let ticks = queue_ticks(array, link, self.radix.as_deref())?;
        usize::try_from(ticks)
            .ok()
            .filter(|_| ticks <= LONGEST_QUEUE)
    }

    /// Does the link read a queue that is in memory?
    pub fn is_in_memory(&self, array: &Array, link: &Link) -> bool {
        is_queued(&link.realisation)
            && match self.walk {
                Pes::Known { .. } => self.age(array, link).is_none(),
                Pes::Looped => true,
            }
    }

    /// How many vectors of PEs a block has, where that is a number.
    fn vectors(&self, slots: &Slots) -> Option<i128> {
        let mut count = 1i128;
        for p in &self.pes {
            let (lo, hi) = slots.ranges[*p].constant()?;
            let mut extent = (hi - lo).max(0);
            if Some(*p) == self.vector {
                extent = (extent + i128::from(self.lanes) - 1) / i128::from(self.lanes);
            }
            count = count.checked_mul(extent)?;
        }
        Some(count)
    }

    /// The PEs of a block in the order of their walk, where they are known.
    pub fn known_pes(&self, slots: &Slots) -> Vec<PeKey> {
        let mut keys: Vec<PeKey> = vec![Vec::new()];
        for p in &self.pes {
            let (lo, hi) = slots.ranges[*p].constant().unwrap_or((0, 0));
            let mut values: Vec<i128> = if Some(*p) == self.vector {
                let width = i128::from(self.lanes);
                (0..(hi - lo + width - 1) / width).collect()
            } else {
                (lo..hi).collect()
            };
            if self.descending.contains(p) {
                values.reverse();
            }
            keys = keys
                .iter()
                .flat_map(|key| {
                    values.iter().map(move |v| {
                        let mut key = key.clone();
                        key.push(*v);
                        key
                    })
                })
                .collect();
        }
        keys
    }

    /// The place coordinates of a block, those of its warps first.
    pub fn places(&self) -> Vec<usize> {
        self.warps
            .coordinates()
            .chain(self.pes.iter().copied())
            .collect()
    }

    /// Ranges of some coordinates.
    pub fn with_ranges(&self, slots: &Slots, coordinates: &[usize]) -> Vec<(usize, Range)> {
        coordinates
            .iter()
            .map(|k| (*k, slots.ranges[*k].clone()))
            .collect()
    }
}

/// Is the link one of a scan, so that nothing but the register between vectors has to keep its values?
pub fn is_scanned(partition: &Partition, cell: VarId, link: &Link) -> bool {
    let at_once = matches!(link.realisation, Realisation::Broadcast | Realisation::Tree);
    let scan = partition.scans.get(&cell);
    if scan.is_some_and(|scan| scan.wraps().is_some()) {
        let moves = |lane: usize| !link.displacement[lane].is_zero();
        return at_once && partition.vector.is_some_and(moves);
    }
    let within = |vector| {
        let by = along_lanes(link, &partition.pes, vector, partition.lanes);
        by.flatten().is_some()
    };
    at_once && partition.scans.contains_key(&cell) && partition.vector.is_some_and(within)
}

/// The links that read a cell's queue.
pub fn queued(array: &Array, cell: VarId) -> impl Iterator<Item = &Link> {
    array
        .ports
        .iter()
        .filter(move |p| p.source == cell)
        .flat_map(|p| &p.links)
        .filter(|l| is_queued(&l.realisation))
}

/// Links whose values arrive in the tick in which they leave, in the middle of a stage.
fn immediate<'a>(array: &'a Array, stages: &'a Stages) -> Vec<(&'a Link, Span)> {
    stages.at_once(array).map(|(p, l)| (l, p.span)).collect()
}

/// Directions along `pes` in which every immediate value comes from a PE that was walked before.
fn order(array: &Array, immediate: &[(&Link, Span)], pes: &[usize]) -> Result<Vec<usize>, Failure> {
    let mut descending = Vec::new();
    let mut open: Vec<&(&Link, Span)> = immediate.iter().collect();
    for p in pes {
        let sign =
            |link: &Link| -> Option<i128> { link.displacement[*p].as_constant().map(i128::signum) };
        let mut signs: Vec<i128> = Vec::new();
        for (link, span) in open.iter().copied() {
            let Some(sign) = sign(link) else {
                return Err(limitation(
                    *span,
                    format!(
                        "a value of `{}` arrives at once from a PE whose distance depends on the sizes",
                        array.system
                    ),
                ));
            };
            signs.push(sign);
        }
        if signs.contains(&1) && signs.contains(&-1) {
            return Err(limitation(
                open[0].1,
                format!(
                    "values of `{}` arrive at once from PEs on both sides",
                    array.system
                ),
            ));
        }
        if signs.contains(&-1) {
            descending.push(*p);
        }
        open.retain(|(link, _)| sign(link) == Some(0));
    }
    Ok(descending)
}
