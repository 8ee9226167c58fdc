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
        let mut names: Vec<(usize, String, String)> = Vec::new();
        for split in &self.splits {
            let axis = axes.name(split.axis);
            if split.tile() > 1 {
                let (outer, inner) = text.tile(axis, split.tile(), split.lanes == text.lanes);
                names.push((split.axis, outer, inner));
            } else {
                names.push((split.axis, axis.to_string(), String::new()));
            }
        }
        let named = |axis: usize| names.iter().find(|(a, ..)| *a == axis);
        let mut window = None;
        if let Some(Staging::Windows { axis, size, .. }) = &self.staging {
            let (outer, inner) = text.tile(axes.name(*axis), *size, false);
            window = Some((*axis, outer, inner));
        }

        let mut blocks = Vec::new();
        let mut warps = Vec::new();
        let mut outer_time = Vec::new();
        let mut regs = Vec::new();
        let mut lane_digits: Vec<(usize, NameExpr, i128)> = Vec::new();
        for (split, (_, outer, inner)) in self.splits.iter().zip(&names) {
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

        // Names of the steps, for `unroll`.
        let mut steps: Vec<(String, bool)> = Vec::new();
        let mut time = outer_time;
        if let Some((_, outer, _)) = &window {
            time.push(NameExpr::name(outer));
        }
        for axis in &self.order {
            let own = match &window {
                Some((a, _, inner)) if a == axis => inner.clone(),
                _ => axes.name(*axis).to_string(),
            };
            let is_sum = axes.list[*axis].role == Role::Reduced;
            let skewed = self.skew.iter().find(|(reduced, _)| reduced == axis);
            match skewed.and_then(|(_, parallel)| named(*parallel)) {
                Some((_, _, inner)) => {
                    let n = time.len();
                    let step = if n == 0 {
                        "time".to_string()
                    } else {
                        format!("time{n}")
                    };
                    steps.push((step, is_sum));
                    time.push(plus(NameExpr::name(inner), NameExpr::name(&own)));
                }
                None => {
                    steps.push((own.clone(), is_sum));
                    time.push(NameExpr::name(&own));
                }
            }
        }
        if time.is_empty() {
            // A point is one step.
            time.push(NameExpr::int(0));
        }
        text.time(TimeLevel::Step, time);

        match &self.staging {
            None => {}
            Some(Staging::Windows { stages, inputs, .. }) => {
                let at = window.as_ref().map_or("", |(_, outer, _)| outer);
                for (input, order) in inputs {
                    let layout = Layout {
                        order: *order,
                        rows: Rows::Chosen,
                    };
                    text.transfer(input, at, *stages, layout, Engine::CpAsync);
                }
            }
            Some(Staging::Panel { input, axis }) => {
                let at = named(*axis).map_or("", |(_, outer, _)| outer);
                text.transfer(input, at, 1, Layout::default(), Engine::Plain);
            }
        }
        if let Some((input, along)) = &self.forward {
            text.forward(input, along);
        }
        for sum in &axes.sums {
            let own = self.order.iter().rev().filter(|a| sum.axes.contains(a));
            let own: Vec<&str> = own.map(|a| axes.name(*a)).collect();
            text.sum(&sum.var, &own);
        }
        let first = steps.iter().position(|(_, is_sum)| *is_sum);
        let last = steps.len().saturating_sub(1);
        for (n, (step, is_sum)) in steps.iter().enumerate() {
            match self.unroll {
                Unroll::All if *is_sum => text.unroll(step, None),
                Unroll::Innermost if *is_sum && n == last => text.unroll(step, None),
                Unroll::Innermost if *is_sum => text.unroll(step, Some(1)),
                Unroll::Outermost if *is_sum && Some(n) == first => text.unroll(step, None),
                Unroll::Auto | Unroll::All | Unroll::Innermost | Unroll::Outermost => {}
            }
        }
        text.finish(name, system)
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
            (Some(Staging::Panel { input, .. }), _) => format!("{input} once a block"),
            (Some(Staging::Windows { size, stages, .. }), _) => {
                format!("windows of {size}, {stages} stages")
            }
            (None, Some((input, _))) => format!("{input} handed on"),
            (None, None) => "read".to_string(),
        };
        vec![
            ("family", "tiles".to_string()),
            ("lanes", parts(|s| s.lanes)),
            ("registers", parts(Split::registers)),
            ("warps", parts(|s| s.warps)),
            ("steps", steps.join(", ")),
            (
                "written out",
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
