//! Loops in a legal order, for systems that no other family fits: a lexicographic schedule
//! (`space/schedule.rs`) carries the dependences, sums run innermost, and the remaining iterators
//! are parallel.
//!
//! * *One*: everything in one PE, step after step.
//! * *Lanes*: parallel iterators are blocks and lanes, the schedule is the time of each.
//! * *Launches*: each time of the schedule is a launch, since values go from block to block.
//! * *Block*: one block holds all lanes of one iterator, the schedule is its time.
//!
//! If values are needed from both sides at once, as in a chain of filters, no row carries the
//! dependence. Such values are used in the step in which they are computed (`broadcast`), and tiles
//! overlap by the reach of the chain.

use systola_ir::mapping::{DirectiveKind, Mapping, NameExpr, PlaceLevel, TimeLevel};
use systola_ir::target::Machine;

use super::axes::{Axes, Role};
use super::schedule::{Prefer, Schedule, schedule};
use super::text::{Text, combination, plus};
use super::tilings::permutations;

/// The number of orders of the sums that are tried.
const SUM_ORDERS: usize = 6;
/// With more iterators of sums than this, they stay in the order of the text.
const MOST_SUMS: usize = 6;
/// Rows of a tile that a lane owns where tiles overlap in several iterators.
const OWNED_ROWS: i128 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrangement {
    One,
    Lanes,
    Launches,
    Block,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub arrangement: Arrangement,
    /// Over all iterators.
    pub rows: Vec<Vec<i128>>,
    /// Iterators of the index space in no row; those of the batch and other parallel ones first.
    pub free: Vec<usize>,
    /// Iterators of sums, outermost first.
    pub sums: Vec<usize>,
    /// Variables that are used in the step in which they are computed.
    pub broadcast: Vec<String>,
    /// Free iterators along which such values go from lane to lane, with the reach below and above.
    pub halos: Vec<(usize, (i128, i128))>,
}

/// The most parallel first, one PE last.
pub fn orders(axes: &Axes, machine: &Machine) -> Vec<Order> {
    let n = axes.list.len();
    let dependences: Vec<Vec<i128>> = axes
        .distances
        .iter()
        .map(|d| {
            let mut e = d.e.clone();
            e.resize(n, 0);
            e
        })
        .collect();
    let recurrent: Vec<usize> = axes.with_role(Role::Recurrent).collect();
    let reduced = axes.with_role(Role::Reduced);
    let reduced: Vec<usize> = reduced.filter(|a| !axes.is_unrolled(*a)).collect();
    let mut orders = Vec::new();
    for prefer in [Prefer::Fronts, Prefer::Loops] {
        let Some(found) = schedule(&dependences, n, &recurrent, prefer) else {
            continue;
        };
        let Some((broadcast, halos)) = at_once(axes, &found) else {
            continue;
        };
        let mut free: Vec<usize> = axes.with_role(Role::Parallel).collect();
        free.extend(&found.free);
        for arrangement in arrangements(axes, machine, &found) {
            for sums in sum_orders(axes, &reduced) {
                let order = Order {
                    arrangement,
                    rows: found.rows.clone(),
                    free: free.clone(),
                    sums,
                    broadcast: broadcast.clone(),
                    halos: halos.clone(),
                };
                if !orders.contains(&order) {
                    orders.push(order);
                }
            }
        }
    }
    orders.sort_by_key(|order| order.arrangement == Arrangement::One);
    orders
}

/// Orders of the iterators of sums. Those of one sum stay as they are written.
fn sum_orders(axes: &Axes, reduced: &[usize]) -> Vec<Vec<usize>> {
    let as_written = |order: &Vec<usize>| {
        let at = |axis: &usize| order.iter().position(|a| a == axis);
        axes.sums.iter().all(|sum| sum.axes.is_sorted_by_key(at))
    };
    if reduced.len() > MOST_SUMS {
        return vec![reduced.to_vec()];
    }
    let orders = permutations(reduced, usize::MAX)
        .into_iter()
        .filter(as_written);
    orders.take(SUM_ORDERS).collect()
}

fn arrangements(axes: &Axes, machine: &Machine, found: &Schedule) -> Vec<Arrangement> {
    let parallel = axes.with_role(Role::Parallel).next().is_some();
    match (found.free.is_empty(), parallel) {
        (true, true) => vec![Arrangement::Lanes, Arrangement::One],
        (true, false) => vec![Arrangement::One],
        // One block holds all lanes of one iterator, and there are no other dependences in both
        // directions.
        (false, _) if !found.left.is_empty() => vec![Arrangement::Launches],
        (false, _) if machine.threads.is_some() => {
            vec![Arrangement::Launches, Arrangement::Block, Arrangement::One]
        }
        (false, _) => vec![Arrangement::Block, Arrangement::Launches, Arrangement::One],
    }
}

/// Dependences that no row carries must come from earlier equations: the variables, and the reach
/// of each free iterator within a step.
type AtOnce = (Vec<String>, Vec<(usize, (i128, i128))>);

fn at_once(axes: &Axes, found: &Schedule) -> Option<AtOnce> {
    let left = || found.left.iter().map(|d| &axes.distances[*d]);
    if left().any(|d| d.source >= d.sink) {
        return None;
    }
    let mut broadcast: Vec<String> = Vec::new();
    for d in left() {
        let name = &axes.vars[d.source].name;
        if !broadcast.contains(name) {
            broadcast.push(name.clone());
        }
    }
    // Sources precede sinks: one pass from the last equation to the first finds everything reached.
    let mut halos = Vec::new();
    for axis in &found.free {
        let mut reach = vec![(0i128, 0i128); axes.vars.len()];
        for sink in (0..axes.vars.len()).rev() {
            for d in left().filter(|d| d.sink == sink) {
                let (lo, hi) = reach[sink];
                let from = &mut reach[d.source];
                from.0 = from.0.max(lo + d.e[*axis]);
                from.1 = from.1.max(hi - d.e[*axis]);
            }
        }
        let lo = reach.iter().map(|r| r.0).max().unwrap_or(0);
        let hi = reach.iter().map(|r| r.1).max().unwrap_or(0);
        if (lo, hi) != (0, 0) {
            halos.push((*axis, (lo, hi)));
        }
    }
    Some((broadcast, halos))
}

impl Order {
    fn halo(&self, axis: usize) -> (i128, i128) {
        let own = self.halos.iter().find(|(a, _)| *a == axis);
        own.map_or((0, 0), |(_, halo)| *halo)
    }

    pub fn write(&self, axes: &Axes, name: &str, system: &str, mut text: Text) -> Mapping {
        let names: Vec<&str> = axes.list.iter().map(|a| a.name.as_str()).collect();
        let form = |row: &Vec<i128>| {
            let terms: Vec<(i128, &str)> = row.iter().copied().zip(names.clone()).collect();
            combination(&terms)
        };
        let rows: Vec<NameExpr> = self.rows.iter().filter_map(form).collect();
        let by_name = |axis: &usize| NameExpr::name(axes.name(*axis));
        let sums: Vec<NameExpr> = self.sums.iter().map(by_name).collect();
        let mut steps = Vec::new();
        match self.arrangement {
            Arrangement::One => {
                steps.extend(rows);
                steps.extend(self.free.iter().map(by_name));
            }
            Arrangement::Lanes => {
                self.spread(axes, &mut text);
                steps.extend(rows);
            }
            Arrangement::Launches => {
                text.time(TimeLevel::Launch, rows);
                self.spread(axes, &mut text);
            }
            Arrangement::Block => {
                let is_parallel = |axis: &&usize| axes.list[**axis].role == Role::Parallel;
                let blocks = self.free.iter().filter(is_parallel).map(by_name).collect();
                text.place(PlaceLevel::Block, blocks);
                let others = self.free.iter().filter(|axis| !is_parallel(axis));
                let others: Vec<NameExpr> = others.map(by_name).collect();
                steps.extend(rows);
                if let Some((lane, others)) = others.split_last() {
                    text.place(PlaceLevel::Lane, vec![lane.clone()]);
                    steps.extend(others.iter().cloned());
                }
            }
        }
        steps.extend(sums);
        if steps.is_empty() {
            steps.push(NameExpr::int(0));
        }
        text.time(TimeLevel::Step, steps);
        for var in &self.broadcast {
            text.line(DirectiveKind::Broadcast {
                var: var.as_str().into(),
            });
        }
        text.finish(name, system)
    }

    /// The last free iterator on lanes, the others on blocks; iterators with a halo in rows of a
    /// lane.
    fn spread(&self, axes: &Axes, text: &mut Text) {
        let (mut blocks, mut lanes, mut regs) = (Vec::new(), Vec::new(), Vec::new());
        let last = self.free.last();
        for axis in &self.free {
            let own = axes.name(*axis);
            let halo = self.halo(*axis);
            let overlap = (halo != (0, 0)).then_some(halo);
            if last == Some(axis) {
                let owned = match overlap {
                    None => text.size(text.lanes, true),
                    // The number of vectors that keeps the overlap at half or less.
                    Some((lo, hi)) => {
                        let vectors = (2 * (lo + hi)) / text.lanes + 1;
                        NameExpr::int(vectors * text.lanes - lo - hi)
                    }
                };
                let (outer, inner) = text.tile_by(own, owned, overlap, false);
                blocks.push(NameExpr::name(outer));
                lanes.push(shifted(inner, halo.0));
            } else if overlap.is_some() {
                let (outer, inner) = text.tile_by(own, NameExpr::int(OWNED_ROWS), overlap, false);
                blocks.push(NameExpr::name(outer));
                regs.push(shifted(inner, halo.0));
            } else {
                blocks.push(NameExpr::name(own));
            }
        }
        text.place(PlaceLevel::Block, blocks);
        text.place(PlaceLevel::Lane, lanes);
        text.place(PlaceLevel::Reg, regs);
    }

    /// The choices, in words.
    pub fn choices(&self, axes: &Axes) -> Vec<(&'static str, String)> {
        let arrangement = match self.arrangement {
            Arrangement::One => "one PE",
            Arrangement::Lanes => "lanes",
            Arrangement::Launches => "launches",
            Arrangement::Block => "one block",
        };
        let form = |row: &Vec<i128>| {
            let names = axes.list.iter().map(|a| a.name.as_str());
            let terms: Vec<(i128, &str)> = row.iter().copied().zip(names).collect();
            combination(&terms).map_or("0".to_string(), |f| f.to_string())
        };
        let mut steps: Vec<String> = self.rows.iter().map(form).collect();
        steps.extend(self.sums.iter().map(|a| axes.name(*a).to_string()));
        vec![
            ("family", "orders".to_string()),
            ("arrangement", arrangement.to_string()),
            ("steps", steps.join(", ")),
        ]
    }
}

fn shifted(name: String, by: i128) -> NameExpr {
    match by {
        0 => NameExpr::name(name),
        by => plus(NameExpr::name(name), NameExpr::int(by)),
    }
}
