//! A system at given sizes: known parameters become numbers in every index expression.
//!
//! The parameters stay declared, with an equation in the context, so that arrays of both kinds run
//! and report alike.

use systola_ir::form::{Cond, Form, Overflow, Rel};
use systola_ir::system::{System, map_forms};
use systola_ir::{Diagnostic, ParamId};

use crate::localise::overflow;

/// Fixes the parameters for which a value is given.
pub fn specialise(system: &System, sizes: &[Option<i128>]) -> Result<System, Diagnostic> {
    fix(system, sizes).map_err(|o| overflow(o, system.span))
}

/// The same; `Err` if a number leaves the range of forms.
pub fn fix(system: &System, sizes: &[Option<i128>]) -> Result<System, Overflow> {
    let value = |p: ParamId| sizes.get(p.index()).copied().flatten();
    let form = |f: &Form| f.fix_params(&value);
    let all = |list: &mut Vec<Cond>| -> Result<(), Overflow> {
        for cond in list {
            *cond = cond.map(&form)?;
        }
        Ok(())
    };
    let mut fixed = system.clone();
    all(&mut fixed.context)?;
    for (n, size) in sizes.iter().enumerate() {
        if let Some(size) = size {
            fixed
                .context
                .push(Cond::cmp(Rel::Eq, ParamId::from(n), *size));
        }
    }
    all(&mut fixed.domain)?;
    if let Some(batch) = &mut fixed.batch {
        batch.range = (form(&batch.range.0)?, form(&batch.range.1)?);
    }
    let own = fixed
        .vars
        .iter_mut()
        .flat_map(|v| v.own.iter_mut().flatten());
    for dim in fixed.dims.iter_mut().chain(&mut fixed.bound).chain(own) {
        if let Some((lo, hi)) = &dim.range {
            dim.range = Some((form(lo)?, form(hi)?));
        }
    }
    for axis in fixed
        .inputs
        .iter_mut()
        .flat_map(|i| &mut i.axes)
        .chain(fixed.outputs.iter_mut().flat_map(|o| &mut o.axes))
    {
        axis.lo = form(&axis.lo)?;
        axis.hi = form(&axis.hi)?;
    }
    for var in &mut fixed.vars {
        all(&mut var.on)?;
        var.body = map_forms(&var.body, &form)?;
    }
    for write in fixed.outputs.iter_mut().flat_map(|o| &mut o.writes) {
        write.value = map_forms(&write.value, &form)?;
        write.when = write.when.map(&form)?;
        for index in &mut write.index {
            *index = form(index)?;
        }
    }
    Ok(fixed)
}
