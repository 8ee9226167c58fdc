//! Evaluates the cells of a slot.
//!
//! The point of the slot is a list of forms over the variables of the kernel, so a position is a
//! value at run time only if the program uses it as one. Tuples are split into scalars: only
//! scalars reach the kernel. A guard without `else` emits its branch alone, since nothing reads the
//! value where the condition does not hold.

use std::collections::HashMap;

use systola_ir::kernel::{Access, Memory, Op, Stmt};
use systola_ir::system::visit::walk;
use systola_ir::system::{Combine, Const, Expr};
use systola_ir::{
    BinOp, BufferId, Cond, DimId, Form, InputId, Literal, LocalId, Scalar, Span, Type, ValueId,
    VarId,
};

use crate::emit::Emitter;
use crate::failure::Failure;
use crate::nest::interior::inside;
use crate::storage::queues::PeKey;

/// Where a cell is evaluated.
#[derive(Clone)]
pub struct Here<'s> {
    /// The coordinates of the slot.
    pub slot: &'s [Form],
    /// The PE, if it is known at compile time.
    pub pe: &'s PeKey,
    /// The coordinates of the point.
    pub point: Vec<Form>,
    /// The condition under which the slot has this point.
    pub valid: Cond,
}

impl Here<'_> {
    /// Rewrites a form over the point as one over the variables of the kernel.
    pub fn at(&self, form: &Form) -> Result<Form, Failure> {
        Ok(form.substitute(&|d| self.point.get(d.index()).cloned())?)
    }

    /// The same with a variable fixed to a value; `fixed` stores the new slot.
    pub fn with<'n>(
        &self,
        v: DimId,
        value: i128,
        fixed: &'n mut Vec<Form>,
    ) -> Result<Here<'n>, Failure>
    where
        Self: 'n,
    {
        let set = |f: &Form| f.substitute(&|d| (d == v).then(|| Form::from(value)));
        *fixed = self.slot.iter().map(set).collect::<Result<_, _>>()?;
        Ok(Here {
            slot: fixed,
            pe: self.pe,
            point: self.point.iter().map(set).collect::<Result<_, _>>()?,
            valid: self.valid.map(&set)?,
        })
    }

    pub fn cond(&self, cond: &Cond) -> Result<Cond, Failure> {
        Ok(cond.map(&|f| f.substitute(&|d| self.point.get(d.index()).cloned()))?)
    }
}

/// A value of any type, as the scalars it consists of.
#[derive(Clone, Debug)]
pub enum Bundle {
    Scalar(ValueId),
    Tuple(Vec<Bundle>),
}

impl Bundle {
    /// The scalars in order.
    pub fn flat(&self) -> Vec<ValueId> {
        match self {
            Bundle::Scalar(value) => vec![*value],
            Bundle::Tuple(parts) => parts.iter().flat_map(Bundle::flat).collect(),
        }
    }

    /// Builds a value of a type from its scalars, the inverse of `flat`.
    pub fn of(ty: &Type, scalars: &mut impl Iterator<Item = ValueId>) -> Option<Bundle> {
        Some(match ty {
            Type::Scalar(_) => Bundle::Scalar(scalars.next()?),
            Type::Tuple(parts) => Bundle::Tuple(
                parts
                    .iter()
                    .map(|part| Bundle::of(part, scalars))
                    .collect::<Option<_>>()?,
            ),
        })
    }

    /// A value of the same type with other scalars.
    pub fn of_scalars(&self, scalars: &mut impl Iterator<Item = ValueId>) -> Bundle {
        match self {
            Bundle::Scalar(old) => Bundle::Scalar(scalars.next().unwrap_or(*old)),
            Bundle::Tuple(parts) => {
                Bundle::Tuple(parts.iter().map(|part| part.of_scalars(scalars)).collect())
            }
        }
    }

    pub(super) fn scalar(&self) -> ValueId {
        match self {
            Bundle::Scalar(value) => *value,
            Bundle::Tuple(_) => unreachable!("operators take scalars"),
        }
    }

    /// Combines the scalars of two values of one type pairwise.
    pub fn zip(&self, other: &Bundle, f: &mut impl FnMut(ValueId, ValueId) -> ValueId) -> Bundle {
        match (self, other) {
            (Bundle::Scalar(a), Bundle::Scalar(b)) => Bundle::Scalar(f(*a, *b)),
            (Bundle::Tuple(a), Bundle::Tuple(b)) => {
                Bundle::Tuple(a.iter().zip(b).map(|(a, b)| a.zip(b, f)).collect())
            }
            (Bundle::Scalar(_), Bundle::Tuple(_)) | (Bundle::Tuple(_), Bundle::Scalar(_)) => {
                unreachable!("both branches have one type")
            }
        }
    }
}

/// A sum over iterators of its own.
pub struct Sum<'e> {
    pub op: Combine,
    pub dims: &'e [DimId],
    pub body: &'e Expr,
    pub span: Span,
}

/// Values of one slot.
#[derive(Default)]
pub struct Evaluated {
    pub cells: HashMap<VarId, Bundle>,
    locals: HashMap<LocalId, Bundle>,
}

impl Emitter<'_> {
    /// The value of an expression.
    pub(super) fn expr(
        &mut self,
        expr: &Expr,
        name: &str,
        here: &Here<'_>,
        done: &mut Evaluated,
    ) -> Result<Bundle, Failure> {
        Ok(match expr {
            Expr::Lit(ty, literal) => Bundle::Scalar(self.b.literal(*ty, *literal)),
            Expr::Const(id) => {
                let Const { ty, value, .. } = &self.array.consts[id.index()];
                Bundle::Scalar(self.b.literal(*ty, *value))
            }
            Expr::Iter(d) => {
                let form = here.at(&Form::from(*d))?;
                Bundle::Scalar(self.b.value(name, Scalar::I64, Op::Index(form)))
            }
            Expr::Param(p) => {
                let form = Form::from(*p);
                Bundle::Scalar(self.b.value(name, Scalar::I64, Op::Index(form)))
            }
            Expr::Local(local) => done.locals[local].clone(),
            Expr::Input { input, index, .. } => {
                let index = self.address(index, here)?;
                Bundle::Scalar(self.input(*input, index))
            }
            Expr::Lookup { input, index, span } => {
                Bundle::Scalar(self.lookup(*input, index, *span, here, done)?)
            }
            Expr::Port(port) => self.port(*port, name, here, done)?,
            Expr::Unary(op, a) => {
                let a = self.scalar(a, name, here, done)?;
                let ty = self.b.ty(a);
                Bundle::Scalar(self.b.value(name, ty, Op::Unary(*op, a)))
            }
            Expr::Binary(op, a, b) => {
                let a = self.scalar(a, name, here, done)?;
                let divisor = self.scalar(b, name, here, done)?;
                self.test_operator(*op, b, divisor, here)?;
                Bundle::Scalar(self.binary(*op, name, a, divisor))
            }
            Expr::Cast(ty, a) if is_affine(a) && narrows(*ty) => {
                Bundle::Scalar(self.narrowed(*ty, a, name, here)?)
            }
            Expr::Cast(ty, a) => {
                let a = self.scalar(a, name, here, done)?;
                if self.b.ty(a) == *ty {
                    Bundle::Scalar(a)
                } else {
                    Bundle::Scalar(self.b.value(name, *ty, Op::Cast(a)))
                }
            }
            Expr::Guard {
                cond,
                then,
                otherwise,
            } => self.guard(cond, then, otherwise.as_deref(), name, here, done)?,
            Expr::Select {
                cond,
                then,
                otherwise,
            } => {
                let cond = self.scalar(cond, name, here, done)?;
                let then = self.expr(then, name, here, done)?;
                let otherwise = self.expr(otherwise, name, here, done)?;
                then.zip(&otherwise, &mut |then, otherwise| {
                    let ty = self.b.ty(then);
                    let op = Op::Select {
                        cond,
                        then,
                        otherwise,
                    };
                    self.b.value(name, ty, op)
                })
            }
            Expr::Tuple(parts) => Bundle::Tuple(
                parts
                    .iter()
                    .map(|part| self.expr(part, name, here, done))
                    .collect::<Result<_, _>>()?,
            ),
            Expr::Field(tuple, n) => match self.expr(tuple, name, here, done)? {
                Bundle::Tuple(parts) => parts[*n].clone(),
                Bundle::Scalar(_) => unreachable!("a field of a scalar"),
            },
            Expr::Call(f, args) => {
                let args = args
                    .iter()
                    .map(|a| self.expr(a, name, here, done))
                    .collect::<Result<_, _>>()?;
                self.call(*f, args, here)?
            }
            Expr::Let {
                local, value, body, ..
            } => {
                let value = self.expr(value, name, here, done)?;
                done.locals.insert(*local, value);
                self.expr(body, name, here, done)?
            }
            // The value of an output reads the same point.
            Expr::Var { var, index, .. } => match self.in_output {
                true => done.cells[var].clone(),
                false => self.kept_value(*var, index, name, here)?,
            },
            Expr::Reduce {
                op,
                dims,
                body,
                span,
            } => {
                let sum = Sum {
                    op: *op,
                    dims,
                    body,
                    span: *span,
                };
                self.sum(&sum, name, here, done)?
            }
            Expr::Scan { .. } => unreachable!("prefixes were serialised"),
        })
    }

    fn scalar(
        &mut self,
        expr: &Expr,
        name: &str,
        here: &Here<'_>,
        done: &mut Evaluated,
    ) -> Result<ValueId, Failure> {
        Ok(self.expr(expr, name, here, done)?.scalar())
    }

    /// An affine expression in 32 bits. Sums and products wrap, so cutting the operands gives the
    /// same bits as cutting the result, and a vector has twice as many of them.
    fn narrowed(
        &mut self,
        ty: Scalar,
        expr: &Expr,
        name: &str,
        here: &Here<'_>,
    ) -> Result<ValueId, Failure> {
        let form = match expr {
            Expr::Binary(op, a, b) => {
                let a = self.narrowed(ty, a, name, here)?;
                let b = self.narrowed(ty, b, name, here)?;
                return Ok(self.binary(*op, name, a, b));
            }
            Expr::Lit(_, Literal::Int(n)) => {
                let n = match ty {
                    Scalar::I32 => i128::from(*n as i32),
                    _ => i128::from(*n as u32),
                };
                return Ok(self.b.literal(ty, Literal::Int(n)));
            }
            Expr::Iter(d) => here.at(&Form::from(*d))?,
            Expr::Param(p) => Form::from(*p),
            other => unreachable!("{other:?} is not affine"),
        };
        let index = self.b.value(name, Scalar::I64, Op::Index(form));
        Ok(self.b.value(name, ty, Op::Cast(index)))
    }

    pub(super) fn binary(&mut self, op: BinOp, name: &str, a: ValueId, b: ValueId) -> ValueId {
        let ty = if op.is_comparison() {
            Scalar::Bool
        } else {
            self.b.ty(a)
        };
        self.b.value(name, ty, Op::Binary(op, a, b))
    }

    /// Inlines a function: its body with the arguments as locals.
    pub(super) fn call(
        &mut self,
        f: systola_ir::FnId,
        args: Vec<Bundle>,
        here: &Here<'_>,
    ) -> Result<Bundle, Failure> {
        let array = self.array;
        let function = &array.functions[f.index()];
        let mut done = Evaluated {
            locals: args
                .into_iter()
                .enumerate()
                .map(|(n, value)| (LocalId::from(n), value))
                .collect(),
            ..Evaluated::default()
        };
        self.expr(&function.body, &function.name, here, &mut done)
    }

    fn guard(
        &mut self,
        cond: &Cond,
        then: &Expr,
        otherwise: Option<&Expr>,
        name: &str,
        here: &Here<'_>,
        done: &mut Evaluated,
    ) -> Result<Bundle, Failure> {
        let Some(otherwise) = otherwise else {
            self.only_where(here.cond(cond)?);
            return self.expr(then, name, here, done);
        };
        let elsewhere = cond.clone().negate();
        match self.facts.simplify(&here.cond(cond)?) {
            Cond::Const(true) => self.at_points(cond, |e| e.expr(then, name, here, done)),
            Cond::Const(false) => {
                self.at_points(&elsewhere, |e| e.expr(otherwise, name, here, done))
            }
            now => {
                let (then, after_then) = self.at_points(cond, |e| {
                    e.on_path(&now, |e| {
                        e.selected_under(&now, &mut |e| e.expr(then, name, here, done))
                    })
                })?;
                let other = now.clone().negate();
                let (otherwise, after_otherwise) = self.at_points(&elsewhere, |e| {
                    e.on_path(&other, |e| {
                        e.selected_under(&other, &mut |e| e.expr(otherwise, name, here, done))
                    })
                })?;
                self.after_branches(&now, after_then, after_otherwise);
                Ok(then.zip(&otherwise, &mut |then, otherwise| {
                    self.b.choose(name, now.clone(), then, otherwise)
                }))
            }
        }
    }

    /// Evaluates a value that is selected under a condition. Threads wait for a load even where
    /// they do not select its value, so a load that is rarely selected gets the condition as its
    /// predicate.
    fn selected_under(
        &mut self,
        cond: &Cond,
        f: &mut impl FnMut(&mut Self) -> Result<Bundle, Failure>,
    ) -> Result<Bundle, Failure> {
        if self.machine.threads.is_none() || self.facts.is_common(cond) {
            return f(self);
        }
        let around = self.rare_path.clone();
        self.rare_path = around.clone().and(cond.clone());
        let result = f(self);
        self.rare_path = around;
        result
    }

    /// An index over the point, rewritten over the variables of the kernel.
    pub(super) fn address(&self, index: &[Form], here: &Here<'_>) -> Result<Vec<Form>, Failure> {
        let at = |f: &Form| Ok(self.facts.without_digits(&here.at(f)?));
        index.iter().map(at).collect()
    }

    /// An element of an input; outside its axes, the value that the input declares there.
    pub(super) fn input(&mut self, input: InputId, index: Vec<Form>) -> ValueId {
        let array = self.array;
        let declared = &array.inputs[input.index()];
        if let Some(from) = self.staged(input, &index) {
            return self.b.load(&declared.name, declared.ty, from, None);
        }
        let inside = inside(&declared.axes, &index);
        let when = self.facts.simplify(&self.rare_path.clone().and(inside));
        if when == Cond::Const(false) {
            return match &declared.outside {
                Some(literal) => self.b.literal(declared.ty, *literal),
                None => self.b.hole(declared.ty),
            };
        }
        let from = Access {
            memory: Memory::Global(BufferId::from(input.index())),
            index,
            when,
        };
        self.b
            .load(&declared.name, declared.ty, from, declared.outside)
    }

    /// A table lookup at computed indices, numbered from 0; outside its axes, the value that the
    /// table declares there.
    fn lookup(
        &mut self,
        input: InputId,
        index: &[Expr],
        span: Span,
        here: &Here<'_>,
        done: &mut Evaluated,
    ) -> Result<ValueId, Failure> {
        let array = self.array;
        let declared = &array.inputs[input.index()];
        let mut at = Vec::new();
        for (axis, expr) in declared.axes.iter().zip(index) {
            let mut value = self.scalar(expr, &declared.name, here, done)?;
            if axis.lo != Form::zero() {
                if self.b.ty(value) != Scalar::I64 {
                    value = self.b.value("i", Scalar::I64, Op::Cast(value));
                }
                let lo = self.b.value("lo", Scalar::I64, Op::Index(axis.lo.clone()));
                value = self.binary(BinOp::Sub, "i", value, lo);
            }
            at.push(value);
        }
        let outside = if declared.outside.is_none() {
            let index: Vec<(&Expr, ValueId)> = index.iter().zip(at.iter().copied()).collect();
            self.test_lookup(input, &index, span, here)?;
            None
        } else {
            self.outside(declared.axes.iter().zip(at.iter().copied()))
        };
        let op = Op::Lookup {
            memory: Memory::Global(BufferId::from(input.index())),
            index: at,
        };
        let found = self.b.value(&declared.name, declared.ty, op);
        Ok(match (outside, &declared.outside) {
            (Some(cond), Some(literal)) => {
                let then = self.b.literal(declared.ty, *literal);
                let op = Op::Select {
                    cond,
                    then,
                    otherwise: found,
                };
                self.b.value(&declared.name, declared.ty, op)
            }
            (None, _) | (_, None) => found,
        })
    }

    /// Stores the outputs of this point.
    pub(super) fn drain(
        &mut self,
        valid: &Cond,
        here: &Here<'_>,
        done: &mut Evaluated,
    ) -> Result<(), Failure> {
        let array = self.array;
        let owned = here.cond(&array.owned())?;
        let valid = self.facts.simplify(&valid.clone().and(owned));
        if valid == Cond::Const(false) {
            return Ok(());
        }
        for (n, output) in array
            .outputs
            .iter()
            .enumerate()
            .filter(|(n, _)| !array.is_storage(*n))
        {
            for write in &output.writes {
                let when = here.cond(&write.when)?;
                let when = self.facts.simplify(&valid.clone().and(when));
                if when == Cond::Const(false) {
                    continue;
                }
                let owner = || (format!("the output `{}`", output.name), write.span);
                let live = |_: &Self| {
                    let mut live = when.clone();
                    for cell in cells_read(&write.value) {
                        live = live.and(here.cond(&array.cells[cell.index()].domain)?);
                    }
                    Ok((live, None))
                };
                self.in_output = true;
                let value = self.within_equation(&write.value, &owner, live, |e| {
                    e.scalar(&write.value, &output.name, here, done)
                });
                self.in_output = false;
                let value = value?;
                let index = self.address(&write.index, here)?;
                self.b.push(Stmt::Store {
                    to: Access {
                        memory: Memory::Global(BufferId::from(array.inputs.len() + n)),
                        index,
                        when,
                    },
                    value,
                });
            }
        }
        Ok(())
    }
}

/// Is it a sum or product of iterators, sizes and numbers?
fn is_affine(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(Scalar::I64, Literal::Int(_)) | Expr::Iter(_) | Expr::Param(_) => true,
        Expr::Binary(BinOp::Add | BinOp::Sub | BinOp::Mul, a, b) => is_affine(a) && is_affine(b),
        _ => false,
    }
}

fn narrows(ty: Scalar) -> bool {
    matches!(ty, Scalar::I32 | Scalar::U32)
}

/// The cells that the value of an output reads.
fn cells_read(expr: &Expr) -> Vec<VarId> {
    let mut cells = Vec::new();
    walk(expr, &mut |e| {
        if let Expr::Var { var, .. } = e {
            cells.push(*var);
        }
    });
    cells
}
