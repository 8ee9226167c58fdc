//! The Omega test: exact elimination of integer variables.
//!
//! Fourier-Motzkin elimination decides for the rationals: it combines each lower bound `b z >= L`
//! with each upper bound `a z <= U` to `b U >= a L`, the *real shadow*. There is certainly an
//! integer between two such bounds when `b U - a L >= (a-1)(b-1)`, the *dark shadow*. Where both
//! agree (always, if one of `a`, `b` is 1), the elimination is exact. Points between the two
//! shadows have `z` close to one of its bounds and are covered by *splinters*, copies of the system
//! with `b z = L + i` for a few small `i` (Pugh, "The Omega test", 1991).
//!
//! Equalities are solved first, by unimodular changes of variables. An existential variable that
//! cannot be eliminated stays in *div form*, as a function of the visible ones: `h q = e` (a
//! stride) or `q = floor(e / m)`.

use crate::error::Result;
use crate::int::{Int, add, floor_div, mul, nearest_quotient, neg, sub};
use crate::simplex::{self, Found};
use crate::system::{
    Budget, Pair, Row, Shadow, System, Verdict, combine, negate, negate_ge, normalize_eq,
    normalize_ge,
};

/// The number of relaxations tried before a system is splintered.
pub(crate) const SEARCH_NODES: usize = 8;

/// The step limit of a search that only serves to avoid longer work.
pub(crate) const SEARCH_STEPS: u64 = 100_000;

/// Are there enough inequalities for redundant ones to be removed after an elimination?
fn is_crowded(sys: &System) -> bool {
    sys.ges.len() > 12 + sys.n
}

/// Does no integer point satisfy the system?
pub(crate) fn is_empty(mut sys: System, budget: &mut Budget) -> Result<bool> {
    loop {
        if !sys.normalize(budget)? {
            return Ok(true);
        }
        if !sys.eqs.is_empty() {
            solve_one_equality(&mut sys, budget)?;
            continue;
        }
        if sys.ges.is_empty() {
            return Ok(false);
        }
        let occ = sys.occurrences();
        let mut dropped = false;
        for (v, o) in occ.iter().enumerate() {
            if o.is_used() && o.is_one_sided() {
                sys.drop_inequalities_of(v);
                dropped = true;
            }
        }
        if dropped {
            continue;
        }
        let unit = (0..sys.n)
            .filter(|&v| occ[v].is_used() && (occ[v].max_lower == 1 || occ[v].max_upper == 1))
            .min_by_key(|&v| occ[v].growth());
        if is_crowded(&sys) {
            // One tableau settles most systems, while finding redundant rows takes one for each
            // row.
            let quick = budget.try_within(SEARCH_STEPS, |budget| {
                simplex::search(&sys, SEARCH_NODES, budget)
            })?;
            if let Some(Found::Empty | Found::Point(_)) = quick {
                return Ok(matches!(quick, Some(Found::Empty)));
            }
            if !simplex::remove_redundant(&mut sys, |_| false, budget)? {
                return Ok(true);
            }
        }
        if let Some(v) = unit {
            sys.ges = sys.shadow(v, budget)?.into_real();
            continue;
        }
        let mut candidates: Vec<usize> = (0..sys.n).filter(|&v| occ[v].is_used()).collect();
        candidates.sort_by_key(|&v| occ[v].growth());
        let mut exact = None;
        for &v in &candidates {
            let shadow = sys.shadow(v, budget)?;
            if shadow.exact {
                exact = Some(shadow);
                break;
            }
        }
        if let Some(shadow) = exact {
            sys.ges = shadow.into_real();
            continue;
        }
        return is_empty_inexact(sys, &candidates, budget);
    }
}

fn is_empty_inexact(mut sys: System, candidates: &[usize], budget: &mut Budget) -> Result<bool> {
    match simplex::search(&sys, SEARCH_NODES, budget)? {
        Found::Empty => return Ok(true),
        Found::Point(_) => return Ok(false),
        Found::Open => {}
    }
    if sys.ges.len() > 8 {
        simplex::remove_redundant(&mut sys, |_| false, budget)?;
    }
    let Some((v, shadow)) = fewest_splinters(&sys, candidates, budget)? else {
        return Ok(false);
    };
    let with = |ges: Vec<Row>| System {
        n: sys.n,
        eqs: Vec::new(),
        ges,
    };
    if is_empty(with(shadow.real()), budget)? {
        return Ok(true);
    }
    if !is_empty(with(shadow.dark()), budget)? {
        return Ok(false);
    }
    let mut empty = true;
    each_splinter(&sys, v, &shadow, budget, &mut |s, budget| {
        empty = is_empty(s, budget)?;
        Ok(empty)
    })?;
    Ok(empty)
}

/// The variable whose elimination leaves the fewest splinters.
fn fewest_splinters(
    sys: &System,
    candidates: &[usize],
    budget: &mut Budget,
) -> Result<Option<(usize, Shadow)>> {
    let mut best: Option<(Int, usize, Shadow)> = None;
    for &v in candidates {
        let shadow = sys.shadow(v, budget)?;
        let mut count: Int = 0;
        for p in shadow.pairs.iter().filter(|p| !p.is_exact()) {
            count = add(count, add(last_splinter(sys, v, p)?.1, 1)?)?;
        }
        if best.as_ref().is_none_or(|b| count < b.0) {
            best = Some((count, v, shadow));
        }
    }
    Ok(best.map(|(_, v, shadow)| (v, shadow)))
}

/// Outside the dark shadow of a pair, `v` is within a few steps of its bounds. Returns the
/// inequality of the bound from which the steps are counted, and the last step.
fn last_splinter(sys: &System, v: usize, pair: &Pair) -> Result<(usize, Int)> {
    let b = sys.ges[pair.lower][v + 1];
    let a = neg(sys.ges[pair.upper][v + 1])?;
    let spread = sub(sub(mul(a, b)?, a)?, b)?;
    Ok(if a >= b {
        (pair.lower, floor_div(spread, a)?)
    } else {
        (pair.upper, floor_div(spread, b)?)
    })
}

/// Calls `visit` with systems that cover the points outside the dark shadow of `v`, and only those,
/// until it returns `false`. In each of them an equality holds `v` close to a bound.
fn each_splinter(
    sys: &System,
    v: usize,
    shadow: &Shadow,
    budget: &mut Budget,
    visit: &mut dyn FnMut(System, &mut Budget) -> Result<bool>,
) -> Result<()> {
    let mut inside: Vec<Row> = Vec::new();
    for pair in shadow.pairs.iter().filter(|p| !p.is_exact()) {
        let (bound, last) = last_splinter(sys, v, pair)?;
        let dark = pair.dark_row();
        let outside = negate_ge(&dark)?;
        let mut i = 0;
        while i <= last {
            let mut s = sys.clone();
            s.ges.push(outside.clone());
            s.ges.extend(inside.iter().cloned());
            let mut eq = sys.ges[bound].clone();
            eq[0] = sub(eq[0], i)?;
            s.eqs.push(eq);
            budget.spend(s.n_rows())?;
            if !visit(s, budget)? {
                return Ok(());
            }
            i += 1;
        }
        inside.push(dark);
    }
    Ok(())
}

fn solve_one_equality(sys: &mut System, budget: &mut Budget) -> Result<()> {
    for e in 0..sys.eqs.len() {
        if let Some(v) = (0..sys.n).find(|&v| matches!(sys.eqs[e][v + 1], 1 | -1)) {
            let row = sys.eqs.swap_remove(e);
            return sys.substitute(v, &row, budget);
        }
    }
    let vars: Vec<usize> = (0..sys.n).filter(|&v| sys.eqs[0][v + 1] != 0).collect();
    sys.euclid_step(0, &vars, budget)
}

/// The role of a variable during a projection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// Stays.
    Visible,
    /// To be eliminated.
    Free,
    /// Was to be eliminated, but stays as a function of visible variables and earlier kept ones.
    StorageMap,
    /// Gone: no row mentions it.
    Gone,
}

/// Eliminates all `Free` variables exactly. The union of the results is the projection; in each,
/// every variable that is not visible is determined by the visible ones.
pub(crate) fn project(
    sys: System,
    roles: Vec<Role>,
    budget: &mut Budget,
) -> Result<Vec<(System, Vec<Role>)>> {
    let mut done = Vec::new();
    let mut todo = vec![(sys, roles)];
    while let Some((sys, roles)) = todo.pop() {
        budget.spend(1 + sys.n_rows())?;
        project_one(sys, roles, &mut todo, &mut done, budget)?;
    }
    Ok(done)
}

fn project_one(
    mut sys: System,
    mut roles: Vec<Role>,
    todo: &mut Vec<(System, Vec<Role>)>,
    done: &mut Vec<(System, Vec<Role>)>,
    budget: &mut Budget,
) -> Result<()> {
    loop {
        if !sys.normalize(budget)? {
            return Ok(());
        }
        if solve_free_equality(&mut sys, &mut roles, budget)? {
            continue;
        }
        let occ = sys.occurrences();
        let mut dropped = false;
        for v in 0..sys.n {
            if roles[v] == Role::Free && occ[v].is_one_sided() {
                sys.drop_inequalities_of(v);
                roles[v] = Role::Gone;
                dropped = true;
            }
        }
        if dropped {
            continue;
        }
        let mut free: Vec<usize> = (0..sys.n).filter(|&v| roles[v] == Role::Free).collect();
        if free.is_empty() {
            done.push((sys, roles));
            return Ok(());
        }
        free.sort_by_key(|&v| {
            let unit = occ[v].max_lower == 1 || occ[v].max_upper == 1;
            (!unit, occ[v].growth())
        });
        if is_crowded(&sys) && !drop_redundant(&mut sys, &roles, budget)? {
            return Ok(());
        }
        let mut exact = None;
        for &v in &free {
            let shadow = sys.shadow(v, budget)?;
            if shadow.exact {
                exact = Some((v, shadow));
                break;
            }
        }
        if let Some((v, shadow)) = exact {
            sys.ges = shadow.into_real();
            roles[v] = Role::Gone;
            continue;
        }
        if is_empty(sys.clone(), budget)? {
            return Ok(());
        }
        let n_rows = sys.ges.len();
        drop_redundant(&mut sys, &roles, budget)?;
        if sys.ges.len() < n_rows {
            continue;
        }
        let lone = |v: usize| {
            sys.ges
                .iter()
                .filter(|r| r[v + 1] != 0)
                .all(|r| free.iter().all(|&w| w == v || r[w + 1] == 0))
        };
        if let Some(&v) = free
            .iter()
            .find(|&&v| lone(v) && matches!(floor_definition(&sys.ges, v), Ok(Some(_))))
        {
            roles[v] = Role::StorageMap;
            continue;
        }
        if let Some(&v) = free.iter().find(|&&v| lone(v)) {
            split_by_active_bound(&sys, &roles, v, todo)?;
            return Ok(());
        }
        let Some((v, shadow)) = fewest_splinters(&sys, &free, budget)? else {
            return Ok(());
        };
        each_splinter(&sys, v, &shadow, budget, &mut |s, _| {
            todo.push((s, roles.clone()));
            Ok(true)
        })?;
        sys.ges = shadow.dark();
        roles[v] = Role::Gone;
    }
}

fn drop_redundant(sys: &mut System, roles: &[Role], budget: &mut Budget) -> Result<bool> {
    let kept: Vec<usize> = (0..sys.n)
        .filter(|&v| roles[v] == Role::StorageMap)
        .collect();
    let needed = definition_rows(&sys.ges, &kept);
    simplex::remove_redundant(sys, |r| needed.contains(r), budget)
}

/// An integer lies between the bounds of `v` exactly when the smallest integer above one of the
/// lower bounds (or the largest below one of the upper bounds) satisfies all of them; each such
/// candidate is a function of the other variables.
fn split_by_active_bound(
    sys: &System,
    roles: &[Role],
    v: usize,
    todo: &mut Vec<(System, Vec<Role>)>,
) -> Result<()> {
    let lower = sys.ges.iter().filter(|r| r[v + 1] > 0).count();
    let upper = sys.ges.iter().filter(|r| r[v + 1] < 0).count();
    let sign = if lower <= upper { 1 } else { -1 };
    for r in sys.ges.iter().filter(|r| r[v + 1].signum() == sign) {
        let mut tight = negate(r)?;
        let c = r[v + 1].checked_abs().ok_or(crate::Error::Overflow)?;
        tight[0] = add(tight[0], c - 1)?;
        let mut s = sys.clone();
        s.ges.push(tight);
        let mut roles = roles.to_vec();
        if c > 1 {
            roles[v] = Role::StorageMap;
        }
        todo.push((s, roles));
    }
    Ok(())
}

/// Takes one step towards a form in which every free variable occurs in no equality, or only in its
/// own stride `h q + e = 0`. Returns whether anything changed.
///
/// As for Smith's normal form, the pivot is the smallest coefficient of a free variable in any
/// equality; remainders left in its row or column are smaller still, so this terminates.
fn solve_free_equality(sys: &mut System, roles: &mut [Role], budget: &mut Budget) -> Result<bool> {
    let free: Vec<usize> = (0..sys.n).filter(|&v| roles[v] == Role::Free).collect();
    let pivot = (0..sys.eqs.len())
        .flat_map(|e| free.iter().map(move |&v| (e, v)))
        .filter(|&(e, v)| sys.eqs[e][v + 1] != 0)
        .min_by_key(|&(e, v)| sys.eqs[e][v + 1].unsigned_abs());
    let Some((e, q)) = pivot else {
        return Ok(false);
    };
    if matches!(sys.eqs[e][q + 1], 1 | -1) {
        let row = sys.eqs.swap_remove(e);
        sys.substitute(q, &row, budget)?;
        roles[q] = Role::Gone;
        return Ok(true);
    }
    let vars: Vec<usize> = free
        .into_iter()
        .filter(|&v| sys.eqs[e][v + 1] != 0)
        .collect();
    if vars.len() > 1 {
        sys.euclid_step(e, &vars, budget)?;
        return Ok(true);
    }
    let mut alone = true;
    for o in 0..sys.eqs.len() {
        if o != e && sys.eqs[o][q + 1] != 0 {
            alone = false;
            let k = neg(nearest_quotient(sys.eqs[o][q + 1], sys.eqs[e][q + 1])?)?;
            sys.eqs[o] = combine(1, &sys.eqs[o], k, &sys.eqs[e])?;
            budget.spend(1)?;
        }
    }
    if alone {
        make_stride(sys, roles, e, q, budget)?;
    }
    Ok(true)
}

fn make_stride(
    sys: &mut System,
    roles: &mut [Role],
    e: usize,
    q: usize,
    budget: &mut Budget,
) -> Result<()> {
    if sys.eqs[e][q + 1] < 0 {
        sys.eqs[e] = negate(&sys.eqs[e])?;
    }
    let h = sys.eqs[e][q + 1];
    budget.spend(sys.n_rows())?;
    for i in 0..sys.ges.len() {
        let c = sys.ges[i][q + 1];
        if c != 0 {
            let g = crate::int::gcd(h, c)?;
            sys.ges[i] = combine(h / g, &sys.ges[i], neg(c / g)?, &sys.eqs[e])?;
        }
    }
    // The variable now occurs nowhere else, so it can absorb multiples of h.
    let row = &mut sys.eqs[e];
    for (i, c) in row.iter_mut().enumerate() {
        if i != q + 1 {
            let k = nearest_quotient(*c, h)?;
            *c = sub(*c, mul(k, h)?)?;
        }
    }
    roles[q] = Role::StorageMap;
    if let Verdict::Keep = normalize_eq(row)?
        && row[q + 1] == 1
    {
        sys.eqs.swap_remove(e);
        roles[q] = Role::Gone;
    }
    Ok(())
}

/// The pair `(e, m)` with `v = floor(e / m)` that follows from two of the inequalities, if there is
/// one: the row of `e` (in which `v` has coefficient 0) and the divisor.
pub(crate) fn floor_definition(ges: &[Row], v: usize) -> Result<Option<(Row, Int)>> {
    for u in ges.iter().filter(|r| r[v + 1] < 0) {
        if ges.iter().any(|l| leaves_one_integer(l, u, v)) {
            let mut e = u.clone();
            e[v + 1] = 0;
            return Ok(Some((e, neg(u[v + 1])?)));
        }
    }
    Ok(None)
}

/// Are the lower bound `l` and the upper bound `u` parallel and so close that at most one integer
/// `v` fits between them?
fn leaves_one_integer(l: &Row, u: &Row, v: usize) -> bool {
    l[v + 1] > 0
        && l[1..]
            .iter()
            .zip(&u[1..])
            .all(|(&x, &y)| x == y.wrapping_neg())
        && l[0].checked_add(u[0]).is_some_and(|width| width < l[v + 1])
}

/// The inequalities that determine one of the variables. They must not be dropped as redundant, or
/// the variable would have to be eliminated again.
pub(crate) fn definition_rows(ges: &[Row], vars: &[usize]) -> Vec<Row> {
    let mut rows = Vec::new();
    for &v in vars {
        for u in ges.iter().filter(|r| r[v + 1] < 0) {
            for l in ges.iter().filter(|l| leaves_one_integer(l, u, v)) {
                rows.push(u.clone());
                rows.push(l.clone());
            }
        }
    }
    rows
}

/// Removes columns without rows, and brings floors into a standard form so that equal ones are
/// merged.
pub(crate) fn tidy(
    mut sys: System,
    n_visible: usize,
    budget: &mut Budget,
) -> Result<Option<System>> {
    if !sys.normalize(budget)? {
        return Ok(None);
    }
    merge_equal_divs(&mut sys, n_visible, budget)?;
    if !sys.normalize(budget)? {
        return Ok(None);
    }
    compact(&mut sys, n_visible);
    fix_constants(&mut sys, n_visible, budget)?;
    Ok(Some(sys))
}

/// Drops the existential columns that no row mentions.
pub(crate) fn compact(sys: &mut System, n_visible: usize) {
    let used: Vec<bool> = (0..sys.n)
        .map(|v| v < n_visible || sys.rows().any(|r| r[v + 1] != 0))
        .collect();
    if used.iter().all(|&u| u) {
        return;
    }
    for r in sys.rows_mut() {
        let mut i = 0;
        r.retain(|_| {
            i += 1;
            i == 1 || used[i - 2]
        });
    }
    sys.n = used.iter().filter(|&&u| u).count();
}

fn merge_equal_divs(sys: &mut System, n_visible: usize, budget: &mut Budget) -> Result<()> {
    let mut seen: Vec<(usize, Row, Int)> = Vec::new();
    for q in n_visible..sys.n {
        if sys.eqs.iter().any(|r| r[q + 1] != 0) {
            continue;
        }
        let Some((mut e, m)) = floor_definition(&sys.ges, q)? else {
            continue;
        };
        // floor((e + m k x) / m) = floor(e / m) + k x: keep the coefficients of e close to zero,
        // and its constant within 0..m.
        let mut shift = vec![0; sys.n + 1];
        let mut any = false;
        for (i, (c, s)) in e.iter_mut().zip(&mut shift).enumerate() {
            *s = if i == 0 {
                floor_div(*c, m)?
            } else {
                nearest_quotient(*c, m)?
            };
            *c = sub(*c, mul(*s, m)?)?;
            any |= *s != 0;
        }
        budget.spend(sys.n_rows())?;
        if any {
            for r in sys.rows_mut() {
                let c = r[q + 1];
                if c != 0 {
                    for (x, &s) in r.iter_mut().zip(&shift) {
                        *x = add(*x, mul(c, s)?)?;
                    }
                }
            }
        }
        if let Some(row) = floor_by_stride(sys, n_visible, q, &e, m)? {
            sys.substitute(q, &row, budget)?;
        } else if let Some((twin, _, _)) = seen.iter().find(|(_, f, k)| *f == e && *k == m) {
            let mut row = vec![0; sys.n + 1];
            row[q + 1] = 1;
            row[*twin + 1] = -1;
            sys.substitute(q, &row, budget)?;
        } else {
            seen.push((q, e, m));
        }
    }
    Ok(())
}

/// Where a stride `h s + f = 0` implies that `m` divides `f`, floors of `f` plus a constant are
/// affine. Returns the equality for `q = floor(e / m)`, with coefficient 1 for `q`, if some stride
/// gives one.
fn floor_by_stride(
    sys: &System,
    n_visible: usize,
    q: usize,
    e: &Row,
    m: Int,
) -> Result<Option<Row>> {
    for f in &sys.eqs {
        let hidden: Vec<usize> = (n_visible..sys.n).filter(|&v| f[v + 1] != 0).collect();
        let [s] = hidden.as_slice() else { continue };
        if *s == q || f[s + 1] % m != 0 {
            continue;
        }
        for sign in [1, -1] {
            // e + sign * (h s + f): the same value as e, and without s a multiple of m except for
            // its constant.
            let sum = combine(1, e, sign, f)?;
            if sum[1..].iter().any(|c| c % m != 0) {
                continue;
            }
            let mut row = Vec::with_capacity(sum.len());
            for (i, &c) in sum.iter().enumerate() {
                let quotient = if i == 0 { floor_div(c, m)? } else { c / m };
                row.push(neg(quotient)?);
            }
            row[q + 1] = 1;
            return Ok(Some(row));
        }
    }
    Ok(None)
}

/// Replaces existentials that can take only one value by that value.
pub(crate) fn fix_constants(sys: &mut System, n_visible: usize, budget: &mut Budget) -> Result<()> {
    if sys.n == n_visible {
        return Ok(());
    }
    let unit = |q: usize, sign: Int| {
        let mut row = vec![0; sys.n + 1];
        row[q + 1] = sign;
        row
    };
    let rows: Vec<Row> = (n_visible..sys.n)
        .flat_map(|q| [unit(q, 1), unit(q, -1)])
        .collect();
    let Some(ends) = simplex::minima(sys, &rows, budget)? else {
        return Ok(());
    };
    let mut any = false;
    for (q, ends) in (n_visible..).zip(ends.chunks_exact(2)) {
        if let [Some(low), Some(high)] = *ends
            && low == neg(high)?
        {
            sys.fix(q, low)?;
            any = true;
        }
    }
    if any && sys.normalize(budget)? {
        compact(sys, n_visible);
    }
    Ok(())
}

/// The inequalities of the rational projection onto the columns in `keep`, tightened to integers
/// where that costs nothing. It contains the exact projection.
pub(crate) fn real_shadow(
    mut sys: System,
    keep: impl Fn(usize) -> bool,
    budget: &mut Budget,
) -> Result<Option<System>> {
    loop {
        if !sys.normalize(budget)? {
            return Ok(None);
        }
        let eq = sys.eqs.iter().enumerate().find_map(|(i, r)| {
            let v = (0..sys.n)
                .filter(|&v| !keep(v) && r[v + 1] != 0)
                .min_by_key(|&v| r[v + 1].unsigned_abs())?;
            Some((i, v))
        });
        if let Some((i, v)) = eq {
            let row = sys.eqs.swap_remove(i);
            let row = if row[v + 1] < 0 { negate(&row)? } else { row };
            let p = row[v + 1];
            budget.spend(sys.n_rows())?;
            for r in sys.rows_mut() {
                let c = r[v + 1];
                if c != 0 {
                    let g = crate::int::gcd(p, c)?;
                    *r = combine(p / g, r, neg(c / g)?, &row)?;
                }
            }
            // Scaled equalities may lose divisibility facts, but never gain false ones.
            for r in &mut sys.ges {
                if let Verdict::Never = normalize_ge(r)? {
                    return Ok(None);
                }
            }
            continue;
        }
        let occ = sys.occurrences();
        if is_crowded(&sys) && !simplex::remove_redundant(&mut sys, |_| false, budget)? {
            return Ok(None);
        }
        let next = (0..sys.n)
            .filter(|&v| !keep(v) && occ[v].is_used())
            .min_by_key(|&v| occ[v].growth());
        let Some(v) = next else {
            return Ok(Some(sys));
        };
        sys.ges = sys.shadow(v, budget)?.into_real();
    }
}
