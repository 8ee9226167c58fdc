//! Decides which coordinates of a slot are blocks, loops, lanes, or known at compile time.
//!
//! Node and block coordinates make the grid, launch coordinates the host's loops. The last lane
//! coordinate becomes the lanes of a warp, in as many vectors as it takes; the last vector may
//! reach beyond the array. If that leaves most lanes idle, a warp runs several blocks
//! ([`packing`]). Warp coordinates are warps if the machine has them ([`warps`]). All other place
//! coordinates of a block are PEs that one lane runs one after another: their registers are the
//! lane's.
//!
//! [`packing`]: crate::storage::packing
//! [`warps`]: crate::storage::warps
//!
//! A value that arrives in the tick in which it leaves orders the PEs of a tick: sources run first.
//! The PEs run in vectors if the values along the lanes are a scan ([`crate::storage::chains`]),
//! otherwise in stages ([`crate::storage::stages`]), otherwise one by one.

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
use crate::storage::links::is_queued;
use crate::storage::links::{combining, flagged};
use crate::storage::packing::Packing;
use crate::storage::queues::{PeKey, scalars};
use crate::storage::slots::Slots;
use crate::storage::stages::Stages;
use crate::storage::warps::Warps;

/// The partition of a kernel. Coordinates are those of the slots.
#[derive(Clone, Debug)]
pub struct Partition {
    pub lanes: u32,
    pub launches: Vec<usize>,
    pub blocks: Vec<usize>,
    /// Time coordinates inside a launch, outermost first.
    pub steps: Vec<usize>,
    /// Place coordinates that are warps.
    pub warps: Warps,
    /// Place coordinates inside a warp, in the order of their loops.
    pub pes: Vec<usize>,
    /// The last of `pes`, if it is spread over the lanes.
    pub vector: Option<usize>,
    /// PEs run downwards along these, so that sources come first.
    pub descending: Vec<usize>,
    /// The stages of the cells: all PEs evaluate the cells of one stage before those of the next.
    pub stages: Stages,
    /// Cells whose values of one tick are chained along the lanes.
    pub scans: HashMap<VarId, Scan>,
    /// Do several blocks share a warp?
    pub packing: Option<Packing>,
    pub walk: Pes,
    radix: Option<Vec<Poly>>,
}

/// How the PEs of a block run, which decides where their queues can live.
#[derive(Clone, Debug)]
pub enum Pes {
    /// Unrolled: a queue is in registers, with `depth` ages for each cell, unless a link's delay is
    /// long or depends on the sizes.
    Known { depth: Vec<usize> },
    /// In loops, with all queues in memory.
    Looped,
}

/// At most this many vectors of PEs are unrolled.
pub const MOST_VECTORS: i128 = 96;

/// A chain through registers and lanes is unrolled for at most this many vectors: each has a scan
/// in every tick, and C compilers take long for more.
const MOST_CHAINED: i128 = 16;

/// The same where lanes are threads: the chain goes through the registers of a lane one by one, and
/// compilers take a shuffle as one instruction.
const MOST_CHAINED_BY_THREADS: i128 = MOST_VECTORS;

/// Decides how an array runs. If one lane would do all of it for want of warps, and the array with
/// a block for each warp has lanes, the latter array is returned.
pub fn partition_with_lanes<'a>(
    array: &'a Array,
    decide: &Decide,
    slots: &Slots,
    machine: &Machine,
) -> Result<(Cow<'a, Array>, Partition), Failure> {
    let partition = Partition::new(array, decide, slots, machine)?;
    if partition.vector.is_none()
        && machine.threads.is_none()
        && let Some(separated) = with_warps_as_blocks(array)
    {
        let other = Partition::new(&separated, decide, slots, machine)?;
        if other.vector.is_some() {
            return Ok((Cow::Owned(separated), other));
        }
    }
    Ok((Cow::Borrowed(array), partition))
}

/// The array with a block for each warp, if warps are independent: fewer PEs then run together, and
/// their chains are short enough for vectors.
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
    let mut separated = array.clone();
    for coordinate in separated.place.iter_mut().filter(|c| is_warp(c.level)) {
        coordinate.level = PlaceLevel::Block;
    }
    Some(separated)
}

impl Partition {
    pub fn new(
        array: &Array,
        decide: &Decide,
        slots: &Slots,
        machine: &Machine,
    ) -> Result<Partition, Failure> {
        let plans = Plans::of(array, decide, slots, machine)?;
        let one = Stages::one(array);
        // Parts are combined between the stages of a part and of the whole.
        let in_one_stage = combining(array).next().is_none();
        if in_one_stage && let Some(places) = plans.in_vectors(&one, HashMap::new()) {
            return Ok(plans.partition(one, places));
        }
        for plan in plans.in_stages() {
            let unrolled = matches!(plan.walk, Pes::Known { .. });
            let chained = plan.scans.values().any(|scan| scan.wraps().is_some());
            let most = match machine.threads {
                None => MOST_CHAINED,
                Some(_) => MOST_CHAINED_BY_THREADS,
            };
            let short = || plan.vectors(slots).is_some_and(|n| n <= most);
            if unrolled && (!chained || short()) {
                return Ok(plan);
            }
        }
        let places = plans.one_by_one(&one)?;
        Ok(plans.partition(one, places))
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

    /// The delay of a link in ticks, if a queue of that length can be in registers.
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

    /// The number of vectors of PEs of a block, if that is constant.
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

    /// The PEs of a block in the order in which they run, if they are known.
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

/// What the candidate plans of an array have in common.
struct Plans<'a> {
    array: &'a Array,
    slots: &'a Slots,
    machine: &'a Machine,
    /// Lanes of a warp.
    lanes: u32,
    /// The warps of a block, if its PEs are in vectors.
    warps: Warps,
    radix: Option<Vec<Poly>>,
}

/// Decisions about the places of a block that depend on each other.
struct Places {
    warps: Warps,
    vector: Option<usize>,
    pes: Vec<usize>,
    descending: Vec<usize>,
    scans: HashMap<VarId, Scan>,
}

impl<'a> Plans<'a> {
    fn of(
        array: &'a Array,
        decide: &Decide,
        slots: &'a Slots,
        machine: &'a Machine,
    ) -> Result<Plans<'a>, Failure> {
        let bits = array
            .cells
            .iter()
            .flat_map(|c| scalars(&c.ty))
            .map(systola_ir::Scalar::bits)
            .max()
            .unwrap_or(32);
        let lanes = machine.lanes(bits);
        let stages = Stages::one(array);
        let immediate: Vec<_> = stages.at_once(array).map(spanned).collect();
        let warps = place_coordinates(array, |l| l == PlaceLevel::Warp);
        Ok(Plans {
            array,
            slots,
            machine,
            lanes,
            warps: Warps::choose(array, slots, machine, lanes, &warps, &immediate),
            radix: radix(array, decide, None)?,
        })
    }

    /// The place coordinate that can be spread over the lanes.
    fn vector(&self) -> Option<usize> {
        let lanes = place_coordinates(self.array, |l| l == PlaceLevel::Lane);
        lanes.last().copied().filter(|_| self.lanes > 1)
    }

    /// The place coordinates inside a warp, in the order of their loops.
    fn pes(&self, warps: &Warps, vector: Option<usize>) -> Vec<usize> {
        let walked = place_coordinates(self.array, |l| l == PlaceLevel::Warp);
        let others = place_coordinates(self.array, |l| l == PlaceLevel::Lane);
        let walked = walked.into_iter().filter(|p| !warps.has(*p));
        let others = others.into_iter().filter(|p| Some(*p) != vector);
        walked
            .chain(others)
            .chain(place_coordinates(self.array, |l| l == PlaceLevel::Reg))
            .chain(vector)
            .collect()
    }

    /// The plan with PEs in vectors; chains through the registers of a lane are given.
    fn in_vectors(&self, stages: &Stages, chains: HashMap<VarId, Scan>) -> Option<Places> {
        let array = self.array;
        let vector = self.vector()?;
        let pes = self.pes(&self.warps, Some(vector));
        let other = |(p, _): &(&Port, &Link)| p.source != p.sink || !chains.contains_key(&p.sink);
        let at_once = || stages.at_once(array).filter(other);
        let mut scans = scans(array, at_once(), &pes, vector, self.lanes)?;
        let immediate: Vec<_> = at_once().map(spanned).collect();
        let descending = order(array, &immediate, &pes).ok()?;
        scans.extend(chains);
        Some(Places {
            warps: self.warps.clone(),
            vector: Some(vector),
            pes,
            descending,
            scans,
        })
    }

    /// The plan in which chains go through the registers of a lane first, each in a stage of its
    /// own.
    fn by_registers(&self, several: &Stages) -> Option<(Stages, Places)> {
        let vector = self.vector()?;
        let pes = self.pes(&self.warps, Some(vector));
        let chains = register_chains(self.array, self.slots, &pes, vector, self.lanes);
        if chains.is_empty() {
            return None;
        }
        let several = several.clone();
        let stages = several.isolated(self.array, |c| chains.contains_key(&c));
        let places = self.in_vectors(&stages, chains)?;
        Some((stages, places))
    }

    fn one_by_one(&self, stages: &Stages) -> Result<Places, Failure> {
        let warps = Warps::default();
        let pes = self.pes(&warps, None);
        let immediate: Vec<_> = stages.at_once(self.array).map(spanned).collect();
        let descending = order(self.array, &immediate, &pes)?;
        Ok(Places {
            warps,
            vector: None,
            pes,
            descending,
            scans: HashMap::new(),
        })
    }

    /// Plans in several stages, best first.
    fn in_stages(&self) -> impl Iterator<Item = Partition> {
        let several = Stages::several(self.array);
        let plans = several.map(|stages| {
            let in_vectors = self.in_vectors(&stages, HashMap::new());
            let one_by_one = self.one_by_one(&stages).ok();
            [
                in_vectors.map(|places| (stages.clone(), places)),
                self.by_registers(&stages),
                one_by_one.map(|places| (stages, places)),
            ]
        });
        let plans = plans.into_iter().flatten().flatten();
        plans.map(|(stages, places)| self.partition(stages, places))
    }

    fn partition(&self, stages: Stages, places: Places) -> Partition {
        let Plans { array, slots, .. } = *self;
        let mut partition = Partition {
            lanes: places.vector.map_or(1, |_| self.lanes),
            launches: time_coordinates(array, |l| l == TimeLevel::Launch),
            blocks: place_coordinates(array, |l| matches!(l, PlaceLevel::Node | PlaceLevel::Block)),
            steps: time_coordinates(array, |l| {
                matches!(l, TimeLevel::BlockStep | TimeLevel::Step)
            }),
            warps: places.warps,
            pes: places.pes,
            vector: places.vector,
            descending: places.descending,
            stages,
            scans: places.scans,
            packing: None,
            walk: Pes::Looped,
            radix: self.radix.clone(),
        };
        if let Some(depth) = partition.depths(array, slots, self.machine) {
            partition.walk = Pes::Known { depth };
            let mut links = array.ports.iter().flat_map(|p| &p.links);
            // Blocks of one warp could not wait for each other.
            let alone = partition.warps.count() == 1
                && flagged(array).chain(combining(array)).next().is_none();
            // The loops over kept values are as long as the points of a block need.
            let one_length = !array.keeps_values();
            if alone && one_length && !links.any(|l| partition.is_in_memory(array, l)) {
                let (blocks, vector) = (&partition.blocks, partition.vector);
                partition.packing = Packing::of(array, slots, blocks, vector, self.lanes);
            }
        }
        if partition.packing.is_some() {
            partition.lanes = self.lanes;
        }
        partition
    }
}

/// The place coordinates at some levels.
fn place_coordinates(array: &Array, is: impl Fn(PlaceLevel) -> bool) -> Vec<usize> {
    let all = 0..array.place.len();
    all.filter(|p| is(array.place[*p].level)).collect()
}

/// The time coordinates at some levels.
fn time_coordinates(array: &Array, is: impl Fn(TimeLevel) -> bool) -> Vec<usize> {
    let all = 0..array.time.len();
    all.filter(|t| is(array.time[*t].level))
        .map(|t| array.place.len() + t)
        .collect()
}

fn spanned<'a>((port, link): (&'a Port, &'a Link)) -> (&'a Link, Span) {
    (link, port.span)
}

/// Does the link belong to a scan, so that only the register between vectors has to keep its
/// values?
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

/// Directions along `pes` in which every immediate value comes from a PE that runs earlier.
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
