//! Renumbers the iterators of sums once some of them are gone.

use std::collections::BTreeMap;

use systola_ir::form::{Form, Overflow};
use systola_ir::system::visit::map_iterators;
use systola_ir::system::{Expr, System, map_forms};
use systola_ir::{DimId, Span};

/// Keeps these iterators of sums in this order; `new` maps each remaining old iterator to its new
/// number. An overflow is returned with its position.
pub(super) fn renumber_bound(
    system: &mut System,
    kept: &[DimId],
    new: &BTreeMap<DimId, DimId>,
) -> Result<(), (Overflow, Span)> {
    let renamed = |d: DimId| *new.get(&d).unwrap_or(&d);
    let rename = |f: &Form| f.substitute(&|d| new.get(&d).map(|d| Form::from(*d)));
    let mut bound = Vec::new();
    for d in kept {
        let mut dim = system.dim(*d).clone();
        if let Some((lo, hi)) = &mut dim.range {
            *lo = rename(lo).map_err(|o| (o, dim.span))?;
            *hi = rename(hi).map_err(|o| (o, dim.span))?;
        }
        bound.push(dim);
    }
    system.bound = bound;
    for var in &mut system.vars {
        let body = map_forms(&var.body, &rename).map_err(|o| (o, var.span))?;
        var.body = map_iterators(&body, &|d| Expr::Iter(renamed(d)), &|d| vec![renamed(d)]);
    }
    Ok(())
}
