//! Which of two points comes first, as conditions.
//!
//! What a point does is complete, and visible, before another one begins if it runs in an earlier
//! launch, or in an earlier step of the same block.

use systola_ir::array::Array;
use systola_ir::form::{Cond, Form, Overflow, Rel};
use systola_ir::mapping::{PlaceLevel, TimeLevel};

/// A point under one piece of the mapping, over a space of several points.
pub struct Placed {
    /// Where the piece holds.
    pub cond: Cond,
    launch: Vec<Form>,
    block: Vec<Form>,
    time: Vec<Form>,
}

/// A point under each piece of the mapping.
pub fn placed(array: &Array, point: &[Form]) -> Result<Vec<Placed>, Overflow> {
    let at = |f: &Form| f.substitute(&|d| point.get(d.index()).cloned());
    let is_block = |l| matches!(l, PlaceLevel::Node | PlaceLevel::Block);
    let pieces = array.pieces.iter().map(|piece| {
        let place = array.place.iter().zip(&piece.place);
        let time = array.time.iter().zip(&piece.time);
        let (launch, steps): (Vec<_>, Vec<_>) =
            time.partition(|(c, _)| c.level == TimeLevel::Launch);
        let all = |list: Vec<&Form>| list.into_iter().map(at).collect::<Result<_, _>>();
        let block = place.filter(|(c, _)| is_block(c.level));
        Ok(Placed {
            cond: piece.cond.map(&at)?,
            launch: all(launch.into_iter().map(|(_, f)| f).collect())?,
            block: all(block.map(|(_, f)| f).collect())?,
            time: all(steps.into_iter().map(|(_, f)| f).collect())?,
        })
    });
    pieces.collect()
}

/// The first point does not come before the second one.
pub fn not_before(first: &Placed, second: &Placed) -> Cond {
    let mut cases = lex_greater(&first.launch, &second.launch);
    let one_launch = equal(&first.launch, &second.launch);
    let other_block = first.block.iter().zip(&second.block);
    let other_block = other_block.map(|(a, b)| compare(Rel::Ne, a, b));
    cases.extend(other_block.map(|other| one_launch.clone().and(other)));
    let one_block = one_launch.and(equal(&first.block, &second.block));
    let mut late = lex_greater(&first.time, &second.time);
    late.push(equal(&first.time, &second.time));
    cases.extend(late.into_iter().map(|late| one_block.clone().and(late)));
    any(cases)
}

/// Both are in one launch, but not in one block.
pub fn in_other_blocks(first: &Placed, second: &Placed) -> Cond {
    let others = first.block.iter().zip(&second.block);
    let others = others.map(|(a, b)| compare(Rel::Ne, a, b)).collect();
    equal(&first.launch, &second.launch).and(any(others))
}

/// Some of the forms differ.
pub fn differ(a: &[Form], b: &[Form]) -> Cond {
    let mut cases = Vec::new();
    let mut same = Cond::TRUE;
    for (a, b) in a.iter().zip(b) {
        for rel in [Rel::Lt, Rel::Gt] {
            cases.push(same.clone().and(compare(rel, a, b)));
        }
        same = same.and(compare(Rel::Eq, a, b));
    }
    any(cases)
}

pub fn equal(a: &[Form], b: &[Form]) -> Cond {
    let pairs = a.iter().zip(b).map(|(a, b)| compare(Rel::Eq, a, b));
    pairs.fold(Cond::TRUE, Cond::and)
}

/// The cases of a > b in lexicographic order.
fn lex_greater(a: &[Form], b: &[Form]) -> Vec<Cond> {
    let mut cases = Vec::new();
    let mut same = Cond::TRUE;
    for (a, b) in a.iter().zip(b) {
        cases.push(same.clone().and(compare(Rel::Gt, a, b)));
        same = same.and(compare(Rel::Eq, a, b));
    }
    cases
}

/// A comparison, decided if the difference is a number.
fn compare(rel: Rel, a: &Form, b: &Form) -> Cond {
    match a.sub(b).as_constant() {
        Some(gap) => Cond::Const(rel.holds(gap, 0)),
        None => Cond::Cmp(rel, a.clone(), b.clone()),
    }
}

fn any(cases: Vec<Cond>) -> Cond {
    let possible = cases.into_iter().filter(|c| !is_never(c));
    Cond::any(possible.collect())
}

/// Is the condition false without any proof?
pub fn is_never(cond: &Cond) -> bool {
    match cond {
        Cond::Const(value) => !value,
        Cond::And(parts) => parts.iter().any(is_never),
        Cond::Or(_) | Cond::Not(_) | Cond::Cmp(..) => false,
    }
}
