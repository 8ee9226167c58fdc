//! Emits tests where equations have no value: integers divided by zero or raised to negative
//! powers, and lookups outside the axes.
//!
//! A statement records such a fault in the lanes that hold a point of the equation, owned by its
//! tile, where the enclosing guards hold: copies in halos compute with invalid values. Guards by
//! position are lazy, selects by value are not, so the path to a fault is a condition on positions.
//! A fault that an [interval](crate::emit::intervals) proves impossible is not tested.

use systola_ir::kernel::{FaultKind, FaultSite, Memory, Op, Stmt};
use systola_ir::system::{Axis, Expr, InputKind};
use systola_ir::{BinOp, Cond, Form, InputId, Literal, Scalar, Span, ValueId};

use crate::emit::Emitter;
use crate::emit::cells::Here;
use crate::emit::fault_sites::{UNKNOWN, may_fault};
use crate::emit::intervals::{self, Interval};
use crate::emit::repeats::decided_by;
use crate::facts::Facts;
use crate::failure::Failure;

/// The largest number of nested operations through which an interval is derived.
const DEEPEST: u32 = 12;

/// Bounds of a form, as far as a few guesses prove them: small tables are indexed by small numbers.
fn bounds(facts: &Facts<'_>, form: &Form) -> Interval {
    if let Some(c) = form.as_constant() {
        return (c, c);
    }
    let at_least = |n: i128| facts.is_nonnegative(&form.plus(-n));
    let at_most = |n: i128| facts.is_nonnegative(&form.neg().plus(n));
    let lo = [1, 0].into_iter().find(|n| at_least(*n));
    let hi = (0..10).map(|k| (1i128 << k) - 1).find(|n| at_most(*n));
    (
        lo.unwrap_or(i128::from(i64::MIN)),
        hi.unwrap_or(i128::from(i64::MAX)),
    )
}

impl Emitter<'_> {
    /// Evaluates a part of an equation. `live` gives the condition under which it is live, and all
    /// points at which it is evaluated, if these are known.
    pub(super) fn within_equation<T>(
        &mut self,
        expr: &Expr,
        owner: &dyn Fn() -> (String, Span),
        live: impl FnOnce(&Self) -> Result<(Cond, Option<Cond>), Failure>,
        f: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.faults.may = may_fault(self.array, expr);
        if !self.faults.may && !self.array.keeps_values() {
            return f(self);
        }
        let (live, points) = live(self)?;
        self.faults.live = Some(self.facts.simplify(&live));
        self.faults.points = points;
        self.faults.path = Cond::TRUE;
        (self.faults.owner, self.faults.span) = owner();
        let result = f(self);
        self.faults.live = None;
        self.faults.may = false;
        result
    }

    /// Evaluates something under a condition.
    pub(super) fn on_path<T>(
        &mut self,
        cond: &Cond,
        f: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<(T, Cond), Failure> {
        let around = self.faults.path.clone();
        if self.faults.live.is_some() {
            self.faults.path = around.clone().and(cond.clone());
        }
        let result = f(self);
        let end = std::mem::replace(&mut self.faults.path, around);
        Ok((result?, end))
    }

    /// Merges the paths of two branches: the evaluation continues where it reached the end of the
    /// branch taken. An undefined value ends its path.
    pub(super) fn after_branches(&mut self, cond: &Cond, then: Cond, otherwise: Cond) {
        let around = &self.faults.path;
        let whole = (
            around.clone().and(cond.clone()),
            around.clone().and(cond.clone().negate()),
        );
        if self.faults.live.is_some() && (&then, &otherwise) != (&whole.0, &whole.1) {
            self.faults.path = Cond::Or(vec![then, otherwise]);
        }
    }

    /// Evaluates something at the points where a condition over them holds.
    pub(super) fn at_points<T>(&mut self, cond: &Cond, f: impl FnOnce(&mut Self) -> T) -> T {
        let around = self.faults.points.clone();
        if let Some(points) = &mut self.faults.points {
            *points = points.clone().and(cond.clone());
        }
        let result = f(self);
        if self.faults.points.is_some() {
            self.faults.points = around;
        }
        result
    }

    /// Everything evaluated from here on is undefined where the condition does not hold.
    pub(super) fn only_where(&mut self, cond: Cond) {
        self.faults.points = None;
        if self.faults.live.is_some() {
            let around = std::mem::replace(&mut self.faults.path, Cond::TRUE);
            self.faults.path = around.and(cond);
        }
    }

    /// The condition under which the evaluation reaches the current expression.
    pub(super) fn here_live(&self) -> Cond {
        let live = self.faults.live.clone().unwrap_or(Cond::TRUE);
        live.and(self.faults.path.clone())
    }

    /// The interval of a value in the lanes that reach the current expression.
    fn interval(&self, value: ValueId) -> Interval {
        let facts = self.facts.with(self.here_live());
        self.interval_under(value, &facts, DEEPEST)
            .unwrap_or((i128::MIN, i128::MAX))
    }

    fn interval_under(&self, value: ValueId, facts: &Facts<'_>, depth: u32) -> Option<Interval> {
        let ty = self.b.ty(value);
        let Some(op) = self.b.operation(value).filter(|_| depth > 0) else {
            return intervals::of_type(ty);
        };
        if let Op::Index(form) = op {
            return Some(bounds(facts, form));
        }
        let of = |value: ValueId| self.interval_under(value, facts, depth - 1);
        intervals::of_op(ty, op, &of, || self.contents(op, ty))
    }

    /// The interval of the elements that an operation reads.
    fn contents(&self, op: &Op, ty: Scalar) -> Option<Interval> {
        let stated = match op.effects().reads() {
            Some(Memory::Global(buffer)) => self.array.inputs.get(buffer.index()),
            Some(Memory::Shared(_)) | None => None,
        };
        let data = stated.and_then(|input| match &input.kind {
            InputKind::Table { data } => data.as_deref(),
            InputKind::Array => None,
        });
        data.and_then(intervals::of_literals)
            .or_else(|| intervals::of_type(ty))
    }

    /// Records the faults of an operator on integers.
    pub(super) fn test_operator(
        &mut self,
        op: BinOp,
        expr: &Expr,
        b: ValueId,
        here: &Here<'_>,
    ) -> Result<(), Failure> {
        let ty = self.b.ty(b);
        if !self.faults.may || !ty.is_int() {
            return Ok(());
        }
        let (lo, hi) = self.interval(b);
        let kind = match op {
            BinOp::Div | BinOp::Rem if lo <= 0 && hi >= 0 => FaultKind::DivisionByZero(op),
            BinOp::Pow if lo < 0 => FaultKind::NegativeExponent,
            _ => return Ok(()),
        };
        if self.is_tested(expr, here)? {
            return Ok(());
        }
        let test = if op == BinOp::Pow {
            BinOp::Lt
        } else {
            BinOp::Eq
        };
        let zero = self.b.literal(ty, Literal::Int(0));
        let bad = self.binary(test, "bad", b, zero);
        self.fault(kind, self.faults.span, bad, here);
        Ok(())
    }

    /// Is the value of an expression tested at a point other than those that are live here?
    fn is_tested(&self, expr: &Expr, here: &Here<'_>) -> Result<bool, Failure> {
        match (decided_by(self.array, expr), &self.faults.points) {
            (Some(forms), Some(points)) => {
                self.is_tested_before(&forms, points, &self.here_live(), here)
            }
            (None, _) | (_, None) => Ok(false),
        }
    }

    /// Records faults where indices into an input, numbered from 0, are outside its axes.
    pub(super) fn test_lookup(
        &mut self,
        input: InputId,
        index: &[(&Expr, ValueId)],
        span: Span,
        here: &Here<'_>,
    ) -> Result<(), Failure> {
        if !self.faults.may {
            return Ok(());
        }
        let declared = &self.array.inputs[input.index()];
        let mut untested = Vec::new();
        for (axis, (expr, value)) in declared.axes.iter().zip(index) {
            if !self.is_tested(expr, here)? {
                untested.push((axis, *value));
            }
        }
        if let Some(bad) = self.outside(untested) {
            let input = declared.name.clone();
            self.fault(FaultKind::OutOfRange { input }, span, bad, here);
        }
        Ok(())
    }

    /// Whether some index, numbered from 0, is outside its axis; `None` if that is impossible.
    pub(super) fn outside<'x>(
        &mut self,
        index: impl IntoIterator<Item = (&'x Axis, ValueId)>,
    ) -> Option<ValueId> {
        let mut tests = Vec::new();
        for (axis, value) in index {
            let (lo, hi) = self.interval(value);
            let extent = self.facts.reduce(&axis.hi.sub(&axis.lo));
            let ty = self.b.ty(value);
            if lo < 0 {
                let zero = self.b.literal(ty, Literal::Int(0));
                tests.push(self.binary(BinOp::Lt, "bad", value, zero));
            }
            let holds = |n: i128| intervals::of_type(ty).is_some_and(|t| n <= t.1);
            match extent.as_constant() {
                Some(n) if hi < n => {}
                Some(n) if holds(n) => {
                    let end = self.b.literal(ty, Literal::Int(n));
                    tests.push(self.binary(BinOp::Ge, "bad", value, end));
                }
                Some(_) => {}
                None if self.facts.is_nonnegative(&extent.plus(-1 - hi)) => {}
                None => tests.extend(self.at_least(value, &extent)),
            }
        }
        let either = |a: ValueId, b: ValueId| self.binary(BinOp::Or, "bad", a, b);
        tests.into_iter().reduce(either)
    }

    /// Whether an index is at least an extent that depends on sizes only. The test uses integers of
    /// the index's own type, because narrower ones take fewer registers.
    fn at_least(&mut self, value: ValueId, extent: &Form) -> Vec<ValueId> {
        let ty = self.b.ty(value);
        let last = extent.plus(-1);
        let mut limit = self.b.value("last", Scalar::I64, Op::Index(last.clone()));
        let mut tests = Vec::new();
        if !ty.is_signed_int() && !self.facts.is_nonnegative(&last) {
            let zero = self.b.literal(Scalar::I64, Literal::Int(0));
            tests.push(self.binary(BinOp::Lt, "bad", limit, zero));
        }
        if let Some((_, greatest)) = ty.int_range().filter(|_| ty.bits() < 64) {
            let greatest = self.b.literal(Scalar::I64, Literal::Int(greatest));
            limit = self.binary(BinOp::Min, "last", limit, greatest);
        }
        if ty != Scalar::I64 {
            limit = self.b.value("last", ty, Op::Cast(limit));
        }
        tests.push(self.binary(BinOp::Gt, "bad", value, limit));
        tests
    }

    /// Records a fault in live lanes where `bad` holds.
    fn fault(&mut self, kind: FaultKind, span: Span, bad: ValueId, here: &Here<'_>) {
        let when = self.facts.simplify(&self.here_live());
        if when == Cond::Const(false) {
            return;
        }
        let tiles = self.array.tiles.len();
        let site = FaultSite {
            kind,
            owner: self.faults.owner.clone(),
            iterators: self.array.dims[tiles..].to_vec(),
            span,
        };
        let known = self.faults.sites.iter().position(|s| *s == site);
        let site = known.unwrap_or_else(|| {
            self.faults.sites.push(site);
            self.faults.sites.len() - 1
        });
        self.b.push(Stmt::Fault {
            faults: UNKNOWN,
            site,
            bad,
            when,
            point: here.point[tiles..self.array.dims.len()].to_vec(),
        });
    }
}
