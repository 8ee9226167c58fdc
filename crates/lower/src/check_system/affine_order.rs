//! An order of the values of a system whose references are affine.
//!
//! Where the distance of a reference changes from point to point, the method of Karp, Miller and
//! Winograd does not apply. Instead a schedule is looked for, level by level (Feautrier 1992, Allen
//! and Kennedy 1987): within each strongly connected component of the references, one iterator of
//! each variable, or its negation, and an offset, such that no reference is to a greater sum of
//! both. References to smaller ones are then in order, and the others are looked at again on the
//! next level. If none is left, the values in the lexicographic order of these sums have all that
//! they need.
//!
//! Such a schedule need not exist, so a refusal shows a cycle of values at some small sizes. A
//! system with neither is in doubt.

use std::collections::HashMap;

use systola_ir::codes::{limits, system as codes};
use systola_ir::diag::Diagnostic;
use systola_ir::form::{Cond, Form, Poly, Rel};
use systola_ir::id::VarId;
use systola_ir::sets::SetError;
use systola_ir::system::System;

use super::view::{Frame, Read, Sink, Source, View};
use super::witness::tuple;
use crate::clock::interval;
use crate::components::strong_components;
use crate::decide::Decide;
use crate::dependences::reference;
use crate::schedulable::{find_cycle, small_sizes, with_sizes};

/// More choices of iterators than this are not tried on a level.
const MOST_CHOICES: usize = 4096;

/// More values than this are not examined at given sizes.
const MOST_VALUES: usize = 20_000;

/// Why no value can be computed, or why that is in doubt.
pub(super) fn affine_order(
    view: &View,
    sizes: Option<&[i128]>,
) -> Result<Option<Diagnostic>, SetError> {
    let edges = edges(view);
    let (_, open) = order(view, &edges)?;
    let Some(first) = open.first() else {
        return Ok(None);
    };
    for params in small_sizes(&view.system, sizes)? {
        if let Some(found) = cycle_at(view, &edges, &open, &params)? {
            return Ok(Some(found));
        }
    }
    let read = edges[*first].read;
    let text = reference(&view.around(read.sink), edges[*first].source, &read.written);
    Ok(Some(
        Diagnostic::new(
            &limits::NOT_SHOWN_COMPUTABLE,
            read.span,
            format!("no order of the points was found in which {text} is known where it is read"),
        )
        .help("give the sizes with `--set`, or split the variable by its guards"),
    ))
}

/// A reference between variables.
struct Edge<'a> {
    sink: VarId,
    source: VarId,
    read: &'a Read,
}

fn edges(view: &View) -> Vec<Edge<'_>> {
    let mut edges = Vec::new();
    for read in &view.reads {
        if let (Sink::Var(sink), Source::Var(source)) = (read.sink, read.source) {
            edges.push(Edge { sink, source, read });
        }
    }
    edges
}

/// An iterator of a variable, or its negation, and an offset.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Level {
    pub dim: usize,
    pub down: bool,
    pub offset: Poly,
}

/// A coordinate of the time of a variable.
#[derive(Clone)]
pub(crate) enum Coordinate {
    /// The variables that it reads on this level, and that do not read it, have smaller numbers.
    Phase(usize),
    Level(Level),
}

/// For each variable, a time in lexicographic order at which all that it reads is known; phases and
/// levels alternate. `None` if there is none.
pub(crate) fn times(system: &System) -> Result<Option<Vec<Vec<Coordinate>>>, SetError> {
    let view = View::new(system.clone())?;
    let (times, open) = order(&view, &edges(&view))?;
    Ok(open.is_empty().then_some(times))
}

/// The times of all variables, and the references that these do not put in order.
fn order(view: &View, edges: &[Edge<'_>]) -> Result<(Vec<Vec<Coordinate>>, Vec<usize>), SetError> {
    let mut search = Search {
        view,
        edges,
        known: HashMap::new(),
    };
    let vars: Vec<VarId> = (0..view.system.vars.len()).map(VarId::from).collect();
    let mut times = vec![Vec::new(); vars.len()];
    let open = search.order(&vars, (0..edges.len()).collect(), &mut times)?;
    Ok((times, open))
}

impl Level {
    fn of(&self, index: &[Form]) -> Form {
        let form = &index[self.dim];
        let form = match self.down {
            true => form.neg(),
            false => form.clone(),
        };
        form.add(&Form::from(self.offset.clone()))
    }
}

/// How a reference goes with the levels of its two variables.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Always to a smaller value.
    Earlier,
    /// Never to a greater one.
    NotLater,
    Later,
}

struct Search<'a> {
    view: &'a View,
    edges: &'a [Edge<'a>],
    known: HashMap<(usize, Level, Level), Step>,
}

impl Search<'_> {
    /// Adds the coordinates of some variables from a level on, for the references that are not in
    /// order yet. Returns those that no level puts in order.
    fn order(
        &mut self,
        vars: &[VarId],
        edges: Vec<usize>,
        times: &mut [Vec<Coordinate>],
    ) -> Result<Vec<usize>, SetError> {
        let ends = |n: &usize| (self.edges[*n].sink.index(), self.edges[*n].source.index());
        // A component has its number before those that reach it, which read its values.
        let component = strong_components(self.view.system.vars.len(), edges.iter().map(ends));
        let mut numbers: Vec<usize> = vars.iter().map(|v| component[v.index()]).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut open = Vec::new();
        for (phase, number) in numbers.iter().enumerate() {
            let own = |v: &&VarId| component[v.index()] == *number;
            let own: Vec<VarId> = vars.iter().filter(own).copied().collect();
            for var in &own {
                times[var.index()].push(Coordinate::Phase(phase));
            }
            let inner = |n: &&usize| {
                let (sink, source) = ends(n);
                component[sink] == *number && component[source] == *number
            };
            let group: Vec<usize> = edges.iter().filter(inner).copied().collect();
            if group.is_empty() {
                continue;
            }
            let Some(levels) = self.level(&group)? else {
                open.extend(group);
                continue;
            };
            for var in &own {
                times[var.index()].push(Coordinate::Level(levels[var].clone()));
            }
            let mut left = Vec::new();
            for n in group {
                let edge = &self.edges[n];
                let (sink, source) = (&levels[&edge.sink], &levels[&edge.source]);
                if self.step(n, sink, source)? != Step::Earlier {
                    left.push(n);
                }
            }
            open.extend(self.order(&own, left, times)?);
        }
        open.sort_unstable();
        Ok(open)
    }

    /// A level for each variable of a component that puts one of its references in order at least.
    fn level(&mut self, group: &[usize]) -> Result<Option<HashMap<VarId, Level>>, SetError> {
        let mut vars: Vec<VarId> = Vec::new();
        for n in group {
            for var in [self.edges[*n].sink, self.edges[*n].source] {
                if !vars.contains(&var) {
                    vars.push(var);
                }
            }
        }
        let mut left = MOST_CHOICES;
        self.choose(group, &vars, &mut Vec::new(), &mut left)
    }

    fn choose(
        &mut self,
        group: &[usize],
        vars: &[VarId],
        chosen: &mut Vec<Level>,
        left: &mut usize,
    ) -> Result<Option<HashMap<VarId, Level>>, SetError> {
        affine::cancel::check();
        let mut earlier = 0;
        for n in group {
            let edge = &self.edges[*n];
            let level_of = |var: VarId| chosen.get(vars.iter().position(|v| *v == var)?);
            if let (Some(sink), Some(source)) = (level_of(edge.sink), level_of(edge.source)) {
                match self.step(*n, sink, source)? {
                    Step::Later => return Ok(None),
                    Step::Earlier => earlier += 1,
                    Step::NotLater => {}
                }
            }
        }
        let Some(var) = vars.get(chosen.len()) else {
            let all = vars.iter().copied().zip(chosen.iter().cloned());
            return Ok((earlier > 0).then(|| all.collect()));
        };
        for level in self.levels(*var, vars[0], chosen.first()) {
            for offset in self.offsets(group, vars, chosen, &level)? {
                if *left == 0 {
                    return Ok(None);
                }
                *left -= 1;
                chosen.push(Level {
                    offset,
                    ..level.clone()
                });
                let found = self.choose(group, vars, chosen, left)?;
                chosen.pop();
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
        Ok(None)
    }

    /// Offsets of the next variable: none, and those at which the greatest value that a reference
    /// between it and a chosen variable reads is the reading one.
    fn offsets(
        &self,
        group: &[usize],
        vars: &[VarId],
        chosen: &[Level],
        level: &Level,
    ) -> Result<Vec<Poly>, SetError> {
        let mut offsets = vec![Poly::zero()];
        let next = vars[chosen.len()];
        for n in group {
            let Edge { sink, source, read } = &self.edges[*n];
            let other = match (*sink == next, *source == next) {
                (true, false) => source,
                (false, true) => sink,
                _ => continue,
            };
            let other = vars.iter().position(|v| v == other);
            let Some(other) = other.and_then(|n| chosen.get(n)) else {
                continue;
            };
            let system = self.view.around(read.sink);
            let here = system.identity_index();
            let (above, below) = match *sink == next {
                true => (other.of(&read.index), level.of(&here)),
                false => (level.of(&read.index), other.of(&here)),
            };
            let decide = Decide {
                n_params: system.params.len(),
                context: system.context_cond(),
            };
            let read = read.site.conds.iter().cloned().fold(Cond::TRUE, Cond::and);
            let Ok(Some((_, most))) = interval(&above.sub(&below), &read, &decide) else {
                continue;
            };
            let offset = match *sink == next {
                true => most,
                false => most.neg(),
            };
            if !offsets.contains(&offset) {
                offsets.push(offset);
            }
        }
        Ok(offsets)
    }

    /// The levels of a variable, first the one with the name and direction of what was chosen for
    /// the first variable.
    fn levels(&self, var: VarId, first: VarId, like: Option<&Level>) -> Vec<Level> {
        let system = &self.view.system;
        let dims = 0..system.arity(var);
        let mut all: Vec<Level> = dims
            .flat_map(|dim| {
                [false, true].map(|down| Level {
                    dim,
                    down,
                    offset: Poly::zero(),
                })
            })
            .collect();
        if let Some(like) = like {
            let name = &system.dims_of(first)[like.dim].name;
            let same = |l: &Level| system.dims_of(var)[l.dim].name == *name && l.down == like.down;
            all.sort_by_key(|level| !same(level));
        }
        all
    }

    fn step(&mut self, edge: usize, sink: &Level, source: &Level) -> Result<Step, SetError> {
        let key = (edge, sink.clone(), source.clone());
        if let Some(step) = self.known.get(&key) {
            return Ok(*step);
        }
        let Edge { read, .. } = &self.edges[edge];
        let system = self.view.around(read.sink);
        let frame = Frame::new(&system, &read.site.inner);
        let here = sink.of(&system.identity_index());
        let there = source.of(&read.index);
        let exists = |rel: Rel| {
            let mut conds = read.site.conds.clone();
            conds.push(Cond::cmp(rel, there.clone(), here.clone()));
            Ok::<_, SetError>(!frame.set(&conds)?.is_empty()?)
        };
        let step = if exists(Rel::Gt)? {
            Step::Later
        } else if exists(Rel::Eq)? {
            Step::NotLater
        } else {
            Step::Earlier
        };
        self.known.insert(key, step);
        Ok(step)
    }
}

/// A cycle of values at these sizes; also `None` if there are too many values to examine.
fn cycle_at(
    view: &View,
    edges: &[Edge<'_>],
    open: &[usize],
    params: &[i128],
) -> Result<Option<Diagnostic>, SetError> {
    let mut values: Vec<(VarId, Vec<i128>)> = Vec::new();
    let mut number: HashMap<(VarId, Vec<i128>), usize> = HashMap::new();
    let mut needs: Vec<Vec<(usize, usize)>> = Vec::new();
    let mut node = |value: (VarId, Vec<i128>), needs: &mut Vec<Vec<_>>| {
        *number.entry(value.clone()).or_insert_with(|| {
            values.push(value);
            needs.push(Vec::new());
            needs.len() - 1
        })
    };
    for n in open {
        let Edge { sink, source, read } = &edges[*n];
        let system = view.around(read.sink);
        let frame = Frame::new(&system, &read.site.inner);
        let Some(points) = points(&frame, &read.site.conds, params)? else {
            return Ok(None);
        };
        let n_ids = frame.dims.iter().map(|d| d.index() + 1).max().unwrap_or(0);
        for point in points {
            let mut by_id = vec![0; n_ids];
            for (d, value) in frame.dims.iter().zip(&point) {
                by_id[d.index()] = *value;
            }
            let index = read.index.iter().map(|form| form.eval(params, &by_id));
            let there = index.collect::<Result<Vec<_>, _>>()?;
            let here = point[..system.dims.len()].to_vec();
            let here = node((*sink, here), &mut needs);
            let there = node((*source, there), &mut needs);
            needs[here].push((*n, there));
            if needs.len() > MOST_VALUES {
                return Ok(None);
            }
        }
    }
    Ok(find_cycle(&needs).map(|mut cycle| {
        let first = (0..cycle.len()).min_by_key(|n| cycle[*n].0).unwrap_or(0);
        cycle.rotate_left(first);
        refusal(view, edges, &values, &cycle, params)
    }))
}

/// All points at which some conditions hold; `None` if there are too many.
fn points(
    frame: &Frame,
    conds: &[Cond],
    params: &[i128],
) -> Result<Option<Vec<Vec<i128>>>, SetError> {
    let at = |form: &Form| form.fix_params(&|p| params.get(p.index()).copied());
    let conds = conds.iter().map(|cond| cond.map(&at));
    let conds = conds.collect::<Result<Vec<_>, _>>()?;
    let set = frame.set(&conds)?;
    let mut points: Vec<Vec<i128>> = vec![Vec::new()];
    for column in 0..frame.dims.len() {
        let form = affine::LinExpr::var(params.len() + column);
        let (Some(low), Some(high)) = set.bounds(&form, params)? else {
            return Ok(Some(Vec::new()));
        };
        let n_values = usize::try_from(high.saturating_sub(low).saturating_add(1)).unwrap_or(0);
        if points.len().saturating_mul(n_values) > MOST_VALUES {
            return Ok(None);
        }
        let with = |point: &Vec<i128>, value| [point.as_slice(), &[value]].concat();
        points = points
            .iter()
            .flat_map(|point| (low..=high).map(move |value| with(point, value)))
            .collect();
    }
    let n_ids = frame.dims.iter().map(|d| d.index() + 1).max().unwrap_or(0);
    let mut inside = Vec::new();
    for point in points {
        let mut by_id = vec![0; n_ids];
        for (d, value) in frame.dims.iter().zip(&point) {
            by_id[d.index()] = *value;
        }
        let mut holds = true;
        for cond in &conds {
            holds &= cond.eval(params, &by_id)?;
        }
        if holds {
            inside.push(point);
        }
    }
    Ok(Some(inside))
}

fn refusal(
    view: &View,
    edges: &[Edge<'_>],
    values: &[(VarId, Vec<i128>)],
    cycle: &[(usize, usize)],
    params: &[i128],
) -> Diagnostic {
    const SHOWN: usize = 12;
    let system = &view.system;
    let text = |(var, point): &(VarId, Vec<i128>)| {
        format!("{}{}", system.vars[var.index()].name, tuple(point))
    };
    let mut chain = text(&values[cycle[0].0]);
    let rest = cycle.iter().skip(1).chain(&cycle[..1]);
    for (n, (value, _)) in rest.enumerate() {
        if n == SHOWN {
            chain.push_str(&format!(" and {} more", cycle.len() - SHOWN));
            break;
        }
        chain.push_str(if n == 0 { " needs " } else { ", which needs " });
        chain.push_str(&text(&values[*value]));
    }
    let sizes = with_sizes(system, params);
    let span = edges[cycle[0].1].read.span;
    let mut diagnostic = Diagnostic::new(
        &codes::NOT_COMPUTABLE,
        span,
        format!("{sizes}{chain}: no order can compute it"),
    )
    .help("guard a reference so that the cycle is broken");
    let mut seen = vec![span.range()];
    for (_, edge) in &cycle[1..] {
        let span = edges[*edge].read.span;
        if !seen.contains(&span.range()) {
            seen.push(span.range());
            diagnostic = diagnostic.also(span, "and this reference");
        }
    }
    diagnostic
}
