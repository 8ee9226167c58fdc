//! Lanes along a sum or a recurrence: a vector of its terms is combined in one step, by a tree if
//! the operator can be regrouped.
//!
//! The iterator is tiled by multiples of a vector. The tiles run in sequence. If no other iterator
//! gives many blocks, the tiles are blocks that pass on their result. A schedule carries the
//! dependences along other iterators.

use systola_ir::mapping::{DirectiveKind, Mapping, NameExpr, NameOp, PlaceLevel, TimeLevel};

use super::axes::{Along as Recurrence, Axes, Role};
use super::schedule::{Prefer, schedule};
use super::text::{Text, combination};

/// Vectors of a tile.
const VECTORS: [i128; 2] = [4, 1];
/// Vectors of a tile of a block, in sequence.
const IN_A_BLOCK: [i128; 2] = [64, 16];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tiles {
    /// In sequence; this many vectors in registers.
    Time(i128),
    /// Each in its own block; this many vectors in sequence.
    Blocks(i128),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Along {
    /// The iterator on the lanes.
    pub lanes: usize,
    /// The lanes run in descending order.
    pub down: bool,
    pub tiles: Tiles,
    /// Schedule rows over all iterators that carry the other dependences.
    pub rows: Vec<Vec<i128>>,
    /// Other iterators of sums.
    pub sums: Vec<usize>,
    /// Parallel iterators of the index space.
    pub blocks: Vec<usize>,
    /// Variables that go from lane to lane within a step.
    pub broadcast: Vec<String>,
}

pub fn along(axes: &Axes) -> Vec<Along> {
    let n = axes.list.len();
    let mut list = Vec::new();
    for lanes in (0..n).rev() {
        if axes.is_unrolled(lanes) || axes.list[lanes].role == Role::Parallel {
            continue;
        }
        let Some(Others {
            down,
            rows,
            broadcast,
        }) = others(axes, lanes)
        else {
            continue;
        };
        let reduced = axes.with_role(Role::Reduced);
        let sums = reduced.filter(|a| *a != lanes && !axes.is_unrolled(*a));
        let sums: Vec<usize> = sums.collect();
        let blocks: Vec<usize> = axes.with_role(Role::Parallel).collect();
        let mut tiles: Vec<Tiles> = VECTORS.map(Tiles::Time).to_vec();
        if blocks.is_empty() && rows.is_empty() && sums.is_empty() {
            tiles.extend(IN_A_BLOCK.map(Tiles::Blocks));
        }
        for tiles in tiles {
            list.push(Along {
                lanes,
                down,
                tiles,
                rows: rows.clone(),
                sums: sums.clone(),
                blocks: blocks.clone(),
                broadcast: broadcast.clone(),
            });
        }
    }
    list
}

/// The iterators besides that of the lanes.
struct Others {
    /// The recurrence along the lanes is descending.
    down: bool,
    /// Schedule rows over the other iterators; they carry all other dependences.
    rows: Vec<Vec<i128>>,
    broadcast: Vec<String>,
}

/// None: a dependence along the lanes cannot be satisfied in one step, or no such rows exist.
fn others(axes: &Axes, lanes: usize) -> Option<Others> {
    let n = axes.list.len();
    let (mut up, mut down) = (false, false);
    let (mut dependences, mut broadcast) = (Vec::new(), Vec::new());
    for d in &axes.distances {
        let mut e = d.e.clone();
        e.resize(n, 0);
        let only_here = e[lanes] != 0 && (0..n).all(|a| a == lanes || e[a] == 0);
        if !only_here {
            dependences.push(e);
            continue;
        }
        let var = &axes.vars[d.source];
        match var.along {
            Recurrence::Computes => return None,
            _ if d.source != d.sink => return None,
            Recurrence::Regroups => {}
            Recurrence::Carries => broadcast.push(var.name.clone()),
        }
        up |= e[lanes] > 0;
        down |= e[lanes] < 0;
    }
    let inner = axes.with_role(Role::Recurrent);
    let inner: Vec<usize> = inner.filter(|a| *a != lanes).collect();
    let found = schedule(&dependences, n, &inner, Prefer::Loops)?;
    let carried = found.left.is_empty() && found.free.is_empty() && !(up && down);
    broadcast.dedup();
    carried.then_some(Others {
        down,
        rows: found.rows,
        broadcast,
    })
}

impl Along {
    pub fn write(&self, axes: &Axes, name: &str, system: &str, mut text: Text) -> Mapping {
        let by_name = |axis: &usize| NameExpr::name(axes.name(*axis));
        let names: Vec<&str> = axes.list.iter().map(|a| a.name.as_str()).collect();
        let form = |row: &Vec<i128>| {
            let terms: Vec<(i128, &str)> = row.iter().copied().zip(names.clone()).collect();
            combination(&terms)
        };
        let lanes = text.lanes;
        let vectors = match self.tiles {
            Tiles::Time(vectors) | Tiles::Blocks(vectors) => vectors,
        };
        let axis = axes.name(self.lanes);
        let (outer, inner) = text.tile(axis, vectors * lanes, true);
        let mut blocks: Vec<NameExpr> = self.blocks.iter().map(by_name).collect();
        let mut steps: Vec<NameExpr> = self.rows.iter().filter_map(form).collect();
        steps.extend(self.sums.iter().map(by_name));
        let lane = text.digit(&inner, 1, lanes, vectors * lanes, true);
        let vector = text.digit(&inner, lanes, vectors, vectors * lanes, true);
        let mut regs = Vec::new();
        match self.tiles {
            Tiles::Time(_) => {
                steps.push(signed(NameExpr::name(outer), self.down));
                if vectors > 1 {
                    regs.push(vector);
                }
            }
            Tiles::Blocks(_) => {
                blocks.push(NameExpr::name(&outer));
                // A block starts after the steps of the previous one.
                let before =
                    NameExpr::binary(NameOp::Mul, NameExpr::int(vectors), NameExpr::name(outer));
                let step = NameExpr::binary(NameOp::Add, before, vector);
                steps.push(signed(step, self.down));
                text.line(DirectiveKind::Flags);
            }
        }
        text.place(PlaceLevel::Block, blocks);
        text.place(PlaceLevel::Lane, vec![lane]);
        text.place(PlaceLevel::Reg, regs);
        text.time(TimeLevel::Step, steps);
        for var in &self.broadcast {
            text.line(DirectiveKind::Broadcast {
                var: var.as_str().into(),
            });
        }
        text.finish(name, system)
    }

    /// The choices, in words.
    pub fn choices(&self, axes: &Axes) -> Vec<(&'static str, String)> {
        let tiles = match self.tiles {
            Tiles::Time(vectors) => format!("{vectors} vectors"),
            Tiles::Blocks(vectors) => format!("{vectors} steps of a block"),
        };
        vec![
            ("family", "sums".to_string()),
            ("lanes", axes.name(self.lanes).to_string()),
            ("tiles", tiles),
        ]
    }
}

fn signed(form: NameExpr, down: bool) -> NameExpr {
    if down {
        systola_ir::mapping::NameExprKind::Neg(Box::new(form)).into()
    } else {
        form
    }
}
