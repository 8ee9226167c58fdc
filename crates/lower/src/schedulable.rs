//! Is there an order in which the values can be computed?
//!
//! The reduced dependence graph has a vertex for each variable and an edge for each dependence,
//! weighted with its distance. On domains that are large enough, a value depends on itself exactly
//! if the graph has a closed walk of total distance zero. Karp, Miller and Winograd (1967) decide
//! that: within a strongly connected component take the edges that lie on circulations of total
//! distance zero. If they are connected, there is such a walk; otherwise examine each of their
//! components.
//!
//! Guards can make a walk of the graph impossible. So a refusal is confirmed: first on the graph
//! whose vertices are the pieces of the variables' domains on which the same guards hold, then on
//! the points themselves at a few sizes. A distance that depends on parameters is evaluated at such
//! sizes.

mod points;
mod simplex;

use std::collections::HashMap;
use std::ops::Range;

use affine::Set;
use systola_ir::codes::{limits, system as codes};
use systola_ir::diag::Diagnostic;
use systola_ir::form::{Cond, Form, Poly};
use systola_ir::id::VarId;
use systola_ir::sets::{SetError, context_set, lin_poly, set_of, system_space};
use systola_ir::span::Span;
use systola_ir::system::visit::walk;
use systola_ir::system::{Expr, System, shifted};

use crate::components::strong_components;
use crate::dependences::{Dependence, dependences};
pub(crate) use points::find_cycle;
use points::{PointCycle, cycle_at};
use simplex::nonnegative_solution;

/// The reasons why the system has no schedule; empty if there are none. The references must be
/// uniform.
pub fn schedulable(system: &System, sizes: Option<&[i128]>) -> Result<Vec<Diagnostic>, SetError> {
    let Some(mut edges) = dependences(system) else {
        return Ok(Vec::new());
    };
    edges.extend(prefix_steps(system));
    let constant = edges
        .iter()
        .all(|edge| edge.distance.iter().all(|e| e.as_constant().is_some()));
    let samples = samples(system, &edges, sizes)?;
    if constant {
        // Any sizes will do: the weights do not depend on them.
        let weights = weights(&edges, &[])?;
        let Some(walk) = closed_walk(&coarse(&edges, &weights))? else {
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
        if closed_walk(&coarse(&edges, &weights))?.is_some()
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

/// Sizes to try: the given ones, small ones, and those at which a cycle of parametric distances
/// adds up to zero.
fn samples(
    system: &System,
    edges: &[Dependence],
    sizes: Option<&[i128]>,
) -> Result<Vec<Vec<i128>>, SetError> {
    if least_sizes(system)?.is_none() {
        return Ok(Vec::new());
    }
    let mut all: Vec<Vec<i128>> = sizes.into_iter().map(<[i128]>::to_vec).collect();
    let never_zero = |e: &Poly| e.as_constant().is_some_and(|c| c != 0);
    for edge in edges.iter().filter(|edge| edge.sink == edge.source) {
        if edge.distance.iter().any(never_zero) {
            continue;
        }
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
    for params in small_sizes(system, None)? {
        if !all.contains(&params) {
            all.push(params);
        }
    }
    Ok(all)
}

/// Some sizes that the context admits.
fn least_sizes(system: &System) -> Result<Option<Vec<i128>>, SetError> {
    let context = match context_set(system) {
        Ok(context) => context,
        Err(SetError::NotAffine(_)) => Set::universe(affine::Space::new(system.params.len(), 0)),
        Err(error) => return Err(error),
    };
    Ok(context.sample()?.map(|(params, _)| params))
}

/// The given sizes, if there are any, and some small ones.
pub(crate) fn small_sizes(
    system: &System,
    sizes: Option<&[i128]>,
) -> Result<Vec<Vec<i128>>, SetError> {
    let Some(least) = least_sizes(system)? else {
        return Ok(Vec::new());
    };
    let mut all: Vec<Vec<i128>> = sizes.into_iter().map(<[i128]>::to_vec).collect();
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

/// An edge of a weighted graph, and the dependence it stands for.
#[derive(Clone)]
struct Edge {
    sink: usize,
    source: usize,
    weight: Vec<i128>,
    dependence: usize,
}

/// One vertex for each variable.
fn coarse(dependences: &[Dependence], weights: &[Vec<i128>]) -> Vec<Edge> {
    let edges = dependences.iter().zip(weights).enumerate();
    edges
        .map(|(n, (dependence, weight))| Edge {
            sink: dependence.sink.index(),
            source: dependence.source.index(),
            weight: weight.clone(),
            dependence: n,
        })
        .collect()
}

/// At most this many pieces are distinguished.
const MAX_PIECES: usize = 64;

/// Is the graph of pieces with equal guards without a closed walk?
fn finely_computable(
    system: &System,
    dependences: &[Dependence],
    weights: &[Vec<i128>],
) -> Result<bool, SetError> {
    let space = system_space(system);
    let mut read_by: Vec<Vec<&Dependence>> = vec![Vec::new(); system.vars.len()];
    for edge in dependences {
        read_by[edge.sink.index()].push(edge);
    }
    let mut vertices: Vec<Set> = Vec::new();
    // The vertices of each variable.
    let mut pieces_of: Vec<Range<usize>> = Vec::with_capacity(system.vars.len());
    for (n, edges) in read_by.iter().enumerate() {
        let var = VarId::from(n);
        let domain = system.context_cond().and(system.var_domain(var));
        let mut pieces = vec![set_of(&domain, space)?];
        let mut guards: Vec<&Cond> = Vec::new();
        for edge in edges {
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
        let first = vertices.len();
        vertices.extend(pieces);
        pieces_of.push(first..vertices.len());
    }
    let mut edges = Vec::new();
    for (n, (edge, weight)) in dependences.iter().zip(weights).enumerate() {
        let back = shifted(&system.identity_index(), &edge.distance);
        let map = systola_ir::sets::map_of(&back, space)?;
        let when = set_of(&edge.when, space)?;
        for source in pieces_of[edge.source.index()].clone() {
            let from = vertices[source].preimage(&map)?.intersect(&when)?;
            for sink in pieces_of[edge.sink.index()].clone() {
                if !vertices[sink].is_disjoint(&from)? {
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
    Ok(closed_walk(&edges)?.is_none())
}

/// How often each dependence occurs in a closed walk of total distance zero, if there is one.
type Walk = Vec<(usize, i128)>;

fn closed_walk(edges: &[Edge]) -> Result<Option<Walk>, SetError> {
    for component in balanced(edges) {
        let mut on_circulation = vec![0i128; component.len()];
        while let Some(circulation) = circulation(&component, &on_circulation)? {
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
        let n_parts = components(&kept).len();
        if n_parts == 1 {
            let times = on_circulation.iter().filter(|times| **times > 0);
            return Ok(Some(
                kept.iter()
                    .map(|e| e.dependence)
                    .zip(times.copied())
                    .collect(),
            ));
        }
        if n_parts > 1
            && let Some(walk) = closed_walk(&kept)?
        {
            return Ok(Some(walk));
        }
    }
    Ok(None)
}

/// The components without edges that are obviously on no circulation of total distance zero: along
/// some iterator all distances of the component have one sign, and theirs is not zero.
fn balanced(edges: &[Edge]) -> Vec<Vec<Edge>> {
    let mut open = components(edges);
    let mut done = Vec::new();
    open.reverse();
    while let Some(component) = open.pop() {
        let n_dims = component.first().map_or(0, |edge| edge.weight.len());
        let one_way = (0..n_dims).find(|dim| {
            let signs = |sign: i128| component.iter().any(|e| e.weight[*dim].signum() == sign);
            signs(1) != signs(-1)
        });
        let Some(dim) = one_way else {
            done.push(component);
            continue;
        };
        let level: Vec<Edge> = component
            .into_iter()
            .filter(|e| e.weight[dim] == 0)
            .collect();
        let finer = components(&level);
        open.extend(finer.into_iter().rev());
    }
    done
}

/// At most this many numbers in the equations of a circulation.
const MOST_NUMBERS: usize = 4_000_000;

/// A circulation of total distance zero that uses an edge which is not yet covered.
fn circulation(edges: &[Edge], covered: &[i128]) -> Result<Option<Vec<i128>>, SetError> {
    let n_dims = edges.first().map_or(0, |edge| edge.weight.len());
    let mut rows = Vec::new();
    let mut vertices: Vec<usize> = edges.iter().flat_map(|e| [e.sink, e.source]).collect();
    vertices.sort_unstable();
    vertices.dedup();
    if vertices.len().saturating_mul(edges.len()) > MOST_NUMBERS {
        let budget = MOST_NUMBERS as u64;
        return Err(affine::Error::TooComplex { budget }.into());
    }
    for vertex in vertices {
        let flow = |e: &Edge| i128::from(e.sink == vertex) - i128::from(e.source == vertex);
        rows.push((edges.iter().map(flow).collect(), 0));
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
fn components(edges: &[Edge]) -> Vec<Vec<Edge>> {
    // Numbers only the ends of these edges, which may be a few of a large graph.
    let mut number: HashMap<usize, usize> = HashMap::new();
    let mut ends = Vec::with_capacity(edges.len());
    for edge in edges {
        let mut of = |vertex: usize| {
            let next = number.len();
            *number.entry(vertex).or_insert(next)
        };
        ends.push((of(edge.sink), of(edge.source)));
    }
    let component = strong_components(number.len(), ends.iter().copied());
    let mut groups: Vec<Vec<Edge>> = Vec::new();
    let mut group_of: HashMap<usize, usize> = HashMap::new();
    for (edge, (sink, source)) in edges.iter().zip(ends) {
        if component[sink] == component[source] {
            let group = *group_of.entry(component[sink]).or_insert(groups.len());
            if group == groups.len() {
                groups.push(Vec::new());
            }
            groups[group].push(edge.clone());
        }
    }
    groups
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

/// `with N = 3, M = 2 `, or nothing in a system without parameters.
pub(crate) fn with_sizes(system: &System, params: &[i128]) -> String {
    let sizes: Vec<String> = system
        .params
        .iter()
        .zip(params)
        .map(|(p, size)| format!("{} = {size}", p.name))
        .collect();
    match sizes.is_empty() {
        true => String::new(),
        false => format!("with {} ", sizes.join(", ")),
    }
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
    let sizes = with_sizes(system, params);
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
