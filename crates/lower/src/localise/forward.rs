//! Forwarded inputs: each pattern of access gets a variable that travels.

use systola_ir::codes::mapping as codes;
use systola_ir::form::{Cond, Form, Poly};
use systola_ir::mapping::NameExpr;
use systola_ir::system::visit::map_expr;
use systola_ir::system::{Expr, Law, Var, shifted};
use systola_ir::{Diagnostic, InputId, Span, Type, VarId};

use super::{Choices, Pass, fresh, moved_domain, overflow, shift_form};
use crate::names::Names;

/// How an input is read, and who reads it so, where.
type Pattern = (Vec<Form>, Vec<(VarId, Cond)>);

impl Pass {
    pub(super) fn forward(&mut self, choices: &Choices) -> Result<(), Vec<Diagnostic>> {
        for (input, along, span) in &choices.forward {
            self.forward_one(*input, along, *span)
                .map_err(|d| vec![d])?;
        }
        Ok(())
    }

    fn forward_one(
        &mut self,
        input: InputId,
        along: &[NameExpr],
        span: Span,
    ) -> Result<(), Diagnostic> {
        let names = Names::of_system(&self.system);
        let dims = self.system.dim_names();
        let declared = self.system.inputs[input.index()].clone();
        // The iterator of a batch may be left out: nothing travels along it.
        let missing = dims.len().saturating_sub(along.len());
        if along.len() > dims.len() || (missing > 0 && missing != usize::from(self.batched)) {
            return Err(Diagnostic::new(
                &codes::WRONG_DIRECTION,
                span,
                format!(
                    "the direction has {} components, the index space ({}) has {}",
                    along.len(),
                    dims.join(", "),
                    dims.len()
                ),
            )
            .help("give one component for each iterator, those of sums last"));
        }
        let mut e = vec![Poly::zero(); missing];
        for component in along {
            let form = names.form(component)?;
            let Some(poly) = form.as_poly() else {
                return Err(Diagnostic::new(
                    &codes::WRONG_DIRECTION,
                    component.span,
                    "a direction is made of constants and parameters",
                ));
            };
            e.push(poly.clone());
        }
        if e.iter().all(Poly::is_zero) {
            return Err(Diagnostic::new(
                &codes::WRONG_DIRECTION,
                span,
                "a value can not be forwarded along the zero vector",
            )
            .help("choose e with A·e = 0 and e ≠ 0, where A is the access of the input"));
        }
        let identity = self.system.identity_index();
        // One travelling variable for every pattern of access.
        let mut patterns: Vec<Pattern> = Vec::new();
        for n in 0..self.system.vars.len() {
            let domain = self.system.var_domain(VarId::from(n));
            reads_of(
                &self.system.vars[n].body,
                input,
                &domain,
                &mut |index, when| {
                    let found = patterns.iter_mut().find(|(p, _)| p == index);
                    match found {
                        Some((_, readers)) => readers.push((VarId::from(n), when)),
                        None => patterns.push((index.clone(), vec![(VarId::from(n), when)])),
                    }
                },
            );
        }
        if patterns.is_empty() {
            return Err(Diagnostic::new(
                &codes::WRONG_DIRECTION,
                span,
                format!(
                    "`{}` is not read at iterators by any equation",
                    declared.name
                ),
            ));
        }
        for (index, readers) in patterns {
            for form in &index {
                let there = shift_form(form, &e).map_err(|o| overflow(o, span))?;
                if there != *form {
                    let params = self.system.param_names();
                    let shown: Vec<String> = index
                        .iter()
                        .map(|f| f.display(&params, &dims).to_string())
                        .collect();
                    let moved: Vec<String> = index
                        .iter()
                        .map(|f| {
                            shift_form(f, &e).map_or_else(
                                |_| "?".into(),
                                |f| f.display(&params, &dims).to_string(),
                            )
                        })
                        .collect();
                    return Err(Diagnostic::new(
                        &codes::WRONG_DIRECTION,
                        span,
                        format!(
                            "`{name}[{}]` is another element at z - e, `{name}[{}]`: it can not be forwarded along this e",
                            shown.join(", "),
                            moved.join(", "),
                            name = declared.name,
                        ),
                    )
                    .help("choose e with A·e = 0, where A is the access of the input"));
                }
            }
            // Where it lives: the union of the readers' points.
            let on: Vec<Cond> = readers.iter().map(|(_, when)| when.clone()).collect();
            let on = if on.len() == 1 {
                on.into_iter().next().unwrap_or(Cond::TRUE)
            } else {
                Cond::Or(on)
            };
            let id = VarId::from(self.system.vars.len());
            let taken = |name: &str| {
                self.system.vars.iter().any(|v| v.name == name)
                    || self.system.inputs.iter().any(|v| v.name == name)
                    || dims.iter().any(|d| d == name)
                    || self.system.params.iter().any(|p| p.name == name)
            };
            let upper = declared.name.to_uppercase();
            let name = if taken(&upper) {
                fresh(&format!("{}_fwd", declared.name), taken)
            } else {
                upper
            };
            let domain = self.system.domain_cond();
            let inside = moved_domain(&domain.clone().and(without(&on, &domain)), &e)
                .map_err(|o| overflow(o, span))?;
            let body = Expr::guard(
                inside,
                Expr::Var {
                    var: id,
                    index: shifted(&identity, &e),
                    span,
                },
                Expr::Input {
                    input,
                    index: index.clone(),
                    span,
                },
            );
            let rest = without(&on, &domain);
            self.system.vars.push(Var {
                name,
                ty: Type::Scalar(declared.ty),
                law: Law::Fixed,
                on: if rest == Cond::TRUE {
                    vec![]
                } else {
                    vec![rest]
                },
                body,
                span,
            });
            for (reader, _) in readers {
                let body = &self.system.vars[reader.index()].body;
                let replaced = map_expr::<std::convert::Infallible>(body, &mut |e| {
                    Ok(match e {
                        Expr::Input {
                            input: i,
                            index: ref at,
                            span,
                        } if i == input && *at == index => Expr::Var {
                            var: id,
                            index: identity.clone(),
                            span,
                        },
                        other => other,
                    })
                });
                let Ok(replaced) = replaced;
                self.system.vars[reader.index()].body = replaced;
            }
        }
        Ok(())
    }
}

/// The parts of a conjunction that another conjunction does not already say.
fn without(cond: &Cond, known: &Cond) -> Cond {
    let known: Vec<&Cond> = match known {
        Cond::And(parts) => parts.iter().collect(),
        other => vec![other],
    };
    match cond {
        Cond::And(parts) => parts
            .iter()
            .filter(|p| !known.contains(p))
            .cloned()
            .fold(Cond::TRUE, Cond::and),
        other if known.contains(&other) => Cond::TRUE,
        other => other.clone(),
    }
}

fn reads_of(expr: &Expr, input: InputId, when: &Cond, f: &mut impl FnMut(&Vec<Form>, Cond)) {
    match expr {
        Expr::Input {
            input: i, index, ..
        } if *i == input => f(index, when.clone()),
        Expr::Guard {
            cond,
            then,
            otherwise,
        } => {
            reads_of(then, input, &when.clone().and(cond.clone()), f);
            if let Some(otherwise) = otherwise {
                reads_of(
                    otherwise,
                    input,
                    &when.clone().and(cond.clone().negate()),
                    f,
                );
            }
        }
        other => {
            for child in systola_ir::system::visit::children(other) {
                reads_of(child, input, when, f);
            }
        }
    }
}
