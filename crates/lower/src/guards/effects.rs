//! The memory effects of cells and outputs, and where they go wrong outside the domain.

use systola_ir::BinOp;
use systola_ir::array::Array;
use systola_ir::form::{Cond, Form, Rel};
use systola_ir::system::visit::children;
use systola_ir::system::{Axis, Expr};

pub(super) struct Effect {
    pub what: String,
    /// Where it happens and goes wrong outside the domain.
    pub when: Cond,
}

pub(super) fn effects(array: &Array) -> Vec<Effect> {
    let params = array.param_names();
    let mut effects: Vec<Effect> = Vec::new();
    let mut add = |effect: Effect| match effects.iter_mut().find(|e| e.what == effect.what) {
        Some(known) => {
            known.when = Cond::Or(vec![known.when.clone(), effect.when]);
        }
        None => effects.push(effect),
    };
    for cell in &array.cells {
        cell_effects(
            array,
            &cell.body,
            &Cond::TRUE,
            &params,
            &cell.name,
            &mut add,
        );
    }
    for output in &array.outputs {
        for write in &output.writes {
            add(Effect {
                what: format!(
                    "`{}[{}]` is written",
                    output.name,
                    shown(&write.index, &params, &array.dims)
                ),
                when: write.when.clone(),
            });
        }
    }
    effects
}

fn shown(forms: &[Form], params: &[String], dims: &[String]) -> String {
    forms
        .iter()
        .map(|f| f.display(params, dims).to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

fn outside(index: &[Form], axes: &[Axis]) -> Cond {
    let cases: Vec<Cond> = index
        .iter()
        .zip(axes)
        .flat_map(|(form, axis)| {
            [
                Cond::Cmp(Rel::Lt, form.clone(), axis.lo.clone()),
                Cond::Cmp(Rel::Ge, form.clone(), axis.hi.clone()),
            ]
        })
        .collect();
    Cond::Or(cases)
}

fn cell_effects(
    array: &Array,
    expr: &Expr,
    when: &Cond,
    params: &[String],
    cell: &str,
    add: &mut impl FnMut(Effect),
) {
    match expr {
        Expr::Guard {
            cond,
            then,
            otherwise,
        } => {
            let inside = when.clone().and(cond.clone());
            cell_effects(array, then, &inside, params, cell, add);
            if let Some(otherwise) = otherwise {
                let outside = when.clone().and(cond.clone().negate());
                cell_effects(array, otherwise, &outside, params, cell, add);
            }
            return;
        }
        Expr::Input { input, index, .. } => {
            let input = &array.inputs[input.index()];
            if input.outside.is_none() {
                add(Effect {
                    what: format!(
                        "`{}[{}]` is read",
                        input.name,
                        shown(index, params, &array.dims)
                    ),
                    when: when.clone().and(outside(index, &input.axes)),
                });
            }
        }
        Expr::Lookup { input, .. } => {
            let input = &array.inputs[input.index()];
            if input.outside.is_none() {
                add(Effect {
                    what: format!("`{}` is looked up in `{cell}`", input.name),
                    when: when.clone(),
                });
            }
        }
        Expr::Binary(BinOp::Div | BinOp::Rem, ..) => {
            add(Effect {
                what: format!("`{cell}` divides"),
                when: when.clone(),
            });
        }
        Expr::Lit(..)
        | Expr::Const(_)
        | Expr::Iter(_)
        | Expr::Param(_)
        | Expr::Local(_)
        | Expr::Var { .. }
        | Expr::Unary(..)
        | Expr::Binary(..)
        | Expr::Cast(..)
        | Expr::Select { .. }
        | Expr::Tuple(_)
        | Expr::Field(..)
        | Expr::Call(..)
        | Expr::Let { .. }
        | Expr::Reduce { .. }
        | Expr::Scan { .. }
        | Expr::Port(_) => {}
    }
    for child in children(expr) {
        cell_effects(array, child, when, params, cell, add);
    }
}
