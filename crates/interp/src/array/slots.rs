//! The slots of an array: every point with its place and time.

use systola_ir::array::{Array, Reverse};
use systola_ir::codes::{array as codes, run};
use systola_ir::form::Overflow;
use systola_ir::{Cond, Diagnostic, Span};

use super::too_large;
use crate::domain::{Domain, DomainError};
use crate::linear::{Linear, Test};

/// A point with its place and time in the array.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot {
    pub time: Vec<i64>,
    pub place: Vec<i64>,
    pub point: Vec<i64>,
}

/// The maximum number of points of a run.
const MOST_POINTS: u64 = 50_000_000;

/// The slots of an array in the order of time, then place.
pub fn trace(array: &Array, params: &[i128]) -> Result<Vec<Slot>, Diagnostic> {
    let mapper = Mapper::new(array, params)?;
    let mut slots = Vec::new();
    let mut failed = None;
    let domain = any_of(array);
    let points =
        Domain::new(&domain, array.dims.len(), params).map_err(|e| not_walked(array, e))?;
    let mut count = 0u64;
    let walked = points.visit(&mut |point: &[i64]| {
        count += 1;
        if count > MOST_POINTS {
            return Err(DomainError::TooLarge);
        }
        match mapper.slot(point) {
            Ok(slot) => slots.push(slot),
            Err(error) => {
                failed = Some(error);
                return Err(DomainError::TooLarge);
            }
        }
        Ok(())
    });
    if let Some(failed) = failed {
        return Err(failed);
    }
    walked.map_err(|e: DomainError| not_walked(array, e))?;
    slots.sort_unstable();
    for pair in slots.windows(2) {
        if pair[0].time == pair[1].time && pair[0].place == pair[1].place {
            return Err(Diagnostic::new(
                &codes::SLOT_TAKEN,
                Span::NONE,
                format!(
                    "points {:?} and {:?} share place {:?} and time {:?}",
                    pair[0].point, pair[1].point, pair[0].place, pair[0].time
                ),
            ));
        }
    }
    Ok(slots)
}

/// Every point at which some cell computes.
fn any_of(array: &Array) -> Cond {
    let mut domains: Vec<Cond> = array.cells.iter().map(|c| c.domain.clone()).collect();
    domains.dedup();
    if domains.len() == 1 {
        domains.remove(0)
    } else {
        Cond::Or(domains)
    }
}

fn not_walked(array: &Array, error: DomainError) -> Diagnostic {
    let code = match error {
        DomainError::Unbounded(_) => &run::UNBOUNDED,
        DomainError::TooLarge => &run::TOO_LARGE,
    };
    Diagnostic::new(code, Span::NONE, format!("`{}`: {error}", array.system))
}

/// Place and time at concrete parameters.
struct Mapper {
    pieces: Vec<MapperPiece>,
}

struct MapperPiece {
    test: Test,
    place: Vec<Linear>,
    time: Vec<Linear>,
    reverse: Option<Vec<(Linear, i64)>>,
}

impl Mapper {
    fn new(array: &Array, params: &[i128]) -> Result<Mapper, Diagnostic> {
        let pieces = array
            .pieces
            .iter()
            .map(|piece| {
                let all = |forms: &[systola_ir::Form]| {
                    forms
                        .iter()
                        .map(|f| Linear::compile(f, params))
                        .collect::<Result<Vec<_>, _>>()
                };
                let reverse = match &piece.reverse {
                    Reverse::Scan => None,
                    Reverse::Forms(forms) => Some(
                        forms
                            .iter()
                            .map(|(form, divisor)| {
                                let divisor = i64::try_from(*divisor).map_err(|_| Overflow)?;
                                Ok((Linear::compile(form, params)?, divisor.max(1)))
                            })
                            .collect::<Result<Vec<_>, Overflow>>()?,
                    ),
                };
                Ok(MapperPiece {
                    test: Test::compile(&piece.cond, params)?,
                    place: all(&piece.place)?,
                    time: all(&piece.time)?,
                    reverse,
                })
            })
            .collect::<Result<_, Overflow>>()
            .map_err(too_large)?;
        Ok(Mapper { pieces })
    }

    fn slot(&self, point: &[i64]) -> Result<Slot, Diagnostic> {
        let values = |forms: &[Linear], at: &[i64]| {
            forms
                .iter()
                .map(|f| f.eval(at).ok_or_else(|| too_large(Overflow)))
                .collect::<Result<Vec<i64>, Diagnostic>>()
        };
        for piece in &self.pieces {
            if !piece.test.eval(point).ok_or_else(|| too_large(Overflow))? {
                continue;
            }
            let slot = Slot {
                place: values(&piece.place, point)?,
                time: values(&piece.time, point)?,
                point: point.to_vec(),
            };
            if let Some(reverse) = &piece.reverse {
                let coordinates: Vec<i64> = slot.place.iter().chain(&slot.time).copied().collect();
                for ((form, divisor), z) in reverse.iter().zip(point) {
                    let value = form.eval(&coordinates).ok_or_else(|| too_large(Overflow))?;
                    if value % divisor != 0 || value / divisor != *z {
                        return Err(Diagnostic::new(
                            &codes::WRONG_SLOT,
                            Span::NONE,
                            format!(
                                "the reverse transform sends the slot of {point:?} to another point"
                            ),
                        ));
                    }
                }
            }
            return Ok(slot);
        }
        Err(Diagnostic::new(
            &codes::NO_LINK,
            Span::NONE,
            format!("no piece of the mapping holds at {point:?}"),
        ))
    }
}
