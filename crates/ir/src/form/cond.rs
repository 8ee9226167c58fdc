//! Conditions on iterators and parameters: comparisons of forms and their combinations.

use std::fmt;

use super::{Form, Overflow, Poly};

/// A comparison of two forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rel {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Rel {
    pub fn name(self) -> &'static str {
        match self {
            Rel::Eq => "==",
            Rel::Ne => "!=",
            Rel::Lt => "<",
            Rel::Le => "<=",
            Rel::Gt => ">",
            Rel::Ge => ">=",
        }
    }

    /// The relation that holds exactly where this one does not.
    #[must_use]
    pub fn opposite(self) -> Rel {
        match self {
            Rel::Eq => Rel::Ne,
            Rel::Ne => Rel::Eq,
            Rel::Lt => Rel::Ge,
            Rel::Ge => Rel::Lt,
            Rel::Le => Rel::Gt,
            Rel::Gt => Rel::Le,
        }
    }

    /// The same relation with its sides exchanged.
    #[must_use]
    pub fn mirrored(self) -> Rel {
        match self {
            Rel::Eq => Rel::Eq,
            Rel::Ne => Rel::Ne,
            Rel::Lt => Rel::Gt,
            Rel::Gt => Rel::Lt,
            Rel::Le => Rel::Ge,
            Rel::Ge => Rel::Le,
        }
    }

    pub fn holds(self, left: i128, right: i128) -> bool {
        match self {
            Rel::Eq => left == right,
            Rel::Ne => left != right,
            Rel::Lt => left < right,
            Rel::Le => left <= right,
            Rel::Gt => left > right,
            Rel::Ge => left >= right,
        }
    }
}

/// A condition on iterators and parameters: a guard, or a piece of a domain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Cond {
    Const(bool),
    Cmp(Rel, Form, Form),
    And(Vec<Cond>),
    Or(Vec<Cond>),
    Not(Box<Cond>),
}

impl Cond {
    pub const TRUE: Cond = Cond::Const(true);

    pub fn cmp(rel: Rel, left: impl Into<Form>, right: impl Into<Form>) -> Cond {
        Cond::Cmp(rel, left.into(), right.into())
    }

    /// The conjunction, without needless nesting.
    #[must_use]
    pub fn and(self, other: Cond) -> Cond {
        match (self, other) {
            (Cond::Const(true), c) | (c, Cond::Const(true)) => c,
            (Cond::And(mut a), Cond::And(b)) => {
                a.extend(b);
                Cond::And(a)
            }
            (Cond::And(mut a), b) => {
                a.push(b);
                Cond::And(a)
            }
            (a, Cond::And(mut b)) => {
                b.insert(0, a);
                Cond::And(b)
            }
            (a, b) => Cond::And(vec![a, b]),
        }
    }

    /// The disjunction. Conjuncts that all parts share are factored out; if two of the remaining
    /// parts are each other's negation, only the shared conjuncts are left.
    pub fn any(parts: Vec<Cond>) -> Cond {
        let conjuncts = |cond: Cond| match cond {
            Cond::And(parts) => parts,
            other => vec![other],
        };
        let mut rests: Vec<Vec<Cond>> = parts.into_iter().map(conjuncts).collect();
        let Some(first) = rests.first() else {
            return Cond::Const(false);
        };
        let mut common = first.clone();
        common.retain(|c| rests.iter().all(|rest| rest.contains(c)));
        for rest in &mut rests {
            rest.retain(|c| *c != Cond::TRUE && !common.contains(c));
        }
        let whole = |rest: &[Cond]| rest.iter().cloned().fold(Cond::TRUE, Cond::and);
        let mut any: Vec<Cond> = Vec::new();
        for rest in &rests {
            let rest = whole(rest);
            if rest == Cond::TRUE || any.contains(&rest.clone().negate()) {
                any = vec![Cond::TRUE];
                break;
            }
            if !any.contains(&rest) {
                any.push(rest);
            }
        }
        let any = match any.len() {
            1 => any.remove(0),
            _ => Cond::Or(any),
        };
        common.dedup();
        common.into_iter().fold(Cond::TRUE, Cond::and).and(any)
    }

    #[must_use]
    pub fn negate(self) -> Cond {
        match self {
            Cond::Const(b) => Cond::Const(!b),
            Cond::Not(inner) => *inner,
            other => Cond::Not(Box::new(other)),
        }
    }

    pub fn eval(&self, params: &[i128], dims: &[i128]) -> Result<bool, Overflow> {
        Ok(match self {
            Cond::Const(b) => *b,
            Cond::Cmp(rel, left, right) => {
                rel.holds(left.eval(params, dims)?, right.eval(params, dims)?)
            }
            Cond::And(parts) => {
                for part in parts {
                    if !part.eval(params, dims)? {
                        return Ok(false);
                    }
                }
                true
            }
            Cond::Or(parts) => {
                for part in parts {
                    if part.eval(params, dims)? {
                        return Ok(true);
                    }
                }
                false
            }
            Cond::Not(inner) => !inner.eval(params, dims)?,
        })
    }

    /// Applies a function to every form of the condition.
    pub fn map(&self, f: &dyn Fn(&Form) -> Result<Form, Overflow>) -> Result<Cond, Overflow> {
        let all = |parts: &[Cond]| parts.iter().map(|p| p.map(f)).collect::<Result<_, _>>();
        Ok(match self {
            Cond::Const(b) => Cond::Const(*b),
            Cond::Cmp(rel, left, right) => Cond::Cmp(*rel, f(left)?, f(right)?),
            Cond::And(parts) => Cond::And(all(parts)?),
            Cond::Or(parts) => Cond::Or(all(parts)?),
            Cond::Not(inner) => Cond::Not(Box::new(inner.map(f)?)),
        })
    }

    /// Every form of the condition.
    pub fn forms(&self) -> Vec<&Form> {
        match self {
            Cond::Const(_) => Vec::new(),
            Cond::Cmp(_, left, right) => vec![left, right],
            Cond::And(parts) | Cond::Or(parts) => parts.iter().flat_map(Cond::forms).collect(),
            Cond::Not(inner) => inner.forms(),
        }
    }

    /// An upper bound on the number of conjunctions of inequalities whose union it is.
    pub fn alternatives(&self) -> usize {
        self.cases(true)
    }

    fn cases(&self, holds: bool) -> usize {
        let of = |parts: &[Cond]| parts.iter().map(|p| p.cases(holds)).collect::<Vec<_>>();
        match self {
            Cond::Const(value) => usize::from(*value == holds),
            Cond::Cmp(Rel::Eq, ..) => 2 - usize::from(holds),
            Cond::Cmp(Rel::Ne, ..) => 1 + usize::from(holds),
            Cond::Cmp(Rel::Lt | Rel::Le | Rel::Gt | Rel::Ge, ..) => 1,
            Cond::And(parts) if holds => of(parts).into_iter().fold(1, usize::saturating_mul),
            Cond::Or(parts) if !holds => of(parts).into_iter().fold(1, usize::saturating_mul),
            Cond::And(parts) | Cond::Or(parts) => {
                of(parts).into_iter().fold(0, usize::saturating_add)
            }
            Cond::Not(inner) => inner.cases(!holds),
        }
    }

    /// The same condition as a person would write it: without subtractions in comparisons, and with
    /// an iterator on the left side if there is one.
    #[must_use]
    pub fn balanced(&self) -> Cond {
        let all = |parts: &[Cond]| parts.iter().map(Cond::balanced).collect();
        match self {
            Cond::Const(b) => Cond::Const(*b),
            Cond::Cmp(rel, left, right) => balance(*rel, &left.sub(right)),
            Cond::And(parts) => joined(all(parts), Cond::And, true),
            Cond::Or(parts) => joined(all(parts), Cond::Or, false),
            Cond::Not(inner) => match inner.balanced() {
                Cond::Cmp(rel, left, right) => balance(rel.opposite(), &left.sub(&right)),
                inner => Cond::Not(Box::new(inner)),
            },
        }
    }

    /// The same condition without conjunctions and disjunctions of fewer than two parts, which
    /// print like their part.
    #[must_use]
    pub fn without_single_parts(&self) -> Cond {
        let all = |parts: &[Cond]| parts.iter().map(Cond::without_single_parts).collect();
        match self {
            Cond::Const(_) | Cond::Cmp(..) => self.clone(),
            Cond::And(parts) => joined(all(parts), Cond::And, true),
            Cond::Or(parts) => joined(all(parts), Cond::Or, false),
            Cond::Not(inner) => Cond::Not(Box::new(inner.without_single_parts())),
        }
    }

    /// Prints as the text language writes it.
    pub fn display<'a>(
        &'a self,
        params: &'a [String],
        dims: &'a [String],
    ) -> impl fmt::Display + 'a {
        fmt::from_fn(move |f| write_cond(self, params, dims, f))
    }
}

/// Several parts as one condition; `none` is the value of an empty list.
fn joined(mut parts: Vec<Cond>, join: fn(Vec<Cond>) -> Cond, none: bool) -> Cond {
    match parts.len() {
        0 => Cond::Const(none),
        1 => parts.remove(0),
        _ => join(parts),
    }
}

/// `gap rel 0` with the negative terms moved to the other side.
fn balance(rel: Rel, gap: &Form) -> Cond {
    let (mut left, mut right) = (Form::zero(), Form::zero());
    let split = |poly: &Poly| -> (Poly, Poly) {
        let mut parts = (Poly::zero(), Poly::zero());
        for (monomial, c) in poly.terms() {
            let side = if c > 0 { &mut parts.0 } else { &mut parts.1 };
            side.accumulate(&Poly::term(monomial.clone(), c.abs()));
        }
        parts
    };
    for (atom, poly) in gap.terms() {
        let (plus, minus) = split(poly);
        left.add_term(atom, &plus);
        right.add_term(atom, &minus);
    }
    let (plus, minus) = split(&gap.constant);
    (left.constant, right.constant) = (plus, minus);
    let mut rel = rel;
    // Iterators first, then sizes.
    let weight = |form: &Form| (form.terms.len(), usize::from(form.as_constant().is_none()));
    if weight(&left) < weight(&right) {
        std::mem::swap(&mut left, &mut right);
        rel = rel.mirrored();
    }
    // `a + 1 <= b` is `a < b`, unless one side is only a number.
    let number = |form: &Form| form.as_constant().is_some();
    let one_more = |form: &Form| !form.plus(-1).constant.terms().any(|(m, _)| m.is_empty());
    if !number(&left) && !number(&right) {
        match rel {
            Rel::Le if one_more(&left) => (rel, left) = (Rel::Lt, left.plus(-1)),
            Rel::Ge if one_more(&right) => (rel, right) = (Rel::Gt, right.plus(-1)),
            Rel::Eq | Rel::Ne | Rel::Lt | Rel::Le | Rel::Gt | Rel::Ge => {}
        }
    }
    Cond::Cmp(rel, left, right)
}

fn write_cond(
    cond: &Cond,
    params: &[String],
    dims: &[String],
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    // `&&` binds tighter than `||`; nested runs of one operator have been flattened.
    let write_parts = |f: &mut fmt::Formatter<'_>, parts: &[Cond], op: &str, none: &str| {
        if parts.is_empty() {
            return f.write_str(none);
        }
        for (n, part) in parts.iter().enumerate() {
            if n > 0 {
                write!(f, " {op} ")?;
            }
            let grouped = match (cond, part) {
                (Cond::Or(_), Cond::And(inner)) => inner.len() < 2,
                (_, Cond::And(_) | Cond::Or(_)) => true,
                (_, Cond::Const(_) | Cond::Cmp(..) | Cond::Not(_)) => false,
            };
            if grouped && parts.len() > 1 {
                write!(f, "({})", part.display(params, dims))?;
            } else {
                write_cond(part, params, dims, f)?;
            }
        }
        Ok(())
    };
    match cond {
        Cond::Const(b) => write!(f, "{b}"),
        Cond::Cmp(rel, left, right) => write!(
            f,
            "{} {} {}",
            left.display(params, dims),
            rel.name(),
            right.display(params, dims)
        ),
        Cond::And(parts) => write_parts(f, parts, "&&", "true"),
        Cond::Or(parts) => write_parts(f, parts, "||", "false"),
        Cond::Not(inner) => write!(f, "!({})", inner.display(params, dims)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{DimId, ParamId};

    #[test]
    fn comparisons_are_balanced() {
        let i = Form::from(DimId(0));
        let n = Form::from(ParamId(0));
        let check = |rel: Rel, form: &Form, expect: &str| {
            let cond = Cond::cmp(rel, form.clone(), 0).balanced();
            let shown = cond
                .display(&["N".into(), "K".into()], &["i".into(), "j".into()])
                .to_string();
            assert_eq!(shown, expect);
        };
        let sixteen = i.scale(&Poly::constant(16)).unwrap();
        check(Rel::Ge, &n.sub(&sixteen).plus(-16), "16*i + 16 <= N");
        check(Rel::Ge, &n.sub(&i).plus(-1), "i < N");
        check(Rel::Ge, &i.plus(-1), "i >= 1");
        check(Rel::Ge, &i.neg(), "i <= 0");
        check(Rel::Lt, &i.neg().plus(2), "i > 2");
        check(Rel::Eq, &i.sub(&n).plus(1), "i + 1 == N");
        check(Rel::Ge, &n.plus(-2), "N >= 2");
        check(Rel::Ge, &i.sub(&Form::from(DimId(1))).plus(-1), "i > j");
    }

    #[test]
    fn a_disjunction_holds_where_a_part_does() {
        let at_least = |d: usize, c: i128| Cond::cmp(Rel::Ge, Form::from(DimId::from(d)), c);
        let (a, b, c) = (at_least(0, 1), at_least(1, 2), at_least(0, 3));
        let lists = [
            vec![],
            vec![a.clone()],
            vec![a.clone().and(b.clone()), a.clone().and(c.clone())],
            vec![a.clone().and(b.clone()), a.clone().and(b.clone().negate())],
            vec![b.clone(), b.clone()],
            vec![a.clone().and(b.clone()), c.clone().and(b.clone()).negate()],
        ];
        for list in lists {
            let any = Cond::any(list.clone());
            for (i, j) in (0..5).flat_map(|i| (0..5).map(move |j| (i, j))) {
                let holds = |c: &Cond| c.eval(&[], &[i, j]).unwrap();
                assert_eq!(holds(&any), list.iter().any(holds), "{list:?} at {i}, {j}");
            }
        }
        let split = vec![a.clone().and(b.clone()), a.clone().and(b.negate())];
        assert_eq!(Cond::any(split), a);
    }

    #[test]
    fn alternatives_are_counted_through_negations() {
        let is = |rel, c: i128| Cond::cmp(rel, Form::from(DimId(0)), c);
        let both = Cond::And(vec![is(Rel::Ne, 1), is(Rel::Ne, 2)]);
        assert_eq!(both.alternatives(), 4);
        assert_eq!(both.negate().alternatives(), 2);
        let either = Cond::Or(vec![is(Rel::Eq, 1), is(Rel::Lt, 0)]);
        assert_eq!(either.alternatives(), 2);
        assert_eq!(either.negate().alternatives(), 2);
        assert_eq!(Cond::Const(false).alternatives(), 0);
    }
}
