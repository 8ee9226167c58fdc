//! The text of a mapping, evaluated number by number.

use std::collections::{BTreeMap, BTreeSet};

use systola_ir::mapping::{
    Directive, DirectiveKind, Mapping, NameCond, NameExpr, NameExprKind, NameOp, PlaceLevel,
    TimeLevel,
};
use systola_ir::system::System;

use super::{Point, Slot, value};

pub(super) struct Tile {
    pub(super) outer: String,
    pub(super) inner: String,
    pub(super) dim: usize,
    pub(super) size: i128,
    pub(super) lo: i128,
    pub(super) hi: i128,
    /// Tiles that own a point of the range of the iterator.
    pub(super) tiles: Option<(i128, i128)>,
}

/// The text of a mapping, evaluated.
pub(super) struct Map<'a> {
    pub(super) system: &'a System,
    pub(super) mapping: &'a Mapping,
    pub(super) params: Vec<i128>,
    pub(super) tiles: Vec<Tile>,
    pub(super) place_levels: Vec<PlaceLevel>,
    pub(super) time_levels: Vec<TimeLevel>,
    pub(super) pieces: Vec<(Option<&'a NameCond>, Forms<'a>)>,
    pub(super) broadcast: BTreeSet<String>,
    pub(super) flags: bool,
    pub(super) reverse: Vec<(String, &'a NameExpr)>,
}

/// Forms by level.
#[derive(Default, Clone)]
pub(super) struct Forms<'a> {
    pub(super) place: BTreeMap<PlaceLevel, Vec<Entry<'a>>>,
    pub(super) time: BTreeMap<TimeLevel, Vec<Entry<'a>>>,
}

#[derive(Clone)]
pub(super) enum Entry<'a> {
    Expr(&'a NameExpr),
    /// A row of a matrix over loops.
    Row(&'a [NameExpr], Vec<&'a str>),
}

pub(super) type Names = Vec<(String, i128)>;

impl<'a> Map<'a> {
    pub(super) fn new(
        system: &'a System,
        mapping: &'a Mapping,
        params: &[i128],
    ) -> Result<Map<'a>, String> {
        let mut map = Map {
            system,
            mapping,
            params: params.to_vec(),
            tiles: Vec::new(),
            place_levels: Vec::new(),
            time_levels: Vec::new(),
            pieces: Vec::new(),
            broadcast: BTreeSet::new(),
            flags: false,
            reverse: Vec::new(),
        };
        let mut outside = Forms::default();
        for directive in &mapping.directives {
            map.read(directive, &mut outside)?;
        }
        for (_, forms) in &mut map.pieces {
            forms.inherit(&outside);
        }
        for (level, list) in &outside.place {
            map.place_levels.extend(list.iter().map(|_| *level));
        }
        for (level, list) in &outside.time {
            map.time_levels.extend(list.iter().map(|_| *level));
        }
        map.pieces.push((None, outside));
        Ok(map)
    }

    /// Takes what one directive says; forms outside of a `when` are collected in `outside`.
    fn read(&mut self, directive: &'a Directive, outside: &mut Forms<'a>) -> Result<(), String> {
        match &directive.kind {
            DirectiveKind::Tile {
                dim,
                size,
                outer,
                inner,
                overlap: Some((lo, hi)),
                ..
            } => {
                let dims = &self.system.dims;
                let dim = dims.iter().position(|d| d.name == dim.text);
                let dim = dim.ok_or("overlap of something that is not an iterator")?;
                let size = self.size(size)?;
                self.tiles.push(Tile {
                    outer: outer.text.clone(),
                    inner: inner.text.clone(),
                    dim,
                    size,
                    lo: self.size(lo)?,
                    hi: self.size(hi)?,
                    tiles: self.tiles_of(dim, size),
                });
            }
            DirectiveKind::When { cond, directives } => {
                let mut forms = Forms::default();
                for directive in directives {
                    forms.add(directive);
                }
                self.pieces.push((Some(cond), forms));
            }
            DirectiveKind::Broadcast { var } => {
                self.broadcast.insert(var.text.clone());
            }
            DirectiveKind::Flags => self.flags = true,
            DirectiveKind::LookBack => {}
            DirectiveKind::Reverse { bindings } => {
                let bindings = bindings.iter().map(|(name, e)| (name.text.clone(), e));
                self.reverse.extend(bindings);
            }
            DirectiveKind::SpaceTimeTransform {
                src,
                matrix,
                reverse: None,
                ..
            } if src.len() == self.system.dims.len() => {
                let names: Vec<&str> = src.iter().map(|n| n.text.as_str()).collect();
                let rows = matrix.iter().map(|r| Entry::Row(r, names.clone()));
                let mut rows: Vec<Entry<'_>> = rows.collect();
                let schedule = rows.pop().ok_or("an empty matrix")?;
                outside.place.insert(PlaceLevel::Lane, rows);
                outside.time.insert(TimeLevel::Step, vec![schedule]);
            }
            DirectiveKind::Tile { overlap: None, .. }
            | DirectiveKind::Place { .. }
            | DirectiveKind::Time { .. } => outside.add(directive),
            DirectiveKind::Space { .. }
            | DirectiveKind::Align { .. }
            | DirectiveKind::Forward { .. }
            | DirectiveKind::Read { .. }
            | DirectiveKind::Sum { .. }
            | DirectiveKind::Store { .. }
            | DirectiveKind::Transfer(_)
            | DirectiveKind::Unroll { .. }
            | DirectiveKind::Func { .. }
            | DirectiveKind::MergeUres { .. }
            | DirectiveKind::Check(_) => {}
            DirectiveKind::TileLoop { .. }
            | DirectiveKind::Reorder { .. }
            | DirectiveKind::GpuBlocks { .. }
            | DirectiveKind::GpuThreads { .. }
            | DirectiveKind::In { .. }
            | DirectiveKind::SpaceTimeTransform { .. } => {
                return Err("loops of Table 1".into());
            }
        }
        Ok(())
    }

    /// A number that depends on parameters only.
    fn size(&self, expr: &NameExpr) -> Result<i128, String> {
        let names = self.system.param_names().into_iter();
        let sizes: Names = names.zip(self.params.iter().copied()).collect();
        eval(expr, &sizes).ok_or("a tile of unknown size".to_string())
    }

    /// The first and the last tile that own a point of the range of an iterator.
    fn tiles_of(&self, dim: usize, size: i128) -> Option<(i128, i128)> {
        let range = self.system.dims[dim].range.as_ref();
        let range = range.filter(|(lo, hi)| lo.as_poly().is_some() && hi.as_poly().is_some());
        range.map(|(lo, hi)| {
            let first = value(lo, &self.params, &[]).div_euclid(size);
            let last = (value(hi, &self.params, &[]) - 1).div_euclid(size);
            (first, last)
        })
    }

    /// What the names of a mapping stand for at a point of the expanded domain.
    pub(super) fn names(&self, copy: &[i128]) -> Names {
        let n_tiles = self.tiles.len();
        let mut names: Names = vec![("L".into(), 32)];
        let sizes = self.system.params.iter().map(|p| p.name.clone());
        names.extend(sizes.zip(self.params.iter().copied()));
        let dims = self.system.dims.iter().map(|d| d.name.clone());
        names.extend(dims.zip(copy[n_tiles..].iter().copied()));
        let mut overlapped = self.tiles.iter().zip(copy);
        for directive in &self.mapping.directives {
            let DirectiveKind::Tile {
                dim,
                size,
                outer,
                inner,
                overlap,
                ..
            } = &directive.kind
            else {
                continue;
            };
            if overlap.is_some() {
                if let Some((tile, index)) = overlapped.next() {
                    names.push((tile.outer.clone(), *index));
                    let x = copy[n_tiles + tile.dim];
                    names.push((tile.inner.clone(), x - tile.size * index));
                }
            } else if let (Some(x), Some(size)) = (lookup(&names, &dim.text), eval(size, &names)) {
                names.push((outer.text.clone(), x.div_euclid(size)));
                names.push((inner.text.clone(), x.rem_euclid(size)));
            }
        }
        names
    }

    pub(super) fn slot(&self, copy: &[i128]) -> Slot {
        let names = self.names(copy);
        let holds = |cond: &Option<&NameCond>| cond.is_none_or(|c| truth(c, &names));
        let piece = self.pieces.iter().find(|(cond, _)| holds(cond));
        let forms = &piece.expect("the last piece has no condition").1;
        let entry = |entry: &Entry<'_>| entry.eval(&names).expect("a mapping over known names");
        Slot {
            place: forms.place.values().flatten().map(entry).collect(),
            time: forms.time.values().flatten().map(entry).collect(),
        }
    }

    /// `lane`, `lane1`, …, `time`, …: as a user's reverse transform names the coordinates.
    pub(super) fn coordinate_names(&self) -> Vec<String> {
        let places = self.place_levels.iter().map(|l| l.name());
        let all: Vec<&str> = places
            .chain(self.time_levels.iter().map(|l| l.name()))
            .collect();
        all.iter()
            .enumerate()
            .map(
                |(n, name)| match all[..n].iter().filter(|a| *a == name).count() {
                    0 => (*name).to_string(),
                    k => format!("{name}{k}"),
                },
            )
            .collect()
    }

    pub(super) fn launch(&self, slot: &Slot) -> Point {
        let launches = self.time_levels.iter().zip(&slot.time);
        launches
            .filter(|(level, _)| **level == TimeLevel::Launch)
            .map(|(_, t)| *t)
            .collect()
    }

    /// The copies of a point in all tiles.
    pub(super) fn copies(&self, z: &[i128]) -> Vec<Point> {
        let mut copies = vec![Vec::new()];
        for tile in &self.tiles {
            let x = z[tile.dim];
            let least = (x - tile.size - tile.hi).div_euclid(tile.size);
            let most = (x + tile.lo).div_euclid(tile.size);
            copies = copies
                .into_iter()
                .flat_map(|c: Point| {
                    (least..=most).filter(|b| tile.holds(x, *b)).map(move |b| {
                        let mut c = c.clone();
                        c.push(b);
                        c
                    })
                })
                .collect();
        }
        for copy in &mut copies {
            copy.extend(z);
        }
        copies
    }

    pub(super) fn exists(&self, copy: &[i128]) -> bool {
        let z = &copy[self.tiles.len()..];
        let mut tiles = self.tiles.iter().zip(copy);
        tiles.all(|(tile, index)| tile.holds(z[tile.dim], *index))
    }

    /// The copy that is owned.
    pub(super) fn owner(&self, z: &[i128]) -> Point {
        let owners = self.tiles.iter().map(|t| z[t.dim].div_euclid(t.size));
        owners.chain(z.iter().copied()).collect()
    }
}

impl Tile {
    pub(super) fn holds(&self, x: i128, index: i128) -> bool {
        let inner = x - self.size * index;
        let owns = self
            .tiles
            .is_none_or(|(first, last)| first <= index && index <= last);
        owns && -self.lo <= inner && inner < self.size + self.hi
    }
}

impl<'a> Forms<'a> {
    pub(super) fn add(&mut self, directive: &'a Directive) {
        match &directive.kind {
            DirectiveKind::Place { level, forms } => {
                self.place
                    .insert(*level, forms.iter().map(Entry::Expr).collect());
            }
            DirectiveKind::Time { level, forms } => {
                self.time
                    .insert(*level, forms.iter().map(Entry::Expr).collect());
            }
            _ => {}
        }
    }

    /// Takes over the levels that it does not have itself.
    fn inherit(&mut self, outside: &Forms<'a>) {
        for (level, list) in &outside.place {
            self.place.entry(*level).or_insert_with(|| list.clone());
        }
        for (level, list) in &outside.time {
            self.time.entry(*level).or_insert_with(|| list.clone());
        }
    }
}

impl Entry<'_> {
    pub(super) fn eval(&self, names: &Names) -> Option<i128> {
        match self {
            Entry::Expr(expr) => eval(expr, names),
            Entry::Row(row, loops) => row.iter().zip(loops).try_fold(0, |sum, (c, name)| {
                Some(sum + eval(c, names)? * lookup(names, name)?)
            }),
        }
    }
}

pub(super) fn lookup(names: &Names, name: &str) -> Option<i128> {
    names.iter().rev().find(|(n, _)| n == name).map(|(_, v)| *v)
}

pub(super) fn eval(expr: &NameExpr, names: &Names) -> Option<i128> {
    Some(match &expr.kind {
        NameExprKind::Int(value) => *value,
        NameExprKind::Name(name) => lookup(names, name)?,
        NameExprKind::Neg(a) => -eval(a, names)?,
        NameExprKind::Binary(op, a, b) => {
            let (a, b) = (eval(a, names)?, eval(b, names)?);
            match op {
                NameOp::Add => a + b,
                NameOp::Sub => a - b,
                NameOp::Mul => a * b,
                NameOp::Div => a.div_euclid(b),
                NameOp::Mod => a.rem_euclid(b),
            }
        }
    })
}

pub(super) fn truth(cond: &NameCond, names: &Names) -> bool {
    match cond {
        NameCond::Cmp(rel, a, b) => {
            let value = |e| eval(e, names).expect("a condition over known names");
            rel.holds(value(a), value(b))
        }
        NameCond::And(parts) => parts.iter().all(|p| truth(p, names)),
        NameCond::Or(parts) => parts.iter().any(|p| truth(p, names)),
        NameCond::Not(inner) => !truth(inner, names),
    }
}
