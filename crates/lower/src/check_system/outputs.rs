//! Every element of an output is written exactly once, and inside its axes.

use affine::{BasicSetBuilder, LinExpr, Set, Space};
use systola_ir::Type;
use systola_ir::codes::system as codes;
use systola_ir::diag::Diagnostic;
use systola_ir::form::{Cond, Form};
use systola_ir::id::DimId;
use systola_ir::sets::{SetError, constrain, lin_expr, set_of, union};
use systola_ir::system::{Output, System};

use super::defined::{outside_axis, within};
use super::view::{Frame, Sink, View};
use super::witness::{Witness, list, named_point};
use crate::dependences::forms;

/// The condition under which a write takes place, over its own iterators.
fn active(view: &View, output: usize, write: usize) -> Cond {
    let system = &view.around(Sink::Write { output, write });
    let when = system.outputs[output].writes[write].when.clone();
    system.context_cond().and(system.domain_cond()).and(when)
}

fn dim_names(system: &System) -> Vec<String> {
    system.dims.iter().map(|d| d.name.clone()).collect()
}

/// The value of a write is defined at every point where it takes place.
pub(super) fn value(
    view: &View,
    output: usize,
    write: usize,
) -> Result<Option<Diagnostic>, SetError> {
    let system: &System = &view.around(Sink::Write { output, write });
    let Some(undefined) = view.undefined(Sink::Write { output, write })? else {
        return Ok(None);
    };
    let Some(witness) = Witness::first(&undefined)? else {
        return Ok(None);
    };
    let declared = &system.outputs[output];
    let names = dim_names(system);
    let message = format!(
        "{}[{}] is written at {}{}, but its value is undefined there: no branch of its `select` holds",
        declared.name,
        forms(system, &declared.writes[write].index),
        named_point(&names, &witness.point),
        witness.sizes(system)
    );
    Ok(Some(
        Diagnostic::new(
            &codes::WRITE_UNDEFINED,
            declared.writes[write].span,
            message,
        )
        .help(
            "move the condition to the `when` of the write, or give the `select` a third argument",
        )
        .counterexample(witness.counterexample(
            system,
            &names,
            vec![witness.point.clone()],
        )),
    ))
}

/// The index of a write stays inside the axes.
pub(super) fn inside(
    view: &View,
    output: usize,
    write: usize,
) -> Result<Option<Diagnostic>, SetError> {
    let system: &System = &view.around(Sink::Write { output, write });
    let declared = &system.outputs[output];
    let written = &declared.writes[write];
    let frame = Frame::new(system, &[]);
    let active = frame.set(&[active(view, output, write)])?;
    let mut bad = Set::empty(frame.space);
    for (axis, index) in declared.axes.iter().zip(&written.index) {
        for cond in within(&axis.lo, index, &axis.hi) {
            let outside = active.intersect(&frame.set(&[cond.negate()])?)?;
            if !outside.is_empty()? {
                bad = bad.union(&outside)?;
            }
        }
    }
    let Some(witness) = Witness::first(&bad)? else {
        return Ok(None);
    };
    let element = values(&written.index, &witness.params, &witness.point)?;
    let mut why = String::new();
    for (axis, value) in declared.axes.iter().zip(&element) {
        let outside = outside_axis(view, (&axis.lo, &axis.hi), *value, &witness.params)?;
        if let Some(text) = outside {
            why = text;
            break;
        }
    }
    let name = &declared.name;
    let names = dim_names(system);
    let message = format!(
        "{name}[{}] is written at {}{}, but {name}[{}] does not exist: {why}",
        forms(system, &written.index),
        named_point(&names, &witness.point),
        witness.sizes(system),
        list(&element)
    );
    Ok(Some(
        Diagnostic::new(&codes::OUTPUT_OUTSIDE, written.span, message)
            .also(declared.span, format!("`{name}` is declared here"))
            .help("correct the index, the axes or the `when` of the write")
            .counterexample(witness.counterexample(system, &names, vec![witness.point.clone()])),
    ))
}

fn values(index: &[Form], params: &[i128], point: &[i128]) -> Result<Vec<i128>, SetError> {
    let values = index.iter().map(|form| form.eval(params, point));
    Ok(values.collect::<Result<_, _>>()?)
}

/// No two points, and no two writes, reach the same element.
pub(super) fn once(
    view: &View,
    output: usize,
    first: usize,
    second: usize,
) -> Result<Option<Diagnostic>, SetError> {
    let around = |write| view.around(Sink::Write { output, write });
    let (system, other): (&System, &System) = (&around(first), &around(second));
    let n_dims = system.dims.len();
    let n_all = n_dims + other.dims.len();
    let n_params = system.params.len();
    let declared = &system.outputs[output];
    let (a, b) = (&declared.writes[first], &declared.writes[second]);
    let space = Space::new(n_params, n_all);
    let here: Vec<LinExpr> = (0..n_dims).map(|n| LinExpr::var(n_params + n)).collect();
    let there: Vec<LinExpr> = (n_dims..n_all)
        .map(|n| LinExpr::var(n_params + n))
        .collect();
    let mut pieces = vec![BasicSetBuilder::new(space)];
    pieces = constrain(pieces, &active(view, output, first), &here)?;
    pieces = constrain(pieces, &active(view, output, second), &there)?;
    for piece in &mut pieces {
        for (from, to) in a.index.iter().zip(&b.index) {
            let from = lin_expr(from, piece, &here)?;
            let to = lin_expr(to, piece, &there)?;
            piece.eq(&from, &to)?;
        }
    }
    let mut pairs = union(space, pieces)?;
    if first == second {
        pairs = pairs.intersect(&Set::lex_lt(n_params, n_dims)?)?;
    }
    let Some(witness) = Witness::first(&pairs)? else {
        return Ok(None);
    };
    let (z, y) = witness.point.split_at(n_dims);
    let (names, of_second) = (dim_names(system), dim_names(other));
    let same = z == y && names == of_second;
    let element = values(&a.index, &witness.params, z)?;
    let places = if same {
        format!("by both writes at {}", named_point(&names, z))
    } else {
        format!(
            "at {} and at {}",
            named_point(&names, z),
            named_point(&of_second, y)
        )
    };
    let message = format!(
        "{}[{}] is written twice, {places}{}",
        declared.name,
        list(&element),
        witness.sizes(system)
    );
    let mut diagnostic = Diagnostic::new(&codes::WRITTEN_TWICE, b.span, message)
        .help("say with `when` which of the points writes");
    if names == of_second {
        let points = vec![z.to_vec(), y.to_vec()];
        diagnostic = diagnostic.counterexample(witness.counterexample(system, &names, points));
    }
    if first != second {
        diagnostic = diagnostic.here("this write").also(a.span, "and this one");
    }
    Ok(Some(diagnostic))
}

/// A system without an output computes nothing that anyone can see.
pub(super) fn none(system: &System) -> Diagnostic {
    let message = format!(
        "`{}` has no output: none of its values leaves it",
        system.name
    );
    let error = Diagnostic::new(&codes::NO_OUTPUT, system.span, message);
    let Some(var) = system.vars.last() else {
        return error.help("declare a variable with `var`, and write it with `output`");
    };
    let params = system.param_names();
    let of_var = var.own.as_ref().unwrap_or(&system.dims);
    let dims: Vec<&str> = of_var.iter().map(|d| d.name.as_str()).collect();
    let axes: Option<Vec<String>> = of_var
        .iter()
        .map(|dim| {
            let (lo, hi) = dim.range.as_ref()?;
            let fixed = lo.dims().is_empty() && hi.dims().is_empty();
            let (from, to) = (lo.display(&params, &[]), hi.display(&params, &[]));
            fixed.then(|| match lo.as_constant() {
                Some(0) => to.to_string(),
                _ => format!("{from}..{to}"),
            })
        })
        .collect();
    let axes = axes.map_or_else(|| "…".to_string(), |axes| axes.join(", "));
    let ty = match &var.ty {
        Type::Scalar(ty) => ty.to_string(),
        Type::Tuple(_) => "f32".to_string(),
    };
    let lower = var.name.to_lowercase();
    let mut taken = params
        .iter()
        .chain(system.dims.iter().map(|d| &d.name))
        .chain(system.vars.iter().map(|v| &v.name))
        .chain(system.inputs.iter().map(|i| &i.name));
    let name = if taken.any(|name| *name == lower) {
        format!("{}_out", var.name)
    } else {
        lower
    };
    error.help(format!(
        "write one, such as `output {name}[{axes}]: {ty} = {} at [{}];`",
        var.name,
        dims.join(", ")
    ))
}

/// Every element is reached by a write.
pub(super) fn covered(view: &View, output: usize) -> Result<Option<Diagnostic>, SetError> {
    let system = &view.system;
    let declared = &system.outputs[output];
    let elements = Space::new(system.params.len(), declared.axes.len());
    let inside = declared
        .axes
        .iter()
        .enumerate()
        .flat_map(|(n, axis)| within(&axis.lo, &Form::from(DimId::from(n)), &axis.hi))
        .fold(system.context_cond(), Cond::and);
    let mut missing = set_of(&inside, elements)?;
    for (n, write) in declared.writes.iter().enumerate() {
        let frame = Frame::new(&system.around_write(write), &[]);
        let points = frame.set(&[active(view, output, n)])?;
        let reached = points.image(&frame.map(&write.index)?)?;
        missing = missing.subtract(&reached)?;
    }
    let Some(witness) = Witness::first(&missing)? else {
        return Ok(None);
    };
    let name = &declared.name;
    let message = format!(
        "{name}[{}] is never written{}",
        list(&witness.point),
        witness.sizes(system)
    );
    let help = match reached(system, declared) {
        Some(text) => text,
        None => "extend a write, shorten the axes, or say what the rest holds with `else 0`".into(),
    };
    Ok(Some(
        Diagnostic::new(&codes::NEVER_WRITTEN, declared.span, message).help(help),
    ))
}

/// What the only write of an output reaches along the first axis that is not the range of the
/// iterator that indexes it.
fn reached(system: &System, declared: &Output) -> Option<String> {
    let [write] = declared.writes.as_slice() else {
        return None;
    };
    let dims = &system.around_write(write).dims;
    let params = system.param_names();
    let show = |lo: &Form, hi: &Form| {
        format!("{}..{}", lo.display(&params, &[]), hi.display(&params, &[]))
    };
    let axes = declared.axes.iter().zip(&write.index);
    let mut differing = axes.filter_map(|(axis, index)| {
        let (n, dim) = dims
            .iter()
            .enumerate()
            .find(|(n, _)| *index == Form::from(DimId::from(*n)))?;
        let (lo, hi) = dim.range.as_ref()?;
        let fixed = lo.dims().is_empty() && hi.dims().is_empty();
        let differ = (lo, hi) != (&axis.lo, &axis.hi);
        (fixed && differ).then_some((n, dim, lo, hi, axis))
    });
    let (_, dim, lo, hi, axis) = differing.next()?;
    let (range, wanted) = (show(lo, hi), show(&axis.lo, &axis.hi));
    Some(format!(
        "`{iterator}` writes the elements {range} of an axis {wanted}: make the axis `{range}`, let \
         `{iterator}` run `in {wanted}`, or say what the rest holds with `else 0`",
        iterator = dim.name
    ))
}
