//! Convolutions: a filter of any size over an array, with strides.

use systola_ir::codes::{stencil as codes, types};
use systola_ir::system::{Axis, Combine, Dim, Expr, Input, Law, System, Var};
use systola_ir::{
    BinOp, Cond, Diagnostic, DimId, Form, InputId, Poly, Rel, Scalar, Span, Type, VarId,
};

use crate::{Boundary, Field, Fresh, Stencil, reach, sweep};

/// A filter over an array:
///
/// ```text
/// z(c) = sum over q of x(stride·c + dilation·(q - Q/2)) w(q)
/// ```
///
/// along each axis. With the interior boundary condition the filter begins at the element instead,
/// and there are results as long as it ends inside.
#[derive(Clone, Debug)]
pub struct Conv {
    /// Parameters, context and batch, and two inputs: the array and the filter.
    pub head: System,
    pub boundary: Boundary,
    pub strides: Vec<i128>,
    pub dilations: Vec<i128>,
}

/// The names of the iterators over the results and over the filter, the last one first.
const CELLS: [&str; 3] = ["c", "r", "s"];
const WINDOW: [&str; 3] = ["q", "p", "o"];

/// The system of a convolution.
pub fn write_conv(conv: &Conv) -> Result<System, Vec<Diagnostic>> {
    let [array, filter] = conv.head.inputs.as_slice() else {
        return Err(vec![incomplete(&conv.head)]);
    };
    let checked = check_axes(conv, array, filter)
        .and_then(|()| check_types(array, filter))
        .and_then(|()| check_lengths(&conv.head.inputs))
        .and_then(|()| check_boundary(conv.boundary, array));
    checked.map_err(|error| vec![error])?;
    let axes: Vec<OneAxis> = (0..array.axes.len())
        .map(|n| OneAxis {
            length: array.axes[n].hi.clone(),
            width: filter.axes[n].hi.clone(),
            stride: conv.strides[n],
            dilation: conv.dilations[n],
            boundary: conv.boundary,
        })
        .collect();
    let mut names = Fresh::of(&conv.head);
    let stencil = Stencil {
        kernel: kernel(&conv.head, array.ty, &axes, &mut names),
        fields: match conv.boundary {
            Boundary::Interior => Vec::new(),
            boundary => vec![Field {
                input: InputId::from(0),
                boundary,
                update: None,
            }],
        },
        // The result is a new array, of which all is computed.
        boundaries: vec![Boundary::Clamp],
        steps: None,
        time: String::new(),
        outputs: vec![(names.name("z"), VarId::from(0))],
    };
    let mut plan = reach::plan(&stencil, &stencil.kernel)?;
    plan.context.clear();
    Ok(sweep::write(&stencil, &plan))
}

/// The array and the filter have the same axes, from zero, with a stride and a dilation each.
fn check_axes(conv: &Conv, array: &Input, filter: &Input) -> Result<(), Diagnostic> {
    let n_axes = array.axes.len();
    if filter.axes.len() != n_axes || !(1..=CELLS.len()).contains(&n_axes) {
        let error = Diagnostic::new(
            &codes::WEIGHTS_SHAPE,
            filter.span,
            format!(
                "the array has {n_axes} axes and the filter {}; there are as many of both, 1 to {}",
                filter.axes.len(),
                CELLS.len()
            ),
        );
        return Err(error
            .also(array.span, "the array")
            .help("axes that are not filtered are a `batch`"));
    }
    let positive = |factors: &[i128]| {
        factors.len() == n_axes && factors.iter().all(|f| (1..=reach::HUGE).contains(f))
    };
    if !positive(&conv.strides) || !positive(&conv.dilations) {
        let error = Diagnostic::new(
            &types::WRONG_COUNT,
            conv.head.span,
            format!("strides and dilations are positive, one for each of the {n_axes} axes"),
        );
        return Err(error.help("leave them away where they are 1"));
    }
    let from_zero = |input: &Input| input.axes.iter().all(|axis| axis.lo == Form::zero());
    if let Some(input) = conv.head.inputs.iter().find(|i| !from_zero(i)) {
        let error = Diagnostic::new(
            &codes::FIELDS_DIFFER,
            input.span,
            format!("the axes of `{}` do not begin at zero", input.name),
        );
        return Err(error.help("write their lengths only"));
    }
    Ok(())
}

fn check_types(array: &Input, filter: &Input) -> Result<(), Diagnostic> {
    if array.ty != filter.ty {
        let error = Diagnostic::new(
            &types::TYPE_MISMATCH,
            filter.span,
            format!(
                "the array and the filter have one type, but these are {} and {}",
                array.ty, filter.ty
            ),
        );
        return Err(error
            .also(array.span, "the array")
            .help(format!("declare `{}` as {}", filter.name, array.ty)));
    }
    if array.ty == Scalar::Bool {
        let error = Diagnostic::new(
            &types::NO_SUCH_OPERATOR,
            array.span,
            "a convolution adds products, and there are none of bool",
        );
        return Err(error.help("take a type of numbers, such as `u8`"));
    }
    Ok(())
}

fn check_lengths(inputs: &[Input]) -> Result<(), Diagnostic> {
    let is_huge = |axis: &Axis| axis.hi.as_constant().is_some_and(|n| n.abs() > reach::HUGE);
    match inputs.iter().find(|i| i.axes.iter().any(is_huge)) {
        Some(input) => Err(Diagnostic::new(
            &types::COEFFICIENT_TOO_LARGE,
            input.span,
            format!("an axis of `{}` is longer than 2^40", input.name),
        )
        .help("no array has this size")),
        None => Ok(()),
    }
}

fn check_boundary(boundary: Boundary, array: &Input) -> Result<(), Diagnostic> {
    if boundary != Boundary::Fixed {
        return Ok(());
    }
    Err(Diagnostic::new(
        &codes::NOT_A_FIELD,
        array.span,
        "a convolution makes a new array, so no element has a value that it could keep",
    )
    .help("take another boundary condition"))
}

/// One sweep: at each cell, the sum of the products under the filter.
fn kernel(head: &System, ty: Scalar, axes: &[OneAxis], names: &mut Fresh) -> System {
    let n_axes = axes.len();
    let mut dims = |words: [&str; 3], end: fn(&OneAxis) -> Form| -> Vec<Dim> {
        let named = axes.iter().zip((0..n_axes).rev());
        let dims = named.map(|(axis, n)| Dim {
            name: names.name(words[n]),
            range: Some((Form::zero(), end(axis))),
            span: Span::NONE,
        });
        dims.collect()
    };
    let mut kernel = head.clone();
    kernel.dims = dims(CELLS, OneAxis::n_cells);
    kernel.bound = dims(WINDOW, |axis| axis.width.clone());
    let large_enough = axes.iter().map(OneAxis::array_is_large_enough);
    let widths = axes
        .iter()
        .map(|a| Cond::Cmp(Rel::Ge, a.width.clone(), Form::from(1)));
    for cond in large_enough.chain(widths) {
        if !reach::is_implied(&cond, &kernel.context) && !is_settled(&cond) {
            kernel.context.push(cond);
        }
    }
    kernel.vars = vec![Var {
        name: names.name("Z"),
        ty: Type::Scalar(ty),
        law: Law::Fixed,
        own: None,
        on: Vec::new(),
        body: Expr::Reduce {
            op: Combine::Op(BinOp::Add),
            dims: (n_axes..2 * n_axes).map(DimId::from).collect(),
            body: Box::new(product(axes)),
            span: Span::NONE,
        },
        span: head.span,
    }];
    kernel
}

/// An element times the tap of the filter that lies over it.
fn product(axes: &[OneAxis]) -> Expr {
    let read = |input: usize, index: Vec<Form>| Expr::Input {
        input: InputId::from(input),
        index,
        span: Span::NONE,
    };
    let dim = |n: usize| Form::from(DimId::from(n));
    let taps: Vec<Form> = (axes.len()..2 * axes.len()).map(dim).collect();
    let under = axes.iter().zip(&taps).enumerate();
    let under = under.map(|(n, (axis, tap))| axis.read_at(&dim(n), tap));
    Expr::binary(BinOp::Mul, read(0, under.collect()), read(1, taps))
}

fn incomplete(head: &System) -> Diagnostic {
    Diagnostic::new(
        &codes::NO_UPDATE,
        head.span,
        format!(
            "the convolution `{}` has an `input` and a `filter`",
            head.name
        ),
    )
    .help("write `input x[R, C]: f32 constant 0; filter w[H, Q]: f32;`")
}

/// Whether a condition compares numbers, and holds.
fn is_settled(cond: &Cond) -> bool {
    let numbers = cond.forms().iter().all(|form| form.as_constant().is_some());
    numbers && cond.eval(&[], &[]) == Ok(true)
}

/// One axis of a convolution.
struct OneAxis {
    length: Form,
    width: Form,
    stride: i128,
    dilation: i128,
    boundary: Boundary,
}

impl OneAxis {
    /// The reach of the filter before its middle.
    fn reach(&self) -> Form {
        scaled(&self.width.floor_div(2), self.dilation)
    }

    /// From the first element under the filter to the last.
    fn span_of_filter(&self) -> Form {
        scaled(&self.width.plus(-1), self.dilation)
    }

    fn array_is_large_enough(&self) -> Cond {
        let least = match self.boundary {
            Boundary::Interior => self.span_of_filter().plus(1),
            Boundary::Mirror => self.reach().plus(1),
            Boundary::Reflect | Boundary::Wrap => self.reach(),
            Boundary::Fixed | Boundary::Constant(_) | Boundary::Clamp => Form::from(1),
        };
        Cond::Cmp(Rel::Ge, self.length.clone(), least)
    }

    fn n_cells(&self) -> Form {
        let left = match self.boundary {
            Boundary::Interior => self.length.sub(&self.span_of_filter()),
            Boundary::Fixed
            | Boundary::Constant(_)
            | Boundary::Clamp
            | Boundary::Mirror
            | Boundary::Reflect
            | Boundary::Wrap => self.length.clone(),
        };
        left.plus(self.stride - 1).floor_div(self.stride)
    }

    /// The element under a tap of the filter.
    fn read_at(&self, cell: &Form, tap: &Form) -> Form {
        let at = scaled(cell, self.stride).add(&scaled(tap, self.dilation));
        match self.boundary {
            Boundary::Interior => at,
            Boundary::Fixed
            | Boundary::Constant(_)
            | Boundary::Clamp
            | Boundary::Mirror
            | Boundary::Reflect
            | Boundary::Wrap => at.sub(&self.reach()),
        }
    }
}

fn scaled(form: &Form, factor: i128) -> Form {
    form.scale(&Poly::constant(factor)).unwrap_or_default()
}
