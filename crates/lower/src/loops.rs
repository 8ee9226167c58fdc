//! The mapping of a system whose variables have iterators of their own: plain loops.
//!
//! The order in which [`check_system`](crate::check_system) proves that every value can be computed
//! is a time for each variable: phases, in which variables follow each other, and iterators, up or
//! down, in turn. As a mapping it is an alignment with the coordinates of these times, one after the
//! other. So a system runs in loops before anybody has written a mapping of it.

use systola_ir::form::Poly;
use systola_ir::mapping::{
    Directive, DirectiveKind, Mapping, Name, NameExpr, NameExprKind, NameOp, StorePlace, TimeLevel,
};
use systola_ir::system::System;
use systola_ir::{Span, VarId};

use crate::check_system::affine_order::{Coordinate, Level, times};

/// The loops of a system, as a mapping of this name; `None` if no order of its values was found.
pub fn loops(system: &System, name: &str) -> Option<Mapping> {
    let mut times = times(system).ok()??;
    for (n, time) in times.iter_mut().enumerate() {
        complete(system, VarId::from(n), time);
    }
    let depth = times.iter().map(Vec::len).max()?;
    let params = system.param_names();
    let mut columns = Vec::new();
    for at in 0..depth {
        let column = times
            .iter()
            .enumerate()
            .map(|(n, time)| match time.get(at) {
                None => NameExpr::int(0),
                Some(Coordinate::Phase(phase)) => NameExpr::int(*phase as i128),
                Some(Coordinate::Level(level)) => form(system, VarId::from(n), level, &params),
            });
        let column: Vec<NameExpr> = column.collect();
        // What is the same for all variables orders nothing.
        let texts: Vec<String> = column.iter().map(ToString::to_string).collect();
        let constant = texts
            .iter()
            .all(|t| *t == texts[0] && t.parse::<i128>().is_ok());
        if !constant {
            columns.push(column);
        }
    }
    let names: Vec<Name> = (0..columns.len())
        .map(|n| fresh(system, n).into())
        .collect();
    let mut directives = vec![DirectiveKind::Space {
        dims: names.clone(),
    }];
    for (n, var) in system.vars.iter().enumerate() {
        let dims = system.dims_of(VarId::from(n)).iter();
        directives.push(DirectiveKind::Align {
            var: var.name.clone().into(),
            dims: dims.map(|d| d.name.clone().into()).collect(),
            forms: columns.iter().map(|column| column[n].clone()).collect(),
        });
    }
    for var in &system.vars {
        directives.push(DirectiveKind::Store {
            var: var.name.clone().into(),
            place: StorePlace::Chosen,
        });
    }
    directives.push(DirectiveKind::Time {
        level: TimeLevel::Step,
        forms: names
            .iter()
            .map(|n| NameExpr::name(n.text.clone()))
            .collect(),
    });
    Some(Mapping {
        name: name.to_string(),
        system: system.name.clone(),
        directives: directives.into_iter().map(Directive::from).collect(),
        span: Span::NONE,
    })
}

/// Adds the iterators that order nothing: they tell the values apart.
fn complete(system: &System, var: VarId, time: &mut Vec<Coordinate>) {
    let used: Vec<usize> = time
        .iter()
        .filter_map(|c| match c {
            Coordinate::Phase(_) => None,
            Coordinate::Level(level) => Some(level.dim),
        })
        .collect();
    for dim in (0..system.arity(var)).filter(|d| !used.contains(d)) {
        if matches!(time.last(), None | Some(Coordinate::Level(_))) {
            time.push(Coordinate::Phase(0));
        }
        time.push(Coordinate::Level(Level {
            dim,
            down: false,
            offset: Poly::zero(),
        }));
    }
}

/// `i`, `-i + N - 1`.
fn form(system: &System, var: VarId, level: &Level, params: &[String]) -> NameExpr {
    let iterator = NameExpr::name(system.dims_of(var)[level.dim].name.clone());
    let mut form = match level.down {
        true => NameExprKind::Neg(Box::new(iterator)).into(),
        false => iterator,
    };
    for (monomial, factor) in level.offset.terms() {
        let mut term = NameExpr::int(factor.abs());
        for p in monomial {
            let param = NameExpr::name(params[p.index()].clone());
            term = NameExpr::binary(NameOp::Mul, term, param);
        }
        let op = if factor < 0 { NameOp::Sub } else { NameOp::Add };
        if factor != 0 {
            form = NameExpr::binary(op, form, term);
        }
    }
    form
}

/// A name for a coordinate that nothing else has.
fn fresh(system: &System, n: usize) -> String {
    let mut name = format!("t{n}");
    let names = system.param_names();
    while names.contains(&name) {
        name.push('_');
    }
    name
}
