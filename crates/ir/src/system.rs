//! Recurrence systems: *what* is computed.
//!
//! A system has integer parameters with a context they satisfy, an index space (named iterators
//! with a domain of integer points), input arrays, and variables. Every variable has one equation,
//! which gives its value at every point z of its domain:
//!
//! ```text
//! V(z) = f( U(z - e), ..., W(C z + d), ..., in[A z + b], ..., iterators, parameters )
//! ```
//!
//! A variable has a value at each point of the index space, or at points of iterators of its own.
//!
//! The meaning is mathematical: a value is what its equation says, whatever the order of
//! evaluation. References to variables and to inputs are quasi-affine in the point. A reference is
//! *uniform* if it is at the same distance e from every point that reads it; e may be an expression
//! in the parameters, `1 - N`. A guard without an `else` leaves the value *undefined* where the
//! guard does not hold. Reading an undefined value, or one outside its variable's domain, is an
//! error, which is reported with the first such point.
//!
//! Iterators are numbered within an equation: those of its point first, then those that sums of the
//! system bind. [`System::around`] is a system as one of its variables sees it, in which the point
//! of that variable is a point of the index space.
//!
//! `reduce(op, dims, f)` combines f over all points of fresh iterators in an unspecified order, and
//! with the neutral value of an operator any number of times: the sign of a sum of zeros is open, and
//! so is a minimum or maximum among values that are not numbers. Without a point it is the neutral
//! value. The mapping chooses the order (serialisation). `scan(op, dim, f)` is the inclusive prefix along one
//! iterator of the index space. The mapping also decides whether an input is read wherever it is
//! needed, or forwarded along a direction of reuse (localisation).
//!
//! Several systems make a [`Program`]: the outputs of one feed the inputs of another.

use std::borrow::Cow;

use crate::diag::Diagnostic;
use crate::form::{Cond, Form, Overflow, Poly};
use crate::id::{ConstId, DimId, FnId, InputId, LocalId, ParamId, PortId, VarId};
use crate::mapping::Mapping;
use crate::scalar::{BinOp, Literal, Scalar, Type, UnOp};
use crate::span::Span;

pub mod batch;
pub mod expansion;
pub mod print;
pub mod visit;

/// The contents of one file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Module {
    pub systems: Vec<System>,
    pub mappings: Vec<Mapping>,
    pub programs: Vec<Program>,
    /// Suggestions for the text it was read from.
    pub hints: Vec<Diagnostic>,
}

/// A system of recurrence equations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct System {
    pub name: String,
    pub span: Span,
    pub params: Vec<Param>,
    /// Conditions on the parameters (`where C >= 1`); no iterator occurs in them.
    pub context: Vec<Cond>,
    /// A parallel outer dimension that has not been expanded yet; see [`batch`].
    pub batch: Option<Batch>,
    /// The iterators of the index space, outermost first.
    pub dims: Vec<Dim>,
    /// Conditions on the points, in addition to the ranges of `dims`.
    pub domain: Vec<Cond>,
    /// The iterators bound by `reduce`; each belongs to exactly one `reduce`. In an equation, the
    /// one at position n has the id `arity + n`, with the arity of the variable.
    pub bound: Vec<Dim>,
    pub consts: Vec<Const>,
    pub inputs: Vec<Input>,
    pub functions: Vec<Function>,
    /// In body order: at one point, an equation may read what an earlier one computed there.
    pub vars: Vec<Var>,
    pub outputs: Vec<Output>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    pub name: String,
    pub span: Span,
}

/// An iterator, with its half-open range where one was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dim {
    pub name: String,
    /// `lo..hi`; may use parameters and the iterators before this one.
    pub range: Option<(Form, Form)>,
    pub span: Span,
}

/// `batch n in 0..B shared(w)`: every input except the shared ones, every variable and every output
/// gets an additional, outermost axis; there are no dependences across it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    pub name: String,
    /// Half-open, in the parameters.
    pub range: (Form, Form),
    pub shared: Vec<InputId>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Const {
    pub name: String,
    pub ty: Scalar,
    pub value: Literal,
    pub span: Span,
}

/// One axis of an array: indices lo..hi, half-open, in the parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    pub lo: Form,
    pub hi: Form,
}

/// An array that is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    pub name: String,
    pub ty: Scalar,
    pub kind: InputKind,
    pub axes: Vec<Axis>,
    /// The value of every element outside the axes; without it, such a read is an error.
    pub outside: Option<Literal>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum InputKind {
    /// Read at quasi-affine indices.
    Array,
    /// Small, and also indexed by computed values. The program may state its contents, in row-major
    /// order.
    Table { data: Option<Vec<Literal>> },
}

/// A pure function that calls are replaced by: `fn f(a: f32) -> f32 = ...`. Never recursive.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    pub name: String,
    /// The parameters are the locals 0..params.len() of the body.
    pub params: Vec<(String, Type)>,
    pub result: Type,
    /// What the user promises about it, for `reduce` and for accumulations.
    pub law: Law,
    pub body: Expr,
    pub span: Span,
}

/// What may be done to the order of a sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Law {
    /// Keep the order as written.
    #[default]
    Fixed,
    /// Regroup, keeping the order.
    Associative,
    /// Regroup and reorder.
    Reorderable,
}

/// A recurrent variable and its equation.
#[derive(Clone, Debug, PartialEq)]
pub struct Var {
    pub name: String,
    pub ty: Type,
    /// What the user promises about the equation, if it is an accumulation.
    pub law: Law,
    /// Its own iterators, `F(i, j)`; without them it lives in the index space.
    pub own: Option<Vec<Dim>>,
    /// Conditions on its points, in addition to the domain of the system or the ranges of its own
    /// iterators (`on k == K-1`).
    pub on: Vec<Cond>,
    pub body: Expr,
    pub span: Span,
}

/// An array that is written: each write sends the points of its guard to elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    pub name: String,
    pub ty: Scalar,
    pub axes: Vec<Axis>,
    pub writes: Vec<Write>,
    /// The value of elements that no write reaches; without it, every element must be written.
    pub fill: Option<Literal>,
    pub span: Span,
}

/// `value at [index] when guard`: at each point of a domain where the guard holds, the element
/// `index` of the output becomes the value, which may read variables at that same point only.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// The variable whose iterators and domain it has; without it, those of the index space.
    pub of: Option<VarId>,
    pub value: Expr,
    pub index: Vec<Form>,
    pub when: Cond,
    pub span: Span,
}

/// The operator of a `reduce` or `scan`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Combine {
    Op(BinOp),
    Fn(FnId),
}

/// The right-hand side of an equation. Types are explicit: an operator never converts.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    Lit(Scalar, Literal),
    Const(ConstId),
    /// An iterator as a value, an i64.
    Iter(DimId),
    /// A parameter as a value, an i64.
    Param(ParamId),
    Local(LocalId),
    /// The value of a variable at another point; one form for each of its iterators.
    Var {
        var: VarId,
        index: Vec<Form>,
        span: Span,
    },
    /// An element of an input; one form per axis.
    Input {
        input: InputId,
        index: Vec<Form>,
        span: Span,
    },
    /// An element of a table at computed indices (integers of any type).
    Lookup {
        input: InputId,
        index: Vec<Expr>,
        span: Span,
    },
    Unary(UnOp, Box<Expr>),
    Binary(BinOp, Box<Expr>, Box<Expr>),
    Cast(Scalar, Box<Expr>),
    /// A choice by the position of the point: only the chosen branch is read.
    Guard {
        cond: Cond,
        then: Box<Expr>,
        /// Without it, the value is undefined where the condition does not hold.
        otherwise: Option<Box<Expr>>,
    },
    /// A choice by a computed value: both branches are read.
    Select {
        cond: Box<Expr>,
        then: Box<Expr>,
        otherwise: Box<Expr>,
    },
    Tuple(Vec<Expr>),
    Field(Box<Expr>, usize),
    Call(FnId, Vec<Expr>),
    Let {
        local: LocalId,
        name: String,
        value: Box<Expr>,
        body: Box<Expr>,
    },
    /// Combines over all points of the iterators `dims` (ids into `System::bound`, after the index
    /// space's).
    Reduce {
        op: Combine,
        dims: Vec<DimId>,
        body: Box<Expr>,
        span: Span,
    },
    /// Inclusive prefix along `dim`, within the domain.
    Scan {
        op: Combine,
        dim: DimId,
        body: Box<Expr>,
        span: Span,
    },
    /// The value that arrives on a port. Only in the cells of an [`crate::array::Array`].
    Port(PortId),
}

/// A sequence of systems with arrays between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    pub name: String,
    pub params: Vec<Param>,
    pub context: Vec<Cond>,
    pub inputs: Vec<Input>,
    pub stages: Vec<Stage>,
    /// The name of each output, and its source.
    pub outputs: Vec<(String, Source)>,
    pub span: Span,
}

/// One system at given parameters, reading inputs of the program or outputs of earlier stages.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    pub name: String,
    /// Position in `Module::systems`.
    pub system: usize,
    /// One form in the program's parameters for each parameter of the system.
    pub args: Vec<Form>,
    /// One source for each input of the system that has no contents of its own.
    pub inputs: Vec<(InputId, Source)>,
    pub span: Span,
}

/// Where an array comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The input of the program at this position.
    Input(usize),
    /// An output of an earlier stage.
    Output { stage: usize, output: usize },
}

impl System {
    pub fn param_names(&self) -> Vec<String> {
        self.params.iter().map(|p| p.name.clone()).collect()
    }

    /// The names of the iterators, those bound by `reduce` after those of the index space.
    pub fn dim_names(&self) -> Vec<String> {
        self.dims
            .iter()
            .chain(&self.bound)
            .map(|d| d.name.clone())
            .collect()
    }

    pub fn dim(&self, d: DimId) -> &Dim {
        match d.index().checked_sub(self.dims.len()) {
            None => &self.dims[d.index()],
            Some(n) => &self.bound[n],
        }
    }

    pub fn find_var(&self, name: &str) -> Option<VarId> {
        self.vars
            .iter()
            .position(|v| v.name == name)
            .map(VarId::from)
    }

    pub fn find_input(&self, name: &str) -> Option<InputId> {
        self.inputs
            .iter()
            .position(|v| v.name == name)
            .map(InputId::from)
    }

    /// The index list of the point itself.
    pub fn identity_index(&self) -> Vec<Form> {
        (0..self.dims.len())
            .map(|n| Form::from(DimId::from(n)))
            .collect()
    }

    /// Is it the value of the variable at the point itself, which its name alone denotes?
    pub fn is_here(&self, var: VarId, index: &[Form]) -> bool {
        let dims = self.dims_of(var);
        let names = |dims: &[Dim]| dims.iter().map(|d| d.name.clone()).collect::<Vec<_>>();
        index == self.identity_index() && names(dims) == names(&self.dims)
    }

    /// All conditions on a point of the index space: ranges, then `domain`. Without the context.
    pub fn domain_cond(&self) -> Cond {
        let domain = self.domain.iter().cloned();
        domain.fold(ranges_cond(&self.dims), Cond::and)
    }

    /// The domain of a variable, over its iterators.
    pub fn var_domain(&self, var: VarId) -> Cond {
        let var = &self.vars[var.index()];
        let base = match &var.own {
            None => self.domain_cond(),
            Some(dims) => ranges_cond(dims),
        };
        var.on.iter().cloned().fold(base, Cond::and)
    }

    /// The iterators of a variable.
    pub fn dims_of(&self, var: VarId) -> &[Dim] {
        self.vars[var.index()].own.as_ref().unwrap_or(&self.dims)
    }

    /// The number of iterators of a variable.
    pub fn arity(&self, var: VarId) -> usize {
        self.dims_of(var).len()
    }

    /// The names of the iterators of a variable.
    pub fn names_of(&self, var: VarId) -> Vec<String> {
        let dims = self.dims_of(var).iter();
        dims.map(|d| d.name.clone()).collect()
    }

    /// Do all variables live in the index space?
    pub fn has_one_space(&self) -> bool {
        self.vars.iter().all(|var| var.own.is_none())
    }

    /// The system as a variable sees it: the index space is the domain of the variable, if that has
    /// iterators of its own, and all others have theirs.
    pub fn around(&self, var: VarId) -> Cow<'_, System> {
        let Some(dims) = &self.vars[var.index()].own else {
            return Cow::Borrowed(self);
        };
        let mut seen = self.clone();
        for other in seen.vars.iter_mut().filter(|v| v.own.is_none()) {
            other.own = Some(self.dims.clone());
            other.on.splice(0..0, self.domain.iter().cloned());
        }
        seen.dims.clone_from(dims);
        seen.domain.clone_from(&self.vars[var.index()].on);
        Cow::Owned(seen)
    }

    /// The system as a write of an output sees it.
    pub fn around_write(&self, write: &Write) -> Cow<'_, System> {
        match write.of {
            None => Cow::Borrowed(self),
            Some(var) => self.around(var),
        }
    }

    pub fn context_cond(&self) -> Cond {
        self.context.iter().cloned().fold(Cond::TRUE, Cond::and)
    }

    /// The range of an iterator as a condition.
    pub fn dim_range(&self, d: DimId) -> Option<Cond> {
        range_cond(d, self.dim(d))
    }

    /// e = z − index: the dependence vector of a reference, if it is uniform.
    pub fn distance(&self, index: &[Form]) -> Option<Vec<Poly>> {
        self.identity_index()
            .iter()
            .zip(index)
            .map(|(here, there)| here.sub(there).as_poly().cloned())
            .collect()
    }

    /// What may be done to the order of a reduction with this operator on this type.
    pub fn law_of(&self, op: Combine, ty: &Type) -> Law {
        match (op, ty) {
            (Combine::Fn(f), _) => self.functions[f.index()].law,
            (Combine::Op(op), Type::Scalar(s)) if op.is_exactly_reorderable(*s) => Law::Reorderable,
            (Combine::Op(_), _) => Law::Fixed,
        }
    }
}

fn range_cond(d: DimId, dim: &Dim) -> Option<Cond> {
    use crate::form::Rel;
    let (lo, hi) = dim.range.as_ref()?;
    Some(Cond::cmp(Rel::Le, lo.clone(), d).and(Cond::cmp(Rel::Lt, d, hi.clone())))
}

/// The ranges of all iterators of a space.
fn ranges_cond(dims: &[Dim]) -> Cond {
    let dims = dims.iter().enumerate();
    let ranges = dims.filter_map(|(n, dim)| range_cond(DimId::from(n), dim));
    ranges.fold(Cond::TRUE, Cond::and)
}

/// The same index list, shifted by −e.
pub fn shifted(index: &[Form], e: &[Poly]) -> Vec<Form> {
    index
        .iter()
        .zip(e)
        .map(|(form, e)| form.sub(&Form::from(e.clone())))
        .collect()
}

impl Expr {
    pub fn int(ty: Scalar, value: i128) -> Expr {
        let literal = if ty.is_float() {
            Literal::Float(value as f64)
        } else if ty == Scalar::Bool {
            Literal::Bool(value != 0)
        } else {
            Literal::Int(value)
        };
        Expr::Lit(ty, literal)
    }

    pub fn binary(op: BinOp, left: Expr, right: Expr) -> Expr {
        Expr::Binary(op, Box::new(left), Box::new(right))
    }

    pub fn guard(cond: Cond, then: Expr, otherwise: Expr) -> Expr {
        Expr::Guard {
            cond,
            then: Box::new(then),
            otherwise: Some(Box::new(otherwise)),
        }
    }
}

/// Rewrites every form of an expression.
pub fn map_forms(
    expr: &Expr,
    f: &dyn Fn(&Form) -> Result<Form, Overflow>,
) -> Result<Expr, Overflow> {
    visit::map_expr(expr, &mut |e| {
        Ok(match e {
            Expr::Var { var, index, span } => Expr::Var {
                var,
                index: index.iter().map(f).collect::<Result<_, _>>()?,
                span,
            },
            Expr::Input { input, index, span } => Expr::Input {
                input,
                index: index.iter().map(f).collect::<Result<_, _>>()?,
                span,
            },
            Expr::Guard {
                cond,
                then,
                otherwise,
            } => Expr::Guard {
                cond: cond.map(f)?,
                then,
                otherwise,
            },
            other => other,
        })
    })
}
