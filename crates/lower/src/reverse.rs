//! The reverse transform: from a slot (place, time) back to its point.
//!
//! Every coordinate of a slot is an equation for the point. Floors and remainders of one form are
//! unknowns of their own, related by form = m·floor + remainder and by ⌊⌊x/a⌋/b⌋ = ⌊x/(ab)⌋. A
//! coordinate whose equation has more unknowns than the other equations can determine is split into
//! digits, as in [`crate::digits`]: if F = K·A + B and B stays within K consecutive values from b
//! on, then A = ⌊(F − b)/K⌋ and B = F − K·A. What remains is a linear system over the rationals.
//! Its divisions leave no remainder exactly at the slots that have a point.

use std::collections::BTreeMap;

use systola_ir::DimId;
use systola_ir::array::{Array, Piece, Reverse};
use systola_ir::form::{Atom, Cond, Form, Poly, Rel};

use crate::clock::{interval, least_constant};
use crate::decide::{Decide, Undecided};
use crate::digits::gcd;

/// The reverse transform of a piece; a scan of the fibre if there is no closed form.
pub fn reverse(array: &Array, piece: &Piece, domain: &Cond, decide: &Decide) -> Reverse {
    let forms: Vec<&Form> = piece.place.iter().chain(&piece.time).collect();
    solve(array.dims.len(), &forms, domain, decide)
        .ok()
        .flatten()
        .map_or(Reverse::Scan, Reverse::Forms)
}

/// Unknowns: the coordinates of the point, then floors and remainders.
struct System {
    n: usize,
    /// (inner form, m) → the columns of its floor and its remainder.
    atoms: BTreeMap<(Form, i128), (usize, usize)>,
    columns: usize,
    rows: Vec<Row>,
}

/// A lower bound of a form over a domain: its least value, or a number.
fn least_value(form: &Form, domain: &Cond, decide: &Decide) -> Result<Option<Poly>, Undecided> {
    Ok(match interval(form, domain, decide)? {
        Some((least, _)) => Some(least),
        None => least_constant(form, domain, decide)?.map(Poly::constant),
    })
}

/// Σ coefficients·unknowns = value, the value a form over the slot.
#[derive(Clone, Debug)]
struct Row {
    coefficients: Vec<i128>,
    value: Form,
}

/// The `n` coordinates of a point as forms over the values of some forms in them, each with the
/// number by which it is divided; `None` if there is no closed form.
pub fn solve(
    n: usize,
    forms: &[&Form],
    domain: &Cond,
    decide: &Decide,
) -> Result<Option<Vec<(Form, i128)>>, Undecided> {
    let mut system = System {
        n,
        atoms: BTreeMap::new(),
        columns: n,
        rows: Vec::new(),
    };
    for (k, form) in forms.iter().enumerate() {
        if !form.is_quasi_affine() {
            return Ok(None);
        }
        let value = Form::from(DimId::from(k));
        system.add(form, value)?;
    }
    system.tie()?;
    let mut pinned = false;
    loop {
        let solved = system.eliminate()?;
        if let Some(result) = solved {
            return Ok(Some(result));
        }
        if !pinned {
            system.pin(domain, decide)?;
            pinned = true;
        } else if !system.split_a_digit(domain, decide)? {
            return Ok(None);
        }
    }
}

impl Row {
    /// The same equation, negated if all of its coefficients are negative.
    fn with_positive_digits(self) -> Row {
        if self.coefficients.iter().any(|c| *c > 0) {
            return self;
        }
        Row {
            coefficients: self.coefficients.iter().map(|c| -c).collect(),
            value: self.value.neg(),
        }
    }
}

impl System {
    /// form = value as a row; the constant part goes to the value.
    fn add(&mut self, form: &Form, value: Form) -> Result<(), Undecided> {
        let mut coefficients = vec![0; self.columns];
        for (atom, c) in form.terms() {
            let c = c.as_constant().unwrap_or(0);
            let column = match atom {
                Atom::Dim(d) => d.index(),
                Atom::Floor(inner, m) => self.atom(inner, *m).0,
                Atom::Mod(inner, m) => self.atom(inner, *m).1,
            };
            if coefficients.len() <= column {
                coefficients.resize(column + 1, 0);
            }
            coefficients[column] += c;
        }
        let value = value.sub(&Form::from(form.constant_part().clone()));
        self.rows.push(Row {
            coefficients,
            value,
        });
        Ok(())
    }

    fn atom(&mut self, inner: &Form, m: i128) -> (usize, usize) {
        let key = (inner.clone(), m);
        if let Some(columns) = self.atoms.get(&key) {
            return *columns;
        }
        let columns = (self.columns, self.columns + 1);
        self.columns += 2;
        self.atoms.insert(key, columns);
        columns
    }

    /// inner − m·floor − remainder = 0, for every floor.
    fn tie(&mut self) -> Result<(), Undecided> {
        let mut done: Vec<(Form, i128)> = Vec::new();
        loop {
            let next = self.atoms.keys().find(|k| !done.contains(k)).cloned();
            let Some((inner, m)) = next else { break };
            let (floor, remainder) = self.atoms[&(inner.clone(), m)];
            self.add(&inner, Form::zero())?;
            if let Some(row) = self.rows.last_mut() {
                row.coefficients
                    .resize(row.coefficients.len().max(remainder + 1), 0);
                row.coefficients[floor] -= m;
                row.coefficients[remainder] -= 1;
            }
            if let Some((form, a)) = within_floor(&inner)
                && let Some(product) = a.checked_mul(m)
            {
                let (outer, _) = self.atom(&form, product);
                let mut coefficients = vec![0; self.columns];
                coefficients[floor] += 1;
                coefficients[outer] -= 1;
                self.rows.push(Row {
                    coefficients,
                    value: Form::zero(),
                });
            }
            done.push((inner, m));
        }
        for row in &mut self.rows {
            row.coefficients.resize(self.columns, 0);
        }
        Ok(())
    }

    /// A coordinate with only one value is that value, for example in a filter of one row.
    fn pin(&mut self, domain: &Cond, decide: &Decide) -> Result<(), Undecided> {
        for d in 0..self.n {
            let form = Form::from(DimId::from(d));
            if let Some((least, most)) = interval(&form, domain, decide)?
                && least == most
            {
                let mut coefficients = vec![0; self.columns];
                coefficients[d] = 1;
                self.rows.push(Row {
                    coefficients,
                    value: Form::from(least),
                });
            }
        }
        Ok(())
    }

    /// Gauss–Jordan without fractions; the coordinates of the point if all are determined.
    fn eliminate(&mut self) -> Result<Option<Vec<(Form, i128)>>, Undecided> {
        let mut rows = self.rows.clone();
        let mut used = vec![false; rows.len()];
        let mut pivot_of: BTreeMap<usize, usize> = BTreeMap::new();
        // Auxiliary unknowns first, so that they vanish from the rows of the coordinates.
        let order: Vec<usize> = (self.n..self.columns).chain(0..self.n).collect();
        for column in order {
            let candidate = (0..rows.len())
                .filter(|r| !used[*r] && rows[*r].coefficients[column] != 0)
                .min_by_key(|r| rows[*r].coefficients[column].abs());
            let Some(pivot) = candidate else { continue };
            used[pivot] = true;
            pivot_of.insert(column, pivot);
            let row = rows[pivot].clone();
            for (r, other) in rows.iter_mut().enumerate() {
                if r != pivot && other.coefficients[column] != 0 {
                    combine(other, &row, column)?;
                }
            }
        }
        let mut result = Vec::new();
        for d in 0..self.n {
            let Some(pivot) = pivot_of.get(&d) else {
                return Ok(None);
            };
            let row = &rows[*pivot];
            let alone = row
                .coefficients
                .iter()
                .enumerate()
                .all(|(c, k)| c == d || *k == 0);
            if !alone {
                return Ok(None);
            }
            let k = row.coefficients[d];
            let value = if k < 0 {
                row.value.neg()
            } else {
                row.value.clone()
            };
            result.push((value, k.abs()));
        }
        Ok(Some(result))
    }

    /// The unknowns as forms of the point.
    fn unknowns(&self) -> Vec<Form> {
        let mut forms: Vec<Form> = (0..self.n).map(|d| Form::from(DimId::from(d))).collect();
        forms.resize(self.columns, Form::zero());
        for ((inner, m), (floor, remainder)) in &self.atoms {
            forms[*floor] = inner.floor_div(*m);
            forms[*remainder] = inner.modulo(*m);
        }
        forms
    }

    /// Splits one row K·A + B into two if B stays within K consecutive values. Tries rows of floors
    /// and remainders alone as written, then reduced rows of the point alone, then the other rows
    /// as written.
    fn split_a_digit(&mut self, domain: &Cond, decide: &Decide) -> Result<bool, Undecided> {
        let unknowns = self.unknowns();
        let written = self.rows.iter().cloned().enumerate();
        let slots = written.filter(|(_, row)| row.value != Form::zero());
        let (mut candidates, mixed): (Vec<(usize, Row)>, Vec<_>) =
            slots.partition(|(_, row)| row.coefficients[..self.n].iter().all(|c| *c == 0));
        let pure = |(_, row): &(usize, Row)| row.coefficients[self.n..].iter().all(|c| *c == 0);
        candidates.extend(self.reduced()?.into_iter().filter(pure));
        candidates.extend(mixed);
        for (origin, row) in candidates {
            let row = row.with_positive_digits();
            let mut bases: Vec<i128> = row
                .coefficients
                .iter()
                .map(|c| c.abs())
                .filter(|c| *c > 1)
                .collect();
            bases.sort_unstable();
            bases.dedup();
            for base in bases {
                let (mut high, mut low) = (vec![0; self.columns], vec![0; self.columns]);
                for (c, k) in row.coefficients.iter().enumerate() {
                    if k % base == 0 {
                        high[c] = k / base;
                    } else {
                        low[c] = *k;
                    }
                }
                let n_high = high.iter().filter(|c| **c != 0).count();
                let n_low = low.iter().filter(|c| **c != 0).count();
                if n_high == 0 || n_low == 0 {
                    continue;
                }
                let form = low
                    .iter()
                    .enumerate()
                    .try_fold(Form::zero(), |sum, (d, k)| {
                        Ok::<_, Undecided>(sum.add(&unknowns[d].scale(&Poly::constant(*k))?))
                    })?;
                let Some(least) = least_value(&form, domain, decide)? else {
                    continue;
                };
                let reach = form.sub(&Form::from(least.clone()));
                let far = domain.clone().and(Cond::cmp(Rel::Ge, reach, base));
                if !decide.is_empty(&far, self.n)? {
                    continue;
                }
                let above = row.value.sub(&Form::from(least.clone()));
                self.rows.push(Row {
                    coefficients: high,
                    value: above.floor_div(base),
                });
                self.rows.push(Row {
                    coefficients: low,
                    value: above.modulo(base).add(&Form::from(least)),
                });
                // The digits replace the row that they come from.
                self.rows.remove(origin);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The rows after elimination of two kinds of unknowns: floors and remainders that have
    /// coefficient ±1 in some row, and coordinates that a row determines alone.
    fn reduced(&self) -> Result<Vec<(usize, Row)>, Undecided> {
        let mut rows = self.rows.clone();
        let mut used = vec![false; rows.len()];
        for column in (self.n..self.columns).chain(0..self.n) {
            let unit = (0..rows.len()).find(|r| {
                let row = &rows[*r].coefficients;
                !used[*r]
                    && row[column].abs() == 1
                    && (column >= self.n || row.iter().filter(|c| **c != 0).count() == 1)
            });
            let Some(pivot) = unit else { continue };
            used[pivot] = true;
            let row = rows[pivot].clone();
            for (r, other) in rows.iter_mut().enumerate() {
                if r != pivot && other.coefficients[column] != 0 {
                    combine(other, &row, column)?;
                }
            }
        }
        let mut result = Vec::new();
        for (origin, (row, used)) in rows.into_iter().zip(used).enumerate() {
            if used || row.coefficients.iter().filter(|c| **c != 0).count() < 2 {
                continue;
            }
            result.push((origin, row));
        }
        Ok(result)
    }
}

/// x + a·c and a of ⌊x/a⌋ + c.
fn within_floor(form: &Form) -> Option<(Form, i128)> {
    let mut terms = form.terms();
    let (Some((Atom::Floor(inner, a), factor)), None) = (terms.next(), terms.next()) else {
        return None;
    };
    let moved = form.constant_part().mul(&Poly::constant(*a)).ok()?;
    (factor.as_constant() == Some(1)).then(|| (inner.add(&Form::from(moved)), *a))
}

/// other := other·a − row·b, so that the column vanishes from it.
fn combine(other: &mut Row, row: &Row, column: usize) -> Result<(), Undecided> {
    let (p, q) = (row.coefficients[column], other.coefficients[column]);
    let g = gcd(p.abs(), q.abs());
    let (a, b) = (p / g, q / g);
    for (x, y) in other.coefficients.iter_mut().zip(&row.coefficients) {
        let left = x.checked_mul(a);
        let right = y.checked_mul(b);
        *x = left
            .zip(right)
            .and_then(|(l, r)| l.checked_sub(r))
            .ok_or(affine::Error::Overflow)?;
    }
    other.value = other
        .value
        .scale(&Poly::constant(a))?
        .sub(&row.value.scale(&Poly::constant(b))?);
    Ok(())
}
