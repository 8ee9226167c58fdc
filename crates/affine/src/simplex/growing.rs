//! The relaxation of a conjunction to which constraints are added. Each search begins at the vertex
//! where the last one ended: if conjunctions share constraints, these are solved only once.

use super::tableau::Tableau;
use super::{Found, branch, search};
use crate::error::{Error, Result};
use crate::system::{Budget, Row, System, Verdict, negate, normalize_eq, normalize_ge};

/// The constraints added so far, solved.
#[derive(Clone, Debug)]
pub(crate) struct Growing {
    n: usize,
    n_eqs: usize,
    n_ges: usize,
    solved: Solved,
}

#[derive(Clone, Debug)]
enum Solved {
    Vertex(Tableau<i64>),
    Empty,
    /// The numbers outgrew 64 bits, or the step limit was reached: every search starts from
    /// scratch.
    Not,
}

impl Growing {
    pub(crate) fn new(n: usize) -> Self {
        Growing {
            n,
            n_eqs: 0,
            n_ges: 0,
            solved: Solved::Vertex(Tableau::of_variables(n, 0)),
        }
    }

    /// Branch and bound over a system that begins with the rows of the last one.
    pub(crate) fn search(
        &mut self,
        sys: &System,
        nodes: usize,
        budget: &mut Budget,
    ) -> Result<Found> {
        match std::mem::replace(&mut self.solved, Solved::Not) {
            Solved::Vertex(tableau) => match self.grow(tableau, sys, budget) {
                Ok(solved) => self.solved = solved,
                Err(Error::Overflow) => {}
                Err(other) => return Err(other),
            },
            other => self.solved = other,
        }
        match &self.solved {
            Solved::Empty => Ok(Found::Empty),
            Solved::Vertex(tableau) => match branch(tableau.clone(), sys.n, nodes, budget) {
                Err(Error::Overflow) => search(sys, nodes, budget),
                answer => answer,
            },
            Solved::Not => {
                let mut sys = sys.clone();
                if !sys.normalize(budget)? {
                    return Ok(Found::Empty);
                }
                search(&sys, nodes, budget)
            }
        }
    }

    fn grow(
        &mut self,
        mut tableau: Tableau<i64>,
        sys: &System,
        budget: &mut Budget,
    ) -> Result<Solved> {
        let (old, eqs, ges) = (self.n, self.n_eqs, self.n_ges);
        (self.n, self.n_eqs, self.n_ges) = (sys.n, sys.eqs.len(), sys.ges.len());
        if sys.n > old {
            tableau.add_variables(old, sys.n);
        }
        let eqs = sys.eqs[eqs..].iter().map(|row| (row, true));
        let ges = sys.ges[ges..].iter().map(|row| (row, false));
        for (row, is_eq) in eqs.chain(ges) {
            let mut row: Row = row.clone();
            let verdict = match is_eq {
                true => normalize_eq(&mut row)?,
                false => normalize_ge(&mut row)?,
            };
            let has_points = match verdict {
                Verdict::Always => true,
                Verdict::Never => false,
                Verdict::Keep => {
                    tableau.push(&row, budget)?
                        && (!is_eq || tableau.push(&negate(&row)?, budget)?)
                }
            };
            if !has_points {
                return Ok(Solved::Empty);
            }
        }
        Ok(Solved::Vertex(tableau))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_as_a_search_from_the_beginning() {
        let mut sys = System::new(2);
        let mut growing = Growing::new(2);
        let mut check = |sys: &System, expect: bool| {
            let mut budget = Budget::new(10_000);
            let grown = growing.search(sys, 20, &mut budget);
            let anew = search(sys, 20, &mut budget);
            for found in [grown, anew] {
                match found {
                    Ok(Found::Empty) => assert!(!expect, "{sys:?}"),
                    Ok(Found::Point(x)) => {
                        assert!(expect, "{sys:?}");
                        let value = |row: &Row| {
                            row[0] + row[1..].iter().zip(&x).map(|(c, x)| c * x).sum::<i128>()
                        };
                        assert!(sys.ges.iter().all(|r| value(r) >= 0), "{sys:?} at {x:?}");
                        assert!(sys.eqs.iter().all(|r| value(r) == 0), "{sys:?} at {x:?}");
                    }
                    other => panic!("{sys:?}: {other:?}"),
                }
            }
        };
        // 0 <= x < 10, y >= x, y <= 2 x - 3, then x + y = 3 z with 1 <= z, and z <= 3; x is at
        // least 3.
        sys.ges.extend([vec![0, 1, 0], vec![9, -1, 0]]);
        check(&sys, true);
        sys.ges.extend([vec![0, -1, 1], vec![-3, 2, -1]]);
        check(&sys, true);
        sys.add_vars(1);
        sys.eqs.push(vec![0, 1, 1, -3]);
        sys.ges.push(vec![-1, 0, 0, 1]);
        check(&sys, true);
        sys.ges.push(vec![3, 0, 0, -1]);
        check(&sys, true);
        sys.ges.push(vec![-6, 0, 1, 0]);
        check(&sys, false);
    }
}
