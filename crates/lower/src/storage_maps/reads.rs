//! The reads of stored values in an array.

use systola_ir::array::Array;
use systola_ir::form::{Cond, Form, Rel};
use systola_ir::system::Expr;
use systola_ir::system::visit::children;
use systola_ir::{DimId, Span, VarId};

/// A read of a value of another point.
#[derive(Clone, Debug)]
pub struct StoredRead {
    pub sink: VarId,
    pub source: VarId,
    /// The point that is read, over the point that reads and the iterators of its sums.
    pub index: Vec<Form>,
    /// Where it is read, over the same.
    pub when: Cond,
    pub span: Span,
}

/// All reads of stored values.
pub fn stored_reads(array: &Array) -> Vec<StoredRead> {
    let mut reads = Vec::new();
    for (n, cell) in array.cells.iter().enumerate() {
        collect(array, VarId::from(n), &cell.body, &cell.domain, &mut reads);
    }
    reads
}

/// The iterators of points and of sums together.
pub fn n_columns(array: &Array) -> usize {
    array.dims.len() + array.bound.len()
}

/// The range of an iterator of a sum.
pub fn bound_range(array: &Array, d: DimId) -> Cond {
    let bound = d.index().checked_sub(array.dims.len());
    match bound.and_then(|n| array.bound[n].range.clone()) {
        Some((lo, hi)) => Cond::Cmp(Rel::Le, lo, d.into()).and(Cond::Cmp(Rel::Lt, d.into(), hi)),
        None => Cond::TRUE,
    }
}

fn collect(array: &Array, sink: VarId, expr: &Expr, when: &Cond, reads: &mut Vec<StoredRead>) {
    match expr {
        Expr::Var { var, index, span } => reads.push(StoredRead {
            sink,
            source: *var,
            index: index.clone(),
            when: when.clone(),
            span: *span,
        }),
        Expr::Guard {
            cond,
            then,
            otherwise,
        } => {
            collect(array, sink, then, &when.clone().and(cond.clone()), reads);
            if let Some(otherwise) = otherwise {
                let outside = when.clone().and(cond.clone().negate());
                collect(array, sink, otherwise, &outside, reads);
            }
        }
        Expr::Reduce { dims, body, .. } => {
            let ranges = dims.iter().map(|d| bound_range(array, *d));
            let inside = ranges.fold(when.clone(), Cond::and);
            collect(array, sink, body, &inside, reads);
        }
        other => {
            for child in children(other) {
                collect(array, sink, child, when, reads);
            }
        }
    }
}
