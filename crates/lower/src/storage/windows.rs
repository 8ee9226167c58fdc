//! Transfers: a window of an input is loaded into shared memory before it is used.
//!
//! The *window* is the box of all elements that the slots below a loop read, for one iteration of
//! that loop: its start is a form over the coordinates around it, its extents do not depend on
//! them. It is filled when the iteration begins, row by row in whole vectors. Outside the axes of
//! the input it holds the value that the input declares there, so reads need no test of these axes.
//! A box whose extents cannot be expressed in the parameters is not staged, and its elements are
//! read from the input. If the machine has warps of threads, all of them load the window together,
//! some iterations ahead if the mapping says so ([`staging`]).
//!
//! [`staging`]: crate::storage::staging

use systola_ir::array::{Array, Realisation, Role};
use systola_ir::form::{Form, Overflow, Poly};
use systola_ir::kernel::Shared;
use systola_ir::mapping::{Engine, Order, Rows, Store, Transfer};
use systola_ir::system::Expr;
use systola_ir::system::visit::walk;
use systola_ir::{InputId, SharedId};

use crate::clock::domain;
use crate::decide::{Decide, Undecided};
use crate::facts::Range;
use crate::failure::{Failure, limitation};
use crate::names::near;
use crate::storage::partition::Partition;
use crate::storage::slots::{Part, bounds};
use crate::storage::staging::Staging;

/// A window of an input.
#[derive(Clone, Debug)]
pub struct Window {
    pub input: InputId,
    pub store: SharedId,
    /// The number of time loops inside which it is filled.
    pub depth: usize,
    /// For each axis the first index, over the coordinates of the slot, and the extent.
    pub axes: Vec<(Form, Poly)>,
    /// The number of windows for which the array has room; the first axis selects one.
    pub stages: i128,
    pub engine: Engine,
    pub order: Order,
}

/// The windows that the transfers of a mapping ask for.
pub fn windows(
    array: &Array,
    decide: &Decide,
    partition: &Partition,
    staging: &Staging<'_>,
    shared: &mut Vec<Shared>,
) -> Result<Vec<Window>, Failure> {
    let mut asked = Vec::new();
    for transfer in &array.transfers {
        // Elements that are read often are in registers anyway; constants are read directly.
        if transfer.store != Store::Shared {
            continue;
        }
        let input = array
            .inputs
            .iter()
            .position(|i| i.name == transfer.source.text);
        if let Some(input) = input.map(InputId::from) {
            asked.push((transfer, input, depth(array, partition, transfer)?));
        }
    }
    let mut found = Vec::new();
    for (transfer, input, depth) in &asked {
        let (input, depth) = (*input, *depth);
        let Some(axes) = window(array, decide, partition, input, depth)? else {
            continue;
        };
        // Windows of one loop are loaded together, so all of them have the largest number of
        // stages.
        let together = asked.iter().filter(|(_, _, other)| *other == depth);
        let most = together.map(|(transfer, ..)| transfer.stages).max();
        let stages = staging.stages(depth, most.unwrap_or(1));
        let pad = match transfer.layout.rows {
            Rows::Chosen | Rows::Plain | Rows::Rotate => 0,
            Rows::Pad(n) => i128::from(n),
        };
        let mut extents: Vec<Poly> = axes.iter().map(|(_, extent)| extent.clone()).collect();
        let order = staging.order(transfer.layout.order, &extents);
        ordered(order, &mut extents);
        let declared = &array.inputs[input.index()];
        if let Some(last) = extents.last_mut() {
            *last = staging.row(last, declared.ty, pad);
        }
        if stages > 1 {
            extents.insert(0, Poly::constant(stages));
        }
        shared.push(Shared {
            name: near(&declared.name),
            ty: declared.ty,
            extents,
        });
        let store = SharedId::from(shared.len() - 1);
        found.push(Window {
            input,
            store,
            depth,
            axes,
            stages,
            engine: staging.engine(transfer.engine, declared.ty),
            order,
        });
    }
    Ok(found)
}

/// The number of time loops inside which the window is filled.
fn depth(array: &Array, partition: &Partition, transfer: &Transfer) -> Result<usize, Failure> {
    let Some(at) = &transfer.at else { return Ok(0) };
    let n_place = array.place.len();
    let named = |k: usize| match k.checked_sub(n_place) {
        None => [Some(&array.place[k].name), array.place[k].alias.as_ref()],
        Some(t) => [Some(&array.time[t].name), array.time[t].alias.as_ref()],
    };
    let is = |k: usize| named(k).contains(&Some(&at.text));
    if partition
        .blocks
        .iter()
        .chain(&partition.launches)
        .any(|k| is(*k))
    {
        return Ok(0);
    }
    if let Some(step) = partition.steps.iter().position(|k| is(*k)) {
        return Ok(step + 1);
    }
    Err(limitation(
        at.span,
        format!(
            "`{}` is staged at `{}`, which is no coordinate of a block or of time by itself",
            transfer.source.text, at.text
        ),
    ))
}

/// The box that is read at given outer coordinates.
fn window(
    array: &Array,
    decide: &Decide,
    partition: &Partition,
    input: InputId,
    depth: usize,
) -> Result<Option<Vec<(Form, Poly)>>, Undecided> {
    let given: Vec<usize> = [
        &partition.launches[..],
        &partition.blocks[..],
        &partition.steps[..depth],
    ]
    .concat();
    let reads = reads(array, input);
    let mut axes = Vec::new();
    for axis in 0..array.inputs[input.index()].axes.len() {
        let mut parts = Vec::new();
        for piece in &array.pieces {
            let coordinate = |k: usize| piece.coordinate(k).clone();
            for index in &reads {
                parts.push(Part {
                    cond: domain(array).and(piece.cond.clone()),
                    value: index[axis].clone(),
                    given: given.iter().map(|g| coordinate(*g)).collect(),
                });
            }
        }
        let range = bounds(decide, array.dims.len(), parts, &given)?;
        let Some(span) = span(&range) else {
            return Ok(None);
        };
        axes.push(span);
    }
    Ok(Some(axes))
}

/// A start, and an extent that does not depend on the coordinates; the smallest constant extent, if
/// there is one.
fn span(range: &Range) -> Option<(Form, Poly)> {
    let mut all: Vec<(Form, Poly)> = Vec::new();
    for lo in &range.lo {
        for hi in &range.hi {
            if let Some(extent) = hi.sub(lo).as_poly() {
                all.push((lo.clone(), extent.clone()));
            }
        }
    }
    let number = |(_, extent): &(Form, Poly)| extent.as_constant().unwrap_or(i128::MAX);
    all.into_iter().min_by_key(number)
}

/// The indices at which cells read an input.
fn reads(array: &Array, input: InputId) -> Vec<&[Form]> {
    let mut found: Vec<&[Form]> = Vec::new();
    for cell in &array.cells {
        walk(&cell.body, &mut |e| {
            if let Expr::Input {
                input: read, index, ..
            } = e
                && *read == input
            {
                found.push(index);
            }
        });
    }
    for port in &array.ports {
        let again = port.links.iter().any(|l| {
            matches!(
                l.realisation,
                Realisation::Reinject | Realisation::Broadcast
            )
        });
        if let Role::Propagation {
            input: read, index, ..
        } = &array.cells[port.source.index()].role
            && *read == input
            && again
        {
            found.push(index);
        }
    }
    found
}

impl Window {
    /// The first indices for the iteration at this slot.
    pub fn starts(&self, slot: &[Form]) -> Result<Vec<Form>, Overflow> {
        let starts = self.axes.iter();
        starts
            .map(|(start, _)| start.substitute(&|d| slot.get(d.index()).cloned()))
            .collect()
    }

    /// The index in the shared array for an index in the window.
    pub fn index(&self, stage: &Form, at: &[Form]) -> Vec<Form> {
        let mut at = at.to_vec();
        ordered(self.order, &mut at);
        let ring = (self.stages > 1).then(|| stage.clone());
        ring.into_iter().chain(at).collect()
    }
}

/// The axes of a window in the order of the shared array.
fn ordered<T>(order: Order, axes: &mut [T]) {
    match (order, axes) {
        (Order::Columns, [.., row, column]) => std::mem::swap(row, column),
        (Order::Rows | Order::Columns, _) => {}
    }
}

#[cfg(test)]
mod tests {
    use systola_ir::DimId;

    use super::*;

    #[test]
    fn the_smallest_number_is_the_extent() {
        let v = |n: usize| Form::from(DimId::from(n));
        let range = Range {
            lo: vec![v(0), Form::from(0)],
            hi: vec![v(0).plus(34), v(1)],
        };
        assert_eq!(span(&range), Some((v(0), Poly::constant(34))));
        let open = Range {
            lo: vec![v(0)],
            hi: vec![v(1)],
        };
        assert_eq!(span(&open), None);
    }
}
