//! The first point of a set of offences, and its text for messages.

use affine::Set;
use systola_ir::diag::{Counterexample, MappedPoint};
use systola_ir::form::{Cond, Form, Overflow};
use systola_ir::sets::SetError;
use systola_ir::system::System;

/// Sizes, and a point at these sizes.
pub(crate) struct Witness {
    pub params: Vec<i128>,
    pub point: Vec<i128>,
}

impl Witness {
    /// The lexicographically first point at the smallest sizes for which there is a point.
    pub(crate) fn first(set: &Set) -> Result<Option<Witness>, SetError> {
        let mut first: Option<(Vec<i128>, Vec<i128>)> = None;
        for piece in set.pieces() {
            let sampled = Set::from(piece.clone()).sample()?;
            first = match (first, sampled) {
                (Some(before), Some(point)) => {
                    Some(if point.0 < before.0 { point } else { before })
                }
                (before, sampled) => before.or(sampled),
            };
        }
        let Some((params, sampled)) = first else {
            return Ok(None);
        };
        // A set without a lexicographic minimum still has a sample.
        let point = match set.lexmin_point(&params) {
            Ok(Some(point)) => point,
            Ok(None) | Err(_) => sampled,
        };
        Ok(Some(Witness { params, point }))
    }

    /// ` with C = 4, Q = 2`, or nothing in a system without parameters.
    pub(crate) fn sizes(&self, system: &System) -> String {
        if self.params.is_empty() {
            return String::new();
        }
        let parts: Vec<String> = system
            .params
            .iter()
            .zip(&self.params)
            .map(|(p, value)| format!("{} = {value}", p.name))
            .collect();
        format!(" with {}", parts.join(", "))
    }

    pub(crate) fn counterexample(
        &self,
        system: &System,
        names: &[String],
        points: Vec<Vec<i128>>,
    ) -> Counterexample {
        let params = system.params.iter().zip(&self.params);
        Counterexample {
            params: params.map(|(p, value)| (p.name.clone(), *value)).collect(),
            dims: names.to_vec(),
            points: points
                .into_iter()
                .map(|point| MappedPoint {
                    point,
                    place: Vec::new(),
                    time: Vec::new(),
                })
                .collect(),
        }
    }
}

/// `(c, q) = (3, 1)`, `c = 3`.
pub(crate) fn named_point(names: &[String], point: &[i128]) -> String {
    match (names, point) {
        ([name], [value]) => format!("{name} = {value}"),
        _ => format!("({}) = {}", names.join(", "), tuple(point)),
    }
}

/// `(3, 1)`.
pub(crate) fn tuple(point: &[i128]) -> String {
    format!("({})", list(point))
}

/// `3, 1`.
pub(crate) fn list(point: &[i128]) -> String {
    let parts: Vec<String> = point.iter().map(i128::to_string).collect();
    parts.join(", ")
}

/// Why a condition does not hold at a point: `4 is not < C`.
pub(crate) fn failure(
    system: &System,
    cond: &Cond,
    params: &[i128],
    point: &[i128],
) -> Result<String, Overflow> {
    let (names, dims) = (system.param_names(), system.dim_names());
    let fixed = |form: &Form| form.dims().is_empty();
    Ok(match cond {
        Cond::Cmp(rel, left, right) if fixed(left) != fixed(right) => {
            // The side with iterators comes first: a failure of `0 <= i` reads `-1 is not >= 0`.
            let (rel, left, right) = if fixed(left) {
                (mirrored(*rel), right, left)
            } else {
                (*rel, left, right)
            };
            format!(
                "{} is not {} {}",
                left.eval(params, point)?,
                rel.name(),
                right.display(&names, &dims)
            )
        }
        Cond::Const(_) | Cond::Cmp(..) | Cond::And(_) | Cond::Or(_) | Cond::Not(_) => {
            format!("`{}` does not hold there", cond.display(&names, &dims))
        }
    })
}

fn mirrored(rel: systola_ir::form::Rel) -> systola_ir::form::Rel {
    use systola_ir::form::Rel;
    match rel {
        Rel::Eq => Rel::Eq,
        Rel::Ne => Rel::Ne,
        Rel::Lt => Rel::Gt,
        Rel::Le => Rel::Ge,
        Rel::Gt => Rel::Lt,
        Rel::Ge => Rel::Le,
    }
}
