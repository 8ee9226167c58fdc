//! The reach of the equations of a sweep, and the cells with a new value.

use systola_ir::codes::{stencil as codes, syntax};
use systola_ir::form::Atom;
use systola_ir::system::{Expr, System, visit};
use systola_ir::{Cond, Diagnostic, DimId, Form, InputId, Poly, Rel, Span, VarId};

use crate::boundary::Sides;
use crate::{Boundary, Field, Stencil};

/// The maximum distance at which a computed value is read.
const MAX_REACH: i128 = 512;
/// The maximum number of special cases next to the boundary in many sweeps, over all reads.
const MAX_CASES: i128 = 1 << 17;
/// A length beyond that of any array; sums and products of smaller numbers cannot overflow.
pub const HUGE: i128 = 1 << 40;

/// The requirements of a sweep on the grid.
#[derive(Clone, Debug)]
pub struct Plan {
    /// For each variable of the kernel and each axis, the number of cells at its two ends without a
    /// new value: they keep their value where the boundary is fixed, and are no results where it is
    /// the interior.
    pub margins: Vec<Vec<Margin>>,
    /// Conditions on the sizes besides the context of the kernel.
    pub context: Vec<Cond>,
}

impl Plan {
    /// The cells that a sweep removes from fields with the interior boundary condition, at the ends
    /// of an axis.
    pub fn lost(&self, stencil: &Stencil, axis: usize) -> Margin {
        let updates = stencil.fields.iter().filter_map(|f| f.update);
        updates
            .filter(|v| stencil.boundaries[v.index()] == Boundary::Interior)
            .fold(Margin::default(), |most, v| {
                most.max(self.margins[v.index()][axis])
            })
    }

    /// The minimum length of an axis for a result to remain after all steps.
    fn cells_are_left(&self, stencil: &Stencil, axis: usize, steps: &Form) -> Vec<Form> {
        let Margin { start, end } = self.lost(stencil, axis);
        let after = |sweeps: &Form| {
            let scaled = sweeps.scale(&Poly::constant(start + end));
            scaled.unwrap_or_default().plus(1)
        };
        let mut bounds = Vec::new();
        if start + end > 0 {
            bounds.push(after(steps));
        }
        for (_, var) in &stencil.outputs {
            let is_update = stencil.field_of(*var).is_some();
            let Margin { start, end } = self.margins[var.index()][axis];
            if stencil.boundaries[var.index()] == Boundary::Interior
                && !is_update
                && start + end > 0
            {
                bounds.push(after(&steps.plus(-1)).plus(start + end));
            }
        }
        bounds
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Margin {
    pub start: i128,
    pub end: i128,
}

impl Margin {
    fn max(self, other: Margin) -> Margin {
        Margin {
            start: self.start.max(other.start),
            end: self.end.max(other.end),
        }
    }
}

impl Stencil {
    pub(crate) fn field(&self, input: InputId) -> Option<&Field> {
        self.fields.iter().find(|f| f.input == input)
    }

    pub(crate) fn field_of(&self, var: VarId) -> Option<&Field> {
        self.fields.iter().find(|f| f.update == Some(var))
    }
}

impl Stencil {
    pub(crate) fn n_steps(&self) -> Form {
        let steps = self.steps.as_ref().map(|(steps, _)| steps.clone());
        steps.unwrap_or(Form::from(1))
    }
}

pub fn is_single_sweep(stencil: &Stencil) -> Result<bool, Vec<Diagnostic>> {
    match &stencil.steps {
        None => Ok(true),
        Some((steps, span)) => match steps.as_constant() {
            Some(n) if !(1..=HUGE).contains(&n) => Err(vec![
                Diagnostic::new(
                    &codes::NO_STEPS,
                    *span,
                    match n < 1 {
                        true => format!("a stencil makes at least one step, not {n}"),
                        false => format!("a stencil makes at most 2^40 steps, not {n}"),
                    },
                )
                .help("leave `steps` away for a single sweep"),
            ]),
            n => Ok(n == Some(1)),
        },
    }
}

/// A read of a field or of a variable, relative to the current cell.
struct Read {
    boundary: Boundary,
    /// The margin of the field or variable that is read.
    margins: Vec<Margin>,
    name: String,
    /// The smallest and the largest distance along each axis, where they are known.
    range: Vec<Option<(i128, i128)>>,
    span: Span,
}

/// The smallest and the largest value of a form over the iterators of sums; `None` where it depends
/// on other names.
fn range(form: &Form, system: &System) -> Option<(i128, i128)> {
    let constant = form.constant_part().as_constant()?;
    let mut range = (constant, constant);
    for (atom, factor) in form.terms() {
        let (Atom::Dim(dim), factor) = (atom, factor.as_constant()?) else {
            return None;
        };
        if dim.index() < system.dims.len() {
            return None;
        }
        let (lo, hi) = system.dim(*dim).range.as_ref()?;
        let (lo, hi) = (lo.as_constant()?, hi.as_constant()? - 1);
        let (a, b) = (factor.checked_mul(lo)?, factor.checked_mul(hi)?);
        range = (
            range.0.checked_add(a.min(b))?,
            range.1.checked_add(a.max(b))?,
        );
    }
    Some(range)
}

/// The distance from the current cell along each axis.
pub fn distances(index: &[Form]) -> Vec<Form> {
    let here = |n: usize| Form::from(DimId::from(n));
    index
        .iter()
        .enumerate()
        .map(|(n, at)| at.sub(&here(n)))
        .collect()
}

/// On which sides a read of an input can be outside.
pub fn sides(index: &[Form], system: &System) -> Vec<Sides> {
    distances(index)
        .iter()
        .map(|distance| match range(distance, system) {
            Some((lo, hi)) => Sides {
                before: lo < 0,
                behind: hi > 0,
            },
            None => Sides {
                before: true,
                behind: true,
            },
        })
        .collect()
}

/// All fields lie on the grid, each axis from zero.
pub fn check_grid(stencil: &Stencil) -> Vec<Diagnostic> {
    let kernel = &stencil.kernel;
    let fields = || {
        stencil
            .fields
            .iter()
            .map(|f| &kernel.inputs[f.input.index()])
    };
    let Some(first) = fields().next() else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    for field in fields() {
        let from_zero = field.axes.iter().all(|axis| axis.lo == Form::zero());
        if from_zero && field.axes == first.axes {
            continue;
        }
        errors.push(if from_zero {
            Diagnostic::new(
                &codes::FIELDS_DIFFER,
                field.span,
                format!("`{}` has other axes than `{}`", field.name, first.name),
            )
            .also(first.span, "the first field")
            .help("all fields lie on one grid; declare other arrays with `input`")
        } else {
            Diagnostic::new(
                &codes::FIELDS_DIFFER,
                field.span,
                format!(
                    "the axes of the field `{}` do not begin at zero",
                    field.name
                ),
            )
            .help("write their lengths only")
        });
    }
    errors
}

/// Fields are read at a distance from the current cell, which may use the iterators of sums.
pub fn check_offsets(stencil: &Stencil, kernel: &System, exact: bool) -> Vec<Diagnostic> {
    let mut errors = Vec::new();
    let mut check = |index: &[Form], exact: bool, name: &str, span: Span| {
        let wrong = |d: &Form| {
            let on_grid = d.dims().iter().any(|d| d.index() < kernel.dims.len());
            let is_near = |d: i128| d.abs() <= MAX_REACH;
            let is_huge = |(lo, hi): (i128, i128)| lo < -HUGE || hi > HUGE;
            on_grid
                || range(d, kernel).is_some_and(is_huge)
                || (exact && !d.as_constant().is_some_and(is_near))
        };
        if distances(index).iter().any(wrong) {
            errors.push(
                Diagnostic::new(
                    &codes::NOT_AN_OFFSET,
                    span,
                    format!(
                        "`{name}` is read at a distance from the cell at hand, and this is none"
                    ),
                )
                .help(format!(
                    "write integers, as in `{name}[{}]`, of at most {MAX_REACH}",
                    vec!["-1"; kernel.dims.len()].join(", ")
                )),
            );
        }
    };
    for var in &kernel.vars {
        visit::walk(&var.body, &mut |expr| match expr {
            Expr::Input { input, index, span } if stencil.field(*input).is_some() => {
                check(index, exact, &kernel.inputs[input.index()].name, *span);
            }
            Expr::Var { var, index, span } => {
                check(index, true, &kernel.vars[var.index()].name, *span);
            }
            _ => {}
        });
    }
    errors
}

/// With many sweeps each cell beyond a folding boundary is read at its own constant distance; reads
/// far outside need too many cases.
pub fn check_cases(stencil: &Stencil, kernel: &System) -> Vec<Diagnostic> {
    let mut n_left = MAX_CASES;
    for var in &kernel.vars {
        let mut too_far = None;
        visit::walk(&var.body, &mut |expr| {
            let (boundary, index, span) = match expr {
                Expr::Input { input, index, span } => {
                    let field = stencil.field(*input);
                    (field.map(|f| f.boundary), index, *span)
                }
                Expr::Var { var, index, span } => {
                    (Some(stencil.boundaries[var.index()]), index, *span)
                }
                _ => return,
            };
            let folds = matches!(
                boundary,
                Some(Boundary::Clamp | Boundary::Mirror | Boundary::Reflect)
            );
            if folds && too_far.is_none() {
                let distances = distances(index);
                let distances = distances.iter().filter_map(Form::as_constant);
                n_left -= distances.fold(1, |n: i128, d| n.saturating_mul(d.abs() + 1));
                too_far = (n_left < 0).then_some(span);
            }
        });
        if let Some(span) = too_far {
            return vec![
                Diagnostic::new(
                    &syntax::TOO_LARGE,
                    span,
                    format!("next to the boundary there are more than {MAX_CASES} cells that read another one than the others do"),
                )
                .help("read at shorter distances, or take the boundary condition `constant` or `wrap`, or make one step"),
            ];
        }
    }
    Vec::new()
}

/// The variables of a sweep in dependence order, as far as there is one.
fn by_need(kernel: &System) -> Vec<usize> {
    let needs = |v: usize| {
        let mut list = Vec::new();
        visit::walk(&kernel.vars[v].body, &mut |expr| {
            if let Expr::Var { var, .. } = expr {
                list.push(var.index());
            }
        });
        list
    };
    let mut order = Vec::new();
    let mut seen = vec![false; kernel.vars.len()];
    for first in 0..kernel.vars.len() {
        // The waiting variables, with their missing dependences. There is no recursion, since a
        // chain can be as long as the text.
        let mut waiting = Vec::new();
        if !std::mem::replace(&mut seen[first], true) {
            waiting.push((first, needs(first)));
        }
        while let Some((v, list)) = waiting.last_mut() {
            match list.pop() {
                Some(next) if std::mem::replace(&mut seen[next], true) => {}
                Some(next) => waiting.push((next, needs(next))),
                None => {
                    order.push(*v);
                    waiting.pop();
                }
            }
        }
    }
    order
}

/// Computes margins and the conditions on sizes, or errors.
pub fn plan(stencil: &Stencil, kernel: &System) -> Result<Plan, Vec<Diagnostic>> {
    let n_axes = kernel.dims.len();
    let mut plan = Plan {
        margins: vec![vec![Margin::default(); n_axes]; kernel.vars.len()],
        context: Vec::new(),
    };
    let mut errors = Vec::new();
    let mut least = vec![1; n_axes];
    for v in by_need(kernel) {
        let var = &kernel.vars[v];
        let boundary = stencil.boundaries[v];
        let mut margins = vec![Margin::default(); n_axes];
        for read in reads(stencil, kernel, &plan, &var.body) {
            for (axis, margin) in margins.iter_mut().enumerate() {
                let beyond = match read.range.get(axis).copied().flatten() {
                    Some((lo, hi)) => Margin {
                        start: (-lo).max(0),
                        end: hi.max(0),
                    },
                    None if read.boundary.is_empty() => {
                        errors.push(unknown_reach(&read));
                        break;
                    }
                    None => continue,
                };
                let reach = beyond.start.max(beyond.end);
                match read.boundary {
                    Boundary::Interior | Boundary::Fixed => {
                        let needs = Margin {
                            start: beyond.start + read.margins[axis].start,
                            end: beyond.end + read.margins[axis].end,
                        };
                        *margin = margin.max(needs);
                        if needs != Margin::default() && !boundary.is_empty() {
                            errors.push(nothing_there(&read, &var.name, boundary));
                            break;
                        }
                    }
                    Boundary::Mirror if reach > 0 => least[axis] = least[axis].max(reach + 1),
                    Boundary::Reflect | Boundary::Wrap => least[axis] = least[axis].max(reach),
                    Boundary::Mirror | Boundary::Constant(_) | Boundary::Clamp => {}
                }
            }
        }
        plan.margins[v] = margins;
    }
    let steps = stencil.n_steps();
    if stencil.steps.is_some() && steps.as_constant().is_none() {
        plan.context
            .push(Cond::Cmp(Rel::Ge, steps.clone(), Form::from(1)));
    }
    for (axis, dim) in kernel.dims.iter().enumerate() {
        let Some((_, size)) = &dim.range else {
            continue;
        };
        let mut bounds = plan.cells_are_left(stencil, axis, &steps);
        if least[axis] > 1 || bounds.is_empty() {
            bounds.push(Form::from(least[axis]));
        }
        for at_least in bounds {
            match (size.as_constant(), at_least.as_constant()) {
                (Some(size), Some(least)) if size < least => {
                    errors.push(too_small(stencil, &dim.name, size, least));
                }
                (Some(_), Some(_)) => {}
                _ => plan
                    .context
                    .push(Cond::Cmp(Rel::Ge, size.clone(), at_least)),
            }
        }
    }
    plan.context
        .retain(|cond| !is_implied(cond, &kernel.context));
    if errors.is_empty() {
        Ok(plan)
    } else {
        Err(errors)
    }
}

/// Whether a lower bound is one of the conditions, or below one.
pub fn is_implied(cond: &Cond, context: &[Cond]) -> bool {
    let Cond::Cmp(Rel::Ge, left, right) = cond else {
        return context.contains(cond);
    };
    context.iter().any(|known| match known {
        Cond::Cmp(Rel::Ge, same, at_least) if same == left => {
            at_least.sub(right).as_constant().is_some_and(|d| d >= 0)
        }
        _ => false,
    })
}

fn reads(stencil: &Stencil, kernel: &System, plan: &Plan, body: &Expr) -> Vec<Read> {
    let n_axes = kernel.dims.len();
    let known = |index: &[Form]| {
        distances(index)
            .iter()
            .map(|d| range(d, kernel))
            .collect::<Vec<_>>()
    };
    let mut list = Vec::new();
    visit::walk(body, &mut |expr| match expr {
        Expr::Input { input, index, span } => {
            if let Some(field) = stencil.field(*input) {
                list.push(Read {
                    boundary: field.boundary,
                    margins: vec![Margin::default(); n_axes],
                    name: kernel.inputs[input.index()].name.clone(),
                    range: known(index),
                    span: *span,
                });
            }
        }
        Expr::Var { var, index, span } => {
            let boundary = stencil.boundaries[var.index()];
            list.push(Read {
                boundary,
                margins: match boundary {
                    // Cells that keep their value have one.
                    Boundary::Fixed => vec![Margin::default(); n_axes],
                    // Zero so far for those in a cycle.
                    _ => plan.margins[var.index()].clone(),
                },
                name: kernel.vars[var.index()].name.clone(),
                range: known(index),
                span: *span,
            });
        }
        _ => {}
    });
    list
}

fn unknown_reach(read: &Read) -> Diagnostic {
    Diagnostic::new(
        &codes::UNKNOWN_REACH,
        read.span,
        format!(
            "how far this reaches into `{}` is not known, and there is nothing beyond its boundary",
            read.name
        ),
    )
    .help(format!(
        "give `{}` a boundary condition: constant 0, clamp, mirror, reflect or wrap",
        read.name
    ))
}

fn nothing_there(read: &Read, reader: &str, boundary: Boundary) -> Diagnostic {
    let word = |boundary: Boundary| match boundary {
        Boundary::Interior => "interior",
        Boundary::Fixed => "fixed",
        Boundary::Constant(_) => "constant",
        Boundary::Clamp => "clamp",
        Boundary::Mirror => "mirror",
        Boundary::Reflect => "reflect",
        Boundary::Wrap => "wrap",
    };
    Diagnostic::new(
        &codes::NOTHING_BEYOND,
        read.span,
        format!(
            "`{reader}` has a value in every cell ({}), but reads `{}` beyond its boundary, where it has none ({})",
            word(boundary),
            read.name,
            word(read.boundary)
        ),
    )
    .help(format!(
        "give `{}` a boundary condition with values, such as `clamp`, or let `{reader}` be `fixed` or `interior`",
        read.name
    ))
}

fn too_small(stencil: &Stencil, axis: &str, size: i128, least: i128) -> Diagnostic {
    let first = stencil.fields.first();
    let span = first.map_or(stencil.kernel.span, |f| {
        stencil.kernel.inputs[f.input.index()].span
    });
    Diagnostic::new(
        &codes::SMALLER_THAN_REACH,
        span,
        format!("the axis `{axis}` has {size} cells; what is read asks for at least {least}"),
    )
    .help("make the field larger, or take a boundary condition that folds back once at most, such as `clamp`")
}
