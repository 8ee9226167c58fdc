//! A program at concrete sizes: the conditions on them, and the resulting shapes.

use systola_ir::kernel::{Buffer, Host, Kernel, Program, VarKind, visit};
use systola_ir::{DimId, Form};

use crate::error::Error;
use crate::layout::Layout;
use crate::source::Source;

/// Checks that the source fits the program.
pub(crate) fn check_source(program: &Program, source: &Source) -> Result<(), Error> {
    let n = program.kernels.len();
    if source.symbols.len() != n || source.scratch.len() != n {
        return Err(Error::SourceMismatch {
            reason: format!(
                "{n} kernels, {} symbols, scratch memory for {}",
                source.symbols.len(),
                source.scratch.len()
            ),
        });
    }
    check_host(program)
}

/// Checks the host part of a program.
pub(crate) fn check_host(program: &Program) -> Result<(), Error> {
    let n = program.kernels.len();
    let mut reason = None;
    visit::walk_host(&program.body, &mut |step| {
        let wrong = match step {
            Host::Launch { kernel, args } => match program.kernels.get(kernel.index()) {
                None => Some(format!("a launch of kernel {} of {n}", kernel.index())),
                Some(k) if host_vars(k).count() != args.len() => Some(format!(
                    "a launch of `{}` with {} arguments",
                    k.name,
                    args.len()
                )),
                Some(_) => None,
            },
            Host::For { var, lo, hi, .. } => {
                let bounded = !lo.is_empty() && !hi.is_empty();
                let named = var.index() < program.host_vars.len();
                (!bounded || !named).then(|| "a host loop without variable or bounds".to_string())
            }
            Host::If { .. } => None,
        };
        reason = reason.take().or(wrong);
    });
    for kernel in &program.kernels {
        for var in &kernel.vars {
            if let VarKind::Block { lo, hi } = &var.kind
                && (lo.is_empty() || hi.is_empty())
            {
                reason = Some(format!("`{}` of `{}` has no bounds", var.name, kernel.name));
            }
        }
    }
    reason.map_or(Ok(()), |reason| Err(Error::SourceMismatch { reason }))
}

fn host_vars(kernel: &Kernel) -> impl Iterator<Item = DimId> {
    kernel.vars_where(|kind| matches!(kind, VarKind::Host))
}

/// The sizes as `i128` for forms, if the program may be run at them.
pub(crate) fn check_sizes(program: &Program, sizes: &[i64]) -> Result<Vec<i128>, Error> {
    if sizes.len() != program.params.len() {
        return Err(Error::SizeCount {
            expected: program.params.len(),
            got: sizes.len(),
        });
    }
    for (param, got) in program.params.iter().zip(sizes) {
        if let Some(fixed) = param.fixed
            && fixed != i128::from(*got)
        {
            return Err(Error::SizeMismatchFixed {
                name: param.name.clone(),
                fixed,
                got: *got,
            });
        }
    }
    let params: Vec<i128> = sizes.iter().copied().map(i128::from).collect();
    for condition in &program.context {
        let holds = condition
            .eval(&params, &[])
            .map_err(|_| Error::overflow("a condition on the sizes"))?;
        if !holds {
            let named = program.params.iter().zip(sizes);
            let named: Vec<String> = named.map(|(p, v)| format!("{} = {v}", p.name)).collect();
            return Err(Error::SizesViolateContext {
                condition: condition.display(&program.param_names(), &[]).to_string(),
                sizes: named.join(", "),
            });
        }
    }
    Ok(params)
}

/// The layout of a buffer. An axis whose end is before its start is empty.
pub(crate) fn layout(buffer: &Buffer, params: &[i128]) -> Result<Layout, Error> {
    let too_large = || Error::overflow(format!("`{}`", buffer.name));
    let mut shape = Vec::with_capacity(buffer.axes.len());
    for axis in &buffer.axes {
        let (Ok(lo), Ok(hi)) = (axis.lo.eval(params, &[]), axis.hi.eval(params, &[])) else {
            return Err(too_large());
        };
        let extent = hi.checked_sub(lo).ok_or_else(too_large)?.max(0);
        shape.push(usize::try_from(extent).map_err(|_| too_large())?);
    }
    Layout::row_major(&shape).ok_or_else(too_large)
}

/// max(lo) and min(hi).
fn bounds(lo: &[Form], hi: &[Form], params: &[i128], dims: &[i128]) -> Result<(i128, i128), Error> {
    let overflow = || Error::overflow("a loop bound");
    let (mut first, mut last) = (i128::MIN, i128::MAX);
    for form in lo {
        first = first.max(form.eval(params, dims).map_err(|_| overflow())?);
    }
    for form in hi {
        last = last.min(form.eval(params, dims).map_err(|_| overflow())?);
    }
    Ok((first, last))
}

/// The values of a launch's arguments.
fn arguments(
    args: &[Form],
    params: &[i128],
    dims: &[i128],
    values: &mut Vec<i64>,
) -> Result<(), Error> {
    values.clear();
    for form in args {
        let value = form.eval(params, dims).ok();
        let value = value.and_then(|v| i64::try_from(v).ok());
        values.push(value.ok_or_else(|| Error::overflow("an argument of a launch"))?);
    }
    Ok(())
}

/// A launch: the index of its kernel, and its arguments.
pub(crate) type Launch<'a> = dyn FnMut(usize, &[i64]) -> Result<(), Error> + 'a;

/// Executes the host part of a program.
pub(crate) fn run_host(
    program: &Program,
    params: &[i128],
    launch: &mut Launch<'_>,
) -> Result<(), Error> {
    let mut host = HostState {
        params,
        vars: vec![0; program.host_vars.len()],
        args: Vec::new(),
        launch,
    };
    host.steps(&program.body)
}

struct HostState<'a, 'l> {
    params: &'a [i128],
    /// The variables of host loops.
    vars: Vec<i128>,
    /// Arguments of the current launch.
    args: Vec<i64>,
    launch: &'a mut Launch<'l>,
}

impl HostState<'_, '_> {
    fn steps(&mut self, steps: &[Host]) -> Result<(), Error> {
        for step in steps {
            match step {
                Host::Launch { kernel, args } => {
                    arguments(args, self.params, &self.vars, &mut self.args)?;
                    (self.launch)(kernel.index(), &self.args)?;
                }
                Host::For { var, lo, hi, body } => {
                    let (first, last) = bounds(lo, hi, self.params, &self.vars)?;
                    let mut value = first;
                    while value < last {
                        self.vars[var.index()] = value;
                        self.steps(body)?;
                        value += 1;
                    }
                }
                Host::If {
                    cond,
                    then,
                    otherwise,
                } => {
                    let holds = cond
                        .eval(self.params, &self.vars)
                        .map_err(|_| Error::overflow("a condition of the host"))?;
                    self.steps(if holds { then } else { otherwise })?;
                }
            }
        }
        Ok(())
    }
}

/// The blocks of a launch, by coordinate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Blocks {
    extents: Vec<i64>,
    pub count: i64,
}

impl Blocks {
    #[cfg(any(feature = "cuda", feature = "opencl"))]
    /// The number of blocks along the last coordinate, and along all others together.
    pub fn split_last(&self) -> (i64, i64) {
        match self.extents.last() {
            Some(last) if self.count > 0 => (*last, self.count / last),
            _ => (self.count, 1),
        }
    }
}

/// The blocks of a kernel launched with these arguments.
pub(crate) fn blocks(kernel: &Kernel, params: &[i128], args: &[i64]) -> Result<Blocks, Error> {
    let mut dims = vec![0; kernel.vars.len()];
    for (var, value) in host_vars(kernel).zip(args) {
        dims[var.index()] = i128::from(*value);
    }
    let too_many = || Error::overflow(format!("the grid of `{}`", kernel.name));
    let mut extents = Vec::new();
    for var in &kernel.vars {
        match &var.kind {
            VarKind::Block { lo, hi } => {
                let (first, last) = bounds(lo, hi, params, &dims)?;
                let extent = last.saturating_sub(first).max(0);
                extents.push(i64::try_from(extent).map_err(|_| too_many())?);
            }
            VarKind::Host
            | VarKind::Warp
            | VarKind::Lane
            | VarKind::Loop
            | VarKind::DynamicBlock => {}
        }
    }
    let count = if extents.contains(&0) {
        0
    } else {
        let count = extents.iter().try_fold(1i64, |n, e| n.checked_mul(*e));
        count.ok_or_else(too_many)?
    };
    Ok(Blocks { extents, count })
}
