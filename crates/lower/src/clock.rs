//! The step clock: extents of the time coordinates, delays in ticks, registers.
//!
//! A cell's value stays in the PE's queue until its last reader has run: V[PEs][ticks + 1].
//! Coalescing saves one register: the oldest entry is read before the new value enters. This works
//! if every reader at the longest delay runs no later than the cell itself.

use affine::Space;
use systola_ir::array::{Array, Link, Realisation, Registers};
use systola_ir::form::{Cond, Form, Poly, Rel};
use systola_ir::mapping::TimeLevel;
use systola_ir::sets::{lin_expr, set_of};
use systola_ir::{DimId, VarId};

use crate::decide::{Decide, Undecided};

/// A queue of more ticks than this is in memory. A core with AVX-512 has 32 vector registers, and
/// so has a thread of an H200 at full occupancy (65536 registers for 2048 threads); a longer queue
/// would leave too few for everything else.
pub const LONGEST_QUEUE: i128 = 24;

/// Computes the registers of every cell, and moves queues that are too long for registers to
/// memory. `sizes` are the parameters, if all of them are given.
pub fn count_registers(
    array: &mut Array,
    decide: &Decide,
    sizes: Option<&[i128]>,
) -> Result<(), Undecided> {
    let radix = radix(array, decide, sizes)?;
    for at in 0..array.ports.len() {
        for n in 0..array.ports[at].links.len() {
            let link = &array.ports[at].links[n];
            let ticks = queue_ticks(array, link, radix.as_deref());
            if link.realisation == Realisation::Register
                && ticks.is_none_or(|ticks| ticks > LONGEST_QUEUE)
            {
                array.ports[at].links[n].realisation = Realisation::Buffer;
            }
        }
    }
    for n in 0..array.cells.len() {
        let cell = VarId::from(n);
        let mut delays = Vec::new();
        for port in array.ports.iter().filter(|p| p.source == cell) {
            let after = position(array, port.sink) > position(array, cell);
            for link in &port.links {
                if link.realisation.is_within_launch() {
                    delays.push((ticks(&link.delay, radix.as_deref()), after));
                }
            }
        }
        let longest = delays
            .iter()
            .map(|(d, _)| d.clone())
            .try_fold(Poly::zero(), |max, d| larger(max, d?, decide, sizes));
        array.cells[n].registers = Registers {
            depth: longest.clone().map(|d| d.add(&Poly::constant(1))),
            coalesced: longest.map(|longest| {
                let late = delays
                    .iter()
                    .any(|(d, after)| *after && d.as_ref() == Some(&longest));
                if longest.is_zero() || late {
                    longest.add(&Poly::constant(1))
                } else {
                    longest
                }
            }),
        };
    }
    Ok(())
}

fn position(array: &Array, cell: VarId) -> usize {
    array.body.iter().position(|c| *c == cell).unwrap_or(0)
}

/// A delay in ticks; callers pass delays whose launch components are zero.
pub fn ticks(delay: &[Poly], radix: Option<&[Poly]>) -> Option<Poly> {
    if delay.iter().all(Poly::is_zero) {
        return Some(Poly::zero());
    }
    let radix = radix?;
    let mut sum = Poly::zero();
    for (d, r) in delay.iter().zip(radix) {
        sum = sum.add(&d.mul(r).ok()?);
    }
    Some(sum)
}

/// The delay of a link in ticks of the loops of a block, if that is a number.
pub fn queue_ticks(array: &Array, link: &Link, radix: Option<&[Poly]>) -> Option<i128> {
    let inside: Vec<usize> = (0..array.time.len())
        .filter(|t| array.time[*t].level != TimeLevel::Launch)
        .collect();
    let last = inside.last();
    if inside
        .iter()
        .all(|t| Some(t) == last || link.delay[*t].is_zero())
    {
        return last.map_or(Some(0), |t| link.delay[*t].as_constant());
    }
    ticks(&link.delay, radix)?.as_constant()
}

/// The number of ticks in one step of each time coordinate; zero for launches. `None` if it depends
/// on sizes that are not given.
pub fn radix(
    array: &Array,
    decide: &Decide,
    sizes: Option<&[i128]>,
) -> Result<Option<Vec<Poly>>, Undecided> {
    let inside = |k: &usize| array.time[*k].level != TimeLevel::Launch;
    let mut worth = Poly::constant(1);
    let mut radix = vec![Poly::zero(); array.time.len()];
    let coordinates: Vec<usize> = (0..array.time.len()).filter(inside).collect();
    for (at, k) in coordinates.iter().enumerate().rev() {
        radix[*k] = worth.clone();
        if at == 0 {
            break;
        }
        let Some(extent) = extent(array, *k, decide, sizes)? else {
            return Ok(None);
        };
        worth = worth.mul(&extent)?;
    }
    Ok(Some(radix))
}

/// The number of values that a time coordinate takes.
pub fn extent(
    array: &Array,
    k: usize,
    decide: &Decide,
    sizes: Option<&[i128]>,
) -> Result<Option<Poly>, Undecided> {
    if let Some(params) = sizes {
        let bounds = time_bounds(array, k, params)?;
        // Without points the clock stands still.
        let extent = bounds.map_or(1, |(least, most)| most - least + 1);
        return Ok(Some(Poly::constant(extent)));
    }
    let mut range: Option<(Poly, Poly)> = None;
    for piece in &array.pieces {
        let domain = domain(array).and(piece.cond.clone());
        let Some((least, most)) = interval(&piece.time[k], &domain, decide)? else {
            return Ok(None);
        };
        range = match range {
            None => Some((least, most)),
            Some((a, b)) if a == least && b == most => Some((a, b)),
            Some(_) => return Ok(None),
        };
    }
    Ok(range.map(|(least, most)| most.sub(&least).add(&Poly::constant(1))))
}

/// The least and greatest value of a time coordinate at given sizes; `None` on an empty domain.
pub fn time_bounds(
    array: &Array,
    k: usize,
    params: &[i128],
) -> Result<Option<(i128, i128)>, Undecided> {
    let forms: Vec<(&Cond, &Form)> = array.pieces.iter().map(|p| (&p.cond, &p.time[k])).collect();
    form_bounds(array, &forms, params)
}

/// The least and greatest value, at given sizes, of forms that each hold on a piece of the domain.
pub fn form_bounds(
    array: &Array,
    forms: &[(&Cond, &Form)],
    params: &[i128],
) -> Result<Option<(i128, i128)>, Undecided> {
    let n = array.dims.len();
    let value = |p: systola_ir::ParamId| params.get(p.index()).copied();
    let mut range: Option<(i128, i128)> = None;
    for (cond, form) in forms {
        // The value of the form becomes another coordinate, so that floors need no special case.
        let here = domain(array)
            .and((*cond).clone())
            .map(&|f| f.fix_params(&value))?;
        let here = here.and(Cond::Cmp(
            Rel::Eq,
            Form::from(DimId::from(n)),
            form.fix_params(&value)?,
        ));
        let set = set_of(&here, Space::new(0, n + 1))?;
        if set.is_empty()? {
            continue;
        }
        let column = Space::new(0, n + 1).dim(n)?;
        if let (Some(least), Some(most)) = set.bounds(&column, &[])? {
            range = Some(match range {
                None => (least, most),
                Some((a, b)) => (a.min(least), b.max(most)),
            });
        }
    }
    Ok(range)
}

/// Every point at which some cell computes.
pub fn domain(array: &Array) -> Cond {
    let domains: Vec<&Cond> = array.cells.iter().map(|c| &c.domain).collect();
    union_of(&domains)
}

/// The least and greatest value of a quasi-affine form over a domain, if each of them is a single
/// polynomial of the parameters.
pub fn interval(
    form: &Form,
    domain: &Cond,
    decide: &Decide,
) -> Result<Option<(Poly, Poly)>, Undecided> {
    let mut range: Option<(Poly, Poly)> = None;
    for bounds in bounds_of(form, domain, decide)? {
        let (Some(least), Some(most)) = (single(&bounds.lower), single(&bounds.upper)) else {
            return Ok(None);
        };
        match &range {
            None => range = Some((least, most)),
            Some((a, b)) if *a == least && *b == most => {}
            Some(_) => return Ok(None),
        }
    }
    Ok(range)
}

/// A number that a quasi-affine form is never below over a domain; the largest one that is known.
pub fn least_constant(
    form: &Form,
    domain: &Cond,
    decide: &Decide,
) -> Result<Option<i128>, Undecided> {
    let mut least: Option<i128> = None;
    for bounds in bounds_of(form, domain, decide)? {
        let constants = bounds.lower.iter().filter_map(|(expr, divisor)| {
            let is_constant = expr.coeffs().iter().all(|c| *c == 0);
            is_constant.then(|| expr.constant_term().div_euclid(*divisor))
        });
        let Some(here) = constants.max() else {
            return Ok(None);
        };
        least = Some(least.map_or(here, |least| least.min(here)));
    }
    Ok(least)
}

/// The bounds of a form for each piece of a domain; none if the form is not quasi-affine.
fn bounds_of(
    form: &Form,
    domain: &Cond,
    decide: &Decide,
) -> Result<Vec<affine::SymbolicBounds>, Undecided> {
    if !form.is_quasi_affine() {
        return Ok(Vec::new());
    }
    let n = 1 + domain
        .forms()
        .into_iter()
        .chain([form])
        .flat_map(Form::dims)
        .map(DimId::index)
        .max()
        .unwrap_or(0);
    let space = Space::new(decide.n_params, n + 1);
    let value = Form::from(DimId::from(n));
    let cond = decide.context.clone().and(domain.clone()).and(Cond::Cmp(
        Rel::Eq,
        value.clone(),
        form.clone(),
    ));
    let set = set_of(&cond, space)?;
    let mut builder = affine::BasicSetBuilder::new(space);
    let column = lin_expr(&value, &mut builder, &systola_ir::sets::identity(space))?;
    Ok(set.bounds_symbolic(&column)?)
}

/// The only bound of a list, as a polynomial.
fn single(bounds: &[(affine::LinExpr, affine::Int)]) -> Option<Poly> {
    let [(expr, 1)] = bounds else { return None };
    let mut poly = Poly::constant(expr.constant_term());
    for (p, c) in expr.coeffs().iter().enumerate() {
        let param = Poly::param(systola_ir::ParamId::from(p));
        poly = poly.add(&param.mul(&Poly::constant(*c)).ok()?);
    }
    Some(poly)
}

/// The larger of two polynomials, if one is larger for all parameters in the context.
fn larger(a: Poly, b: Poly, decide: &Decide, sizes: Option<&[i128]>) -> Option<Poly> {
    if let Some(params) = sizes {
        let (x, y) = (a.eval(params).ok()?, b.eval(params).ok()?);
        return Some(if x >= y { a } else { b });
    }
    let below = |low: &Poly, high: &Poly| {
        let gap = high.sub(low);
        gap.as_constant().map_or_else(
            || {
                let negative = Cond::cmp(Rel::Lt, Form::from(gap.clone()), 0);
                gap.degree() <= 1 && decide.is_empty(&negative, 0).unwrap_or(false)
            },
            |c| c >= 0,
        )
    };
    if below(&a, &b) {
        Some(b)
    } else if below(&b, &a) {
        Some(a)
    } else {
        None
    }
}

/// The disjunction of conditions, without those that syntactically imply another one.
pub(crate) fn union_of(conds: &[&Cond]) -> Cond {
    let parts = |c: &Cond| match c {
        Cond::And(parts) => parts.clone(),
        other => vec![other.clone()],
    };
    let mut kept: Vec<&Cond> = Vec::new();
    for cond in conds {
        let own = parts(cond);
        let implied = conds.iter().any(|other| {
            let there = parts(other);
            there.len() < own.len() && there.iter().all(|p| own.contains(p))
        });
        if !implied && !kept.contains(cond) {
            kept.push(cond);
        }
    }
    match kept.as_slice() {
        [one] => (*one).clone(),
        many => Cond::Or(many.iter().map(|c| (*c).clone()).collect()),
    }
}
