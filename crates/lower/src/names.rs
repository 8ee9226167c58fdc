//! What the names in a mapping mean: index expressions over names become forms.

use std::collections::{BTreeMap, BTreeSet};

use systola_ir::codes::{limits, mapping as codes};
use systola_ir::form::{Cond, Form, Rel};
use systola_ir::mapping::{NameCond, NameExpr, NameExprKind, NameOp};
use systola_ir::system::System;
use systola_ir::{Diagnostic, DimId, ParamId, Span};

/// Names for the lanes of the target in a mapping.
pub const LANES_NAMES: [&str; 2] = ["L", "lanes"];

/// The number of lanes before a target is chosen.
pub const LANES: i128 = 32;

/// The value to which a context fixes a parameter.
pub fn fixed_value(context: &[Cond], param: ParamId) -> Option<i128> {
    let symbol = Form::from(param);
    context.iter().find_map(|cond| match cond {
        Cond::Cmp(Rel::Eq, left, right) if *left == symbol => right.as_constant(),
        _ => None,
    })
}

/// Names in scope, each a form over the expanded domain.
#[derive(Clone, Debug, Default)]
pub struct Names {
    forms: BTreeMap<String, Form>,
    /// Names with a meaning elsewhere, for better messages.
    params: Vec<String>,
    /// Names of several iterators, of sums that cannot share one.
    ambiguous: BTreeSet<String>,
    /// Parameters whose name is also a name of the lanes of the target.
    lanes_too: BTreeSet<String>,
}

impl Names {
    /// The iterators and parameters of a system.
    pub fn of_system(system: &System) -> Names {
        Names::with_tiles(system, 0)
    }

    /// The same with `n_tiles` tile indices before the iterators.
    pub fn with_tiles(system: &System, n_tiles: usize) -> Names {
        let mut names = Names::default();
        for (n, dim) in system.dims.iter().enumerate() {
            if names.get(&dim.name).is_some() {
                names.ambiguous.insert(dim.name.clone());
            }
            names.define(&dim.name, Form::from(DimId::from(n_tiles + n)));
        }
        for (n, param) in system.params.iter().enumerate() {
            let id = ParamId::from(n);
            // A size that the context fixes is a number.
            let fixed = fixed_value(&system.context, id);
            names.define(&param.name, fixed.map_or(Form::from(id), Form::from));
            names.params.push(param.name.clone());
        }
        names
    }

    pub fn define(&mut self, name: &str, form: Form) {
        self.forms.insert(name.to_string(), form);
    }

    /// Defines the names of the lanes of the target. An iterator of such a name hides it; a
    /// parameter of that name makes it ambiguous.
    pub fn define_lanes(&mut self, lanes: i128) {
        for name in LANES_NAMES {
            if self.is_param(name) {
                self.lanes_too.insert(name.to_string());
            } else if self.get(name).is_none() {
                self.define(name, Form::from(lanes));
            }
        }
    }

    pub fn get(&self, name: &str) -> Option<&Form> {
        self.forms.get(name)
    }

    /// The size of a tile, a number.
    pub fn tile_size(&self, expr: &NameExpr) -> Result<i128, Diagnostic> {
        let form = self.form(expr)?;
        match (form.as_constant(), form.as_poly()) {
            (Some(c), _) if (1..=1 << 40).contains(&c) => Ok(c),
            (Some(c), _) => Err(Diagnostic::new(
                &codes::BAD_FACTOR,
                expr.span,
                format!("a tile of {c} points"),
            )
            .help("a tile has at least one point, and at most 2^40")),
            (None, Some(_)) => Err(Diagnostic::new(
                &limits::NEEDS_SIZES,
                expr.span,
                "a tile whose size is a parameter can be decided at given sizes only",
            )
            .help("give the sizes with --set, or a constant tile size")),
            (None, None) => Err(Diagnostic::new(
                &codes::BAD_FACTOR,
                expr.span,
                "a tile's size cannot depend on an iterator",
            )),
        }
    }

    /// The iterator or tile index that a form is.
    pub fn name_of(&self, form: &Form) -> Option<&str> {
        if form.as_poly().is_some() {
            return None;
        }
        let mut names = self.forms.iter();
        names.find_map(|(name, f)| (f == form).then_some(name.as_str()))
    }

    /// Refuses a name that means several iterators, or both a parameter and the lanes.
    pub fn unambiguous(&self, name: &str, span: Span) -> Result<&Names, Diagnostic> {
        if self.lanes_too.contains(name) {
            let free = ["lanes", "L"]
                .into_iter()
                .find(|n| !self.lanes_too.contains(*n));
            let lanes = free.map_or(String::new(), |n| {
                format!("write `{n}` for the lanes of the target; ")
            });
            return Err(Diagnostic::new(
                &codes::NAME_OF_LANES,
                span,
                format!("`{name}` is a parameter of the system and the lanes of the target"),
            )
            .help(format!(
                "{lanes}to use the parameter in a mapping, give it another name"
            )));
        }
        if !self.ambiguous.contains(name) {
            return Ok(self);
        }
        Err(Diagnostic::new(
            &codes::AMBIGUOUS_NAME,
            span,
            format!("`{name}` is the iterator of several sums that cannot share it"),
        )
        .help(format!(
            "sums share an iterator that has the same range and direction in all of them, where none needs \
             the result of another; call one of them something else than `{name}` in the system"
        )))
    }

    pub fn is_param(&self, name: &str) -> bool {
        self.params.iter().any(|p| p == name)
    }

    /// The form of an expression.
    pub fn form(&self, expr: &NameExpr) -> Result<Form, Diagnostic> {
        match &expr.kind {
            NameExprKind::Int(value) => Ok(Form::from(*value)),
            NameExprKind::Name(name) => self
                .unambiguous(name, expr.span)?
                .get(name)
                .cloned()
                .ok_or_else(|| {
                    let known: Vec<String> = self.forms.keys().map(|n| format!("`{n}`")).collect();
                    Diagnostic::new(
                        &codes::UNKNOWN_NAME,
                        expr.span,
                        format!("`{name}` is not an iterator, tile index or parameter here"),
                    )
                    .help(format!("in scope are {}", known.join(", ")))
                }),
            NameExprKind::Neg(inner) => Ok(self.form(inner)?.neg()),
            NameExprKind::Binary(op, left, right) => {
                let (a, b) = (self.form(left)?, self.form(right)?);
                match op {
                    NameOp::Add => Ok(a.add(&b)),
                    NameOp::Sub => Ok(a.sub(&b)),
                    NameOp::Mul => match a.mul(&b) {
                        Some(product) => {
                            product.map_err(|o| crate::localise::overflow(o, expr.span))
                        }
                        None => Err(Diagnostic::new(
                            &codes::NOT_AFFINE,
                            expr.span,
                            "two iterators are multiplied",
                        )
                        .help("places and times are sums of iterators with constants or parameters before them")),
                    },
                    NameOp::Div | NameOp::Mod => {
                        let divisor = self.divisor(&b, right.span)?;
                        Ok(if *op == NameOp::Div {
                            a.floor_div(divisor)
                        } else {
                            a.modulo(divisor)
                        })
                    }
                }
            }
        }
    }

    fn divisor(&self, form: &Form, span: Span) -> Result<i128, Diagnostic> {
        match (form.as_constant(), form.as_poly()) {
            (Some(c), _) if c > 0 => Ok(c),
            (Some(c), _) => Err(Diagnostic::new(
                &codes::BAD_DIVISOR,
                span,
                format!("a division by {c}: the divisor must be positive"),
            )
            .help("divide by a positive constant")),
            (None, Some(_)) => Err(Diagnostic::new(
                &limits::NEEDS_SIZES,
                span,
                "a division by a parameter can be decided at given sizes only",
            )
            .help("give the sizes with --set")),
            (None, None) => {
                Err(
                    Diagnostic::new(&codes::BAD_DIVISOR, span, "a division by an iterator")
                        .help("divide by a positive constant"),
                )
            }
        }
    }

    pub fn cond(&self, cond: &NameCond) -> Result<Cond, Diagnostic> {
        let all = |parts: &[NameCond]| {
            parts
                .iter()
                .map(|p| self.cond(p))
                .collect::<Result<Vec<_>, _>>()
        };
        Ok(match cond {
            NameCond::Cmp(rel, left, right) => Cond::Cmp(*rel, self.form(left)?, self.form(right)?),
            NameCond::And(parts) => Cond::And(all(parts)?),
            NameCond::Or(parts) => Cond::Or(all(parts)?),
            NameCond::Not(inner) => self.cond(inner)?.negate(),
        })
    }
}

/// The name of the shared array that holds windows of an input.
pub fn near(input: &str) -> String {
    format!("{input}_near")
}
