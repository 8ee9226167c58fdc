//! Existential variables as functions of the point.
//!
//! In *div form*, every existential is determined by the point, as a stride `h q = e` or a floor
//! `q = floor(e / m)`. Definitions are not stored, but recovered from the rows.

use crate::basic::BasicSet;
use crate::error::Result;
use crate::expr::LinExpr;
use crate::int::{Int, add, neg};
use crate::omega::floor_definition;
use crate::set::Set;
use crate::system::{Budget, Row, negate};
/// An existential variable that is a function of visible (and earlier) ones:
/// `floor(numerator / divisor)`.
#[derive(Clone, Debug)]
pub(crate) struct Div {
    pub var: usize,
    pub numerator: Row,
    pub divisor: Int,
}

impl Div {
    /// The two inequalities `0 <= numerator - divisor * var <= divisor - 1`.
    pub(crate) fn rows(&self) -> Result<[Row; 2]> {
        let mut upper = self.numerator.clone();
        upper[self.var + 1] = neg(self.divisor)?;
        let mut lower = negate(&upper)?;
        lower[0] = add(lower[0], self.divisor - 1)?;
        Ok([upper, lower])
    }
}

impl BasicSet {
    /// The existential variables as functions of the columns before them in this list:
    /// `(column, e, m)` stands for `column = floor(e / m)`. `None` when some existential is not
    /// determined by the point; see [`Set::div_form`](crate::Set::div_form).
    pub fn divs(&self) -> Result<Option<Vec<(usize, LinExpr, Int)>>> {
        Ok(self.div_definitions()?.map(|divs| {
            divs.iter()
                .map(|d| (d.var, LinExpr::from_row(&d.numerator), d.divisor))
                .collect()
        }))
    }

    /// Definitions of all existentials, each using visible columns and earlier definitions only.
    pub(crate) fn div_definitions(&self) -> Result<Option<Vec<Div>>> {
        let visible = self.space.n_vars();
        let n = self.sys.n;
        let mut known: Vec<bool> = (0..n).map(|v| v < visible).collect();
        let mut divs = Vec::new();
        loop {
            let mut progress = false;
            for q in visible..n {
                if known[q] {
                    continue;
                }
                let only_known =
                    |r: &Row| (visible..n).all(|w| w == q || known[w] || r[w + 1] == 0);
                let eq = self.sys.eqs.iter().find(|r| r[q + 1] != 0 && only_known(r));
                let definition = if let Some(r) = eq {
                    // h q + e = 0 gives q = floor(-e / h).
                    let r = if r[q + 1] > 0 { negate(r)? } else { r.clone() };
                    let m = neg(r[q + 1])?;
                    let mut e = r;
                    e[q + 1] = 0;
                    Some((e, m))
                } else {
                    let rows: Vec<Row> = self
                        .sys
                        .ges
                        .iter()
                        .filter(|r| r[q + 1] != 0 && only_known(r))
                        .cloned()
                        .collect();
                    floor_definition(&rows, q)?
                };
                if let Some((numerator, divisor)) = definition {
                    known[q] = true;
                    progress = true;
                    divs.push(Div {
                        var: q,
                        numerator,
                        divisor,
                    });
                }
            }
            if !progress {
                break;
            }
        }
        Ok((divs.len() == n - visible).then_some(divs))
    }

    /// Pieces whose union is this set and whose existentials are all determined by the point.
    pub(crate) fn div_form(&self, budget: &mut Budget) -> Result<Vec<BasicSet>> {
        if self.n_exists() == 0 || self.div_definitions()?.is_some() {
            return Ok(vec![self.clone()]);
        }
        self.eliminate(|_| false, budget)
    }
}

impl Set {
    /// The same set with every existential determined by the point, as a stride or a floor.
    pub fn div_form(&self) -> Result<Set> {
        self.div_form_in(&mut Budget::default())
    }

    pub(crate) fn div_form_in(&self, budget: &mut Budget) -> Result<Set> {
        let mut pieces = Vec::new();
        for p in &self.pieces {
            pieces.extend(p.div_form(budget)?);
        }
        Ok(Set {
            space: self.space,
            pieces,
        })
    }
}
