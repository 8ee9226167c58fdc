//! Reads of cells that may lie beyond the boundary.

use systola_ir::system::Expr;
use systola_ir::{Cond, Form, Rel, Scalar};

use crate::Boundary;

/// The condition that a position is one of the first `width` of an axis that begins at `start`;
/// `None` if `width` is zero.
pub fn at_start(at: &Form, start: i128, width: i128) -> Option<Cond> {
    match width {
        0 => None,
        1 => Some(Cond::Cmp(Rel::Eq, at.clone(), Form::from(start))),
        _ => Some(Cond::Cmp(
            Rel::Le,
            at.clone(),
            Form::from(start + width - 1),
        )),
    }
}

/// Whether it is one of the last `width` of an axis that ends before `end`.
pub fn at_end(at: &Form, end: &Form, width: i128) -> Option<Cond> {
    match width {
        0 => None,
        1 => Some(Cond::Cmp(Rel::Eq, at.clone(), end.plus(-1))),
        _ => Some(Cond::Cmp(Rel::Ge, at.clone(), end.plus(-width))),
    }
}

/// One condition or another; `None` where there are none.
pub fn any(mut conds: Vec<Cond>) -> Option<Cond> {
    match conds.len() {
        0 | 1 => conds.pop(),
        _ => Some(Cond::Or(conds)),
    }
}

/// Reads the cell at a constant distance from one inside of the grid, by its boundary condition.
/// Every case is at a constant distance as well: `leaf` gets the index of a cell inside.
pub fn read(
    boundary: Boundary,
    ty: Scalar,
    here: &[Form],
    sizes: &[Form],
    offset: &[i128],
    leaf: &dyn Fn(&[Form]) -> Expr,
) -> Expr {
    let shifted: Vec<Form> = here.iter().zip(offset).map(|(at, o)| at.plus(*o)).collect();
    match boundary {
        Boundary::Interior | Boundary::Fixed => leaf(&shifted),
        Boundary::Constant(value) => {
            let outside = here.iter().zip(sizes).zip(offset);
            let outside = outside
                .filter_map(|((at, n), o)| {
                    at_start(at, 0, (-o).max(0)).or(at_end(at, n, (*o).max(0)))
                })
                .collect();
            match any(outside) {
                Some(cond) => Expr::guard(cond, Expr::Lit(ty, value), leaf(&shifted)),
                None => leaf(&shifted),
            }
        }
        Boundary::Clamp | Boundary::Mirror | Boundary::Reflect | Boundary::Wrap => {
            let mut index = shifted;
            cases(boundary, here, sizes, offset, 0, &mut index, leaf)
        }
    }
}

fn cases(
    boundary: Boundary,
    here: &[Form],
    sizes: &[Form],
    offset: &[i128],
    axis: usize,
    index: &mut Vec<Form>,
    leaf: &dyn Fn(&[Form]) -> Expr,
) -> Expr {
    let Some(at) = here.get(axis) else {
        return leaf(index);
    };
    let mut expr = cases(boundary, here, sizes, offset, axis + 1, index, leaf);
    let inside = index[axis].clone();
    for (cond, instead) in distances(boundary, at, &sizes[axis], offset[axis])
        .into_iter()
        .rev()
    {
        index[axis] = instead;
        let then = cases(boundary, here, sizes, offset, axis + 1, index, leaf);
        expr = Expr::guard(cond, then, expr);
    }
    index[axis] = inside;
    expr
}

/// For each position next to the boundary, the cell that is read instead of the neighbour.
fn distances(boundary: Boundary, at: &Form, n: &Form, offset: i128) -> Vec<(Cond, Form)> {
    let before = offset < 0;
    let reach = offset.abs();
    if boundary == Boundary::Wrap {
        let cond = if before {
            at_start(at, 0, reach)
        } else {
            at_end(at, n, reach)
        };
        let around = if before { n.clone() } else { n.neg() };
        return cond
            .map(|cond| (cond, at.plus(offset).add(&around)))
            .into_iter()
            .collect();
    }
    (0..reach)
        .filter_map(|p| {
            let distance = match boundary {
                Boundary::Clamp => p,
                Boundary::Mirror => 2 * p - reach,
                Boundary::Reflect => 2 * p + 1 - reach,
                Boundary::Interior | Boundary::Fixed | Boundary::Constant(_) | Boundary::Wrap => {
                    return None;
                }
            };
            Some(if before {
                (
                    Cond::Cmp(Rel::Eq, at.clone(), Form::from(p)),
                    at.plus(-distance),
                )
            } else {
                let cond = Cond::cmp(Rel::Eq, at.clone(), n.plus(-1 - p));
                (cond, at.plus(distance))
            })
        })
        .collect()
}

/// Reads an element of an array at any indices, by its boundary condition. The sign of an offset
/// says on which sides it may be outside.
pub fn read_array(
    boundary: Boundary,
    index: &[Form],
    sizes: &[Form],
    sides: &[Sides],
    leaf: &dyn Fn(&[Form]) -> Expr,
) -> Expr {
    match boundary {
        Boundary::Interior | Boundary::Fixed | Boundary::Constant(_) => leaf(index),
        Boundary::Clamp | Boundary::Mirror | Boundary::Reflect | Boundary::Wrap => {
            let mut folded = index.to_vec();
            fold(boundary, index, sizes, sides, 0, &mut folded, leaf)
        }
    }
}

/// On which sides of an axis a read may be outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sides {
    pub before: bool,
    pub behind: bool,
}

fn fold(
    boundary: Boundary,
    index: &[Form],
    sizes: &[Form],
    sides: &[Sides],
    axis: usize,
    folded: &mut Vec<Form>,
    leaf: &dyn Fn(&[Form]) -> Expr,
) -> Expr {
    let Some(at) = index.get(axis) else {
        return leaf(folded);
    };
    let n = &sizes[axis];
    let mut below = |instead: Form| {
        folded[axis] = instead;
        fold(boundary, index, sizes, sides, axis + 1, folded, leaf)
    };
    let twice = n.add(n);
    let (before, behind) = match boundary {
        Boundary::Clamp => (Form::zero(), n.plus(-1)),
        Boundary::Mirror => (at.neg(), twice.plus(-2).sub(at)),
        Boundary::Reflect => (at.neg().plus(-1), twice.plus(-1).sub(at)),
        Boundary::Wrap => (at.add(n), at.sub(n)),
        Boundary::Interior | Boundary::Fixed | Boundary::Constant(_) => (at.clone(), at.clone()),
    };
    let mut expr = below(at.clone());
    if sides[axis].behind {
        let cond = Cond::cmp(Rel::Ge, at.clone(), n.clone());
        expr = Expr::guard(cond, below(behind), expr);
    }
    if sides[axis].before {
        expr = Expr::guard(
            Cond::Cmp(Rel::Lt, at.clone(), Form::zero()),
            below(before),
            expr,
        );
    }
    expr
}
