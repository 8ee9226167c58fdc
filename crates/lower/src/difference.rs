//! How much a form changes along a dependence: form(z) − form(z − e).
//!
//! For an affine form this is a constant. A floor changes by one of two amounts, depending on where
//! the point lies in the period of the floor: with k = f(z) − f(z − e) = q·m + r and 0 ≤ r < m, the
//! difference of ⌊f/m⌋ is q where f mod m ≥ r, and q + 1 elsewhere. Each amount is a piece with its
//! guard. With tiles and with V points per lane these pieces are the links of an array.

use std::collections::BTreeMap;

use systola_ir::form::{Atom, Cond, Form, Poly, Rel};

use crate::decide::Undecided;

/// One choice of amounts for all floors, and where it holds.
#[derive(Clone, Debug)]
pub struct Amounts {
    pub guard: Cond,
    floors: BTreeMap<(Form, i128), Poly>,
}

/// All choices of amounts for the floors in the forms; some may hold nowhere.
pub fn amounts(forms: &[&Form], e: &[Poly]) -> Result<Vec<Amounts>, Undecided> {
    let mut floors = Vec::new();
    for form in forms {
        collect(form, &mut floors);
    }
    let mut choices = vec![Amounts {
        guard: Cond::TRUE,
        floors: BTreeMap::new(),
    }];
    // Innermost first: the floors inside a floor then have their amounts already.
    for (inner, m) in floors {
        let mut next = Vec::new();
        for choice in choices {
            let k = choice.of(&inner, e)?;
            let Some(k) = k.as_constant() else {
                return Err(Undecided::NeedsSizes(
                    "a distance that depends on a parameter crosses a tile of constant size".into(),
                ));
            };
            let (q, r) = (k.div_euclid(m), k.rem_euclid(m));
            let mut add = |amount: i128, guard: Cond| {
                let mut one = choice.clone();
                one.guard = one.guard.and(guard);
                one.floors
                    .insert((inner.clone(), m), Poly::constant(amount));
                next.push(one);
            };
            if r == 0 {
                add(q, Cond::TRUE);
            } else {
                add(q, Cond::cmp(Rel::Ge, inner.modulo(m), r));
                add(q + 1, Cond::cmp(Rel::Lt, inner.modulo(m), r));
            }
        }
        choices = next;
    }
    Ok(choices)
}

impl Amounts {
    /// form(z) − form(z − e) under this choice.
    pub fn of(&self, form: &Form, e: &[Poly]) -> Result<Poly, Undecided> {
        let mut sum = Poly::zero();
        for (atom, coefficient) in form.terms() {
            let change = match atom {
                Atom::Dim(d) => e.get(d.index()).cloned().unwrap_or_default(),
                Atom::Floor(inner, m) => self.floor(inner, *m),
                Atom::Mod(inner, m) => {
                    let whole = self.floor(inner, *m).mul(&Poly::constant(*m))?;
                    self.of(inner, e)?.sub(&whole)
                }
            };
            sum = sum.add(&change.mul(coefficient)?);
        }
        Ok(sum)
    }

    fn floor(&self, inner: &Form, m: i128) -> Poly {
        self.floors
            .get(&(inner.clone(), m))
            .cloned()
            .unwrap_or_default()
    }
}

fn collect(form: &Form, floors: &mut Vec<(Form, i128)>) {
    for (atom, _) in form.terms() {
        if let Atom::Floor(inner, m) | Atom::Mod(inner, m) = atom {
            collect(inner, floors);
            let key = ((**inner).clone(), *m);
            if !floors.contains(&key) {
                floors.push(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use systola_ir::DimId;

    #[test]
    fn every_amount_holds_where_its_guard_says() {
        let x = Form::from(DimId(0));
        let forms = [
            x.plus(3).floor_div(4),
            x.plus(3).modulo(4),
            x.floor_div(6).floor_div(2).add(&x.modulo(6).floor_div(4)),
        ];
        for k in -9..10 {
            let e = [Poly::constant(k)];
            let refs: Vec<&Form> = forms.iter().collect();
            let choices = amounts(&refs, &e).unwrap();
            for at in -20..20 {
                let holding: Vec<_> = choices
                    .iter()
                    .filter(|c| c.guard.eval(&[], &[at]).unwrap())
                    .collect();
                assert_eq!(holding.len(), 1);
                for form in &forms {
                    let here = form.eval(&[], &[at]).unwrap();
                    let there = form.eval(&[], &[at - k]).unwrap();
                    let amount = holding[0].of(form, &e).unwrap();
                    assert_eq!(amount.as_constant(), Some(here - there), "x={at} k={k}");
                }
            }
        }
    }
}
