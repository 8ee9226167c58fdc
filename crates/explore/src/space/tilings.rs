//! Enumerates the tilings worth considering.

use systola_ir::mapping::Order;
use systola_ir::target::Machine;
use systola_lower::storage::partition::MOST_VECTORS;
use systola_rt::Deadline;

use super::axes::{Axes, Role};
use super::tiles::{BlockOrder, Rest, Split, Staging, Tiling, Unroll};

/// Elements of a lane, adjacent or with a stride.
const ROWS: [i128; 11] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16];
const VECTORS: [i128; 8] = [1, 2, 3, 4, 6, 8, 12, 16];
/// The same where lanes are threads, along the lanes.
const NEIGHBOURS: [i128; 10] = [1, 2, 4, 6, 8, 12, 14, 20, 24, 28];
/// Sizes of windows in shared memory.
const WINDOWS: [i128; 3] = [8, 16, 32];
/// The maximum number of unrolled statements.
const MAX_UNROLLED: i128 = 4096;
/// The maximum number of split iterators; the others are blocks.
const CUT: usize = 3;
/// The maximum number of orders of sums: those of four iterators.
const ORDERS: usize = 24;

/// Every tiling of a system for a machine; at the deadline, those of the shapes visited so far.
pub fn tilings(axes: &Axes, machine: &Machine, deadline: &Deadline) -> Vec<Tiling> {
    let parallel: Vec<usize> = axes.with_role(Role::Parallel).collect();
    let cut = &parallel[parallel.len().saturating_sub(CUT)..];
    let mut all = Vec::new();
    for vector in cut {
        let shapes = match machine.threads {
            None => vectors(axes, machine, &parallel, cut, *vector),
            Some(_) => threads(axes, machine, &parallel, cut, *vector),
        };
        for splits in shapes {
            if !all.is_empty() && deadline.is_over() {
                return all;
            }
            for order in orders(axes) {
                for skew in skews(axes, &splits, &order) {
                    let tiling = Tiling {
                        splits: splits.clone(),
                        vector: *vector,
                        order: order.clone(),
                        skew,
                        unroll: Unroll::Auto,
                        blocks: BlockOrder::Rows,
                        staging: None,
                        forward: None,
                    };
                    vary(axes, machine, tiling, &mut all);
                }
            }
        }
    }
    all
}

/// Lanes are a vector, along one iterator.
fn vectors(
    axes: &Axes,
    machine: &Machine,
    parallel: &[usize],
    cut: &[usize],
    vector: usize,
) -> Vec<Vec<Split>> {
    let lanes = i128::from(machine.lanes(axes.bits));
    let registers = machine.registers as i128;
    let fits =
        |splits: &[Split]| splits.iter().map(Split::registers).product::<i128>() <= registers;
    let options = |axis: usize| {
        let split = |low, high| Split {
            low,
            high,
            lanes: if axis == vector { lanes } else { 1 },
            ..Split::whole(axis)
        };
        if axis == vector {
            let fits = |v: &&i128| **v == 1 || **v * lanes <= axes.extent(axis);
            VECTORS.iter().filter(fits).map(|v| split(1, *v)).collect()
        } else if cut.contains(&axis) {
            let fits = |r: &&i128| **r <= axes.extent(axis);
            ROWS.iter().filter(fits).map(|r| split(*r, 1)).collect()
        } else {
            vec![Split::whole(axis)]
        }
    };
    product(parallel, &options, &fits)
}

/// Lanes are threads, along up to two iterators; warps are digits of their tiles.
fn threads(
    axes: &Axes,
    machine: &Machine,
    parallel: &[usize],
    cut: &[usize],
    vector: usize,
) -> Vec<Vec<Split>> {
    let lanes = i128::from(machine.lanes(axes.bits));
    let most_warps = machine.threads.map_or(1, |t| i128::from(t.warps)).min(8);
    let options = |axis: usize| -> Vec<Split> {
        if !cut.contains(&axis) {
            return vec![Split::whole(axis)];
        }
        let mut list = Vec::new();
        let is_vector = axis == vector;
        let own_lanes: Vec<i128> = if is_vector {
            vec![lanes, lanes / 2, lanes / 4]
        } else {
            vec![1, 2, 4]
        };
        let lows: &[i128] = if is_vector {
            &NEIGHBOURS
        } else {
            &[1, 2, 4, 8, 16]
        };
        for own in own_lanes.into_iter().filter(|l| *l >= 1) {
            for low in lows {
                for high in [1, 2] {
                    for warps in [1, 2, 4, 8] {
                        let split = Split {
                            axis,
                            low: *low,
                            lanes: own,
                            high,
                            warps,
                            rest: Rest::Block,
                        };
                        let fits = split.tile() * warps <= 2 * axes.extent(axis);
                        if warps <= most_warps && fits {
                            list.push(split);
                        }
                    }
                }
            }
        }
        list
    };
    // A combination that exceeds the limits for some iterators exceeds them for all.
    let fits = |splits: &[Split]| {
        let all = |f: fn(&Split) -> i128| splits.iter().map(f).product::<i128>();
        all(|s| s.lanes) <= lanes
            && all(|s| s.warps) <= most_warps
            && all(Split::registers) <= MOST_VECTORS
    };
    product(parallel, &options, &fits)
        .into_iter()
        .filter(|splits| {
            splits.iter().map(|s| s.lanes).product::<i128>() == lanes
                && (parallel.len() == 1 || splits.iter().filter(|s| s.high > 1).count() != 1)
        })
        .collect()
}

/// One option for each iterator, in all combinations that fit; every part of a combination that
/// fits also fits.
fn product(
    axes: &[usize],
    options: &dyn Fn(usize) -> Vec<Split>,
    fits: &dyn Fn(&[Split]) -> bool,
) -> Vec<Vec<Split>> {
    let mut all = vec![Vec::new()];
    for axis in axes {
        let own = options(*axis);
        let longer = all.iter().flat_map(|splits: &Vec<Split>| {
            own.iter().map(move |split| {
                let mut splits = splits.clone();
                splits.push(*split);
                splits
            })
        });
        all = longer.filter(|splits| fits(splits)).collect();
    }
    all
}

/// Recurrences as they are written, then sums in any order.
fn orders(axes: &Axes) -> Vec<Vec<usize>> {
    let recurrent: Vec<usize> = axes.with_role(Role::Recurrent).collect();
    let reduced = axes.with_role(Role::Reduced);
    let reduced: Vec<usize> = reduced.filter(|a| !axes.is_unrolled(*a)).collect();
    let mut all = Vec::new();
    for order in permutations(&reduced, ORDERS) {
        let mut list = recurrent.clone();
        list.extend(order);
        all.push(list);
    }
    all
}

/// The first permutations of a list, at most `most`.
pub fn permutations(list: &[usize], most: usize) -> Vec<Vec<usize>> {
    if list.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (n, first) in list.iter().enumerate() {
        if all.len() >= most {
            break;
        }
        let mut rest = list.to_vec();
        rest.remove(n);
        for order in permutations(&rest, most.saturating_sub(all.len())) {
            let mut whole = vec![*first];
            whole.extend(order);
            all.push(whole);
        }
    }
    all.truncate(most);
    all
}

/// No skew, each single skew that gathers the uses of an element in one step, and all of them.
fn skews(axes: &Axes, splits: &[Split], order: &[usize]) -> Vec<Vec<(usize, usize)>> {
    let mut pairs = Vec::new();
    for axis in order {
        if axes.list[*axis].role != Role::Reduced {
            continue;
        }
        let shares = |split: &&Split| {
            let only_low = split.low > 1 && split.lanes == 1 && split.high == 1;
            let reads_the_sum = |row: &Vec<i128>| row[*axis] != 0 && row[*axis] == row[split.axis];
            only_low
                && axes
                    .reads
                    .iter()
                    .any(|r| r.matrix.iter().any(reads_the_sum))
        };
        if let Some(split) = splits.iter().find(shares) {
            pairs.push((*axis, split.axis));
        }
    }
    let mut all = vec![Vec::new()];
    all.extend(pairs.iter().map(|pair| vec![*pair]));
    if pairs.len() > 1 {
        all.push(pairs);
    }
    all
}

/// Variants of a tiling: unrolled steps, staged or forwarded inputs, and other orders of the
/// blocks.
fn vary(axes: &Axes, machine: &Machine, tiling: Tiling, all: &mut Vec<Tiling>) {
    let reduced: Vec<usize> = tiling
        .order
        .iter()
        .copied()
        .filter(|a| axes.list[*a].role == Role::Reduced)
        .collect();
    let taps: i128 = reduced.iter().map(|a| axes.extent(*a)).product();
    let constant = |axis: &usize| axes.list[*axis].constant;
    let mut unrolls = Vec::new();
    if !reduced.is_empty() && reduced.iter().all(constant) {
        if taps * tiling.registers() <= MAX_UNROLLED {
            unrolls.push(Unroll::All);
        }
        let fits = |axis: Option<&usize>| {
            axis.is_some_and(|a| axes.extent(*a) * tiling.registers() <= MAX_UNROLLED)
        };
        if reduced.len() > 1 && fits(reduced.last()) {
            unrolls.push(Unroll::Innermost);
        }
        if reduced.len() > 1 && machine.threads.is_none() && fits(reduced.first()) {
            unrolls.push(Unroll::Outermost);
        }
    }
    // Registers of threads cannot be indexed: a loop that is not unrolled explicitly can be slow.
    if reduced.len() < 2 || unrolls.is_empty() || machine.threads.is_none() {
        unrolls.push(Unroll::Auto);
    }
    let blocks = tiling.splits.iter().filter(|s| s.rest == Rest::Block);
    let two_orders = machine.threads.is_some() && blocks.count() > 1;
    let orders: &[BlockOrder] = if two_orders {
        &[BlockOrder::Rows, BlockOrder::Columns]
    } else {
        &[BlockOrder::Rows]
    };
    for unroll in &unrolls {
        for blocks in orders {
            let mut varied = tiling.clone();
            varied.unroll = *unroll;
            varied.blocks = *blocks;
            all.push(varied);
        }
    }
    for staging in stagings(axes, machine, &tiling) {
        let mut staged = tiling.clone();
        if let Staging::Panel { input, .. } = &staging {
            // Iterators that do not index the panel advance while it is in shared memory.
            for split in &mut staged.splits {
                let read = axes.reads.iter().find(|r| r.name == *input);
                if split.axis != tiling.vector && read.is_some_and(|r| !r.uses(split.axis)) {
                    split.rest = Rest::Time;
                }
            }
        }
        staged.staging = Some(staging);
        all.push(staged);
    }
    for forward in forwards(axes, &tiling) {
        let mut varied = tiling.clone();
        varied.forward = Some(forward);
        all.push(varied);
    }
}

fn stagings(axes: &Axes, machine: &Machine, tiling: &Tiling) -> Vec<Staging> {
    let mut list = Vec::new();
    if !tiling.skew.is_empty() {
        return list;
    }
    let cut: Vec<&usize> = tiling.splits.iter().map(|s| &s.axis).collect();
    if machine.threads.is_none() {
        for read in &axes.reads {
            let others = cut.iter().any(|a| **a != tiling.vector && !read.uses(**a));
            let panel = Staging::Panel {
                input: read.name.clone(),
                axis: tiling.vector,
            };
            let reduced = axes.with_role(Role::Reduced).any(|a| read.uses(a));
            if read.uses(tiling.vector) && reduced && others && !list.contains(&panel) {
                list.push(panel);
            }
        }
        return list;
    }
    for axis in &tiling.order {
        let long = axes.list[*axis].role == Role::Reduced && axes.extent(*axis) >= 64;
        let used = |r: &&super::axes::Read| r.uses(*axis) && cut.iter().any(|a| r.uses(**a));
        let reads: Vec<_> = axes.reads.iter().filter(used).collect();
        if !long || reads.is_empty() {
            continue;
        }
        let columns = |columns: bool| -> Vec<(String, Order)> {
            let order = |r: &&super::axes::Read| {
                let along = r.matrix.last().is_some_and(|row| row[*axis] != 0);
                let order = if columns && along && r.matrix.len() > 1 {
                    Order::Columns
                } else {
                    Order::Rows
                };
                (r.name.clone(), order)
            };
            reads.iter().map(order).collect()
        };
        for size in WINDOWS {
            for stages in [2, 3] {
                let rows = columns(false);
                let by_columns = columns(true);
                let mut layouts = vec![rows.clone()];
                if by_columns != rows {
                    layouts.push(by_columns);
                }
                for inputs in layouts {
                    list.push(Staging::Windows {
                        axis: *axis,
                        size,
                        stages,
                        inputs,
                    });
                }
            }
        }
    }
    list
}

/// Inputs that lanes can forward to their neighbours as a sum advances.
fn forwards(axes: &Axes, tiling: &Tiling) -> Vec<(String, Vec<i128>)> {
    let mut list = Vec::new();
    if !tiling.skew.is_empty() {
        return list;
    }
    for read in &axes.reads {
        for reduced in axes.with_role(Role::Reduced) {
            let mut e = vec![0; axes.list.len()];
            e[reduced] = 1;
            e[tiling.vector] = -1;
            let forward = (read.name.clone(), e);
            if read.uses(reduced) && read.ignores(&forward.1) && !list.contains(&forward) {
                list.push(forward);
            }
        }
    }
    list
}
