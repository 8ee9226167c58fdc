//! The designs of the literature: an allocation and a linear schedule, for every way to forward
//! inputs and every order of the sums.
//!
//! A schedule s is valid if s · e ≥ 1 for every dependence e; an allocation is given by the
//! direction d of points that share a PE, and s · d ≠ 0 gives these points different times. Arrays
//! that are mirrored or whose axes are permuted have the same d, so each is listed once.

use affine::{Int, Matrix};
use systola_ir::mapping::{
    Direction, DirectiveKind, Mapping, NameExpr, PlaceLevel, SumStage, TimeLevel,
};
use systola_rt::Deadline;

use super::axes::{Axes, Role};
use super::text::{Text, combination};
use super::tilings::permutations;

/// How an input is forwarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Localisation {
    Read,
    /// Along this direction, over all iterators.
    Forward(Vec<i128>),
}

/// The order of a sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Serialisation {
    /// Innermost first.
    Along(Vec<(usize, Direction)>),
    Tree,
}

/// One array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Design {
    /// One for each input that is read, by name.
    pub inputs: Vec<(String, Localisation)>,
    /// One for each sum, in the order of [`Axes::sums`].
    pub sums: Vec<Serialisation>,
    /// Rows of the allocation, over all iterators.
    pub allocation: Vec<Vec<i128>>,
    /// Lexicographic; one row, unless several directions are projected.
    pub schedule: Vec<Vec<i128>>,
}

/// All s with components from −bound to bound and s · e ≥ 1 for each e.
pub fn schedules(dependences: &[Vec<i128>], n: usize, bound: i128) -> Vec<Vec<i128>> {
    let all = vectors(n, bound).into_iter();
    all.filter(|s| is_valid(s, dependences)).collect()
}

/// All directions with components −1, 0, 1, each once whatever its sign.
pub fn projections(n: usize) -> Vec<Vec<i128>> {
    let first_positive = |d: &Vec<i128>| d.iter().find(|c| **c != 0) == Some(&1);
    vectors(n, 1).into_iter().filter(first_positive).collect()
}

/// Pairs of schedules and projections such that no two points of a PE have the same time.
pub fn pairs(dependences: &[Vec<i128>], n: usize, bound: i128) -> Vec<(Vec<i128>, Vec<i128>)> {
    let schedules = schedules(dependences, n, bound);
    let mut list = Vec::new();
    for d in projections(n) {
        let apart = schedules.iter().filter(|s| dot(s, &d) != 0);
        list.extend(apart.map(|s| (d.clone(), s.clone())));
    }
    list
}

/// n − 1 rows with small entries whose common kernel is d.
pub fn allocation(d: &[i128]) -> Vec<Vec<i128>> {
    let Some(pivot) = d.iter().position(|c| c.abs() == 1) else {
        return Vec::new();
    };
    let mut rows = Vec::new();
    for axis in (0..d.len()).filter(|a| *a != pivot) {
        let mut row = vec![0; d.len()];
        row[axis] = 1;
        row[pivot] = -d[axis] * d[pivot];
        rows.push(row);
    }
    rows
}

fn dot(a: &[i128], b: &[i128]) -> i128 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

pub fn vectors(n: usize, bound: i128) -> Vec<Vec<i128>> {
    let mut all = vec![Vec::new()];
    for _ in 0..n {
        let longer = all.iter().flat_map(|v: &Vec<i128>| {
            (-bound..=bound).map(move |c| {
                let mut v = v.clone();
                v.push(c);
                v
            })
        });
        all = longer.collect();
    }
    all
}

impl Design {
    /// The number of steps, where the iterators have these extents.
    pub fn steps(&self, extent: impl Fn(usize) -> i128) -> i128 {
        let along = |row: &Vec<i128>| -> i128 {
            let along = |(axis, c): (usize, &i128)| c.abs() * (extent(axis) - 1);
            row.iter().enumerate().map(along).sum()
        };
        self.schedule.iter().map(along).product()
    }
}

/// Every design over `inner`, some of the iterators; the others are parallel.
pub fn designs(axes: &Axes, inner: &[usize], bound: i128) -> Vec<Design> {
    let mut list = Vec::new();
    let limits = Limits {
        designs: usize::MAX,
        deadline: None,
    };
    visit(axes, inner, bound, &limits, &mut |design| list.push(design));
    list
}

/// The time of making a design, in units of the time of testing a schedule.
const TESTS_OF_A_DESIGN: usize = 16;

/// Limits of the enumeration: designs are exponentially many in the number of iterators, inputs and
/// sums.
pub struct Limits<'a> {
    /// The approximate maximum number,
    pub designs: usize,
    /// and the deadline.
    pub deadline: Option<&'a Deadline>,
}

/// Passes each design to a callback, and returns whether the enumeration was complete.
pub fn visit(
    axes: &Axes,
    inner: &[usize],
    bound: i128,
    limits: &Limits<'_>,
    each: &mut dyn FnMut(Design),
) -> bool {
    let most = limits.designs;
    let is_over = || limits.deadline.is_some_and(Deadline::is_over);
    let n = inner.len();
    let count = |bound: i128| (2 * bound as usize + 1).checked_pow(n as u32);
    let few = |bound: i128| count(bound).is_some_and(|n| n / TESTS_OF_A_DESIGN <= most);
    if !few(1) {
        return false;
    }
    let vectors = vectors(n, if few(bound) { bound } else { 1 });
    let directions = projections(n);
    let mut left = most;
    for inputs in localisations(axes, inner) {
        for sums in serialisations(axes) {
            if left == 0 || is_over() {
                return false;
            }
            left = left.saturating_sub(1 + vectors.len() / TESTS_OF_A_DESIGN);
            let Some(dependences) = dependences(axes, inner, &inputs, &sums) else {
                continue;
            };
            let valid: Vec<&Vec<i128>> = vectors
                .iter()
                .filter(|s| {
                    is_valid(s, &dependences) && tree_sums_in_one_step(axes, inner, &sums, s)
                })
                .collect();
            for d in &directions {
                for s in valid.iter().filter(|s| dot(s, d) != 0) {
                    if left == 0 {
                        return false;
                    }
                    left -= 1;
                    each(Design {
                        inputs: inputs.clone(),
                        sums: sums.clone(),
                        allocation: embed(axes, inner, &allocation(d)),
                        schedule: embed(axes, inner, &[(*s).clone()]),
                    });
                }
            }
            for design in lines(axes, inner, &inputs, &sums, &dependences) {
                left = left.saturating_sub(1);
                each(design);
            }
        }
    }
    few(bound)
}

fn is_valid(s: &[i128], dependences: &[Vec<i128>]) -> bool {
    dependences.iter().all(|e| dot(s, e) >= 1)
}

/// Are the terms of every tree sum available in one step?
fn tree_sums_in_one_step(axes: &Axes, inner: &[usize], sums: &[Serialisation], s: &[i128]) -> bool {
    let trees = axes.sums.iter().zip(sums);
    let mut trees = trees.filter(|(_, order)| **order == Serialisation::Tree);
    trees.all(|(sum, _)| {
        let steps = |axis: &usize| inner.iter().position(|a| a == axis).map_or(0, |n| s[n]);
        sum.axes.iter().all(|axis| steps(axis) == 0)
    })
}

/// Several projections: a linear array of PEs, and loops in time, the last of which is a schedule
/// of the rest.
fn lines(
    axes: &Axes,
    inner: &[usize],
    inputs: &[(String, Localisation)],
    sums: &[Serialisation],
    dependences: &[Vec<i128>],
) -> Vec<Design> {
    let n = inner.len();
    let mut list = Vec::new();
    if n != 3 {
        return list;
    }
    for row in projections(n).into_iter().filter(|r| weight(r) <= 2) {
        for outer in 0..n {
            let loop_row: Vec<i128> = (0..n).map(|k| i128::from(k == outer)).collect();
            if dependences.iter().any(|e| dot(&loop_row, e) < 0) {
                continue;
            }
            let carried = |e: &&Vec<i128>| dot(&loop_row, e) == 0;
            let rest: Vec<Vec<i128>> = dependences.iter().filter(carried).cloned().collect();
            for s in schedules(&rest, n, 1).into_iter().filter(|s| s[outer] == 0) {
                let rows: Vec<Vec<Int>> = vec![row.clone(), loop_row.clone(), s.clone()];
                let full = Matrix::from_rows(n, &rows).and_then(|m| m.determinant());
                let apart = full.is_ok_and(|d| d != 0);
                if apart
                    && [&loop_row, &s]
                        .iter()
                        .all(|row| tree_sums_in_one_step(axes, inner, sums, row))
                {
                    list.push(Design {
                        inputs: inputs.to_vec(),
                        sums: sums.to_vec(),
                        allocation: embed(axes, inner, std::slice::from_ref(&row)),
                        schedule: embed(axes, inner, &[loop_row.clone(), s]),
                    });
                }
            }
        }
    }
    list
}

fn weight(row: &[i128]) -> usize {
    row.iter().filter(|c| **c != 0).count()
}

/// Rows over some iterators as rows over all.
fn embed(axes: &Axes, inner: &[usize], rows: &[Vec<i128>]) -> Vec<Vec<i128>> {
    let embed = |row: &Vec<i128>| {
        let mut wide = vec![0; axes.list.len()];
        for (axis, c) in inner.iter().zip(row) {
            wide[*axis] = *c;
        }
        wide
    };
    rows.iter().map(embed).collect()
}

/// For every input: it is read, or forwarded along a direction of `inner` in which its address is
/// constant.
fn localisations(
    axes: &Axes,
    inner: &[usize],
) -> impl Iterator<Item = Vec<(String, Localisation)>> {
    let mut all = Vec::new();
    let mut done: Vec<&str> = Vec::new();
    for read in &axes.reads {
        if done.contains(&read.name.as_str()) {
            continue;
        }
        done.push(&read.name);
        let mut options = vec![Localisation::Read];
        // An input with several reads is forwarded if all of them agree.
        let same: Vec<_> = axes.reads.iter().filter(|r| r.name == read.name).collect();
        for direction in reuse(inner, &read.matrix) {
            for sign in [1, -1] {
                let e: Vec<i128> = direction.iter().map(|c| c * sign).collect();
                let e = embed(axes, inner, &[e]).remove(0);
                if same.iter().all(|r| r.ignores(&e)) && axes.sums.len() == 1 {
                    options.push(Localisation::Forward(e));
                }
            }
        }
        let named = options.into_iter().map(|o| (read.name.clone(), o));
        all.push(named.collect());
    }
    combinations(all)
}

/// One of every list, in all ways; the last list runs fastest.
fn combinations<T: Clone>(lists: Vec<Vec<T>>) -> impl Iterator<Item = Vec<T>> {
    let is_empty = lists.iter().any(Vec::is_empty);
    let mut at = (!is_empty).then(|| vec![0; lists.len()]);
    std::iter::from_fn(move || {
        let now = at.clone()?;
        at = (0..lists.len())
            .rev()
            .find(|n| now[*n] + 1 < lists[*n].len())
            .map(|n| {
                let mut next = now.clone();
                next[n] += 1;
                next[n + 1..].fill(0);
                next
            });
        let one = lists.iter().zip(&now).map(|(list, n)| list[*n].clone());
        Some(one.collect())
    })
}

/// Directions over `inner` in which an address is constant: a basis of them, and its small
/// combinations.
fn reuse(inner: &[usize], matrix: &[Vec<i128>]) -> Vec<Vec<i128>> {
    let own = |row: &Vec<i128>| -> Vec<Int> { inner.iter().map(|a| row[*a]).collect() };
    let rows: Vec<Vec<Int>> = matrix.iter().map(own).collect();
    let kernel = Matrix::from_rows(inner.len(), &rows).and_then(|m| m.kernel());
    let Ok(basis) = kernel else {
        return Vec::new();
    };
    let combine = |signs: Vec<i128>| -> Vec<i128> {
        let mut sum = vec![0; inner.len()];
        for (sign, vector) in signs.iter().zip(&basis) {
            for (sum, c) in sum.iter_mut().zip(vector) {
                *sum += sign * c;
            }
        }
        sum
    };
    projections(basis.len()).into_iter().map(combine).collect()
}

/// The maximum number of orders of one sum: those of four iterators.
const ORDERS: usize = 24;

fn serialisations(axes: &Axes) -> impl Iterator<Item = Vec<Serialisation>> {
    let mut all = Vec::new();
    for sum in &axes.sums {
        let mut options = Vec::new();
        for order in permutations(&sum.axes, ORDERS) {
            let directions = vectors(order.len(), 1).into_iter();
            for signs in directions.filter(|signs| signs.iter().all(|s| *s != 0)) {
                let along = order.iter().zip(signs).map(|(axis, sign)| {
                    let direction = if sign > 0 {
                        Direction::Up
                    } else {
                        Direction::Down
                    };
                    (*axis, direction)
                });
                options.push(Serialisation::Along(along.collect()));
            }
        }
        options.push(Serialisation::Tree);
        all.push(options);
    }
    combinations(all)
}

/// The distances over `inner` under these choices. None: there is a dependence along an iterator
/// outside of `inner`.
fn dependences(
    axes: &Axes,
    inner: &[usize],
    inputs: &[(String, Localisation)],
    sums: &[Serialisation],
) -> Option<Vec<Vec<i128>>> {
    let mut all: Vec<Vec<i128>> = Vec::new();
    for distance in &axes.distances {
        let mut e = distance.e.clone();
        e.resize(axes.list.len(), 0);
        all.push(e);
    }
    for (_, localisation) in inputs {
        if let Localisation::Forward(e) = localisation {
            all.push(e.clone());
        }
    }
    for sum in sums {
        if let Serialisation::Along(order) = sum {
            let mut back = vec![0; axes.list.len()];
            for (axis, direction) in order {
                let sign = match direction {
                    Direction::Up => 1,
                    Direction::Down => -1,
                };
                let mut e = back.clone();
                e[*axis] = sign;
                all.push(e);
                // When the next iterator advances, this one restarts.
                back[*axis] = sign * (1 - axes.extent(*axis));
            }
        }
    }
    let mut kept = Vec::new();
    for e in all {
        let own: Vec<i128> = inner.iter().map(|a| e[*a]).collect();
        let left_out = (0..e.len()).any(|a| e[a] != 0 && !inner.contains(&a));
        if left_out {
            return None;
        }
        if own.iter().any(|c| *c != 0) && !kept.contains(&own) {
            kept.push(own);
        }
    }
    Some(kept)
}

impl Design {
    /// `tile` tiles an iterator of the array by a size; iterators outside of the array are blocks.
    pub fn write(
        &self,
        axes: &Axes,
        tile: Option<(usize, i128)>,
        name: &str,
        system: &str,
        mut text: Text,
    ) -> Mapping {
        let inside = |axis: usize| {
            let rows = self.allocation.iter().chain(&self.schedule);
            rows.clone().any(|row| row[axis] != 0)
        };
        let mut blocks = Vec::new();
        let mut names: Vec<String> = axes.list.iter().map(|a| a.name.clone()).collect();
        for (axis, own) in axes.list.iter().enumerate() {
            if axes.is_unrolled(axis) {
                continue;
            }
            match tile {
                Some((cut, size)) if cut == axis => {
                    let (outer, inner) = text.tile(&own.name, size, true);
                    blocks.push(NameExpr::name(outer));
                    names[axis] = inner;
                }
                Some(_) | None if !inside(axis) => blocks.push(NameExpr::name(&own.name)),
                Some(_) | None => {}
            }
        }
        let form = |row: &Vec<i128>| {
            let names = names.iter().map(String::as_str);
            let terms: Vec<(i128, &str)> = row.iter().copied().zip(names).collect();
            combination(&terms)
        };
        text.place(PlaceLevel::Block, blocks);
        let lanes = self.allocation.iter().filter_map(form).collect();
        text.place(PlaceLevel::Lane, lanes);
        let time = self.schedule.iter().filter_map(form).collect();
        text.time(TimeLevel::Step, time);
        for (input, localisation) in &self.inputs {
            match localisation {
                Localisation::Read => text.line(DirectiveKind::Read {
                    input: input.as_str().into(),
                }),
                Localisation::Forward(e) => text.forward(input, e),
            }
        }
        for (sum, order) in axes.sums.iter().zip(&self.sums) {
            let stage = match order {
                Serialisation::Tree => SumStage::Tree(Vec::new()),
                Serialisation::Along(list) => {
                    let named = |(axis, direction): &(usize, Direction)| {
                        (axes.name(*axis).into(), *direction)
                    };
                    SumStage::Along(list.iter().map(named).collect())
                }
            };
            text.line(DirectiveKind::Sum {
                var: sum.var.as_str().into(),
                stages: vec![stage],
            });
        }
        text.finish(name, system)
    }

    /// The choices, in words.
    pub fn choices(&self, axes: &Axes) -> Vec<(&'static str, String)> {
        let form = |row: &Vec<i128>| {
            let names = axes.list.iter().map(|a| a.name.as_str());
            let terms: Vec<(i128, &str)> = row.iter().copied().zip(names).collect();
            combination(&terms).map_or("0".to_string(), |f| f.to_string())
        };
        let list = |rows: &[Vec<i128>]| -> String {
            let forms: Vec<String> = rows.iter().map(form).collect();
            forms.join(", ")
        };
        let forwarded: Vec<&str> = self
            .inputs
            .iter()
            .filter(|(_, l)| *l != Localisation::Read)
            .map(|(name, _)| name.as_str())
            .collect();
        vec![
            ("family", "designs".to_string()),
            ("lanes", list(&self.allocation)),
            ("steps", list(&self.schedule)),
            (
                "inputs",
                if forwarded.is_empty() {
                    "read".to_string()
                } else {
                    format!("{} forwarded", forwarded.join(", "))
                },
            ),
        ]
    }
}

/// The iterators of a linear array: the last parallel one and all of sums, or those of the
/// recurrence.
pub fn array_axes(axes: &Axes) -> Vec<usize> {
    let recurrent: Vec<usize> = axes.with_role(Role::Recurrent).collect();
    let reduced = axes.with_role(Role::Reduced);
    let reduced: Vec<usize> = reduced.filter(|a| !axes.is_unrolled(*a)).collect();
    let mut inner = recurrent;
    if inner.is_empty() {
        inner.extend(axes.with_role(Role::Parallel).last());
    }
    inner.extend(reduced);
    inner
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combinations_come_in_order() {
        let all: Vec<Vec<i32>> = combinations(vec![vec![1, 2], vec![3], vec![4, 5]]).collect();
        assert_eq!(all, [[1, 3, 4], [1, 3, 5], [2, 3, 4], [2, 3, 5]]);
        let none: Vec<Vec<i32>> = combinations(Vec::new()).collect();
        assert_eq!(none, [[0; 0]]);
        assert_eq!(combinations(vec![vec![1], Vec::new()]).count(), 0);
        // More than fit into memory.
        let many = combinations(vec![vec![0, 1]; 100]);
        assert_eq!(many.take(3).last().unwrap()[97..], [0, 1, 0]);
    }
}
