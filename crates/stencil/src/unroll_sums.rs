//! Unrolls sums over neighbourhoods, so that each neighbour is at a constant distance.

use systola_ir::codes::{stencil as codes, syntax};
use systola_ir::system::expansion::{Expansion, MOST_OPERATIONS};
use systola_ir::system::{Combine, Expr, Input, InputKind, System, map_forms, visit};
use systola_ir::{Diagnostic, DimId, Form, InputId, Scalar, Span};

/// The maximum number of terms in one sum.
const MAX_TERMS: i128 = 2048;
/// The same equations without `reduce`.
pub fn unroll_sums(kernel: &System) -> Result<System, Vec<Diagnostic>> {
    let expansion = Expansion::of(kernel);
    let mut written = kernel.clone();
    let mut errors = Vec::new();
    for var in &mut written.vars {
        match visit::map_expr(&var.body, &mut |expr| reduce(kernel, &expansion, expr)) {
            Ok(body) => var.body = body,
            Err(error) => errors.push(*error),
        }
        var.law = systola_ir::system::Law::Fixed;
    }
    written.bound.clear();
    if errors.is_empty() {
        // Front ends put fields first, so that unused inputs come after them.
        let read = (written.inputs.iter().enumerate())
            .filter(|(n, input)| !is_written(input) || is_read(&written, InputId::from(*n)));
        let n_kept = read.map(|(n, _)| n + 1).max().unwrap_or(0);
        written.inputs.truncate(n_kept);
        if let Some(batch) = &mut written.batch {
            batch.shared.retain(|input| input.index() < n_kept);
        }
        Ok(written)
    } else {
        Err(errors)
    }
}

/// A table whose contents are in the program.
fn is_written(input: &Input) -> bool {
    matches!(input.kind, InputKind::Table { data: Some(_) })
}

fn is_read(system: &System, input: InputId) -> bool {
    let vars = system.vars.iter().map(|v| &v.body);
    let bodies = vars.chain(system.functions.iter().map(|f| &f.body));
    let mut found = false;
    for body in bodies {
        visit::walk(body, &mut |e| match e {
            Expr::Input { input: read, .. } | Expr::Lookup { input: read, .. } => {
                found |= *read == input;
            }
            _ => {}
        });
    }
    found
}

fn reduce(kernel: &System, expansion: &Expansion, expr: Expr) -> Result<Expr, Box<Diagnostic>> {
    let (op, dims, body, span) = match &expr {
        Expr::Reduce {
            op,
            dims,
            body,
            span,
        } => (op, dims, body, *span),
        Expr::Scan { span, .. } => return Err(Box::new(unbounded(*span))),
        _ => return Ok(expr),
    };
    let mut points: Vec<Vec<i128>> = vec![Vec::new()];
    for dim in dims {
        let range = kernel.dim(*dim).range.as_ref();
        let range = range.and_then(|(lo, hi)| Some(lo.as_constant()?..hi.as_constant()?));
        let Some(range) = range.filter(|r| r.end - r.start <= MAX_TERMS) else {
            return Err(Box::new(unbounded(span)));
        };
        points = points
            .iter()
            .flat_map(|p| range.clone().map(move |i| [p.as_slice(), &[i]].concat()))
            .collect();
        if points.len() as i128 > MAX_TERMS {
            return Err(Box::new(unbounded(span)));
        }
    }
    let n_operations = expansion.operations(body);
    if n_operations.saturating_mul(points.len() as u64) > MOST_OPERATIONS {
        return Err(Box::new(too_large(span)));
    }
    let terms = points
        .iter()
        .map(|point| at_point(kernel, body, dims, point));
    let folded = terms.reduce(|sum, term| match op {
        Combine::Op(op) => Expr::binary(*op, sum, term),
        Combine::Fn(f) => Expr::Call(*f, vec![sum, term]),
    });
    folded.ok_or_else(|| Box::new(unbounded(span)))
}

/// The body of a sum at one of its points; elements of written tables become numbers.
fn at_point(kernel: &System, body: &Expr, dims: &[DimId], point: &[i128]) -> Expr {
    let value = |d: DimId| dims.iter().position(|e| *e == d).map(|n| point[n]);
    let fix = |form: &Form| form.substitute(&|d| value(d).map(Form::from));
    let fixed = map_forms(body, &fix).unwrap_or_else(|_| body.clone());
    let fixed: Result<Expr, std::convert::Infallible> = visit::map_expr(&fixed, &mut |e| {
        Ok(match e {
            Expr::Iter(d) => match value(d) {
                Some(n) => Expr::int(Scalar::I64, n),
                None => Expr::Iter(d),
            },
            Expr::Input { input, index, span } => {
                let array = &kernel.inputs[input.index()];
                element(array, &index).unwrap_or(Expr::Input { input, index, span })
            }
            other => other,
        })
    });
    match fixed {
        Ok(expr) => expr,
        Err(never) => match never {},
    }
}

/// An element of a table whose contents are written down.
fn element(array: &Input, index: &[Form]) -> Option<Expr> {
    let InputKind::Table { data: Some(data) } = &array.kind else {
        return None;
    };
    let mut position = 0;
    for (axis, at) in array.axes.iter().zip(index) {
        let (lo, hi) = (axis.lo.as_constant()?, axis.hi.as_constant()?);
        let at = at.as_constant().filter(|at| (lo..hi).contains(at))?;
        position = position * (hi - lo) + at - lo;
    }
    let value = data.get(usize::try_from(position).ok()?)?;
    Some(Expr::Lit(array.ty, *value))
}

fn too_large(span: Span) -> Diagnostic {
    Diagnostic::new(
        &syntax::TOO_LARGE,
        span,
        format!("a stencil of many steps writes its sums out, and this one takes more than {MOST_OPERATIONS} operations"),
    )
    .help("sum over fewer cells, give inner sums a variable, or make one step")
}

fn unbounded(span: Span) -> Diagnostic {
    Diagnostic::new(
        &codes::UNBOUNDED_SUM,
        span,
        format!(
            "a stencil of many steps has a fixed neighbourhood, of at most {MAX_TERMS} cells; this sum has no such bounds"
        ),
    )
    .help("give the shape a number as its radius, or make one step")
}
