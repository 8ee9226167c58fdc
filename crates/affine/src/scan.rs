//! Loops that visit the points of a set in lexicographic order.
//!
//! Projecting away inner dimensions over the rationals gives bounds for each loop in terms of the outer ones (Ancourt
//! and Irigoin, 1991). A loop may run zero times, but no point is visited twice or missed.

use std::fmt::{self, Write as _};

use crate::basic::{BasicSet, check_len};
use crate::display::Text;
use crate::error::{Error, Result};
use crate::expr::{Constraint, LinExpr, Space};
use crate::int::{Int, add, ceil_div, extended_gcd, floor_div, gcd, modulo, mul, neg};
use crate::omega;
use crate::set::Set;
use crate::simplex;
use crate::system::{Budget, Row, negate};

/// The loop over one dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The loop starts at the maximum of `ceil(e / m)`, `e` over parameters and outer dimensions.
    pub lower: Vec<(LinExpr, Int)>,
    /// The loop ends with the minimum of `floor(e / m)`.
    pub upper: Vec<(LinExpr, Int)>,
    /// `Some((m, e))`: only values congruent to `e` modulo `m` are visited.
    pub stride: Option<(Int, LinExpr)>,
}

/// Nested loops, one for each dimension, with what must still be tested.
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

/// An equality `c x + rest + h q = 0` whose existential `q` occurs nowhere else, read as a congruence for its last
/// dimension.
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

impl LoopNest {
    /// The nest as indented pseudo-code.
    pub fn display<S: AsRef<str>, T: AsRef<str>>(&self, params: &[S], dims: &[T]) -> Text {
        let mut names: Vec<String> = Vec::new();
        for i in 0..self.space.n_params {
            names.push(
                params
                    .get(i)
                    .map_or_else(|| format!("p{i}"), |s| s.as_ref().to_string()),
            );
        }
        for i in 0..self.space.n_dims {
            names.push(
                dims.get(i)
                    .map_or_else(|| format!("x{i}"), |s| s.as_ref().to_string()),
            );
        }
        for (e, m) in &self.divs {
            let text = quotient(e, *m, "floor", &names);
            names.push(text);
        }
        let mut out = String::new();
        let mut depth = 0;
        let indent = |out: &mut String, depth: usize| {
            for _ in 0..depth {
                out.push_str("  ");
            }
        };
        for c in &self.context {
            indent(&mut out, depth);
            let _ = writeln!(out, "if {}", condition(c, &names));
            depth += 1;
        }
        for (i, l) in self.loops.iter().enumerate() {
            indent(&mut out, depth);
            let low = extreme(&l.lower, "max", "ceil", "-inf", &names);
            let high = extreme(&l.upper, "min", "floor", "inf", &names);
            let x = &names[self.space.n_params + i];
            match &l.stride {
                None if low == high => {
                    let _ = writeln!(out, "let {x} = {low}");
                    continue;
                }
                None => {
                    let _ = writeln!(out, "for {x} in {low} ..= {high}");
                }
                Some((m, e)) => {
                    let e = e.display(&names);
                    let _ = writeln!(out, "for {x} in {low} ..= {high} with {x} = {e} (mod {m})");
                }
            }
            depth += 1;
        }
        for c in &self.guards {
            indent(&mut out, depth);
            let _ = writeln!(out, "if {}", condition(c, &names));
            depth += 1;
        }
        indent(&mut out, depth);
        let tuple = &names[self.space.n_params..self.space.n_vars()];
        let _ = writeln!(out, "visit ({})", tuple.join(", "));
        Text(out)
    }
}

impl fmt::Display for LoopNest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.display::<&str, &str>(&[], &[]).fmt(f)
    }
}

fn condition(c: &Constraint, names: &[String]) -> String {
    match c {
        Constraint::Eq(e) => format!("{} = 0", e.display(names)),
        Constraint::Ge(e) => format!("{} >= 0", e.display(names)),
    }
}

fn quotient(e: &LinExpr, m: Int, round: &str, names: &[String]) -> String {
    let text = e.display(names).to_string();
    match m {
        1 => text,
        m if text.contains(' ') => format!("{round}(({text})/{m})"),
        m => format!("{round}({text}/{m})"),
    }
}

fn extreme(
    bounds: &[(LinExpr, Int)],
    pick: &str,
    round: &str,
    none: &str,
    names: &[String],
) -> String {
    let texts: Vec<String> = bounds
        .iter()
        .map(|(e, m)| quotient(e, *m, round, names))
        .collect();
    match texts.as_slice() {
        [] => none.to_string(),
        [one] => one.clone(),
        all => format!("{pick}({})", all.join(", ")),
    }
}

/// Rows of one loop of a numeric nest: `row >= 0` with the loop's own dimension last.
struct Level {
    lower: Vec<(Row, Int)>,
    upper: Vec<(Row, Int)>,
    stride: Option<(Int, Row)>,
}

/// The points of one conjunction in lexicographic order.
struct Walk {
    levels: Vec<Level>,
    divs: Vec<(LinExpr, Int)>,
    guards: Vec<Constraint>,
    /// The current point, then the values of the divs.
    point: Vec<Int>,
    /// The last value of each loop that is under way.
    last: Vec<Int>,
    n_dims: usize,
    state: WalkState,
}

#[derive(PartialEq)]
enum WalkState {
    Fresh,
    Running,
    Done,
}

fn value(row: &[Int], point: &[Int]) -> Result<Int> {
    add(row[0], crate::matrix::dot(&row[1..], point)?)
}

impl Walk {
    /// `piece` has no parameters and is in div form.
    fn new(piece: &BasicSet, budget: &mut Budget) -> Result<Option<Walk>> {
        let Some(nest) = nest_of(piece, false, budget)? else {
            return Ok(None);
        };
        let rows = |bounds: &[(LinExpr, Int)], dim: usize| -> Result<Vec<(Row, Int)>> {
            bounds
                .iter()
                .map(|(e, m)| Ok((e.to_row(dim)?, *m)))
                .collect()
        };
        let mut levels = Vec::new();
        for (dim, l) in nest.loops.iter().enumerate() {
            if l.lower.is_empty() || l.upper.is_empty() {
                return Err(Error::Unbounded { dim });
            }
            levels.push(Level {
                lower: rows(&l.lower, dim)?,
                upper: rows(&l.upper, dim)?,
                stride: match &l.stride {
                    Some((m, e)) => Some((*m, e.to_row(dim)?)),
                    None => None,
                },
            });
        }
        for c in &nest.context {
            if !c.holds(&[])? {
                return Ok(None);
            }
        }
        let n_dims = piece.space.n_dims;
        Ok(Some(Walk {
            levels,
            point: vec![0; n_dims + nest.divs.len()],
            divs: nest.divs,
            guards: nest.guards,
            last: vec![0; n_dims],
            n_dims,
            state: WalkState::Fresh,
        }))
    }

    /// Starts loop `dim` for the current outer values; `false` when it has no iteration.
    fn enter(&mut self, dim: usize) -> Result<bool> {
        let level = &self.levels[dim];
        let outer = &self.point[..dim];
        let mut low: Option<Int> = None;
        for (row, m) in &level.lower {
            let v = value(row, outer)?;
            let v = if *m == 1 { v } else { ceil_div(v, *m)? };
            low = Some(low.map_or(v, |l| l.max(v)));
        }
        let mut high: Option<Int> = None;
        for (row, m) in &level.upper {
            let v = value(row, outer)?;
            let v = if *m == 1 { v } else { floor_div(v, *m)? };
            high = Some(high.map_or(v, |h| h.min(v)));
        }
        let (Some(mut low), Some(high)) = (low, high) else {
            return Err(Error::Unbounded { dim });
        };
        if let Some((m, residue)) = &level.stride {
            let r = value(residue, outer)?;
            low = add(low, modulo(crate::int::sub(r, low)?, *m)?)?;
        }
        self.point[dim] = low;
        self.last[dim] = high;
        Ok(low <= high)
    }

    fn step(&self, dim: usize) -> Int {
        self.levels[dim].stride.as_ref().map_or(1, |s| s.0)
    }

    /// Moves loop `dim` or an outer one to its next value; the dimension that moved.
    fn advance(&mut self, mut dim: usize) -> Result<Option<usize>> {
        loop {
            let next = add(self.point[dim], self.step(dim))?;
            if next <= self.last[dim] {
                self.point[dim] = next;
                return Ok(Some(dim));
            }
            if dim == 0 {
                return Ok(None);
            }
            dim -= 1;
        }
    }

    fn admits(&mut self) -> Result<bool> {
        for i in 0..self.divs.len() {
            let (e, m) = &self.divs[i];
            let q = floor_div(e.eval(&self.point[..self.n_dims + i])?, *m)?;
            self.point[self.n_dims + i] = q;
        }
        for g in &self.guards {
            if !g.holds(&self.point)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Moves to the next point; `false` at the end.
    fn next(&mut self) -> Result<bool> {
        let n = self.n_dims;
        let mut dim = match self.state {
            WalkState::Done => return Ok(false),
            WalkState::Fresh => {
                self.state = WalkState::Running;
                if n == 0 {
                    self.state = WalkState::Done;
                    return self.admits();
                }
                0
            }
            WalkState::Running => match self.advance(n - 1)? {
                Some(moved) => moved + 1,
                None => {
                    self.state = WalkState::Done;
                    return Ok(false);
                }
            },
        };
        loop {
            while dim < n {
                if self.enter(dim)? {
                    dim += 1;
                    continue;
                }
                let moved = if dim == 0 {
                    None
                } else {
                    self.advance(dim - 1)?
                };
                match moved {
                    Some(m) => dim = m + 1,
                    None => {
                        self.state = WalkState::Done;
                        return Ok(false);
                    }
                }
            }
            if self.guards.is_empty() || self.admits()? {
                return Ok(true);
            }
            match self.advance(n - 1)? {
                Some(m) => dim = m + 1,
                None => {
                    self.state = WalkState::Done;
                    return Ok(false);
                }
            }
        }
    }

    fn current(&self) -> &[Int] {
        &self.point[..self.n_dims]
    }
}

/// The points of a set at fixed parameters, in lexicographic order, each once. Made by [`Set::points`].
pub struct Points {
    walks: Vec<Walk>,
    started: bool,
}

impl Points {
    /// Moves to the next point and lends it; `None` at the end.
    pub fn next_point(&mut self) -> Result<Option<&[Int]>> {
        if !self.started {
            self.started = true;
            let mut alive = Vec::new();
            for mut w in std::mem::take(&mut self.walks) {
                if w.next()? {
                    alive.push(w);
                }
            }
            self.walks = alive;
        } else if self.walks.len() == 1 {
            if !self.walks[0].next()? {
                self.walks.clear();
            }
        } else if let Some(least) = self.least() {
            let point = self.walks[least].current().to_vec();
            let mut i = 0;
            while i < self.walks.len() {
                if self.walks[i].current() == point && !self.walks[i].next()? {
                    self.walks.remove(i);
                } else {
                    i += 1;
                }
            }
        }
        match self.least() {
            Some(i) => Ok(Some(self.walks[i].current())),
            None => Ok(None),
        }
    }

    fn least(&self) -> Option<usize> {
        (0..self.walks.len()).min_by(|&a, &b| self.walks[a].current().cmp(self.walks[b].current()))
    }
}

impl Iterator for Points {
    type Item = Result<Vec<Int>>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.next_point() {
            Ok(Some(p)) => Some(Ok(p.to_vec())),
            Ok(None) => None,
            Err(e) => {
                self.walks.clear();
                Some(Err(e))
            }
        }
    }
}

impl Set {
    /// The points at the given parameters in lexicographic order, each once.
    /// [`Error::Unbounded`] when there are infinitely many.
    pub fn points(&self, params: &[Int]) -> Result<Points> {
        check_len(params, self.space.n_params)?;
        let budget = &mut Budget::default();
        let fixed = self.fix_params(params)?.div_form_in(budget)?;
        let mut walks = Vec::new();
        for p in &fixed.pieces {
            let Some(p) = p.tidied(budget)? else { continue };
            if p.is_empty_in(budget)? {
                continue;
            }
            let pieces = if p.div_definitions()?.is_some() {
                vec![p]
            } else {
                p.eliminate(|_| false, budget)?
            };
            for q in &pieces {
                walks.extend(Walk::new(q, budget)?);
            }
        }
        Ok(Points {
            walks,
            started: false,
        })
    }

    /// Calls `visit` with each point at the given parameters in lexicographic order.
    pub fn for_each_point(&self, params: &[Int], mut visit: impl FnMut(&[Int])) -> Result<()> {
        let mut points = self.points(params)?;
        while let Some(p) = points.next_point()? {
            visit(p);
        }
        Ok(())
    }
}
