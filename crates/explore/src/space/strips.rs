//! A recurrence on a linear array of PEs that is cut into strips. A block computes a strip with a
//! few vectors of one iterator, and a schedule orders its steps. Values that leave a strip go to
//! the next one while both run. If many blocks run at once, a strip may also be cut into pieces,
//! which wait for each other.

use systola_ir::mapping::{DirectiveKind, Mapping, NameExpr, NameOp, PlaceLevel, TimeLevel};
use systola_ir::target::Machine;

use super::axes::{Axes, Role};
use super::designs::schedules;
use super::text::{Text, combination};

/// Elements per lane.
const DEPTHS: [i128; 6] = [1, 2, 4, 6, 8, 16];

/// Steps of a piece.
const PIECES: [i128; 5] = [16, 32, 64, 256, 1024];

/// Which elements a lane has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Digits {
    /// Adjacent elements.
    Blocked,
    /// Elements with a stride of all lanes.
    Cyclic,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strip {
    /// The iterator on the lanes.
    pub axis: usize,
    pub depth: i128,
    pub digits: Digits,
    /// Over the recurrent iterators.
    pub schedule: Vec<i128>,
    /// The other iterator, and the size of its tile in a block; `None`: the whole iterator.
    pub piece: Option<(usize, i128)>,
}

/// The best first: those with few steps, then those with many elements per lane.
pub fn strips(axes: &Axes, machine: &Machine) -> Vec<Strip> {
    let recurrent: Vec<usize> = axes.with_role(Role::Recurrent).collect();
    if recurrent.len() != 2 || axes.with_role(Role::Reduced).next().is_some() {
        return Vec::new();
    }
    let distances: Vec<Vec<i128>> = axes
        .distances
        .iter()
        .map(|d| recurrent.iter().map(|a| d.e[*a]).collect())
        .filter(|e: &Vec<i128>| e.iter().any(|c| *c != 0))
        .collect();
    let mut found = schedules(&distances, 2, 2);
    let steps = |s: &Vec<i128>| -> i128 {
        let along = |(axis, c): (&usize, &i128)| c.abs() * (axes.extent(*axis) - 1);
        recurrent.iter().zip(s).map(along).sum()
    };
    found.sort_by_key(steps);
    found.truncate(3);
    let mut list = Vec::new();
    for schedule in found {
        for depth in DEPTHS.iter().rev() {
            for (axis, other) in [(0, 1), (1, 0)].map(|(a, b)| (recurrent[a], recurrent[b])) {
                for digits in [Digits::Cyclic, Digits::Blocked] {
                    let registers = *depth <= machine.registers as i128;
                    if !registers || (*depth == 1 && digits == Digits::Blocked) {
                        continue;
                    }
                    for piece in pieces(axes, machine, other) {
                        list.push(Strip {
                            axis,
                            depth: *depth,
                            digits,
                            schedule: schedule.clone(),
                            piece,
                        });
                    }
                }
            }
        }
    }
    list
}

fn pieces(axes: &Axes, machine: &Machine, other: usize) -> Vec<Option<(usize, i128)>> {
    let mut list = vec![None];
    if machine.threads.is_some() {
        let fit = PIECES.iter().filter(|size| **size < axes.extent(other));
        list.extend(fit.map(|size| Some((other, *size))));
    }
    list
}

impl Strip {
    pub fn write(&self, axes: &Axes, name: &str, system: &str, mut text: Text) -> Mapping {
        let lanes = text.lanes;
        let all = lanes * self.depth;
        text.line(DirectiveKind::Flags);
        let (outer, inner) = text.tile(axes.name(self.axis), all, true);
        let mut blocks: Vec<NameExpr> = axes
            .with_role(Role::Parallel)
            .map(|a| NameExpr::name(axes.name(a)))
            .collect();
        blocks.push(NameExpr::name(outer));
        if let Some((other, size)) = self.piece {
            let other = NameExpr::name(axes.name(other));
            blocks.push(NameExpr::binary(NameOp::Div, other, NameExpr::int(size)));
        }
        text.place(PlaceLevel::Block, blocks);
        let (lane, reg) = match self.digits {
            Digits::Cyclic => (
                text.digit(&inner, 1, lanes, all, true),
                text.digit(&inner, lanes, self.depth, all, true),
            ),
            Digits::Blocked => (
                text.digit(&inner, self.depth, lanes, all, false),
                text.digit(&inner, 1, self.depth, all, false),
            ),
        };
        text.place(PlaceLevel::Lane, vec![lane]);
        if self.depth > 1 {
            text.place(PlaceLevel::Reg, vec![reg]);
        }
        let recurrent: Vec<usize> = axes.with_role(Role::Recurrent).collect();
        let names = recurrent.iter().map(|a| axes.name(*a));
        let terms: Vec<(i128, &str)> = self.schedule.iter().copied().zip(names).collect();
        text.time(TimeLevel::Step, combination(&terms).into_iter().collect());
        text.finish(name, system)
    }

    pub fn choices(&self, axes: &Axes) -> Vec<(&'static str, String)> {
        let recurrent: Vec<usize> = axes.with_role(Role::Recurrent).collect();
        let names = recurrent.iter().map(|a| axes.name(*a));
        let terms: Vec<(i128, &str)> = self.schedule.iter().copied().zip(names).collect();
        let steps = combination(&terms).map_or(String::new(), |f| f.to_string());
        vec![
            ("family", "strips".to_string()),
            ("lanes", axes.name(self.axis).to_string()),
            (
                "registers",
                match self.digits {
                    Digits::Blocked => format!("{} neighbours", self.depth),
                    Digits::Cyclic => format!("{} vectors", self.depth),
                },
            ),
            ("steps", steps),
            (
                "pieces",
                self.piece.map_or("1".to_string(), |(other, size)| {
                    format!("{size} {}", axes.name(other))
                }),
            ),
        ]
    }
}
