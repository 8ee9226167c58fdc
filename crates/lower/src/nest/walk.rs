//! Which loops are unrolled.
//!
//! A time coordinate is unrolled if the mapping says so, fully or by a factor, or if the code stays
//! within its budget, the innermost first.

use systola_ir::array::{Array, TimeCoord};
use systola_ir::system::visit::walk;
use systola_ir::target::Machine;

use crate::storage::partition::{Partition, Pes};
use crate::storage::slots::Slots;

/// Whatever factor the mapping asks for, more copies than this only take longer to compile.
const MOST_COPIES: i128 = 64;

/// How the iterations of a loop become statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    Unrolled,
    /// A loop that advances by this number of iterations.
    By(i128),
    Rolled,
}

/// The approximate number of operations in one tick.
pub fn tick_cost(array: &Array, slots: &Slots, partition: &Partition) -> usize {
    let mut ops = 0;
    for cell in &array.cells {
        walk(&cell.body, &mut |_| ops += 1);
    }
    (ops * partition.known_pes(slots).len()).max(1)
}

/// How each of the steps runs, the outermost first.
pub fn choose(array: &Array, slots: &Slots, partition: &Partition, machine: &Machine) -> Vec<Walk> {
    let steps = &partition.steps;
    let mut walk = vec![Walk::Rolled; steps.len()];
    if !matches!(partition.walk, Pes::Known { .. }) {
        return walk;
    }
    let mut cost = tick_cost(array, slots, partition);
    let mut open = true;
    for (depth, k) in steps.iter().enumerate().rev() {
        let asked = asked(array, k - array.place.len());
        if let Some(Walk::By(n)) = asked {
            walk[depth] = Walk::By(n);
            cost = cost.saturating_mul(usize::try_from(n).unwrap_or(1));
            open = false;
            continue;
        }
        let Some((lo, hi)) = slots.ranges[*k].constant() else {
            open = false;
            continue;
        };
        let extent = usize::try_from(hi - lo).unwrap_or(usize::MAX).max(1);
        let more = cost.saturating_mul(extent);
        // An unrolled innermost loop loads an element that several iterations read only once, which
        // is worth more code than unrolling the loops around it.
        let budget = if depth + 1 == steps.len() {
            4 * machine.code_budget
        } else {
            machine.code_budget
        };
        if asked.is_some() || (open && more <= budget) {
            walk[depth] = Walk::Unrolled;
            cost = more;
        } else {
            open = false;
        }
    }
    walk
}

/// What the mapping says about a time coordinate in `unroll`.
fn asked(array: &Array, t: usize) -> Option<Walk> {
    let TimeCoord { name, alias, .. } = &array.time[t];
    let mut asked = array.unroll.iter();
    let (_, by) = asked.find(|(asked, _)| asked == name || Some(asked) == alias.as_ref())?;
    Some(match by {
        None => Walk::Unrolled,
        Some(n) => Walk::By(i128::from(*n).clamp(1, MOST_COPIES)),
    })
}
