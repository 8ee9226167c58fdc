//! Cycles among the values themselves, at given sizes.

use std::collections::HashMap;

use systola_ir::form::Cond;
use systola_ir::id::VarId;
use systola_ir::sets::{SetError, identity, set_of, system_space};
use systola_ir::system::System;

use crate::dependences::Dependence;

/// More values than this are not examined.
const MAX_VALUES: usize = 20_000;

/// A variable at a point.
pub(super) type Value = (VarId, Vec<i128>);

/// Each value needs the next one, and the last needs the first, by the dependence at the same
/// position.
pub(super) struct PointCycle {
    pub values: Vec<Value>,
    pub edges: Vec<usize>,
}

/// A cycle of values at these sizes; also `None` if there are too many values to examine.
pub(super) fn cycle_at(
    system: &System,
    edges: &[Dependence],
    params: &[i128],
) -> Result<Option<PointCycle>, SetError> {
    let Some(values) = values(system, params)? else {
        return Ok(None);
    };
    let position: HashMap<&Value, usize> = values
        .iter()
        .enumerate()
        .map(|(n, value)| (value, n))
        .collect();
    let mut needs: Vec<Vec<(usize, usize)>> = vec![Vec::new(); values.len()];
    for (e, edge) in edges.iter().enumerate() {
        let distance = edge
            .distance
            .iter()
            .map(|d| d.eval(params))
            .collect::<Result<Vec<_>, _>>()?;
        for (n, (var, point)) in values.iter().enumerate() {
            if *var == edge.sink && edge.when.eval(params, point)? {
                let back = point.iter().zip(&distance).map(|(z, e)| z - e).collect();
                if let Some(source) = position.get(&(edge.source, back)) {
                    needs[n].push((e, *source));
                }
            }
        }
    }
    Ok(find_cycle(&needs).map(|mut path| {
        let first = (0..path.len()).min_by_key(|n| path[*n].0).unwrap_or(0);
        path.rotate_left(first);
        PointCycle {
            values: path.iter().map(|(n, _)| values[*n].clone()).collect(),
            edges: path.into_iter().map(|(_, e)| e).collect(),
        }
    }))
}

/// All values, in lexicographic order of their points.
fn values(system: &System, params: &[i128]) -> Result<Option<Vec<Value>>, SetError> {
    let space = system_space(system);
    let at = |cond: &Cond| cond.map(&|f| f.fix_params(&|p| params.get(p.index()).copied()));
    let domain = system.domain_cond();
    let set = set_of(&at(&domain)?, space)?;
    let mut points: Vec<Vec<i128>> = vec![Vec::new()];
    for dim in &identity(space) {
        let (Some(low), Some(high)) = set.bounds(dim, params)? else {
            return Ok(None);
        };
        let n_values = usize::try_from(high.saturating_sub(low).saturating_add(1)).unwrap_or(0);
        if points.len().saturating_mul(n_values) > MAX_VALUES {
            return Ok(None);
        }
        points = points
            .iter()
            .flat_map(|point| {
                (low..=high).map(|value| {
                    let mut point = point.clone();
                    point.push(value);
                    point
                })
            })
            .collect();
    }
    let mut values = Vec::new();
    for point in points {
        if !domain.eval(params, &point)? {
            continue;
        }
        for (n, var) in system.vars.iter().enumerate() {
            let mut inside = true;
            for cond in &var.on {
                inside &= cond.eval(params, &point)?;
            }
            if inside {
                values.push((VarId::from(n), point.clone()));
            }
        }
    }
    Ok(Some(values))
}

/// The vertices of a cycle, each with the label of the edge to the next.
pub(crate) fn find_cycle(needs: &[Vec<(usize, usize)>]) -> Option<Vec<(usize, usize)>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; needs.len()];
    for start in 0..needs.len() {
        if marks[start] != Mark::New {
            continue;
        }
        marks[start] = Mark::Open;
        // Each open vertex with the number of its edges that have been followed.
        let mut stack: Vec<(usize, usize)> = vec![(start, 0)];
        while let Some((vertex, followed)) = stack.last_mut() {
            let Some(&(_, next)) = needs[*vertex].get(*followed) else {
                marks[*vertex] = Mark::Done;
                stack.pop();
                continue;
            };
            *followed += 1;
            match marks[next] {
                Mark::Done => {}
                Mark::New => {
                    marks[next] = Mark::Open;
                    stack.push((next, 0));
                }
                Mark::Open => {
                    let path = stack.iter().skip_while(|(v, _)| *v != next);
                    return Some(path.map(|(v, n)| (*v, needs[*v][n - 1].0)).collect());
                }
            }
        }
    }
    None
}
