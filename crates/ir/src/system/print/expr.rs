//! Prints right-hand sides: parentheses only where needed, and literals with a suffix only where
//! their context does not determine their type.
//!
//! Literals get their type from the other operands, so operands that must have the same type form a
//! *run*. A literal is printed without a suffix if the type of its run is known, either from the
//! context or from an operand that is not a literal. Each expression belongs to one run, so
//! printing is linear.

use std::fmt;

use crate::id::LocalId;
use crate::scalar::{BinOp, UnOp};
use crate::system::{Combine, Expr, System};

use super::{Names, display_dim, display_literal, display_typed, is_default, join_forms};

/// Precedence levels, as in the grammar.
pub(crate) mod level {
    pub const LET: u8 = 0;
    pub const EQUALITY: u8 = 6;
    pub const RELATIONAL: u8 = 7;
    pub const UNARY: u8 = 11;
    pub const POSTFIX: u8 = 12;
    pub const PRIMARY: u8 = 13;
}

/// Is the type of literals known without looking at them?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Decided {
    Yes,
    No,
    /// Not determined yet: the run starts here.
    NotYet,
}

struct Printer<'a> {
    system: &'a System,
    params: &'a [String],
    dims: &'a [String],
    /// The names of the locals in scope.
    locals: Vec<(LocalId, String)>,
    out: String,
}

/// Prints an expression of a system; `locals` are the names of the function's parameters.
pub fn display_expr<'a>(
    system: &'a System,
    expr: &'a Expr,
    locals: &'a [String],
) -> impl fmt::Display + 'a {
    fmt::from_fn(move |f| {
        let names = Names {
            params: system.param_names(),
            dims: system.dim_names(),
        };
        let mut printer = Printer::new(system, &names, locals.to_vec());
        printer.expr(expr, level::LET, Decided::NotYet);
        f.write_str(&printer.out)
    })
}

/// The leading `let`s of a body, one per line, and the rest.
pub(super) fn body_lines(
    system: &System,
    names: &Names,
    body: &Expr,
    locals: Vec<String>,
) -> Vec<String> {
    let mut printer = Printer::new(system, names, locals);
    let mut lines = Vec::new();
    let mut rest = body;
    while let Expr::Let {
        local,
        name,
        value,
        body,
    } = rest
    {
        printer.binding(*local, name, value);
        lines.push(std::mem::take(&mut printer.out));
        rest = body;
    }
    // The type of the body is declared.
    printer.expr(rest, level::LET + 1, Decided::Yes);
    lines.push(printer.out);
    lines
}

impl<'a> Printer<'a> {
    fn new(system: &'a System, names: &'a Names, locals: Vec<String>) -> Self {
        Printer {
            system,
            params: &names.params,
            dims: &names.dims,
            locals: locals
                .into_iter()
                .enumerate()
                .map(|(n, name)| (LocalId::from(n), name))
                .collect(),
            out: String::new(),
        }
    }

    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Prints `let name = value;` and brings the name into scope.
    fn binding(&mut self, local: LocalId, name: &str, value: &Expr) {
        self.push("let ");
        self.push(name);
        self.push(" = ");
        self.expr(value, level::LET + 1, Decided::NotYet);
        self.push(";");
        self.locals.push((local, name.to_string()));
    }

    /// Prints an expression, in parentheses if it binds more weakly than `least`.
    fn expr(&mut self, expr: &Expr, least: u8, decided: Decided) {
        let decided = match decided {
            Decided::NotYet if is_rigid(expr) => Decided::Yes,
            Decided::NotYet => Decided::No,
            Decided::Yes | Decided::No => decided,
        };
        let grouped = binds(expr) < least;
        if grouped {
            self.push("(");
        }
        self.bare(expr, decided);
        if grouped {
            self.push(")");
        }
    }

    fn bare(&mut self, expr: &Expr, decided: Decided) {
        match expr {
            Expr::Lit(ty, literal) => {
                let text = if decided == Decided::Yes || is_default(*ty, *literal) {
                    display_literal(*literal)
                } else {
                    display_typed(*ty, *literal)
                };
                self.push(&text);
            }
            Expr::Const(id) => {
                let name = self.system.consts.get(id.index()).map(|c| &c.name);
                self.name(name, "const", id.index());
            }
            Expr::Iter(d) => {
                let name = self.dims.get(d.index()).cloned();
                self.name(name.as_ref(), "i", d.index());
            }
            Expr::Param(p) => {
                let name = self.params.get(p.index()).cloned();
                self.name(name.as_ref(), "p", p.index());
            }
            Expr::Local(local) => {
                let name = self.locals.iter().rev().find(|(id, _)| id == local);
                let name = name.map(|(_, name)| name.clone());
                self.name(name.as_ref(), "local", local.index());
            }
            Expr::Port(port) => {
                let text = format!("port{}", port.index());
                self.push(&text);
            }
            Expr::Var { var, index, .. } => {
                let name = self.system.vars.get(var.index()).map(|v| &v.name);
                self.name(name, "var", var.index());
                if !self.system.is_here(*var, index) {
                    let index = join_forms(index, self.params, self.dims);
                    self.push(&format!("({index})"));
                }
            }
            Expr::Input { input, index, .. } => {
                let name = self.system.inputs.get(input.index()).map(|i| &i.name);
                self.name(name, "input", input.index());
                let index = join_forms(index, self.params, self.dims);
                self.push(&format!("[{index}]"));
            }
            Expr::Lookup { input, index, .. } => {
                let name = self.system.inputs.get(input.index()).map(|i| &i.name);
                self.name(name, "input", input.index());
                self.push("[");
                self.list(index, Decided::NotYet);
                self.push("]");
            }
            Expr::Unary(op, operand) => self.unary(*op, operand, decided),
            Expr::Binary(op, left, right) => self.binary(*op, left, right, decided),
            Expr::Cast(ty, operand) => {
                self.push(ty.name());
                self.arguments(std::slice::from_ref(&**operand), Decided::NotYet);
            }
            Expr::Guard {
                cond,
                then,
                otherwise,
            } => {
                let cond = cond.display(self.params, self.dims).to_string();
                self.push(&format!("select({cond}, "));
                self.argument(then, decided);
                if let Some(otherwise) = otherwise {
                    self.push(", ");
                    self.argument(otherwise, decided);
                }
                self.push(")");
            }
            Expr::Select {
                cond,
                then,
                otherwise,
            } => {
                self.push("select(");
                self.argument(cond, Decided::NotYet);
                self.push(", ");
                self.argument(then, decided);
                self.push(", ");
                self.argument(otherwise, decided);
                self.push(")");
            }
            Expr::Tuple(parts) => {
                // Each part is a run of its own, unless the type of the whole is known.
                let parts_decided = match decided {
                    Decided::Yes => Decided::Yes,
                    Decided::No | Decided::NotYet => Decided::NotYet,
                };
                self.arguments(parts, parts_decided);
            }
            Expr::Field(tuple, field) => {
                self.expr(tuple, level::POSTFIX, Decided::NotYet);
                self.push(&format!(".{field}"));
            }
            Expr::Call(function, args) => {
                let name = self.system.functions.get(function.index()).map(|f| &f.name);
                self.name(name, "fn", function.index());
                self.arguments(args, Decided::Yes);
            }
            Expr::Let { .. } => self.lets(expr, decided),
            Expr::Reduce { op, dims, body, .. } => {
                self.push("reduce(");
                self.combine(*op);
                for d in dims {
                    let known = d.index() < self.system.dims.len() + self.system.bound.len();
                    let text = if known {
                        display_dim(self.system.dim(*d), self.params, self.dims)
                    } else {
                        format!("i{}", d.index())
                    };
                    self.push(", ");
                    self.push(&text);
                }
                self.push(", ");
                self.argument(body, combined(*op, decided));
                self.push(")");
            }
            Expr::Scan { op, dim, body, .. } => {
                self.push("scan(");
                self.combine(*op);
                self.push(", ");
                let name = self.dims.get(dim.index()).cloned();
                self.name(name.as_ref(), "i", dim.index());
                self.push(", ");
                self.argument(body, combined(*op, decided));
                self.push(")");
            }
        }
    }

    fn name(&mut self, name: Option<&String>, fallback: &str, index: usize) {
        match name {
            Some(name) => self.out.push_str(name),
            None => self.out.push_str(&format!("{fallback}{index}")),
        }
    }

    fn argument(&mut self, expr: &Expr, decided: Decided) {
        self.expr(expr, level::LET + 1, decided);
    }

    fn list(&mut self, list: &[Expr], decided: Decided) {
        for (n, expr) in list.iter().enumerate() {
            if n > 0 {
                self.push(", ");
            }
            self.argument(expr, decided);
        }
    }

    fn arguments(&mut self, list: &[Expr], decided: Decided) {
        self.push("(");
        self.list(list, decided);
        self.push(")");
    }

    fn unary(&mut self, op: UnOp, operand: &Expr, decided: Decided) {
        self.push(op.name());
        match op {
            UnOp::Abs
            | UnOp::Sqrt
            | UnOp::Rsqrt
            | UnOp::Exp
            | UnOp::Log
            | UnOp::Floor
            | UnOp::Ceil
            | UnOp::Sin
            | UnOp::Cos
            | UnOp::Tanh => {
                self.arguments(std::slice::from_ref(operand), decided);
            }
            // A minus before a bare literal would become part of it.
            UnOp::Neg if matches!(operand, Expr::Lit(..)) => {
                self.arguments(std::slice::from_ref(operand), decided);
            }
            UnOp::Neg | UnOp::Not => self.expr(operand, level::UNARY, decided),
        }
    }

    fn binary(&mut self, op: BinOp, left: &Expr, right: &Expr, decided: Decided) {
        // A comparison is a bool: its operands are a run of their own.
        let decided = if !op.is_comparison() {
            decided
        } else if is_rigid(left) || is_rigid(right) {
            Decided::Yes
        } else {
            Decided::No
        };
        match op {
            BinOp::Min | BinOp::Max | BinOp::Pow => {
                self.push(op.name());
                self.push("(");
                let mut operands = vec![right];
                let mut first = left;
                // `min(a, b, c)` is `min(min(a, b), c)`.
                while let (true, Expr::Binary(inner, a, b)) = (op != BinOp::Pow, first) {
                    if *inner != op {
                        break;
                    }
                    operands.push(b);
                    first = a;
                }
                self.argument(first, decided);
                for operand in operands.into_iter().rev() {
                    self.push(", ");
                    self.argument(operand, decided);
                }
                self.push(")");
            }
            BinOp::Add
            | BinOp::Sub
            | BinOp::Mul
            | BinOp::Div
            | BinOp::Rem
            | BinOp::Eq
            | BinOp::Ne
            | BinOp::Lt
            | BinOp::Le
            | BinOp::Gt
            | BinOp::Ge
            | BinOp::And
            | BinOp::Or
            | BinOp::BitAnd
            | BinOp::BitOr
            | BinOp::BitXor
            | BinOp::Shl
            | BinOp::Shr => {
                let level = precedence(op);
                // `a < b < c` would be a chain, so both sides of a comparison are grouped.
                let left_level = level + u8::from(level == level::RELATIONAL);
                self.expr(left, left_level, decided);
                self.push(&format!(" {} ", op.name()));
                self.expr(right, level + 1, decided);
            }
        }
    }

    fn lets(&mut self, expr: &Expr, decided: Decided) {
        let n_locals = self.locals.len();
        let mut rest = expr;
        while let Expr::Let {
            local,
            name,
            value,
            body,
        } = rest
        {
            self.binding(*local, name, value);
            self.push(" ");
            rest = body;
        }
        self.expr(rest, level::LET + 1, decided);
        self.locals.truncate(n_locals);
    }

    fn combine(&mut self, op: Combine) {
        match op {
            Combine::Op(op) => self.push(op.name()),
            Combine::Fn(function) => {
                let name = self.system.functions.get(function.index()).map(|f| &f.name);
                self.name(name, "fn", function.index());
            }
        }
    }
}

/// A function declares the type it combines; for an operator, the context decides.
fn combined(op: Combine, decided: Decided) -> Decided {
    match op {
        Combine::Op(_) => decided,
        Combine::Fn(_) => Decided::Yes,
    }
}

pub(crate) fn precedence(op: BinOp) -> u8 {
    match op {
        BinOp::Or => 1,
        BinOp::And => 2,
        BinOp::BitOr => 3,
        BinOp::BitXor => 4,
        BinOp::BitAnd => 5,
        BinOp::Eq | BinOp::Ne => level::EQUALITY,
        BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => level::RELATIONAL,
        BinOp::Shl | BinOp::Shr => 8,
        BinOp::Add | BinOp::Sub => 9,
        BinOp::Mul | BinOp::Div | BinOp::Rem => 10,
        BinOp::Min | BinOp::Max | BinOp::Pow => level::PRIMARY,
    }
}

fn binds(expr: &Expr) -> u8 {
    match expr {
        Expr::Lit(_, literal) => {
            if display_literal(*literal).starts_with('-') {
                level::UNARY
            } else {
                level::PRIMARY
            }
        }
        Expr::Unary(UnOp::Neg | UnOp::Not, _) => level::UNARY,
        Expr::Unary(
            UnOp::Abs
            | UnOp::Sqrt
            | UnOp::Rsqrt
            | UnOp::Exp
            | UnOp::Log
            | UnOp::Floor
            | UnOp::Ceil
            | UnOp::Sin
            | UnOp::Cos
            | UnOp::Tanh,
            _,
        ) => level::PRIMARY,
        Expr::Binary(op, ..) => precedence(*op),
        Expr::Field(..) => level::POSTFIX,
        Expr::Let { .. } => level::LET,
        Expr::Const(_)
        | Expr::Iter(_)
        | Expr::Param(_)
        | Expr::Local(_)
        | Expr::Var { .. }
        | Expr::Input { .. }
        | Expr::Lookup { .. }
        | Expr::Cast(..)
        | Expr::Guard { .. }
        | Expr::Select { .. }
        | Expr::Tuple(_)
        | Expr::Call(..)
        | Expr::Reduce { .. }
        | Expr::Scan { .. }
        | Expr::Port(_) => level::PRIMARY,
    }
}

/// Has the run of this expression an operand whose type is known without its literals?
fn is_rigid(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(..) | Expr::Tuple(_) => false,
        Expr::Unary(_, a) => is_rigid(a),
        Expr::Binary(op, a, b) => op.is_comparison() || is_rigid(a) || is_rigid(b),
        Expr::Guard {
            then, otherwise, ..
        } => is_rigid(then) || otherwise.as_deref().is_some_and(is_rigid),
        Expr::Select {
            then, otherwise, ..
        } => is_rigid(then) || is_rigid(otherwise),
        Expr::Let { body, .. } => is_rigid(body),
        Expr::Reduce { op, body, .. } | Expr::Scan { op, body, .. } => match op {
            Combine::Op(_) => is_rigid(body),
            Combine::Fn(_) => true,
        },
        Expr::Const(_)
        | Expr::Iter(_)
        | Expr::Param(_)
        | Expr::Local(_)
        | Expr::Var { .. }
        | Expr::Input { .. }
        | Expr::Lookup { .. }
        | Expr::Cast(..)
        | Expr::Field(..)
        | Expr::Call(..)
        | Expr::Port(_) => true,
    }
}
