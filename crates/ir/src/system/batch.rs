//! Expands a `batch` into a plain outer dimension.
//!
//! Before: `batch n in 0..B shared(w)` over iterators i, j, … After: iterators n, i, j, …, where
//! every variable is read at the same n, and n is the first index of every output and of every
//! input that is not shared. A table whose contents are written in the program is always shared:
//! its text cannot have a further axis.

use crate::form::{Cond, Form, Overflow};
use crate::id::{DimId, InputId};
use crate::system::{Axis, Dim, Expr, InputKind, Output, System, Var, Write, visit};

/// Where the batch iterator goes: outermost.
const BATCH: DimId = DimId(0);

impl System {
    /// The same system with its `batch` as the outermost iterator; a clone where it has none.
    pub fn expand_batch(&self) -> Result<System, Overflow> {
        let Some(batch) = &self.batch else {
            return Ok(self.clone());
        };
        let per_item: Vec<bool> = self
            .inputs
            .iter()
            .enumerate()
            .map(|(n, input)| {
                let written_out = matches!(&input.kind, InputKind::Table { data: Some(_) });
                !written_out && !batch.shared.contains(&InputId::from(n))
            })
            .collect();
        let axis = Axis {
            lo: batch.range.0.clone(),
            hi: batch.range.1.clone(),
        };
        let body = |expr: &Expr| expand_expr(expr, &per_item);

        let mut system = self.clone();
        system.batch = None;
        let item = Dim {
            name: batch.name.clone(),
            range: Some(batch.range.clone()),
            span: batch.span,
        };
        system.dims = shift_dims(&self.dims)?;
        system.dims.insert(0, item.clone());
        system.bound = shift_dims(&self.bound)?;
        system.domain = shift_conds(&self.domain)?;
        for (input, per_item) in system.inputs.iter_mut().zip(&per_item) {
            if *per_item {
                input.axes.insert(0, axis.clone());
            }
        }
        for function in &mut system.functions {
            function.body = body(&function.body)?;
        }
        for Var {
            own, on, body: b, ..
        } in &mut system.vars
        {
            if let Some(dims) = own {
                *dims = shift_dims(dims)?;
                dims.insert(0, item.clone());
            }
            *on = shift_conds(on)?;
            *b = body(b)?;
        }
        for Output { axes, writes, .. } in &mut system.outputs {
            axes.insert(0, axis.clone());
            for Write {
                value, index, when, ..
            } in writes
            {
                *value = body(value)?;
                *index = at_item(index)?;
                *when = when.map(&shift)?;
            }
        }
        Ok(system)
    }
}

fn next(d: DimId) -> DimId {
    DimId(d.0 + 1)
}

fn shift(form: &Form) -> Result<Form, Overflow> {
    form.substitute(&|d| Some(Form::from(next(d))))
}

fn shift_conds(conds: &[Cond]) -> Result<Vec<Cond>, Overflow> {
    conds.iter().map(|c| c.map(&shift)).collect()
}

fn shift_dims(dims: &[Dim]) -> Result<Vec<Dim>, Overflow> {
    dims.iter()
        .map(|dim| {
            let range = match &dim.range {
                Some((lo, hi)) => Some((shift(lo)?, shift(hi)?)),
                None => None,
            };
            Ok(Dim {
                range,
                ..dim.clone()
            })
        })
        .collect()
}

/// The shifted index, after the batch iterator.
fn at_item(index: &[Form]) -> Result<Vec<Form>, Overflow> {
    std::iter::once(Ok(Form::from(BATCH)))
        .chain(index.iter().map(shift))
        .collect()
}

fn expand_expr(expr: &Expr, per_item: &[bool]) -> Result<Expr, Overflow> {
    let is_per_item = |input: InputId| per_item.get(input.index()).copied().unwrap_or(false);
    visit::map_expr(expr, &mut |e| {
        Ok(match e {
            Expr::Iter(d) => Expr::Iter(next(d)),
            Expr::Var { var, index, span } => Expr::Var {
                var,
                index: at_item(&index)?,
                span,
            },
            Expr::Input { input, index, span } => Expr::Input {
                input,
                index: if is_per_item(input) {
                    at_item(&index)?
                } else {
                    index.iter().map(shift).collect::<Result<_, _>>()?
                },
                span,
            },
            Expr::Lookup {
                input,
                mut index,
                span,
            } => {
                if is_per_item(input) {
                    index.insert(0, Expr::Iter(BATCH));
                }
                Expr::Lookup { input, index, span }
            }
            Expr::Guard {
                cond,
                then,
                otherwise,
            } => Expr::Guard {
                cond: cond.map(&shift)?,
                then,
                otherwise,
            },
            Expr::Reduce {
                op,
                dims,
                body,
                span,
            } => Expr::Reduce {
                op,
                dims: dims.into_iter().map(next).collect(),
                body,
                span,
            },
            Expr::Scan {
                op,
                dim,
                body,
                span,
            } => Expr::Scan {
                op,
                dim: next(dim),
                body,
                span,
            },
            other @ (Expr::Lit(..)
            | Expr::Const(_)
            | Expr::Param(_)
            | Expr::Local(_)
            | Expr::Unary(..)
            | Expr::Binary(..)
            | Expr::Cast(..)
            | Expr::Select { .. }
            | Expr::Tuple(_)
            | Expr::Field(..)
            | Expr::Call(..)
            | Expr::Let { .. }
            | Expr::Port(_)) => other,
        })
    })
}
