//! Compiles expressions: names to slots, forms to numbers.

use std::collections::BTreeSet;
use std::sync::Arc;

use systola_ir::codes::run;
use systola_ir::scalar::Type;
use systola_ir::system::{Combine, Expr, visit};
use systola_ir::{BinOp, Diagnostic, Form, Literal, LocalId, Scalar, Span};

use crate::code::{Code, Env, FnCode, Library, Node, Prefix, Reduction};
use crate::linear::{Linear, Test};
use crate::params::{overflow, too_large};
use crate::value::{Value, identity, literal};

/// A `scan` of an equation, computed incrementally: its value at a point is the value at the
/// previous point along `dim`, combined with the body's.
pub(crate) struct PendingScan {
    pub(crate) op: Combine,
    pub(crate) dim: usize,
    /// The body with the enclosing `let`s it uses, which are evaluated at every point of the scan.
    pub(crate) body: Expr,
    pub(crate) ty: Type,
    pub(crate) span: Span,
}

/// The points of a scan.
#[derive(Debug)]
pub(crate) struct ScanDomain {
    pub(crate) test: Test,
    pub(crate) lo: Vec<i64>,
}

/// Collects the scans of an equation.
pub(crate) struct ScanPlan<'a> {
    pub(crate) pending: &'a mut Vec<PendingScan>,
    /// The index of the first pending scan.
    pub(crate) first: usize,
    pub(crate) domain: Arc<ScanDomain>,
}

impl Library {
    /// Compiles the functions of a system.
    pub fn compile(env: Env<'_>) -> Result<Arc<Library>, Diagnostic> {
        let mut functions = Vec::new();
        for function in &env.system.functions {
            if reads_point(&function.body) {
                let message = format!("the function `{}` is not pure", function.name);
                return Err(Diagnostic::new(&run::NOT_A_VALUE, function.span, message)
                    .help("hand it the values of variables as arguments"));
            }
            let mut compiler = Compiler::new(env, function.span);
            for (n, (_, ty)) in function.params.iter().enumerate() {
                compiler.bind(LocalId::from(n), Some(ty.clone()), None);
            }
            let body = compiler.expr(&function.body)?;
            functions.push(FnCode {
                body,
                n_params: function.params.len(),
                n_locals: compiler.n_locals,
                may_fault: compiler.may_fault,
            });
        }
        Ok(Arc::new(Library { functions }))
    }
}

/// Does it read variables?
fn reads_vars(expr: &Expr) -> bool {
    let mut found = false;
    visit::walk(expr, &mut |e| {
        found |= matches!(e, Expr::Var { .. } | Expr::Scan { .. });
    });
    found
}

/// Does it read variables, ports or iterators?
fn reads_point(expr: &Expr) -> bool {
    let mut found = reads_vars(expr);
    visit::walk(expr, &mut |e| found |= matches!(e, Expr::Port(_)));
    found
}

impl Code {
    /// Compiles an expression; errors of operators are reported at `span`.
    pub fn compile(expr: &Expr, env: Env<'_>, span: Span) -> Result<Code, Diagnostic> {
        Code::compile_with(expr, env, &Library::compile(env)?, span)
    }

    /// The same, with functions that were compiled before.
    pub fn compile_with(
        expr: &Expr,
        env: Env<'_>,
        library: &Arc<Library>,
        span: Span,
    ) -> Result<Code, Diagnostic> {
        Compiler::new(env, span).finish(expr, library)
    }

    /// The same for an equation, which may have scans.
    pub(crate) fn compile_equation(
        expr: &Expr,
        env: Env<'_>,
        library: &Arc<Library>,
        span: Span,
        scans: ScanPlan<'_>,
    ) -> Result<Code, Diagnostic> {
        let mut compiler = Compiler::new(env, span);
        compiler.scans = Some(scans);
        compiler.finish(expr, library)
    }
}

struct Compiler<'a> {
    env: Env<'a>,
    span: Span,
    scope: Vec<Local<'a>>,
    n_locals: usize,
    scans: Option<ScanPlan<'a>>,
    reduce_depth: usize,
    /// Can an operator or a table lookup fail? Called functions are not counted.
    may_fault: bool,
}

struct Local<'a> {
    id: LocalId,
    slot: usize,
    ty: Option<Type>,
    /// The name and value of a `let`.
    definition: Option<(&'a str, &'a Expr)>,
}

impl<'a> Compiler<'a> {
    fn new(env: Env<'a>, span: Span) -> Self {
        Compiler {
            env,
            span,
            scope: Vec::new(),
            n_locals: 0,
            scans: None,
            reduce_depth: 0,
            may_fault: false,
        }
    }

    fn finish(mut self, expr: &'a Expr, library: &Arc<Library>) -> Result<Code, Diagnostic> {
        let root = self.expr(expr)?;
        Ok(Code {
            root,
            n_locals: self.n_locals,
            n_dims: self.env.system.dims.len() + self.env.system.bound.len(),
            library: library.clone(),
            span: self.span,
            reads_vars: reads_vars(expr),
            may_fault: self.may_fault || self.calls_what_may_fault(expr, library),
        })
    }

    /// Follows each function once, however often it is called.
    fn calls_what_may_fault(&self, expr: &Expr, library: &Library) -> bool {
        let mut open = vec![expr];
        let mut seen = BTreeSet::new();
        while let Some(expr) = open.pop() {
            visit::walk(expr, &mut |e| {
                if let Expr::Call(f, _)
                | Expr::Reduce {
                    op: Combine::Fn(f), ..
                }
                | Expr::Scan {
                    op: Combine::Fn(f), ..
                } = e
                    && seen.insert(f.index())
                {
                    open.extend(self.env.system.functions.get(f.index()).map(|f| &f.body));
                }
            });
        }
        let mut called = seen.iter().filter_map(|f| library.functions.get(*f));
        called.any(|code| code.may_fault)
    }

    /// Can the operator fail for some operands?
    fn is_partial(&self, op: BinOp, a: &Expr, b: &Expr) -> bool {
        let is_float = |e: &Expr| match self.type_of(e) {
            Some(Type::Scalar(ty)) => ty.is_float(),
            Some(Type::Tuple(_)) | None => false,
        };
        let is_safe = match (op, b) {
            (BinOp::Div | BinOp::Rem, Expr::Lit(_, Literal::Int(n))) => *n != 0,
            (BinOp::Pow, Expr::Lit(_, Literal::Int(n))) => *n >= 0,
            _ => false,
        };
        let divides = matches!(op, BinOp::Div | BinOp::Rem | BinOp::Pow);
        divides && !is_safe && !is_float(a) && !is_float(b)
    }

    fn bind(
        &mut self,
        id: LocalId,
        ty: Option<Type>,
        definition: Option<(&'a str, &'a Expr)>,
    ) -> usize {
        let slot = self.n_locals;
        self.n_locals += 1;
        self.scope.push(Local {
            id,
            slot,
            ty,
            definition,
        });
        slot
    }

    fn missing(&self, what: &str) -> Diagnostic {
        let message = format!("{what} does not exist in `{}`", self.env.system.name);
        Diagnostic::new(&run::NOT_A_VALUE, self.span, message)
    }

    fn forms(&self, forms: &[Form], span: Span) -> Result<Box<[Linear]>, Diagnostic> {
        forms
            .iter()
            .map(|f| Linear::compile(f, self.env.params).map_err(|_| overflow(span)))
            .collect()
    }

    fn boxed(&mut self, expr: &'a Expr) -> Result<Box<Node>, Diagnostic> {
        self.expr(expr).map(Box::new)
    }

    fn all(&mut self, list: &'a [Expr]) -> Result<Box<[Node]>, Diagnostic> {
        list.iter().map(|e| self.expr(e)).collect()
    }

    fn expr(&mut self, expr: &'a Expr) -> Result<Node, Diagnostic> {
        let system = self.env.system;
        Ok(match expr {
            Expr::Lit(ty, value) => Node::Value(literal(*ty, *value)),
            Expr::Const(c) => match system.consts.get(c.index()) {
                Some(c) => Node::Value(literal(c.ty, c.value)),
                None => return Err(self.missing("a constant")),
            },
            Expr::Iter(d) => Node::Dim(d.index()),
            Expr::Param(p) => match self.env.params.get(p.index()) {
                Some(value) => match i64::try_from(*value) {
                    Ok(value) => Node::Value(Value::I64(value)),
                    Err(_) => return Err(too_large(self.span, "a parameter leaves 64 bits")),
                },
                None => return Err(self.missing("a parameter")),
            },
            Expr::Local(id) => match self.scope.iter().rev().find(|l| l.id == *id) {
                Some(local) => Node::Local(local.slot),
                None => return Err(self.missing("a local value")),
            },
            Expr::Var { var, index, span } => {
                if var.index() >= system.vars.len() || index.len() != system.arity(*var) {
                    return Err(self.missing("a variable with such an index"));
                }
                Node::Var {
                    var: *var,
                    index: self.forms(index, *span)?,
                    span: *span,
                }
            }
            Expr::Input { input, index, span } => {
                self.check_input(*input, index.len())?;
                Node::Input {
                    input: *input,
                    index: self.forms(index, *span)?,
                    span: *span,
                }
            }
            Expr::Lookup { input, index, span } => {
                self.check_input(*input, index.len())?;
                self.may_fault |= system.inputs[input.index()].outside.is_none();
                Node::Lookup {
                    input: *input,
                    index: self.all(index)?,
                    span: *span,
                }
            }
            Expr::Port(port) => Node::Port(*port),
            Expr::Unary(op, a) => Node::Unary(*op, self.boxed(a)?),
            Expr::Binary(op, a, b) => {
                self.may_fault |= self.is_partial(*op, a, b);
                Node::Binary(*op, Box::new((self.expr(a)?, self.expr(b)?)))
            }
            Expr::Cast(ty, a) => Node::Cast(*ty, self.boxed(a)?),
            Expr::Guard {
                cond,
                then,
                otherwise,
            } => Node::Guard {
                test: Test::compile(cond, self.env.params).map_err(|_| overflow(self.span))?,
                then: self.boxed(then)?,
                otherwise: match otherwise {
                    Some(otherwise) => Some(self.boxed(otherwise)?),
                    None => None,
                },
            },
            Expr::Select {
                cond,
                then,
                otherwise,
            } => Node::Select(Box::new((
                self.expr(cond)?,
                self.expr(then)?,
                self.expr(otherwise)?,
            ))),
            Expr::Tuple(parts) => Node::Tuple(self.all(parts)?),
            Expr::Field(tuple, n) => Node::Field(self.boxed(tuple)?, *n),
            Expr::Call(function, args) => {
                let declared = system.functions.get(function.index());
                if declared.is_none_or(|f| f.params.len() != args.len()) {
                    return Err(self.missing("a function with so many parameters"));
                }
                Node::Call(*function, self.all(args)?)
            }
            Expr::Let {
                local,
                name,
                value,
                body,
            } => {
                let ty = self.type_of(value);
                let compiled = self.expr(value)?;
                let slot = self.bind(*local, ty, Some((name, value)));
                let body = self.expr(body)?;
                self.scope.pop();
                Node::Let {
                    slot,
                    parts: Box::new((compiled, body)),
                }
            }
            Expr::Reduce {
                op,
                dims,
                body,
                span,
            } => {
                let mut ranges = Vec::new();
                for d in dims {
                    let bound = d.index().checked_sub(system.dims.len());
                    let Some(dim) = bound.and_then(|n| system.bound.get(n)) else {
                        return Err(self.missing("an iterator of a `reduce`"));
                    };
                    let Some((lo, hi)) = &dim.range else {
                        let message = format!("the iterator `{}` has no range", dim.name);
                        return Err(Diagnostic::new(&run::UNBOUNDED, *span, message));
                    };
                    let form = |f| Linear::compile(f, self.env.params).map_err(|_| overflow(*span));
                    ranges.push((d.index(), form(lo)?, form(hi)?));
                }
                let identity = match (op, self.type_of(body)) {
                    (Combine::Op(op), Some(Type::Scalar(ty))) => identity(*op, ty),
                    (Combine::Op(_) | Combine::Fn(_), _) => None,
                };
                self.reduce_depth += 1;
                let compiled = self.expr(body);
                self.reduce_depth -= 1;
                Node::Reduce(Box::new(Reduction {
                    op: *op,
                    ranges: ranges.into(),
                    body: compiled?,
                    identity,
                    span: *span,
                    reads_vars: reads_vars(body),
                }))
            }
            Expr::Scan {
                op,
                dim,
                body,
                span,
            } => self.scan(*op, dim.index(), body, *span)?,
        })
    }

    fn check_input(&self, input: systola_ir::InputId, rank: usize) -> Result<(), Diagnostic> {
        match self.env.system.inputs.get(input.index()) {
            Some(input) if input.axes.len() == rank => Ok(()),
            Some(_) | None => Err(self.missing("an input with so many axes")),
        }
    }

    fn scan(
        &mut self,
        op: Combine,
        dim: usize,
        body: &'a Expr,
        span: Span,
    ) -> Result<Node, Diagnostic> {
        let ty = self.type_of(body);
        if self.reduce_depth > 0 {
            return self.scan_in_place(op, dim, body, span);
        }
        let wrapped = self.with_lets(body);
        match (&mut self.scans, ty) {
            (Some(plan), Some(ty)) => {
                plan.pending.push(PendingScan {
                    op,
                    dim,
                    body: wrapped,
                    ty,
                    span,
                });
                Ok(Node::Scan(plan.first + plan.pending.len() - 1))
            }
            (Some(_), None) | (None, _) => Err(self.missing("a place for a `scan` here")),
        }
    }

    /// Under a `reduce`, whose iterators the body may use: computed again at each use.
    fn scan_in_place(
        &mut self,
        op: Combine,
        dim: usize,
        body: &'a Expr,
        span: Span,
    ) -> Result<Node, Diagnostic> {
        let Some(domain) = self.scans.as_ref().map(|plan| plan.domain.clone()) else {
            return Err(self.missing("a place for a `scan` here"));
        };
        // The enclosing `let`s are evaluated again at every point of the scan.
        let lets: Vec<_> = self.used_lets(body);
        let mut slots = Vec::new();
        for (id, ty, definition) in &lets {
            let value = self.expr(definition.1)?;
            slots.push((self.bind(*id, ty.clone(), Some(*definition)), value));
        }
        let compiled = self.expr(body);
        self.scope.truncate(self.scope.len() - lets.len());
        let body = slots
            .into_iter()
            .rev()
            .fold(compiled?, |body, (slot, value)| Node::Let {
                slot,
                parts: Box::new((value, body)),
            });
        Ok(Node::ScanLoop(Box::new(Prefix {
            op,
            dim,
            domain,
            body,
            span,
        })))
    }

    /// The `let`s in scope that an expression depends on, outermost first.
    fn used_lets(&self, body: &Expr) -> Vec<(LocalId, Option<Type>, (&'a str, &'a Expr))> {
        let mut used = locals_of(body);
        let mut lets = Vec::new();
        for local in self.scope.iter().rev() {
            if let (Some(definition), true) = (local.definition, used.contains(&local.id)) {
                used.extend(locals_of(definition.1));
                lets.push((local.id, local.ty.clone(), definition));
            }
        }
        lets.reverse();
        lets
    }

    fn with_lets(&self, body: &Expr) -> Expr {
        let lets = self.used_lets(body);
        lets.into_iter()
            .rev()
            .fold(body.clone(), |body, (local, _, (name, value))| Expr::Let {
                local,
                name: name.to_string(),
                value: Box::new(value.clone()),
                body: Box::new(body),
            })
    }

    /// `None` where it depends on a port, whose type only the array knows.
    fn type_of(&self, expr: &Expr) -> Option<Type> {
        self.type_under(expr, &mut Vec::new())
    }

    fn type_under(&self, expr: &Expr, inner: &mut Vec<(LocalId, Option<Type>)>) -> Option<Type> {
        let system = self.env.system;
        match expr {
            Expr::Lit(ty, _) | Expr::Cast(ty, _) => Some((*ty).into()),
            Expr::Const(c) => Some(system.consts.get(c.index())?.ty.into()),
            Expr::Iter(_) | Expr::Param(_) => Some(Scalar::I64.into()),
            Expr::Local(id) => match inner.iter().rev().find(|(l, _)| l == id) {
                Some((_, ty)) => ty.clone(),
                None => self.scope.iter().rev().find(|l| l.id == *id)?.ty.clone(),
            },
            Expr::Var { var, .. } => Some(system.vars.get(var.index())?.ty.clone()),
            Expr::Input { input, .. } | Expr::Lookup { input, .. } => {
                Some(system.inputs.get(input.index())?.ty.into())
            }
            Expr::Binary(op, ..) if op.is_comparison() => Some(Scalar::Bool.into()),
            Expr::Unary(_, a) | Expr::Binary(_, a, _) => self.type_under(a, inner),
            Expr::Guard { then, .. } | Expr::Select { then, .. } => self.type_under(then, inner),
            Expr::Tuple(parts) => {
                let parts = parts.iter().map(|p| self.type_under(p, inner));
                Some(Type::Tuple(parts.collect::<Option<_>>()?))
            }
            Expr::Field(tuple, n) => match self.type_under(tuple, inner)? {
                Type::Tuple(parts) => parts.get(*n).cloned(),
                Type::Scalar(_) => None,
            },
            Expr::Call(f, _) => Some(system.functions.get(f.index())?.result.clone()),
            Expr::Let {
                local, value, body, ..
            } => {
                let ty = self.type_under(value, inner);
                inner.push((*local, ty));
                let result = self.type_under(body, inner);
                inner.pop();
                result
            }
            Expr::Reduce { body, .. } | Expr::Scan { body, .. } => self.type_under(body, inner),
            Expr::Port(_) => None,
        }
    }
}

fn locals_of(expr: &Expr) -> Vec<LocalId> {
    let mut locals = Vec::new();
    visit::walk(expr, &mut |e| {
        if let Expr::Local(id) = e {
            locals.push(*id);
        }
    });
    locals
}
