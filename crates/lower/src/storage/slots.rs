//! The slots of an array as loops see them: the point of each slot, and the range of each
//! coordinate.
//!
//! A *slot* is a place and a time; its coordinates are numbered as in a reverse transform, places
//! first. The point of a slot is a list of quasi-affine forms, correct wherever the slot has a
//! point; the condition `valid` says where that is.

use std::collections::HashMap;

use affine::{BasicSetBuilder, Int, LinExpr, Space};
use systola_ir::array::{Array, Piece, Reverse};
use systola_ir::form::{Atom, Cond, Form, Overflow, Poly, Rel};
use systola_ir::mapping::TimeLevel;
use systola_ir::sets::{identity, lin_expr, set_of};
use systola_ir::{DimId, ParamId};

use crate::clock::domain;
use crate::decide::{Decide, Undecided};
use crate::facts::Range;

/// The points of the slots of one piece of a mapping.
#[derive(Clone, Debug)]
pub struct SlotPiece {
    /// One form over the slot for each coordinate of the expanded domain.
    pub point: Vec<Form>,
    /// Over the slot.
    pub valid: Cond,
}

#[derive(Clone, Debug)]
pub struct Slots {
    pub pieces: Vec<SlotPiece>,
    /// For each coordinate of a slot, in the parameters.
    pub ranges: Vec<Range>,
}

impl Slots {
    pub fn new(array: &Array, decide: &Decide) -> Result<Slots, Undecided> {
        let pieces = array
            .pieces
            .iter()
            .map(|piece| slot_piece(array, piece))
            .collect::<Result<Vec<_>, _>>()?;
        let n = array.place.len() + array.time.len();
        // Loops over points that keep values have bounds of their own.
        let is_step = |k: usize| {
            let time = k
                .checked_sub(array.place.len())
                .map(|t| array.time[t].level);
            time.is_some_and(|level| level != TimeLevel::Launch)
        };
        let ranges = (0..n)
            .map(|k| match range(array, decide, k, &[]) {
                Err(_) if array.keeps_values() && is_step(k) => Ok(Range::default()),
                range => range,
            })
            .collect::<Result<_, _>>()?;
        Ok(Slots { pieces, ranges })
    }
}

fn slot_piece(array: &Array, piece: &Piece) -> Result<SlotPiece, Undecided> {
    let Reverse::Forms(forms) = &piece.reverse else {
        return Err(Undecided::NeedsSizes(
            "the reverse transform has no closed form".into(),
        ));
    };
    let mut valid = Cond::TRUE;
    let mut point = Vec::new();
    for (form, divisor) in forms {
        if *divisor > 1 {
            valid = valid.and(Cond::cmp(Rel::Eq, form.modulo(*divisor), 0));
        }
        point.push(form.floor_div(*divisor));
    }
    let at = |form: &Form| form.substitute(&|d| point.get(d.index()).cloned());
    // A slot that is not the image of any point may still map to one.
    let forms = piece.place.iter().chain(&piece.time).enumerate();
    let image = forms.map(|(k, form)| (form.clone(), Form::from(DimId::from(k))));
    let (image, digits) = joined(image.collect())?;
    for (form, value) in &image {
        let others = image.iter().filter(|(other, _)| other != form);
        let known: HashMap<&Form, &Form> = others.map(|(f, v)| (f, v)).collect();
        let image = with_known(form, &known, &point)?;
        valid = valid.and(equal(&image.sub(value))?);
    }
    valid = valid.and(digits);
    valid = valid.and(domain(array).map(&at)?).and(piece.cond.map(&at)?);
    Ok(SlotPiece { point, valid })
}

/// ⌊X/m⌋ = a and X mod m = b are X = m·a + b, with 0 ≤ b < m: digits of one form become equations
/// of the form itself, which has fewer floors.
fn joined(mut equations: Vec<(Form, Form)>) -> Result<(Vec<(Form, Form)>, Cond), Overflow> {
    let mut digits = Cond::TRUE;
    'again: loop {
        for (low, (form, b)) in equations.iter().enumerate() {
            let Some(Atom::Mod(whole, m)) = alone(form) else {
                continue;
            };
            let floor = whole.floor_div(*m);
            let outer = match alone(whole) {
                Some(Atom::Floor(inner, a)) => a.checked_mul(*m).map(|am| inner.floor_div(am)),
                Some(Atom::Dim(_) | Atom::Mod(..)) | None => None,
            };
            let high = equations
                .iter()
                .position(|(form, _)| *form == floor || Some(form) == outer.as_ref());
            let Some(high) = high else { continue };
            let value = equations[high].1.scale(&Poly::constant(*m))?.add(b);
            digits =
                digits
                    .and(Cond::cmp(Rel::Ge, b.clone(), 0))
                    .and(Cond::cmp(Rel::Lt, b.clone(), *m));
            equations[high] = ((**whole).clone(), value);
            equations.remove(low);
            continue 'again;
        }
        return Ok((equations, digits));
    }
}

/// A form at a point, if other equations give some floors and so their remainders. An equation for
/// a floor is used only by forms that contain the floor or its remainder, so no two use each other.
fn with_known(
    form: &Form,
    known: &HashMap<&Form, &Form>,
    point: &[Form],
) -> Result<Form, Overflow> {
    let mut sum = Form::from(form.constant_part().clone());
    for (atom, factor) in form.terms() {
        let term = match atom {
            Atom::Dim(d) => point.get(d.index()).cloned().unwrap_or(Form::from(*d)),
            Atom::Floor(inner, m) => match known.get(&inner.floor_div(*m)) {
                Some(floor) => (*floor).clone(),
                None => with_known(inner, known, point)?.floor_div(*m),
            },
            Atom::Mod(inner, m) => {
                let whole = with_known(inner, known, point)?;
                match known.get(&inner.floor_div(*m)) {
                    Some(floor) => whole.sub(&floor.scale(&Poly::constant(*m))?),
                    None => whole.modulo(*m),
                }
            }
        };
        sum = sum.add(&term.scale(factor)?);
    }
    Ok(sum)
}

/// The atom that makes up the whole form.
fn alone(form: &Form) -> Option<&Atom> {
    let mut terms = form.terms();
    let (Some((atom, factor)), None) = (terms.next(), terms.next()) else {
        return None;
    };
    (factor.as_constant() == Some(1) && form.constant_part().is_zero()).then_some(atom)
}

/// gap = 0. A floor in it becomes a range: ⌊B/m⌋ = E is 0 ≤ B − m·E < m.
fn equal(gap: &Form) -> Result<Cond, Overflow> {
    let mut floors = gap.terms().filter_map(|(atom, factor)| match atom {
        Atom::Floor(inner, m) => Some((inner, *m, factor.as_constant())),
        Atom::Dim(_) | Atom::Mod(..) => None,
    });
    if let (Some((inner, m, Some(sign @ (1 | -1)))), None) = (floors.next(), floors.next()) {
        let rest = gap.sub(&inner.floor_div(m).scale(&Poly::constant(sign))?);
        let gap = inner.add(&rest.scale(&Poly::constant(sign * m))?);
        return Ok(Cond::cmp(Rel::Ge, gap.clone(), 0).and(Cond::cmp(Rel::Lt, gap, m)));
    }
    Ok(Cond::cmp(Rel::Eq, gap.clone(), 0))
}

/// The range of coordinate `k` of the slots where the coordinates `given` are known: forms over the
/// parameters and, as iterators, the coordinates of the slot.
pub fn range(
    array: &Array,
    decide: &Decide,
    k: usize,
    given: &[usize],
) -> Result<Range, Undecided> {
    let parts = array
        .pieces
        .iter()
        .map(|piece| {
            let coordinate = |k: usize| piece.coordinate(k).clone();
            Part {
                cond: domain(array).and(piece.cond.clone()),
                value: coordinate(k),
                given: given.iter().map(|g| coordinate(*g)).collect(),
            }
        })
        .collect();
    bounds(decide, array.dims.len(), parts, given)
}

/// A form over a part of a domain, and forms whose values are known.
pub struct Part {
    pub cond: Cond,
    pub value: Form,
    pub given: Vec<Form>,
}

/// Bounds of a form over all its parts. In the result the n-th known form is the iterator
/// `names[n]`.
pub fn bounds(
    decide: &Decide,
    n: usize,
    parts: Vec<Part>,
    names: &[usize],
) -> Result<Range, Undecided> {
    bounds_by(decide, n, parts, names, Floors::Independent)
}

/// How floors in the forms of a part are treated.
#[derive(Clone, Copy, PartialEq)]
pub enum Floors {
    /// Each is an unknown of its own, so that the starts of loops depend on few coordinates.
    Independent,
    /// One that is given is the same wherever it occurs.
    Shared,
}

/// [`bounds`], with a choice of how floors are treated.
pub fn bounds_by(
    decide: &Decide,
    n: usize,
    parts: Vec<Part>,
    names: &[usize],
    floors: Floors,
) -> Result<Range, Undecided> {
    let g = names.len();
    // Columns: known forms, then the point, then the value to bound.
    let space = Space::new(decide.n_params, g + n + 1);
    let point: Vec<Form> = (g..g + n).map(|d| Form::from(DimId::from(d))).collect();
    let names_of_given: Vec<Form> = (0..g).map(|at| Form::from(DimId::from(at))).collect();
    let value = Form::from(DimId::from(g + n));
    let mut pieces = Vec::new();
    for part in &parts {
        let given = part.given.iter().zip(&names_of_given);
        let known: HashMap<&Form, &Form> = match floors {
            Floors::Independent => HashMap::new(),
            Floors::Shared => given.collect(),
        };
        let shift = |form: &Form| with_known(form, &known, &point);
        let mut cond = decide
            .context
            .clone()
            .and(part.cond.map(&shift)?)
            .and(Cond::cmp(Rel::Eq, value.clone(), shift(&part.value)?));
        for (form, name) in part.given.iter().zip(&names_of_given) {
            let others = known.iter().filter(|(other, _)| **other != form);
            let others: HashMap<&Form, &Form> = others.map(|(f, v)| (*f, *v)).collect();
            let form = with_known(form, &others, &point)?;
            cond = cond.and(Cond::cmp(Rel::Eq, name.clone(), form));
        }
        let set = set_of(&cond, space)?.dims_to_params(g)?;
        if !set.is_empty()? {
            pieces.push(set);
        }
    }
    let space = Space::new(decide.n_params + g, n + 1);
    let column = lin_expr(
        &Form::from(DimId::from(n)),
        &mut BasicSetBuilder::new(space),
        &identity(space),
    )?;
    let (mut lows, mut highs): (Vec<Vec<Bound>>, Vec<Vec<Bound>>) = (Vec::new(), Vec::new());
    for set in &pieces {
        for bounds in set.bounds_symbolic(&column)? {
            lows.push(bounds.lower);
            highs.push(bounds.upper);
        }
    }
    let missing = || Undecided::NeedsSizes("a coordinate has no bound".into());
    if lows.is_empty() {
        return Ok(Range::new(0, 0));
    }
    // A bound of one part is a bound of the whole if no other part exceeds it.
    let passes = |e: &LinExpr, m: Int, low: bool| -> Result<bool, Undecided> {
        for set in &pieces {
            let gap = if low {
                // m·value < e
                e.sub(&column.scale(m)?)?
            } else {
                column.scale(m)?.sub(e)?
            };
            let beyond = affine::Constraint::Ge(gap.add(&LinExpr::from(-1))?);
            if !set.with_constraint(&beyond)?.is_empty()? {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let common = |parts: &[Vec<Bound>], low: bool| -> Result<Vec<Form>, Undecided> {
        let mut forms: Vec<Form> = Vec::new();
        for (e, m) in parts.iter().flatten() {
            let form = bound_form(e, *m, low, decide.n_params, names)?;
            if !forms.contains(&form) && (parts.len() == 1 || !passes(e, *m, low)?) {
                forms.push(form);
            }
        }
        if forms.is_empty()
            && let Some(value) = farthest(parts, low)
        {
            forms.push(Form::from(value));
        }
        Ok(forms)
    };
    let lo = common(&lows, true)?;
    let hi: Vec<Form> = common(&highs, false)?.iter().map(|f| f.plus(1)).collect();
    if lo.is_empty() || hi.is_empty() {
        return Err(missing());
    }
    Ok(Range { lo, hi })
}

type Bound = (LinExpr, Int);

/// If all bounds are numbers: the least of the lower ones, the greatest of the upper ones.
fn farthest(parts: &[Vec<Bound>], low: bool) -> Option<i128> {
    let values: Option<Vec<i128>> = parts
        .iter()
        .map(|part| {
            let ends = part.iter().map(|(e, m)| {
                let constant = e.coeffs().iter().all(|c| *c == 0);
                constant.then(|| {
                    let value = e.constant_term();
                    if low {
                        -(-value).div_euclid(*m)
                    } else {
                        value.div_euclid(*m)
                    }
                })
            });
            let known = ends.flatten();
            if low { known.max() } else { known.min() }
        })
        .collect();
    let values = values?;
    if low {
        values.into_iter().min()
    } else {
        values.into_iter().max()
    }
}

/// ⌈e / m⌉ or ⌊e / m⌋.
fn bound_form(
    e: &LinExpr,
    m: Int,
    low: bool,
    n_params: usize,
    names: &[usize],
) -> Result<Form, Undecided> {
    let mut form = Form::from(e.constant_term());
    for (c, k) in e.coeffs().iter().enumerate() {
        let variable = match c.checked_sub(n_params) {
            None => Form::from(ParamId::from(c)),
            Some(at) => Form::from(DimId::from(names[at])),
        };
        form = form.add(&variable.scale(&Poly::constant(*k))?);
    }
    Ok(if low {
        form.plus(m - 1).floor_div(m)
    } else {
        form.floor_div(m)
    })
}
