//! Every value is defined, and every element of an input exists, where it is read.

use systola_ir::Scalar;
use systola_ir::codes::system as codes;
use systola_ir::diag::Diagnostic;
use systola_ir::form::{Cond, Form, Rel};
use systola_ir::id::{InputId, VarId};
use systola_ir::sets::SetError;
use systola_ir::system::System;

use super::view::{Frame, Read, Sink, Source, View, conjuncts};
use super::witness::{Witness, failure, list, named_point, tuple};
use crate::dependences::{forms, reference};

pub(super) fn read(view: &View, n: usize) -> Result<Option<Diagnostic>, SetError> {
    let read = &view.reads[n];
    match read.source {
        Source::Var(var) => variable(view, read, var),
        Source::Input(input) => element(view, read, input),
    }
}

fn variable(view: &View, read: &Read, var: VarId) -> Result<Option<Diagnostic>, SetError> {
    let system: &System = &view.around(read.sink);
    if matches!(read.sink, Sink::Write { .. }) && read.written != system.identity_index() {
        return Ok(Some(elsewhere(view, read, var)));
    }
    let source_view = &view.system.around(var);
    let needed = conjuncts(view.system.var_domain(var));
    let undefined = view.undefined(Sink::Var(var))?;
    let Some(offence) = offences(view, read, &needed, undefined.as_ref())? else {
        return Ok(None);
    };
    let source = read
        .index
        .iter()
        .map(|form| form.eval(&offence.witness.params, &offence.by_id))
        .collect::<Result<Vec<_>, _>>()?;
    let name = &system.vars[var.index()].name;
    let text = reference(system, var, &read.written);
    let read_at = format!(
        "{text} is read at {}{}",
        offence.place,
        offence.witness.sizes(system)
    );
    let failed = failing(&needed, &offence.witness.params, &source)?;
    let diagnostic = match failed {
        Some(cond) => {
            let why = failure(source_view, cond, &offence.witness.params, &source)?;
            Diagnostic::new(
                &codes::READ_OUTSIDE,
                read.span,
                format!("{read_at}, but {name} is not defined at {}: {why}", tuple(&source)),
            )
            .help(guarded_variable(system, cond, &read.written, &text)?)
        }
        None => Diagnostic::new(
            &codes::READ_UNDEFINED,
            read.span,
            format!(
                "{read_at}, but the equation of {name} gives no value at {}: no branch of its `select` holds there",
                tuple(&source)
            ),
        )
        .also(system.vars[var.index()].span, format!("`{name}` is defined here"))
        .help("give the `select` a third argument, or guard this reference"),
    };
    Ok(Some(
        diagnostic.counterexample(offence.witness.counterexample(
            system,
            &offence.names,
            vec![offence.witness.point.clone()],
        )),
    ))
}

/// The guard to write around the reference: the condition of the domain that failed, at the
/// reference.
fn guarded_variable(
    system: &System,
    cond: &Cond,
    written: &[Form],
    text: &str,
) -> Result<String, SetError> {
    let at_reference = cond.map(&|form| form.substitute(&|dim| written.get(dim.index()).cloned()));
    let (params, dims) = (system.param_names(), system.dim_names());
    let guard = at_reference?.display(&params, &dims).to_string();
    Ok(format!(
        "say what is read there instead of `{text}`: `select({guard}, {text}, …)`"
    ))
}

fn elsewhere(view: &View, read: &Read, var: VarId) -> Diagnostic {
    let system = &view.around(read.sink);
    let name = &system.vars[var.index()].name;
    let text = reference(system, var, &read.written);
    Diagnostic::new(
        &codes::OUTPUT_ELSEWHERE,
        read.span,
        format!("an output reads {text}, which is not the value at the point itself"),
    )
    .help(format!(
        "write `{name}` from the point where it is computed, with `when`"
    ))
}

fn element(view: &View, read: &Read, input: InputId) -> Result<Option<Diagnostic>, SetError> {
    let system = &view.around(read.sink);
    let declared = &system.inputs[input.index()];
    if declared.outside.is_some() {
        return Ok(None);
    }
    let needed: Vec<Cond> = declared
        .axes
        .iter()
        .zip(&read.index)
        .flat_map(|(axis, index)| within(&axis.lo, index, &axis.hi))
        .collect();
    let Some(offence) = offending(view, read, &needed)? else {
        return Ok(None);
    };
    let params = &offence.witness.params;
    let element = read
        .index
        .iter()
        .map(|form| form.eval(params, &offence.by_id))
        .collect::<Result<Vec<_>, _>>()?;
    let (names, dims) = (system.param_names(), system.dim_names());
    let (mut why, mut guard) = (String::new(), String::new());
    for ((axis, value), index) in declared.axes.iter().zip(&element).zip(&read.written) {
        let outside = outside_axis(view, (&axis.lo, &axis.hi), *value, params)?;
        if let Some(text) = outside {
            let (rel, bound) = if *value < axis.lo.eval(params, &[])? {
                (">=", &axis.lo)
            } else {
                ("<", &axis.hi)
            };
            let (index, bound) = (index.display(&names, &dims), bound.display(&names, &[]));
            guard = format!("{index} {rel} {bound}");
            why = text;
            break;
        }
    }
    let zero = if declared.ty == Scalar::Bool {
        "false"
    } else {
        "0"
    };
    let axes: Vec<String> = declared
        .axes
        .iter()
        .map(|axis| {
            let hi = axis.hi.display(&names, &[]);
            if axis.lo == Form::from(0) {
                hi.to_string()
            } else {
                format!("{}..{hi}", axis.lo.display(&names, &[]))
            }
        })
        .collect();
    let axes = axes.join(", ");
    let name = &declared.name;
    let written = forms(system, &read.written);
    let message = format!(
        "{name}[{written}] is read at {}{}, but {name}[{}] does not exist: {why}",
        offence.place,
        offence.witness.sizes(system),
        list(&element)
    );
    Ok(Some(
        Diagnostic::new(&codes::INPUT_OUTSIDE, read.span, message)
            .also(declared.span, format!("`{name}` is declared here"))
            .help(format!(
                "guard the read, `select({guard}, {name}[{written}], {zero})`, make the axis longer, or give the elements outside a value: `input {name}[{axes}]: {} else {zero}`",
                declared.ty
            ))
            .counterexample(offence.witness.counterexample(
                system,
                &offence.names,
                vec![offence.witness.point.clone()],
            )),
    ))
}

/// `4 is not < C`, if the value lies outside `lo..hi`.
pub(super) fn outside_axis(
    view: &View,
    (lo, hi): (&Form, &Form),
    value: i128,
    params: &[i128],
) -> Result<Option<String>, SetError> {
    let names = view.system.param_names();
    Ok(if value < lo.eval(params, &[])? {
        Some(format!("{value} is not >= {}", lo.display(&names, &[])))
    } else if value >= hi.eval(params, &[])? {
        Some(format!("{value} is not < {}", hi.display(&names, &[])))
    } else {
        None
    })
}

/// lo <= index and index < hi.
pub(super) fn within(lo: &Form, index: &Form, hi: &Form) -> [Cond; 2] {
    [
        Cond::cmp(Rel::Le, lo.clone(), index.clone()),
        Cond::cmp(Rel::Lt, index.clone(), hi.clone()),
    ]
}

struct Offence {
    witness: Witness,
    names: Vec<String>,
    place: String,
    /// The values of all iterators by their ids.
    by_id: Vec<i128>,
}

/// The first point where the index of a read leaves `needed`, a condition on the point that is
/// read, or where the point that is read has no value.
fn offences(
    view: &View,
    read: &Read,
    needed: &[Cond],
    undefined: Option<&affine::Set>,
) -> Result<Option<Offence>, SetError> {
    let at_index = |form: &Form| form.substitute(&|d| read.index.get(d.index()).cloned());
    let needed = needed
        .iter()
        .map(|cond| cond.map(&at_index))
        .collect::<Result<Vec<_>, _>>()?;
    first_offence(view, read, &needed, undefined)
}

/// The first point of a read where one of `needed`, conditions on the reading point, does not hold.
fn offending(view: &View, read: &Read, needed: &[Cond]) -> Result<Option<Offence>, SetError> {
    first_offence(view, read, needed, None)
}

fn first_offence(
    view: &View,
    read: &Read,
    needed: &[Cond],
    undefined: Option<&affine::Set>,
) -> Result<Option<Offence>, SetError> {
    let system = &view.around(read.sink);
    let given: Vec<Cond> = read
        .site
        .conds
        .iter()
        .cloned()
        .flat_map(conjuncts)
        .collect();
    let open: Vec<&Cond> = needed.iter().filter(|cond| !given.contains(cond)).collect();
    if open.is_empty() && undefined.is_none() {
        return Ok(None);
    }
    let frame = Frame::new(system, &read.site.inner);
    let reached = view.reached(read.sink, &read.site)?;
    let mut bad = affine::Set::empty(frame.space);
    for cond in open {
        let outside = frame.set(&[cond.clone().negate()])?;
        let here = reached.intersect(&outside)?;
        if !here.is_empty()? {
            bad = bad.union(&here)?;
        }
    }
    if let Some(undefined) = undefined {
        let here = reached.intersect(&undefined.preimage(&frame.map(&read.index)?)?)?;
        bad = bad.union(&here)?;
    }
    let Some(witness) = Witness::first(&bad)? else {
        return Ok(None);
    };
    let all_names = read.site.names(system);
    let mut by_id = vec![0; all_names.len()];
    let mut names = Vec::with_capacity(frame.dims.len());
    for (d, value) in frame.dims.iter().zip(&witness.point) {
        by_id[d.index()] = *value;
        names.push(all_names[d.index()].clone());
    }
    let place = named_point(&names, &witness.point);
    Ok(Some(Offence {
        witness,
        names,
        place,
        by_id,
    }))
}

/// The first of some conditions that does not hold at a point.
fn failing<'a>(
    conds: &'a [Cond],
    params: &[i128],
    point: &[i128],
) -> Result<Option<&'a Cond>, SetError> {
    for cond in conds {
        if !cond.eval(params, point)? {
            return Ok(Some(cond));
        }
    }
    Ok(None)
}
