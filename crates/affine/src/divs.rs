//! Existential variables in standard form.
//!
//! In *div form* every existential is a function of the point: a stride `h q = e` or a floor `q = floor(e / m)`. Such
//! a set can be negated constraint by constraint, scanned and counted. The rows that define a floor are recognised
//! by their shape, `0 <= e - m q <= k` with `k < m`, and need no bookkeeping.

use crate::error::Result;
use crate::int::{Int, add, floor_div, mul, nearest_quotient, neg, sub};
use crate::omega::{Role, solve_free_equality};
use crate::simplex::Tableau;
use crate::system::{Budget, Row, System, combine};

/// The pair `(e, m)` with `v = floor(e / m)` that follows from two of the inequalities, if there is one: the row of
/// `e` (in which `v` has coefficient 0) and the divisor.
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

/// Whether the lower bound `l` and the upper bound `u` are parallel and so close that at most one integer `v` fits.
fn leaves_one_integer(l: &Row, u: &Row, v: usize) -> bool {
    l[v + 1] > 0
        && l[1..]
            .iter()
            .zip(&u[1..])
            .all(|(&x, &y)| x == y.wrapping_neg())
        && l[0].checked_add(u[0]).is_some_and(|width| width < l[v + 1])
}

/// The inequalities that determine one of the variables: they must not be dropped as redundant, or the variable
/// would have to be eliminated anew.
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

/// Brings existentials into a standard form without splitting the system: equalities become strides of their own,
/// equal floors become one, what has only one value is replaced by it, and unused columns go.
pub(crate) fn tidy(
    mut sys: System,
    n_visible: usize,
    budget: &mut Budget,
) -> Result<Option<System>> {
    if !sys.normalize(budget)? {
        return Ok(None);
    }
    if sys.n == n_visible {
        return Ok(Some(sys));
    }
    let mut roles: Vec<Role> = (0..sys.n)
        .map(|v| {
            if v < n_visible {
                Role::Visible
            } else {
                Role::Free
            }
        })
        .collect();
    while solve_free_equality(&mut sys, &mut roles, budget)? {
        if !sys.normalize(budget)? {
            return Ok(None);
        }
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
        // floor((e + m k x) / m) = floor(e / m) + k x: keep the coefficients of e close to zero, its constant within
        // 0..m.
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

/// Where a stride `h s + f = 0` says that `m` divides `f`, floors of `f` plus a constant are affine: the equality
/// for `q = floor(e / m)`, with coefficient 1 for `q`, if some stride gives one.
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
            // e + sign * (h s + f): the same value as e, and without s a multiple of m up to its constant.
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
    let Some(tableau) = Tableau::new(sys, budget)? else {
        return Ok(());
    };
    let mut any = false;
    for q in n_visible..sys.n {
        let mut row = vec![0; sys.n + 1];
        row[q + 1] = 1;
        let Some(low) = tableau.clone().minimum_of(&row, budget)? else {
            continue;
        };
        row[q + 1] = -1;
        let Some(high) = tableau.clone().minimum_of(&row, budget)? else {
            continue;
        };
        if low == neg(high)? {
            sys.fix(q, low)?;
            any = true;
        }
    }
    if any && sys.normalize(budget)? {
        compact(sys, n_visible);
    }
    Ok(())
}
