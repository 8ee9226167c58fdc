//! Forwarded inputs: each access pattern gets a variable that travels.

use std::convert::Infallible;

use systola_ir::codes::mapping as codes;
use systola_ir::form::{Cond, Form, Poly};
use systola_ir::mapping::NameExpr;
use systola_ir::system::visit::map_expr;
use systola_ir::system::{Expr, Law, System, Var, shifted};
use systola_ir::{Diagnostic, InputId, Span, Type, VarId};

use super::{Choices, Forwarded, Pass, fresh, moved_domain, overflow, shift_form};
use crate::names::Names;

/// An input that travels by e from reader to reader.
struct Forward {
    input: InputId,
    e: Vec<Poly>,
    span: Span,
}

/// An access pattern of an input, and the variables that use it, each with its condition.
struct Pattern {
    index: Vec<Form>,
    readers: Vec<(VarId, Cond)>,
}

impl Pass {
    pub(super) fn forward(&mut self, choices: &Choices) -> Result<(), Vec<Diagnostic>> {
        for (what, along, span) in &choices.forward {
            let e = self.direction(along, *span).map_err(|d| vec![d])?;
            let done = match what {
                Forwarded::Input(input) => self.forward_one(*input, e, *span),
                Forwarded::Var(var) => self.forward_value(*var, &e, *span),
            };
            done.map_err(|d| vec![d])?;
        }
        Ok(())
    }

    fn forward_one(&mut self, input: InputId, e: Vec<Poly>, span: Span) -> Result<(), Diagnostic> {
        let forward = Forward { input, e, span };
        let patterns = patterns(&self.system, input);
        if patterns.is_empty() {
            let name = &self.system.inputs[input.index()].name;
            let why = format!("`{name}` is not read at iterators by any equation");
            return Err(wrong_direction(span, why));
        }
        for pattern in patterns {
            self.check_same_element(&forward, &pattern.index)?;
            let carrier = self.add_carrier(&forward, &pattern)?;
            self.read_carrier(input, &pattern, carrier);
        }
        Ok(())
    }

    /// The direction over the whole index space.
    fn direction(&self, along: &[NameExpr], span: Span) -> Result<Vec<Poly>, Diagnostic> {
        let names = Names::of_system(&self.system);
        let dims = self.system.dim_names();
        // The iterator of a batch may be omitted: nothing travels along it.
        let missing = dims.len().saturating_sub(along.len());
        if along.len() > dims.len() || (missing > 0 && missing != usize::from(self.batched)) {
            let why = format!(
                "the direction has {} components, the index space ({}) has {}",
                along.len(),
                dims.join(", "),
                dims.len()
            );
            return Err(wrong_direction(span, why)
                .help("give one component for each iterator, those of sums last"));
        }
        let mut e = vec![Poly::zero(); missing];
        for component in along {
            let form = names.form(component)?;
            let Some(poly) = form.as_poly() else {
                let why = "a direction is made of constants and parameters";
                return Err(wrong_direction(component.span, why));
            };
            e.push(poly.clone());
        }
        if e.iter().all(Poly::is_zero) {
            let why = "a value cannot be forwarded along the zero vector";
            return Err(wrong_direction(span, why)
                .help("choose e with A·e = 0 and e ≠ 0, where A is the access of the input"));
        }
        Ok(e)
    }

    /// The element that is read must be the same at z and z − e.
    fn check_same_element(&self, forward: &Forward, index: &[Form]) -> Result<(), Diagnostic> {
        let Forward { input, e, span } = forward;
        for form in index {
            let there = shift_form(form, e).map_err(|o| overflow(o, *span))?;
            if there == *form {
                continue;
            }
            let params = self.system.param_names();
            let dims = self.system.dim_names();
            let show = |f: &Form| f.display(&params, &dims).to_string();
            let shown: Vec<String> = index.iter().map(show).collect();
            let moved = index.iter().map(|f| shift_form(f, e));
            let moved: Vec<String> = moved
                .map(|f| f.map_or_else(|_| "?".into(), |f| show(&f)))
                .collect();
            let why = format!(
                "`{name}[{}]` is another element at z - e, `{name}[{}]`: it cannot be forwarded along this e",
                shown.join(", "),
                moved.join(", "),
                name = self.system.inputs[input.index()].name,
            );
            return Err(wrong_direction(*span, why)
                .help("choose e with A·e = 0, where A is the access of the input"));
        }
        Ok(())
    }

    /// Adds the variable that carries the element of one pattern from point to point along e.
    fn add_carrier(&mut self, forward: &Forward, pattern: &Pattern) -> Result<VarId, Diagnostic> {
        let Forward { input, e, span } = forward;
        let (input, span) = (*input, *span);
        // It lives on the union of the readers' points.
        let on = match pattern.readers.as_slice() {
            [(_, when)] => when.clone(),
            many => Cond::Or(many.iter().map(|(_, when)| when.clone()).collect()),
        };
        let domain = self.system.domain_cond();
        let rest = without(&on, &domain);
        let inside = moved_domain(&domain.and(rest.clone()), e).map_err(|o| overflow(o, span))?;
        let var = VarId::from(self.system.vars.len());
        let carried = Expr::Var {
            var,
            index: shifted(&self.system.identity_index(), e),
            span,
        };
        let entering = Expr::Input {
            input,
            index: pattern.index.clone(),
            span,
        };
        let carrier = Var {
            name: self.carrier_name(input),
            ty: Type::Scalar(self.system.inputs[input.index()].ty),
            law: Law::Fixed,
            own: None,
            on: Some(rest)
                .filter(|c| *c != Cond::TRUE)
                .into_iter()
                .collect(),
            body: Expr::guard(inside, carried, entering),
            span,
        };
        self.system.vars.push(carrier);
        Ok(var)
    }

    fn carrier_name(&self, input: InputId) -> String {
        let system = &self.system;
        let dims = system.dim_names();
        let taken = |name: &str| {
            system.vars.iter().any(|v| v.name == name)
                || system.inputs.iter().any(|v| v.name == name)
                || dims.iter().any(|d| d == name)
                || system.params.iter().any(|p| p.name == name)
        };
        let name = &system.inputs[input.index()].name;
        let upper = name.to_uppercase();
        if taken(&upper) {
            fresh(&format!("{name}_fwd"), taken)
        } else {
            upper
        }
    }

    /// Makes the readers of a pattern read its carrier at their own point.
    fn read_carrier(&mut self, input: InputId, pattern: &Pattern, carrier: VarId) {
        let identity = self.system.identity_index();
        for (reader, _) in &pattern.readers {
            let body = &mut self.system.vars[reader.index()].body;
            let Ok(replaced) = map_expr(body, &mut |e| {
                Ok::<_, Infallible>(match e {
                    Expr::Input {
                        input: i,
                        index,
                        span,
                    } if i == input && index == pattern.index => Expr::Var {
                        var: carrier,
                        index: identity.clone(),
                        span,
                    },
                    other => other,
                })
            });
            *body = replaced;
        }
    }
}

fn wrong_direction(span: Span, why: impl Into<String>) -> Diagnostic {
    Diagnostic::new(&codes::WRONG_DIRECTION, span, why)
}

/// The access patterns of an input, in the order in which they are found.
fn patterns(system: &System, input: InputId) -> Vec<Pattern> {
    let mut patterns: Vec<Pattern> = Vec::new();
    for (n, var) in system.vars.iter().enumerate() {
        let reader = VarId::from(n);
        let domain = system.var_domain(reader);
        reads_of(&var.body, input, &domain, &mut |index, when| match patterns
            .iter_mut()
            .find(|p| p.index == *index)
        {
            Some(pattern) => pattern.readers.push((reader, when)),
            None => patterns.push(Pattern {
                index: index.clone(),
                readers: vec![(reader, when)],
            }),
        });
    }
    patterns
}

/// The parts of a conjunction that a known conjunction does not contain.
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
