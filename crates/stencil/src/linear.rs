//! Weighted sums: recognises an equation as weights of neighbours.

use std::collections::BTreeMap;

use systola_ir::system::{Expr, System, visit};
use systola_ir::{BinOp, DimId, Form, InputId, Literal, LocalId, Scalar, UnOp};

use crate::reach::distances;

/// A field, and the offset at which it is read.
pub type Tap = (InputId, Vec<i128>);

/// The maximum number of expressions that regrouping may copy. The value of a `let` or a parameter
/// is copied to its uses, which can double with each name.
const MAX_COPIES: usize = 1 << 16;

/// The weight of each neighbour, and what is added to their sum.
#[derive(Clone, Debug, Default)]
pub struct Linear {
    pub taps: BTreeMap<Tap, Expr>,
    pub rest: Option<Expr>,
}

/// The equation as a weighted sum of the fields that `is_updated` names; `None` where it is not
/// one, or where its weights vary between cells. Sums of floats are regrouped: a stencil does not
/// fix their order.
pub fn linear(
    kernel: &System,
    is_updated: &dyn Fn(InputId) -> bool,
    ty: Scalar,
    body: &Expr,
) -> Option<Linear> {
    // Weights may become negative.
    if !ty.is_float() && !ty.is_signed_int() {
        return None;
    }
    let mut reader = Reader {
        kernel,
        is_updated,
        ty,
        locals: Vec::new(),
        n_left: MAX_COPIES,
    };
    reader.read(body)
}

struct Reader<'a> {
    kernel: &'a System,
    is_updated: &'a dyn Fn(InputId) -> bool,
    ty: Scalar,
    locals: Vec<(LocalId, Linear)>,
    /// The number of copies that may still be made.
    n_left: usize,
}

impl Reader<'_> {
    fn read(&mut self, expr: &Expr) -> Option<Linear> {
        self.copies(1)?;
        match expr {
            Expr::Input { input, index, .. } if (self.is_updated)(*input) => {
                let offset = distances(index)
                    .iter()
                    .map(Form::as_constant)
                    .collect::<Option<_>>()?;
                Some(Linear {
                    taps: BTreeMap::from([((*input, offset), Expr::int(self.ty, 1))]),
                    rest: None,
                })
            }
            Expr::Local(local) => {
                let known = self.locals.iter().rev().find(|(l, _)| l == local);
                let value = known.map(|(_, value)| value.clone())?;
                let parts = value.taps.values().chain(&value.rest);
                self.copies(parts.map(n_nodes).sum())?;
                Some(value)
            }
            Expr::Unary(UnOp::Neg, a) => {
                let a = self.read(a)?;
                self.scaled(a, &Expr::int(self.ty, -1))
            }
            Expr::Binary(BinOp::Add, a, b) => {
                let (a, b) = (self.read(a)?, self.read(b)?);
                Some(self.sum(a, b))
            }
            Expr::Binary(BinOp::Sub, a, b) => {
                let (a, b) = (self.read(a)?, self.read(b)?);
                let b = self.scaled(b, &Expr::int(self.ty, -1))?;
                Some(self.sum(a, b))
            }
            Expr::Binary(BinOp::Mul, a, b) => {
                let (a, b) = (self.read(a)?, self.read(b)?);
                match (a.taps.is_empty(), b.taps.is_empty()) {
                    (true, true) => Some(Linear {
                        taps: BTreeMap::new(),
                        rest: Some(self.product(&a.rest?, &b.rest?)),
                    }),
                    (true, false) => self.scaled(b, &a.rest?),
                    (false, true) => self.scaled(a, &b.rest?),
                    (false, false) => None,
                }
            }
            Expr::Binary(BinOp::Div, a, b) => {
                let (a, b) = (self.read(a)?, self.read(b)?);
                if a.taps.is_empty() && b.taps.is_empty() {
                    return Some(Linear {
                        taps: BTreeMap::new(),
                        rest: Some(Expr::binary(BinOp::Div, a.rest?, b.rest?)),
                    });
                }
                if !b.taps.is_empty() || !self.ty.is_float() {
                    return None;
                }
                let inverse = match b.rest? {
                    Expr::Lit(ty, Literal::Float(d)) if d != 0.0 => {
                        Expr::Lit(ty, Literal::Float(1.0 / d))
                    }
                    other => Expr::binary(BinOp::Div, Expr::int(self.ty, 1), other),
                };
                self.scaled(a, &inverse)
            }
            Expr::Let {
                local, value, body, ..
            } => {
                let value = self.read(value)?;
                self.locals.push((*local, value));
                let body = self.read(body);
                self.locals.pop();
                body
            }
            Expr::Call(function, args) => {
                let args: Option<Vec<_>> = args.iter().map(|a| self.read(a)).collect();
                let args = args?.into_iter().enumerate();
                let args = args.map(|(n, arg)| (LocalId::from(n), arg)).collect();
                let outside = std::mem::replace(&mut self.locals, args);
                let body = self.read(&self.kernel.functions.get(function.index())?.body);
                self.locals = outside;
                body
            }
            other => self.without_taps(other),
        }
    }

    fn copies(&mut self, n: usize) -> Option<()> {
        self.n_left = self.n_left.checked_sub(n)?;
        Some(())
    }

    /// An expression that reads no updated field and no local value is unchanged.
    fn without_taps(&self, expr: &Expr) -> Option<Linear> {
        let mut plain = true;
        visit::walk(expr, &mut |e| match e {
            Expr::Input { input, .. } => plain &= !(self.is_updated)(*input),
            Expr::Var { .. } | Expr::Local(_) | Expr::Let { .. } => plain = false,
            _ => {}
        });
        plain.then(|| Linear {
            taps: BTreeMap::new(),
            rest: Some(expr.clone()),
        })
    }

    fn sum(&self, mut a: Linear, b: Linear) -> Linear {
        for (tap, weight) in b.taps {
            let sum = match a.taps.remove(&tap) {
                Some(other) => add(self.ty, &other, &weight),
                None => weight,
            };
            a.taps.insert(tap, sum);
        }
        a.rest = match (a.rest, b.rest) {
            (Some(a), Some(b)) => Some(add(self.ty, &a, &b)),
            (a, b) => a.or(b),
        };
        a
    }

    fn scaled(&mut self, mut a: Linear, factor: &Expr) -> Option<Linear> {
        if !a.taps.is_empty() && depends_on_position(factor) {
            return None;
        }
        self.copies(n_nodes(factor).saturating_mul(a.taps.len() + 1))?;
        for weight in a.taps.values_mut() {
            *weight = self.product(factor, weight);
        }
        a.rest = a.rest.map(|rest| self.product(factor, &rest));
        Some(a)
    }

    fn product(&self, a: &Expr, b: &Expr) -> Expr {
        let one = Expr::int(self.ty, 1);
        match (a, b) {
            (a, b) if *a == one => b.clone(),
            (a, b) if *b == one => a.clone(),
            (Expr::Lit(ty, Literal::Float(x)), Expr::Lit(_, Literal::Float(y))) => {
                Expr::Lit(*ty, Literal::Float(x * y))
            }
            (Expr::Lit(ty, Literal::Int(x)), Expr::Lit(_, Literal::Int(y))) => {
                match x.checked_mul(*y).filter(|n| fits(*ty, *n)) {
                    Some(n) => Expr::Lit(*ty, Literal::Int(n)),
                    None => Expr::binary(BinOp::Mul, a.clone(), b.clone()),
                }
            }
            _ => Expr::binary(BinOp::Mul, a.clone(), b.clone()),
        }
    }
}

fn n_nodes(expr: &Expr) -> usize {
    let mut n = 0;
    visit::walk(expr, &mut |_| n += 1);
    n
}

fn fits(ty: Scalar, n: i128) -> bool {
    ty.int_range()
        .is_some_and(|(lo, hi)| (lo..=hi).contains(&n))
}

/// The sum of two weights.
pub fn add(ty: Scalar, a: &Expr, b: &Expr) -> Expr {
    let zero = Expr::int(ty, 0);
    match (a, b) {
        (a, b) if *a == zero => b.clone(),
        (a, b) if *b == zero => a.clone(),
        (Expr::Lit(_, Literal::Float(x)), Expr::Lit(_, Literal::Float(y))) => {
            Expr::Lit(ty, Literal::Float(x + y))
        }
        (Expr::Lit(_, Literal::Int(x)), Expr::Lit(_, Literal::Int(y)))
            if x.checked_add(*y).is_some_and(|n| fits(ty, n)) =>
        {
            Expr::Lit(ty, Literal::Int(x + y))
        }
        _ => Expr::binary(BinOp::Add, a.clone(), b.clone()),
    }
}

/// A weight times a value.
pub fn times(ty: Scalar, weight: &Expr, value: Expr) -> Expr {
    if *weight == Expr::int(ty, 1) {
        return value;
    }
    Expr::binary(BinOp::Mul, weight.clone(), value)
}

fn depends_on_position(expr: &Expr) -> bool {
    let mut depends = false;
    let varies = |form: &Form| !form.dims().is_empty();
    visit::walk(expr, &mut |e| match e {
        Expr::Iter(_) | Expr::Var { .. } | Expr::Lookup { .. } => depends = true,
        Expr::Input { index, .. } => depends |= index.iter().any(varies),
        Expr::Guard { cond, .. } => depends |= cond.forms().into_iter().any(varies),
        _ => {}
    });
    depends
}

/// Shifts the iterators of the kernel behind that of the steps.
pub fn behind_time(form: &Form) -> Form {
    form.substitute(&|d| Some(Form::from(DimId::from(d.index() + 1))))
        .unwrap_or_else(|_| form.clone())
}
