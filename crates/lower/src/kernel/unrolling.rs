//! How much of a loop is written out.
//!
//! A time coordinate is unrolled if the mapping says so, wholly or by some number of steps, or if the code stays within
//! its budget, the innermost first. A loop that stays is peeled where the tests of the cells change at its first or
//! last turns, so that its body has none of them.

use systola_ir::DimId;
use systola_ir::array::TimeCoord;
use systola_ir::form::{Atom, Cond, Form, Poly, Rel};

use crate::apply_mapping::Failure;
use crate::kernel::facts::Range;
use crate::kernel::loops::Emitter;
use crate::kernel::partition::Pes;

/// However many turns the mapping wants written out, more only take longer to compile.
const MOST_COPIES: i128 = 64;

/// How the turns of a loop become statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    Unrolled,
    /// In a loop that advances by so many.
    By(i128),
    Rolled,
}

impl Emitter<'_> {
    /// Values that one tick computes, roughly.
    pub fn tick_cost(&self) -> usize {
        let mut ops = 0;
        for cell in &self.array.cells {
            systola_ir::system::visit::walk(&cell.body, &mut |_| ops += 1);
        }
        (ops * self.known_pes().len()).max(1)
    }

    pub fn choose_unrolling(&self) -> Vec<Walk> {
        let steps = &self.partition.steps;
        let mut walk = vec![Walk::Rolled; steps.len()];
        if !matches!(self.partition.walk, Pes::Known { .. }) {
            return walk;
        }
        let mut cost = self.tick_cost();
        let mut open = true;
        for (at, k) in steps.iter().enumerate().rev() {
            let asked = self.asked_to_unroll(k - self.array.place.len());
            if let Some(Walk::By(n)) = asked {
                walk[at] = Walk::By(n);
                cost = cost.saturating_mul(usize::try_from(n).unwrap_or(1));
                open = false;
                continue;
            }
            let Some((lo, hi)) = self.slots.ranges[*k].constant() else {
                open = false;
                continue;
            };
            let extent = usize::try_from(hi - lo).unwrap_or(usize::MAX).max(1);
            let more = cost.saturating_mul(extent);
            // What the innermost loop reads again is loaded once when it is unrolled, and that is
            // worth more code than the loops around it.
            let budget = if at + 1 == steps.len() {
                4 * self.machine.code_budget
            } else {
                self.machine.code_budget
            };
            if asked.is_some() || (open && more <= budget) {
                walk[at] = Walk::Unrolled;
                cost = more;
            } else {
                open = false;
            }
        }
        walk
    }

    /// Ticks of a turn of the loop `at`, where all loops inside of it are written out.
    pub fn ticks_inside(&self, at: usize) -> Option<usize> {
        let inner = self.partition.steps[at + 1..].iter();
        let walks = inner.zip(&self.walk[at + 1..]);
        walks
            .map(|(k, walk)| match walk {
                Walk::Unrolled => {
                    let (lo, hi) = self.slots.ranges[*k].constant()?;
                    usize::try_from(hi - lo).ok()
                }
                Walk::By(_) | Walk::Rolled => None,
            })
            .product()
    }

    /// What the mapping says of this time coordinate in `unroll`.
    pub fn asked_to_unroll(&self, t: usize) -> Option<Walk> {
        let TimeCoord { name, alias, .. } = &self.array.time[t];
        let mut asked = self.array.unroll.iter();
        let (_, by) = asked.find(|(asked, _)| asked == name || Some(asked) == alias.as_ref())?;
        Some(match by {
            None => Walk::Unrolled,
            Some(n) => Walk::By(i128::from(*n).clamp(1, MOST_COPIES)),
        })
    }

    /// How many turns of a loop that stays the mapping wants one after the other.
    pub fn written_out(&self, at: usize) -> i128 {
        match self.walk[at] {
            Walk::By(n) => n,
            Walk::Unrolled | Walk::Rolled => 1,
        }
    }

    /// How many first and last turns of a loop have tests that the others do not have.
    pub fn peel(
        &self,
        at: usize,
        k: usize,
        range: &Range,
        slot: &[Form],
    ) -> Result<(i128, i128), Failure> {
        const MOST: i128 = 2;
        let Some((lo, hi)) = range.single() else {
            return Ok((0, 0));
        };
        if !matches!(self.partition.walk, Pes::Known { .. }) || self.at_edge {
            return Ok((0, 0));
        }
        let inner: Vec<usize> = self.partition.steps[at + 1..]
            .iter()
            .copied()
            .chain(self.partition.places())
            .collect();
        let (mut first, mut last) = (0, 0);
        for test in &self.tests {
            let Cond::Cmp(rel, left, right) = &test.cond else {
                continue;
            };
            let gap = left.sub(right);
            let sign = match gap.coefficient(DimId::from(k)).as_constant() {
                Some(s @ (1 | -1)) => s,
                _ => continue,
            };
            let plain = gap.terms().all(|(atom, _)| matches!(atom, Atom::Dim(_)));
            if !plain || gap.dims().iter().any(|d| inner.contains(&d.index())) {
                continue;
            }
            // gap = sign·t + rest: zero at t = −sign·rest.
            let rest = gap.sub(&Form::from(DimId::from(k)).scale(&Poly::constant(sign))?);
            let zero = rest
                .scale(&Poly::constant(-sign))?
                .substitute(&|d| slot.get(d.index()).cloned())?;
            let changes = match rel {
                Rel::Eq | Rel::Ne => vec![zero.clone(), zero.plus(1)],
                Rel::Ge | Rel::Lt => vec![if sign > 0 { zero } else { zero.plus(1) }],
                Rel::Gt | Rel::Le => vec![if sign > 0 { zero.plus(1) } else { zero }],
            };
            for change in changes {
                if let Some(n) = change.sub(lo).as_constant()
                    && (1..=MOST).contains(&n)
                {
                    first = first.max(n);
                }
                if let Some(n) = hi.sub(&change).as_constant()
                    && (1..=MOST).contains(&n)
                {
                    last = last.max(n);
                }
            }
        }
        let inside: usize = self.partition.steps[at + 1..]
            .iter()
            .zip(&self.walk[at + 1..])
            .map(|(k, walk)| {
                let turns = match walk {
                    Walk::Unrolled => self.slots.ranges[*k]
                        .constant()
                        .map_or(1, |(lo, hi)| hi - lo),
                    Walk::By(n) => *n,
                    Walk::Rolled => 1,
                };
                usize::try_from(turns).unwrap_or(1).max(1)
            })
            .product();
        let copies = usize::try_from(1 + first + last).unwrap_or(1);
        let cost = self
            .tick_cost()
            .saturating_mul(inside)
            .saturating_mul(copies);
        // Threads have no vector's worth of work in each instruction that a test costs.
        let budgets = if self.machine.threads.is_some() {
            32
        } else {
            8
        };
        if cost > budgets * self.machine.code_budget {
            return Ok((0, 0));
        }
        Ok((first, last))
    }
}
