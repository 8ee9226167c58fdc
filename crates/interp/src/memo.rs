//! Memoised values of a variable: a typed table over the points of its domain.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use systola_ir::{Scalar, Type};

use crate::domain::{Census, Domain, DomainError};
use crate::linear::Test;
use crate::tensor::Data;
use crate::value::Value;

/// The state of the value of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Not a point of the domain.
    Outside,
    Unknown,
    /// Waits for the values it depends on.
    Waiting,
    Undefined,
    Known,
}

/// Points are hashed if their bounding box has more than this many times as many elements.
const SPARSENESS: u64 = 10;
/// A small box is always used.
const SMALL_BOX: u64 = 1 << 12;
/// The approximate bytes of a hashed point.
const HASHED_BYTES: u64 = 96;

/// Numbers the points of a domain.
#[derive(Debug)]
pub(crate) struct Layout {
    rank: usize,
    pub(crate) lo: Vec<i64>,
    extent: Vec<i64>,
    n_slots: usize,
    /// Without it, slots are positions in the box.
    hashed: Option<Hashed>,
    /// Points get their slots on first access; then there are neither a box nor other slots.
    lazy: Option<Lazy>,
}

/// The domain, and the points accessed so far.
#[derive(Debug)]
struct Lazy {
    domain: Test,
    found: RefCell<Hashed>,
}

/// Slot of each point, and the points by slot, one after another.
type Hashed = (HashMap<Box<[i64]>, usize>, Vec<i64>);

impl Layout {
    /// Plans the table of a domain; `Err(needed)` where it takes more than `bytes`.
    pub(crate) fn plan(domain: &Domain, rank: usize, bytes: u64) -> Result<Layout, DomainError> {
        let Census { count, mut lo, hi } = domain.census(bytes)?;
        if count == 0 {
            lo = vec![0; rank];
        }
        let extent: Vec<i64> = match count {
            0 => vec![0; rank],
            _ => lo.iter().zip(&hi).map(|(lo, hi)| hi - lo + 1).collect(),
        };
        let volume = extent
            .iter()
            .try_fold(1u64, |v, e| v.checked_mul(*e as u64))
            .filter(|v| *v <= SMALL_BOX || *v / SPARSENESS <= count);
        let (n_slots, hashed) = match volume {
            Some(volume) => (volume, None),
            None if count.saturating_mul(HASHED_BYTES) > bytes => {
                return Err(DomainError::TooLarge);
            }
            None => {
                let (mut slots, mut points) = (HashMap::new(), Vec::new());
                domain.visit(&mut |point| {
                    slots.insert(point.into(), slots.len());
                    points.extend_from_slice(point);
                    Ok::<_, DomainError>(())
                })?;
                (count, Some((slots, points)))
            }
        };
        if n_slots > bytes {
            return Err(DomainError::TooLarge);
        }
        Ok(Layout {
            rank,
            lo,
            extent,
            n_slots: usize::try_from(n_slots).map_err(|_| DomainError::TooLarge)?,
            hashed,
            lazy: None,
        })
    }

    /// A table that grows on demand. It has no lower bounds.
    pub(crate) fn lazy(domain: Test, rank: usize) -> Layout {
        Layout {
            rank,
            lo: Vec::new(),
            extent: Vec::new(),
            n_slots: 0,
            hashed: None,
            lazy: Some(Lazy {
                domain,
                found: RefCell::default(),
            }),
        }
    }

    /// The number of coordinates of a point.
    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    pub(crate) fn bytes(&self, ty: &Type) -> u64 {
        let per_slot = 1 + width(ty);
        let hashed = if self.hashed.is_some() {
            HASHED_BYTES
        } else {
            0
        };
        (self.n_slots as u64).saturating_mul(per_slot + hashed)
    }

    #[inline]
    fn slot(&self, point: &[i64]) -> Option<usize> {
        if let Some((slots, _)) = &self.hashed {
            return slots.get(point).copied();
        }
        if let Some(lazy) = &self.lazy {
            return lazy.slot(point);
        }
        let mut slot = 0;
        for ((x, lo), extent) in point.iter().zip(&self.lo).zip(&self.extent) {
            let offset = x.wrapping_sub(*lo);
            if offset as u64 >= *extent as u64 {
                return None;
            }
            slot = slot * *extent as usize + offset as usize;
        }
        Some(slot)
    }

    /// Writes the point of a slot.
    #[inline]
    pub(crate) fn point(&self, mut slot: usize, point: &mut [i64]) {
        let copy = |points: &[i64], point: &mut [i64]| {
            let start = slot * self.rank;
            if let Some(source) = points.get(start..start + self.rank) {
                point.copy_from_slice(source);
            }
        };
        if let Some((_, points)) = &self.hashed {
            return copy(points, point);
        }
        if let Some(lazy) = &self.lazy {
            return copy(&lazy.found.borrow().1, point);
        }
        for ((x, lo), extent) in point.iter_mut().zip(&self.lo).zip(&self.extent).rev() {
            let extent = *extent as usize;
            *x = lo + (slot % extent) as i64;
            slot /= extent;
        }
    }
}

impl Lazy {
    fn slot(&self, point: &[i64]) -> Option<usize> {
        let (slots, points) = &mut *self.found.borrow_mut();
        if let Some(slot) = slots.get(point) {
            return Some(*slot);
        }
        if self.domain.eval(point) != Some(true) {
            return None;
        }
        let slot = slots.len();
        slots.insert(point.into(), slot);
        points.extend_from_slice(point);
        Some(slot)
    }
}

fn width(ty: &Type) -> u64 {
    match ty {
        Type::Scalar(s) => u64::from(s.bits() / 8),
        Type::Tuple(parts) => parts.iter().map(width).sum(),
    }
}

/// The values of one variable. A tuple takes one column for each scalar in it.
pub(crate) struct Memo {
    pub(crate) layout: Rc<Layout>,
    ty: Type,
    states: Vec<State>,
    columns: Vec<Data>,
}

impl Memo {
    pub(crate) fn new(layout: Rc<Layout>, states: Vec<State>, ty: Type) -> Memo {
        let mut columns = Vec::new();
        add_columns(&ty, layout.n_slots, &mut columns);
        Memo {
            layout,
            ty,
            states,
            columns,
        }
    }

    pub(crate) fn n_slots(&self) -> usize {
        self.states.len()
    }

    /// The slot of a point and its state; `None` outside the domain.
    #[inline]
    pub(crate) fn find(&self, point: &[i64]) -> Option<(usize, State)> {
        let slot = self.layout.slot(point)?;
        match self.state(slot) {
            State::Outside => None,
            state => Some((slot, state)),
        }
    }

    #[inline]
    pub(crate) fn state(&self, slot: usize) -> State {
        let beyond = match self.layout.lazy {
            Some(_) => State::Unknown,
            None => State::Outside,
        };
        self.states.get(slot).copied().unwrap_or(beyond)
    }

    /// Grows the table to include a slot.
    fn reach(&mut self, slot: usize) {
        if self.layout.lazy.is_some() && slot >= self.states.len() {
            let n = (slot + 1).next_power_of_two();
            self.states.resize(n, State::Unknown);
            self.columns.iter_mut().for_each(|c| c.resize(n));
        }
    }

    #[inline]
    pub(crate) fn set_state(&mut self, slot: usize, state: State) {
        self.reach(slot);
        if let Some(place) = self.states.get_mut(slot) {
            *place = state;
        }
    }

    /// The value of a slot that is `Known`.
    #[inline]
    pub(crate) fn get(&self, slot: usize) -> Option<Value> {
        match &self.ty {
            Type::Scalar(_) => self.columns.first()?.get(slot),
            Type::Tuple(_) => self.assemble(&self.ty, slot, &mut 0),
        }
    }

    fn assemble(&self, ty: &Type, slot: usize, column: &mut usize) -> Option<Value> {
        match ty {
            Type::Scalar(_) => {
                *column += 1;
                self.columns.get(*column - 1)?.get(slot)
            }
            Type::Tuple(parts) => {
                let parts = parts.iter().map(|ty| self.assemble(ty, slot, column));
                Some(Value::Tuple(parts.collect::<Option<_>>()?))
            }
        }
    }

    /// Makes a slot `Known`; false where the value is not of the variable's type.
    #[inline]
    pub(crate) fn set(&mut self, slot: usize, value: &Value) -> bool {
        self.reach(slot);
        let fits = scatter(value, &self.ty, slot, &mut self.columns.iter_mut());
        if fits {
            self.set_state(slot, State::Known);
        }
        fits
    }
}

/// One entry per slot: which are points of the domain.
pub(crate) fn membership(domain: &Domain, layout: &Layout) -> Vec<State> {
    if layout.hashed.is_some() || layout.lazy.is_some() {
        return vec![State::Unknown; layout.n_slots];
    }
    let mut states = vec![State::Outside; layout.n_slots];
    let visited: Result<(), std::convert::Infallible> = domain.visit(&mut |point| {
        if let Some(place) = layout.slot(point).and_then(|slot| states.get_mut(slot)) {
            *place = State::Unknown;
        }
        Ok(())
    });
    match visited {
        Ok(()) => states,
    }
}

fn add_columns(ty: &Type, n: usize, columns: &mut Vec<Data>) {
    match ty {
        Type::Scalar(s) => columns.push(Data::filled(*s, n, &Value::zero(Scalar::Bool))),
        Type::Tuple(parts) => parts.iter().for_each(|part| add_columns(part, n, columns)),
    }
}

fn scatter(
    value: &Value,
    ty: &Type,
    slot: usize,
    columns: &mut std::slice::IterMut<'_, Data>,
) -> bool {
    match (ty, value) {
        (Type::Scalar(_), value) => columns.next().is_some_and(|c| c.set(slot, value)),
        (Type::Tuple(types), Value::Tuple(parts)) => {
            types.len() == parts.len()
                && types
                    .iter()
                    .zip(parts.iter())
                    .all(|(ty, part)| scatter(part, ty, slot, columns))
        }
        (Type::Tuple(_), _) => false,
    }
}
