//! Many sweeps: an outermost iterator over them, and reads of the previous sweep.

use std::convert::Infallible;

use systola_ir::codes::stencil as codes;
use systola_ir::system::{Axis, Dim, Expr, Output, System, Var, Write, map_forms, visit};
use systola_ir::{Cond, Diagnostic, DimId, Form, InputId, Poly, Rel, Scalar, Span, VarId};

use crate::boundary::read;
use crate::linear::{Linear, behind_time, linear};
use crate::migrating_sums::{self, Rows};
use crate::reach::{Margin, Plan};
use crate::sweep::{fixed_cells, names, sizes, var_name};
use crate::{Boundary, Stencil};

/// The iterator over sweeps.
const TIME: DimId = DimId(0);

/// Many sweeps being written. Positions are forms of the iterators of the system, those of the grid
/// after that of the sweeps.
pub struct Sweeps<'a> {
    pub stencil: &'a Stencil,
    pub kernel: &'a System,
    pub plan: &'a Plan,
    pub here: Vec<Form>,
    pub sizes: Vec<Form>,
    /// The cells that a sweep removes at the ends of each axis, with the interior boundary
    /// condition.
    pub lost: Vec<Margin>,
    /// The system's variable for each variable of the kernel.
    ids: Vec<VarId>,
    /// The migrating partial sums of each variable, if there are any.
    pub rows: Vec<Option<Rows>>,
}

pub fn write(stencil: &Stencil, kernel: &System, plan: &Plan) -> Result<System, Vec<Diagnostic>> {
    boundaries_agree(stencil, kernel)?;
    let n_axes = kernel.dims.len();
    let rows = migrating_rows(stencil, kernel);
    let mut ids = Vec::new();
    let mut next = 0;
    for rows in &rows {
        ids.push(VarId::from(next));
        next += rows.as_ref().map_or(1, Rows::n_sums);
    }
    let lost = (0..n_axes).map(|axis| plan.lost(stencil, axis)).collect();
    let sweeps = Sweeps {
        stencil,
        kernel,
        plan,
        here: (1..=n_axes).map(|n| Form::from(DimId::from(n))).collect(),
        sizes: sizes(kernel),
        lost,
        ids,
        rows,
    };
    Ok(sweeps.system())
}

fn boundaries_agree(stencil: &Stencil, kernel: &System) -> Result<(), Vec<Diagnostic>> {
    let updates = || stencil.fields.iter().filter(|f| f.update.is_some());
    let Some(interior) = updates().find(|f| f.boundary == Boundary::Interior) else {
        return Ok(());
    };
    let other = stencil
        .boundaries
        .iter()
        .position(|b| *b != Boundary::Interior);
    match other {
        None => Ok(()),
        Some(other) => {
            let interior = &kernel.inputs[interior.input.index()];
            let other = &kernel.vars[other];
            Err(vec![
                Diagnostic::new(
                    &codes::MIXED_INTERIOR,
                    other.span,
                    format!(
                        "with each step there are fewer cells of `{}`, which has nothing beyond its boundary, and `{}` needs all of them",
                        interior.name, other.name
                    ),
                )
                .also(interior.span, "declared here")
                .help("give both a boundary condition with values, or neither"),
            ])
        }
    }
}

/// The rows of each variable whose equation becomes migrating partial sums. Either all variables
/// migrate or none, so that all reads are of the same time step.
fn migrating_rows(stencil: &Stencil, kernel: &System) -> Vec<Option<Rows>> {
    let none = vec![None; kernel.vars.len()];
    let is_updated = |input: InputId| stencil.field(input).is_some_and(|f| f.update.is_some());
    let mut sums: Vec<Linear> = Vec::new();
    for (v, var) in kernel.vars.iter().enumerate() {
        let sum = var.ty.scalar();
        let sum = sum.and_then(|ty| linear(kernel, &is_updated, ty, &var.body));
        match sum {
            Some(sum) if stencil.field_of(VarId::from(v)).is_some() => sums.push(sum),
            _ => return none,
        }
    }
    let kinds: Vec<_> = stencil
        .boundaries
        .iter()
        .map(std::mem::discriminant)
        .collect();
    if stencil.boundaries.contains(&Boundary::Wrap) || kinds.windows(2).any(|w| w[0] != w[1]) {
        return none;
    }
    let offsets = || sums.iter().flat_map(|s| s.taps.keys()).map(|(_, o)| o);
    let touched: Vec<usize> = (0..kernel.dims.len())
        .filter(|axis| offsets().any(|o| o[*axis] != 0))
        .collect();
    let [axis, _, ..] = touched[..] else {
        return none;
    };
    let boundary = stencil.boundaries.first().copied();
    sums.into_iter()
        .map(|sum| boundary.and_then(|boundary| Rows::of(sum, axis, boundary)))
        .collect()
}

impl Sweeps<'_> {
    fn system(&self) -> System {
        let kernel = self.kernel;
        let mut names = names(self.stencil);
        let time = names.name(&self.stencil.time);
        let steps = self.stencil.n_steps();
        let mut system = System {
            vars: Vec::new(),
            ..kernel.clone()
        };
        system.context.extend(self.plan.context.iter().cloned());
        system.dims.insert(
            0,
            Dim {
                name: time,
                range: Some((Form::zero(), steps.clone())),
                span: Span::NONE,
            },
        );
        if let Some(axis) = self.row_axis()
            && let Some((_, hi)) = &mut system.dims[axis + 1].range
        {
            *hi = hi.plus(self.furthest());
        }
        for (v, var) in kernel.vars.iter().enumerate() {
            let name = var_name(self.stencil, VarId::from(v), &mut names);
            match &self.rows[v] {
                Some(rows) => {
                    let vars = migrating_sums::sums(self, VarId::from(v), rows, &name, &mut names);
                    system.vars.extend(vars);
                }
                None => system.vars.push(Var {
                    name,
                    on: self.domain(v),
                    body: self.body(v),
                    ..var.clone()
                }),
            }
        }
        system.outputs = self
            .stencil
            .outputs
            .iter()
            .map(|(name, var)| self.output(name, *var, &steps))
            .collect();
        system
    }

    /// The distance of a variable behind its row, along the axis of the rows.
    pub fn shift(&self, var: VarId) -> i128 {
        self.rows[var.index()].as_ref().map_or(0, |r| r.last)
    }

    /// The axis along which partial sums migrate.
    pub fn row_axis(&self) -> Option<usize> {
        self.rows.iter().flatten().map(|r| r.axis).next()
    }

    /// The system's variable for one of the kernel, or for one of its partial sums, counted from
    /// the last.
    pub fn id(&self, var: VarId, before_end: usize) -> VarId {
        VarId::from(self.ids[var.index()].index() + before_end)
    }

    /// A variable of the kernel in this sweep, or in an earlier one, at a cell.
    fn value(&self, var: VarId, sweeps_ago: i128, cell: &[Form], span: Span) -> Expr {
        let mut index = vec![Form::from(TIME).plus(-sweeps_ago)];
        index.extend(cell.iter().cloned());
        if let Some(axis) = self.row_axis() {
            index[axis + 1] = index[axis + 1].plus(self.shift(var));
        }
        Expr::Var {
            var: self.id(var, 0),
            index,
            span,
        }
    }

    /// A field at a cell before this sweep.
    pub fn before(&self, input: InputId, cell: &[Form]) -> Expr {
        let given = Expr::Input {
            input,
            index: cell.to_vec(),
            span: Span::NONE,
        };
        match self.stencil.field(input).and_then(|f| f.update) {
            None => given,
            Some(update) => Expr::guard(
                Cond::Cmp(Rel::Eq, Form::from(TIME), Form::zero()),
                given,
                self.value(update, 1, cell, Span::NONE),
            ),
        }
    }

    /// A neighbour in a field, by its boundary condition.
    pub fn neighbour(&self, input: InputId, offset: &[i128]) -> Expr {
        let boundary = self.stencil.field(input).map(|f| f.boundary);
        let ty = self.kernel.inputs[input.index()].ty;
        read(
            boundary.unwrap_or(Boundary::Interior),
            ty,
            &self.here,
            &self.sizes,
            offset,
            &|cell| self.before(input, cell),
        )
    }

    /// An equation of the kernel at a cell of this system.
    pub fn rewrite(&self, body: &Expr) -> Expr {
        let moved = map_forms(body, &|form| Ok(behind_time(form)));
        let moved = moved.unwrap_or_else(|_| body.clone());
        let rewritten: Result<Expr, Infallible> = visit::map_expr(&moved, &mut |expr| {
            Ok(match expr {
                Expr::Iter(d) => Expr::Iter(DimId::from(d.index() + 1)),
                Expr::Input { input, index, span } => {
                    match (self.stencil.field(input), self.offset(&index)) {
                        (Some(_), Some(offset)) => self.neighbour(input, &offset),
                        _ => Expr::Input { input, index, span },
                    }
                }
                Expr::Var { var, index, span } => {
                    let ty = self.kernel.vars[var.index()].ty.scalar();
                    let boundary = self.stencil.boundaries[var.index()];
                    match (self.offset(&index), ty) {
                        (Some(offset), ty) => read(
                            boundary,
                            ty.unwrap_or(Scalar::F32),
                            &self.here,
                            &self.sizes,
                            &offset,
                            &|cell| self.value(var, 0, cell, span),
                        ),
                        (None, _) => Expr::Var { var, index, span },
                    }
                }
                other => other,
            })
        });
        match rewritten {
            Ok(expr) => expr,
            Err(never) => match never {},
        }
    }

    fn offset(&self, index: &[Form]) -> Option<Vec<i128>> {
        let pairs = index.iter().zip(&self.here);
        pairs.map(|(at, here)| at.sub(here).as_constant()).collect()
    }

    /// An equation that reads its neighbourhood directly.
    fn body(&self, v: usize) -> Expr {
        let body = self.rewrite(&self.kernel.vars[v].body);
        let field = self.stencil.field_of(VarId::from(v));
        let fixed = fixed_cells(&self.here, &self.sizes, &self.plan.margins[v]);
        match (self.stencil.boundaries[v], field, fixed) {
            (Boundary::Fixed, Some(field), Some(fixed)) => {
                Expr::guard(fixed, self.before(field.input, &self.here), body)
            }
            _ => body,
        }
    }

    /// A number of cells that grows with the sweeps.
    fn over_time(per_sweep: i128, more: i128) -> Form {
        let scaled = Form::from(TIME).scale(&Poly::constant(per_sweep));
        scaled.unwrap_or_default().plus(more)
    }

    /// The conditions under which a cell still has a value. `shift` is its distance behind the
    /// iterator of the axis.
    pub fn has_value(&self, axis: usize, shift: i128, margin: Margin) -> Vec<Cond> {
        let (lost, here) = (self.lost[axis], &self.here[axis]);
        let mut conds = Vec::new();
        if lost.start > 0 || margin.start + shift > 0 {
            let least = Self::over_time(lost.start, margin.start + shift);
            conds.push(Cond::Cmp(Rel::Ge, here.clone(), least));
        }
        let longest = match self.row_axis() == Some(axis) {
            true => self.furthest(),
            false => 0,
        };
        if lost.end > 0 || margin.end > 0 || shift < longest {
            let most = Self::over_time(lost.end, margin.end + 1 - shift);
            let last = self.sizes[axis].sub(&most);
            conds.push(Cond::Cmp(Rel::Le, here.clone(), last));
        }
        conds
    }

    /// The largest distance behind its row at which a sum ends.
    pub fn furthest(&self) -> i128 {
        let last = self.rows.iter().flatten().map(|rows| rows.last);
        last.max().unwrap_or(0)
    }

    fn domain(&self, v: usize) -> Vec<Cond> {
        let mut conds = Vec::new();
        let is_update = self.stencil.field_of(VarId::from(v)).is_some();
        for axis in 0..self.here.len() {
            if self.stencil.boundaries[v] == Boundary::Interior {
                let margin = match is_update {
                    true => self.lost[axis],
                    false => self.plan.margins[v][axis],
                };
                conds.extend(self.has_value(axis, 0, margin));
            }
        }
        if let Some(axis) = self.row_axis()
            && self.furthest() > 0
            && self.stencil.boundaries[v] != Boundary::Interior
        {
            let end = self.sizes[axis].plus(-1);
            conds.push(Cond::Cmp(Rel::Le, self.here[axis].clone(), end));
        }
        conds
    }

    fn output(&self, name: &str, var: VarId, steps: &Form) -> Output {
        let kernel_var = &self.kernel.vars[var.index()];
        let is_update = self.stencil.field_of(var).is_some();
        let is_interior = self.stencil.boundaries[var.index()] == Boundary::Interior;
        let mut when = Cond::Cmp(Rel::Eq, Form::from(TIME), steps.plus(-1));
        let mut index = Vec::new();
        let mut axes = Vec::new();
        for (axis, here) in self.here.iter().enumerate() {
            let mut margin = (Form::zero(), Form::zero());
            if is_interior {
                let (lost, last) = (self.lost[axis], self.plan.margins[var.index()][axis]);
                let all = |lost: i128, last: i128| {
                    let sweeps = if is_update {
                        steps.clone()
                    } else {
                        steps.plus(-1)
                    };
                    let scaled = sweeps.scale(&Poly::constant(lost)).unwrap_or_default();
                    scaled.plus(if is_update { 0 } else { last })
                };
                margin = (all(lost.start, last.start), all(lost.end, last.end));
            }
            let mut cell = here.clone();
            let mut past = 0;
            if self.row_axis() == Some(axis) {
                let shift = self.shift(var);
                past = self.furthest() - shift;
                cell = cell.plus(-shift);
            }
            if margin.0 != Form::zero() {
                when = when.and(Cond::Cmp(Rel::Ge, cell.clone(), margin.0.clone()));
            } else if cell != *here {
                when = when.and(Cond::Cmp(Rel::Ge, here.clone(), here.sub(&cell)));
            }
            if margin.1 != Form::zero() || past > 0 {
                let last = self.sizes[axis].sub(&margin.1).plus(-1);
                when = when.and(Cond::Cmp(Rel::Le, cell.clone(), last));
            }
            index.push(cell.sub(&margin.0));
            axes.push(Axis {
                lo: Form::zero(),
                hi: self.sizes[axis].sub(&margin.0).sub(&margin.1),
            });
        }
        let mut at = vec![Form::from(TIME)];
        at.extend(self.here.iter().cloned());
        Output {
            name: name.to_string(),
            ty: kernel_var.ty.scalar().unwrap_or(Scalar::F32),
            axes,
            writes: vec![Write {
                of: None,
                value: Expr::Var {
                    var: self.id(var, 0),
                    index: at,
                    span: Span::NONE,
                },
                index,
                when,
                span: Span::NONE,
            }],
            fill: None,
            span: Span::NONE,
        }
    }
}
