//! The size of expressions after inlining.
//!
//! Functions mean their bodies, and every pass after the check may inline them. A function that
//! calls another one twice is twice as large, so a chain of twenty such functions has a million
//! operations. They are counted without inlining.

use crate::id::FnId;
use crate::system::{Combine, Expr, System, visit};

/// The largest number of operations of one equation or function after inlining.
pub const MOST_OPERATIONS: u64 = 1 << 18;

/// The sizes of the functions of a system after inlining.
#[derive(Clone, Debug)]
pub struct Expansion {
    functions: Vec<u64>,
}

impl Expansion {
    pub fn of(system: &System) -> Expansion {
        let n = system.functions.len();
        let mut expansion = Expansion {
            functions: vec![0; n],
        };
        let mut seen = vec![false; n];
        for root in 0..n {
            expansion.measure(system, root, &mut seen);
        }
        expansion
    }

    /// Callees are measured first. A recursive call, which front ends refuse, counts as empty.
    fn measure(&mut self, system: &System, root: usize, seen: &mut [bool]) {
        let mut path = vec![(root, false)];
        while let Some((f, callees_done)) = path.pop() {
            let body = &system.functions[f].body;
            if callees_done {
                self.functions[f] = self.operations(body);
            } else if !std::mem::replace(&mut seen[f], true) {
                path.push((f, true));
                visit::walk(body, &mut |e| {
                    if let Some(callee) = called(e)
                        && seen.get(callee.index()) == Some(&false)
                    {
                        path.push((callee.index(), false));
                    }
                });
            }
        }
    }

    /// The size of a function.
    pub fn of_function(&self, function: FnId) -> u64 {
        self.functions.get(function.index()).copied().unwrap_or(0)
    }

    /// The size of an expression: its nodes, and for each call the size of the function.
    pub fn operations(&self, expr: &Expr) -> u64 {
        let mut n: u64 = 0;
        visit::walk(expr, &mut |e| {
            let inside = called(e).map_or(0, |f| self.of_function(f));
            n = n.saturating_add(1).saturating_add(inside);
        });
        n
    }

    /// The largest function that an expression calls directly.
    pub fn largest_call(&self, expr: &Expr) -> Option<FnId> {
        let mut largest: Option<FnId> = None;
        visit::walk(expr, &mut |e| {
            if let Some(f) = called(e)
                && largest.is_none_or(|l| self.of_function(f) > self.of_function(l))
            {
                largest = Some(f);
            }
        });
        largest
    }
}

fn called(expr: &Expr) -> Option<FnId> {
    match expr {
        Expr::Call(f, _) => Some(*f),
        Expr::Reduce { op, .. } | Expr::Scan { op, .. } => match op {
            Combine::Fn(f) => Some(*f),
            Combine::Op(_) => None,
        },
        Expr::Lit(..)
        | Expr::Const(_)
        | Expr::Iter(_)
        | Expr::Param(_)
        | Expr::Local(_)
        | Expr::Var { .. }
        | Expr::Input { .. }
        | Expr::Port(_)
        | Expr::Lookup { .. }
        | Expr::Unary(..)
        | Expr::Binary(..)
        | Expr::Cast(..)
        | Expr::Guard { .. }
        | Expr::Select { .. }
        | Expr::Tuple(_)
        | Expr::Field(..)
        | Expr::Let { .. } => None,
    }
}
