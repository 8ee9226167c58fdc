//! Peels single iterations off both ends of a loop.
//!
//! If the outcome of a test changes at the first or the last iterations, these are emitted on their
//! own, and the loop between them needs no test.

use systola_ir::DimId;
use systola_ir::form::{Atom, Cond, Form, Poly, Rel};

use crate::facts::Range;
use crate::failure::Failure;
use crate::nest::context::{At, Context, Path};
use crate::nest::walk::Walk;

/// At most this many iterations at each end.
const MOST: i128 = 2;

impl<'a> Context<'a> {
    /// The numbers of first and last iterations of a loop with tests that the other iterations do
    /// not need.
    pub(super) fn peel(
        &self,
        depth: usize,
        k: usize,
        range: &Range,
        at: &At<'a>,
    ) -> Result<(i128, i128), Failure> {
        let Some((lo, hi)) = range.single() else {
            return Ok((0, 0));
        };
        if !self.is_known() || at.path == Path::Edge {
            return Ok((0, 0));
        }
        let inner: Vec<usize> = self.partition.steps[depth + 1..]
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
            let plain = gap.terms().all(|(atom, _)| match atom {
                Atom::Dim(_) => true,
                // The same for all points: a rounded quotient of sizes.
                Atom::Floor(inner, _) | Atom::Mod(inner, _) => inner.dims().is_empty(),
            });
            if !plain || gap.dims().iter().any(|d| inner.contains(&d.index())) {
                continue;
            }
            // gap = sign·t + rest: zero at t = −sign·rest.
            let rest = gap.sub(&Form::from(DimId::from(k)).scale(&Poly::constant(sign))?);
            let zero = at.value(&rest.scale(&Poly::constant(-sign))?)?;
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
        let copies = usize::try_from(1 + first + last).unwrap_or(1);
        let iteration = self.tick_cost().saturating_mul(self.copies_inside(depth));
        let cost = iteration.saturating_mul(copies);
        // A test costs a thread relatively more, since its other instructions do not process a
        // whole vector each.
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

    /// The number of copies of a tick in the statements of one iteration.
    fn copies_inside(&self, depth: usize) -> usize {
        let inner = self.partition.steps[depth + 1..].iter();
        let copies = inner.zip(&self.walk[depth + 1..]).map(|(k, walk)| {
            let iterations = match walk {
                Walk::Unrolled => self.slots.ranges[*k].constant(),
                Walk::By(n) => Some((0, *n)),
                Walk::Rolled => None,
            };
            let (lo, hi) = iterations.unwrap_or((0, 1));
            usize::try_from(hi - lo).unwrap_or(1).max(1)
        });
        copies.product()
    }
}
