//! Is there an order in which the values can be computed?
//!
//! The reduced dependence graph has a vertex for each variable and an edge for each dependence, weighted
//! with its distance. On domains that are large enough, a value depends on itself exactly if the graph
//! has a closed walk of total distance zero. Karp, Miller and Winograd (1967) decide that: within a
//! strongly connected component take the edges that lie on circulations of total distance zero; if they
//! hang together, there is such a walk; else look at their components alone.
//!
//! Guards can keep a walk of the graph from ever happening. So a refusal is confirmed: first on the graph
//! whose vertices are the pieces of the variables' domains on which the same guards hold, then on the
//! points themselves at a few sizes. A distance in the parameters is put into numbers at such sizes.

mod points;
mod simplex;

use affine::Set;
use systola_ir::codes::{limits, system as codes};
use systola_ir::diag::Diagnostic;
use systola_ir::form::{Cond, Form, Poly};
use systola_ir::id::VarId;
use systola_ir::sets::{SetError, context_set, lin_poly, set_of, system_space};
use systola_ir::span::Span;
use systola_ir::system::visit::walk;
use systola_ir::system::{Expr, System, shifted};

use crate::dependences::{Dependence, dependences};
use points::{PointCycle, cycle_at};
use simplex::nonnegative_solution;

/// What keeps the system from having a schedule; empty if nothing does. The references must be uniform.
pub fn schedulable(system: &System, sizes: Option<&[i128]>) -> Result<Vec<Diagnostic>, SetError> {
    let Ok(mut edges) = dependences(system) else {
        return Ok(Vec::new());
    };
    edges.extend(prefix_steps(system));
    let constant = edges
        .iter()
        .all(|edge| edge.distance.iter().all(|e| e.as_constant().is_some()));
    let samples = samples(system, &edges, sizes)?;
    if constant {
        // Any sizes will do: they do not occur.
        let weights = weights(&edges, &[])?;
        let Some(walk) = closed_walk(&coarse(system, &edges, &weights))? else {
            return Ok(Vec::new());
        };
        if finely_computable(system, &edges, &weights)? {
            return Ok(Vec::new());
        }
        for params in &samples {
            if let Some(cycle) = cycle_at(system, &edges, params)? {
                return Ok(vec![refusal(system, &edges, params, &cycle)]);
            }
        }
        return Ok(vec![doubt(system, &edges, &walk)]);
    }
    for params in &samples {
        let weights = weights(&edges, params)?;
        if closed_walk(&coarse(system, &edges, &weights))?.is_some()
            && let Some(cycle) = cycle_at(system, &edges, params)?
        {
            return Ok(vec![refusal(system, &edges, params, &cycle)]);
        }
    }
    Ok(Vec::new())
}

/// A `scan` depends on itself one step back.
fn prefix_steps(system: &System) -> Vec<Dependence> {
    let mut steps = Vec::new();
    for (n, var) in system.vars.iter().enumerate() {
        walk(&var.body, &mut |expr| {
            if let Expr::Scan { dim, span, .. } = expr {
                let unit = |d: usize| Poly::constant(i128::from(d == dim.index()));
                steps.push(Dependence {
                    sink: VarId::from(n),
                    source: VarId::from(n),
                    distance: (0..system.dims.len()).map(unit).collect(),
                    when: Cond::TRUE,
                    window: false,
                    span: *span,
                });
            }
        });
    }
    steps
}

fn weights(edges: &[Dependence], params: &[i128]) -> Result<Vec<Vec<i128>>, SetError> {
    edges
        .iter()
        .map(|edge| {
            Ok(edge
                .distance
                .iter()
                .map(|e| e.eval(params))
                .collect::<Result<_, _>>()?)
        })
        .collect()
}

/// Sizes to try: the given ones, small ones, and those at which a cycle of
/// parametric distances adds up to zero.
fn samples(
    system: &System,
    edges: &[Dependence],
    sizes: Option<&[i128]>,
) -> Result<Vec<Vec<i128>>, SetError> {
    let context = match context_set(system) {
        Ok(context) => context,
        Err(SetError::NotAffine(_)) => Set::universe(affine::Space::new(system.params.len(), 0)),
        Err(error) => return Err(error),
    };
    let Some((least, _)) = context.sample()? else {
        return Ok(Vec::new());
    };
    let mut all: Vec<Vec<i128>> = sizes.into_iter().map(<[i128]>::to_vec).collect();
    for edge in edges.iter().filter(|edge| edge.sink == edge.source) {
        let zero = edge
            .distance
            .iter()
            .map(|e| Cond::cmp(systola_ir::form::Rel::Eq, Form::from(e.clone()), 0))
            .fold(system.context_cond(), Cond::and);
        if edge.distance.iter().all(|e| lin_poly(e).is_some())
            && let Ok(set) = set_of(&zero, affine::Space::new(system.params.len(), 0))
        {
            all.extend(set.sample()?.map(|(params, _)| params));
        }
    }
    for step in [2, 1, 3, 0, 5] {
        let larger: Vec<i128> = least.iter().map(|p| p + step).collect();
        let skewed: Vec<i128> = (0..).zip(&least).map(|(n, p)| p + step + n).collect();
        for params in [larger, skewed] {
            if !all.contains(&params) && system.context_cond().eval(&params, &[])? {
                all.push(params);
            }
        }
    }
    if all.is_empty() {
        all.push(least);
    }
    Ok(all)
}

/// A weighted graph; each edge knows the dependence it stands for.
struct Graph {
    n_vertices: usize,
    edges: Vec<Edge>,
}

#[derive(Clone)]
struct Edge {
    sink: usize,
    source: usize,
    weight: Vec<i128>,
    dependence: usize,
}

/// One vertex for each variable.
fn coarse(system: &System, dependences: &[Dependence], weights: &[Vec<i128>]) -> Graph {
    let edges = dependences.iter().zip(weights).enumerate();
    Graph {
        n_vertices: system.vars.len(),
        edges: edges
            .map(|(n, (dependence, weight))| Edge {
                sink: dependence.sink.index(),
                source: dependence.source.index(),
                weight: weight.clone(),
                dependence: n,
            })
            .collect(),
    }
}

/// More pieces than this are not distinguished.
const MAX_PIECES: usize = 64;

/// Is the graph of pieces with equal guards without a closed walk?
fn finely_computable(
    system: &System,
    dependences: &[Dependence],
    weights: &[Vec<i128>],
) -> Result<bool, SetError> {
    let space = system_space(system);
    let mut vertices: Vec<(VarId, Set)> = Vec::new();
    for n in 0..system.vars.len() {
        let var = VarId::from(n);
        let domain = system.context_cond().and(system.var_domain(var));
        let mut pieces = vec![set_of(&domain, space)?];
        let mut guards: Vec<&Cond> = Vec::new();
        for edge in dependences.iter().filter(|edge| edge.sink == var) {
            if edge.when != Cond::TRUE && !guards.contains(&&edge.when) {
                guards.push(&edge.when);
            }
        }
        for guard in guards {
            let holds = set_of(guard, space)?;
            let fails = set_of(&guard.clone().negate(), space)?;
            let mut finer = Vec::new();
            for piece in &pieces {
                for part in [piece.intersect(&holds)?, piece.intersect(&fails)?] {
                    if !part.is_empty()? {
                        finer.push(part);
                    }
                }
            }
            if finer.len() + vertices.len() > MAX_PIECES {
                return Ok(false);
            }
            pieces = finer;
        }
        vertices.extend(pieces.into_iter().map(|piece| (var, piece)));
    }
    let mut edges = Vec::new();
    for (n, (edge, weight)) in dependences.iter().zip(weights).enumerate() {
        let back = shifted(&system.identity_index(), &edge.distance);
        let map = systola_ir::sets::map_of(&back, space)?;
        let when = set_of(&edge.when, space)?;
        for (source, _) in vertices
            .iter()
            .enumerate()
            .filter(|(_, v)| v.0 == edge.source)
        {
            let from = vertices[source].1.preimage(&map)?.intersect(&when)?;
            for (sink, (var, piece)) in vertices.iter().enumerate() {
                if *var == edge.sink && !piece.is_disjoint(&from)? {
                    edges.push(Edge {
                        sink,
                        source,
                        weight: weight.clone(),
                        dependence: n,
                    });
                }
            }
        }
    }
    let graph = Graph {
        n_vertices: vertices.len(),
        edges,
    };
    Ok(closed_walk(&graph)?.is_none())
}

/// How often each dependence occurs in a closed walk of total distance zero, if there is one.
type Walk = Vec<(usize, i128)>;

fn closed_walk(graph: &Graph) -> Result<Option<Walk>, SetError> {
    for component in components(graph.n_vertices, &graph.edges) {
        let mut on_circulation = vec![0i128; component.len()];
        while let Some(circulation) = circulation(graph.n_vertices, &component, &on_circulation)? {
            for (total, times) in on_circulation.iter_mut().zip(circulation) {
                *total = total.checked_add(times).ok_or(affine::Error::Overflow)?;
            }
        }
        let kept: Vec<Edge> = component
            .iter()
            .zip(&on_circulation)
            .filter(|(_, times)| **times > 0)
            .map(|(edge, _)| edge.clone())
            .collect();
        // The edges of a circulation fall into strongly connected components.
        let n_parts = components(graph.n_vertices, &kept).len();
        if n_parts == 1 {
            let times = on_circulation.iter().filter(|times| **times > 0);
            return Ok(Some(
                kept.iter()
                    .map(|e| e.dependence)
                    .zip(times.copied())
                    .collect(),
            ));
        }
        if n_parts > 1 {
            let rest = Graph {
                n_vertices: graph.n_vertices,
                edges: kept,
            };
            if let Some(walk) = closed_walk(&rest)? {
                return Ok(Some(walk));
            }
        }
    }
    Ok(None)
}

/// A circulation of total distance zero that uses an edge which is not yet covered.
fn circulation(
    n_vertices: usize,
    edges: &[Edge],
    covered: &[i128],
) -> Result<Option<Vec<i128>>, SetError> {
    let n_dims = edges.first().map_or(0, |edge| edge.weight.len());
    let mut rows = Vec::new();
    for vertex in 0..n_vertices {
        if edges.iter().any(|e| e.sink == vertex || e.source == vertex) {
            let flow = |e: &Edge| i128::from(e.sink == vertex) - i128::from(e.source == vertex);
            rows.push((edges.iter().map(flow).collect(), 0));
        }
    }
    for dim in 0..n_dims {
        rows.push((edges.iter().map(|e| e.weight[dim]).collect(), 0));
    }
    let fresh = covered
        .iter()
        .map(|times| i128::from(*times == 0))
        .collect();
    rows.push((fresh, 1));
    Ok(nonnegative_solution(rows)?)
}

/// The edges of each strongly connected component that has any.
fn components(n_vertices: usize, edges: &[Edge]) -> Vec<Vec<Edge>> {
    let mut reach = vec![vec![false; n_vertices]; n_vertices];
    for edge in edges {
        reach[edge.sink][edge.source] = true;
    }
    for via in 0..n_vertices {
        let from_via = reach[via].clone();
        for row in reach.iter_mut().filter(|row| row[via]) {
            for (to, via_to) in row.iter_mut().zip(&from_via) {
                *to |= via_to;
            }
        }
    }
    let mut groups: Vec<(usize, Vec<Edge>)> = Vec::new();
    for edge in edges.iter().filter(|edge| reach[edge.source][edge.sink]) {
        let root = (0..n_vertices)
            .find(|v| *v == edge.sink || (reach[*v][edge.sink] && reach[edge.sink][*v]));
        let root = root.unwrap_or(edge.sink);
        match groups.iter_mut().find(|(vertex, _)| *vertex == root) {
            Some((_, list)) => list.push(edge.clone()),
            None => groups.push((root, vec![edge.clone()])),
        }
    }
    groups.into_iter().map(|(_, list)| list).collect()
}

fn distance_text(system: &System, edge: &Dependence) -> String {
    let names = system.param_names();
    let parts: Vec<String> = edge
        .distance
        .iter()
        .map(|e| e.display(&names).to_string())
        .collect();
    format!("({})", parts.join(", "))
}

fn refusal(
    system: &System,
    edges: &[Dependence],
    params: &[i128],
    cycle: &PointCycle,
) -> Diagnostic {
    let value = |(var, point): &(VarId, Vec<i128>)| {
        let name = &system.vars[var.index()].name;
        let parts: Vec<String> = point.iter().map(i128::to_string).collect();
        format!("{name}({})", parts.join(", "))
    };
    let mut chain = value(&cycle.values[0]);
    for (n, next) in cycle
        .values
        .iter()
        .skip(1)
        .chain(&cycle.values[..1])
        .enumerate()
    {
        chain.push_str(if n == 0 { " needs " } else { ", which needs " });
        chain.push_str(&value(next));
    }
    let sizes: Vec<String> = system
        .params
        .iter()
        .zip(params)
        .map(|(p, size)| format!("{} = {size}", p.name))
        .collect();
    let sizes = if sizes.is_empty() {
        String::new()
    } else {
        format!("with {} ", sizes.join(", "))
    };
    let first = &edges[cycle.edges[0]];
    let sum: Vec<String> = cycle
        .edges
        .iter()
        .map(|n| distance_text(system, &edges[*n]))
        .collect();
    let mut diagnostic = Diagnostic::new(
        &codes::NOT_COMPUTABLE,
        first.span,
        format!("{sizes}{chain}: no order can compute it"),
    )
    .note(format!("the distances {} add up to zero", sum.join(" + ")))
    .help("change one of the distances, or guard a reference so that the cycle is broken");
    let mut seen: Vec<Span> = vec![first.span];
    for n in &cycle.edges[1..] {
        let span = edges[*n].span;
        if !seen.iter().any(|s| s.range() == span.range()) {
            seen.push(span);
            diagnostic = diagnostic.also(span, "and this reference");
        }
    }
    diagnostic
}

fn doubt(system: &System, edges: &[Dependence], walk: &Walk) -> Diagnostic {
    let terms: Vec<String> = walk
        .iter()
        .map(|(n, times)| {
            let text = distance_text(system, &edges[*n]);
            if *times == 1 {
                text
            } else {
                format!("{times}·{text}")
            }
        })
        .collect();
    let span = walk.first().map_or(system.span, |(n, _)| edges[*n].span);
    Diagnostic::new(
        &limits::NOT_SHOWN_COMPUTABLE,
        span,
        format!(
            "the distances {} add up to zero; no order of the points was found",
            terms.join(" + ")
        ),
    )
    .help("give the sizes with `--set`, or split the variable by its guards")
}
