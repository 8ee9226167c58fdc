//! Links between blocks of one launch: which block waits for which, and in which order blocks
//! begin.
//!
//! A block counts the iterations of its outermost loop in a flag of its own, its *progress*. It
//! leaves values for other blocks in global memory ([`inter_block`]). A block that reads such a
//! value waits, before an iteration, until the progress of the other block shows that the iteration
//! in which the value was made is complete: the reader's own iteration minus the delay of the link.
//! A block runs only the iterations in which it has work. If the other block has no such iteration
//! any more, the reader waits for its last one.
//!
//! A block may wait only for blocks that are running or have finished, whatever the machine does
//! with the rest. So a block does not take its place from the grid: it gets a dynamic block id from
//! an atomic counter when it begins, and the places are numbered in an order in which every value
//! goes to a larger number. Such an order is one coordinate after another, upwards or downwards:
//! the values that move along the first coordinate go forward by it, the others are left to the
//! next. If values go both ways along every coordinate there is no such order: two blocks would
//! have to alternate, which only blocks that run at the same time can do.
//!
//! Coordinates that no value crosses stay with the grid, and each of their places has a counter of
//! its own.
//!
//! [`inter_block`]: crate::storage::inter_block

use systola_ir::array::{Array, Link, PlaceCoord, Port, Realisation, Role};
use systola_ir::codes::limits;
use systola_ir::form::{Form, Poly};
use systola_ir::kernel::{Buffer, BufferKind, Program};
use systola_ir::mapping::PlaceLevel;
use systola_ir::system::Axis;
use systola_ir::{BufferId, Diagnostic, Scalar};

use crate::decide::{Decide, Undecided};
use crate::facts::Range;
use crate::failure::Failure;
use crate::storage::links::crosses;
use crate::storage::links::{flagged, looking_back};
use crate::storage::partition::Partition;
use crate::storage::slots::{Slots, range};

/// Blocks signal after at least this many ticks.
const TICKS_OF_A_SIGNAL: i128 = 32;

/// A block with a known number of iterations signals at least this many times.
const LEAST_SIGNALS: i128 = 8;

/// How the blocks of a launch wait for each other.
#[derive(Clone, Debug)]
pub struct Flags {
    /// Block coordinates that values cross, the slowest first. Never empty.
    pub order: Vec<Ordered>,
    pub waits: Vec<Wait>,
    /// By launch and block: the number of batches of iterations that are complete. `None` if no
    /// block waits for an iteration of another.
    pub progress: Option<BufferId>,
    /// By launch and the block coordinates that no value crosses: the number of blocks that have
    /// begun.
    pub arrivals: BufferId,
    /// The number of iterations that one signal covers.
    pub batch: i128,
    /// The first iteration of the outermost loop and the end of its range, over the block; `None`
    /// if the block is one iteration.
    pub iterations: Option<(Form, Form)>,
}

/// A block coordinate of the slots, and how its places are numbered.
#[derive(Clone, Debug)]
pub struct Ordered {
    pub k: usize,
    pub downwards: bool,
    pub lo: Form,
    hi: Form,
}

/// Before each iteration: the block at this displacement has completed the iteration `delay`
/// earlier.
#[derive(Clone, Debug, PartialEq)]
pub struct Wait {
    /// By block coordinate; zeros are omitted.
    pub displacement: Vec<(usize, i128)>,
    pub delay: Poly,
}

/// The array with flags on links between nodes, all of which run on this machine, and on those
/// links between blocks that have no other realisation. Trees stay as they are if nothing else
/// needs flags.
pub fn with_flags(array: &Array) -> Array {
    let crosses = |link: &Link, levels: &[PlaceLevel]| {
        let mut moved = array.place.iter().zip(&link.displacement);
        moved.any(|(c, d)| levels.contains(&c.level) && !d.is_zero())
    };
    let mut made = array.clone();
    for port in &mut made.ports {
        let source = &array.cells[port.source.index()];
        let loaded = matches!(source.role, Role::Propagation { .. });
        for link in &mut port.links {
            let flagged = match link.realisation {
                Realisation::Flags | Realisation::Message => true,
                Realisation::Broadcast => {
                    !loaded && crosses(link, &[PlaceLevel::Node, PlaceLevel::Block])
                }
                Realisation::Tree => crosses(link, &[PlaceLevel::Node]),
                Realisation::Wire
                | Realisation::Register
                | Realisation::Buffer
                | Realisation::Shuffle
                | Realisation::Shared
                | Realisation::Launch
                | Realisation::LookBack
                | Realisation::Reinject
                | Realisation::Hole => false,
            };
            if flagged {
                link.realisation = Realisation::Flags;
            }
        }
    }
    if flagged(&made).next().is_some() {
        return with_chains(&made);
    }
    made
}

/// The array with its sums as chains from block to block.
pub fn with_chains(array: &Array) -> Array {
    let mut made = array.clone();
    let links = made.ports.iter_mut().flat_map(|port| &mut port.links);
    let is_tree = |link: &&mut Link| link.realisation == Realisation::Tree;
    for link in links.filter(is_tree).filter(|link| crosses(array, link)) {
        link.realisation = Realisation::Flags;
    }
    made
}

/// Removes the iterations of the outermost loop in which a block has no work: blocks that wait for
/// each other run as a wavefront, and most iterations of the whole range are not a block's own.
pub fn narrow_iterations(
    array: &Array,
    decide: &Decide,
    partition: &Partition,
    slots: &mut Slots,
) -> Result<(), Undecided> {
    let Some(k) = partition
        .steps
        .first()
        .filter(|_| flagged(array).next().is_some())
    else {
        return Ok(());
    };
    let given = [&partition.launches[..], &partition.blocks].concat();
    let own = range(array, decide, *k, &given)?;
    // Of several bounds, prefer those with the same number of iterations in all blocks.
    let starts = own.lo.iter();
    let mut pairs = starts.flat_map(|lo| own.hi.iter().map(move |hi| (lo, hi)));
    let even = pairs.find(|(lo, hi)| hi.sub(lo).dims().is_empty());
    if let Some((lo, hi)) = even.or(own.single()) {
        slots.ranges[*k] = Range::new(lo.clone(), hi.clone());
    }
    Ok(())
}

impl Flags {
    /// Declares what the links need, if any are realised by flags or by look-back.
    pub fn declare(
        array: &Array,
        slots: &Slots,
        partition: &Partition,
        program: &mut Program,
    ) -> Result<Option<Flags>, Failure> {
        let crossing = || flagged(array).chain(looking_back(array));
        if crossing().next().is_none() {
            return Ok(None);
        }
        let mut moves = Vec::new();
        for (port, link) in crossing() {
            let by = displacement(array, link, &partition.blocks)?;
            moves.push(Moved { port, by });
        }
        let mut order = Vec::new();
        for (k, downwards) in arrange(array, &moves, &partition.blocks)? {
            let (lo, hi) = ends(&slots.ranges[k])?;
            order.push(Ordered {
                k,
                downwards,
                lo,
                hi,
            });
        }
        // Every coordinate but the slowest must have a known extent, so that places can be
        // numbered.
        if order[1..]
            .iter()
            .any(|o| o.extent().as_constant().is_none())
        {
            let why = "blocks that wait along several coordinates are numbered at given sizes";
            return Err(Undecided::NeedsSizes(why.into()).into());
        }
        let iterations = match partition.steps.first() {
            Some(k) => Some(ends(&slots.ranges[*k])?),
            None => None,
        };
        let mut waits: Vec<Wait> = Vec::new();
        for ((_, link), moved) in flagged(array).zip(moves) {
            let outermost = partition.steps.first().map(|k| k - array.place.len());
            let delay = outermost.map_or_else(Poly::zero, |t| link.delay[t].clone());
            let displacement = moved.by;
            let wait = Wait {
                displacement,
                delay,
            };
            note(&mut waits, wait);
        }
        let batch = match &iterations {
            Some((first, end)) => batch(slots, partition, end.sub(first).as_constant()),
            None => 1,
        };
        let crossed: Vec<usize> = order.iter().map(|o| o.k).collect();
        let still = partition.blocks.iter().filter(|k| !crossed.contains(k));
        let arrivals: Vec<usize> = partition.launches.iter().chain(still).copied().collect();
        let progress = [&partition.launches[..], &partition.blocks].concat();
        Ok(Some(Flags {
            order,
            progress: (!waits.is_empty()).then(|| buffer("progress", slots, &progress, program)),
            waits,
            arrivals: buffer("arrivals", slots, &arrivals, program),
            batch,
            iterations,
        }))
    }

    /// The delay of the wait for the block at this displacement.
    pub fn delay(&self, displacement: &[(usize, i128)]) -> Option<&Poly> {
        let found = self.waits.iter().find(|w| w.displacement == displacement);
        found.map(|wait| &wait.delay)
    }

    pub fn is_ordered(&self, k: usize) -> bool {
        self.order.iter().any(|o| o.k == k)
    }

    /// Does the place of a block along this coordinate follow from its dynamic block id?
    pub fn is_dynamic(flags: Option<&Flags>, k: usize) -> bool {
        flags.is_some_and(|flags| flags.is_ordered(k))
    }
}

impl Ordered {
    pub fn extent(&self) -> Form {
        self.hi.sub(&self.lo)
    }

    /// The place with this number.
    pub fn place(&self, number: &Form) -> Form {
        if self.downwards {
            self.hi.plus(-1).sub(number)
        } else {
            self.lo.add(number)
        }
    }
}

/// The number of iterations that one signal covers. A signal costs as much as some ticks, and a
/// block must not be far ahead of those that wait for it.
fn batch(slots: &Slots, partition: &Partition, iterations: Option<i128>) -> i128 {
    let inner = partition.steps.iter().skip(1);
    let mut ticks = inner.map(|k| slots.ranges[*k].constant());
    let ticks = ticks.try_fold(1i128, |product, range| {
        let (lo, hi) = range?;
        product.checked_mul((hi - lo).max(1))
    });
    let enough = ticks.map_or(1, |ticks| (TICKS_OF_A_SIGNAL / ticks).max(1));
    iterations.map_or(enough, |iterations| {
        enough.min(iterations / LEAST_SIGNALS).max(1)
    })
}

/// Adds a wait. Of two waits for the same block, the one for the later iteration is enough.
fn note(waits: &mut Vec<Wait>, wait: Wait) {
    let same = |w: &Wait| -> Option<i128> {
        let gap = w.delay.sub(&wait.delay).as_constant()?;
        (w.displacement == wait.displacement).then_some(gap)
    };
    let known = waits.iter_mut().find_map(|w| same(w).map(|by| (w, by)));
    match known {
        Some((w, by)) if by > 0 => *w = wait,
        Some(_) => {}
        None => waits.push(wait),
    }
}

/// The distance that a link goes along the block coordinates.
pub fn displacement(
    array: &Array,
    link: &Link,
    blocks: &[usize],
) -> Result<Vec<(usize, i128)>, Failure> {
    let mut moved = Vec::new();
    for k in blocks.iter().filter(|k| !link.displacement[**k].is_zero()) {
        let Some(by) = link.displacement[*k].as_constant() else {
            let name = &array.place[*k].name;
            let why = format!("a value moves along {name} by a distance that depends on the sizes");
            return Err(Undecided::NeedsSizes(why).into());
        };
        moved.push((*k, by));
    }
    Ok(moved)
}

/// The distance that the values of a port go along the block coordinates.
struct Moved<'a> {
    port: &'a Port,
    by: Vec<(usize, i128)>,
}

impl Moved<'_> {
    fn along(&self, k: usize) -> i128 {
        let found = self.by.iter().find(|(at, _)| *at == k);
        found.map_or(0, |(_, by)| *by)
    }
}

/// Block coordinates, the slowest first, and whether each runs downwards, so that every value goes
/// forward.
fn arrange(
    array: &Array,
    moves: &[Moved<'_>],
    blocks: &[usize],
) -> Result<Vec<(usize, bool)>, Failure> {
    let mut open: Vec<&Moved<'_>> = moves.iter().collect();
    let mut order: Vec<(usize, bool)> = Vec::new();
    while !open.is_empty() {
        let one_way = blocks.iter().find_map(|k| {
            let signs: Vec<i128> = open.iter().map(|m| m.along(*k).signum()).collect();
            let (up, down) = (signs.contains(&1), signs.contains(&-1));
            (up != down).then_some((*k, down))
        });
        let Some((k, downwards)) = one_way else {
            return Err(both_ways(array, &open, blocks));
        };
        order.push((k, downwards));
        open.retain(|moved| moved.along(k) == 0);
    }
    // Values that cross further coordinates go forward already, but the number of a place needs
    // these coordinates too.
    for k in blocks {
        let crossed = moves.iter().any(|moved| moved.along(*k) != 0);
        if crossed && !order.iter().any(|(at, _)| at == k) {
            order.push((*k, false));
        }
    }
    Ok(order)
}

/// The error for two values that go in opposite directions along a coordinate.
fn both_ways(array: &Array, open: &[&Moved<'_>], blocks: &[usize]) -> Failure {
    let opposite = blocks.iter().find_map(|k| {
        let up = open.iter().find(|moved| moved.along(*k) > 0)?;
        let down = open.iter().find(|moved| moved.along(*k) < 0)?;
        Some((*k, up.port, down.port))
    });
    let Some((k, up, down)) = opposite else {
        unreachable!("a value that leaves its block moves along some coordinate")
    };
    let name = |port: &Port| &array.cells[port.source.index()].name;
    let PlaceCoord {
        name: place, alias, ..
    } = &array.place[k];
    let message = format!(
        "`{}` goes to larger and `{}` to smaller {} within one launch, so two blocks would wait for each other",
        name(up),
        name(down),
        alias.as_ref().unwrap_or(place),
    );
    let help = "let a launch separate them, recompute a halo with `tile … overlap`, or tile along a direction in which all \
                values go one way";
    let diagnostic = Diagnostic::new(&limits::LINK_NOT_COMPILED, down.span, message);
    Failure::Refused(vec![diagnostic.help(help)])
}

/// The first value of a range and its end, as one form each.
fn ends(range: &Range) -> Result<(Form, Form), Undecided> {
    let one = |forms: &[Form], most: bool| -> Option<Form> {
        if let [form] = forms {
            return Some(form.clone());
        }
        let numbers: Option<Vec<i128>> = forms.iter().map(Form::as_constant).collect();
        let numbers = numbers?.into_iter();
        let end = if most { numbers.max() } else { numbers.min() };
        end.map(Form::from)
    };
    match (one(&range.lo, true), one(&range.hi, false)) {
        (Some(lo), Some(hi)) => Ok((lo, hi)),
        _ => Err(Undecided::NeedsSizes(
            "where blocks wait for each other, the ends of their coordinates are known at given sizes only".into(),
        )),
    }
}

/// Flags with an axis for each of these coordinates. Any bounds of a range are wide enough.
fn buffer(name: &str, slots: &Slots, coordinates: &[usize], program: &mut Program) -> BufferId {
    let axis = |k: &usize| {
        let Range { lo, hi } = &slots.ranges[*k];
        let (lo, hi) = (lo[0].clone(), hi[0].clone());
        Axis { lo, hi }
    };
    let mut name = name.to_string();
    while program.buffers.iter().any(|b| b.name == name) {
        name.push('_');
    }
    program.buffers.push(Buffer {
        name,
        ty: Scalar::I32,
        kind: BufferKind::Flags,
        axes: coordinates.iter().map(axis).collect(),
    });
    BufferId::from(program.buffers.len() - 1)
}
