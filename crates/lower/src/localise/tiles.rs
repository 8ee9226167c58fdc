//! Tiles the iterators of sums where a `sum` names the tile indices.
//!
//! Before, with `tile j by 128 as (t, jj)` and `sum Z along t then tree jj`: a sum over j. After: a
//! sum over t and jj of the term at j = first + 128·t + jj. So a stage of the sum can run over one
//! of them. Tiles count from the first value of j. The last one may be partly empty; its empty
//! points are at the end, and `present` says where the terms are.
//!
//! All other tiles only give coordinates to places and times, and are left to `resolve`.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use systola_ir::codes::{limits, mapping as codes};
use systola_ir::form::{Atom, Cond, Form, Overflow, Poly, Rel};
use systola_ir::mapping::{DirectiveKind, Mapping, Name, NameExpr, SumStage};
use systola_ir::scalar::BinOp;
use systola_ir::system::visit::map_iterators;
use systola_ir::system::{Dim, Expr, System, map_forms};
use systola_ir::{Diagnostic, DimId, ParamId, Scalar};

use super::overflow;
use crate::names::{LANES_NAMES, Names, fixed_value};

/// What became of the tiles.
#[derive(Default)]
pub(super) struct TiledSums {
    /// The iterators that are gone.
    pub iterators: Vec<String>,
    /// Where there are terms; nothing for iterators whose tiles are all full.
    pub present: Vec<Cond>,
}

/// A `tile` of a sum's iterator.
struct Tile<'m> {
    dim: &'m Name,
    size: &'m NameExpr,
    outer: &'m Name,
    inner: &'m Name,
    plain: bool,
}

pub(super) fn tile_sums(
    system: &mut System,
    mapping: Option<&Mapping>,
    lanes: i128,
) -> Result<TiledSums, Diagnostic> {
    let mut done = TiledSums::default();
    let mut names = Names::of_system(system);
    names.define_lanes(lanes);
    let Some(mapping) = mapping else {
        return Ok(done);
    };
    for tile in named_tiles(mapping) {
        let is_tiled = |dim: &Dim| dim.name == tile.dim.text;
        if !system.bound.iter().any(is_tiled) {
            continue;
        }
        tiled_once(&tile, mapping)?;
        check(&tile, system, &names)?;
        let size = names.tile_size(tile.size)?;
        while let Some(at) = system.bound.iter().position(is_tiled) {
            split(system, &mut done.present, at, &tile, size)
                .map_err(|o| overflow(o, tile.dim.span))?;
        }
        done.iterators.push(tile.dim.text.clone());
    }
    Ok(done)
}

/// The tiles with an index that a `sum` names, or that is tiled for one, in the order written.
fn named_tiles(mapping: &Mapping) -> Vec<Tile<'_>> {
    let mut named = BTreeSet::new();
    for directive in &mapping.directives {
        if let DirectiveKind::Sum { stages, .. } = &directive.kind {
            for stage in stages {
                match stage {
                    SumStage::Along(list) => {
                        named.extend(list.iter().map(|(name, _)| name.text.as_str()))
                    }
                    SumStage::Tree(list) => named.extend(list.iter().map(|n| n.text.as_str())),
                }
            }
        }
    }
    let mut tiles = Vec::new();
    for directive in mapping.directives.iter().rev() {
        if let DirectiveKind::Tile {
            dim,
            size,
            outer,
            inner,
            overlap,
            periodic,
        } = &directive.kind
            && [outer, inner]
                .iter()
                .any(|n| named.contains(n.text.as_str()))
        {
            named.insert(&dim.text);
            tiles.push(Tile {
                dim,
                size,
                outer,
                inner,
                plain: overlap.is_none() && !periodic,
            });
        }
    }
    tiles.reverse();
    tiles
}

/// An iterator that is gone cannot be tiled again.
fn tiled_once(tile: &Tile<'_>, mapping: &Mapping) -> Result<(), Diagnostic> {
    let mut tiled = mapping.directives.iter().filter_map(|d| match &d.kind {
        DirectiveKind::Tile { dim, outer, .. } if dim.text == tile.dim.text => Some((dim, outer)),
        _ => None,
    });
    match tiled.find(|(_, outer)| *outer != tile.outer) {
        None => Ok(()),
        Some((again, _)) => Err(Diagnostic::new(
            &codes::UNKNOWN_NAME,
            again.span,
            format!(
                "`{again}` is tiled twice, and a `sum` names an index of its tiles: only these indices are left"
            ),
        )
        .help(format!("tile `{}` or `{}` instead", tile.outer, tile.inner))),
    }
}

fn check(tile: &Tile<'_>, system: &System, names: &Names) -> Result<(), Diagnostic> {
    if !tile.plain {
        return Err(Diagnostic::new(
            &limits::OVERLAP_OF_TILE,
            tile.dim.span,
            format!(
                "`{}` is the iterator of a sum, whose tiles cannot overlap or be periodic",
                tile.dim
            ),
        )
        .help("each term is added once: leave the words after the tile indices out"));
    }
    for name in [tile.outer, tile.inner] {
        let text = name.text.as_str();
        let is_iterator = system.bound.iter().any(|dim| dim.name == text);
        let is_lanes = LANES_NAMES.contains(&text) || matches!(text, "lane" | "time");
        if is_iterator || is_lanes || names.get(text).is_some() {
            return Err(Diagnostic::new(
                &codes::NAME_TAKEN,
                name.span,
                format!("`{name}` has a meaning already"),
            )
            .help("choose another name for the tile index"));
        }
    }
    Ok(())
}

/// Replaces the iterator of sums with this position by its tile indices.
fn split(
    system: &mut System,
    present: &mut Vec<Cond>,
    position: usize,
    tile: &Tile<'_>,
    size: i128,
) -> Result<(), Overflow> {
    let at = DimId::from(system.dims.len() + position);
    let after = |d: DimId| DimId::from(d.index() + 1);
    let (outer, inner) = (at, after(at));
    let old = system.bound[position].clone();
    let (first, count) = match &old.range {
        Some((lo, hi)) => (lo.clone(), known_sizes(system, &hi.sub(lo))?),
        // Refused later.
        None => (Form::from(0), Form::from(0)),
    };
    let index = Form::from(outer)
        .scale(&Poly::constant(size))?
        .add(&Form::from(inner));
    let point = first.add(&index);
    let moved = |d: DimId| match d.cmp(&at) {
        std::cmp::Ordering::Less => None,
        std::cmp::Ordering::Equal => Some(point.clone()),
        std::cmp::Ordering::Greater => Some(Form::from(after(d))),
    };
    let rename = |f: &Form| f.substitute(&moved);

    let tiles = count.plus(size - 1).floor_div(size);
    if tiles.scale(&Poly::constant(size))? != count {
        present.push(Cond::cmp(
            Rel::Lt,
            Form::from(at).sub(&first),
            count.clone(),
        ));
    }
    for cond in present.iter_mut() {
        *cond = cond.map(&rename)?;
    }
    for dim in &mut system.bound {
        if let Some((lo, hi)) = &mut dim.range {
            *lo = rename(lo)?;
            *hi = rename(hi)?;
        }
    }
    let index = |name: &Name, hi: Form| Dim {
        name: name.text.clone(),
        range: old.range.is_some().then(|| (Form::from(0), hi)),
        span: old.span,
    };
    let indices = [
        index(tile.outer, tiles),
        index(tile.inner, Form::from(size)),
    ];
    system.bound.splice(position..=position, indices);

    let value = value_of(&point);
    for var in &mut system.vars {
        let body = map_forms(&var.body, &rename)?;
        let value = |d: DimId| match d.cmp(&at) {
            Ordering::Less => Expr::Iter(d),
            Ordering::Equal => value.clone(),
            Ordering::Greater => Expr::Iter(after(d)),
        };
        let bound = |d: DimId| match d.cmp(&at) {
            Ordering::Less => vec![d],
            Ordering::Equal => vec![outer, inner],
            Ordering::Greater => vec![after(d)],
        };
        var.body = map_iterators(&body, &value, &bound);
    }
    Ok(())
}

/// A number of terms, with the sizes that the context fixes as numbers: full tiles are recognised.
fn known_sizes(system: &System, count: &Form) -> Result<Form, Overflow> {
    count.fix_params(&|p: ParamId| fixed_value(&system.context, p))
}

/// A form as a value, an i64.
pub fn value_of(form: &Form) -> Expr {
    let int = |c| Expr::int(Scalar::I64, c);
    let times = |a: Expr, b: &Poly| match b.as_constant() {
        Some(1) => a,
        _ => Expr::binary(BinOp::Mul, a, value_of_poly(b)),
    };
    let mut sum = None;
    let mut add = |term: Expr| {
        sum = Some(match sum.take() {
            Some(sum) => Expr::binary(BinOp::Add, sum, term),
            None => term,
        });
    };
    for (atom, factor) in form.terms() {
        let value = match atom {
            Atom::Dim(d) => Expr::Iter(*d),
            Atom::Floor(inner, by) => {
                // Division rounds towards zero.
                let (value, by) = (value_of(inner), *by);
                let rest = value_of(&inner.modulo(by));
                Expr::binary(BinOp::Div, Expr::binary(BinOp::Sub, value, rest), int(by))
            }
            Atom::Mod(inner, by) => {
                let rest = Expr::binary(BinOp::Rem, value_of(inner), int(*by));
                let positive = Expr::binary(BinOp::Add, rest, int(*by));
                Expr::binary(BinOp::Rem, positive, int(*by))
            }
        };
        add(times(value, factor));
    }
    let constant = form.constant_part();
    if !constant.is_zero() {
        add(value_of_poly(constant));
    }
    sum.unwrap_or_else(|| int(0))
}

fn value_of_poly(poly: &Poly) -> Expr {
    let int = |c| Expr::int(Scalar::I64, c);
    let product = |(params, c): (&Vec<ParamId>, i128)| {
        params
            .iter()
            .map(|p| Expr::Param(*p))
            .fold(int(c), |product, p| Expr::binary(BinOp::Mul, product, p))
    };
    let terms = poly.terms().map(product);
    terms
        .reduce(|a, b| Expr::binary(BinOp::Add, a, b))
        .unwrap_or_else(|| int(0))
}
