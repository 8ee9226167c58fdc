//! The points of a set in order, at given parameters.

use super::nest_of;
use crate::basic::{BasicSet, check_len};
use crate::error::{Error, Result};
use crate::expr::{Constraint, LinExpr};
use crate::int::{Int, add, ceil_div, floor_div, modulo};
use crate::set::Set;
use crate::system::{Budget, Row};
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
    /// The last value of each active loop.
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

    /// Moves loop `dim` or an outer one to its next value; returns the dimension that moved.
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

/// The points of a set at fixed parameters, in lexicographic order, each once. Made by
/// [`Set::points`].
pub struct Points {
    walks: Vec<Walk>,
    started: bool,
}

impl Points {
    /// Moves to the next point and returns a reference to it; `None` at the end.
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
