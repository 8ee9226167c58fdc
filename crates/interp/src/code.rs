//! Expressions, compiled at concrete parameters and evaluated at points.
//!
//! All interpreters evaluate through here, so that an expression means the same in a system and in
//! the cells of an array; they differ only in where variables and ports are read ([`Reads`]). A
//! `let` and the arguments of a call are evaluated before the body, used or not; both operands of
//! `&&` and `||` are evaluated. A guard without an `else` that does not hold leaves the whole
//! expression around it undefined.

use std::sync::Arc;

use systola_ir::codes::run;
use systola_ir::system::{Combine, Expr, System};
use systola_ir::{BinOp, Diagnostic, FnId, InputId, PortId, Scalar, Span, UnOp, VarId};

use crate::linear::{Linear, Test};
use crate::params::overflow;
use crate::rounding;
use crate::value::{OpError, Value, binary, cast, unary};

mod compile;
mod needs;

pub(crate) use compile::{ScanDomain, ScanPlan};
pub(crate) use needs::Need;

/// The context of an expression besides its point.
#[derive(Clone, Copy)]
pub struct Env<'a> {
    /// Declares the functions, constants, inputs, variables and iterators.
    pub system: &'a System,
    pub params: &'a [i128],
}

/// Something read from outside the expression.
#[derive(Clone, Copy, Debug)]
pub enum Read<'a> {
    Var {
        var: VarId,
        point: &'a [i64],
        span: Span,
    },
    /// An element of an input, at affine or computed indices.
    Input {
        input: InputId,
        index: &'a [i64],
        span: Span,
    },
    Port(PortId),
}

/// Why an evaluation has no value.
#[derive(Clone, Debug)]
pub enum Stop {
    /// A guard without an `else` did not hold.
    Undefined,
    Op(Box<OpError>),
    Error(Box<Diagnostic>),
}

impl From<Diagnostic> for Stop {
    fn from(diagnostic: Diagnostic) -> Self {
        Stop::Error(Box::new(diagnostic))
    }
}

impl From<OpError> for Stop {
    fn from(error: OpError) -> Self {
        Stop::Op(Box::new(error))
    }
}

impl Stop {
    /// The error as a diagnostic at `span`. `None`: undefined.
    pub fn into_diagnostic(self, span: Span) -> Option<Diagnostic> {
        match self {
            Stop::Undefined => None,
            Stop::Error(diagnostic) => Some(*diagnostic),
            Stop::Op(error) => {
                let code = match &*error {
                    OpError::DivisionByZero(_) => &run::DIVISION_BY_ZERO,
                    OpError::NegativeExponent(_) => &run::NEGATIVE_EXPONENT,
                    OpError::Types { .. } => &run::ILL_TYPED,
                };
                Some(Diagnostic::new(code, span, error.to_string()))
            }
        }
    }
}

/// Serves the reads of an expression.
pub trait Reads {
    fn read(&mut self, read: Read<'_>) -> Result<Value, Stop>;

    /// The value of a prefix sum that is computed separately.
    fn scan(&mut self, _scan: usize, _point: &[i64]) -> Result<Value, Stop> {
        let message = "a `scan` has no value here";
        Err(Diagnostic::new(&run::NOT_A_VALUE, Span::NONE, message).into())
    }
}

impl<F: FnMut(Read<'_>) -> Result<Value, Diagnostic>> Reads for F {
    fn read(&mut self, read: Read<'_>) -> Result<Value, Stop> {
        Ok(self(read)?)
    }
}

/// Evaluates an expression once. `Ok(None)`: it is undefined at this point.
///
/// To evaluate the same expression at many points, keep the [`Code`].
pub fn eval(
    expr: &Expr,
    env: Env<'_>,
    point: &[i64],
    mut reads: &mut dyn FnMut(Read<'_>) -> Result<Value, Diagnostic>,
) -> Result<Option<Value>, Diagnostic> {
    let code = Code::compile(expr, env, Span::NONE)?;
    match code.eval(&mut Frame::new(MOST_TERMS, false), point, &mut reads) {
        Ok(value) => Ok(Some(value)),
        Err(stop) => stop.into_diagnostic(Span::NONE).map_or(Ok(None), Err),
    }
}

/// A compiled expression.
#[derive(Clone, Debug)]
pub struct Code {
    root: Node,
    n_locals: usize,
    /// The number of iterators of the index space and of `reduce`.
    n_dims: usize,
    library: Arc<Library>,
    span: Span,
    reads_vars: bool,
    may_fault: bool,
}

/// The compiled functions of a system.
#[derive(Clone, Debug, Default)]
pub struct Library {
    functions: Vec<FnCode>,
}

#[derive(Clone, Debug)]
struct FnCode {
    body: Node,
    n_params: usize,
    n_locals: usize,
    may_fault: bool,
}

#[derive(Clone, Debug)]
enum Node {
    Value(Value),
    Dim(usize),
    Local(usize),
    Var {
        var: VarId,
        index: Box<[Linear]>,
        span: Span,
    },
    Input {
        input: InputId,
        index: Box<[Linear]>,
        span: Span,
    },
    Lookup {
        input: InputId,
        index: Box<[Node]>,
        span: Span,
    },
    Port(PortId),
    Unary(UnOp, Box<Node>),
    Binary(BinOp, Box<(Node, Node)>),
    Cast(Scalar, Box<Node>),
    Guard {
        test: Test,
        then: Box<Node>,
        otherwise: Option<Box<Node>>,
    },
    /// Condition, then, otherwise.
    Select(Box<(Node, Node, Node)>),
    Tuple(Box<[Node]>),
    Field(Box<Node>, usize),
    Call(FnId, Box<[Node]>),
    Let {
        slot: usize,
        /// Value, body.
        parts: Box<(Node, Node)>,
    },
    Reduce(Box<Reduction>),
    /// A prefix sum that [`Reads::scan`] provides.
    Scan(usize),
    /// A prefix sum under a `reduce`, computed in place.
    ScanLoop(Box<Prefix>),
}

#[derive(Clone, Debug)]
struct Reduction {
    op: Combine,
    /// Iterator, first, end.
    ranges: Box<[(usize, Linear, Linear)]>,
    body: Node,
    identity: Option<Value>,
    span: Span,
    reads_vars: bool,
}

#[derive(Clone, Debug)]
struct Prefix {
    op: Combine,
    dim: usize,
    domain: Arc<ScanDomain>,
    body: Node,
    span: Span,
}

/// Scratch space of an evaluation, reused by the next.
#[derive(Clone, Debug)]
pub struct Frame {
    point: Vec<i64>,
    locals: Vec<Value>,
    /// The start of the locals of the current function.
    base: usize,
    /// A stack of computed indices.
    index: Vec<i64>,
    depth: usize,
    /// Do floats carry error bounds?
    tracks: bool,
    /// The remaining budget of terms of sums: values are memoised and need memory, terms only need
    /// time.
    terms_left: u64,
}

/// The maximum number of terms of sums in one run.
pub const MOST_TERMS: u64 = 1 << 34;

/// Functions never recurse, so only hand-built systems reach this depth.
const MAX_CALLS: usize = 100;

impl Code {
    pub fn span(&self) -> Span {
        self.span
    }

    pub fn reads_vars(&self) -> bool {
        self.reads_vars
    }

    /// Could an operator or a table have no value?
    pub fn may_fault(&self) -> bool {
        self.may_fault
    }

    /// The value at a point of the index space.
    pub fn eval(
        &self,
        frame: &mut Frame,
        point: &[i64],
        reads: &mut impl Reads,
    ) -> Result<Value, Stop> {
        frame.start(point, self);
        let library = &*self.library;
        Evaluation {
            library,
            frame,
            reads,
        }
        .eval(&self.root)
    }

    /// Combines two values, for a scan that is computed incrementally.
    pub(crate) fn combine(
        &self,
        frame: &mut Frame,
        op: Combine,
        left: Value,
        right: Value,
        reads: &mut impl Reads,
    ) -> Result<Value, Stop> {
        let library = &*self.library;
        Evaluation {
            library,
            frame,
            reads,
        }
        .combine(op, left, right)
    }
}

impl Frame {
    /// A frame with a budget of terms of sums. `tracks`: its evaluations track errors, see
    /// [`rounding`].
    pub(crate) fn new(terms: u64, tracks: bool) -> Frame {
        Frame {
            point: Vec::new(),
            locals: Vec::new(),
            base: 0,
            index: Vec::new(),
            depth: 0,
            tracks,
            terms_left: terms,
        }
    }

    fn count_term(&mut self, span: Span) -> Result<(), Stop> {
        match self.terms_left.checked_sub(1) {
            Some(left) => {
                self.terms_left = left;
                Ok(())
            }
            None => Err(too_many_terms(span).into()),
        }
    }

    fn start(&mut self, point: &[i64], code: &Code) {
        self.point.clear();
        self.point.extend_from_slice(point);
        self.point.resize(code.n_dims.max(point.len()), 0);
        self.locals.clear();
        self.locals.resize(code.n_locals, Value::Bool(false));
        self.base = 0;
        self.depth = 0;
        self.index.clear();
    }
}

struct Evaluation<'a, R> {
    library: &'a Library,
    frame: &'a mut Frame,
    reads: &'a mut R,
}

impl<R: Reads> Evaluation<'_, R> {
    fn eval(&mut self, node: &Node) -> Result<Value, Stop> {
        match node {
            Node::Value(value) => Ok(value.clone()),
            Node::Dim(d) => Ok(Value::I64(self.frame.point.get(*d).copied().unwrap_or(0))),
            Node::Local(slot) => {
                let value = self.frame.locals.get(self.frame.base + slot);
                value.cloned().ok_or(Stop::Undefined)
            }
            Node::Var { var, index, span } => {
                let start = self.push_index(index, *span)?;
                let point = &self.frame.index[start..];
                let (var, span) = (*var, *span);
                let value = self.reads.read(Read::Var { var, point, span });
                self.frame.index.truncate(start);
                value
            }
            Node::Input { input, index, span } => {
                let start = self.push_index(index, *span)?;
                self.read_input(*input, start, *span)
            }
            Node::Lookup { input, index, span } => {
                let start = self.frame.index.len();
                for node in index {
                    let value = self.eval(node)?;
                    let wide = value.as_int().ok_or_else(|| OpError::Types {
                        op: "[]",
                        operands: value.ty().to_string(),
                    })?;
                    // No array has elements beyond i64, so any such index is out of bounds.
                    let index = i64::try_from(wide).unwrap_or(i64::MAX);
                    self.frame.index.push(index);
                }
                self.read_input(*input, start, *span)
            }
            Node::Port(port) => self.reads.read(Read::Port(*port)),
            Node::Unary(op, a) => {
                let a = self.eval(a)?;
                Ok(match self.frame.tracks {
                    false => unary(*op, &a)?,
                    true => rounding::unary(*op, &a)?,
                })
            }
            Node::Binary(op, operands) => {
                let left = self.eval(&operands.0)?;
                let right = self.eval(&operands.1)?;
                self.binary(*op, &left, &right)
            }
            Node::Cast(ty, a) => {
                let a = self.eval(a)?;
                Ok(match self.frame.tracks {
                    false => cast(*ty, &a)?,
                    true => rounding::cast(*ty, &a)?,
                })
            }
            Node::Guard {
                test,
                then,
                otherwise,
            } => match (self.test(test)?, otherwise) {
                (true, _) => self.eval(then),
                (false, Some(otherwise)) => self.eval(otherwise),
                (false, None) => Err(Stop::Undefined),
            },
            Node::Select(parts) => {
                let cond = self.eval(&parts.0)?;
                let then = self.eval(&parts.1)?;
                let otherwise = self.eval(&parts.2)?;
                match cond {
                    Value::Bool(true) => Ok(then),
                    Value::Bool(false) => Ok(otherwise),
                    other if self.frame.tracks => rounding::select(&other, then, otherwise)
                        .ok_or_else(|| ill_typed("select", &other)),
                    other => Err(ill_typed("select", &other)),
                }
            }
            Node::Tuple(parts) => {
                let parts: Result<Arc<[Value]>, Stop> =
                    parts.iter().map(|p| self.eval(p)).collect();
                Ok(Value::Tuple(parts?))
            }
            Node::Field(tuple, n) => match self.eval(tuple)? {
                Value::Tuple(parts) if *n < parts.len() => Ok(parts[*n].clone()),
                other => Err(ill_typed("a field", &other)),
            },
            Node::Call(function, args) => {
                let args: Result<Vec<Value>, Stop> = args.iter().map(|a| self.eval(a)).collect();
                self.call(*function, &mut args?.into_iter())
            }
            Node::Let { slot, parts } => {
                let value = self.eval(&parts.0)?;
                let place = self.frame.base + slot;
                if let Some(local) = self.frame.locals.get_mut(place) {
                    *local = value;
                }
                self.eval(&parts.1)
            }
            Node::Reduce(reduction) => {
                let mut total = None;
                self.reduce(reduction, 0, &mut total)?;
                match total.or_else(|| reduction.identity.clone()) {
                    Some(total) => Ok(total),
                    None => {
                        let message = "a reduction by a function is over no points at all";
                        Err(Diagnostic::new(&run::EMPTY_REDUCE, reduction.span, message)
                            .help("guard the empty case with `select`")
                            .into())
                    }
                }
            }
            Node::Scan(scan) => self.reads.scan(*scan, &self.frame.point),
            Node::ScanLoop(prefix) => self.scan_loop(prefix),
        }
    }

    fn test(&self, test: &Test) -> Result<bool, Stop> {
        let holds = test.eval(&self.frame.point);
        holds.ok_or_else(|| overflow(Span::NONE).into())
    }

    /// Pushes the values of forms to the stack of indices, and returns their start.
    fn push_index(&mut self, index: &[Linear], span: Span) -> Result<usize, Stop> {
        let Frame {
            point,
            index: stack,
            ..
        } = &mut *self.frame;
        let start = stack.len();
        for form in index {
            stack.push(form.eval(point).ok_or_else(|| overflow(span))?);
        }
        Ok(start)
    }

    fn read_input(&mut self, input: InputId, start: usize, span: Span) -> Result<Value, Stop> {
        let index = &self.frame.index[start..];
        let value = self.reads.read(Read::Input { input, index, span });
        self.frame.index.truncate(start);
        value
    }

    fn binary(&self, op: BinOp, left: &Value, right: &Value) -> Result<Value, Stop> {
        Ok(match self.frame.tracks {
            false => binary(op, left, right)?,
            true => rounding::binary(op, left, right)?,
        })
    }

    fn combine(&mut self, op: Combine, left: Value, right: Value) -> Result<Value, Stop> {
        match op {
            Combine::Op(op) => self.binary(op, &left, &right),
            Combine::Fn(function) => {
                let joined = self.call(function, &mut [left, right].into_iter())?;
                Ok(match self.frame.tracks {
                    false => joined,
                    true => rounding::regrouped(joined),
                })
            }
        }
    }

    fn call(
        &mut self,
        function: FnId,
        args: &mut dyn Iterator<Item = Value>,
    ) -> Result<Value, Stop> {
        let library = self.library;
        let Some(code) = library.functions.get(function.index()) else {
            let message = format!("there is no function number {}", function.index());
            return Err(Diagnostic::new(&run::NOT_A_VALUE, Span::NONE, message).into());
        };
        if self.frame.depth >= MAX_CALLS {
            let message = format!("function calls nest deeper than {MAX_CALLS}");
            return Err(Diagnostic::new(&run::NOT_A_VALUE, Span::NONE, message).into());
        }
        let caller = self.frame.base;
        let base = self.frame.locals.len();
        self.frame.locals.extend(args.take(code.n_params));
        self.frame
            .locals
            .resize(base + code.n_locals, Value::Bool(false));
        self.frame.base = base;
        self.frame.depth += 1;
        let result = self.eval(&code.body);
        self.frame.depth -= 1;
        self.frame.base = caller;
        self.frame.locals.truncate(base);
        result
    }

    fn reduce(
        &mut self,
        reduction: &Reduction,
        depth: usize,
        total: &mut Option<Value>,
    ) -> Result<(), Stop> {
        let Some((dim, first, end)) = reduction.ranges.get(depth) else {
            let term = self.eval(&reduction.body)?;
            *total = Some(match total.take() {
                None => term,
                Some(sum) => self.combine(reduction.op, sum, term)?,
            });
            return Ok(());
        };
        let bound = |form: &Linear| {
            let value = form.eval(&self.frame.point);
            value.ok_or_else(|| Stop::from(overflow(reduction.span)))
        };
        for x in bound(first)?..bound(end)? {
            self.frame.count_term(reduction.span)?;
            if let Some(place) = self.frame.point.get_mut(*dim) {
                *place = x;
            }
            self.reduce(reduction, depth + 1, total)?;
        }
        Ok(())
    }

    fn scan_loop(&mut self, prefix: &Prefix) -> Result<Value, Stop> {
        let here = self.frame.point.get(prefix.dim).copied().unwrap_or(0);
        let first = prefix.domain.lo.get(prefix.dim).copied().unwrap_or(here);
        let mut total = None;
        for x in first..=here {
            self.frame.count_term(prefix.span)?;
            self.frame.point[prefix.dim] = x;
            if !self.test(&prefix.domain.test)? {
                continue;
            }
            let term = self.eval(&prefix.body)?;
            total = Some(match total {
                None => term,
                Some(sum) => self.combine(prefix.op, sum, term)?,
            });
        }
        total.ok_or_else(|| {
            let message = "a prefix sum is over no points at all";
            Diagnostic::new(&run::EMPTY_REDUCE, prefix.span, message).into()
        })
    }
}

#[cold]
fn too_many_terms(span: Span) -> Diagnostic {
    let message = "the sums of this run have more terms than an interpreter adds up";
    Diagnostic::new(&run::TOO_LARGE, span, message)
        .help("compile it with `--target cpu`, or use smaller sizes with --set")
}

fn ill_typed(op: &'static str, value: &Value) -> Stop {
    OpError::Types {
        op,
        operands: value.ty().to_string(),
    }
    .into()
}
