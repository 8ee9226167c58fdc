//! Which PEs must test their point?
//!
//! The PEs of an array and its steps form a box, and a mapping rarely fills it. A slot of the box
//! that belongs to no point of the domain would still compute, if nobody tests. That is harmless
//! unless it reads an input outside of its axes, divides integers, looks up a table, or writes an
//! output: points of the domain read only points of the domain, at the time they are due. For every
//! such effect it is asked, for all sizes at once, whether an empty slot could have it.

use systola_ir::array::{Array, Guard, Reverse};
use systola_ir::codes::legality as codes;
use systola_ir::form::{Cond, Form, Rel};
use systola_ir::mapping::Check;
use systola_ir::system::visit::children;
use systola_ir::system::{Axis, Expr};
use systola_ir::{BinOp, Diagnostic, Span};

use crate::clock::{domain, interval};
use crate::decide::{Decide, Undecided};

/// An effect of a cell or an output on memory.
struct Effect {
    what: String,
    /// Where it happens, and goes wrong outside of the domain.
    when: Cond,
}

/// Finds the guards that stay and those that are proved away.
pub fn find_guards(array: &Array, decide: &Decide) -> Result<Vec<Guard>, Undecided> {
    let mut guards = Vec::new();
    let effects = effects(array);
    if effects.is_empty() {
        return Ok(guards);
    }
    let slots = empty_slots(array, decide)?;
    for effect in effects {
        let (kept, reason) = match (&slots, array.check) {
            (_, Check::Check) => (true, "`check` asks every PE to test".to_string()),
            (Slots::Filled, _) => (false, "every slot of the array has a point".to_string()),
            (Slots::Unknown(why), _) => (true, why.clone()),
            (Slots::Empty(cond), _) => {
                let question = cond.clone().and(effect.when.clone());
                match decide.sample(&question, array.dims.len()) {
                    Ok(None) => (false, "no empty slot can have this effect".to_string()),
                    Ok(Some((params, point))) => {
                        let names = array.param_names();
                        let at: Vec<String> = array
                            .dims
                            .iter()
                            .zip(&point)
                            .map(|(d, v)| format!("{d} = {v}"))
                            .collect();
                        let sizes: Vec<String> = names
                            .iter()
                            .zip(&params)
                            .map(|(p, v)| format!("{p} = {v}"))
                            .collect();
                        (
                            true,
                            format!(
                                "an empty slot would, at {} with {}",
                                at.join(", "),
                                sizes.join(", ")
                            ),
                        )
                    }
                    Err(_) => (true, "not proved unnecessary".to_string()),
                }
            }
        };
        guards.push(Guard {
            effect: effect.what,
            kept,
            reason,
        });
    }
    Ok(guards)
}

/// `trust` is refused where a test is needed.
pub fn verify_trust(array: &Array, span: Span) -> Option<Diagnostic> {
    if array.check != Check::Trust {
        return None;
    }
    let needed = array.guards.iter().find(|g| g.kept)?;
    Some(
        Diagnostic::new(
            &codes::TRUST_IS_WRONG,
            span,
            format!("a test is needed: {}", needed.effect),
        )
        .note(needed.reason.clone())
        .help("use `auto`, which keeps only the tests that are needed"),
    )
}

enum Slots {
    /// No slot of the box is empty.
    Filled,
    /// The points outside of the domain that the empty slots belong to.
    Empty(Cond),
    Unknown(String),
}

fn empty_slots(array: &Array, decide: &Decide) -> Result<Slots, Undecided> {
    let [piece] = array.pieces.as_slice() else {
        return Ok(Slots::Unknown("the mapping has several pieces".into()));
    };
    if piece.reverse == Reverse::Scan {
        return Ok(Slots::Unknown(
            "the reverse transform has no closed form at these sizes".into(),
        ));
    }
    let domain = domain(array);
    let mut cond = domain.clone().negate();
    for form in piece.place.iter().chain(&piece.time) {
        match interval(form, &domain, decide)? {
            Some((least, most)) => {
                cond = cond
                    .and(Cond::Cmp(Rel::Ge, form.clone(), Form::from(least)))
                    .and(Cond::Cmp(Rel::Le, form.clone(), Form::from(most)));
            }
            None => {
                return Ok(Slots::Unknown(
                    "the box of the array has no simple bounds for all sizes".into(),
                ));
            }
        }
    }
    if decide.is_empty(&cond, array.dims.len())? {
        return Ok(Slots::Filled);
    }
    Ok(Slots::Empty(cond))
}

fn effects(array: &Array) -> Vec<Effect> {
    let params = array.param_names();
    let mut effects: Vec<Effect> = Vec::new();
    let mut add = |effect: Effect| {
        match effects.iter_mut().find(|e| e.what == effect.what) {
            Some(known) => {
                known.when = Cond::Or(vec![known.when.clone(), effect.when]);
            }
            None => effects.push(effect),
        }
    };
    for cell in &array.cells {
        cell_effects(array, &cell.body, &Cond::TRUE, &params, &cell.name, &mut add);
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
                    what: format!("`{}[{}]` is read", input.name, shown(index, params, &array.dims)),
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
        _ => {}
    }
    for child in children(expr) {
        cell_effects(array, child, when, params, cell, add);
    }
}
