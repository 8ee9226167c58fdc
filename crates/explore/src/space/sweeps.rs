//! Many sweeps over a field in the registers of a warp. A launch computes a few sweeps on
//! overlapping tiles, whose overlap is the reach of these sweeps. Within a launch, the sweeps
//! follow each other along one axis as a wavefront. In three dimensions a lane also has some rows
//! of each plane. If the field is periodic, tiles overlap around it.

use systola_ir::mapping::{Mapping, NameExpr, PlaceLevel, TimeLevel};
use systola_ir::target::Machine;

use super::axes::{Axes, Role};
use super::strips::Digits;
use super::text::{Text, plus, times};
use super::tiling_cost::SMS;

const SWEEPS: [i128; 8] = [1, 2, 3, 4, 6, 8, 10, 12];
const COLUMNS: [i128; 5] = [1, 2, 4, 6, 8];
const ROWS: [i128; 6] = [16, 32, 64, 128, 256, 512];
const MIDDLE_ROWS: [i128; 8] = [1, 2, 3, 4, 6, 8, 12, 16];
/// Resident warps of a multiprocessor, from many registers each to fewer.
const WARPS: [i128; 3] = [8, 12, 16];

#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    pub time: usize,
    /// The iterator on the lanes.
    pub lanes: usize,
    /// The iterator of the wavefront, and the distance between consecutive sweeps; none in one
    /// dimension.
    pub front: Option<Front>,
    /// The iterator between those, in three dimensions.
    pub middle: Option<Middle>,
    /// Sweeps of a launch.
    pub depth: i128,
    /// Elements per lane.
    pub columns: i128,
    pub digits: Digits,
    /// The halo of the lanes' iterator.
    pub overlap: (i128, i128),
    /// The estimated cost of one step of one point.
    pub cost: f64,
}

/// Rows of a plane in a lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Middle {
    pub axis: usize,
    /// Including those owned by others.
    pub rows: i128,
    pub overlap: (i128, i128),
}

impl Middle {
    fn owned(&self) -> i128 {
        self.rows - self.overlap.0 - self.overlap.1
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Front {
    pub axis: usize,
    pub lag: i128,
    /// Rows of a tile and their overlap; none: all rows.
    pub tile: Option<(i128, (i128, i128))>,
}

/// The best first.
pub fn sweeps(axes: &Axes, machine: &Machine) -> Vec<Sweep> {
    let recurrent: Vec<usize> = axes.with_role(Role::Recurrent).collect();
    let Some((time, space)) = recurrent.split_first() else {
        return Vec::new();
    };
    let advances = |e: &Vec<i128>| e[*time] >= 0;
    let ahead = axes.on_rings.iter().any(|d| d.e[*time] > 0);
    if !ahead || !axes.on_rings.iter().all(|d| advances(&d.e)) || !(1..=3).contains(&space.len()) {
        return Vec::new();
    }
    let lanes = i128::from(machine.lanes(axes.bits));
    let mut list = Vec::new();
    let own = space[space.len() - 1];
    let rows = (space.len() > 1).then(|| space[0]);
    let between = (space.len() > 2).then(|| space[1]);
    for depth in SWEEPS {
        let Some((lo, hi)) = halo(axes, *time, own, depth) else {
            continue;
        };
        for columns in COLUMNS {
            for digits in [Digits::Blocked, Digits::Cyclic] {
                let unit = match digits {
                    Digits::Blocked => columns,
                    Digits::Cyclic => 1,
                };
                let round = |n: i128| (n + unit - 1) / unit * unit;
                let overlap = (round(lo), round(hi));
                let owned = lanes * columns - overlap.0 - overlap.1;
                if owned <= 0 || (columns == 1 && digits == Digits::Cyclic) {
                    continue;
                }
                let across = (axes.extent(own) + owned - 1) / owned;
                for middle in middles(axes, *time, between, depth) {
                    let planes = middle.map_or(1, |m| axes.extent(m.axis) / m.owned());
                    let places = |warps: i128| warps * SMS as i128 / across / planes.max(1);
                    let places: Vec<i128> = match machine.threads {
                        Some(_) => WARPS.map(places).to_vec(),
                        None => Vec::new(),
                    };
                    for front in fronts(axes, *time, rows, depth, &places) {
                        let mut sweep = Sweep {
                            time: *time,
                            lanes: own,
                            front,
                            middle,
                            depth,
                            columns,
                            digits,
                            overlap,
                            cost: 0.0,
                        };
                        sweep.cost = sweep.guess(axes, machine, owned, lanes);
                        list.push(sweep);
                    }
                }
            }
        }
    }
    list.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    list
}

/// Rows of a plane in the registers of a lane, where there are planes.
fn middles(axes: &Axes, time: usize, between: Option<usize>, depth: i128) -> Vec<Option<Middle>> {
    let Some(axis) = between else {
        return vec![None];
    };
    let Some(overlap) = halo(axes, time, axis, depth) else {
        return Vec::new();
    };
    let middles = MIDDLE_ROWS.map(|rows| Middle {
        axis,
        rows,
        overlap,
    });
    let fits = |m: &Middle| m.owned() > 0 && m.owned() <= axes.extent(axis);
    middles.into_iter().filter(fits).map(Some).collect()
}

/// Rows of a tile: all rows, or tiles of a few sizes. If there is room for `places` resident blocks
/// along the rows, also tiles that fill one or several waves of them.
fn fronts(
    axes: &Axes,
    time: usize,
    rows: Option<usize>,
    depth: i128,
    places: &[i128],
) -> Vec<Option<Front>> {
    let Some(axis) = rows else {
        return vec![None];
    };
    let Some(overlap) = halo(axes, time, axis, depth) else {
        return Vec::new();
    };
    let mut lag = 0;
    for d in &axes.on_rings {
        let (steps, back) = (d.e[time], -d.e[axis]);
        if steps > 0 && back > 0 {
            lag = lag.max((back + steps - 1) / steps);
        }
    }
    let front = |tile| Some(Front { axis, lag, tile });
    let mut list = Vec::new();
    // Several sweeps along a periodic axis need a first row: the rows must be a tile.
    if depth == 1 || !axes.rings.contains(&axis) {
        list.push(front(None));
    }
    let mut sizes = ROWS.to_vec();
    for places in places {
        let filling = [places / 2, *places, 2 * places, 3 * places];
        let filling = filling.into_iter().filter(|n| *n > 0);
        sizes.extend(filling.map(|n| (axes.extent(axis) + n - 1) / n));
    }
    sizes.sort_unstable();
    sizes.dedup();
    for size in sizes.into_iter().filter(|s| *s < axes.extent(axis)) {
        list.push(front(Some((size, overlap))));
    }
    list
}

/// The reach of a point along an axis within `depth` sweeps: to lower and to higher indices. None:
/// unbounded.
fn halo(axes: &Axes, time: usize, axis: usize, depth: i128) -> Option<(i128, i128)> {
    let reach = |sign: i128| -> Option<i128> {
        // The farthest read of each variable, after the given number of sweeps.
        let levels = usize::try_from(depth).ok()?;
        let mut far = vec![vec![0i128; axes.vars.len()]; levels];
        for _ in 0..levels * axes.vars.len() + 1 {
            let mut changed = false;
            for level in 0..levels {
                for d in &axes.on_rings {
                    let before = level + usize::try_from(d.e[time]).ok()?;
                    if before < levels {
                        let reached = far[level][d.sink] + sign * d.e[axis];
                        if reached > far[before][d.source] {
                            far[before][d.source] = reached;
                            changed = true;
                        }
                    }
                }
            }
            if !changed {
                return far.into_iter().flatten().max();
            }
        }
        None
    };
    let (lo, hi) = (reach(1)?, reach(-1)?);
    // Values go around a torus at most once.
    let is_ring = axes.rings.contains(&axis);
    let fits = !is_ring || 2 * (lo + hi) <= axes.extent(axis);
    fits.then_some((lo, hi))
}

impl Sweep {
    /// Instructions per point and sweep including redundant ones, and bytes of the field.
    fn guess(&self, axes: &Axes, machine: &Machine, owned: i128, lanes: i128) -> f64 {
        let mut twice = (lanes * self.columns) as f64 / owned as f64;
        let mut blocks = (axes.extent(self.lanes) as f64 / owned as f64).ceil();
        if let Some(front) = &self.front {
            let (rows, (lo, hi)) = front.tile.unwrap_or((axes.extent(front.axis), (0, 0)));
            let all = rows + lo + hi + front.lag * (self.depth - 1);
            twice *= all as f64 / rows as f64;
            blocks *= (axes.extent(front.axis) as f64 / rows as f64).ceil();
        }
        let mut live = (self.columns * self.depth * 3) as f64;
        if let Some(middle) = &self.middle {
            twice *= middle.rows as f64 / middle.owned() as f64;
            blocks *= (axes.extent(middle.axis) as f64 / middle.owned() as f64).ceil();
            live *= middle.rows as f64;
        }
        let work = axes.on_rings.len() as f64 + 1.0;
        match machine.threads {
            None => {
                let spilled = (live / (machine.registers as f64 * 1.5)).max(1.0);
                let idle = (2.0 / blocks).max(1.0);
                let instructions = work * twice * spilled * idle;
                let memory = 12.0 * twice / self.depth as f64;
                instructions.max(memory) + 0.2 * instructions.min(memory)
            }
            Some(_) => {
                // Neighbours in other lanes cost shuffles.
                let shuffled = match self.digits {
                    Digits::Blocked => 2.0 / self.columns as f64,
                    Digits::Cyclic => 2.0,
                };
                let registers = live + 24.0;
                let spilled = (registers / 240.0).max(1.0).powi(2);
                let resident_warps = (2048.0 / registers.min(255.0)).floor().clamp(1.0, 32.0);
                let waves = blocks / (SMS * resident_warps);
                let idle = waves.ceil() / waves;
                // Few resident warps hide little latency.
                let alone = 1.0 + 4.0 / (resident_warps * self.columns as f64);
                let instructions = (work + 2.0 * shuffled) * twice * spilled * alone;
                let memory = 16.0 * twice / self.depth as f64;
                (instructions.max(memory) + 0.2 * instructions.min(memory)) * idle
            }
        }
    }

    pub fn write(&self, axes: &Axes, name: &str, system: &str, mut text: Text) -> Mapping {
        let (lo, hi) = self.overlap;
        let all = text.lanes * self.columns;
        let owned = all - lo - hi;
        let time = axes.name(self.time);
        let (launch, step) = if self.depth > 1 {
            let (outer, inner) = text.tile(time, self.depth, false);
            (outer, Some(inner))
        } else {
            (time.to_string(), None)
        };
        let mut blocks: Vec<NameExpr> = axes
            .with_role(Role::Parallel)
            .map(|a| NameExpr::name(axes.name(a)))
            .collect();
        let overlap = |(lo, hi): (i128, i128)| (lo > 0 || hi > 0).then_some((lo, hi));
        let ring = |axis: usize| self.depth > 1 && axes.rings.contains(&axis);
        let mut row = None;
        if let Some(front) = &self.front {
            row = Some(match front.tile {
                None => axes.name(front.axis).to_string(),
                Some((rows, halo)) => {
                    let axis = axes.name(front.axis);
                    let (outer, inner) =
                        text.tile_by(axis, NameExpr::int(rows), overlap(halo), ring(front.axis));
                    blocks.push(NameExpr::name(outer));
                    inner
                }
            });
        }
        let mut regs = Vec::new();
        if let Some(middle) = &self.middle {
            let axis = axes.name(middle.axis);
            if middle.rows == 1 {
                blocks.push(NameExpr::name(axis));
            } else {
                let by = NameExpr::int(middle.owned());
                let (outer, inner) =
                    text.tile_by(axis, by, overlap(middle.overlap), ring(middle.axis));
                blocks.push(NameExpr::name(outer));
                regs.push(match middle.overlap.0 {
                    0 => NameExpr::name(inner),
                    lo => plus(NameExpr::name(inner), NameExpr::int(lo)),
                });
            }
        }
        let axis = axes.name(self.lanes);
        let (outer, inner) = text.tile_by(
            axis,
            NameExpr::int(owned),
            overlap(self.overlap),
            ring(self.lanes),
        );
        blocks.push(NameExpr::name(outer));
        text.time(TimeLevel::Launch, vec![NameExpr::name(launch)]);
        text.place(PlaceLevel::Block, blocks);
        let column = match lo {
            0 => NameExpr::name(&inner),
            lo => plus(NameExpr::name(&inner), NameExpr::int(lo)),
        };
        let (lane, reg) = match self.digits {
            Digits::Blocked => (
                text.digit_of(column.clone(), self.columns, text.lanes, all, false),
                text.digit_of(column, 1, self.columns, all, false),
            ),
            Digits::Cyclic => (
                text.digit_of(column.clone(), 1, text.lanes, all, true),
                text.digit_of(column, text.lanes, self.columns, all, true),
            ),
        };
        text.place(PlaceLevel::Lane, vec![lane]);
        if self.columns > 1 {
            regs.push(reg);
        }
        if !regs.is_empty() {
            text.place(PlaceLevel::Reg, regs);
        }
        let mut steps = Vec::new();
        let lag = self.front.as_ref().map_or(0, |f| f.lag);
        if let Some(row) = row {
            let row = NameExpr::name(row);
            steps.push(match (&step, lag) {
                (None, _) | (_, 0) => row,
                (Some(step), 1) => plus(row, NameExpr::name(step)),
                (Some(step), lag) => plus(row, times(lag, NameExpr::name(step))),
            });
        }
        steps.extend(step.map(NameExpr::name));
        text.time(TimeLevel::Step, steps);
        text.finish(name, system)
    }

    pub fn choices(&self, axes: &Axes) -> Vec<(&'static str, String)> {
        let rows = match &self.front {
            None => "1".to_string(),
            Some(Front { tile: None, .. }) => "all".to_string(),
            Some(Front {
                tile: Some((rows, _)),
                ..
            }) => rows.to_string(),
        };
        let columns = match self.digits {
            Digits::Blocked => format!("{} neighbours", self.columns),
            Digits::Cyclic => format!("{} vectors", self.columns),
        };
        let registers = match &self.middle {
            None => columns,
            Some(m) => format!("{} {} × {columns}", m.rows, axes.name(m.axis)),
        };
        vec![
            ("family", "sweeps".to_string()),
            ("lanes", axes.name(self.lanes).to_string()),
            ("registers", registers),
            ("sweeps", self.depth.to_string()),
            ("rows", rows),
        ]
    }
}
