//! Converts offsets to indices, and neighbourhoods to sums.

use systola_ir::codes::{stencil as codes, syntax, types};
use systola_ir::mapping::Name;
use systola_ir::{BinOp, Diagnostic, Span};
use systola_stencil::Shape;

use super::Errors;
use super::scope::Scope;
use super::weights::{Weights, wrong_weights};
use crate::elaborate::shorten;
use crate::suggest::suggest;
use crate::tree::{self, Dim, Expr, ExprKind, ReduceOp, ReduceOpKind, ShapeKind};

/// The maximum number of cells in the bounding box of a neighbourhood.
const MAX_CELLS: i128 = 4096;

/// Converts the offsets of an equation to indices.
pub struct Reader<'a> {
    pub scope: &'a Scope,
    pub inputs: &'a [tree::Input],
    pub weights: &'a mut Vec<Weights>,
    pub errors: &'a mut Errors,
}

impl Reader<'_> {
    pub fn relative(&mut self, expr: &mut Expr) {
        let span = expr.span;
        match &mut expr.kind {
            ExprKind::Int(..) | ExprKind::Float(..) | ExprKind::Bool(_) | ExprKind::Mistake(_) => {}
            ExprKind::Name(name) => {
                if self.scope.fields.contains(name) {
                    let name = Name {
                        text: name.clone(),
                        span,
                    };
                    let here = self.scope.axes.iter().map(|axis| named(&axis.text, span));
                    expr.kind = ExprKind::Element(name, here.collect());
                }
            }
            ExprKind::Element(name, index) | ExprKind::At(name, index) => {
                index.iter_mut().for_each(|e| self.relative(e));
                let is_field = self.scope.fields.contains(&name.text);
                let is_var = self.scope.vars.contains(&name.text);
                if !is_field && !is_var {
                    return;
                }
                let n_axes = self.scope.axes.len();
                if index.len() != n_axes {
                    let error = Diagnostic::new(
                        &types::WRONG_COUNT,
                        span,
                        format!(
                            "`{}` has {n_axes} ax{}, but {} offset{} given",
                            name.text,
                            if n_axes == 1 { "is" } else { "es" },
                            index.len(),
                            if index.len() == 1 { " is" } else { "s are" },
                        ),
                    );
                    let zero = vec!["0"; n_axes].join(", ");
                    let help = format!(
                        "give one for each axis; `{}[{zero}]` is the cell itself",
                        name.text
                    );
                    self.errors.report(error.help(help));
                    return;
                }
                let axes = self.scope.axes.iter();
                let index: Vec<Expr> = axes
                    .zip(std::mem::take(index))
                    .map(|(axis, offset)| {
                        binary(BinOp::Add, named(&axis.text, offset.span), offset)
                    })
                    .collect();
                let name = name.clone();
                expr.kind = match is_field {
                    true => ExprKind::Element(name, index),
                    false => ExprKind::Apply(name, index),
                };
            }
            ExprKind::Apply(_, list) | ExprKind::Tuple(list) => {
                list.iter_mut().for_each(|e| self.relative(e));
            }
            ExprKind::Unary(_, inner) | ExprKind::Field(inner, _) | ExprKind::Paren(inner) => {
                self.relative(inner);
            }
            ExprKind::Binary(_, a, b) => {
                self.relative(a);
                self.relative(b);
            }
            ExprKind::Chain(first, rest) => {
                self.relative(first);
                rest.iter_mut().for_each(|(_, e)| self.relative(e));
            }
            ExprKind::Let(bindings, body) => {
                bindings.iter_mut().for_each(|(_, e)| self.relative(e));
                self.relative(body);
            }
            ExprKind::Reduce(_, _, body) | ExprKind::Scan(_, _, body) => self.relative(body),
            ExprKind::Around(op, weights, of, shape) => {
                let (op, weights, of, shape) = (*op, weights.take(), of.clone(), shape.clone());
                if let Some(around) = self.around(op, weights.as_ref(), &of, &shape, span) {
                    *expr = around;
                }
            }
        }
    }

    fn around(
        &mut self,
        op: BinOp,
        weights: Option<&Name>,
        of: &Name,
        shape: &tree::Shape,
        span: Span,
    ) -> Option<Expr> {
        let is_field = self.scope.fields.contains(&of.text);
        if !is_field && !self.scope.vars.contains(&of.text) {
            let known: Vec<&str> = self.scope.fields.iter().map(String::as_str).collect();
            let error = Diagnostic::new(
                &codes::NOT_A_FIELD,
                of.span,
                format!("`{}` is no field, so it has no neighbourhood", of.text),
            );
            self.errors
                .report(match suggest(&of.text, known.iter().copied()) {
                    Some(near) => error.help(format!("did you mean `{near}`?")),
                    None => error.help(format!("there are the fields {}", shorten(&known))),
                });
            return None;
        }
        let is_box = matches!(shape.kind, ShapeKind::Box(_));
        let set = self.shape(shape)?;
        if set.volume() > MAX_CELLS {
            self.errors.report(too_many_cells(shape.span));
            return None;
        }
        let offsets = set.offsets();
        let lengths: Vec<i128> = match is_box {
            true => set.radii().iter().map(|r| 2 * r + 1).collect(),
            false => vec![offsets.len() as i128],
        };
        if let Some(name) = weights {
            let declared = self.inputs.iter().find(|i| i.name.text == name.text);
            if let Some(array) = declared.filter(|array| array.axes.len() != lengths.len()) {
                let error = wrong_weights(&name.text, &lengths, span, array.origin.span());
                self.errors.report(error);
                return None;
            }
            self.weights.push(Weights {
                name: name.text.clone(),
                lengths,
                span,
            });
        }
        let cell = |index: Vec<Expr>| match is_field {
            true => node(ExprKind::Element(of.clone(), index), span),
            false => node(ExprKind::Apply(of.clone(), index), span),
        };
        let weighted = |cell: Expr, at: Vec<Expr>| match weights {
            Some(name) => {
                let weight = node(ExprKind::Element(name.clone(), at), span);
                binary(BinOp::Mul, cell, weight)
            }
            None => cell,
        };
        // A box of a field stays a sum over its own iterators: the mapping chooses their order.
        if is_box && is_field && offsets.len() > 1 {
            return Some(self.window(op, &set.radii(), &cell, &weighted, span));
        }
        let axes = || self.scope.axes.iter();
        let terms: Vec<Expr> = (offsets.iter().enumerate())
            .map(|(n, offset)| {
                let at = axes().zip(offset);
                let at =
                    at.map(|(axis, o)| binary(BinOp::Add, named(&axis.text, span), int(*o, span)));
                let weight = match is_box {
                    true => (offset.iter().zip(set.radii()))
                        .map(|(o, r)| int(o + r, span))
                        .collect(),
                    false => vec![int(n as i128, span)],
                };
                weighted(cell(at.collect()), weight)
            })
            .collect();
        let name = |op: BinOp| Name {
            text: op.name().to_string(),
            span,
        };
        let combined = terms.into_iter().reduce(|a, b| match op {
            BinOp::Add => binary(BinOp::Add, a, b),
            _ => node(ExprKind::Apply(name(op), vec![a, b]), span),
        });
        if combined.is_none() {
            self.errors.report(
                Diagnostic::new(
                    &codes::WEIGHTS_SHAPE,
                    shape.span,
                    "nothing is left of this neighbourhood",
                )
                .help("take away less"),
            );
        }
        combined
    }

    fn window(
        &self,
        op: BinOp,
        radii: &[i128],
        cell: &dyn Fn(Vec<Expr>) -> Expr,
        weighted: &dyn Fn(Expr, Vec<Expr>) -> Expr,
        span: Span,
    ) -> Expr {
        let mut dims = Vec::new();
        let (mut index, mut weight) = (Vec::new(), Vec::new());
        for ((axis, q), r) in self.scope.axes.iter().zip(&self.scope.window).zip(radii) {
            let here = named(&axis.text, span);
            if *r == 0 {
                index.push(here);
                weight.push(int(0, span));
                continue;
            }
            dims.push(Dim {
                name: Name {
                    text: q.clone(),
                    span,
                },
                range: Some((int(0, span), int(2 * r + 1, span))),
                span,
            });
            let ahead = binary(BinOp::Add, here, named(q, span));
            index.push(binary(BinOp::Sub, ahead, int(*r, span)));
            weight.push(named(q, span));
        }
        let op = ReduceOp {
            kind: ReduceOpKind::Op(op),
            span,
        };
        let body = weighted(cell(index), weight);
        node(ExprKind::Reduce(op, dims, Box::new(body)), span)
    }

    fn shape(&mut self, shape: &tree::Shape) -> Option<Shape> {
        let own = match &shape.kind {
            ShapeKind::Box(radii) => Shape::Box(self.radii(radii, shape.span)?),
            ShapeKind::Star(radii) => Shape::Star(self.radii(radii, shape.span)?),
            ShapeKind::Except(all, without) => {
                return Some(self.shape(all)?.except(self.shape(without)?));
            }
            ShapeKind::And(one, other) => return Some(self.shape(one)?.and(self.shape(other)?)),
        };
        if own.volume() > MAX_CELLS {
            self.errors.report(too_many_cells(shape.span));
            return None;
        }
        Some(own)
    }

    /// The radius for each axis.
    fn radii(&mut self, radii: &[i128], span: Span) -> Option<Vec<i128>> {
        let n_axes = self.scope.axes.len();
        let message = match radii {
            _ if radii.iter().any(|r| *r < 0) => "a radius is less than zero".to_string(),
            [radius] => return Some(vec![*radius; n_axes]),
            list if list.len() == n_axes => return Some(list.to_vec()),
            list => format!("{} radii are given for {n_axes} axes", list.len()),
        };
        self.errors.report(
            Diagnostic::new(&codes::WEIGHTS_SHAPE, span, message)
                .help("give one for all axes, or one for each"),
        );
        None
    }
}

fn too_many_cells(span: Span) -> Diagnostic {
    Diagnostic::new(
        &syntax::TOO_LARGE,
        span,
        format!("the box around this neighbourhood has more than {MAX_CELLS} cells"),
    )
    .help("write a `conv`, or a `system` with a `reduce`")
}

fn node(kind: ExprKind, span: Span) -> Expr {
    Expr::unmeasured(kind, span)
}

pub fn int(value: i128, span: Span) -> Expr {
    node(ExprKind::Int(value, None), span)
}

fn named(name: &str, span: Span) -> Expr {
    node(ExprKind::Name(name.to_string()), span)
}

fn binary(op: BinOp, a: Expr, b: Expr) -> Expr {
    let span = a.span.to(b.span);
    node(ExprKind::Binary(op, Box::new(a), Box::new(b)), span)
}
