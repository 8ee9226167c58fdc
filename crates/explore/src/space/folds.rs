//! Sums in stages: every lane adds up terms over time, then the registers of a lane are added up,
//! then the lanes, then the blocks.
//!
//! Lanes lie along the sum where the last axis of an input is summed over, so that neighbours read
//! neighbouring elements; several short sums share a warp. Elsewhere lanes lie along the last
//! parallel iterator. Blocks lie along the sum where there are few sums.
//!
//! A CPU prefetches within a page. So that it reads several pages at a time, its lanes have several
//! sums each, which also share what they read in common, or terms that are a page apart.

use systola_ir::mapping::{
    Direction, DirectiveKind, Mapping, Name, NameExpr, PlaceLevel, SumStage, TimeLevel,
};
use systola_ir::target::Machine;

use super::axes::{Axes, Role};
use super::text::{Text, plus, times};

/// Warps of a block, each with sums of its own.
const WARPS: [i128; 2] = [8, 4];
/// Sums of a lane of a CPU, and terms of each, in registers.
const SEVERAL: [(i128, i128); 2] = [(4, 2), (8, 1)];
/// Terms of a lane of a CPU in registers that are a page apart,
const PAGES: i128 = 8;
/// and bytes of a page, the smallest (Intel's and Arm's manuals).
const PAGE: i128 = 4096;
/// Steps through such pages in a block along the sum.
const PAGE_STEPS: [i128; 3] = [4, 2, 8];
/// Terms of a sum that a lane has in registers.
const REGISTERS: [i128; 3] = [4, 8, 1];
/// Steps that are written one after the other, so that their loads are on the way together.
const UNROLL: [u64; 2] = [4, 8];
/// Steps of a lane in a block along the sum.
const STEPS: [i128; 4] = [128, 64, 256, 32];
/// More sums than this are enough blocks.
const MANY_SUMS: i128 = 16384;

/// Where the lanes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lanes {
    /// This many along the sum; the other lanes of a warp have sums of their own.
    Along(i128),
    /// All along this parallel iterator.
    Parallel(usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fold {
    /// The iterator of the sums that is cut.
    axis: usize,
    lanes: Lanes,
    registers: i128,
    /// Sums that a lane has in registers.
    sums: i128,
    /// The terms in registers are this many terms apart, not neighbouring vectors.
    apart: Option<i128>,
    /// Neighbouring terms are in the registers of one lane, not in neighbouring lanes.
    neighbours_in_registers: bool,
    /// The iterator whose sums share a block, and the warps of a block.
    warps: Option<(usize, i128)>,
    /// Terms of a block along the sum.
    block: Option<i128>,
    unroll: u64,
}

pub fn folds(axes: &Axes, machine: &Machine, lanes: i128) -> Vec<Fold> {
    let Some(axis) = folded(axes) else {
        return Vec::new();
    };
    let parallel: Vec<usize> = axes.with_role(Role::Parallel).collect();
    let n_sums: i128 = parallel.iter().map(|a| axes.extent(*a)).product();
    let last = parallel.last().copied();
    let mut list = Vec::new();
    let placed: Vec<Lanes> = if is_contiguous(axes, axis) {
        let narrower = |n: &i128| *n >= 4.min(lanes);
        let halves = std::iter::successors(Some(lanes), |n| Some(n / 2)).take_while(narrower);
        // Fewer lanes only where sums share a warp.
        halves
            .take(if last.is_some() { 8 } else { 1 })
            .map(Lanes::Along)
            .collect()
    } else {
        last.into_iter().map(Lanes::Parallel).collect()
    };
    // Threads read wide words from neighbouring elements; vectors are neighbouring elements.
    let in_registers = machine.threads.is_some();
    if !in_registers && placed.contains(&Lanes::Along(lanes)) {
        list.extend(of_pages(axes, axis, lanes, last, n_sums));
    }
    for placed in placed {
        for registers in REGISTERS {
            for unroll in UNROLL {
                let step = registers
                    * match placed {
                        Lanes::Along(n) => n,
                        Lanes::Parallel(_) => 1,
                    };
                if step > 2 * axes.extent(axis) {
                    continue;
                }
                let fold = Fold {
                    axis,
                    lanes: placed,
                    registers,
                    sums: 1,
                    apart: None,
                    neighbours_in_registers: in_registers,
                    warps: None,
                    block: None,
                    unroll,
                };
                let all_lanes = placed != Lanes::Along(lanes);
                if let Some(last) = last {
                    for warps in WARPS {
                        let shared = machine.threads.is_some() && warps <= axes.extent(last);
                        let warps = if shared { warps } else { 1 };
                        list.push(Fold {
                            warps: Some((last, warps)),
                            ..fold.clone()
                        });
                        if !shared {
                            break;
                        }
                    }
                }
                if n_sums < MANY_SUMS && (!all_lanes || matches!(placed, Lanes::Parallel(_))) {
                    for steps in STEPS {
                        if steps * step < axes.extent(axis) {
                            list.push(Fold {
                                block: Some(steps * step),
                                ..fold.clone()
                            });
                        }
                    }
                }
            }
        }
    }
    list
}

/// Those that read several pages at a time.
fn of_pages(axes: &Axes, axis: usize, lanes: i128, last: Option<usize>, n_sums: i128) -> Vec<Fold> {
    let mut list = Vec::new();
    for unroll in UNROLL {
        let fold = Fold {
            axis,
            lanes: Lanes::Along(lanes),
            registers: PAGES,
            sums: 1,
            apart: None,
            neighbours_in_registers: false,
            warps: last.map(|last| (last, 1)),
            block: None,
            unroll,
        };
        for (sums, registers) in SEVERAL {
            let fits = |last: usize| 2 * sums <= axes.extent(last);
            if last.is_some_and(fits) && registers * lanes < 2 * axes.extent(axis) {
                list.push(Fold {
                    registers,
                    sums,
                    ..fold.clone()
                });
            }
        }
        let page = PAGE * 8 / i128::from(axes.bits);
        let step = PAGES * page;
        if page % lanes != 0 || step > axes.extent(axis) {
            continue;
        }
        let apart = Fold {
            apart: Some(page),
            ..fold
        };
        if n_sums < MANY_SUMS {
            for steps in PAGE_STEPS {
                if steps * step < axes.extent(axis) {
                    list.push(Fold {
                        block: Some(steps * step),
                        ..apart.clone()
                    });
                }
            }
        }
        if last.is_some() {
            list.push(apart);
        }
    }
    list
}

/// The iterator that all sums run over and that inputs are read along; the last axis of an input
/// first. None: there are recurrences, or sums over different iterators.
fn folded(axes: &Axes) -> Option<usize> {
    let first = axes.sums.first()?;
    // Sums over iterators of the same names and ranges share them.
    let alike = axes.sums.iter().all(|sum| {
        let same = |(a, b): (&usize, &usize)| {
            axes.name(*a) == axes.name(*b) && axes.list[*a].range == axes.list[*b].range
        };
        sum.axes.len() == first.axes.len() && sum.axes.iter().zip(&first.axes).all(same)
    });
    if !alike || !axes.distances.is_empty() || axes.with_role(Role::Recurrent).next().is_some() {
        return None;
    }
    let mut candidates = first.axes.iter().copied().filter(|a| !axes.is_unrolled(*a));
    let longest = first.axes.iter().copied().max_by_key(|a| axes.extent(*a));
    let contiguous = candidates.find(|a| is_contiguous(axes, *a));
    contiguous.or(longest.filter(|a| !axes.is_unrolled(*a)))
}

/// Are neighbouring terms neighbouring elements of an input with the most axes?
fn is_contiguous(axes: &Axes, axis: usize) -> bool {
    let rank = axes.reads.iter().map(|read| read.matrix.len()).max();
    let mut largest = axes
        .reads
        .iter()
        .filter(|read| Some(read.matrix.len()) == rank);
    largest.any(|read| {
        let last = read.matrix.last();
        last.is_some_and(|row| row[axis].abs() == 1)
    })
}

impl Fold {
    pub fn write(&self, axes: &Axes, name: &str, system: &str, mut text: Text) -> Mapping {
        let lanes = text.lanes;
        let mut blocks = Vec::new();
        let mut warp = None;
        let mut lane = None;
        let mut registers = Vec::new();
        let own = match self.lanes {
            Lanes::Along(n) => lanes / n.max(1),
            Lanes::Parallel(_) => 1,
        };
        for axis in axes.with_role(Role::Parallel) {
            if self.sums > 1 && self.warps.is_some_and(|(last, _)| last == axis) {
                let (outer, inner) = text.tile(axes.name(axis), self.sums, false);
                blocks.push(NameExpr::name(outer));
                registers.push(NameExpr::name(inner));
                continue;
            }
            let of_block = match (self.warps, self.lanes) {
                (_, Lanes::Parallel(last)) if last == axis => lanes,
                (Some((last, warps)), _) if last == axis => warps * own,
                _ => 1,
            };
            if of_block == 1 {
                blocks.push(NameExpr::name(axes.name(axis)));
                continue;
            }
            if let Lanes::Parallel(last) = self.lanes
                && last == axis
            {
                let warps = self.warps.map_or(1, |(_, warps)| warps);
                let size = lanes * warps;
                let (outer, inner) = text.tile(axes.name(axis), size, true);
                blocks.push(NameExpr::name(outer));
                lane = Some(text.digit(&inner, 1, lanes, size, true));
                warp = (warps > 1).then(|| text.digit(&inner, lanes, warps, size, true));
                continue;
            }
            let warps = of_block / own;
            let (outer, inner) = text.tile(axes.name(axis), of_block, false);
            blocks.push(NameExpr::name(outer));
            warp = (warps > 1).then(|| text.digit(&inner, own, warps, of_block, false));
            lane = (own > 1).then(|| text.digit(&inner, 1, own, of_block, false));
        }

        let along = match self.lanes {
            Lanes::Along(n) => n,
            Lanes::Parallel(_) => 1,
        };
        let mut stages = Vec::new();
        let mut trees: Vec<Name> = Vec::new();
        // Names for the digits of j: `bj` blocks, `tj` steps, `lj` lanes, `rj` registers.
        let axis = axes.name(self.axis);
        let named = |outer: &str, inner: &str| [format!("{outer}{axis}"), format!("{inner}{axis}")];
        let cut = |text: &mut Text, what: &str, size: i128, names: [String; 2]| {
            let size = text.size(size, along == lanes);
            text.tile_named(what, size, names, None, false)
        };
        let mut term = axis.to_string();
        let mut of_block = None;
        if let Some(size) = self.block {
            let (outer, inner) = cut(&mut text, &term, size, named("b", axis));
            blocks.push(NameExpr::name(&outer));
            of_block = Some(outer);
            term = inner;
        }
        let mut steps = term.clone();
        let mut pages = None;
        if let Some(apart) = self.apart {
            let (outer, inner) = cut(&mut text, &term, apart * self.registers, named("t", "x"));
            let (register, page) = cut(&mut text, &inner, apart, named("r", "y"));
            let (step, on_lanes) = cut(&mut text, &page, along, named("s", "l"));
            trees.extend([register.as_str().into(), on_lanes.as_str().into()]);
            registers.push(NameExpr::name(register));
            lane = Some(NameExpr::name(on_lanes));
            pages = Some(outer);
            steps = step;
        } else if along * self.registers > 1 {
            let (outer, inner) = {
                let names = match (along, self.registers) {
                    (1, _) => named("t", "r"),
                    (_, 1) => named("t", "l"),
                    (_, _) => named("t", "x"),
                };
                cut(&mut text, &term, along * self.registers, names)
            };
            steps = outer;
            let (on_lanes, in_registers) = if self.registers == 1 {
                (Some(inner), None)
            } else if along == 1 {
                (None, Some(inner))
            } else if self.neighbours_in_registers {
                let (outer, inner) = cut(&mut text, &inner, self.registers, named("l", "r"));
                (Some(outer), Some(inner))
            } else {
                let (outer, inner) = cut(&mut text, &inner, along, named("r", "l"));
                (Some(inner), Some(outer))
            };
            trees.extend(in_registers.iter().map(|n| n.as_str().into()));
            trees.extend(on_lanes.iter().map(|n| n.as_str().into()));
            registers.extend(in_registers.map(NameExpr::name));
            if let Some(part) = on_lanes.map(NameExpr::name) {
                lane = Some(match lane {
                    Some(row) => plus(times(along, row), part),
                    None => part,
                });
            }
        }
        trees.extend(of_block.iter().map(|n| n.as_str().into()));

        let others: Vec<usize> = axes.sums.first().map_or(Vec::new(), |sum| {
            let others = sum.axes.iter().filter(|a| **a != self.axis);
            others.copied().collect()
        });
        let mut order: Vec<(Name, Direction)> = others
            .iter()
            .rev()
            .map(|a| (axes.name(*a).into(), Direction::Up))
            .collect();
        order.push((steps.as_str().into(), Direction::Up));
        order.extend(pages.iter().map(|n| (n.as_str().into(), Direction::Up)));
        stages.push(SumStage::Along(order));
        if !trees.is_empty() {
            stages.push(SumStage::Tree(trees));
        }
        for sum in &axes.sums {
            text.line(DirectiveKind::Sum {
                var: sum.var.as_str().into(),
                stages: stages.clone(),
            });
        }
        text.place(PlaceLevel::Block, blocks);
        text.place(PlaceLevel::Warp, warp.into_iter().collect());
        text.place(PlaceLevel::Lane, lane.into_iter().collect());
        text.place(PlaceLevel::Reg, registers);
        let mut time: Vec<NameExpr> = pages.iter().map(NameExpr::name).collect();
        time.push(NameExpr::name(&steps));
        time.extend(others.iter().map(|a| NameExpr::name(axes.name(*a))));
        text.time(TimeLevel::Step, time);
        if others.is_empty() {
            text.unroll(&steps, Some(self.unroll));
        }
        text.finish(name, system)
    }

    /// The choices, in words.
    pub fn choices(&self, axes: &Axes) -> Vec<(&'static str, String)> {
        let name = axes.name(self.axis);
        let lanes = match self.lanes {
            Lanes::Along(n) => format!("{n} {name}"),
            Lanes::Parallel(axis) => axes.name(axis).to_string(),
        };
        let mut list = vec![
            ("family", "folds".to_string()),
            ("lanes", lanes),
            ("registers", format!("{} {name}", self.registers)),
        ];
        if self.sums > 1 {
            list.push(("sums of a lane", self.sums.to_string()));
        }
        list.extend(self.apart.map(|n| ("apart", format!("{n} {name}"))));
        list.extend(self.warps.map(|(_, n)| ("warps", n.to_string())));
        list.extend(self.block.map(|n| ("blocks", format!("of {n} {name}"))));
        list.push(("unrolled", self.unroll.to_string()));
        list
    }
}
