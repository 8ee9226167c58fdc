//! The order of the equations at one point.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use systola_ir::codes::{limits, system as codes};
use systola_ir::diag::Diagnostic;
use systola_ir::form::Cond;
use systola_ir::id::VarId;
use systola_ir::sets::{SetError, set_of, system_space};
use systola_ir::system::System;

use super::limitation;
use super::witness::{Witness, named_point};
use crate::components::strong_components;
use crate::dependences::{Dependence, dependences};

/// An order in which the equations of one point can be computed, as close to source order as
/// possible; for a system whose references are uniform.
pub fn body_order(system: &System) -> Result<Vec<VarId>, Box<Diagnostic>> {
    let all = dependences(system).unwrap_or_default();
    let here: Vec<&Dependence> = all
        .iter()
        .filter(|dependence| dependence.distance.iter().all(|e| e.is_zero()))
        .collect();
    let n_vars = system.vars.len();
    let mut missing = vec![0usize; n_vars];
    let mut sinks: Vec<Vec<usize>> = vec![Vec::new(); n_vars];
    for edge in &here {
        missing[edge.sink.index()] += 1;
        sinks[edge.source.index()].push(edge.sink.index());
    }
    // Among the equations that are ready, the one written first is next.
    let mut ready: BinaryHeap<Reverse<usize>> = (0..n_vars)
        .filter(|n| missing[*n] == 0)
        .map(Reverse)
        .collect();
    let mut order: Vec<VarId> = Vec::with_capacity(n_vars);
    while let Some(Reverse(var)) = ready.pop() {
        order.push(VarId::from(var));
        for sink in &sinks[var] {
            missing[*sink] -= 1;
            if missing[*sink] == 0 {
                ready.push(Reverse(*sink));
            }
        }
    }
    if order.len() == n_vars {
        return Ok(order);
    }
    // Equations behind a cycle are stuck too, but only edges within one component can be on a
    // cycle.
    let ends = |edge: &Dependence| (edge.sink.index(), edge.source.index());
    let component = strong_components(n_vars, here.iter().map(|edge| ends(edge)));
    let on_a_cycle = |edge: &&Dependence| {
        let (sink, source) = ends(edge);
        component[sink] == component[source]
    };
    let stuck: Vec<&Dependence> = here.into_iter().filter(on_a_cycle).collect();
    Err(Box::new(refusal(system, &stuck)))
}

/// At most this many cycles are examined.
const MAX_CYCLES: usize = 256;

/// At most this many steps are taken to find them.
const MAX_STEPS: usize = 100_000;

fn refusal(system: &System, edges: &[&Dependence]) -> Diagnostic {
    let cycles = cycles(edges);
    for cycle in &cycles {
        match common_point(system, cycle) {
            Ok(None) => {}
            Ok(Some(witness)) => return same_point_cycle(system, cycle, &witness),
            Err(error) => return limitation(system, cycle[0].span, &error),
        }
    }
    let span = cycles.first().map_or(system.span, |cycle| cycle[0].span);
    let names: Vec<String> = cycles
        .first()
        .into_iter()
        .flatten()
        .map(|edge| format!("`{}`", system.vars[edge.sink.index()].name))
        .collect();
    Diagnostic::new(
        &limits::POINTWISE_ORDER,
        span,
        format!(
            "the order of {} changes from point to point",
            names.join(", ")
        ),
    )
    .help("split the system, or one of the variables, by the condition")
}

/// The elementary cycles, each from its smallest variable.
fn cycles<'a>(edges: &[&'a Dependence]) -> Vec<Vec<&'a Dependence>> {
    fn extend<'a>(
        edges: &[&'a Dependence],
        path: &mut Vec<&'a Dependence>,
        found: &mut Vec<Vec<&'a Dependence>>,
        steps: &mut usize,
    ) {
        let (start, at) = (path[0].sink, path[path.len() - 1].source);
        if at == start {
            found.push(path.clone());
            return;
        }
        for edge in edges.iter().filter(|edge| edge.sink == at) {
            let fresh = edge.source >= start && path.iter().skip(1).all(|p| p.sink != edge.source);
            if fresh && edge.source != at && found.len() < MAX_CYCLES && *steps > 0 {
                *steps -= 1;
                path.push(edge);
                extend(edges, path, found, steps);
                path.pop();
            }
        }
    }
    let mut found = Vec::new();
    let mut steps = MAX_STEPS;
    for edge in edges.iter().filter(|edge| edge.source >= edge.sink) {
        if found.len() < MAX_CYCLES && steps > 0 {
            extend(edges, &mut vec![edge], &mut found, &mut steps);
        }
    }
    found
}

/// The first point at which all guards of a cycle hold.
fn common_point(system: &System, cycle: &[&Dependence]) -> Result<Option<Witness>, SetError> {
    let cond = cycle
        .iter()
        .map(|edge| system.var_domain(edge.sink).and(edge.when.clone()))
        .fold(system.context_cond(), Cond::and);
    Witness::first(&set_of(&cond, system_space(system))?)
}

fn same_point_cycle(system: &System, cycle: &[&Dependence], witness: &Witness) -> Diagnostic {
    let name = |var: VarId| &system.vars[var.index()].name;
    let names: Vec<String> = system.dims.iter().map(|d| d.name.clone()).collect();
    let mut chain = format!(
        "`{}` needs `{}`",
        name(cycle[0].sink),
        name(cycle[0].source)
    );
    for edge in &cycle[1..] {
        chain.push_str(&format!(", which needs `{}`", name(edge.source)));
    }
    let help = match names.split_last() {
        None => "let one of them be an input, or compute it from inputs alone".to_string(),
        Some((last, before)) => {
            let index: Vec<&str> = before.iter().map(String::as_str).collect();
            let earlier = format!("{last} - 1");
            let index = [index.as_slice(), &[earlier.as_str()]].concat().join(", ");
            let first = name(cycle[0].source);
            format!(
                "let one of them read the value of an earlier point, such as `{first}({index})`"
            )
        }
    };
    let place = named_point(&names, &witness.point);
    let mut diagnostic = Diagnostic::new(
        &codes::SAME_POINT_CYCLE,
        cycle[0].span,
        format!(
            "at {place}{} {chain} of the same point",
            witness.sizes(system)
        ),
    )
    .help(help);
    for edge in &cycle[1..] {
        diagnostic = diagnostic.also(
            edge.span,
            format!("`{}` reads `{}`", name(edge.sink), name(edge.source)),
        );
    }
    diagnostic.counterexample(witness.counterexample(system, &names, vec![witness.point.clone()]))
}
