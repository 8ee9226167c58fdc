//! Loops that advance by several iterations.

use systola_ir::form::Poly;

use crate::facts::Range;
use crate::failure::Failure;
use crate::nest::build::Body;
use crate::nest::context::{At, Context};
use crate::nest::tree::{Nest, sequence};
use crate::nest::walk::{Walk, tick_cost};

impl<'a> Context<'a> {
    pub(super) fn tick_cost(&self) -> usize {
        tick_cost(self.array, self.slots, self.partition)
    }

    /// Ticks of an iteration of the loop at `depth`, if all loops inside it are unrolled.
    pub(super) fn ticks_inside(&self, depth: usize) -> Option<usize> {
        let inner = self.partition.steps[depth + 1..].iter();
        let walks = inner.zip(&self.walk[depth + 1..]);
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

    /// The factor by which the mapping unrolls a loop that remains; one if it says nothing.
    pub(super) fn copies(&self, depth: usize) -> i128 {
        match self.walk[depth] {
            Walk::By(n) => n,
            Walk::Unrolled | Walk::Rolled => 1,
        }
    }

    /// A loop that advances by `copies` iterations, and one over the remaining iterations.
    pub(super) fn unrolled_by(
        &self,
        k: usize,
        range: Range,
        copies: i128,
        at: &At<'a>,
        body: &Body<'_, 'a>,
    ) -> Result<Nest, Failure> {
        let single = range.single().map(|(lo, hi)| (lo.clone(), hi.clone()));
        let mut all = Vec::new();
        let rest = match single {
            Some((lo, hi)) if copies > 1 => {
                let main = Range::new(lo.clone(), hi.plus(1 - copies));
                all.push(self.for_each(k, main, copies, range, at, body)?);
                let whole = hi
                    .sub(&lo)
                    .floor_div(copies)
                    .scale(&Poly::constant(copies))?;
                Range {
                    lo: vec![lo.clone(), lo.add(&whole)],
                    hi: vec![hi],
                }
            }
            Some(_) | None => range,
        };
        let rest = rest.without_implied(&at.facts);
        all.push(self.for_each(k, rest.clone(), 1, rest, at, body)?);
        Ok(sequence(all))
    }
}
