//! Convolutions: a filter over an array, at every cell or at every few.

use systola_ir::codes::{stencil as codes, types};
use systola_ir::mapping::Name;
use systola_ir::system::{Law, System};
use systola_ir::{BinOp, Diagnostic, InputId, Span, VarId};
use systola_stencil::{Border, Field, Fresh, Stencil, write_strided};

use super::Errors;
use super::stencil::{binary, int, lower_border, named, node, written};
use super::system::lower_system;
use crate::text::ast::{self, Dim, Expr, ExprKind, Index, ReduceOp, ReduceOpKind};

/// The names of the iterators over the result and over the filter, the last one first.
const CELLS: [&str; 3] = ["c", "r", "s"];
const WINDOW: [&str; 3] = ["q", "p", "o"];

pub fn lower_conv(ast: ast::Conv, errors: &mut Errors) -> System {
    let empty = System {
        name: ast.name.text.clone(),
        span: ast.span,
        ..System::default()
    };
    let before = errors.0.len();
    let (Some((input, border)), Some(filter)) = (&ast.input, &ast.filter) else {
        errors.report(
            Diagnostic::new(
                &codes::NO_UPDATE,
                ast.name.span,
                format!(
                    "the convolution `{}` has an `input` and a `filter`",
                    ast.name.text
                ),
            )
            .help("write `input x[R, C]: f32 constant 0; filter w[H, Q]: f32;`"),
        );
        return empty;
    };
    let n_axes = input.axes.len();
    if filter.axes.len() != n_axes || !(1..=CELLS.len()).contains(&n_axes) {
        errors.report(
            Diagnostic::new(
                &codes::WEIGHTS_SHAPE,
                filter.span,
                format!(
                    "the array has {n_axes} axes and the filter {}; there are as many of both, 1 to {}",
                    filter.axes.len(),
                    CELLS.len()
                ),
            )
            .also(input.span, "the array")
            .help("axes that are not filtered are a `batch`"),
        );
    }
    if let ast::Border::Held = border {
        errors.report(
            Diagnostic::new(
                &codes::NOT_A_FIELD,
                input.name.span,
                "a convolution makes a new array, so no cell has a value that it could keep",
            )
            .help("take another border"),
        );
    }
    let strides = factors(ast.stride.as_ref(), n_axes, "stride", errors);
    let dilations = factors(ast.dilation.as_ref(), n_axes, "dilation", errors);
    if errors.0.len() > before {
        return empty;
    }
    let mut taken = Fresh::default();
    let params = ast.params.iter().chain([&input.name, &filter.name]);
    for name in params.chain(ast.batch.iter().map(|b| &b.name)) {
        taken.take(&name.text);
    }
    let span = ast.name.span;
    let mut fresh = |word: &str| Name {
        text: taken.name(word),
        span,
    };
    let cells: Vec<Name> = (0..n_axes).rev().map(|n| fresh(CELLS[n])).collect();
    let window: Vec<Name> = (0..n_axes).rev().map(|n| fresh(WINDOW[n])).collect();
    let (sum, result) = (fresh("Z"), fresh("z"));
    let is_interior = matches!(border, ast::Border::Interior);
    let axes: Vec<OneAxis> = (0..n_axes)
        .map(|n| OneAxis {
            length: input.axes[n].hi.clone(),
            width: filter.axes[n].hi.clone(),
            stride: strides[n],
            dilation: dilations[n],
            is_interior,
            folds: match border {
                ast::Border::Mirror => Some(1),
                ast::Border::Reflect | ast::Border::Wrap => Some(0),
                _ => None,
            },
            span,
        })
        .collect();
    let mut context = ast.context.clone();
    for axis in &axes {
        context.push(axis.array_is_large_enough());
    }
    for axis in &axes {
        context.push(binary(BinOp::Ge, axis.width.clone(), int(1, span)));
    }
    let element = |array: &ast::Input, index: Vec<Expr>| {
        node(ExprKind::Element(array.name.clone(), index), span)
    };
    let at = axes.iter().zip(cells.iter().zip(&window));
    let at = at
        .map(|(axis, (cell, tap))| axis.read_at(&cell.text, &tap.text))
        .collect();
    let taps = window.iter().map(|q| named(&q.text, span)).collect();
    let op = ReduceOp {
        kind: ReduceOpKind::Op(BinOp::Add),
        span,
    };
    let range = |name: &Name, hi: Expr| Dim {
        name: name.clone(),
        range: Some((int(0, span), hi)),
        span,
    };
    let dims = window
        .iter()
        .zip(&axes)
        .map(|(q, a)| range(q, a.width.clone()));
    let product = binary(BinOp::Mul, element(input, at), element(filter, taps));
    let kernel = ast::System {
        name: ast.name.clone(),
        params: ast.params.clone(),
        context,
        consts: Vec::new(),
        inputs: vec![input.clone(), filter.clone()],
        functions: Vec::new(),
        batch: ast.batch.clone(),
        index: Some(Index {
            dims: (cells.iter().zip(&axes))
                .map(|(c, a)| range(c, a.n_cells()))
                .collect(),
            domain: Vec::new(),
            span,
        }),
        vars: vec![ast::Var {
            name: sum,
            ty: input.ty.clone(),
            law: Law::Fixed,
            on: Vec::new(),
            body: node(
                ExprKind::Reduce(op, dims.collect(), Box::new(product)),
                span,
            ),
            span,
        }],
        outputs: Vec::new(),
        span: ast.span,
    };
    let mut kernel = lower_system(&kernel, errors);
    kernel.context.dedup();
    let mut seen = Vec::new();
    kernel.context.retain(|cond| {
        let is_new = !seen.contains(cond) && !is_settled(cond);
        seen.push(cond.clone());
        is_new
    });
    let border = lower_border(border, &input.ty, errors);
    if errors.0.len() > before {
        return empty;
    }
    let stencil = Stencil {
        fields: match is_interior {
            true => Vec::new(),
            false => vec![Field {
                input: InputId::from(0),
                border,
                update: None,
            }],
        },
        kernel,
        borders: vec![Border::Clamp],
        steps: None,
        time: String::new(),
        outputs: vec![(result.text, VarId::from(0))],
    };
    written(write_strided(&stencil), empty, ast.span, errors)
}

/// Whether a condition compares numbers, and holds.
fn is_settled(cond: &systola_ir::Cond) -> bool {
    let numbers = cond.forms().iter().all(|form| form.as_constant().is_some());
    numbers && cond.eval(&[], &[]) == Ok(true)
}

/// One number for each axis, or one for all.
fn factors(
    given: Option<&(Vec<Expr>, Span)>,
    n_axes: usize,
    what: &str,
    errors: &mut Errors,
) -> Vec<i128> {
    let Some((list, span)) = given else {
        return vec![1; n_axes];
    };
    let numbers: Option<Vec<i128>> = (list.iter())
        .map(|e| match e.kind {
            ExprKind::Int(n, None) if n >= 1 => Some(n),
            _ => None,
        })
        .collect();
    match numbers.as_deref() {
        Some([n]) => return vec![*n; n_axes],
        Some(list) if list.len() == n_axes => return list.to_vec(),
        _ => {}
    }
    errors.report(
        Diagnostic::new(
            &types::WRONG_COUNT,
            *span,
            format!("a {what} is a positive number for each of the {n_axes} axes, or one for all"),
        )
        .help(format!("write `{what} 2;`")),
    );
    vec![1; n_axes]
}

/// One axis of a convolution.
struct OneAxis {
    length: Expr,
    width: Expr,
    stride: i128,
    dilation: i128,
    is_interior: bool,
    /// The array has this many elements more than the filter reaches beyond it, where it is folded back.
    folds: Option<i128>,
    span: Span,
}

impl OneAxis {
    fn int(&self, n: i128) -> Expr {
        int(n, self.span)
    }

    fn times(&self, n: i128, e: Expr) -> Expr {
        match n {
            1 => e,
            n => binary(BinOp::Mul, self.int(n), e),
        }
    }

    /// How far the filter reaches before its middle.
    fn reach(&self) -> Expr {
        let half = binary(BinOp::Div, self.width.clone(), self.int(2));
        self.times(self.dilation, half)
    }

    /// The elements from the first to the last that a filter covers, without one.
    fn span_of_filter(&self) -> Expr {
        let last = binary(BinOp::Sub, self.width.clone(), self.int(1));
        self.times(
            self.dilation,
            node(ExprKind::Paren(Box::new(last)), self.span),
        )
    }

    fn array_is_large_enough(&self) -> Expr {
        let least = match (self.is_interior, self.folds) {
            (true, _) => binary(BinOp::Add, self.span_of_filter(), self.int(1)),
            (false, Some(more)) => binary(BinOp::Add, self.reach(), self.int(more)),
            (false, None) => self.int(1),
        };
        binary(BinOp::Ge, self.length.clone(), least)
    }

    /// `(length - 1)/stride + 1`, of what is left of the array.
    fn n_cells(&self) -> Expr {
        let left = match self.is_interior {
            true => binary(BinOp::Sub, self.length.clone(), self.span_of_filter()),
            false => self.length.clone(),
        };
        if self.stride == 1 {
            return left;
        }
        let up = binary(BinOp::Add, left, self.int(self.stride - 1));
        binary(BinOp::Div, up, self.int(self.stride))
    }

    /// The element under a tap of the filter.
    fn read_at(&self, cell: &str, tap: &str) -> Expr {
        let start = self.times(self.stride, named(cell, self.span));
        let tap = self.times(self.dilation, named(tap, self.span));
        let at = binary(BinOp::Add, start, tap);
        match self.is_interior {
            true => at,
            false => binary(BinOp::Sub, at, self.reach()),
        }
    }
}
