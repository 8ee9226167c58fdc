//! Output-stationary designs: every parallel iterator is split into digits for registers, lanes,
//! warps and blocks, and sums and recurrences run in time.
//!
//! An index x = bx · T + xx of a tile of T = low · lanes · high has the digits
//!
//! ```text
//! xx = (high digit · lanes + lane digit) · low + low digit
//! ```
//!
//! The low and the high digit are registers: neighbouring elements of a lane, and elements that are
//! a whole row of lanes apart. Warps are a digit of bx. Where an input is read at r + p, with r in
//! registers and p of a sum, the step may be r + p instead of p: then all uses of an element happen
//! in one step.

use systola_ir::mapping::{
    Engine, Layout, Mapping, NameExpr, NameOp, Order, PlaceLevel, Rows, TimeLevel,
};

use super::axes::{Axes, Role};
use super::text::{Text, plus, times};

/// How a parallel iterator is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Split {
    pub axis: usize,
    pub low: i128,
    pub lanes: i128,
    pub high: i128,
    pub warps: i128,
    pub rest: Rest,
}

impl Split {
    pub fn whole(axis: usize) -> Split {
        Split {
            axis,
            low: 1,
            lanes: 1,
            high: 1,
            warps: 1,
            rest: Rest::Block,
        }
    }

    pub fn tile(&self) -> i128 {
        self.low * self.lanes * self.high
    }

    pub fn registers(&self) -> i128 {
        self.low * self.high
    }
}

/// The placement of the tiles of an iterator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rest {
    Block,
    /// In sequence, as the outermost loop.
    Time,
}

/// Which steps are unrolled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unroll {
    /// The compiler decides.
    Auto,
    All,
    /// The innermost one; the others are loops.
    Innermost,
    /// The outermost one; the compiler decides on the others.
    Outermost,
}

/// The order of the blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockOrder {
    /// The last iterator runs fastest.
    Rows,
    Columns,
}

/// Inputs staged in shared memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Staging {
    /// These inputs, in windows of `size` values of an iterator of a sum; the next windows are
    /// copied while the current one is used.
    Windows {
        axis: usize,
        size: i128,
        stages: u64,
        /// Names, and whether they are stored by columns.
        inputs: Vec<(String, Order)>,
    },
    /// This input, once per block and tile of an iterator.
    Panel { input: String, axis: usize },
}

/// One mapping of this family.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tiling {
    /// Of all parallel iterators.
    pub splits: Vec<Split>,
    /// The iterator along which neighbouring lanes are neighbours in memory.
    pub vector: usize,
    /// Iterators of sums and recurrences, outermost first.
    pub order: Vec<usize>,
    /// Pairs of an iterator of a sum and one in registers: the step of the first is the sum of
    /// both.
    pub skew: Vec<(usize, usize)>,
    pub unroll: Unroll,
    pub blocks: BlockOrder,
    pub staging: Option<Staging>,
    /// An input by name, and the direction in which it is forwarded.
    pub forward: Option<(String, Vec<i128>)>,
}

impl Tiling {
    pub fn split(&self, axis: usize) -> Option<&Split> {
        self.splits.iter().find(|s| s.axis == axis)
    }

    pub fn warps(&self) -> i128 {
        self.splits.iter().map(|s| s.warps).product()
    }

    pub fn lanes(&self) -> i128 {
        self.splits.iter().map(|s| s.lanes).product()
    }

    /// Values of a lane at a time.
    pub fn registers(&self) -> i128 {
        self.splits.iter().map(Split::registers).product()
    }

    pub fn write(&self, axes: &Axes, name: &str, system: &str, mut text: Text) -> Mapping {
        let names = Names::declare(self, axes, &mut text);
        let outer_time = self.write_places(&names, &mut text);
        let steps = self.write_time(outer_time, &names, axes, &mut text);
        self.write_transfers(&names, &mut text);
        if let Some((input, along)) = &self.forward {
            text.forward(input, along);
        }
        for sum in &axes.sums {
            let own = self.order.iter().rev().filter(|a| sum.axes.contains(a));
            let own: Vec<&str> = own.map(|a| axes.name(*a)).collect();
            text.sum(&sum.var, &own);
        }
        self.write_unrolls(&steps, &mut text);
        text.finish(name, system)
    }

    /// Returns the tiles that run in sequence, for the outermost loops.
    fn write_places(&self, names: &Names, text: &mut Text) -> Vec<NameExpr> {
        let mut blocks = Vec::new();
        let mut warps = Vec::new();
        let mut outer_time = Vec::new();
        let mut regs = Vec::new();
        let mut lane_digits: Vec<(usize, NameExpr, i128)> = Vec::new();
        for (split, Tile { outer, inner, .. }) in self.splits.iter().zip(&names.tiles) {
            let rest = match split.warps {
                1 => NameExpr::name(outer),
                n => NameExpr::binary(NameOp::Div, NameExpr::name(outer), NameExpr::int(n)),
            };
            if split.warps > 1 {
                let modulo = NameExpr::int(split.warps);
                warps.push(NameExpr::binary(NameOp::Mod, NameExpr::name(outer), modulo));
            }
            match split.rest {
                Rest::Block => blocks.push(rest),
                Rest::Time => outer_time.push(rest),
            }
            let (all, whole) = (split.tile(), split.lanes == text.lanes);
            if split.high > 1 {
                regs.push(text.digit(inner, split.low * split.lanes, split.high, all, whole));
            }
            if split.low > 1 {
                regs.push(text.digit(inner, 1, split.low, all, whole));
            }
            if split.lanes > 1 {
                let digit = text.digit(inner, split.low, split.lanes, all, whole);
                lane_digits.push((split.axis, digit, split.lanes));
            }
        }
        if self.blocks == BlockOrder::Columns {
            blocks.reverse();
        }
        text.place(PlaceLevel::Block, blocks);
        text.place(PlaceLevel::Warp, warps);
        text.place(PlaceLevel::Lane, self.lane_form(lane_digits));
        text.place(PlaceLevel::Reg, regs);
        outer_time
    }

    fn write_time(
        &self,
        outer_time: Vec<NameExpr>,
        names: &Names,
        axes: &Axes,
        text: &mut Text,
    ) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut time = outer_time;
        if let Some(window) = &names.window {
            time.push(NameExpr::name(&window.outer));
        }
        for axis in &self.order {
            let own = match &names.window {
                Some(window) if window.axis == *axis => window.inner.as_str(),
                _ => axes.name(*axis),
            };
            let is_sum = axes.list[*axis].role == Role::Reduced;
            let skewed = self.skew.iter().find(|(reduced, _)| reduced == axis);
            let (name, form) = match skewed.and_then(|(_, parallel)| names.tile(*parallel)) {
                Some(Tile { inner, .. }) => {
                    let name = match time.len() {
                        0 => "time".to_string(),
                        n => format!("time{n}"),
                    };
                    (name, plus(NameExpr::name(inner), NameExpr::name(own)))
                }
                None => (own.to_string(), NameExpr::name(own)),
            };
            steps.push(Step { name, is_sum });
            time.push(form);
        }
        if time.is_empty() {
            // A point is one step.
            time.push(NameExpr::int(0));
        }
        text.time(TimeLevel::Step, time);
        steps
    }

    fn write_transfers(&self, names: &Names, text: &mut Text) {
        match &self.staging {
            None => {}
            Some(Staging::Windows { stages, inputs, .. }) => {
                let at = names.window.as_ref().map_or("", |tile| &tile.outer);
                for (input, order) in inputs {
                    let layout = Layout {
                        order: *order,
                        rows: Rows::Chosen,
                    };
                    text.transfer(input, at, *stages, layout, Engine::CpAsync);
                }
            }
            Some(Staging::Panel { input, axis }) => {
                let at = names.tile(*axis).map_or("", |tile| &tile.outer);
                text.transfer(input, at, 1, Layout::default(), Engine::Plain);
            }
        }
    }

    fn write_unrolls(&self, steps: &[Step], text: &mut Text) {
        let first = steps.iter().position(|step| step.is_sum);
        let last = steps.len().saturating_sub(1);
        for (n, Step { name, .. }) in steps.iter().enumerate().filter(|(_, step)| step.is_sum) {
            match self.unroll {
                Unroll::All => text.unroll(name, None),
                Unroll::Innermost if n == last => text.unroll(name, None),
                Unroll::Innermost => text.unroll(name, Some(1)),
                Unroll::Outermost if Some(n) == first => text.unroll(name, None),
                Unroll::Auto | Unroll::Outermost => {}
            }
        }
    }

    /// The choices, in words.
    pub fn choices(&self, axes: &Axes) -> Vec<(&'static str, String)> {
        let parts = |f: fn(&Split) -> i128| {
            let list: Vec<String> = self
                .splits
                .iter()
                .filter(|s| f(s) > 1)
                .map(|s| format!("{} {}", f(s), axes.name(s.axis)))
                .collect();
            if list.is_empty() {
                "1".to_string()
            } else {
                list.join(" × ")
            }
        };
        let step = |axis: &usize| match self.skew.iter().find(|(p, _)| p == axis) {
            Some((_, r)) => format!("{} + {}", axes.name(*r), axes.name(*axis)),
            None => axes.name(*axis).to_string(),
        };
        let mut steps: Vec<String> = self.order.iter().map(step).collect();
        if steps.is_empty() {
            steps.push("one".to_string());
        }
        let inputs = match (&self.staging, &self.forward) {
            (Some(Staging::Panel { input, .. }), _) => format!("{input} once per block"),
            (Some(Staging::Windows { size, stages, .. }), _) => {
                format!("windows of {size}, {stages} stages")
            }
            (None, Some((input, _))) => format!("{input} forwarded"),
            (None, None) => "read".to_string(),
        };
        vec![
            ("family", "tiles".to_string()),
            ("lanes", parts(|s| s.lanes)),
            ("registers", parts(Split::registers)),
            ("warps", parts(|s| s.warps)),
            ("steps", steps.join(", ")),
            (
                "unrolled",
                match self.unroll {
                    Unroll::Auto => "as it fits",
                    Unroll::All => "all",
                    Unroll::Innermost => "innermost",
                    Unroll::Outermost => "outermost",
                }
                .to_string(),
            ),
            ("inputs", inputs),
        ]
    }

    /// Digits of several iterators as one number, that of the vector iterator first.
    fn lane_form(&self, mut digits: Vec<(usize, NameExpr, i128)>) -> Vec<NameExpr> {
        digits.sort_by_key(|(axis, ..)| *axis != self.vector);
        let mut stride = 1;
        let mut sum: Option<NameExpr> = None;
        for (_, digit, radix) in digits {
            let term = match stride {
                1 => digit,
                k => times(k, digit),
            };
            sum = Some(match sum {
                None => term,
                Some(sum) => plus(sum, term),
            });
            stride *= radix;
        }
        sum.into_iter().collect()
    }
}

/// The names of the two parts of a tiled iterator.
struct Tile {
    axis: usize,
    outer: String,
    inner: String,
}

/// The names that a mapping introduces.
struct Names {
    /// Of all splits, in order. An iterator that is not tiled keeps its name as the outer one.
    tiles: Vec<Tile>,
    /// The windows of staged inputs.
    window: Option<Tile>,
}

impl Names {
    fn declare(tiling: &Tiling, axes: &Axes, text: &mut Text) -> Names {
        let lanes = text.lanes;
        let mut tile = |axis: usize, size: i128, all_lanes: bool| {
            let (outer, inner) = text.tile(axes.name(axis), size, all_lanes);
            Tile { axis, outer, inner }
        };
        let of_split = |split: &Split| match split.tile() {
            ..=1 => Tile {
                axis: split.axis,
                outer: axes.name(split.axis).to_string(),
                inner: String::new(),
            },
            size => tile(split.axis, size, split.lanes == lanes),
        };
        let tiles = tiling.splits.iter().map(of_split).collect();
        let window = match &tiling.staging {
            Some(Staging::Windows { axis, size, .. }) => Some(tile(*axis, *size, false)),
            Some(Staging::Panel { .. }) | None => None,
        };
        Names { tiles, window }
    }

    fn tile(&self, axis: usize) -> Option<&Tile> {
        self.tiles.iter().find(|tile| tile.axis == axis)
    }
}

/// A step in time, named for `unroll`.
struct Step {
    name: String,
    is_sum: bool,
}
