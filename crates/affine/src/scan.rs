//! Loops that visit the points of a set in lexicographic order.
//!
//! Projecting away inner dimensions over the rationals gives bounds for each loop in terms of the
//! outer ones (Ancourt and Irigoin, 1991). A loop may have no iterations, but no point is visited
//! twice or missed.

mod points;
mod print;

use crate::basic::BasicSet;
use crate::error::{Error, Result};
use crate::expr::{Constraint, LinExpr, Space};
use crate::int::{Int, extended_gcd, gcd, modulo, mul, neg};
use crate::omega;
use crate::set::Set;
use crate::simplex;
use crate::system::{Budget, Row, negate};

pub use points::Points;
/// The loop over one dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The loop starts at the maximum of `ceil(e / m)`, `e` over parameters and outer dimensions.
    pub lower: Vec<(LinExpr, Int)>,
    /// The loop ends at the minimum of `floor(e / m)`.
    pub upper: Vec<(LinExpr, Int)>,
    /// `Some((m, e))`: only values congruent to `e` modulo `m` are visited.
    pub stride: Option<(Int, LinExpr)>,
}

/// Nested loops, one for each dimension, and the tests that remain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopNest {
    /// The space of the visited points.
    pub space: Space,
    /// Conditions on the parameters, tested before the first loop.
    pub context: Vec<Constraint>,
    /// The loops, outermost first.
    pub loops: Vec<Loop>,
    /// Values used by the guards: column `space.n_vars() + i` is `floor(e / m)` of entry `i`.
    pub divs: Vec<(LinExpr, Int)>,
    /// Conditions tested at each point, over `[params | dims | divs]`.
    pub guards: Vec<Constraint>,
}

impl Set {
    /// Loop nests that together visit each point of the set once, each in lexicographic order.
    pub fn loop_nests(&self) -> Result<Vec<LoopNest>> {
        let budget = &mut Budget::default();
        let disjoint = if self.pieces.len() > 1 {
            self.make_disjoint_in(budget)?
        } else {
            self.clone()
        };
        let mut nests = Vec::new();
        for p in &disjoint
            .div_form_in(budget)?
            .make_disjoint_in(budget)?
            .pieces
        {
            let p = p.simplify_in(budget)?;
            if let Some(nest) = nest_of(&p, true, budget)? {
                nests.push(nest);
            }
        }
        Ok(nests)
    }
}

/// `piece` must be in div form.
fn nest_of(piece: &BasicSet, minimal: bool, budget: &mut Budget) -> Result<Option<LoopNest>> {
    let Some(divs) = piece.div_definitions()? else {
        return Ok(None);
    };
    let (k, d) = (piece.space.n_params, piece.space.n_dims);
    let visible = k + d;
    // Guards refer to the existentials in the order of their definitions.
    let mut columns: Vec<usize> = (0..visible).chain(vec![0; divs.len()]).collect();
    for (i, div) in divs.iter().enumerate() {
        columns[div.var] = visible + i;
    }
    let moved = |row: &Row| -> Row {
        let mut r = vec![0; row.len()];
        r[0] = row[0];
        for (&to, &c) in columns.iter().zip(&row[1..]) {
            r[to + 1] = c;
        }
        r
    };
    let mut strides: Vec<Option<(Int, LinExpr)>> = vec![None; d];
    let mut guards = Vec::new();
    for row in &piece.sys.eqs {
        if row[1 + visible..].iter().all(|&c| c == 0) {
            continue;
        }
        if let Some((dim, stride)) = stride_of(piece, row)?
            && strides[dim].is_none()
        {
            strides[dim] = Some(stride);
            continue;
        }
        guards.push(Constraint::Eq(LinExpr::from_row(&moved(row))));
    }
    let mut implied = Vec::new();
    for div in &divs {
        implied.extend(div.rows()?);
    }
    for row in &piece.sys.ges {
        if row[1 + visible..].iter().any(|&c| c != 0) && !implied.contains(row) {
            guards.push(Constraint::Ge(LinExpr::from_row(&moved(row))));
        }
    }
    let mut loops = Vec::new();
    let mut sys = piece.sys.clone();
    for dim in (0..d).rev() {
        let last = k + dim;
        let Some(mut shadow) = omega::real_shadow(sys, |v| v <= last, budget)? else {
            return Ok(None);
        };
        if minimal {
            simplex::remove_redundant(&mut shadow, |_| false, budget)?;
        }
        let mut this = Loop {
            lower: Vec::new(),
            upper: Vec::new(),
            stride: strides[dim].take(),
        };
        for r in &shadow.eqs {
            push_bound(&mut this, r, last)?;
            push_bound(&mut this, &negate(r)?, last)?;
        }
        for r in &shadow.ges {
            push_bound(&mut this, r, last)?;
        }
        loops.push(this);
        sys = shadow;
    }
    loops.reverse();
    let Some(shadow) = omega::real_shadow(sys, |v| v < k, budget)? else {
        return Ok(None);
    };
    let eqs = shadow
        .eqs
        .iter()
        .map(|r| Constraint::Eq(LinExpr::from_row(&r[..=k])));
    let ges = shadow
        .ges
        .iter()
        .map(|r| Constraint::Ge(LinExpr::from_row(&r[..=k])));
    let context = eqs.chain(ges).collect();
    let used = guards
        .iter()
        .map(|g| g.expr().n_columns())
        .max()
        .unwrap_or(0);
    let divs = divs
        .iter()
        .take(used.saturating_sub(visible))
        .map(|div| (LinExpr::from_row(&moved(&div.numerator)), div.divisor))
        .collect();
    Ok(Some(LoopNest {
        space: piece.space,
        context,
        loops,
        divs,
        guards,
    }))
}

fn push_bound(to: &mut Loop, row: &Row, v: usize) -> Result<()> {
    let c = row[v + 1];
    if c > 0 {
        to.lower.push((LinExpr::from_row(&row[..=v]).neg()?, c));
    } else if c < 0 {
        to.upper.push((LinExpr::from_row(&row[..=v]), neg(c)?));
    }
    Ok(())
}

/// An equality `c x + rest + h q = 0` whose existential `q` occurs nowhere else, read as a
/// congruence for its last dimension.
fn stride_of(piece: &BasicSet, row: &Row) -> Result<Option<(usize, (Int, LinExpr))>> {
    let (k, visible) = (piece.space.n_params, piece.space.n_vars());
    let hidden: Vec<usize> = (visible..piece.sys.n)
        .filter(|&v| row[v + 1] != 0)
        .collect();
    let [q] = hidden.as_slice() else {
        return Ok(None);
    };
    if piece.sys.rows().filter(|r| r[q + 1] != 0).count() != 1 {
        return Ok(None);
    }
    let h = row[q + 1].checked_abs().ok_or(Error::Overflow)?;
    let Some(v) = (k..visible).rev().find(|&v| row[v + 1] != 0) else {
        return Ok(None);
    };
    let c = row[v + 1];
    if gcd(c, h)? != 1 {
        return Ok(None);
    }
    // x = -rest / c modulo h
    let (_, inverse, _) = extended_gcd(modulo(c, h)?, h)?;
    let mut residue = vec![0; v + 1];
    for (i, r) in residue.iter_mut().enumerate() {
        *r = modulo(mul(neg(modulo(row[i], h)?)?, inverse)?, h)?;
    }
    Ok(Some((v - k, (h, LinExpr::from_row(&residue)))))
}
